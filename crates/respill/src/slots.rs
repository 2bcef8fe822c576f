//! The cells of a frame, and the purpose of each.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use iced_x86::{InstructionInfoFactory, Mnemonic, OpKind, Register};
use serde::Serialize;

use crate::flow::{Call, Callee, Exit, Function};
use crate::frame::{Access, Address, Frame, Outlines, Value, Where};
use crate::program::Program;
use crate::well_known;

/// The purpose of a cell, by its accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// A spilled value: only moved from and to general registers of one width, 4 or 8 bytes.
    Spill,
    /// The same, and the value is used as an address.
    Pointer,
    /// Moved, and also read or changed in place by arithmetic, or stored from a constant.
    Operand,
    /// Keeps a register for the caller.
    CalleeSave,
    /// Keeps the stack pointer.
    SavedStack,
    /// Narrower than 4 bytes.
    Narrow,
    /// It holds vectors, or other values longer than 8 bytes.
    Vector,
    /// Accesses of different width or that overlap in part.
    Mixed,
}

impl Class {
    /// Its name in tables and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Class::Spill => "spill",
            Class::Pointer => "pointer",
            Class::Operand => "operand",
            Class::CalleeSave => "callee-save",
            Class::SavedStack => "saved-stack",
            Class::Narrow => "narrow",
            Class::Vector => "vector",
            Class::Mixed => "mixed",
        }
    }
}

/// A cell: bytes of the frame that are accessed together.
#[derive(Clone, Debug)]
pub struct Slot {
    /// Where it begins.
    pub address: Address,
    /// Its bytes.
    pub size: usize,
    /// Its purpose.
    pub class: Class,
    /// Moves into it.
    pub stores: Vec<usize>,
    /// Moves out of it.
    pub loads: Vec<usize>,
    /// Every other instruction that names it.
    pub others: Vec<usize>,
    /// Instructions that may touch it under another name: through an index or a pointer, or a callee that was given an address.
    pub suspects: Vec<usize>,
    /// The instructions above that write all of it and read nothing.
    pub overwrites: Vec<usize>,
    /// Whether it may hold a value when the function begins: then the value comes from outside.
    pub from_outside: bool,
}

impl Slot {
    /// Every instruction that names it.
    pub fn uses(&self) -> impl Iterator<Item = usize> + '_ {
        self.stores.iter().chain(&self.loads).chain(&self.others).copied()
    }
}

/// The cells of a function's frame, and how many suspects they and live values its instructions have in all. `None` if these are more
/// than `room`.
#[must_use]
pub fn slots(
    program: &Program,
    function: &Function,
    frame: &Frame,
    outlines: &Outlines,
    room: usize,
) -> Option<(Vec<Slot>, usize)> {
    let mut known: Vec<(Address, &Access)> = frame
        .accesses
        .iter()
        .filter_map(|access| if let Where::Known(a) = access.place { Some((a, access)) } else { None })
        .collect();
    known.sort_by_key(|&(a, access)| (a, access.size));
    let mut out: Vec<Slot> = Vec::new();
    let mut groups: Vec<Vec<&Access>> = Vec::new();
    for (address, access) in known {
        let size = access.size.max(1);
        // Partial overlap makes one cell of mixed use.
        let joins = out.last().is_some_and(|last| {
            last.address.base == address.base && address.offset < last.address.offset + last.size as i64
        });
        if joins && let (Some(last), Some(group)) = (out.last_mut(), groups.last_mut()) {
            let end = (address.offset + size as i64).max(last.address.offset + last.size as i64);
            last.size = (end - last.address.offset) as usize;
            group.push(access);
        } else {
            let empty = Vec::new;
            out.push(Slot {
                address,
                size,
                class: Class::Mixed,
                stores: empty(),
                loads: empty(),
                others: empty(),
                overwrites: empty(),
                suspects: empty(),
                from_outside: false,
            });
            groups.push(vec![access]);
        }
    }
    let mut uses = Uses { program, function, info: InstructionInfoFactory::new() };
    for (slot, group) in out.iter_mut().zip(&groups) {
        for access in group {
            if access.overwrites && access.size == slot.size {
                slot.overwrites.push(access.op);
            }
            let instruction = &program.ops[access.op].instruction;
            let general =
                |n: u32| instruction.op_kind(n) == OpKind::Register && instruction.op_register(n).is_gpr();
            let moves = instruction.mnemonic() == Mnemonic::Mov;
            if moves && access.writes && general(1) {
                slot.stores.push(access.op);
            } else if moves && access.reads && general(0) {
                slot.loads.push(access.op);
            } else {
                slot.others.push(access.op);
            }
        }
        slot.class = class(program, frame, slot, group, &mut uses);
    }
    // Each access, call and exit but those that name a slot may become a suspect of it. A suspect is an eighth of a cell with its value.
    let bases: BTreeSet<usize> = out.iter().map(|slot| slot.address.base).collect();
    let unknown = |access: &&Access| bases.len() > 1 || !matches!(access.place, Where::Known(_));
    let others = frame.accesses.iter().filter(unknown).count() + frame.hidden.len() + frame.outside.len();
    let others = others + function.calls.len() + function.exits.len();
    let mut held = out.len().saturating_mul(others) / 8;
    room.checked_sub(held)?;
    out.iter_mut().for_each(|slot| suspects(function, frame, slot));
    let live = limited(function, &out, room.checked_sub(held)?)?;
    held += live.after.values().chain(live.before.values()).map(BTreeSet::len).sum::<usize>();
    outside(function, &live, &mut out);
    let wanted = wanted(function, &out, &groups, room.checked_sub(held)?)?;
    called(function, frame, outlines, &wanted, &mut out);
    Some((out, held))
}

/// After each instruction: the slots that are read on every path before anything is written to them. A value that is wanted only on some
/// path may be an argument on others. `None` if these are more than `room` in all.
fn wanted(
    function: &Function,
    slots: &[Slot],
    groups: &[Vec<&Access>],
    room: usize,
) -> Option<HashMap<usize, BTreeSet<usize>>> {
    let outside = |call: &Call| !matches!(call.callee, Callee::Local(_));
    if !function.calls.values().any(outside) {
        return Some(HashMap::new());
    }
    let mut held = 0;
    let (mut reads, mut writes): (HashMap<usize, Vec<usize>>, HashMap<usize, Vec<usize>>) =
        Default::default();
    for (n, group) in groups.iter().enumerate() {
        for access in group {
            let begins = access.place == Where::Known(slots[n].address) && access.size <= 8;
            let of = if access.always_reads && begins { &mut reads } else { &mut writes };
            of.entry(access.op).or_default().push(n);
        }
    }
    let before = function.before();
    let mut here: HashMap<usize, BTreeSet<usize>> = HashMap::new();
    let mut out: HashMap<usize, BTreeSet<usize>> = HashMap::new();
    let mut todo: Vec<usize> = function.body.clone();
    let mut waiting: HashSet<usize> = todo.iter().copied().collect();
    while let Some(i) = todo.pop() {
        waiting.remove(&i);
        let leaves = function.exits.contains_key(&i);
        let mut ways = function.next[&i].iter().map(|next| here.get(next));
        let first = ways.next().flatten().cloned().filter(|_| !leaves).unwrap_or_default();
        let after = ways.fold(first, |all, way| match way {
            Some(way) => all.intersection(way).copied().collect(),
            None => BTreeSet::new(),
        });
        let mut now = after.clone();
        writes.get(&i).into_iter().flatten().for_each(|n| {
            now.remove(n);
        });
        now.extend(reads.get(&i).into_iter().flatten());
        held += after.len();
        held -= out.insert(i, after).map_or(0, |before| before.len());
        if here.get(&i) != Some(&now) {
            held += now.len();
            held -= here.insert(i, now).map_or(0, |before| before.len());
            for &from in before.get(&i).into_iter().flatten() {
                if waiting.insert(from) {
                    todo.push(from);
                }
            }
        }
        if held > room {
            return None;
        }
    }
    Some(out)
}

fn class(program: &Program, frame: &Frame, slot: &Slot, group: &[&Access], uses: &mut Uses<'_>) -> Class {
    let stored =
        |op: usize| frame.before.get(&op).map(|state| state.of(program.ops[op].instruction.op1_register()));
    if group.iter().any(|access| access.size > 8) {
        return Class::Vector;
    }
    // Its place differs each time.
    if !frame.is_fixed(slot.address.base) {
        return Class::Mixed;
    }
    if slot.size < 4 {
        return Class::Narrow;
    }
    if group.iter().any(|access| access.size != slot.size) || !matches!(slot.size, 4 | 8) {
        return Class::Mixed;
    }
    let pushes = |op: &usize| program.ops[*op].instruction.mnemonic() == Mnemonic::Push;
    let value = |op: &usize| match program.ops[*op].instruction.mnemonic() {
        Mnemonic::Push => {
            frame.before.get(op).map(|state| state.of(program.ops[*op].instruction.op0_register()))
        }
        _ => stored(*op),
    };
    let kept: Vec<Option<Value>> =
        slot.stores.iter().chain(slot.others.iter().filter(|op| pushes(op))).map(value).collect();
    if !kept.is_empty() && kept.iter().all(|value| matches!(value, Some(Value::Entry(_)))) {
        return Class::CalleeSave;
    }
    if slot.loads.iter().any(|&op| program.ops[op].instruction.op0_register() == Register::RSP)
        || !kept.is_empty()
            && kept.iter().all(|value| matches!(value, Some(Value::Stack(a)) if a.offset >= 0))
    {
        return Class::SavedStack;
    }
    if !slot.others.is_empty() {
        return Class::Operand;
    }
    let derived = kept.iter().any(|value| matches!(value, Some(Value::Stack(_) | Value::Derived)));
    if derived || slot.size == 8 && slot.loads.iter().any(|&op| uses.as_address(op)) {
        return Class::Pointer;
    }
    Class::Spill
}

/// Accesses that may reach a slot without naming it: through an unknown index or a pointer in either direction, from
/// another base, or by code that was given an address.
fn suspects(function: &Function, frame: &Frame, slot: &mut Slot) {
    let end = slot.address.offset + slot.size as i64;
    let mut out = BTreeSet::new();
    for access in &frame.accesses {
        let touches = match access.place {
            Where::Indexed(_) | Where::Pointer => true,
            Where::Within(a, span) => {
                frame.meets(slot.address, end, a, a.offset.saturating_add(span + access.size as i64))
            }
            // Accesses from the slot's base are uses of it or of others.
            Where::Known(a) => {
                a.base != slot.address.base
                    && frame.meets(slot.address, end, a, a.offset + access.size as i64)
            }
            Where::Elsewhere => false,
        };
        if touches {
            out.insert(access.op);
        }
    }
    // An aligned base lies at or below the place where it was made, which alone keeps its cells below the entry.
    let above =
        frame.aligned.get(&slot.address.base).is_some_and(|made| made.base != 0 || made.offset + end > 0);
    if slot.address.base != 0 && above {
        out.extend(function.exits.keys());
    }
    // An escaped address may return as any pointer, and reach any callee.
    if frame.escapes {
        out.extend(&frame.hidden);
        out.extend(function.calls.keys());
    }
    slot.suspects = out.into_iter().collect();
}

/// Marks the slots that are read on some path from the entry before they are written.
fn outside(function: &Function, live: &Live, slots: &mut [Slot]) {
    let entry = live.before.get(&function.entry);
    for (i, slot) in slots.iter_mut().enumerate() {
        slot.from_outside = entry.is_some_and(|live| live.contains(&i));
    }
}

/// Suspects calls of touching what their callee is known to reach, and of taking a store as an argument on the stack. A call may
/// overwrite what lies below the stack pointer, which ends the relation of home and slot.
fn called(
    function: &Function,
    frame: &Frame,
    outlines: &Outlines,
    wanted: &HashMap<usize, BTreeSet<usize>>,
    slots: &mut [Slot],
) {
    for (&op, call) in &function.calls {
        let top = match frame.before.get(&op).map(|state| state.of(Register::RSP)) {
            Some(Value::Stack(top)) => top.plus(if call.link { 0 } else { -8 }),
            // Its frame, and its arguments, may be anywhere.
            Some(_) => {
                slots.iter_mut().for_each(|slot| suspect(slot, op));
                continue;
            }
            None => continue,
        };
        let suspected: Vec<usize> = match &call.callee {
            Callee::Local(entry) => {
                let outline = outlines.get(entry);
                let reached = |n: &usize| {
                    let slot = &slots[*n];
                    let end = slot.address.offset + slot.size as i64;
                    outline.is_none_or(|outline| {
                        outline.wild
                            || outline.reach.iter().any(|&(from, to)| {
                                frame.meets(slot.address, end, top.plus(from), top.offset + to)
                            })
                    })
                };
                (0..slots.len()).filter(reached).collect()
            }
            callee => {
                let bare = matches!(callee, Callee::External(name) if well_known::is_plain(name) || well_known::diverges(name));
                // Arguments belong to the callee, so a slot whose value is wanted later is not one, nor is any above it. Their number
                // is unknown, and one may never have been written.
                let above = |slot: &Slot| slot.address.offset + slot.size as i64 > top.offset + 8;
                let wanted = wanted.get(&op).into_iter().flatten().map(|&n| &slots[n]);
                let own = wanted.filter(|slot| slot.address.base == top.base && above(slot));
                let limit = own.map(|slot| slot.address.offset).min().unwrap_or(i64::MAX);
                let argument = |n: &usize| {
                    let slot = &slots[*n];
                    let above = slot.address.base != top.base || above(slot) && slot.address.offset < limit;
                    let stores: Vec<usize> = slot.uses().filter(|use_| !slot.loads.contains(use_)).collect();
                    above && reaches(function, &stores, op)
                };
                if bare { Vec::new() } else { (0..slots.len()).filter(argument).collect() }
            }
        };
        suspected.into_iter().for_each(|n| suspect(&mut slots[n], op));
    }
    // A function to which this one jumps may read what lies below the stack pointer.
    for (&op, exit) in &function.exits {
        let Exit::Tail(Callee::Local(entry)) = exit else { continue };
        let outline = outlines.get(entry);
        for slot in slots.iter_mut() {
            let end = slot.address.offset + slot.size as i64;
            let entry = |by: i64| Address { base: 0, offset: by };
            let reached = outline.is_none_or(|outline| {
                outline.below
                    || outline.reach.iter().any(|&(from, to)| frame.meets(slot.address, end, entry(from), to))
            });
            if reached {
                suspect(slot, op);
            }
        }
    }
}

/// Whether a slot may have bytes below an address.
pub(crate) fn below(frame: &Frame, slot: &Slot, top: Address) -> bool {
    let end = slot.address.offset + slot.size as i64;
    frame.meets(slot.address, end, top.plus(-(1 << 40)), top.offset)
}

/// A call of a function of the file, or through a pointer, after which something that the callee left below the stack pointer is read:
/// perhaps an address.
pub(crate) fn reads_left(function: &Function, frame: &Frame, slots: &[Slot]) -> Option<usize> {
    let is_below = |op: usize, slot: &Slot| match frame.before.get(&op).map(|state| state.of(Register::RSP)) {
        Some(Value::Stack(top)) => below(frame, slot, top),
        Some(_) => true,
        None => false,
    };
    let calls = function.calls.iter().filter(|(_, call)| !matches!(call.callee, Callee::External(_)));
    let mut calls = calls.map(|(&op, _)| op).filter(|&op| slots.iter().any(|slot| is_below(op, slot)));
    let first = calls.next()?;
    let live = live(function, slots);
    core::iter::once(first).chain(calls).find(|op| {
        let wanted = live.after.get(op).into_iter().flatten();
        wanted.into_iter().any(|&n| is_below(*op, &slots[n]))
    })
}

pub(crate) fn suspect(slot: &mut Slot, op: usize) {
    if let Err(place) = slot.suspects.binary_search(&op) {
        slot.suspects.insert(place, op);
    }
}

/// Whether some path leads from one of these instructions to another.
fn reaches(function: &Function, from: &[usize], to: usize) -> bool {
    let mut seen: HashSet<usize> = HashSet::new();
    let next = |op: &usize| function.next.get(op).into_iter().flatten().copied();
    let mut todo: Vec<usize> = from.iter().flat_map(next).collect();
    while let Some(op) = todo.pop() {
        if op == to {
            return true;
        }
        if seen.insert(op) {
            todo.extend(next(&op));
        }
    }
    false
}

/// The slots that hold a live value.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// Before each instruction: the numbers of the slots.
    pub before: HashMap<usize, BTreeSet<usize>>,
    /// After each instruction.
    pub after: HashMap<usize, BTreeSet<usize>>,
}

/// Whether a function or its callees' arguments name bytes below its stack pointer that nothing may have written before.
pub(crate) fn reads_below(function: &Function, frame: &Frame, outlines: &Outlines, slots: &[Slot]) -> bool {
    let below = |slot: &Slot| slot.address.base != 0 || slot.address.offset < 0;
    if slots.iter().any(|slot| slot.from_outside && slot.suspects.is_empty() && below(slot)) {
        return true;
    }
    let far =
        |access: &Access| matches!(access.place, Where::Indexed(_) | Where::Pointer | Where::Within(..));
    if frame.escapes || frame.accesses.iter().any(|access| access.writes && far(access)) {
        return false;
    }
    function.calls.iter().any(|(op, call)| {
        let (Callee::Local(entry), Some(state)) = (&call.callee, frame.before.get(op)) else {
            return false;
        };
        let (Some(outline), Value::Stack(top)) = (outlines.get(entry), state.of(Register::RSP)) else {
            return false;
        };
        let top = top.plus(if call.link { 0 } else { -8 });
        let named = |&(from, to): &(i64, i64)| {
            let end = top.offset.saturating_add(to).min(if top.base == 0 { 0 } else { i64::MAX });
            let mut next = top.offset + from.max(8);
            for slot in slots.iter().filter(|slot| slot.address.base == top.base) {
                if slot.address.offset <= next {
                    next = next.max(slot.address.offset + slot.size as i64);
                }
            }
            to <= 8 || next >= end
        };
        !outline.reach.iter().all(named)
    })
}

/// Follows every slot backwards from its reads to its writes.
#[must_use]
pub fn live(function: &Function, slots: &[Slot]) -> Live {
    limited(function, slots, usize::MAX).unwrap_or_default()
}

/// The same, or `None` if the live slots before and after all instructions are more than `room`.
fn limited(function: &Function, slots: &[Slot], room: usize) -> Option<Live> {
    let mut reads: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut kills: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (n, slot) in slots.iter().enumerate() {
        for op in slot.uses() {
            let of = if slot.overwrites.contains(&op) { &mut kills } else { &mut reads };
            of.entry(op).or_default().push(n);
        }
    }
    let before = function.before();
    let (mut out, mut held) = (Live::default(), 0);
    let mut todo: Vec<usize> = function.body.clone();
    let mut waiting: HashSet<usize> = todo.iter().copied().collect();
    while let Some(i) = todo.pop() {
        waiting.remove(&i);
        let after: BTreeSet<usize> =
            function.next[&i].iter().filter_map(|next| out.before.get(next)).flatten().copied().collect();
        let mut live = after.clone();
        kills.get(&i).into_iter().flatten().for_each(|n| {
            live.remove(n);
        });
        live.extend(reads.get(&i).into_iter().flatten());
        held += after.len();
        held -= out.after.insert(i, after).map_or(0, |before| before.len());
        if out.before.get(&i) != Some(&live) {
            held += live.len();
            held -= out.before.insert(i, live).map_or(0, |before| before.len());
            for &from in before.get(&i).into_iter().flatten() {
                if waiting.insert(from) {
                    todo.push(from);
                }
            }
        }
        if held > room {
            return None;
        }
    }
    Some(out)
}

struct Uses<'a> {
    program: &'a Program,
    function: &'a Function,
    info: InstructionInfoFactory,
}

impl Uses<'_> {
    /// Whether what is loaded here is used as (a part of) an address before the register gets another value.
    fn as_address(&mut self, load: usize) -> bool {
        let register = self.program.ops[load].instruction.op0_register().full_register();
        let mut seen: HashSet<usize> = HashSet::new();
        let mut todo: Vec<usize> = self.function.next[&load].clone();
        while let Some(i) = todo.pop() {
            if !seen.insert(i) {
                continue;
            }
            let info = self.info.info(&self.program.ops[i].instruction);
            if info
                .used_memory()
                .iter()
                .any(|m| m.base().full_register() == register || m.index().full_register() == register)
            {
                return true;
            }
            let gone = info.used_registers().iter().any(|used| {
                used.register().full_register() == register
                    && matches!(used.access(), iced_x86::OpAccess::Write | iced_x86::OpAccess::ReadWrite)
            });
            if !gone && !self.function.calls.contains_key(&i) {
                todo.extend(&self.function.next[&i]);
            }
        }
        false
    }
}
