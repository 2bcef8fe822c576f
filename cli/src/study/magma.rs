//! `magma-lanes`: what eight blocks at once, inlining, alignment and flags are worth, and how fast every lane is.
#![forbid(unsafe_code)]

mod flags;
mod floor;
mod measure;
mod original;
mod page;
mod verdict;

use lanework_race::study::Study;
use serde_json::json;

use super::{Entry, Found, document};
use crate::args::{StudyArgs, WorkloadArgs};
use crate::outcome::{Failure, Outcome};
use crate::ui::Session;
use original::Plan;

pub(super) const ENTRY: Entry = Entry {
    name: "magma-lanes",
    toml: include_str!("../../../studies/magma-lanes/study.toml"),
    template: include_str!("../../../studies/magma-lanes/study.md"),
    run,
    workload: Some(workload),
};

fn run(session: &Session, study: &Study, args: &StudyArgs) -> Result<Found, Failure> {
    let full = args.full;
    let plan = Plan::of(study).map_err(Failure::input)?;
    let measured = measure::measure(session, study, &plan, full)?;
    let page = page::page(&study.question, &plan, &measured, full);
    let findings = json!({ "flags": measured.flags, "floors": page.shares, "verdict": page.verdict });
    Ok(Found { page: document(&page)?, findings, holds: true, record: measured.record })
}

/// One process of the report's loop: prints the blocks of its last operation.
fn workload(session: &Session, args: &WorkloadArgs) -> Result<Outcome, Failure> {
    if args.subject != "constant" {
        return Err(Failure::input(format!(
            "no subject '{}' in this workload; there is constant",
            args.subject
        )));
    }
    let report = flags::run(session, &args.configuration, args.count)?;
    println!("{}", serde_json::to_string(&report).map_err(Failure::input)?);
    Ok(Outcome::Yes)
}
