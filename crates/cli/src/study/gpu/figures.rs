//! Figures that follow from the races.
#![forbid(unsafe_code)]

use lanework_lab::record::{Record, ResultRow};
use lanework_mayo::Params;
use lanework_mayo::cuda::Pace;
use lanework_subjects::mayo::Operation;
use lanework_subjects::study::mayo_gpu::{ALL, ONE, path};

/// The races' results by subject and variant.
pub(super) struct Figures<'a> {
    pub(super) record: &'a Record,
    /// What variants on devices are called before their batch.
    pub(super) device: &'static str,
    pub(super) batches: &'a [usize],
}

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

    /// The batch with the highest throughput, and nanoseconds of an operation in it.
    pub(super) fn best(&self, params: &Params, operation: Operation) -> Option<(usize, f64)> {
        let all = self.batches.iter().filter_map(|&b| Some((b, self.at(params, operation, b)?)));
        all.min_by(|a, b| a.1.total_cmp(&b.1))
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

    /// What the smallest and the largest batch say about small ones, against all cores.
    pub(super) fn pace(&self, params: &Params, operation: Operation) -> Option<Pace> {
        let (&small, &large) = (self.batches.first()?, self.batches.last()?);
        let took = |size: usize| Some((size, self.at(params, operation, size)? * size as f64));
        (small < large).then_some(())?;
        Some(Pace { small: took(small)?, large: took(large)?, cpu: self.all_cores(params, operation)? })
    }
}
