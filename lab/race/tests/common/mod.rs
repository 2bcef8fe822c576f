//! A clock that only advances when planted work says so, and contestants that take planted times.
#![allow(dead_code, unreachable_pub)]

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use lanework_race::clock::Clock;
use lanework_race::gate::{Gate, GateRow};
use lanework_race::pairing::{Pinning, Plan};
use lanework_race::stats::Rng;
use lanework_race::subject::{Facts, Runnable, Unavailable, Variant};

/// A standard normal value.
pub fn normal(rng: &mut Rng) -> f64 {
    let u = 1.0 - rng.unit();
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * rng.unit()).cos()
}

/// Time that stands still unless planted work runs.
#[derive(Clone, Default)]
pub struct FakeClock(pub Rc<Cell<f64>>);

impl Clock for FakeClock {
    fn now_ns(&self) -> u64 {
        self.0.get() as u64
    }
    fn ticks(&self) -> Option<u64> {
        Some((self.0.get() * 2.5) as u64)
    }
    fn step_ns(&self) -> u64 {
        40
    }
    fn name(&self) -> &'static str {
        "planted"
    }
}

/// Which contestants ran, in which order: what the schedule did.
pub type Log = Rc<RefCell<Vec<(String, u64)>>>;

/// The planted world that contestants share.
#[derive(Clone)]
pub struct World {
    pub clock: FakeClock,
    pub log: Log,
    pub rng: Rc<RefCell<Rng>>,
    /// Standard deviation of the logarithm of a run's time.
    pub noise: f64,
    /// Growth of all times per second of planted time.
    pub drift: f64,
    /// Share of runs that are three times as long.
    pub outliers: f64,
}

impl World {
    pub fn new(seed: u64) -> Self {
        Self {
            clock: FakeClock::default(),
            log: Log::default(),
            rng: Rc::new(RefCell::new(Rng::new(seed))),
            noise: 0.005,
            drift: 0.02,
            outliers: 0.02,
        }
    }

    /// A variant that takes `ns` per iteration.
    pub fn variant(&self, name: &str, ns: f64) -> Variant {
        let (world, own) = (self.clone(), name.to_owned());
        Variant::new(name, move || {
            Ok(Box::new(Planted { world: world.clone(), name: own.clone(), ns, runs: 0 })
                as Box<dyn Runnable>)
        })
    }

    /// A variant that cannot run here.
    pub fn absent(&self, name: &str, why: &'static str) -> Variant {
        Variant::new(name, move || Err(Unavailable::because(why)))
    }
}

struct Planted {
    world: World,
    name: String,
    ns: f64,
    runs: u64,
}

impl Runnable for Planted {
    fn run(&mut self, iterations: u64) {
        let w = &self.world;
        self.runs += 1;
        let rng = &mut *w.rng.borrow_mut();
        let now = w.clock.0.get();
        let mut ns =
            self.ns * iterations as f64 * (1.0 + w.drift * now / 1e9) * (w.noise * normal(rng)).exp();
        if rng.unit() < w.outliers {
            ns *= 3.0;
        }
        w.clock.0.set(now + ns);
        w.log.borrow_mut().push((self.name.clone(), iterations));
    }

    fn facts(&self) -> Facts {
        Facts {
            backend: format!("{} after running", self.name),
            notes: vec![format!("ran: {}", self.runs > 0)],
        }
    }
}

/// A gate that opens.
pub fn open_gate() -> Gate {
    Gate::new(|| Ok(vec![row(10, 0)]))
}

/// A row of a gate.
pub fn row(passed: u64, failed: u64) -> GateRow {
    GateRow {
        what: "planted".into(),
        backend: "planted".into(),
        passed,
        failed,
        skipped: 0,
        why: if failed > 0 { "planted fault".into() } else { String::new() },
    }
}

/// A plan for planted time.
pub fn plan() -> Plan {
    Plan {
        budget_ns: 1_000_000_000,
        pinning: Pinning::Off,
        launches: 1,
        max_pairs: 200,
        resamples: 1000,
        ..Plan::default()
    }
}
