//! `cargo xtask fuzz`: the runner of `lanework-fuzz`, built as it is shipped but with overflow checks.
#![forbid(unsafe_code)]

use std::process::{Command, ExitCode};

use clap::Args;

use crate::Complaint;

/// What to fuzz, and how long.
#[derive(Args)]
pub(crate) struct Options {
    /// Mutated inputs for each target.
    #[arg(long, default_value_t = 1000)]
    runs: u64,
    /// Seconds for each target; by default only the runs count.
    #[arg(long)]
    seconds: Option<u64>,
    /// Seed of the mutations; a new one each time by default.
    #[arg(long)]
    seed: Option<u64>,
    /// Also the targets that compare with other people's implementations, which `cargo xtask peers` builds.
    #[arg(long)]
    peers: bool,
    /// Only these targets.
    targets: Vec<String>,
}

/// Runs the fuzzer; its exit code is ours.
pub(crate) fn run(options: &Options) -> ExitCode {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["run", "--release", "--quiet", "--package", "lanework-fuzz", "--bin", "replay"]);
    if options.peers {
        cargo.args(["--features", "peers"]);
    }
    cargo.args(["--config", "profile.release.overflow-checks=true", "--"]);
    cargo.args(["--runs", &options.runs.to_string()]);
    if let Some(seconds) = options.seconds {
        cargo.args(["--seconds", &seconds.to_string()]);
    }
    if let Some(seed) = options.seed {
        cargo.args(["--seed", &seed.to_string()]);
    }
    // A second assembler is not asked about what GNU as refuses, mostly for good reasons: it takes ten times as long to start.
    if std::env::var_os("LANEWORK_AS").is_none() {
        cargo.env("LANEWORK_AS", "as --64");
    }
    match cargo.args(&options.targets).status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            Complaint::from(format!("cargo does not start: {error}")).print();
            ExitCode::FAILURE
        }
    }
}
