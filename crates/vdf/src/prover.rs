//! The prover: the chain on the caller's thread, proofs on the other cores, progress, checkpoints, and stopping.
//!
//! [`evaluate`] only squares. [`prove`] also keeps forms and makes a proof of them. The prime of a single segment
//! hashes the result, so all threads prove it after the squaring. Of several segments, each is proved by a second
//! thread as soon as it is squared. Every proof is verified before it is returned.
#![forbid(unsafe_code)]

mod buckets;
pub(crate) mod checkpoint;
mod digits;
mod error;
mod plan;
mod prove;
mod segment;
mod stream;

use core::fmt;
use std::path::Path;
use std::time::Duration;

use crate::backend::Engine;
use crate::discriminant::Discriminant;
use crate::form::Form;
use crate::proof::{Challenge, Proof};

pub use checkpoint::{CheckpointError, Difference};
pub use error::ProverError;
pub use plan::chia_segments;
pub use prove::{evaluate, prove};
pub use stream::{Scheme, Stream, StreamProgress};

/// A computation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The group.
    pub discriminant: Discriminant,
    /// Where the chain starts.
    pub x: Form,
    /// Squarings altogether.
    pub iterations: u64,
    /// The lengths of the segments before the last, in squarings; none means one segment.
    pub segments: Vec<u64>,
}

impl Task {
    /// A chain that is proved in one segment.
    #[must_use]
    pub fn new(discriminant: Discriminant, x: Form, iterations: u64) -> Task {
        Task { discriminant, x, iterations, segments: Vec::new() }
    }

    /// The same in at most `most` segments before the last, of the lengths that Chia's timelords use.
    #[must_use]
    pub fn in_chia_segments(mut self, most: usize) -> Task {
        self.segments = chia_segments(self.iterations, most);
        self
    }

    /// The same in the three segments of chiavdf's *2-Wesolowski* proofs: two thirds, two thirds of the rest, and the
    /// rest, the first two rounded down to hundreds.
    #[must_use]
    pub fn in_two_thirds(mut self) -> Task {
        let part = |rest: u64| {
            let two_thirds = (u128::from(rest) * 2 / 3) as u64;
            two_thirds - two_thirds % 100
        };
        let first = part(self.iterations);
        let second = part(self.iterations - first);
        self.segments = vec![first, second];
        self
    }

    /// The squarings of each segment, the last included.
    ///
    /// # Errors
    /// [`ProverError::NoIterations`], and [`ProverError::Segments`] if a segment is empty or nothing is left for the
    /// last.
    pub(crate) fn lengths(&self) -> Result<Vec<u64>, ProverError> {
        if self.iterations == 0 {
            return Err(ProverError::NoIterations);
        }
        let mut last = self.iterations;
        for &length in &self.segments {
            let rest = last.checked_sub(length).filter(|&rest| length > 0 && rest > 0);
            last = rest.ok_or(ProverError::Segments)?;
        }
        Ok([&self.segments[..], &[last]].concat())
    }
}

/// A number of squarings, and the fault injected into the chain after them.
#[cfg(test)]
pub(crate) type Fault = (u64, fn(&mut crate::chain::Chain));

/// Options of a computation. The result does not depend on them.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Options<'a> {
    /// The chain's backend.
    pub engine: Engine,
    /// Threads that proofs may use, 1 or more; more than [`Threads::MOST`](lanework_cpu::Threads::MOST) count as that
    /// many. One of them squares until the squaring is over.
    pub threads: usize,
    /// Approximate bytes for kept forms. Fewer make the proof slower: see `DESIGN.md`.
    pub memory: usize,
    /// A file from which the computation can continue if this process ends: see `CHECKPOINT.md`.
    pub checkpoint: Option<&'a Path>,
    /// Time between two records of that file. A kill loses the work of that time.
    pub interval: Duration,
    /// A squaring after which a fault is injected, and the fault.
    #[cfg(test)]
    pub(crate) fault: Option<Fault>,
}

/// [`Options::new`] on the fastest backend of this CPU.
impl Default for Options<'_> {
    fn default() -> Self {
        Options::new(Engine::best())
    }
}

impl<'a> Options<'a> {
    /// One thread for each core that may be used, 256 MiB of kept forms, no checkpoint (records would be a second apart).
    #[must_use]
    pub fn new(engine: Engine) -> Options<'a> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let interval = Duration::from_secs(1);
        Options {
            engine,
            threads,
            memory: 256 << 20,
            checkpoint: None,
            interval,
            #[cfg(test)]
            fault: None,
        }
    }

    /// The number of threads; 0 counts as 1.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Options<'a> {
        self.threads = threads.max(1);
        self
    }

    /// Bytes for kept forms.
    #[must_use]
    pub fn memory(mut self, bytes: usize) -> Options<'a> {
        self.memory = bytes;
        self
    }

    /// The checkpoint file, which is created if it does not exist.
    #[must_use]
    pub fn checkpoint(mut self, path: &'a Path) -> Options<'a> {
        self.checkpoint = Some(path);
        self
    }

    /// The time between records.
    #[must_use]
    pub fn interval(mut self, interval: Duration) -> Options<'a> {
        self.interval = interval;
        self
    }
}

/// The prover's phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Squaring; finished segments may be proved at the same time.
    Squaring,
    /// Proving the rest after the squaring.
    Proving,
    /// Verifying what was proved.
    Verifying,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Phase::Squaring => "squaring",
            Phase::Proving => "proving",
            Phase::Verifying => "verifying",
        })
    }
}

/// The state of the checkpoint's file, which may be removed while it is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CheckpointFile {
    /// It still has its name, or there is no checkpoint.
    #[default]
    Kept,
    /// It was removed and rewritten this many times. Nothing is lost.
    Anew(u32),
    /// Another file has its name, or it cannot be rewritten: its content is lost when this process ends. The next record
    /// tries again.
    Lost,
}

/// The progress of a computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The current phase.
    pub phase: Phase,
    /// Done of `total`: squarings; while proving, products of forms; while verifying, segments.
    pub done: u64,
    /// The value of `done` at the end of the phase.
    pub total: u64,
    /// Squarings so far by the general code (chiavdf's `n_slow`).
    pub slow: u64,
    /// Squarings resumed from a checkpoint.
    pub resumed: u64,
    /// Whether the checkpoint is still there.
    pub checkpoint: CheckpointFile,
}

/// Wall-clock seconds of each phase in this process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seconds {
    /// Squaring, and the proving done meanwhile.
    pub squaring: f64,
    /// Proving after that.
    pub proving: f64,
    /// Verifying after that.
    pub verifying: f64,
}

/// The result of [`evaluate`].
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluated {
    /// The result.
    pub y: Form,
    /// Squarings that only the general code could do.
    pub slow: u64,
    /// Squarings resumed from a checkpoint.
    pub resumed: u64,
    /// Time.
    pub seconds: Seconds,
}

/// The result of [`prove`].
#[derive(Clone, Debug, PartialEq)]
pub struct Proved {
    /// The proof, which has been verified.
    pub proof: Proof,
    /// The last segment's B. With it, [`Proof::compact`] proves the same result.
    pub b: Challenge,
    /// Squarings that only the general code could do.
    pub slow: u64,
    /// Squarings resumed from a checkpoint.
    pub resumed: u64,
    /// Time.
    pub seconds: Seconds,
}

#[cfg(test)]
mod tests;
