//! `mayo-gpu`: what a GPU is worth for MAYO.
#![forbid(unsafe_code)]

mod device;
mod figures;
mod page;
mod question;
mod races;
mod sanitizer;
mod subjects;
mod threads;
mod verdict;

use lanework_race::study::Study;
use lanework_study::{Entry, Failure, Found, Options, Outcome, Session, document};
use serde_json::json;

use question::Plan;

/// The study.
pub const ENTRY: Entry = Entry {
    subjects: subjects::subjects,
    ..Entry::new("mayo-gpu", [include_str!("../study.toml"), include_str!("../study.md")], run)
};

fn run(session: &Session, study: &Study, options: &Options) -> Result<Found, Failure> {
    let plan = Plan::of(study).map_err(Failure::input)?;
    let measured = races::measure(session, &study.name, &plan, options.full)?;
    let page = page::page(&study.question, &plan, &measured, options.full);
    let findings = json!({
        "device": measured.missing.as_ref().map_or_else(|| json!(measured.names()), |why| json!({ "not_here": why })),
        "emulated": measured.emulated, "checks": measured.checks, "memory": measured.memory,
        "joules": measured.joules, "threads": measured.threads,
        "cooperative_over_threads": threads::advantages(&measured), "verdict": page.verdict,
    });
    Ok(Found { page: document(&page)?, findings, outcome: Outcome::Yes, record: measured.record })
}
