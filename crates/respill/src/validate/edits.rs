//! The checks of an edit by the text alone: each change is a whole move to or from one home, no flag and no live
//! register changes on the way, and nothing else writes the home while the value lives.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

use super::pairs::{Pairs, is_plain_addition, through, transfer};
use super::reason::{Place, Reason, SlotName};
use crate::analysis::Analysis;
use crate::flow::Callee;
use crate::homes::Home;
use crate::neighbours::Neighbours;
use crate::program::Program;
use crate::slots::Class;

/// A slot, by the number of its unit and its own.
pub type Key = (usize, usize);

/// What was edited.
#[derive(Clone, Debug, Default)]
pub struct Edits {
    /// The home of each slot that has moved.
    pub homes: BTreeMap<Key, Home>,
    /// The slot that an instruction of the original names, of the slots that have moved.
    pub slot_of: HashMap<usize, Key>,
    /// What is wrong.
    pub reasons: Vec<Reason>,
}

struct Look<'a> {
    analysis: &'a Analysis,
    other: &'a Program,
    pairs: &'a Pairs,
    info: InstructionInfoFactory,
    /// Of additions that belong to a changed instruction: which, and the slot.
    explained: HashMap<usize, (usize, Key)>,
    out: Edits,
}

/// Checks the edits of an aligned text.
#[must_use]
pub fn edits(analysis: &Analysis, other: &Program, pairs: &Pairs) -> Edits {
    let mut look = Look {
        analysis,
        other,
        pairs,
        info: InstructionInfoFactory::new(),
        explained: HashMap::new(),
        out: Edits::default(),
    };
    let mut named: HashMap<usize, Vec<Key>> = HashMap::new();
    for (n, unit) in analysis.units.iter().enumerate() {
        for (s, slot) in unit.slots.iter().enumerate() {
            slot.uses().for_each(|op| named.entry(op).or_default().push((n, s)));
        }
    }
    for &op in &pairs.changed {
        match named.get(&op).map(Vec::as_slice) {
            Some(&[key]) => look.changed(op, key),
            Some(&[key, ..]) => {
                let name = SlotName::of(analysis, key);
                let why = analysis.told(crate::analysis::Opaque::Shared(op));
                look.out.reasons.push(Reason::Opaque(name, why));
            }
            _ => {
                let [before, after] = [look.flags(op), look.flags_of(pairs.of[op])];
                let at = Place::of(other, pairs.of[op]);
                let reason = if before == after { Reason::Unexplained(at) } else { Reason::FlagsChanged(at) };
                look.out.reasons.push(reason);
            }
        }
    }
    look.additions();
    look.slots();
    look.clobbers();
    look.out
}

fn reads(access: OpAccess) -> bool {
    matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

fn writes(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

impl Look<'_> {
    fn original(&self, op: usize) -> &Instruction {
        &self.analysis.program.ops[op].instruction
    }

    fn edited(&self, op: usize) -> &Instruction {
        &self.other.ops[op].instruction
    }

    fn flags(&self, op: usize) -> (u32, u32) {
        (self.original(op).rflags_modified(), self.original(op).rflags_read())
    }

    fn flags_of(&self, op: usize) -> (u32, u32) {
        (self.edited(op).rflags_modified(), self.edited(op).rflags_read())
    }

    /// The home that a transfer is to or from.
    fn home(&self, at: usize, register: Register) -> Home {
        let i = self.edited(at);
        let number = |register: Register| register.number() as u8;
        if register.is_mm() {
            return Home::Mm(number(register));
        }
        if register.is_k() {
            return Home::K(number(register));
        }
        if i.mnemonic() == Mnemonic::Vpbroadcastq && i.op_mask() != Register::None {
            return Home::Lane { zmm: number(register), lane: number(i.op_mask()) };
        }
        if register.full_register() == Register::ZMM31
            && at > 0
            && self.edited(at - 1).mnemonic() == Mnemonic::Valignq
            && self.edited(at - 1).op0_register() == Register::ZMM31
            && self.edited(at - 1).op1_register() == self.edited(at - 1).op2_register()
        {
            let shift = self.edited(at - 1);
            return Home::Lane { zmm: number(shift.op1_register()), lane: shift.immediate8() };
        }
        Home::Xmm(number(register))
    }

    /// Whether a transfer moves the value of a slot of `size` bytes. The upper half of a lane is dropped when it is
    /// taken.
    fn whole(&self, at: usize, moved: usize, put: bool, size: usize, home: Home) -> bool {
        moved == size || put && matches!(home, Home::Lane { .. }) && self.edited(at).op1_register().is_gpr64()
    }

    fn changed(&mut self, op: usize, key: Key) {
        let name = SlotName::of(self.analysis, key);
        let at = self.pairs.of[op];
        let place = Place::of(self.other, at);
        let size = self.analysis.units[key.0].slots[key.1].size;
        let mut homes: Vec<Home> = Vec::new();
        let mut reasons = Vec::new();
        if self.flags(op) != self.flags_of(at) {
            reasons.push(Reason::FlagsChanged(place));
        } else if let Some((_, register, moved, put)) = transfer(self.edited(at))
            && self.original(op).mnemonic() == Mnemonic::Mov
        {
            let home = self.home(at, register);
            if !self.whole(at, moved, put, size, home) {
                reasons.push(Reason::Width(name.clone(), place));
            }
            homes.push(home);
        } else if let Some((n, free)) = through(self.original(op), self.edited(at)) {
            let unit = &self.analysis.units[key.0];
            if !unit.registers.is_free(op, free) {
                reasons.push(Reason::Borrowed(free, place.clone()));
            }
            let old = *self.original(op);
            let access = self.info.info(&old).op_access(n);
            let of = |r: &usize, want: bool| {
                transfer(self.edited(*r))
                    .filter(|&(general, _, _, put)| general == free.full_register() && put == want)
            };
            let take = self.pairs.added_before(op).rev().find_map(|r| Some((r, of(&r, false)?)));
            let put = self.pairs.added_after(op).find_map(|r| Some((r, of(&r, true)?)));
            let mut wide = free.size() == size;
            for (needed, found) in [(reads(access), take), (writes(access), put)] {
                match found {
                    Some((r, (_, register, moved, put))) if needed => {
                        let home = self.home(r, register);
                        wide &= self.whole(r, moved, put, size, home);
                        homes.push(home);
                        self.explained.insert(r, (op, key));
                    }
                    None if needed => reasons.push(Reason::HalfMoved(name.clone(), place.clone())),
                    _ => (),
                }
            }
            if !wide {
                reasons.push(Reason::Width(name.clone(), place));
            }
        } else {
            reasons.push(Reason::Unexplained(place));
        }
        for home in homes {
            let known = *self.out.homes.entry(key).or_insert(home);
            if known != home {
                reasons.push(Reason::TwoHomes(name.clone(), [known, home]));
            }
        }
        self.out.slot_of.insert(op, key);
        self.out.reasons.extend(reasons);
    }

    /// Additions that belong to no changed instruction must touch neither flags nor general registers.
    fn additions(&mut self) {
        for r in (0..self.pairs.back.len()).filter(|&r| self.pairs.back[r].is_none()) {
            let i = self.edited(r);
            let place = || Place::of(self.other, r);
            let takes = transfer(i).is_some_and(|(_, _, _, put)| !put);
            let reason = if i.rflags_modified() != 0 {
                Reason::FlagsChanged(place())
            } else if !is_plain_addition(i) || takes && !self.explained.contains_key(&r) {
                Reason::Unexplained(place())
            } else {
                continue;
            };
            self.out.reasons.push(reason);
        }
    }

    /// All uses of a moved slot have moved, and it is one that can.
    fn slots(&mut self) {
        for &key in self.out.homes.keys() {
            let unit = &self.analysis.units[key.0];
            let slot = &unit.slots[key.1];
            let name = || SlotName::of(self.analysis, key);
            if let Some(why) = unit.opaque {
                self.out.reasons.push(Reason::Opaque(name(), self.analysis.told(why)));
            }
            if !matches!(slot.class, Class::Spill | Class::Pointer | Class::Operand) {
                self.out.reasons.push(Reason::NoSpill(name(), slot.class));
            }
            if let Some(op) = slot.uses().find(|op| !self.out.slot_of.contains_key(op)) {
                self.out.reasons.push(Reason::Partly(name(), Place::of(self.other, self.pairs.of[op])));
            }
            if slot.from_outside {
                let program = &self.analysis.program;
                let first = slot.uses().filter(|op| !slot.overwrites.contains(op)).min();
                let at = first.map_or(unit.function.entry, |op| op);
                self.out.reasons.push(Reason::LoadBeforeStore(name(), Place::of(program, at)));
            }
        }
    }

    /// The home registers that an instruction of the other version writes.
    fn written(&mut self, r: usize) -> Vec<Register> {
        let i = *self.edited(r);
        // It clears the register above a home.
        if i.mnemonic() == Mnemonic::Vzeroupper {
            return Vec::new();
        }
        let used = self.info.info(&i).used_registers();
        used.iter()
            .filter(|used| writes(used.access()))
            .map(|used| used.register().full_register())
            .filter(|register| super::pairs::is_home(*register))
            .collect()
    }

    /// The registers that a unit's instructions and their additions write, with the places.
    fn written_by(&mut self, unit: usize) -> Vec<(usize, Register)> {
        let body = self.analysis.units[unit].function.body.clone();
        let mut out = Vec::new();
        for op in body {
            let all: Vec<usize> = self.pairs.added_before(op).chain([self.pairs.of[op]]).collect();
            for r in all {
                out.extend(self.written(r).into_iter().map(|register| (r, register)));
            }
        }
        out
    }

    fn clobbers(&mut self) {
        let analysis = self.analysis;
        let units: BTreeSet<usize> = self.out.homes.keys().map(|&(unit, _)| unit).collect();
        for &n in &units {
            let around = Neighbours::of(analysis, n);
            for (&key, &home) in self.out.homes.range((n, 0)..(n + 1, 0)) {
                if let Some(objection) = around.objection(home) {
                    let at = Place::of(
                        &analysis.program,
                        objection.op().unwrap_or(analysis.units[n].function.entry),
                    );
                    let (slot, why) = (SlotName::of(analysis, key), objection.says(analysis));
                    self.out.reasons.push(Reason::HomeTaken { slot, at, why });
                }
            }
        }
        let mut by: HashMap<usize, Vec<(usize, Register)>> = HashMap::new();
        let mut told: HashSet<(Key, usize)> = HashSet::new();
        for n in units {
            let unit = &analysis.units[n];
            let own: Vec<(Key, Home)> =
                self.out.homes.range((n, 0)..(n + 1, 0)).map(|(&key, &home)| (key, home)).collect();
            let live = |set: Option<&BTreeSet<usize>>, s: usize| set.is_some_and(|set| set.contains(&s));
            for &op in &unit.function.body {
                let all: Vec<usize> = self.pairs.added_before(op).chain([self.pairs.of[op]]).collect();
                for r in all {
                    let (owner, after) = match self.explained.get(&r) {
                        Some(&(op, key)) => (Some(key), unit.live.after.get(&op)),
                        None if r == self.pairs.of[op] => {
                            (self.out.slot_of.get(&op).copied(), unit.live.after.get(&op))
                        }
                        None => (None, unit.live.before.get(&op)),
                    };
                    for register in self.written(r) {
                        for &(key, home) in &own {
                            if Some(key) != owner
                                && live(after, key.1)
                                && touches(self.edited(r), register, home)
                                && told.insert((key, r))
                            {
                                let (slot, at) = (SlotName::of(analysis, key), Place::of(self.other, r));
                                let reason = Reason::HomeClobbered { slot, home, at, callee: None };
                                self.out.reasons.push(reason);
                            }
                        }
                    }
                }
            }
            for (&op, call) in &unit.function.calls {
                let at = || Place::of(&analysis.program, op);
                let across: Vec<(Key, Home)> =
                    own.iter().filter(|(key, _)| live(unit.live.after.get(&op), key.1)).copied().collect();
                if across.is_empty() {
                    continue;
                }
                let Callee::Local(entry) = call.callee else {
                    for (key, _) in across {
                        let slot = SlotName::of(analysis, key);
                        self.out.reasons.push(Reason::AcrossUnknown(slot, at()));
                    }
                    continue;
                };
                let Some(callee) = analysis.at(entry) else { continue };
                for below in analysis.below(callee).into_iter().chain([callee]) {
                    let by = by.entry(below).or_insert_with(|| self.written_by(below));
                    for &(key, home) in &across {
                        let hit = by
                            .iter()
                            .find(|&&(r, register)| touches(&self.other.ops[r].instruction, register, home));
                        if hit.is_some() && told.insert((key, self.pairs.of[op])) {
                            let callee = Some(analysis.units[below].function.name().to_owned());
                            let (slot, at) = (SlotName::of(analysis, key), at());
                            self.out.reasons.push(Reason::HomeClobbered { slot, home, at, callee });
                        }
                    }
                    let unit = &analysis.units[below];
                    if unit.leaves.is_some() {
                        for &(key, _) in &across {
                            if told.insert((key, usize::MAX)) {
                                let slot = SlotName::of(analysis, key);
                                self.out.reasons.push(Reason::AcrossUnknown(slot, at()));
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Whether an instruction that writes this register changes the home.
fn touches(i: &Instruction, register: Register, home: Home) -> bool {
    if let Home::Lane { zmm, lane } = home {
        let own = Register::ZMM0 + u32::from(zmm);
        let mask = Register::K0 + u32::from(lane);
        // A masked broadcast writes one lane and keeps the others.
        let other_lane = i.mnemonic() == Mnemonic::Vpbroadcastq
            && i.op0_kind() == OpKind::Register
            && i.op_mask() != Register::None
            && i.merging_masking();
        return register == mask || register == own && !(other_lane && i.op_mask() != mask);
    }
    home.registers().contains(&register)
}
