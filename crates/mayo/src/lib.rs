//! MAYO signatures on every CPU lane.

pub mod backend;
mod error;
pub mod field;
pub mod known;
pub mod params;
mod scheme;
pub mod spec;
mod sys;
mod workspace;

pub use error::Error;
pub use params::{Params, Round, Set};
pub use scheme::Engine;
