//! Accesses through pointers that a function was given, and which of them may reach below it into its own frame.
//!
//! The frames of callers begin at the *floor*, the place above the return address. A pointer that is given to a function lies at or above
//! the floor, or in memory other than this stack, at an unknown distance. An access at least `d` bytes above such a pointer touches no
//! byte below the floor plus `d`; one without a lower bound may touch any byte.
//!
//! ```text
//! least[unit][register]  how far below the floor a value of the register may point at the entry, over all callers in the file
//! lowest[unit][op]       the lowest byte that an instruction, or what it calls, may touch, from the floor
//! ```
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet, HashMap};

use iced_x86::Register;

use crate::analysis::Unit;
use crate::flow::{Callee, Exit};
use crate::frame::{Address, GENERAL, GIVEN, Outside, Value};

/// Any byte.
const ANY: i64 = i64::MIN;

/// What a function touches through the registers that it gets, and whether it touches anything at all.
#[derive(Clone, Debug, Default, PartialEq)]
struct Through {
    /// The least distance from each register's value at the entry.
    registers: BTreeMap<Register, i64>,
    /// Whether it may touch any address that was made from what came from outside.
    anywhere: bool,
    /// The same for values that code outside the file is given, each at a known distance.
    given: BTreeMap<Register, i64>,
}

impl Through {
    fn lower(&mut self, register: Register, by: i64) {
        let least = self.registers.entry(register).or_insert(by);
        *least = (*least).min(by);
    }

    fn add(&mut self, other: &Through) {
        self.anywhere |= other.anywhere;
        other.registers.iter().for_each(|(&register, &by)| self.lower(register, by));
        for (&register, &by) in &other.given {
            let least = self.given.entry(register).or_insert(by);
            *least = (*least).min(by);
        }
    }

    /// Adds a value that code outside is given, if its distance is known.
    fn give(&mut self, value: Value, by: i64) {
        if let Some((register, from)) = value.near() {
            let least = self.given.entry(register).or_insert(i64::MAX);
            *least = (*least).min(from.saturating_add(by));
        }
    }

    /// Adds an access at least `by` bytes above a value.
    fn above(&mut self, value: Value, by: i64) {
        match (value, value.near()) {
            // The caller's own frame escapes with it, and numbers are the addresses of nothing.
            (Value::Stack(_) | Value::Derived, _) => (),
            _ if value.is_elsewhere() => (),
            (_, Some((register, from))) => self.lower(register, from.saturating_add(by)),
            _ => self.anywhere = true,
        }
    }
}

/// For each unit: the instructions that may touch bytes below its floor, with the lowest.
pub(crate) fn below(units: &[Unit], by_entry: &HashMap<usize, usize>) -> Vec<BTreeMap<usize, i64>> {
    // A function that writes through a pointer below its floor may change one of its own cells. If it relies on one, what it touches
    // or passes on is unknown.
    let mut unsure: BTreeSet<usize> = BTreeSet::new();
    let (through, least) = loop {
        let (through, least) = (through(units, by_entry, &unsure), least(units, by_entry, &unsure));
        let low = |n: &usize| {
            let frame = &units[*n].frame;
            let below = |(register, (from, _)): (&Register, &(i64, i64))| {
                least[*n].get(register).is_some_and(|low| *low < 0 && low.saturating_add(*from) < 0)
            };
            frame.relies && frame.writes.through.iter().any(below)
        };
        let more: BTreeSet<usize> = (0..units.len()).filter(low).collect();
        if more.is_subset(&unsure) {
            break (through, least);
        }
        unsure.extend(more);
    };
    units
        .iter()
        .enumerate()
        .map(|(n, unit)| {
            let mut out: BTreeMap<usize, i64> = BTreeMap::new();
            let mut add = |op: usize, touched: &Through| {
                let from = |(register, by): (&Register, &i64)| {
                    least[n].get(register).map(|low| low.saturating_add(*by))
                };
                // Code outside is given no loaded pointer into a frame.
                let given = touched.given.iter().filter_map(from).filter(|lowest| *lowest > ANY / 2);
                let lowest = touched.registers.iter().filter_map(from).chain(given).min();
                let lowest = lowest.filter(|_| !touched.anywhere);
                let lowest = if touched.anywhere { Some(ANY) } else { lowest };
                if let Some(lowest) = lowest.filter(|lowest| *lowest < 0) {
                    let known = out.entry(op).or_insert(lowest);
                    *known = (*known).min(lowest);
                }
            };
            for &(op, outside) in &unit.frame.outside {
                add(op, &of(outside));
            }
            if unsure.contains(&n) {
                let own = unit.frame.outside.iter().map(|&(op, _)| op);
                let all = own.chain(unit.function.callees().map(|(op, _)| op));
                all.for_each(|op| add(op, &Through { anywhere: true, ..Through::default() }));
            }
            for (&op, callee) in local(unit, by_entry) {
                add(op, &called(unit, op, &through[callee]));
            }
            for (op, _) in unit.function.callees().filter(|(_, callee)| !matches!(callee, Callee::Local(_))) {
                add(op, &given(unit, op));
            }
            out
        })
        .collect()
}

fn of(outside: Outside) -> Through {
    let mut out = Through::default();
    match outside {
        Outside::Above(register, by) => out.lower(register, by),
        Outside::Anywhere => out.anywhere = true,
    }
    out
}

/// A unit's calls of, and jumps to, functions of the file.
fn local<'a>(
    unit: &'a Unit,
    by_entry: &'a HashMap<usize, usize>,
) -> impl Iterator<Item = (&'a usize, usize)> {
    let calls = unit.function.calls.iter().map(|(op, call)| (op, &call.callee));
    let tails = unit.function.exits.iter().filter_map(|(op, exit)| match exit {
        Exit::Tail(callee) => Some((op, callee)),
        _ => None,
    });
    calls.chain(tails).filter_map(|(op, callee)| match callee {
        Callee::Local(entry) => Some((op, *by_entry.get(entry)?)),
        _ => None,
    })
}

/// What code outside is given.
fn given(unit: &Unit, op: usize) -> Through {
    let mut out = Through::default();
    if let Some(state) = unit.frame.before.get(&op) {
        GIVEN.into_iter().for_each(|register| out.give(state.of(register), 0));
    }
    out
}

/// What a callee touches, by the registers of its caller.
fn called(unit: &Unit, op: usize, callee: &Through) -> Through {
    let mut out = Through { anywhere: callee.anywhere, ..Through::default() };
    if let Some(state) = unit.frame.before.get(&op) {
        callee.registers.iter().for_each(|(&register, &by)| out.above(state.of(register), by));
        callee.given.iter().for_each(|(&register, &by)| out.give(state.of(register), by));
    }
    out
}

/// What each unit touches through the registers that it gets, its callees in the file included.
fn through(units: &[Unit], by_entry: &HashMap<usize, usize>, unsure: &BTreeSet<usize>) -> Vec<Through> {
    let mut out: Vec<Through> = vec![Through::default(); units.len()];
    let mut rounds: BTreeMap<usize, usize> = BTreeMap::new();
    let mut todo: Vec<usize> = (0..units.len()).collect();
    let mut callers: Vec<Vec<usize>> = vec![Vec::new(); units.len()];
    for (n, unit) in units.iter().enumerate() {
        local(unit, by_entry).for_each(|(_, callee)| callers[callee].push(n));
    }
    // What each unit itself touches and passes on.
    let mut own: Vec<Through> = Vec::new();
    for (n, unit) in units.iter().enumerate() {
        let mut all = Through { anywhere: unsure.contains(&n), ..Through::default() };
        unit.frame.outside.iter().for_each(|&(_, outside)| all.add(&of(outside)));
        let outward = unit.function.callees().filter(|(_, callee)| !matches!(callee, Callee::Local(_)));
        outward.for_each(|(op, _)| all.add(&given(unit, op)));
        own.push(all);
    }
    while let Some(n) = todo.pop() {
        let mut now = own[n].clone();
        local(&units[n], by_entry).for_each(|(&op, callee)| now.add(&called(&units[n], op, &out[callee])));
        if now != out[n] {
            // Recursion that goes lower each time.
            let rounds = rounds.entry(n).or_default();
            *rounds += 1;
            now.anywhere |= *rounds > 64;
            let changed = now != out[n];
            out[n] = now;
            if changed && *rounds <= 66 {
                todo.extend(&callers[n]);
            }
        }
    }
    out
}

/// How far below its floor each register of a unit may point when it is entered. A register that no caller passes has no entry.
fn least(
    units: &[Unit],
    by_entry: &HashMap<usize, usize>,
    unsure: &BTreeSet<usize>,
) -> Vec<BTreeMap<Register, i64>> {
    let mut out: Vec<BTreeMap<Register, i64>> = vec![BTreeMap::new(); units.len()];
    for (n, unit) in units.iter().enumerate() {
        // Code outside the file passes nothing that lies below its own stack pointer.
        if unit.entered {
            out[n].extend(GENERAL.map(|register| (register, 0)));
        }
    }
    let entered: Vec<usize> = (0..units.len()).filter(|&n| units[n].entered).collect();
    // What calls through pointers pass, to every function that they may reach.
    let mut handed_to_all = GENERAL.map(|register| (register, 0));
    let mut rounds: BTreeMap<usize, usize> = BTreeMap::new();
    let mut todo: Vec<usize> = (0..units.len()).collect();
    while let Some(n) = todo.pop() {
        let unit = &units[n];
        let calls =
            unit.function.calls.iter().map(|(&op, call)| (op, &call.callee, i64::from(call.link) * 8));
        let tails = unit.function.exits.iter().filter_map(|(&op, exit)| match exit {
            Exit::Tail(callee) => Some((op, callee, 8)),
            _ => None,
        });
        for (op, callee, up) in calls.chain(tails) {
            let one;
            let callees = match callee {
                Callee::Local(entry) => {
                    one = by_entry.get(entry).copied();
                    one.as_slice()
                }
                Callee::Unknown => entered.as_slice(),
                Callee::External(_) => continue,
            };
            let Some(state) = unit.frame.before.get(&op) else { continue };
            for (register, to_all) in &mut handed_to_all {
                let register = *register;
                let value = state.of(register);
                let handed = match (value, value.near(), state.of(Register::RSP)) {
                    _ if unsure.contains(&n) => ANY,
                    _ if value.is_elsewhere() => continue,
                    (.., Value::Derived) => ANY,
                    (.., Value::Stack(rsp)) if !unit.frame.is_fixed(rsp.base) => ANY,
                    (_, Some((from, by)), _) => match out[n].get(&from) {
                        Some(low) => low.saturating_add(by).min(0),
                        None => continue,
                    },
                    (Value::Stack(a), _, Value::Stack(Address { base, offset })) if a.base == base => {
                        (a.offset - offset - up).min(0)
                    }
                    _ => ANY,
                };
                if *callee == Callee::Unknown {
                    if handed >= *to_all {
                        continue;
                    }
                    *to_all = handed;
                }
                for &callee in callees {
                    let known = out[callee].entry(register).or_insert(i64::MAX);
                    if handed < *known {
                        let rounds = rounds.entry(callee).or_default();
                        *rounds += 1;
                        *known = if *rounds > 256 { ANY } else { handed };
                        todo.push(callee);
                    }
                }
            }
        }
    }
    out
}
