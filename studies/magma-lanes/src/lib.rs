//! `magma-lanes`: what eight blocks at once, inlining, alignment and flags are worth, and how fast every lane is.

mod flags;
mod floor;
mod gcc;
mod page;
mod question;
mod races;
mod subjects;
mod variants;
mod verdict;

use std::path::PathBuf;

use clap::{Args, FromArgMatches};
use lanework_race::study::Study;
use lanework_study::{CORRECT, Entry, Failure, Found, Options, Outcome, Session, Workload, document};
use serde_json::json;

use question::Plan;

/// The study.
pub const ENTRY: Entry = Entry {
    subjects: subjects::subjects,
    workload: Some(workload),
    options: Own::augment_args,
    ..Entry::new("magma-lanes", [include_str!("../study.toml"), include_str!("../study.md")], run)
};

// The study's own options.
#[derive(Debug, Args)]
#[command(next_help_heading = "The study magma-lanes")]
#[group(skip)]
struct Own {
    /// Race kuznyechik-kernel's scalar code too: its magma.c, in a clone.
    #[arg(long, value_name = "FILE")]
    kuznyechik: Option<PathBuf>,
}

fn run(session: &Session, study: &Study, options: &Options) -> Result<Found, Failure> {
    let full = options.full;
    let plan = Plan::of(study).map_err(|why| Failure::input(why).help(CORRECT))?;
    let own = Own::from_arg_matches(&options.own).map_err(Failure::input)?;
    let measured = races::measure(session, study, &plan, own.kuznyechik.as_deref(), full)?;
    let page = page::page(&study.question, &plan, &measured, full);
    let findings = json!({ "flags": measured.flags.lines, "gcc": measured.flags.gcc, "gcc_version": measured.flags.gcc_version, "floors": page.shares, "verdict": page.verdict });
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
