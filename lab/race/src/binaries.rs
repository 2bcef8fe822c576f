//! Builds of one command, raced in pairs: what became faster or slower from one to another.
//!
//! Builds cannot share a process, so the unit is a short process that times the same variant of the same subject and gives its
//! median. The order is old, new, new, old or the reverse, by turns. Memory layout differs between processes and is averaged out
//! with everything else. The A/A control is the old build against itself.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use crate::gate::GateRow;
use crate::launch::{LaunchError, Worker};
use crate::pairing::{LaunchSamples, Pair, Plan, Series};
use crate::race::{Outcome, analyse};
use crate::schedule::{Schedule, Side};
use crate::stats::{least_pairs, median};
use crate::subject::Facts;

/// One of the builds.
#[derive(Debug, Clone)]
pub struct Contender {
    name: String,
    worker: Worker,
}

impl Contender {
    /// The executable `program`. Its `args` must make it call [`crate::launch::serve`] with the subject in question, whose
    /// baseline is the variant in question.
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
    /// When its path cannot be found.
    pub fn current<A: Into<OsString>>(
        name: impl Into<String>,
        args: impl IntoIterator<Item = A>,
    ) -> io::Result<Self> {
        Ok(Self { name: name.into(), worker: Worker::new(args)? })
    }

    /// Makes the build pass its own gate, without which it is not timed.
    ///
    /// # Errors
    /// [`LaunchError`], naming the build, when its gate refuses it or it does not answer.
    pub fn admit(self, plan: &Plan) -> Result<Admitted, LaunchError> {
        let gate = self.sample(&moment(plan, 1), 0, false).map_err(|e| named(&self.name, e))?.gate;
        Ok(Admitted { contender: self, gate })
    }

    /// Runs one process. The first passes the gate: a build is not timed before its own checks have passed.
    fn sample(&self, plan: &Plan, launch: u32, gate_passed: bool) -> Result<LaunchSamples, LaunchError> {
        self.worker.sample(plan, launch, gate_passed)
    }
}

/// A build that has passed its gate.
#[derive(Debug, Clone)]
pub struct Admitted {
    contender: Contender,
    gate: Vec<GateRow>,
}

impl Admitted {
    /// What its gate checked.
    #[must_use]
    pub fn gate(&self) -> &[GateRow] {
        &self.gate
    }

    /// The same build at another job behind the same gate.
    #[must_use]
    pub fn at<A: Into<OsString>>(&self, name: impl Into<String>, args: impl IntoIterator<Item = A>) -> Self {
        let worker = self.contender.worker.clone().with(args);
        Self { contender: Contender { name: name.into(), worker }, gate: self.gate.clone() }
    }

    /// The median time of one process, how finely it is known, and what ran in it.
    fn time(&self, plan: &Plan, launch: u32) -> Result<(f64, f64, Facts), LaunchError> {
        let name = &self.contender.name;
        let samples = self.contender.sample(plan, launch, true).map_err(|e| named(name, e))?;
        let ns = time(&samples)
            .ok_or_else(|| LaunchError::Failed { launch, why: format!("{name} gave no times") })?;
        Ok((ns, samples.control.resolution, samples.baseline_facts))
    }
}

/// Adds the build's name to an error.
fn named(name: &str, error: LaunchError) -> LaunchError {
    match error {
        LaunchError::Refused { subject, gate } => {
            LaunchError::Refused { subject: format!("{subject} of {name}"), gate }
        }
        LaunchError::NoAnswer { launch, why } => {
            LaunchError::NoAnswer { launch, why: format!("{name}: {why}") }
        }
        LaunchError::Failed { launch, why } => LaunchError::Failed { launch, why: format!("{name}: {why}") },
        other => other,
    }
}

/// The most that one process gets of a plan, in nanoseconds.
const LONGEST: u64 = 2_000_000_000;

/// Processes of a round in which `new` builds are raced.
fn processes(new: usize) -> u64 {
    4 * (new as u64 + 1)
}

/// At least `rounds`, as many as an interval needs, and as many as fill the budget; both orders of a turn occur equally often.
fn enough(rounds: usize, new: usize, plan: &Plan) -> usize {
    let fill = plan.budget_ns / (2 * processes(new) * LONGEST);
    rounds.max(least_pairs(plan.rules.alpha)).max(fill as usize).next_multiple_of(2)
}

/// What one process of `processes` gets of a plan; half of their time goes into starting and warming up.
fn moment(plan: &Plan, processes: u64) -> Plan {
    Plan {
        budget_ns: (plan.budget_ns / (2 * processes)).clamp(8_000_000, LONGEST),
        warm_up_ns: 3_000_000,
        launches: 1,
        ..plan.clone()
    }
}

/// Races several builds against one for about `plan.budget_ns`, in at least `rounds` rounds: more where an interval needs them, or
/// where the budget allows. A process takes some tens of milliseconds, so a small budget is exceeded. A
/// round has a pair for each of `new` and one of `old` against itself, in an order shuffled anew; both orders of a turn occur
/// equally often. The first process of each does not count. Above 1, the new build is faster.
///
/// # Errors
/// [`LaunchError`], naming the build, when one does not answer or gives no times.
pub fn race_all(
    subject: &str,
    old: &Admitted,
    new: &[Admitted],
    rounds: usize,
    plan: &Plan,
) -> Result<Outcome, LaunchError> {
    let rounds = enough(rounds, new.len(), plan);
    let moment = moment(plan, processes(new.len()) * rounds as u64);
    let mut schedule = Schedule::new(plan.seed, new.len() + 1, 0);
    let mut launch = 0;
    for who in new.iter().chain([old]) {
        who.time(&moment, launch)?;
    }
    let mut launches = Vec::with_capacity(rounds);
    for round in 0..rounds {
        let mut once = |who: &Admitted| {
            launch += 1;
            who.time(&moment, launch)
        };
        let mut found: Vec<Option<Series>> = vec![None; new.len() + 1];
        let mut old_facts = Facts::default();
        for turn in schedule.round() {
            // The last one is the control.
            let other = new.get(turn.contestant).unwrap_or(old);
            let four = turn.take(|side| match side {
                Side::Baseline => once(old),
                Side::Variant => once(other),
            })?;
            let known = four.baseline.iter().chain(&four.variant).map(|(_, known, _)| *known);
            let resolution = known.fold(0.0, f64::max);
            let pair = Pair {
                baseline: four.baseline.each_ref().map(|(ns, ..)| *ns),
                variant: four.variant.each_ref().map(|(ns, ..)| *ns),
            };
            let ([_, (.., of_old)], [_, (.., facts)]) = (four.baseline, four.variant);
            old_facts = of_old;
            found[turn.contestant] = Some(Series {
                variant: other.contender.name.clone(),
                facts,
                cores: 1,
                iterations: [1, 1],
                ticks: None,
                pairs: vec![pair],
                resolution,
            });
        }
        let mut series: Vec<Series> = found.into_iter().flatten().collect();
        let control =
            series.pop().ok_or(LaunchError::Failed { launch, why: "a round without a control".into() })?;
        launches.push(LaunchSamples {
            launch: round as u32,
            subject: subject.to_owned(),
            baseline: old.contender.name.clone(),
            baseline_facts: old_facts,
            bytes: None,
            counted: None,
            gate: Vec::new(),
            control,
            series,
            not_here: Vec::new(),
            clock: String::new(),
            clock_step_ns: 0,
            overrun: None,
            remarks: Vec::new(),
        });
    }
    analyse(&launches, plan).map_err(LaunchError::Merge)
}

/// The time of the baseline in one process: the median of all its samples.
fn time(samples: &LaunchSamples) -> Option<f64> {
    let own = |s: &Series| s.pairs.iter().flat_map(|p| p.baseline).collect::<Vec<_>>();
    let mut all: Vec<f64> = samples.series.iter().chain([&samples.control]).flat_map(own).collect();
    all.extend(samples.control.pairs.iter().flat_map(|p| p.variant));
    median(&all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_budget_is_used() {
        let seconds = |s: u64| Plan { budget_ns: s * 1_000_000_000, ..Plan::default() };
        let used = |s: u64| {
            let rounds = enough(16, 1, &seconds(s));
            let all = processes(1) * rounds as u64;
            (rounds, 2 * all * moment(&seconds(s), all).budget_ns / 1_000_000_000)
        };
        // Half of the budget goes into starting.
        assert_eq!([45, 512, 3600].map(used), [(16, 45), (16, 512), (112, 3584)]);
        assert_eq!(enough(7, 2, &seconds(1)), 8);
    }
}
