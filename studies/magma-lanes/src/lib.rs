//! `magma-lanes`: what eight blocks at once, inlining, alignment and flags are worth, and how fast every lane is.

mod flags;
mod floor;
mod page;
mod question;
mod races;
mod subjects;
mod variants;
mod verdict;

use lanework_race::study::Study;
use lanework_study::{CORRECT, Entry, Failure, Found, Options, Outcome, Session, Workload, document};
use serde_json::json;

use question::Plan;

/// The study.
pub const ENTRY: Entry = Entry {
    subjects: subjects::subjects,
    workload: Some(workload),
    ..Entry::new("magma-lanes", [include_str!("../study.toml"), include_str!("../study.md")], run)
};

fn run(session: &Session, study: &Study, options: &Options) -> Result<Found, Failure> {
    let full = options.full;
    let plan = Plan::of(study).map_err(|why| Failure::input(why).help(CORRECT))?;
    let measured = races::measure(session, study, &plan, full)?;
    let page = page::page(&study.question, &plan, &measured, full);
    let findings = json!({ "flags": measured.flags, "floors": page.shares, "verdict": page.verdict });
    Ok(Found { page: document(&page)?, findings, outcome: Outcome::Yes, record: measured.record })
}

/// One process of the report's loop: prints the blocks of its last operation.
fn workload(session: &Session, args: &Workload) -> Result<Outcome, Failure> {
    if args.subject != "constant" {
        return Err(
            Failure::input(format!("no subject '{}' in this workload", args.subject)).help("name constant")
        );
    }
    let report = flags::run(session, &args.configuration, args.count)?;
    println!("{}", serde_json::to_string(&report).map_err(Failure::input)?);
    Ok(Outcome::Yes)
}
