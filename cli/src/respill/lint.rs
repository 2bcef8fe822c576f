//! `respill lint`: whether code that uses MMX breaks its callers' floating point.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::time::Duration;

use lanework_respill::lint::{self, evidence};
use lanework_respill::load::{Externals, LoadError, Loaded};
use lanework_respill::names::counted;
use lanework_study::{Failure, Outcome};
use serde_json::json;

use super::Source;
use super::cases::cases;
use super::run_args::LintArgs;
use crate::files::check_distinct;
use crate::ui::Session;

/// The longest that a call may take.
const LIMIT: Duration = Duration::from_secs(60);

pub(super) fn run(session: &Session, args: &LintArgs) -> Result<Outcome, Failure> {
    let files = args.cases.cases.iter().chain([&args.source.file]);
    check_distinct(files.map(PathBuf::as_path), [])?;
    let cases = cases(&args.cases)?;
    let source = Source::load(&args.source)?;
    let file = &source.analysis.program.file;
    let mut findings = lint::lint(&source.analysis);
    findings.retain(|finding| source.units.contains(&finding.unit));
    let mut shown = Vec::new();
    if !cases.is_empty() {
        let loaded = Loaded::new(&source.analysis.program, &Externals::default()).map_err(|e| match e {
            LoadError::Unavailable(_) | LoadError::Memory(_) => Failure::unavailable(e),
            _ => Failure::input(format!("{file}: {e}")),
        })?;
        for case in &cases {
            shown.push(
                evidence::run(case, &loaded, LIMIT).map_err(|e| Failure::input(format!("{file}: {e}")))?,
            );
        }
    }
    let broken = shown.iter().any(|run| run.broken() || run.float.is_none());
    let mut unchecked = lint::not_checked(&source.analysis);
    unchecked.retain(|(n, _)| source.units.contains(n));
    let clean = findings.is_empty() && unchecked.is_empty() && !broken;
    let name = |n: usize| source.analysis.units[n].function.name();
    if session.json {
        let findings: Vec<_> = findings
            .iter()
            .map(|f| {
                json!({ "fault": f.fault.name(), "function": f.function, "line": f.at.line, "since_line": f.since.line, "why": f.to_string() })
            })
            .collect();
        let runs: Vec<_> = shown
            .iter()
            .map(|run| {
                // JSON cannot hold NaN.
                let said = run.float.map(|both| both.map(|x| x.to_string()));
                json!({ "function": run.function, "broken": run.broken(), "ended": run.ended.to_string(), "x87_empty": run.x87_empty, "float_before_and_after": said })
            })
            .collect();
        let unchecked: Vec<_> = unchecked
            .iter()
            .map(|&(n, why)| json!({ "function": name(n), "why": source.analysis.told(why) }))
            .collect();
        println!(
            "{}",
            json!({ "file": file, "clean": clean, "findings": findings, "not_checked": unchecked, "runs": runs })
        );
    } else {
        findings.iter().for_each(|finding| println!("{finding}"));
        for &(n, why) in &unchecked {
            println!("{}: not checked: {}", name(n), source.analysis.told(why));
        }
        shown.iter().for_each(|run| println!("{run}"));
        if clean {
            let functions = counted(source.units.len() as u64, "function");
            println!("{file}: nothing found in {functions}: MMX and x87 do not meet");
        }
    }
    Ok(Outcome::from_bool(clean))
}
