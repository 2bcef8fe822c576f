//! How often instructions ran in the cases that were given.
#![forbid(unsafe_code)]

use std::collections::HashMap;

use lanework_respill::slots::Class;
use lanework_study::Failure;
use serde::Serialize;

use super::Source;
use super::run_args::CasesArgs;

/// What ran.
#[derive(Serialize)]
pub(super) struct Dynamic {
    /// One for each case.
    pub(super) runs: Vec<Run>,
    /// Over all cases, by class of slot; without a class, all together.
    pub(super) shares: Vec<Part>,
    /// How often each instruction ran, over all cases.
    #[serde(skip)]
    pub(super) by_op: HashMap<usize, u64>,
    /// Instructions that ran inside the file.
    inside: u64,
}

/// One case.
#[derive(Serialize)]
pub(super) struct Run {
    pub(super) function: String,
    /// Instructions of the file.
    pub(super) inside: u64,
    /// Instructions outside the file.
    pub(super) outside: u64,
}

/// How executed instructions use slots of one class.
#[derive(Serialize)]
pub(super) struct Part {
    pub(super) class: Option<Class>,
    #[serde(flatten)]
    pub(super) share: Share,
}

/// The library's figures.
#[derive(Serialize)]
pub(super) struct Share {
    /// Slots with at least one executed access.
    pub(super) slots: usize,
    /// Executed instructions that name one.
    pub(super) executed: u64,
    /// Their share of all that ran inside the file.
    pub(super) share: f64,
    /// Executed instructions that name one that, by the text, nothing else can touch.
    pub(super) alone: u64,
}

impl Dynamic {
    /// How often these instructions ran in all.
    pub(super) fn of(&self, ops: impl IntoIterator<Item = usize>) -> u64 {
        ops.into_iter().map(|op| self.by_op.get(&op).copied().unwrap_or(0)).sum()
    }

    /// As a share of all that ran inside the file.
    pub(super) fn share(&self, executed: u64) -> f64 {
        executed as f64 / self.inside.max(1) as f64
    }
}

/// Runs the cases, if there are any, with their first input.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(super) fn counted(source: &Source, args: &CasesArgs) -> Result<Option<Dynamic>, Failure> {
    use lanework_respill::counts::{Counts, shares};
    let cases = super::cases::cases(args)?;
    if cases.is_empty() {
        return Ok(None);
    }
    let (mut all, mut runs) = (Counts::default(), Vec::new());
    for case in &cases {
        let found = super::measure::counted(source, case)?;
        runs.push(Run { function: case.measured().to_owned(), inside: found.inside, outside: found.outside });
        all.add(&found);
    }
    let parts = shares(&source.analysis, &all).into_iter().filter(|(_, share)| share.slots > 0);
    let shares = parts
        .map(|(class, share)| Part {
            class,
            share: Share {
                slots: share.slots,
                executed: share.executed,
                share: share.share,
                alone: share.alone,
            },
        })
        .collect();
    Ok(Some(Dynamic { runs, shares, inside: all.inside, by_op: all.by_op }))
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
pub(super) fn counted(_: &Source, args: &CasesArgs) -> Result<Option<Dynamic>, Failure> {
    if args.cases.is_empty() && args.calls.is_empty() {
        return Ok(None);
    }
    Err(Failure::unavailable("assembly is run on x86-64 Linux only"))
}
