#![doc = include_str!("../README.md")]
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod emit;
mod lane;
mod layout;
mod leak;
mod lockstep;
mod program;
mod record;
mod site;
mod snapshot;
mod source_line;
mod sys;
mod translate;

pub use iced_x86;
pub use leak::{Difference, Failure, Kind, Report};
pub use lockstep::{Correspondence, Divergence, Lockstep, Mismatch};
pub use record::{FLAGS, Step};
pub use site::{Access, Site, Touch};
pub use snapshot::{Advance, Engine, Operation, Options, Outcome, Snapshot};
pub use source_line::{Frame, Place, Symbols};

/// Why tracing is unavailable here. This crate is independent, without backends that `lanework_cpu::Unavailable` could name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable {
    /// In words.
    pub why: String,
}

impl core::fmt::Display for Unavailable {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "nothing can be traced here: {}", self.why)
    }
}

impl core::error::Error for Unavailable {}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The operation returned.
    Returned,
    /// It panicked, with this message.
    Panicked(String),
    /// It ended its process.
    Exited,
    /// A signal ended it.
    Signal {
        /// Its number: 11 is a bad address, 4 an unknown instruction.
        signal: i32,
        /// The last instruction begun.
        address: u64,
    },
    /// It reached an instruction that cannot be traced.
    Unsupported {
        /// Its address, or 0 for a system call.
        address: u64,
        /// What that is.
        why: &'static str,
    },
    /// More steps than allowed.
    TooLong,
    /// More time than allowed.
    TimedOut,
    /// The caller stopped it.
    Stopped,
}
