//! The sampler: prepares and warms up contestants, and takes their samples.
#![forbid(unsafe_code)]

use super::{NotHere, Pair, RaceError, Series, resolution};
use crate::affinity::Pin;
use crate::clock::Clock;
use crate::schedule::{Side, Turn};
use crate::subject::{Runnable, Variant};

/// The least length of a sample on several cores. Threads that slept during other turns often wake on one core, and the
/// kernel takes a tick or two (some milliseconds) to spread them. A shorter sample would measure that.
const PARALLEL_SAMPLE_NS: u64 = 20_000_000;

/// Untimed calls before each sample, at least; an eighth of the sample where that is more. A contestant that has
/// not run for a while finds caches and predictors full of others' data; the baseline, which runs in every pair, less so.
/// A call of 0.1 ms with data-dependent branches took 25 % longer in its first turn after a dozen others. It took 2 % longer in its
/// second, and no longer from the fourth on.
const LEAD_IN_CALLS: u64 = 4;
/// Where calls are long, the first one warms up everything: the lead-in ends with the call that reaches this.
const LEAD_IN_NS: f64 = 1_000_000.0;
/// A call this long does not show whether it began cold, and gets no lead-in.
const LONG_CALL_NS: f64 = 20_000_000.0;

/// Lead-in iterations for a sample of `iterations`, each of which takes about `call_ns`.
fn lead_in(iterations: u64, call_ns: f64) -> u64 {
    let least = if call_ns >= LONG_CALL_NS {
        0
    } else {
        LEAD_IN_CALLS.min((LEAD_IN_NS / call_ns.max(1.0)).ceil() as u64)
    };
    (iterations / 8).max(least)
}

pub(super) struct Contestant {
    pub(super) name: String,
    pub(super) cores: usize,
    units: u64,
    pub(super) iterations: u64,
    pub(super) lead_in: u64,
    pub(super) work: Box<dyn Runnable>,
    ticks: Vec<f64>,
}

pub(super) struct Sampler<'a> {
    pub(super) clock: &'a dyn Clock,
    pub(super) pin: Option<Pin>,
}

impl Sampler<'_> {
    fn go_to(&mut self, cores: usize) -> Result<(), RaceError> {
        self.pin.as_mut().map_or(Ok(()), |pin| pin.use_cores(cores)).map_err(RaceError::Affinity)
    }

    /// Prepares a variant on its own cores, since threads that it starts inherit them.
    pub(super) fn prepare(
        &mut self,
        subject: &str,
        variant: &Variant,
    ) -> Result<Result<Contestant, NotHere>, RaceError> {
        self.go_to(variant.core_count())?;
        Ok(match variant.prepare() {
            Ok(work) => Ok(Contestant {
                name: variant.name().into(),
                cores: variant.core_count(),
                units: variant.units_per_iteration(),
                iterations: 1,
                lead_in: 0,
                work,
                ticks: Vec::new(),
            }),
            Err(e) => {
                Err(NotHere { subject: subject.into(), variant: variant.name().into(), why: e.to_string() })
            }
        })
    }

    /// Warms a contestant up and finds how many iterations make a sample of `sample_ns`.
    pub(super) fn calibrate(
        &mut self,
        c: &mut Contestant,
        sample_ns: u64,
        warm_up_ns: u64,
    ) -> Result<(), RaceError> {
        self.go_to(c.cores)?;
        let sample_ns = if c.cores > 1 { sample_ns.max(PARALLEL_SAMPLE_NS) } else { sample_ns };
        let begin = self.clock.now_ns();
        let mut cold = true;
        loop {
            let start = self.clock.now_ns();
            c.work.run(c.iterations);
            let end = self.clock.now_ns();
            let took = end.saturating_sub(start);
            // A first run may be long only because it was cold; if it was very long, that hardly matters.
            let believed = !cold || took / 50 >= sample_ns;
            cold = false;
            if took >= sample_ns && believed && end.saturating_sub(begin) >= warm_up_ns {
                // On several cores the lead-in is a whole sample, so that the threads spread over them.
                c.lead_in = if c.cores > 1 {
                    c.iterations
                } else {
                    lead_in(c.iterations, took as f64 / c.iterations as f64)
                };
                return Ok(());
            }
            if took < sample_ns {
                // Aim a tenth past the mark, but at most tenfold at a time: the first runs are cold.
                let aim = sample_ns as f64 * 1.1 / took.max(1) as f64;
                let more = (c.iterations as f64 * aim.clamp(1.1, 10.0)).ceil();
                if more > 1e15 {
                    return Err(RaceError::BrokenClock { variant: c.name.clone() });
                }
                c.iterations = more as u64;
            }
        }
    }

    /// One sample, in nanoseconds per unit. The lead-in runs first, untimed, so that caches and predictors belong to this
    /// contestant and not to the previous one.
    fn sample(&mut self, c: &mut Contestant) -> Result<f64, RaceError> {
        self.go_to(c.cores)?;
        if c.lead_in > 0 {
            c.work.run(c.lead_in);
        }
        let ticks = self.clock.ticks();
        let start = self.clock.now_ns();
        c.work.run(c.iterations);
        let took = self.clock.now_ns().saturating_sub(start);
        let ticks = ticks.and_then(|t| Some(self.clock.ticks()?.saturating_sub(t)));
        if took == 0 {
            return Err(RaceError::BrokenClock { variant: c.name.clone() });
        }
        let units = c.units_per_sample();
        c.ticks.extend(ticks.map(|t| t as f64 / units));
        Ok(took as f64 / units)
    }

    pub(super) fn pair(
        &mut self,
        turn: Turn,
        base: &mut Contestant,
        other: &mut Contestant,
    ) -> Result<Pair, RaceError> {
        let four = turn.take(|side| match side {
            Side::Baseline => self.sample(base),
            Side::Variant => self.sample(other),
        })?;
        Ok(four.into())
    }
}

impl Contestant {
    /// Units of work in a sample.
    fn units_per_sample(&self) -> f64 {
        self.iterations as f64 * self.units as f64
    }
}

pub(super) fn series(c: &Contestant, base: &Contestant, pairs: Vec<Pair>, step: u64) -> Series {
    let lasted = |p: &Pair| {
        let baseline = p.baseline.map(|ns| ns * base.units_per_sample());
        let variant = p.variant.map(|ns| ns * c.units_per_sample());
        baseline.into_iter().chain(variant)
    };
    Series {
        variant: c.name.clone(),
        facts: c.work.facts(),
        cores: c.cores,
        iterations: [base.iterations, c.iterations],
        ticks: crate::stats::median(&c.ticks),
        resolution: resolution(step as f64, pairs.iter().flat_map(lasted)),
        pairs,
    }
}
