//! `respill rewrite`: assembly in, assembly out.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use lanework_respill::Program;
use lanework_respill::case::Case;
use lanework_respill::names::{counted, slot as slot_name};
use lanework_respill::plan::{Plan, Stays};
use lanework_respill::rewrite::{self, Options};
use lanework_respill::validate::Report;
use lanework_spill::of_program;
use lanework_study::{Failure, Outcome};
use serde_json::json;

use super::Source;
use super::analyse::why_stays;
use super::args::{PolicyName, RewriteArgs};
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
        && !auto
        && (!cases.is_empty() || !args.wish.naive && !args.no_wipe)
    {
        return checked_in_rounds(session, args, &source, &cases, sink);
    }
    let plan = plan_of(session, &source, &args.wish)?;
    if auto && plan.homes.is_empty() {
        return stays(session, &source, path, sink);
    }
    // Slots that something may touch are left out of the plan; one that was asked for by name is an error.
    let only = if auto { BTreeSet::new() } else { wish(&source, &args.wish)?.only };
    named_stay(&source, &plan, &only)?;
    if plan.homes.is_empty() {
        return Err(nothing_moves(&source, &plan, &cases));
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
        let mut object = report(&source, &plan, made.changed.len());
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
    if !plan.stays.is_empty() {
        let stay = plan.stays.keys().filter(|(n, _)| source.units.contains(n)).count();
        said += &format!("{stay} not moved: {}\n", reasons(&source, &plan));
    }
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
        println!("{}", report(source, &Plan::default(), 0));
    } else {
        tell(path, &format!("{}: all values stay on the stack, as the profile says\n", target(path)));
    }
    Ok(Outcome::Yes)
}

/// Refuses to leave a slot that was asked for by name.
fn named_stay(source: &Source, plan: &Plan, only: &BTreeSet<(usize, usize)>) -> Result<(), Failure> {
    let analysis = &source.analysis;
    for key @ (n, s) in only {
        if let Some(why) = plan.stays.get(key) {
            let slot = slot_name(analysis, &analysis.units[*n], *s);
            let why = why_stays(analysis, *why);
            return Err(Failure::refused(format!("{}: {slot} stays: {why}", analysis.program.file)));
        }
    }
    Ok(())
}

fn nothing_moves(source: &Source, plan: &Plan, cases: &[Case]) -> Failure {
    let file = &source.analysis.program.file;
    let failure = Failure::refused(format!("{file}: no slot can move: {}", reasons(source, plan)));
    if cases.is_empty() && only_a_run_can_tell(source, plan) {
        failure.help("give a run that shows what touches a slot, with --case or --call; or --assume objects, if it is compiled code")
    } else {
        failure.help("`lanework respill analyse --all` shows every slot")
    }
}

/// Checks the rewrite: by the text, and by runs if there are cases.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
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

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn judged(
    _: &Session,
    _: &RewriteArgs,
    _: &Source,
    _: &Plan,
    _: &Program,
    _: &[Case],
) -> Result<Option<Report>, Failure> {
    Ok(None)
}

fn checked_is_wiped() -> Failure {
    Failure::input("--no-wipe: a checked text clears its homes")
        .help("leave out the cases, and validate the text afterwards")
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn cases_of(args: &RewriteArgs) -> Result<Vec<Case>, Failure> {
    super::cases::cases(&args.runs.cases)
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn cases_of(args: &RewriteArgs) -> Result<Vec<Case>, Failure> {
    if args.runs.cases.cases.is_empty() && args.runs.cases.calls.is_empty() {
        return Ok(Vec::new());
    }
    Err(Failure::unavailable("assembly is run on x86-64 Linux only"))
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn checked_in_rounds(
    _: &Session,
    _: &RewriteArgs,
    _: &Source,
    _: &[Case],
    _: Sink<'_>,
) -> Result<Outcome, Failure> {
    Err(Failure::unavailable("assembly is run on x86-64 Linux only"))
}

/// Moves every slot that can move by the text, or by the runs if there are cases. If validation refuses one kind of home, the next is
/// tried. The text is written once there is no objection.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn checked_in_rounds(
    session: &Session,
    args: &RewriteArgs,
    source: &Source,
    cases: &[Case],
    sink: Sink<'_>,
) -> Result<Outcome, Failure> {
    use super::cases::options;
    use lanework_spill::settle::settle;
    let path = args.output.as_deref().unwrap_or(Path::new("-"));
    let analysis = &source.analysis;
    if args.no_wipe {
        return Err(checked_is_wiped());
    }
    // With runs the text alone need not clear a slot.
    let wide = super::args::WishArgs {
        home: args.wish.home.clone(),
        slots: args.wish.slots.clone(),
        policy: args.wish.policy,
        moves_only: args.wish.moves_only,
        naive: !cases.is_empty(),
    };
    let wish = wish(source, &wide)?;
    let features = session.context.cpu.features();
    let settled = settle(features, analysis, &wish, cases, &options(&args.runs))?;
    let Some(settled) = settled else {
        named_stay(source, &lanework_respill::plan::plan(analysis, &wish), &wish.only)?;
        return Err(nothing_moves(source, &lanework_respill::plan::plan(analysis, &wish), cases));
    };
    for key @ (n, s) in &wish.only {
        if !settled.plan.homes.contains_key(key) {
            let slot = slot_name(analysis, &analysis.units[*n], *s);
            let why = settled.dropped.iter().find(|(dropped, _)| dropped == key).map(|(_, why)| *why);
            let why = why.map_or_else(
                || settled.plan.stays.get(key).map_or(String::new(), |why| why_stays(analysis, *why)),
                str::to_owned,
            );
            return Err(Failure::refused(format!("{}: {slot} stays: {why}", analysis.program.file)));
        }
    }
    sink.put(settled.text.as_bytes())?;
    if session.json {
        let mut object = report(source, &settled.plan, settled.changed);
        object["checked"] = true.into();
        object["verdict"] = settled.report.verdict().to_string().into();
        object["report"] = serde_json::to_value(&settled.report).map_err(Failure::input)?;
        let name = |&(n, s): &(usize, usize)| slot_name(analysis, &analysis.units[n], s);
        let dropped = settled.dropped.iter().map(|(key, why)| json!({ "slot": name(key), "why": why }));
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
    if !settled.dropped.is_empty() {
        let slots = counted(settled.dropped.len() as u64, "slot");
        said += &format!("{slots} not moved: validation refused it\n");
    }
    if cases.is_empty() && !settled.plan.stays.is_empty() {
        let stay = settled.plan.stays.keys().filter(|(n, _)| source.units.contains(n)).count();
        said += &format!("{stay} not moved: {}\n", reasons(source, &settled.plan));
    }
    tell(path, &said);
    Ok(Outcome::Yes)
}

/// Why slots stay, each reason with its number of slots.
fn reasons(source: &Source, plan: &Plan) -> String {
    let mut counted: BTreeMap<String, usize> = BTreeMap::new();
    for (_, why) in plan.stays.iter().filter(|((n, _), _)| source.units.contains(n)) {
        let said = match why {
            Stays::Class(_) => "no spilled value".to_owned(),
            Stays::Opaque(why) => source.analysis.told(*why),
            Stays::Refused(why) => why.says(&source.analysis),
            why => why.to_string().trim_start_matches("it ").to_owned(),
        };
        *counted.entry(said).or_default() += 1;
    }
    if counted.is_empty() {
        let lost = source.units.iter().find_map(|&n| Some((n, source.analysis.units[n].opaque?)));
        return lost.map_or_else(
            || "there is none in the frame".to_owned(),
            |(n, why)| {
                format!("of {}, {}", source.analysis.units[n].function.name(), source.analysis.told(why))
            },
        );
    }
    let mut counted: Vec<(String, usize)> = counted.into_iter().collect();
    counted.sort_by_key(|(said, n)| (usize::MAX - n, said.clone()));
    counted.iter().map(|(said, n)| format!("{n} {said}")).collect::<Vec<_>>().join("; ")
}

/// Whether a slot stays that a run may clear, but the text cannot.
fn only_a_run_can_tell(source: &Source, plan: &Plan) -> bool {
    plan.stays.iter().any(|((n, _), why)| *why == Stays::Aliased && source.units.contains(n))
}

fn report(source: &Source, plan: &Plan, changed: usize) -> serde_json::Value {
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
        .map(|(key, why)| json!({ "slot": name(key), "why": why_stays(analysis, *why) }))
        .collect();
    json!({ "file": analysis.program.file, "moved": moved, "stays": stays, "instructions_changed": changed, "checked": false })
}
