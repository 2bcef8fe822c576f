//! The variants of a race: a function unchanged, with its values in each home, and the controls that separate a home's
//! effect from a layout's.
//!
//! This crate makes the variants and runs them; the laboratory times and judges them. For each plan there is the text
//! with the values in their homes (`mm`), the same without clearing the homes at the end (`mm+unwiped`), and the two
//! texts of one layout (`mm+placebo`, `mm+level`: see [`crate::layout`]). `copy` is the unchanged function once more:
//! its difference from `stack` is that of equal code.
#![forbid(unsafe_code)]

use core::fmt;
use std::rc::Rc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::analysis::Analysis;
use crate::case::{Case, poison};
use crate::layout::{LayoutError, code_bytes, layouts};
use crate::load::Externals;
use crate::plan::Plan;
use crate::program::{Program, ProgramError};
use crate::rewrite::{Options, RewriteError, rewrite};
use crate::sys::{self, Ended};
use crate::timed::{Code, Timed};

/// The role of a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The unchanged function.
    Stack,
    /// The same bytes again.
    Copy,
    /// Values in homes.
    Home,
    /// The same without clearing them.
    Unwiped,
    /// Values on the stack in the layout of [`Role::Level`].
    Placebo,
    /// Values in homes, filled up to one layout with the placebo.
    Level,
}

/// One variant of a race.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// `stack`, `copy`, `mm`, `mm+placebo`...
    pub name: String,
    /// Its role.
    pub role: Role,
    /// Its assembly.
    pub text: String,
    /// The bytes of its code.
    pub code_bytes: u64,
    /// Slots that have another home.
    pub slots: usize,
    /// The bytes of stack that they occupied.
    pub stack_bytes: usize,
}

/// Why a variant cannot be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum VariantError {
    /// An instruction cannot be rewritten.
    Rewrite(RewriteError),
    /// The result is not a program.
    Program(ProgramError),
    /// Its controls cannot be made.
    Layout(LayoutError),
}

impl fmt::Display for VariantError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VariantError::Rewrite(e) => e.fmt(f),
            VariantError::Program(e) => e.fmt(f),
            VariantError::Layout(e) => e.fmt(f),
        }
    }
}

impl core::error::Error for VariantError {}

impl From<RewriteError> for VariantError {
    fn from(e: RewriteError) -> VariantError {
        VariantError::Rewrite(e)
    }
}

impl From<ProgramError> for VariantError {
    fn from(e: ProgramError) -> VariantError {
        VariantError::Program(e)
    }
}

impl From<LayoutError> for VariantError {
    fn from(e: LayoutError) -> VariantError {
        VariantError::Layout(e)
    }
}

/// The unchanged function, and a copy of it.
#[must_use]
pub fn unchanged(analysis: &Analysis) -> [Variant; 2] {
    [("stack", Role::Stack), ("copy", Role::Copy)].map(|(name, role)| Variant {
        name: name.to_owned(),
        role,
        text: analysis.program.text.text().to_owned(),
        code_bytes: code_bytes(&analysis.program),
        slots: 0,
        stack_bytes: 0,
    })
}

/// The variants of one plan, the one with values in homes first; `controls` adds the others.
///
/// # Errors
/// [`VariantError`].
pub fn variants(
    analysis: &Analysis,
    name: &str,
    plan: &Plan,
    controls: bool,
) -> Result<Vec<Variant>, VariantError> {
    let slots = plan.homes.len();
    let stack_bytes = plan.homes.keys().map(|&(n, s)| analysis.units[n].slots[s].size).sum();
    let variant = |suffix: &str, role: Role, text: String| -> Result<Variant, VariantError> {
        let program = Program::new(&format!("{} as {name}{suffix}", analysis.program.file), text)?;
        let (slots, stack_bytes) = if role == Role::Placebo { (0, 0) } else { (slots, stack_bytes) };
        Ok(Variant {
            name: format!("{name}{suffix}"),
            role,
            code_bytes: code_bytes(&program),
            text: program.text.text().to_owned(),
            slots,
            stack_bytes,
        })
    };
    let made = rewrite(analysis, plan, Options::default())?;
    let mut out = vec![variant("", Role::Home, made.text.clone())?];
    if controls {
        let unwiped = rewrite(analysis, plan, Options { wipe: false, ..Options::default() })?;
        if unwiped.text != made.text {
            out.push(variant("+unwiped", Role::Unwiped, unwiped.text)?);
        }
        let layouts = layouts(&analysis.program, &made)?;
        out.push(variant("+placebo", Role::Placebo, layouts.placebo)?);
        if let Some(level) = layouts.level {
            out.push(variant("+level", Role::Level, level)?);
        }
    }
    Ok(out)
}

/// Everything that a process needs to run variants of one function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The race's path, `spill/kyber768-dec`.
    pub subject: String,
    /// The file's name, for messages.
    pub file: String,
    /// The case, as text.
    pub case: String,
    /// The number of the input that is timed.
    pub input: u64,
    /// The variants; the first is what all others are compared with.
    pub variants: Vec<Variant>,
}

/// The comparison of a variant's results with the first one's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreement {
    /// The variant.
    pub name: String,
    /// Inputs on which it left the same bytes and the same rax.
    pub same: u64,
    /// Inputs on which it did not.
    pub different: u64,
    /// The incident, if any.
    pub why: String,
}

/// The longest time for comparing.
const LIMIT: Duration = Duration::from_secs(120);

impl Job {
    /// The job with its texts assembled, equal ones once. A text that cannot be assembled gives its error when it is
    /// used.
    #[must_use]
    pub fn assembled(self) -> Assembled {
        let mut codes: Vec<Result<Rc<Code>, String>> = Vec::new();
        for (n, variant) in self.variants.iter().enumerate() {
            let same = self.variants[..n].iter().position(|other| other.text == variant.text);
            codes.push(match same {
                Some(other) => codes[other].clone(),
                None => Code::new(&self.file, &variant.text).map(Rc::new).map_err(|e| e.to_string()),
            });
        }
        Assembled { job: self, codes }
    }
}

/// A job with variants ready to be loaded.
#[derive(Debug)]
pub struct Assembled {
    /// The job it was made from.
    pub job: Job,
    codes: Vec<Result<Rc<Code>, String>>,
}

impl Assembled {
    /// The variant of this number, ready to be called, with the stack pointer moved down by `shift`.
    ///
    /// # Errors
    /// The reason, in words.
    ///
    /// # Panics
    /// If there is no variant of this number.
    pub fn timed(&self, variant: usize, case: &Case, shift: u64) -> Result<Timed, String> {
        let code = self.codes[variant].as_ref().map_err(String::clone)?;
        Timed::new(code, &Externals::default(), case, self.job.input, shift).map_err(|e| e.to_string())
    }

    /// Runs every variant on inputs beside the first one, each on a stack that is filled differently, in a child that may crash.
    #[must_use]
    pub fn agreement(&self, case: &Case, inputs: u64) -> Vec<Agreement> {
        self.agreement_but(case, inputs, |_| false)
    }

    /// The same, except that variants whose name `leaves_x87` picks may leave x87 registers full, as compilers' code
    /// with MMX and without `emms` does. Everything else must agree.
    #[must_use]
    pub fn agreement_but(
        &self,
        case: &Case,
        inputs: u64,
        leaves_x87: impl Fn(&str) -> bool,
    ) -> Vec<Agreement> {
        let Some((first, others)) = self.codes.split_first() else { return Vec::new() };
        others
            .iter()
            .zip(&self.job.variants[1..])
            .map(|(code, variant)| {
                let fail = |why: String| Agreement { name: variant.name.clone(), same: 0, different: 1, why };
                let (first, code) = match (first, code) {
                    (Ok(first), Ok(code)) => (first, code),
                    (Err(e), _) | (_, Err(e)) => return fail(e.clone()),
                };
                let full = leaves_x87(&variant.name);
                let ran = sys::child(LIMIT, |voice| voice.say(&compare(first, code, case, inputs, full)));
                match ran {
                    Ok((said, Ended::Done)) => match said.split_at_checked(16) {
                        Some((counts, why)) => {
                            let [same, different] = [&counts[..8], &counts[8..]]
                                .map(|bytes| bytes.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b)));
                            let why = String::from_utf8_lossy(why).into_owned();
                            Agreement { name: variant.name.clone(), same, different, why }
                        }
                        None => fail("the child sent nothing".into()),
                    },
                    Ok((_, ended)) => fail(format!("it did not come back: it {ended}")),
                    Err(e) => fail(format!("no process: {e}")),
                }
            })
            .collect()
    }
}

/// In the child: inputs that agree, inputs that do not, and a description of the first of these.
fn compare(first: &Code, other: &Code, case: &Case, inputs: u64, leaves_x87: bool) -> Vec<u8> {
    let externals = Externals::default();
    let (mut same, mut different, mut why) = (0u64, 0u64, String::new());
    match (first.loaded(&externals), other.loaded(&externals)) {
        (Ok(one), Ok(two)) => {
            let mut arena = case.arena();
            for input in 0..inputs {
                let Ok(ready) = case.prepare(&one, &mut arena, input) else {
                    (different, why) = (1, format!("it has no function `{}`", case.measured()));
                    break;
                };
                let before = arena.contents().to_vec();
                sys::seed_random_bytes(input);
                let called = ready.call(&poison(2 * input));
                let after = arena.contents().to_vec();
                arena.restore(&before);
                let Ok(ready) = case.ready_in(&two, &mut arena) else {
                    (different, why) = (1, format!("it has no function `{}`", case.measured()));
                    break;
                };
                sys::seed_random_bytes(input);
                let other = ready.call(&poison(2 * input + 1));
                let byte = after.iter().zip(arena.contents()).position(|(a, b)| a != b);
                let said = match byte {
                    Some(byte) => Some(match case.buffer_at(byte) {
                        Some((name, at)) => format!("byte {at} of {name}"),
                        None => "memory beside the buffers".to_owned(),
                    }),
                    None if called.result != other.result => Some("rax".to_owned()),
                    None if !(other.kept && (other.x87_empty || leaves_x87))
                        && called.kept
                        && called.x87_empty =>
                    {
                        Some("what a callee must keep".to_owned())
                    }
                    None => None,
                };
                match said {
                    None => same += 1,
                    Some(said) => {
                        different += 1;
                        if why.is_empty() {
                            why = format!("input {input}: {said} differs");
                        }
                    }
                }
            }
        }
        (Err(e), _) | (_, Err(e)) => (different, why) = (1, e.to_string()),
    }
    [&same.to_le_bytes()[..], &different.to_le_bytes(), why.as_bytes()].concat()
}
