//! Homes that were found fastest on this machine, in its profile.
//!
//! Their key is the function's name and a number derived from its instructions and those of all its callees. A different function of
//! the same name does not get them.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;

use lanework_respill::homes::Home;
use lanework_respill::names;
use lanework_respill::plan::{Plan, Stays};
use lanework_study::Failure;

use super::Source;
use super::args::{PolicyName, WishArgs};
use super::selection::wish;
use crate::ui::Session;

/// The plan that the options ask for: computed by the policy, or from the profile.
pub(super) fn plan_of(session: &Session, source: &Source, args: &WishArgs) -> Result<Plan, Failure> {
    if args.policy == PolicyName::Auto {
        return plan(session, source, args);
    }
    Ok(lanework_respill::plan::plan(&source.analysis, &wish(source, args)?))
}

/// The kept homes of all selected functions; an empty plan if all values are known to be best left on the stack.
fn plan(session: &Session, source: &Source, args: &WishArgs) -> Result<Plan, Failure> {
    if !args.slots.is_empty() {
        return Err(Failure::input("--policy auto uses the slots that were kept").help("leave out --slots"));
    }
    let analysis = &source.analysis;
    let file = &analysis.program.file;
    let profile = session.profile.as_ref().map_err(Clone::clone)?;
    let spills = profile.as_ref().map(|profile| &profile.spills);
    let kept = |unit: usize| spills.and_then(|spills| spills.get(&names::key(analysis, unit)));
    let mut out = Plan::default();
    let mut known = BTreeSet::new();
    // A caller was searched together with its callees, so its homes come first.
    for unit in analysis.callees_first().into_iter().rev().filter(|unit| source.units.contains(unit)) {
        let Some(spill) = kept(unit).filter(|_| !known.contains(&unit)) else { continue };
        known.insert(unit);
        known.extend(analysis.below(unit));
        for (name, home) in &spill.homes {
            let found = core::iter::once(unit).chain(analysis.below(unit)).find_map(|n| {
                let at = &analysis.units[n];
                (0..at.slots.len()).find(|&s| names::slot(analysis, at, s) == *name).map(|s| (n, s))
            });
            let (Some(slot), Ok(home)) = (found, home.parse::<Home>()) else {
                return Err(Failure::input(format!(
                    "{file}: the profile has {home} for {name}, which does not exist"
                ))
                .help("`lanework respill auto --keep` searches again"));
            };
            out.homes.insert(slot, home);
        }
    }
    if known.is_empty() {
        let global: Vec<&str> = source
            .units
            .iter()
            .map(|&n| &analysis.units[n].function)
            .filter(|function| function.global)
            .map(|function| function.name())
            .take(12)
            .collect();
        let other = |name: &&str| {
            spills.is_some_and(|spills| spills.keys().any(|key| key.split('#').next() == Some(*name)))
        };
        let said = match global.iter().find(|name| other(name)) {
            Some(name) => format!("homes are kept only for another `{name}` with other instructions"),
            None => format!("no homes are kept for {}", global.join(", ")),
        };
        return Err(
            Failure::refused(format!("{file}: {said}")).help("`lanework respill auto --keep` finds them")
        );
    }
    let all = analysis.units.iter().enumerate().flat_map(|(n, at)| (0..at.slots.len()).map(move |s| (n, s)));
    out.stays = all.filter(|key| !out.homes.contains_key(key)).map(|key| (key, Stays::NotWanted)).collect();
    Ok(out)
}
