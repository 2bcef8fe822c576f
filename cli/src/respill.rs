//! `lanework respill`: spilled values of assembly, found and given other homes.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::path::Path;

use lanework_respill::assembler::AssembleError;
use lanework_respill::program::Why;
use lanework_respill::{Analysis, Program, ProgramError};
use lanework_study::{Failure, Outcome};

use crate::files;
use crate::ui::Session;

mod analyse;
pub(crate) mod args;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod auto;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) mod checked;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod cpu;
mod dynamic;
pub(crate) mod kept;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod lint;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) mod measure;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) mod race;
mod rewrite;
pub(crate) mod run_args;
pub(crate) mod timing_args;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod validate;
mod wish;

use args::{RespillArgs, RespillJob, SourceArgs};

pub(crate) fn run(session: &Session, args: RespillArgs) -> Result<Outcome, Failure> {
    match args.job {
        RespillJob::Analyse(a) => analyse::run(session, &a),
        RespillJob::Rewrite(a) => rewrite::run(session, &a),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        RespillJob::Validate(a) => validate::run(session, &a),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        RespillJob::Lint(a) => lint::run(session, &a),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        RespillJob::Measure(a) => measure::run(session, &a),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        RespillJob::Auto(a) => auto::run(session, &a),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        RespillJob::Cpu(a) => cpu::run(session, &a),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        RespillJob::Race(a) => race::worker(&a),
        #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
        RespillJob::Validate(_)
        | RespillJob::Lint(_)
        | RespillJob::Measure(_)
        | RespillJob::Auto(_)
        | RespillJob::Cpu(_)
        | RespillJob::Race(_) => Err(Failure::unavailable("assembly is run on x86-64 Linux only")),
    }
}

/// A text that was read, and the functions of it that are meant.
struct Source {
    analysis: Analysis,
    /// Those asked for and what they call; all if none was asked for.
    units: BTreeSet<usize>,
    /// Those asked for, in the order of the question.
    asked: Vec<usize>,
}

impl Source {
    fn load(args: &SourceArgs) -> Result<Source, Failure> {
        Source::of(Analysis::new(program_of(&args.file)?), &args.functions)
    }

    fn of(analysis: Analysis, functions: &[String]) -> Result<Source, Failure> {
        if analysis.units.is_empty() {
            return Err(Failure::input(format!(
                "{}: there is no function in it: a label is one that is .globl, has .type @function, or is called",
                analysis.program.file
            )));
        }
        let mut asked = Vec::new();
        for name in functions {
            asked.push(unit(&analysis, name)?);
        }
        let mut units: BTreeSet<usize> = asked.iter().copied().collect();
        asked.iter().for_each(|&n| units.extend(analysis.below(n)));
        if asked.is_empty() {
            units.extend(0..analysis.units.len());
        }
        Ok(Source { analysis, units, asked })
    }
}

/// The program in a file, or in standard input.
fn program_of(path: &Path) -> Result<Program, Failure> {
    let bytes = files::read(path)?;
    let file =
        if path.as_os_str() == "-" { "standard input".to_owned() } else { lanework_study::text::shown(path) };
    let text = String::from_utf8(bytes).map_err(|e| {
        let line = e.as_bytes()[..e.utf8_error().valid_up_to()].iter().filter(|&&b| b == b'\n').count() + 1;
        Failure::input(format!("{file}:{line}: this is no text: bytes that are not UTF-8"))
    })?;
    Program::new(&file, text).map_err(|e| of_program(&e))
}

/// The function of a name.
pub(crate) fn unit(analysis: &Analysis, name: &str) -> Result<usize, Failure> {
    let found = analysis.units.iter().position(|u| u.function.names.iter().any(|n| n == name));
    found.ok_or_else(|| {
        let known: Vec<&str> =
            analysis.units.iter().filter(|u| u.function.global).map(|u| u.function.name()).take(12).collect();
        let known =
            if known.is_empty() { "no function that others see".to_owned() } else { known.join(", ") };
        Failure::input(format!(
            "{}: there is no function '{name}' in it; there is {known}",
            analysis.program.file
        ))
    })
}

/// A file that is no program is bad input; a machine without an assembler is another matter.
fn of_program(e: &ProgramError) -> Failure {
    match e.why {
        Why::Assemble(AssembleError::Missing { .. }) => Failure::unavailable(e),
        _ => Failure::input(e),
    }
}
