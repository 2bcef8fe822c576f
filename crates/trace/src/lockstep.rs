//! Two versions of a piece of machine code, compared after every instruction: all general registers, the flags, and
//! writes to memory.
//!
//! It shows that rewritten code still computes the same: each instruction of one version has its counterpart in the
//! other, or is an addition that changes nothing by itself.
#![forbid(unsafe_code)]

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use iced_x86::Register;

use crate::Ending;
use crate::leak::Failure;
use crate::record::{FLAGS, Step};
use crate::site::{Access, Touch};
use crate::snapshot::{Advance, Snapshot};
use crate::source_line::Place;

/// How the code of two versions corresponds. Everything outside of both is the same code and must be executed alike.
#[derive(Clone, Debug, Default)]
pub struct Correspondence {
    /// Addresses of the first version's code.
    pub first: Range<u64>,
    /// Addresses of the second version's code.
    pub second: Range<u64>,
    /// The second version's counterpart of an instruction of the first.
    pub pairs: HashMap<u64, u64>,
    /// Stack memory whose contents and use may differ: homes that one of the versions has given up. As offsets from the stack
    /// pointer at the entry.
    pub given_up: Vec<Range<i64>>,
    /// Flags that are not compared, by bits of `rflags`; for instructions that leave some undefined.
    pub ignored_flags: u64,
}

impl Correspondence {
    /// Two versions with the same instructions in the same order, at these begins.
    #[must_use]
    pub fn shifted(first: Range<u64>, second: u64) -> Correspondence {
        let length = first.end - first.start;
        Correspondence { first, second: second..second + length, ..Correspondence::default() }
    }

    fn counterpart(&self, address: u64) -> Option<u64> {
        match self.pairs.get(&address) {
            Some(&other) => Some(other),
            None if !self.first.contains(&address) => Some(address),
            None if self.pairs.is_empty() => Some(address - self.first.start + self.second.start),
            None => None,
        }
    }

    /// Whether two values are equal, or addresses of code that correspond.
    fn same(&self, one: u64, two: u64) -> bool {
        one == two || self.first.contains(&one) && self.counterpart(one) == Some(two)
    }
}

/// The kind of a difference between the versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// One goes where the other does not.
    Way {
        /// The next instruction of the first, if it has one.
        first: Option<u64>,
        /// The next instruction of the second, if it has one.
        second: Option<u64>,
    },
    /// A general register.
    Register {
        /// The register.
        register: Register,
        /// Its values.
        values: [u64; 2],
    },
    /// Flags, by the bits of `rflags` that are compared.
    Flags {
        /// Their values.
        values: [u64; 2],
    },
    /// The memory written, or the bytes written to it.
    Written {
        /// Address and bytes written by the first.
        first: Option<(u64, Vec<u8>)>,
        /// Address and bytes written by the second.
        second: Option<(u64, Vec<u8>)>,
    },
}

/// The first difference between two versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// Instructions compared before it.
    pub step: u64,
    /// The case that was compared with its other version.
    pub case: usize,
    /// What differs.
    pub mismatch: Mismatch,
    /// The instruction of the first version after which it shows, as text.
    pub instruction: String,
    /// Its place in the source.
    pub place: Place,
    /// The instruction of the second version, as text.
    pub other: String,
    /// Its place in the source.
    pub other_place: Place,
}

impl core::fmt::Display for Divergence {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Divergence { step, instruction, place, other, other_place, .. } = self;
        write!(f, "after step {step}, `{instruction}` in {place} against `{other}` in {other_place}: ")?;
        match &self.mismatch {
            Mismatch::Way { first, second } => write!(f, "the ways part: {first:x?} and {second:x?}"),
            Mismatch::Register { register, values: [a, b] } => write!(f, "{register:?} is {a:#x} and {b:#x}"),
            Mismatch::Flags { values: [a, b] } => write!(f, "the flags are {a:#x} and {b:#x}"),
            Mismatch::Written { .. } => write!(f, "the writes differ"),
        }
    }
}

/// The result of a lockstep comparison.
#[derive(Clone, Debug)]
pub struct Lockstep {
    /// Pairs of instructions compared.
    pub compared: u64,
    /// Instructions that only one version has.
    pub extra: [u64; 2],
    /// The first difference, if there is one.
    pub divergence: Option<Divergence>,
    /// The result of [`crate::Operation::answer`] for each; empty after a difference.
    pub answers: [Vec<u8>; 2],
}

struct Walk<'c> {
    how: &'c Correspondence,
    /// The stack pointer at the entry of the versions.
    entry: Option<u64>,
    /// The states at the entry. A call defines neither rax, r10, r11 nor the flags: they may differ until a version
    /// changes them.
    before: [[u64; 17]; 2],
    compared: u64,
    extra: [u64; 2],
    last: [u64; 2],
    found: Option<Mismatch>,
    counterparts: HashSet<u64>,
    room: [Vec<Access>; 2],
}

impl Walk<'_> {
    /// Whether the memory belongs to a home that was given up.
    fn given_up(&self, access: &Access) -> bool {
        self.entry.is_some_and(|entry| {
            let at = access.address.wrapping_sub(entry) as i64;
            self.how.given_up.iter().any(|range| range.contains(&at))
        })
    }

    /// The first difference in the states before two corresponding instructions.
    fn state(&self, a: &Step<'_>, b: &Step<'_>) -> Option<Mismatch> {
        for number in 0..16 {
            let values = [a.general(number), b.general(number)];
            let unset = [0, 10, 11].contains(&number) && values == self.before.map(|state| state[number]);
            if !unset && !self.how.same(values[0], values[1]) {
                let register = Register::RAX + number as u32;
                return Some(Mismatch::Register { register, values });
            }
        }
        let mask = FLAGS & !self.how.ignored_flags;
        let values = [a.flags() & mask, b.flags() & mask];
        let unset = values == self.before.map(|state| state[16] & mask);
        (values[0] != values[1] && !unset).then_some(Mismatch::Flags { values })
    }

    /// The first difference in what two corresponding instructions write.
    fn writes(&mut self, a: &Step<'_>, b: &Step<'_>, fs: u64) -> Option<Mismatch> {
        let mut room = core::mem::take(&mut self.room);
        a.site.accesses(a, fs, &mut room[0]);
        b.site.accesses(b, fs, &mut room[1]);
        for accesses in &mut room {
            accesses.retain(|m| matches!(m.touch, Touch::Write | Touch::Both) && !self.given_up(m));
        }
        let places = room[0] == room[1];
        let both_write = !room[0].is_empty() && !room[1].is_empty();
        self.room = room;
        let (first, second) = (a.written(), b.written());
        let same = match (&first, &second) {
            (Some((_, one)), Some((_, two))) if both_write => self.how.same_bytes(one, two),
            _ => true,
        };
        (!places || !same).then_some(Mismatch::Written { first, second })
    }

    fn look(&mut self, one: Option<&Step<'_>>, two: Option<&Step<'_>>, fs: u64) -> Advance {
        let [at, other] = [one, two].map(|step| step.map(Step::address));
        let outside =
            |address: Option<u64>, range: &Range<u64>| address.is_none_or(|at| !range.contains(&at));
        // Code before the entries is not compared: the callers choose between the versions.
        if self.entry.is_none() {
            match (outside(at, &self.how.first), outside(other, &self.how.second)) {
                (true, _) if one.is_some() => return Advance::First,
                (_, true) if two.is_some() => return Advance::Second,
                (false, false) => {
                    self.entry = one.map(|step| step.general(4));
                    self.before = [one, two].map(|step| step.map_or([0; 17], Step::state));
                }
                _ => return Advance::Stop,
            }
        }
        // Nor is code after the return.
        let entry = self.entry.unwrap_or(u64::MAX);
        let returned = |step: Option<&Step<'_>>| step.is_none_or(|step| step.general(4) > entry);
        if returned(one) && returned(two) {
            if let (Some(a), Some(b)) = (one, two)
                && self.found.is_none()
                && a.general(4) <= entry + 8
            {
                self.found = self.state(a, b);
            }
            return Advance::Stop;
        }
        let part = |found: &mut Option<Mismatch>| {
            *found = Some(Mismatch::Way { first: at, second: other });
            Advance::Stop
        };
        let (Some(a), Some(b)) = (one, two) else { return part(&mut self.found) };
        match self.how.counterpart(a.address()) {
            None => {
                self.extra[0] += 1;
                Advance::First
            }
            Some(expected) if expected == b.address() => {
                if let Some(mismatch) = self.state(a, b) {
                    self.found = Some(mismatch);
                    return Advance::Stop;
                }
                self.last = [a.address(), b.address()];
                self.compared += 1;
                if let Some(mismatch) = self.writes(a, b, fs) {
                    self.found = Some(mismatch);
                    return Advance::Stop;
                }
                Advance::Both
            }
            // An addition of the second version has no counterpart.
            Some(_) if self.how.second.contains(&b.address()) && self.is_addition(b.address()) => {
                self.extra[1] += 1;
                Advance::Second
            }
            Some(_) => part(&mut self.found),
        }
    }

    fn is_addition(&self, address: u64) -> bool {
        !self.how.pairs.is_empty() && !self.counterparts.contains(&address)
    }
}

impl Correspondence {
    fn same_bytes(&self, one: &[u8], two: &[u8]) -> bool {
        let word = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_le_bytes);
        one == two
            || match (word(one), word(two)) {
                (Some(one), Some(two)) => self.same(one, two),
                _ => false,
            }
    }
}

impl Snapshot {
    /// Runs two cases that call two versions of one piece of code, and compares these from entry to return: the general
    /// registers and flags before every instruction, the places that it writes to, and (with [`crate::Options::writes`]) the bytes
    /// that it writes there.
    ///
    /// # Errors
    /// If a run does not end normally although the versions do not differ, or nothing can be traced.
    pub fn lockstep(&mut self, cases: [usize; 2], how: &Correspondence) -> Result<Lockstep, Failure> {
        let mut walk = Walk {
            how,
            entry: None,
            before: [[0; 17]; 2],
            compared: 0,
            extra: [0; 2],
            last: [0; 2],
            found: None,
            counterparts: how.pairs.values().copied().collect(),
            room: [Vec::new(), Vec::new()],
        };
        let mut over = false;
        let outcomes = self.pair(cases, |one, two, fs| {
            if over {
                return Advance::Both;
            }
            let advance = walk.look(one, two, fs);
            if advance == Advance::Stop && walk.found.is_none() && walk.entry.is_some() {
                // Both have returned: let them end.
                over = true;
                return Advance::Both;
            }
            advance
        })?;
        let divergence = walk.found.take().map(|mismatch| {
            let mut symbols = self.symbols();
            let [first, second] = walk.last;
            Divergence {
                step: walk.compared,
                case: cases[0],
                mismatch,
                instruction: self.instruction(first),
                place: symbols.place(first),
                other: self.instruction(second),
                other_place: symbols.place(second),
            }
        });
        if divergence.is_none() {
            for (outcome, case) in outcomes.iter().zip(cases) {
                if outcome.ending != Ending::Returned || walk.compared == 0 {
                    return Err(Failure::Ended { case, ending: outcome.ending.clone(), place: None });
                }
            }
        }
        let [one, two] = outcomes;
        let answers = [one.answer, two.answer];
        Ok(Lockstep { compared: walk.compared, extra: walk.extra, divergence, answers })
    }
}
