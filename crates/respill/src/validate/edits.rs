//! The checks of an edit by the text alone: each change is a whole move to or from one home, no flag and no live
//! register changes on the way, and nothing else writes the home while the value lives.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet, HashMap};

use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, Register};

use super::pairs::{Pairs, through, transfer};
use super::reason::{Place, Reason, SlotName};
use crate::analysis::Analysis;
use crate::frame::{reads, writes};
use crate::homes::Home;
use crate::neighbours::Neighbours;
use crate::program::Program;
use crate::slots::Class;

/// A slot: the number of its unit, and its own.
pub type Key = (usize, usize);

/// What was edited.
#[derive(Clone, Debug, Default)]
pub struct Edits {
    /// The home of each slot that has moved.
    pub homes: BTreeMap<Key, Home>,
    /// The moved slot that an instruction of the original names.
    pub slot_of: HashMap<usize, Key>,
    /// Changed instructions that became one move, by their numbers in the original.
    pub moves: HashMap<usize, Part>,
    /// Changed instructions that go through a free register: the register, and whether they read and write the slot.
    pub through: HashMap<usize, (Register, bool, bool)>,
    /// The moves of additions that belong to a changed instruction.
    pub explained: HashMap<usize, Part>,
    /// For each changed instruction, the first addition that must run before it.
    pub begins: HashMap<usize, usize>,
    /// What is wrong.
    pub reasons: Vec<Reason>,
}

/// A move between a slot's home and a general register.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The slot.
    pub key: Key,
    /// The register.
    pub general: Register,
    /// Whether the home is written.
    pub put: bool,
}

struct Look<'a> {
    analysis: &'a Analysis,
    other: &'a Program,
    pairs: &'a Pairs,
    info: InstructionInfoFactory,
    out: Edits,
}

/// Checks the edits of an aligned text.
#[must_use]
pub fn edits(analysis: &Analysis, other: &Program, pairs: &Pairs) -> Edits {
    let mut look =
        Look { analysis, other, pairs, info: InstructionInfoFactory::new(), out: Edits::default() };
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
                look.out.reasons.push(Reason::Opaque(name, shared(analysis, op)));
            }
            _ => {
                let [before, after] = [look.flags(op), look.flags_of(pairs.of[op])];
                let at = Place::of(other, pairs.of[op]);
                let reason = if before == after { Reason::Unexplained(at) } else { Reason::FlagsChanged(at) };
                look.out.reasons.push(reason);
            }
        }
    }
    look.slots();
    look.neighbours();
    look.out
}

fn shared(analysis: &Analysis, op: usize) -> String {
    format!("line {} belongs to another function too", analysis.program.line(op))
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
            && self.edited(at - 1).op_mask() == Register::None
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
        } else if let Some((general, register, moved, put)) = transfer(self.edited(at))
            && self.original(op).mnemonic() == Mnemonic::Mov
        {
            let home = self.home(at, register);
            self.out.moves.insert(op, Part { key, general, put });
            if !put && matches!(home, Home::Lane { .. }) {
                self.out.begins.insert(op, at - 1);
            }
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
            self.out.through.insert(op, (free.full_register(), reads(access), writes(access)));
            let of = |r: &usize, want: bool| {
                transfer(self.edited(*r))
                    .filter(|&(general, _, _, put)| general == free.full_register() && put == want)
            };
            let take = self.pairs.added_before(op).rev().find_map(|r| Some((r, of(&r, false)?)));
            let put = self.pairs.added_after(op).find_map(|r| Some((r, of(&r, true)?)));
            let mut wide = free.size() == size;
            for (needed, found) in [(reads(access), take), (writes(access), put)] {
                match found {
                    Some((r, (general, register, moved, put))) if needed => {
                        let home = self.home(r, register);
                        wide &= self.whole(r, moved, put, size, home);
                        homes.push(home);
                        self.out.explained.insert(r, Part { key, general, put });
                        if !put {
                            let first = if matches!(home, Home::Lane { .. }) { r - 1 } else { r };
                            self.out.begins.insert(op, first);
                        }
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

    /// Checks that all uses of a moved slot have moved, and that the slot can move.
    fn slots(&mut self) {
        for &key in self.out.homes.keys() {
            let unit = &self.analysis.units[key.0];
            let slot = &unit.slots[key.1];
            let name = || SlotName::of(self.analysis, key);
            if let Some(why) = unit.opaque {
                self.out.reasons.push(Reason::Opaque(name(), self.analysis.told(why)));
            }
            if let Some(op) = slot.uses().find(|op| self.analysis.shared.contains(op)) {
                self.out.reasons.push(Reason::Opaque(name(), shared(self.analysis, op)));
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

    /// Checks that no caller or callee uses a home by itself, and that no other caller expects it to be kept.
    fn neighbours(&mut self) {
        let analysis = self.analysis;
        let units: BTreeSet<usize> = self.out.homes.keys().map(|&(unit, _)| unit).collect();
        for n in units {
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
    }
}
