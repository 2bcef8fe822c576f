//! Races of subjects, each spread over processes of the command, into one record.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use clap::Args;
use lanework_race::clock::Monotonic;
use lanework_race::gate::GateRow;
use lanework_race::launch::{LaunchError, Worker};
use lanework_race::machine::Machine;
use lanework_race::pairing::{Pinning, Plan};
use lanework_race::record::Record;
use lanework_race::subject::Subject;

use crate::{Failure, Session};

/// What a race compares: a subject, its baseline and the challengers that take part.
pub struct Race {
    /// The subject's path.
    pub subject: String,
    /// The variant that the others are compared with.
    pub baseline: String,
    /// The others.
    pub challengers: Vec<String>,
}

// How long and how often races run.
#[expect(
    missing_docs,
    reason = "a doc comment would replace that of a command whose arguments are built late"
)]
#[derive(Clone, Debug, Args)]
pub struct Effort {
    /// Seconds for the whole run, divided among its races.
    #[arg(long, value_name = "N", default_value_t = 45.0, value_parser = seconds, allow_negative_numbers = true)]
    pub seconds: f64,
    /// Processes per race. With 2 to 4, intervals are very wide.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub launches: u32,
    /// Pin single-core work to this core (default: the highest allowed).
    #[arg(long, value_name = "N")]
    pub core: Option<usize>,
}

/// Seconds that races, or a series of timings, may take.
const SECONDS: RangeInclusive<f64> = 0.1..=86_400.0;

/// Refuses a time that is too short or too long.
///
/// # Errors
/// A sentence saying what is allowed.
pub fn allowed(seconds: f64) -> Result<f64, String> {
    if SECONDS.contains(&seconds) {
        return Ok(seconds);
    }
    Err(format!("it takes from {} to {} seconds", SECONDS.start(), SECONDS.end()))
}

/// Seconds that a race may take, from an argument.
///
/// # Errors
/// A sentence saying what is wrong.
pub fn seconds(text: &str) -> Result<f64, String> {
    text.parse::<f64>().map_err(|e| e.to_string()).and_then(allowed)
}

/// The race of everything that a subject has.
pub fn race_of(subject: &Subject) -> Race {
    Race {
        subject: subject.path().to_owned(),
        baseline: subject.baseline().name().to_owned(),
        challengers: subject.challengers().map(|v| v.name().to_owned()).collect(),
    }
}

/// The plan that shares `effort` out over `races` races.
pub fn plan(effort: &Effort, races: usize) -> Plan {
    let budget = (effort.seconds / races.max(1) as f64 * 1e9) as u64;
    Plan {
        budget_ns: budget,
        launches: effort.launches,
        // Warming every contestant up must not eat the budget of a short race.
        warm_up_ns: (budget / 40 / u64::from(effort.launches)).clamp(1_000_000, 20_000_000),
        pinning: effort.core.map_or(Pinning::Auto, Pinning::Core),
        ..Plan::default()
    }
}

/// Runs races one after the other, each spread over several processes, into one record.
///
/// # Errors
/// [`Failure::refused`] where a gate stays shut, [`Failure::unavailable`] where a process cannot be run.
pub fn race_all(session: &Session, name: &str, races: &[Race], effort: &Effort) -> Result<Record, Failure> {
    let plan = plan(effort, races.len());
    let clock = Monotonic::new();
    let mut record = Record::new(name, &session.command, Machine::inspect(&clock, peer_builds(session)));
    record.plan = Some(plan.clone());
    let bar = session.progress((races.len() * plan.launches as usize) as u64, "racing");
    let mut gates: BTreeMap<&str, Vec<GateRow>> = BTreeMap::new();
    for race in races {
        bar.set_message(race.subject.clone());
        let mut arguments = session.arguments();
        arguments.extend([
            "__race".to_owned(),
            race.subject.clone(),
            "--baseline".to_owned(),
            race.baseline.clone(),
        ]);
        if !race.challengers.is_empty() {
            arguments.extend(["--only".to_owned(), race.challengers.join(",")]);
        }
        // Operations of one parameter set share one gate; it is passed once.
        let set = race.subject.rsplit_once('/').map_or(race.subject.as_str(), |(set, _)| set);
        let known = gates.get(set).cloned().unwrap_or_default();
        let first = known.is_empty();
        let worker = Worker::new(arguments).map_err(Failure::unavailable)?.behind(known);
        let (mut outcome, _) = worker.race(&plan, |_, _| bar.inc(1)).map_err(|e| match e {
            LaunchError::Refused { .. } => Failure::refused(e).help("`lanework check` shows what fails"),
            _ => Failure::unavailable(e).help("`lanework doctor` shows what this machine has"),
        })?;
        if first {
            gates.insert(set, outcome.gate.clone());
        } else {
            outcome.gate.clear();
        }
        for row in &mut outcome.results {
            row.floor = lanework_suite::floor(row, &record.machine);
        }
        record.add(outcome);
    }
    bar.finish_and_clear();
    record.machine.finish(&clock);
    Ok(record)
}

/// How the peers were built, where this run races any.
#[cfg(feature = "peers")]
#[must_use]
pub fn peer_builds(session: &Session) -> Vec<lanework_race::machine::PeerBuild> {
    let mut builds =
        session.context.peers.as_deref().map(lanework_suite::mayo::peers::builds).unwrap_or_default();
    builds.extend(lanework_suite::magma::peers::builds(&session.context));
    builds
        .extend(session.context.peers.as_deref().map(lanework_suite::vdf::peers::builds).unwrap_or_default());
    if session.context.peers.is_some() {
        builds.extend(lanework_suite::signatures::builds());
    }
    builds
}

/// No peers in this build.
#[cfg(not(feature = "peers"))]
#[must_use]
pub fn peer_builds(_: &Session) -> Vec<lanework_race::machine::PeerBuild> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_the_longest_time() {
        assert_eq!((seconds("0.1"), seconds("86400")), (Ok(0.1), Ok(86_400.0)));
        for text in ["0", "-1", "0.09", "86400.1", "1e30", "inf", "nan"] {
            assert_eq!(seconds(text), Err("it takes from 0.1 to 86400 seconds".to_owned()), "{text}");
        }
        assert!(seconds("soon").is_err_and(|why| !why.contains("86400")));
        // A plan for it overflows nowhere.
        let effort = Effort { seconds: 86_400.0, launches: 1, core: None };
        assert_eq!(plan(&effort, 1).budget_ns, 86_400_000_000_000);
    }
}
