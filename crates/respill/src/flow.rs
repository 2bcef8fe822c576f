//! Functions, their edges, calls and loops.
//!
//! Calls come in two kinds: by `call`, and by an address put into a register (or the stack) and a jump, as Jasmin did before it
//! had a stack for return addresses: `lea back(%rip), %rcx; jmp callee; back:`. The callee then returns by a jump through `rcx`, or
//! through the cell of its caller's frame in which `rcx` was put right before the jump.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use iced_x86::{FlowControl, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};
use petgraph::algo::dominators;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::{DfsPostOrder, Walker};

use crate::assembler::Place;
use crate::bounds;
use crate::closed::closed;
use crate::frame::{CALLEE_SAVED, writes};
use crate::places::{by_name, taken, taken_but};
use crate::program::{Gap, Op, Program, Target, is_near_branch};
use crate::tables::{self, By, Table};
use crate::well_known;

/// The target of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Callee {
    /// The function of this file that begins at this instruction.
    Local(usize),
    /// A function of another file.
    External(String),
    /// The address in a register or memory.
    Unknown,
}

/// A call.
#[derive(Clone, Debug)]
pub struct Call {
    /// Its target.
    pub callee: Callee,
    /// The instruction to which it returns, if it does.
    pub back: Option<usize>,
    /// Whether the return address is in a register.
    pub link: bool,
}

/// Where a call by a jump puts its return address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// In a register.
    Register(Register),
    /// This many bytes above the stack pointer.
    Cell(i64),
}

/// How a function is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By `ret`.
    Return,
    /// By an indirect jump to the return address.
    Link,
    /// By a jump to another function.
    Tail(Callee),
    /// It ends: `ud2` or `hlt`.
    Stop,
}

/// A function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its first instruction.
    pub entry: usize,
    /// Its names; without any, the line where it begins.
    pub names: Vec<String>,
    /// Whether other files can call it.
    pub global: bool,
    /// Its instructions, in the text's order.
    pub body: Vec<usize>,
    /// The successors of each instruction, inside.
    pub next: HashMap<usize, Vec<usize>>,
    /// Its calls, by their last instruction.
    pub calls: BTreeMap<usize, Call>,
    /// Its exits.
    pub exits: BTreeMap<usize, Exit>,
    /// Indirect jumps with unknown targets: such a function is not analysed.
    pub astray: Vec<usize>,
    /// Where handlers and cleanups of the unwinder begin, to which every call may go.
    pub pads: BTreeSet<usize>,
    /// Indirect jumps that go to some place inside whose address is taken, or by a table of distances that not every path shows.
    pub gotos: Vec<usize>,
    /// Where calls by a jump put the return address.
    pub(crate) way: Option<Way>,
    /// Calls through a register that holds the address of a named function, and that callees must keep.
    pub(crate) loaded: BTreeMap<usize, Register>,
    /// Jumps to the sum of a register and an entry of a table of distances, and the loads of the entries.
    pub(crate) sums: BTreeSet<usize>,
    pub(crate) entries: BTreeSet<usize>,
    /// Places inside whose address is taken: code outside may enter there, too, if the stack pointer is that of the entry.
    pub(crate) doors: BTreeSet<usize>,
    /// Registers that its callees in the file must keep, since they hold addresses of tables.
    pub(crate) kept: BTreeSet<Register>,
    /// The number of loops around each instruction, up to a limit for all loops together.
    pub depth: HashMap<usize, u32>,
}

impl Function {
    /// A function of which only the entry is known.
    fn begin(program: &Program, entry: usize, way: Option<Way>, pads: &BTreeSet<usize>) -> Function {
        let names = program.names.get(&entry);
        Function {
            entry,
            names: names.map_or_else(
                || vec![format!("line {}", program.line(entry))],
                |names| names.iter().map(|name| name.name.clone()).collect(),
            ),
            global: names.is_some_and(|names| names.iter().any(|name| name.global)),
            body: Vec::new(),
            next: HashMap::new(),
            calls: BTreeMap::new(),
            exits: BTreeMap::new(),
            astray: Vec::new(),
            gotos: Vec::new(),
            way,
            loaded: BTreeMap::new(),
            sums: BTreeSet::new(),
            entries: BTreeSet::new(),
            doors: BTreeSet::new(),
            kept: BTreeSet::new(),
            pads: pads.clone(),
            depth: HashMap::new(),
        }
    }

    /// Its name for messages: the first without a leading `_` or `.`, else without a leading `.`, if any.
    #[must_use]
    pub fn name(&self) -> &str {
        let without = |marks: &[char]| self.names.iter().find(|name| !name.starts_with(marks));
        without(&['_', '.']).or_else(|| without(&['.'])).or(self.names.first()).map_or("", String::as_str)
    }

    /// Its callees and jump targets, each with the instruction.
    pub fn callees(&self) -> impl Iterator<Item = (usize, &Callee)> {
        let tails = self.exits.iter().filter_map(|(&op, exit)| match exit {
            Exit::Tail(callee) => Some((op, callee)),
            _ => None,
        });
        self.calls.iter().map(|(&op, call)| (op, &call.callee)).chain(tails)
    }

    /// The predecessors of each instruction, inside.
    #[must_use]
    pub fn before(&self) -> HashMap<usize, Vec<usize>> {
        let mut out: HashMap<usize, Vec<usize>> = HashMap::new();
        for (&from, all) in &self.next {
            all.iter().for_each(|&to| out.entry(to).or_default().push(from));
        }
        out
    }
}

/// The most rounds in which jumps that seemed to be calls are given up.
const ROUNDS: usize = 64;

/// The instructions and edges of all functions that are followed, by the length of the program. Functions may share instructions, and each
/// jump through a pointer may go to all places of its function.
const fn most(program: &Program) -> usize {
    32 * program.ops.len() + (1 << 20)
}

/// The functions of a program in the order of their entries. Those that begin at `parts` are parts of others. `None` if they have too
/// many instructions and edges.
pub(crate) fn functions(
    program: &Program,
    landing: &BTreeMap<usize, Option<BTreeSet<usize>>>,
    parts: &BTreeSet<usize>,
) -> Option<Vec<Function>> {
    let mut links = links(program);
    for round in 0.. {
        if round == ROUNDS {
            links.clear();
        }
        let out = linked_by(program, landing, parts, &links)?;
        // Code that gets there in another way has left no return address.
        let callees = out.iter().flat_map(|f| f.callees().map(move |(op, callee)| (f, op, callee)));
        let otherwise = callees.filter(|(f, op, _)| f.calls.get(op).is_none_or(|call| !call.link));
        let mut mixed: BTreeSet<usize> = otherwise
            .filter_map(|(.., callee)| if let Callee::Local(to) = callee { Some(*to) } else { None })
            .collect();
        // As has code that runs on into it. And a callee goes back by the address alone.
        let ends = |exit: &Exit| matches!(exit, Exit::Link | Exit::Stop);
        for (function, to) in out.iter().flat_map(|f| links.values().map(move |link| (f, link.to))) {
            let runs_on = function.entry != to && function.body.binary_search(&to).is_ok();
            if runs_on || function.entry == to && !function.exits.values().all(ends) {
                mixed.insert(to);
            }
        }
        let before = links.len();
        links.retain(|_, link| !mixed.contains(&link.to));
        if links.len() == before {
            return Some(out);
        }
    }
    None
}

/// The entries of a program that is not followed, each as a function of one instruction that may go anywhere.
pub(crate) fn not_followed(program: &Program) -> Vec<Function> {
    let named =
        program.names.iter().filter(|(_, names)| names.iter().any(|name| name.global || name.function));
    let mut entries: BTreeSet<usize> = named.map(|(&op, _)| op).collect();
    if entries.is_empty() {
        entries.insert(0);
    }
    let one = |entry: usize| {
        let mut out = Function::begin(program, entry, None, &BTreeSet::new());
        out.body.push(entry);
        out.astray.push(entry);
        out.next.insert(entry, Vec::new());
        out.depth.insert(entry, 0);
        out
    };
    entries.into_iter().map(one).collect()
}

/// The same, with these jumps as calls.
fn linked_by(
    program: &Program,
    landing: &BTreeMap<usize, Option<BTreeSet<usize>>>,
    parts: &BTreeSet<usize>,
    links: &BTreeMap<usize, Link>,
) -> Option<Vec<Function>> {
    let tables = tables::tables(program);
    let mut entries: BTreeSet<usize> = BTreeSet::new();
    for (&op, names) in &program.names {
        // The cold half of a function is a part of it, with its own symbol.
        if names.iter().any(|name| name.global || name.function && !name.name.contains(".cold")) {
            entries.insert(op);
        }
    }
    for op in &program.ops {
        if let (Mnemonic::Call, Some(Target::Op(to))) = (op.instruction.mnemonic(), &op.target) {
            entries.insert(*to);
        }
    }
    let linked: BTreeMap<usize, Way> = links.values().map(|link| (link.to, link.way)).collect();
    entries.extend(linked.keys());
    entries.retain(|entry| !parts.contains(entry));
    let room = Cell::new(most(program));
    let known = Known { entries: &entries, links, tables: &tables, landing, names: by_name(program), room };
    let mut out: Vec<Function> = Vec::new();
    for &entry in &entries {
        out.push(function(program, entry, &known, linked.get(&entry).copied(), None));
        known.has_room()?;
    }
    let taken = taken_but(program, &closed(program, &tables, &out));
    let inside: BTreeSet<usize> = taken.ops.difference(&entries).copied().collect();
    let mut owners: HashMap<usize, usize> = HashMap::new();
    out.iter().flat_map(|f| f.body.iter().map(|&op| (op, f.entry))).for_each(|(op, entry)| {
        // One of several is enough to be another's.
        owners.insert(op, entry);
    });
    let complete = |found: Function| {
        // Another path to such a place may bring another table.
        let entered = !found.entries.is_empty() && found.body.iter().any(|op| inside.contains(op));
        if found.astray.is_empty() && !entered {
            return found;
        }
        let mine = |op: &usize| owners.get(op).is_none_or(|owner| *owner == found.entry);
        let places = inside.iter().copied().filter(mine).collect();
        let linked = linked.get(&found.entry).copied();
        let mut out = function(program, found.entry, &known, linked, Some((&places, &inside)));
        // A jump through a pointer may go to bytes that are not decoded, if their address is taken.
        if taken.dark {
            out.astray.extend(found.astray.iter().chain(&out.gotos));
        }
        out
    };
    let found = std::mem::take(&mut out);
    for one in found {
        out.push(complete(one));
        known.has_room()?;
    }
    // A place that no function reaches is called by its address.
    let mut reached: HashSet<usize> = out.iter().flat_map(|f| &f.body).copied().collect();
    for &entry in inside.iter().filter(|entry| !parts.contains(entry)) {
        if !reached.contains(&entry) {
            let found = complete(function(program, entry, &known, None, None));
            reached.extend(&found.body);
            out.push(found);
            known.has_room()?;
        }
    }
    out.sort_by_key(|f| f.entry);
    run_off(&mut out);
    for function in &mut out {
        let Function { entry, body, doors, .. } = function;
        doors.extend(body.iter().filter(|op| *op != entry && inside.contains(op)));
    }
    Some(out)
}

/// Finds calls at the end of their section that may return: only those of a function of this file that has no way back may not.
fn run_off(functions: &mut [Function]) {
    // The functions that have a way back if another one has, by its entry.
    let mut through: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut todo: Vec<usize> = Vec::new();
    for f in functions.iter() {
        let calls = f.calls.values().filter(|call| call.back.is_none()).map(|call| &call.callee);
        let tails =
            f.exits.values().filter_map(|exit| if let Exit::Tail(to) = exit { Some(to) } else { None });
        let returns = f.exits.values().any(|exit| matches!(exit, Exit::Return | Exit::Link));
        let mut back = !f.astray.is_empty() || returns;
        for callee in calls.chain(tails) {
            match callee {
                Callee::Local(entry) => through.entry(*entry).or_default().push(f.entry),
                Callee::External(name) => back |= !well_known::never_returns(name),
                Callee::Unknown => back = true,
            }
        }
        todo.extend(back.then_some(f.entry));
    }
    let mut returning: HashSet<usize> = HashSet::new();
    while let Some(entry) = todo.pop() {
        if returning.insert(entry) {
            todo.extend(through.get(&entry).into_iter().flatten());
        }
    }
    let ends = |call: &Call| match &call.callee {
        Callee::Local(entry) => returning.contains(entry),
        Callee::External(name) => !well_known::never_returns(name),
        Callee::Unknown => true,
    };
    for function in functions {
        let ends = function.calls.iter().filter(|(_, call)| call.back.is_none() && ends(call));
        function.astray.extend(ends.map(|(&op, _)| op).collect::<Vec<_>>());
    }
}

/// Facts about the whole program.
struct Known<'a> {
    entries: &'a BTreeSet<usize>,
    links: &'a BTreeMap<usize, Link>,
    tables: &'a HashMap<String, Table>,
    landing: &'a BTreeMap<usize, Option<BTreeSet<usize>>>,
    names: HashMap<&'a str, usize>,
    /// How many further instructions and edges may be followed.
    room: Cell<usize>,
}

impl Known<'_> {
    fn spend(&self, count: usize) {
        self.room.set(self.room.get().saturating_sub(count));
    }

    fn has_room(&self) -> Option<()> {
        (self.room.get() > 0).then_some(())
    }
}

/// A jump that is a call.
#[derive(Clone, Copy)]
struct Link {
    /// The callee's entry.
    to: usize,
    /// The instruction to which it returns.
    back: usize,
    /// Where the return address lies; the callee returns by it.
    way: Way,
}

/// Jumps that may be calls. All with the same callee have the return address in the same register or cell.
fn links(program: &Program) -> BTreeMap<usize, Link> {
    let mut out = BTreeMap::new();
    let mut info = InstructionInfoFactory::new();
    for (i, op) in program.ops.iter().enumerate() {
        let &Op { ref instruction, target: Some(Target::Op(to)), .. } = op else { continue };
        if instruction.mnemonic() != Mnemonic::Jmp || !is_near_branch(instruction) {
            continue;
        }
        // The address is put into a register shortly before, in the same straight piece of code, and from there into a cell at last.
        let cell = program.ops[i.saturating_sub(1)].instruction;
        let is_cell = cell.mnemonic() == Mnemonic::Mov
            && cell.op0_kind() == OpKind::Memory
            && (cell.memory_base(), cell.memory_index()) == (Register::RSP, Register::None)
            && cell.op1_kind() == OpKind::Register
            && cell.op1_register().is_gpr64();
        let mut written: BTreeSet<Register> = BTreeSet::new();
        for j in (i.saturating_sub(8)..i).rev() {
            let Op { place, instruction, target, .. } = &program.ops[j];
            let end = Place { offset: place.offset + instruction.len() as u64, ..*place };
            let arrives = program.targets.contains(&(j + 1)) || program.names.contains_key(&(j + 1));
            if instruction.flow_control() != FlowControl::Next
                || arrives
                || program.at.get(&end) != Some(&(j + 1))
            {
                break;
            }
            let register = instruction.op0_register();
            // The return address is that of the next instruction. Any other address is a value.
            if let (Mnemonic::Lea, Some(Target::Op(back))) = (instruction.mnemonic(), target)
                && *back == i + 1
                && !written.contains(&register)
                && !program.names.get(back).is_some_and(|names| names.iter().any(|n| n.function || n.global))
            {
                let way = if is_cell && cell.op1_register() == register {
                    Way::Cell(cell.memory_displacement64() as i64)
                } else {
                    Way::Register(register)
                };
                out.insert(i, Link { to, back: *back, way });
                break;
            }
            let used = info.info(instruction).used_registers().iter().filter(|used| writes(used.access()));
            written.extend(used.map(|used| used.register().full_register()));
        }
    }
    if out.is_empty() {
        return out;
    }
    let taken = taken(program).ops;
    let ways: BTreeMap<usize, Way> = out.values().map(|link| (link.to, link.way)).collect();
    let mut mixed: BTreeSet<usize> =
        out.values().filter(|link| link.way != ways[&link.to]).map(|link| link.to).collect();
    let global = |op: &usize| program.names.get(op).is_some_and(|names| names.iter().any(|n| n.global));
    mixed.extend(ways.into_keys().filter(|to| taken.contains(to) || global(to)));
    out.retain(|_, link| !mixed.contains(&link.to));
    out
}

/// A function. `places` are those to which a jump through a pointer may go, and all whose address is taken, if they are known.
fn function(
    program: &Program,
    entry: usize,
    known: &Known<'_>,
    linked: Option<Way>,
    places: Option<(&BTreeSet<usize>, &BTreeSet<usize>)>,
) -> Function {
    // Handlers may hold further calls and, in a cold half, a table of their own.
    let (mut pads, mut open) = (BTreeSet::new(), BTreeSet::new());
    loop {
        let mut out = with_pads(program, entry, known, linked, places.map(|(mine, _)| mine), &pads, &open);
        if known.has_room().is_none() {
            return out;
        }
        if let Some((_, all)) = places {
            out.doors = out.body.iter().copied().filter(|op| *op != entry && all.contains(op)).collect();
        }
        let tables = out.body.iter().filter_map(|op| known.landing.get(op)).flatten();
        let more: BTreeSet<usize> = tables.flatten().copied().collect();
        let (opened, kept) = bounds::open(program, &out, known.tables);
        out.kept = kept;
        if more == pads && opened.is_subset(&open) {
            return out;
        }
        pads.extend(more);
        open.extend(opened);
    }
}

fn with_pads(
    program: &Program,
    entry: usize,
    known: &Known<'_>,
    linked: Option<Way>,
    places: Option<&BTreeSet<usize>>,
    pads: &BTreeSet<usize>,
    open: &BTreeSet<usize>,
) -> Function {
    let Known { entries, links, tables, names: ref defined, .. } = *known;
    let mut out = Function::begin(program, entry, linked, pads);
    let callee = |target: &Option<Target>| match target {
        Some(Target::Op(to)) => Callee::Local(*to),
        // A weak or indirect symbol of this file may lead anywhere, including to its code here.
        Some(Target::External(name))
            if !defined.contains_key(name.as_str()) && !well_known::goes_on(name) =>
        {
            Callee::External(name.clone())
        }
        _ => Callee::Unknown,
    };
    // Where a pointer leads: to the places inside, or to other code if there is none.
    let by_pointer = |i: usize, out: &mut Function, next: &mut Vec<usize>| match places {
        None => out.astray.push(i),
        Some(places) if places.is_empty() => {
            out.exits.insert(i, Exit::Tail(Callee::Unknown));
        }
        Some(places) => {
            out.gotos.push(i);
            next.extend(places);
        }
    };
    let mut seen = BTreeSet::from([entry]);
    let mut todo = vec![entry];
    loop {
        let Some(i) = todo.pop() else {
            // Code reached through tables may name further tables.
            known.spend(if out.sums.is_empty() { 0 } else { seen.len() });
            todo = by_distance(program, &mut out, &mut seen, known);
            if todo.is_empty() {
                break;
            }
            continue;
        };
        let op = &program.ops[i];
        let adjacent =
            program.ops.get(i + 1).filter(|next| next.place.section == op.place.section).map(|_| i + 1);
        // The text's order is not the section's where sections change in between, and the linker chooses what follows a section.
        let end = Place { offset: op.place.offset + op.instruction.len() as u64, ..op.place };
        // Bytes that are not decoded make the function opaque.
        let unread = op.instruction.is_invalid() || matches!(op.after, Gap::Bytes(_));
        let beside = unread || program.at.get(&end) == Some(&(i + 1));
        let mut next: Vec<usize> = Vec::new();
        let fall = |out: &mut Function, next: &mut Vec<usize>| match adjacent {
            Some(after) if beside => next.push(after),
            _ => out.astray.push(i),
        };
        match op.instruction.flow_control() {
            // It may fall through; its function is opaque.
            _ if op.instruction.is_invalid() => fall(&mut out, &mut next),
            FlowControl::Return => {
                // A return that pops arguments leaves another stack pointer to its caller.
                if op.instruction.op_count() != 0 || op.instruction.mnemonic() != Mnemonic::Ret {
                    out.astray.push(i);
                }
                out.exits.insert(i, Exit::Return);
            }
            FlowControl::UnconditionalBranch => {
                if let Some(&Link { to, back, .. }) = links.get(&i) {
                    out.calls.insert(i, Call { callee: Callee::Local(to), back: Some(back), link: true });
                    next.push(back);
                } else {
                    match &op.target {
                        Some(Target::Op(to)) if *to == entry || !entries.contains(to) => next.push(*to),
                        // Into bytes that are not decoded.
                        None => out.astray.push(i),
                        target => match callee(target) {
                            // A thunk goes on where a register points, as an indirect jump does.
                            Callee::Unknown => by_pointer(i, &mut out, &mut next),
                            callee => {
                                out.exits.insert(i, Exit::Tail(callee));
                            }
                        },
                    }
                }
            }
            FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend => {
                fall(&mut out, &mut next);
                match &op.target {
                    Some(Target::Op(to)) if *to == entry || !entries.contains(to) => next.push(*to),
                    target @ Some(_) => match callee(target) {
                        Callee::Unknown => by_pointer(i, &mut out, &mut next),
                        callee => {
                            out.exits.insert(i, Exit::Tail(callee));
                        }
                    },
                    None => out.astray.push(i),
                }
            }
            FlowControl::IndirectBranch => {
                let by_link = match linked {
                    Some(Way::Register(register)) => {
                        op.instruction.op0_kind() == OpKind::Register
                            && op.instruction.op0_register() == register
                    }
                    // The frame tells which cell it is.
                    Some(Way::Cell(_)) => {
                        op.instruction.op0_kind() == OpKind::Memory
                            && op.instruction.memory_base() == Register::RSP
                    }
                    None => false,
                };
                if by_link {
                    out.exits.insert(i, Exit::Link);
                } else {
                    match tables::by(program, i, tables) {
                        Some(By::Address(name)) => next.extend(&tables[&name].targets),
                        Some(By::Distance(load)) => {
                            out.entries.insert(load);
                            out.sums.insert(i);
                            if open.contains(&i) {
                                match places {
                                    None => out.astray.push(i),
                                    Some(places) => {
                                        out.gotos.push(i);
                                        next.extend(places);
                                    }
                                }
                            }
                        }
                        None => match &op.target {
                            Some(target) if program.said(i).contains("@GOTPCREL") => {
                                out.exits.insert(i, Exit::Tail(callee(&Some(target.clone()))));
                            }
                            _ => by_pointer(i, &mut out, &mut next),
                        },
                    }
                }
            }
            FlowControl::Call | FlowControl::IndirectCall => {
                if is_near_branch(&op.instruction) && op.target.is_none() || adjacent.is_some() && !beside {
                    out.astray.push(i);
                }
                // `call *name(%rip)` calls what the pointer holds, not the function `name`.
                let by_name = is_near_branch(&op.instruction) || program.said(i).contains("@GOTPCREL");
                let callee = if by_name { callee(&op.target) } else { Callee::Unknown };
                // What it throws may be caught here.
                let returns = !matches!(&callee, Callee::External(name) if well_known::never_returns(name));
                out.calls.insert(i, Call { callee, back: adjacent, link: false });
                let adjacent = adjacent.filter(|_| returns);
                next.extend(adjacent);
                next.extend(pads.iter().filter(|pad| Some(**pad) != adjacent));
            }
            // A system call returns.
            FlowControl::Interrupt if op.instruction.mnemonic() == Mnemonic::Int => {
                out.astray.push(i);
                fall(&mut out, &mut next);
            }
            // A debugger or a handler may go on behind it.
            FlowControl::Interrupt => fall(&mut out, &mut next),
            FlowControl::Exception => {
                out.exits.insert(i, Exit::Stop);
            }
            // It writes a line of memory, below its address too, of which the decoder does not tell.
            FlowControl::Next if op.instruction.mnemonic() == Mnemonic::Clzero => {
                out.astray.push(i);
                fall(&mut out, &mut next);
            }
            FlowControl::Next => fall(&mut out, &mut next),
        }
        known.spend(1 + next.len());
        if known.has_room().is_none() {
            // What is found is not used.
            todo.clear();
            next.clear();
        }
        for &to in &next {
            if seen.insert(to) {
                todo.push(to);
            }
        }
        out.next.insert(i, next);
    }
    if known.has_room().is_none() {
        return Function::begin(program, entry, linked, &BTreeSet::new());
    }
    out.astray.extend(out.sums.iter().filter(|i| out.next[i].is_empty()));
    // A table of functions is not a table of places inside one.
    let outside = |i: &usize| out.next[i].iter().any(|to| *to != entry && entries.contains(to));
    let jumps = |i: &&usize| program.ops[**i].instruction.flow_control() == FlowControl::IndirectBranch;
    let elsewhere: Vec<usize> = seen.iter().filter(jumps).copied().filter(outside).collect();
    out.astray.extend(elsewhere);
    out.body = seen.into_iter().collect();
    let registers: Vec<usize> =
        out.calls.iter().filter(|(_, call)| call.callee == Callee::Unknown).map(|(&op, _)| op).collect();
    let before = out.before();
    for op in registers {
        let found = loaded(program, &out, &before, op).map(|target| callee(&Some(target)));
        if let Some(found) =
            found.filter(|found| !matches!(found, Callee::Local(to) if !entries.contains(to)))
            && let Some(call) = out.calls.get_mut(&op)
        {
            call.callee = found;
            out.loaded.insert(op, program.ops[op].instruction.op0_register());
        }
    }
    out.depth = depth(&out);
    out
}

/// The function that a call through a register goes to, if every path to the call loads its address from the linker's table. Compilers
/// keep the address of a function that they call often.
fn loaded(
    program: &Program,
    function: &Function,
    before: &HashMap<usize, Vec<usize>>,
    call: usize,
) -> Option<Target> {
    let register = Some(program.ops[call].instruction)
        .filter(|instruction| instruction.op0_kind() == OpKind::Register)?
        .op0_register();
    let mut info = InstructionInfoFactory::new();
    let mut found: Option<&Target> = None;
    let (mut seen, mut todo) = (BTreeSet::new(), vec![call]);
    while let Some(op) = todo.pop() {
        // Registers are unknown at the entry.
        let from = before.get(&op).filter(|_| op != function.entry)?;
        for &op in from.iter().filter(|op| seen.insert(**op)) {
            let instruction = &program.ops[op].instruction;
            let kept = !function.calls.contains_key(&op) || CALLEE_SAVED.contains(&register);
            let writes = info.info(instruction).used_registers().iter().any(|used| {
                used.register().full_register() == register
                    && !matches!(used.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess)
            });
            if !writes && kept {
                todo.push(op);
                continue;
            }
            let loads = instruction.mnemonic() == Mnemonic::Mov
                && instruction.op0_kind() == OpKind::Register
                && instruction.op0_register() == register
                && program.said(op).contains("@GOTPCREL");
            let target = program.ops[op].target.as_ref().filter(|_| loads)?;
            if found.is_some_and(|other| other != target) {
                return None;
            }
            found = Some(target);
        }
    }
    found.cloned()
}

/// Gives the jumps by distances all targets of the function's tables of distances; returns the new ones.
fn by_distance(
    program: &Program,
    out: &mut Function,
    seen: &mut BTreeSet<usize>,
    known: &Known<'_>,
) -> Vec<usize> {
    let tables = known.tables;
    if out.sums.is_empty() {
        return Vec::new();
    }
    let mine = seen.iter().filter_map(|&op| tables::named(program, op, tables));
    let targets: BTreeSet<usize> =
        mine.filter(|(_, table)| table.distances).flat_map(|(_, table)| &table.targets).copied().collect();
    known.spend(out.sums.len().saturating_mul(targets.len()));
    if known.has_room().is_none() {
        return Vec::new();
    }
    for i in &out.sums {
        let next = out.next.entry(*i).or_default();
        let more: Vec<usize> = targets.iter().copied().filter(|to| !next.contains(to)).collect();
        next.extend(more);
    }
    targets.into_iter().filter(|&to| seen.insert(to)).collect()
}

/// The number of natural loops around each instruction.
fn depth(function: &Function) -> HashMap<usize, u32> {
    let mut graph = DiGraph::<usize, ()>::new();
    let nodes: HashMap<usize, NodeIndex> = function.body.iter().map(|&i| (i, graph.add_node(i))).collect();
    for (from, all) in &function.next {
        all.iter().for_each(|to| {
            graph.add_edge(nodes[from], nodes[to], ());
        });
    }
    let entry = nodes[&function.entry];
    let dominators = dominators::simple_fast(&graph, entry);
    // An edge back to the head of a loop goes to a node that is left no earlier. Most edges do not, and need no walk up the tree.
    let mut left = vec![0; graph.node_count()];
    for (at, node) in DfsPostOrder::new(&graph, entry).iter(&graph).enumerate() {
        left[node.index()] = at;
    }
    let before = function.before();
    // Loops with the same head are one.
    let mut loops: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (from, all) in &function.next {
        for head in all {
            let [a, b] = [nodes[from], nodes[head]];
            let back = left[a.index()] <= left[b.index()]
                && dominators.dominators(a).is_some_and(|mut all| all.any(|d| d == b));
            if back {
                loops.entry(*head).or_default().push(*from);
            }
        }
    }
    let mut out: HashMap<usize, u32> = function.body.iter().map(|&i| (i, 0)).collect();
    let mut room = 256 * function.body.len() + (1 << 16);
    for (head, mut todo) in loops {
        let mut body = HashSet::from([head]);
        while let Some(i) = todo.pop() {
            if body.insert(i) {
                todo.extend(before.get(&i).into_iter().flatten());
            }
        }
        // Loops inside many others are not counted.
        let Some(rest) = room.checked_sub(body.len()) else { break };
        room = rest;
        for i in body {
            *out.entry(i).or_default() += 1;
        }
    }
    out
}
