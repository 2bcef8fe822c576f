//! Why slots stay on the stack, in words: each reason with its number of slots, and the first line that shows it.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};

use lanework_respill::analysis::Analysis;
use lanework_respill::names::counted;
use lanework_respill::plan::{Plan, Stays};
use lanework_respill::validate::Reason;

/// A slot that a check refused to move.
#[derive(Clone, Debug)]
pub struct Dropped {
    /// The slot, as (unit, slot).
    pub key: (usize, usize),
    /// Why.
    pub reason: Reason,
}

/// A reason for one slot and for several, with `#` in place of their number, and an example.
struct Phrase {
    one: String,
    several: String,
    first: Option<String>,
}

impl Phrase {
    fn new(one: &str, several: &str) -> Phrase {
        Phrase { one: one.to_owned(), several: several.to_owned(), first: None }
    }

    /// With the instruction that shows it.
    fn shown(mut self, at: impl ToString) -> Phrase {
        self.first = Some(at.to_string());
        self
    }
}

fn planned(analysis: &Analysis, key: (usize, usize), why: Stays) -> Phrase {
    let at = |op: usize| format!("line {}", analysis.program.line(op));
    match why {
        Stays::Class(_) => Phrase::new("# holds no spilled value", "# hold no spilled value"),
        Stays::FromOutside => Phrase::new(
            "# is read before it is written, or lies in the caller's frame",
            "# are read before they are written, or lie in the caller's frame",
        ),
        Stays::Opaque(why) => {
            let why = analysis.told(why);
            Phrase::new(
                &format!("# lies in a function that cannot be followed: {why}"),
                &format!("# lie in a function that cannot be followed: {why}"),
            )
        }
        Stays::Shared(op) => Phrase::new(
            "# is named by an instruction that also belongs to another function",
            "# are named by an instruction that also belongs to another function",
        )
        .shown(at(op)),
        Stays::Across(op) => Phrase::new(
            "# lives across a call to unknown code, or into its own function",
            "# live across a call to unknown code, or into their own function",
        )
        .shown(at(op)),
        Stays::Operand(op) => Phrase::new(
            "# is named by an instruction that cannot be rewritten here",
            "# are named by an instruction that cannot be rewritten here",
        )
        .shown(at(op)),
        Stays::Full => Phrase::new("# finds no free home", "# find no free home"),
        Stays::Refused(why) => {
            let why = format!("#: {}", why.says(analysis));
            Phrase::new(&why, &why)
        }
        Stays::Aliased => {
            let phrase = Phrase::new("something else may touch #", "something else may touch #");
            match analysis.units[key.0].slots[key.1].suspects.first() {
                Some(&op) => phrase.shown(at(op)),
                None => phrase,
            }
        }
        Stays::NotWanted => Phrase::new("# not requested", "# not requested"),
        why => {
            let why = format!("#: {why}");
            Phrase::new(&why, &why)
        }
    }
}

fn checked(reason: &Reason) -> Phrase {
    match reason {
        Reason::Aliased { by, .. } => {
            Phrase::new("something else touches #", "something else touches #").shown(by)
        }
        Reason::NeverRan(_, at) => Phrase::new(
            "# is named or possibly touched by an instruction that never ran",
            "# are named or possibly touched by an instruction that never ran",
        )
        .shown(at),
        Reason::NotRun(_) => Phrase::new(
            "# may be touched by something that only a run can show",
            "# may be touched by something that only a run can show",
        ),
        Reason::LoadBeforeStore(_, at) => {
            Phrase::new("# is read before it is stored", "# are read before they are stored").shown(at)
        }
        reason => {
            let refused = format!("refused ({})", reason.name());
            Phrase::new(&format!("# is {refused}"), &format!("# are {refused}")).shown(reason)
        }
    }
}

/// The slots of these functions that stay by a plan.
#[derive(Clone, Debug)]
pub struct Account {
    /// Their number.
    pub slots: usize,
    /// The reasons, the most frequent first; empty if there is no slot.
    pub why: String,
}

impl Account {
    /// Counts the slots of `units` that stay, `dropped` being those that a check took back.
    #[must_use]
    pub fn of(analysis: &Analysis, plan: &Plan, units: &BTreeSet<usize>, dropped: &[Dropped]) -> Account {
        let refused: BTreeMap<(usize, usize), &Reason> =
            dropped.iter().map(|dropped| (dropped.key, &dropped.reason)).collect();
        let mut phrases: BTreeMap<String, (usize, Phrase)> = BTreeMap::new();
        let mut slots = 0;
        for (&key, &why) in plan.stays.iter().filter(|((n, _), _)| units.contains(n)) {
            let phrase = refused.get(&key).map_or_else(|| planned(analysis, key, why), |why| checked(why));
            phrases.entry(phrase.several.clone()).or_insert((0, phrase)).0 += 1;
            slots += 1;
        }
        let mut phrases: Vec<(usize, Phrase)> = phrases.into_values().collect();
        phrases.sort_by_key(|(n, _)| usize::MAX - n);
        let said = phrases.iter().map(|(n, phrase)| {
            let said = if *n == 1 { &phrase.one } else { &phrase.several };
            let said = said.replacen('#', &n.to_string(), 1);
            match &phrase.first {
                Some(at) if *n == 1 => format!("{said} ({at})"),
                Some(at) => format!("{said} (first: {at})"),
                None => said,
            }
        });
        Account { slots, why: said.collect::<Vec<_>>().join("; ") }
    }

    /// `9 slots stay: ...`, or `None` if none does.
    #[must_use]
    pub fn told(&self) -> Option<String> {
        let stay = if self.slots == 1 { "stays" } else { "stay" };
        (self.slots > 0).then(|| format!("{} {stay}: {}", counted(self.slots as u64, "slot"), self.why))
    }
}
