//! `lanework bench` and `lanework compare`: races, their tables and their records.
#![forbid(unsafe_code)]

pub(crate) mod builds;
mod programs;

use std::path::Path;

use lanework_race::clock::Monotonic;
use lanework_race::histogram;
use lanework_race::launch;
use lanework_race::record::Record;
use lanework_race::subject::Subject;
use lanework_race::table;
use lanework_study::races::{Race, race_all, race_of};
use lanework_study::{Failure, Outcome};
#[cfg(not(feature = "study"))]
pub(crate) use lanework_suite::find;

use crate::args::{BenchArgs, CompareArgs, Output, RaceArgs, StyleName};
use crate::signals;
#[cfg(feature = "study")]
pub(crate) use crate::study::find;
use crate::ui::Session;

/// Refuses two forms at once. The parser sees no conflict if `--json` comes before the command.
pub(crate) fn one_form(session: &Session, output: &Output) -> Result<(), Failure> {
    if session.json && output.csv {
        return Err(Failure::input("--json and --csv cannot be used together").help("choose one"));
    }
    Ok(())
}

/// Refuses, before anything is measured, a directory where the record could not be stored.
pub(crate) fn may_save(output: &Output) -> Result<(), Failure> {
    let Some(root) = &output.save else { return Ok(()) };
    let name = |p: &Path| if p.as_os_str().is_empty() { Path::new(".").to_owned() } else { p.to_owned() };
    // Missing directories are made below the first that exists.
    let Some(there) = root.ancestors().map(name).find(|p| p.exists()) else {
        return Err(Failure::file(root, "no directory above it exists").help("make one first"));
    };
    if !there.is_dir() {
        return Err(
            Failure::file(&there, "not a directory").help("name a directory for records with --save=DIR")
        );
    }
    tempfile::tempfile_in(&there).map(|_| ()).map_err(|e| {
        Failure::file(&there, format!("records cannot be stored in it: {e}"))
            .help("name another directory with --save=DIR")
    })
}

/// The exit code for contestants that are not here: 1 if LANEWORK_REQUIRE names one, 3 if one that was asked for by name, or every
/// one, did not race. Their reasons are in the record, which has been shown.
fn all_raced(session: &Session, record: &Record, asked: &[String], csv: bool) -> Result<Outcome, Failure> {
    let raced = |name: &str| record.results.iter().any(|r| r.variant == name);
    if let Some(n) = record.not_here.iter().find(|n| session.context.settings.requires(&n.variant)) {
        let why = format!("{} {}: required, but {}", n.subject, n.variant, n.why);
        return Err(Failure::refused(why)
            .help("provide what it lacks, or take it out of LANEWORK_REQUIRE")
            .beside_data());
    }
    let absent = record.not_here.iter().find(|n| asked.contains(&n.variant) && !raced(&n.variant));
    if let Some(n) = absent {
        let why = format!("{} was asked for and did not race: {}", n.variant, n.why);
        return Err(Failure::unavailable(why)
            .help("`lanework doctor` shows what can run here")
            .beside_data());
    }
    match record.not_here.first() {
        // CSV has no lines for reasons.
        Some(n) if record.results.is_empty() && csv => {
            let why = format!("nothing raced: {} {}: {}", n.subject, n.variant, n.why);
            Err(Failure::unavailable(why).help("`lanework doctor` shows what can run here").beside_data())
        }
        Some(_) if record.results.is_empty() => Ok(Outcome::Unavailable),
        _ => Ok(Outcome::Yes),
    }
}

pub(crate) fn run(session: &Session, args: &BenchArgs) -> Result<Outcome, Failure> {
    one_form(session, &args.output)?;
    may_save(&args.output)?;
    // The parser waives this if a subject is named, which conflicts with --process.
    if args.same_output && args.process.is_empty() {
        return Err(Failure::input("--same-output compares two commands").help("add --process 'A' 'B'"));
    }
    // The parser sees no conflict if `--json` comes before the command.
    if session.json && args.style != StyleName::Table {
        return Err(Failure::input("--json and --style cannot be used together").help("choose one"));
    }
    if !args.process.is_empty() {
        return programs::run(session, args);
    }
    session.device_there()?;
    let subjects = chosen(session, args.what.as_deref())?;
    if args.list {
        return list(session, &subjects);
    }
    // A race against other people's code is another question, with a history of its own.
    let peers = if session.context.peers.is_some() { "-peers" } else { "" };
    let mut name = args.what.as_ref().map_or("bench".to_owned(), |what| format!("bench-{what}"));
    // Races of other contestants are not comparable either. Peers are always named, and the documents' tables use one name.
    if peers.is_empty() {
        if !args.only.is_empty() {
            name += &format!("-only-{}", args.only.join("-"));
        }
        if let Some(baseline) = &args.baseline {
            name += &format!("-against-{baseline}");
        }
    }
    name += peers;
    let mut record = match &args.old {
        Some(old) => {
            known(&subjects, &args.only)?;
            builds::race_all(session, &(name + "-old"), old, &subjects, &args.only, &args.effort)?
        }
        None => {
            let races = narrowed(subjects, args.baseline.as_ref(), &args.only)?;
            race_all(session, &name, &races, &args.effort)?
        }
    };
    match args.style {
        StyleName::Table => show_and_store(session, &mut record, &args.output)?,
        StyleName::Histogram => save_and_show(session, &mut record, &args.output, |record| {
            print!("{}", histogram::render(record));
            Ok(())
        })?,
    };
    all_raced(session, &record, &args.only, args.output.csv)
}

pub(crate) fn compare(session: &Session, args: &CompareArgs) -> Result<Outcome, Failure> {
    one_form(session, &args.output)?;
    may_save(&args.output)?;
    if args.a == args.b {
        return Err(Failure::input(format!("the same variant twice: {}", args.a))
            .help("name two: every race already has a variant against itself as a control"));
    }
    let only = [args.b.clone()];
    let races = narrowed(chosen(session, args.what.as_deref())?, Some(&args.a), &only)?;
    let mut name = format!("compare-{}-{}", args.a, args.b);
    if let Some(what) = &args.what {
        name += &format!("-on-{what}");
    }
    let mut record = race_all(session, &name, &races, &args.effort)?;
    show_and_store(session, &mut record, &args.output)?;
    all_raced(session, &record, &only, args.output.csv)
}

fn chosen(session: &Session, what: Option<&str>) -> Result<Vec<Subject>, Failure> {
    let what = what.unwrap_or_default();
    let subjects = lanework_suite::matching(&session.context, what);
    if subjects.is_empty() {
        return Err(Failure::input(format!("no subject matches '{what}'"))
            .help("`lanework bench all --list` shows them"));
    }
    Ok(subjects)
}

/// Refuses a variant that none of the subjects has. They differ in what they offer: a peer has one round, say.
fn known<'a>(subjects: &[Subject], asked: impl IntoIterator<Item = &'a String>) -> Result<(), Failure> {
    let mut known: Vec<&str> = subjects.iter().flat_map(Subject::names).collect();
    known.sort_unstable();
    known.dedup();
    match asked.into_iter().find(|name| !known.contains(&name.as_str())) {
        Some(stranger) => Err(Failure::input(format!("no subject here has a variant '{stranger}'"))
            .help(format!("choose among {}", known.join(", ")))),
        None => Ok(()),
    }
}

/// The races of those subjects that have the baseline and at least one of the variants asked for.
fn narrowed(
    subjects: Vec<Subject>,
    baseline: Option<&String>,
    only: &[String],
) -> Result<Vec<Race>, Failure> {
    known(&subjects, baseline.into_iter().chain(only))?;
    let mut races = Vec::new();
    for mut subject in subjects {
        if baseline.is_some_and(|b| subject.set_baseline(b).is_err()) {
            continue;
        }
        let has: Vec<&str> =
            only.iter().map(String::as_str).filter(|n| subject.names().any(|have| have == *n)).collect();
        if !only.is_empty() {
            // Only names that the subject has are asked for.
            subject.keep(&has).map_err(Failure::input)?;
        }
        if subject.challengers().next().is_some() {
            races.push(race_of(&subject));
        }
    }
    if races.is_empty() {
        return Err(Failure::input("no subject has both the baseline and a variant asked for")
            .help("`lanework bench all --list` shows the variants of each"));
    }
    Ok(races)
}

fn list(session: &Session, subjects: &[Subject]) -> Result<Outcome, Failure> {
    if session.json {
        let rows: Vec<_> = subjects
            .iter()
            .map(|s| serde_json::json!({ "subject": s.path(), "variants": s.names().collect::<Vec<_>>() }))
            .collect();
        println!("{}", serde_json::json!({ "subjects": rows }));
    } else {
        for s in subjects {
            println!("{}: {}", s.path(), s.names().collect::<Vec<_>>().join(", "));
        }
    }
    Ok(Outcome::Yes)
}

/// Prints a record in the form asked for, and stores it if asked to.
fn show_and_store(session: &Session, record: &mut Record, output: &Output) -> Result<Outcome, Failure> {
    save_and_show(session, record, output, |record| show(session, record, output))
}

/// Adds the remark, stores the record if asked to, then shows it. Stored first: under --json, a failure to store must be the only
/// object printed. Otherwise the figures are shown even if storing fails.
pub(crate) fn save_and_show(
    session: &Session,
    record: &mut Record,
    output: &Output,
    show: impl FnOnce(&Record) -> Result<(), Failure>,
) -> Result<Outcome, Failure> {
    record.remarks.extend(output.remark.clone());
    let stored = match &output.save {
        Some(root) => {
            let whole = record.clone();
            let kept = if output.save_samples { whole } else { whole.without_samples() };
            // A signal waits until the file has its name.
            let _ = signals::listen();
            let _held = signals::hold();
            kept.save(root).map(|path| eprintln!("saved: {}", lanework_study::text::shown(&path)))
        }
        None => Ok(()),
    };
    match stored {
        Err(e) if session.json => return Err(Failure::input(e)),
        Ok(()) => show(record)?,
        Err(e) => {
            show(record)?;
            return Err(Failure::input(e));
        }
    }
    Ok(Outcome::Yes)
}

fn show(session: &Session, record: &Record, output: &Output) -> Result<(), Failure> {
    if session.json {
        print!("{}", record.to_json().map_err(Failure::input)?);
    } else if output.csv {
        print!("{}", table::csv(&record.results));
    } else {
        print!("{}", table::render(record, session.style));
    }
    Ok(())
}

/// The inner half of a race: builds the same subject and measures it.
pub(crate) fn worker(session: &Session, args: &RaceArgs) -> Result<Outcome, Failure> {
    if !launch::is_worker() {
        return Err(Failure::input("__race: started by hand").help("`lanework bench` starts it"));
    }
    let mut subject = find(&session.context, &args.subject).ok_or_else(|| {
        Failure::input(format!("no subject '{}'", args.subject))
            .help("`lanework bench all --list` shows them")
    })?;
    subject.set_baseline(&args.baseline).map_err(Failure::input)?;
    let names: Vec<&str> = args.only.iter().map(String::as_str).collect();
    subject.keep(&names).map_err(Failure::input)?;
    launch::serve(&subject, &Monotonic::new(), &mut std::io::stdout()).map_err(Failure::input)?;
    Ok(Outcome::Yes)
}
