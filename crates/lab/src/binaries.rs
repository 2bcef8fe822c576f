//! Two builds of one command, in pairs: what became faster or slower between them.
//!
//! Builds cannot share a process, so the unit is a short process: old, new, new, old, each timing the same variant of the same
//! subject for a moment, each giving its median. Memory layout differs by process and is averaged out with everything else. The
//! A/A control is the old build against itself.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use crate::launch::{LaunchError, Worker};
use crate::pairing::{LaunchSamples, Pair, Plan, Series};
use crate::race::analyse;
use crate::record::ResultRow;
use crate::stats::{least_pairs, median};

/// One of the builds.
#[derive(Debug, Clone)]
pub struct Contender {
    name: String,
    worker: Worker,
}

impl Contender {
    /// The executable `program`, which `args` lead to [`crate::launch::serve`] with the subject in question, its baseline being
    /// the variant in question.
    pub fn new<A: Into<OsString>>(
        name: impl Into<String>,
        program: impl Into<PathBuf>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        Self { name: name.into(), worker: Worker::at(program, args) }
    }

    /// The executable that is running.
    ///
    /// # Errors
    /// When the system will not tell where it lies.
    pub fn current<A: Into<OsString>>(
        name: impl Into<String>,
        args: impl IntoIterator<Item = A>,
    ) -> io::Result<Self> {
        Ok(Self { name: name.into(), worker: Worker::new(args)? })
    }

    /// One process. The first passes the gate, for a build is not timed before its own checks have passed.
    fn sample(&self, plan: &Plan, launch: u32, gate_passed: bool) -> Result<LaunchSamples, LaunchError> {
        self.worker.sample(plan, launch, gate_passed)
    }
}

/// The time of the baseline in one process: the median of all its samples.
fn time(samples: &LaunchSamples) -> Option<f64> {
    let own = |s: &Series| s.pairs.iter().flat_map(|p| p.baseline).collect::<Vec<_>>();
    let mut all: Vec<f64> = samples.series.iter().chain([&samples.control]).flat_map(own).collect();
    all.extend(samples.control.pairs.iter().flat_map(|p| p.variant));
    median(&all)
}

/// Races `new` against `old` for about `plan.budget_ns`, at least as many pairs as an interval takes. Above 1, `new` is faster.
///
/// # Errors
/// [`LaunchError`] when a build is refused by its gate, does not answer, or gives no times.
pub fn race(subject: &str, old: &Contender, new: &Contender, plan: &Plan) -> Result<ResultRow, LaunchError> {
    let rounds = 2 * least_pairs(plan.rules.alpha);
    // Eight processes a round; half of their time goes into starting and warming.
    let moment = Plan {
        budget_ns: (plan.budget_ns / (8 * rounds as u64)).clamp(20_000_000, 2_000_000_000),
        warm_up_ns: 3_000_000,
        launches: 1,
        ..plan.clone()
    };
    let first = old.sample(&moment, 0, false)?;
    let gate = new.sample(&moment, 0, false)?;
    let mut launch = 0;
    let mut once = |who: &Contender| -> Result<f64, LaunchError> {
        launch += 1;
        let samples = who.sample(&moment, launch, true)?;
        time(&samples).ok_or(LaunchError::Failed { launch, why: "it gave no times".into() })
    };
    let mut control = Vec::new();
    let mut pairs = Vec::new();
    for _ in 0..rounds {
        for (other, into) in [(old, &mut control), (new, &mut pairs)] {
            let [a, b, c, d] = [once(old)?, once(other)?, once(other)?, once(old)?];
            into.push(Pair { baseline: [a, d], variant: [b, c] });
        }
    }
    let series = |who: &Contender, pairs| Series {
        variant: who.name.clone(),
        facts: gate.baseline_facts.clone(),
        cores: 1,
        iterations: [1, 1],
        ticks: None,
        pairs,
    };
    let samples = LaunchSamples {
        launch: 0,
        subject: subject.to_owned(),
        baseline: old.name.clone(),
        control: series(old, control),
        series: vec![series(new, pairs)],
        not_here: Vec::new(),
        gate: gate.gate.clone(),
        ..first
    };
    let outcome = analyse(&[samples], plan).map_err(LaunchError::Merge)?;
    outcome
        .results
        .into_iter()
        .next()
        .ok_or(LaunchError::Failed { launch: 0, why: "it gave no result".into() })
}
