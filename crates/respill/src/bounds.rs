//! Whether the index of a jump through a table stays inside the table, by the code before the jump.
//!
//! The index is followed backwards on every path, through moves between registers, until the frame's analysis bounds it, or a comparison
//! with a constant does that nothing has made invalid since. A comparison of 32 bits bounds a whole register where these bits are all of
//! it: after an instruction that clears the others.
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};

use iced_x86::{
    ConditionCode, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register, RflagsBits,
};

use crate::assembler::Place;
use crate::flow::{Callee, Exit, Function};
use crate::frame::{CALLEE_SAVED, Frame, Outlines, negated, writes};
use crate::program::{Program, Target};
use crate::tables::{self, By, Table};

/// The most steps on all paths to an index.
const MOST: usize = 1 << 12;

/// The longest way from a comparison to its branch.
const NEAR: usize = 8;

/// The jumps of a function through a table whose index may lie outside it.
pub(crate) fn unbounded(
    program: &Program,
    function: &Function,
    frame: &Frame,
    outlines: &Outlines,
    tables: &HashMap<String, Table>,
) -> Vec<usize> {
    let indirect = |op: &&usize| {
        program.ops[**op].instruction.flow_control() == FlowControl::IndirectBranch
            && function.exits.get(*op) != Some(&Exit::Link)
    };
    let jumps = function.body.iter().filter(indirect).copied();
    let mut jumps = jumps.filter_map(|op| Some((op, tables::by(program, op, tables)?))).peekable();
    if jumps.peek().is_none() {
        return Vec::new();
    }
    let paths = Paths { back: Back::new(program, function), frame };
    // A callee may change the register that holds a table's address.
    let keeps = |register: &Register| {
        function.calls.values().all(|call| match &call.callee {
            Callee::Local(entry) => outlines.get(entry).is_some_and(|o| o.keeps.contains(register)),
            _ => true,
        })
    };
    let kept = function.kept.iter().all(keeps);
    // Where a jump may go elsewhere, not all paths to an index are known.
    let inside = |op: usize, by: &By| match by {
        _ if !function.astray.is_empty() => None,
        By::Address(name) => paths.address(op, name, tables),
        By::Distance(load) => paths.distance(op, *load, tables).filter(|()| kept),
    };
    jumps.filter(|(op, by)| inside(*op, by).is_none()).map(|(op, _)| op).collect()
}

/// The jumps of a function by a distance, where not every path shows that both the distance and what it is added to are of one table; and
/// the registers that functions of the file must keep for it.
pub(crate) fn open(
    program: &Program,
    function: &Function,
    tables: &HashMap<String, Table>,
) -> (BTreeSet<usize>, BTreeSet<Register>) {
    if function.entries.is_empty() {
        return Default::default();
    }
    let back = Back::new(program, function);
    let is_open = |op: &usize| match tables::by(program, *op, tables) {
        Some(By::Distance(load)) => back.table(*op, load, tables).is_none(),
        _ => false,
    };
    let indirect = |op: &usize| {
        program.ops[*op].instruction.flow_control() == FlowControl::IndirectBranch
            && function.exits.get(op) != Some(&Exit::Link)
    };
    let open = function.body.iter().copied().filter(|op| indirect(op) && is_open(op)).collect();
    (open, back.kept.into_inner())
}

/// The register of which another is a part, and the number of bits, if it is the lowest part.
fn part(register: Register) -> Option<(Register, u32)> {
    let high = matches!(register, Register::AH | Register::BH | Register::CH | Register::DH);
    (register.is_gpr() && !high).then(|| (register.full_register(), register.size() as u32 * 8))
}

/// The value before an instruction whose lowest bits should be below a limit, with what is known to be.
type Wanted = (usize, Register, u32, BTreeSet<(Register, u32)>);

/// A function's paths, backwards.
struct Back<'a> {
    program: &'a Program,
    function: &'a Function,
    before: HashMap<usize, Vec<usize>>,
    /// Registers that were followed over calls of functions of the file.
    kept: RefCell<BTreeSet<Register>>,
}

struct Paths<'a> {
    back: Back<'a>,
    frame: &'a Frame,
}

impl<'a> Back<'a> {
    fn new(program: &'a Program, function: &'a Function) -> Back<'a> {
        Back { program, function, before: function.before(), kept: RefCell::default() }
    }

    /// The table of distances to which a jump adds an entry of it, with the table's place.
    fn table<'t>(
        &self,
        jump: usize,
        load: usize,
        tables: &'t HashMap<String, Table>,
    ) -> Option<(Place, &'t Table)> {
        let target = self.program.ops[jump].instruction.op0_register();
        let is_sum = |op: &usize| {
            let i = &self.program.ops[*op].instruction;
            i.mnemonic() == Mnemonic::Add && i.op0_kind() == OpKind::Register && i.op0_register() == target
        };
        let sum = (load..jump).rev().find(is_sum)?;
        let (a, b) = (target, self.program.ops[sum].instruction.op1_register());
        let i = &self.program.ops[load].instruction;
        let entry = i.op0_register().full_register();
        let other = if a == entry { b } else { a };
        if other == entry || ![a, b].contains(&entry) {
            return None;
        }
        let begin = self.address_in(sum, other)?;
        // Both have the same table.
        let loaded = [i.memory_base(), i.memory_index()];
        let mut loaded = loaded.into_iter().filter(|register| register.is_gpr64());
        if !loaded.any(|register| self.address_in(load, register) == Some(begin)) {
            return None;
        }
        let at = |(name, table): &(&String, &Table)| {
            table.distances && self.program.places.get(*name) == Some(&begin)
        };
        tables.iter().find(at).map(|(_, table)| (begin, table))
    }

    /// The place whose address a register holds before an instruction, by one name on all paths.
    fn address_in(&self, op: usize, register: Register) -> Option<Place> {
        let mut info = InstructionInfoFactory::new();
        let (mut seen, mut todo, mut found) = (HashSet::new(), vec![op], None);
        while let Some(op) = todo.pop() {
            for &from in self.before(op)? {
                if !seen.insert(from) {
                    continue;
                }
                if let Some(call) = self.function.calls.get(&from) {
                    if !CALLEE_SAVED.contains(&register) {
                        return None;
                    }
                    if matches!(call.callee, Callee::Local(_)) {
                        self.kept.borrow_mut().insert(register);
                    }
                }
                let i = &self.program.ops[from].instruction;
                if !changes(&mut info, i, register) {
                    todo.push(from);
                    continue;
                }
                let lea = i.mnemonic() == Mnemonic::Lea && i.op0_register() == register;
                let place = self.named(from).filter(|_| lea)?;
                if found.is_some_and(|other| other != place) {
                    return None;
                }
                found = Some(place);
            }
        }
        found
    }

    /// The place that an operand relative to the instruction's own place names.
    fn named(&self, op: usize) -> Option<Place> {
        let op = &self.program.ops[op];
        let i = &op.instruction;
        if !i.is_ip_rel_memory_operand() {
            return None;
        }
        match op.references.as_slice() {
            [] => Some(Place { offset: i.ip_rel_memory_address(), ..op.place }),
            // The field is the end of the instruction.
            [one] if !one.absolute => {
                let place = one.place?;
                Some(Place { offset: place.offset.wrapping_add_signed(one.addend + 4), ..place })
            }
            _ => None,
        }
    }

    /// The instructions before another, if nothing else leads to it.
    fn before(&self, op: usize) -> Option<&Vec<usize>> {
        let enters = op == self.function.entry || self.function.doors.contains(&op);
        self.before.get(&op).filter(|_| !enters)
    }
}

impl Paths<'_> {
    /// Whether a jump goes to the entry of a table of addresses at its index.
    fn address(&self, jump: usize, name: &str, tables: &HashMap<String, Table>) -> Option<()> {
        let names =
            |op: &usize| tables::named(self.back.program, *op, tables).is_some_and(|(n, _)| n == name);
        let load = (0..=jump).rev().take(tables::BACK).find(names)?;
        let op = &self.back.program.ops[load];
        let [reference] = op.references.as_slice() else { return None };
        let place = reference.place?;
        let begin = Place { offset: place.offset.wrapping_add_signed(reference.addend), ..place };
        let exact = reference.absolute && self.back.program.places.get(name) == Some(&begin);
        let index = Some(op.instruction.memory_index()).filter(|index| exact && index.is_gpr64())?;
        self.is_below(load, index, tables[name].entries as u64).then_some(())
    }

    /// Whether a jump goes to the sum of a table of distances and the entry at its index.
    fn distance(&self, jump: usize, load: usize, tables: &HashMap<String, Table>) -> Option<()> {
        let i = &self.back.program.ops[load].instruction;
        let (base, index) = (i.memory_base(), i.memory_index());
        let plain = i.memory_index_scale() == 4
            && i.memory_displacement64() == 0
            && self.back.program.ops[load].references.is_empty()
            && base.is_gpr64()
            && index.is_gpr64();
        let (begin, table) = self.back.table(jump, load, tables).filter(|_| plain)?;
        let of_table = self.back.address_in(load, base) == Some(begin);
        (of_table && self.is_below(load, index, table.entries as u64)).then_some(())
    }

    /// Whether a register is below a limit before an instruction, as an unsigned number.
    fn is_below(&self, op: usize, register: Register, limit: u64) -> bool {
        let mut info = InstructionInfoFactory::new();
        let mut seen: HashSet<Wanted> = HashSet::new();
        let mut todo: Vec<Wanted> = vec![(op, register, 64, BTreeSet::new())];
        while let Some(at) = todo.pop() {
            if !seen.insert(at.clone()) {
                continue;
            }
            let (op, register, bits, known) = at;
            // No value allows this path.
            let Some(state) = self.frame.before.get(&op) else { continue };
            let of = |most: u32| known.iter().any(|&(r, bits)| r == register && bits >= most);
            if state.of(register).is_below(limit) || of(bits) {
                continue;
            }
            let Some(before) = self.back.before(op).filter(|_| seen.len() < MOST) else { return false };
            for &from in before {
                let i = &self.back.program.ops[from].instruction;
                let mut known = known.clone();
                known.extend(self.compared(from, op, limit, &mut info));
                let of = |most: u32| known.iter().any(|&(r, bits)| r == register && bits >= most);
                if self.back.function.calls.contains_key(&from) {
                    return false;
                }
                let (register, bits) = match changes(&mut info, i, register) {
                    false => (register, bits),
                    true if width(i, register).is_some_and(of) => continue,
                    true => match source(i, register, bits) {
                        Some(source) => source,
                        None => return false,
                    },
                };
                known.retain(|&(register, _)| !changes(&mut info, i, register));
                todo.push((from, register, bits, known));
            }
        }
        true
    }

    /// The bits of a register that are below a limit on the edge of a branch, by the comparison before it.
    fn compared(
        &self,
        branch: usize,
        next: usize,
        limit: u64,
        info: &mut InstructionInfoFactory,
    ) -> Option<(Register, u32)> {
        let i = &self.back.program.ops[branch].instruction;
        if !i.is_jcc_short_or_near() || self.back.program.ops[branch].target == Some(Target::Op(branch + 1)) {
            return None;
        }
        let code = if next == branch + 1 { negated(i.condition_code()) } else { i.condition_code() };
        let mut at = branch;
        let mut between: Vec<&Instruction> = Vec::new();
        for _ in 0..NEAR {
            let [before] = self.back.before(at)?.as_slice() else { return None };
            at = *before;
            let i = &self.back.program.ops[at].instruction;
            if i.mnemonic() != Mnemonic::Cmp {
                if i.rflags_modified() != RflagsBits::NONE || self.back.function.calls.contains_key(&at) {
                    return None;
                }
                between.push(i);
                continue;
            }
            let (register, bits) =
                Some(i.op0_register()).filter(|_| i.op0_kind() == OpKind::Register).and_then(part)?;
            use OpKind::{Immediate8, Immediate8to16, Immediate8to32, Immediate8to64};
            use OpKind::{Immediate16, Immediate32, Immediate32to64};
            let number = matches!(
                i.op1_kind(),
                Immediate8
                    | Immediate8to16
                    | Immediate8to32
                    | Immediate8to64
                    | Immediate16
                    | Immediate32
                    | Immediate32to64
            );
            // The linker may decide the number.
            let linked = !self.back.program.ops[at].references.is_empty();
            if !number || linked || between.iter().any(|i| changes(info, i, register)) {
                return None;
            }
            let with = i.immediate(1) & (u64::MAX >> (64 - bits));
            let most = match code {
                ConditionCode::e | ConditionCode::be => with,
                ConditionCode::b => with.checked_sub(1)?,
                _ => return None,
            };
            return (most < limit).then_some((register, bits));
        }
        None
    }
}

/// Whether an instruction may change any part of a register.
fn changes(info: &mut InstructionInfoFactory, i: &Instruction, register: Register) -> bool {
    let used = info.info(i).used_registers();
    used.iter().any(|used| used.register().full_register() == register && writes(used.access()))
}

/// The number of bits outside which an instruction clears a register that it writes.
fn width(i: &Instruction, register: Register) -> Option<u32> {
    use Mnemonic::{Add, And, Dec, Inc, Lea, Mov, Movsx, Movsxd, Movzx, Neg, Not, Or, Sub, Xor};
    let (to, bits) = Some(i.op0_register()).filter(|_| i.op0_kind() == OpKind::Register).and_then(part)?;
    match i.mnemonic() {
        _ if to != register || bits < 32 => None,
        Movzx if i.op1_kind() == OpKind::Memory => Some(i.memory_size().size() as u32 * 8),
        Movzx => Some(i.op1_register().size() as u32 * 8),
        Mov | Movsx | Movsxd | Lea | Add | Sub | And | Or | Xor | Inc | Dec | Neg | Not if bits == 32 => {
            Some(32)
        }
        _ => None,
    }
}

/// The register, and the bits of it, that a move gives to the lowest bits of another register.
fn source(i: &Instruction, register: Register, bits: u32) -> Option<(Register, u32)> {
    let registers = i.op0_kind() == OpKind::Register && i.op1_kind() == OpKind::Register;
    let ((to, size), (from, given)) = (part(i.op0_register())?, part(i.op1_register())?);
    // A shorter register keeps the upper bits.
    let whole = size >= 32 || bits <= size;
    let moves = matches!(i.mnemonic(), Mnemonic::Mov | Mnemonic::Movzx);
    (registers && moves && to == register && whole).then_some((from, bits.min(given)))
}

#[cfg(test)]
mod tests {
    use crate::{Analysis, Program};

    #[test]
    fn an_index_is_bounded_by_a_comparison_or_a_mask() {
        let rest = "\n.La:\tret\n.Lb:\tret\n.section .rodata\n.Lt: .long .La-.Lt, .Lb-.Lt\n.Lv: .long .Lb-.Lv\n.Lq: .quad .La, .Lb\n";
        let go = "leaq .Lt(%rip), %rdx\nmovslq (%rdx,%rax,4), %rcx\naddq %rdx, %rcx\njmp *%rcx";
        let absolute = "jmp *.Lq(,%rax,8)";
        for (before, jump, want) in [
            ("cmpq $1, %rax\nja .La", absolute, true),
            ("cmpl $1, %eax\nja .La\nmovl %eax, %eax", absolute, true),
            ("movl %edi, %eax\ncmpl $1, %edi\nja .La", go, true),
            ("movl %edi, %eax\ncmpl $1, %eax\nja .La", go, true),
            ("leal -3(%rdi), %eax\ncmpl $2, %eax\njae .La", go, true),
            ("cmpb $1, %dil\nja .La\nmovzbl %dil, %eax", go, true),
            ("movzbl (%rdi), %eax\ncmpb $1, %al\nja .La", go, true),
            ("cmpl $1, %edi\nmovq %rsi, %r8\nja .La\nmovl %edi, %eax", go, true),
            ("cmpq $1, %rax\njbe .Lc\nret\n.Lc:", absolute, true),
            ("andl $1, %eax", go, true),
            ("andl $1, %eax", absolute, true),
            // Too many.
            ("cmpq $2, %rax\nja .La", absolute, false),
            ("andl $7, %eax", go, false),
            ("andl $7, %eax", absolute, false),
            ("", absolute, false),
            // The upper bits.
            ("cmpl $1, %eax\nja .La", absolute, false),
            ("cmpb $1, %al\nja .La", absolute, false),
            ("cmpb $1, %dil\nja .La\nmovl %edi, %eax", go, false),
            ("cmpb $1, %al\nja .La\nmovzbl %ah, %eax", go, false),
            // The other way, as signed numbers, or changed since.
            ("cmpq $1, %rax\njbe .La", absolute, false),
            ("cmpq $1, %rax\njg .La", absolute, false),
            ("cmpq $1, %rax\nja .La\nincq %rax", absolute, false),
            ("cmpq $1, %rax\nmovq %rdi, %rax\nja .La", absolute, false),
            ("cmpq $1, %rax\naddq %rdi, %rsi\nja .La", absolute, false),
            ("cmpq $1, %rax\nja .La\ncall g", absolute, false),
            // Another path arrives behind the comparison.
            ("testq %rsi, %rsi\nje .Lc\ncmpq $1, %rax\nja .La\n.Lc:", absolute, false),
            // Another table, or a part of one.
            ("cmpq $1, %rax\nja .La", "jmp *.Lq+8(,%rax,8)", false),
            (
                "cmpq $1, %rax\nja .La",
                "leaq .Lt+4(%rip), %rdx\nmovslq (%rdx,%rax,4), %rcx\naddq %rdx, %rcx\njmp *%rcx",
                false,
            ),
            (
                "cmpq $1, %rax\nja .La\nleaq .Lt(%rip), %r8",
                "leaq .Lv(%rip), %rdx\nmovslq (%rdx,%rax,4), %rcx\naddq %r8, %rcx\njmp *%rcx",
                false,
            ),
        ] {
            let text = format!(".globl f\nf:\n{before}\n{jump}{rest}");
            let analysis = Analysis::new(Program::new("f.s", text).expect("a program"));
            assert_eq!(analysis.unbounded.is_empty(), want, "{before}\n{jump}");
        }
    }

    #[test]
    fn a_callee_must_keep_the_register_of_a_table() {
        let text = |callee: &str| {
            format!(
                ".globl f\nf:\npushq %rbx\nleaq .Lt(%rip), %rbx\ncall g\nandl $1, %eax\nmovslq (%rbx,%rax,4), %rcx\naddq %rbx, %rcx\n\
                 jmp *%rcx\n.La:\n.Lb:\tpopq %rbx\nret\n.type g,@function\ng:\t{callee}\nret\n\
                 .section .rodata\n.Lt: .long .La-.Lt, .Lb-.Lt\n"
            )
        };
        for (callee, want) in [("nop", true), ("movq %rdi, %rbx", false)] {
            let analysis = Analysis::new(Program::new("f.s", text(callee)).expect("a program"));
            assert_eq!(analysis.unbounded.is_empty(), want, "{callee}");
        }
    }
}
