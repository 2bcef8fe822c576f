//! The relation of slots and homes at every point of a function, on the decoded instructions of both versions.
//!
//! ```text
//! before an instruction, on every path to it:
//!   home = slot       for each moved slot that is marked as equal
//!   mask = 1 << lane  for each mask that is marked as made
//!   st(0) is empty    unless a call of outside code may have left a result there
//! a store makes them equal, a load needs them equal, a write of the home or a call that writes it ends it
//! ```
//!
//! What is equal before an instruction on every path is found by iteration; additions count on the edges where they run.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use iced_x86::{InstructionInfoFactory, Mnemonic, OpKind, Register};

use super::edits::{Edits, Key, Part};
use super::pairs::{Pairs, is_home};
use super::reason::{Place, Reason, SlotName};
use crate::analysis::Analysis;
use crate::assembler::Reference;
use crate::flow::{self, Callee};
use crate::frame::{self, Value, writes};
use crate::homes::Home;
use crate::modelled::saves_all;
use crate::outlines::MOST;
use crate::places::{by_name, into_code};
use crate::program::{Program, Target};
use crate::text::Kind;
use crate::well_known;

/// Why a home does not hold its slot's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lost {
    /// Nothing has been stored.
    Never,
    /// An instruction of the other version writes the home.
    Written(usize),
    /// A callee does, at this call.
    Callee(usize, usize),
    /// Code outside the file is called.
    Outside(usize),
    /// A call overwrites the slot, which lies below the stack pointer.
    Below(usize),
}

/// What a mask register is known to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mask {
    Ones,
    One,
    Lane(u8),
}

/// What a borrowed register holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// The slot's value.
    Value(Key),
    /// What its instruction has made of it.
    Result(Key),
}

#[derive(Clone, Debug, PartialEq)]
struct State {
    /// Of each own slot: whether its home holds the value.
    slots: BTreeMap<usize, Option<Lost>>,
    masks: BTreeMap<u8, Mask>,
    /// Whether st(0) may hold a result, since which call.
    float: Option<usize>,
}

impl State {
    fn join(&mut self, other: &State) -> bool {
        let before = self.clone();
        for (slot, lost) in &mut self.slots {
            *lost = lost.or(other.slots.get(slot).copied().flatten());
        }
        self.masks.retain(|k, mask| other.masks.get(k) == Some(mask));
        self.float = self.float.or(other.float);
        *self != before
    }
}

/// What callers leave for a function of the file.
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    masks: BTreeMap<u8, Mask>,
    float: Option<usize>,
}

pub(super) struct Relation<'a> {
    analysis: &'a Analysis,
    other: &'a Program,
    pairs: &'a Pairs,
    edits: &'a Edits,
    info: InstructionInfoFactory,
    /// Instructions of the other version at which a jump to one of the original may arrive.
    landings: HashMap<usize, BTreeSet<usize>>,
    /// Home registers that a unit writes, in the other version, with the instructions.
    written: Vec<BTreeSet<(usize, Register)>>,
    /// Own home registers of a unit and of all below it.
    ours: Vec<BTreeSet<Register>>,
    units: HashMap<usize, usize>,
    entries: Vec<Option<Entry>>,
    told: BTreeSet<(usize, usize)>,
    reasons: Vec<Reason>,
}

/// Checks that every load from a moved slot finds its value in the home, and that additions touch nothing that is not ours.
pub(super) fn relation(analysis: &Analysis, other: &Program, pairs: &Pairs, edits: &Edits) -> Vec<Reason> {
    let landings = landings(&analysis.program, other, pairs);
    let mut out = Relation {
        analysis,
        other,
        pairs,
        edits,
        info: InstructionInfoFactory::new(),
        landings,
        written: Vec::new(),
        ours: Vec::new(),
        units: analysis.units.iter().enumerate().map(|(n, unit)| (unit.function.entry, n)).collect(),
        entries: vec![None; analysis.units.len()],
        told: BTreeSet::new(),
        reasons: Vec::new(),
    };
    let own: Vec<BTreeSet<Register>> = (0..analysis.units.len())
        .map(|n| edits.homes.range((n, 0)..(n + 1, 0)).flat_map(|(_, home)| home.registers()).collect())
        .collect();
    out.ours = own;
    for cycle in
        analysis.callees_first().chunk_by(|&a, &b| analysis.units[a].cycle == analysis.units[b].cycle)
    {
        let below = cycle.iter().flat_map(|&n| analysis.units[n].callees.iter().chain(cycle));
        let all: BTreeSet<Register> = below.flat_map(|&n| out.ours[n].iter().copied()).collect();
        cycle.iter().for_each(|&n| out.ours[n].clone_from(&all));
    }
    for n in 0..analysis.units.len() {
        let written = out.written_by(n);
        out.written.push(written);
    }
    out.additions();
    out.all();
    out.reasons
}

/// Whether the instructions hold too many moved slots in all, one of some 50 bytes for each in its function.
pub(super) fn is_large(analysis: &Analysis, edits: &Edits) -> bool {
    let mut moved: BTreeMap<usize, usize> = BTreeMap::new();
    edits.homes.keys().for_each(|&(n, _)| *moved.entry(n).or_default() += 1);
    let held = moved.iter().map(|(&n, &slots)| slots * analysis.units[n].function.body.len());
    held.sum::<usize>() > MOST
}

/// Where the other version may be entered in place of each instruction of the original: by a branch, an address or a name.
fn landings(original: &Program, other: &Program, pairs: &Pairs) -> HashMap<usize, BTreeSet<usize>> {
    let mut out: HashMap<usize, BTreeSet<usize>> = HashMap::new();
    let mut land = |op: usize, there: usize| out.entry(op).or_default().insert(there);
    let at = |program: &Program, reference: &Reference| {
        into_code(program, reference).and_then(|place| program.at.get(&place).copied())
    };
    let ops = pairs.of.iter().enumerate().map(|(o, &r)| (&original.ops[o], &other.ops[r]));
    for (one, two) in ops.clone() {
        if let (Some(Target::Op(to)), Some(Target::Op(there))) = (&one.target, &two.target) {
            land(*to, *there);
        }
    }
    let fields = ops.flat_map(|(one, two)| one.references.iter().zip(&two.references));
    let addresses = fields.chain(original.pointers.values().zip(other.pointers.values()));
    for (a, b) in addresses.filter(|(a, _)| a.absolute) {
        if let (Some(to), Some(there)) = (at(original, a), at(other, b)) {
            land(to, there);
        }
    }
    // The object has no symbol for a label that is a number, and a distance to one is not an address.
    for (to, there) in labelled(original).zip(labelled(other)) {
        land(to, there);
    }
    let named = by_name(other);
    for (&op, names) in &original.names {
        for there in names.iter().filter_map(|name| named.get(name.name.as_str())) {
            land(op, *there);
        }
    }
    out
}

/// The instruction after each label, in the order of the text.
fn labelled(program: &Program) -> impl Iterator<Item = usize> + '_ {
    let all = program.text.statements().iter().enumerate();
    let labels = all.filter(|(_, statement)| statement.kind == Kind::Label);
    labels.map(|(i, _)| program.ops.partition_point(|op| op.statement < i))
}

impl Relation<'_> {
    fn edited(&self, r: usize) -> &iced_x86::Instruction {
        &self.other.ops[r].instruction
    }

    /// The home registers that an instruction of the other version writes.
    fn writes(&mut self, r: usize) -> Vec<Register> {
        let i = self.other.ops[r].instruction;
        if saves_all(i.mnemonic()) {
            return crate::homes::Bank::ALL
                .into_iter()
                .flat_map(|b| b.homes())
                .flat_map(Home::registers)
                .collect();
        }
        // It clears what lies above a home.
        if i.mnemonic() == Mnemonic::Vzeroupper {
            return Vec::new();
        }
        let used = self.info.info(&i).used_registers();
        used.iter()
            .filter(|used| writes(used.access()))
            .map(|used| used.register().full_register())
            .filter(|register| is_home(*register))
            .collect()
    }

    /// The additions that run with an instruction of a unit, including those after it if the unit goes on there.
    fn beside(&self, n: usize, op: usize) -> Vec<usize> {
        let falls = falls_through(&self.analysis.program.ops[op].instruction)
            && self.analysis.units[n].function.next[&op].contains(&(op + 1));
        let after = self.pairs.added_after(op).filter(|_| falls);
        self.pairs.added_before(op).chain(after).collect()
    }

    fn written_by(&mut self, n: usize) -> BTreeSet<(usize, Register)> {
        let mut out = BTreeSet::new();
        let analysis = self.analysis;
        for &op in &analysis.units[n].function.body {
            for r in self.beside(n, op).into_iter().chain([self.pairs.of[op]]) {
                out.extend(self.writes(r).into_iter().map(|register| (r, register)));
            }
        }
        out
    }

    /// Additions that belong to no changed instruction clear what is ours, make its masks, or free MMX.
    fn additions(&mut self) {
        let mut owners: HashMap<usize, Vec<usize>> = HashMap::new();
        for (n, unit) in self.analysis.units.iter().enumerate() {
            for &op in &unit.function.body {
                for r in self.beside(n, op) {
                    owners.entry(r).or_default().push(n);
                }
            }
        }
        for r in (0..self.pairs.back.len()).filter(|&r| self.pairs.back[r].is_none()) {
            if self.edits.explained.contains_key(&r) {
                continue;
            }
            let i = *self.edited(r);
            let place = Place::of(self.other, r);
            if i.rflags_modified() != 0 {
                self.reasons.push(Reason::FlagsChanged(place));
                continue;
            }
            let ours = |register: Register| {
                owners
                    .get(&r)
                    .is_some_and(|all| all.iter().all(|&n| self.ours[n].contains(&register.full_register())))
            };
            let registers = (0..i.op_count()).filter(|&n| i.op_kind(n) == OpKind::Register);
            let same = registers.map(|n| i.op_register(n)).all(|register| register == i.op0_register());
            use Mnemonic::{Emms, Kshiftlb, Kshiftrb, Kxnorb, Kxorq, Pxor, Valignq, Vpxor, Vpxorq};
            let memory = (0..i.op_count()).any(|n| i.op_kind(n) == OpKind::Memory);
            let right = match i.mnemonic() {
                Pxor | Vpxor | Vpxorq | Kxorq | Kxnorb | Kshiftlb | Kshiftrb => {
                    same && ours(i.op0_register()) && i.op_mask() == Register::None
                }
                // The way out of a lane; the move after it is checked where it belongs.
                Valignq => {
                    i.op0_register() == Register::ZMM31
                        && ours(Register::ZMM31)
                        && i.op_mask() == Register::None
                }
                Emms => owners
                    .get(&r)
                    .is_some_and(|all| all.iter().all(|&n| self.ours[n].iter().any(|home| home.is_mm()))),
                _ => false,
            };
            if memory || !right {
                self.reasons.push(Reason::Unexplained(place));
            }
        }
    }

    fn all(&mut self) {
        let units = &self.analysis.units;
        for (n, unit) in units.iter().enumerate() {
            if unit.entered {
                self.entries[n] = Some(Entry { masks: BTreeMap::new(), float: None });
            }
        }
        // What callers leave is found first, then the reasons, once each.
        let mut todo: VecDeque<usize> = (0..units.len()).filter(|&n| units[n].entered).collect();
        while let Some(n) = todo.pop_front() {
            for (callee, entry) in self.unit(n, false) {
                let changed = match &mut self.entries[callee] {
                    Some(known) => {
                        let before = known.clone();
                        known.masks.retain(|k, mask| entry.masks.get(k) == Some(mask));
                        known.float = known.float.or(entry.float);
                        *known != before
                    }
                    none => {
                        *none = Some(entry);
                        true
                    }
                };
                if changed && !todo.contains(&callee) {
                    todo.push_back(callee);
                }
            }
        }
        for n in 0..units.len() {
            self.unit(n, true);
        }
    }

    /// Follows a unit; returns what it leaves for the functions of the file that it calls.
    fn unit(&mut self, n: usize, tell: bool) -> Vec<(usize, Entry)> {
        let analysis = self.analysis;
        let function = &analysis.units[n].function;
        // Nothing calls it, or only functions that are never called.
        let entry = self.entries[n].clone().unwrap_or(Entry { masks: BTreeMap::new(), float: None });
        let slots = self.edits.homes.range((n, 0)..(n + 1, 0)).map(|(&(_, s), _)| (s, Some(Lost::Never)));
        let begin = State { slots: slots.collect(), masks: entry.masks, float: entry.float };
        let mut before: HashMap<usize, State> = HashMap::new();
        let mut todo: VecDeque<usize> = VecDeque::new();
        let mut calls: Vec<(usize, Entry)> = Vec::new();
        let reach =
            |before: &mut HashMap<usize, State>, todo: &mut VecDeque<usize>, to: usize, state: State| {
                let changed = match before.get_mut(&to) {
                    Some(known) => known.join(&state),
                    None => {
                        before.insert(to, state);
                        true
                    }
                };
                if changed && !todo.contains(&to) {
                    todo.push_back(to);
                }
            };
        for from in self.arrivals(function.entry, None) {
            let mut state = begin.clone();
            self.run(n, from, function.entry, &mut state, &mut HashMap::new(), tell);
            reach(&mut before, &mut todo, function.entry, state);
        }
        while let Some(op) = todo.pop_front() {
            let mut state = before[&op].clone();
            let mut held = self.held(op);
            if let Some(call) = function.calls.get(&op)
                && let Callee::Local(entry) = call.callee
                && let Some(&callee) = self.units.get(&entry)
            {
                calls.push((callee, Entry { masks: state.masks.clone(), float: state.float }));
            }
            if let Some(flow::Exit::Tail(Callee::Local(entry))) = function.exits.get(&op)
                && let Some(&callee) = self.units.get(entry)
            {
                calls.push((callee, Entry { masks: BTreeMap::new(), float: state.float }));
            }
            self.step(n, op, &mut state, &mut held, tell);
            for &next in &function.next[&op] {
                let direct = analysis.program.ops[op].target == Some(Target::Op(next))
                    && !function.calls.contains_key(&op);
                let link = function.calls.get(&op).is_some_and(|call| call.link);
                let falls = next == op + 1 && !link && falls_through(&analysis.program.ops[op].instruction);
                let mut ways: BTreeSet<usize> = BTreeSet::new();
                if falls {
                    ways.insert(self.pairs.of[op] + 1);
                }
                // Unwinding may have run any code, and restores only the registers that callees keep.
                let unwinds = function.calls.contains_key(&op) && function.pads.contains(&next);
                if !falls || direct || unwinds {
                    ways.extend(self.arrivals(next, direct.then_some(op)));
                }
                if ways.is_empty() && tell {
                    self.reasons.push(Reason::Target(Place::of(self.other, self.pairs.of[op])));
                }
                // Code outside that enters here has made no mask, and skips the additions before the place where it arrives.
                let door = analysis.units[n]
                    .frame
                    .before
                    .get(&next)
                    .is_none_or(|s| frame::is_door(function, next, s));
                let outside = if door { self.arrivals(next, None) } else { BTreeSet::new() };
                let ways = ways.into_iter().map(|from| (from, held.clone()));
                for (from, mut held) in ways.chain(outside.into_iter().map(|from| (from, HashMap::new()))) {
                    let mut state = state.clone();
                    if unwinds {
                        state.slots.values_mut().for_each(|lost| *lost = lost.or(Some(Lost::Outside(op))));
                        state.masks.clear();
                        state.float = state.float.or(Some(op));
                    }
                    if door {
                        state.masks.clear();
                    }
                    self.run(n, from, next, &mut state, &mut held, tell);
                    reach(&mut before, &mut todo, next, state);
                }
            }
        }
        calls
    }

    /// Where control arrives in the other version when it goes to an instruction of the original by a jump.
    fn arrivals(&self, to: usize, by: Option<usize>) -> BTreeSet<usize> {
        if let Some(by) = by
            && let Some(Target::Op(there)) = self.other.ops[self.pairs.of[by]].target
        {
            return BTreeSet::from([there]);
        }
        let known = self.landings.get(&to).cloned().unwrap_or_default();
        // The first instruction of a text may have no name.
        if known.is_empty() {
            self.pairs.added_before(to).next().or(Some(self.pairs.of[to])).into_iter().collect()
        } else {
            known
        }
    }

    fn tell(&mut self, tell: bool, key: (usize, usize), reason: impl FnOnce(&Self) -> Reason) {
        if tell && self.told.insert(key) {
            let reason = reason(self);
            self.reasons.push(reason);
        }
    }

    /// The instructions from `from` on that only the other version has, before the counterpart of `to`.
    fn run(
        &mut self,
        n: usize,
        from: usize,
        to: usize,
        state: &mut State,
        held: &mut HashMap<Register, Held>,
        tell: bool,
    ) {
        let end = self.pairs.of[to];
        // The additions that bring the value to its instruction must not be jumped over.
        if from > self.edits.begins.get(&to).copied().unwrap_or(end) {
            self.tell(tell, (usize::MAX, end), |this| Reason::Target(Place::of(this.other, end)));
            return;
        }
        for r in from..end {
            match self.edits.explained.get(&r).copied() {
                Some(Part { key, general, put: false }) => {
                    self.needs(n, key, r, state, tell);
                    held.insert(general, Held::Value(key));
                }
                Some(Part { key, general, put: true }) => {
                    if held.remove(&general) != Some(Held::Result(key)) {
                        self.tell(tell, (key.1, r), |this| {
                            Reason::HalfMoved(SlotName::of(this.analysis, key), Place::of(this.other, r))
                        });
                    }
                    self.stored(n, key, r, state, tell);
                }
                None => {
                    let before = state.masks.clone();
                    self.plain(n, r, None, state);
                    self.masks(r, &before, state);
                }
            }
            self.floats(n, r, state, tell);
        }
    }

    /// Registers that are borrowed when an instruction begins: filled by what runs just before it.
    fn held(&self, op: usize) -> HashMap<Register, Held> {
        let mut out = HashMap::new();
        for r in self.pairs.added_before(op) {
            match self.edits.explained.get(&r) {
                Some(&Part { key, general, put: false }) => {
                    out.insert(general, Held::Value(key));
                }
                Some(&Part { general, put: true, .. }) => {
                    out.remove(&general);
                }
                None => (),
            }
        }
        out
    }

    /// A home that must hold its slot's value.
    fn needs(&mut self, n: usize, key: Key, r: usize, state: &State, tell: bool) {
        let Some(lost) = state.slots.get(&key.1).copied().flatten().filter(|_| key.0 == n) else {
            if key.0 != n {
                self.tell(tell, (key.1, r), |this| Reason::Unexplained(Place::of(this.other, r)));
            }
            return;
        };
        self.tell(tell, (key.1, r), |this| {
            let slot = SlotName::of(this.analysis, key);
            let home = this.edits.homes[&key];
            let original = &this.analysis.program;
            match lost {
                Lost::Never => Reason::LoadBeforeStore(slot, Place::of(this.other, r)),
                Lost::Written(at) => {
                    Reason::HomeClobbered { slot, home, at: Place::of(this.other, at), callee: None }
                }
                Lost::Callee(op, unit) => {
                    let callee = Some(this.analysis.units[unit].function.name().to_owned());
                    Reason::HomeClobbered { slot, home, at: Place::of(original, op), callee }
                }
                Lost::Outside(op) => Reason::AcrossUnknown(slot, Place::of(original, op)),
                Lost::Below(op) => Reason::Aliased { slot, by: Place::of(original, op), writes: true },
            }
        });
    }

    /// A value goes to its home.
    fn stored(&mut self, n: usize, key: Key, r: usize, state: &mut State, tell: bool) {
        let home = self.edits.homes[&key];
        self.plain(n, r, Some(key), state);
        if let Home::Lane { lane, .. } = home
            && state.masks.get(&lane) != Some(&Mask::Lane(lane))
        {
            self.tell(tell, (key.1, r), |this| Reason::HomeClobbered {
                slot: SlotName::of(this.analysis, key),
                home,
                at: Place::of(this.other, r),
                callee: None,
            });
        }
        state.slots.insert(key.1, None);
    }

    /// What an instruction of the other version writes is no longer equal, except its own slot's home.
    fn plain(&mut self, n: usize, r: usize, own: Option<Key>, state: &mut State) {
        let written = self.writes(r);
        if written.is_empty() {
            return;
        }
        for (&s, lost) in &mut state.slots {
            let home = self.edits.homes[&(n, s)];
            if own != Some((n, s))
                && lost.is_none()
                && written.iter().any(|&register| touches(&self.other.ops[r].instruction, register, home))
            {
                *lost = Some(Lost::Written(r));
            }
        }
        state.masks.retain(|&k, _| !written.contains(&(Register::K0 + u32::from(k))));
    }

    /// The making of a lane's mask, in three steps.
    fn masks(&self, r: usize, before: &BTreeMap<u8, Mask>, state: &mut State) {
        let i = self.edited(r);
        let k = i.op0_register();
        if !k.is_k() || i.op1_register() != k {
            return;
        }
        let number = k.number() as u8;
        let made = match (i.mnemonic(), before.get(&number)) {
            (Mnemonic::Kxnorb, _) if i.op2_register() == k => Mask::Ones,
            (Mnemonic::Kshiftrb, Some(Mask::Ones)) if i.immediate8() == 7 => Mask::One,
            (Mnemonic::Kshiftlb, Some(Mask::One)) => Mask::Lane(i.immediate8()),
            _ => return,
        };
        state.masks.insert(number, made);
    }

    /// MMX and `emms` of ours find the x87 registers empty.
    fn floats(&mut self, n: usize, r: usize, state: &State, tell: bool) {
        let Some(since) = state.float else { return };
        let i = *self.edited(r);
        let mmx = matches!(i.mnemonic(), Mnemonic::Emms | Mnemonic::Femms)
            || self.info.info(&i).used_registers().iter().any(|used| used.register().is_mm());
        if mmx {
            self.tell(tell, (usize::MAX - 1 - n, r), |this| Reason::X87WhileMmx {
                at: Place::of(this.other, r),
                after: Place::of(&this.analysis.program, since),
            });
        }
    }

    /// An instruction of the original, and what became of it.
    fn step(
        &mut self,
        n: usize,
        op: usize,
        state: &mut State,
        held: &mut HashMap<Register, Held>,
        tell: bool,
    ) {
        let r = self.pairs.of[op];
        let borrowed = std::mem::take(held);
        if let Some(call) = self.analysis.units[n].function.calls.get(&op) {
            let callee = call.callee.clone();
            self.call(n, op, &callee, state);
            return;
        }
        let Some(&key) = self.edits.slot_of.get(&op) else {
            self.plain(n, r, None, state);
            return;
        };
        match self.edits.moves.get(&op) {
            // A whole store or load.
            Some(Part { put: true, .. }) => {
                self.stored(n, key, r, state, tell);
                self.floats(n, r, state, tell);
            }
            Some(Part { put: false, .. }) => {
                self.needs(n, key, r, state, tell);
                self.floats(n, r, state, tell);
            }
            // Through a register.
            None => {
                let Some(&(free, reads, writes)) = self.edits.through.get(&op) else { return };
                if reads && borrowed.get(&free) != Some(&Held::Value(key)) {
                    self.tell(tell, (key.1, r), |this| {
                        Reason::HalfMoved(SlotName::of(this.analysis, key), Place::of(this.other, r))
                    });
                }
                if writes {
                    state.slots.insert(key.1, Some(Lost::Written(r)));
                    held.insert(free, Held::Result(key));
                }
            }
        }
    }

    fn call(&mut self, n: usize, op: usize, callee: &Callee, state: &mut State) {
        let analysis = self.analysis;
        let unit = &analysis.units[n];
        let lose = |state: &mut State, s: usize, why: Lost| {
            if let Some(lost @ None) = state.slots.get_mut(&s) {
                *lost = Some(why);
            }
        };
        let own: Vec<(usize, Home)> =
            self.edits.homes.range((n, 0)..(n + 1, 0)).map(|(&(_, s), &home)| (s, home)).collect();
        // The return address and the callee's frame lie below the stack pointer.
        let top = match unit.frame.before.get(&op).map(|state| state.of(Register::RSP)) {
            Some(Value::Stack(top)) => Some(top),
            _ => None,
        };
        for &(s, _) in &own {
            let at = unit.slots[s].address;
            if top.is_none_or(|top| at.base != top.base || at.offset < top.offset) {
                lose(state, s, Lost::Below(op));
            }
        }
        let outside = |state: &mut State| {
            for &(s, _) in &own {
                lose(state, s, Lost::Outside(op));
            }
            state.masks.clear();
        };
        match callee {
            Callee::Local(entry) => {
                let Some(&callee) = self.units.get(entry) else {
                    outside(state);
                    return;
                };
                let watched = !own.is_empty() || !state.masks.is_empty();
                let below = if watched { analysis.below(callee) } else { BTreeSet::new() };
                let all: Vec<usize> = below.into_iter().chain([callee]).collect();
                if all.iter().any(|&n| analysis.units[n].leaves.is_some() || analysis.units[n].indirect) {
                    outside(state);
                }
                for &below in &all {
                    let written = &self.written[below];
                    for &(s, home) in &own {
                        let mut all = written.iter();
                        if all.any(|&(r, register)| touches(&self.other.ops[r].instruction, register, home)) {
                            lose(state, s, Lost::Callee(op, below));
                        }
                    }
                    let mask = |k: u8| Register::K0 + u32::from(k);
                    state.masks.retain(|&k, _| !written.iter().any(|&(_, register)| register == mask(k)));
                }
                if analysis.units[callee].float_outward.is_some() {
                    state.float = Some(op);
                }
            }
            Callee::External(name) => {
                outside(state);
                state.float = well_known::may_return_float(name).then_some(op);
            }
            Callee::Unknown => {
                outside(state);
                state.float = Some(op);
            }
        }
    }
}

fn falls_through(i: &iced_x86::Instruction) -> bool {
    use iced_x86::FlowControl::{Call, ConditionalBranch, IndirectCall, Next, XbeginXabortXend};
    matches!(i.flow_control(), Next | ConditionalBranch | Call | IndirectCall | XbeginXabortXend)
}

/// Whether an instruction that writes this register changes the home.
fn touches(i: &iced_x86::Instruction, register: Register, home: Home) -> bool {
    if let Home::Lane { zmm, lane } = home {
        let own = Register::ZMM0 + u32::from(zmm);
        let mask = Register::K0 + u32::from(lane);
        // A masked broadcast writes one lane and keeps the others.
        let other_lane = i.mnemonic() == Mnemonic::Vpbroadcastq
            && i.op0_register().is_zmm()
            && i.op_mask() != Register::None
            && i.merging_masking();
        return register == own && !(other_lane && i.op_mask() != mask);
    }
    home.registers().contains(&register)
}
