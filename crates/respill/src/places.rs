//! Places in code whose address the text takes.
#![forbid(unsafe_code)]

use std::collections::{BTreeSet, HashMap};

use iced_x86::{FlowControl, Mnemonic, OpKind, Register};

use crate::assembler::Place;
use crate::flow::Function;
use crate::program::{Op, Program, Target};
use crate::tables::{self, Table};
use crate::text::Kind;

/// Places whose address the text takes.
pub(crate) struct Taken {
    /// The instructions at such places.
    pub(crate) ops: BTreeSet<usize>,
    /// Whether one is a place in code at which no instruction is known.
    pub(crate) dark: bool,
}

/// The places whose address the text takes, by names: into a register, or into data. Sections for debuggers and unwinders do
/// not count.
pub(crate) fn taken(program: &Program) -> Taken {
    taken_but(program, &BTreeSet::new())
}

/// The statements of tables whose entries only lead to jumps: each function that names one loads no other word of four bytes by such an
/// index.
pub(crate) fn closed(
    program: &Program,
    tables: &HashMap<String, Table>,
    functions: &[Function],
) -> BTreeSet<usize> {
    let mut names: HashMap<&str, Vec<usize>> = HashMap::new();
    for op in 0..program.ops.len() {
        if let Some((name, _)) = tables::named(program, op, tables) {
            names.entry(name).or_default().push(op);
        }
    }
    let loads = |op: &usize| {
        let i = &program.ops[*op].instruction;
        let indexed = i.memory_index() != Register::None && i.memory_size().size() == 4;
        indexed || i.mnemonic() == Mnemonic::Movsxd && i.op1_kind() == OpKind::Memory
    };
    let closes = |function: &Function| {
        !function.entries.is_empty()
            && function.body.iter().filter(|op| loads(op)).all(|op| function.entries.contains(op))
    };
    let mut out = BTreeSet::new();
    for (name, table) in tables.iter().filter(|(_, table)| table.distances) {
        let users = names.get(name.as_str()).map_or(&[][..], Vec::as_slice);
        let owners =
            |op: &usize| functions.iter().filter(|f| f.body.binary_search(op).is_ok()).collect::<Vec<_>>();
        let all = |op: &usize| {
            let owners = owners(op);
            !owners.is_empty() && owners.into_iter().all(closes)
        };
        if users.iter().all(all) {
            out.extend(&table.statements);
        }
    }
    out
}

pub(crate) fn taken_but(program: &Program, closed: &BTreeSet<usize>) -> Taken {
    const DATA: [&str; 10] =
        [".quad", ".8byte", ".xword", ".long", ".4byte", ".int", ".octa", ".dc.a", ".dc.l", ".reloc"];
    let mut out = BTreeSet::new();
    let by_name = by_name(program);
    let named = |said: &str| named_in(&by_name, said);
    let unlit = |said: &str| words(said).any(|word| program.dark.contains(word));
    let mut dark = false;
    for (i, op) in program.ops.iter().enumerate() {
        if op.instruction.flow_control() == FlowControl::Next || op.instruction.is_invalid() {
            out.extend(op.target.iter().filter_map(|target| match target {
                Target::Op(to) => Some(*to),
                Target::External(_) => None,
            }));
            out.extend(named(program.said(i)));
            // An address, and not what lies there.
            let relative = op.instruction.is_ip_rel_memory_operand();
            if op.instruction.mnemonic() == Mnemonic::Lea || !relative {
                dark |= unlit(program.said(i)) || unlit_place(program, op);
            }
            if numbered(program.said(i)) && !op.instruction.is_ip_rel_memory_operand() {
                out.extend(0..program.ops.len());
            }
        }
    }
    let mut counts = true;
    for (i, statement) in program.text.statements().iter().enumerate() {
        if statement.kind != Kind::Directive || closed.contains(&i) {
            continue;
        }
        let said = program.text.of(i);
        let (directive, rest) = said.split_once(char::is_whitespace).unwrap_or((said, ""));
        match directive {
            ".section" | ".pushsection" => {
                counts =
                    ![".debug", ".eh_frame", ".stab"].iter().any(|name| rest.trim_start().starts_with(name));
            }
            ".text" | ".data" | ".bss" | ".popsection" | ".previous" => counts = true,
            _ if counts && DATA.contains(&directive) => {
                // A place that counts from the section's beginning may be any.
                if rest.contains(".text") {
                    out.extend(program.names.keys());
                    dark = true;
                }
                // What counts from a label may be any place.
                let counts = |value: &&str| {
                    let number = |rest: &str| rest.trim_start().starts_with(|c: char| c.is_ascii_digit());
                    value.split(['+', '-']).skip(1).any(number) && !named(value).is_empty()
                };
                if rest.split(',').any(|value| counts(&value)) || numbered(rest) {
                    out.extend(0..program.ops.len());
                    dark = true;
                }
                out.extend(named(rest));
                dark |= unlit(rest);
            }
            _ => (),
        }
    }
    Taken { ops: out, dark }
}

/// Whether an operand is the address of a place in code at which no instruction is known.
fn unlit_place(program: &Program, op: &Op) -> bool {
    let code = |place: &Place| program.lead.contains_key(&place.section);
    if op.instruction.is_ip_rel_memory_operand() {
        let elsewhere =
            op.references.iter().any(|reference| reference.place.is_none_or(|place| !code(&place)));
        return op.target.is_none() && !elsewhere;
    }
    op.references.iter().any(|reference| {
        reference.place.is_some_and(|place| {
            let there = Place { offset: place.offset.wrapping_add_signed(reference.addend), ..place };
            code(&place) && !program.at.contains_key(&there)
        })
    })
}

pub(crate) fn by_name(program: &Program) -> HashMap<&str, usize> {
    let all = program.names.iter();
    all.flat_map(|(&op, names)| names.iter().map(move |name| (name.name.as_str(), op))).collect()
}

/// Whether a statement refers to a label that is a number, as in `1b`.
fn numbered(said: &str) -> bool {
    said.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '.' | '%')).any(|word| {
        let number = word.trim_end_matches(['b', 'f']);
        number.len() + 1 == word.len() && !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
    })
}

/// The instructions at labels that a statement names.
pub(crate) fn named(program: &Program, said: &str) -> Vec<usize> {
    named_in(&by_name(program), said)
}

fn named_in(by_name: &HashMap<&str, usize>, said: &str) -> Vec<usize> {
    words(said).filter_map(|word| by_name.get(word)).copied().collect()
}

/// The names in a statement, each also without a `$` in front.
fn words(said: &str) -> impl Iterator<Item = &str> {
    let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$') || !c.is_ascii();
    said.split(move |c| !part(c)).flat_map(|word| {
        let bare = word.trim_start_matches('$');
        core::iter::once(word).chain((bare.len() < word.len()).then_some(bare))
    })
}
