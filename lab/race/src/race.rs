//! From samples to results: merges launches, judges every comparison against the A/A control.
#![forbid(unsafe_code)]

use std::fmt;

use crate::clock::Clock;
use crate::gate::GateRow;
use crate::overrun::Overruns;
use crate::pairing::{LaunchSamples, NotHere, Pair, Plan, RaceError, Series, measure};
use crate::record::{Control, ResultRow, round};
use crate::stats::{Interval, Summary, interval, least_pairs, median};
use crate::subject::Subject;
use crate::verdict::{Verdict, fails, is_void, judge, noise_floor};

/// What a race found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// One row for each challenger that ran, in the subject's order.
    pub results: Vec<ResultRow>,
    /// The A/A control that ran alongside; `None` when no pairs were taken.
    pub control: Option<Control>,
    /// Challengers that could not run.
    pub not_here: Vec<NotHere>,
    /// What the gate checked.
    pub gate: Vec<GateRow>,
    /// Launches that overran their budget.
    pub overruns: Overruns,
    /// Other departures from the plan.
    pub remarks: Vec<String>,
}

/// Why launches cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeError {
    /// There are no launches.
    Nothing,
    /// They have different subjects or baselines.
    Mixed {
        /// The first launch's subject and baseline.
        first: String,
        /// The subject and baseline that differ.
        other: String,
    },
    /// A time in the samples is not a positive finite number.
    NotATime {
        /// The variant whose sample it is.
        variant: String,
    },
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("there are no launches to merge"),
            Self::Mixed { first, other } => {
                write!(f, "a launch of {other} cannot be merged with one of {first}")
            }
            Self::NotATime { variant } => write!(f, "a sample of {variant:?} is not a time"),
        }
    }
}

impl std::error::Error for MergeError {}

/// One comparison, gathered over launches.
struct Gathered<'a> {
    launches: Vec<&'a Series>,
}

impl<'a> Gathered<'a> {
    fn pairs(&self) -> impl Iterator<Item = &'a Pair> {
        self.launches.iter().flat_map(|s| s.pairs.iter())
    }

    fn log_ratios(&self) -> Vec<Vec<f64>> {
        self.launches.iter().map(|s| s.pairs.iter().map(Pair::log_ratio).collect()).collect()
    }

    /// The ratio with its interval; with too few pairs, their range.
    fn ratio(&self, plan: &Plan, seed: u64) -> Option<Ratio> {
        let logs = self.log_ratios();
        let Ok(found) = interval(&logs, plan.rules.alpha, plan.resamples, seed) else {
            let all = logs.concat();
            let s = Summary::of(&all)?;
            let why = format!(
                "{} pairs are too few for an interval, which needs {}; low and high are the range of the pairs",
                all.len(),
                least_pairs(plan.rules.alpha)
            );
            let range = Interval { estimate: s.median, low: s.min, high: s.max };
            return Some(Ratio { interval: rounded(range.exp()), lacks: Some(why) });
        };
        let resolution = self.launches.iter().map(|s| s.resolution).fold(0.0, f64::max);
        let interval = found.no_finer_than(resolution).exp();
        let lacks = (!interval.is_wide()).then(|| {
            "all pairs have the same ratio and the clock's step is unknown: low and high are not an interval"
                .to_owned()
        });
        Some(Ratio { interval: rounded(interval), lacks })
    }
}

/// The interval as a record holds it. Verdicts are judged on this, so that a reader of the record reaches the same.
fn rounded(interval: Interval) -> Interval {
    Interval { estimate: round(interval.estimate), low: round(interval.low), high: round(interval.high) }
}

/// The note beside a void verdict.
const VOID: &str = "void: the interval of the race's A/A control excludes 1; race again";

impl Outcome {
    /// Voids every settled comparison if the control fails, however large its effect: for races whose effects are a few percent.
    pub fn void_where_the_control_fails(&mut self) {
        let Some(control) = &self.control else { return };
        if !fails(Interval { estimate: control.ratio, low: control.low, high: control.high }) {
            return;
        }
        for row in self.results.iter_mut().filter(|row| row.verdict.is_settled()) {
            row.verdict = Verdict::Void;
            row.notes.push(VOID.to_owned());
        }
    }
}

/// A ratio with its interval, rounded, or with the reason why that is not one.
struct Ratio {
    interval: Interval,
    lacks: Option<String>,
}

fn check(series: &Series) -> Result<(), MergeError> {
    let good = |t: &f64| t.is_finite() && *t > 0.0;
    if series.pairs.iter().all(|p| p.baseline.iter().chain(&p.variant).all(good)) {
        Ok(())
    } else {
        Err(MergeError::NotATime { variant: series.variant.clone() })
    }
}

fn distinct(items: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}

/// Merges the launches of one race and judges every comparison.
///
/// # Errors
/// [`MergeError`] when there is nothing to merge, launches do not belong together, or a sample is not a time.
pub fn analyse(launches: &[LaunchSamples], plan: &Plan) -> Result<Outcome, MergeError> {
    let first = launches.first().ok_or(MergeError::Nothing)?;
    let title = |l: &LaunchSamples| format!("{} against {}", l.subject, l.baseline);
    for l in launches {
        if (&l.subject, &l.baseline) != (&first.subject, &first.baseline) {
            return Err(MergeError::Mixed { first: title(first), other: title(l) });
        }
        std::iter::once(&l.control).chain(&l.series).try_for_each(check)?;
    }
    let mut out = Outcome {
        results: Vec::new(),
        control: None,
        not_here: Vec::new(),
        gate: launches.iter().find(|l| !l.gate.is_empty()).map_or_else(Vec::new, |l| l.gate.clone()),
        overruns: Overruns::of(launches.iter().map(|l| l.overrun.as_ref())),
        remarks: distinct(launches.iter().flat_map(|l| l.remarks.iter().cloned())),
    };
    for n in launches.iter().flat_map(|l| &l.not_here) {
        if !out.not_here.contains(n) {
            out.not_here.push(n.clone());
        }
    }

    let control = Gathered { launches: launches.iter().map(|l| &l.control).collect() };
    let Some(Ratio { interval: control_ratio, lacks: control_lacks }) = control.ratio(plan, plan.seed) else {
        out.remarks.push("no pairs were taken".into());
        return Ok(out);
    };
    let noise = round(noise_floor(control_ratio));
    out.control = Some(Control {
        subject: first.subject.clone(),
        baseline: first.baseline.clone(),
        ratio: control_ratio.estimate,
        low: control_ratio.low,
        high: control_ratio.high,
        samples: control.pairs().flat_map(|p| p.variant).map(round).collect(),
        baseline_samples: control.pairs().flat_map(|p| p.baseline).map(round).collect(),
    });
    let baseline_backend = distinct(launches.iter().map(|l| l.baseline_facts.backend.clone())).join(", ");

    let names = distinct(launches.iter().flat_map(|l| l.series.iter().map(|s| s.variant.clone())));
    for (index, name) in names.iter().enumerate() {
        let got = Gathered {
            launches: launches
                .iter()
                .filter_map(|l| l.series.iter().find(|s| &s.variant == name && !s.pairs.is_empty()))
                .collect(),
        };
        let samples: Vec<f64> = got.pairs().flat_map(|p| p.variant).collect();
        let baseline_samples: Vec<f64> = got.pairs().flat_map(|p| p.baseline).collect();
        let (Some(Ratio { interval: ratio, lacks }), Some(own), Some(base), Some(s)) = (
            got.ratio(plan, plan.seed.wrapping_add(index as u64 + 1)),
            Summary::of(&samples),
            Summary::of(&baseline_samples),
            got.launches.first(),
        ) else {
            out.remarks.push(format!("{name}: no pairs were taken"));
            continue;
        };
        let mut judged = judge(ratio, noise, &plan.rules);
        let mut notes = distinct(got.launches.iter().flat_map(|s| s.facts.notes.iter().cloned()));
        if let Some(why) = lacks.as_ref().or(control_lacks.as_ref()) {
            judged.verdict = Verdict::CannotTell;
            notes.push(why.clone());
        } else if is_void(control_ratio, ratio.estimate) {
            judged.verdict = Verdict::Void;
            notes.push(VOID.to_owned());
        }
        let backends = distinct(got.launches.iter().map(|s| s.facts.backend.clone()));
        if backends.len() > 1 {
            judged.verdict = Verdict::CannotTell;
            notes.push(format!("launches ran different backends: {}", backends.join(", ")));
        }
        for backend in &backends {
            if !out.gate.is_empty() && !out.gate.iter().any(|row| &row.backend == backend && row.passed > 0) {
                notes.push(format!("the gate names no passed case of backend {backend:?}"));
            }
        }
        let ticks: Vec<f64> = got.launches.iter().filter_map(|s| s.ticks).collect();
        out.results.push(ResultRow {
            subject: first.subject.clone(),
            variant: name.clone(),
            baseline: first.baseline.clone(),
            ratio: ratio.estimate,
            low: ratio.low,
            high: ratio.high,
            noise,
            verdict: judged.verdict,
            unit: "ns".into(),
            median: round(own.median),
            mean: round(own.mean),
            min: round(own.min),
            q1: round(own.q1),
            q3: round(own.q3),
            ticks: median(&ticks).map(round),
            baseline_median: round(base.median),
            baseline_mean: round(base.mean),
            baseline_min: round(base.min),
            margin: round(judged.margin),
            detectable: round(judged.detectable),
            backend: backends.join(", "),
            baseline_backend: baseline_backend.clone(),
            cores: s.cores,
            bytes: first.bytes,
            counted: first.counted.clone(),
            floor: None,
            iterations: s.iterations,
            launch_pairs: got.launches.iter().map(|s| s.pairs.len()).collect(),
            notes,
            median_interval: None,
            samples: samples.into_iter().map(round).collect(),
            baseline_samples: baseline_samples.into_iter().map(round).collect(),
            extra: serde_json::Map::new(),
        });
    }
    Ok(out)
}

/// Why a race gave no outcome.
#[derive(Debug)]
pub enum Error {
    /// It did not happen.
    Race(RaceError),
    /// Its samples could not be used.
    Merge(MergeError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Race(e) => e.fmt(f),
            Self::Merge(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Race(e) => Some(e),
            Self::Merge(e) => Some(e),
        }
    }
}

/// Passes the gate and races in this process alone. Quick, but blind to differences between processes: prefer
/// [`crate::launch::Worker`] for figures to publish.
///
/// # Errors
/// [`Error`]; a gate that stays shut means that nothing was timed.
pub fn in_process(subject: &Subject, plan: &Plan, clock: &dyn Clock) -> Result<Outcome, Error> {
    let passed = subject
        .gate()
        .pass()
        .map_err(|gate| Error::Race(RaceError::Refused { subject: subject.path().into(), gate }))?;
    let plan = Plan { launches: 1, ..plan.clone() };
    let samples = measure(subject, &passed, &plan, clock, 0).map_err(Error::Race)?;
    let mut outcome = analyse(&[samples], &plan).map_err(Error::Merge)?;
    outcome.remarks.push("one process: effects of memory layout are not averaged out".into());
    Ok(outcome)
}
