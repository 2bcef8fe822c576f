//! All that is known of a program, function by function.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet, HashMap};

use iced_x86::{EncodingKind, InstructionInfoFactory, Register};

use crate::flow::{self, Callee, Exit, Function};
use crate::frame::{self, Frame, Keeps};
use crate::program::{Program, Target};
use crate::registers::{self, Registers};
use crate::slots::{self, Live, Slot};
use crate::text::Kind;

/// A function with its frame, its slots and its registers.
#[derive(Clone, Debug)]
pub struct Unit {
    /// Edges, calls and loops.
    pub function: Function,
    /// The accesses.
    pub frame: Frame,
    /// The cells.
    pub slots: Vec<Slot>,
    /// Which cells hold a wanted value where.
    pub live: Live,
    /// Which general registers are free where.
    pub registers: Registers,
    /// MMX, vector (as zmm) and mask registers that its own instructions name.
    pub named: BTreeSet<Register>,
    /// Whether any instruction is VEX- or EVEX-encoded.
    pub vex: bool,
    /// Whether any is an x87 instruction.
    pub x87: bool,
    /// The units that it calls, by number.
    pub callees: BTreeSet<usize>,
    /// Whether it calls, or jumps to, something that is not in this file.
    pub leaves: bool,
    /// Why nothing can be said of its slots.
    pub opaque: Option<Opaque>,
}

/// Why nothing can be said of a function's slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Opaque {
    /// An indirect jump at this instruction goes nobody knows where.
    Jump(usize),
    /// The stack pointer is not known at this instruction.
    StackPointer(usize),
    /// The stack pointer is not at this exit what it was at the entry.
    Unbalanced(usize),
    /// This instruction belongs to another function too.
    Shared(usize),
    /// It can call itself.
    Recursive,
    /// It is left here by a jump on a condition, or by one to a function that only this file calls: there is no place where its homes could
    /// be cleared.
    Tail(usize),
    /// The unwinder may go on from this call in a piece of code that no jump leads to: a handler of exceptions, or what cleans up.
    Landing(usize),
}

/// A program and all that is known of it.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// The program.
    pub program: Program,
    /// Its functions in the order of their entries.
    pub units: Vec<Unit>,
}

impl Analysis {
    /// Why nothing can be said of a function's slots, in words, with the line.
    #[must_use]
    pub fn told(&self, why: Opaque) -> String {
        let line = |op: usize| self.program.line(op);
        match why {
            Opaque::Jump(op) => format!("the jump in line {} goes nobody knows where", line(op)),
            Opaque::StackPointer(op) => format!("the stack pointer is not known in line {}", line(op)),
            Opaque::Unbalanced(op) => {
                format!("the stack pointer is not what it was at the exit in line {}", line(op))
            }
            Opaque::Shared(op) => format!("line {} belongs to another function too", line(op)),
            Opaque::Recursive => "it can call itself".to_owned(),
            Opaque::Tail(op) => {
                format!("it is left by the jump in line {}, where no home could be cleared", line(op))
            }
            Opaque::Landing(op) => format!(
                "what the call in line {} throws may go on in a handler of this function, to which no jump leads",
                line(op)
            ),
        }
    }

    /// Analyses every function of a program.
    #[must_use]
    pub fn new(program: Program) -> Analysis {
        let functions = flow::functions(&program);
        let by_entry: HashMap<usize, usize> =
            functions.iter().enumerate().map(|(n, f)| (f.entry, n)).collect();
        let mut owners: HashMap<usize, usize> = HashMap::new();
        functions.iter().flat_map(|f| &f.body).for_each(|&op| *owners.entry(op).or_default() += 1);
        let local: BTreeSet<usize> = functions.iter().filter(|f| !f.global).map(|f| f.entry).collect();
        let landing = landing(&program);
        let frames = frames(&program, &functions, &by_entry);
        let mut units: Vec<Unit> = functions
            .into_iter()
            .zip(frames)
            .map(|(function, frame)| unit(&program, function, frame, &by_entry, &owners, &local, &landing))
            .collect();
        let recursive: Vec<usize> = (0..units.len()).filter(|&n| reach(&units, n).contains(&n)).collect();
        for n in recursive {
            units[n].opaque.get_or_insert(Opaque::Recursive);
        }
        Analysis { program, units }
    }

    /// The units that a unit calls, directly or not.
    #[must_use]
    pub fn below(&self, unit: usize) -> BTreeSet<usize> {
        reach(&self.units, unit)
    }

    /// A number that follows from what a unit and all that it calls are, wherever they lie in their file: names, instructions, where
    /// branches go inside. A function of the same name with other instructions has another one. Fowler, Noll and Vo's FNV-1a; it tells
    /// mix-ups, not forgeries.
    #[must_use]
    pub fn fingerprint(&self, unit: usize) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        let mut add = |said: &str| {
            for byte in said.bytes().chain([0]) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        };
        for n in core::iter::once(unit).chain(self.below(unit).into_iter().filter(|&n| n != unit)) {
            let unit = &self.units[n];
            add(unit.function.name());
            let place: HashMap<usize, usize> =
                unit.function.body.iter().enumerate().map(|(place, &op)| (op, place)).collect();
            for &op in &unit.function.body {
                let said: Vec<&str> = self.program.said(op).split_whitespace().collect();
                match (&self.program.ops[op].target, said.first()) {
                    // Labels are numbered anew with every line that is added to a file.
                    (Some(Target::Op(to)), Some(name)) if place.contains_key(to) => {
                        add(name);
                        add(&place[to].to_string());
                    }
                    _ => add(&said.join(" ")),
                }
            }
        }
        hash
    }

    /// Every unit after those that it calls.
    #[must_use]
    pub fn callees_first(&self) -> Vec<usize> {
        let mut out: Vec<usize> = (0..self.units.len()).collect();
        // Whoever calls another reaches more than that one does, unless both are in a cycle, where the order does not matter.
        out.sort_by_key(|&n| (self.below(n).len(), n));
        out
    }
}

fn reach(units: &[Unit], from: usize) -> BTreeSet<usize> {
    let mut out = BTreeSet::new();
    let mut todo: Vec<usize> = units[from].callees.iter().copied().collect();
    while let Some(n) = todo.pop() {
        if out.insert(n) {
            todo.extend(&units[n].callees);
        }
    }
    out
}

/// The first instructions behind directives that give the unwinder a table of places to go on at.
fn landing(program: &Program) -> BTreeSet<usize> {
    let statements = program.text.statements().iter().enumerate();
    let tables = statements.filter(|(i, statement)| {
        let said = program.text.of(*i);
        // 0xff says that there is none.
        statement.kind == Kind::Directive
            && said.strip_prefix(".cfi_lsda").is_some_and(|what| !what.trim_start().starts_with("0xff"))
    });
    tables.map(|(i, _)| program.ops.partition_point(|op| op.statement < i)).collect()
}

/// The frames of all functions, callees before their callers, so that it is known what they keep.
fn frames(program: &Program, functions: &[Function], by_entry: &HashMap<usize, usize>) -> Vec<Frame> {
    let callees = |n: usize| {
        functions[n].calls.values().filter_map(|call| match &call.callee {
            Callee::Local(entry) => by_entry.get(entry).copied(),
            _ => None,
        })
    };
    let mut frames: Vec<Option<Frame>> = functions.iter().map(|_| None).collect();
    let mut keeps = Keeps::new();
    let mut begun: BTreeSet<usize> = BTreeSet::new();
    let mut todo: Vec<usize> = (0..functions.len()).rev().collect();
    while let Some(&n) = todo.last() {
        // Those in a cycle are met again when their callees have begun.
        let before = todo.len();
        if begun.insert(n) {
            todo.extend(callees(n).filter(|callee| !begun.contains(callee)));
        }
        if todo.len() == before {
            todo.pop();
            if frames[n].is_none() {
                let frame = frame::frame(program, &functions[n], &keeps);
                keeps.insert(functions[n].entry, frame::keeps(&functions[n], &frame));
                frames[n] = Some(frame);
            }
        }
    }
    frames.into_iter().flatten().collect()
}

fn unit(
    program: &Program,
    function: Function,
    frame: Frame,
    by_entry: &HashMap<usize, usize>,
    owners: &HashMap<usize, usize>,
    local: &BTreeSet<usize>,
    landing: &BTreeSet<usize>,
) -> Unit {
    let slots = slots::slots(program, &function, &frame);
    let live = slots::live(&function, &slots);
    let registers = registers::registers(program, &function);
    let mut info = InstructionInfoFactory::new();
    let mut named = BTreeSet::new();
    let (mut vex, mut x87) = (false, false);
    for &i in &function.body {
        let instruction = &program.ops[i].instruction;
        vex |= !matches!(instruction.code().encoding(), EncodingKind::Legacy);
        x87 |= instruction.fpu_stack_increment_info().increment() != 0
            || info.info(instruction).used_registers().iter().any(|used| used.register().is_st());
        for used in info.info(instruction).used_registers() {
            let register = used.register();
            if register.is_vector_register() {
                named.insert(register.full_register());
            } else if register.is_mm() || register.is_k() {
                named.insert(register);
            }
        }
    }
    let (mut callees, mut leaves) = (BTreeSet::new(), false);
    let tails = function
        .exits
        .values()
        .filter_map(|exit| if let Exit::Tail(callee) = exit { Some(callee) } else { None });
    for callee in function.calls.values().map(|call| &call.callee).chain(tails) {
        match callee {
            Callee::Local(entry) => callees.extend(by_entry.get(entry)),
            Callee::External(_) | Callee::Unknown => leaves = true,
        }
    }
    let tail = function.exits.iter().find(|&(op, exit)| match exit {
        Exit::Tail(callee) => {
            !function.next[op].is_empty() || matches!(callee, Callee::Local(entry) if local.contains(entry))
        }
        _ => false,
    });
    let opaque = function
        .astray
        .first()
        .map(|&op| Opaque::Jump(op))
        .or(frame.lost.first().map(|&op| Opaque::StackPointer(op)))
        .or(frame.unbalanced.first().map(|&op| Opaque::Unbalanced(op)))
        .or(function.body.iter().find(|op| owners[op] > 1).map(|&op| Opaque::Shared(op)))
        .or(tail.map(|(&op, _)| Opaque::Tail(op)))
        .or(function
            .calls
            .keys()
            .next()
            .filter(|_| function.body.iter().any(|op| landing.contains(op)))
            .map(|&op| Opaque::Landing(op)));
    Unit { function, frame, slots, live, registers, named, vex, x87, callees, leaves, opaque }
}

/// The calls of a unit to what this file does not hold.
#[must_use]
pub fn unknown_calls(unit: &Unit) -> BTreeMap<usize, &Callee> {
    unit.function
        .calls
        .iter()
        .filter(|(_, call)| !matches!(call.callee, Callee::Local(_)))
        .map(|(&op, call)| (op, &call.callee))
        .collect()
}
