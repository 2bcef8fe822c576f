//! The order of the checks: the texts, then the runs.
#![forbid(unsafe_code)]

use core::fmt;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use lanework_trace::{Ending, Unavailable};

use super::differ::{self, DifferError, Stack};
use super::edits::{Edits, edits};
use super::pairs::{Pairs, pairs};
use super::reason::{Place, Reason, SlotName};
use super::relation::{self, relation};
use super::runs::{Runs, Versions, in_words};
use super::writers::{self, Writers};
use super::{Means, MovedSlot, Ran, Refused, Report, UNDECIDED, UNTESTED, lockstep, means};
use crate::analysis::{Analysis, Opaque};
use crate::assumption::Assumption;
use crate::case::Case;
use crate::homes::Home;
use crate::lint::{self, Fault};
use crate::load::{Externals, LoadError};
use crate::program::Program;

/// How much to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Inputs whose results are compared.
    pub inputs: u64,
    /// Inputs that are followed and compared in lockstep, from input 0 on.
    pub traced: u64,
    /// Time for each run.
    pub time: Duration,
    /// Whether to run even if the text already refuses the rewrite, for tests of the runs.
    pub go_on: bool,
    /// Whether instructions that may touch a slot and never ran are accepted, where a case cannot reach them. The report
    /// lists them.
    pub unreached: bool,
    /// The sources of the program's external functions.
    pub externals: Externals,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            inputs: 1000,
            traced: 2,
            time: Duration::from_secs(120),
            go_on: false,
            unreached: false,
            externals: Externals::default(),
        }
    }
}

/// Why a rewrite is not accepted.
#[derive(Debug)]
#[non_exhaustive]
pub enum Failure {
    /// The rewrite was refused.
    Refused(Refused),
    /// The programs could not be loaded.
    Load(LoadError),
    /// The runs could not be made.
    Runs(DifferError),
    /// The original does not get through a case.
    Case(BadCase),
    /// Nothing can be traced here.
    Unavailable(Unavailable),
}

/// A case that says nothing about the rewrite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadCase {
    /// The function that the case measures.
    pub function: String,
    /// What is wrong with it.
    pub why: Bad,
}

/// What is wrong with a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bad {
    /// The original does not return from it.
    Ended {
        /// How it ended, with its line if that is known.
        how: String,
        /// The input.
        input: u64,
    },
    /// Its runs need more time than this.
    Time(Duration),
    /// It executes more instructions than can be followed.
    Instructions,
}

impl Bad {
    /// What ended a run early, if it was a limit.
    const fn limit(ending: &Ending, time: Duration) -> Option<Bad> {
        match ending {
            Ending::TimedOut => Some(Bad::Time(time)),
            Ending::TooLong => Some(Bad::Instructions),
            _ => None,
        }
    }
}

impl fmt::Display for BadCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the case of `{}` ", self.function)?;
        match &self.why {
            Bad::Ended { how, input } => write!(f, "fails: the original {how} with input {input}"),
            Bad::Time(limit) => write!(f, "ran longer than {} s", limit.as_secs()),
            Bad::Instructions => f.write_str("executes more instructions than can be followed"),
        }
    }
}

impl Failure {
    /// The refusal, if it is one.
    #[must_use]
    pub const fn refused(&self) -> Option<&Refused> {
        if let Failure::Refused(refused) = self { Some(refused) } else { None }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Refused(refused) => write!(f, "{refused}"),
            Failure::Load(e) => write!(f, "{e}"),
            Failure::Runs(e) => write!(f, "{e}"),
            Failure::Case(e) => write!(f, "{e}"),
            Failure::Unavailable(e) => write!(f, "{e}"),
        }
    }
}

impl core::error::Error for Failure {}

impl From<LoadError> for Failure {
    fn from(e: LoadError) -> Failure {
        Failure::Load(e)
    }
}

impl From<DifferError> for Failure {
    fn from(e: DifferError) -> Failure {
        Failure::Runs(e)
    }
}

impl From<Unavailable> for Failure {
    fn from(e: Unavailable) -> Failure {
        Failure::Unavailable(e)
    }
}

/// Judges a rewritten program. Each case calls one function; together they should reach all changes.
///
/// # Errors
/// [`Failure::Refused`] for a refused rewrite, the others if it could not be judged.
pub fn validate(
    original: &Analysis,
    rewritten: &Program,
    cases: &[Case],
    options: &Options,
) -> Result<Report, Failure> {
    let refuse = |reasons: Vec<Reason>, runs: Vec<Ran>| Failure::Refused(Refused { reasons, runs });
    let pairs = pairs(&original.program, rewritten).map_err(|reason| refuse(vec![*reason], Vec::new()))?;
    let edits = edits(original, rewritten, &pairs);
    // Each function of a program that is too large is opaque for this reason.
    let large = original.units.iter().any(|unit| unit.opaque == Some(Opaque::Large));
    if large || relation::is_large(original, &edits) {
        let file = original.program.file.clone();
        return Err(refuse(vec![Reason::Large(file)], Vec::new()));
    }
    let mut reasons = edits.reasons.clone();
    reasons.extend(relation(original, rewritten, &pairs, &edits));
    reasons.extend(floats(rewritten, &pairs, &edits));
    let suspected = |(unit, slot): &(usize, usize)| !original.units[*unit].slots[*slot].suspects.is_empty();
    if cases.is_empty() {
        let asked = edits.homes.keys().filter(|key| suspected(key));
        reasons.extend(asked.map(|&key| Reason::NotRun(SlotName::of(original, key))));
    }
    if !reasons.is_empty() && (!options.go_on || cases.is_empty()) {
        return Err(refuse(reasons, Vec::new()));
    }
    let mut all = Writers::default();
    let mut runs = Vec::new();
    let mut unseen = BTreeMap::new();
    if !cases.is_empty() {
        let versions = Versions::new(&original.program, rewritten, &options.externals)?;
        let compared = Compared { original, rewritten, pairs: &pairs, edits: &edits, versions: &versions };
        for case in cases {
            let (ran, found) = run(&compared, case, options, &mut all)?;
            runs.push(ran);
            reasons.extend(found);
        }
        unseen = writers::unseen(original, edits.homes.keys().copied(), &all);
        reasons.append(&mut all.reasons);
        if !options.unreached {
            reasons.extend(unseen.iter().map(|(&key, never)| {
                Reason::NeverRan(SlotName::of(original, key), Place::of(&original.program, never[0]))
            }));
        }
    }
    if !reasons.is_empty() {
        return Err(refuse(reasons, runs));
    }
    let mut assumes = BTreeSet::new();
    let tables = !edits.homes.is_empty() && !original.unbounded.is_empty();
    assumes.extend(tables.then_some(Assumption::Tables));
    let abi = !edits.homes.is_empty() && !original.unkept.is_empty();
    assumes.extend(abi.then_some(Assumption::Abi));
    let slots: Vec<MovedSlot> = edits
        .homes
        .iter()
        .map(|(key, &home)| {
            let unit = &original.units[key.0];
            let slot = &unit.slots[key.1];
            MovedSlot {
                function: unit.function.name().to_owned(),
                offset: slot.address.offset,
                size: slot.size,
                home: home.to_string(),
                uses: slot.uses().count(),
                ran: slot.uses().filter(|op| all.counts.contains_key(op)).count(),
                means: means(
                    home,
                    match suspected(key) {
                        true if unseen.contains_key(key) => Means::Unreached,
                        true => Means::Writers,
                        false => Means::Text,
                    },
                    if tables || abi { Means::Assumed } else { Means::Text },
                ),
            }
        })
        .collect();
    let tested = slots.iter().any(MovedSlot::is_tested);
    let never: BTreeSet<usize> = unseen.into_values().flatten().collect();
    let limits = UNDECIDED.iter().chain(UNTESTED.iter().filter(|_| tested));
    Ok(Report {
        undecided: limits.copied().collect(),
        slots,
        runs,
        assumes,
        unreached: never.into_iter().map(|op| Place::of(&original.program, op)).collect(),
        instructions: pairs.of.len(),
        changed: pairs.changed.len(),
        added: pairs.back.iter().filter(|back| back.is_none()).count(),
    })
}

/// MMX where floating point must be free to begin: the rewritten text's faults that the original did not have.
fn floats(rewritten: &Program, pairs: &Pairs, edits: &Edits) -> Vec<Reason> {
    if !edits.homes.values().any(|home| matches!(home, Home::Mm(_))) {
        return Vec::new();
    }
    // Faults that the original has, too, begin at instructions of its own.
    let changed = |r: &usize| pairs.back[*r].is_none_or(|o| edits.slot_of.contains_key(&o));
    let moved = (0..rewritten.ops.len()).filter(changed).map(|r| (rewritten.line(r), rewritten.said(r)));
    let moved: BTreeSet<(usize, &str)> = moved.collect();
    let ours = |finding: &lint::Finding| moved.contains(&(finding.since.line, finding.since.said.as_str()));
    let new = lint::lint(&Analysis::new(rewritten.clone())).into_iter().filter(ours);
    new.map(|finding| match finding.fault {
        Fault::Left | Fault::Called => Reason::MissingEmms { at: finding.at, after: finding.since },
        Fault::Float | Fault::LiveFloat => Reason::X87WhileMmx { at: finding.at, after: finding.since },
    })
    .collect()
}

/// The two programs: their texts, what the rewrite changed, and both loaded.
struct Compared<'a> {
    original: &'a Analysis,
    rewritten: &'a Program,
    pairs: &'a Pairs,
    edits: &'a Edits,
    versions: &'a Versions,
}

/// One case: followed, compared in lockstep, and its results on many inputs.
fn run(
    compared: &Compared<'_>,
    case: &Case,
    options: &Options,
    all: &mut Writers,
) -> Result<(Ran, Vec<Reason>), Failure> {
    let &Compared { original, rewritten, pairs, edits, versions } = compared;
    let mut ran = Ran { function: case.measured().to_owned(), ..Ran::default() };
    let mut reasons = Vec::new();
    // Missing functions are reported before anything runs.
    for name in case.preparing().chain([case.measured()]) {
        if versions.original.symbol(name).is_none() || versions.rewritten.symbol(name).is_none() {
            return Err(Failure::Runs(DifferError::Missing(crate::case::Missing(name.to_owned()))));
        }
    }
    let bad = |why| Failure::Case(BadCase { function: case.measured().to_owned(), why });
    let begun = Instant::now();
    let operation = Runs::new(case, versions);
    let mut snapshot = operation.snapshot(options.time)?;
    let steps = all.steps;
    for input in 0..options.traced {
        let ended = writers::follow(&mut snapshot, original, &versions.original, &edits.slot_of, input, all)?;
        if let Some(limit) = Bad::limit(&ended, options.time) {
            return Err(bad(limit));
        }
        if ended != Ending::Returned {
            let how = in_words(&ended, &versions.original, &original.program);
            return Err(bad(Bad::Ended { how, input }));
        }
    }
    ran.followed = all.steps - steps;
    ran.seconds[0] = begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    for input in 0..options.traced {
        let found = lockstep::compare(&mut snapshot, original, rewritten, pairs, versions, input)?;
        ran.compared += found.compared;
        ran.added += found.added;
        ran.traced_inputs += 1;
        if let Some(limit) = found.ended.and_then(|ended| Bad::limit(&ended, options.time)) {
            return Err(bad(limit));
        }
        match found.reason {
            Some(Reason::Crashed { rewritten: false, how, input }) => {
                return Err(bad(Bad::Ended { how, input }));
            }
            Some(reason) => {
                reasons.push(reason);
                break;
            }
            None => (),
        }
    }
    ran.seconds[1] = begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    let found = differ::differential(case, versions, options.inputs, Stack::Poisoned, options.time)?;
    ran.inputs = found.inputs;
    match found.reason {
        // Where the text or lockstep has objections, they are the answer.
        _ if found.late && reasons.is_empty() => return Err(bad(Bad::Time(options.time))),
        Some(Reason::Crashed { rewritten: false, how, input }) if !found.late => {
            return Err(bad(Bad::Ended { how, input }));
        }
        reason => reasons.extend(reason),
    }
    ran.seconds[2] = begun.elapsed().as_secs_f64();
    Ok((ran, reasons))
}
