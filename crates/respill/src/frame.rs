//! Which addresses of its frame each instruction of a function touches: an abstract interpretation of the decoded instructions.
//!
//! A pointer into the frame is made from the stack pointer, so everything that is made from it is followed: through moves, `lea`,
//! additions, cells of the frame, and comparisons that bound an index. What is not followed, into a vector register, into other
//! memory or into a callee, *escapes*: then any pointer and any callee may touch the whole frame.
#![forbid(unsafe_code)]

mod branch;
mod step;
mod value;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use iced_x86::{
    FlowControl, Instruction, InstructionInfoFactory, InstructionInfoOptions, MemorySize, Mnemonic, OpAccess,
    OpKind, Register, UsedMemory,
};

use crate::flow::{Callee, Exit, Function, Way};
use crate::program::Program;

use branch::refined;
pub(crate) use step::GIVEN;
use step::Walker;
pub(crate) use value::meets;
pub use value::{Address, CALLEE_SAVED, GENERAL, Range, State, Value, Where};

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

/// Where memory outside the frame is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
    /// At least so many bytes above the register's value at the entry.
    Above(Register, i64),
    /// Anywhere: an address that was made from what came from outside, and that has no lower bound.
    Anywhere,
}

/// A function's use of its frame.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Every memory operand that is, or may be, in the frame.
    pub accesses: Vec<Access>,
    /// Accesses of other memory than the frame, with the instruction; those of the program's own data at known places do not count.
    pub outside: Vec<(usize, Outside)>,
    /// The addresses that another register or a cell than the stack pointer takes, and those from which an index counts.
    pub taken: BTreeSet<Address>,
    /// The registers before each instruction, in the order of [`GENERAL`].
    pub before: HashMap<usize, State>,
    /// Instructions with an address of which only the linker knows the distance from the stack pointer.
    pub lost: Vec<usize>,
    /// Exits at which the stack pointer differs from the entry's.
    pub unbalanced: Vec<usize>,
    /// The lowest known address of base 0 that the stack pointer takes.
    pub lowest: i64,
    /// Whether any address of the frame escapes.
    pub escapes: bool,
    /// Instructions with which one does, calls included.
    pub hidden: Vec<usize>,
    /// The place of each aligned base before it was aligned: the base lies there or below.
    pub aligned: BTreeMap<usize, Address>,
    /// The first instruction that touches its return address otherwise than by a call or a return.
    pub returns: Option<usize>,
    /// Callee-saved registers of which it uses the entry's value otherwise than to keep it.
    pub demands: BTreeSet<Register>,
    /// Whether it gives away an address of its frame or its caller's, but for those in registers at a return.
    pub gives: bool,
    /// The registers that may hold such an address at a return.
    pub leaves: BTreeSet<Register>,
    /// What it, or a callee of the file, writes outside its frame.
    pub writes: Writes,
    /// Whether it relies on the value of a cell, other than to restore what it keeps for its caller.
    pub relies: bool,
}

/// What a function writes through pointers that it was handed: for the cells of which its callers know the values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writes {
    /// Bytes from a register's value at the entry.
    pub through: BTreeMap<Register, (i64, i64)>,
    /// Whether it writes anywhere else outside.
    pub anywhere: bool,
}

impl Writes {
    fn add(&mut self, place: Outside, end: i64) {
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

impl Frame {
    /// Whether what counts from a base lies at or below a known place of the frame.
    #[must_use]
    pub fn is_fixed(&self, base: usize) -> bool {
        base == 0 || self.aligned.get(&base).is_some_and(|made| self.is_fixed(made.base))
    }
}

/// What a function does to its caller's frame, in bytes from the stack pointer at its entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// The callee-saved registers that hold their entry values at every return.
    pub keeps: Vec<Register>,
    /// Those whose entry value it uses otherwise than to keep it.
    pub demands: BTreeSet<Register>,
    /// The registers that may hold an address of a frame at a return, made by it.
    pub leaves: BTreeSet<Register>,
    /// What it writes through pointers.
    pub writes: Writes,
    /// Bytes that it touches, from the first of these to before the second.
    pub reach: BTreeSet<(i64, i64)>,
    /// Whether it may touch any byte of the caller's frame.
    pub wild: bool,
    /// The same, even if all code stays within its objects.
    pub lost: bool,
}

impl Outline {
    /// Adds what another one does.
    pub(crate) fn weaken(&mut self, other: &Outline) {
        self.keeps.retain(|register| other.keeps.contains(register));
        self.demands.extend(&other.demands);
        self.leaves.extend(&other.leaves);
        self.writes.weaken(&other.writes);
        self.reach.extend(&other.reach);
        self.wild |= other.wild;
        self.lost |= other.lost;
        if self.wild && self.lost {
            self.reach.clear();
        }
    }
}

/// Of functions of this file, by their entries.
pub type Outlines = HashMap<usize, Outline>;

/// The bytes of a memory operand; 0 if the instruction does not tell (`xsave` and such).
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

/// Whether an access may reach beyond the bytes that the operand names: by a count, or by the number of a bit.
fn reaches_beyond(instruction: &Instruction, memory: &UsedMemory) -> bool {
    use Mnemonic::{Bt, Btc, Btr, Bts};
    let bits = matches!(instruction.mnemonic(), Bt | Btc | Btr | Bts);
    instruction.has_rep_prefix()
        || instruction.has_repne_prefix()
        || bits && instruction.op1_kind() == OpKind::Register
        || size(memory) == 0
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

/// Joins after which a number grows to the next limit only.
const PATIENCE: usize = 3;

/// Joins after which it may be any.
const LIMIT: usize = 40;

/// Follows a function's registers to a fixed point, and lists its accesses. Callees that are not in `outlines` are
/// unknown. If not `strict`, an address stays in its object.
#[must_use]
pub fn frame(program: &Program, function: &Function, outlines: &Outlines, strict: bool) -> Frame {
    let mut strays: BTreeSet<usize> = BTreeSet::new();
    let (mut walker, before) = loop {
        let mut walker = Walker::new(program, function, outlines, strict);
        let known = strays.len();
        let before = followed(&mut walker, &BTreeSet::from([function.entry]), &mut strays, known < RESTARTS);
        if strays.len() == known || known >= RESTARTS {
            break (walker, before);
        }
    };
    let mut out = Frame {
        accesses: Vec::new(),
        outside: Vec::new(),
        taken: BTreeSet::new(),
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
    let hidden: BTreeSet<usize> =
        out.hidden.iter().copied().filter(|op| !function.calls.contains_key(op)).collect();
    // Its return address is where its caller put it, and a value like others.
    let linked = function.exits.values().any(|exit| *exit == Exit::Link);
    for &i in &function.body {
        // A path that no value allows.
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
        // A cell holds what a register held, or the stack pointer where it is an operand.
        let pushes = instruction.mnemonic() == Mnemonic::Push;
        let copied = hidden.contains(&i)
            || (u32::from(!pushes)..instruction.op_count()).any(|n| {
                instruction.op_kind(n) == OpKind::Register && instruction.op_register(n) == Register::RSP
            });
        let others = GENERAL.into_iter().filter(|register| *register != Register::RSP || copied);
        let values = others.map(|register| state.of(register));
        out.taken.extend(values.filter_map(|value| if let Value::Stack(a) = value { Some(a) } else { None }));
        if instruction.mnemonic() == Mnemonic::Lea
            && let Where::Indexed(a) | Where::Within(a, _) = state.operand(instruction)
        {
            out.taken.insert(a);
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
            if let Where::Indexed(a) | Where::Within(a, _) = place {
                out.taken.insert(a);
            }
            let (reads, writes) = (reads(memory.access()), writes(memory.access()));
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
            out.accesses.push(Access { op: i, place, size, reads, writes, overwrites });
        }
    }
    out
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
        reaches_beyond(instruction, memory) && size(memory) != 0
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

/// Before how many bytes above a register's value at the entry an operand outside the frame ends.
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

/// The most often that a function is followed again because its stack pointer strays somewhere else.
const RESTARTS: usize = 16;

/// Follows a function to a fixed point. Where paths come together with different stack pointers, its distance is unknown: such a place
/// is added to `strays`, and ends the walk if it is to begin anew.
fn followed(
    walker: &mut Walker<'_>,
    begin: &BTreeSet<usize>,
    strays: &mut BTreeSet<usize>,
    anew: bool,
) -> HashMap<usize, State> {
    let (program, function) = (walker.program, walker.function);
    let limits = limits(program, function);
    let mut before: HashMap<usize, State> = begin.iter().map(|&op| (op, State::entry())).collect();
    if let Some(state) = before.get_mut(&function.entry) {
        state.stored.extend(way_back(function));
    }
    // In the order of the text, in which a loop is settled before what follows it.
    let mut todo: BTreeSet<usize> = begin.clone();
    let mut joins: HashMap<usize, usize> = HashMap::new();
    let mut gotos: BTreeSet<usize> = BTreeSet::new();
    loop {
        // Jumps through pointers come last: they go to no place that other ways reach with another stack pointer.
        let Some(i) = todo.pop_first().or_else(|| gotos.pop_first()) else {
            // What no value of the function's own leads to is entered from outside alone.
            let dead = function.doors.iter().find(|door| !before.contains_key(door));
            let Some(&door) = dead else { break };
            before.insert(door, State::entry());
            todo.insert(door);
            continue;
        };
        let mut after = before[&i].clone();
        walker.step(i, &mut after);
        let goto = function.gotos.contains(&i);
        for &next in &function.next[&i] {
            if goto && before.get(&next).is_some_and(|there| apart(&after, there)) {
                continue;
            }
            let Some(mut state) = refined(program, i, next, &function.next[&i], &after) else { continue };
            // The unwinder restores the registers that callees keep.
            if function.pads.contains(&next) && function.calls.contains_key(&i) {
                state.lose_volatile();
            }
            // A stack pointer at an unknown distance is what it is when control arrives.
            let here = Value::Stack(Address::moved(next));
            if state.forget(&made_from(Address::moved(next).base, &walker.aligned)) {
                walker.hidden.insert(i);
            }
            let strayed = |state: &State| !matches!(state.of(Register::RSP), Value::Stack(_));
            if strayed(&state) || strays.contains(&next) {
                strays.insert(next);
                state.set(Register::RSP, here);
            }
            if is_door(function, next, &state) {
                state.join(&State::entry(), None);
            }
            let changed = match before.get_mut(&next) {
                Some(known) => {
                    let count = joins.entry(next).or_default();
                    *count += 1;
                    let changed = match *count {
                        ..PATIENCE => known.join(&state, None),
                        PATIENCE..LIMIT => known.join(&state, Some(&limits)),
                        _ => known.join(&state, Some(&[])),
                    };
                    if strayed(known) {
                        strays.insert(next);
                        if anew {
                            return before;
                        }
                        known.set(Register::RSP, here);
                    }
                    changed
                }
                None => {
                    before.insert(next, state);
                    true
                }
            };
            if changed {
                let goto = function.gotos.contains(&next);
                (if goto { &mut gotos } else { &mut todo }).insert(next);
            }
        }
    }
    before
}

/// Where a call by a jump puts the way back, and what stands for it there.
fn way_back(function: &Function) -> Option<(Address, Value)> {
    match function.way {
        Some(Way::Cell(offset)) => Some((Address { base: 0, offset }, Value::Entry(Register::RIP))),
        _ => None,
    }
}

/// Whether a jump that returns goes the way that the caller left.
fn keeps_way(function: &Function, jump: &Instruction, state: &State) -> bool {
    match way_back(function) {
        Some((cell, way)) => {
            state.operand(jump) == Where::Known(cell) && state.stored.get(&cell) == Some(&way)
        }
        None => state.of(jump.op0_register()) == State::entry().of(jump.op0_register()),
    }
}

/// Whether two stack pointers are never the same.
fn apart(one: &State, other: &State) -> bool {
    match [one, other].map(|state| state.of(Register::RSP)) {
        [Value::Stack(a), Value::Stack(b)] => a.base == b.base && a.offset != b.offset,
        _ => false,
    }
}

impl Frame {
    /// Whether a jump through a pointer may go to a place inside, by the stack pointers at both.
    pub(crate) fn may_go(&self, jump: usize, place: usize) -> bool {
        match (self.before.get(&jump), self.before.get(&place)) {
            (Some(here), Some(there)) => !apart(here, there),
            _ => true,
        }
    }
}

/// Whether code outside may enter a function at a place inside.
pub(crate) fn is_door(function: &Function, op: usize, state: &State) -> bool {
    function.doors.contains(&op) && state.of(Register::RSP) == Value::Stack(Address { base: 0, offset: 0 })
}

/// A place in the middle of a function's frame at which code outside may enter, too, since there is a way back from there with the stack
/// pointer that it had.
pub(crate) fn second_entry(
    program: &Program,
    function: &Function,
    frame: &Frame,
    outlines: &Outlines,
) -> Option<usize> {
    let inside = |op: &usize| frame.before.get(op).is_some_and(|state| !is_door(function, *op, state));
    let begin: BTreeSet<usize> = function.doors.iter().copied().filter(inside).collect();
    let &first = begin.first()?;
    let walker = &mut Walker::new(program, function, outlines, true);
    let before = followed(walker, &begin, &mut BTreeSet::new(), false);
    let entry = Value::Stack(Address { base: 0, offset: 0 });
    let back = |(op, exit): (&usize, &Exit)| {
        *exit != Exit::Stop && before.get(op).is_some_and(|state| state.of(Register::RSP) == entry)
    };
    function.exits.iter().any(back).then_some(first)
}

/// A base and all that were made from it by alignment.
fn made_from(base: usize, aligned: &BTreeMap<usize, Address>) -> BTreeSet<usize> {
    let mut out = BTreeSet::from([base]);
    while let Some((&more, _)) =
        aligned.iter().find(|(one, made)| out.contains(&made.base) && !out.contains(one))
    {
        out.insert(more);
    }
    out
}

/// Whether a memory operand is one that the instruction names, and not the stack of a call.
fn names(instruction: &Instruction, memory: &UsedMemory) -> bool {
    (0..instruction.op_count()).any(|n| instruction.op_kind(n) == OpKind::Memory)
        && memory.base() == instruction.memory_base()
        && memory.index() == instruction.memory_index()
        && memory.displacement() == instruction.memory_displacement64()
}

/// The numbers that the function compares with, and their neighbours: bounds where a growing number may stop.
fn limits(program: &Program, function: &Function) -> Vec<i64> {
    let mut out = BTreeSet::from([-1, 0, 1, i64::from(u32::MAX)]);
    for &i in &function.body {
        let instruction = &program.ops[i].instruction;
        if matches!(instruction.mnemonic(), Mnemonic::Cmp | Mnemonic::Sub | Mnemonic::Add | Mnemonic::Mov)
            && let Some(by) = step::immediate(instruction)
        {
            out.extend([by.saturating_sub(1), by, by.saturating_add(1)]);
        }
    }
    out.into_iter().collect()
}
