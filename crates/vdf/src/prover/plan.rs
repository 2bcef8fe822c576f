//! How a chain is cut, and how densely forms are kept.
#![forbid(unsafe_code)]

use super::error::ProverError;
use super::{Job, kept};
use crate::proof::Parameters;

/// The longest window.
pub(crate) const MOST_K: u32 = 20;
/// The most passes.
pub(crate) const MOST_L: u32 = 1 << 20;

/// A segment of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Squarings before it.
    pub(crate) start: u64,
    /// Its squarings.
    pub(crate) length: u64,
    pub(crate) parameters: Parameters,
}

impl Part {
    /// Squarings between two kept forms.
    pub(crate) fn every(&self) -> u64 {
        u64::from(self.parameters.k) * u64::from(self.parameters.l)
    }
}

/// The segments of a job.
///
/// # Errors
/// [`ProverError::NoIterations`] and [`ProverError::Segments`].
pub(crate) fn parts(job: &Job, memory: usize) -> Result<Vec<Part>, ProverError> {
    if job.iterations == 0 {
        return Err(ProverError::NoIterations);
    }
    let bytes = 16 * kept::limbs(job.discriminant.bits());
    // One segment is being squared, one proved, and one waits.
    let share = if job.segments.is_empty() { memory } else { memory / 3 };
    let mut start = 0u64;
    let mut out = Vec::with_capacity(job.segments.len() + 1);
    let mut push = |start: u64, length: u64| {
        out.push(Part { start, length, parameters: choose(length, share / bytes) });
    };
    for &length in &job.segments {
        let end = start.checked_add(length).filter(|&end| length > 0 && end < job.iterations);
        push(start, length);
        start = end.ok_or(ProverError::Segments)?;
    }
    push(start, job.iterations - start);
    Ok(out)
}

/// The cheapest windows for T squarings of which at most `most` forms are kept: T / k products fill the buckets of all passes,
/// and two for each of l 2^(k-1) buckets and k squarings for each pass empty them.
pub(crate) fn choose(iterations: u64, most: usize) -> Parameters {
    let mut best = (u128::MAX, Parameters { k: 1, l: MOST_L });
    for k in 1..=MOST_K {
        // A bucket takes about as much as eight packed forms; all of them together no more than the forms.
        if k > 1 && 8 << (k - 1) > most {
            break;
        }
        // The fewest passes that keep few enough forms.
        let l =
            iterations.div_ceil(u64::from(k).saturating_mul(most.max(1) as u64)).clamp(1, u64::from(MOST_L));
        let cost = u128::from(iterations / u64::from(k)) + u128::from(l) * ((1 << k) + u128::from(k));
        if cost < best.0 {
            best = (cost, Parameters { k, l: l as u32 });
        }
    }
    best.1
}
