//! Checks that every backend must pass, for the tests and the laboratory. Not a part of the public interface.
#![forbid(unsafe_code)]

pub mod check;
