//! Fixed-width signed integers, 256 to 2,112 bits, of public values.
//!
#![doc = include_str!("../README.md")]
#![cfg_attr(not(any(test, feature = "std")), no_std)]

extern crate alloc;

#[cfg(target_arch = "x86_64")]
#[path = "backend/adx_lane.rs"]
mod adx_lane;
pub mod backend;
pub mod check;
pub mod gcd;
mod int;
pub mod kernels;
pub mod limbs;
#[cfg(all(feature = "study", target_arch = "x86_64"))]
pub mod study;
mod uint;

pub use backend::{BACKENDS, Engine};
pub use int::Int;
pub use uint::Uint;
