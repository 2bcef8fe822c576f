//! Squaring, written once over the lane operations of `lanework_integer::kernels`.
#![forbid(unsafe_code)]

mod columns;
pub(crate) mod compose;
pub(crate) mod nucomp;
pub(crate) mod nudupl;
