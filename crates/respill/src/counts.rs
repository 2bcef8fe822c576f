//! The number of times each instruction ran.
#![forbid(unsafe_code)]

use core::fmt;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use lanework_trace::{Ending, Operation, Options, Snapshot, Unavailable};
use serde::Serialize;

use crate::analysis::Analysis;
use crate::case::{Arena, Case, Missing, Ready};
use crate::load::Loaded;
use crate::program::Program;
use crate::slots::Class;
use crate::validate::runs::{in_words, words};

/// The number of times each instruction of a program ran in one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// By instruction; those that did not run are not in it.
    pub by_op: HashMap<usize, u64>,
    /// All that ran inside the program.
    pub inside: u64,
    /// All that ran outside: external functions, and the call itself.
    pub outside: u64,
}

/// Why counting failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum CountError {
    /// Nothing can be traced here.
    Unavailable(Unavailable),
    /// The program lacks the function.
    Missing(Missing),
    /// The call did not return.
    Ended(Ending),
}

impl fmt::Display for CountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CountError::Unavailable(e) => e.fmt(f),
            CountError::Missing(e) => e.fmt(f),
            CountError::Ended(how) => {
                write!(f, "the call did not come back: it {}", words(how, |at| format!("at {at:#x}")))
            }
        }
    }
}

impl CountError {
    /// The error in words, with the line of the program at which the call ended.
    #[must_use]
    pub fn told(&self, loaded: &Loaded, program: &Program) -> String {
        match self {
            CountError::Ended(how) => {
                format!("the call did not come back: it {}", in_words(how, loaded, program))
            }
            _ => self.to_string(),
        }
    }

    /// Whether the call needed more time or instructions than allowed.
    #[must_use]
    pub const fn is_late(&self) -> bool {
        matches!(self, CountError::Ended(Ending::TimedOut | Ending::TooLong))
    }
}

impl core::error::Error for CountError {}

struct Call<'a> {
    loaded: &'a Loaded,
    case: &'a Case,
}

impl Operation for Call<'_> {
    type Input = (Arena, Result<Ready, Missing>);

    fn prepare(&self, input: usize) -> Self::Input {
        let mut arena = self.case.arena();
        let ready = self.case.prepare(self.loaded, &mut arena, input as u64);
        (arena, ready)
    }

    fn operate(&self, (_, ready): &mut Self::Input) {
        if let Ok(ready) = ready {
            let _ = ready.call(&[]);
        }
    }
}

/// Counts the instructions of one call of a case, with the input of this number.
///
/// # Errors
/// [`CountError`].
pub fn counts(loaded: &Loaded, case: &Case, input: usize) -> Result<Counts, CountError> {
    // A child could only report that nothing ran.
    for function in case.preparing().chain([case.measured()]) {
        if loaded.symbol(function).is_none() {
            return Err(CountError::Missing(Missing(function.to_owned())));
        }
    }
    let operation = Call { loaded, case };
    let mut snapshot = Snapshot::take(&operation, Options::default()).map_err(CountError::Unavailable)?;
    let mut out = Counts::default();
    let outcome = snapshot
        .run(input, |step, _| {
            match loaded.op_at(step.address()) {
                Some(op) => {
                    *out.by_op.entry(op).or_default() += 1;
                    out.inside += 1;
                }
                None => out.outside += 1,
            }
            true
        })
        .map_err(CountError::Unavailable)?;
    match outcome.ending {
        Ending::Returned => Ok(out),
        other => Err(CountError::Ended(other)),
    }
}

impl Counts {
    /// Adds the counts of another call.
    pub fn add(&mut self, other: &Counts) {
        for (&op, n) in &other.by_op {
            *self.by_op.entry(op).or_default() += n;
        }
        self.inside += other.inside;
        self.outside += other.outside;
    }
}

/// The share of executed instructions that name a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Share {
    /// Slots with at least one access that ran.
    pub slots: usize,
    /// Executed instructions that name one of them.
    pub executed: u64,
    /// Their share of all that ran inside the program, 0 to 1.
    pub share: f64,
    /// Executed instructions that name a slot that nothing else can touch, by the text.
    pub alone: u64,
}

/// The shares of slots of each class, and under `None` that of all slots. An instruction that names several counts once
/// in each class.
#[must_use]
pub fn shares(analysis: &Analysis, counts: &Counts) -> BTreeMap<Option<Class>, Share> {
    let mut out: BTreeMap<Option<Class>, Share> = BTreeMap::new();
    let mut seen: BTreeMap<Option<Class>, [BTreeSet<usize>; 2]> = BTreeMap::new();
    for unit in &analysis.units {
        for slot in &unit.slots {
            let ran: Vec<usize> = slot.uses().filter(|op| counts.by_op.contains_key(op)).collect();
            for class in [Some(slot.class), None] {
                if !ran.is_empty() {
                    out.entry(class).or_default().slots += 1;
                }
                let [all, alone] = seen.entry(class).or_default();
                all.extend(&ran);
                if slot.suspects.is_empty() {
                    alone.extend(&ran);
                }
            }
        }
    }
    for (class, share) in &mut out {
        let [all, alone] = seen[class].each_ref().map(|ops| ops.iter().map(|op| counts.by_op[op]).sum());
        (share.executed, share.alone) = (all, alone);
        share.share = share.executed as f64 / counts.inside.max(1) as f64;
    }
    out
}
