//! Abstract values of registers and cells: an address of the frame, something made from one, or a number.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{Instruction, Mnemonic, Register, UsedMemory};

use super::Outside;

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
    /// The address this many bytes further.
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

    /// The instruction after which, or before which, its base was made, unless it counts from the entry; and whether the base
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

/// Numbers of 64 bits with a sign. Without a step they lie between `low` and `high`; with one, none is above `high + step * t`, where `t`
/// counts the execution's additions so far. No execution has 2^54 of these, so none passes the sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The least.
    pub low: i64,
    /// The most, apart from the steps.
    pub high: i64,
    step: i64,
}

impl Range {
    /// The largest step, and the most from which steps may begin: 2^61 + 256 * 2^54 is below 2^63.
    const STEP: i64 = 256;
    const BEGIN: i64 = 1 << 61;

    /// What a register of 32 bits holds.
    const WORD: Range = Range::between(0, u32::MAX as i64);

    /// Numbers from one to another, both included.
    pub(super) const fn between(low: i64, high: i64) -> Range {
        Range { low, high, step: 0 }
    }

    pub(super) const fn one(number: i64) -> Range {
        Range::between(number, number)
    }

    /// The most, whatever the steps.
    pub(super) const fn most(self) -> i64 {
        if self.step == 0 { self.high } else { i64::MAX }
    }

    /// Those from a number on.
    pub(super) const fn above(self, low: i64) -> Range {
        Range { low, ..self }
    }

    /// Whether none is an address of a stack, nor leads from another place of the program to one.
    pub(crate) const fn is_near(self) -> bool {
        const FAR: i64 = 1 << 40;
        self.low >= -FAR && self.high <= FAR
    }

    fn checked(self) -> Option<Range> {
        (self.step == 0 || self.step <= Range::STEP && self.high <= Range::BEGIN).then_some(self)
    }

    /// What holds on both of two paths. `limits` are the bounds at which a changing number stops for a while. Where none lies above, its
    /// growth is taken as a step, and further additions of at most that are such steps. At `last`, no step becomes another one.
    fn join(self, other: Range, limits: Option<&[i64]>, last: bool) -> Option<Range> {
        let (mut low, mut high) = (self.low.min(other.low), self.high.max(other.high));
        let mut step = self.step.max(other.step);
        if let Some(limits) = limits {
            if low < self.low {
                low = limits.iter().rfind(|&&limit| limit <= low).copied()?;
            }
            if last && self.step > 0 && (high > self.high || step > self.step) {
                return None;
            }
            if high > self.high {
                match limits.iter().find(|&&limit| limit >= high && step == 0) {
                    Some(&limit) => high = limit,
                    None => step = step.max(high.checked_sub(self.high)?),
                }
            }
        }
        Range { low, high, step }.checked()
    }

    /// The sum. An addition of at most the other's step is one of its steps.
    fn sum(self, other: Range) -> Option<Range> {
        let low = self.low.checked_add(other.low)?;
        let (most, least) = if self.step >= other.step { (self, other) } else { (other, self) };
        let stepped = least.step == 0 && (0..=most.step).contains(&least.high);
        let high = if stepped { most.high } else { most.high.checked_add(least.high)? };
        Range { low, high, step: self.step.checked_add(other.step)? }.checked()
    }

    /// Multiplied by a number above zero.
    fn times(self, by: i64) -> Option<Range> {
        let step = self.step.checked_mul(by)?;
        Range { low: self.low.checked_mul(by)?, high: self.high.checked_mul(by)?, step }.checked()
    }
}

/// An abstract value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Anything that was not made from an address of the frame.
    Other,
    /// The same, and one of these numbers.
    Number(Range),
    /// The register's value at the entry.
    Entry(Register),
    /// One of these numbers above the register's value at the entry; of `RIP`, above some place of the program itself.
    Above(Register, Range),
    /// An address of the frame.
    Stack(Address),
    /// Made from an address of the frame.
    Derived,
}

pub(super) const WORD: Value = Value::Number(Range::WORD);

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
    fn perhaps_overwritten(&mut self, spared: impl Fn(Address) -> bool) -> bool {
        if self.of_stack() && !matches!(self, Value::Stack(a) if a.base == 0 && spared(*a)) {
            *self = Value::Derived;
        }
        !matches!(self, Value::Number(..) | Value::Above(..))
    }

    /// Numbers from one to another, both included.
    pub(super) const fn between(low: i64, high: i64) -> Value {
        Value::Number(Range::between(low, high))
    }

    pub(super) const fn bounds(self) -> Option<(i64, i64)> {
        match self {
            Value::Number(range) => Some((range.low, range.most())),
            _ => None,
        }
    }

    /// Whether it is a number from zero to before a limit.
    pub(crate) fn is_below(self, limit: u64) -> bool {
        self.bounds().is_some_and(|(low, high)| low >= 0 && (high as u64) < limit)
    }

    /// What holds on both of two paths: see [`Range::join`] for the limits.
    pub(super) fn join(self, other: Value, limits: Option<&[i64]>) -> Value {
        let last = limits.is_some_and(<[i64]>::is_empty);
        match (self, other) {
            _ if self == other => self,
            (Value::Number(one), Value::Number(two)) => {
                one.join(two, limits, last).map_or(Value::Other, Value::Number)
            }
            _ if self.of_stack() || other.of_stack() => Value::Derived,
            // A pointer that moves down without end is not followed.
            _ => match (self.origin(), other.origin()) {
                (Some((one, from)), Some((two, to)))
                    if one == two && (limits.is_none() || from.low <= to.low) =>
                {
                    from.join(to, limits.map(|_| &[][..]), last)
                        .map_or(Value::Other, |by| Value::Above(one, by))
                }
                _ => Value::Other,
            },
        }
    }

    /// The register at the entry that it was made from by additions, and what was added.
    const fn origin(self) -> Option<(Register, Range)> {
        match self {
            Value::Entry(register) => Some((register, Range::one(0))),
            Value::Above(register, by) => Some((register, by)),
            _ => None,
        }
    }

    /// Whether it is the address of nothing, or of a place of the program itself.
    pub(crate) const fn is_elsewhere(self) -> bool {
        matches!(self, Value::Number(by) | Value::Above(Register::RIP, by) if by.is_near())
    }

    /// The same register, and the least that was added, if that is not an address by itself. `None` for the program's own places.
    pub(crate) fn near(self) -> Option<(Register, i64)> {
        let (register, by) = self.origin()?;
        (register != Register::RIP && by.is_near()).then_some((register, by.low))
    }

    /// The sum of two numbers, or of a number and something that came from outside.
    pub(super) fn sum(self, other: Value) -> Value {
        match (self, other) {
            (Value::Number(by), value) | (value, Value::Number(by)) => value.added(by),
            _ => Value::Other,
        }
    }

    /// A number that was multiplied by one above zero.
    pub(super) fn times(self, by: i64) -> Value {
        match self {
            value if by == 1 => value,
            Value::Number(range) => range.times(by).map_or(Value::Other, Value::Number),
            _ => Value::Other,
        }
    }

    pub(super) fn plus(self, by: i64) -> Value {
        self.added(Range::one(by))
    }

    fn added(self, by: Range) -> Value {
        let one = by == Range::one(by.low);
        match self {
            value if by == Range::one(0) => value,
            Value::Stack(a) if one => Value::Stack(a.plus(by.low)),
            value if value.of_stack() => Value::Derived,
            Value::Number(range) => range.sum(by).map_or(Value::Other, Value::Number),
            Value::Entry(register) => Value::Above(register, by),
            Value::Above(register, from) => {
                from.sum(by).map_or(Value::Other, |by| Value::Above(register, by))
            }
            _ => Value::Other,
        }
    }

    /// The lower 32 bits, extended by zeros.
    pub(super) fn word(self) -> Value {
        match self {
            Value::Number(range) if range.low >= 0 && range.most() <= Range::WORD.high => self,
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
    /// At most this many bytes above a known address.
    Within(Address, i64),
    /// At an unknown index from a known address.
    Indexed(Address),
    /// Through a pointer that was made from an address of the frame.
    Pointer,
    /// Not in the frame.
    Elsewhere,
}

/// Whether bytes of the frame from `start` to before `end` may be among those from `from` to before `to`. An aligned base lies at an
/// unknown distance below the place where it was made.
pub(crate) fn meets(
    aligned: &BTreeMap<usize, Address>,
    start: Address,
    end: i64,
    from: Address,
    to: i64,
) -> bool {
    if start.base == from.base {
        return start.offset < to && from.offset < end;
    }
    // The bytes from one base lie below those from base 0 that begin above their highest place.
    let highest = |base: usize, end: i64| match aligned.get(&base) {
        Some(made) if made.base == 0 => Some(made.offset + end),
        _ => None,
    };
    if from.base == 0 {
        return highest(start.base, end).is_none_or(|end| end > from.offset);
    }
    if start.base == 0 {
        return highest(from.base, to).is_none_or(|to| to > start.offset);
    }
    true
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
    /// The value stored at known addresses of eight bytes, unless it is [`Value::Other`].
    pub(crate) stored: BTreeMap<Address, Value>,
    pub(super) compared: Option<Compared>,
    /// A register with which the last comparison compared the stack pointer.
    pub(super) same: Option<Register>,
}

impl State {
    pub(super) fn entry() -> State {
        let registers = GENERAL.map(|register| match register {
            Register::RSP => Value::Stack(Address { base: 0, offset: 0 }),
            kept if CALLEE_SAVED.contains(&kept) => Value::Entry(kept),
            given => Value::Above(given, Range::one(0)),
        });
        State { registers, stored: BTreeMap::new(), compared: None, same: None }
    }

    /// The value of a whole register; [`Value::Other`] for vector registers and the like, which hold no address that is followed.
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
        // `lea` ignores segments.
        let segment = matches!(instruction.segment_prefix(), Register::FS | Register::GS)
            && instruction.mnemonic() != Mnemonic::Lea;
        if segment || instruction.is_ip_rel_memory_operand() {
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
            return Value::Above(Register::RIP, Range::one(0));
        }
        let narrow = [instruction.memory_base(), instruction.memory_index()].iter().any(|r| r.is_gpr32());
        let scale = i64::from(instruction.memory_index_scale());
        let index = self.part(instruction.memory_index()).times(scale);
        let sum = self.part(instruction.memory_base()).sum(index);
        let sum = sum.plus(instruction.memory_displacement64() as i64);
        if narrow { sum.word() } else { sum }
    }

    /// The value of a part of an address. None counts as zero; half a register does not hold an address.
    fn part(&self, register: Register) -> Value {
        match register {
            Register::None => Value::between(0, 0),
            Register::RIP | Register::EIP => Value::Above(Register::RIP, Range::one(0)),
            register => match self.of(register) {
                value if value.of_stack() && register.size() < 8 => Value::Derived,
                // `xlat` counts by a byte.
                _ if register.size() < 4 => Value::between(0, i64::from(u8::MAX)),
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
                // A number too large for a distance in a frame is not followed.
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

    /// The values that bytes of the frame may hold, in whole or in part.
    pub(crate) fn among(&self, aligned: &BTreeMap<usize, Address>, at: Address, size: i64) -> Vec<Value> {
        let end = at.offset.saturating_add(size);
        let meets = |kept: Address| meets(aligned, kept, kept.offset + 8, at, end);
        self.stored.iter().filter(|(kept, _)| meets(**kept)).map(|(_, value)| *value).collect()
    }

    /// Whether a cell is known to hold something that a write to somewhere would end.
    pub(super) fn relies(&self) -> bool {
        let ends =
            |value: &Value| matches!(value, Value::Number(_) | Value::Above(..)) || value.reaches_frame();
        self.stored.values().any(ends)
    }

    /// Forgets the values in bytes that are written now. What is left of an address stays made from one.
    pub(super) fn overwrite(&mut self, at: Address, size: i64) {
        let end = at.offset.saturating_add(size);
        self.stored.retain(|kept, value| {
            if kept.base != at.base {
                // The other base lies at an unknown distance.
                return value.perhaps_overwritten(|a| a.offset == 0);
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

    /// A write of this many bytes to a place of the frame.
    pub(super) fn overwrite_at(&mut self, place: Where, size: i64) {
        match place {
            Where::Known(a) => self.overwrite(a, size),
            Where::Within(a, span) => self.overwrite_within(a, span.saturating_add(size)),
            Where::Indexed(_) | Where::Pointer => self.overwrite_somewhere(),
            Where::Elsewhere => (),
        }
    }

    /// A write through a pointer that came from outside. What callers pass lies above the entry's stack pointer, where the cells of
    /// arguments are.
    pub(super) fn overwrite_outside(&mut self, aligned: &BTreeMap<usize, Address>, place: Outside) {
        let from = match place {
            Outside::Above(_, from) => Address { base: 0, offset: from.min(0) },
            Outside::Anywhere => return self.overwrite_somewhere(),
        };
        self.stored.retain(|kept, value| {
            let apart = !meets(aligned, *kept, kept.offset + 8, from, i64::MAX);
            apart || value.perhaps_overwritten(|a| a.offset == 0)
        });
    }

    /// A write to some of these bytes. It spares the registers and the stack pointer of the entry.
    pub(super) fn overwrite_within(&mut self, at: Address, size: i64) {
        let end = at.offset.saturating_add(size);
        self.stored.retain(|kept, value| {
            let apart = kept.base == at.base && (kept.offset + 8 <= at.offset || kept.offset >= end);
            apart || value.perhaps_overwritten(|a| a.offset == 0)
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
    /// A frame that was aligned may count that stack pointer from the arguments. Elsewhere such a cell is a pointer to an argument.
    pub(super) fn overwrite_somewhere(&mut self) {
        self.stored.retain(|kept, value| {
            let aligned = (1..MOVED).contains(&kept.base);
            value.perhaps_overwritten(|a| a.offset == 0 || aligned && a.offset > 0)
        });
    }
}
