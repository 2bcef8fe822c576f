//! What a study is made of: a session, races in processes of the command, tables, and [`Entry`] for a study with code of its own.
//!
//! The command is built on the same session, races and outcomes.
#![forbid(unsafe_code)]

use clap::ArgMatches;
use lanework_race::record::Record;
use lanework_race::study::Study;
use lanework_race::subject::Subject;
pub use lanework_race::text;
use lanework_suite::Context;

pub mod compiler;
pub mod data;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod leaks;
pub mod markdown;
mod outcome;
pub mod process;
pub mod races;
mod session;
mod spill;

pub use outcome::{Failure, Message, Outcome};

/// The remedy for a `study.toml` that a study cannot use.
pub const CORRECT: &str = "correct study.toml, or remove the folder to run the study as it is built in";
pub use session::Session;
pub use spill::{Keep, Spill};

/// A study with code of its own. Its files are built in, so that the command works outside its repository.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The folder's name.
    pub name: &'static str,
    /// `study.toml`.
    pub toml: &'static str,
    /// `study.md`.
    pub template: &'static str,
    /// Adds the study's own options to `lanework study`, each with a name that no other study uses.
    pub options: fn(clap::Command) -> clap::Command,
    /// Subjects that this study alone races.
    pub subjects: fn(&Context) -> Vec<Subject>,
    /// Measures all of it.
    pub run: fn(&Session, &Study, &Options) -> Result<Found, Failure>,
    /// One process of its workload, where it starts any.
    pub workload: Option<Work>,
}

impl Entry {
    /// A study without options, subjects and workload of its own.
    #[must_use]
    pub const fn new(
        name: &'static str,
        [toml, template]: [&'static str; 2],
        run: fn(&Session, &Study, &Options) -> Result<Found, Failure>,
    ) -> Entry {
        Entry {
            name,
            toml,
            template,
            options: |command| command,
            subjects: |_| Vec::new(),
            run,
            workload: None,
        }
    }
}

/// Runs one process of a workload and prints what ran.
pub type Work = fn(&Session, &Workload) -> Result<Outcome, Failure>;

/// What the user gave `lanework study`.
#[derive(Clone, Debug)]
pub struct Options {
    /// Enough runs for publishing.
    pub full: bool,
    /// The arguments, from which a study takes its own options.
    pub own: ArgMatches,
    /// Keeps homes of spilled values on this machine.
    pub keep: Keep,
}

/// One process of a study's workload.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Which configuration.
    pub configuration: String,
    /// The subject within it.
    pub subject: String,
    /// How many operations.
    pub count: usize,
}

/// What a study found.
#[derive(Clone, Debug)]
pub struct Found {
    /// What was measured.
    pub record: Record,
    /// The values that the template may name.
    pub page: serde_json::Value,
    /// The same as data, which the record keeps; null where the rows say all.
    pub findings: serde_json::Value,
    /// Whether what it checks holds, or cannot be told on this machine; [`Outcome::Yes`] of a study that checks nothing.
    pub outcome: Outcome,
}

/// A page as the template takes it.
///
/// # Errors
/// [`Failure::input`] where it cannot be JSON.
pub fn document(page: impl serde::Serialize) -> Result<serde_json::Value, Failure> {
    serde_json::to_value(page).map_err(Failure::input)
}
