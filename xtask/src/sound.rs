//! `cargo xtask sound`: tests under an interpreter and under the compiler's sanitizers, and with mutated sources.
//!
//! Each needs tools that the stable toolchain lacks. A missing tool is reported with the command that installs it, and is never
//! counted as passed.
#![forbid(unsafe_code)]

mod planted;

use std::process::{Command, ExitCode, Stdio};

use clap::{Args, ValueEnum};

/// What to run.
#[derive(Args)]
pub(crate) struct Options {
    /// Which tools; all of them if none is named.
    tools: Vec<Tool>,
    /// Only this package; may be given several times.
    #[arg(long, short, value_name = "NAME")]
    package: Vec<String>,
}

/// A tool that tests run under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Tool {
    /// The interpreter: undefined behaviour of every kind, in portable code. It has no assembler and no wide vectors.
    Miri,
    /// AddressSanitizer: memory out of bounds or freed, in every backend that the processor has.
    Address,
    /// ThreadSanitizer, the standard library with it: races between threads that happen in the tests.
    Thread,
    /// Mutated arithmetic: each change of a source file must make a test fail.
    Mutants,
}

impl Tool {
    const ALL: [Tool; 4] = [Tool::Miri, Tool::Address, Tool::Thread, Tool::Mutants];

    /// The command that runs it, and the one that installs it.
    fn needs(self) -> (&'static [&'static str], &'static str) {
        match self {
            Tool::Miri => (&["+nightly", "miri", "--version"], "rustup +nightly component add miri rust-src"),
            Tool::Address => (&["+nightly", "--version"], "rustup toolchain install nightly"),
            Tool::Thread => (&["+nightly", "--version"], "rustup +nightly component add rust-src"),
            Tool::Mutants => (&["mutants", "--version"], "cargo install --locked cargo-mutants"),
        }
    }

    fn jobs(self) -> &'static [Job] {
        match self {
            Tool::Miri => MIRI,
            Tool::Address => ADDRESS,
            Tool::Thread => THREAD,
            Tool::Mutants => MUTANTS,
        }
    }
}

/// One package's tests under a tool.
struct Job {
    package: &'static str,
    /// Arguments of cargo.
    what: &'static [&'static str],
    /// Arguments of the tests: which to run, and which not.
    tests: &'static [&'static str],
}

const fn job(package: &'static str, what: &'static [&'static str], tests: &'static [&'static str]) -> Job {
    Job { package, what, tests }
}

/// Miri is some thousand times slower: tests that finish in minutes, some of which take fewer rounds there (`cfg!(miri)`).
const MIRI: &[Job] = &[
    job("lanework-cpu", &["--lib"], &[]),
    job(
        "lanework-integer",
        &["--test", "gcd", "--test", "oracle"],
        &["portable", "what_is_short", "long_quotients", "bytes_lead", "carry_edges", "shorter", "skewed"],
    ),
    job(
        "lanework-vdf",
        &["--lib"],
        &["number::", "euclid::", "stream::checks::carries", "prime::checks::small"],
    ),
    job("lanework-vdf", &["--test", "group", "--test", "tiny"], &[]),
    job(
        "lanework-mayo",
        &["--no-default-features", "--features", "std", "--lib"],
        &["field::", "portable::", "expand_tests::", "--skip", "long_streams"],
    ),
    job(
        "lanework-magma",
        &["--lib"],
        &[
            "limits::",
            "padding",
            "modes::tests::errors",
            "blocks_are_the",
            "counters_count",
            "products_add_up",
            "mgm::field::",
            "--skip",
            "unpadding_is_strict",
        ],
    ),
];

/// Without tests that watch memory themselves, or step through code and would step through the sanitizer's.
const ADDRESS: &[Job] = &[
    job("lanework-integer", &["--lib", "--test", "gcd", "--test", "oracle"], &[]),
    job("lanework-magma", &["--lib"], &["--skip", "leaks::"]),
    job("lanework-mayo", &["--lib", "--test", "backends", "--test", "batch"], &["--skip", "leaks::"]),
    job("lanework-vdf", &["--lib", "--test", "chain", "--test", "garbage", "--test", "prover"], &[]),
];

/// Tests that run on several threads.
const THREAD: &[Job] = &[
    job("lanework-cpu", &["--lib"], &["threads::"]),
    job("lanework-magma", &["--lib"], &["parallel", "batch::", "threads_change_nothing"]),
    job("lanework-mayo", &["--lib", "--test", "batch"], &["--skip", "leaks::", "batch::", "thread"]),
    job("study-*", &["--lib"], &["team::"]),
    job("lanework-vdf", &["--lib"], &["prover::"]),
];

/// Arithmetic whose every mutation a test must notice.
const MUTANTS: &[Job] = &[
    job("lanework-mayo", &["--file", "**/mayo/src/field.rs", "--file", "**/portable/words.rs"], &[]),
    job("lanework-magma", &["--file", "**/magma/src/mgm/field.rs"], &[]),
    job("lanework-integer", &["--file", "**/integer/src/limbs.rs"], &[]),
];

/// The target that sanitizers are for. Naming one keeps build scripts and macros free of them.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Runs the tools. The exit code is 3 if only something was missing.
pub(crate) fn run(options: &Options) -> ExitCode {
    let tools = if options.tools.is_empty() { &Tool::ALL[..] } else { &options.tools };
    let (mut failed, mut missing) = (false, false);
    for &tool in tools {
        let (probe, remedy) = tool.needs();
        let there = cargo().args(probe).stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !there.is_ok_and(|status| status.success()) {
            println!("SKIPPED {tool:?}: not on this machine; `{remedy}` installs it");
            missing = true;
            continue;
        }
        match planted::found(tool) {
            Ok(()) => println!("{tool:?}: the planted fault was found"),
            Err(why) => {
                println!("{tool:?}: FAILED, the planted fault was not found: {why}");
                failed = true;
                continue;
            }
        }
        for package in &options.package {
            if !tool.jobs().iter().any(|job| job.package == package) {
                println!("SKIPPED {tool:?}, {package}: none of its tests is on this tool's list");
                missing = true;
            }
        }
        for job in tool.jobs() {
            if !options.package.is_empty() && !options.package.iter().any(|p| p == job.package) {
                continue;
            }
            let unknown = match unknown(tool, job) {
                Ok(words) => words,
                Err(why) => {
                    println!("{tool:?}, {}: FAILED, {why}", job.package);
                    failed = true;
                    continue;
                }
            };
            for word in &unknown {
                println!("{tool:?}, {}: FAILED, no test has {word:?} in its name", job.package);
                failed = true;
            }
            let passed = command(tool, job).status().is_ok_and(|status| status.success());
            println!("{tool:?}, {}: {}", job.package, if passed { "passed" } else { "FAILED" });
            failed |= !passed;
        }
    }
    match (failed, missing) {
        (true, _) => ExitCode::FAILURE,
        (false, true) => ExitCode::from(3),
        (false, false) => ExitCode::SUCCESS,
    }
}

/// Cargo as its front end finds it, since other toolchains are selected by name.
fn cargo() -> Command {
    let mut command = Command::new("cargo");
    // Otherwise all children would get the toolchain that runs this.
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
    command
}

fn command(tool: Tool, job: &Job) -> Command {
    let mut cargo = watched(tool);
    if tool == Tool::Mutants {
        cargo.args(["--no-shuffle", "--package", job.package]).args(job.what);
    } else {
        cargo.args(["--package", job.package]).args(job.what).arg("--").args(job.tests);
    }
    cargo
}

/// The words of a job that are in no test's name: it would pass without running anything.
fn unknown(tool: Tool, job: &Job) -> Result<Vec<&'static str>, String> {
    if tool == Tool::Mutants {
        return Ok(Vec::new());
    }
    let mut cargo = watched(tool);
    cargo.args(["--package", job.package]).args(job.what).args(["--", "--list"]).stderr(Stdio::inherit());
    let output = cargo.output().map_err(|e| format!("cargo does not start: {e}"))?;
    if !output.status.success() {
        return Err("its tests could not be built or listed".to_owned());
    }
    Ok(named_by_none(&String::from_utf8_lossy(&output.stdout), job.tests))
}

/// The words for a test program that are in none of its listed names.
fn named_by_none<'a>(listed: &str, words: &[&'a str]) -> Vec<&'a str> {
    let names: Vec<&str> = listed.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    let words = words.iter().copied().filter(|word| !word.starts_with("--"));
    words.filter(|word| !names.iter().any(|name| name.contains(word))).collect()
}

/// Cargo with a tool's tests, built apart; otherwise every plain build would start anew.
fn watched(tool: Tool) -> Command {
    let mut cargo = cargo();
    let sanitizer = |cargo: &mut Command, name: &str| {
        cargo.args(["+nightly", "test", "--target", TARGET, "--target-dir", &format!("target/{name}")]);
        cargo.env("RUSTFLAGS", format!("-Zsanitizer={name} -Cforce-frame-pointers=yes"));
        // Memory that tests leak on purpose, to live as long as the program, is not a fault.
        cargo.env("ASAN_OPTIONS", "detect_leaks=0");
    };
    match tool {
        Tool::Miri => {
            cargo.args(["+nightly", "miri", "test", "--target-dir", "target/miri"]);
            // Tests read vector files; thread pools keep their memory, and their queues break the older of the two models of
            // aliasing.
            let flags = "-Zmiri-disable-isolation -Zmiri-tree-borrows -Zmiri-permissive-provenance -Zmiri-ignore-leaks";
            cargo.env("MIRIFLAGS", flags);
        }
        Tool::Address => sanitizer(&mut cargo, "address"),
        Tool::Thread => {
            sanitizer(&mut cargo, "thread");
            cargo.arg("-Zbuild-std");
        }
        Tool::Mutants => {
            cargo.args(["mutants", "--output", "target"]);
        }
    }
    cargo
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_test_program_of_a_job_exists() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository");
        let mut named = 0;
        for job in Tool::ALL.iter().flat_map(|tool| tool.jobs()) {
            for pair in job.what.windows(2).filter(|pair| pair[0] == "--test") {
                let folder = root.join("crates").join(job.package.trim_start_matches("lanework-"));
                let file = folder.join("tests").join(format!("{}.rs", pair[1]));
                assert!(file.is_file(), "{} has no test program {}", job.package, pair[1]);
                named += 1;
            }
        }
        assert!(named > 5);
    }

    #[test]
    fn words_without_a_test_are_told() {
        let listed = "number::tests::read: test\nprime::checks::small: test\n\n2 tests, 0 benchmarks\n";
        let words = ["number::", "prime::tests::", "--skip", "checks::small", "2 tests", "slow"];
        assert_eq!(named_by_none(listed, &words), ["prime::tests::", "2 tests", "slow"]);
        assert!(named_by_none("", &["--skip"]).is_empty());
    }
}
