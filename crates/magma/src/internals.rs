//! The oracle, known answers, checks and bounds, for the tests and the laboratory. Not part of the public interface.
#![forbid(unsafe_code)]

pub mod check;
pub mod floor;
pub mod known;
#[cfg(all(any(test, feature = "leaks"), target_os = "linux", target_arch = "x86_64"))]
pub mod leaks;
pub mod spec;
