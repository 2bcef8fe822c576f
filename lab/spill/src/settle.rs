//! A rewrite that is checked: what something speaks against stays on the stack.
#![forbid(unsafe_code)]

use lanework_cpu::Features;
use lanework_respill::Program;
use lanework_respill::analysis::Analysis;
use lanework_respill::case::Case;
use lanework_respill::homes::{Bank, Home};
use lanework_respill::load::LoadError;
use lanework_respill::plan::{self, Plan, Wish};
use lanework_respill::rewrite;
use lanework_respill::validate::{self, Options, Report};
use lanework_study::Failure;

use crate::{needs, of_program};

/// A plan, its text, and what was checked of it.
pub struct Checked {
    /// Which slots move, and where to.
    pub plan: Plan,
    /// The rewritten text.
    pub text: String,
    /// Instructions that were changed.
    pub changed: usize,
    /// What was checked.
    pub report: Report,
    /// Slots that had to stay, with the reason's name.
    pub dropped: Vec<((usize, usize), &'static str)>,
}

/// The most often that slots are taken back and the rest is judged again.
const ROUNDS: usize = 12;

/// A judge's other failures: of the machine, or of the input.
#[must_use]
pub fn of_judge(file: &str, e: &validate::Failure) -> Failure {
    match e {
        validate::Failure::Refused(refused) => Failure::refused(format!("{file}: {refused}")),
        validate::Failure::Unavailable(_)
        | validate::Failure::Load(LoadError::Unavailable(_) | LoadError::Memory(_)) => {
            Failure::unavailable(format!("{file}: {e}"))
        }
        _ => Failure::input(format!("{file}: {e}")),
    }
}

/// Whether this processor, or what a mask leaves of it, has all homes of a plan.
///
/// # Errors
/// [`Failure::unavailable`] with the kind that is missing.
pub fn runs_here(features: Features, plan: &Plan) -> Result<(), Failure> {
    let bank = |home: &Home| match home {
        Home::Mm(_) => Bank::Mm,
        Home::Xmm(n) if *n < 16 => Bank::Xmm,
        Home::Xmm(_) => Bank::Xmm32,
        Home::K(_) => Bank::K,
        Home::Lane { .. } => Bank::ZmmLane,
    };
    match plan.homes.values().map(bank).find(|bank| !features.includes(needs(*bank))) {
        Some(bank) => Err(Failure::unavailable(format!(
            "no {bank} homes on this processor, so that nothing can be run"
        ))
        .help("choose another --home")),
        None => Ok(()),
    }
}

/// Moves everything that is wished, and takes back what something speaks against, until nothing does. `None` if nothing is left to move.
///
/// # Errors
/// [`Failure`]: a text that cannot be rewritten, a machine that cannot run it, or objections without end.
pub fn settle(
    features: Features,
    analysis: &Analysis,
    wish: &Wish,
    cases: &[Case],
    options: &Options,
) -> Result<Option<Checked>, Failure> {
    let mut wish = wish.clone();
    let mut dropped = Vec::new();
    let file = &analysis.program.file;
    // Found quickly, and judged in full when nothing more is found.
    let quick = Options { inputs: options.inputs.min(4), traced: 1, go_on: true, ..options.clone() };
    let mut whole = false;
    for _ in 0..ROUNDS {
        let plan = plan::plan(analysis, &wish);
        if plan.homes.is_empty() {
            return Ok(None);
        }
        runs_here(features, &plan)?;
        let made = rewrite::rewrite(analysis, &plan, rewrite::Options::default()).map_err(Failure::input)?;
        let name = format!("{file} as rewritten");
        let program = Program::new(&name, &*made.text).map_err(|e| of_program(&e))?;
        match validate::validate(analysis, &program, cases, if whole { options } else { &quick }) {
            Ok(report) if whole => {
                return Ok(Some(Checked {
                    plan,
                    text: made.text,
                    changed: made.changed.len(),
                    report,
                    dropped,
                }));
            }
            Ok(_) => whole = true,
            Err(e) => {
                let Some(refused) = e.refused() else { return Err(of_judge(file, &e)) };
                let moved = |key: &(usize, usize)| plan.homes.contains_key(key);
                let stay: Vec<_> = refused.stay().into_iter().filter(moved).collect();
                if stay.is_empty() {
                    return Err(of_judge(file, &e));
                }
                for key in stay {
                    let why = refused
                        .reasons
                        .iter()
                        .find(|reason| reason.slot().is_some_and(|slot| slot.key == key));
                    dropped.push((key, why.map_or("", |reason| reason.name())));
                    wish.stay.insert(key);
                }
            }
        }
    }
    Err(Failure::refused(format!(
        "{file}: after {ROUNDS} rounds something still speaks against moving slots"
    )))
}
