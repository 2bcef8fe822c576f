//! Whole processes: one that does nothing against itself, and one that works against one that works longer.
#![forbid(unsafe_code)]

use crate::subjects::{jumped, walked};
use lanework_race::clock::Monotonic;
use lanework_race::gate::{Gate, GateRow, Passed};
use lanework_race::pairing::Plan;
use lanework_race::process::{self, ProcessError, Program};
use lanework_race::record::{Record, ResultRow};
use lanework_study::{CORRECT, Failure, Outcome, Session, Workload};

use super::tally::{Kind, Tally};
use super::{ENTRY, Processes};

/// The subjects: starting and ending alone, and with work between.
const START: &str = "self-check/process/start";
const WORK: &str = "self-check/process/work";

/// The process that does nothing, and the same again. Both have one path, one environment and no arguments: any difference between them
/// is the laboratory's.
const NOTHING: [&str; 2] = ["true", "true again"];

/// Units of work in a process, each of about 35 us.
pub(super) const UNITS: u64 = 500;

/// The units of a process that is slower by this part, where that is a whole number of them.
pub(super) fn units(slower: f64) -> Option<u64> {
    let more = slower * UNITS as f64;
    (more >= 1.0 && (more - more.round()).abs() < 1e-9 && more < UNITS as f64)
        .then(|| UNITS + more.round() as u64)
}

/// This command, doing `units` units.
fn working(name: &str, units: u64) -> Result<Program, Failure> {
    let here = std::env::current_exe().map_err(Failure::unavailable)?;
    // Both numbers have the same length: arguments take space on a process's stack.
    Ok(Program::new(name, here, ["__workload", ENTRY.name, "chain", WORK, "--count", &units.to_string()]))
}

/// A process of the study: prints where its work ends.
pub(super) fn work(args: &Workload) -> Result<Outcome, Failure> {
    if args.configuration != "chain" || args.subject != WORK {
        return Err(Failure::input(format!("no workload '{}' of '{}'", args.configuration, args.subject)));
    }
    println!("{}", walked(args.count as u64));
    Ok(Outcome::Yes)
}

/// Checks that the processes do their work.
fn gate(nothing: &Program, planted: u64) -> Result<Passed, Failure> {
    let row = |what: &str, backend: &str, why: Result<(), String>| GateRow {
        what: what.to_owned(),
        backend: backend.to_owned(),
        passed: u64::from(why.is_ok()),
        failed: u64::from(why.is_err()),
        skipped: 0,
        why: why.err().unwrap_or_default(),
    };
    let clock = Monotonic::new();
    let started = process::run(nothing, &clock).map(|_| ()).map_err(|e| e.to_string());
    let mut rows = vec![row("exit code 0", &nothing.name, started)];
    for units in [UNITS, planted] {
        let ends = lanework_study::process::answer::<u64>(&working("chain", units)?).and_then(|end| {
            if end == jumped(units) { Ok(()) } else { Err(format!("its work ends at {end}")) }
        });
        rows.push(row(&format!("{units} units end where they must"), &format!("chain of {units}"), ends));
    }
    Gate::new(move || Ok(rows.clone()))
        .pass()
        .map_err(|e| Failure::refused(format!("no processes were raced: {e}")))
}

/// Races of `variant` against `baseline`, by wall time.
fn races(
    subject: &str,
    (baseline, variant): (&Program, &Program),
    (count, rounds): (usize, usize),
    passed: &Passed,
    record: &mut Record,
    mut tick: impl FnMut(),
) -> Result<Vec<ResultRow>, Failure> {
    let clock = Monotonic::new();
    let mut rows = Vec::new();
    for race in 0..count {
        let plan = Plan {
            launches: 1,
            min_pairs: rounds,
            max_pairs: rounds,
            seed: Plan::default().seed.wrapping_add(race as u64),
            ..Plan::default()
        };
        let others = std::slice::from_ref(variant);
        let mut found =
            process::race(subject, passed, baseline, others, rounds, &plan, &clock).map_err(|e| match e {
                ProcessError::Failed { .. } => Failure::refused(e),
                _ => Failure::unavailable(e),
            })?;
        // The rows are in every race; once is enough.
        if race > 0 {
            found.outcome.gate.clear();
        }
        rows.extend(found.outcome.results.iter().cloned());
        record.add(found.outcome);
        tick();
    }
    Ok(rows)
}

/// Races processes into the record.
pub(super) fn race(
    session: &Session,
    asked: &Processes,
    slower: f64,
    record: &mut Record,
) -> Result<Kind, Failure> {
    let planted =
        units(slower).ok_or_else(|| Failure::input("a slowdown that cannot be planted").help(CORRECT))?;
    let [nothing, again] = NOTHING.map(|name| Program::new(name, NOTHING[0], Vec::<String>::new()));
    let passed = gate(&nothing, planted)?;
    let bar = session.progress((asked.equals + asked.planted) as u64, "racing processes");
    let rows =
        races(START, (&nothing, &again), (asked.equals, asked.rounds), &passed, record, || bar.inc(1))?;
    let no_races = || Failure::unavailable("the races of processes gave no result");
    let equals = Tally::of(&rows, NOTHING[1], 0.0, Some(1.0)).ok_or_else(no_races)?;
    let (name, long) = (format!("chain of {UNITS}"), format!("chain of {planted}"));
    let pair = (working(&name, UNITS)?, working(&long, planted)?);
    let rows =
        races(WORK, (&pair.0, &pair.1), (asked.planted, asked.rounds), &passed, record, || bar.inc(1))?;
    bar.finish_and_clear();
    let planted = Tally::of(&rows, &long, slower, None).ok_or_else(no_races)?;
    Ok(Kind { name: "whole processes".to_owned(), equals, planted: vec![planted] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_planted_slowdown_is_whole_units() {
        assert_eq!(units(0.05), Some(525));
        assert_eq!(
            (units(0.0), units(0.0001), units(0.0033), units(-0.1), units(f64::NAN)),
            (None, None, None, None, None)
        );
    }
}
