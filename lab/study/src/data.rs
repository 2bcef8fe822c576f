//! Studies that are data: a folder with `study.toml` and `study.md` that races what exists.
//!
//! `study.toml` has the question, `[quick]` and `[full]` (seconds for all races, launches that each is spread over), and one `[[race]]` or
//! more. `subject` is a path or a pattern as `bench` takes it. `baseline` lists variants, of which the first that can run here is taken.
//! `variants` are raced against it (`"*"`: every one; `"backends"`: ours; `"threads"`: ours on several threads). The template sees
//! everything else in the file as `asked`.
//!
//! `study.md` is a template; `Page` lists the names that it may use.
#![forbid(unsafe_code)]

use lanework_race::record::ResultRow;
use lanework_race::study::Study;
use lanework_race::subject::Subject;
use lanework_race::table::{ends, folded, time, times, verdict};
use lanework_suite::Context;
use serde::{Deserialize, Serialize};

use crate::markdown::{strings, table};
use crate::races::{Effort, Race, allowed, race_all};
use crate::{Failure, Found, Options, Outcome, Session, document};

/// `study.toml` behind its question.
#[derive(Debug, Deserialize)]
struct Question {
    quick: Mode,
    full: Mode,
    race: Vec<AskedRace>,
    #[serde(flatten)]
    rest: toml::Table,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mode {
    seconds: f64,
    launches: u32,
}

/// One `[[race]]`: a race for each subject that the pattern selects.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskedRace {
    /// A path or a pattern.
    pub subject: String,
    /// Variants; the first that can run here is taken.
    pub baseline: Vec<String>,
    /// Variants to race against it, `"*"`, `"backends"` or `"threads"`.
    pub variants: Vec<String>,
}

/// What a template may name: [`NAMES`].
#[derive(Serialize)]
struct Page {
    /// The question.
    question: String,
    /// The rest of `study.toml`.
    asked: toml::Table,
    /// The machine, a line for each fact.
    machine: String,
    /// The command that made the page.
    command: String,
    /// Whether this is the full form.
    full: bool,
    /// Seconds for all races, and launches that each was spread over.
    seconds: f64,
    launches: u32,
    /// Every row in one table.
    table: String,
    /// Every row: `subject`, `variant`, `baseline`, `ratio`, `low`, `high`, `verdict`, `bytes`, `median` and what else a record holds.
    rows: Vec<serde_json::Value>,
    /// Contestants that cannot run here, and why.
    not_here: Vec<String>,
    /// Remarks on the run.
    remarks: Vec<String>,
}

/// The fields of [`Page`].
const NAMES: [&str; 11] = [
    "question", "asked", "machine", "command", "full", "seconds", "launches", "table", "rows", "not_here",
    "remarks",
];

/// The remedy for a `study.toml` or `study.md` that cannot be used.
const CORRECT: &str = "correct it: CONTRIBUTING.md lists what a study may name";

/// Among a race's variants: every backend of the primitive.
const BACKENDS: &str = "backends";
/// The same on several threads.
const THREADS: &str = "threads";

/// Whether this is a study that needs no code of its own.
pub fn is_one(study: &Study) -> bool {
    study.table.contains_key("race")
}

/// Refuses a template that names what no page has, before anything is raced.
///
/// # Errors
/// [`Failure`]: the template cannot be parsed, or names something else.
pub fn check(study: &Study, template: &str) -> Result<(), Failure> {
    let wrong = |why: String| Failure::input(format!("{}/study.md: {why}", study.name));
    let names = lanework_race::study::names(template).map_err(|e| wrong(e.to_string()).help(CORRECT))?;
    match names.iter().find(|name| !NAMES.contains(&name.as_str())) {
        Some(name) => Err(wrong(format!("no page has '{name}'")).help(format!("use {}", NAMES.join(", ")))),
        None => Ok(()),
    }
}

/// The races that a `[[race]]` selects here, and the names that no subject has as a variant: peers' without `--peers`, or misspelt ones. A
/// subject needs a baseline and a variant that can run. `own`: the study's own subjects, which are searched too.
///
/// # Errors
/// Where no subject matches: a sentence saying so.
pub fn races(
    context: &Context,
    own: Vec<Subject>,
    asked: &AskedRace,
) -> Result<(Vec<Race>, Vec<String>), String> {
    let mut subjects = own;
    subjects.extend(lanework_suite::all(context));
    subjects.retain(|subject| lanework_suite::selects(&asked.subject, subject.path()));
    if subjects.is_empty() {
        return Err(format!("no subject matches '{}'", asked.subject));
    }
    let known = |name: &&String| {
        ["*", BACKENDS, THREADS].contains(&name.as_str())
            || subjects.iter().any(|s| s.names().any(|n| n == *name))
    };
    let strangers = asked.baseline.iter().chain(&asked.variants).filter(|name| !known(name)).cloned();
    let races = subjects.iter().filter_map(|subject| race(subject, &asked.baseline, &asked.variants));
    Ok((races.collect(), strangers.collect()))
}

fn race(subject: &Subject, baselines: &[String], variants: &[String]) -> Option<Race> {
    let all: Vec<_> = std::iter::once(subject.baseline()).chain(subject.challengers()).collect();
    let here = |name: &String| all.iter().any(|v| v.name() == name && v.prepare().is_ok());
    let baseline = baselines.iter().find(|name| here(name))?.clone();
    let ours: Vec<&str> = lanework_suite::primitives()
        .into_iter()
        .filter(|(primitive, _)| subject.path().split('/').next() == Some(primitive))
        .flat_map(|(_, names)| names)
        .collect();
    let wanted = |name: &str| {
        variants.iter().any(|v| match v.as_str() {
            "*" => true,
            BACKENDS => ours.contains(&name),
            THREADS => name.contains("+threads="),
            v => v == name,
        })
    };
    let challengers: Vec<String> =
        all.iter().map(|v| v.name()).filter(|n| *n != baseline && wanted(n)).map(str::to_owned).collect();
    (!challengers.is_empty()).then(|| Race { subject: subject.path().to_owned(), baseline, challengers })
}

fn result_table(rows: &[ResultRow]) -> String {
    let header = strings(&["subject", "variant", "time", "over", "ratio", "interval", "verdict"]);
    let cells = |r: &ResultRow| {
        let [low, high] = ends(r);
        vec![
            r.subject.clone(),
            r.variant.clone(),
            time(r.median),
            r.baseline.clone(),
            times(r.ratio),
            format!("{low} to {high}"),
            verdict(r).to_owned(),
        ]
    };
    table(&header, &rows.iter().map(cells).collect::<Vec<_>>())
}

/// Runs the races of a study from data.
///
/// # Errors
/// [`Failure`]: a wrong `study.toml`, no race that can run here, or a gate that stayed shut.
pub fn run(session: &Session, study: &Study, options: &Options) -> Result<Found, Failure> {
    let wrong = |why: String| Failure::input(format!("{}/study.toml: {why}", study.name)).help(CORRECT);
    let asked: Question =
        study.table.clone().try_into().map_err(|e: toml::de::Error| wrong(e.to_string()))?;
    for (name, mode) in [("quick", &asked.quick), ("full", &asked.full)] {
        allowed(mode.seconds).map_err(|why| wrong(format!("[{name}] seconds: {why}")))?;
        if !(1..=100).contains(&mode.launches) {
            return Err(wrong(format!("[{name}] launches: {}, from 1 to 100 are allowed", mode.launches)));
        }
    }
    let mode = if options.full { &asked.full } else { &asked.quick };
    let (mut all, mut missing) = (Vec::new(), Vec::new());
    for one in &asked.race {
        let (races, strangers) = races(&session.context, Vec::new(), one)
            .map_err(|why| wrong(why).help("`lanework bench all --list` shows them"))?;
        all.extend(races);
        let why = if session.context.peers.is_some() {
            "is not a variant of it"
        } else {
            "is not a variant of it without --peers"
        };
        missing.extend(strangers.iter().map(|name| format!("{}: {name} {why}", one.subject)));
    }
    if all.is_empty() {
        let what = format!("{}: none of its races can be run here: {}", study.name, missing.join(", "));
        return Err(Failure::unavailable(what).help("`lanework bench all --list` shows the variants here"));
    }
    let effort = Effort { seconds: mode.seconds, launches: mode.launches, core: None };
    let record = race_all(session, &study.name, &all, &effort)?;
    let not_here = record.not_here.iter().map(|n| (n.subject.as_str(), n.variant.as_str(), n.why.as_str()));
    let page = Page {
        question: study.question.clone(),
        asked: asked.rest,
        machine: record.machine.summary(),
        command: record.command.clone(),
        full: options.full,
        seconds: mode.seconds,
        launches: mode.launches,
        table: result_table(&record.results),
        rows: record.results.iter().map(document).collect::<Result<_, _>>()?,
        not_here: folded(not_here).into_iter().chain(missing).collect(),
        remarks: record.remarks.clone(),
    };
    Ok(Found { page: document(&page)?, findings: serde_json::Value::Null, outcome: Outcome::Yes, record })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_may_name_the_fields_of_a_page_and_nothing_else() {
        let page = Page {
            question: String::new(),
            asked: toml::Table::new(),
            machine: String::new(),
            command: String::new(),
            full: false,
            seconds: 0.0,
            launches: 0,
            table: String::new(),
            rows: Vec::new(),
            not_here: Vec::new(),
            remarks: Vec::new(),
        };
        let page = serde_json::to_value(page).expect("a page");
        let mut fields: Vec<&str> = page.as_object().expect("an object").keys().map(String::as_str).collect();
        let mut names = NAMES.to_vec();
        fields.sort_unstable();
        names.sort_unstable();
        assert_eq!(fields, names);
    }
}
