//! Spilled values of x86-64 assembly: found, and given another home than the stack.
//!
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod analysis;
pub mod assembler;
pub mod flow;
pub mod frame;
pub mod homes;
pub mod plan;
pub mod program;
pub mod registers;
pub mod rewrite;
pub mod slots;
pub mod text;

pub use analysis::Analysis;
pub use program::{Program, ProgramError};
