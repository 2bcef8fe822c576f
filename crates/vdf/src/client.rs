//! The timelord's worker: a timelord sends a discriminant and a form, the worker squares, and sends a proof for each
//! number of squarings that it is asked for. The conversation is that of chiavdf's `vdf_client`.
//!
//! [`frames`] knows the bytes; [`serve`] brings them and the [prover](crate::prover) to a connection.
//! Whatever a timelord sends ends its own conversation at worst, with a [`ClientError`].
#![forbid(unsafe_code)]

pub mod frames;
mod reader;
mod session;
mod squarer;

pub use session::{ClientError, Event, LONGEST, MOST_REQUESTS, Summary, serve};
