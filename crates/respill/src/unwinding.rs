//! What the text tells the unwinder: where an exception may continue, and expressions that may read the frame.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::places::by_name;
use crate::program::Program;
use crate::text::Kind;

/// For the first instruction after each directive that names a table of the unwinder: the places at which a handler or cleanup begins,
/// or nothing if the table is not understood.
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
    for (i, statement) in program.text.statements().iter().enumerate() {
        if statement.kind != Kind::Directive {
            continue;
        }
        if let Some(name) = said(i).strip_prefix(".cfi_personality") {
            personality = name;
        }
        // 0xff means none.
        let Some(what) =
            said(i).strip_prefix(".cfi_lsda").filter(|what| !what.trim_start().starts_with("0xff"))
        else {
            continue;
        };
        let known = ["__gxx_personality_v0", "__gcc_personality_v0", "rust_eh_personality"];
        let table = what.rsplit(',').next().and_then(|name| labels.get(name.trim()));
        let pads = table
            .filter(|_| known.iter().any(|name| personality.contains(name)))
            .and_then(|&table| call_sites(program, table, &labels, &places));
        let op = program.ops.partition_point(|op| op.statement < i);
        out.insert(op, pads);
    }
    out
}

/// The instructions for which a `.cfi_escape` holds that may have an expression: up to the end of its procedure. Only
/// `DW_CFA_GNU_args_size` with a size of one byte has none for sure.
pub(crate) fn escapes(program: &Program) -> BTreeSet<usize> {
    let size_of_arguments = |values: &str| {
        let mut values = values.split(',').map(str::trim);
        let [code, size, end] = [values.next(), values.next(), values.next()];
        let size = size.and_then(|size| u8::from_str_radix(size.strip_prefix("0x")?, 16).ok());
        code == Some("0x2e") && size.is_some_and(|size| size < 0x80) && end.is_none()
    };
    let mut out = BTreeSet::new();
    let mut from = None;
    for (i, statement) in program.text.statements().iter().enumerate() {
        let said = if statement.kind == Kind::Directive { program.text.of(i) } else { "" };
        let op = || program.ops.partition_point(|op| op.statement < i);
        if said.strip_prefix(".cfi_escape").is_some_and(|values| !size_of_arguments(values)) {
            from.get_or_insert_with(op);
        } else if said.starts_with(".cfi_endproc") {
            out.extend(from.take().map_or(0..0, |from| from..op()));
        }
    }
    out.extend(from.map_or(0..0, |from| from..program.ops.len()));
    out
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
