//! Abstract values of registers and cells: an address of the frame, something made from one, or a number.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{Instruction, Register, UsedMemory};

/// An address in a frame: bytes from a base. Base 0 is the stack pointer at the entry; any other is the one that the instruction of
/// that number (less one) made by aligning it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The base.
    pub base: usize,
    /// Bytes from it.
    pub offset: i64,
}

impl Address {
    /// So many bytes further.
    #[must_use]
    pub const fn plus(self, by: i64) -> Address {
        Address { base: self.base, offset: self.offset.wrapping_add(by) }
    }
}

/// The base of the stack pointer before an instruction at which its distance from the entry's is unknown.
const MOVED: usize = 1 << 40;

impl Address {
    /// Where the stack pointer is before an instruction.
    pub(super) const fn moved(op: usize) -> Address {
        Address { base: MOVED + op, offset: 0 }
    }

    /// The instruction behind which, or before which, its base was made, unless it counts from the entry; and whether the base
    /// is a stack pointer at an unknown distance.
    #[must_use]
    pub const fn made(self) -> Option<(usize, bool)> {
        match self.base {
            0 => None,
            base if base >= MOVED => Some((base - MOVED, true)),
            base => Some((base - 1, false)),
        }
    }
}

/// An abstract value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Anything that was not made from an address of the frame.
    Other,
    /// The same, and as a signed number of 64 bits it lies between these two, both included.
    Number(i64, i64),
    /// The register's value at the entry.
    Entry(Register),
    /// At least so many bytes above the register's value at the entry; of `RIP`, above some place of the program itself.
    Above(Register, i64),
    /// An address of the frame.
    Stack(Address),
    /// Made from an address of the frame.
    Derived,
}

/// The upper bound of a number that only grows, by at most [`STEP`] with each instruction.
const GROWS: i64 = i64::MAX;

/// No execution has so many instructions that a number passes 2^62 in such steps.
const STEP: u64 = 256;

/// What a register of 32 bits holds.
pub(super) const WORD: Value = Value::Number(0, u32::MAX as i64);

impl Value {
    /// Whether it was made from an address of the frame.
    #[must_use]
    pub fn of_stack(self) -> bool {
        matches!(self, Value::Stack(_) | Value::Derived)
    }

    /// Whether code that gets it could reach the function's own frame with it. The stack pointer of the entry and what lies above
    /// belong to the caller.
    pub(super) fn reaches_frame(self) -> bool {
        match self {
            Value::Stack(a) => a.base != 0 || a.offset < 0,
            value => value.of_stack(),
        }
    }

    /// What is known of a cell that something may have overwritten, if anything: see [`State::overwrite_somewhere`].
    fn perhaps_overwritten(&mut self) -> bool {
        if self.reaches_frame() {
            *self = Value::Derived;
        }
        !matches!(self, Value::Number(..) | Value::Above(..))
    }

    /// The bounds of a number.
    pub(super) const fn bounds(self) -> Option<(i64, i64)> {
        match self {
            Value::Number(low, high) => Some((low, high)),
            _ => None,
        }
    }

    /// What holds on both of two paths. `limits` are the bounds at which a growing number stops for a while; without them it
    /// grows as it does.
    pub(super) fn join(self, other: Value, limits: Option<&[i64]>) -> Value {
        match (self, other) {
            _ if self == other => self,
            (Value::Number(low, high), Value::Number(least, most)) => {
                let (mut down, mut up) = (low.min(least), high.max(most));
                if let Some(limits) = limits {
                    if down < low {
                        let Some(&limit) = limits.iter().rfind(|&&limit| limit <= down) else {
                            return Value::Other;
                        };
                        down = limit;
                    }
                    if up > high {
                        up = limits.iter().find(|&&limit| limit >= up).copied().unwrap_or(GROWS);
                    }
                }
                Value::Number(down, up)
            }
            _ if self.of_stack() || other.of_stack() => Value::Derived,
            _ => match (self.origin(), other.origin()) {
                // A pointer that moves down without end is not followed.
                (Some((one, by)), Some((two, least))) if one == two && (limits.is_none() || by <= least) => {
                    Value::Above(one, by.min(least))
                }
                _ => Value::Other,
            },
        }
    }

    /// The register at the entry that it was made from by additions, and the least that was added.
    pub(crate) const fn origin(self) -> Option<(Register, i64)> {
        match self {
            Value::Entry(register) => Some((register, 0)),
            Value::Above(register, by) => Some((register, by)),
            _ => None,
        }
    }

    /// The sum of two numbers, or of a number and something that came from outside.
    pub(super) fn sum(self, other: Value) -> Value {
        match (self, other) {
            (Value::Number(low, high), value) | (value, Value::Number(low, high)) => match value {
                _ if low == high => value.plus(low),
                Value::Number(least, most) => match (low.checked_add(least), high.checked_add(most)) {
                    (Some(low), Some(high)) => Value::Number(low, high),
                    _ => Value::Other,
                },
                Value::Entry(_) | Value::Above(..) => value.plus(low),
                _ => Value::Other,
            },
            _ => Value::Other,
        }
    }

    /// A number that was multiplied.
    pub(super) fn times(self, by: i64) -> Value {
        match self {
            value if by == 1 => value,
            Value::Number(low, high) => match (low.checked_mul(by), high.checked_mul(by)) {
                (Some(low), Some(high)) => Value::Number(low, high),
                // It keeps its lower bound: what grows in steps does so in longer ones.
                (Some(low), None) if high == GROWS => Value::Number(low, GROWS),
                _ => Value::Other,
            },
            _ => Value::Other,
        }
    }

    /// The sum with a constant.
    pub(super) fn plus(self, by: i64) -> Value {
        match self {
            Value::Stack(a) => Value::Stack(a.plus(by)),
            Value::Number(low, GROWS) if by.unsigned_abs() <= STEP => {
                low.checked_add(by).map_or(Value::Other, |low| Value::Number(low, GROWS))
            }
            Value::Number(low, high) => match (low.checked_add(by), high.checked_add(by)) {
                (Some(low), Some(high)) => Value::Number(low, high),
                _ => Value::Other,
            },
            Value::Derived => Value::Derived,
            Value::Entry(_) if by == 0 => self,
            Value::Entry(register) => Value::Above(register, by),
            Value::Above(register, from) => {
                from.checked_add(by).map_or(Value::Other, |by| Value::Above(register, by))
            }
            Value::Other => Value::Other,
        }
    }

    /// The lower 32 bits, extended by zeros.
    pub(super) fn word(self) -> Value {
        match self {
            Value::Number(low, high) if low >= 0 && high <= u32::MAX as i64 => self,
            value if value.of_stack() => Value::Derived,
            _ => WORD,
        }
    }
}

/// The place of a memory operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// At a known address of the frame.
    Known(Address),
    /// Not more than so many bytes above a known address.
    Within(Address, i64),
    /// At an unknown index from a known address.
    Indexed(Address),
    /// Through a pointer that was made from an address of the frame.
    Pointer,
    /// Not in the frame.
    Elsewhere,
}

/// The general registers.
pub const GENERAL: [Register; 16] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RBX,
    Register::RSP,
    Register::RBP,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
    Register::R12,
    Register::R13,
    Register::R14,
    Register::R15,
];

/// Those that a callee keeps.
pub const CALLEE_SAVED: [Register; 6] =
    [Register::RBX, Register::RBP, Register::R12, Register::R13, Register::R14, Register::R15];

/// A register whose flags the last comparison set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Compared {
    pub(super) register: Register,
    /// Bytes.
    pub(super) size: usize,
    pub(super) with: i64,
    /// Whether all flags are those of a comparison, or only whether it was equal.
    pub(super) order: bool,
}

/// The state before an instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    registers: [Value; 16],
    /// Of known addresses of eight bytes: the value stored there, unless it is [`Value::Other`].
    pub(super) stored: BTreeMap<Address, Value>,
    pub(super) compared: Option<Compared>,
    /// A register with which the last comparison compared the stack pointer.
    pub(super) same: Option<Register>,
}

impl State {
    pub(super) fn entry() -> State {
        let registers = GENERAL.map(|register| match register {
            Register::RSP => Value::Stack(Address { base: 0, offset: 0 }),
            kept if CALLEE_SAVED.contains(&kept) => Value::Entry(kept),
            given => Value::Above(given, 0),
        });
        State { registers, stored: BTreeMap::new(), compared: None, same: None }
    }

    /// The value of a whole register; for a vector register and the like, which hold no address that is followed, other.
    #[must_use]
    pub fn of(&self, register: Register) -> Value {
        let full = register.full_register();
        GENERAL.iter().position(|&r| r == full).map_or(Value::Other, |i| self.registers[i])
    }

    pub(super) fn set(&mut self, register: Register, value: Value) {
        let full = register.full_register();
        if self.compared.is_some_and(|compared| compared.register == full) {
            self.compared = None;
        }
        if self.same.is_some_and(|same| same == full || full == Register::RSP) {
            self.same = None;
        }
        if let Some(i) = GENERAL.iter().position(|&r| r == full) {
            // A stack pointer that is not followed may still point into the frame.
            let strays = full == Register::RSP && !value.of_stack();
            self.registers[i] = if strays { Value::Derived } else { value };
        }
    }

    pub(super) fn join(&mut self, other: &State, limits: Option<&[i64]>) -> bool {
        if self == other {
            return false;
        }
        let before = self.clone();
        for (mine, theirs) in self.registers.iter_mut().zip(other.registers) {
            *mine = mine.join(theirs, limits);
        }
        let addresses: Vec<Address> = self.stored.keys().chain(other.stored.keys()).copied().collect();
        for address in addresses {
            let of = |state: &State| state.stored.get(&address).copied().unwrap_or(Value::Other);
            let joined = of(self).join(of(other), limits);
            self.stored.insert(address, joined);
        }
        self.stored.retain(|_, value| *value != Value::Other);
        if self.compared != other.compared {
            self.compared = None;
        }
        if self.same != other.same {
            self.same = None;
        }
        *self != before
    }

    /// The place of an access.
    pub(super) fn place(&self, memory: &UsedMemory) -> Where {
        if matches!(memory.segment(), Register::FS | Register::GS) {
            return Where::Elsewhere;
        }
        self.address(memory.base(), memory.index(), memory.scale(), memory.displacement() as i64)
    }

    /// The place of an instruction's memory operand, accessed or only computed.
    pub(super) fn operand(&self, instruction: &Instruction) -> Where {
        if matches!(instruction.segment_prefix(), Register::FS | Register::GS)
            || instruction.is_ip_rel_memory_operand()
        {
            return Where::Elsewhere;
        }
        let displacement = instruction.memory_displacement64() as i64;
        let (base, index) = (instruction.memory_base(), instruction.memory_index());
        self.address(base, index, instruction.memory_index_scale(), displacement)
    }

    /// An address outside the frame, as far as it is known: see [`Value::Above`].
    pub(super) fn foreign(&self, memory: &UsedMemory) -> Value {
        let scale = i64::from(memory.scale());
        let sum = self.part(memory.base()).sum(self.part(memory.index()).times(scale));
        sum.plus(memory.displacement() as i64)
    }

    /// The sum that `lea` computes, outside the frame.
    pub(super) fn sum(&self, instruction: &Instruction) -> Value {
        if instruction.is_ip_rel_memory_operand() {
            return Value::Above(Register::RIP, 0);
        }
        let scale = i64::from(instruction.memory_index_scale());
        let index = self.part(instruction.memory_index()).times(scale);
        let sum = self.part(instruction.memory_base()).sum(index);
        sum.plus(instruction.memory_displacement64() as i64)
    }

    /// The value of a part of an address. None counts as zero; half a register does not hold an address.
    fn part(&self, register: Register) -> Value {
        match register {
            Register::None => Value::Number(0, 0),
            Register::RIP | Register::EIP => Value::Above(Register::RIP, 0),
            register => match self.of(register) {
                value if value.of_stack() && register.size() < 8 => Value::Derived,
                value if register.size() < 8 => value.word(),
                value => value,
            },
        }
    }

    fn address(&self, base: Register, index: Register, scale: u32, displacement: i64) -> Where {
        let (base, index) = (self.part(base), self.part(index));
        let from = |a: Address, number: Value, scale: i64| {
            let a = a.plus(displacement);
            let ends = number.bounds().and_then(|(low, high)| {
                let (low, high) = (low.checked_mul(scale)?, high.checked_mul(scale)?);
                // What is too far away to be in a frame is not followed.
                (low.unsigned_abs().max(high.unsigned_abs()) < 1 << 40).then_some((low, high))
            });
            match ends {
                Some((low, high)) if low == high => Where::Known(a.plus(low)),
                Some((low, high)) => Where::Within(a.plus(low), high - low),
                None => Where::Indexed(a),
            }
        };
        match (base, index) {
            (Value::Stack(a), index) if !index.of_stack() => from(a, index, i64::from(scale)),
            (base, Value::Stack(a)) if !base.of_stack() && scale == 1 => from(a, base, 1),
            (base, index) if base.of_stack() || index.of_stack() => Where::Pointer,
            _ => Where::Elsewhere,
        }
    }

    /// Whether bytes of the frame hold, in whole or in part, a value of some kind.
    pub(super) fn holds(&self, at: Address, size: i64, what: fn(Value) -> bool) -> bool {
        self.stored.iter().any(|(kept, value)| {
            what(*value)
                && (kept.base != at.base
                    || kept.offset < at.offset.saturating_add(size) && at.offset < kept.offset + 8)
        })
    }

    /// Forgets the values in bytes that are written now. What is left of an address stays made from one.
    pub(super) fn overwrite(&mut self, at: Address, size: i64) {
        let end = at.offset.saturating_add(size);
        self.stored.retain(|kept, value| {
            if kept.base != at.base {
                // The other base lies at an unknown distance.
                return value.perhaps_overwritten();
            }
            if kept.offset + 8 <= at.offset || kept.offset >= end {
                return true;
            }
            let whole = at.offset <= kept.offset && kept.offset + 8 <= end;
            let left = !whole && value.of_stack();
            if left {
                *value = Value::Derived;
            }
            left
        });
    }

    /// Forgets the registers that no callee keeps.
    pub(super) fn lose_volatile(&mut self) {
        for register in GENERAL.into_iter().filter(|r| *r != Register::RSP && !CALLEE_SAVED.contains(r)) {
            let value = if self.of(register).of_stack() { Value::Derived } else { Value::Other };
            self.set(register, value);
        }
    }

    /// Forgets all that counts from some bases, which get another meaning. Returns whether a cell is lost that may hold an address of
    /// the frame.
    pub(super) fn forget(&mut self, bases: &BTreeSet<usize>) -> bool {
        let of = |value: Value| matches!(value, Value::Stack(a) if bases.contains(&a.base));
        for value in self.registers.iter_mut().chain(self.stored.values_mut()).filter(|value| of(**value)) {
            *value = Value::Derived;
        }
        let mut lost = false;
        self.stored.retain(|kept, value| {
            let gone = bases.contains(&kept.base);
            lost |= gone && value.of_stack();
            !gone
        });
        lost
    }

    /// A write to somewhere in the frame. By the ABI it spares the registers and the stack pointer that are kept there for the caller.
    pub(super) fn overwrite_somewhere(&mut self) {
        self.stored.retain(|_, value| value.perhaps_overwritten());
    }
}
