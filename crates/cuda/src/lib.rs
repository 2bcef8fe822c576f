//! One CUDA device at a time, or its emulation: what it is, its memory, queues of work, programs and faults. No cryptography.
//!
//! The driver is loaded when it is asked for first. Without one, or with one that is too old, everything here still builds,
//! links and runs: [`devices`] and [`Device::open`] say why there is no device.
//!
//! With the feature `emulated` the same host code runs kernels that were compiled as C++, one fiber for every
//! thread: see `Device::emulated`, and `README.md` for the dialect that kernels are written in.

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
pub use backend::emulated::{Control, Emulation, Freed, Kernels, Launched, Order};
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
