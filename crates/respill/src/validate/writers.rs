//! The writers of the bytes that a slot's load reads: one run of the original, with every access to its stack followed.
//!
//! Each byte of the stack below the entry carries the instruction that wrote it last, and in which call of its
//! function. A load from a moved slot must find bytes that a store to the same slot wrote in the same call; bytes that
//! such a store wrote must be read by nothing else. The registers give the bytes that an instruction touches, so
//! pointers, indices and callees are followed exactly. Writes by the kernel are not.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet, HashMap};

use lanework_trace::{Access, Ending, Snapshot, Touch, Unavailable};

use super::edits::Key;
use super::reason::{Place, Reason, SlotName};
use crate::analysis::Analysis;
use crate::load::Loaded;

/// The most of the stack that is followed.
const DEPTH: u64 = 64 << 20;

/// The result of runs of the original.
#[derive(Clone, Debug, Default)]
pub(super) struct Writers {
    /// Instructions followed, those of other code included.
    pub(super) steps: u64,
    /// The number of times each instruction of the program ran.
    pub(super) counts: HashMap<usize, u64>,
    pub(super) reasons: Vec<Reason>,
    told: BTreeSet<(Key, u8)>,
}

/// A byte's last writer: an instruction of the program (its number plus one), or other code (from this on).
const OTHER: u32 = 1 << 31;

struct Walk<'a> {
    analysis: &'a Analysis,
    loaded: &'a Loaded,
    slot_of: &'a HashMap<usize, Key>,
    entries: HashMap<usize, usize>,
    /// The current call of each unit.
    activations: Vec<u32>,
    /// From the stack pointer at the entry downwards: writer and call.
    shadow: Vec<(u32, u32)>,
    entry: Option<u64>,
    over: bool,
    others: Vec<u64>,
    other_numbers: HashMap<u64, u32>,
    out: &'a mut Writers,
    room: Vec<Access>,
}

impl Walk<'_> {
    fn place(&self, writer: u32) -> Place {
        if writer >= OTHER {
            return Place::outside(self.others[(writer - OTHER) as usize]);
        }
        Place::of(&self.analysis.program, writer as usize - 1)
    }

    fn slot(&self, writer: u32) -> Option<Key> {
        (1..OTHER).contains(&writer).then(|| self.slot_of.get(&(writer as usize - 1)).copied()).flatten()
    }

    fn tell(&mut self, key: Key, writer: u32, kind: u8, reason: impl FnOnce(SlotName, Place) -> Reason) {
        // The first of each kind suffices: an array that contains a slot is touched everywhere.
        if self.out.told.insert((key, kind)) {
            let place = if writer == 0 { Place::outside(0) } else { self.place(writer) };
            self.out.reasons.push(reason(SlotName::of(self.analysis, key), place));
        }
    }

    fn access(&mut self, access: Access, me: u32, own: Option<Key>) {
        let Some(entry) = self.entry else { return };
        let end = access.address.wrapping_add(access.bytes);
        if access.address >= entry || end <= entry.saturating_sub(DEPTH) || end < access.address {
            return;
        }
        let from = access.address.max(entry.saturating_sub(DEPTH));
        let deepest = (entry - from) as usize;
        if self.shadow.len() < deepest {
            self.shadow.resize(deepest.next_multiple_of(4096), (0, 0));
        }
        let now = own.map_or(0, |key| self.activations[key.0]);
        let (reads, writes) = match access.touch {
            Touch::Read => (true, false),
            Touch::Write => (false, true),
            Touch::Both => (true, true),
            Touch::Cache => return,
        };
        for byte in from..end.min(entry) {
            let at = (entry - 1 - byte) as usize;
            let (writer, call) = self.shadow[at];
            if reads {
                let owner = self.slot(writer);
                match own {
                    Some(key) if owner == Some(key) && call == now => (),
                    Some(key) if writer == 0 || owner == Some(key) => {
                        self.tell(key, me, 0, Reason::LoadBeforeStore);
                    }
                    Some(key) => {
                        self.tell(key, writer, 1, |slot, by| Reason::Aliased { slot, by, writes: true });
                    }
                    None => {
                        if let Some(key) = owner {
                            let aliased = |slot, by| Reason::Aliased { slot, by, writes: false };
                            self.tell(key, me, 2, aliased);
                        }
                    }
                }
            }
            if writes {
                self.shadow[at] = (me, now);
            }
        }
    }

    fn look(&mut self, step: &lanework_trace::Step<'_>, fs: u64) -> bool {
        let op = self.loaded.op_at(step.address());
        if self.entry.is_none() {
            if op.is_none() {
                return true;
            }
            self.entry = Some(step.general(4));
        }
        // After the return nothing is followed.
        self.over |= self.entry.is_some_and(|entry| step.general(4) > entry);
        if self.over {
            return true;
        }
        self.out.steps += 1;
        if let Some(op) = op {
            *self.out.counts.entry(op).or_default() += 1;
            if let Some(&unit) = self.entries.get(&op) {
                self.activations[unit] += 1;
            }
        }
        if !step.site.touches() {
            return true;
        }
        let me = match op {
            Some(op) => op as u32 + 1,
            None => {
                let next = OTHER + self.others.len() as u32;
                let number = *self.other_numbers.entry(step.address()).or_insert(next);
                if number == next {
                    self.others.push(step.address());
                }
                number
            }
        };
        let own = op.and_then(|op| self.slot_of.get(&op).copied());
        let mut room = std::mem::take(&mut self.room);
        step.site.accesses(step, fs, &mut room);
        for access in &room {
            self.access(*access, me, own);
        }
        self.room = room;
        true
    }
}

/// Follows the original through one input. How that ended.
///
/// # Errors
/// If nothing can be traced.
pub(super) fn follow(
    snapshot: &mut Snapshot,
    analysis: &Analysis,
    loaded: &Loaded,
    slot_of: &HashMap<usize, Key>,
    input: u64,
    out: &mut Writers,
) -> Result<Ending, Unavailable> {
    let mut walk = Walk {
        analysis,
        loaded,
        slot_of,
        entries: analysis.units.iter().enumerate().map(|(n, unit)| (unit.function.entry, n)).collect(),
        activations: vec![0; analysis.units.len()],
        shadow: Vec::new(),
        entry: None,
        over: false,
        others: Vec::new(),
        other_numbers: HashMap::new(),
        out,
        room: Vec::new(),
    };
    Ok(snapshot.run(2 * input as usize, |step, fs| walk.look(step, fs))?.ending)
}

/// The slots that need a run and did not get all of it: the instructions that may touch each and never ran.
pub(super) fn unseen(
    analysis: &Analysis,
    homes: impl Iterator<Item = Key>,
    out: &Writers,
) -> BTreeMap<Key, Vec<usize>> {
    let never = |key: Key| {
        let slot = &analysis.units[key.0].slots[key.1];
        let all = slot.suspects.iter().copied().chain(slot.uses());
        let never = all.filter(|op| !slot.suspects.is_empty() && !out.counts.contains_key(op));
        (key, never.collect::<Vec<usize>>())
    };
    homes.map(never).filter(|(_, never)| !never.is_empty()).collect()
}
