//! The timelord's worker: a timelord sends a discriminant and a form, the worker squares, and sends a proof for each number of
//! squarings that it is asked for.
#![forbid(unsafe_code)]

pub mod frames;
