//! The cases that options give, and how much of them is run.
#![forbid(unsafe_code)]

use lanework_respill::case::Case;
use lanework_respill::validate::Options;
use lanework_study::Failure;

use super::run_args::{CasesArgs, RunsArgs};
use crate::files;

/// The cases that were given, read.
pub(super) fn cases(args: &CasesArgs) -> Result<Vec<Case>, Failure> {
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

/// How much to run.
pub(super) fn options(args: &RunsArgs) -> Options {
    Options { inputs: args.inputs, traced: args.traced, unreached: args.unreached, ..Options::default() }
}
