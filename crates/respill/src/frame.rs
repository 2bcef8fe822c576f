//! Which addresses of its frame each instruction of a function touches: an abstract interpretation of the decoded instructions.
//!
//! A pointer into the frame is made from the stack pointer, so everything that is made from it is followed: through moves, `lea`,
//! additions, cells of the frame, and comparisons that bound an index. An address that goes where it is not followed, into a vector
//! register, other memory or a callee, *escapes*: then any pointer and any callee may touch the whole frame.
#![forbid(unsafe_code)]

mod branch;
mod outline;
mod step;
mod value;
mod walk;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use iced_x86::{
    FlowControl, Instruction, InstructionInfoFactory, InstructionInfoOptions, MemorySize, Mnemonic, OpAccess,
    OpKind, Register, UsedMemory,
};

use crate::flow::{Callee, Exit, Function};
use crate::program::Program;

pub(crate) use branch::negated;
pub use outline::{Outline, Outlines, Writes};
pub(crate) use step::GIVEN;
pub use value::{Address, CALLEE_SAVED, GENERAL, Range, State, Value, Where};
pub(crate) use walk::{is_door, second_entry};
use walk::{keeps_way, settled};

/// A memory operand of an instruction.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// The instruction.
    pub op: usize,
    /// Its place.
    pub place: Where,
    /// Bytes.
    pub size: usize,
    /// Whether it reads.
    pub reads: bool,
    /// Whether it reads, whatever happens.
    pub always_reads: bool,
    /// Whether it writes.
    pub writes: bool,
    /// Whether it writes all of its bytes, whatever happens, and reads none.
    pub overwrites: bool,
}

/// Where memory outside the frame is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
    /// At least this many bytes above the register's value at the entry.
    Above(Register, i64),
    /// Anywhere: the address was made from what came from outside, and has no lower bound.
    Anywhere,
}

/// A function's use of its frame.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Every memory operand that is, or may be, in the frame.
    pub accesses: Vec<Access>,
    /// Accesses to memory other than the frame, with the instruction; those to the program's own data at known places do not count.
    pub outside: Vec<(usize, Outside)>,
    /// The registers before each instruction, in the order of [`GENERAL`].
    pub before: HashMap<usize, State>,
    /// Instructions with an address whose distance from the stack pointer only the linker knows.
    pub lost: Vec<usize>,
    /// Exits at which the stack pointer differs from the entry's.
    pub unbalanced: Vec<usize>,
    /// The lowest known address of base 0 that the stack pointer takes.
    pub lowest: i64,
    /// Whether any address of the frame escapes.
    pub escapes: bool,
    /// Instructions by which one does, calls included.
    pub hidden: Vec<usize>,
    /// The place of each aligned base before it was aligned: the base lies there or below.
    pub aligned: BTreeMap<usize, Address>,
    /// The first instruction that touches its return address other than by a call or a return.
    pub returns: Option<usize>,
    /// Callee-saved registers whose entry value it uses other than to keep it.
    pub demands: BTreeSet<Register>,
    /// Whether it gives away an address of its frame or its caller's, except in registers at a return.
    pub gives: bool,
    /// The registers that may hold such an address at a return.
    pub leaves: BTreeSet<Register>,
    /// What it, or a callee of the file, writes outside its frame.
    pub writes: Writes,
    /// Whether it relies on the value of a cell, other than to restore what it keeps for its caller.
    pub relies: bool,
}

impl Frame {
    /// Whether what counts from a base lies at or below a known place of the frame.
    #[must_use]
    pub fn is_fixed(&self, base: usize) -> bool {
        base == 0 || self.aligned.get(&base).is_some_and(|made| self.is_fixed(made.base))
    }

    /// Whether bytes from `start` to before `end` may be among those from `from` to before `to`.
    pub(crate) fn meets(&self, start: Address, end: i64, from: Address, to: i64) -> bool {
        value::meets(&self.aligned, start, end, from, to)
    }
}

/// The size of a memory operand in bytes; 0 if the instruction does not give it (`xsave` and the like).
pub(crate) fn size(memory: &UsedMemory) -> usize {
    match memory.memory_size() {
        MemorySize::Unknown => 0,
        size => size.size(),
    }
}

pub(crate) fn reads(access: OpAccess) -> bool {
    matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

pub(crate) fn writes(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

/// Whether an instruction may leave the register as it was that it seems to write: these do nothing without a shadow stack.
pub(crate) fn may_keep(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Rdsspd | Mnemonic::Rdsspq)
}

/// Whether an access may reach beyond the bytes that the operand names: by a count, or by the number of a bit.
fn reaches_beyond(instruction: &Instruction, memory: &UsedMemory) -> bool {
    use Mnemonic::{Bt, Btc, Btr, Bts};
    let bits = matches!(instruction.mnemonic(), Bt | Btc | Btr | Bts);
    instruction.has_rep_prefix()
        || instruction.has_repne_prefix()
        || bits && instruction.op1_kind() == OpKind::Register
        || size(memory) == 0
        || around(instruction)
}

/// Whether an instruction touches what lies on both sides of its address: a tile's rows, by a stride of either sign.
fn around(instruction: &Instruction) -> bool {
    use Mnemonic::{Tileloadd, Tileloaddt1, Tilestored};
    matches!(instruction.mnemonic(), Tileloadd | Tileloaddt1 | Tilestored)
}

/// The registers that a function preserves: callee-saved ones by its frame, others that it does not write. So must those to which it
/// jumps.
#[must_use]
pub fn keeps(program: &Program, function: &Function, frame: &Frame, outlines: &Outlines) -> Vec<Register> {
    let sound = frame.lost.is_empty() && frame.unbalanced.is_empty() && function.astray.is_empty();
    let same = |register: &Register| {
        function.exits.iter().all(|(op, exit)| {
            let here =
                || frame.before.get(op).is_none_or(|state| state.of(*register) == Value::Entry(*register));
            match exit {
                Exit::Return | Exit::Link => here(),
                Exit::Tail(Callee::Local(entry)) => {
                    here() && outlines.get(entry).is_some_and(|there| there.keeps.contains(register))
                }
                Exit::Tail(_) => here(),
                Exit::Stop => true,
            }
        })
    };
    let mut out: Vec<Register> =
        CALLEE_SAVED.into_iter().filter(|register| sound && same(register)).collect();
    let mut spared: BTreeSet<Register> = GENERAL.into_iter().filter(|r| !CALLEE_SAVED.contains(r)).collect();
    for (_, callee) in function.callees() {
        match callee {
            Callee::Local(entry) => match outlines.get(entry) {
                Some(there) => spared.retain(|register| there.keeps.contains(register)),
                None => spared.clear(),
            },
            _ => spared.clear(),
        }
    }
    spared.remove(&Register::RSP);
    if !sound || spared.is_empty() {
        return out;
    }
    let mut info = InstructionInfoFactory::new();
    for &op in &function.body {
        let instruction = &program.ops[op].instruction;
        if instruction.is_invalid() || spared.is_empty() {
            return out;
        }
        for used in info.info(instruction).used_registers().iter().filter(|used| writes(used.access())) {
            spared.remove(&used.register().full_register());
        }
    }
    out.extend(spared);
    out
}

/// Follows a function's registers to a fixed point, and lists its accesses. Callees that are not in `outlines` are
/// unknown. `None` if its instructions hold more than `room` cells in all.
#[must_use]
pub fn frame(program: &Program, function: &Function, outlines: &Outlines, room: usize) -> Option<Frame> {
    let (mut walker, before) = settled(program, function, outlines, room)?;
    let mut out = Frame {
        accesses: Vec::new(),
        outside: Vec::new(),
        lost: Vec::new(),
        unbalanced: Vec::new(),
        lowest: 0,
        escapes: !walker.hidden.is_empty(),
        hidden: walker.hidden.iter().copied().collect(),
        aligned: std::mem::take(&mut walker.aligned),
        returns: None,
        demands: std::mem::take(&mut walker.demands),
        gives: walker.gives || !walker.hidden.is_empty(),
        leaves: BTreeSet::new(),
        writes: Writes::default(),
        relies: before.values().any(State::relies),
        before,
    };
    left(function, outlines, &mut out);
    // Its return address is where its caller put it, and a value like others.
    let linked = function.exits.values().any(|exit| *exit == Exit::Link);
    for &i in &function.body {
        // No value allows this path.
        let Some(state) = out.before.get(&i) else { continue };
        let instruction = &program.ops[i].instruction;
        if let Value::Stack(Address { base: 0, offset }) = state.of(Register::RSP) {
            out.lowest = out.lowest.min(offset);
        }
        if by_linker(program, i) && state.operand(instruction) != Where::Elsewhere {
            out.lost.push(i);
        }
        // Where a function ends for good, the stack does not matter.
        if function.exits.get(&i).is_some_and(|exit| match exit {
            Exit::Stop => false,
            // The register or the cell with the way back must be what it was.
            Exit::Link if !keeps_way(function, instruction, state) => true,
            _ => state.of(Register::RSP) != Value::Stack(Address { base: 0, offset: 0 }),
        }) {
            out.unbalanced.push(i);
        }
        // Return addresses are put and taken by calls alone.
        let returns = matches!(
            instruction.flow_control(),
            FlowControl::Return | FlowControl::Call | FlowControl::IndirectCall
        );
        let info = walker.info.info_options(instruction, InstructionInfoOptions::NO_REGISTER_USAGE);
        for memory in info.used_memory() {
            let pushes =
                returns && memory.base().full_register() == Register::RSP && !names(instruction, memory);
            if memory.access() == OpAccess::NoMemAccess || pushes {
                continue;
            }
            let place = match state.place(memory) {
                Where::Known(a) | Where::Within(a, _) if reaches_beyond(instruction, memory) => {
                    Where::Indexed(a)
                }
                // The operand counts from the stack pointer after it was moved.
                Where::Known(a)
                    if instruction.mnemonic() == Mnemonic::Pop
                        && instruction.op0_kind() == OpKind::Memory =>
                {
                    Where::Indexed(a)
                }
                place => place,
            };
            if place == Where::Elsewhere {
                let outside = outside(program, i, memory, state);
                if let Some(outside) = outside.filter(|_| writes(memory.access())) {
                    out.writes.add(outside, end_above(instruction, memory, state));
                }
                out.outside.extend(outside.map(|outside| (i, outside)));
                continue;
            }
            let (reads, writes) = (reads(memory.access()), writes(memory.access()));
            // A mask may stop it.
            let always_reads = !instruction.has_op_mask()
                && matches!(memory.access(), OpAccess::Read | OpAccess::ReadWrite | OpAccess::ReadCondWrite);
            let overwrites = memory.access() == OpAccess::Write;
            let size = size(memory);
            if let Where::Known(a) = place
                && !linked
                && a.base == 0
                && a.offset < 8
                && a.offset + size as i64 > 0
            {
                out.returns.get_or_insert(i);
            }
            out.accesses.push(Access { op: i, place, size, reads, always_reads, writes, overwrites });
        }
    }
    Some(out)
}

/// Whether the linker decides how far a memory operand is from its registers.
fn by_linker(program: &Program, op: usize) -> bool {
    let instruction = &program.ops[op].instruction;
    instruction.memory_displ_size() >= 4
        && instruction.memory_displacement64() == 0
        && !instruction.is_ip_rel_memory_operand()
        && !program.ops[op].references.is_empty()
}

/// Where an operand outside the frame lies, unless in the program's own data or nowhere.
fn outside(program: &Program, op: usize, memory: &UsedMemory, state: &State) -> Option<Outside> {
    let instruction = &program.ops[op].instruction;
    let segment = matches!(memory.segment(), Register::FS | Register::GS);
    // A bit's number reaches in both directions, and so do strings if their direction was changed.
    let back = if instruction.is_string_instruction() {
        program.downwards
    } else {
        reaches_beyond(instruction, memory) && (size(memory) != 0 || around(instruction))
    };
    match state.foreign(memory) {
        Value::Number(range) if range.is_near() && !back => None,
        _ if segment || back || by_linker(program, op) => Some(Outside::Anywhere),
        value if value.is_elsewhere() => None,
        value => Some(match value.near() {
            Some((register, by)) => Outside::Above(register, by),
            None => Outside::Anywhere,
        }),
    }
}

/// The end of an operand outside the frame, in bytes above a register's value at the entry.
fn end_above(instruction: &Instruction, memory: &UsedMemory, state: &State) -> i64 {
    match state.foreign(memory) {
        _ if reaches_beyond(instruction, memory) => i64::MAX,
        Value::Above(_, range) => range.most().saturating_add(size(memory) as i64),
        _ => size(memory) as i64,
    }
}

/// The addresses of frames that a function leaves to its caller: in registers, or in cells from its return address on.
fn left(function: &Function, outlines: &Outlines, out: &mut Frame) {
    let callers = Address { base: 0, offset: 0 };
    for (op, exit) in &function.exits {
        let Some(state) = out.before.get(op).filter(|_| *exit != Exit::Stop) else { continue };
        let holds = |register: &Register| *register != Register::RSP && state.of(*register).of_stack();
        out.leaves.extend(GENERAL.into_iter().filter(holds));
        let cells = state.among(&out.aligned, callers, 1 << 40);
        out.gives |= cells.iter().any(|value| value.of_stack());
        // What it leaves elsewhere of a register that it keeps.
        let own = |register: &Register| state.of(*register) == Value::Entry(*register);
        let moved = GENERAL.into_iter().filter(|register| !own(register)).map(|r| state.of(r));
        for value in cells.iter().copied().chain(moved) {
            if let Value::Entry(register) = value {
                out.demands.insert(register);
            }
        }
        if let Exit::Tail(Callee::Local(entry)) = exit {
            out.leaves.extend(outlines.get(entry).into_iter().flat_map(|outline| &outline.leaves));
        }
    }
}

/// Whether a memory operand is one that the instruction names, and not the stack of a call.
fn names(instruction: &Instruction, memory: &UsedMemory) -> bool {
    (0..instruction.op_count()).any(|n| instruction.op_kind(n) == OpKind::Memory)
        && memory.base() == instruction.memory_base()
        && memory.index() == instruction.memory_index()
        && memory.displacement() == instruction.memory_displacement64()
}
