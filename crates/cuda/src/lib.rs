//! One CUDA device at a time, or its emulation: memory, streams, programs and faults, without cryptography.
//!
#![doc = include_str!("../README.md")]

mod backend;
mod card;
mod device;
mod error;
mod memory;
mod module;
mod search;
mod stream;
mod sys;

#[cfg(feature = "emulated")]
pub use backend::emulated::Kernels;
#[cfg(any(feature = "emulated", feature = "ptx"))]
pub use backend::hosted::{Accesses, Control, Emulation, Freed, Launched, Order, Traffic};
pub use backend::nvml::Energy;
pub use backend::plain::Plain;
pub use backend::selftest::{Report, selftest};
pub use backend::{Argument, Limit};
pub use card::{Card, Memory};
pub use device::{Device, Reopener, devices};
pub use error::{Error, Failure, Unavailable};
pub use memory::{Buffer, Pinned};
pub use module::{Facts, Image, Kernel, Module};
pub use search::Found;
pub use stream::{Event, Grid, Stream};
