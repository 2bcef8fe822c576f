//! Repository chores: what cargo alone does not do. Run as `cargo xtask VERB`.
#![forbid(unsafe_code)]

mod cuda;
mod fuzz;
mod long;
mod peers;
mod readme;
mod real_code;
mod removal;
mod sound;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Repository chores.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Compile the kernels for CUDA devices, judge their machine code, and check that what ships is of its sources.
    Cuda(cuda::Options),
    /// Run what takes too long for every change, and keep a log of it; with --check judge that log.
    Long(long::Options),
    /// Build other people's implementations as shared libraries, outside the source tree.
    Peers(peers::Options),
    /// Renew the tables and the picture of the documents and the studies' results from the committed records; with --check fail if they
    /// differ.
    Readme(readme::Options),
    /// Respill's analysis and proved rewrites of code that nobody here wrote, built and run, with one committed table.
    RealCode(real_code::Options),
    /// Remove a study in a scratch copy: nothing may name it any more, and the command must compile.
    Removal(removal::Options),
    /// Tests under Miri and the sanitizers, and with mutated sources.
    Sound(sound::Options),
    /// Replay the fuzz targets' corpus and mutate it for a while, with a stable toolchain.
    Fuzz(fuzz::Options),
}

/// What went wrong, and what to do about it, in the form of the command's messages.
struct Complaint {
    what: String,
    help: Option<String>,
}

impl From<String> for Complaint {
    fn from(what: String) -> Complaint {
        Complaint { what, help: None }
    }
}

impl Complaint {
    fn help(mut self, help: impl Into<String>) -> Complaint {
        self.help = Some(help.into());
        self
    }

    fn print(&self) {
        eprintln!("error: {}", self.what);
        if let Some(help) = &self.help {
            eprintln!("help: {help}");
        }
    }
}

fn main() -> ExitCode {
    match Arguments::parse().verb {
        Verb::Cuda(options) => cuda::run(&options),
        Verb::Long(options) => long::run(&options),
        Verb::Peers(options) => peers::run(&options),
        Verb::Readme(options) => readme::run(&options),
        Verb::RealCode(options) => real_code::run(&options),
        Verb::Removal(options) => removal::run(&options),
        Verb::Sound(options) => sound::run(&options),
        Verb::Fuzz(options) => fuzz::run(&options),
    }
}
