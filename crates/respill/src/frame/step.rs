//! What one instruction does to the abstract values.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{
    Code, CodeSize, ConditionCode, FlowControl, Instruction, InstructionInfoFactory, InstructionInfoOptions,
    Mnemonic, OpAccess, OpKind, Register, UsedMemory, UsedRegister,
};

use super::branch::same;
use super::value::{Compared, GENERAL, Range, State, Value, WORD, Where};
use super::{Address, CALLEE_SAVED, Outlines, Outside, Writes, reads, size, writes};
use crate::flow::{Callee, Exit, Function};
use crate::program::Program;

/// Registers through which code outside the file may get a value: arguments, their number, the static chain.
pub(crate) const GIVEN: [Register; 8] = [
    Register::RDI,
    Register::RSI,
    Register::RDX,
    Register::RCX,
    Register::R8,
    Register::R9,
    Register::RAX,
    Register::R10,
];

pub(super) struct Walker<'a> {
    pub(super) program: &'a Program,
    pub(super) function: &'a Function,
    pub(super) outlines: &'a Outlines,
    pub(super) info: InstructionInfoFactory,
    pub(super) hidden: BTreeSet<usize>,
    pub(super) aligned: BTreeMap<usize, Address>,
    pub(super) demands: BTreeSet<Register>,
    /// Whether a jump to another function passes an address of a frame.
    pub(super) gives: bool,
}

impl<'a> Walker<'a> {
    pub(super) fn new(program: &'a Program, function: &'a Function, outlines: &'a Outlines) -> Walker<'a> {
        Walker {
            program,
            function,
            outlines,
            info: InstructionInfoFactory::new(),
            hidden: BTreeSet::new(),
            aligned: BTreeMap::new(),
            demands: BTreeSet::new(),
            gives: false,
        }
    }

    pub(super) fn step(&mut self, i: usize, state: &mut State) {
        if let Some(call) = self.function.calls.get(&i) {
            let callee = call.callee.clone();
            let link = call.link;
            self.call(i, &callee, link, state);
            state.compared = None;
            state.same = None;
            return;
        }
        if let Some(Exit::Tail(callee)) = self.function.exits.get(&i) {
            self.tail(i, callee, state);
        }
        let instruction = self.program.ops[i].instruction;
        self.stores_outside(i, state);
        let flags = instruction.rflags_modified() != 0;
        // A constant that only the linker knows.
        let linked = immediate(&instruction) == Some(0) && !self.program.ops[i].references.is_empty();
        let compared = if linked { None } else { self.compared(&instruction, state) };
        let same = same(&instruction);
        let loads = instruction.mnemonic() == Mnemonic::Mov && instruction.op0_kind() == OpKind::Register;
        let table =
            loads && instruction.is_ip_rel_memory_operand() && self.program.said(i).contains("@GOTPCREL");
        let pushes = instruction.mnemonic() == Mnemonic::Push;
        let special = if linked && !pushes && !(loads && instruction.op0_register().size() >= 4) {
            None
        } else if linked && !pushes || table {
            Some((instruction.op0_register(), Value::Above(Register::RIP, Range::one(0))))
        } else {
            self.special(i, &instruction, state)
        };
        match special {
            Some((register, value)) => state.set(register, value),
            None => self.general(i, &instruction, state),
        }
        // It makes an address of the stack pointer, which it does not name.
        if instruction.mnemonic() == Mnemonic::Enter {
            state.set(Register::RBP, Value::Derived);
        }
        if flags {
            state.compared = compared;
            state.same = same;
        }
    }

    /// A pointer that came from outside may lead to cells of the frame: it may count down from a caller's frame, or come from
    /// an address that was given away. That an address stays in its object does not keep the cells of that object as they were.
    fn stores_outside(&mut self, i: usize, state: &mut State) {
        if state.stored.is_empty() {
            return;
        }
        let instruction = &self.program.ops[i].instruction;
        let info = self.info.info_options(instruction, InstructionInfoOptions::NO_REGISTER_USAGE);
        for memory in info.used_memory().iter().filter(|memory| writes(memory.access())) {
            if state.place(memory) == Where::Elsewhere
                && let Some(outside) = super::outside(self.program, i, memory, state)
            {
                state.overwrite_outside(&self.aligned, outside);
            }
        }
    }

    /// What a callee writes through the registers that it gets.
    fn written(&self, callee: &Writes, state: &mut State) {
        let through: Vec<(Value, i64, i64)> =
            callee.through.iter().map(|(&register, &(from, to))| (state.of(register), from, to)).collect();
        for (value, from, to) in through {
            match value {
                Value::Stack(a) => state.overwrite_within(a.plus(from), to.saturating_sub(from)),
                _ if value.is_elsewhere() => (),
                Value::Derived => state.overwrite_somewhere(),
                value => {
                    let place = match value.near() {
                        Some((register, by)) => Outside::Above(register, by.saturating_add(from)),
                        None => Outside::Anywhere,
                    };
                    state.overwrite_outside(&self.aligned, place);
                }
            }
        }
        if callee.anywhere {
            state.overwrite_somewhere();
        }
    }

    /// The registers that a callee may use: by the ABI, or by its outline.
    fn gets(&self, callee: &Callee, register: Register) -> bool {
        match callee {
            Callee::Local(entry) => {
                let demands = self.outlines.get(entry).map(|outline| &outline.demands);
                let kept = CALLEE_SAVED.contains(&register);
                register != Register::RSP
                    && (!kept || demands.is_none_or(|demands| demands.contains(&register)))
            }
            // To code behind a pointer also the one to which the ABI gives no meaning.
            Callee::Unknown => GIVEN.contains(&register) || register == Register::R11,
            Callee::External(_) => GIVEN.contains(&register),
        }
    }

    /// A jump to another function passes registers as a call does.
    fn tail(&mut self, i: usize, callee: &Callee, state: &State) {
        let given: Vec<Register> = GENERAL.into_iter().filter(|&r| self.gets(callee, r)).collect();
        for register in given {
            self.demand(state.of(register));
            self.gives |= state.of(register).of_stack();
            if state.of(register).reaches_frame() {
                self.hidden.insert(i);
            }
        }
        // It may read what lies below the stack pointer.
        let Callee::Local(entry) = callee else { return };
        let Some(outline) = self.outlines.get(entry) else { return };
        for &(from, to) in &outline.reach {
            let at = Address { base: 0, offset: from };
            self.demand_among(state, at, to - from);
            if state.holds(at, to - from, Value::reaches_frame) {
                self.hidden.insert(i);
            }
        }
    }

    fn call(&mut self, i: usize, callee: &Callee, link: bool, state: &mut State) {
        let outline = match callee {
            Callee::Local(entry) => Some(self.outlines.get(entry)),
            _ => None,
        };
        let gets = |register: Register| self.gets(callee, register);
        // Cells are the callee's to read where its arguments lie, or where it is known to read.
        let top = match state.of(Register::RSP) {
            Value::Stack(a) => Some(a.plus(if link { 0 } else { -8 })),
            _ => None,
        };
        let holds = match (outline, top) {
            (None, Some(top)) => state.holds(top.plus(8), 1 << 40, Value::reaches_frame),
            (Some(Some(outline)), Some(top)) if !outline.wild => outline
                .reach
                .iter()
                .any(|&(from, to)| state.holds(top.plus(from), to - from, Value::of_stack)),
            _ => state.stored.values().any(|value| value.of_stack()),
        };
        let given = holds || GENERAL.into_iter().any(|r| gets(r) && state.of(r).of_stack());
        let wanted: Vec<Value> = GENERAL.into_iter().filter(|&r| gets(r)).map(|r| state.of(r)).collect();
        if given {
            self.hidden.insert(i);
        }
        wanted.into_iter().for_each(|value| self.demand(value));
        if let (Some(Some(outline)), Some(top)) = (outline, top) {
            for &(from, to) in &outline.reach {
                self.demand_among(state, top.plus(from), to - from);
            }
        }
        if let Some(Some(outline)) = outline {
            self.written(&outline.writes, state);
        }
        let keeps: &[Register] = match outline {
            None => &CALLEE_SAVED,
            Some(outline) => outline.map_or(&[], |outline| outline.keeps.as_slice()),
        };
        for register in GENERAL {
            if register != Register::RSP && !keeps.contains(&register) {
                // What the callee does not change may still be there, or it leaves an address itself.
                let leaves = outline.is_some_and(|outline| {
                    state.of(register).of_stack()
                        || outline.is_none_or(|outline| outline.leaves.contains(&register))
                });
                let value = if leaves || given { Value::Derived } else { Value::Other };
                state.set(register, value);
            }
        }
        match (outline, top) {
            // The callee's frame lies below, and its arguments are its own.
            (None, Some(_)) | (_, None) | (Some(None), _) => state.overwrite_somewhere(),
            (Some(Some(outline)), Some(top)) => {
                if outline.wild {
                    state.overwrite_somewhere();
                }
                for &(from, to) in &outline.reach {
                    state.overwrite(top.plus(from), to - from);
                }
            }
        }
        if let Some(top) = top {
            state.overwrite(top.plus(-(1 << 40)), (1 << 40) + if link { 0 } else { 8 });
        }
    }

    /// The comparison that the flags show after an instruction.
    fn compared(&self, instruction: &Instruction, state: &State) -> Option<Compared> {
        let register = (instruction.op0_kind() == OpKind::Register).then(|| instruction.op0_register())?;
        if !(register.is_gpr64() || register.is_gpr32()) {
            return None;
        }
        let (register, size) = (register.full_register(), register.size());
        let zero = |order| Some(Compared { register, size, with: 0, order });
        match instruction.mnemonic() {
            Mnemonic::Cmp => {
                let with = match instruction.op1_kind() {
                    OpKind::Register => {
                        let other = instruction.op1_register();
                        let (low, high) = state.of(other).bounds()?;
                        (low == high && (other.is_gpr64() || low >= 0)).then_some(low)?
                    }
                    _ => immediate(instruction)?,
                };
                let with = if size == 4 { with & i64::from(u32::MAX) } else { with };
                Some(Compared { register, size, with, order: true })
            }
            Mnemonic::Test
                if instruction.op1_kind() == OpKind::Register
                    && instruction.op1_register().full_register() == register =>
            {
                zero(true)
            }
            Mnemonic::Dec | Mnemonic::Inc | Mnemonic::Sub | Mnemonic::Add | Mnemonic::And => zero(false),
            _ => None,
        }
    }

    /// For instructions whose result is known: the register that is written, and its value.
    fn special(
        &mut self,
        i: usize,
        instruction: &Instruction,
        state: &mut State,
    ) -> Option<(Register, Value)> {
        let register =
            |n: u32| (instruction.op_kind(n) == OpKind::Register).then(|| instruction.op_register(n));
        let wide = |r: Register| r.is_gpr64();
        // A register of 32 bits clears the rest.
        let whole = |r: Register| r.is_gpr64() || r.is_gpr32();
        let sized = |r: Register, value: Value| if r.is_gpr32() { value.word() } else { value };
        let nothing = Some((Register::None, Value::Other));
        match instruction.mnemonic() {
            Mnemonic::Mov => match (register(0), register(1)) {
                (Some(to), Some(from)) if whole(to) && from.is_gpr() => {
                    if !wide(to) {
                        self.demand(state.of(from));
                    }
                    Some((to, sized(to, state.of(from))))
                }
                (Some(to), None) if whole(to) && instruction.op1_kind() == OpKind::Memory => {
                    self.address_of(instruction, state);
                    Some((to, sized(to, self.loaded(instruction, state, to.size()))))
                }
                (Some(to), None) if whole(to) => immediate(instruction).map(|by| {
                    let value = if to.is_gpr32() { by & i64::from(u32::MAX) } else { by };
                    (to, Value::between(value, value))
                }),
                (None, Some(from)) if wide(from) && instruction.op0_kind() == OpKind::Memory => {
                    self.address_of(instruction, state);
                    let value = state.of(from);
                    match state.operand(instruction) {
                        Where::Known(a) => {
                            state.overwrite(a, 8);
                            if value != Value::Other {
                                state.stored.insert(a, value);
                            }
                        }
                        place => {
                            if value.of_stack() {
                                self.hidden.insert(i);
                            }
                            self.demand(value);
                            state.overwrite_at(place, 8);
                        }
                    }
                    nothing
                }
                (None, None) if instruction.op0_kind() == OpKind::Memory => {
                    self.address_of(instruction, state);
                    let by = immediate(instruction)?;
                    let size = instruction.memory_size().size() as i64;
                    match state.operand(instruction) {
                        Where::Known(a) => {
                            state.overwrite(a, size);
                            if size == 8 {
                                state.stored.insert(a, Value::between(by, by));
                            }
                        }
                        place => state.overwrite_at(place, size),
                    }
                    nothing
                }
                _ => None,
            },
            Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd => {
                let to = register(0).filter(|&r| whole(r))?;
                let (value, size) = match register(1) {
                    Some(from) => {
                        self.demand(state.of(from));
                        (state.of(from), from.size())
                    }
                    None => {
                        self.address_of(instruction, state);
                        let size = instruction.memory_size().size();
                        (self.loaded(instruction, state, size), size)
                    }
                };
                let signed = instruction.mnemonic() != Mnemonic::Movzx;
                // The second byte of a register.
                use Register::{AH, BH, CH, DH};
                let high = register(1).is_some_and(|from| matches!(from, AH | BH | CH | DH));
                let most = 1i64 << (8 * size - usize::from(signed));
                let value = match value {
                    value if value.of_stack() => Value::Derived,
                    Value::Number(range) if !high && range.low >= 0 && range.most() < most => value,
                    _ if signed => Value::between(-most, most - 1),
                    _ => Value::between(0, most - 1),
                };
                Some((to, sized(to, value)))
            }
            Mnemonic::Lea => {
                let to = register(0).filter(|&r| whole(r))?;
                let value = match state.operand(instruction) {
                    Where::Known(a) => Value::Stack(a),
                    Where::Within(..) | Where::Indexed(_) | Where::Pointer => Value::Derived,
                    // What the linker adds is unknown, and so is the rest.
                    Where::Elsewhere
                        if !instruction.is_ip_rel_memory_operand()
                            && !self.program.ops[i].references.is_empty() =>
                    {
                        Value::Other
                    }
                    Where::Elsewhere => state.sum(instruction),
                };
                self.address_of(instruction, state);
                Some((to, sized(to, value)))
            }
            Mnemonic::Inc | Mnemonic::Dec => {
                let to = register(0).filter(|&r| whole(r))?;
                let by = if instruction.mnemonic() == Mnemonic::Inc { 1 } else { -1 };
                self.demand(state.of(to));
                Some((to, sized(to, state.of(to).plus(by))))
            }
            Mnemonic::Add | Mnemonic::Sub => {
                let to = register(0).filter(|&r| whole(r))?;
                if instruction.op1_kind() == OpKind::Register
                    && instruction.op1_register() == to
                    && instruction.mnemonic() == Mnemonic::Sub
                {
                    return Some((to, Value::between(0, 0)));
                }
                let by = match register(1) {
                    Some(from) => match state.of(from).bounds() {
                        Some((low, high)) if low == high && from.is_gpr64() => low,
                        _ if wide(to) && !state.of(to).of_stack() && !state.of(from).of_stack() => {
                            return Some((to, self.added(instruction, state)));
                        }
                        _ => return None,
                    },
                    None => immediate(instruction)?,
                };
                let by = if instruction.mnemonic() == Mnemonic::Add { by } else { by.checked_neg()? };
                self.demand(state.of(to));
                Some((to, sized(to, state.of(to).plus(by))))
            }
            Mnemonic::And => {
                let to = register(0).filter(|&r| whole(r))?;
                let by = immediate(instruction)?;
                match state.of(to) {
                    // Alignment downwards.
                    Value::Stack(a)
                        if to == Register::RSP && (-4096..0).contains(&by) && (-by).count_ones() == 1 =>
                    {
                        let known = *self.aligned.entry(i + 1).or_insert(a);
                        (known == a).then_some((to, Value::Stack(Address { base: i + 1, offset: 0 })))
                    }
                    value if !value.of_stack() && by >= 0 => {
                        self.demand(value);
                        Some((to, Value::between(0, by)))
                    }
                    _ => None,
                }
            }
            Mnemonic::Shl | Mnemonic::Shr => {
                let to = register(0).filter(|&r| wide(r))?;
                let by = immediate(instruction).filter(|by| (0..63).contains(by))? as u32;
                self.demand(state.of(to));
                let value = match (state.of(to), instruction.mnemonic()) {
                    (value, _) if value.of_stack() => Value::Derived,
                    (value, Mnemonic::Shl) => value.times(1 << by),
                    (Value::Number(range), _) if range.low >= 0 => {
                        Value::between(range.low >> by, range.most() >> by)
                    }
                    _ if by > 0 => Value::between(0, (u64::MAX >> by) as i64),
                    _ => Value::Other,
                };
                Some((to, value))
            }
            Mnemonic::Xor => {
                let to = register(0).filter(|&r| whole(r))?;
                (register(1) == Some(to)).then_some((to, Value::between(0, 0)))
            }
            // Of two registers. With memory, the cell's value is not followed.
            Mnemonic::Xchg => {
                let (one, two) = (register(0).filter(|&r| wide(r))?, register(1).filter(|&r| wide(r))?);
                let value = state.of(two);
                state.set(two, state.of(one));
                Some((one, value))
            }
            Mnemonic::Push | Mnemonic::Pushfq => {
                let value = match register(0) {
                    Some(r) if wide(r) => state.of(r),
                    Some(r) if state.of(r).of_stack() => Value::Derived,
                    _ if instruction.op0_kind() == OpKind::Memory => {
                        self.address_of(instruction, state);
                        self.loaded(instruction, state, 8)
                    }
                    _ => Value::Other,
                };
                let by = i64::from(instruction.stack_pointer_increment());
                if by != -8 {
                    self.demand(value);
                }
                let rsp = state.of(Register::RSP).plus(by);
                match rsp {
                    Value::Stack(a) => {
                        state.overwrite(a, -by);
                        if value != Value::Other {
                            let value = if by == -8 { value } else { Value::Derived };
                            state.stored.insert(a, value);
                        }
                    }
                    _ => {
                        if value.of_stack() {
                            self.hidden.insert(i);
                        }
                        self.demand(value);
                        state.overwrite_somewhere();
                    }
                }
                Some((Register::RSP, rsp))
            }
            Mnemonic::Pop | Mnemonic::Popfq if instruction.op0_kind() != OpKind::Memory => {
                let by = i64::from(instruction.stack_pointer_increment());
                let place = match state.of(Register::RSP) {
                    Value::Stack(a) => Where::Known(a),
                    _ => Where::Pointer,
                };
                let value = self.at(state, place, by as usize);
                let rsp = state.of(Register::RSP).plus(by);
                state.set(Register::RSP, rsp);
                // Two bytes leave the rest of the register.
                let register = register(0).unwrap_or(Register::None);
                let kept = value.of_stack() || state.of(register).of_stack();
                let part = if kept { Value::Derived } else { Value::Other };
                Some((register, if by == 8 { value } else { part }))
            }
            Mnemonic::Leave if instruction.code() == Code::Leaveq => {
                let (saved, rsp) = match state.of(Register::RBP) {
                    Value::Stack(a) => (self.at(state, Where::Known(a), 8), Value::Stack(a.plus(8))),
                    _ => (self.at(state, Where::Pointer, 8), Value::Derived),
                };
                state.set(Register::RSP, rsp);
                Some((Register::RBP, saved))
            }
            _ => None,
        }
    }

    /// The sum or difference of two registers, neither of them made from an address of the frame.
    fn added(&mut self, instruction: &Instruction, state: &State) -> Value {
        let (to, from) = (state.of(instruction.op0_register()), state.of(instruction.op1_register()));
        self.demand(to);
        self.demand(from);
        match (instruction.mnemonic(), from) {
            (Mnemonic::Add, _) => to.sum(from),
            (_, Value::Number(range)) => match (range.most().checked_neg(), range.low.checked_neg()) {
                (Some(low), Some(high)) => to.sum(Value::between(low, high)),
                _ => Value::Other,
            },
            _ => Value::Other,
        }
    }

    /// A register's entry value that is used as anything but a value to keep.
    fn demand(&mut self, value: Value) {
        if let Value::Entry(register) = value {
            self.demands.insert(register);
        }
    }

    /// The same for all that bytes of the frame hold.
    fn demand_among(&mut self, state: &State, at: Address, size: i64) {
        let values = state.among(&self.aligned, at, size);
        values.into_iter().for_each(|value| self.demand(value));
    }

    /// The registers of an instruction's memory operand are used.
    fn address_of(&mut self, instruction: &Instruction, state: &State) {
        for register in [instruction.memory_base(), instruction.memory_index()] {
            self.demand(state.of(register));
        }
    }

    /// The value that a memory operand of this many bytes gives.
    fn loaded(&mut self, instruction: &Instruction, state: &State, size: usize) -> Value {
        self.at(state, state.operand(instruction), size)
    }

    fn at(&mut self, state: &State, place: Where, size: usize) -> Value {
        // A part of what a cell keeps is used as something else. A read of any cell is a suspect of all cells in the caller.
        match place {
            Where::Known(a) if size == 8 && state.stored.contains_key(&a) => (),
            Where::Known(a) => self.demand_among(state, a, size as i64),
            Where::Within(a, span) => self.demand_among(state, a, span.saturating_add(size as i64)),
            _ => (),
        }
        match place {
            Where::Known(a) => match state.stored.get(&a) {
                Some(&value) if size == 8 => value,
                _ if state.holds(a, size as i64, Value::of_stack) => Value::Derived,
                _ if size == 4 => WORD,
                _ => Value::Other,
            },
            Where::Elsewhere => Value::Other,
            Where::Within(a, span) if !state.holds(a, span.saturating_add(size as i64), Value::of_stack) => {
                if size == 4 {
                    WORD
                } else {
                    Value::Other
                }
            }
            _ if state.stored.values().any(|value| value.of_stack()) => Value::Derived,
            _ => Value::Other,
        }
    }

    /// Any other instruction: what is written from something of the frame is made from it.
    fn general(&mut self, i: usize, instruction: &Instruction, state: &mut State) {
        let info = self.info.info(instruction);
        let memory: Vec<UsedMemory> = info.used_memory().to_vec();
        let used: Vec<UsedRegister> = info.used_registers().to_vec();
        let operands: Vec<(Register, OpAccess)> = (0..instruction.op_count())
            .filter(|&n| instruction.op_kind(n) == OpKind::Register)
            .map(|n| (instruction.op_register(n), info.op_access(n)))
            .collect();
        let addresses = |register: Register| {
            memory
                .iter()
                .any(|m| m.base().full_register() == register || m.index().full_register() == register)
        };
        // An implied operand may be the register that also addresses memory: then it is read without that address, too.
        let named = [instruction.memory_base().full_register(), instruction.memory_index().full_register()];
        let mut implied: Vec<Register> = Vec::new();
        if named.iter().any(|&register| state.of(register).of_stack()) {
            let mut bare = *instruction;
            bare.set_memory_base(Register::None);
            bare.set_memory_index(Register::None);
            let bare = self.info.info(&bare).used_registers().iter().filter(|used| reads(used.access()));
            implied.extend(bare.map(|used| used.register().full_register()).filter(|r| named.contains(r)));
        }
        // A register that only addresses memory is not data; the stack pointer that `push` and the like imply is not, either.
        let data: Vec<Register> = operands
            .iter()
            .filter(|&&(_, access)| reads(access))
            .map(|&(register, _)| register)
            .chain(
                used.iter()
                    .filter(|used| reads(used.access()))
                    .map(UsedRegister::register)
                    .filter(|r| *r != Register::RSP)
                    .filter(|r| !addresses(r.full_register()) || implied.contains(&r.full_register())),
            )
            .collect();
        let loads: Vec<Value> = memory
            .iter()
            .filter(|m| reads(m.access()))
            .map(|m| match state.place(m) {
                // A count decides how far it reads.
                Where::Known(a) if super::reaches_beyond(instruction, m) => {
                    self.at(state, Where::Indexed(a), size(m))
                }
                place => self.at(state, place, size(m)),
            })
            .collect();
        loads.iter().for_each(|&value| self.demand(value));
        let derived =
            data.iter().any(|&r| state.of(r).of_stack()) || loads.iter().any(|value| value.of_stack());
        for used in used.iter().filter(|used| reads(used.access())) {
            self.demand(state.of(used.register()));
        }
        // Comparisons keep nothing, and jumps go where they go.
        let flow = instruction.flow_control() != FlowControl::Next;
        let unseen = used.iter().any(|used| {
            writes(used.access()) && !used.register().is_gpr() && used.register() != Register::RIP
        });
        let stores: Vec<(Where, i64, bool)> = memory
            .iter()
            .filter(|m| writes(m.access()))
            .map(|m| (state.place(m), size(m) as i64, super::reaches_beyond(instruction, m)))
            .collect();
        // The decoder does not list x87 registers, so a value that seems to go nowhere goes there.
        let general = used.iter().any(|used| writes(used.access()) && used.register().is_gpr());
        let compares = matches!(instruction.mnemonic(), Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Bt);
        if derived && !flow && (unseen || !stores.is_empty() || !general && !compares) {
            self.hidden.insert(i);
        }
        for (place, size, beyond) in stores {
            match place {
                Where::Known(_) | Where::Within(..) if beyond => state.overwrite_somewhere(),
                place => state.overwrite_at(place, size),
            }
        }
        let values: Vec<(Register, Value)> = used
            .iter()
            .filter(|used| writes(used.access()) && used.register().is_gpr())
            .map(|used| {
                let register = used.register();
                // What is changed in place, in part or perhaps not at all, stays made from what it was.
                let kept =
                    used.access() != OpAccess::Write || register.size() < 4 || super::may_keep(instruction);
                // What is perhaps not written keeps its upper half, but for conditional moves.
                let perhaps = matches!(used.access(), OpAccess::CondWrite | OpAccess::ReadCondWrite)
                    && instruction.condition_code() == ConditionCode::None
                    || super::may_keep(instruction);
                let value = if derived || kept && state.of(register).of_stack() {
                    Value::Derived
                } else if register.is_gpr32() && !perhaps {
                    WORD
                } else {
                    Value::Other
                };
                (register, value)
            })
            .collect();
        for (register, value) in values {
            // A register may be listed in parts.
            let value = if value == WORD && kept_wide(&used, register) { Value::Other } else { value };
            state.set(register, value);
        }
    }
}

/// Whether an instruction writes more than the lower half of a register.
fn kept_wide(used: &[UsedRegister], register: Register) -> bool {
    used.iter().any(|other| {
        writes(other.access())
            && other.register().full_register() == register.full_register()
            && other.register() != register
    })
}

pub(super) fn immediate(instruction: &Instruction) -> Option<i64> {
    let n = instruction.op_count().checked_sub(1)?;
    matches!(
        instruction.op_kind(n),
        OpKind::Immediate8to64
            | OpKind::Immediate8to32
            | OpKind::Immediate32to64
            | OpKind::Immediate64
            | OpKind::Immediate8
            | OpKind::Immediate32
    )
    .then(|| instruction.immediate(n) as i64)
    .filter(|_| instruction.code_size() != CodeSize::Code32)
}
