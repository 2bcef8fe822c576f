//! Each row rewritten, checked, then raced with its controls.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};

use lanework_race::clock::Monotonic;
use lanework_race::machine::Machine;
use lanework_race::pairing::Plan as Rules;
use lanework_race::record::{Record, ResultRow};
use lanework_race::study::Study;
use lanework_respill::Program;
use lanework_respill::analysis::Analysis;
use lanework_respill::case::Case;
use lanework_respill::cpu::{self, loops};
use lanework_respill::measure::{Job, Variant, unchanged, variants};
use lanework_respill::names;
use lanework_respill::plan::{Policy, Wish};
use lanework_respill::validate::{Options, Verdict};
use lanework_spill::account::Account;
use lanework_spill::finding::{Finding, findings};
use lanework_spill::race::{comparisons, race_beside};
use lanework_spill::settle::{Checked, Settled, settle};
use lanework_spill::{Homes, unit};
use lanework_study::Failure;
use lanework_study::Session;
use serde::Serialize;
use serde_json::json;

use super::builds::{Build, Builds, Code};
use super::given::Given;
use super::question::{Effort, Plan};
use crate::kernels::Rustc;
use crate::packages::Packages;
use crate::programs::{Assembly, NotHere};
use crate::rows::{Figures, Subject};
use lanework_study::compiler::Compiler;

/// The name of the report's own choice of slots and homes.
pub(super) const OWN: &str = "own";

/// Everything known about a row.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) name: String,
    /// kem, hash or xof as in the report; fiat; own.
    pub(super) table: String,
    /// The profile's key for the function's homes.
    pub(super) key: String,
    /// Whether this is the report's own function.
    pub(super) original: bool,
    pub(super) figures: Option<(f64, f64)>,
    /// Where the text is from.
    pub(super) from: String,
    /// Compiler and flags, of a text made here.
    pub(super) made_by: Option<String>,
    /// Whether it was to be timed; else it was only checked, beside a row of the same name with given files.
    pub(super) timed: bool,
    /// The slots that the report's rewrite moved, and where to.
    pub(super) policy: Option<String>,
    /// Median time with the values on the stack, in nanoseconds, if it was timed.
    pub(super) stack_ns: Option<f64>,
    pub(super) ticks: Option<f64>,
    /// A/A: the same bytes again.
    pub(super) copy: Option<Control>,
    /// The file's instructions, where the row's files were given.
    pub(super) code: Option<Code>,
    /// Other builds of the function that were given.
    pub(super) builds: BTreeMap<String, Build>,
    /// The findings on each home, by its column.
    pub(super) homes: BTreeMap<String, Column>,
    /// The slots that each checked rewrite moves, by the names that `respill analyse` gives them, and where to.
    pub(super) moved: BTreeMap<String, BTreeMap<String, String>>,
}

/// The same bytes again: how much longer they took.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Control {
    pub(super) more: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// A home of a row.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Column {
    /// It was checked, and raced if anything was.
    Checked { checks: Checks, finding: Option<Finding> },
    /// There is nothing to race.
    Not { why: String },
}

/// The checks of a rewrite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Checks {
    /// Slots that nothing else touches: those proved by the text, and those shown by runs.
    pub(super) by_text: usize,
    pub(super) by_runs: usize,
    /// Slots that the judge refused to move.
    pub(super) taken_back: usize,
    /// Whether the text proves it for all inputs, at most under `tables`; else runs show a part.
    pub(super) proved: bool,
    /// Pairs of instructions compared, and inputs.
    pub(super) compared: u64,
    pub(super) inputs: u64,
}

impl Checks {
    fn of(checked: &Checked) -> Checks {
        let [by_text, by_runs] = checked.report.alone();
        Checks {
            by_text,
            by_runs,
            taken_back: checked.dropped.len(),
            proved: !matches!(checked.report.verdict(), Verdict::Tested { .. }),
            compared: checked.report.runs.iter().map(|ran| ran.compared).sum(),
            inputs: checked.report.runs.iter().map(|ran| ran.inputs).sum(),
        }
    }
}

/// All of it.
pub(super) struct Measured {
    pub(super) rows: Vec<Row>,
    pub(super) not_here: Vec<String>,
    /// Spill and reload on this processor.
    pub(super) costs: Result<cpu::Table, String>,
    pub(super) record: Record,
}

pub(super) fn policy(name: &str) -> Result<Policy, String> {
    match name {
        "pointers" => Ok(Policy::Pointers),
        "hottest" => Ok(Policy::Hottest),
        "coldest" => Ok(Policy::Coldest),
        _ => Err(format!("no policy '{name}'")),
    }
}

/// A program with what the report says of it.
struct Asked {
    subject: Subject,
    table: String,
    figures: Option<Figures>,
    /// The report's homes and policy.
    own: Option<(String, String)>,
    /// Whether slots may move that are used on paths which no input takes.
    unreached: bool,
    /// Other builds of the function, if the user gives the row's files.
    builds: Option<Vec<(&'static str, Assembly)>>,
    /// Whether another text of this row is raced in its place.
    replaced: bool,
}

impl Asked {
    /// A program that the report does not have.
    fn other(subject: Subject, table: &str, unreached: bool) -> Asked {
        Asked {
            subject,
            table: table.to_owned(),
            figures: None,
            own: None,
            unreached,
            builds: None,
            replaced: false,
        }
    }
}

pub(super) fn measure(
    session: &Session,
    study: &Study,
    plan: &Plan,
    effort: &Effort,
    mut given: BTreeMap<String, Given>,
) -> Result<Measured, Failure> {
    let mut not_here = Vec::new();
    let asked = asked(plan, effort, &mut given, &mut not_here);
    let clock = Monotonic::new();
    let mut record = Record::new(&study.name, &session.command, Machine::inspect(&clock, Vec::new()));
    let mut rows = Vec::new();
    let bar = session.progress(asked.len() as u64, "rows");
    for asked in &asked {
        bar.set_message(asked.subject.name.clone());
        match row(session, effort, asked, &mut record) {
            Ok(row) => rows.push(row),
            Err(why) => not_here.push(format!("{}: {}", asked.subject.name, why.message())),
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let pairs = cpu::Effort { pairs: 9, ..cpu::Effort::default() };
    let costs = if effort.timed {
        loops::here(session.context.cpu.features(), pairs, |_, _| ()).map_err(|e| e.to_string())
    } else {
        Err("nothing was timed".to_owned())
    };
    record.machine.finish(&clock);
    if rows.is_empty() {
        return Err(Failure::unavailable(format!(
            "no row of the study can be run here: {}",
            not_here.join(", ")
        )));
    }
    Ok(Measured { rows, not_here, costs, record })
}

/// The programs that are here, and why the others are not.
fn asked(
    plan: &Plan,
    effort: &Effort,
    given: &mut BTreeMap<String, Given>,
    not_here: &mut Vec<String>,
) -> Vec<Asked> {
    let packages = Packages::find();
    let wanted = |name: &str| effort.rows.is_empty() || effort.rows.iter().any(|row| row == name);
    let mut out = Vec::new();
    for row in &plan.rows.row {
        let given = given.remove(&row.name);
        if (given.is_none() || effort.named) && !wanted(&row.name) {
            continue;
        }
        if let Err(why) = runs_here(&format!("{} {}", row.name, row.flags)) {
            not_here.push(format!("{}: {why}", row.name));
            continue;
        }
        let replaced = given.is_some();
        let stand_in = (!replaced || effort.stand_ins).then_some((None, None));
        let given = given.map(|given| (Some(given.baseline), Some(given.builds)));
        for (baseline, builds) in given.into_iter().chain(stand_in) {
            let replaced = replaced && baseline.is_none();
            match row.subject(&plan.rows.compilers, &packages, baseline) {
                Ok(subject) => out.push(Asked {
                    subject,
                    table: row.table.clone(),
                    figures: row.original.filter(|_| !replaced),
                    own: Some((row.home.clone(), row.policy.clone())),
                    unreached: false,
                    builds,
                    replaced,
                }),
                Err(why) => not_here.push(format!("{}: {why}", row.name)),
            }
        }
    }
    let any_fiat = |by: &str| plan.rows.fiat.iter().any(|fiat| wanted(&format!("{}-{by}", fiat.name)));
    for (family, compiler) in [("gcc", Compiler::gcc()), ("clang", Compiler::clang())] {
        if !any_fiat(family) {
            continue;
        }
        let compiler = match compiler {
            Ok(compiler) => compiler,
            Err(why) => {
                not_here.push(format!("fiat-crypto: {why}"));
                continue;
            }
        };
        for fiat in &plan.rows.fiat {
            let name = format!("{}-{}", fiat.name, compiler.family);
            if !wanted(&name) {
                continue;
            }
            match fiat.subject(&plan.rows.compilers, &packages, &compiler) {
                Ok(subject) => {
                    out.push(Asked::other(subject, "fiat", false));
                }
                Err(why) => not_here.push(format!("{name}: {why}")),
            }
        }
    }
    let rustc = Rustc::find();
    for kernel in plan.rows.kernel.iter().filter(|kernel| wanted(&kernel.name)) {
        let subject = rustc.as_ref().map_err(NotHere::clone);
        match subject.and_then(|rustc| kernel.subject(&plan.rows.compilers.rust, rustc)) {
            Ok(subject) => out.push(Asked::other(subject, "own", kernel.unreached)),
            Err(why) => not_here.push(format!("{}: {why}", kernel.name)),
        }
    }
    out
}

/// Whether this processor has the instructions of a row's code.
fn runs_here(said: &str) -> Result<(), NotHere> {
    #[cfg(target_arch = "x86_64")]
    let (mulx, bmi) = (
        std::arch::is_x86_feature_detected!("bmi2") && std::arch::is_x86_feature_detected!("adx"),
        std::arch::is_x86_feature_detected!("bmi1"),
    );
    #[cfg(not(target_arch = "x86_64"))]
    let (mulx, bmi) = (false, false);
    if said.contains("mulx") && !mulx || said.contains("-mbmi") && !bmi {
        return Err(NotHere("this processor has not its instructions".to_owned()));
    }
    Ok(())
}

fn row(session: &Session, effort: &Effort, asked: &Asked, record: &mut Record) -> Result<Row, Failure> {
    let subject = &asked.subject;
    let program = Program::new(&subject.assembly.name, &*subject.assembly.text).map_err(Failure::input)?;
    let code = asked.builds.is_some().then(|| Code::of(&program));
    let analysis = Analysis::new(program);
    let [stack, copy] = unchanged(&analysis);
    let given = asked.builds.as_deref().unwrap_or_default();
    let mut builds = Builds::of(&subject.name, &subject.case, &stack, given, effort.inputs)?;
    let (found, mut homes) = checks(session, effort, asked, &analysis)?;
    let mut row = Row {
        name: subject.name.clone(),
        table: asked.table.clone(),
        key: key_of(&analysis, &subject.case)?,
        original: subject.original,
        figures: asked.figures.map(|f| (f.baseline, f.mmx)),
        from: subject.assembly.name.clone(),
        made_by: subject.assembly.made_by.clone(),
        timed: !asked.replaced,
        policy: asked.own.as_ref().map(|(home, policy)| format!("{policy} to {home}")),
        stack_ns: None,
        ticks: None,
        copy: None,
        code,
        builds: BTreeMap::new(),
        homes: BTreeMap::new(),
        moved: found
            .iter()
            .map(|(column, checked)| (column.clone(), names::homes(&analysis, &checked.plan)))
            .collect(),
    };
    if effort.timed && row.timed && !(found.is_empty() && builds.variants.is_empty()) {
        let mut contestants = vec![stack, copy];
        contestants.extend(builds.variants.iter().cloned());
        contestants.extend(raced(&analysis, &found, &mut homes));
        let job = Job {
            subject: format!("spill/{}", subject.name),
            file: analysis.program.file.clone(),
            case: subject.case.clone(),
            input: 0,
            variants: contestants,
        };
        let mut results = Vec::new();
        let without_flags = builds.without_flags(&subject.name, &subject.case);
        for job in comparisons(&job).into_iter().chain(without_flags) {
            let rules = Rules {
                budget_ns: effort.milliseconds * 1_000_000 * (job.variants.len() - 1) as u64,
                launches: effort.launches,
                warm_up_ns: 1_000_000,
                ..Rules::default()
            };
            let mut outcome = race_beside(&job, &builds.names(), effort.inputs.min(20), &rules, |_, _| ())?;
            for result in &mut outcome.results {
                if let Some(v) = job.variants.iter().find(|v| v.name == result.variant) {
                    let build = builds.found.contains_key(&v.name);
                    let role = if build { json!("build") } else { json!(v.role) };
                    result.extra.insert("role".into(), role);
                    result.extra.insert("code_bytes".into(), json!(v.code_bytes));
                    result.extra.insert("slots".into(), json!(v.slots));
                }
            }
            results.extend(outcome.results.iter().cloned());
            record.add(outcome);
        }
        for said in findings(&job, &results) {
            if let Some(Column::Checked { finding, .. }) = homes.get_mut(&said.home) {
                *finding = Some(said);
            }
        }
        builds.note(&job, &results);
        if let Some(copy) = results.iter().find(|r| r.variant == "copy") {
            row.stack_ns = Some(copy.baseline_median);
            row.ticks = copy.ticks;
            row.copy = Some(control(copy));
        }
    }
    row.homes = homes;
    row.builds = builds.found;
    Ok(row)
}

/// The contestant that each checked rewrite is raced as. A rewrite that cannot be raced says why in its column.
fn raced(
    analysis: &Analysis,
    found: &BTreeMap<String, Checked>,
    homes: &mut BTreeMap<String, Column>,
) -> Vec<Variant> {
    let mut raced = Vec::new();
    for (column, checked) in found {
        match variants(analysis, column, &checked.plan, true) {
            Ok(made) => raced.extend(made),
            Err(why) => {
                homes.insert(column.clone(), Column::Not { why: format!("checked, and not raced: {why}") });
            }
        }
    }
    raced
}

/// Checked rewrites, and the result of every column.
type Columns = (BTreeMap<String, Checked>, BTreeMap<String, Column>);

/// Every column's rewrite, checked.
fn checks(
    session: &Session,
    effort: &Effort,
    asked: &Asked,
    analysis: &Analysis,
) -> Result<Columns, Failure> {
    let case = Case::parse(&asked.subject.case).map_err(Failure::input)?;
    let also = asked.subject.also.iter().map(|case| Case::parse(case)).collect::<Result<Vec<_>, _>>();
    let cases: Vec<Case> = std::iter::once(case.clone()).chain(also.map_err(Failure::input)?).collect();
    let (mut found, mut homes) = Columns::default();
    // A slot that is found aliased once is aliased for all homes.
    let reached = reached(analysis, &case);
    let mut stay: BTreeSet<(usize, usize)> = outside(analysis, &reached);
    let columns = asked
        .own
        .iter()
        .map(|(home, policy)| (OWN.to_owned(), home.clone(), policy.clone()))
        .chain(effort.homes.iter().map(|home| (home.clone(), home.clone(), "hottest".to_owned())));
    for (column, home, said) in columns {
        let wish = Wish {
            banks: home.parse::<Homes>().map_err(Failure::input)?.0,
            policy: policy(&said).map_err(Failure::input)?,
            counts: None,
            stay: stay.clone(),
            only: BTreeSet::new(),
            operands: true,
        };
        // Code whose path depends on its input is traced on several.
        let traced = if asked.unreached { 4 } else { 1 };
        let options =
            Options { inputs: effort.inputs, traced, unreached: asked.unreached, ..Options::default() };
        let features = session.context.cpu.features();
        let said = match settle(features, analysis, &wish, &cases, &options) {
            Ok(Settled::Moved(checked)) => {
                stay.extend(checked.dropped.iter().map(|dropped| dropped.key));
                let checks = Checks::of(&checked);
                found.insert(column.clone(), *checked);
                Column::Checked { checks, finding: None }
            }
            Ok(Settled::Nothing { plan, dropped }) => {
                Column::Not { why: nothing_moves(&Account::of(analysis, &plan, &reached, &dropped)) }
            }
            Err(why) => Column::Not { why: why.message().to_owned() },
        };
        homes.insert(column, said);
    }
    Ok((found, homes))
}

/// Why nothing moves: each reason, and for how many slots of the functions that are reached.
fn nothing_moves(account: &Account) -> String {
    let said = if account.slots == 0 { "nothing is kept in its frame" } else { &account.why };
    format!("no slot is left to move ({said})")
}

fn control(row: &ResultRow) -> Control {
    Control { more: 1.0 / row.ratio - 1.0, low: 1.0 / row.high - 1.0, high: 1.0 / row.low - 1.0 }
}

/// The name under which the homes of a row's function are kept.
fn key_of(analysis: &Analysis, case: &str) -> Result<String, Failure> {
    let case = Case::parse(case).map_err(Failure::input)?;
    Ok(names::key(analysis, unit(analysis, case.measured())?))
}

/// The functions that the measured call can reach.
pub(super) fn reached(analysis: &Analysis, case: &Case) -> BTreeSet<usize> {
    let entry = analysis.units.iter().position(|u| u.function.names.iter().any(|n| n == case.measured()));
    entry.map_or_else(BTreeSet::new, |n| analysis.below(n).into_iter().chain([n]).collect())
}

/// The slots of all other functions: no run of this row reaches them.
fn outside(analysis: &Analysis, reached: &BTreeSet<usize>) -> BTreeSet<(usize, usize)> {
    (0..analysis.units.len())
        .filter(|n| !reached.contains(n))
        .flat_map(|n| (0..analysis.units[n].slots.len()).map(move |s| (n, s)))
        .collect()
}
