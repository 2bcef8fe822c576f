//! Rewrites that have been judged.
#![forbid(unsafe_code)]

use lanework_respill::analysis::Analysis;
use lanework_respill::case::Case;
use lanework_respill::load::LoadError;
use lanework_respill::plan::{self, Plan, Wish};
use lanework_respill::rewrite;
use lanework_respill::validate::{self, Certificate, Options};
use lanework_respill::{Program, homes::Home};

use super::of_program;
use super::proof_args::{CasesArgs, RunsArgs};
use crate::files;
use crate::outcome::Failure;

/// A plan, its text, and what speaks for it.
pub(crate) struct Proved {
    pub(crate) plan: Plan,
    pub(crate) text: String,
    pub(crate) changed: usize,
    pub(crate) certificate: Certificate,
    /// Slots that had to stay, with the reason's name.
    pub(crate) dropped: Vec<((usize, usize), &'static str)>,
}

/// The most often that slots are taken back and the rest is judged again.
const ROUNDS: usize = 12;

/// The cases that were given, read.
pub(crate) fn cases(args: &CasesArgs) -> Result<Vec<Case>, Failure> {
    let mut out = Vec::new();
    for path in &args.cases {
        let text = files::read_text(path, 1 << 20)?;
        out.push(Case::parse(&text).map_err(|e| Failure::file(path, e))?);
    }
    for text in &args.calls {
        out.push(Case::parse(text).map_err(|e| Failure::input(format!("--call: {e}")))?);
    }
    Ok(out)
}

/// How much is run.
pub(crate) fn options(args: &RunsArgs) -> Options {
    Options { inputs: args.inputs, traced: args.traced, unreached: args.unreached, ..Options::default() }
}

/// A judge's other failures: of the machine, or of the input.
pub(crate) fn of_judge(file: &str, e: &validate::Failure) -> Failure {
    match e {
        validate::Failure::Refused(refused) => Failure::refused(format!("{file}: {refused}")),
        validate::Failure::Unavailable(_)
        | validate::Failure::Load(LoadError::Unavailable(_) | LoadError::Memory(_)) => {
            Failure::unavailable(format!("{file}: {e}"))
        }
        _ => Failure::input(format!("{file}: {e}")),
    }
}

/// Whether this processor has the registers of all homes of a plan.
pub(crate) fn runs_here(plan: &Plan) -> Result<(), Failure> {
    let long = plan.homes.values().any(|home| match home {
        Home::Mm(_) => false,
        Home::Xmm(n) => *n >= 16,
        Home::K(_) | Home::Lane { .. } => true,
    });
    #[cfg(target_arch = "x86_64")]
    let here = std::arch::is_x86_feature_detected!("avx512bw")
        && std::arch::is_x86_feature_detected!("avx512dq")
        && std::arch::is_x86_feature_detected!("avx512vl");
    #[cfg(not(target_arch = "x86_64"))]
    let here = false;
    if long && !here {
        return Err(Failure::unavailable(
            "these homes need AVX-512, which this processor has not: nothing can be run",
        ));
    }
    Ok(())
}

/// Moves everything that is wished, and takes back what something speaks against, until nothing does. `None` if nothing is left to move.
pub(crate) fn settle(
    analysis: &Analysis,
    wish: &Wish,
    cases: &[Case],
    options: &Options,
) -> Result<Option<Proved>, Failure> {
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
        runs_here(&plan)?;
        let made = rewrite::rewrite(analysis, &plan, rewrite::Options::default()).map_err(Failure::input)?;
        let name = format!("{file} as rewritten");
        let program = Program::new(&name, &*made.text).map_err(|e| of_program(&e))?;
        match validate::validate(analysis, &program, cases, if whole { options } else { &quick }) {
            Ok(certificate) if whole => {
                return Ok(Some(Proved {
                    plan,
                    text: made.text,
                    changed: made.changed.len(),
                    certificate,
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
