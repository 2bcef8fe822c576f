//! Finds spilled values in x86-64 assembly and gives them a home other than the stack.
//!
#![doc = include_str!("../README.md")]

pub mod analysis;
pub mod assembler;
pub mod assumption;
pub mod auto;
mod bounds;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod case;
mod closed;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod counts;
pub mod cpu;
mod encoded;
pub mod flow;
pub mod frame;
pub mod homes;
pub mod layout;
pub mod lint;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod load;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod measure;
mod modelled;
pub mod names;
pub mod neighbours;
mod outlines;
mod outside;
mod places;
pub mod plan;
pub mod program;
pub mod registers;
mod repeat;
pub mod rewrite;
pub mod slots;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod sys;
pub(crate) mod tables;
pub mod text;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod timed;
mod unwinding;
pub mod validate;
mod well_known;

pub use analysis::Analysis;
pub use program::{Program, ProgramError};
