//! The statistics of pairs: medians, and intervals that hold their error rate.
//!
//! Everything works on logarithms of ratios, where "1 % faster" and "1 % slower" lie equally far from zero. The unit
//! of independent evidence is the launch when there are several (memory layout differs between launches and
//! is fixed within one), and a block of neighbouring pairs otherwise.
#![forbid(unsafe_code)]

use std::fmt;

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// A small generator (SplitMix64, by Sebastiano Vigna) for resampling and shuffling: same seed, same result.
/// Not for secrets.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// Starts from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..n`; 0 when `n` is 0. The bias of the multiply-shift is below n / 2⁶⁴.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next_u64()) * n as u128) >> 64) as usize
    }

    /// A number in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Puts `items` in a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

/// The `q`-quantile of ascending values, interpolated between neighbours; `None` when there are none.
#[must_use]
pub fn quantile_of_sorted(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = q.clamp(0.0, 1.0) * last as f64;
    let below = at.floor() as usize;
    let above = (below + 1).min(last);
    Some(sorted[below] + (sorted[above] - sorted[below]) * (at - below as f64))
}

/// The median, reordering `values`; `None` when there are none.
pub fn median_in_place(values: &mut [f64]) -> Option<f64> {
    let n = values.len();
    if n == 0 {
        return None;
    }
    let (low, middle, _) = values.select_nth_unstable_by(n / 2, f64::total_cmp);
    if n % 2 == 1 {
        return Some(*middle);
    }
    let below = low.iter().copied().max_by(f64::total_cmp)?;
    Some(f64::midpoint(below, *middle))
}

/// The median; `None` when there are no values.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    median_in_place(&mut values.to_vec())
}

/// What a series of times looks like by itself.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// How many values.
    pub count: usize,
    /// The median.
    pub median: f64,
    /// The arithmetic mean, outliers and all.
    pub mean: f64,
    /// The smallest.
    pub min: f64,
    /// The first quartile.
    pub q1: f64,
    /// The third quartile.
    pub q3: f64,
    /// The largest.
    pub max: f64,
}

impl Summary {
    /// Summarises `values`; `None` when there are none.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        Some(Self {
            count: sorted.len(),
            median: quantile_of_sorted(&sorted, 0.5)?,
            mean: sorted.iter().sum::<f64>() / sorted.len() as f64,
            min: *sorted.first()?,
            q1: quantile_of_sorted(&sorted, 0.25)?,
            q3: quantile_of_sorted(&sorted, 0.75)?,
            max: *sorted.last()?,
        })
    }
}

/// A figure with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The figure.
    pub estimate: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// From logarithms back to ratios.
    #[must_use]
    pub fn exp(self) -> Self {
        Self { estimate: self.estimate.exp(), low: self.low.exp(), high: self.high.exp() }
    }

    /// The interval with both ends at least `resolution` away from the figure. A clock counts in whole steps: samples that
    /// agree to less than a step give equal ratios, and resamples of equal values have no width.
    #[must_use]
    pub fn no_finer_than(self, resolution: f64) -> Self {
        let (low, high) = (self.estimate - resolution, self.estimate + resolution);
        Self { low: self.low.min(low), high: self.high.max(high), ..self }
    }

    /// Whether it has a width at all.
    #[must_use]
    pub fn is_wide(self) -> bool {
        self.low < self.high
    }

    /// Whether `x` lies outside.
    #[must_use]
    pub fn excludes(self, x: f64) -> bool {
        x < self.low || self.high < x
    }
}

/// There are not enough pairs for an interval at this error rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooFew {
    /// How many pairs there are.
    pub have: usize,
    /// How many are needed.
    pub need: usize,
}

impl fmt::Display for TooFew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} pairs are too few for an interval; it needs {}", self.have, self.need)
    }
}

impl std::error::Error for TooFew {}

/// The least number of pairs for which an interval at error rate `alpha` exists: with fewer, even the full range of
/// the pairs misses the median more often than that.
#[must_use]
pub fn least_pairs(alpha: f64) -> usize {
    // All pairs on one side of the median: 2 · 2⁻ⁿ ≤ α.
    (1.0 - alpha.clamp(1e-9, 0.5).log2()).ceil() as usize
}

/// The interval for the median of `sorted` from order statistics alone: exact for independent values of any
/// distribution, since the number of values below the true median is binomial.
fn sign_interval(sorted: &[f64], alpha: f64) -> (f64, f64) {
    let n = sorted.len();
    let rank = if n <= 1000 {
        let mut term = 0.5_f64.powi(n as i32);
        let mut tail = term;
        let mut k = 0_usize;
        while 2.0 * tail <= alpha && k < n / 2 {
            term *= (n - k) as f64 / (k + 1) as f64;
            tail += term;
            k += 1;
        }
        k.saturating_sub(1)
    } else {
        let z = Normal::standard().inverse_cdf(1.0 - alpha / 2.0);
        (n as f64 / 2.0 - z * (n as f64).sqrt() / 2.0).floor().max(1.0) as usize - 1
    };
    (sorted[rank], sorted[n - 1 - rank])
}

/// Appends a resample of `values` to `into`: as many of them, drawn as blocks of neighbours that wrap around.
fn resample_blocks(values: &[f64], block: usize, rng: &mut Rng, into: &mut Vec<f64>) {
    let n = values.len();
    let until = into.len() + n;
    while into.len() < until {
        let start = rng.below(n);
        for i in 0..block.min(until - into.len()) {
            into.push(values[(start + i) % n]);
        }
    }
}

/// The median of all pairs with its interval at error rate `alpha`, from the log ratios of each launch.
///
/// The interval is the union of up to three, each of which covers a different way in which pairs mislead:
/// order statistics (exact for independent pairs, whatever their distribution, and honest when they are few);
/// a percentile bootstrap that resamples launches and, within them, blocks of neighbours (so neighbours that
/// resemble each other do not count twice); and, with two launches or more, Student's t over the medians of the
/// launches (the bootstrap is known to be too narrow with few clusters; t is not). So it errs on the wide side.
///
/// # Errors
/// [`TooFew`] when there are fewer than [`least_pairs`] pairs in all.
pub fn interval(launches: &[Vec<f64>], alpha: f64, resamples: usize, seed: u64) -> Result<Interval, TooFew> {
    let launches: Vec<&[f64]> = launches.iter().map(Vec::as_slice).filter(|l| !l.is_empty()).collect();
    let mut all: Vec<f64> = launches.concat();
    let need = least_pairs(alpha);
    if all.len() < need {
        return Err(TooFew { have: all.len(), need });
    }
    all.sort_unstable_by(f64::total_cmp);
    let few = TooFew { have: 0, need };
    let estimate = quantile_of_sorted(&all, 0.5).ok_or(few)?;
    let (mut low, mut high) = sign_interval(&all, alpha);

    let mut rng = Rng::new(seed);
    let mut medians = Vec::with_capacity(resamples);
    let mut draw = Vec::with_capacity(all.len() * 2);
    for _ in 0..resamples {
        draw.clear();
        for _ in 0..launches.len() {
            let launch = launches[rng.below(launches.len())];
            let block = (launch.len() as f64).cbrt().ceil() as usize;
            resample_blocks(launch, block, &mut rng, &mut draw);
        }
        medians.extend(median_in_place(&mut draw));
    }
    medians.sort_unstable_by(f64::total_cmp);
    if let (Some(l), Some(h)) =
        (quantile_of_sorted(&medians, alpha / 2.0), quantile_of_sorted(&medians, 1.0 - alpha / 2.0))
    {
        low = low.min(l);
        high = high.max(h);
    }

    if launches.len() >= 2 {
        let centres: Vec<f64> = launches.iter().filter_map(|l| median(l)).collect();
        let n = centres.len() as f64;
        let mean = centres.iter().sum::<f64>() / n;
        let variance = centres.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / (n - 1.0);
        if let Ok(t) = StudentsT::new(0.0, 1.0, n - 1.0) {
            let half = t.inverse_cdf(1.0 - alpha / 2.0) * (variance / n).sqrt();
            low = low.min(mean - half);
            high = high.max(mean + half);
        }
    }
    Ok(Interval { estimate, low: low.min(estimate), high: high.max(estimate) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_quantiles() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(quantile_of_sorted(&[0.0, 10.0], 0.25), Some(2.5));
        let s = Summary::of(&[1.0, 2.0, 3.0, 4.0, 100.0]).expect("values");
        assert_eq!((s.median, s.mean, s.min, s.q1, s.q3, s.max), (3.0, 22.0, 1.0, 2.0, 4.0, 100.0));
    }

    #[test]
    fn least_pairs_is_where_the_range_covers() {
        assert_eq!(least_pairs(0.01), 8);
        assert_eq!(least_pairs(0.05), 6);
        let seven = vec![vec![0.0; 7]];
        assert_eq!(interval(&seven, 0.01, 100, 1), Err(TooFew { have: 7, need: 8 }));
        assert!(interval(&[vec![0.0; 8]], 0.01, 100, 1).is_ok());
    }

    /// Ranks from published tables of the binomial (sign) confidence interval for the median.
    #[test]
    fn sign_interval_matches_tables() {
        let xs = |n: usize| (1..=n).map(|i| i as f64).collect::<Vec<_>>();
        assert_eq!(sign_interval(&xs(8), 0.01), (1.0, 8.0));
        assert_eq!(sign_interval(&xs(10), 0.05), (2.0, 9.0));
        assert_eq!(sign_interval(&xs(20), 0.05), (6.0, 15.0));
        assert_eq!(sign_interval(&xs(25), 0.05), (8.0, 18.0));
        // The two ways of finding the rank agree where they meet.
        let exact = sign_interval(&xs(1000), 0.01);
        let normal = sign_interval(&xs(1001), 0.01);
        assert!((exact.0 - normal.0).abs() <= 1.0, "{exact:?} {normal:?}");
    }

    #[test]
    fn the_generator_is_splitmix64() {
        // First outputs for seed 1234567, as published with the reference code.
        let mut rng = Rng::new(1_234_567);
        assert_eq!(rng.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(rng.next_u64(), 3_203_168_211_198_807_973);
    }

    /// Samples that agree to less than a step of the clock: every pair has one of few ratios, and most have the same.
    #[test]
    fn an_interval_is_no_finer_than_the_clock() {
        let equal = vec![vec![0.041; 20]; 5];
        let found = interval(&equal, 0.01, 400, 3).expect("enough pairs");
        assert!(!found.is_wide());
        let step = crate::pairing::resolution(30.0, [220_000.0, 218_500.0].into_iter());
        assert!((step - 30.0 / 218_500.0).abs() < 1e-8, "{step}");
        let known = found.no_finer_than(step);
        assert!(known.is_wide() && !known.excludes(0.041) && known.excludes(0.0));
        assert!((known.high - 0.041 - step).abs() < 1e-12 && (0.041 - known.low - step).abs() < 1e-12);
        // A wider interval is unchanged.
        let wide = Interval { estimate: 0.0, low: -0.1, high: 0.2 };
        assert_eq!(wide.no_finer_than(step), wide);
    }

    #[test]
    fn same_seed_same_interval() {
        let mut rng = Rng::new(5);
        let data = vec![(0..40).map(|_| rng.unit()).collect::<Vec<_>>()];
        assert_eq!(interval(&data, 0.01, 500, 9), interval(&data, 0.01, 500, 9));
    }
}
