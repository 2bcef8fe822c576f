//! A rewrite that is checked: slots that a check refuses stay on the stack.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;

use lanework_cpu::Features;
use lanework_respill::analysis::Analysis;
use lanework_respill::case::Case;
use lanework_respill::homes::Bank;
use lanework_respill::load::LoadError;
use lanework_respill::plan::{self, Plan, Stays, Wish};
use lanework_respill::rewrite;
use lanework_respill::validate::{self, Bad, BadCase, Options, Reason, Report, SlotName};
use lanework_study::Failure;

use crate::account::Dropped;
use crate::{needs, of_program};

/// A plan, its text, and the report on it.
pub struct Checked {
    /// Which slots move, and where to.
    pub plan: Plan,
    /// The rewritten text.
    pub text: String,
    /// Instructions that were changed.
    pub changed: usize,
    /// The report of the checks.
    pub report: Report,
    /// Slots that had to stay.
    pub dropped: Vec<Dropped>,
    /// Kinds of homes that were refused before others were taken.
    pub refused: Vec<RefusedHome>,
}

/// The result of [`settle`].
pub enum Settled {
    /// A rewrite to which no check objects.
    Moved(Box<Checked>),
    /// Nothing is left to move.
    Nothing {
        /// The last plan, by which every slot stays.
        plan: Plan,
        /// The slots that a check refused.
        dropped: Vec<Dropped>,
    },
}

/// A kind of home that was asked for and refused.
pub struct RefusedHome {
    /// The kind.
    pub bank: Bank,
    /// The first reason.
    pub why: String,
    /// The kinds that were taken.
    pub taken: BTreeSet<Bank>,
}

/// Kinds of homes that a caller or a callee refuses to slots which then get one of a later kind.
fn passed_over(analysis: &Analysis, wish: &Wish, plan: &Plan) -> Vec<RefusedHome> {
    let mut out = Vec::new();
    for (n, &(bank, _)) in wish.banks.iter().enumerate() {
        let later: BTreeSet<Bank> = wish.banks[n + 1..].iter().map(|&(bank, _)| bank).collect();
        if later.is_empty() {
            break;
        }
        let alone = plan::plan(analysis, &Wish { banks: vec![(bank, None)], ..wish.clone() });
        let refused = plan.homes.iter().filter_map(|(key, home)| match alone.stays.get(key) {
            Some(Stays::Refused(why)) if later.contains(&home.bank()) => Some((why, home.bank())),
            _ => None,
        });
        let (mut first, mut taken) = (None, BTreeSet::new());
        for (why, bank) in refused {
            first.get_or_insert(why);
            taken.insert(bank);
        }
        out.extend(first.map(|why| RefusedHome { bank, why: why.says(analysis), taken }));
    }
    out
}

/// The most times that a plan is changed and checked again.
const ROUNDS: usize = 12;

/// A failed check as the command's failure: of the rewrite, the machine or the input.
#[must_use]
pub fn of_judge(file: &str, e: &validate::Failure) -> Failure {
    match e {
        validate::Failure::Refused(refused) => Failure::refused(format!("{file}: {refused}")),
        validate::Failure::Unavailable(_)
        | validate::Failure::Load(LoadError::Unavailable(_) | LoadError::Memory(_)) => {
            Failure::unavailable(format!("{file}: {e}"))
        }
        validate::Failure::Case(BadCase { why: Bad::Ended { .. }, .. }) => {
            Failure::input(format!("{file}: {e}"))
                .help("correct the call: its buffers, their sizes and its numbers")
        }
        validate::Failure::Case(_) => {
            Failure::input(format!("{file}: {e}")).help("give the call a smaller count, or fewer --inputs")
        }
        _ => Failure::input(format!("{file}: {e}")),
    }
}

/// Whether this processor, or what a mask leaves of it, has all homes of a plan.
///
/// # Errors
/// [`Failure::unavailable`] with the kind that is missing.
pub fn runs_here(features: Features, plan: &Plan) -> Result<(), Failure> {
    match plan.homes.values().map(|home| home.bank()).find(|bank| !features.includes(needs(*bank))) {
        Some(bank) => {
            Err(Failure::unavailable(format!("no {bank} homes on this processor, so nothing can be run"))
                .help("choose another --home"))
        }
        None => Ok(()),
    }
}

/// Moves every slot that `wish` asks for, and takes back those that a check refuses, until none is refused. Where the home is at fault
/// and not a slot, the next kind of home is tried.
///
/// # Errors
/// [`Failure`]: a text that cannot be rewritten, a machine that cannot run it, or objections without end.
pub fn settle(
    features: Features,
    analysis: &Analysis,
    wish: &Wish,
    cases: &[Case],
    options: &Options,
) -> Result<Settled, Failure> {
    let mut wish = wish.clone();
    let (mut dropped, mut refused_homes) = (Vec::new(), Vec::new());
    let file = &analysis.program.file;
    // Checked quickly at first, and in full once that finds nothing.
    let quick = Options { inputs: options.inputs.min(4), traced: 1, go_on: true, ..options.clone() };
    let mut whole = false;
    // Without runs, the refusal is the answer.
    let mut last = None;
    for _ in 0..ROUNDS {
        let plan = plan::plan(analysis, &wish);
        if plan.homes.is_empty() {
            return last.map_or(Ok(Settled::Nothing { plan, dropped }), Err);
        }
        if !cases.is_empty() {
            runs_here(features, &plan)?;
        }
        let made = rewrite::rewrite(analysis, &plan, rewrite::Options::default()).map_err(Failure::input)?;
        let name = format!("{file} as rewritten");
        let program = match analysis.program.again(&name, &*made.text) {
            Ok(program) => program,
            Err(e) => {
                let stay = e.line.map(|line| made.moved_at(analysis, &plan, line)).unwrap_or_default();
                if stay.is_empty() {
                    return Err(of_program(&e));
                }
                let why = e.to_string();
                let reason = |key| Reason::NotAssembled(SlotName::of(analysis, key), why.clone());
                dropped.extend(stay.iter().map(|&key| Dropped { key, reason: reason(key) }));
                wish.stay.extend(stay);
                continue;
            }
        };
        match validate::validate(analysis, &program, cases, if whole { options } else { &quick }) {
            Ok(report) if whole => {
                let taken: BTreeSet<Bank> = plan.homes.values().map(|home| home.bank()).collect();
                let by_check = refused_homes.into_iter();
                let mut refused_homes: Vec<RefusedHome> =
                    by_check.map(|(bank, why)| RefusedHome { bank, why, taken: taken.clone() }).collect();
                refused_homes.extend(passed_over(analysis, &wish, &plan));
                return Ok(Settled::Moved(Box::new(Checked {
                    text: made.text,
                    changed: made.changed.len(),
                    report,
                    dropped,
                    refused: refused_homes,
                    plan,
                })));
            }
            Ok(_) => whole = true,
            Err(e) => {
                let Some(refused) = e.refused() else { return Err(of_judge(file, &e)) };
                let moved = |key: &(usize, usize)| plan.homes.contains_key(key);
                let stay: Vec<_> = refused.stay().into_iter().filter(moved).collect();
                let of_home = refused.reasons.iter().find(|reason| reason.is_of_home());
                let reason = of_home.or(refused.reasons.first().filter(|_| stay.is_empty()));
                if let Some(reason) = reason.filter(|_| wish.banks.len() > 1) {
                    let own = reason.slot().and_then(|slot| plan.homes.get(&slot.key));
                    let own = own.map(|home| home.bank());
                    let used = |bank: &Bank| plan.homes.values().any(|home| home.bank() == *bank);
                    let first = wish.banks.iter().map(|&(bank, _)| bank).find(used);
                    let at_fault = own.filter(|own| wish.banks.iter().any(|(bank, _)| bank == own)).or(first);
                    if let Some(bank) = at_fault {
                        wish.banks.retain(|(other, _)| *other != bank);
                        refused_homes.push((bank, format!("{}: {reason}", reason.name())));
                        continue;
                    }
                }
                if stay.is_empty() {
                    return Err(of_judge(file, &e));
                }
                last = cases.is_empty().then(|| of_judge(file, &e));
                for key in stay {
                    let why = |reason: &&Reason| reason.slot().is_some_and(|slot| slot.key == key);
                    dropped.extend(
                        refused
                            .reasons
                            .iter()
                            .find(why)
                            .map(|reason| Dropped { key, reason: reason.clone() }),
                    );
                    wish.stay.insert(key);
                }
            }
        }
    }
    Err(Failure::refused(format!("{file}: after {ROUNDS} rounds a check still refuses to move slots")))
}
