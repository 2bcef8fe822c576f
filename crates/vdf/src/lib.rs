//! Class groups of imaginary quadratic fields, and the Wesolowski delay function that Chia runs in them.
//!
#![doc = include_str!("../README.md")]
#![cfg_attr(not(any(test, feature = "std")), no_std)]

extern crate alloc;

pub mod backend;
#[cfg(any(test, feature = "std"))]
mod buckets;
pub mod chain;
#[cfg(any(test, feature = "std"))]
pub mod client;
#[cfg(any(test, feature = "std"))]
pub mod compactor;
pub mod discriminant;
pub mod form;
pub mod group;
#[doc(hidden)]
pub mod internals;
pub mod number;
pub mod prime;
pub mod proof;
#[cfg(any(test, feature = "std"))]
pub mod prover;
pub mod serial;
pub mod spec;
pub mod verify;

pub use backend::Engine;
#[cfg(any(test, feature = "std"))]
pub use compactor::{Claim, Claims, Compacted, Outcome, compact};
pub use discriminant::{Discriminant, DiscriminantError};
pub use form::{Form, FormError};
pub use group::Group;
pub use proof::{Challenge, Compact, Proof, ProofError};
#[cfg(any(test, feature = "std"))]
pub use prover::{Evaluated, Options, Progress, Proved, ProverError, Task, evaluate, prove};
pub use serial::{DecodeError, Lenient, Mode, Strict};
pub use verify::{Limits, Malformed, Question, Refused, VerifyError, verify, verify_all, verify_challenge};
