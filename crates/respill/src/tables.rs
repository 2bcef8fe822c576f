//! The targets of a `switch`'s jumps: tables of labels, as compilers write them.
//!
//! A table is a label in front of `.quad LABEL` (addresses) or `.long LABEL-TABLE` (distances), each naming an
//! instruction of this file. The compiler guarantees that an index stays inside its table. A jump uses a table if its
//! target is an address read out of a table by its name, or the sum of a register and a sign-extended word of 32 bits,
//! which only a table of distances gives. Any other indirect jump has unknown targets.
#![forbid(unsafe_code)]

use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;

use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

use crate::assembler::Place;
use crate::places::{by_name, into_code};
use crate::program::Program;
use crate::text::Kind;

/// A table of labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    /// Whether it holds distances from itself; else addresses.
    pub(crate) distances: bool,
    /// The instructions at the labels.
    pub(crate) targets: BTreeSet<usize>,
    /// The statements of its entries.
    pub(crate) statements: BTreeSet<usize>,
    /// How many there are.
    pub(crate) entries: usize,
}

/// The table of an indirect jump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// The table of this name, of addresses.
    Address(String),
    /// Some table of distances that its function names; this instruction loads the entry.
    Distance(usize),
}

/// The distance before a jump within which its address is computed.
pub(crate) const BACK: usize = 24;

/// The most names of one table; further ones name none.
const NAMES: usize = 16;

/// The tables of a program, by their labels.
pub(crate) fn tables(program: &Program) -> HashMap<String, Table> {
    // A name from `.set` may be set again.
    let label = |&i: &usize| program.text.statements()[i].kind == Kind::Label;
    let said = (0..program.text.statements().len()).filter(label);
    let said: BTreeSet<&str> = said.map(|i| program.text.of(i).trim_end_matches(':')).collect();
    let labels: HashMap<&str, usize> =
        by_name(program).into_iter().filter(|(name, _)| said.contains(name)).collect();
    let mut out = HashMap::new();
    let mut open: Vec<&str> = Vec::new();
    let mut labelled = false;
    for (i, statement) in program.text.statements().iter().enumerate() {
        let said = program.text.of(i);
        if statement.kind == Kind::Label {
            if !labelled {
                open.clear();
            }
            labelled = true;
            // Each has all entries.
            if open.len() < NAMES {
                open.push(said.trim_end_matches(':'));
            }
            continue;
        }
        labelled = false;
        let (directive, values) = said.split_once(char::is_whitespace).unwrap_or((said, ""));
        let distances = match directive {
            ".long" | ".4byte" | ".int" => true,
            ".quad" | ".8byte" => false,
            _ => {
                open.clear();
                continue;
            }
        };
        for value in values.split(',').map(str::trim) {
            open.retain(|&name| {
                let label = match value.split_once('-') {
                    Some((label, from)) if distances && from.trim() == name => Some(label.trim()),
                    None if !distances => Some(value),
                    _ => None,
                };
                let Some(&op) = label.and_then(|label| labels.get(label)) else { return false };
                let fresh =
                    || Table { distances, targets: BTreeSet::new(), statements: BTreeSet::new(), entries: 0 };
                let table = out.entry(name.to_owned()).or_insert_with(fresh);
                table.distances == distances && {
                    table.targets.insert(op);
                    table.statements.insert(i);
                    table.entries += 1;
                    true
                }
            });
        }
    }
    let labels: BTreeSet<Place> = program.places.values().copied().collect();
    out.retain(|name, table| is_whole(program, &labels, name, table));
    out
}

/// Whether nothing writes a table, and all that it holds up to the next label are its entries.
fn is_whole(program: &Program, labels: &BTreeSet<Place>, name: &str, table: &Table) -> bool {
    // The assembler works out a distance beside code by itself, and leaves no reference.
    let constant = |place: &&Place| {
        !program.written.contains(&place.section) && !program.lead.contains_key(&place.section)
    };
    let Some(&begin) = program.places.get(name).filter(constant) else {
        return false;
    };
    let last = Place { offset: u64::MAX, ..begin };
    let end = labels.range((Bound::Excluded(begin), Bound::Included(last))).next();
    program.pointers.range(begin..end.copied().unwrap_or(last)).all(|(field, reference)| {
        let to = into_code(program, reference).and_then(|mut place| {
            if table.distances {
                place.offset = place.offset.wrapping_sub(field.offset - begin.offset);
            }
            program.at.get(&place)
        });
        reference.absolute != table.distances && to.is_some_and(|to| table.targets.contains(to))
    })
}

/// The tables that an instruction names in its text.
pub(crate) fn named<'a>(
    program: &Program,
    op: usize,
    tables: &'a HashMap<String, Table>,
) -> Option<(&'a str, &'a Table)> {
    let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$' | '@') || !c.is_ascii();
    program.said(op).split(|c| !part(c)).find_map(|word| {
        // `OFFSET FLAT:.L4`, `.L4[0+rax*8]`; `table@GOTPCREL` is not one.
        tables.get_key_value(word).map(|(name, table)| (name.as_str(), table))
    })
}

/// Whether an operand lies elsewhere than its address says.
fn by_segment(instruction: &Instruction) -> bool {
    matches!(instruction.memory_segment(), Register::FS | Register::GS)
}

/// The table of the indirect jump at `op`, by the straight code before it.
pub(crate) fn by(program: &Program, op: usize, tables: &HashMap<String, Table>) -> Option<By> {
    let addresses = |op: usize| {
        let i = &program.ops[op].instruction;
        let plain = i.memory_base() == Register::None
            && i.memory_index() != Register::None
            && i.memory_index_scale() == 8
            && i.memory_size().size() == 8
            && !by_segment(i);
        let (name, table) = named(program, op, tables).filter(|_| plain)?;
        (!table.distances).then(|| By::Address(name.to_owned()))
    };
    let jump = &program.ops[op].instruction;
    if jump.op0_kind() == OpKind::Memory {
        return addresses(op);
    }
    let mut info = InstructionInfoFactory::new();
    // Registers, one of which should hold an entry of a table; before the sum, the jump's own register.
    let mut from = vec![jump.op0_register()];
    let (mut summed, mut extended) = (false, false);
    for j in (op.saturating_sub(BACK)..op).rev() {
        // A jump to here may bring another address.
        if program.names.contains_key(&(j + 1)) || program.targets.contains(&(j + 1)) {
            return None;
        }
        let i = &program.ops[j].instruction;
        if i.flow_control() != FlowControl::Next {
            return None;
        }
        let used = info.info(i).used_registers();
        let writes = |register: Register| {
            used.iter().any(|used| {
                let reads =
                    matches!(used.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess);
                used.register().full_register() == register && !reads
            })
        };
        let Some(&written) = from.iter().find(|&&register| writes(register)) else { continue };
        let into = i.op0_kind() == OpKind::Register && i.op0_register() == written;
        let memory = i.op1_kind() == OpKind::Memory && !by_segment(i);
        match i.mnemonic() {
            Mnemonic::Mov if !summed && into && memory => return addresses(j),
            Mnemonic::Add if !summed && into && i.op1_kind() == OpKind::Register => {
                summed = true;
                from.push(i.op1_register());
            }
            Mnemonic::Movsxd if summed && !extended && into && memory => return Some(By::Distance(j)),
            Mnemonic::Cdqe if summed && !extended => (from, extended) = (vec![Register::RAX], true),
            Mnemonic::Mov if extended && i.op0_register() == Register::EAX && memory => {
                return Some(By::Distance(j));
            }
            // The sum's other register.
            _ if summed && !extended && from.len() == 2 => from.retain(|&register| register != written),
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(text: &str) -> Program {
        Program::new("f.s", text).expect("a program")
    }

    #[test]
    fn tables_end_where_their_entries_do() {
        let program = program(
            "f:\tnop\n.La:\tnop\n.Lb:\tret\n.section .rodata\n.Lt: .long .La-.Lt, .Lb-.Lt\n .long .La-.Lt\n.Lu: .long .Lb-.Lu\n .long 7\n .long .La-.Lu\n.Lv: .quad .Lb\n .quad 0\n.Lw: .long .Lb-.Lt\n.Lx: .quad elsewhere\n.Ly: .align 8\n .quad .La\n",
        );
        let found = tables(&program);
        let of = |name: &str| {
            found.get(name).map(|t| (t.distances, t.targets.iter().copied().collect::<Vec<_>>()))
        };
        assert_eq!(of(".Lt"), Some((true, vec![1, 2])));
        // Something else lies between its entries.
        assert_eq!(of(".Lu"), None);
        assert_eq!(of(".Lv"), Some((false, vec![2])));
        assert_eq!((of(".Lw"), of(".Lx"), of(".Ly")), (None, None, None));
    }

    #[test]
    fn only_jumps_by_tables_are_taken_for_such() {
        let rest = "\n.La:\tret\n.section .rodata\n.Lt: .long .La-.Lt\n.Lq: .quad .La\n";
        for (code, want) in [
            ("movslq (%rdx,%rax,4), %rax\naddq %rdx, %rax\njmp *%rax", Some(By::Distance(0))),
            ("movl (%rdx,%rcx), %eax\ncltq\naddq %rdx, %rax\njmp *%rax", Some(By::Distance(0))),
            ("movslq (%rdx,%rax,4), %r13\naddq %rdx, %r13\nmovl $1, %eax\njmp *%r13", Some(By::Distance(0))),
            ("notrack jmp *.Lq(,%rax,8)", Some(By::Address(".Lq".into()))),
            ("movq .Lq(,%rax,8), %rax\njmp *%rax", Some(By::Address(".Lq".into()))),
            // The source of a function's address.
            ("movq (%rdi), %rax\njmp *%rax", None),
            ("movq %rdi, %rax\naddq %rdx, %rax\njmp *%rax", None),
            ("jmp *(%rdi,%rax,8)", None),
            ("jmp *.Lt(,%rax,8)", None),
            ("jmp *%gs:.Lq(,%rax,8)", None),
            ("movslq %fs:(%rdx,%rax,4), %rax\naddq %rdx, %rax\njmp *%rax", None),
            ("jmp *.Lq(%rdi,%rax,8)", None),
            // Another path leads into the middle.
            ("movslq (%rdx,%rax,4), %rax\naddq %rdx, %rax\n.Lm: jmp *%rax", None),
            ("movslq (%rdx,%rax,4), %rax\naddq %rdx, %rax\njmp *%rax\nje .-2", None),
            ("movslq (%rdx,%rax,4), %rax\naddq %rdx, %rax\ncall g\njmp *%rax", None),
            ("movslq (%rdx,%rax,4), %rax\naddq %rdx, %rax\nxorl %eax, %eax\njmp *%rax", None),
            ("movslq (%rdx,%rax,4), %rax\nmovq %rcx, %rax\naddq %rdx, %rax\njmp *%rax", None),
            // The sum is in the other register.
            (
                "movslq (%rdx,%rax,4), %rax\nmovq %rcx, %rdx\naddq %rax, %rdx\njmp *%rdx",
                Some(By::Distance(0)),
            ),
        ] {
            let program = program(&format!("f:\t{code}{rest}"));
            let jump = (0..program.ops.len())
                .find(|&op| program.ops[op].instruction.flow_control() == FlowControl::IndirectBranch);
            let found = by(&program, jump.expect("a jump"), &tables(&program));
            // The load is the first of its instructions.
            assert_eq!(found, want, "{code}");
        }
    }
}
