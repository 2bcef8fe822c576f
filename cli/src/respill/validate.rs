//! `respill validate`: the checks of a rewrite, and the objections to it.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use lanework_respill::rewrite;
use lanework_respill::validate::{self, Obligation, Refused, Report};
use lanework_spill::of_program;
use lanework_spill::settle::{of_judge, runs_here};
use lanework_study::{Failure, Outcome};
use serde_json::json;

use super::cases::{cases, options};
use super::rewrite::{is_checked, settled};
use super::run_args::ValidateArgs;
use super::stored::plan_of;
use super::{Source, program_of};
use crate::files::check_distinct;
use crate::ui::Session;

pub(super) fn run(session: &Session, args: &ValidateArgs) -> Result<Outcome, Failure> {
    let texts = [Some(args.source.file.as_path()), args.rewritten.as_deref()].into_iter().flatten();
    check_distinct(texts.chain(args.runs.cases.cases.iter().map(PathBuf::as_path)), [])?;
    let cases = cases(&args.runs.cases)?;
    let source = Source::load(&args.source)?;
    let analysis = &source.analysis;
    let file = &analysis.program.file;
    let rewritten = match &args.rewritten {
        Some(path) => program_of(path)?,
        // What `rewrite` makes of the same options has been checked when it is settled.
        None if is_checked(&args.wish, &cases) => {
            let settled = settled(session, &source, &args.wish, &args.runs, &cases)?;
            accepted(session, &format!("{file} as rewritten"), &settled.report)?;
            return Ok(Outcome::Yes);
        }
        None => {
            let plan = plan_of(session, &source, &args.wish)?;
            if plan.homes.is_empty() {
                return Err(Failure::refused(format!(
                    "{file}: no slot can move, so there is nothing to check"
                ))
                .help("`lanework respill analyse --all` says why each stays"));
            }
            runs_here(session.context.cpu.features(), &plan)?;
            let made =
                rewrite::rewrite(analysis, &plan, rewrite::Options::default()).map_err(Failure::input)?;
            analysis.program.again(&format!("{file} as rewritten"), made.text).map_err(|e| of_program(&e))?
        }
    };
    match validate::validate(analysis, &rewritten, &cases, &options(&args.runs)) {
        Ok(report) => {
            accepted(session, &rewritten.file, &report)?;
            Ok(Outcome::Yes)
        }
        Err(e) => match e.refused() {
            Some(refused) => {
                refusal(session, &rewritten.file, refused);
                Ok(Outcome::No)
            }
            None => Err(of_judge(file, &e)),
        },
    }
}

fn accepted(session: &Session, file: &str, report: &Report) -> Result<(), Failure> {
    if session.json {
        let rates: Vec<f64> = report.runs.iter().map(lanework_respill::validate::Ran::rate).collect();
        let verdict = report.verdict().to_string();
        let mut report = serde_json::to_value(report).map_err(Failure::input)?;
        report["compared_per_second"] = json!(rates);
        println!("{}", json!({ "file": file, "accepted": true, "verdict": verdict, "report": report }));
        return Ok(());
    }
    print!("{file}: {report}");
    if report.slots.is_empty() {
        return Ok(());
    }
    println!("how each obligation was checked, with the number of slots:");
    for obligation in Obligation::ALL {
        let mut by: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
        for slot in &report.slots {
            let means = serde_json::to_value(slot.means[&obligation]).map_err(Failure::input)?;
            *by.entry(means.as_str().unwrap_or_default().to_owned()).or_default() += 1;
        }
        let by: Vec<String> = by
            .into_iter()
            .map(|(means, n)| match means.as_str() {
                "text" => format!("{n} by the text"),
                "abi" => format!("{n} by the text, and by the System V ABI for code outside the file"),
                "assumed" => format!("{n} by the text, under assumptions"),
                "writers" => format!("{n} by following every access of the runs"),
                "unreached" => {
                    format!("{n} not checked: instructions that may touch the slot were never run")
                }
                _ => format!("{n} not applicable"),
            })
            .collect();
        println!("  {} ({}): {}", obligation.name(), obligation.says(), by.join(", "));
    }
    Ok(())
}

fn refusal(session: &Session, file: &str, refused: &Refused) {
    if session.json {
        let reasons: Vec<_> = refused
            .reasons
            .iter()
            .map(|reason| {
                json!({ "reason": reason.name(), "slot": reason.slot().map(ToString::to_string), "why": reason.to_string() })
            })
            .collect();
        println!("{}", json!({ "file": file, "accepted": false, "reasons": reasons, "runs": refused.runs }));
    } else {
        println!("{file}: REFUSED");
        println!("{refused}");
    }
}
