//! Which addresses of its frame each instruction of a function touches.
//!
//! Every general register has an abstract value: the entry's stack pointer and so many bytes, an unknown address in the
//! stack, a callee-saved register's value at the entry, or other. An address is *known* if it is a constant distance
//! from the entry's stack pointer, or from an aligned one.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use iced_x86::{
    CodeSize, FlowControl, Instruction, InstructionInfoFactory, InstructionInfoOptions, MemorySize, Mnemonic,
    OpAccess, OpKind, Register, UsedMemory, UsedRegister,
};

use crate::flow::{Callee, Exit, Function};
use crate::program::Program;

/// An address in a frame: bytes from a base. Base 0 is the stack pointer at the entry; any other is the one that the instruction of
/// that number (less one) made by aligning it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The base.
    pub base: usize,
    /// Bytes from it.
    pub offset: i64,
}

/// An abstract value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Nothing, but it was not made from an address of the frame.
    Other,
    /// The register's value at the entry.
    Entry(Register),
    /// An address of the frame.
    Stack(Address),
    /// Made from an address of the frame.
    Derived,
}

impl Value {
    const fn of_stack(self) -> bool {
        matches!(self, Value::Stack(_) | Value::Derived)
    }

    fn join(self, other: Value) -> Value {
        if self == other {
            self
        } else if self.of_stack() || other.of_stack() {
            Value::Derived
        } else {
            Value::Other
        }
    }
}

/// The place of a memory operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// At a known address of the frame.
    Known(Address),
    /// At an index from a known address.
    Indexed(Address),
    /// Through a pointer that was made from an address of the frame.
    Pointer,
    /// Not in the frame, by the pointer analysis.
    Elsewhere,
}

/// A memory operand of an instruction.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// The instruction.
    pub op: usize,
    /// Where.
    pub place: Where,
    /// Bytes.
    pub size: usize,
    /// Whether it reads.
    pub reads: bool,
    /// Whether it writes.
    pub writes: bool,
    /// Whether it writes all of its bytes, whatever happens, and reads none.
    pub overwrites: bool,
}

/// A function's use of its frame.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Every memory operand that is, or may be, in the frame.
    pub accesses: Vec<Access>,
    /// Addresses taken (`lea` into another register than the stack pointer), with the instruction.
    pub taken: Vec<(usize, Address)>,
    /// The registers before each instruction, in the order of [`GENERAL`].
    pub before: HashMap<usize, State>,
    /// Instructions where the stack pointer is no longer known.
    pub lost: Vec<usize>,
    /// Exits at which the stack pointer differs from the entry's.
    pub unbalanced: Vec<usize>,
    /// The lowest known address of base 0 that the stack pointer takes.
    pub lowest: i64,
    /// Whether any address of the frame was stored where this analysis does not follow it, or given to a callee.
    pub escapes: bool,
    /// Instructions that put an address of the frame where it is not followed: into a vector register, or into memory outside known cells.
    pub hidden: Vec<usize>,
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

/// The state before an instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    registers: [Value; 16],
    /// Of known addresses of eight bytes: the value stored there, unless it is [`Value::Other`].
    stored: BTreeMap<Address, Value>,
}

impl State {
    fn entry() -> State {
        let registers = GENERAL.map(|register| match register {
            Register::RSP => Value::Stack(Address { base: 0, offset: 0 }),
            kept if CALLEE_SAVED.contains(&kept) => Value::Entry(kept),
            _ => Value::Other,
        });
        State { registers, stored: BTreeMap::new() }
    }

    /// The value of a whole register.
    #[must_use]
    pub fn of(&self, register: Register) -> Value {
        let full = register.full_register();
        GENERAL.iter().position(|&r| r == full).map_or(Value::Other, |i| self.registers[i])
    }

    fn set(&mut self, register: Register, value: Value) {
        let full = register.full_register();
        if let Some(i) = GENERAL.iter().position(|&r| r == full) {
            self.registers[i] = value;
        }
    }

    fn join(&mut self, other: &State) -> bool {
        let before = self.clone();
        for (mine, theirs) in self.registers.iter_mut().zip(other.registers) {
            *mine = mine.join(theirs);
        }
        let addresses: Vec<Address> = self.stored.keys().chain(other.stored.keys()).copied().collect();
        for address in addresses {
            let of = |state: &State| state.stored.get(&address).copied().unwrap_or(Value::Other);
            let joined = of(self).join(of(other));
            self.stored.insert(address, joined);
        }
        self.stored.retain(|_, value| *value != Value::Other);
        *self != before
    }

    fn place(&self, memory: &UsedMemory) -> Where {
        if matches!(memory.segment(), Register::FS | Register::GS) {
            return Where::Elsewhere;
        }
        self.address(memory.base(), memory.index(), memory.scale(), memory.displacement() as i64)
    }

    /// The place of an instruction's memory operand, accessed or only computed.
    fn operand(&self, instruction: &Instruction) -> Where {
        if matches!(instruction.segment_prefix(), Register::FS | Register::GS)
            || instruction.is_ip_rel_memory_operand()
        {
            return Where::Elsewhere;
        }
        let displacement = instruction.memory_displacement64() as i64;
        let (base, index) = (instruction.memory_base(), instruction.memory_index());
        self.address(base, index, instruction.memory_index_scale(), displacement)
    }

    fn address(&self, base: Register, index: Register, scale: u32, displacement: i64) -> Where {
        let indexed = index != Register::None;
        let of =
            |register: Register| if register == Register::None { Value::Other } else { self.of(register) };
        match (of(base), of(index)) {
            (Value::Stack(a), _) if !indexed => {
                Where::Known(Address { offset: a.offset.wrapping_add(displacement), ..a })
            }
            (Value::Stack(a), Value::Other | Value::Entry(_)) => {
                Where::Indexed(Address { offset: a.offset.wrapping_add(displacement), ..a })
            }
            (Value::Other | Value::Entry(_), Value::Stack(a)) if scale == 1 => {
                Where::Indexed(Address { offset: a.offset.wrapping_add(displacement), ..a })
            }
            (base, index) if base.of_stack() || index.of_stack() => Where::Pointer,
            _ => Where::Elsewhere,
        }
    }
}

/// The bytes of a memory operand; 0 if the instruction has no size (`lea`, `xsave` and such).
fn size(memory: &UsedMemory) -> usize {
    match memory.memory_size() {
        MemorySize::Unknown => 0,
        size => size.size(),
    }
}

fn reads(access: OpAccess) -> bool {
    matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

fn writes(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

/// Of functions of this file, by their entries: the registers that hold their entry values at every return.
pub type Keeps = HashMap<usize, Vec<Register>>;

/// The callee-saved registers that a function preserves, by its frame.
#[must_use]
pub fn keeps(function: &Function, frame: &Frame) -> Vec<Register> {
    let sound = frame.lost.is_empty() && frame.unbalanced.is_empty() && function.astray.is_empty();
    let same = |register: &Register| {
        function.exits.iter().all(|(op, exit)| match exit {
            Exit::Return | Exit::Link => {
                frame.before.get(op).is_none_or(|state| state.of(*register) == Value::Entry(*register))
            }
            Exit::Tail(_) => false,
            Exit::Stop => true,
        })
    };
    CALLEE_SAVED.into_iter().filter(|register| sound && same(register)).collect()
}

/// Follows a function's registers to a fixed point, and lists its accesses. Callees that are not in `keeps` are
/// unknown.
#[must_use]
pub fn frame(program: &Program, function: &Function, keeps: &Keeps) -> Frame {
    let info = InstructionInfoFactory::new();
    let mut walker = Walker { program, function, keeps, info, escapes: false, hidden: BTreeSet::new() };
    let mut before: HashMap<usize, State> = HashMap::from([(function.entry, State::entry())]);
    let mut todo = VecDeque::from([function.entry]);
    while let Some(i) = todo.pop_front() {
        let mut state = before[&i].clone();
        walker.step(i, &mut state);
        for &next in &function.next[&i] {
            let changed = match before.get_mut(&next) {
                Some(known) => known.join(&state),
                None => {
                    before.insert(next, state.clone());
                    true
                }
            };
            if changed && !todo.contains(&next) {
                todo.push_back(next);
            }
        }
    }
    let mut out = Frame {
        accesses: Vec::new(),
        taken: Vec::new(),
        lost: Vec::new(),
        unbalanced: Vec::new(),
        lowest: 0,
        escapes: walker.escapes,
        hidden: walker.hidden.iter().copied().collect(),
        before,
    };
    for &i in &function.body {
        let Some(state) = out.before.get(&i) else { continue };
        let instruction = &program.ops[i].instruction;
        match state.of(Register::RSP) {
            Value::Stack(Address { base: 0, offset }) => out.lowest = out.lowest.min(offset),
            Value::Stack(_) => (),
            _ => out.lost.push(i),
        }
        if function.exits.contains_key(&i)
            && state.of(Register::RSP) != Value::Stack(Address { base: 0, offset: 0 })
        {
            out.unbalanced.push(i);
        }
        let info = walker.info.info_options(instruction, InstructionInfoOptions::NO_REGISTER_USAGE);
        if instruction.mnemonic() == Mnemonic::Lea
            && instruction.op0_register() != Register::RSP
            && let Where::Known(a) | Where::Indexed(a) = state.operand(instruction)
        {
            out.taken.push((i, a));
        }
        // Return addresses are put and taken by calls alone.
        let returns = matches!(
            instruction.flow_control(),
            FlowControl::Return | FlowControl::Call | FlowControl::IndirectCall
        );
        for memory in info.used_memory().iter().filter(|m| m.access() != OpAccess::NoMemAccess && !returns) {
            let place = match state.place(memory) {
                // A count in a register decides the size.
                Where::Known(a) if instruction.has_rep_prefix() || instruction.has_repne_prefix() => {
                    Where::Indexed(a)
                }
                place => place,
            };
            if place != Where::Elsewhere {
                let (reads, writes) = (reads(memory.access()), writes(memory.access()));
                let overwrites = memory.access() == OpAccess::Write;
                out.accesses.push(Access { op: i, place, size: size(memory), reads, writes, overwrites });
            }
        }
        // A copy of the stack pointer is an address taken too, unless it is only saved and restored.
        if instruction.mnemonic() == Mnemonic::Mov
            && instruction.op0_kind() == OpKind::Register
            && instruction.op1_kind() == OpKind::Register
            && instruction.op0_register() != Register::RSP
            && let Value::Stack(a) = state.of(instruction.op1_register())
            && a.offset < 0
        {
            out.taken.push((i, a));
        }
    }
    out
}

struct Walker<'a> {
    program: &'a Program,
    function: &'a Function,
    keeps: &'a Keeps,
    info: InstructionInfoFactory,
    escapes: bool,
    hidden: BTreeSet<usize>,
}

impl Walker<'_> {
    fn step(&mut self, i: usize, state: &mut State) {
        if let Some(call) = self.function.calls.get(&i) {
            let given = GENERAL.iter().any(|&r| r != Register::RSP && state.of(r).of_stack())
                || !state.stored.is_empty();
            let local = matches!(call.callee, Callee::Local(_));
            let keeps: &[Register] = match &call.callee {
                Callee::Local(entry) => self.keeps.get(entry).map_or(&[], Vec::as_slice),
                _ => &CALLEE_SAVED,
            };
            let back = if given { Value::Derived } else { Value::Other };
            self.escapes |= given;
            for register in GENERAL {
                let kept = register == Register::RSP || keeps.contains(&register);
                // A callee of this file keeps the registers found by its analysis, and cannot return addresses that it
                // did not get.
                if !kept {
                    let same = local && !state.of(register).of_stack() && !given;
                    state.set(register, if same { Value::Other } else { back });
                }
            }
            return;
        }
        let instruction = self.program.ops[i].instruction;
        let value = self.special(i, &instruction, state);
        if let Some((register, value)) = value {
            state.set(register, value);
            return;
        }
        self.general(i, &instruction, state);
    }

    /// The few instructions that keep an address known. The register that is written and what it then holds.
    fn special(
        &mut self,
        i: usize,
        instruction: &Instruction,
        state: &mut State,
    ) -> Option<(Register, Value)> {
        let register =
            |n: u32| (instruction.op_kind(n) == OpKind::Register).then(|| instruction.op_register(n));
        let wide = |r: Register| r.is_gpr64();
        let moved = |state: &State, r: Register, by: i64| match state.of(r) {
            Value::Stack(a) => Value::Stack(Address { offset: a.offset.wrapping_add(by), ..a }),
            value => {
                if value.of_stack() {
                    Value::Derived
                } else {
                    Value::Other
                }
            }
        };
        match instruction.mnemonic() {
            Mnemonic::Mov => match (register(0), register(1)) {
                (Some(to), Some(from)) if wide(to) => Some((to, state.of(from))),
                (Some(to), None) if wide(to) && instruction.op1_kind() == OpKind::Memory => {
                    match state.operand(instruction) {
                        Where::Known(a) => Some((to, state.stored.get(&a).copied().unwrap_or(Value::Other))),
                        _ => None,
                    }
                }
                (None, Some(from)) if wide(from) && instruction.op0_kind() == OpKind::Memory => {
                    let value = state.of(from);
                    match state.operand(instruction) {
                        Where::Known(a) => {
                            self.overwrite(state, a, 8);
                            if value != Value::Other {
                                state.stored.insert(a, value);
                            }
                        }
                        _ if value.of_stack() => {
                            self.escapes = true;
                            self.hidden.insert(i);
                        }
                        _ => (),
                    }
                    // The store is done; no register changes.
                    Some((Register::None, Value::Other))
                }
                _ => None,
            },
            Mnemonic::Lea => {
                let to = register(0).filter(|&r| wide(r))?;
                match state.operand(instruction) {
                    Where::Known(a) => Some((to, Value::Stack(a))),
                    Where::Indexed(_) | Where::Pointer => Some((to, Value::Derived)),
                    Where::Elsewhere => Some((to, Value::Other)),
                }
            }
            Mnemonic::Add | Mnemonic::Sub => {
                let to = register(0).filter(|&r| wide(r))?;
                let by = immediate(instruction)?;
                let by = if instruction.mnemonic() == Mnemonic::Add { by } else { by.wrapping_neg() };
                Some((to, moved(state, to, by)))
            }
            Mnemonic::And => {
                let to = register(0).filter(|&r| wide(r))?;
                immediate(instruction)?;
                match state.of(to) {
                    Value::Stack(_) if to == Register::RSP => {
                        Some((to, Value::Stack(Address { base: i + 1, offset: 0 })))
                    }
                    _ => None,
                }
            }
            Mnemonic::Push | Mnemonic::Pushfq => {
                let value = register(0).map_or(Value::Other, |r| state.of(r));
                let rsp = moved(state, Register::RSP, -8);
                if let Value::Stack(a) = rsp {
                    self.overwrite(state, a, 8);
                    if value != Value::Other {
                        state.stored.insert(a, value);
                    }
                }
                Some((Register::RSP, rsp))
            }
            Mnemonic::Pop | Mnemonic::Popfq => {
                let value = match state.of(Register::RSP) {
                    Value::Stack(a) => state.stored.get(&a).copied().unwrap_or(Value::Other),
                    _ => Value::Other,
                };
                let rsp = moved(state, Register::RSP, 8);
                state.set(Register::RSP, rsp);
                Some((register(0).unwrap_or(Register::None), value))
            }
            Mnemonic::Leave => {
                let (saved, rsp) = match state.of(Register::RBP) {
                    Value::Stack(a) => (
                        state.stored.get(&a).copied().unwrap_or(Value::Other),
                        Value::Stack(Address { offset: a.offset + 8, ..a }),
                    ),
                    _ => (Value::Other, Value::Derived),
                };
                state.set(Register::RSP, rsp);
                Some((Register::RBP, saved))
            }
            _ => None,
        }
    }

    /// Otherwise a register that is written from an address of the stack is derived from it.
    fn general(&mut self, i: usize, instruction: &Instruction, state: &mut State) {
        let info = self.info.info(instruction);
        // The stack pointer counts as an operand, not as the implied address of `push` and the like.
        let operand = (0..instruction.op_count()).any(|n| {
            instruction.op_kind(n) == OpKind::Register
                && reads(info.op_access(n))
                && state.of(instruction.op_register(n)).of_stack()
        });
        let derived = operand
            || info.used_registers().iter().any(|used| {
                reads(used.access())
                    && used.register() != Register::RSP
                    && state.of(used.register()).of_stack()
            });
        let unseen = |used: &UsedRegister| writes(used.access()) && !used.register().is_gpr();
        if operand
            && (info.used_registers().iter().any(unseen)
                || info.used_memory().iter().any(|memory| writes(memory.access())))
        {
            self.escapes = true;
            self.hidden.insert(i);
        }
        // A read through a pointer gives the stored value, a pointer only if one was stored there.
        let loads = info.used_memory().iter().any(|m| reads(m.access()));
        let value = if loads && !self.escapes {
            Value::Other
        } else if derived {
            Value::Derived
        } else {
            Value::Other
        };
        let written: Vec<Register> = info
            .used_registers()
            .iter()
            .filter(|used| writes(used.access()))
            .map(|used| used.register())
            .collect();
        let stores: Vec<(Where, usize)> = info
            .used_memory()
            .iter()
            .filter(|m| writes(m.access()))
            .map(|m| (state.place(m), size(m)))
            .collect();
        for (place, size) in stores {
            match place {
                Where::Known(a) => self.overwrite(state, a, size.max(1)),
                // A value at an index or behind a pointer may be any stored one; the accesses record it.
                Where::Indexed(_) | Where::Pointer | Where::Elsewhere => (),
            }
            self.escapes |=
                derived && instruction.op0_kind() == OpKind::Memory && !loads && place == Where::Elsewhere;
        }
        for register in written {
            if register != Register::RSP || instruction.mnemonic() != Mnemonic::Call {
                state.set(register, value);
            }
        }
    }

    /// Forgets the values in bytes that are written now.
    fn overwrite(&self, state: &mut State, at: Address, size: usize) {
        let end = at.offset + size as i64;
        state
            .stored
            .retain(|kept, _| kept.base != at.base || kept.offset + 8 <= at.offset || kept.offset >= end);
    }
}

fn immediate(instruction: &Instruction) -> Option<i64> {
    matches!(
        instruction.op1_kind(),
        OpKind::Immediate8to64
            | OpKind::Immediate32to64
            | OpKind::Immediate64
            | OpKind::Immediate8
            | OpKind::Immediate32
    )
    .then(|| instruction.immediate(1) as i64)
    .filter(|_| instruction.code_size() != CodeSize::Code32)
}
