//! The crate's one place that touches raw memory: requests to valgrind, the clock, a planted leak's loads, and searches of the
//! memory that operations and programs leave behind.

pub(crate) mod clock;
#[cfg(target_env = "gnu")]
pub(crate) mod exit;
#[cfg(target_env = "gnu")]
pub(crate) mod heap;
pub(crate) mod lanes;
pub(crate) mod memcheck;
#[cfg(target_env = "gnu")]
pub(crate) mod probe;
