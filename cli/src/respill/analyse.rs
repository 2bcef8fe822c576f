//! `respill analyse`: what is known about every function and slot.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;

use comfy_table::presets::{NOTHING, UTF8_HORIZONTAL_ONLY};
use comfy_table::{CellAlignment, Table};
use lanework_race::table::{Style, percent};
use lanework_respill::analysis::{Analysis, Unit};
use lanework_respill::flow::Callee;
use lanework_respill::homes::Bank;
use lanework_respill::names::{counted, place};
use lanework_respill::plan::{self, Plan, Policy, Stays, Wish, weight};
use lanework_respill::slots::Class;
use lanework_study::{Failure, Outcome};
use serde::Serialize;

use super::Source;
use super::args::AnalyseArgs;
use super::executed::{self, Dynamic};
use crate::ui::Session;

/// A file.
#[derive(Serialize)]
struct File<'a> {
    file: &'a str,
    functions: Vec<Function>,
    homes: Vec<Fit>,
    /// What ran, if there was a case to run.
    runs: Option<Dynamic>,
}

/// A function.
#[derive(Serialize)]
struct Function {
    name: String,
    line: usize,
    global: bool,
    instructions: usize,
    /// How many bytes below its value at entry the stack pointer is known to go.
    frame_bytes: i64,
    /// How many loops enclose its innermost instruction.
    loop_depth: u32,
    calls: Vec<String>,
    /// Calls whose return address is in a register.
    link_calls: usize,
    x87: bool,
    vex: bool,
    /// Registers that its own instructions name, among those that could be homes.
    names: Vec<String>,
    /// Its own instructions that were executed, if there was a case to run.
    executed: Option<u64>,
    /// Those that name one of its slots.
    executed_slots: Option<u64>,
    /// Why nothing is known about its slots.
    opaque: Option<String>,
    slots: Vec<Slot>,
}

/// A slot.
#[derive(Serialize)]
struct Slot {
    slot: String,
    bytes: usize,
    class: Class,
    loads: usize,
    stores: usize,
    operands: usize,
    /// Lines of instructions that may touch it under another name.
    suspects: Vec<usize>,
    /// Its accesses' share of all instructions of the functions shown: every loop counts ten times.
    share: f64,
    /// Its accesses that were executed, and their share of all executed instructions of the file, if there was a case to run.
    executed: Option<u64>,
    executed_share: Option<f64>,
    /// Homes that could take it if it were alone.
    homes: Vec<Bank>,
    /// Why it has none.
    stays: Option<String>,
}

/// What a kind of home could take.
#[derive(Serialize)]
struct Fit {
    home: Bank,
    /// Slots that get one if all are asked for.
    fit: usize,
    /// Slots that could have one.
    eligible: usize,
    /// Those of them that something else may touch: only a run can clear them.
    suspected: usize,
    /// The share of the slots that fit in the executed accesses to eligible slots, if there was a case to run.
    executed_share: Option<f64>,
}

pub(super) fn run(session: &Session, args: &AnalyseArgs) -> Result<Outcome, Failure> {
    let source = Source::load(&args.source)?;
    let runs = executed::counted(&source, &args.cases)?;
    let file = describe(&source, runs);
    if session.json {
        println!("{}", serde_json::to_string(&file).map_err(Failure::input)?);
    } else {
        print(session, &file, args.all);
    }
    Ok(Outcome::Yes)
}

/// Everything that could move if nothing else touched it.
fn everything(bank: Bank, outside: &BTreeSet<(usize, usize)>, runs: Option<&Dynamic>) -> Wish {
    Wish {
        banks: vec![(bank, None)],
        policy: Policy::Hottest,
        counts: runs.map(|runs| runs.by_op.clone()),
        stay: outside.clone(),
        only: BTreeSet::new(),
        operands: true,
    }
}

fn describe(source: &Source, runs: Option<Dynamic>) -> File<'_> {
    let analysis = &source.analysis;
    let outside: BTreeSet<(usize, usize)> = (0..analysis.units.len())
        .filter(|n| !source.units.contains(n))
        .flat_map(|n| (0..analysis.units[n].slots.len()).map(move |s| (n, s)))
        .collect();
    let plans: Vec<(Bank, Plan)> = Bank::ALL
        .iter()
        .map(|&bank| (bank, plan::plan(analysis, &everything(bank, &outside, runs.as_ref()))))
        .collect();
    // How often, by loop depth alone.
    let loops =
        |unit: &Unit, op: usize| 10f64.powi(unit.function.depth.get(&op).copied().unwrap_or(0).min(6) as i32);
    let total: f64 = source
        .units
        .iter()
        .map(|&n| &analysis.units[n])
        .map(|unit| unit.function.body.iter().map(|&op| loops(unit, op)).sum::<f64>())
        .sum();
    let functions =
        source.units.iter().map(|&n| function(analysis, n, &plans, total, runs.as_ref())).collect();
    let homes = plans
        .iter()
        .map(|(bank, plan)| {
            let eligible: Vec<(usize, usize)> = plan
                .homes
                .keys()
                .copied()
                .chain(plan.stays.iter().filter(|(_, why)| **why == Stays::Full).map(|(&key, _)| key))
                .collect();
            let suspected =
                eligible.iter().filter(|&&(n, s)| !analysis.units[n].slots[s].suspects.is_empty()).count();
            let executed_share = runs.as_ref().map(|runs| {
                let sum = |keys: &mut dyn Iterator<Item = &(usize, usize)>| -> u64 {
                    keys.map(|&(n, s)| runs.of(analysis.units[n].slots[s].uses())).sum()
                };
                sum(&mut plan.homes.keys()) as f64 / sum(&mut eligible.iter()).max(1) as f64
            });
            Fit { home: *bank, fit: plan.homes.len(), eligible: eligible.len(), suspected, executed_share }
        })
        .collect();
    File { file: &analysis.program.file, functions, homes, runs }
}

fn function(
    analysis: &Analysis,
    n: usize,
    plans: &[(Bank, Plan)],
    total: f64,
    runs: Option<&Dynamic>,
) -> Function {
    let unit = &analysis.units[n];
    let program = &analysis.program;
    let mut calls: Vec<String> = Vec::new();
    for call in unit.function.calls.values() {
        let name = match &call.callee {
            Callee::Local(entry) => analysis
                .units
                .iter()
                .find(|u| u.function.entry == *entry)
                .map_or_else(|| format!("line {}", program.line(*entry)), |u| u.function.name().to_owned()),
            Callee::External(name) => format!("{name} (elsewhere)"),
            Callee::Unknown => "(unknown)".to_owned(),
        };
        if !calls.contains(&name) {
            calls.push(name);
        }
    }
    let slots = unit
        .slots
        .iter()
        .enumerate()
        .map(|(s, slot)| {
            let homes: Vec<Bank> = plans
                .iter()
                .filter(|(_, plan)| {
                    plan.homes.contains_key(&(n, s)) || plan.stays.get(&(n, s)) == Some(&Stays::Full)
                })
                .map(|&(bank, _)| bank)
                .collect();
            let why = plans.iter().find_map(|(_, plan)| plan.stays.get(&(n, s)));
            Slot {
                slot: place(analysis, slot.address),
                bytes: slot.size,
                class: slot.class,
                loads: slot.loads.len(),
                stores: slot.stores.len(),
                operands: slot.others.len(),
                suspects: lines(analysis, slot.suspects.iter().copied()),
                share: weight(unit, slot, None) as f64 / total.max(1.0),
                executed: runs.map(|runs| runs.of(slot.uses())),
                executed_share: runs.map(|runs| runs.share(runs.of(slot.uses()))),
                stays: if homes.is_empty() { why.map(|why| why_stays(analysis, *why)) } else { None },
                homes,
            }
        })
        .collect();
    Function {
        name: unit.function.name().to_owned(),
        line: program.line(unit.function.entry),
        global: unit.function.global,
        instructions: unit.function.body.len(),
        frame_bytes: -unit.frame.lowest,
        loop_depth: unit.function.depth.values().copied().max().unwrap_or(0),
        calls,
        link_calls: unit.function.calls.values().filter(|call| call.link).count(),
        x87: unit.x87.is_some(),
        vex: unit.vex,
        names: unit.uses.keys().map(|r| format!("{r:?}").to_ascii_lowercase()).collect(),
        executed: runs.map(|runs| runs.of(unit.function.body.iter().copied())),
        executed_slots: runs.map(|runs| {
            let named: BTreeSet<usize> = unit.slots.iter().flat_map(|slot| slot.uses()).collect();
            runs.of(named)
        }),
        opaque: unit.opaque.map(|why| analysis.told(why)),
        slots,
    }
}

/// The lines of instructions, each once.
fn lines(analysis: &Analysis, ops: impl Iterator<Item = usize>) -> Vec<usize> {
    let all: BTreeSet<usize> = ops.map(|op| analysis.program.line(op)).collect();
    all.into_iter().collect()
}

/// Why a slot stays, with the line.
pub(super) fn why_stays(analysis: &Analysis, why: Stays) -> String {
    match why {
        Stays::Across(op) | Stays::Operand(op) | Stays::Shared(op) => {
            format!("{why} (line {})", analysis.program.line(op))
        }
        Stays::Opaque(why) => analysis.told(why),
        Stays::Refused(why) => why.says(analysis),
        why => why.to_string(),
    }
}

fn print(session: &Session, file: &File<'_>, all: bool) {
    for function in &file.functions {
        println!(
            "{} ({}:{}): {}, frame of {}, loops {} deep{}",
            function.name,
            file.file,
            function.line,
            counted(function.instructions as u64, "instruction"),
            counted(function.frame_bytes.unsigned_abs(), "byte"),
            function.loop_depth,
            if function.global { "" } else { ", local to this file" }
        );
        if !function.calls.is_empty() {
            let link = if function.link_calls > 0 {
                format!(" ({} return through a register)", function.link_calls)
            } else {
                String::new()
            };
            println!("  calls {}{link}", function.calls.join(", "));
        }
        if !function.names.is_empty() {
            println!("  uses {}", function.names.join(" "));
        }
        if function.x87 {
            println!("  uses the x87 stack");
        }
        if let (Some(runs), Some(executed), Some(slots)) =
            (&file.runs, function.executed, function.executed_slots)
        {
            println!(
                "  {} executed, {slots} of them name a slot ({} of all executed)",
                counted(executed, "instruction"),
                percent(runs.share(slots))
            );
        }
        if let Some(why) = &function.opaque {
            println!("  its slots stay: {why}");
        }
        let value = |slot: &&Slot| {
            all || matches!(slot.class, Class::Spill | Class::Pointer | Class::Operand)
                && function.opaque.is_none()
        };
        let shown: Vec<&Slot> = function.slots.iter().filter(value).collect();
        let hidden = function.slots.len() - shown.len();
        if !shown.is_empty() {
            println!("{}", table(session.style, &shown));
        }
        if function.slots.is_empty() {
            println!("  no slots: its frame is never accessed");
        } else if hidden > 0 {
            println!("  without a spilled value: {}, which --all shows", counted(hidden as u64, "cell"));
        }
        println!();
    }
    if let Some(runs) = &file.runs {
        for run in &runs.runs {
            println!(
                "{}: {} executed here, {} elsewhere",
                run.function,
                counted(run.inside, "instruction"),
                run.outside
            );
        }
        for part in &runs.shares {
            println!(
                "  {} of class {}: named by {}, {} of all; {} where nothing else can touch them",
                counted(part.share.slots as u64, "slot"),
                part.class.map_or("any", Class::name),
                counted(part.share.executed, "executed instruction"),
                percent(part.share.share),
                percent(runs.share(part.share.alone))
            );
        }
    }
    for fit in &file.homes {
        let executed = fit.executed_share.map_or_else(String::new, |share| {
            format!(", with {} of their executed accesses", percent(share))
        });
        println!(
            "{}: room for {} of {}{executed}, {} of them possibly touched by something else",
            fit.home,
            fit.fit,
            counted(fit.eligible as u64, "slot"),
            fit.suspected
        );
    }
}

fn table(style: Style, slots: &[&Slot]) -> Table {
    let mut table = Table::new();
    match style {
        Style::Plain => {
            table.load_style(NOTHING);
            table.force_no_tty();
        }
        Style::Terminal => {
            table.load_style(UTF8_HORIZONTAL_ONLY);
        }
    }
    table.set_header(["slot", "bytes", "class", "loads", "stores", "operands", "share", "suspects", "homes"]);
    for slot in slots {
        let homes = match &slot.stays {
            Some(why) => why.clone(),
            None => slot.homes.iter().map(|bank| bank.name()).collect::<Vec<_>>().join(" "),
        };
        let suspects = match slot.suspects.as_slice() {
            [] => "none".to_owned(),
            &[line] => format!("line {line}"),
            [first, ..] => format!("line {first} and {} more", slot.suspects.len() - 1),
        };
        table.add_row([
            slot.slot.clone(),
            slot.bytes.to_string(),
            slot.class.name().to_owned(),
            slot.loads.to_string(),
            slot.stores.to_string(),
            slot.operands.to_string(),
            percent(slot.executed_share.unwrap_or(slot.share)),
            suspects,
            homes,
        ]);
    }
    for column in [1, 3, 4, 5, 6] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}
