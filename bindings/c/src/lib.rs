//! liblanework: the libraries of `crates/` for C and C++. `lanework.h` is made of these files, and is their documentation.
//!
//! Each entry claims the memory of its caller through [`entry`], calls a crate, and turns the crate's error into an
//! [`status::lw_status`]. Nothing else is computed here.
#![allow(clippy::missing_safety_doc, reason = "the head of lanework.h has the rules of all pointers")]
#![allow(clippy::too_many_arguments, reason = "buffers are a pointer and a length in C")]

mod entry;
pub mod magma;
pub mod mayo;
pub mod status;
pub mod vdf;
pub mod version;
