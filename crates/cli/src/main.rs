//! `lanework`: check every backend, race them, keep what won.
#![forbid(unsafe_code)]

mod args;
mod bench;
mod check;
mod doctor;
mod files;
mod mayo;
mod outcome;
mod profile;
#[cfg(feature = "study")]
mod study;
mod tour;
mod tune;
mod ui;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Cli, Command};
use outcome::{Failure, Outcome};
use ui::Session;

fn main() -> ExitCode {
    ui::die_quietly_on_closed_pipe();
    let cli = Cli::parse();
    let json = cli.global.json;
    match run(cli) {
        Ok(Outcome::Yes) => ExitCode::SUCCESS,
        Ok(Outcome::No) => ExitCode::from(1),
        Err(failure) => {
            failure.print(json);
            ExitCode::from(failure.code())
        }
    }
}

fn run(cli: Cli) -> Result<Outcome, Failure> {
    let session = Session::new(&cli.global)?;
    match cli.command {
        None => tour::run(&session),
        Some(Command::Doctor) => doctor::run(&session),
        Some(Command::Check(a)) => check::run(&session, &a),
        Some(Command::Bench(a)) => bench::run(&session, &a),
        Some(Command::Compare(a)) => bench::compare(&session, &a),
        Some(Command::Tune(a)) => tune::run(&session, &a),
        #[cfg(feature = "study")]
        Some(Command::Study(a)) => study::run(&session, &a),
        Some(Command::Mayo(a)) => mayo::run(&session, a),
        Some(Command::Completions { shell }) => {
            clap_complete::generate(shell, &mut Cli::command(), "lanework", &mut std::io::stdout());
            Ok(Outcome::Yes)
        }
        Some(Command::Man { out }) => files::man_pages(&Cli::command(), out.as_deref()),
        Some(Command::Race(a)) => bench::worker(&session, &a),
        #[cfg(feature = "study")]
        Some(Command::Workload(a)) => study::workload(&session, &a),
    }
}
