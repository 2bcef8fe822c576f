//! Whether a rewritten text does what the original does, and by which means that is known.
//!
//! The correspondence of the two texts is found here and not taken from whoever made the second, so that any pair can be judged. What
//! has to hold, and how it is shown, is in DESIGN.md; [`Obligation`] has the list.
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
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod runs;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod writers;

use core::fmt;
use std::collections::BTreeMap;

use serde::Serialize;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub use judge::{Failure, Options, validate};
pub use reason::{Place, Reason, SlotName};
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub use runs::Versions;

use crate::homes::Home;

/// What has to hold for a slot that moves.
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
    /// 5. The caller does not expect the home to be kept.
    Volatile,
    /// 6. For MMX: x87 is not used meanwhile, and finds its registers empty afterwards.
    Float,
    /// 7. On the way no flag changes, and no register that is wanted.
    Clean,
    /// 8. Both go the same ways.
    Ways,
    /// 9. Nobody looks for the value in memory: no unwinder, no caller.
    Unwinding,
}

impl Obligation {
    /// All of them.
    pub const ALL: [Obligation; 9] = [
        Obligation::Named,
        Obligation::Alone,
        Obligation::Stored,
        Obligation::Kept,
        Obligation::Volatile,
        Obligation::Float,
        Obligation::Clean,
        Obligation::Ways,
        Obligation::Unwinding,
    ];

    /// In words.
    #[must_use]
    pub const fn says(self) -> &'static str {
        match self {
            Obligation::Named => "every use is known, of one width, and moved whole",
            Obligation::Alone => "nothing else touches the bytes",
            Obligation::Stored => "every load comes after a store",
            Obligation::Kept => "nothing else writes the home",
            Obligation::Volatile => "no caller expects the home to be kept",
            Obligation::Float => "x87 finds its registers empty",
            Obligation::Clean => "no flag and no wanted register changes on the way",
            Obligation::Ways => "both go the same ways",
            Obligation::Unwinding => "nobody looks for the value in memory",
        }
    }
}

/// How it is known that an obligation holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Means {
    /// From the text, for all inputs.
    Text,
    /// By the System V ABI.
    Abi,
    /// From runs in which the last writer of every byte of the stack was followed: for the ways that these took. Code whose addresses do
    /// not follow from its inputs has one way for each length.
    Writers,
    /// It does not arise with this home.
    None,
}

/// A slot that may move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Proof {
    /// Its function.
    pub function: String,
    /// Bytes from the stack pointer at the entry, or from where that was aligned.
    pub offset: i64,
    /// Bytes.
    pub size: usize,
    /// Where its value lives now.
    pub home: String,
    /// Instructions that name it.
    pub uses: usize,
    /// Those of them that ran in some run.
    pub ran: usize,
    /// How each obligation is known to hold.
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
    /// Inputs of which the results were compared.
    pub inputs: u64,
    /// Seconds for following, comparing in lockstep, and comparing results.
    pub seconds: [f64; 3],
}

impl Ran {
    /// Pairs that were compared in lockstep for each second that it took.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.compared as f64 / self.seconds[1].max(1e-9)
    }
}

/// Nothing was found against a rewrite, and this is what speaks for it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Certificate {
    /// The slots that moved.
    pub slots: Vec<Proof>,
    /// What was run, a case each.
    pub runs: Vec<Ran>,
    /// Instructions of the program.
    pub instructions: usize,
    /// Those that were changed.
    pub changed: usize,
    /// Those that were added.
    pub added: usize,
}

impl Certificate {
    /// Slots of which the text alone shows that nobody else touches them, and those of which runs did.
    #[must_use]
    pub fn alone(&self) -> (usize, usize) {
        let by = |means| self.slots.iter().filter(|slot| slot.means[&Obligation::Alone] == means).count();
        (by(Means::Text), by(Means::Writers))
    }
}

impl fmt::Display for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (text, writers) = self.alone();
        writeln!(
            f,
            "{} slots moved, {} of {} instructions changed, {} added: nothing against it",
            self.slots.len(),
            self.changed,
            self.instructions,
            self.added
        )?;
        writeln!(f, "  nobody else touches them: {text} by the text, {writers} by following every access")?;
        for ran in &self.runs {
            writeln!(
                f,
                "  {}: {} instructions followed in {:.1} s, {} pairs in lockstep on {} inputs in {:.1} s ({:.0} a second), results of {} inputs equal in {:.1} s",
                ran.function,
                ran.followed,
                ran.seconds[0],
                ran.compared,
                ran.traced_inputs,
                ran.seconds[1],
                ran.rate(),
                ran.inputs,
                ran.seconds[2]
            )?;
        }
        Ok(())
    }
}

/// What speaks against a rewrite.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// Each reason, by name and place.
    pub reasons: Vec<Reason>,
    /// What was run before it was refused.
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

/// How each obligation is known to hold for a slot that nothing speaks against.
fn means(home: Home, alone: Means) -> BTreeMap<Obligation, Means> {
    Obligation::ALL
        .into_iter()
        .map(|obligation| {
            let means = match obligation {
                Obligation::Alone => alone,
                Obligation::Volatile => Means::Abi,
                Obligation::Float if !matches!(home, Home::Mm(_)) => Means::None,
                _ => Means::Text,
            };
            (obligation, means)
        })
        .collect()
}
