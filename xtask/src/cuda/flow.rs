//! Follows values through a kernel's code, along every path that control can take, until nothing changes.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};

use super::lint::{Kind, kind, next, predicate, results, sources, width};
use super::sass::{Cell, Function, Instruction};
use super::state::{ALL, Fact, MODULE, Origins, State, Value};

/// The kernel's arguments as memory.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    /// Where arguments begin in the bank that they come in.
    base: u64,
    /// Words of arguments that are pointers.
    pointers: Origins,
    /// Pointers to memory that is public while the kernel runs.
    public: Origins,
    /// The kernel's own constants: bank 2, word by word.
    constants: Vec<u32>,
}

impl Memory {
    /// `words`: whether each word is a pointer, and whether to public memory.
    pub(super) fn of(architecture: &str, words: impl IntoIterator<Item = (bool, bool)>) -> Memory {
        let mut memory =
            Memory { base: arguments_at(architecture), pointers: 0, public: 0, constants: Vec::new() };
        for (at, (pointer, public)) in words.into_iter().take(63).enumerate() {
            memory.pointers |= u64::from(pointer) << at;
            memory.public |= u64::from(pointer && public) << at;
        }
        memory
    }

    /// With the kernel's own constants.
    pub(super) fn with_constants(self, constants: Vec<u32>) -> Memory {
        Memory { constants, ..self }
    }

    /// The origin of an operand that names constants.
    fn origin(&self, bank: u64, offset: Option<u64>) -> Origins {
        match (bank, offset) {
            (0, Some(offset)) => match offset.checked_sub(self.base) {
                Some(at) if at / 4 < 63 => self.pointers & (1 << (at / 4)),
                Some(_) => self.pointers,
                None => 0,
            },
            (0, None) => self.pointers,
            // Addresses of the module's own memory; other banks hold numbers.
            (4, _) => MODULE,
            _ => 0,
        }
    }

    /// Whether everything at such an address is public.
    pub(super) fn is_public(&self, from: Origins) -> bool {
        from != 0 && from & !(self.public | MODULE) == 0
    }

    /// Whether something at such an address may be public, or its origin is unknown.
    pub(super) fn may_be_public(&self, from: Origins) -> bool {
        from == 0 || from & (self.public | MODULE) != 0
    }
}

/// Where arguments begin in bank 0.
pub(super) fn arguments_at(architecture: &str) -> u64 {
    let number = architecture.trim_start_matches("sm_").trim_end_matches(char::is_alphabetic).parse();
    if number.unwrap_or(0u32) >= 90 { 0x210 } else { 0x160 }
}

/// The predicate of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guard {
    Always,
    If(Fact),
    Never,
}

pub(super) fn guard(i: &Instruction) -> Guard {
    let negated = i.text.starts_with("@!");
    match i.guard {
        Some(cell) => Guard::If((cell, !negated)),
        None if negated => Guard::Never,
        None => Guard::Always,
    }
}

/// The fact under which a comparison's operands matter: it is joined to a predicate by "and", which must then be true, or
/// by "or", which must then be false.
fn joined(i: &Instruction) -> Option<Fact> {
    let how = match (i.has("AND"), i.has("OR")) {
        (true, false) => true,
        (false, true) => false,
        _ => return None,
    };
    // Two results, two operands, and the predicate. With another operand after it, it compares wider numbers.
    match (i.root.as_str(), i.operands.as_slice()) {
        ("ISETP", [_, _, _, _, last]) if !i.has("EX") => match last.value.as_slice() {
            [cell] if predicate(*cell) => Some((*cell, how != last.text.starts_with('!'))),
            _ => None,
        },
        _ => None,
    }
}

/// What a cell may hold when the instruction reads it and its value matters.
pub(super) fn read(i: &Instruction, cell: Cell, state: &State) -> Value {
    match guard(i) {
        Guard::If(fact) => state.get(cell, Some(fact)),
        Guard::Always | Guard::Never => state.get(cell, joined(i).filter(|fact| fact.0 != cell)),
    }
}

/// Whether a secret decides if the instruction is executed.
pub(super) fn guarded(i: &Instruction, state: &State) -> bool {
    i.guard.is_some_and(|cell| state.get(cell, None).is_secret())
}

/// The value that an instruction's addresses come from.
pub(super) fn addressed(i: &Instruction, state: &State) -> Value {
    let cells = i.operands.iter().flat_map(|o| &o.address);
    cells.fold(Value::default(), |sum, cell| sum.or(&read(i, *cell, state)))
}

/// Where control may go.
enum Exit {
    /// To the instruction at this position.
    To(usize),
    /// To this position, if the fact holds.
    If(Fact, usize),
}

/// The analysis of one kernel.
pub(super) struct Flow<'a> {
    code: &'a [Instruction],
    memory: Memory,
    position: BTreeMap<u64, usize>,
    /// Where each barrier's threads continue.
    joins: BTreeMap<&'a str, BTreeSet<u64>>,
    /// What is known at the beginning of each block that control reaches.
    before: BTreeMap<usize, State>,
    starts: BTreeSet<usize>,
    /// Jumps that cannot be followed.
    pub(super) lost: BTreeSet<String>,
}

impl<'a> Flow<'a> {
    pub(super) fn new(function: &'a Function, memory: Memory) -> Flow<'a> {
        let code = function.code.as_slice();
        let position: BTreeMap<u64, usize> = code.iter().enumerate().map(|(n, i)| (i.at, n)).collect();
        let mut joins: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
        // A block begins wherever an immediate number may be a jump target.
        let mut starts = BTreeSet::from([0]);
        for (n, i) in code.iter().enumerate() {
            if i.root == "BSSY"
                && let (Some(barrier), Some(to)) = (i.operands.first(), i.target())
            {
                joins.entry(&barrier.text).or_default().insert(to);
            }
            let goes =
                kind(i) == Some(Kind::Jump) || matches!(i.root.as_str(), "BSYNC" | "BSSY" | "WARPSYNC");
            if goes {
                starts.insert(n + 1);
            }
            if goes || i.name == "MOV" || i.name == "IMAD.MOV.U32" {
                starts.extend(i.target().and_then(|to| position.get(&to)));
            }
        }
        Flow { code, memory, position, joins, before: BTreeMap::new(), starts, lost: BTreeSet::new() }
    }

    /// Runs until nothing changes, then shows every instruction that control reaches, with what is known before it.
    pub(super) fn run(&mut self, mut see: impl FnMut(&Instruction, &State, &Memory)) {
        if self.code.is_empty() {
            return;
        }
        self.before.insert(0, State::default());
        let mut work = BTreeSet::from([0]);
        while let Some(start) = work.pop_first() {
            let (end, state) = self.block(start, |_, _| ());
            for exit in self.exits(end, &state) {
                let (to, state) = match exit {
                    Exit::To(to) => (to, state.clone()),
                    Exit::If(fact, to) => (to, state.knowing(fact)),
                };
                let news = match self.before.get_mut(&to) {
                    Some(known) => known.merge(&state),
                    None => {
                        self.before.insert(to, state);
                        true
                    }
                };
                if news {
                    work.insert(to);
                }
            }
        }
        let starts: Vec<usize> = self.before.keys().copied().collect();
        for start in starts {
            self.block(start, |i, state| see(i, state, &self.memory));
        }
    }

    /// Goes through a block. Returns its last instruction, and what is known after it.
    fn block(&self, start: usize, mut see: impl FnMut(&Instruction, &State)) -> (usize, State) {
        let mut state = self.before.get(&start).cloned().unwrap_or_default();
        let mut n = start;
        loop {
            see(&self.code[n], &state);
            step(&self.code[n], &self.memory, &mut state);
            if n + 1 >= self.code.len() || self.starts.contains(&(n + 1)) {
                return (n, state);
            }
            n += 1;
        }
    }

    fn exits(&mut self, n: usize, state: &State) -> Vec<Exit> {
        let i = &self.code[n];
        let mut to: Vec<u64> = Vec::new();
        let mut goes_on = true;
        let mut lost = |why: &str| {
            self.lost.insert(format!("{:#06x} {}: {why}", i.at, i.text));
        };
        match i.root.as_str() {
            "RET" => {
                let register = i.operands.iter().flat_map(|o| &o.value).next();
                match register.and_then(|cell| read(i, *cell, state).places) {
                    Some(places) => to = places,
                    None => lost("a return to an unknown address"),
                }
                goes_on = false;
            }
            "EXIT" | "KILL" => goes_on = false,
            "BSYNC" => {
                let joins = i.operands.first().and_then(|barrier| self.joins.get(barrier.text.as_str()));
                // If the next instruction is one of this barrier's places, its threads meet there.
                let behind = self.code.get(n + 1).map(|next| next.at);
                if let Some(joins) = joins
                    && !behind.is_some_and(|at| joins.contains(&at))
                {
                    to.extend(joins);
                }
            }
            "BRA" | "CALL" | "WARPSYNC" | "BREAK" if i.root != "WARPSYNC" || i.has("COLLECTIVE") => {
                to.extend(i.target());
                let conditional =
                    i.has("DIV") || i.has("CONV") || i.operands.iter().any(|o| !o.value.is_empty());
                goes_on = i.root == "WARPSYNC" || i.root == "BREAK" || conditional;
            }
            _ => {}
        }
        let mut exits = Vec::new();
        for at in to {
            match self.position.get(&at) {
                Some(&to) => exits.push(match guard(i) {
                    Guard::If(fact) => Exit::If(fact, to),
                    Guard::Always | Guard::Never => Exit::To(to),
                }),
                None => lost("leaves the kernel"),
            }
        }
        if n + 1 < self.code.len() {
            match guard(i) {
                _ if goes_on => exits.push(Exit::To(n + 1)),
                Guard::If((cell, how)) => exits.push(Exit::If((cell, !how), n + 1)),
                Guard::Never => exits.push(Exit::To(n + 1)),
                Guard::Always => {}
            }
        }
        exits
    }
}

/// Whether the instruction comes from `lw_declassify`, a dot product with 1 to which nothing is added, or `lw_public_row`: a product of
/// four bytes with a single 128, which is where a row of a table begins, added to what is public.
pub(super) fn releases(i: &Instruction, state: &State, memory: &Memory) -> bool {
    let (Some(factor), Some(sum)) = (i.operands.get(2), i.operands.get(3)) else { return false };
    let number = match (factor.constant, factor.value.first()) {
        (Some((2, Some(at))), _) => memory.constants.get(at as usize / 4).map(|n| u64::from(*n)),
        (None, Some(cell)) => match read(i, *cell, state).places.as_deref() {
            Some([one]) => Some(*one),
            _ => None,
        },
        _ => factor.text.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok()),
    };
    let number = number.map(|n| n & 0xffff_ffff);
    let public = || sum.value.iter().all(|cell| !read(i, *cell, state).is_secret());
    kind(i) == Some(Kind::Dot)
        && match i.name.as_str() {
            "IDP.2A.LO.U16.U8" => sum.text == "RZ" && number == Some(1),
            "IDP.4A.U8.U8" => matches!(number, Some(0x80 | 0x8000 | 0x0080_0000 | 0x8000_0000)) && public(),
            _ => false,
        }
}

/// Which bytes of the result depend on a secret. Sums carry only upwards, and some instructions keep bytes apart.
fn secret_bytes(i: &Instruction, count: usize, state: &State) -> u8 {
    let of = |cell: &Cell| read(i, *cell, state).secret;
    let read = sources(i, count);
    let all = read.iter().fold(0, |sum, cell| sum | of(cell));
    let parts = i.operands.iter().any(|o| o.text.contains(".H") || o.text.contains(".B"));
    let decided = read.iter().any(|cell| predicate(*cell) && of(cell) != 0);
    if all == 0 || parts || decided {
        return if all == 0 { 0 } else { ALL };
    }
    let operand = |n: usize| i.operands.get(count + n);
    let bytes = |n: usize| operand(n).map_or(0, |o| o.value.iter().fold(0, |sum, cell| sum | of(cell)));
    let immediate = |n: usize| u32::from_str_radix(operand(n)?.text.strip_prefix("0x")?, 16).ok();
    let high = ["HI", "WIDE", "X", "SX32"].iter().any(|part| i.has(part));
    // All bytes from the lowest secret one up.
    let carried = |secret: u8| (0..4).fold(0, |sum, byte| sum | ((secret << byte) & ALL));
    match i.root.as_str() {
        "MOV" | "UMOV" | "SEL" | "USEL" => all,
        "IMAD" if i.name == "IMAD.MOV.U32" => all,
        "IADD3" | "UIADD3" | "VIADD" | "IMAD" | "UIMAD" | "LEA" | "ULEA" if !high => carried(all),
        // The shifted upper part of one operand, plus the other.
        "LEA" | "ULEA" if i.name.ends_with("LEA.HI") && bytes(0) | bytes(2) == 0 => carried(bytes(1)),
        "LOP3" | "ULOP3" => {
            let and = operand(2).is_some_and(|o| o.text == "RZ" || o.text == "URZ")
                && operand(3).is_some_and(|o| o.text == "0xc0");
            let kept = immediate(1).filter(|_| and).map_or(ALL, |mask| {
                mask.to_le_bytes().iter().rev().fold(0, |sum, byte| sum << 1 | u8::from(*byte != 0))
            });
            all & kept
        }
        "PRMT" | "UPRMT" => immediate(1).map_or(ALL, |which| {
            let from = bytes(0) | bytes(2) << 4;
            (0..4).fold(0, |sum, n| sum | (from >> (which >> (4 * n) & 7) & 1) << n)
        }),
        _ => ALL,
    }
}

/// Applies the instruction to what is known.
fn step(i: &Instruction, memory: &Memory, state: &mut State) {
    let Some(kind) = kind(i) else { return };
    let count = results(i, kind);
    let mut value = Value::default();
    match kind {
        Kind::Dot if releases(i, state, memory) => {}
        Kind::Load if i.root == "LDG" && memory.is_public(addressed(i, state).from) => {}
        Kind::Load | Kind::Atomic => value.secret = ALL,
        _ => {
            let read = sources(i, count);
            value.secret = secret_bytes(i, count, state);
            value.from = read.iter().fold(0, |from, cell| from | self::read(i, *cell, state).from);
            for (bank, offset) in i.operands.iter().skip(count).filter_map(|o| o.constant) {
                value.from |= memory.origin(bank, offset);
            }
            if matches!(i.name.as_str(), "MOV" | "UMOV" | "IMAD.MOV.U32") {
                value.places = match (i.target(), read.as_slice()) {
                    (Some(at), []) => Some(vec![at]),
                    (None, [cell]) => self::read(i, *cell, state).places,
                    _ => None,
                };
            }
        }
    }
    let guarded = guarded(i, state);
    if guarded {
        value.secret = ALL;
    }
    let wide = width(i);
    for operand in i.operands.iter().take(count) {
        for cell in operand.value.iter().filter(|cell| written(i, **cell)) {
            let is_predicate = predicate(*cell);
            for cell in (0..if is_predicate { 1 } else { wide }).map(|by| next(*cell, by)) {
                let mut value = value.clone();
                if is_predicate {
                    // A bit is not a pointer.
                    value = Value { secret: if value.is_secret() { ALL } else { 0 }, ..Value::default() };
                }
                match guard(i) {
                    Guard::Always => state.set(cell, value),
                    Guard::If(fact) if !guarded => state.set_under(cell, fact, value),
                    Guard::If(_) => state.set_perhaps(cell, value),
                    Guard::Never => {}
                }
            }
        }
    }
}

/// Whether the instruction writes this cell among those that it names: where all predicates are named, a mask selects them.
fn written(i: &Instruction, cell: Cell) -> bool {
    i.root != "R2P" || super::lint::masked(i, cell)
}
