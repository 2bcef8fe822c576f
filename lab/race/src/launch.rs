//! Races spread over several processes.
//!
//! The layout of code, stack and heap in memory can change a time by percents and is fixed for a process's whole
//! life. More samples from one process do not help; more processes do. The caller's executable plays both
//! parts. As the parent it calls [`Worker::race`]; as the child, in a hidden subcommand, it builds the same
//! subject and calls [`serve`], which writes one JSON object to standard output. The kernel's own address randomisation moves the
//! heap and the libraries between launches. Where that is turned off, an environment variable of varying size moves the stack.
#![forbid(unsafe_code)]

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::gate::{GateError, GateRow, Passed};
use crate::pairing::{LaunchSamples, Plan, RaceError, measure};
use crate::race::{MergeError, Outcome, analyse};
use crate::stats::Rng;
use crate::subject::Subject;
use crate::sys;

/// Tells a worker which launch it is, and under which plan.
const ORDERS: &str = "LANEWORK_LAB_ORDERS";
/// Only its size matters.
const PADDING: &str = "LANEWORK_LAB_PADDING";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Orders {
    launch: u32,
    /// Set once an earlier launch of the same race has passed the gate.
    gate_passed: bool,
    plan: Plan,
}

/// A worker's answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reply {
    Samples(Box<LaunchSamples>),
    Refused { subject: String, gate: GateError },
    Failed { why: String },
}

/// Why a race over several processes gave no outcome.
#[derive(Debug)]
pub enum LaunchError {
    /// The gate stayed shut: nothing was timed.
    Refused {
        /// The subject's path.
        subject: String,
        /// The gate's error.
        gate: GateError,
    },
    /// The worker could not be started or waited for.
    Spawn {
        /// The executable.
        program: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The worker ended without an answer that can be read.
    NoAnswer {
        /// The launch's number.
        launch: u32,
        /// How it ended, and the last lines of its standard error.
        why: String,
    },
    /// The worker answered that it could not race.
    Failed {
        /// The launch's number.
        launch: u32,
        /// Its reason.
        why: String,
    },
    /// What the workers measured could not be used.
    Merge(MergeError),
    /// The plan cannot be carried out.
    BadPlan(&'static str),
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { subject, gate } => write!(f, "{subject} was not raced: {gate}"),
            Self::Spawn { program, source } => write!(f, "cannot run {}: {source}", program.display()),
            Self::NoAnswer { launch, why } => write!(f, "launch {launch} gave no answer: {why}"),
            Self::Failed { launch, why } => write!(f, "launch {launch}: {why}"),
            Self::Merge(e) => e.fmt(f),
            Self::BadPlan(why) => write!(f, "the plan cannot be carried out: {why}"),
        }
    }
}

impl std::error::Error for LaunchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Refused { gate, .. } => Some(gate),
            Self::Spawn { source, .. } => Some(source),
            Self::Merge(e) => Some(e),
            _ => None,
        }
    }
}

/// How to start this executable as a worker.
#[derive(Debug, Clone)]
pub struct Worker {
    program: PathBuf,
    args: Vec<OsString>,
    limit: Option<Duration>,
    passed: Vec<GateRow>,
}

/// Reads a pipe to its end on a thread of its own.
fn drain(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (send, receive) = mpsc::channel();
    if let Some(mut pipe) = pipe {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            // The receiver handles what was read before an error like the output of a worker that stopped short.
            let _ = pipe.read_to_end(&mut bytes);
            let _ = send.send(bytes);
        });
    }
    receive
}

impl Worker {
    /// A worker that is the current executable with these arguments, which must make it call [`serve`] with the
    /// subject in question.
    ///
    /// # Errors
    /// When the path of the current executable cannot be found.
    pub fn new<A: Into<OsString>>(args: impl IntoIterator<Item = A>) -> io::Result<Self> {
        Ok(Self::at(env::current_exe()?, args))
    }

    /// A worker that is another executable: an older build of this one, say, which must understand the same orders.
    pub fn at<A: Into<OsString>>(program: impl Into<PathBuf>, args: impl IntoIterator<Item = A>) -> Self {
        Self {
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            limit: None,
            passed: Vec::new(),
        }
    }

    /// The same executable with other arguments.
    #[must_use]
    pub(crate) fn with<A: Into<OsString>>(self, args: impl IntoIterator<Item = A>) -> Self {
        Self { args: args.into_iter().map(Into::into).collect(), ..self }
    }

    /// What one process measures under `plan`. It gets the whole budget if the plan has one launch.
    ///
    /// # Errors
    /// [`LaunchError`].
    pub fn sample(&self, plan: &Plan, launch: u32, gate_passed: bool) -> Result<LaunchSamples, LaunchError> {
        self.launch(&Orders { launch, gate_passed, plan: plan.clone() }, launch as usize * 97 % 4096)
    }

    /// Sets how long one launch may take before it is killed. The default is ten times its budget plus ten minutes
    /// (gates and preparation have no budget of their own).
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Hands in what the subject's gate checked when this run passed it, for another race behind the same gate: it is
    /// not passed again.
    #[must_use]
    pub fn behind(mut self, passed: Vec<GateRow>) -> Self {
        self.passed = passed;
        self
    }

    /// Races over `plan.launches` processes, one after the other. The first passes the gate for all. `progress` is
    /// called after each launch with the number done and the total.
    ///
    /// # Errors
    /// [`LaunchError`]; any launch that fails fails the race.
    pub fn race(
        &self,
        plan: &Plan,
        mut progress: impl FnMut(u32, u32),
    ) -> Result<(Outcome, Vec<LaunchSamples>), LaunchError> {
        if plan.launches == 0 {
            return Err(LaunchError::BadPlan("it needs at least one launch"));
        }
        let mut rng = Rng::new(plan.seed);
        let mut all = Vec::with_capacity(plan.launches as usize);
        for launch in 0..plan.launches {
            let orders =
                Orders { launch, gate_passed: !self.passed.is_empty() || launch > 0, plan: plan.clone() };
            all.push(self.launch(&orders, rng.below(4096))?);
            progress(launch + 1, plan.launches);
        }
        if let Some(first) = all.first_mut().filter(|first: &&mut LaunchSamples| first.gate.is_empty()) {
            first.gate.clone_from(&self.passed);
        }
        let outcome = analyse(&all, plan).map_err(LaunchError::Merge)?;
        Ok((outcome, all))
    }

    fn launch(&self, orders: &Orders, padding: usize) -> Result<LaunchSamples, LaunchError> {
        let launch = orders.launch;
        let no_answer = |why: String| LaunchError::NoAnswer { launch, why };
        let text = serde_json::to_string(orders).map_err(|e| no_answer(e.to_string()))?;
        let spawn = |source| LaunchError::Spawn { program: self.program.clone(), source };
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .env(ORDERS, text)
            .env(PADDING, "x".repeat(padding))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        sys::ends_with_this_process(&mut command);
        let mut child = command.spawn().map_err(spawn)?;
        // The parent sleeps until the worker has closed its output: it must not take turns on the measuring core.
        let stdout = drain(child.stdout.take());
        let stderr = drain(child.stderr.take());
        let budget = Duration::from_nanos(orders.plan.budget_ns / u64::from(orders.plan.launches.max(1)));
        let limit = self.limit.unwrap_or(budget.saturating_mul(10).saturating_add(Duration::from_secs(600)));
        let Ok(answer) = stdout.recv_timeout(limit) else {
            // It may have ended by itself just now; then there is nothing left to kill.
            let _ = child.kill();
            let _ = child.wait();
            return Err(no_answer(format!("it was still running after {} s", limit.as_secs_f64())));
        };
        let status = child.wait().map_err(spawn)?;
        let reply: Reply = serde_json::from_slice(&answer).map_err(|e| {
            let said = stderr.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
            let said = String::from_utf8_lossy(&said);
            let tail: Vec<&str> = said.trim().lines().rev().take(5).collect();
            let tail = tail.into_iter().rev().collect::<Vec<_>>().join("\n");
            no_answer(format!("{status} ({e})\n{tail}"))
        })?;
        match reply {
            Reply::Samples(samples) if samples.launch == launch => Ok(*samples),
            Reply::Samples(samples) => Err(no_answer(format!("it answered as launch {}", samples.launch))),
            Reply::Refused { subject, gate } => Err(LaunchError::Refused { subject, gate }),
            Reply::Failed { why } => Err(LaunchError::Failed { launch, why }),
        }
    }
}

/// Whether this process was started by [`Worker::race`].
#[must_use]
pub fn is_worker() -> bool {
    env::var_os(ORDERS).is_some()
}

/// The worker's part: passes the gate (unless an earlier launch of the same race has), measures, and writes one
/// JSON object to `out`, even when the race is refused or fails. Nothing else may be written to standard output.
///
/// # Errors
/// When this process was not started by [`Worker::race`] (`InvalidInput`), or `out` cannot be written.
pub fn serve(subject: &Subject, clock: &dyn Clock, out: &mut dyn Write) -> io::Result<()> {
    let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
    let text = env::var(ORDERS)
        .map_err(|_| invalid(format!("this is the inner half of a race: it expects {ORDERS}")))?;
    let orders: Orders = serde_json::from_str(&text).map_err(|e| invalid(format!("{ORDERS}: {e}")))?;
    let path = subject.path().to_owned();
    let passed = if orders.gate_passed { Ok(Passed::by_sibling()) } else { subject.gate().pass() };
    let reply = match passed {
        Err(gate) => Reply::Refused { subject: path, gate },
        Ok(passed) => match measure(subject, &passed, &orders.plan, clock, orders.launch) {
            Ok(samples) => Reply::Samples(Box::new(samples)),
            Err(RaceError::Refused { subject, gate }) => Reply::Refused { subject, gate },
            Err(e) => Reply::Failed { why: e.to_string() },
        },
    };
    serde_json::to_writer(&mut *out, &reply).map_err(io::Error::from)?;
    out.write_all(b"\n")?;
    out.flush()
}
