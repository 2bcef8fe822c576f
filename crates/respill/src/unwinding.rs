//! What the text tells the unwinder: where an exception may continue, and expressions that may read the frame.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet, HashMap};

use iced_x86::{FlowControl, Register};

use crate::flow::Function;
use crate::frame::{Address, Frame, GENERAL};
use crate::places::by_name;
use crate::program::Program;
use crate::slots::Slot;
use crate::text::Kind;

/// For the first instruction and each call of a procedure with a table of the unwinder: the places at which a handler or cleanup begins,
/// or nothing if the table is not understood. Frames that the text describes in bytes may name a table for any function.
pub(crate) fn landing(program: &Program) -> BTreeMap<usize, Option<BTreeSet<usize>>> {
    let said = |i: usize| program.text.of(i);
    let labels: HashMap<&str, usize> = program
        .text
        .statements()
        .iter()
        .enumerate()
        .filter(|(_, statement)| statement.kind == Kind::Label)
        .map(|(i, _)| (said(i).trim_end_matches(':'), i))
        .collect();
    let places = by_name(program);
    let (mut out, mut personality) = (BTreeMap::new(), "");
    // The first instruction of the procedure, and the places of its tables.
    let mut open: Option<(usize, Option<BTreeSet<usize>>)> = None;
    let mut named = false;
    for i in 0..program.text.statements().len() {
        let Some((directive, what)) = program.text.directive(i) else { continue };
        let here = program.ops.partition_point(|op| op.statement < i);
        if directive == ".cfi_startproc" {
            (open, named) = (Some((here, Some(BTreeSet::new()))), false);
        }
        if directive == ".cfi_endproc"
            && let Some((begin, pads)) = open.take()
            && named
        {
            let calls = |op: &usize| {
                let flow = program.ops[*op].instruction.flow_control();
                *op == begin || matches!(flow, FlowControl::Call | FlowControl::IndirectCall)
            };
            out.extend((begin..here).filter(calls).map(|op| (op, pads.clone())));
        }
        if directive == ".cfi_personality" {
            personality = what;
        }
        if describes_frames(&directive, what) {
            return (0..program.ops.len()).map(|op| (op, None)).collect();
        }
        // 0xff means none.
        let none = directive == ".cfi_lsda" && what == "0xff";
        if !directive.starts_with(".cfi") || !directive.contains("lsda") || none {
            continue;
        }
        let known = ["__gxx_personality_v0", "__gcc_personality_v0", "rust_eh_personality"];
        let table = what.rsplit(',').next().and_then(|name| labels.get(name.trim()));
        let pads = table
            .filter(|_| known.iter().any(|name| personality.contains(name)))
            .and_then(|&table| call_sites(program, table, &labels, &places));
        named = true;
        match (&mut open, pads) {
            (Some((_, Some(all))), Some(pads)) => all.extend(pads),
            (Some((_, all)), _) => *all = None,
            // Outside a procedure.
            (None, _) => return (0..program.ops.len()).map(|op| (op, None)).collect(),
        }
    }
    if open.is_some() && named {
        return (0..program.ops.len()).map(|op| (op, None)).collect();
    }
    out
}

/// Whether a directive begins a section of frames that are described without `.cfi_startproc`.
fn describes_frames(directive: &str, what: &str) -> bool {
    matches!(directive, ".section" | ".pushsection") && (what.contains(".eh_frame") || what.contains('\\'))
}

/// What the directives say of frames.
#[derive(Default)]
pub(crate) struct Frames {
    /// Instructions for which the unwinder may read the frame in a way that is not understood: up to the end of their procedure.
    pub(crate) escapes: BTreeSet<usize>,
    /// The first instruction of each procedure, the one behind it, and the cells in which the unwinder finds registers of the caller,
    /// as bytes above the return address.
    procedures: BTreeMap<usize, (usize, BTreeSet<i64>)>,
}

impl Frames {
    /// Whether the unwinder may find a register of the caller in this slot.
    pub(crate) fn keep(&self, function: &Function, frame: &Frame, slot: &Slot) -> bool {
        let end = slot.address.offset + slot.size as i64;
        let meets = |&by: &i64| frame.meets(slot.address, end, Address { base: 0, offset: by }, by + 8);
        let of = |op: &usize| {
            let (_, (end, cells)) = self.procedures.range(..=*op).next_back()?;
            (op < end).then_some(cells)
        };
        function.body.iter().filter_map(of).any(|cells| cells.iter().any(meets))
    }
}

/// What the directives say of frames. The address from which they count lies behind the return address.
pub(crate) fn frames(program: &Program) -> Frames {
    let mut out = Frames::default();
    // The first instruction, the distance of the frame's register from that address, those remembered, and the cells.
    let mut open: Option<(usize, i64, Vec<i64>, BTreeSet<i64>)> = None;
    let mut from = None;
    // Whether the procedure has handlers, and its first arguments on the stack, which the unwinder takes off before a handler.
    let (mut handlers, mut pushed) = (false, None);
    for i in 0..program.text.statements().len() {
        let Some((directive, what)) = program.text.directive(i) else { continue };
        let Some(said) = directive.strip_prefix(".cfi_") else { continue };
        let op = program.ops.partition_point(|op| op.statement < i);
        let values: Vec<&str> = what.split(',').map(str::trim).collect();
        let known = match (said, &mut open) {
            ("startproc", None) => {
                open = Some((op, 8, Vec::new(), BTreeSet::new()));
                (handlers, pushed) = (false, None);
                what.is_empty()
            }
            ("endproc", Some(_)) => {
                let from = from.take().into_iter().chain(pushed.filter(|_| handlers)).min();
                out.escapes.extend(from.map_or(0..0, |from| from..op));
                let (begin, _, _, cells) = open.take().unwrap_or_default();
                out.procedures.insert(begin, (op, cells));
                true
            }
            (_, Some((_, by, remembered, cells))) => {
                handlers |= said == "lsda";
                let none = |size: &&str| matches!(*size, "0x0" | "0x00");
                if said == "escape" && values[0] == "0x2e" && !values.get(1).is_some_and(none) {
                    pushed.get_or_insert(op);
                }
                directive_of(said, &values, by, remembered, cells).is_some()
            }
            ("sections", None) => true,
            // Procedures that are not one behind the other.
            _ => {
                from = Some(0);
                false
            }
        };
        if !known {
            from.get_or_insert(op);
        }
    }
    out.escapes.extend(from.map_or(0..0, |from| from..program.ops.len()));
    out
}

/// Follows a directive inside a procedure, if it is understood.
fn directive_of(
    said: &str,
    values: &[&str],
    by: &mut i64,
    remembered: &mut Vec<i64>,
    cells: &mut BTreeSet<i64>,
) -> Option<()> {
    // The stack pointer of the caller has no cell.
    let general = |name: &&str| {
        let name = name.trim_start_matches('%').to_ascii_uppercase();
        let known = |register: &Register| *register != Register::RSP && format!("{register:?}") == name;
        GENERAL.iter().any(known) || matches!(name.parse(), Ok(0..=6 | 8..=16))
    };
    match (said, values) {
        ("def_cfa", [_, value]) | ("def_cfa_offset", [value]) => *by = number(value)?,
        ("adjust_cfa_offset", [value]) => *by = by.checked_add(number(value)?)?,
        ("remember_state", _) => remembered.push(*by),
        ("restore_state", _) => *by = remembered.pop()?,
        ("offset", [register, value]) if general(register) => {
            cells.insert(number(value)?.checked_add(8)?);
        }
        ("rel_offset", [register, value]) if general(register) => {
            cells.insert(number(value)?.checked_sub(*by)?.checked_add(8)?);
        }
        // `DW_CFA_GNU_args_size` with a size of one byte.
        ("escape", ["0x2e", size]) => {
            let size = u8::from_str_radix(size.strip_prefix("0x")?, 16).ok()?;
            (size < 0x80).then_some(())?;
        }
        (
            "def_cfa_register" | "restore" | "undefined" | "same_value" | "register" | "personality" | "lsda"
            | "signal_frame" | "sections",
            _,
        ) => (),
        _ => return None,
    }
    Some(())
}

/// A directive for the unwinder with an operand that is not made of constants and registers: the line and the text.
pub(crate) fn not_constant(program: &Program) -> Option<(usize, &str)> {
    let constant = |word: &str| {
        let number = match word.strip_prefix("0x") {
            Some(digits) => digits.bytes().all(|b| b.is_ascii_hexdigit()),
            None => word.bytes().all(|b| b.is_ascii_digit()),
        };
        let name = word.trim_start_matches('%').to_ascii_uppercase();
        let numbered = |bank: &str| name.strip_prefix(bank).is_some_and(|n| n.parse::<u8>().is_ok());
        number || name == "RIP" || numbered("XMM") || GENERAL.iter().any(|known| format!("{known:?}") == name)
    };
    (0..program.text.statements().len()).find_map(|i| {
        let (directive, what) = program.text.directive(i)?;
        let said = directive.strip_prefix(".cfi_")?;
        let what = match said {
            "personality" | "lsda" => what.split_once(',').map_or(what, |(encoding, _)| encoding),
            // These name places and sections.
            "personality_id" | "sections" | "label" | "startproc" => return None,
            _ => what,
        };
        let part =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$' | '%' | '"') || !c.is_ascii();
        let mut words = what.split(|c| !part(c)).filter(|word| !word.is_empty());
        let line = program.text.statements()[i].line;
        words.any(|word| !constant(word)).then(|| (line, program.text.of(i)))
    })
}

/// A number that is not reckoned out.
fn number(said: &str) -> Option<i64> {
    let (sign, digits) = said.strip_prefix('-').map_or((1, said), |digits| (-1, digits));
    let value = match digits.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16),
        None if digits.len() > 1 && digits.starts_with('0') => return None,
        None => digits.parse(),
    };
    value.ok().filter(|value| (0..1 << 31).contains(value)).map(|value| sign * value)
}

/// The third value of each entry of a table of call sites: `begin, length, place or 0, action`.
fn call_sites(
    program: &Program,
    table: usize,
    labels: &HashMap<&str, usize>,
    places: &HashMap<&str, usize>,
) -> Option<BTreeSet<usize>> {
    let value = |i: usize| {
        let (directive, value) = program.text.of(i).split_once(char::is_whitespace)?;
        matches!(directive, ".byte" | ".uleb128").then(|| value.trim())
    };
    // Places count from the function's beginning, and entries are numbers of any length.
    let is = |i: usize, names: [&str; 2]| value(i).is_some_and(|value| names.contains(&value));
    let mut at = table + 1;
    (is(at, ["255", "0xff"])).then_some(())?;
    let end = loop {
        let span = value(at)?;
        let names =
            span.split_once('-').and_then(|(end, begin)| Some((labels.get(end)?, labels.get(begin)?)));
        if let Some((&end, &begin)) = names
            && begin == at + 1
            && is(at - 1, ["1", "0x1"])
        {
            break end;
        }
        at += 1;
        // The distance to the table of types comes first.
        while program.text.statements().get(at)?.kind == Kind::Label {
            at += 1;
        }
    };
    let entries: Vec<&str> = (at + 2..end).map(value).collect::<Option<_>>()?;
    let mut out = BTreeSet::new();
    for entry in entries.chunks(4) {
        let &[_, _, place, _] = entry else { return None };
        if place != "0" {
            out.insert(*places.get(place.split_once('-')?.0)?);
        }
    }
    Some(out)
}
