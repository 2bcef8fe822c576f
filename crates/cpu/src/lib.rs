//! This CPU's features, masking, the backend table type, and threads.
//!
#![doc = include_str!("../README.md")]
#![cfg_attr(not(any(test, feature = "std")), no_std)]

extern crate alloc;

mod backend;
pub mod check;
mod features;
#[cfg(feature = "std")]
mod pool;
mod settings;
mod sys;
mod threads;

pub use backend::{Backend, Backends, Engine, Select, Unavailable};
pub use features::{Cpu, Feature, Features, UnknownFeature, whole_512};
pub use settings::{Settings, SettingsError};
/// Aligned blocks of memory, and wiping.
pub mod memory {
    pub use crate::sys::{
        Block, bytes, bytes_mut, wipe, wipe_blocks, wipe_stack_and_registers, wipe_vector_registers,
    };
}
pub use threads::{PoolError, ThreadPool, Threads};
