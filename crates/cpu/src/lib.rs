//! What this CPU offers: features, masking, the backend table type, and threads.
//!
#![doc = include_str!("../README.md")]

mod backend;
mod features;
mod settings;
mod threads;

pub use backend::{Backend, Select, Unavailable, available, select};
pub use features::{Cpu, Feature, Features, UnknownFeature};
pub use settings::{Settings, SettingsError};
pub use threads::{PoolError, Threads};
