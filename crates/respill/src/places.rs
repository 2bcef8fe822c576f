//! Places in code whose address the text takes.
#![forbid(unsafe_code)]

use std::collections::{BTreeSet, HashMap, HashSet};

use iced_x86::{FlowControl, Mnemonic};

use crate::assembler::{Place, Reference};
use crate::program::{Op, Program, Target};

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

pub(crate) fn taken_but(program: &Program, closed: &BTreeSet<usize>) -> Taken {
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
            let absolute = op.references.iter().filter(|reference| reference.absolute);
            let places = absolute.filter_map(|reference| into_code(program, reference));
            out.extend(places.filter_map(|there| program.at.get(&there)));
            // An address, and not what lies there.
            let relative = op.instruction.is_ip_rel_memory_operand();
            if op.instruction.mnemonic() == Mnemonic::Lea || !relative {
                dark |= unlit(program.said(i)) || unlit_place(program, op);
            }
            if hidden(program.said(i)) && !op.instruction.is_ip_rel_memory_operand() {
                out.extend(0..program.ops.len());
            }
        }
    }
    let mut counts = true;
    for i in (0..program.text.statements().len()).filter(|i| !closed.contains(i)) {
        let Some((directive, rest)) = program.text.directive(i) else { continue };
        match directive.as_str() {
            ".section" | ".pushsection" => {
                let name = rest.split(',').next().unwrap_or_default().trim();
                counts = !program.idle.contains(name);
            }
            ".text" | ".data" | ".bss" | ".popsection" | ".previous" => counts = true,
            _ if counts && !says_nothing(&directive, rest) => {
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
                if rest.split(',').any(|value| counts(&value)) || hidden(rest) {
                    out.extend(0..program.ops.len());
                    dark = true;
                }
                out.extend(named(rest));
                dark |= unlit(rest);
            }
            _ => (),
        }
    }
    // The text does not show every place that data hold: names may be set, and numbers have names.
    let distances = distances(program);
    for (field, reference) in &program.pointers {
        let Some(there) = into_code(program, reference) else { continue };
        if reference.absolute {
            out.extend(program.at.get(&there));
            dark |= !program.at.contains_key(&there);
        } else if !distances.contains(&distance(field, there)) {
            out.extend(0..program.ops.len());
            dark = true;
        }
    }
    Taken { ops: out, dark }
}

/// The place that a reference outside instructions names, if it is in code.
pub(crate) fn into_code(program: &Program, reference: &Reference) -> Option<Place> {
    let place = reference.place.filter(|place| program.lead.contains_key(&place.section))?;
    Some(Place { offset: place.offset.wrapping_add_signed(reference.addend), ..place })
}

/// The distance of a place from the beginning of its table, with both sections: what it is from the field, since that counts, too.
pub(crate) fn distance(field: &Place, there: Place) -> (usize, usize, u64) {
    (there.section, field.section, there.offset.wrapping_sub(field.offset))
}

/// The distances between two labels that data hold, as `.long LABEL-TABLE`.
pub(crate) fn distances(program: &Program) -> HashSet<(usize, usize, u64)> {
    let directives = (0..program.text.statements().len()).filter_map(|i| program.text.directive(i));
    let directives = directives.filter(|(directive, rest)| !says_nothing(directive, rest));
    let values = directives.flat_map(|(_, rest)| rest.split(',').filter_map(|value| value.split_once('-')));
    let place = |name: &str| program.places.get(name.trim()).copied();
    values.filter_map(|(one, two)| Some(distance(&place(two)?, place(one)?))).collect()
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

/// Whether a directive puts no address or distance anywhere. A name for a place is found among the symbols.
fn says_nothing(directive: &str, rest: &str) -> bool {
    const NOTHING: [&str; 45] = [
        ".addrsig",
        ".addrsig_sym",
        ".align",
        ".arch",
        ".ascii",
        ".asciz",
        ".att_syntax",
        ".balign",
        ".base64",
        ".bss",
        ".cg_profile",
        ".code64",
        ".comm",
        ".data",
        ".file",
        ".global",
        ".globl",
        ".hidden",
        ".ident",
        ".intel_syntax",
        ".internal",
        ".lcomm",
        ".loc",
        ".local",
        ".p2align",
        ".popsection",
        ".previous",
        ".protected",
        ".pushsection",
        ".section",
        ".size",
        ".stabd",
        ".stabn",
        ".stabs",
        ".string",
        ".string16",
        ".string32",
        ".string64",
        ".string8",
        ".subsection",
        ".symver",
        ".text",
        ".type",
        ".weak",
        ".weakref",
    ];
    let one = |value: &str| words(value.trim()).next() == Some(value.trim());
    match directive {
        ".set" | ".equ" | ".equiv" | ".eqv" => rest.split_once(',').is_some_and(|(_, value)| one(value)),
        _ if !directive.starts_with('.') => one(rest.trim_start_matches('=')),
        _ => {
            NOTHING.contains(&directive)
            // The unwinder calls a personality.
            || directive.starts_with(".cfi_") && directive != ".cfi_personality"
        }
    }
}

/// Whether a statement may name a place otherwise than by a plain label.
fn hidden(said: &str) -> bool {
    said.contains('"') || numbered(said)
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
pub(crate) fn words(said: &str) -> impl Iterator<Item = &str> {
    let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$') || !c.is_ascii();
    said.split(move |c| !part(c)).flat_map(|word| {
        let bare = word.trim_start_matches('$');
        core::iter::once(word).chain((bare.len() < word.len()).then_some(bare))
    })
}
