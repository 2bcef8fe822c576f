//! How a prover cuts its work.
#![forbid(unsafe_code)]

/// A segment's bucket sizes: windows of `k` bits of the exponent, and one form kept for every `k l` squarings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Bits of a window: 2^k buckets.
    pub k: u32,
    /// Passes over the kept forms.
    pub l: u32,
}

impl Parameters {
    /// The k that costs the fewest products for T squarings and 2^23.25 forms of memory, as chiavdf approximates it
    /// (`ApproximateParameters`); k = 1 for the T too small for the approximation. The proof does not depend on the choice.
    #[must_use]
    // The approximation's own digits: with more of them k could come out another.
    #[allow(clippy::approx_constant)]
    pub fn approximate(iterations: u64) -> Parameters {
        let log_memory = 23.253_496_66_f64;
        let l = if (iterations.max(1) as f64).log2() - log_memory > 0.000_001 {
            (log_memory - 20.0).exp2().ceil()
        } else {
            1.0
        };
        let work = iterations as f64 * 0.693_147_1 / (2.0 * l);
        let k = if work <= 1.0 { 1.0 } else { (work.ln() - work.ln().ln() + 0.25).round().max(1.0) };
        Parameters { k: k as u32, l: l as u32 }
    }

    /// What chiavdf's one-segment prover uses: 10 and 1 below 2^16 squarings, the approximation from there.
    #[must_use]
    pub fn one_segment(iterations: u64) -> Parameters {
        if iterations < 1 << 16 { Parameters { k: 10, l: 1 } } else { Parameters::approximate(iterations) }
    }
}

/// The lengths of the segments before the last that a chain of T squarings is proved in: pieces of 2^16, 2^18, 2^20 ... squarings,
/// the longest that fit first, at most `most` of them; what remains is the last segment.
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
