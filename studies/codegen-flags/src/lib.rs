//! `codegen-flags`: every CPU backend rebuilt under other flags of the compiler, and the builds raced.
#![forbid(unsafe_code)]

mod build;
mod page;
mod question;
mod races;
mod store;

use std::path::PathBuf;

use clap::{Args, FromArgMatches};
use lanework_race::study::Study;
use lanework_study::{CORRECT, Entry, Failure, Found, Options, Outcome, Session, document};
use serde_json::json;

use question::Question;

/// The study.
pub const ENTRY: Entry = Entry {
    options: Own::augment_args,
    ..Entry::new("codegen-flags", [include_str!("../study.toml"), include_str!("../study.md")], run)
};

// The study's own options.
#[derive(Debug, Args)]
#[command(next_help_heading = "The study codegen-flags")]
#[group(skip)]
struct Own {
    /// Directory that holds the builds.
    #[arg(long, value_name = "DIR")]
    builds: Option<PathBuf>,
    /// Race the builds in that directory, and make none.
    #[arg(long)]
    as_built: bool,
    /// Make the builds, and time nothing.
    #[arg(long, conflicts_with = "as_built")]
    build_only: bool,
}

fn run(session: &Session, study: &Study, options: &Options) -> Result<Found, Failure> {
    let asked = Question::of(study).map_err(|why| Failure::input(why).help(CORRECT))?;
    let own = Own::from_arg_matches(&options.own).map_err(Failure::input)?;
    let wanted =
        races::Wanted { folder: own.builds.as_deref(), as_built: own.as_built, build_only: own.build_only };
    let measured = races::measure(session, &asked, &wanted, options.full)?;
    let page = page::page(&study.question, &asked, &measured, options.full);
    let findings = json!({ "builds": measured.builds, "flags": page.flags, "told": page.verdict });
    Ok(Found { page: document(&page)?, findings, outcome: Outcome::Yes, record: measured.record })
}
