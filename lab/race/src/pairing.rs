//! A race in one process: its plan, its pairs, and how they are taken.
//!
//! One *pair* is the four samples of a turn ([`crate::schedule`]). One *round* is a pair of the baseline with each challenger and
//! one with a second instance of itself, the A/A control.
#![forbid(unsafe_code)]

mod sampler;

use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};

use crate::affinity::Pin;
use crate::clock::Clock;
use crate::gate::{GateError, GateRow, Passed};
use crate::overrun::Overrun;
use crate::schedule::{Four, Schedule};
use crate::subject::{Facts, Subject};
use crate::verdict::Rules;
use sampler::{Sampler, series};

/// Where single-core work runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pinning {
    /// Wherever the scheduler puts it.
    Off,
    /// On the highest core this process may use; unpinned, with a remark, if the kernel refuses to pin.
    Auto,
    /// On this core.
    Core(usize),
}

/// How a race is run and its verdicts are reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// A sample lasts at least this long, in nanoseconds...
    pub min_sample_ns: u64,
    /// ... and at least this many steps of the clock.
    pub min_sample_steps: u64,
    /// Every contestant runs at least this long before anything counts, in nanoseconds.
    pub warm_up_ns: u64,
    /// The whole race stops after about this many nanoseconds over all launches, once it has `min_pairs`.
    pub budget_ns: u64,
    /// Pairs per comparison and launch that are taken even when the budget is spent. Over all launches an interval
    /// needs [`crate::stats::least_pairs`], which is 8 at an error rate of 1 %.
    pub min_pairs: usize,
    /// Pairs per comparison and launch after which the race stops even with budget left.
    pub max_pairs: usize,
    /// How many processes the race is spread over.
    pub launches: u32,
    /// Where single-core work runs.
    pub pinning: Pinning,
    /// How verdicts are reached.
    pub rules: Rules,
    /// How many resamples an interval uses.
    pub resamples: usize,
    /// The seed of shuffles and resamples.
    pub seed: u64,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            min_sample_ns: 200_000,
            min_sample_steps: 200,
            warm_up_ns: 20_000_000,
            budget_ns: 5_000_000_000,
            min_pairs: 2,
            max_pairs: 400,
            launches: 5,
            pinning: Pinning::Auto,
            rules: Rules::default(),
            resamples: 4_000,
            seed: 0x6c61_6e65_776f_726b,
        }
    }
}

/// Four samples of two contestants, in nanoseconds per unit of work, each pair in the order taken.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// The baseline's two samples.
    pub baseline: [f64; 2],
    /// The variant's two samples.
    pub variant: [f64; 2],
}

impl Pair {
    /// The logarithm of baseline's time / variant's time, from the geometric means of the two samples each.
    #[must_use]
    pub fn log_ratio(&self) -> f64 {
        let [a, d] = self.baseline;
        let [b, c] = self.variant;
        f64::midpoint(a.ln() - b.ln(), d.ln() - c.ln())
    }
}

impl From<Four<f64>> for Pair {
    fn from(four: Four<f64>) -> Self {
        Self { baseline: four.baseline, variant: four.variant }
    }
}

/// How finely ratios of times counted in steps of `step` are known: one step in the shortest time, as a logarithm. 0
/// without times.
pub fn resolution(step: f64, times: impl Iterator<Item = f64>) -> f64 {
    (step / times.fold(f64::INFINITY, f64::min)).ln_1p()
}

/// All pairs of one comparison in one launch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The variant's name.
    pub variant: String,
    /// What the variant reported after it had run.
    pub facts: Facts,
    /// How many cores it declared.
    pub cores: usize,
    /// Iterations in a sample: the baseline's, the variant's.
    pub iterations: [u64; 2],
    /// The variant's time-stamp ticks per unit, the median of its samples, where there is a counter.
    pub ticks: Option<f64>,
    /// The pairs, in the order taken.
    pub pairs: Vec<Pair>,
    /// How finely their ratios are known, by [`resolution`]; 0 where that is unknown.
    #[serde(default)]
    pub resolution: f64,
}

/// A variant that could not run, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotHere {
    /// The subject's path.
    pub subject: String,
    /// The variant's name.
    pub variant: String,
    /// Why it cannot run here.
    pub why: String,
}

/// Everything one launch measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaunchSamples {
    /// The launch's number.
    pub launch: u32,
    /// The subject's path.
    pub subject: String,
    /// The baseline's name.
    pub baseline: String,
    /// What the baseline reported after it had run.
    pub baseline_facts: Facts,
    /// How many bytes a unit of work processes, where the subject says so.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// What a unit of work is, where the subject counts them.
    #[serde(default)]
    pub counted: Option<String>,
    /// What the gate checked; empty where a sibling launch has passed it.
    pub gate: Vec<GateRow>,
    /// The baseline against a second instance of itself.
    pub control: Series,
    /// The baseline against each challenger.
    pub series: Vec<Series>,
    /// Challengers that could not run.
    pub not_here: Vec<NotHere>,
    /// The clock's name.
    pub clock: String,
    /// The clock's step in nanoseconds.
    pub clock_step_ns: u64,
    /// Set if the launch overran its budget.
    #[serde(default)]
    pub overrun: Option<Overrun>,
    /// Other departures from the plan.
    pub remarks: Vec<String>,
}

/// Why a race did not happen.
#[derive(Debug)]
pub enum RaceError {
    /// The gate stayed shut: nothing was timed.
    Refused {
        /// The subject's path.
        subject: String,
        /// The gate's error.
        gate: GateError,
    },
    /// The baseline cannot run here, so there is nothing to compare with.
    NoBaseline(NotHere),
    /// The kernel would not pin this thread.
    Affinity(io::Error),
    /// The clock did not advance while work ran.
    BrokenClock {
        /// The variant that was running.
        variant: String,
    },
    /// The plan cannot be carried out.
    BadPlan(&'static str),
}

impl fmt::Display for RaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { subject, gate } => write!(f, "{subject} was not raced: {gate}"),
            Self::NoBaseline(n) => {
                write!(
                    f,
                    "{} was not raced: its baseline {:?} cannot run here: {}",
                    n.subject, n.variant, n.why
                )
            }
            Self::Affinity(e) => write!(f, "cannot pin the measuring thread: {e}"),
            Self::BrokenClock { variant } => write!(f, "the clock stood still while {variant:?} ran"),
            Self::BadPlan(why) => write!(f, "the plan cannot be carried out: {why}"),
        }
    }
}

impl std::error::Error for RaceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Refused { gate, .. } => Some(gate),
            Self::Affinity(e) => Some(e),
            _ => None,
        }
    }
}

/// Holds the affinity and pins at once, so that a refusal shows before anything runs.
fn hold(core: Option<usize>) -> io::Result<Pin> {
    let mut pin = Pin::hold(core)?;
    pin.use_cores(1)?;
    Ok(pin)
}

/// Races a subject's variants against its baseline in this process, once the gate has been passed.
///
/// # Errors
/// [`RaceError`] when the baseline cannot run here, the kernel will not pin, the clock stands still, or the plan is
/// impossible. A challenger that cannot run is not an error: it is listed with its reason.
pub fn measure(
    subject: &Subject,
    passed: &Passed,
    plan: &Plan,
    clock: &dyn Clock,
    launch: u32,
) -> Result<LaunchSamples, RaceError> {
    if plan.min_pairs == 0 || plan.max_pairs < plan.min_pairs || plan.launches == 0 {
        return Err(RaceError::BadPlan("it needs 1 ≤ min_pairs ≤ max_pairs and at least one launch"));
    }
    if !(1e-6..=0.5).contains(&plan.rules.alpha) || plan.resamples == 0 {
        return Err(RaceError::BadPlan(
            "it needs an error rate from 0.000001 to 0.5 and at least one resample",
        ));
    }
    let begin = clock.now_ns();
    let budget = plan.budget_ns / u64::from(plan.launches);
    let mut remarks = Vec::new();
    let pin = match plan.pinning {
        Pinning::Off => {
            remarks.push("not pinned, as requested".to_owned());
            None
        }
        Pinning::Auto => match hold(None) {
            Ok(pin) => Some(pin),
            Err(e) => {
                remarks.push(format!("not pinned, because the kernel refuses: {e}"));
                None
            }
        },
        Pinning::Core(core) => Some(hold(Some(core)).map_err(RaceError::Affinity)?),
    };
    let have = pin.as_ref().map(Pin::available);
    let mut sampler = Sampler { clock, pin };

    let path = subject.path();
    let mut base = sampler.prepare(path, subject.baseline())?.map_err(RaceError::NoBaseline)?;
    // Contestant 0 is the control: a second instance of the baseline, prepared like any challenger.
    let mut others = vec![sampler.prepare(path, subject.baseline())?.map_err(RaceError::NoBaseline)?];
    let mut not_here = Vec::new();
    for variant in subject.challengers() {
        match sampler.prepare(path, variant)? {
            Ok(c) => others.push(c),
            Err(n) => not_here.push(n),
        }
    }
    for c in std::iter::once(&base).chain(&others[1..]) {
        if have.is_some_and(|have| c.cores > have) {
            remarks.push(format!(
                "{} declares {} cores; this process may use {}",
                c.name,
                c.cores,
                have.unwrap_or(0)
            ));
        }
    }

    let step = clock.step_ns().max(1);
    let sample_ns = plan.min_sample_ns.max(step.saturating_mul(plan.min_sample_steps)).max(1);
    // Warming up may take at most a fifth of the launch's budget.
    let warm_up = plan.warm_up_ns.min(budget / 5 / (others.len() as u64 + 1));
    sampler.calibrate(&mut base, sample_ns, warm_up)?;
    for c in &mut others {
        sampler.calibrate(c, sample_ns, warm_up)?;
    }
    // The control is the baseline in every respect but its place in memory.
    (others[0].iterations, others[0].lead_in) = (base.iterations, base.lead_in);

    let mut schedule = Schedule::new(plan.seed, others.len(), launch);
    let mut pairs: Vec<Vec<Pair>> = vec![Vec::new(); others.len()];
    for round in 0..plan.max_pairs {
        if round >= plan.min_pairs && clock.now_ns().saturating_sub(begin) >= budget {
            break;
        }
        for turn in schedule.round() {
            let pair = sampler.pair(turn, &mut base, &mut others[turn.contestant])?;
            pairs[turn.contestant].push(pair);
        }
    }
    let spent = clock.now_ns().saturating_sub(begin);
    let overrun = (spent > budget.saturating_mul(3) / 2).then(|| Overrun {
        subject: path.into(),
        took_ns: spent,
        budget_ns: budget,
        pairs: plan.min_pairs,
    });
    let mut all = others.iter().zip(pairs).map(|(c, pairs)| series(c, &base, pairs, step));
    let control = all.next().ok_or(RaceError::BadPlan("no contestant"))?;
    let series = all.collect();
    Ok(LaunchSamples {
        launch,
        subject: path.into(),
        baseline: base.name.clone(),
        baseline_facts: base.work.facts(),
        bytes: subject.bytes_per_unit(),
        counted: subject.counted_units().map(str::to_owned),
        gate: passed.rows().to_vec(),
        control,
        series,
        not_here,
        clock: clock.name().into(),
        clock_step_ns: step,
        overrun,
        remarks,
    })
}
