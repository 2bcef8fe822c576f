//! Samples as clusters: what a synthetic benchmark prints when its values are few and far apart.
//!
//! Counting cycles of a short loop gives nearly the same value almost every time, and now and then one that an interrupt or a
//! neighbour made longer. A median hides those, a mean mixes them in; clusters show both: `99%: 11719`.
#![forbid(unsafe_code)]

use std::fmt;

use crate::record::Record;

/// How far the values of a cluster may lie above its least one, in percent.
pub const WIDTH: u64 = 25;

/// Samples that lie together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cluster {
    /// How many there are.
    pub count: usize,
    /// The middle one; of an even number, the lower of the middle two.
    pub middle: u64,
    /// The least.
    pub least: u64,
    /// The largest.
    pub largest: u64,
}

/// The clusters of some samples, smallest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Histogram {
    clusters: Vec<Cluster>,
    samples: usize,
}

impl Histogram {
    /// Sorts samples into clusters: each begins with the least remaining sample and takes all that are at most [`WIDTH`]
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

    /// The cluster with the most samples; of several, the one with the smallest values. `None` without samples.
    #[must_use]
    pub fn main(&self) -> Option<&Cluster> {
        // `max_by_key` returns the last of several, hence the reversed order.
        self.clusters.iter().rev().max_by_key(|c| c.count)
    }

    /// A cluster's share of the samples in percent, rounded down: only all of them give 100.
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

/// Units of work that are counted together, since the cycles of one are too few to tell apart.
const UNITS: f64 = 1000.0;

/// Shows every contestant of a record's races as clusters of core cycles per 1,000 units of work, at the clock of the calibration
/// chain. Where the core's clock is not known, they are in nanoseconds. Rows that are not times are left out.
#[must_use]
pub fn render(record: &Record) -> String {
    let ghz = record.machine.ghz();
    let unit = ghz.map_or("nanoseconds".to_owned(), |ghz| format!("core cycles at {ghz:.3} GHz"));
    let clusters = |samples: &mut dyn Iterator<Item = f64>| {
        let counts: Vec<u64> = samples.map(|ns| (ns * ghz.unwrap_or(1.0) * UNITS).round() as u64).collect();
        Histogram::of(&counts)
    };
    let mut races: Vec<(&str, &str)> = Vec::new();
    for row in record.results.iter().filter(|r| r.unit == "ns") {
        if !races.contains(&(&row.subject, &row.baseline)) {
            races.push((&row.subject, &row.baseline));
        }
    }
    let mut out = String::new();
    for (subject, baseline) in races {
        let rows = || {
            record
                .results
                .iter()
                .filter(move |r| r.subject == subject && r.baseline == baseline && r.unit == "ns")
        };
        let of = rows().find_map(|r| r.counted.as_deref()).unwrap_or("operations");
        out += &format!("{subject}: {unit} for 1,000 {of}, clusters of samples at most {WIDTH} % wide\n");
        let own = clusters(&mut rows().flat_map(|r| r.baseline_samples.iter().copied()));
        out += &format!("\n{baseline} (baseline), {} samples\n{own}", own.samples());
        for row in rows() {
            let own = clusters(&mut row.samples.iter().copied());
            out += &format!("\n{}, {} samples\n{own}", row.variant, own.samples());
        }
        out += "\n";
    }
    for n in &record.not_here {
        out += &format!("not here: {} {}: {}\n", n.subject, n.variant, n.why);
    }
    for remark in &record.remarks {
        out += &format!("remark: {remark}\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Monotonic;
    use crate::machine::{Calibration, Fact, Machine};
    use crate::pairing::NotHere;

    #[test]
    fn a_record_is_shown_in_cycles_of_a_thousand() {
        let mut record = Record::new("s", "lanework bench s", Machine::inspect(&Monotonic::new(), vec![]));
        let chain = |ghz| Fact::Known(Calibration { best_ghz: ghz, median_ghz: ghz, worst_ghz: ghz });
        record.machine.calibration_before = chain(3.5);
        record.machine.calibration_after = chain(4.5);
        let row = |unit: &str, variant: &str, samples: [f64; 4]| {
            serde_json::json!({
                "subject": "s/op", "variant": variant, "baseline": "plain", "ratio": 1.0, "low": 1.0, "high": 1.0, "noise": 0.0,
                "verdict": "same", "unit": unit, "median": 1.0, "mean": 1.0, "min": 1.0, "q1": 1.0, "q3": 1.0, "ticks": null,
                "baseline_median": 2.0, "baseline_mean": 2.0, "baseline_min": 2.0, "margin": 0.005, "detectable": 0.01,
                "backend": variant, "baseline_backend": "plain", "cores": 1, "iterations": [1, 1], "launch_pairs": [2],
                "samples": samples, "baseline_samples": [2.93, 2.93, 2.93, 2.93],
            })
        };
        for r in [row("ns", "wide", [1.0, 1.0, 1.0, 10.0]), row("kib", "wide", [5.0; 4])] {
            record.results.push(serde_json::from_value(r).expect("a row"));
        }
        let text = render(&record);
        assert_eq!(
            text,
            "s/op: core cycles at 4.000 GHz for 1,000 operations, clusters of samples at most 25 % wide\n\n\
             plain (baseline), 4 samples\n100%: 11720\n\nwide, 4 samples\n75%: 4000\n25%: 40000\n\n"
        );
        let n = NotHere { subject: "s/op".into(), variant: "wider".into(), why: "no lanes".into() };
        record.not_here.push(n);
        record.remarks.push("it was loud".into());
        assert_eq!(render(&record), text.clone() + "not here: s/op wider: no lanes\nremark: it was loud\n");
        record.machine.calibration_before = Fact::Missing { missing: "no chain".into() };
        assert!(render(&record).contains("s/op: nanoseconds for 1,000 operations"));
        assert!(render(&record).contains("100%: 2930\n"));
    }

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
