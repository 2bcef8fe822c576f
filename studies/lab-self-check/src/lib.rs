//! `lab-self-check`: equals raced against each other, and slowdowns planted for the laboratory to find; work within processes, and
//! whole processes.
#![forbid(unsafe_code)]

mod processes;
mod subjects;
mod tally;

use crate::subjects::{EQUALS, PATH, ROUNDS, SIZES, slower};
use lanework_race::pairing::Plan as RacePlan;
use lanework_race::record::Record;
use lanework_race::study::Study;
use lanework_race::table::percent;
use lanework_study::markdown::table;
use lanework_study::races::Effort;
use lanework_study::races::{Race, race_all};
use lanework_study::{CORRECT, Entry, Failure, Found, Options, Outcome, Session, Workload, document};
use serde::Deserialize;
use serde_json::json;

use self::tally::{Held, Tally, allowed, header, verdict};

/// The study.
pub const ENTRY: Entry = Entry {
    subjects: |_| vec![subjects::subject()],
    workload: Some(workload),
    ..Entry::new("lab-self-check", [include_str!("../study.toml"), include_str!("../study.md")], run)
};

/// A mode of the study.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mode {
    equals: usize,
    equals_seconds: f64,
    sizes: Vec<f64>,
    planted: usize,
    planted_seconds: f64,
    launches: u32,
    processes: Processes,
}

/// The same with whole processes.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Processes {
    equals: usize,
    planted: usize,
    /// Of each race.
    rounds: usize,
}

/// The study as data.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    must_find: f64,
    must_find_processes: f64,
    alpha: f64,
    luck: f64,
    quick: Mode,
    full: Mode,
}

impl Question {
    fn of(study: &Study) -> Result<Question, Failure> {
        let wrong = |why: String| Failure::input(format!("{}/study.toml: {why}", study.name)).help(CORRECT);
        let asked: Question =
            study.table.clone().try_into().map_err(|e: toml::de::Error| wrong(e.to_string()))?;
        for mode in [&asked.quick, &asked.full] {
            let processes = &mode.processes;
            if [mode.equals, mode.planted, processes.equals, processes.planted, processes.rounds].contains(&0)
            {
                return Err(wrong("no races are asked for".into()));
            }
            if !mode.sizes.contains(&asked.must_find) {
                return Err(wrong("the size that must be found is not among those planted".into()));
            }
            if let Some(size) = mode.sizes.iter().find(|s| thousandths(**s).is_none()) {
                return Err(wrong(format!("a slowdown of {} cannot be planted", percent(*size))));
            }
        }
        if processes::units(asked.must_find_processes).is_none() {
            return Err(wrong(format!(
                "a slowdown of a process by {} cannot be planted",
                percent(asked.must_find_processes)
            )));
        }
        if !(asked.alpha > 0.0 && asked.alpha < 0.5 && asked.luck > 0.0 && asked.luck < 0.5) {
            return Err(wrong("error rates lie between 0 and 0.5".into()));
        }
        Ok(asked)
    }
}

/// A size that there is a variant for.
fn thousandths(size: f64) -> Option<u64> {
    SIZES.into_iter().find(|t| (*t as f64 / 1000.0 - size).abs() < 1e-9)
}

/// Races of one challenger against the plain work, over and over.
fn races(
    session: &Session,
    name: &str,
    count: usize,
    seconds: f64,
    launches: u32,
) -> Result<Record, Failure> {
    let races: Vec<Race> = (0..count)
        .map(|_| Race {
            subject: PATH.to_owned(),
            baseline: EQUALS[0].to_owned(),
            challengers: vec![name.to_owned()],
        })
        .collect();
    race_all(session, ENTRY.name, &races, &Effort { seconds: seconds * count as f64, launches, core: None })
}

fn run(session: &Session, study: &Study, options: &Options) -> Result<Found, Failure> {
    let full = options.full;
    let asked = Question::of(study)?;
    let mode = if full { &asked.full } else { &asked.quick };
    let mut record = races(session, EQUALS[1], mode.equals, mode.equals_seconds, mode.launches)?;
    let no_races = || Failure::unavailable("the races gave no result");
    let equals = Tally::of(&record.results, EQUALS[1], 0.0, Some(1.0)).ok_or_else(no_races)?;
    let mut planted = Vec::new();
    for size in mode.sizes.iter().filter_map(|s| thousandths(*s)) {
        let more = races(session, &slower(size), mode.planted, mode.planted_seconds, mode.launches)?;
        let truth = ROUNDS as f64 / (ROUNDS + ROUNDS * size / 1000) as f64;
        let part = size as f64 / 1000.0;
        let tally = Tally::of(&more.results, &slower(size), part, Some(truth)).ok_or_else(no_races)?;
        planted.push(tally);
        record.append(more);
    }
    let whole = processes::race(session, &mode.processes, asked.must_find_processes, &mut record)?;
    // Each kind of race had a plan of its own: the plan of the first would mislead.
    let rules = record.plan.take().map_or_else(|| RacePlan::default().rules, |p| p.rules);
    let may = |races| allowed(races, asked.alpha, asked.luck);
    let (works, mut lines) = verdict("work", &equals, &planted, may(equals.races), asked.must_find);
    let planted_processes = std::slice::from_ref(&whole.planted);
    let must = asked.must_find_processes;
    let (starts, more) =
        verdict("processes", &whole.equals, planted_processes, may(whole.equals.races), must);
    lines.extend(more);
    let held = works.max(starts);
    let cells = |all: &[Tally]| table(&header(), &all.iter().map(Tally::cells).collect::<Vec<_>>());
    let page = json!({
        "question": study.question, "rounds": ROUNDS, "machine": record.machine.summary(), "command": record.command,
        "equals": cells(std::slice::from_ref(&equals)), "alpha": percent(rules.alpha), "allowed": may(equals.races),
        "races": equals.races, "planted": cells(&planted), "verdict": lines, "remarks": record.remarks,
        "processes": {
            "table": cells(&[whole.equals.clone(), whole.planted.clone()]), "races": whole.equals.races,
            "allowed": may(whole.equals.races), "pairs": mode.processes.rounds.next_multiple_of(2), "units": processes::UNITS,
        },
    });
    let findings = json!({
        "holds": held == Held::Yes, "equals": equals, "planted": planted, "allowed": may(equals.races), "told": lines,
        "processes": {
            "equals": whole.equals, "planted": whole.planted, "allowed": may(whole.equals.races),
        },
    });
    Ok(Found { page: document(page)?, findings, outcome: held.outcome(), record })
}

fn workload(_: &Session, args: &Workload) -> Result<Outcome, Failure> {
    processes::work(args)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_study_reads_and_nonsense_is_refused() {
        let study = |text: &str| Study::from_toml(ENTRY.name, text).expect("a study");
        assert!(Question::of(&study(ENTRY.toml)).is_ok());
        for (from, to) in [
            ("equals = 100", "equals = 0"),
            ("sizes = [0.003]", "sizes = [0.002, 0.003]"),
            ("sizes = [0.003]", "sizes = [0.01]"),
            ("alpha = 0.01", "alpha = 2"),
            ("luck", "look"),
            ("rounds = 24", "rounds = 0"),
            ("must_find_processes = 0.1", "must_find_processes = 0.0001"),
        ] {
            assert!(ENTRY.toml.contains(from), "{from}");
            assert!(Question::of(&study(&ENTRY.toml.replacen(from, to, 1))).is_err(), "{to}");
        }
    }
}
