//! `lanework tune`: what wins here, kept.
#![forbid(unsafe_code)]

use lanework_lab::record::ResultRow;
use lanework_lab::table;
use lanework_lab::verdict::Verdict;

use crate::args::TuneArgs;
use crate::bench::{race_all, race_of};
use crate::outcome::{Failure, Outcome};
use crate::profile::{Choice, Profile};
use crate::ui::Session;

pub(crate) fn run(session: &Session, args: &TuneArgs) -> Result<Outcome, Failure> {
    // Peers take part in races, never in a profile.
    let context = lanework_subjects::Context { peers: None, ..session.context.clone() };
    let pattern = if args.what.is_empty() { "all" } else { &args.what };
    let subjects = lanework_subjects::matching(&context, pattern);
    if subjects.is_empty() {
        return Err(Failure::input(format!("no subject matches '{}'", args.what)));
    }
    let races: Vec<_> = subjects.iter().map(race_of).collect();
    let record = race_all(session, "tune", &races, &args.effort)?;
    let mut profile = session.profile.clone().unwrap_or_else(|| Profile::new(&context, record.date.clone()));
    profile.date.clone_from(&record.date);
    for race in &races {
        let rows: Vec<&ResultRow> = record.results.iter().filter(|r| r.subject == race.subject).collect();
        profile.choices.insert(race.subject.clone(), choose(&race.baseline, &rows));
    }
    let saved = if args.dry_run { None } else { Some(profile.save()?) };
    if session.json {
        println!(
            "{}",
            serde_json::json!({
                "profile": saved.as_ref().map(|p| p.display().to_string()),
                "choices": profile.choices,
            })
        );
        return Ok(Outcome::Yes);
    }
    print!("{}", table::render(&record, session.style));
    println!();
    for race in &races {
        if let Some(c) = profile.choices.get(&race.subject) {
            println!(
                "{}: {} ({} over {}), batches on {} thread(s)",
                race.subject,
                c.backend,
                table::times(c.ratio),
                race.baseline,
                c.threads
            );
        }
    }
    match saved {
        Some(path) => println!("profile: {}", path.display()),
        None => println!("dry run: no profile was written"),
    }
    Ok(Outcome::Yes)
}

/// The backend with the best ratio among those that are faster than the baseline beyond doubt; and more threads only
/// if their whole interval lies above the one thread's.
fn choose(baseline: &str, rows: &[&ResultRow]) -> Choice {
    let single = |r: &&&ResultRow| !r.variant.contains('+');
    let best = rows
        .iter()
        .filter(single)
        .filter(|r| r.verdict == Verdict::Faster)
        .max_by(|a, b| a.ratio.total_cmp(&b.ratio));
    let (backend, ratio) = best.map_or((baseline.to_owned(), 1.0), |r| (r.variant.clone(), r.ratio));
    let batch = rows.iter().find(|r| r.variant.ends_with("+batch"));
    let threads = rows
        .iter()
        .filter_map(|r| Some((r, r.variant.rsplit_once("+threads=")?.1.parse::<usize>().ok()?)))
        .filter(|(r, _)| batch.is_none_or(|one| r.low > one.high))
        .max_by(|(a, _), (b, _)| a.ratio.total_cmp(&b.ratio))
        .map_or(1, |(_, n)| n);
    Choice { backend, ratio, threads }
}
