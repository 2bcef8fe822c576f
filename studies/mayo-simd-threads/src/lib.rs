//! `mayo-simd-threads`: whether vectors, threads or both pay for MAYO.

mod answers;
pub mod backends;
mod builds;
mod forked;
mod page;
mod question;
mod races;
pub mod round1;
pub mod sets;
mod workload;

use lanework_mayo::Params;
use lanework_race::study::Study;
use lanework_study::{Entry, Failure, Found, Options, Outcome, Session, Workload, document};
use lanework_suite::mayo::phases;

use page::{Figures, Page};
use question::Plan;
use races::{Measured, Runner};

/// The rounds; recommendations are decided on the first.
const ROUNDS: [&str; 2] = ["round2", "round1"];
/// Backends whose phases are shown.
const PROFILED: [&str; 3] = ["portable", "avx2", "avx512"];

/// The study.
pub const ENTRY: Entry = Entry {
    workload: Some(workload),
    ..Entry::new("mayo-simd-threads", [include_str!("../study.toml"), include_str!("../study.md")], run)
};

fn run(session: &Session, study: &Study, options: &Options) -> Result<Found, Failure> {
    let full = options.full;
    let plan = Plan::of(study).map_err(Failure::input)?;
    let runner = Runner::new(session, &plan, &study.name, full)?;
    let found = runner.measure(&ROUNDS)?;
    let sets: Vec<_> = Params::all().filter(|params| params.path().starts_with(ROUNDS[0])).collect();
    let profiles = phases::profile(&session.context.cpu, &sets, &PROFILED).map_err(Failure::refused)?;
    let figures = Figures { plan: &plan, found: &found };
    let page = page::page(&study.question, &figures, &profiles, &ROUNDS, full);
    let findings = findings(&found, &page, &profiles);
    Ok(Found { page: document(&page)?, findings, outcome: Outcome::Yes, record: found.record })
}

fn findings(found: &Measured, page: &Page, profiles: &[phases::Profile]) -> serde_json::Value {
    let seconds: Vec<_> = found
        .seconds
        .iter()
        .map(|((set, configuration), s)| {
            serde_json::json!({ "set": set, "configuration": configuration, "seconds": s.seconds })
        })
        .collect();
    let ran: Vec<_> =
        found.ran.iter().map(|(name, r)| serde_json::json!({ "configuration": name, "ran": r })).collect();
    serde_json::json!({
        "seconds": seconds, "ran": ran, "builds": found.builds, "phases": profiles, "recommendations": page.answers,
    })
}

/// One process of the workload: prints what ran. Exits 1 if a signature did not verify.
fn workload(session: &Session, args: &Workload) -> Result<Outcome, Failure> {
    let set = workload::set(&args.subject)?;
    let configuration = workload::Configuration::parse(&args.configuration)?;
    let report = if builds::is_build(&configuration.backend) {
        builds::run(&session.context, &configuration, set, args.count)?
    } else {
        workload::run(&configuration, &session.context.cpu, set, args.count)?
    };
    println!("{}", serde_json::to_string(&report).map_err(Failure::input)?);
    Ok(Outcome::from_bool(report.valid == report.count))
}
