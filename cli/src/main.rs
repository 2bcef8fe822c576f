//! `lanework`: check every backend, race them, keep what won.
#![deny(unsafe_code)]

mod args;
mod bench;
mod check;
mod choice;
mod doctor;
mod echo;
mod files;
mod history;
mod leaks;
mod magma;
mod mayo;
mod profile;
#[cfg(all(test, feature = "study"))]
mod reference;
mod report;
mod respill;
mod scratch;
mod secret_file;
mod signals;
#[cfg(feature = "study")]
mod study;
mod sys;
mod tour;
mod tune;
mod ui;
mod vdf;

use std::io::Write as _;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use lanework_study::{Failure, Outcome};

use args::{Cli, Command};
use ui::Session;

fn main() -> ExitCode {
    ui::end_without_panic_on_closed_streams();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(usage) => return ExitCode::from(misused(usage)),
    };
    let (json, keys) = (cli.global.json, cli.reads_keys());
    let code = match run(cli) {
        Ok(outcome) => outcome.code(),
        Err(failure) => {
            failure.print(json);
            failure.code()
        }
    };
    if keys {
        // They were moved on the stack below, and a move leaves a copy behind.
        lanework_cpu::memory::wipe_stack_and_registers::<STACK_TO_WIPE>();
    }
    ExitCode::from(code)
}

/// Bytes of stack that are wiped at the end: more than the commands that read keys use.
const STACK_TO_WIPE: usize = 256 * 1024;

/// Prints help, the version, or the error in the arguments; under `--json` an error is an object too. Returns the exit code.
fn misused(mut usage: clap::Error) -> u8 {
    echo::shorten(&mut usage);
    // The arguments did not parse, so the flag is looked up by hand.
    let json = std::env::args_os().skip(1).take_while(|a| a != "--").any(|a| a == "--json");
    if !usage.use_stderr() {
        return match usage.print().and_then(|()| std::io::stdout().flush()) {
            // A reader may stop early.
            Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
                let failure = Failure::input(format!("standard output: {e}"));
                failure.print(json);
                failure.code()
            }
            _ => 0,
        };
    }
    match echo::message(&usage) {
        Some(message) => Failure::input(message).print(json),
        None => {
            if json {
                Failure::input("no command").help("--help lists them").print(json);
            }
            let _ = usage.print();
        }
    }
    2
}

fn run(cli: Cli) -> Result<Outcome, Failure> {
    if cli.prints() {
        files::needs_standard_output()?;
    }
    let session = Session::new(&cli.global)?;
    match cli.command {
        Some(_) if cli.verbose => Err(Failure::input("--verbose: an option of the tour")
            .help("leave it out, or run `lanework --verbose` alone")),
        None => tour::run(&session, cli.verbose),
        Some(Command::Doctor) => doctor::run(&session),
        Some(Command::Check(a)) if a.leaks => leaks::run(&session, &a),
        Some(Command::Check(a)) => check::run(&session, &a),
        Some(Command::Bench(a)) => bench::run(&session, &a),
        Some(Command::Compare(a)) => bench::compare(&session, &a),
        Some(Command::Tune(a)) => tune::run(&session, &a),
        #[cfg(feature = "study")]
        Some(Command::Study(a)) => study::run(&session, &a),
        Some(Command::Report(a)) => report::run(&session, &a),
        Some(Command::History(a)) => history::run(&session, &a),
        Some(Command::Magma(a)) => magma::run(&session, a),
        Some(Command::Mayo(a)) => mayo::run(&session, a),
        Some(Command::Vdf(a)) => vdf::run(&session, a),
        Some(Command::Respill(a)) => respill::run(&session, a),
        Some(Command::Completions { shell }) => {
            // Into memory first: the generator panics if it cannot write.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "lanework", &mut script);
            files::print(&script)?;
            Ok(Outcome::Yes)
        }
        Some(Command::Man { out }) => files::man_pages(&Cli::command(), out.as_deref()),
        Some(Command::Memcheck(a)) => leaks::under_memcheck(&session, &a),
        Some(Command::Timing(a)) => leaks::timing(&session, a),
        Some(Command::Race(a)) => bench::worker(&session, &a),
        #[cfg(feature = "study")]
        Some(Command::Workload(a)) => study::workload(&session, &a),
    }
}
