//! MAYO signatures on every CPU lane.
//!
#![doc = include_str!("../README.md")]
#![cfg_attr(not(any(test, feature = "std")), no_std)]

extern crate alloc;

mod backend;
pub mod batch;
mod digest;
#[cfg(feature = "pkcs8")]
mod documents;
mod error;
mod expanded;
#[cfg(test)]
mod faults;
mod field;
pub mod hazmat;
#[doc(hidden)]
pub mod internals;
mod keys;
#[cfg(test)]
mod leftovers;
mod params;
mod scheme;
mod sys;
pub mod typed;
mod verify;
mod workspace;

pub use backend::{Engine, Kernels};
pub use digest::{MessageDigest, MessageHasher};
pub use error::Error;
pub use expanded::{SigningKey, VerifyingKey};
pub use keys::{PublicKey, SecretKey, SignOptions, Signature};
pub use params::{Params, Round, Set};
