//! Measuring whole processes: wall time, processor time and peak memory, alone or in pairs.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::clock::Clock;
use crate::gate::Passed;
use crate::pairing::{LaunchSamples, Pair, Plan, Series, resolution};
use crate::race::{MergeError, Outcome, analyse};
use crate::record::slug;
use crate::schedule::{Four, Schedule, Side};
use crate::stats::median;
use crate::subject::Facts;
use crate::sys;

/// A command line to measure. Its output is discarded, on both streams.
#[derive(Debug, Clone)]
pub struct Program {
    /// Its name in a table.
    pub name: String,
    /// The executable.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Variables added to the environment.
    pub env: Vec<(OsString, OsString)>,
    /// A file to give it as standard input.
    pub stdin: Option<PathBuf>,
    /// How many cores it uses, for the record.
    pub cores: usize,
}

impl Program {
    /// `program` with `args`, on one core.
    pub fn new<A: Into<OsString>>(
        name: impl Into<String>,
        program: impl Into<PathBuf>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        Self {
            name: name.into(),
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            stdin: None,
            cores: 1,
        }
    }
}

/// What one run took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// From before the start to after the end, in nanoseconds.
    pub wall_ns: u64,
    /// Processor time in user mode, in nanoseconds.
    pub user_ns: u64,
    /// Processor time in the kernel, in nanoseconds.
    pub system_ns: u64,
    /// Peak resident set in KiB. Linux starts a child's peak at that of the process that started it, so a figure
    /// no larger than [`Usage::own_peak_kib`] says only that the child needed no more.
    pub peak_kib: u64,
}

/// The runs of one command and their medians.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// The command's name.
    pub name: String,
    /// Median wall time in seconds.
    pub wall_s: f64,
    /// Median user time in seconds.
    pub user_s: f64,
    /// Median system time in seconds.
    pub system_s: f64,
    /// Median peak resident set in KiB.
    pub peak_kib: f64,
    /// The peak resident set of the measuring process, below which `peak_kib` means nothing; `None` when unknown.
    pub own_peak_kib: Option<u64>,
    /// Every run.
    pub runs: Vec<Run>,
}

/// Why a command could not be measured.
#[derive(Debug)]
pub enum ProcessError {
    /// It could not be started or waited for, or its input could not be opened.
    Io {
        /// The executable or file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It failed: the time of a failed run means nothing.
    Failed {
        /// The command's name.
        name: String,
        /// How it ended.
        how: String,
    },
    /// No runs were asked for.
    NoRuns,
    /// The samples could not be used.
    Merge(MergeError),
}

impl fmt::Display for ProcessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Failed { name, how } => write!(f, "{name} failed: {how}"),
            Self::NoRuns => f.write_str("no runs were asked for"),
            Self::Merge(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for ProcessError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Merge(e) => Some(e),
            _ => None,
        }
    }
}

fn ending(raw: i32) -> Option<String> {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt;
        let status = std::process::ExitStatus::from_raw(raw);
        (!status.success()).then(|| status.to_string())
    }
    #[cfg(not(unix))]
    {
        (raw != 0).then(|| format!("status {raw}"))
    }
}

/// Runs the command once.
///
/// # Errors
/// [`ProcessError`] when it cannot be run or does not end with exit code 0.
pub fn run(program: &Program, clock: &dyn Clock) -> Result<Run, ProcessError> {
    let failed = |path: &PathBuf, source| ProcessError::Io { path: path.clone(), source };
    let stdin = match &program.stdin {
        Some(path) => Stdio::from(File::open(path).map_err(|e| failed(path, e))?),
        None => Stdio::null(),
    };
    let mut command = Command::new(&program.program);
    command.args(&program.args).stdin(stdin).stdout(Stdio::null()).stderr(Stdio::null());
    command.envs(program.env.iter().map(|(k, v)| (k, v)));
    let start = clock.now_ns();
    let child = command.spawn().map_err(|e| failed(&program.program, e))?;
    let usage = sys::wait_with_usage(child.id()).map_err(|e| failed(&program.program, e))?;
    let wall_ns = clock.now_ns().saturating_sub(start).max(1);
    if let Some(how) = ending(usage.status) {
        return Err(ProcessError::Failed { name: program.name.clone(), how });
    }
    Ok(Run { wall_ns, user_ns: usage.user_ns, system_ns: usage.system_ns, peak_kib: usage.peak_kib })
}

fn own_peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

fn usage(name: &str, runs: Vec<Run>) -> Result<Usage, ProcessError> {
    let mid = |get: fn(&Run) -> u64| {
        median(&runs.iter().map(|r| get(r) as f64).collect::<Vec<_>>()).ok_or(ProcessError::NoRuns)
    };
    Ok(Usage {
        name: name.into(),
        wall_s: mid(|r| r.wall_ns)? / 1e9,
        user_s: mid(|r| r.user_ns)? / 1e9,
        system_s: mid(|r| r.system_ns)? / 1e9,
        peak_kib: mid(|r| r.peak_kib)?,
        own_peak_kib: own_peak_kib(),
        runs,
    })
}

/// Runs one command `times` times after one run that does not count (it fills the page cache), and takes medians.
/// `_passed` is the proof that the command's results have been checked.
///
/// # Errors
/// [`ProcessError`].
pub fn repeat(
    program: &Program,
    _passed: &Passed,
    times: usize,
    clock: &dyn Clock,
) -> Result<Usage, ProcessError> {
    if times == 0 {
        return Err(ProcessError::NoRuns);
    }
    run(program, clock)?;
    let runs = (0..times).map(|_| run(program, clock)).collect::<Result<Vec<_>, _>>()?;
    usage(&program.name, runs)
}

/// The name for records of a race of two commands: it has both, so that other commands have a history of their own.
#[must_use]
pub fn study(commands: [&str; 2]) -> String {
    let digest = Sha256::digest(commands.join("\n"));
    let [a, b] = commands.map(|c| slug(c).chars().take(24).collect::<String>());
    let [x, y, z, ..] = digest[..] else { unreachable!("a digest has 32 bytes") };
    format!("process-{a}-{b}-{x:02x}{y:02x}{z:02x}")
}

/// What a race of commands found.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessOutcome {
    /// The comparisons, by wall time.
    pub outcome: Outcome,
    /// All runs of the baseline, including those of the control.
    pub baseline: Usage,
    /// All runs of each variant, in the order given.
    pub variants: Vec<Usage>,
    /// The same pairs by processor time (user and system together), user time, system time and peak memory, with a
    /// control each. A figure is left out if it is 0 in some run, since the kernel counts coarsely. Memory is left out
    /// unless every run exceeds [`Usage::own_peak_kib`]. A remark says so.
    pub others: Vec<Outcome>,
}

/// A figure of a run, and the steps that the kernel counts it in.
struct Figure {
    name: &'static str,
    unit: &'static str,
    step: f64,
    of: fn(&Run) -> u64,
}

/// The figures other than wall time that two commands are compared by. A `timeval` counts microseconds, and memory comes in pages.
const OTHERS: [Figure; 4] = [
    Figure { name: "processor", unit: "ns", step: 1e3, of: |r| r.user_ns + r.system_ns },
    Figure { name: "user", unit: "ns", step: 1e3, of: |r| r.user_ns },
    Figure { name: "system", unit: "ns", step: 1e3, of: |r| r.system_ns },
    Figure { name: "peak", unit: "KiB", step: 4.0, of: |r| r.peak_kib },
];

/// All runs of a turn.
fn all(four: &Four<Run>) -> impl Iterator<Item = &Run> {
    four.baseline.iter().chain(&four.variant)
}

/// The pairs of one figure, and how finely their ratios are known.
fn pairs_of(fours: &[Four<Run>], step: f64, of: fn(&Run) -> u64) -> (Vec<Pair>, f64) {
    let figure = |r: Run| of(&r) as f64;
    let pair = |f: &Four<Run>| Pair { baseline: f.baseline.map(figure), variant: f.variant.map(figure) };
    let known = resolution(step, fours.iter().flat_map(all).map(|r| figure(*r)));
    (fours.iter().map(pair).collect(), known)
}

/// The comparisons by a figure other than wall time.
fn by_figure(
    figure: &Figure,
    programs: &[&Program],
    fours: &[Vec<Four<Run>>],
    like: &LaunchSamples,
    plan: &Plan,
) -> Result<Outcome, MergeError> {
    let mut samples = like.clone();
    samples.subject = format!("{}/{}", like.subject, figure.name);
    samples.gate.clear();
    let series = |i: usize| {
        let (pairs, resolution) = pairs_of(&fours[i], figure.step, figure.of);
        let like = if i == 0 { &like.control } else { &like.series[i - 1] };
        Series { pairs, resolution, ..like.clone() }
    };
    // Linux starts a child's peak at its parent's: where a run needed no more than we do, the figure is ours, not its own.
    let ours = own_peak_kib().filter(|_| figure.name == "peak");
    let lacks = |i: usize, run: &Run| {
        let name = &programs[i].name;
        match ours {
            _ if (figure.of)(run) == 0 => {
                Some(format!("{name}: the {} figure is 0 in some runs and is not compared", figure.name))
            }
            Some(own) if run.peak_kib <= own => Some(format!(
                "{name}: peak memory is not compared, since some runs do not exceed this command's own {own} KiB"
            )),
            _ => None,
        }
    };
    let of_baseline = fours.iter().flatten().flat_map(|four| &four.baseline);
    let of = |i: usize| fours[i].iter().flat_map(|four| &four.variant);
    if let Some(why) = of_baseline.chain(of(0)).find_map(|run| lacks(0, run)) {
        return Ok(Outcome { remarks: vec![why], ..Outcome::default() });
    }
    samples.control = series(0);
    samples.series.clear();
    let mut remarks = Vec::new();
    for i in 1..programs.len() {
        match of(i).find_map(|run| lacks(i, run)) {
            Some(why) => remarks.push(why),
            None => samples.series.push(series(i)),
        }
    }
    let mut outcome = analyse(&[samples], plan)?;
    for row in &mut outcome.results {
        row.unit = figure.unit.into();
    }
    outcome.remarks.extend(remarks);
    Ok(outcome)
}

/// Races commands against a baseline by wall time, with an A/A control alongside, for `pairs` rounds (in each, two runs of every
/// variant). An odd number is rounded up: both orders of a turn ([`crate::schedule`]) occur equally often. Every run is a process of
/// its own, so this needs no further launches; `plan` gives the rules and the seed. An interval needs
/// [`crate::stats::least_pairs`] rounds. Commands are not pinned. The first run of each does not count.
///
/// # Errors
/// [`ProcessError`].
pub fn race(
    subject: &str,
    passed: &Passed,
    baseline: &Program,
    variants: &[Program],
    pairs: usize,
    plan: &Plan,
    clock: &dyn Clock,
) -> Result<ProcessOutcome, ProcessError> {
    if pairs == 0 {
        return Err(ProcessError::NoRuns);
    }
    let mut base_runs = Vec::new();
    // Contestant 0 is the control.
    let programs: Vec<&Program> = std::iter::once(baseline).chain(variants).collect();
    for program in &programs {
        run(program, clock)?;
    }
    let mut runs: Vec<Vec<Run>> = vec![Vec::new(); programs.len()];
    let mut fours: Vec<Vec<Four<Run>>> = vec![Vec::new(); programs.len()];
    let mut schedule = Schedule::new(plan.seed, programs.len(), 0);
    for _ in 0..pairs.next_multiple_of(2) {
        for turn in schedule.round() {
            let i = turn.contestant;
            let four = turn.take(|side| match side {
                Side::Baseline => run(baseline, clock),
                Side::Variant => run(programs[i], clock),
            })?;
            base_runs.extend(four.baseline);
            runs[i].extend(four.variant);
            fours[i].push(four);
        }
    }
    let facts = |p: &Program| Facts { backend: p.name.clone(), notes: Vec::new() };
    let mut all = programs.iter().zip(&fours).map(|(p, fours)| {
        let (pairs, resolution) = pairs_of(fours, clock.step_ns() as f64, |r| r.wall_ns);
        Series {
            variant: p.name.clone(),
            facts: facts(p),
            cores: p.cores,
            iterations: [1, 1],
            ticks: None,
            pairs,
            resolution,
        }
    });
    let control = all.next().ok_or(ProcessError::NoRuns)?;
    let samples = LaunchSamples {
        launch: 0,
        subject: subject.into(),
        baseline: baseline.name.clone(),
        baseline_facts: facts(baseline),
        bytes: None,
        counted: None,
        gate: passed.rows().to_vec(),
        control,
        series: all.collect(),
        not_here: Vec::new(),
        clock: clock.name().into(),
        clock_step_ns: clock.step_ns(),
        overrun: None,
        remarks: Vec::new(),
    };
    let others = OTHERS
        .iter()
        .map(|figure| by_figure(figure, &programs, &fours, &samples, plan))
        .collect::<Result<Vec<_>, _>>()
        .map_err(ProcessError::Merge)?;
    let outcome = analyse(&[samples], plan).map_err(ProcessError::Merge)?;
    let mut runs = runs.into_iter();
    base_runs.extend(runs.next().unwrap_or_default());
    let variants =
        variants.iter().zip(runs).map(|(p, runs)| usage(&p.name, runs)).collect::<Result<Vec<_>, _>>()?;
    Ok(ProcessOutcome { outcome, baseline: usage(&baseline.name, base_runs)?, variants, others })
}
