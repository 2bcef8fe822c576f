//! Where an operation's time goes: its phases, timed one by one in turns.
#![forbid(unsafe_code)]

use lanework_cpu::{Cpu, Select};
use lanework_mayo::{Engine, Params};
use lanework_race::affinity::Pin;
use lanework_race::clock::{Clock, Monotonic};
use lanework_race::stats::median;
use serde::Serialize;

mod bench;

pub use bench::{Bench, Operation, Phase};

/// Turns over everything; the figure is their median.
const TURNS: usize = 9;
/// A sample lasts at least this long.
const SAMPLE_NS: u64 = 300_000;

/// Phases in the order of the table.
pub const PHASES: [Phase; 4] = [Phase::Expansion, Phase::Products, Phase::System, Phase::Hashing];

/// One operation of one backend.
#[derive(Clone, Debug, Serialize)]
pub struct Profile {
    /// Its set, as `round3/mayo1`.
    pub set: String,
    /// Its backend.
    pub backend: &'static str,
    /// Its name.
    pub operation: &'static str,
    /// Nanoseconds of the whole operation.
    pub whole_ns: f64,
    /// The share of each of [`PHASES`], where the operation has it.
    pub shares: [Option<f64>; 4],
}

impl Profile {
    /// What no phase accounts for: packing, unpacking, wiping, and second attempts at signing. Below 0 when
    /// the phases alone ran slower than together.
    #[must_use]
    pub fn rest(&self) -> f64 {
        1.0 - self.shares.iter().flatten().sum::<f64>()
    }
}

/// Nanoseconds of one call, over enough calls to fill a sample.
fn sample(clock: &dyn Clock, calls: u64, mut call: impl FnMut()) -> f64 {
    let start = clock.now_ns();
    for _ in 0..calls {
        call();
    }
    clock.now_ns().saturating_sub(start).max(1) as f64 / calls as f64
}

/// Medians for every job, the jobs taking turns so that drift falls on all alike.
fn medians(clock: &dyn Clock, jobs: &mut [Box<dyn FnMut() + '_>]) -> Vec<f64> {
    let calls: Vec<u64> = jobs
        .iter_mut()
        .map(|job| {
            let once = sample(clock, 2, &mut *job);
            (SAMPLE_NS as f64 / once).ceil().clamp(1.0, 1e6) as u64
        })
        .collect();
    let mut samples = vec![Vec::with_capacity(TURNS); jobs.len()];
    for _ in 0..TURNS {
        for ((job, &calls), samples) in jobs.iter_mut().zip(&calls).zip(&mut samples) {
            samples.push(sample(clock, calls, &mut *job));
        }
    }
    samples.iter().map(|s| median(s).unwrap_or(f64::NAN)).collect()
}

/// Every operation of these sets on the given backends, as far as they run here, on one core.
///
/// # Errors
/// A sentence naming the set whose own signature does not verify.
pub fn profile(cpu: &Cpu, sets: &[&'static Params], backends: &[&str]) -> Result<Vec<Profile>, String> {
    let clock = Monotonic::new();
    // Where the system refuses to pin, the profile is only rougher.
    let _pin = Pin::hold(None).and_then(|mut pin| pin.use_cores(1).map(|()| pin)).ok();
    let mut all = Vec::new();
    for &params in sets {
        let path = params.path();
        for engine in backends.iter().filter_map(|name| Engine::choose(cpu, Select::Named(name)).ok()) {
            let bench = std::cell::RefCell::new(Bench::new(engine.kernels().scheme(params)));
            if !bench.borrow_mut().whole(Operation::Verify) {
                return Err(format!("{path}: the profile's own signature does not verify"));
            }
            for operation in Operation::ALL {
                let mut jobs: Vec<Box<dyn FnMut() + '_>> = vec![Box::new(|| {
                    bench.borrow_mut().whole(operation);
                })];
                for &phase in operation.phases() {
                    let bench = &bench;
                    jobs.push(Box::new(move || bench.borrow_mut().run(operation, phase)));
                }
                let times = medians(&clock, &mut jobs);
                let share = |phase| {
                    let at = operation.phases().iter().position(|&p| p == phase)?;
                    Some(times[1 + at] / times[0])
                };
                all.push(Profile {
                    set: path.clone(),
                    backend: engine.name(),
                    operation: operation.name(),
                    whole_ns: times[0],
                    shares: PHASES.map(share),
                });
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Time that passes only when a job says so.
    struct Planted<'a>(&'a Cell<u64>);

    impl Clock for Planted<'_> {
        fn now_ns(&self) -> u64 {
            self.0.get()
        }
        fn ticks(&self) -> Option<u64> {
            None
        }
        fn step_ns(&self) -> u64 {
            1
        }
        fn name(&self) -> &'static str {
            "planted"
        }
    }

    #[test]
    fn jobs_get_their_own_time() {
        let now = Cell::new(0);
        let job = |ns: u64| -> Box<dyn FnMut() + '_> {
            let now = &now;
            Box::new(move || now.set(now.get() + ns))
        };
        let got = medians(&Planted(&now), &mut [job(1000), job(250), job(500_000)]);
        assert_eq!(got, [1000.0, 250.0, 500_000.0]);
    }

    #[test]
    fn what_is_left_is_the_rest() {
        let p = Profile {
            set: String::new(),
            backend: "portable",
            operation: "keygen",
            whole_ns: 1.0,
            shares: [Some(0.5), Some(0.3), None, Some(0.1)],
        };
        assert!((p.rest() - 0.1).abs() < 1e-12);
    }
}
