//! `lanework history check`: regressions on this machine, reported as such only after a paired run.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use clap::Args;
use lanework_race::clock::Monotonic;
use lanework_race::history::{self, Change, Entry, History, Step};
use lanework_race::machine::Machine;
use lanework_race::record::ResultRow;
use lanework_race::table::{times, word};
use lanework_race::verdict::{Rules, Verdict};
use lanework_study::{Failure, Message, Outcome};
use serde_json::json;

use super::{ended, line, load_all, print_escaped, row_of, skipped_json, skipped_told};
use crate::bench::builds::Builds;
use crate::bench::find;
use crate::ui::{Session, counted};
use lanework_study::races::{Effort, Race, race_all};

// `history check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Check only this study, as `history list` names it (such as `bench-mayo`).
    #[arg(long, value_name = "NAME")]
    study: Option<String>,
    /// The older `lanework` executable. Suspects are raced on both executables, process by process. Without it, only the race
    /// against the baseline is repeated.
    #[arg(long, value_name = "FILE")]
    old: Option<PathBuf>,
    #[command(flatten)]
    effort: Effort,
}

/// How a suspect was raced again: with both executables.
const IN_PAIRS: &str = "both executables in pairs";

/// Whether it is slower again. For both executables in pairs, the interval alone decides. A race against the baseline is another run,
/// which may be off by more than its interval shows, so it must show at least half of the suspected loss.
fn bears_out(suspected: f64, in_pairs: bool, step: &Step) -> bool {
    step.verdict == Verdict::Slower && (in_pairs || step.factor.ln() <= suspected.ln() / 2.0)
}

/// A suspicion and what became of it.
struct Case {
    change: Change,
    /// What its medians are counted in.
    unit: String,
    /// How it was raced again, and what that gave; or why it was not.
    again: Result<(&'static str, Step), Unjudged>,
}

/// Why a suspect was not raced again.
enum Unjudged {
    /// Times alone need the old executable, which was not given.
    NeedsOld,
    /// It is not a race of this command's own code, as run here: what to do instead.
    Elsewhere(String),
    /// The race could not be run.
    Failed(String),
}

impl Unjudged {
    fn told(&self) -> &str {
        match self {
            Unjudged::NeedsOld => {
                "only its time looks worse, which takes the old executable to check: name it with --old"
            }
            Unjudged::Elsewhere(why) | Unjudged::Failed(why) => why.trim(),
        }
    }
}

impl Case {
    fn is_regression(&self) -> bool {
        let suspected = self.change.against_baseline.factor;
        matches!(&self.again, Ok((how, step)) if bears_out(suspected, *how == IN_PAIRS, step))
    }

    fn told(&self) -> String {
        let ending = match &self.again {
            Ok((how, step)) if self.is_regression() => {
                format!("REGRESSION: {how}, {} of what it was", times(step.factor))
            }
            Ok((how, step)) => {
                let verdict = word(&self.unit, step.verdict);
                format!("not borne out: {how}, {} ({verdict})", times(step.factor))
            }
            Err(why) => format!("cannot tell: {}", why.told()),
        };
        format!("{}\n  {ending}", line(&self.change, &self.unit))
    }
}

pub(super) fn run(session: &Session, root: &Path, args: &CheckArgs) -> Result<Outcome, Failure> {
    if !root.is_dir() {
        return Err(Failure::file(root, "no such directory of records").help("name another with --records"));
    }
    let mut builds = args.old.as_deref().map(|old| Builds::new(session, old)).transpose()?;
    let here = Machine::inspect(&Monotonic::new(), Vec::new());
    let History { entries: all, skipped } = load_all(root)?;
    if let Some(study) = args.study.as_ref().filter(|s| !all.iter().any(|e| e.record.study == **s)) {
        let mut names: Vec<&str> = all.iter().map(|e| e.record.study.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let also = skipped_told(&skipped).map_or_else(String::new, |why| format!(" ({why})"));
        return Err(Failure::input(format!("no record of the study '{study}'{also}"))
            .help(format!("choose among {}", lanework_study::text::whole(&names.join(", ")))));
    }
    let entries: Vec<Entry> = all
        .into_iter()
        .filter(|e| args.study.as_ref().is_none_or(|s| *s == e.record.study))
        .filter(|e| history::differences(&e.record.machine, &here).is_empty())
        .collect();
    let pairs = newest_two(&entries);
    let mut suspects: Vec<(&ResultRow, &Entry, Change)> = Vec::new();
    let mut compared = 0;
    for (old, new) in &pairs {
        let found = history::compare(&old.record, &new.record);
        compared += found.changes.len();
        for change in found.changes.into_iter().filter(Change::is_suspect) {
            if let Some(row) = row_of(old, &change) {
                suspects.push((row, new, change));
            }
        }
    }
    // What cannot be raced here takes no time.
    let suspects: Vec<_> = suspects
        .into_iter()
        .map(|(row, new, change)| {
            let may = may_race(session, args.old.is_some(), new, &change);
            (row, change, may)
        })
        .collect();
    let raced = suspects.iter().filter(|(.., may)| may.is_ok()).count();
    let effort = Effort { seconds: args.effort.seconds / raced.max(1) as f64, ..args.effort.clone() };
    let mut cases = Vec::new();
    for (old, change, may) in suspects {
        let again = may.and_then(|()| again(session, builds.as_mut(), &effort, old, &change));
        cases.push(Case { change, unit: old.unit.clone(), again });
    }
    let regressions = cases.iter().filter(|c| c.is_regression()).count();
    let unjudged = cases.iter().filter(|c| c.again.is_err()).count();
    if session.json {
        let rows: Vec<_> = cases
            .iter()
            .map(|c| {
                let (again, why) = match &c.again {
                    Ok((how, step)) => (json!({ "how": how, "step": step }), None),
                    Err(why) => (json!(null), Some(why.told())),
                };
                json!({ "change": c.change, "again": again, "why": why, "regression": c.is_regression() })
            })
            .collect();
        let answer = json!({
            "studies": pairs.len(), "compared": compared, "suspects": rows, "regressions": regressions,
            "unjudged": unjudged, "skipped": skipped_json(&skipped),
        });
        println!("{answer}");
    } else {
        for case in &cases {
            print_escaped(&case.told());
        }
        println!(
            "on this machine {} with two records or more, {} compared, {} looked worse, {} not judged, {}",
            counted(pairs.len() as u64, "study", "studies"),
            counted(compared as u64, "figure", "figures"),
            cases.len(),
            unjudged,
            counted(regressions as u64, "regression", "regressions")
        );
    }
    if regressions > 0 {
        if let Some(why) = skipped_told(&skipped) {
            Message::new(why).help("correct or remove these files").print("warning");
        }
        return Ok(Outcome::No);
    }
    // An unreadable record, a suspect that was not judged, or nothing to compare must not pass as success.
    let yes = ended(&skipped)?;
    if compared == 0 {
        let what = "nothing was compared: no study has two records of this machine with a figure in common";
        return Err(Failure::unavailable(what)
            .help("run the same `lanework bench ... --save` before and after a change")
            .beside_data());
    }
    Ok(if unjudged > 0 { Outcome::Unavailable } else { yes })
}

/// Whether a suspect can be raced again by this command, as it was called.
fn may_race(session: &Session, with_old: bool, new: &Entry, change: &Change) -> Result<(), Unjudged> {
    let Some(subject) = find(&session.context, &change.subject) else {
        // Two commands, or what a study builds: only what made the record can repeat it.
        let again = if new.record.command.is_empty() {
            "with what made its records".to_owned()
        } else {
            format!("with `{}`", new.record.command)
        };
        return Err(Unjudged::Elsewhere(format!("this command cannot race it alone: race it again {again}")));
    };
    // With both executables, the variant is raced against itself.
    let baseline = (!with_old).then_some(&change.baseline);
    if let Some(name) =
        baseline.into_iter().chain([&change.variant]).find(|name| !subject.names().any(|n| n == *name))
    {
        let peers = if session.context.peers.is_none() { "; for a peer, add --peers" } else { "" };
        return Err(Unjudged::Elsewhere(format!("no variant '{name}' here{peers}")));
    }
    // Without an old lanework to race against, a variant that has not lost to its baseline cannot be judged.
    if with_old || change.against_baseline.verdict == Verdict::Slower {
        Ok(())
    } else {
        Err(Unjudged::NeedsOld)
    }
}

/// The newest two records of each study that has two, older first. Entries are sorted from the oldest on.
fn newest_two(entries: &[Entry]) -> Vec<(&Entry, &Entry)> {
    let mut names: Vec<&str> = entries.iter().map(|e| e.record.study.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names
        .into_iter()
        .filter_map(|name| {
            let mut of = entries.iter().filter(|e| e.record.study == name).rev();
            let (new, old) = (of.next()?, of.next()?);
            Some((old, new))
        })
        .collect()
}

/// Races again what looks worse.
fn again(
    session: &Session,
    builds: Option<&mut Builds<'_>>,
    effort: &Effort,
    old: &ResultRow,
    change: &Change,
) -> Result<(&'static str, Step), Unjudged> {
    if let Some(builds) = builds {
        let step = against_old(builds, effort, change).map_err(Unjudged::Failed)?;
        return Ok((IN_PAIRS, step));
    }
    let race = Race {
        subject: change.subject.clone(),
        baseline: change.baseline.clone(),
        challengers: vec![change.variant.clone()],
    };
    let row = unless_void(|| {
        let race = std::slice::from_ref(&race);
        let record = race_all(session, "history-check", race, effort).map_err(|e| e.message().to_owned())?;
        let why = || record.not_here.first().map_or("the race gave no result".to_owned(), |n| n.why.clone());
        record.results.first().cloned().ok_or_else(why)
    });
    let row = row.map_err(Unjudged::Failed)?;
    Ok(("raced again against its baseline", Change::borne_out_by(old, &row, &Rules::default())))
}

/// Repeats a race while it is void, at most twice.
fn unless_void(mut race: impl FnMut() -> Result<ResultRow, String>) -> Result<ResultRow, String> {
    for _ in 0..3 {
        let row = race()?;
        if row.verdict != Verdict::Void {
            return Ok(row);
        }
    }
    Err("three races in a row were void, since their A/A controls exclude 1".to_owned())
}

fn against_old(builds: &mut Builds<'_>, effort: &Effort, change: &Change) -> Result<Step, String> {
    let row = unless_void(|| {
        let outcome = builds.race(&change.subject, &change.variant, effort).map_err(|e| e.to_string())?;
        outcome.results.into_iter().next().ok_or("the race gave no result".to_owned())
    })?;
    Ok(Step { factor: row.ratio, low: row.low, high: row.high, noise: row.noise, verdict: row.verdict })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_run_must_show_half_of_what_was_suspected() {
        let step = |factor: f64, verdict| Step { factor, low: factor, high: factor, noise: 0.001, verdict };
        let slower = |factor| step(factor, Verdict::Slower);
        // One percent between two runs does not bear out a thousandfold loss, but does bear out one of two percent.
        assert!(!bears_out(0.001, false, &slower(0.99)));
        assert!(bears_out(0.98, false, &slower(0.989)) && bears_out(0.001, false, &slower(0.001)));
        assert!(!bears_out(0.98, false, &slower(0.991)));
        // Pairs have no such excuse.
        assert!(bears_out(0.5, true, &slower(0.99)));
        assert!(!bears_out(0.5, true, &step(0.4, Verdict::CannotTell)));
    }
}
