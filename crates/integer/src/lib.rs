//! Fixed-width signed integers, 256 to 2,112 bits, of public values.
//!
#![doc = include_str!("../README.md")]
#![cfg_attr(not(any(test, feature = "std")), no_std)]

extern crate alloc;

pub mod backend;
pub mod gcd;
mod int;
#[doc(hidden)]
pub mod internals;
pub mod kernels;
pub mod limbs;
mod uint;

pub use backend::{BACKENDS, Engine};
pub use int::Int;
pub use uint::Uint;
