//! The state of one version, and its operands.

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{Instruction, OpKind, Register};

use super::image::Op;
use super::terms::{Sort, Term, Terms};

/// A place in the frame: bytes from the stack pointer at the entry (base 0), or from where it was aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Cell {
    pub(crate) base: usize,
    pub(crate) offset: i64,
}

/// A part of a register that may hold a moved value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Home {
    Mm(u8),
    /// A vector register and a lane of 8 bytes.
    Lane(u8, u8),
    K(u8),
}

impl Home {
    /// The parts of a register: MMX, a vector as zmm, or a mask.
    pub(crate) fn parts(register: Register) -> Vec<Home> {
        let number = register.number() as u8;
        if register.is_mm() {
            vec![Home::Mm(number)]
        } else if register.is_k() {
            vec![Home::K(number)]
        } else {
            (0..8).map(|lane| Home::Lane(number, lane)).collect()
        }
    }
}

/// MMX, vector and mask registers by their full names; no others.
pub(crate) fn full(register: Register) -> Option<Register> {
    if register.is_vector_register() {
        Some(register.full_register())
    } else if register.is_mm() || register.is_k() {
        Some(register)
    } else {
        None
    }
}

pub(crate) const FLAGS: [&str; 7] = ["cf", "pf", "af", "zf", "sf", "df", "of"];
pub(crate) const CF: usize = 0;
pub(crate) const PF: usize = 1;
pub(crate) const AF: usize = 2;
pub(crate) const ZF: usize = 3;
pub(crate) const SF: usize = 4;
pub(crate) const OF: usize = 6;

/// All x87 registers are empty; MMX has marked them as full.
pub(crate) const EMPTY: u64 = 0;
pub(crate) const MARKED: u64 = 1;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    pub(crate) general: [Term; 16],
    pub(crate) flags: [Term; 7],
    /// All memory but the moved slots.
    pub(crate) memory: Term,
    /// The moved slots.
    pub(crate) cells: BTreeMap<Cell, Term>,
    /// The registers that only the rewritten version uses, in parts.
    pub(crate) homes: BTreeMap<Home, Term>,
    /// MMX, vector and mask registers that are not among these.
    pub(crate) others: BTreeMap<Register, Term>,
    /// The tags of x87, its registers, its control and status, and those of vector arithmetic.
    pub(crate) tags: Term,
    pub(crate) float: Term,
    pub(crate) control: Term,
    pub(crate) mxcsr: Term,
    /// The operands of the last comparison, with its carry.
    pub(crate) compared: Option<(Term, Term, Term)>,
}

/// What the executor knows besides the state.
pub(crate) struct Machine<'a> {
    pub(crate) terms: &'a mut Terms,
    /// Addresses from which the frame is counted.
    pub(crate) bases: &'a mut BTreeMap<Term, usize>,
    /// The moved slots with their bytes.
    pub(crate) moved: &'a BTreeMap<Cell, u32>,
    /// Registers whose values may differ in the two versions.
    pub(crate) homes: &'a BTreeSet<Register>,
    /// The number of the base of the last frame that was aligned.
    pub(crate) site: usize,
    /// How far from the entry's stack pointer an aligned frame lies at most.
    pub(crate) depths: &'a mut BTreeMap<usize, i64>,
    /// Equations that hold: the address of an aligned frame.
    pub(crate) given: Vec<(Term, Term)>,
    /// Instructions that the judge has no meaning for.
    pub(crate) problems: Vec<String>,
    /// Named places in the frame that explicit operands touched.
    pub(crate) touched: Vec<(Cell, u32)>,
}

impl Machine<'_> {
    pub(crate) fn problem(&mut self, i: &Instruction, what: &str) {
        self.problems.push(format!("{:?}: {what}", i.mnemonic()));
    }

    /// The place in the frame that an address names.
    pub(crate) fn cell(&self, address: Term) -> Option<Cell> {
        let (root, offset) = self.terms.distance(address);
        self.bases.get(&root).map(|&base| Cell { base, offset })
    }

    /// A moved slot that an access touches; a part of one is a problem.
    fn slot(&mut self, i: &Instruction, address: Term, bytes: u32) -> Option<Cell> {
        let cell = self.cell(address)?;
        let end = cell.offset + i64::from(bytes);
        let mut hit = self.moved.iter().filter(|(slot, size)| {
            slot.base == cell.base && slot.offset < end && cell.offset < slot.offset + i64::from(**size)
        });
        let (&slot, &size) = hit.next()?;
        if slot != cell || size != bytes || hit.next().is_some() {
            self.problem(i, "touches a part of a moved slot");
        }
        Some(slot)
    }

    pub(crate) fn load(&mut self, i: &Instruction, state: &State, address: Term, bytes: u32) -> Term {
        match self.slot(i, address, bytes) {
            Some(cell) => {
                let value = state.cells[&cell];
                self.terms.resize(value, 8 * bytes)
            }
            None => self.terms.load(state.memory, address, 8 * bytes),
        }
    }

    pub(crate) fn store(&mut self, i: &Instruction, state: &mut State, address: Term, value: Term) {
        let bytes = self.terms.width(value) / 8;
        match self.slot(i, address, bytes) {
            Some(cell) => {
                let value = self.terms.resize(value, 8 * self.moved[&cell]);
                state.cells.insert(cell, value);
            }
            None => state.memory = self.terms.store(state.memory, address, value),
        }
    }

    /// A general register's value in its own width.
    pub(crate) fn register(&mut self, state: &State, register: Register) -> Term {
        let value = state.general[register.full_register().number()];
        match register.size() {
            8 => value,
            4 => self.terms.extract(31, 0, value),
            2 => self.terms.extract(15, 0, value),
            _ if is_high(register) => self.terms.extract(15, 8, value),
            _ => self.terms.extract(7, 0, value),
        }
    }

    /// Writes a general register: 32 bits clear the upper half, fewer keep the rest.
    pub(crate) fn set(&mut self, state: &mut State, register: Register, value: Term) {
        let number = register.full_register().number();
        let old = state.general[number];
        state.general[number] = match register.size() {
            8 => value,
            4 => self.terms.resize(value, 64),
            2 => {
                let high = self.terms.extract(63, 16, old);
                self.terms.concat(high, value)
            }
            _ if is_high(register) => {
                let (high, low) = (self.terms.extract(63, 16, old), self.terms.extract(7, 0, old));
                let high = self.terms.concat(high, value);
                self.terms.concat(high, low)
            }
            _ => {
                let high = self.terms.extract(63, 8, old);
                self.terms.concat(high, value)
            }
        };
    }

    /// The address of the memory operand.
    pub(crate) fn address(&mut self, op: &Op, state: &State) -> Term {
        let i = &op.i;
        let mut sum = self.terms.constant(64, 0);
        let narrow = [i.memory_base(), i.memory_index()].iter().any(|r| r.is_gpr32());
        if !i.is_ip_rel_memory_operand() {
            if i.memory_base() != Register::None {
                let base = state.general[i.memory_base().full_register().number()];
                sum = self.terms.add(sum, base);
            }
            if i.memory_index().is_vector_register() {
                self.problem(i, "an index in a vector");
            } else if i.memory_index() != Register::None {
                let index = state.general[i.memory_index().full_register().number()];
                let scale = self.terms.constant(64, u64::from(i.memory_index_scale()));
                let scaled = if i.memory_index_scale() == 1 { index } else { self.terms.mul(index, scale) };
                sum = self.terms.add(sum, scaled);
            }
        }
        match &op.named[0] {
            Some(name) => {
                let named = self.terms.variable(format!("address {name}"), Sort::Bits(64));
                sum = self.terms.add(sum, named);
            }
            None => {
                let distance = self.terms.constant(64, i.memory_displacement64());
                sum = self.terms.add(sum, distance);
            }
        }
        if narrow {
            let low = self.terms.extract(31, 0, sum);
            sum = self.terms.resize(low, 64);
        }
        if matches!(i.segment_prefix(), Register::FS | Register::GS) {
            let name = format!("segment {:?}", i.segment_prefix());
            let base = self.terms.variable(name, Sort::Bits(64));
            sum = self.terms.add(sum, base);
        }
        sum
    }

    /// Bytes of an operand that is a general register, memory or a constant.
    pub(crate) fn bytes(&self, i: &Instruction, n: u32) -> Option<u32> {
        match i.op_kind(n) {
            OpKind::Register if i.op_register(n).is_gpr() => Some(i.op_register(n).size() as u32),
            OpKind::Register => None,
            OpKind::Memory => Some(i.memory_size().size() as u32),
            _ if i.try_immediate(n).is_ok() => Some(0),
            _ => None,
        }
    }

    /// An operand's value; constants take the width that is asked for.
    pub(crate) fn operand(&mut self, op: &Op, state: &State, n: u32, bytes: u32) -> Term {
        let i = &op.i;
        match i.op_kind(n) {
            OpKind::Register => self.register(state, i.op_register(n)),
            OpKind::Memory => {
                let address = self.address(op, state);
                self.note(i, address, bytes);
                self.load(i, state, address, bytes)
            }
            _ => match &op.named[1] {
                Some(name) => {
                    let named = self.terms.variable(format!("address {name}"), Sort::Bits(64));
                    self.terms.resize(named, 8 * bytes)
                }
                None => self.terms.constant(8 * bytes, i.immediate(n)),
            },
        }
    }

    pub(crate) fn note(&mut self, i: &Instruction, address: Term, bytes: u32) {
        // An index may be a known number in one version alone, and does not tell what moved.
        if let Some(cell) = self.cell(address).filter(|_| i.memory_index() == Register::None) {
            self.touched.push((cell, bytes));
        }
    }

    /// Writes an operand that is a register or memory.
    pub(crate) fn put(&mut self, op: &Op, state: &mut State, n: u32, value: Term) {
        match op.i.op_kind(n) {
            OpKind::Register => self.set(state, op.i.op_register(n), value),
            _ => {
                let address = self.address(op, state);
                let bytes = self.terms.width(value) / 8;
                self.note(&op.i, address, bytes);
                self.store(&op.i, state, address, value);
            }
        }
    }

    /// The flags as one value, for functions of them.
    pub(crate) fn all_flags(&mut self, state: &State) -> Term {
        let mut all = state.flags[0];
        for &flag in &state.flags[1..] {
            all = self.terms.concat(flag, all);
        }
        all
    }

    /// One instruction that does not branch.
    pub(crate) fn step(&mut self, op: &Op, state: &mut State) {
        if self.integer(op, state) || self.transfer(op, state) {
            return;
        }
        if !self.scalar(op, state) {
            self.opaque(op, state);
        }
    }
}

fn is_high(register: Register) -> bool {
    matches!(register, Register::AH | Register::BH | Register::CH | Register::DH)
}
