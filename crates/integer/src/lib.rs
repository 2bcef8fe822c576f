//! Fixed-width signed integers, 256 to 2,112 bits, of public values.
//!
#![doc = include_str!("../README.md")]

pub mod backend;
pub mod check;
pub mod gcd;
mod int;
pub mod kernels;
pub mod limbs;
mod uint;

pub use backend::{BACKENDS, Engine};
pub use int::Int;
pub use uint::Uint;
