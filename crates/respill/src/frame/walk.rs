//! A function followed to a fixed point: the registers before each of its instructions.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet, HashMap};

use iced_x86::{Instruction, Mnemonic, Register};

use crate::flow::{Exit, Function, Way};
use crate::program::Program;

use super::branch::refined;
use super::step::{self, Walker};
use super::value::{Address, State, Value, Where};
use super::{Frame, Outlines};

/// Joins after which a number grows to the next limit only.
const PATIENCE: usize = 3;

/// Joins after which it may be any number.
const LIMIT: usize = 40;

/// The most often that a function is followed again because its stack pointer strays somewhere else.
const RESTARTS: usize = 16;

/// The registers before each instruction of a function that is entered at its first one, and the walker that found them.
pub(super) fn settled<'a>(
    program: &'a Program,
    function: &'a Function,
    outlines: &'a Outlines,
    room: usize,
) -> Option<(Walker<'a>, HashMap<usize, State>)> {
    let mut strays: BTreeSet<usize> = BTreeSet::new();
    loop {
        let mut walker = Walker::new(program, function, outlines);
        let known = strays.len();
        let begin = BTreeSet::from([function.entry]);
        let before = followed(&mut walker, &begin, &mut strays, known < RESTARTS, room)?;
        if strays.len() == known || known >= RESTARTS {
            return Some((walker, before));
        }
    }
}

/// Follows a function to a fixed point. Where paths come together with different stack pointers, its distance is unknown: such a place
/// is added to `strays`, and ends the walk if it is to begin anew. `None` if the instructions hold more than `room` cells in all.
fn followed(
    walker: &mut Walker<'_>,
    begin: &BTreeSet<usize>,
    strays: &mut BTreeSet<usize>,
    anew: bool,
    room: usize,
) -> Option<HashMap<usize, State>> {
    let (program, function) = (walker.program, walker.function);
    let limits = limits(program, function);
    let mut before: HashMap<usize, State> = begin.iter().map(|&op| (op, State::entry())).collect();
    if let Some(state) = before.get_mut(&function.entry) {
        state.stored.extend(way_back(function));
    }
    // In the order of the text, in which a loop is settled before what follows it.
    let mut todo: BTreeSet<usize> = begin.clone();
    let mut joins: HashMap<usize, usize> = HashMap::new();
    let mut gotos: BTreeSet<usize> = BTreeSet::new();
    let mut cells = 0;
    while cells <= room {
        // Jumps through pointers come last: they go to no place that other paths reach with another stack pointer.
        let Some(i) = todo.pop_first().or_else(|| gotos.pop_first()) else {
            // A door to which no value of the function's own leads is entered only from outside.
            let dead = function.doors.iter().find(|door| !before.contains_key(door));
            let Some(&door) = dead else { return Some(before) };
            before.insert(door, State::entry());
            todo.insert(door);
            continue;
        };
        let mut after = before[&i].clone();
        walker.step(i, &mut after);
        let goto = function.gotos.contains(&i);
        for &next in &function.next[&i] {
            if goto && before.get(&next).is_some_and(|there| apart(&after, there)) {
                continue;
            }
            let Some(mut state) = refined(program, i, next, &function.next[&i], &after) else { continue };
            // The unwinder restores the registers that callees keep.
            if function.pads.contains(&next) && function.calls.contains_key(&i) {
                state.lose_volatile();
            }
            // A stack pointer at an unknown distance is what it is when control arrives.
            let here = Value::Stack(Address::moved(next));
            if state.forget(&made_from(Address::moved(next).base, &walker.aligned)) {
                walker.hidden.insert(i);
            }
            let strayed = |state: &State| !matches!(state.of(Register::RSP), Value::Stack(_));
            if strayed(&state) || strays.contains(&next) {
                strays.insert(next);
                state.set(Register::RSP, here);
            }
            if is_door(function, next, &state) {
                state.join(&State::entry(), None);
            }
            let changed = match before.get_mut(&next) {
                Some(known) => {
                    let count = joins.entry(next).or_default();
                    *count += 1;
                    let held = known.stored.len();
                    let changed = match *count {
                        ..PATIENCE => known.join(&state, None),
                        PATIENCE..LIMIT => known.join(&state, Some(&limits)),
                        _ => known.join(&state, Some(&[])),
                    };
                    cells = cells + known.stored.len() - held;
                    if strayed(known) {
                        strays.insert(next);
                        if anew {
                            return Some(before);
                        }
                        known.set(Register::RSP, here);
                    }
                    changed
                }
                None => {
                    cells += state.stored.len();
                    before.insert(next, state);
                    true
                }
            };
            if changed {
                let goto = function.gotos.contains(&next);
                (if goto { &mut gotos } else { &mut todo }).insert(next);
            }
        }
    }
    None
}

/// Where a call by a jump puts the return address, and the value that stands for it there.
fn way_back(function: &Function) -> Option<(Address, Value)> {
    match function.way {
        Some(Way::Cell(offset)) => Some((Address { base: 0, offset }, Value::Entry(Register::RIP))),
        _ => None,
    }
}

/// Whether a jump that returns goes to the address that the caller left.
pub(super) fn keeps_way(function: &Function, jump: &Instruction, state: &State) -> bool {
    match way_back(function) {
        Some((cell, way)) => {
            state.operand(jump) == Where::Known(cell) && state.stored.get(&cell) == Some(&way)
        }
        None => state.of(jump.op0_register()) == State::entry().of(jump.op0_register()),
    }
}

/// Whether two stack pointers are never the same.
fn apart(one: &State, other: &State) -> bool {
    match [one, other].map(|state| state.of(Register::RSP)) {
        [Value::Stack(a), Value::Stack(b)] => a.base == b.base && a.offset != b.offset,
        _ => false,
    }
}

impl Frame {
    /// Whether a jump through a pointer may go to a place inside, by the stack pointers at both.
    pub(crate) fn may_go(&self, jump: usize, place: usize) -> bool {
        match (self.before.get(&jump), self.before.get(&place)) {
            (Some(here), Some(there)) => !apart(here, there),
            _ => true,
        }
    }
}

/// Whether code outside may enter a function at a place inside.
pub(crate) fn is_door(function: &Function, op: usize, state: &State) -> bool {
    function.doors.contains(&op) && state.of(Register::RSP) == Value::Stack(Address { base: 0, offset: 0 })
}

/// A place in the middle of a function's frame at which code outside may enter, too, since there is a way back from there with the stack
/// pointer that it had. `None` if the instructions hold more than `room` cells in all.
pub(crate) fn second_entry(
    program: &Program,
    function: &Function,
    frame: &Frame,
    outlines: &Outlines,
    room: usize,
) -> Option<Option<usize>> {
    let inside = |op: &usize| frame.before.get(op).is_some_and(|state| !is_door(function, *op, state));
    let begin: BTreeSet<usize> = function.doors.iter().copied().filter(inside).collect();
    let Some(&first) = begin.first() else { return Some(None) };
    let walker = &mut Walker::new(program, function, outlines);
    let before = followed(walker, &begin, &mut BTreeSet::new(), false, room)?;
    let entry = Value::Stack(Address { base: 0, offset: 0 });
    let back = |(op, exit): (&usize, &Exit)| {
        *exit != Exit::Stop && before.get(op).is_some_and(|state| state.of(Register::RSP) == entry)
    };
    Some(function.exits.iter().any(back).then_some(first))
}

/// A base and all that were made from it by alignment.
fn made_from(base: usize, aligned: &BTreeMap<usize, Address>) -> BTreeSet<usize> {
    let mut out = BTreeSet::from([base]);
    while let Some((&more, _)) =
        aligned.iter().find(|(one, made)| out.contains(&made.base) && !out.contains(one))
    {
        out.insert(more);
    }
    out
}

/// The numbers that the function compares with, and their neighbours: bounds where a growing number may stop.
fn limits(program: &Program, function: &Function) -> Vec<i64> {
    let mut out = BTreeSet::from([-1, 0, 1, i64::from(u32::MAX)]);
    for &i in &function.body {
        let instruction = &program.ops[i].instruction;
        if matches!(instruction.mnemonic(), Mnemonic::Cmp | Mnemonic::Sub | Mnemonic::Add | Mnemonic::Mov)
            && let Some(by) = step::immediate(instruction)
        {
            out.extend([by.saturating_sub(1), by, by.saturating_add(1)]);
        }
    }
    out.into_iter().collect()
}
