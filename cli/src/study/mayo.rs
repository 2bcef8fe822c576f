//! `mayo-simd-threads`: whether vectors, threads or both pay for MAYO.
#![forbid(unsafe_code)]

mod answers;
mod measure;
mod original;
mod page;
pub(super) mod phases;
mod workload;

use lanework_race::study::Study;

use crate::args::{StudyArgs, WorkloadArgs};
use crate::outcome::{Failure, Outcome};
use crate::ui::Session;

use super::{Entry, Found, document};
use measure::{Measured, Runner};
use original::Plan;
use page::{Figures, Page};

/// The rounds, the one that recommendations are decided on first.
const ROUNDS: [&str; 2] = ["round2", "round1"];
/// Whose phases are shown.
const PROFILED: [&str; 3] = ["portable", "avx2", "avx512"];

pub(super) const ENTRY: Entry = Entry {
    name: "mayo-simd-threads",
    toml: include_str!("../../../studies/mayo-simd-threads/study.toml"),
    template: include_str!("../../../studies/mayo-simd-threads/study.md"),
    run,
    workload: Some(workload),
};

fn run(session: &Session, study: &Study, args: &StudyArgs) -> Result<Found, Failure> {
    let full = args.full;
    let plan = Plan::of(study).map_err(Failure::input)?;
    let runner = Runner::new(session, &plan, &study.name, full)?;
    let found = runner.measure(&ROUNDS)?;
    let profiles = phases::profile(&session.context.cpu, ROUNDS[0], &PROFILED)?;
    let figures = Figures { plan: &plan, found: &found };
    let page = page::page(&study.question, &figures, &profiles, &ROUNDS, full);
    let findings = findings(&found, &page, &profiles);
    Ok(Found { page: document(&page)?, findings, holds: true, record: found.record })
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
        "seconds": seconds, "ran": ran, "phases": profiles, "recommendations": page.answers,
    })
}

/// One process of the workload: prints what ran. Exits 1 if a signature did not verify.
fn workload(session: &Session, args: &WorkloadArgs) -> Result<Outcome, Failure> {
    let set = workload::set(&args.subject)?;
    let configuration = workload::Configuration::parse(&args.configuration)?;
    let report = workload::run(&configuration, &session.context.cpu, set, args.count)?;
    println!("{}", serde_json::to_string(&report).map_err(Failure::input)?);
    Ok(Outcome::from_bool(report.valid == report.count))
}
