//! `mayo-gpu`: what a GPU is worth for MAYO.
#![forbid(unsafe_code)]

mod device;
mod figures;
mod measure;
mod original;
mod page;
mod sanitizer;
mod threads;
mod verdict;

use lanework_race::study::Study;
use serde_json::json;

use super::{Entry, Found, document};
use crate::args::StudyArgs;
use crate::outcome::Failure;
use crate::ui::Session;
use original::Plan;

pub(super) const ENTRY: Entry = Entry {
    name: "mayo-gpu",
    toml: include_str!("../../../studies/mayo-gpu/study.toml"),
    template: include_str!("../../../studies/mayo-gpu/study.md"),
    run,
    workload: None,
};

fn run(session: &Session, study: &Study, args: &StudyArgs) -> Result<Found, Failure> {
    let plan = Plan::of(study).map_err(Failure::input)?;
    let measured = measure::measure(session, &study.name, &plan, args.full)?;
    let page = page::page(&study.question, &plan, &measured, args.full);
    let findings = json!({
        "device": measured.missing.as_ref().map_or_else(|| json!(measured.names()), |why| json!({ "not_here": why })),
        "emulated": measured.emulated, "checks": measured.checks, "memory": measured.memory,
        "joules": measured.joules, "threads": measured.threads,
        "cooperative_over_threads": threads::advantages(&measured), "verdict": page.verdict,
    });
    Ok(Found { page: document(&page)?, findings, holds: true, record: measured.record })
}
