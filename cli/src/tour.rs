//! `lanework` alone: the tour. The machine, every check, every race, and one line for each lane.
#![forbid(unsafe_code)]

use std::time::Instant;

use lanework_cpu::Threads;
use lanework_race::record::ResultRow;
use lanework_race::table;
use lanework_race::verdict::Lane;
use lanework_study::{Failure, Outcome};
use lanework_suite::Depth;
use lanework_suite::lanes::{Finding, LANES, LaneQuestion, summarise};

use crate::doctor;
use crate::ui::Session;
use lanework_study::races::{Effort, Race, race_all, race_of};

/// Seconds for the whole tour.
const TOUR_SECONDS: f64 = 45.0;
/// What the races get at most, and at least: below that there are no pairs to judge by.
const RACING_SECONDS: std::ops::RangeInclusive<f64> = 8.0..=24.0;
/// Processes for each race. The interval over launches needs five to be narrow; one would be blind to memory layout.
const LAUNCHES: u32 = 5;
/// The backend with 64-bit multiplication alone, and the one with 52-bit multiply-add beside it.
const NARROW: &str = "adx";
const WIDE: &str = "avx512";
/// Starting a process, finding the cores' frequency and preparing inputs, once for each launch, roughly.
const LAUNCH_SECONDS: f64 = 0.04;

pub(crate) fn run(session: &Session) -> Result<Outcome, Failure> {
    let start = Instant::now();
    session.say("Lanework: every lane of this machine, proved right, then raced.\n");
    let found = doctor::inspect(session);
    let checking = Instant::now();
    if !session.json {
        print!("{}", doctor::short(&found));
        println!("\nChecks (known answers, agreement with the specification, invalid inputs):");
    }
    let rows = lanework_suite::check(&session.context, "", Depth::Quick, &mut |row| {
        if row.failed > 0 {
            session.say(crate::check::line(row));
        }
    });
    let (passed, failed): (u64, u64) = rows.iter().fold((0, 0), |(p, f), r| (p + r.passed, f + r.failed));
    let checked = checking.elapsed().as_secs_f64();
    session.say(crate::check::ran(&rows));
    session.say(format!("{passed} passed, {failed} failed"));
    if failed > 0 {
        return Err(Failure::refused("checks failed; nothing that fails is raced"));
    }

    let subjects = lanework_suite::headline(&session.context);
    let mut races: Vec<Race> = subjects.iter().map(race_of).collect();
    for race in &mut races {
        race.challengers.retain(|c| !c.contains('+'));
    }
    let threaded: Vec<Race> = subjects.iter().filter_map(threads_race).collect();
    races.extend(threaded);
    races.extend(subjects.iter().filter_map(multiplier_race));
    session.say("\nRaces (paired, one pinned core unless a variant says threads; ratio above 1 is faster):");
    let effort =
        Effort { seconds: racing_seconds(start, checked, races.len()), launches: LAUNCHES, core: None };
    let record = race_all(session, "tour", &races, &effort)?;
    if !session.json {
        print!("{}", table::render(&record, session.style));
    }
    let lanes: Vec<(LaneQuestion, Finding)> =
        LANES.into_iter().map(|q| (q, answer(&q, &record.results))).collect();
    if session.json {
        let lines: Vec<_> = lanes
            .iter()
            .map(|(q, f)| {
                serde_json::json!({ "name": q.name, "answer": f.lane, "races": f.races, "agree": f.agree })
            })
            .collect();
        let record: serde_json::Value =
            serde_json::from_str(&record.to_json().map_err(Failure::input)?).map_err(Failure::input)?;
        println!("{}", serde_json::json!({ "record": record, "lanes": lines }));
    } else {
        println!("\nDoes the lane pay on this machine?");
        for (q, found) in &lanes {
            println!("  {:16} {}", q.name, line(q, found));
        }
        println!(
            "\nThe tour took {:.0} s. Next: `lanework bench --seconds 300` for firmer figures, `lanework tune` to keep \
             what won, `lanework --help` for the rest.",
            start.elapsed().as_secs_f64()
        );
    }
    Ok(Outcome::Yes)
}

/// The race of all cores against one over the same batch, where a subject has both.
fn threads_race(subject: &lanework_race::subject::Subject) -> Option<Race> {
    let names: Vec<&str> = subject.names().collect();
    let one = |n: &&&str| n.ends_with("+batch") || n.ends_with("+threads=1");
    let baseline = names.iter().find(one)?;
    let many = |n: &&&str| n.contains("+threads=") && !one(n);
    let challengers: Vec<String> = names.iter().filter(many).map(|n| (*n).to_owned()).collect();
    // Two sets of MAYO stand for the four: the smallest key and the largest.
    let shown = !subject.path().starts_with("mayo/")
        || subject.path().contains("/mayo1/")
        || subject.path().contains("/mayo5/");
    (shown && !challengers.is_empty()).then(|| Race {
        subject: subject.path().to_owned(),
        baseline: (*baseline).to_owned(),
        challengers,
    })
}

/// The race of 52-bit multiply-add against 64-bit multiplication in the same algorithm, where a subject has both.
fn multiplier_race(subject: &lanework_race::subject::Subject) -> Option<Race> {
    let has = |name: &str| subject.names().any(|n| n == name);
    (has(NARROW) && has(WIDE)).then(|| Race {
        subject: subject.path().to_owned(),
        baseline: NARROW.to_owned(),
        challengers: vec![WIDE.to_owned()],
    })
}

/// What is left of the tour's time for races, once their gates and launches have had theirs. The gate of a race checks
/// one parameter set or cipher, as quickly as the checks before have shown.
fn racing_seconds(start: Instant, checked: f64, races: usize) -> f64 {
    let sets = lanework_mayo::Params::all().count() + 2;
    let aside = races as f64 * (checked / sets as f64 + f64::from(LAUNCHES) * LAUNCH_SECONDS);
    let left = TOUR_SECONDS - 2.0 - start.elapsed().as_secs_f64() - aside;
    left.clamp(*RACING_SECONDS.start(), *RACING_SECONDS.end())
}

/// The lane's line: the word, in how many races, and what was compared.
fn line(question: &LaneQuestion, found: &Finding) -> String {
    match &found.lane {
        Lane::NotHere { .. } => found.lane.to_string(),
        Lane::CannotTell { .. } => format!("{}: {}", found.lane, question.compares),
        lane => format!("{lane} in {} of {} races: {}", found.agree, found.races, question.compares),
    }
}

fn answer(question: &LaneQuestion, rows: &[ResultRow]) -> Finding {
    let not_here = |why: &str| Finding { lane: Lane::NotHere { why: why.to_owned() }, agree: 0, races: 0 };
    if let Some(why) = question.absent {
        return not_here(why);
    }
    let found = match question.name {
        "other threads" => summarise(rows.iter().filter(|r| r.variant.contains("+threads="))),
        "wide multiplier" => summarise(rows.iter().filter(|r| r.baseline == NARROW && r.variant == WIDE)),
        _ => summarise(best_vector_rows(rows).into_iter()),
    };
    found.unwrap_or_else(|| match question.name {
        "other threads" if Threads::Own(0).count() == 1 => not_here("this process may use one core only"),
        _ => not_here("no variant of it can run here"),
    })
}

/// For each subject the fastest backend with vectors that raced against portable code; one that could be told before one that
/// not.
fn best_vector_rows(rows: &[ResultRow]) -> Vec<&ResultRow> {
    let mut best: Vec<&ResultRow> = Vec::new();
    let rank = |r: &ResultRow| (r.verdict.is_settled(), r.ratio);
    for row in
        rows.iter().filter(|r| r.baseline == "portable" && r.variant != NARROW && !r.variant.contains('+'))
    {
        match best.iter_mut().find(|b| b.subject == row.subject) {
            Some(b) if rank(b) < rank(row) => *b = row,
            Some(_) => {}
            None => best.push(row),
        }
    }
    best
}
