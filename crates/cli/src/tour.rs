//! `lanework` alone: the tour. The machine, every check, every race, and one line for each lane.
#![forbid(unsafe_code)]

use std::time::Instant;

use lanework_cpu::Threads;
use lanework_lab::record::ResultRow;
use lanework_lab::table;
use lanework_lab::verdict::Lane;
use lanework_subjects::Depth;
use lanework_subjects::lanes::{LANES, LaneQuestion, summarise};

use crate::args::Effort;
use crate::bench::{Race, race_all, race_of};
use crate::doctor;
use crate::outcome::{Failure, Outcome};
use crate::ui::Session;

/// Seconds that the races may take together; checks and process starts come on top, within the tour's 45.
const RACING_SECONDS: f64 = 24.0;

pub(crate) fn run(session: &Session) -> Result<Outcome, Failure> {
    let start = Instant::now();
    session.say("Lanework: every lane of this machine, proved right, then raced.\n");
    let found = doctor::inspect(session);
    if !session.json {
        print!("{}", doctor::short(&found));
        println!("\nChecks (known answers, agreement with the specification, invalid inputs):");
    }
    let rows = lanework_subjects::check(&session.context, "", Depth::Quick, &mut |row| {
        if row.failed > 0 {
            session.say(crate::check::line(row));
        }
    });
    let (passed, failed): (u64, u64) = rows.iter().fold((0, 0), |(p, f), r| (p + r.passed, f + r.failed));
    session.say(crate::check::ran(&rows));
    session.say(format!("{passed} passed, {failed} failed"));
    if failed > 0 {
        return Err(Failure::refused("checks failed; nothing that fails is raced"));
    }

    let subjects = lanework_subjects::headline(&session.context);
    let mut races: Vec<Race> = subjects.iter().map(race_of).collect();
    for race in &mut races {
        race.challengers.retain(|c| !c.contains('+'));
    }
    let threaded: Vec<Race> = subjects.iter().filter_map(threads_race).collect();
    races.extend(threaded);
    session.say("\nRaces (paired, one pinned core unless a variant says threads; ratio above 1 is faster):");
    let effort = Effort { seconds: RACING_SECONDS, launches: 2, core: None };
    let record = race_all(session, "tour", &races, &effort)?;
    if !session.json {
        print!("{}", table::render(&record, session.style));
    }
    let lanes: Vec<(LaneQuestion, Lane)> =
        LANES.into_iter().map(|q| (q, answer(&q, &record.results))).collect();
    if session.json {
        let lines: Vec<_> =
            lanes.iter().map(|(q, lane)| serde_json::json!({ "name": q.name, "answer": lane })).collect();
        let record: serde_json::Value =
            serde_json::from_str(&record.to_json().map_err(Failure::input)?).map_err(Failure::input)?;
        println!("{}", serde_json::json!({ "record": record, "lanes": lines }));
    } else {
        println!("\nDoes the lane pay on this machine?");
        for (q, lane) in &lanes {
            println!(
                "  {:16} {lane}{}",
                q.name,
                if q.absent.is_none() { format!("  ({})", q.compares) } else { String::new() }
            );
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
fn threads_race(subject: &lanework_lab::subject::Subject) -> Option<Race> {
    let names: Vec<&str> = subject.names().collect();
    let baseline = names.iter().find(|n| n.ends_with("+batch"))?;
    let challengers: Vec<String> =
        names.iter().filter(|n| n.contains("+threads=")).map(|n| (*n).to_owned()).collect();
    // Two sets stand for the four: the smallest key and the largest.
    let shown = subject.path().contains("/mayo1/") || subject.path().contains("/mayo5/");
    (shown && !challengers.is_empty()).then(|| Race {
        subject: subject.path().to_owned(),
        baseline: (*baseline).to_owned(),
        challengers,
    })
}

fn answer(question: &LaneQuestion, rows: &[ResultRow]) -> Lane {
    if let Some(why) = question.absent {
        return Lane::NotHere { why: why.to_owned() };
    }
    let found = match question.name {
        "other threads" => summarise(rows.iter().filter(|r| r.variant.contains("+threads="))),
        _ => summarise(best_vector_rows(rows).into_iter()),
    };
    found.unwrap_or_else(|| Lane::NotHere {
        why: match question.name {
            "other threads" if Threads::Own(0).count() == 1 => {
                "this process may use one core only".to_owned()
            }
            _ => "no variant of it can run here".to_owned(),
        },
    })
}

/// For each subject the fastest backend that raced against portable code.
fn best_vector_rows(rows: &[ResultRow]) -> Vec<&ResultRow> {
    let mut best: Vec<&ResultRow> = Vec::new();
    for row in rows.iter().filter(|r| r.baseline == "portable" && !r.variant.contains('+')) {
        match best.iter_mut().find(|b| b.subject == row.subject) {
            Some(b) if b.ratio < row.ratio => *b = row,
            Some(_) => {}
            None => best.push(row),
        }
    }
    best
}
