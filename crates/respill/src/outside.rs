//! Accesses through pointers that a function was handed, and which of them may reach below it into its own frame.
//!
//! What lies in the frames of callers begins at the *floor*: the place above the return address. A pointer that is handed to a function
//! lies at the floor or above, or in other memory than this stack, whose distance nobody knows. An access at least `d` bytes above such
//! a pointer touches no byte below the floor less `d`; one without a lower bound may touch any.
//!
//! ```text
//! least[unit][register]  how far below the floor a value of the register may point at the entry, over all callers in the file
//! lowest[unit][op]       the lowest byte that an instruction, or what it calls, may touch, from the floor
//! ```
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, HashMap};

use iced_x86::Register;

use crate::analysis::Unit;
use crate::flow::{Callee, Exit};
use crate::frame::{Address, GENERAL, Outside, Value};

/// Any byte.
const ANY: i64 = i64::MIN;

/// What a function touches through the registers that it gets, and whether it touches anything at all.
#[derive(Clone, Debug, Default, PartialEq)]
struct Through {
    /// Of a register's value at the entry: the least distance.
    registers: BTreeMap<Register, i64>,
    /// Any address that was made from what came from outside.
    anywhere: bool,
}

impl Through {
    fn lower(&mut self, register: Register, by: i64) {
        let least = self.registers.entry(register).or_insert(by);
        *least = (*least).min(by);
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
    let through = through(units, by_entry);
    let least = least(units, by_entry);
    units
        .iter()
        .enumerate()
        .map(|(n, unit)| {
            let mut out: BTreeMap<usize, i64> = BTreeMap::new();
            let mut add = |op: usize, touched: &Through| {
                let from = |(register, by): (&Register, &i64)| {
                    least[n].get(register).map(|low| low.saturating_add(*by))
                };
                let lowest = touched.registers.iter().filter_map(from).min().filter(|_| !touched.anywhere);
                let lowest = if touched.anywhere { Some(ANY) } else { lowest };
                if let Some(lowest) = lowest.filter(|lowest| *lowest < 0) {
                    let known = out.entry(op).or_insert(lowest);
                    *known = (*known).min(lowest);
                }
            };
            for &(op, outside) in &unit.frame.outside {
                add(op, &of(outside));
            }
            for (&op, callee) in local(unit, by_entry) {
                add(op, &called(unit, op, &through[callee]));
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

/// What a callee touches, by the registers of its caller.
fn called(unit: &Unit, op: usize, callee: &Through) -> Through {
    let mut out = Through { anywhere: callee.anywhere, ..Through::default() };
    if let Some(state) = unit.frame.before.get(&op) {
        callee.registers.iter().for_each(|(&register, &by)| out.above(state.of(register), by));
    }
    out
}

/// What each unit touches through the registers that it gets, its callees in the file included.
fn through(units: &[Unit], by_entry: &HashMap<usize, usize>) -> Vec<Through> {
    let mut out: Vec<Through> = vec![Through::default(); units.len()];
    let mut rounds: BTreeMap<usize, usize> = BTreeMap::new();
    let mut todo: Vec<usize> = (0..units.len()).collect();
    let mut callers: Vec<Vec<usize>> = vec![Vec::new(); units.len()];
    for (n, unit) in units.iter().enumerate() {
        local(unit, by_entry).for_each(|(_, callee)| callers[callee].push(n));
    }
    while let Some(n) = todo.pop() {
        let mut now = Through::default();
        let own = units[n].frame.outside.iter().map(|&(_, outside)| of(outside));
        let calls = local(&units[n], by_entry).map(|(&op, callee)| called(&units[n], op, &out[callee]));
        for one in own.chain(calls) {
            now.anywhere |= one.anywhere;
            one.registers.iter().for_each(|(&register, &by)| now.lower(register, by));
        }
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

/// How far below its floor each register of a unit may point when it is entered. What no caller hands over has no entry.
fn least(units: &[Unit], by_entry: &HashMap<usize, usize>) -> Vec<BTreeMap<Register, i64>> {
    let mut out: Vec<BTreeMap<Register, i64>> = vec![BTreeMap::new(); units.len()];
    for (n, unit) in units.iter().enumerate() {
        // Code outside the file hands over nothing that lies below its own stack pointer.
        if unit.entered {
            out[n].extend(GENERAL.map(|register| (register, 0)));
        }
    }
    let entered: Vec<usize> = (0..units.len()).filter(|&n| units[n].entered).collect();
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
            for register in GENERAL {
                let value = state.of(register);
                let handed = match (value, value.near(), state.of(Register::RSP)) {
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
