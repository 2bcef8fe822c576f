//! The statements of a text that are instructions: those by name, and those that are written as bytes.
//!
//! A `.byte` in code can be data. It is an instruction where control arrives: after one that goes on to the next, at the target of a
//! jump or call, or where a function begins. Then its bytes must be one whole instruction, or prefixes of the next.
#![forbid(unsafe_code)]

use std::collections::{BTreeSet, HashMap};

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};

use crate::assembler::{Assembled, Place};
use crate::program::{Aim, Gap, Op, aim, is_idle};
use crate::text::{Kind, Text};

/// Prefixes that assemblers accept as statements.
const PREFIXES: [&str; 11] =
    ["rep", "repe", "repz", "repne", "repnz", "lock", "data16", "data32", "addr32", "rex64", "notrack"];

/// The most rounds in which jumps to bytes are looked for.
const ROUNDS: usize = 64;

/// Whether a statement is only a prefix of the next one.
pub(crate) fn is_prefix(said: &str) -> bool {
    said.split_ascii_whitespace().all(|word| PREFIXES.contains(&word.to_ascii_lowercase().as_str()))
}

/// The number of bytes that a directive writes, if these are constants.
fn bytes(said: &str) -> Option<usize> {
    let values = said.strip_prefix(".byte")?;
    let constant = |value: &str| {
        let value = value.trim();
        match value.strip_prefix("0x") {
            Some(digits) => !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit()),
            None => !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()),
        }
    };
    (values.starts_with(char::is_whitespace) && values.split(',').all(constant))
        .then(|| values.split(',').count())
}

/// Whether a statement may be an instruction: the assembler gives the place of each.
pub(crate) fn may_be_one(text: &Text, statement: usize) -> bool {
    match text.statements()[statement].kind {
        Kind::Instruction => true,
        Kind::Directive => bytes(text.of(statement)).is_some(),
        Kind::Label => false,
    }
}

/// The instructions of a text in its order.
pub(crate) fn decode(text: &Text, assembled: &Assembled) -> Vec<Op> {
    let functions = assembled.symbols.iter().filter(|symbol| symbol.function || symbol.global);
    let mut entered: BTreeSet<Place> = functions.map(|symbol| symbol.place).collect();
    let mut rounds = 0;
    loop {
        let (out, chosen) = with_bytes(text, assembled, &entered);
        let targets = out.iter().filter_map(|op| match aim(&op.instruction, op.place, assembled) {
            Some(Aim::Place(place)) if op.instruction.flow_control() != FlowControl::Next => Some(place),
            _ => None,
        });
        let before = entered.len();
        entered.extend(targets);
        rounds += 1;
        // Without `.byte`, or without a new place, another round finds the same. Bytes that are not found in time stay bytes.
        if !chosen || entered.len() == before || rounds == ROUNDS {
            return out;
        }
    }
}

fn at(assembled: &Assembled, place: Place) -> Option<Decoder<'_>> {
    let bytes = assembled.code.get(&place.section)?.get(place.offset as usize..)?;
    Some(Decoder::with_ip(64, bytes, place.offset, DecoderOptions::NONE))
}

/// The same with each `.byte` to which control falls or that lies at one of some places, and whether there is any `.byte`.
fn with_bytes(text: &Text, assembled: &Assembled, entered: &BTreeSet<Place>) -> (Vec<Op>, bool) {
    let (mut out, mut found): (Vec<Op>, bool) = (Vec::new(), false);
    // The last instruction of each section.
    let mut last: HashMap<usize, usize> = HashMap::new();
    for (statement, said) in text.statements().iter().enumerate() {
        // A statement that the assembler skipped has no bytes, and one in a section of data is data.
        let Some(&place) = assembled.places.get(&statement) else { continue };
        let Some(mut decoder) = at(assembled, place) else { continue };
        let before = last.get(&place.section).map(|&n| &out[n]);
        // The instruction of a prefix that is a statement of its own.
        let inside = before.is_some_and(|op| {
            let end = op.place.offset + op.instruction.len() as u64;
            let parted =
                text.statements()[op.statement].kind == Kind::Directive || is_prefix(text.of(op.statement));
            parted && (op.place.offset..end).contains(&place.offset)
        });
        if inside {
            continue;
        }
        // An instruction that the decoder does not know is kept, and its function is not analysed.
        let instruction = decoder.decode();
        if said.kind == Kind::Directive {
            found = true;
            let Some(size) = bytes(text.of(statement)) else { continue };
            let arrives = entered.contains(&place) || before.is_some_and(|op| falls_to(assembled, op, place));
            if !arrives || !is_one(text, assembled, statement, size, &instruction) {
                continue;
            }
        }
        last.insert(place.section, out.len());
        out.push(Op {
            statement,
            place,
            instruction,
            target: None,
            aim: None,
            references: Vec::new(),
            fields: Vec::new(),
            after: Gap::Nothing,
        });
    }
    (out, found)
}

/// Whether control falls from an instruction to a place, with nothing but filling between.
fn falls_to(assembled: &Assembled, op: &Op, to: Place) -> bool {
    use FlowControl::{Call, ConditionalBranch, IndirectCall, Next, XbeginXabortXend};
    let falls = matches!(
        op.instruction.flow_control(),
        Next | ConditionalBranch | Call | IndirectCall | XbeginXabortXend
    );
    let mut end = Place { offset: op.place.offset + op.instruction.len() as u64, ..op.place };
    while end.offset < to.offset {
        let filling = at(assembled, end).map(|mut decoder| decoder.decode());
        match filling.filter(|i| !i.is_invalid() && is_idle(i)) {
            Some(filling) => end.offset += filling.len() as u64,
            None => return false,
        }
    }
    falls && !op.instruction.is_invalid() && end == to
}

/// Whether the bytes of a directive are one instruction with an effect, or prefixes of the next statement, which is one.
fn is_one(
    text: &Text,
    assembled: &Assembled,
    statement: usize,
    size: usize,
    instruction: &Instruction,
) -> bool {
    if instruction.is_invalid() || is_idle(instruction) {
        return false;
    }
    if instruction.len() == size {
        return true;
    }
    let place = assembled.places[&statement];
    let behind = Place { offset: place.offset + size as u64, ..place };
    let next = (statement + 1 < text.statements().len()).then(|| may_be_one(text, statement + 1));
    let rest = at(assembled, behind).map(|mut decoder| decoder.decode());
    next == Some(true)
        && assembled.places.get(&(statement + 1)) == Some(&behind)
        && rest.is_some_and(|rest| !rest.is_invalid() && rest.len() + size == instruction.len())
}
