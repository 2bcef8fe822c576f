//! Functions whose spilled values have moved, in the laboratory: [`settle`] checks a rewrite, [`race`] compares it with
//! the function as it was, and [`finding`] says what a home is worth.
//!
//! The command's `respill` and studies of spilled values are built on it.
#![forbid(unsafe_code)]

use lanework_respill::assembler::AssembleError;
use lanework_respill::program::Why;
use lanework_respill::{Analysis, ProgramError};
use lanework_study::Failure;

pub mod account;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod finding;
mod homes;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod race;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod settle;

pub use homes::{Homes, needs};

/// The function of a name.
///
/// # Errors
/// [`Failure::input`] with the names that there are.
pub fn unit(analysis: &Analysis, name: &str) -> Result<usize, Failure> {
    let found = analysis.units.iter().position(|u| u.function.names.iter().any(|n| n == name));
    found.ok_or_else(|| {
        let known: Vec<&str> =
            analysis.units.iter().filter(|u| u.function.global).map(|u| u.function.name()).take(12).collect();
        let failure = Failure::input(format!("{}: no function '{name}' in it", analysis.program.file));
        if known.is_empty() {
            failure.help("no function in it is .globl")
        } else {
            failure.help(format!("choose among {}", known.join(", ")))
        }
    })
}

/// A file that is not a program is bad input; a missing assembler is a different failure.
#[must_use]
pub fn of_program(e: &ProgramError) -> Failure {
    let ends = |ends: &[&str]| {
        e.file
            .rsplit_once('.')
            .is_some_and(|(_, end)| ends.iter().any(|other| end.eq_ignore_ascii_case(other)))
    };
    match e.why {
        Why::Assemble(AssembleError::Missing { .. }) => Failure::unavailable(e),
        Why::Long => Failure::input(e),
        _ if ends(&["c", "cc", "cpp", "cxx", "h"]) => {
            Failure::input(e).help("this looks like C: `cc -S` writes assembly")
        }
        _ if ends(&["rs"]) => {
            Failure::input(e).help("this looks like Rust: `rustc --emit asm` writes assembly")
        }
        _ => Failure::input(e),
    }
}
