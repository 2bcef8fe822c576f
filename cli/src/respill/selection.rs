//! The slots that options select.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;

use lanework_respill::names::place;
use lanework_respill::plan::Wish;
use lanework_spill::unit;
use lanework_study::Failure;

use super::Source;
use super::args::WishArgs;

/// What the options ask for. Slots that something else may touch stay, unless `naive` is set; nothing outside the selected
/// functions moves.
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
                return Err(Failure::input(format!("--slots {}: no function named", name.place))
                    .help(format!("write FUNCTION:{}, or name one --function", name.place)));
            }
        };
        let unit = &analysis.units[function];
        let found = unit.slots.iter().position(|slot| place(analysis, slot.address) == name.place);
        let slot = found.ok_or_else(|| {
            Failure::input(format!(
                "{}: '{}' has no slot {}",
                analysis.program.file,
                unit.function.name(),
                name.place
            ))
            .help("`lanework respill analyse --all` shows those it has")
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
