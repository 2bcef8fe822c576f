//! MAYO signatures on every CPU lane.
//!
#![doc = include_str!("../README.md")]
#![cfg_attr(not(any(test, feature = "std")), no_std)]

extern crate alloc;

pub mod backend;
pub mod batch;
pub mod check;
#[cfg(feature = "cuda")]
pub mod cuda;
mod digest;
#[cfg(feature = "pkcs8")]
mod documents;
mod error;
mod expanded;
#[cfg(test)]
mod faults;
pub mod field;
pub mod hazmat;
mod keys;
pub mod known;
#[cfg(all(any(test, feature = "leaks"), target_os = "linux", target_arch = "x86_64"))]
pub mod leaks;
#[cfg(test)]
mod leftovers;
pub mod params;
mod scheme;
pub mod spec;
#[cfg(feature = "study")]
pub mod study;
pub mod symmetric_spec;
mod sys;
pub mod typed;
mod verify;
mod workspace;

pub use backend::Engine;
pub use digest::{MessageDigest, MessageHasher};
pub use error::Error;
pub use expanded::{SigningKey, VerifyingKey};
pub use keys::{PublicKey, SecretKey, SignOptions, Signature};
pub use params::{Params, Round, Set};
