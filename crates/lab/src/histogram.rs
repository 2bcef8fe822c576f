//! Samples as clusters: what a synthetic benchmark prints when its values are few and far apart.
//!
//! Counting cycles of a short loop gives nearly the same value almost every time, and now and then one that an interrupt or a
//! neighbour made longer. A median hides those, a mean mixes them in; clusters show both: `99%: 11719`.
#![forbid(unsafe_code)]

use std::fmt;

/// Values of a cluster are at most so much above its least one, in percent.
pub const WIDTH: u64 = 25;

/// Samples that lie together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cluster {
    /// How many there are.
    pub count: usize,
    /// The one in the middle; of an even number, the lower of the two.
    pub middle: u64,
    /// The least.
    pub least: u64,
    /// The largest.
    pub largest: u64,
}

/// The clusters of some samples, from the smallest on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Histogram {
    clusters: Vec<Cluster>,
    samples: usize,
}

impl Histogram {
    /// Sorts samples into clusters: each begins with the least sample that is left, and takes all that are at most [`WIDTH`]
    /// percent above it.
    #[must_use]
    pub fn of(samples: &[u64]) -> Histogram {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable();
        let mut clusters = Vec::new();
        let mut rest = &sorted[..];
        while let Some(&least) = rest.first() {
            let bound = least.saturating_add(least.saturating_mul(WIDTH) / 100);
            let count = rest.partition_point(|&x| x <= bound);
            clusters.push(Cluster { count, middle: rest[(count - 1) / 2], least, largest: rest[count - 1] });
            rest = &rest[count..];
        }
        Histogram { clusters, samples: samples.len() }
    }

    /// The clusters, from the smallest values to the largest.
    #[must_use]
    pub fn clusters(&self) -> &[Cluster] {
        &self.clusters
    }

    /// How many samples there were.
    #[must_use]
    pub const fn samples(&self) -> usize {
        self.samples
    }

    /// The cluster that most samples are in; of several, the one with the smallest values. Nothing without samples.
    #[must_use]
    pub fn main(&self) -> Option<&Cluster> {
        // The last of several greatest wins, hence from the largest values on.
        self.clusters.iter().rev().max_by_key(|c| c.count)
    }

    /// A cluster's share of the samples in percent, rounded down: only all of them are 100.
    #[must_use]
    pub fn percent(&self, cluster: &Cluster) -> usize {
        100 * cluster.count / self.samples.max(1)
    }
}

/// A line for every cluster: share and middle.
impl fmt::Display for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.clusters.iter().try_for_each(|c| writeln!(f, "{}%: {}", self.percent(c), c.middle))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_are_told_apart_and_shares_rounded_down() {
        let mut samples = vec![11_719; 990];
        samples.extend([11_725; 5]);
        samples.extend([22_699, 40_319, 40_400, 22_700, 22_698]);
        let h = Histogram::of(&samples);
        assert_eq!(h.to_string(), "99%: 11719\n0%: 22699\n0%: 40319\n");
        assert_eq!(h.samples(), 1000);
        assert_eq!(h.clusters().iter().map(|c| c.count).collect::<Vec<_>>(), [995, 3, 2]);
        assert_eq!((h.clusters()[1].least, h.clusters()[1].largest), (22_698, 22_700));
    }

    #[test]
    fn a_cluster_ends_a_quarter_above_its_least() {
        let h = Histogram::of(&[100, 125, 126]);
        assert_eq!(h.clusters().iter().map(|c| c.count).collect::<Vec<_>>(), [2, 1]);
        // A chain of small steps does not become one cluster.
        let steps: Vec<u64> = (100..400).collect();
        assert!(Histogram::of(&steps).clusters().len() > 4);
    }

    #[test]
    fn the_main_cluster_has_the_most_samples() {
        let h = Histogram::of(&[10, 50, 50, 90, 90]);
        assert_eq!(h.main().map(|c| c.middle), Some(50));
        assert_eq!(Histogram::of(&[]).main(), None);
        assert_eq!(Histogram::of(&[7]).to_string(), "100%: 7\n");
        assert_eq!(Histogram::of(&[0, 0, u64::MAX]).clusters().len(), 2);
    }
}
