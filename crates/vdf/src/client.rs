//! The timelord's worker: a timelord sends a discriminant and a form, the worker squares, and sends a proof for each
//! requested number of squarings. The protocol is that of chiavdf's `vdf_client`.
//!
//! [`frames`] has the bytes; [`serve`] connects them with the [prover](crate::prover). A malformed frame ends only its
//! own conversation, with a [`ClientError`].
#![forbid(unsafe_code)]

pub mod frames;
mod reader;
mod session;
mod squarer;

pub use session::{ClientError, Event, LONGEST, MOST_REQUESTS, Summary, serve};
