//! Faults around MMX that only a caller notices.
//!
//! The eight MMX registers are the x87 registers under other names, and any MMX instruction marks all eight as full. Until `emms`, the
//! next x87 load finds no room and gives NaN: a caller's `long double` is lost, far from the code at fault. The rules (System V ABI for
//! x86-64, 3.2.1 and 3.2.3): the x87 registers are empty at calls and returns unless they carry a result.
#![forbid(unsafe_code)]

use core::fmt;
use std::collections::{BTreeSet, HashMap, VecDeque};

use iced_x86::{InstructionInfoFactory, Mnemonic, Register};

use crate::analysis::{Analysis, Opaque, Unit};
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
    meets: Meets,
}

/// What a function meets while MMX is in use since before its entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Meets {
    outside: bool,
    float: bool,
}

impl Meets {
    fn or(self, other: Meets) -> Meets {
        Meets { outside: self.outside || other.outside, float: self.float || other.float }
    }
}

/// In use since before the entry.
const BEFORE: usize = usize::MAX;

struct Walk<'a> {
    analysis: &'a Analysis,
    info: InstructionInfoFactory,
    effects: HashMap<usize, Effect>,
    /// The units by their entries.
    units: HashMap<usize, usize>,
    /// What the function that is followed meets.
    meets: Meets,
    found: BTreeSet<(Fault, usize, usize, usize)>,
}

/// The functions, by number, that [`lint`] cannot follow to their ends, and why: it says nothing of what they do.
#[must_use]
pub fn not_checked(analysis: &Analysis) -> Vec<(usize, Opaque)> {
    let units = analysis.units.iter().enumerate();
    let lost = units.filter_map(|(n, unit)| Some((n, unit.opaque?)));
    // What an unwinder reads of a frame changes no path.
    lost.filter(|(_, why)| !matches!(why, Opaque::Unwinding(_))).collect()
}

/// Finds the faults in every function of a program. Of those in [`not_checked`] it sees a part.
#[must_use]
pub fn lint(analysis: &Analysis) -> Vec<Finding> {
    let mut walk = Walk {
        analysis,
        info: InstructionInfoFactory::new(),
        effects: HashMap::new(),
        units: analysis.units.iter().enumerate().map(|(n, unit)| (unit.function.entry, n)).collect(),
        meets: Meets::default(),
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
                    meets: known.meets.or(now.meets),
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
        self.meets = Meets::default();
        let used = self.unit(n, State { mmx: Some(BEFORE), x87: None }, false);
        let meets = self.meets;
        Effect { from_free: free.mmx, keeps: used.mmx == Some(BEFORE), touches: touches.or(below), meets }
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
                // The target of a jump counts as entered from outside.
                let away = matches!(exit, Exit::Tail(_));
                match state.mmx {
                    Some(BEFORE) => self.meets.outside |= away,
                    Some(since) if outermost || away => {
                        self.found.insert((Fault::Left, n, op, since));
                    }
                    _ => (),
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

    /// An instruction, or a function that it calls, meets code outside or x87 where MMX may be in use.
    fn meet(&mut self, n: usize, op: usize, mmx: Option<usize>, what: Meets) {
        match mmx {
            Some(BEFORE) => self.meets = self.meets.or(what),
            Some(since) => {
                let all = [(what.outside, Fault::Called), (what.float, Fault::Float)];
                let met = all.into_iter().filter(|(met, _)| *met);
                self.found.extend(met.map(|(_, fault)| (fault, n, op, since)));
            }
            None => (),
        }
    }

    fn step(&mut self, n: usize, op: usize, state: &mut State) {
        let analysis = self.analysis;
        let i = analysis.program.ops[op].instruction;
        if let Some(call) = analysis.units[n].function.calls.get(&op) {
            match call.callee {
                Callee::Local(entry) => {
                    let callee = self.units.get(&entry);
                    let effect = callee.and_then(|c| self.effects.get(c)).copied().unwrap_or_default();
                    if let (Some((since, _)), Some(_)) = (state.x87, effect.touches) {
                        self.found.insert((Fault::LiveFloat, n, op, since));
                    }
                    self.meet(n, op, state.mmx, effect.meets);
                    state.mmx = state.mmx.filter(|_| effect.keeps).or(effect.from_free);
                }
                Callee::External(_) | Callee::Unknown => {
                    self.meet(n, op, state.mmx, Meets { outside: true, float: false });
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
                self.meet(n, op, state.mmx, Meets { outside: false, float: true });
                let by = -i.fpu_stack_increment_info().increment();
                let depth = (i32::from(state.x87.map_or(0, |(_, depth)| depth)) + by).clamp(0, 8) as u8;
                let since = if by > 0 { op } else { state.x87.map_or(op, |(since, _)| since) };
                state.x87 = (depth > 0).then_some((since, depth));
            }
            _ => (),
        }
    }
}
