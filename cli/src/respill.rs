//! `lanework respill`: finds spilled values in assembly and gives them other homes.
#![forbid(unsafe_code)]
// Elsewhere only `analyse` is left.
#![cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), expect(dead_code))]

use std::collections::BTreeSet;
use std::path::Path;

use lanework_respill::{Analysis, Program};
use lanework_spill::{of_program, unit};
use lanework_study::{Failure, Outcome};

use crate::files;
use crate::ui::Session;

mod analyse;
pub(crate) mod args;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod auto;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod cases;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod cpu;
mod executed;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod lint;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod measure;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod rewrite;
pub(crate) mod run_args;
mod selection;
mod stored;
pub(crate) mod timing_args;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod validate;

use args::{RespillArgs, RespillJob, SourceArgs};

pub(crate) fn run(session: &Session, args: RespillArgs) -> Result<Outcome, Failure> {
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    let _scratch = match &args.job {
        // A race's processes use the directory of the command that started them.
        RespillJob::Race(race) => {
            race.job.parent().iter().for_each(|folder| crate::scratch::within(folder));
            None
        }
        _ => Some(crate::scratch::Scratch::new()?),
    };
    match args.job {
        RespillJob::Analyse(a) => analyse::run(session, &a),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
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
        RespillJob::Race(a) => worker(&a),
        #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
        RespillJob::Rewrite(_)
        | RespillJob::Validate(_)
        | RespillJob::Lint(_)
        | RespillJob::Measure(_)
        | RespillJob::Auto(_)
        | RespillJob::Cpu(_)
        | RespillJob::Race(_) => Err(Failure::unavailable("assembly runs only on x86-64 Linux")),
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
/// The inner half of a race.
fn worker(args: &timing_args::JobArgs) -> Result<Outcome, Failure> {
    if !lanework_race::launch::is_worker() {
        return Err(
            Failure::input("respill __race: started by hand").help("`lanework respill measure` starts it")
        );
    }
    lanework_spill::race::serve(&args.job, args.inputs)?;
    Ok(Outcome::Yes)
}

/// A text that was read, and its selected functions.
struct Source {
    analysis: Analysis,
    /// Those asked for and what they call; all if none was asked for.
    units: BTreeSet<usize>,
    /// Those asked for, in the order given.
    asked: Vec<usize>,
}

impl Source {
    fn load(args: &SourceArgs) -> Result<Source, Failure> {
        let analysis = Analysis::new(program_of(&args.file)?);
        let functions = &args.functions;
        if analysis.units.is_empty() {
            return Err(Failure::input(format!("{}: no function in it", analysis.program.file))
                .help("mark one: a function's label is .globl, has .type @function, or is called"));
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

/// The program in a file, or from standard input.
fn program_of(path: &Path) -> Result<Program, Failure> {
    let bytes = files::read(path, Program::LONGEST)?;
    let file =
        if path.as_os_str() == "-" { "standard input".to_owned() } else { lanework_study::text::shown(path) };
    let text = String::from_utf8(bytes).map_err(|e| {
        let line = e.as_bytes()[..e.utf8_error().valid_up_to()].iter().filter(|&&b| b == b'\n').count() + 1;
        Failure::input(format!("{file}:{line}: not text: bytes that are not UTF-8"))
            .help("name assembly, as `cc -S` writes it")
    })?;
    Program::new(&file, text).map_err(|e| of_program(&e))
}
