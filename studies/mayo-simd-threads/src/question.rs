//! The published report's figures, and the arithmetic it did with them.
#![forbid(unsafe_code)]

use lanework_race::study::Study;
use serde::Deserialize;

/// The report's configurations, in the order of its summary.
pub(super) const COLUMNS: [&str; 5] = ["baseline", "avx2", "omp2", "omp4", "both"];
/// The sets, in the order of its tables.
pub(super) const SETS: [&str; 4] = ["mayo1", "mayo2", "mayo3", "mayo5"];

/// `study.toml` behind its question.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Plan {
    pub(super) original: Original,
    pub(super) workload: Workload,
    pub(super) columns: Columns<String>,
    pub(super) race: Vec<Race>,
    /// Races of the published sources, which need peers.
    pub(super) build_race: Vec<Race>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Original {
    pub(super) title: String,
    pub(super) machine: String,
    pub(super) clock_step: f64,
    pub(super) flags: Columns<String>,
    pub(super) seconds: Sets,
    pub(super) improvement: Improvement,
    pub(super) average: Average,
    pub(super) recommendations: Recommendations,
}

/// One value for each of the report's configurations.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Columns<T> {
    pub(super) baseline: T,
    pub(super) avx2: T,
    pub(super) omp2: T,
    pub(super) omp4: T,
    pub(super) both: T,
}

impl<T> Columns<T> {
    pub(super) fn in_order(&self) -> [&T; 5] {
        [&self.baseline, &self.avx2, &self.omp2, &self.omp4, &self.both]
    }
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Sets {
    mayo1: [f64; 5],
    mayo2: [f64; 5],
    mayo3: [f64; 5],
    mayo5: [f64; 5],
}

impl Sets {
    pub(super) fn in_order(&self) -> [[f64; 5]; 4] {
        [self.mayo1, self.mayo2, self.mayo3, self.mayo5]
    }
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Improvement {
    pub(super) avx2: [f64; 4],
    pub(super) omp4: [f64; 4],
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Average {
    pub(super) avx2: f64,
    pub(super) omp4: f64,
    pub(super) omp2: f64,
    pub(super) both: f64,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Recommendations {
    pub(super) best: String,
    pub(super) alternative: String,
    pub(super) avoid: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Workload {
    pub(super) count: usize,
    pub(super) pairs: usize,
    pub(super) quick_ms: u64,
    pub(super) full_ms: u64,
    /// The sets that the quick form races; it takes medians of the others.
    pub(super) quick_sets: Vec<String>,
}

impl Workload {
    /// About how long a run of a race's baseline lasts, unless the whole count is done sooner.
    pub(super) const fn ms(&self, full: bool) -> u64 {
        if full { self.full_ms } else { self.quick_ms }
    }
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Race {
    pub(super) baseline: String,
    pub(super) variants: Vec<String>,
}

impl Plan {
    pub(super) fn of(study: &Study) -> Result<Plan, String> {
        let wrong = |why: String| format!("{}/study.toml: {why}", study.name);
        let plan: Plan = toml::Value::Table(study.table.clone())
            .try_into()
            .map_err(|e: toml::de::Error| wrong(e.to_string()))?;
        let quick = &plan.workload.quick_sets;
        match quick.iter().find(|set| !SETS.contains(&set.as_str())) {
            Some(stranger) => Err(wrong(format!("quick_sets: there is no set '{stranger}'"))),
            None if quick.is_empty() => {
                Err(wrong("quick_sets: the quick form must race something".to_owned()))
            }
            None => Ok(plan),
        }
    }
}

/// The report's "improvement" in percent: how much more work is done in the same time.
pub(super) fn improvement(baseline: f64, variant: f64) -> f64 {
    (baseline / variant - 1.0) * 100.0
}

/// The plain mean, as the report averages.
pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// What runs on two and four threads imply about one thread of the same binary, by Amdahl's law: t2 = s + p / 2 and
/// t4 = s + p / 4 give the time on one thread, s + p, and the parallel share p / (s + p).
pub(super) fn amdahl(t2: f64, t4: f64) -> (f64, f64) {
    let parallel = 4.0 * (t2 - t4).max(0.0);
    let one = t2 + parallel / 2.0;
    (one, parallel / one)
}

/// What the report's own figures say about where its columns come from.
pub(super) struct Evidence {
    /// The largest difference between the combined column and the threads' one, in seconds.
    pub(super) apart: f64,
    /// On how many sets two and four threads took the same time.
    pub(super) no_faster: usize,
    /// For each set: time on one thread that the two thread columns imply, the parallel share, and how much of the
    /// distance from the baseline to four threads the threads can explain.
    pub(super) sets: Vec<(f64, f64, f64)>,
}

impl Evidence {
    pub(super) fn of(original: &Original) -> Evidence {
        let rows = original.seconds.in_order();
        let apart = rows
            .iter()
            .flat_map(|r| [(r[4] - r[3]).abs(), (r[4] - r[2]).abs()].into_iter().reduce(f64::min))
            .fold(0.0, f64::max);
        let sets = rows
            .iter()
            .map(|&[base, _, t2, t4, _]| {
                let (one, share) = amdahl(t2, t4);
                (one, share, ((one - t4) / (base - t4)).clamp(0.0, 1.0))
            })
            .collect();
        let no_faster = rows.iter().filter(|r| r[3] >= r[2]).count();
        Evidence { apart, no_faster, sets }
    }

    /// Whether the threads' columns leave most of their gain to something else on every set.
    pub(super) fn threads_explain_little(&self) -> bool {
        self.sets.iter().all(|s| s.2 < 0.5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        Plan::of(&Study::from_toml("mayo-simd-threads", crate::ENTRY.toml).unwrap()).unwrap()
    }

    #[test]
    fn improvements_are_the_reports() {
        let original = plan().original;
        for (row, printed) in original.seconds.in_order().iter().zip(original.improvement.avx2) {
            assert!((improvement(row[0], row[1]) - printed).abs() < 0.05001, "{printed}");
        }
        for (row, printed) in original.seconds.in_order().iter().zip(original.improvement.omp4) {
            assert!((improvement(row[0], row[3]) - printed).abs() < 0.05001, "{printed}");
        }
        assert_eq!(format!("{:+.1}", improvement(0.295, 0.140)), "+110.7");
    }

    #[test]
    fn averages_are_the_reports() {
        let original = plan().original;
        let average = |column: usize| {
            let all: Vec<f64> =
                original.seconds.in_order().iter().map(|r| improvement(r[0], r[column])).collect();
            mean(&all).unwrap()
        };
        let a = &original.average;
        for (column, printed) in [(1, a.avx2), (2, a.omp2), (3, a.omp4), (4, a.both)] {
            assert!((average(column) - printed).abs() < 0.06, "{column}: {} {printed}", average(column));
        }
        assert_eq!(mean(&[]), None);
    }

    #[test]
    fn amdahl_recovers_what_was_put_in() {
        let (serial, parallel) = (0.3, 0.5);
        let (one, share) = amdahl(serial + parallel / 2.0, serial + parallel / 4.0);
        assert!((one - 0.8).abs() < 1e-12 && (share - 0.625).abs() < 1e-12);
        assert_eq!(amdahl(0.26, 0.26), (0.26, 0.0));
        // More threads that cost time do not make a negative parallel share.
        assert_eq!(amdahl(0.2, 0.3), (0.2, 0.0));
    }

    #[test]
    fn the_reports_columns_accuse_themselves() {
        let e = Evidence::of(&plan().original);
        assert!(e.apart <= 0.005_001, "{}", e.apart);
        assert!(e.threads_explain_little());
        assert_eq!(e.no_faster, 3);
        // MAYO-2: 0.255 and 0.245 s imply 0.275 s on one thread, the baseline took 0.475 s.
        assert!((e.sets[1].0 - 0.275).abs() < 1e-9);
        // A planted counterexample: perfect scaling explains everything.
        let mut perfect = plan().original;
        perfect.seconds = Sets { mayo1: [1.0, 0.2, 0.5, 0.25, 0.1], ..perfect.seconds };
        assert!(!Evidence::of(&perfect).threads_explain_little());
    }

    #[test]
    fn the_plan_names_what_it_compares() {
        let plan = plan();
        let named: Vec<&String> =
            plan.race.iter().flat_map(|r| r.variants.iter().chain([&r.baseline])).collect();
        for column in plan.columns.in_order() {
            assert!(named.contains(&column), "{column}");
        }
        // Builds are those that `cargo xtask peers` makes.
        #[cfg(feature = "peers")]
        for name in plan.build_race.iter().flat_map(|r| r.variants.iter().chain([&r.baseline])) {
            let whole = crate::builds::whole(name.split("+omp=").next().unwrap_or(name));
            assert!(lanework_peers::FLAG_BUILDS.iter().any(|f| f.name == whole), "{name}");
        }
        assert!(plan.workload.pairs >= lanework_race::stats::least_pairs(0.01));
        assert_eq!(COLUMNS.len(), plan.original.flags.in_order().len());
    }
}
