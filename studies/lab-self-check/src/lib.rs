//! `lab-self-check`: equals raced against each other, and slowdowns planted for the laboratory to find; in a chain of multiplications,
//! in real primitives, and in whole processes.
#![forbid(unsafe_code)]

mod processes;
mod repeated;
mod subjects;
mod tally;

use crate::subjects::{EQUALS, ROUNDS, SIZES, slower};
use lanework_race::pairing::Plan as RacePlan;
use lanework_race::record::Record;
use lanework_race::study::Study;
use lanework_race::table::percent;
use lanework_study::races::Effort;
use lanework_study::races::{Race, race_all};
use lanework_study::{CORRECT, Entry, Failure, Found, Options, Outcome, Session, Workload, document};
use serde::Deserialize;
use serde_json::json;

use self::tally::{Held, Kind, Luck, Tally};

/// The study.
pub const ENTRY: Entry = Entry {
    subjects: |context| {
        let real = repeated::subjects(context).into_iter().map(|(subject, _)| subject);
        real.chain([subjects::subject()]).collect()
    },
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
    real: Real,
    processes: Processes,
}

/// The same with real primitives. Equals and all sizes are in one race.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Real {
    races: usize,
    /// Of each race.
    seconds: f64,
    sizes: Vec<f64>,
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
            let (real, processes) = (&mode.real, &mode.processes);
            let counts = [mode.equals, mode.planted, real.races, processes.equals, processes.planted];
            if counts.contains(&0) || processes.rounds == 0 {
                return Err(wrong("no races are asked for".into()));
            }
            for sizes in [&mode.sizes, &real.sizes] {
                if !sizes.contains(&asked.must_find) {
                    return Err(wrong("the size that must be found is not among those planted".into()));
                }
                if let Some(size) = sizes.iter().find(|s| thousandths(**s).is_none()) {
                    return Err(wrong(format!("a slowdown of {} cannot be planted", percent(*size))));
                }
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

/// Races of the plain work of a subject against challengers, over and over.
fn races(
    session: &Session,
    subject: &str,
    challengers: &[String],
    (count, seconds): (usize, f64),
    launches: u32,
) -> Result<Record, Failure> {
    let race = || Race {
        subject: subject.to_owned(),
        baseline: EQUALS[0].to_owned(),
        challengers: challengers.to_vec(),
    };
    let races: Vec<Race> = (0..count).map(|_| race()).collect();
    race_all(session, ENTRY.name, &races, &Effort { seconds: seconds * count as f64, launches, core: None })
}

/// The races between equals.
fn equals(record: &Record) -> Result<Tally, Failure> {
    Tally::of(&record.results, EQUALS[1], 0.0, Some(1.0)).ok_or_else(no_races)
}

/// The races with this many thousandths more.
fn planted(record: &Record, size: u64) -> Result<Tally, Failure> {
    let part = size as f64 / 1000.0;
    Tally::of(&record.results, &slower(size), part, Some(1.0 / (1.0 + part))).ok_or_else(no_races)
}

fn no_races() -> Failure {
    Failure::unavailable("the races gave no result")
}

/// The chain, with a race for the equals and one for each size.
fn chain(session: &Session, mode: &Mode) -> Result<(Kind, Record), Failure> {
    let launches = mode.launches;
    let effort = (mode.equals, mode.equals_seconds);
    let mut record = races(session, subjects::PATH, &[EQUALS[1].to_owned()], effort, launches)?;
    let mut kind = Kind { name: "the chain".to_owned(), equals: equals(&record)?, planted: Vec::new() };
    for size in mode.sizes.iter().filter_map(|s| thousandths(*s)) {
        let effort = (mode.planted, mode.planted_seconds);
        let more = races(session, subjects::PATH, &[slower(size)], effort, launches)?;
        kind.planted.push(planted(&more, size)?);
        record.append(more);
    }
    Ok((kind, record))
}

/// A primitive, with equals and all sizes in one race.
fn real(session: &Session, subject: &str, mode: &Mode) -> Result<(Kind, Record), Failure> {
    let sizes: Vec<u64> = mode.real.sizes.iter().filter_map(|s| thousandths(*s)).collect();
    let challengers: Vec<String> =
        std::iter::once(EQUALS[1].to_owned()).chain(sizes.iter().map(|&size| slower(size))).collect();
    let effort = (mode.real.races, mode.real.seconds);
    let record = races(session, subject, &challengers, effort, mode.launches)?;
    let planted = sizes.iter().map(|&size| planted(&record, size)).collect::<Result<_, _>>()?;
    Ok((Kind { name: subject.to_owned(), equals: equals(&record)?, planted }, record))
}

fn run(session: &Session, study: &Study, options: &Options) -> Result<Found, Failure> {
    let asked = Question::of(study)?;
    let mode = if options.full { &asked.full } else { &asked.quick };
    let (chain, mut record) = chain(session, mode)?;
    let mut primitives = Vec::new();
    let mut sections = Vec::new();
    for (subject, calls) in repeated::subjects(&session.context) {
        let (kind, more) = real(session, subject.path(), mode)?;
        sections.push(json!({
            "name": kind.name, "calls": calls, "backend": more.results.first().map(|row| &row.backend),
            "races": kind.equals.races, "table": kind.table(),
        }));
        primitives.push(kind);
        record.append(more);
    }
    let whole = processes::race(session, &mode.processes, asked.must_find_processes, &mut record)?;
    // Each kind of race had a plan of its own: the plan of the first would mislead.
    let rules = record.plan.take().map_or_else(|| RacePlan::default().rules, |p| p.rules);
    let luck = Luck { alpha: asked.alpha, luck: asked.luck };
    let (mut held, mut lines) = (Held::Yes, Vec::new());
    let works = std::iter::once(&chain).chain(&primitives).map(|kind| (kind, asked.must_find));
    for (kind, must_find) in works.chain([(&whole, asked.must_find_processes)]) {
        let (this, more) = kind.verdict(&luck, must_find);
        held = held.max(this);
        lines.extend(more);
    }
    let page = json!({
        "question": study.question, "rounds": ROUNDS, "machine": record.machine.summary(),
        "command": record.command, "alpha": percent(rules.alpha), "chain": chain.table(),
        "primitives": sections,
        "processes": {
            "table": whole.table(), "pairs": mode.processes.rounds.next_multiple_of(2), "units": processes::UNITS,
        },
        "verdict": lines, "remarks": record.remarks,
    });
    let findings = json!({
        "holds": held == Held::Yes, "chain": chain, "primitives": primitives, "processes": whole, "told": lines,
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
            ("races = 3", "races = 0"),
            ("seconds = 5.0, sizes = [0.003]", "seconds = 5.0, sizes = [0.01]"),
            ("rounds = 24", "rounds = 0"),
            ("must_find_processes = 0.1", "must_find_processes = 0.0001"),
        ] {
            assert!(ENTRY.toml.contains(from), "{from}");
            assert!(Question::of(&study(&ENTRY.toml.replacen(from, to, 1))).is_err(), "{to}");
        }
    }
}
