//! A squared segment, and its proof.
#![forbid(unsafe_code)]

use std::time::Instant;

use lanework_cpu::Threads;

use super::ProverError;
use super::buckets::{self, Meter};
use super::plan::Part;
use crate::buckets::Halt;
use crate::chain::ChainError;
use crate::form::Form;
use crate::form::packed::PackedForms;
use crate::group::Group;
use crate::proof::{Challenge, Proof};
use crate::verify::verify_proof;

/// A squared segment, ready to be proved.
pub(crate) struct Squared {
    pub(crate) index: usize,
    pub(crate) part: Part,
    pub(crate) x: Form,
    pub(crate) y: Form,
    pub(crate) kept: PackedForms,
}

/// A proof of one segment that verifies.
pub(crate) struct Finished {
    pub(crate) index: usize,
    pub(crate) b: Challenge,
    pub(crate) pi: Form,
    pub(crate) y: Form,
    /// Seconds of verification.
    pub(crate) verifying: f64,
}

/// The outcome of a segment.
pub(crate) type Answer = Result<Finished, ProverError>;

impl Squared {
    /// The segment's proof, verified.
    pub(crate) fn answer(&self, group: Group<'_>, threads: Threads<'_>, meter: &Meter) -> Answer {
        self.answer_between(group, threads, meter, &|| ())
    }

    /// The same; every thread calls `pause` at intervals.
    pub(crate) fn answer_between(
        &self,
        group: Group<'_>,
        threads: Threads<'_>,
        meter: &Meter,
        pause: &(dyn Fn() + Sync),
    ) -> Answer {
        let b = Challenge::of(group, &self.x, &self.y);
        let pi =
            buckets::prove(group, &self.part, &self.kept, &b, threads, meter, pause).map_err(|halt| {
                match halt {
                    Halt::Stopped => ProverError::cancelled(self.part.start + self.part.length),
                    Halt::Corrupted => ChainError::Corrupted { good: self.part.start }.into(),
                }
            })?;
        self.verified(group, Finished { index: self.index, b, pi, y: self.y.clone(), verifying: 0.0 })
    }

    /// The proof, if it verifies.
    pub(crate) fn verified(&self, group: Group<'_>, finished: Finished) -> Answer {
        let begin = Instant::now();
        let proof = Proof { y: finished.y.clone(), pi: finished.pi.clone(), segments: Vec::new() };
        verify_proof(group, &self.x, &proof, self.part.length)
            .map_err(|why| ProverError::Wrong { segment: self.index, why })?;
        Ok(Finished { verifying: begin.elapsed().as_secs_f64(), ..finished })
    }
}
