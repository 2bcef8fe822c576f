//! Fixed-width signed integers, 256 to 2,112 bits, of public values.
//!
#![doc = include_str!("../README.md")]

mod int;
pub mod limbs;
mod uint;

pub use int::Int;
pub use uint::Uint;
