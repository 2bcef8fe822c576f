//! `lanework study`: published questions, asked again on this machine.
#![forbid(unsafe_code)]

mod answers;
mod measure;
mod original;
mod page;
mod phases;
mod workload;

use lanework_lab::study::{Study, render};
use lanework_lab::table;

use crate::args::{StudyArgs, WorkloadArgs};
use crate::bench;
use crate::outcome::{Failure, Outcome};
use crate::ui::Session;

use measure::{Measured, Runner};
use original::Plan;
use page::{Figures, Page};

/// The one study that there is; its files are also built in, so that the command works outside its repository.
const NAME: &str = "mayo-simd-threads";
const TOML: &str = include_str!("../../../studies/mayo-simd-threads/study.toml");
const TEMPLATE: &str = include_str!("../../../studies/mayo-simd-threads/study.md");

/// The rounds, the one that recommendations are decided on first.
const ROUNDS: [&str; 2] = ["round2", "round1"];
/// Whose phases are shown.
const PROFILED: [&str; 3] = ["portable", "avx2", "avx512"];

pub(crate) fn run(session: &Session, args: &StudyArgs) -> Result<Outcome, Failure> {
    if args.name == "list" {
        return list(session, args);
    }
    bench::one_form(session, &args.output)?;
    let (study, template) = load(args)?;
    let plan = Plan::of(&study).map_err(Failure::input)?;
    let runner = Runner::new(session, &plan, &study.name, args.full)?;
    let found = runner.measure(&ROUNDS)?;
    let profiles = phases::profile(&session.context.cpu, ROUNDS[0], &PROFILED)?;
    let figures = Figures { plan: &plan, found: &found };
    let page = page::page(&study.question, &figures, &profiles, &ROUNDS, args.full);
    bench::save_and_show(session, &found.record, &args.output, || {
        if session.json {
            println!("{}", as_json(&found, &page, &profiles)?);
        } else if args.output.csv {
            print!("{}", table::csv(&found.record.results));
        } else {
            print!("{}", render(&template, &page).map_err(Failure::input)?);
        }
        Ok(())
    })
}

/// The record, with the study's own findings beside it.
fn as_json(
    found: &Measured,
    page: &Page,
    profiles: &[phases::Profile],
) -> Result<serde_json::Value, Failure> {
    let record = found.record.to_json().map_err(Failure::input)?;
    let mut value: serde_json::Value = serde_json::from_str(&record).map_err(Failure::input)?;
    let seconds: Vec<_> = found
        .seconds
        .iter()
        .map(|((set, configuration), s)| {
            serde_json::json!({ "set": set, "configuration": configuration, "seconds": s.seconds })
        })
        .collect();
    let ran: Vec<_> =
        found.ran.iter().map(|(name, r)| serde_json::json!({ "configuration": name, "ran": r })).collect();
    value["findings"] = serde_json::json!({
        "seconds": seconds, "ran": ran, "phases": profiles, "recommendations": page.answers,
    });
    Ok(value)
}

/// The study's question and template: from the folder if it is there, else as built in.
fn load(args: &StudyArgs) -> Result<(Study, String), Failure> {
    if args.name != NAME {
        return Err(Failure::input(format!(
            "there is no study '{}'; `lanework study list` shows them",
            args.name
        )));
    }
    match measure::folder(&args.studies, &args.name) {
        Some(folder) => Study::load(&folder).map_err(Failure::input),
        None => Ok((Study::from_toml(NAME, TOML).map_err(Failure::input)?, TEMPLATE.to_owned())),
    }
}

fn list(session: &Session, args: &StudyArgs) -> Result<Outcome, Failure> {
    let studies = if args.studies.is_dir() {
        Study::list(&args.studies).map_err(Failure::input)?
    } else {
        vec![Study::from_toml(NAME, TOML).map_err(Failure::input)?]
    };
    if session.json {
        let rows: Vec<_> =
            studies.iter().map(|s| serde_json::json!({ "name": s.name, "question": s.question })).collect();
        println!("{}", serde_json::json!({ "studies": rows }));
    } else {
        for s in &studies {
            println!("{}: {}", s.name, s.question);
        }
    }
    Ok(Outcome::Yes)
}

/// One process of a study's workload: prints what ran. Exits 1 if a signature did not verify.
pub(crate) fn workload(session: &Session, args: &WorkloadArgs) -> Result<Outcome, Failure> {
    if args.name != NAME {
        return Err(Failure::input(format!("study '{}' has no workload", args.name)));
    }
    let set = workload::set(&args.subject)?;
    let configuration = workload::Configuration::parse(&args.configuration)?;
    let report = workload::run(&configuration, &session.context.cpu, set, args.count)?;
    println!("{}", serde_json::to_string(&report).map_err(Failure::input)?);
    Ok(Outcome::from_bool(report.valid == report.count))
}
