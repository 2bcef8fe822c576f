//! Places in code whose address the text takes.
#![forbid(unsafe_code)]

use std::collections::{BTreeSet, HashMap, HashSet};

use iced_x86::{FlowControl, Mnemonic};

use crate::assembler::{Place, Reference};
use crate::program::{Gap, Op, Program, Spot, Target, is_near_branch};
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

pub(crate) fn taken_but(program: &Program, closed: &BTreeSet<usize>) -> Taken {
    let mut out = BTreeSet::new();
    let by_name = by_name(program);
    let named = |said: &str| named_in(&by_name, said);
    let unlit =
        |said: &str| words(said).any(|word| program.dark.get(word).is_some_and(|dark| dark.beyond.is_none()));
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

/// Where code is entered otherwise than at the beginning of an instruction that is known to be entered.
pub(crate) struct Hidden {
    /// Instructions that may be entered inside, or to which bytes lead that may run.
    pub(crate) ops: BTreeSet<usize>,
    /// The line of a statement that makes an address by counting bytes of code: it may lead into any instruction.
    pub(crate) anywhere: Option<usize>,
}

/// Where symbols, branches and addresses lead into instructions.
pub(crate) fn hidden_entries(program: &Program) -> Hidden {
    let mut ops = BTreeSet::new();
    let absolute = |reference: &&Reference| reference.absolute;
    let own = program.ops.iter().flat_map(|op| &op.references);
    let addresses = own.chain(program.pointers.values()).filter(absolute);
    let addresses = addresses.filter_map(|reference| Some((into_code(program, reference)?, false)));
    let aims = program.ops.iter().filter_map(|op| Some((op.aim?, is_near_branch(&op.instruction))));
    let symbols = program.dark.values().map(|dark| (dark.place, dark.called));
    for (place, runs) in addresses.chain(aims).chain(symbols) {
        let gap = match program.spot(place) {
            Spot::Op(_) | Spot::Data(_) => continue,
            Spot::Inside(op, _) => {
                ops.insert(op);
                continue;
            }
            Spot::Behind(op, _) => &program.ops[op].after,
            Spot::Lead(place) => &program.lead[&place.section],
        };
        // What runs there goes on to the next instruction, unless it is data.
        if runs || *gap == Gap::Filling {
            let end = Place { offset: u64::MAX, ..place };
            let next = program.starts.range(place..=end).next().map(|(_, &op)| op);
            // Other files can call a global function with any state.
            let open =
                |op: &usize| program.names.get(op).is_some_and(|all| all.iter().any(|name| name.global));
            ops.extend(next.filter(|op| !open(op)));
        }
    }
    // The object has no symbol for a label that is a number. One behind a prefix leads into the instruction.
    let (mut next, mut prefix, mut labelled) = (0, None, false);
    for (i, statement) in program.text.statements().iter().enumerate() {
        if statement.kind == Kind::Label {
            labelled |= program.text.of(i).starts_with(|c: char| c.is_ascii_digit());
            continue;
        }
        let begins = program.ops.get(next).is_some_and(|op| op.statement == i);
        if labelled && !begins {
            ops.extend(prefix);
        }
        (prefix, labelled) = (Some(next).filter(|&op| begins && !program.is_plain(op)), false);
        next += usize::from(begins);
    }
    Hidden { ops, anywhere: anywhere(program) }
}

/// The line of a statement that makes an address by counting bytes of code.
fn anywhere(program: &Program) -> Option<usize> {
    let by_name = by_name(program);
    let code = |said: &str| {
        let named = |word: &str| word == "." || by_name.contains_key(word) || program.dark.contains_key(word);
        words(said).filter(|word| named(word)).count() + numbers(said).count()
    };
    let line = |statement: usize| Some(program.text.statements()[statement].line);
    for (i, op) in program.ops.iter().enumerate() {
        // Where a branch goes is known, and so is a place that one label names.
        let said = program.said(i);
        let counts = |value: &str| {
            let value = value.trim().trim_start_matches(['$', '*']);
            let end = value.find(['(', '[']).unwrap_or(value.len());
            code(value) > 1 && !is_simple(&value[..end])
        };
        let operands = said.trim_start().split_once(char::is_whitespace).map_or("", |(_, operands)| operands);
        if !is_near_branch(&op.instruction) && said.contains(['+', '-']) && operands.split(',').any(counts) {
            return line(op.statement);
        }
    }
    let (mut loaded, mut moved) = (true, None);
    for i in 0..program.text.statements().len() {
        let Some((directive, rest)) = program.text.directive(i) else { continue };
        match directive.as_str() {
            ".section" | ".pushsection" => {
                let name = rest.split(',').next().unwrap_or_default().trim();
                loaded = !program.idle.contains(name);
            }
            ".text" | ".data" | ".bss" | ".popsection" | ".previous" => loaded = true,
            ".reloc" => moved = moved.or(line(i)),
            _ if loaded && !says_nothing(&directive, rest) => {
                let (rest, assigned) = match directive.as_str() {
                    ".set" | ".equ" | ".equiv" | ".eqv" => {
                        (rest.split_once(',').map_or("", |(_, rest)| rest), true)
                    }
                    _ if !directive.starts_with('.') || rest.starts_with('=') => {
                        (rest.trim_start_matches('='), true)
                    }
                    _ => (rest, false),
                };
                let counts = |value: &str| code(value) > 0 && !is_simple(value);
                let counted = if assigned { counts(rest) } else { rest.split(',').any(counts) };
                if counted {
                    return line(i);
                }
            }
            _ => (),
        }
    }
    // A distance that no label shows, to a place that a directive chose.
    let distances = moved.map(|_| distances(program))?;
    let odd = program.pointers.iter().any(|(field, reference)| {
        let there = into_code(program, reference).filter(|_| !reference.absolute);
        there.is_some_and(|there| !distances.contains(&distance(field, there)))
    });
    moved.filter(|_| odd)
}

/// Whether a value is a place with a number added, or the distance of two places: then the object shows where it leads.
fn is_simple(value: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$' | '@') || !c.is_ascii();
    let value = value.trim();
    let bare = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
    let (mut names, mut numbers) = (Vec::new(), 0);
    for (at, term) in bare.split(['+', '-']).enumerate() {
        let term = term.trim();
        if term.is_empty() || !term.chars().all(part) {
            return false;
        }
        if term.starts_with(|c: char| c.is_ascii_digit()) && !numbered(term) {
            numbers += 1;
        } else {
            names.push(at);
        }
    }
    let sign = |term: usize| bare.chars().filter(|c| matches!(c, '+' | '-')).nth(term - 1);
    match names[..] {
        [] => true,
        [only] => only == 0 || sign(only) == Some('+'),
        [0, 1] => numbers == 0 && sign(1) == Some('-'),
        _ => false,
    }
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
    numbers(said).next().is_some()
}

/// The labels in a statement that are numbers.
fn numbers(said: &str) -> impl Iterator<Item = &str> {
    said.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '.' | '%')).filter(|word| {
        let number = word.trim_end_matches(['b', 'f']);
        number.len() + 1 == word.len() && !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
    })
}

/// The instructions at labels that a statement names.
pub(crate) fn named_in(by_name: &HashMap<&str, usize>, said: &str) -> Vec<usize> {
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
