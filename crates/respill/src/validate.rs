//! The checks of a rewritten text: obligations by name, and results on inputs that were run.
//!
//! The correspondence of the two texts is found here, not taken from the rewriter, so any pair can be checked.
//! [`Obligation`] lists the checks, [`UNDECIDED`] their limits, and DESIGN.md the methods.
#![cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), allow(dead_code))]
#![forbid(unsafe_code)]

pub mod edits;
pub mod pairs;
pub mod reason;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod differ;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod judge;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod lockstep;
mod relation;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) mod runs;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod writers;

use core::fmt;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub use judge::{Bad, BadCase, Failure, Options, validate};
pub use reason::{Place, Reason, SlotName};
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub use runs::Versions;

use crate::assumption::Assumption;
use crate::homes::Home;
use crate::names::counted;

/// Properties of a rewrite that no check decides: the premises of every verdict.
pub const UNDECIDED: [&str; 4] = [
    "that no code guesses an address of the stack, reads its own code, or relies on what an earlier call left below the stack pointer",
    "that no unknown index or pointer overwrites a return address, or reads or overwrites a register kept for a caller",
    "that code outside the file, callers too, keeps to the System V ABI, that no argument on the stack is read again after a call, and that x87 is empty, with no exception pending, at calls",
    "signal handlers, exceptions that no call throws, longjmp, debuggers and what the kernel writes",
];

/// What else is undecided where some slot was only tested.
pub const UNTESTED: [&str; 2] = [
    "who touches a tested slot on ways that no case takes",
    "inputs that were not run, where a slot was only tested",
];

/// An obligation of a slot that moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Obligation {
    /// 1. Every instruction that names the slot does so at a known place and in one width, and has been edited into a whole move
    ///    to or from one home.
    Named,
    /// 2. Nothing else touches its bytes while they hold its value.
    Alone,
    /// 3. Every load comes after a store in the same call.
    Stored,
    /// 4. Nothing else writes the home while the value is wanted: neither the function, nor what it calls.
    Kept,
    /// 5. No caller or callee in the file uses the home by itself, and no other caller expects it to be kept.
    Neighbours,
    /// 6. For MMX: x87 is not used meanwhile, and finds its registers empty afterwards.
    Float,
    /// 7. No flag and no wanted register changes on the way to or from a home.
    Clean,
    /// 8. Both versions take the same paths.
    Ways,
    /// 9. No unwinder or caller looks for the value in memory.
    Unwinding,
}

impl Obligation {
    /// All of them.
    pub const ALL: [Obligation; 9] = [
        Obligation::Named,
        Obligation::Alone,
        Obligation::Stored,
        Obligation::Kept,
        Obligation::Neighbours,
        Obligation::Float,
        Obligation::Clean,
        Obligation::Ways,
        Obligation::Unwinding,
    ];

    /// Its name in a list.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Obligation::Named => "uses of the slot",
            Obligation::Alone => "separation of the slot",
            Obligation::Stored => "stores before loads",
            Obligation::Kept => "liveness of the home",
            Obligation::Neighbours => "callers and callees",
            Obligation::Float => "x87 state",
            Obligation::Clean => "flags and registers",
            Obligation::Ways => "control flow",
            Obligation::Unwinding => "unwinding",
        }
    }

    /// In words.
    #[must_use]
    pub const fn says(self) -> &'static str {
        match self {
            Obligation::Named => "every use is known, of one width, and moved whole",
            Obligation::Alone => "nothing else touches the bytes",
            Obligation::Stored => "every load comes after a store",
            Obligation::Kept => "nothing else writes the home",
            Obligation::Neighbours => {
                "no caller or callee in the file uses the home, and no other caller expects it to be kept"
            }
            Obligation::Float => "x87 finds its registers empty",
            Obligation::Clean => "no flag and no wanted register changes on the way",
            Obligation::Ways => "both versions take the same paths",
            Obligation::Unwinding => "no unwinder or caller looks for the value in memory",
        }
    }
}

/// How an obligation was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Means {
    /// By the text.
    Text,
    /// By the text for the functions of the file, and by the System V ABI for all others.
    Abi,
    /// By the text, under the assumptions that the report names.
    Assumed,
    /// By runs that followed the last writer of every byte of the stack, for the paths that these took. Code whose
    /// addresses do not depend on its inputs has one path for each length.
    Writers,
    /// Only by the part of the runs that was reached: instructions that may touch the slot were never run, which
    /// [`Options::unreached`] accepts.
    Unreached,
    /// It does not apply to this home.
    None,
}

/// A slot that was moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MovedSlot {
    /// Its function.
    pub function: String,
    /// Bytes from the stack pointer at the entry, or from where that was aligned.
    pub offset: i64,
    /// Bytes.
    pub size: usize,
    /// The new home of its value.
    pub home: String,
    /// Instructions that name it.
    pub uses: usize,
    /// Those of them that ran.
    pub ran: usize,
    /// How each obligation was checked.
    pub means: BTreeMap<Obligation, Means>,
}

/// What was run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Ran {
    /// The function that was called.
    pub function: String,
    /// Instructions of the original whose accesses were followed.
    pub followed: u64,
    /// Pairs of instructions compared in lockstep.
    pub compared: u64,
    /// Instructions that only the rewritten version executed meanwhile.
    pub added: u64,
    /// Inputs of these comparisons.
    pub traced_inputs: u64,
    /// Inputs whose results were compared.
    pub inputs: u64,
    /// Seconds for following, comparing in lockstep, and comparing results.
    pub seconds: [f64; 3],
}

impl Ran {
    /// Pairs compared in lockstep per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.compared as f64 / self.seconds[1].max(1e-9)
    }
}

/// The checks of an accepted rewrite.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The slots that moved.
    pub slots: Vec<MovedSlot>,
    /// The runs, one for each case.
    pub runs: Vec<Ran>,
    /// The assumptions that some slot needs.
    pub assumes: BTreeSet<Assumption>,
    /// The instructions that may touch a moved slot and were never run, which [`Options::unreached`] accepts.
    pub unreached: Vec<Place>,
    /// The undecided properties: [`UNDECIDED`], and for a tested rewrite [`UNTESTED`].
    pub undecided: Vec<&'static str>,
    /// Instructions of the program.
    pub instructions: usize,
    /// Those that were changed.
    pub changed: usize,
    /// Those that were added.
    pub added: usize,
}

/// How strong an acceptance is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Verdict {
    /// No slot moved, so there was nothing to check.
    Unchanged,
    /// Every obligation is decided by the analysis: it holds for every execution that the theorem is about.
    Proved,
    /// The same, if these assumptions about the file hold.
    ProvedUnder(BTreeSet<Assumption>),
    /// Only runs with these inputs showed that nothing else touches some slot.
    Tested {
        /// Inputs that were followed, access by access.
        followed: u64,
        /// Inputs whose results were compared.
        inputs: u64,
        /// What is assumed for slots that need no run.
        under: BTreeSet<Assumption>,
        /// The instructions that may touch a moved slot and were never run: what they do is not checked.
        unreached: Vec<Place>,
    },
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Unchanged => f.write_str("nothing moved"),
            Verdict::Proved => f.write_str("proved"),
            Verdict::ProvedUnder(assumed) => write!(f, "proved under {}", names(assumed)),
            Verdict::Tested { inputs, under, unreached, .. } => {
                write!(f, "tested on {}", counted(*inputs, "input"))?;
                if !under.is_empty() {
                    write!(f, " under {}", names(under))?;
                }
                never_run(f, unreached)
            }
        }
    }
}

/// The instructions that were accepted although they never ran, the first of them by file and line.
fn never_run(f: &mut fmt::Formatter<'_>, unreached: &[Place]) -> fmt::Result {
    const SHOWN: usize = 4;
    if unreached.is_empty() {
        return Ok(());
    }
    let shown: Vec<String> =
        unreached.iter().take(SHOWN).map(|place| format!("{}:{}", place.file, place.line)).collect();
    let were = if unreached.len() == 1 { "was" } else { "were" };
    let number = counted(unreached.len() as u64, "instruction");
    write!(f, ", unreached: {number} that may touch a moved slot {were} never run: {}", shown.join(", "))?;
    if unreached.len() > SHOWN { write!(f, " and {} more", unreached.len() - SHOWN) } else { Ok(()) }
}

fn names(assumed: &BTreeSet<Assumption>) -> String {
    assumed.iter().map(|one| one.name()).collect::<Vec<_>>().join(", ")
}

impl Report {
    /// How strong this acceptance is: proved only if every slot is.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        if self.slots.is_empty() {
            return Verdict::Unchanged;
        }
        if !self.slots.iter().any(MovedSlot::is_tested) {
            let under = self.assumes.clone();
            return if under.is_empty() { Verdict::Proved } else { Verdict::ProvedUnder(under) };
        }
        let sum = |of: fn(&Ran) -> u64| self.runs.iter().map(of).sum();
        Verdict::Tested {
            followed: sum(|ran| ran.traced_inputs),
            inputs: sum(|ran| ran.inputs),
            under: self.assumes.clone(),
            unreached: self.unreached.clone(),
        }
    }

    /// The numbers of slots that nothing else touches, by the text and by runs. Those of [`Means::Unreached`] are in neither.
    #[must_use]
    pub fn alone(&self) -> [usize; 2] {
        [Means::Text, Means::Writers].map(|means| self.by(means))
    }

    /// The number of slots whose separation was checked in this way.
    fn by(&self, means: Means) -> usize {
        self.slots.iter().filter(|slot| slot.means[&Obligation::Alone] == means).count()
    }
}

impl MovedSlot {
    /// Whether no text shows that nothing else touches it.
    pub(crate) fn is_tested(&self) -> bool {
        matches!(self.means[&Obligation::Alone], Means::Writers | Means::Unreached)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.slots.is_empty() {
            let same = counted((self.instructions - self.changed) as u64, "instruction");
            return writeln!(f, "{}: {same} of both texts are the same", self.verdict());
        }
        let [text, writers] = self.alone();
        // The verdict may end in a place.
        writeln!(
            f,
            "{}{} {} moved, {} of {} changed, {} added",
            self.verdict(),
            if self.unreached.is_empty() { ":" } else { ";" },
            counted(self.slots.len() as u64, "slot"),
            self.changed,
            counted(self.instructions as u64, "instruction"),
            self.added
        )?;
        let unreached = self.by(Means::Unreached);
        let checked = Obligation::ALL.into_iter().filter(|&one| one != Obligation::Alone || unreached == 0);
        let names: Vec<&str> = checked.map(Obligation::name).collect();
        writeln!(f, "  checked: {}", names.join(", "))?;
        let parts = [(text, "the text"), (writers, "following every access of the runs")];
        let parts = parts.iter().filter(|(n, _)| *n > 0);
        let mut parts: Vec<String> =
            parts.map(|(n, by)| format!("{} by {by}", counted(*n as u64, "slot"))).collect();
        if unreached > 0 {
            let slots = counted(unreached as u64, "slot");
            parts.push(format!("not checked for {slots}, which instructions that never ran may touch"));
        }
        if !parts.is_empty() {
            writeln!(f, "  separation: {}", parts.join(", "))?;
        }
        for one in &self.assumes {
            writeln!(f, "  assumes {one}: {}", one.says())?;
        }
        for ran in &self.runs {
            writeln!(
                f,
                "  {}: {} followed in {:.1} s, {} in lockstep on {} in {:.1} s ({:.0} a second); tested on {} in {:.1} s: no difference",
                ran.function,
                counted(ran.followed, "instruction"),
                ran.seconds[0],
                counted(ran.compared, "pair"),
                counted(ran.traced_inputs, "input"),
                ran.seconds[1],
                ran.rate(),
                counted(ran.inputs, "input"),
                ran.seconds[2]
            )?;
        }
        if self.runs.is_empty() {
            writeln!(f, "  tested on no input")?;
        }
        writeln!(f, "  not decided: {}", self.undecided.join("; "))
    }
}

/// The objections to a rewrite.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// Each reason, by name and place.
    pub reasons: Vec<Reason>,
    /// The runs before its refusal.
    pub runs: Vec<Ran>,
}

impl Refused {
    /// Whether a reason of this name is among them.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.reasons.iter().any(|reason| reason.name() == name)
    }

    /// The slots, as (unit, slot), that should stay: for [`crate::plan::Wish::stay`].
    #[must_use]
    pub fn stay(&self) -> std::collections::BTreeSet<(usize, usize)> {
        self.reasons.iter().filter_map(|reason| reason.slot().map(|slot| slot.key)).collect()
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, reason) in self.reasons.iter().enumerate() {
            let end = if n + 1 == self.reasons.len() { "" } else { "\n" };
            write!(f, "refused ({}): {reason}{end}", reason.name())?;
        }
        Ok(())
    }
}

impl core::error::Error for Refused {}

/// How each obligation was checked for a slot that is not refused.
fn means(home: Home, alone: Means, ways: Means) -> BTreeMap<Obligation, Means> {
    Obligation::ALL
        .into_iter()
        .map(|obligation| {
            let means = match obligation {
                Obligation::Alone => alone,
                Obligation::Ways => ways,
                Obligation::Neighbours => Means::Abi,
                Obligation::Float if !matches!(home, Home::Mm(_)) => Means::None,
                _ => Means::Text,
            };
            (obligation, means)
        })
        .collect()
}
