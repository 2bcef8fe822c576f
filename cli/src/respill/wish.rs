//! Slots by name, and what the options ask for as a wish.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;

use lanework_respill::analysis::{Analysis, Unit};
use lanework_respill::frame::Address;
use lanework_respill::plan::Wish;
use lanework_study::Failure;

use super::args::WishArgs;
use super::{Source, unit};

/// The name of an address in a frame: bytes from the stack pointer at the entry, or `@LINE+BYTES` from what the instruction of that
/// line aligned it to.
pub(super) fn place(analysis: &Analysis, address: Address) -> String {
    match address.base.checked_sub(1) {
        None => address.offset.to_string(),
        Some(op) => format!("@{}{:+}", analysis.program.line(op), address.offset),
    }
}

/// The name of a slot, with its function.
pub(super) fn slot_name(analysis: &Analysis, unit: &Unit, slot: usize) -> String {
    format!("{}:{}", unit.function.name(), place(analysis, unit.slots[slot].address))
}

/// What the options ask for. Slots that something else may touch stay, save where `naive` says otherwise; nothing outside the
/// functions that are meant moves.
pub(super) fn wish(source: &Source, args: &WishArgs) -> Result<Wish, Failure> {
    let analysis = &source.analysis;
    let all = || {
        analysis
            .units
            .iter()
            .enumerate()
            .flat_map(|(n, unit)| unit.slots.iter().enumerate().map(move |(s, slot)| ((n, s), slot)))
    };
    let mut only: BTreeSet<(usize, usize)> = BTreeSet::new();
    for name in &args.slots {
        let function = match (&name.function, source.asked.as_slice()) {
            (Some(function), _) => unit(analysis, function)?,
            (None, &[one]) => one,
            (None, _) => {
                return Err(Failure::input(format!(
                    "--slots {}: of which function? FUNCTION:{0}, or one --function, says it",
                    name.place
                )));
            }
        };
        let unit = &analysis.units[function];
        let found = unit.slots.iter().position(|slot| place(analysis, slot.address) == name.place);
        let slot = found.ok_or_else(|| {
            Failure::input(format!(
                "{}: '{}' has no slot {}; `lanework respill analyse --all` shows those it has",
                analysis.program.file,
                unit.function.name(),
                name.place
            ))
        })?;
        only.insert((function, slot));
    }
    let mut stay: BTreeSet<(usize, usize)> = BTreeSet::new();
    if !args.naive {
        stay.extend(all().filter(|(_, slot)| !slot.suspects.is_empty()).map(|(key, _)| key));
    }
    if !source.asked.is_empty() {
        stay.extend(all().map(|(key, _)| key).filter(|(n, _)| !source.units.contains(n)));
    }
    Ok(Wish {
        banks: args.home.0.clone(),
        policy: args.policy.policy(),
        counts: None,
        stay,
        only,
        operands: !args.moves_only,
    })
}
