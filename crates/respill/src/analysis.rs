//! The analysis of a program, function by function.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet, HashMap};

use iced_x86::{EncodingKind, InstructionInfoFactory, Register};

use crate::bounds;
use crate::flow::{self, Callee, Exit, Function};
use crate::frame::{self, CALLEE_SAVED, Frame, Outlines, Value};
use crate::homes::{Bank, Home};
use crate::modelled::{is_modelled, is_x87, saves_all};
use crate::outlines::{self, Framed};
use crate::outside;
use crate::places::{self, Hidden};
use crate::program::{Gap, Op, Program, Target};
use crate::registers::{self, Registers};
use crate::slots::{self, Class, Live, Slot};
use crate::tables;
use crate::unwinding;
use crate::well_known;

/// A function with its frame, its slots and its registers.
#[derive(Clone, Debug)]
pub struct Unit {
    /// Edges, calls and loops.
    pub function: Function,
    /// The accesses.
    pub frame: Frame,
    /// The cells.
    pub slots: Vec<Slot>,
    /// Which cells hold a live value where.
    pub live: Live,
    /// Which general registers are free where.
    pub registers: Registers,
    /// MMX, vector (as zmm) and mask registers that its own instructions use, each with the first that does.
    pub uses: BTreeMap<Register, usize>,
    /// Whether any instruction is VEX- or EVEX-encoded.
    pub vex: bool,
    /// Its first x87 instruction.
    pub x87: Option<usize>,
    /// The units that it calls, by number.
    pub callees: BTreeSet<usize>,
    /// Its first call of, or jump to, outside or unknown code that may return.
    pub leaves: Option<usize>,
    /// The first of these that may return a value in st(0).
    pub float_leaves: Option<usize>,
    /// Whether it calls or jumps through a pointer: then it may call any function that can be entered from outside.
    pub indirect: bool,
    /// Whether callers outside the text can call it, or it returns to the caller of a function that jumps to it: it is
    /// exported, its address is taken, a jump leads to it, or nothing in this file calls it.
    pub entered: bool,
    /// The first place, as (unit, instruction), where it or a callee leaves this file.
    pub outward: Option<(usize, usize)>,
    /// The same for code that may return a value in st(0).
    pub float_outward: Option<(usize, usize)>,
    /// Why its slots cannot be analysed.
    pub opaque: Option<Opaque>,
    /// The number of its cycle of calls. Functions that can call each other share a number; other callees have lower ones.
    pub cycle: usize,
}

/// Why a function's slots cannot be analysed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Opaque {
    /// The indirect jump at this instruction has unknown targets.
    Jump(usize),
    /// The stack pointer is not known at this instruction.
    StackPointer(usize),
    /// The stack pointer at this exit differs from the entry's.
    Unbalanced(usize),
    /// The unwinder may continue from this call in code to which no jump leads: an exception handler or cleanup.
    Landing(usize),
    /// During this call the unwinder may evaluate a `.cfi_escape`, whose expression may read the frame.
    Unwinding(usize),
    /// This instruction touches the function's return address.
    ReturnAddress(usize),
    /// This call goes to a function of the file that cannot be followed, or that may return more than once.
    Calls(usize),
    /// The bytes after this instruction are not an instruction.
    Bytes(usize),
    /// The assembler or the decoder does not know this instruction. It is in the function, or names a place there and may go to it.
    Unknown(usize),
    /// This instruction may be entered otherwise than at its beginning, or from bytes that are not decoded: by a symbol, a jump or an address.
    Entered(usize),
    /// The statement in this line of the text makes an address by counting bytes of code, which may lead into any instruction.
    Counted(usize),
    /// The program is too large to be followed: its functions share too many instructions, or have too many cells and jumps.
    Large,
    /// Not all that this instruction does is known: it is one of the system, of enclaves, of virtual machines or of transactions.
    Effect(usize),
}

/// A program and its analysis.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// The program.
    pub program: Program,
    /// Its functions in the order of their entries.
    pub units: Vec<Unit>,
    /// Instructions that belong to more than one function.
    pub shared: BTreeSet<usize>,
    /// Registers used by code to which no jump of this file leads, each with the first instruction that uses it.
    pub stray: Uses,
    /// Jumps through a table whose index the analysis does not bound: a rewrite of the file needs the assumption `tables`.
    pub unbounded: Vec<usize>,
    /// Functions that a pointer may lead to and that the analysis does not show to keep to the ABI, if the file calls or jumps through a
    /// pointer: a rewrite of the file needs the assumption `abi`.
    pub unkept: Vec<usize>,
}

/// The home registers (vectors as zmm) that some instructions use and their first x87 instruction.
#[derive(Clone, Debug, Default)]
pub struct Uses {
    /// Each register with the first instruction that uses it.
    pub registers: BTreeMap<Register, usize>,
    /// The first x87 instruction.
    pub x87: Option<usize>,
}

impl Uses {
    fn of(program: &Program, ops: impl Iterator<Item = usize>) -> Uses {
        let mut info = InstructionInfoFactory::new();
        let mut out = Uses::default();
        for op in ops {
            let instruction = &program.ops[op].instruction;
            let used = info.info(instruction).used_registers();
            if is_x87(instruction) {
                out.x87.get_or_insert(op);
            }
            for register in used.iter().map(|used| used.register()) {
                if register.is_vector_register() {
                    out.registers.entry(register.full_register()).or_insert(op);
                } else if register.is_mm() || register.is_k() {
                    out.registers.entry(register).or_insert(op);
                }
            }
            let unknown = undecoded(program, op) || !is_modelled(instruction);
            if unknown {
                out.x87.get_or_insert(op);
            }
            if unknown || saves_all(instruction.mnemonic()) {
                let homes = Bank::ALL.into_iter().flat_map(Bank::homes);
                for register in homes.flat_map(Home::registers) {
                    out.registers.entry(register).or_insert(op);
                }
            }
        }
        out
    }
}

impl Analysis {
    /// Why a function's slots cannot be analysed, in words, with the line.
    #[must_use]
    pub fn told(&self, why: Opaque) -> String {
        let line = |op: usize| self.program.line(op);
        match why {
            Opaque::Jump(op) => format!("the target of the jump in line {} is unknown", line(op)),
            Opaque::StackPointer(op) => format!("the stack pointer is not known in line {}", line(op)),
            Opaque::Unbalanced(op) => {
                format!("at the exit in line {} the stack pointer differs from its value at entry", line(op))
            }
            Opaque::ReturnAddress(op) => format!("line {} touches the return address", line(op)),
            Opaque::Calls(op) => {
                format!("the callee in line {} cannot be followed, or may return twice", line(op))
            }
            Opaque::Unknown(op) => format!("the instruction in line {} is unknown", line(op)),
            Opaque::Entered(op) => {
                format!("the instruction in line {} may be entered in its middle", line(op))
            }
            Opaque::Counted(line) => format!("line {line} makes an address by counting bytes of code"),
            Opaque::Large => {
                "its file has too many shared instructions, cells or jumps to be followed".to_owned()
            }
            Opaque::Effect(op) => format!("not all that the instruction in line {} does is known", line(op)),
            Opaque::Bytes(op) => format!("the bytes after line {} are not an instruction", line(op)),
            Opaque::Unwinding(op) => {
                format!(
                    "the unwinder may read the frame by a .cfi_escape during the call in line {}",
                    line(op)
                )
            }
            Opaque::Landing(op) => format!(
                "an exception that the call in line {} throws may continue in a handler of this function, to which no jump leads",
                line(op)
            ),
        }
    }

    /// Analyses every function of a program.
    #[must_use]
    pub fn new(program: Program) -> Analysis {
        let landing = unwinding::landing(&program);
        let (functions, Framed { frames, cycles, outlines }, large) = match parted(&program, &landing) {
            Some((functions, framed)) => (functions, framed, false),
            None => {
                let mut functions = flow::not_followed(&program);
                let by_entry = functions.iter().enumerate().map(|(n, f)| (f.entry, n)).collect();
                let framed = outlines::framed(&program, &mut functions, &by_entry).unwrap_or_default();
                (functions, framed, true)
            }
        };
        let tables = landing.into_iter().filter(|(_, pads)| pads.is_none()).map(|(op, _)| op);
        let described = unwinding::frames(&program);
        let mut unwinding: BTreeMap<usize, fn(usize) -> Opaque> =
            described.escapes.iter().map(|&op| (op, Opaque::Unwinding as _)).collect();
        unwinding.extend(tables.map(|op| (op, Opaque::Landing as _)));
        let labels = tables::tables(&program);
        let unbounded = functions.iter().zip(&frames);
        let unbounded =
            unbounded.flat_map(|(f, (frame, _))| bounds::unbounded(&program, f, frame, &outlines, &labels));
        let unbounded = unbounded.collect();
        let by_entry: HashMap<usize, usize> =
            functions.iter().enumerate().map(|(n, f)| (f.entry, n)).collect();
        let mut owners: HashMap<usize, usize> = HashMap::new();
        functions.iter().flat_map(|f| &f.body).for_each(|&op| *owners.entry(op).or_default() += 1);
        let unknown = unknown(&program);
        let hidden = places::hidden_entries(&program);
        let mut units: Vec<Unit> = functions
            .into_iter()
            .zip(frames)
            .zip(cycles)
            .map(|((function, (frame, slots)), cycle)| {
                unit(&program, function, frame, slots, cycle, &by_entry, &unwinding, &unknown, &hidden)
            })
            .collect();
        for Unit { function, frame, slots, .. } in &mut units {
            for slot in slots.iter_mut().filter(|slot| described.keep(function, frame, slot)) {
                slot.class = Class::CalleeSave;
            }
        }
        if large {
            units.iter_mut().for_each(|unit| unit.opaque = Some(Opaque::Large));
        }
        into_others(&mut units);
        astray(&mut units, &by_entry);
        enter(&program, &mut units, &owners);
        let pointed = pointed(&program, &units);
        left(&mut units, &by_entry, &outlines, &pointed);
        handed(&mut units, &by_entry);
        let [any, float] = [outward(&units, |unit| unit.leaves), outward(&units, |unit| unit.float_leaves)];
        for ((unit, any), float) in units.iter_mut().zip(any).zip(float) {
            (unit.outward, unit.float_outward) = (any, float);
        }
        let unkept = if units.iter().any(|unit| unit.indirect) {
            pointed.into_iter().filter(|&n| !keeps_to_abi(&units[n], &outlines)).collect()
        } else {
            Vec::new()
        };
        let stray = Uses::of(&program, (0..program.ops.len()).filter(|op| !owners.contains_key(op)));
        let shared = owners.into_iter().filter(|&(_, owners)| owners > 1).map(|(op, _)| op).collect();
        Analysis { program, units, stray, shared, unbounded, unkept }
    }

    /// The unit that begins at an instruction.
    #[must_use]
    pub fn at(&self, entry: usize) -> Option<usize> {
        self.units.iter().position(|unit| unit.function.entry == entry)
    }

    /// The units that a unit calls, directly or not.
    #[must_use]
    pub fn below(&self, unit: usize) -> BTreeSet<usize> {
        reach(&self.units, unit)
    }

    /// A hash of a unit and all that it calls, independent of their place in the file: names, instructions, targets of
    /// inner branches. A function of the same name with other instructions has a different hash. Fowler, Noll and Vo's
    /// FNV-1a: it finds mix-ups, not forgeries.
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
                    // Labels are renumbered with every line that is added to a file.
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

    /// Every unit after those that it calls, except for those in a cycle, which are adjacent.
    #[must_use]
    pub fn callees_first(&self) -> Vec<usize> {
        callees_first(&self.units)
    }
}

fn callees_first(units: &[Unit]) -> Vec<usize> {
    let mut out: Vec<usize> = (0..units.len()).collect();
    out.sort_by_key(|&n| (units[n].cycle, n));
    out
}

fn reach(units: &[Unit], from: usize) -> BTreeSet<usize> {
    closure(units, units[from].callees.iter().copied())
}

/// Some units and all that they call, directly or not.
fn closure(units: &[Unit], from: impl Iterator<Item = usize>) -> BTreeSet<usize> {
    let mut out = BTreeSet::new();
    let mut todo: Vec<usize> = from.collect();
    while let Some(n) = todo.pop() {
        if out.insert(n) {
            todo.extend(&units[n].callees);
        }
    }
    out
}

/// For each unit, its own instruction of some kind, else that of the first unit below it that has one.
fn outward(units: &[Unit], of: impl Fn(&Unit) -> Option<usize>) -> Vec<Option<(usize, usize)>> {
    let mut least: Vec<Option<usize>> = vec![None; units.len()];
    for cycle in callees_first(units).chunk_by(|&a, &b| units[a].cycle == units[b].cycle) {
        let own = cycle.iter().copied().filter(|&n| of(&units[n]).is_some());
        let below = cycle.iter().flat_map(|&n| &units[n].callees).filter_map(|&n| least[n]);
        let first = own.chain(below).min();
        cycle.iter().for_each(|&n| least[n] = first);
    }
    let first = |(n, unit): (usize, &Unit)| {
        of(unit).map(|op| (n, op)).or_else(|| least[n].and_then(|n| Some((n, of(&units[n])?))))
    };
    units.iter().enumerate().map(first).collect()
}

/// Unknown instructions, and those at labels that they name, each with the unknown instruction.
fn unknown(program: &Program) -> BTreeMap<usize, usize> {
    let mut out = BTreeMap::new();
    let by_name = places::by_name(program);
    for (op, Op { instruction, .. }) in program.ops.iter().enumerate() {
        if instruction.is_invalid() {
            out.insert(op, op);
            for named in places::named_in(&by_name, program.said(op)) {
                out.entry(named).or_insert(op);
            }
        }
    }
    out
}

/// The functions that a call through a pointer may reach.
fn pointed(program: &Program, units: &[Unit]) -> BTreeSet<usize> {
    let taken = places::taken(program).ops;
    let is = |unit: &Unit| {
        unit.function.global || taken.contains(&unit.function.entry) || !unit.function.doors.is_empty()
    };
    (0..units.len()).filter(|&n| is(&units[n])).collect()
}

/// Whether a function is known to keep what the ABI asks of it: it keeps registers and the stack pointer, uses no register that has no
/// value by the ABI, and touches no frame but its own.
fn keeps_to_abi(unit: &Unit, outlines: &Outlines) -> bool {
    let Some(outline) = outlines.get(&unit.function.entry) else { return false };
    unit.opaque.is_none()
        && CALLEE_SAVED.iter().all(|register| outline.keeps.contains(register))
        && outline.demands.is_empty()
        && outline.leaves.is_empty()
        && outline.reach.is_empty()
        && !(outline.wild || outline.below)
}

/// Suspects the exits of functions whose frame a caller reads afterwards, itself or through another callee: a cell below the caller's
/// stack pointer that it has not written since.
fn left(
    units: &mut [Unit],
    by_entry: &HashMap<usize, usize>,
    outlines: &Outlines,
    pointed: &BTreeSet<usize>,
) {
    let mut read: BTreeSet<usize> = BTreeSet::new();
    let below = |callee: &Callee| match callee {
        Callee::Local(entry) => outlines.get(entry).is_none_or(|outline| outline.below),
        _ => false,
    };
    for unit in units.iter() {
        let another = below(&Callee::Local(unit.function.entry))
            || unit.function.callees().any(|(_, callee)| below(callee));
        for (op, call) in &unit.function.calls {
            let Some(state) = unit.frame.before.get(op) else { continue };
            let below = |slot: &Slot| match state.of(Register::RSP) {
                Value::Stack(top) => slots::below(&unit.frame, slot, top),
                _ => true,
            };
            let wanted = unit.live.after.get(op).into_iter().flatten();
            let another = another && matches!(call.callee, Callee::Local(_));
            if another || wanted.into_iter().any(|&s| below(&unit.slots[s])) {
                match &call.callee {
                    Callee::Local(entry) => read.extend(by_entry.get(entry)),
                    Callee::Unknown => read.extend(pointed),
                    Callee::External(_) => (),
                }
            }
        }
    }
    let all = |read: &BTreeSet<usize>| closure(units, read.iter().copied());
    let mut above = all(&read);
    if above.iter().any(|&n| units[n].indirect) {
        above.extend(all(pointed));
    }
    for n in above {
        let exits: Vec<usize> = units[n].function.exits.keys().copied().collect();
        for slot in &mut units[n].slots {
            exits.iter().for_each(|&op| slots::suspect(slot, op));
        }
    }
}

/// Suspects accesses through pointers that came from outside, where these may reach below the function's caller.
fn handed(units: &mut [Unit], by_entry: &HashMap<usize, usize>) {
    let below = outside::below(units, by_entry);
    for (unit, below) in units.iter_mut().zip(below) {
        let linked = unit.function.exits.values().any(|exit| *exit == Exit::Link);
        let floor = if linked { 0 } else { 8 };
        for slot in &mut unit.slots {
            let highest = match unit.frame.aligned.get(&slot.address.base) {
                Some(made) if made.base == 0 => made.offset,
                Some(_) => i64::MAX / 2,
                None => 0,
            };
            let end = highest + slot.address.offset + slot.size as i64;
            let touch = |(&op, &lowest): (&usize, &i64)| (end > lowest.saturating_add(floor)).then_some(op);
            let found: Vec<usize> =
                below.iter().filter_map(touch).filter(|op| !slot.suspects.contains(op)).collect();
            slot.suspects.extend(found);
            slot.suspects.sort_unstable();
        }
    }
}

/// Marks two functions if one may jump through a pointer to a place in the other, since the stack pointers may be equal. At the entry's
/// stack pointer, the other must read what lies below it.
fn into_others(units: &mut [Unit]) {
    let rsp = |unit: &Unit, op: &usize| match unit.frame.before.get(op)?.of(Register::RSP) {
        Value::Stack(a) if a.base == 0 => Some(Some(a.offset)),
        _ => Some(None),
    };
    let reads = |unit: &Unit, door: &usize| {
        let wanted = unit.live.after.get(door);
        unit.slots.iter().enumerate().any(|(s, slot)| {
            !slot.overwrites.contains(door)
                && (slot.uses().any(|op| op == *door) || wanted.is_some_and(|all| all.contains(&s)))
        })
    };
    let mut found: BTreeMap<usize, usize> = BTreeMap::new();
    for (n, unit) in units.iter().enumerate() {
        // A jump to a thunk goes on through a register.
        let jumps = unit.function.exits.iter().filter(|(_, exit)| **exit == Exit::Tail(Callee::Unknown));
        for op in unit.function.gotos.iter().chain(jumps.map(|(op, _)| op)) {
            let Some(here) = rsp(unit, op) else { continue };
            // A sum leads to places of the function itself, or out of it.
            if here != Some(0) && unit.function.sums.contains(op) {
                continue;
            }
            let others = units.iter().enumerate().filter(|(m, other)| {
                *m != n
                    && other.function.doors.iter().any(|door| {
                        let there = rsp(other, door).flatten();
                        unit.function.body.binary_search(door).is_err()
                            && (here.is_none() || there.is_none() || here == there)
                            && (here != Some(0) || reads(other, door))
                    })
            });
            let mut any = false;
            for (m, _) in others {
                found.entry(m).or_insert(*op);
                any = true;
            }
            if any {
                found.entry(n).or_insert(*op);
            }
        }
    }
    for (n, op) in found {
        units[n].opaque.get_or_insert(Opaque::Jump(op));
    }
}

/// Marks the functions that call, or jump to, a function of the file that may return elsewhere, or twice.
fn astray(units: &mut [Unit], by_entry: &HashMap<usize, usize>) {
    let strays = |units: &[Unit], n: usize| {
        units[n].function.callees().find_map(|(op, callee)| match callee {
            Callee::Local(entry) => by_entry.get(entry).and_then(|&n| {
                let why = units[n].opaque?;
                let away = matches!(
                    why,
                    Opaque::Jump(_)
                        | Opaque::StackPointer(_)
                        | Opaque::Unbalanced(_)
                        | Opaque::ReturnAddress(_)
                        | Opaque::Calls(_)
                        | Opaque::Bytes(_)
                        | Opaque::Unknown(_)
                        | Opaque::Effect(_)
                );
                away.then_some(op)
            }),
            Callee::External(name) => well_known::returns_twice(name).then_some(op),
            Callee::Unknown => None,
        })
    };
    let mut callers: Vec<Vec<usize>> = vec![Vec::new(); units.len()];
    for (n, unit) in units.iter().enumerate() {
        unit.callees.iter().for_each(|&to| callers[to].push(n));
    }
    let mut todo: BTreeSet<usize> = (0..units.len()).collect();
    while !todo.is_empty() {
        let found: Vec<(usize, usize)> = (todo.iter().copied())
            .filter(|&n| units[n].opaque.is_none())
            .filter_map(|n| Some((n, strays(units, n)?)))
            .collect();
        todo.clear();
        for (n, op) in found {
            units[n].opaque = Some(Opaque::Calls(op));
            todo.extend(&callers[n]);
        }
    }
}

/// The most rounds in which functions turn out to be parts of others.
const ROUNDS: usize = 64;

/// The functions with their frames. One that is only jumped to, with the stack pointer of the jump, is part of those that jump to it.
/// `None` if the analysis would be too large.
fn parted(
    program: &Program,
    landing: &BTreeMap<usize, Option<BTreeSet<usize>>>,
) -> Option<(Vec<Function>, Framed)> {
    let call = |op: &Op| match (op.instruction.flow_control(), &op.target) {
        (iced_x86::FlowControl::Call, Some(Target::Op(to))) => Some(*to),
        _ => None,
    };
    let mut kept: BTreeSet<usize> = program.ops.iter().filter_map(call).collect();
    kept.extend(places::taken(program).ops);
    let mut parts = BTreeSet::new();
    for _ in 0..ROUNDS {
        let mut functions = flow::functions(program, landing, &parts)?;
        let by_entry = functions.iter().enumerate().map(|(n, f)| (f.entry, n)).collect();
        let framed = outlines::framed(program, &mut functions, &by_entry)?;
        let before = parts.len();
        kept.extend(functions.iter().filter(|f| f.global).map(|f| f.entry));
        for (function, (frame, _)) in functions.iter().zip(&framed.frames) {
            let to = |op: &usize| match function.exits.get(op) {
                Some(Exit::Tail(Callee::Local(to))) if !kept.contains(to) => Some(*to),
                _ => None,
            };
            parts.extend(frame.unbalanced.iter().filter_map(to));
        }
        if parts.len() == before {
            return Some((functions, framed));
        }
    }
    None
}

/// Whether an instruction is not decoded, or runs into bytes that are not.
fn undecoded(program: &Program, op: usize) -> bool {
    use iced_x86::FlowControl::{Call, ConditionalBranch, IndirectCall, Next, XbeginXabortXend};
    let Op { instruction, after, .. } = &program.ops[op];
    let falls = matches!(
        instruction.flow_control(),
        Next | ConditionalBranch | Call | IndirectCall | XbeginXabortXend
    );
    instruction.is_invalid() || falls && matches!(after, Gap::Bytes(_))
}

#[allow(clippy::too_many_arguments, reason = "facts about the whole program, each used once")]
fn unit(
    program: &Program,
    function: Function,
    frame: Frame,
    slots: Vec<Slot>,
    cycle: usize,
    by_entry: &HashMap<usize, usize>,
    unwinding: &BTreeMap<usize, fn(usize) -> Opaque>,
    unknown: &BTreeMap<usize, usize>,
    hidden: &Hidden,
) -> Unit {
    let live = slots::live(&function, &slots);
    let registers = registers::registers(program, &function, !function.global);
    let encoding = |op: &usize| program.ops[*op].instruction.code().encoding();
    let vex = function.body.iter().any(|op| !matches!(encoding(op), EncodingKind::Legacy));
    let Uses { registers: uses, x87 } = Uses::of(program, function.body.iter().copied());
    let mut callees = BTreeSet::new();
    let mut leaves = function.astray.first().copied();
    let (mut float_leaves, mut indirect) = (leaves, leaves.is_some());
    for (op, callee) in function.callees() {
        match callee {
            Callee::Local(entry) => callees.extend(by_entry.get(entry)),
            Callee::External(name) => {
                if !well_known::diverges(name) {
                    leaves.get_or_insert(op);
                }
                if well_known::may_return_float(name) {
                    float_leaves.get_or_insert(op);
                }
            }
            Callee::Unknown => {
                leaves.get_or_insert(op);
                float_leaves.get_or_insert(op);
                indirect = true;
            }
        }
    }
    let opaque = (function.body.iter().find_map(|op| unknown.get(op)).map(|&op| Opaque::Unknown(op)))
        .or(function.body.iter().copied().find(|&op| undecoded(program, op)).map(Opaque::Bytes))
        .or(function
            .body
            .iter()
            .copied()
            .find(|&op| !is_modelled(&program.ops[op].instruction))
            .map(Opaque::Effect))
        .or(function.astray.first().map(|&op| Opaque::Jump(op)))
        .or(frame.lost.first().map(|&op| Opaque::StackPointer(op)))
        .or(frame.unbalanced.first().map(|&op| Opaque::Unbalanced(op)))
        .or(frame.returns.map(Opaque::ReturnAddress))
        .or(function.body.iter().copied().find(|op| hidden.ops.contains(op)).map(Opaque::Entered))
        .or(hidden.anywhere.map(Opaque::Counted))
        .or_else(|| {
            let why = function.body.iter().find_map(|op| unwinding.get(op))?;
            function.calls.keys().next().map(|&call| why(call))
        });
    Unit {
        function,
        frame,
        slots,
        live,
        registers,
        uses,
        vex,
        x87,
        callees,
        leaves,
        float_leaves,
        indirect,
        entered: false,
        outward: None,
        float_outward: None,
        opaque,
        cycle,
    }
}

/// Marks the functions that are entered from outside, with the consequences: other readers of a slot, and registers
/// that a caller may rely on. A compiler that has analysed a function may rely on registers that it leaves unchanged.
fn enter(program: &Program, units: &mut [Unit], owners: &HashMap<usize, usize>) {
    let taken = places::taken(program).ops;
    let (mut called, mut jumped) = (BTreeSet::new(), BTreeSet::new());
    // Code to which no jump leads may be entered, and may call.
    for op in (0..program.ops.len()).filter(|op| !owners.contains_key(op)) {
        if let Some(Target::Op(to)) = &program.ops[op].target {
            jumped.insert(*to);
        }
    }
    for unit in units.iter() {
        called.extend(unit.callees.iter().copied());
        for exit in unit.function.exits.values() {
            if let Exit::Tail(Callee::Local(entry)) = exit {
                jumped.insert(*entry);
            }
        }
    }
    let indirect = units.iter().any(|unit| unit.indirect);
    for (n, unit) in units.iter_mut().enumerate() {
        let entry = unit.function.entry;
        let door = |op: &usize| {
            unit.frame.before.get(op).is_none_or(|state| frame::is_door(&unit.function, *op, state))
        };
        unit.entered = unit.function.global
            || taken.contains(&entry)
            || jumped.contains(&entry)
            || !called.contains(&n)
            || unit.function.doors.iter().any(door);
        // The caller may read its own frame after the return. Some compilers put a callee's values there.
        let exits: Vec<usize> = unit.function.exits.keys().copied().collect();
        for slot in unit.slots.iter_mut().filter(|slot| slot.address.base == 0 && slot.address.offset >= 0) {
            slot.from_outside |= unit.entered;
            slot.suspects =
                slot.suspects.iter().chain(&exits).copied().collect::<BTreeSet<_>>().into_iter().collect();
        }
        // A call through a pointer may reach a function of this file.
        if unit.function.global && (indirect || called.contains(&n)) {
            unit.registers = registers::registers(program, &unit.function, true);
        }
    }
}
