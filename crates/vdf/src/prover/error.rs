//! Errors of the prover.
#![forbid(unsafe_code)]

use core::fmt;

use super::CheckpointFile;
use super::checkpoint::CheckpointError;
use crate::chain::ChainError;
use crate::verify::Refused;

/// Why there is no result.
#[derive(Debug)]
#[non_exhaustive]
pub enum ProverError {
    /// There are no squarings to do.
    NoIterations,
    /// More squarings than the segments of a [`Stream`](super::Stream) prove.
    TooMany {
        /// The squarings requested.
        got: u64,
        /// The most that are possible.
        most: u64,
    },
    /// A segment is empty, or the segments leave nothing for the last.
    Segments,
    /// The form does not have the discriminant, or the chain lost it on the way.
    Chain(ChainError),
    /// The observer stopped the computation.
    Cancelled {
        /// Squarings done until then.
        after: u64,
        /// The state of the checkpoint's file after its last record, which holds them all.
        checkpoint: CheckpointFile,
    },
    /// A finished proof does not verify: a fault of the machine, or of this code.
    Wrong {
        /// The segment, counted from 0.
        segment: usize,
        /// Why verification failed.
        why: Refused,
    },
    /// The checkpoint cannot be used or written.
    Checkpoint(CheckpointError),
    /// The operating system refused a thread.
    Thread(std::io::Error),
}

impl ProverError {
    /// The observer's stop, while the checkpoint is still being written.
    pub(super) fn cancelled(after: u64) -> ProverError {
        ProverError::Cancelled { after, checkpoint: CheckpointFile::Kept }
    }
}

impl fmt::Display for ProverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProverError::NoIterations => f.write_str("there are no squarings to do"),
            ProverError::TooMany { got, most } => {
                write!(f, "{got} squarings; the segments prove at most {most}")
            }
            ProverError::Segments => f.write_str("the segments do not fit the number of squarings"),
            ProverError::Chain(e) => e.fmt(f),
            ProverError::Cancelled { after, .. } => write!(f, "stopped after {after} squarings"),
            ProverError::Wrong { segment, why } => {
                write!(f, "the proof of segment {segment} does not verify: {why}; the machine miscalculated")
            }
            ProverError::Checkpoint(e) => write!(f, "the checkpoint: {e}"),
            ProverError::Thread(e) => write!(f, "a thread could not be started: {e}"),
        }
    }
}

impl core::error::Error for ProverError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            ProverError::Chain(e) => Some(e),
            ProverError::Wrong { why, .. } => Some(why),
            ProverError::Checkpoint(e) => Some(e),
            ProverError::Thread(e) => Some(e),
            _ => None,
        }
    }
}

impl From<ChainError> for ProverError {
    fn from(e: ChainError) -> ProverError {
        ProverError::Chain(e)
    }
}

impl From<CheckpointError> for ProverError {
    fn from(e: CheckpointError) -> ProverError {
        ProverError::Checkpoint(e)
    }
}
