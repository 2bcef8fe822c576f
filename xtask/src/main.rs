//! Repository chores: what cargo alone does not do. Run as `cargo xtask VERB`.
#![forbid(unsafe_code)]

mod cuda;
mod fuzz;
mod install;
mod long;
mod peers;
mod readme;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
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
    /// Compile the kernels for CUDA devices, lint their machine code, and check shipped programs against their sources.
    Cuda(cuda::Options),
    /// Build liblanework and install it, its header and its pkg-config file.
    Install(install::Options),
    /// Run the checks that take too long for every change, and log them; with --check, check that log.
    Long(long::Options),
    /// Build other people's implementations as shared libraries, outside the source tree.
    Peers(peers::Options),
    /// Regenerate the documents' tables and picture and the studies' results from the committed records; with --check, fail if they
    /// differ.
    Readme(readme::Options),
    /// Run respill's analysis and proved rewrites on third-party code, and compare with one committed table.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    RealCode(real_code::Options),
    /// Remove a study in a scratch copy: nothing may still name it, and the command must compile.
    Removal(removal::Options),
    /// Run tests under Miri and the sanitizers, and with mutated sources.
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
        Verb::Install(options) => install::run(&options),
        Verb::Long(options) => long::run(&options),
        Verb::Peers(options) => peers::run(&options),
        Verb::Readme(options) => readme::run(&options),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        Verb::RealCode(options) => real_code::run(&options),
        Verb::Removal(options) => removal::run(&options),
        Verb::Sound(options) => sound::run(&options),
        Verb::Fuzz(options) => fuzz::run(&options),
    }
}
