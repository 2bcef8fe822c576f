//! Homes for slots by measuring: each kind of home alone first, then the hottest slots one after the other.
//!
//! A stack slot is often the best home. So a move is kept only if the judge accepts it and it is faster beyond doubt
//! than the plan kept before; otherwise the slot stays. Moving nothing is a normal answer. The search is small on
//! purpose: the more variants race, the more of them win by luck. So the winner is raced again before it is kept.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use crate::analysis::Analysis;
use crate::homes::{Bank, Home};
use crate::names;
use crate::neighbours::Neighbours;
use crate::plan::{Plan, Policy, Wish, plan, weight};

/// A race's verdict on the second of two plans.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Judged {
    /// The first one's time in the second one's: above 1 the second is faster.
    pub ratio: f64,
    /// Whether the second is faster beyond doubt.
    pub faster: bool,
}

/// The judge that checks and measures plans.
pub trait Judge {
    /// Why a search cannot continue.
    type Error;

    /// Whether a plan is accepted; if not, the findings, and their slots.
    ///
    /// # Errors
    /// If nothing can be judged here at all.
    fn check(&mut self, plan: &Plan) -> Result<Result<(), Refused>, Self::Error>;

    /// Races the challengers against `kept` in one race; a verdict for each.
    ///
    /// # Errors
    /// If nothing can be raced.
    fn race(&mut self, kept: &Plan, challengers: &[&Plan]) -> Result<Vec<Judged>, Self::Error>;
}

/// Why a plan is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// What was found.
    pub why: String,
    /// The slots, as (unit, slot), that must stay. If it is empty, the whole plan is refused.
    pub slots: BTreeSet<(usize, usize)>,
}

/// What to search.
#[derive(Clone, Debug)]
pub struct Options {
    /// The kinds of homes that this processor has.
    pub banks: Vec<Bank>,
    /// The other wishes; its banks and its `only` are replaced.
    pub wish: Wish,
    /// The number of hottest slots to try one by one.
    pub slots: usize,
}

/// One trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trial {
    /// `mm`, or `without f:-24`.
    pub what: String,
    /// Slots that have another home in it.
    pub moved: usize,
    /// Its result.
    pub outcome: Tried,
}

/// The result of a trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tried {
    /// No slot can move.
    Nothing,
    /// It is not accepted.
    Refused(String),
    /// It was raced, and is not faster beyond doubt.
    NotFaster(f64),
    /// It was raced, and is faster.
    Faster(f64),
    /// It was faster, but not when it was raced again.
    NotAgain(f64),
}

/// The result of a search.
#[derive(Clone, Debug)]
pub struct Found {
    /// The slots that are faster elsewhere; empty if all stay.
    pub plan: Plan,
    /// The old time over the new one, by the deciding races: 1 if all stay.
    pub ratio: f64,
    /// All trials, in order.
    pub trials: Vec<Trial>,
}

struct Search<'a, J: Judge> {
    analysis: &'a Analysis,
    options: &'a Options,
    judge: &'a mut J,
    trials: Vec<Trial>,
}

/// The most times that a plan is made anew because of findings about its slots.
const ROUNDS: usize = 8;

impl<J: Judge> Search<'_, J> {
    fn tried(&mut self, what: &str, plan: &Plan, outcome: Tried) {
        self.trials.push(Trial { what: what.to_owned(), moved: plan.homes.len(), outcome });
    }

    /// The accepted plan that moves as many slots as possible into these homes, if any.
    fn checked(
        &mut self,
        what: &str,
        banks: &[(Bank, Option<usize>)],
        only: &BTreeSet<(usize, usize)>,
    ) -> Result<Option<Plan>, J::Error> {
        // A slot that one kind of home refuses may suit the next.
        let mut stay: BTreeSet<(usize, usize)> = BTreeSet::new();
        for _ in 0..ROUNDS {
            let mut wish = self.options.wish.clone();
            wish.banks = banks.to_vec();
            wish.only.clone_from(only);
            wish.stay.extend(&stay);
            let plan = plan(self.analysis, &wish);
            if plan.homes.is_empty() {
                if stay.is_empty() {
                    self.tried(what, &plan, Tried::Nothing);
                }
                return Ok(None);
            }
            match self.judge.check(&plan)? {
                Ok(()) => return Ok(Some(plan)),
                Err(refused) => {
                    // A slot outside the plan would be found again and again.
                    let named = refused.slots.iter().filter(|key| plan.homes.contains_key(key)).copied();
                    let before = stay.len();
                    stay.extend(named);
                    self.tried(what, &plan, Tried::Refused(refused.why));
                    if stay.len() == before {
                        return Ok(None);
                    }
                }
            }
        }
        Ok(None)
    }

    /// Races accepted plans against the kept one, and the winner once more. The winner's number and ratio.
    fn best(
        &mut self,
        kept: &Plan,
        challengers: &[(String, Plan)],
    ) -> Result<Option<(usize, f64)>, J::Error> {
        if challengers.is_empty() {
            return Ok(None);
        }
        let plans: Vec<&Plan> = challengers.iter().map(|(_, plan)| plan).collect();
        let judged = self.judge.race(kept, &plans)?;
        let winner = judged
            .iter()
            .enumerate()
            .filter(|(_, j)| j.faster)
            .max_by(|(_, a), (_, b)| a.ratio.total_cmp(&b.ratio))
            .map(|(n, _)| n);
        for (n, ((what, plan), j)) in challengers.iter().zip(&judged).enumerate() {
            if Some(n) != winner {
                let outcome = if j.faster { Tried::Faster(j.ratio) } else { Tried::NotFaster(j.ratio) };
                self.tried(what, plan, outcome);
            }
        }
        let Some(n) = winner else { return Ok(None) };
        let (what, plan) = &challengers[n];
        let again = self.judge.race(kept, &[plan])?;
        match again.first() {
            Some(j) if j.faster => {
                self.tried(what, plan, Tried::Faster(j.ratio));
                Ok(Some((n, j.ratio)))
            }
            j => {
                self.tried(what, plan, Tried::NotAgain(j.map_or(1.0, |j| j.ratio)));
                Ok(None)
            }
        }
    }
}

/// Runs the search.
///
/// # Errors
/// The judge's error.
pub fn search<J: Judge>(analysis: &Analysis, options: &Options, judge: &mut J) -> Result<Found, J::Error> {
    let mut s = Search { analysis, options, judge, trials: Vec::new() };
    let (mut kept, mut ratio) = (Plan::default(), 1.0);
    let given = options.wish.only.clone();

    // Each kind of home alone, filled with slots.
    let mut banks: Vec<(String, Plan)> = Vec::new();
    for &bank in &options.banks {
        if let Some(plan) = s.checked(bank.name(), &[(bank, None)], &given)? {
            banks.push((bank.name().to_owned(), plan));
        }
    }
    let candidates = hottest(analysis, &options.wish, banks.iter().map(|(_, plan)| plan));
    if let Some((n, won)) = s.best(&kept, &banks)? {
        kept = banks.swap_remove(n).1;
        ratio = won;
    }

    // Then one of the hottest slots at a time: into each kind of home where it stays, and back where it has moved.
    for &key in candidates.iter().take(options.slots) {
        let slot = names::slot(analysis, &analysis.units[key.0], key.1);
        let mut challengers: Vec<(String, Plan)> = Vec::new();
        if kept.homes.contains_key(&key) {
            let mut without = kept.clone();
            without.homes.remove(&key);
            // The plan that moves nothing has been raced already.
            if !without.homes.is_empty() && s.judge.check(&without)?.is_ok() {
                challengers.push((format!("without {slot}"), without));
            }
        } else {
            for &bank in &options.banks {
                let Some(with) = with(analysis, &options.wish, &kept, key, bank) else { continue };
                if s.judge.check(&with)?.is_ok() {
                    challengers.push((format!("with {slot} in {bank}"), with));
                }
            }
        }
        if let Some((n, won)) = s.best(&kept, &challengers)? {
            kept = challengers.swap_remove(n).1;
            ratio *= won;
        }
    }
    Ok(Found { plan: kept, ratio, trials: s.trials })
}

/// The slots of all plans, the hottest first.
fn hottest<'a>(
    analysis: &Analysis,
    wish: &Wish,
    plans: impl Iterator<Item = &'a Plan>,
) -> Vec<(usize, usize)> {
    let keys: BTreeSet<(usize, usize)> = plans.flat_map(|plan| plan.homes.keys().copied()).collect();
    let heat = |&(n, s): &(usize, usize)| {
        let unit = &analysis.units[n];
        weight(unit, &unit.slots[s], wish.counts.as_ref())
    };
    let mut keys: Vec<(usize, usize)> = keys.into_iter().filter(|key| heat(key) > 0).collect();
    keys.sort_by_key(|key| (u64::MAX - heat(key), *key));
    keys
}

/// `kept` and one more slot in a home of `bank`, if one is free beside the kept slots.
fn with(analysis: &Analysis, wish: &Wish, kept: &Plan, key: (usize, usize), bank: Bank) -> Option<Plan> {
    // By itself it gets a home that its function and all callees leave free; among those, an unused one is safe.
    let mut taken: HashMap<Bank, usize> = HashMap::new();
    for home in kept.homes.values() {
        *taken.entry(home.bank()).or_default() += 1;
    }
    let lanes = |bank: Bank| bank == Bank::ZmmLane;
    // Lanes need their masks and one register throughout, which the kept plan does not consider.
    if taken.keys().any(|&other| lanes(other) != lanes(bank)) {
        return None;
    }
    let mut wish = wish.clone();
    wish.policy = Policy::Hottest;
    wish.banks = vec![(bank, None)];
    wish.only = BTreeSet::from([key]);
    let own = *plan(analysis, &wish).homes.get(&key)?;
    let free = |home: &Home| !kept.homes.values().any(|other| home.clashes(*other));
    let around = Neighbours::of(analysis, key.0);
    let other = |home: &Home| free(home) && around.objection(*home).is_none();
    let home = if free(&own) { own } else { bank.homes().into_iter().find(other)? };
    let mut homes: BTreeMap<(usize, usize), Home> = kept.homes.clone();
    homes.insert(key, home);
    Some(Plan { homes, stays: kept.stays.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Program;

    /// Three values that live at the same time, the first the hottest.
    const TEXT: &str = "
        .globl f
f:      movq %rdi, -8(%rsp)
        movq %rsi, -16(%rsp)
        movq %rdx, -24(%rsp)
1:      movq -24(%rsp), %rax
        movq -24(%rsp), %rax
        movq -24(%rsp), %rax
        movq -16(%rsp), %rcx
        movq -16(%rsp), %rcx
        movq -8(%rsp), %rdx
        decq %rax
        jnz 1b
        ret
";

    /// A processor on which each slot costs or gains what was planted for its home, in percent of the whole.
    struct Planted {
        gains: fn(usize, Bank) -> f64,
        aliased: BTreeSet<(usize, usize)>,
        /// A kind of home that is refused for every slot.
        refused: Option<Bank>,
        lucky: usize,
        races: usize,
    }

    impl Planted {
        fn time(&self, plan: &Plan) -> f64 {
            100.0 - plan.homes.iter().map(|(&(_, s), &home)| (self.gains)(s, home.bank())).sum::<f64>()
        }
    }

    impl Judge for Planted {
        type Error = core::convert::Infallible;

        fn check(&mut self, plan: &Plan) -> Result<Result<(), Refused>, Self::Error> {
            let slots: BTreeSet<_> =
                self.aliased.iter().filter(|k| plan.homes.contains_key(k)).copied().collect();
            let of = plan.homes.iter().filter(|(_, home)| Some(home.bank()) == self.refused);
            let slots: BTreeSet<_> = slots.into_iter().chain(of.map(|(key, _)| *key)).collect();
            Ok(if slots.is_empty() {
                Ok(())
            } else {
                Err(Refused { why: "touched by another".into(), slots })
            })
        }

        fn race(&mut self, kept: &Plan, challengers: &[&Plan]) -> Result<Vec<Judged>, Self::Error> {
            self.races += 1;
            let luck = if self.races <= self.lucky { 1.1 } else { 1.0 };
            let judged = |plan: &&Plan| {
                let ratio = self.time(kept) / self.time(plan) * luck;
                Judged { ratio, faster: ratio > 1.001 }
            };
            Ok(challengers.iter().map(judged).collect())
        }
    }

    fn searched(mut judge: Planted) -> Found {
        let analysis = Analysis::new(Program::new("f.s", TEXT).expect("a program"));
        let wish = Wish {
            banks: Vec::new(),
            policy: Policy::Hottest,
            counts: None,
            stay: BTreeSet::new(),
            only: BTreeSet::new(),
            operands: true,
        };
        let options = Options { banks: vec![Bank::Mm, Bank::Xmm, Bank::K], wish, slots: 8 };
        match search(&analysis, &options, &mut judge) {
            Ok(found) => found,
        }
    }

    fn planted(gains: fn(usize, Bank) -> f64) -> Planted {
        Planted { gains, aliased: BTreeSet::new(), refused: None, lucky: 0, races: 0 }
    }

    fn homes(found: &Found) -> Vec<(usize, Bank)> {
        found.plan.homes.iter().map(|(&(_, s), &home)| (s, home.bank())).collect()
    }

    #[test]
    fn where_the_stack_wins_everything_stays() {
        let found = searched(planted(|_, _| -1.0));
        assert!(found.plan.homes.is_empty() && found.ratio == 1.0);
        let raced = found.trials.iter().filter(|t| matches!(t.outcome, Tried::NotFaster(_))).count();
        assert_eq!(raced, found.trials.len(), "{:?}", found.trials);
        assert_eq!(raced, 3 + 3 * 3, "three kinds of homes, then three slots in each");
    }

    #[test]
    fn each_slot_gets_the_home_that_is_best_for_it() {
        let found = searched(planted(|slot, bank| match (slot, bank) {
            (0, Bank::K) => 2.0,
            (1, Bank::Mm) => 1.0,
            _ => -3.0,
        }));
        assert_eq!(homes(&found), [(0, Bank::K), (1, Bank::Mm)], "{:?}", found.trials);
        assert!((found.ratio - 100.0 / 97.0).abs() < 1e-9, "{}", found.ratio);
    }

    #[test]
    fn a_slot_that_loses_goes_back_to_the_stack() {
        let found = searched(planted(|slot, bank| match (slot, bank) {
            (0, Bank::Xmm) => -1.0,
            (_, Bank::Xmm) => 3.0,
            _ => -5.0,
        }));
        assert_eq!(homes(&found), [(1, Bank::Xmm), (2, Bank::Xmm)], "{:?}", found.trials);
    }

    #[test]
    fn what_is_not_accepted_never_moves() {
        let mut judge = planted(|_, _| 1.0);
        judge.aliased.insert((0, 1));
        assert_eq!(homes(&searched(judge)).iter().map(|h| h.0).collect::<Vec<_>>(), [0, 2]);
        let mut judge = planted(|_, _| 1.0);
        judge.aliased.extend([(0, 0), (0, 1), (0, 2)]);
        let found = searched(judge);
        assert!(found.plan.homes.is_empty());
        assert!(matches!(&found.trials[0].outcome, Tried::Refused(why) if why == "touched by another"));
    }

    #[test]
    fn where_one_home_is_refused_the_next_is_tried_and_told() {
        let mut judge = planted(|_, bank| if bank == Bank::Xmm { 1.0 } else { -1.0 });
        judge.refused = Some(Bank::Mm);
        let found = searched(judge);
        assert_eq!(homes(&found), [(0, Bank::Xmm), (1, Bank::Xmm), (2, Bank::Xmm)], "{:?}", found.trials);
        let first = &found.trials[0];
        assert!(first.what == "mm" && matches!(first.outcome, Tried::Refused(_)), "{first:?}");
    }

    #[test]
    fn luck_is_not_kept() {
        let mut judge = planted(|_, _| 0.0);
        judge.lucky = 1;
        let found = searched(judge);
        assert!(found.plan.homes.is_empty(), "{:?}", found.trials);
        assert!(found.trials.iter().any(|t| matches!(t.outcome, Tried::NotAgain(_))));
    }
}
