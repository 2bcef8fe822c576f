//! `respill rewrite`: assembly in, assembly out.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use lanework_respill::case::Case;
use lanework_respill::names::{counted, slot as slot_name};
use lanework_respill::plan::{Plan, Stays};
use lanework_respill::rewrite::{self, Options};
use lanework_respill::validate::Report;
use lanework_respill::{Analysis, Program};
use lanework_spill::account::{Account, Dropped};
use lanework_spill::of_program;
use lanework_spill::settle::Checked;
use lanework_study::{Failure, Outcome};
use serde_json::json;

use super::Source;
use super::analyse::why_stays;
use super::args::{PolicyName, RewriteArgs, WishArgs};
use super::run_args::RunsArgs;
use super::selection::wish;
use super::stored::plan_of;
use crate::files::{Access, Sink, check_distinct};
use crate::ui::Session;

pub(super) fn run(session: &Session, args: &RewriteArgs) -> Result<Outcome, Failure> {
    let path = args.output.as_deref().unwrap_or(Path::new("-"));
    let to_stdout = path == Path::new("-");
    if session.json && to_stdout {
        return Err(Failure::input("--json puts the report on standard output")
            .help("name a file for the text with -o"));
    }
    let cases = args.runs.cases.cases.iter().map(PathBuf::as_path);
    check_distinct(cases.chain([args.source.file.as_path()]), [path])?;
    let sink = Sink::create(path, Access::Public, args.force)?;
    let cases = cases_of(args)?;
    let source = Source::load(&args.source)?;
    let analysis = &source.analysis;
    let auto = args.wish.policy == PolicyName::Auto;
    if cfg!(all(target_os = "linux", target_arch = "x86_64"))
        && is_checked(&args.wish, &cases)
        && (!cases.is_empty() || !args.no_wipe)
    {
        return checked_in_rounds(session, args, &source, &cases, sink);
    }
    let plan = plan_of(session, &source, &args.wish)?;
    if auto && plan.homes.is_empty() {
        return stays(session, &source, path, sink);
    }
    // Slots that something may touch are left out of the plan; one that was asked for by name is an error.
    let only = if auto { BTreeSet::new() } else { wish(&source, &args.wish)?.only };
    named_stay(&source, &plan, &[], &only)?;
    if plan.homes.is_empty() {
        return Err(nothing_moves(&source, &plan, &[], advice(&source, &plan, &cases)));
    }
    let options = Options { wipe: !args.no_wipe, ..Options::default() };
    let made = rewrite::rewrite(analysis, &plan, options).map_err(Failure::input)?;
    // A text that cannot be assembled is not written.
    let program = analysis
        .program
        .again(&format!("{} as rewritten", analysis.program.file), &*made.text)
        .map_err(|e| of_program(&e))?;
    let checked = judged(session, args, &source, &plan, &program, &cases)?;
    sink.put(made.text.as_bytes())?;
    if session.json {
        let mut object = report(&source, &plan, &[], made.changed.len());
        if let Some(checked) = checked {
            object["checked"] = true.into();
            object["verdict"] = checked.verdict().to_string().into();
            object["report"] = serde_json::to_value(&checked).map_err(Failure::input)?;
        }
        println!("{object}");
        return Ok(Outcome::Yes);
    }
    let mut said = match checked {
        Some(checked) => format!("{}: {checked}", target(path)),
        None => format!(
            "{}: {} moved, {} changed; nothing checked or tested: `lanework respill validate` does both\n",
            target(path),
            counted(plan.homes.len() as u64, "slot"),
            counted(made.changed.len() as u64, "instruction")
        ),
    };
    said += &stay_told(&source, &plan, &[]);
    tell(path, &said);
    Ok(Outcome::Yes)
}

/// The name of the output in a line about it.
fn target(path: &Path) -> String {
    if path == Path::new("-") { "standard output".to_owned() } else { lanework_study::text::shown(path) }
}

/// Prints lines about the text: on standard error, if the text is on standard output.
fn tell(path: &Path, said: &str) {
    if path == Path::new("-") { eprint!("{said}") } else { print!("{said}") }
}

/// If nothing is known to be faster than the stack, writes the text unchanged.
fn stays(session: &Session, source: &Source, path: &Path, sink: Sink<'_>) -> Result<Outcome, Failure> {
    let program = &source.analysis.program;
    sink.put(program.text.text().as_bytes())?;
    if session.json {
        println!("{}", report(source, &Plan::default(), &[], 0));
    } else {
        tell(path, &format!("{}: all values stay on the stack, as the profile says\n", target(path)));
    }
    Ok(Outcome::Yes)
}

/// Refuses to leave a slot that was asked for by name.
fn named_stay(
    source: &Source,
    plan: &Plan,
    dropped: &[Dropped],
    only: &BTreeSet<(usize, usize)>,
) -> Result<(), Failure> {
    let analysis = &source.analysis;
    for key @ (n, s) in only {
        if let Some(why) = plan.stays.get(key) {
            let slot = slot_name(analysis, &analysis.units[*n], *s);
            let why = why_it_stays(analysis, *key, *why, dropped);
            return Err(Failure::refused(format!("{}: {slot} stays: {why}", analysis.program.file)));
        }
    }
    Ok(())
}

/// Why a slot stays: the check's reason, if it was one.
fn why_it_stays(analysis: &Analysis, key: (usize, usize), why: Stays, dropped: &[Dropped]) -> String {
    let refused = dropped.iter().find(|dropped| dropped.key == key);
    refused.map_or_else(|| why_stays(analysis, why), |dropped| dropped.reason.to_string())
}

pub(super) fn nothing_moves(
    source: &Source,
    plan: &Plan,
    dropped: &[Dropped],
    advice: Option<&str>,
) -> Failure {
    let analysis = &source.analysis;
    let account = Account::of(analysis, plan, &source.units, dropped);
    let why = if account.slots > 0 {
        account.why
    } else {
        let lost = source.units.iter().find_map(|&n| Some((n, analysis.units[n].opaque?)));
        lost.map_or_else(
            || "there is none in the frame".to_owned(),
            |(n, why)| format!("of {}, {}", analysis.units[n].function.name(), analysis.told(why)),
        )
    };
    Failure::refused(format!("{}: no slot can move: {why}", analysis.program.file))
        .help(advice.unwrap_or("`lanework respill analyse --all` shows every slot"))
}

/// What may let a slot move that the text alone does not clear, and was not asked for yet.
fn advice(source: &Source, plan: &Plan, cases: &[Case]) -> Option<&'static str> {
    (cases.is_empty() && only_a_run_can_tell(source, plan))
        .then_some("give a run that shows what touches a slot, with --case or --call")
}

/// Checks the rewrite: by the text, and by runs if there are cases.
fn judged(
    session: &Session,
    args: &RewriteArgs,
    source: &Source,
    plan: &Plan,
    program: &Program,
    cases: &[Case],
) -> Result<Option<Report>, Failure> {
    use super::cases::options;
    use lanework_spill::settle::{of_judge, runs_here};
    if cases.is_empty() {
        // What only a run can check is not reported as checked: --naive asked for it, or it was checked when it was kept.
        if args.wish.naive || args.wish.policy == PolicyName::Auto {
            return Ok(None);
        }
    } else {
        if args.no_wipe {
            return Err(checked_is_wiped());
        }
        runs_here(session.context.cpu.features(), plan)?;
    }
    let analysis = &source.analysis;
    lanework_respill::validate::validate(analysis, program, cases, &options(&args.runs))
        .map(Some)
        .map_err(|e| of_judge(&analysis.program.file, &e))
}

fn checked_is_wiped() -> Failure {
    Failure::input("--no-wipe: a checked text clears its homes")
        .help("leave out the cases, and validate the text afterwards")
}

fn cases_of(args: &RewriteArgs) -> Result<Vec<Case>, Failure> {
    super::cases::cases(&args.runs.cases)
}

/// Whether `rewrite` moves only what a check accepts: then it settles with the check, round by round.
pub(super) fn is_checked(wish: &WishArgs, cases: &[Case]) -> bool {
    wish.policy != PolicyName::Auto && (!cases.is_empty() || !wish.naive)
}

/// Moves every slot that can move by the text, or by the runs if there are cases. If validation refuses one kind of home, the next is
/// tried.
pub(super) fn settled(
    session: &Session,
    source: &Source,
    args: &WishArgs,
    runs: &RunsArgs,
    cases: &[Case],
) -> Result<Checked, Failure> {
    use lanework_spill::settle::{Settled, settle};
    let analysis = &source.analysis;
    // With runs the text alone need not clear a slot.
    let wide = WishArgs {
        home: args.home.clone(),
        slots: args.slots.clone(),
        policy: args.policy,
        moves_only: args.moves_only,
        naive: !cases.is_empty(),
    };
    let wish = wish(source, &wide)?;
    let features = session.context.cpu.features();
    match settle(features, analysis, &wish, cases, &super::cases::options(runs))? {
        Settled::Moved(checked) => {
            named_stay(source, &checked.plan, &checked.dropped, &wish.only)?;
            Ok(*checked)
        }
        Settled::Nothing { plan, dropped } => {
            named_stay(source, &plan, &dropped, &wish.only)?;
            Err(nothing_moves(source, &plan, &dropped, advice(source, &plan, cases)))
        }
    }
}

/// Writes the settled text, once there is no objection.
fn checked_in_rounds(
    session: &Session,
    args: &RewriteArgs,
    source: &Source,
    cases: &[Case],
    sink: Sink<'_>,
) -> Result<Outcome, Failure> {
    let path = args.output.as_deref().unwrap_or(Path::new("-"));
    let analysis = &source.analysis;
    if args.no_wipe {
        return Err(checked_is_wiped());
    }
    let settled = settled(session, source, &args.wish, &args.runs, cases)?;
    sink.put(settled.text.as_bytes())?;
    if session.json {
        let mut object = report(source, &settled.plan, &settled.dropped, settled.changed);
        object["checked"] = true.into();
        object["verdict"] = settled.report.verdict().to_string().into();
        object["report"] = serde_json::to_value(&settled.report).map_err(Failure::input)?;
        let name = |&(n, s): &(usize, usize)| slot_name(analysis, &analysis.units[n], s);
        let dropped = settled.dropped.iter();
        let dropped = dropped.map(|one| json!({ "slot": name(&one.key), "why": one.reason.name() }));
        object["taken_back"] = dropped.collect::<Vec<_>>().into();
        let refused = settled.refused.iter().map(|refused| {
            let taken: Vec<&str> = refused.taken.iter().map(|bank| bank.name()).collect();
            json!({ "home": refused.bank.name(), "why": refused.why, "taken": taken })
        });
        object["homes_refused"] = refused.collect::<Vec<_>>().into();
        println!("{object}");
        return Ok(Outcome::Yes);
    }
    let mut said = String::new();
    for refused in &settled.refused {
        let taken: Vec<&str> = refused.taken.iter().map(|bank| bank.name()).collect();
        said += &format!("{} is refused, so {} is taken: {}\n", refused.bank, taken.join(", "), refused.why);
    }
    said += &format!("{}: {}", target(path), settled.report);
    said += &stay_told(source, &settled.plan, &settled.dropped);
    tell(path, &said);
    Ok(Outcome::Yes)
}

/// A line about the slots that stay, if there are any.
fn stay_told(source: &Source, plan: &Plan, dropped: &[Dropped]) -> String {
    let account = Account::of(&source.analysis, plan, &source.units, dropped);
    account.told().map_or_else(String::new, |said| said + "\n")
}

/// Whether a slot stays that a run may clear, but the text cannot.
fn only_a_run_can_tell(source: &Source, plan: &Plan) -> bool {
    plan.stays.iter().any(|((n, _), why)| *why == Stays::Aliased && source.units.contains(n))
}

fn report(source: &Source, plan: &Plan, dropped: &[Dropped], changed: usize) -> serde_json::Value {
    let analysis = &source.analysis;
    let name = |&(n, s): &(usize, usize)| slot_name(analysis, &analysis.units[n], s);
    let moved: Vec<_> = plan
        .homes
        .iter()
        .map(|(key, home)| json!({ "slot": name(key), "home": home.to_string(), "bytes": analysis.units[key.0].slots[key.1].size }))
        .collect();
    let stays: Vec<_> = plan
        .stays
        .iter()
        .map(|(key, why)| json!({ "slot": name(key), "why": why_it_stays(analysis, *key, *why, dropped) }))
        .collect();
    json!({ "file": analysis.program.file, "moved": moved, "stays": stays, "instructions_changed": changed, "checked": false })
}
