//! What callers know of a function: what it does to their frames and their registers.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet, HashMap};

use iced_x86::Register;

use super::Outside;
use super::value::{State, Value};

/// What a function does to its caller's frame, in bytes from the stack pointer at its entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// The callee-saved registers that hold their entry values at every return.
    pub keeps: Vec<Register>,
    /// Those whose entry value it uses other than to keep it.
    pub demands: BTreeSet<Register>,
    /// The registers that may hold an address of a frame at a return, made by it.
    pub leaves: BTreeSet<Register>,
    /// What it writes through pointers.
    pub writes: Writes,
    /// The bytes that it touches, from the first number to before the second.
    pub reach: BTreeSet<(i64, i64)>,
    /// Those above its return address that it writes at a known place.
    pub stores: BTreeSet<(i64, i64)>,
    /// Whether it may touch any byte of the caller's frame.
    pub wild: bool,
    /// Whether it names bytes below its stack pointer that it reads before it has written them.
    pub below: bool,
}

impl Outline {
    /// Too many stores to track are one of any size.
    pub(crate) fn bound_stores(&mut self) {
        if self.stores.len() > 256 || self.stores.iter().any(|&(_, to)| to > 1 << 40) {
            self.stores = BTreeSet::from([(8, i64::MAX)]);
        }
    }

    /// Adds what another function does.
    pub(crate) fn weaken(&mut self, other: &Outline) {
        self.keeps.retain(|register| other.keeps.contains(register));
        self.demands.extend(&other.demands);
        self.leaves.extend(&other.leaves);
        self.writes.weaken(&other.writes);
        self.reach.extend(&other.reach);
        self.stores.extend(&other.stores);
        self.bound_stores();
        self.wild |= other.wild;
        self.below |= other.below;
        if self.wild {
            self.reach.clear();
        }
    }
}

/// The outlines of this file's functions, by their entries.
pub type Outlines = HashMap<usize, Outline>;

/// What a function writes through pointers that it was given, for cells whose values its callers know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writes {
    /// Bytes from a register's value at the entry.
    pub through: BTreeMap<Register, (i64, i64)>,
    /// Whether it writes anywhere else outside.
    pub anywhere: bool,
}

impl Writes {
    pub(super) fn add(&mut self, place: Outside, end: i64) {
        match place {
            Outside::Above(register, from) => {
                let (least, most) = self.through.entry(register).or_insert((from, end));
                (*least, *most) = ((*least).min(from), (*most).max(end));
            }
            Outside::Anywhere => self.anywhere = true,
        }
    }

    /// Adds what a callee writes, by the values of the registers that it gets. `Walker::written` sees to the caller's own cells.
    pub(crate) fn call(&mut self, callee: &Writes, state: &State) {
        self.anywhere |= callee.anywhere;
        for (&register, &(from, to)) in &callee.through {
            let value = state.of(register);
            let most = if let Value::Above(_, range) = value { range.most() } else { 0 };
            match value.near() {
                _ if value.of_stack() || value.is_elsewhere() => (),
                Some((own, by)) => {
                    self.add(Outside::Above(own, by.saturating_add(from)), most.saturating_add(to));
                }
                None => self.anywhere = true,
            }
        }
    }

    fn weaken(&mut self, other: &Writes) {
        self.anywhere |= other.anywhere;
        for (&register, &(from, to)) in &other.through {
            self.add(Outside::Above(register, from), to);
        }
    }
}
