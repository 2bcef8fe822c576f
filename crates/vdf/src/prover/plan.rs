//! Cutting a chain into segments, and the density of kept forms.
#![forbid(unsafe_code)]

use super::{ProverError, Task};
use crate::form::packed;

/// The longest window.
pub(crate) const MOST_K: u32 = 20;
/// The most passes.
pub(crate) const MOST_L: u32 = 1 << 20;

/// A segment's bucket sizes: windows of `k` bits of the exponent, and one form kept for every `k l` squarings. The
/// proof does not depend on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parameters {
    /// Bits of a window: 2^(k - 1) buckets.
    pub(crate) k: u32,
    /// Passes over the kept forms.
    pub(crate) l: u32,
}

impl Parameters {
    /// Squarings between two kept forms.
    pub(crate) fn every(self) -> u64 {
        u64::from(self.k) * u64::from(self.l)
    }
}

/// A segment of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Squarings before it.
    pub(crate) start: u64,
    /// Its squarings.
    pub(crate) length: u64,
    pub(crate) parameters: Parameters,
}

/// The segments of a task.
///
/// # Errors
/// [`ProverError::NoIterations`] and [`ProverError::Segments`].
pub(crate) fn parts(task: &Task, memory: usize) -> Result<Vec<Part>, ProverError> {
    let bytes = 16 * packed::size(task.discriminant.bits());
    // One segment is being squared, one proved, and one waits.
    let share = if task.segments.is_empty() { memory } else { memory / 3 };
    let mut start = 0;
    let part = |length| {
        let part = Part { start, length, parameters: choose(length, share / bytes) };
        start += length;
        part
    };
    Ok(task.lengths()?.into_iter().map(part).collect())
}

/// The cheapest windows for T squarings of which at most `most` forms are kept: T / k products fill the buckets of all
/// passes, and two for each of l 2^(k-1) buckets and k squarings for each pass empty them.
pub(crate) fn choose(iterations: u64, most: usize) -> Parameters {
    let mut best = (u128::MAX, Parameters { k: 1, l: MOST_L });
    for k in 1..=MOST_K {
        // A bucket takes about as much as eight packed forms; all buckets together take no more than the forms.
        if k > 1 && 8 << (k - 1) > most {
            break;
        }
        // The fewest passes whose kept forms fit.
        let l =
            iterations.div_ceil(u64::from(k).saturating_mul(most.max(1) as u64)).clamp(1, u64::from(MOST_L));
        let cost = u128::from(iterations / u64::from(k)) + u128::from(l) * ((1 << k) + u128::from(k));
        if cost < best.0 {
            best = (cost, Parameters { k, l: l as u32 });
        }
    }
    best.1
}

/// The lengths of the segments before the last that a chain of T squarings is proved in: pieces of 2^16, 2^18, 2^20 ...
/// squarings, the longest that fit first, at most `most` of them; the rest is the last segment.
#[must_use]
pub fn chia_segments(iterations: u64, most: usize) -> Vec<u64> {
    let mut out = Vec::new();
    let mut rest = iterations;
    while out.len() < most {
        // A piece that ends where the chain ends is the last segment.
        let longest = (0..12).map(|i| 1u64 << (16 + 2 * i)).rev().find(|&length| length <= rest);
        let Some(length) = longest.filter(|&length| length < rest) else { break };
        out.push(length);
        rest -= length;
    }
    out
}
