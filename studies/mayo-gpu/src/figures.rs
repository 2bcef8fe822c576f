//! Figures that follow from the races.
#![forbid(unsafe_code)]

use crate::subjects::{ALL, ONE, path};
use lanework_mayo::Params;
use lanework_mayo_cuda::Pace;
use lanework_race::record::{Record, ResultRow};
use lanework_suite::mayo::Operation;

/// The races' results by subject and variant.
pub(super) struct Figures<'a> {
    pub(super) record: &'a Record,
    /// How names of variants on devices begin, before the batch.
    pub(super) device: &'static str,
    pub(super) batches: &'a [usize],
}

/// A batch on the device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Best {
    pub(super) batch: usize,
    /// The part of the variant's name after the batch.
    pub(super) form: &'static str,
    /// Nanoseconds of an operation.
    pub(super) ns: f64,
}

/// The usual form of the kernels, and the others that give the same guarantees.
const FORMS: [&str; 5] = ["", "+whole", "+beside", "+fused", "+bits"];

/// The operations that make one MAYO, all with compact keys.
pub(super) const WHOLE: [Operation; 3] = [Operation::Keygen, Operation::Sign, Operation::Verify];

impl Figures<'_> {
    pub(super) fn row(&self, params: &Params, operation: Operation, variant: &str) -> Option<&ResultRow> {
        let path = path(params, operation);
        self.record.results.iter().find(|r| r.subject == path && r.variant == variant)
    }

    /// Nanoseconds of one operation.
    pub(super) fn ns(&self, params: &Params, operation: Operation, variant: &str) -> Option<f64> {
        if variant == ONE {
            let path = path(params, operation);
            return self
                .record
                .results
                .iter()
                .find(|r| r.subject == path && r.baseline == ONE)
                .map(|r| r.baseline_median);
        }
        self.row(params, operation, variant).map(|r| r.median)
    }

    pub(super) fn name(&self, batch: usize) -> String {
        format!("{}+batch={batch}", self.device)
    }

    /// Nanoseconds of an operation in a batch of this size on the device.
    pub(super) fn at(&self, params: &Params, operation: Operation, batch: usize) -> Option<f64> {
        self.ns(params, operation, &self.name(batch))
    }

    /// The batch with the highest throughput, in whatever form of the kernels that verifies what it signs.
    pub(super) fn best(&self, params: &Params, operation: Operation) -> Option<Best> {
        let of = |batch: usize, form: &'static str| {
            let ns = self.ns(params, operation, &format!("{}{form}", self.name(batch)))?;
            Some(Best { batch, form, ns })
        };
        let all = self.batches.iter().flat_map(|&batch| FORMS.iter().filter_map(move |form| of(batch, form)));
        all.min_by(|a, b| a.ns.total_cmp(&b.ns))
    }

    /// All cores, or the one where there is no other.
    pub(super) fn all_cores(&self, params: &Params, operation: Operation) -> Option<f64> {
        self.ns(params, operation, ALL).or_else(|| self.ns(params, operation, ONE))
    }

    /// Whole MAYO a second from the three operations' nanoseconds.
    pub(super) fn whole(&self, each: impl Fn(Operation) -> Option<f64>) -> Option<f64> {
        let ns: f64 = WHOLE.into_iter().map(each).collect::<Option<Vec<f64>>>()?.iter().sum();
        Some(1e9 / ns)
    }

    /// Milliseconds until a key generation, a signing and a verification of a batch are back, one after the other.
    pub(super) fn latency_ms(&self, batch: impl Fn(Operation) -> Option<(usize, f64)>) -> Option<f64> {
        let ms = |o| batch(o).map(|(size, ns)| size as f64 * ns / 1e6);
        WHOLE.into_iter().map(ms).collect::<Option<Vec<f64>>>().map(|all| all.iter().sum())
    }

    /// What the smallest and the largest batch say about small batches, against all cores.
    pub(super) fn pace(&self, params: &Params, operation: Operation) -> Option<Pace> {
        let (&small, &large) = (self.batches.first()?, self.batches.last()?);
        let took = |size: usize| Some((size, self.at(params, operation, size)? * size as f64));
        (small < large).then_some(())?;
        Some(Pace { small: took(small)?, large: took(large)?, cpu: self.all_cores(params, operation)? })
    }
}

#[cfg(test)]
mod tests {
    use lanework_mayo::{Round, Set};
    use lanework_race::clock::Monotonic;
    use lanework_race::machine::Machine;

    use super::*;

    fn row(subject: &str, variant: &str, ns: f64) -> ResultRow {
        let ratio = 100.0 / ns;
        serde_json::from_value(serde_json::json!({
            "subject": subject, "variant": variant, "baseline": ONE, "ratio": ratio, "low": ratio, "high": ratio, "noise": 0.001,
            "verdict": "same", "unit": "ns", "median": ns, "mean": ns, "min": ns, "q1": ns, "q3": ns, "ticks": null,
            "baseline_median": 100.0, "baseline_mean": 100.0, "baseline_min": 100.0, "margin": 0.005, "detectable": 0.01,
            "backend": "cuda", "baseline_backend": "avx512", "cores": 1, "iterations": [1, 1], "launch_pairs": [8],
            "samples": [], "baseline_samples": [],
        }))
        .expect("a row")
    }

    #[test]
    fn the_best_is_looked_for_among_all_forms_that_verify() {
        let params = Params::of(Round::Three, Set::Mayo1);
        let sign = path(params, Operation::Sign);
        let mut record = Record::new("planted", "lanework", Machine::inspect(&Monotonic::new(), Vec::new()));
        let best = |record: &Record| {
            let figures = Figures { record, device: "cuda", batches: &[64, 8192] };
            figures.best(params, Operation::Sign).map(|b| (b.batch, b.form, b.ns))
        };
        assert_eq!(best(&record), None);
        record.results = vec![row(&sign, "cuda+batch=64", 9.0), row(&sign, "cuda+batch=8192", 5.0)];
        assert_eq!(best(&record), Some((8192, "", 5.0)));
        record.results.push(row(&sign, "cuda+batch=8192+fused", 4.0));
        // Unverified signatures do not compete with verified ones.
        record.results.push(row(&sign, "cuda+batch=8192+unverified", 1.0));
        assert_eq!(best(&record), Some((8192, "+fused", 4.0)));
        assert_eq!(
            Figures { record: &record, device: "cuda", batches: &[64] }.best(params, Operation::Keygen),
            None
        );
    }
}
