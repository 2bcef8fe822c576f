//! Faults around MMX that only a caller notices.
//!
//! The eight MMX registers are the x87 registers under other names, and any MMX instruction marks all eight as full. Until `emms` the
//! next x87 load finds no room and gives no number: a caller's `long double` becomes NaN, far from the code at fault. The rules (System V
//! ABI for x86-64, 3.2.1 and 3.2.3): the x87 registers are empty at calls and returns unless they carry a result.
#![forbid(unsafe_code)]

use core::fmt;
use std::collections::{BTreeSet, HashMap, VecDeque};

use iced_x86::{InstructionInfoFactory, Mnemonic, Register};

use crate::analysis::{Analysis, Unit};
use crate::flow::{Callee, Exit};
use crate::validate::reason::Place;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod evidence;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// The function is left while MMX is in use.
    Left,
    /// Unknown code is called while MMX is in use.
    Called,
    /// An x87 instruction while MMX is in use.
    Float,
    /// An MMX instruction, or a call to code with some, while x87 registers hold values.
    LiveFloat,
}

impl Fault {
    /// A short name, for tables and tests.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Fault::Left => "left-without-emms",
            Fault::Called => "call-without-emms",
            Fault::Float => "x87-while-mmx",
            Fault::LiveFloat => "mmx-while-x87",
        }
    }
}

/// A fault and where it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// What is wrong.
    pub fault: Fault,
    /// The function.
    pub function: String,
    /// The function's number, as the analysis counts.
    pub unit: usize,
    /// The instruction where it shows: the return, the jump, the call, the x87 instruction.
    pub at: Place,
    /// The cause: the last instruction that used MMX, or x87.
    pub since: Place,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { function, at, since, .. } = self;
        match self.fault {
            Fault::Left => write!(f, "{function}: {at}: left without emms; MMX is in use since {since}"),
            Fault::Called => {
                write!(
                    f,
                    "{function}: {at}: unknown code is called without emms; MMX is in use since {since}"
                )
            }
            Fault::Float => write!(f, "{function}: {at}: x87 without emms; MMX is in use since {since}"),
            Fault::LiveFloat => {
                write!(f, "{function}: {at}: MMX while x87 registers hold values since {since}")
            }
        }
    }
}

/// The possible state before an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct State {
    /// The last instruction that may have marked the registers full.
    mmx: Option<usize>,
    /// The last x87 load that may still have its value on the stack, and how many there are.
    x87: Option<(usize, u8)>,
}

impl State {
    fn join(self, other: State) -> State {
        let deeper = |a: Option<(usize, u8)>, b: Option<(usize, u8)>| match (a, b) {
            (Some(a), Some(b)) => Some(if a.1 >= b.1 { a } else { b }),
            (a, b) => a.or(b),
        };
        State { mmx: self.mmx.or(other.mmx), x87: deeper(self.x87, other.x87) }
    }
}

/// A function's effect on MMX: the instruction that leaves it in use, if it was free and if it was in use before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Effect {
    from_free: Option<usize>,
    keeps: bool,
    touches: Option<usize>,
}

struct Walk<'a> {
    analysis: &'a Analysis,
    info: InstructionInfoFactory,
    effects: HashMap<usize, Effect>,
    found: BTreeSet<(Fault, usize, usize, usize)>,
}

/// Finds the faults in every function of a program.
#[must_use]
pub fn lint(analysis: &Analysis) -> Vec<Finding> {
    let mut walk = Walk {
        analysis,
        info: InstructionInfoFactory::new(),
        effects: HashMap::new(),
        found: BTreeSet::new(),
    };
    // Functions that call each other are followed until nothing is new.
    let order = analysis.callees_first();
    for cycle in order.chunk_by(|&a, &b| analysis.units[a].cycle == analysis.units[b].cycle) {
        loop {
            let mut changed = false;
            for &n in cycle {
                let (known, now) = (walk.effects.get(&n).copied().unwrap_or_default(), walk.effect(n));
                let effect = Effect {
                    from_free: known.from_free.or(now.from_free),
                    keeps: known.keeps || now.keeps,
                    touches: known.touches.or(now.touches),
                };
                changed |= effect != known;
                walk.effects.insert(n, effect);
            }
            if !changed {
                break;
            }
        }
    }
    walk.found.clear();
    for (n, unit) in analysis.units.iter().enumerate() {
        // Functions that only this file calls are checked at their calls, and here by themselves.
        let outermost = unit.entered;
        walk.unit(n, State::default(), outermost);
    }
    let program = &analysis.program;
    let mut out: Vec<Finding> = walk
        .found
        .iter()
        .map(|&(fault, unit, at, since)| Finding {
            fault,
            function: analysis.units[unit].function.name().to_owned(),
            unit,
            at: Place::of(program, at),
            since: Place::of(program, since),
        })
        .collect();
    out.sort_by_key(|finding| (finding.at.line, finding.fault));
    // After the first floating-point instruction with MMX in use, further ones only follow from it.
    let mut told = BTreeSet::new();
    out.retain(|finding| finding.fault != Fault::Float || told.insert((finding.unit, finding.since.clone())));
    out
}

impl Walk<'_> {
    fn effect(&mut self, n: usize) -> Effect {
        let body = &self.analysis.units[n].function.body;
        let mut touches = None;
        for &op in body {
            if self.uses_mmx(op) {
                touches = Some(op);
            }
        }
        let callees = &self.analysis.units[n].callees;
        let below = callees.iter().find_map(|c| self.effects.get(c).and_then(|e| e.touches));
        let free = self.unit(n, State::default(), false);
        let used = self.unit(n, State { mmx: Some(usize::MAX), x87: None }, false);
        Effect { from_free: free.mmx, keeps: used.mmx == Some(usize::MAX), touches: touches.or(below) }
    }

    fn uses_mmx(&mut self, op: usize) -> bool {
        let i = self.analysis.program.ops[op].instruction;
        if matches!(i.mnemonic(), Mnemonic::Emms | Mnemonic::Femms) {
            return false;
        }
        self.info.info(&i).used_registers().iter().any(|used| used.register().is_mm())
    }

    fn uses_x87(&mut self, op: usize) -> bool {
        let i = self.analysis.program.ops[op].instruction;
        let free = matches!(
            i.mnemonic(),
            Mnemonic::Fldcw | Mnemonic::Fnstcw | Mnemonic::Fnstsw | Mnemonic::Fnstenv | Mnemonic::Fnclex
        );
        !free
            && (i.fpu_stack_increment_info().increment() != 0
                || self
                    .info
                    .info(&i)
                    .used_registers()
                    .iter()
                    .any(|used| (Register::ST0..=Register::ST7).contains(&used.register())))
    }

    /// Follows a unit; returns the possible state at its exits. Findings are recorded, those at its exits only for
    /// unknown callers.
    fn unit(&mut self, n: usize, entry: State, outermost: bool) -> State {
        let analysis = self.analysis;
        let unit: &Unit = &analysis.units[n];
        let function = &unit.function;
        let mut before: HashMap<usize, State> = HashMap::from([(function.entry, entry)]);
        let mut todo = VecDeque::from([function.entry]);
        let mut left = State::default();
        while let Some(op) = todo.pop_front() {
            let mut state = before[&op];
            self.step(n, op, &mut state);
            if let Some(exit) = function.exits.get(&op)
                && *exit != Exit::Stop
            {
                left = left.join(state);
                let away = matches!(exit, Exit::Tail(Callee::External(_) | Callee::Unknown));
                if let Some(since) = state.mmx.filter(|&since| since != usize::MAX)
                    && (outermost || away)
                {
                    self.found.insert((Fault::Left, n, op, since));
                }
            }
            for &next in &function.next[&op] {
                let joined = before.get(&next).map_or(state, |known| known.join(state));
                if before.get(&next) != Some(&joined) {
                    before.insert(next, joined);
                    if !todo.contains(&next) {
                        todo.push_back(next);
                    }
                }
            }
        }
        left
    }

    fn step(&mut self, n: usize, op: usize, state: &mut State) {
        let analysis = self.analysis;
        let i = analysis.program.ops[op].instruction;
        let real = |since: Option<usize>| since.filter(|&since| since != usize::MAX);
        if let Some(call) = analysis.units[n].function.calls.get(&op) {
            match call.callee {
                Callee::Local(entry) => {
                    let callee = analysis.units.iter().position(|u| u.function.entry == entry);
                    let effect = callee.and_then(|c| self.effects.get(&c)).copied().unwrap_or_default();
                    if let (Some((since, _)), Some(_)) = (state.x87, effect.touches) {
                        self.found.insert((Fault::LiveFloat, n, op, since));
                    }
                    state.mmx = state.mmx.filter(|_| effect.keeps).or(effect.from_free);
                }
                Callee::External(_) | Callee::Unknown => {
                    if let Some(since) = real(state.mmx) {
                        self.found.insert((Fault::Called, n, op, since));
                    }
                }
            }
            return;
        }
        match i.mnemonic() {
            Mnemonic::Emms | Mnemonic::Femms => *state = State::default(),
            Mnemonic::Fninit | Mnemonic::Finit | Mnemonic::Fnsave | Mnemonic::Fxrstor | Mnemonic::Xrstor => {
                *state = State::default();
            }
            _ if self.uses_mmx(op) => {
                if let Some((since, _)) = state.x87 {
                    self.found.insert((Fault::LiveFloat, n, op, since));
                }
                *state = State { mmx: Some(op), x87: None };
            }
            _ if self.uses_x87(op) => {
                if let Some(since) = real(state.mmx) {
                    self.found.insert((Fault::Float, n, op, since));
                }
                let by = -i.fpu_stack_increment_info().increment();
                let depth = (i32::from(state.x87.map_or(0, |(_, depth)| depth)) + by).clamp(0, 8) as u8;
                let since = if by > 0 { op } else { state.x87.map_or(op, |(since, _)| since) };
                state.x87 = (depth > 0).then_some((since, depth));
            }
            _ => (),
        }
    }
}
