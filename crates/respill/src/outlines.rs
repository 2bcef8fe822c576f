//! The frames of all functions, and what each function does to its caller's frame.
//!
//! Callees come before their callers. The functions of a cycle of calls begin with the outline of one that touches nothing and keeps
//! every register, and are analysed again until none does more than its outline says. Then every call has done what its callee's outline
//! says: otherwise there is a first access of some execution beyond the outline, in a function whose callees have kept to theirs.
#![forbid(unsafe_code)]

use std::collections::{BTreeSet, HashMap, VecDeque};

use iced_x86::Register;
use petgraph::algo::tarjan_scc;
use petgraph::graph::DiGraph;

use crate::flow::{Call, Callee, Exit, Function};
use crate::frame::{self, Address, CALLEE_SAVED, Frame, GENERAL, Outline, Outlines, Value, Where, Writes};
use crate::program::Program;
use crate::slots::{self, Slot};

/// The most cells, live values and suspects that all functions hold, summed over their instructions and slots. Each has some 50 bytes.
pub(crate) const MOST: usize = 1 << 24;

/// The frames of all functions, and in which cycle of calls each is: callees have lower numbers than their callers.
#[derive(Default)]
pub(crate) struct Framed {
    pub(crate) frames: Vec<(Frame, Vec<Slot>)>,
    pub(crate) cycles: Vec<usize>,
    pub(crate) outlines: Outlines,
}

/// The most often that an outline of a cycle grows, before it counts as touching everything.
const PATIENCE: usize = 6;

/// The frames and slots of all functions. `None` if they hold more than [`MOST`].
pub(crate) fn framed(
    program: &Program,
    functions: &mut [Function],
    by_entry: &HashMap<usize, usize>,
) -> Option<Framed> {
    let mut graph = DiGraph::<usize, ()>::new();
    let nodes: Vec<_> = (0..functions.len()).map(|n| graph.add_node(n)).collect();
    for (n, function) in functions.iter().enumerate() {
        for (_, callee) in function.callees() {
            if let Callee::Local(entry) = callee
                && let Some(&to) = by_entry.get(entry)
            {
                graph.update_edge(nodes[n], nodes[to], ());
            }
        }
    }
    let mut outlines = Outlines::new();
    let mut frames: Vec<Option<(Frame, Vec<Slot>)>> = functions.iter().map(|_| None).collect();
    let mut cycles = vec![0; functions.len()];
    // What all functions hold, and each of them.
    let (mut all, mut held) = (0, vec![0; functions.len()]);
    for (number, members) in tarjan_scc(&graph).into_iter().enumerate() {
        let recursive = members.len() > 1 || graph.contains_edge(members[0], members[0]);
        for &node in &members {
            cycles[graph[node]] = number;
            if recursive {
                let keeps = GENERAL.into_iter().filter(|r| *r != Register::RSP).collect();
                outlines.insert(functions[graph[node]].entry, Outline { keeps, ..Outline::default() });
            }
        }
        let mut todo: VecDeque<_> = members.iter().copied().collect();
        let mut grown: HashMap<usize, usize> = HashMap::new();
        // Which of its places a jump through a pointer may go to is found again each time.
        let mut ways: HashMap<usize, Vec<usize>> = HashMap::new();
        for &node in &members {
            let function = &functions[graph[node]];
            ways.extend(function.gotos.iter().filter_map(|op| Some((*op, function.next.get(op)?.clone()))));
        }
        while let Some(node) = todo.pop_front() {
            let n = graph[node];
            for op in functions[n].gotos.clone() {
                functions[n].next.insert(op, ways.get(&op).cloned().unwrap_or_default());
            }
            all -= held[n];
            let mut frame = frame::frame(program, &functions[n], &outlines, MOST - all)?;
            // A function called in between may change the register that holds another function's address.
            let keeps = |call: &Call, register: &Register| match &call.callee {
                Callee::Local(entry) => outlines.get(entry).is_some_and(|o| o.keeps.contains(register)),
                _ => true,
            };
            let changed = |register: &Register| {
                CALLEE_SAVED.contains(register) && functions[n].calls.values().any(|c| !keeps(c, register))
            };
            let before = functions[n].loaded.clone();
            let unknown: Vec<usize> = before.iter().filter(|(_, r)| changed(r)).map(|(&op, _)| op).collect();
            for op in &unknown {
                functions[n].loaded.remove(op);
                functions[n].calls.entry(*op).and_modify(|call| call.callee = Callee::Unknown);
            }
            if !unknown.is_empty() {
                frame = frame::frame(program, &functions[n], &outlines, MOST - all)?;
            }
            // A jump through a pointer goes to places with its stack pointer. With the entry's it may also go to another function.
            for op in functions[n].gotos.clone() {
                let places = functions[n].next.entry(op).or_default();
                places.retain(|place| frame.may_go(op, *place));
                if places.is_empty() && !may_leave(&frame, op) {
                    functions[n].astray.push(op);
                }
            }
            let leaves: Vec<usize> =
                functions[n].gotos.iter().copied().filter(|op| may_leave(&frame, *op)).collect();
            if leaves.iter().any(|op| !functions[n].exits.contains_key(op)) {
                functions[n].exits.extend(leaves.into_iter().map(|op| (op, Exit::Tail(Callee::Unknown))));
                frame = frame::frame(program, &functions[n], &outlines, MOST - all)?;
            }
            if functions[n].astray.is_empty() {
                let door = frame::second_entry(program, &functions[n], &frame, &outlines, MOST - all)?;
                functions[n].astray.extend(door);
            }
            let function = &functions[n];
            held[n] = frame.before.values().map(|state| state.stored.len()).sum();
            let room = (MOST - all).checked_sub(held[n])?;
            let (mut slots, more) = slots::slots(program, function, &frame, &outlines, room)?;
            held[n] += more;
            all += held[n];
            // It counts as an address that escapes.
            if let Some(op) = slots::reads_left(function, &frame, &slots) {
                slots.iter_mut().for_each(|slot| slots::suspect(slot, op));
                frame.gives = true;
            }
            let mut now = outline(program, function, &frame, &slots, &outlines);
            frame.returns = frame.returns.or_else(|| overwritten(function, &frame, &outlines));
            frame.writes = now.writes.clone();
            if let Some(known) = outlines.get(&function.entry) {
                now.weaken(known);
                if now != *known {
                    let grown = grown.entry(n).or_default();
                    *grown += 1;
                    if *grown > PATIENCE {
                        (now.wild, now.below) = (true, true);
                        now.reach.clear();
                        now.writes = Writes { anywhere: true, ..Writes::default() };
                    }
                }
                if now != *known {
                    let callers = graph.neighbors_directed(node, petgraph::Direction::Incoming);
                    let inside =
                        callers.filter(|&from| cycles[graph[from]] == number && members.contains(&from));
                    let again: Vec<_> = inside.filter(|from| !todo.contains(from)).collect();
                    todo.extend(again);
                }
            }
            outlines.insert(function.entry, now);
            frames[n] = Some((frame, slots));
        }
    }
    Some(Framed { frames: frames.into_iter().flatten().collect(), cycles, outlines })
}

/// Whether the stack pointer may be the entry's at an instruction.
fn may_leave(frame: &Frame, op: usize) -> bool {
    match frame.before.get(&op).map(|state| state.of(Register::RSP)) {
        Some(Value::Stack(a)) => a == Address { base: 0, offset: 0 } || !frame.is_fixed(a.base),
        Some(_) => true,
        None => false,
    }
}

/// A call of a function of the file that writes this function's return address at a known place.
fn overwritten(function: &Function, frame: &Frame, outlines: &Outlines) -> Option<usize> {
    // Its return address is elsewhere.
    if function.exits.values().any(|exit| *exit == Exit::Link) {
        return None;
    }
    let writes = |(op, call): (&usize, &Call)| {
        let Callee::Local(entry) = &call.callee else { return None };
        let Value::Stack(Address { base: 0, offset }) = frame.before.get(op)?.of(Register::RSP) else {
            return None;
        };
        let top = offset - if call.link { 0 } else { 8 };
        let meets = |&(from, to): &(i64, i64)| top.saturating_add(from) < 8 && top.saturating_add(to) > 0;
        outlines.get(entry)?.stores.iter().any(meets).then_some(*op)
    };
    function.calls.iter().find_map(writes)
}

/// What a function does to its caller's frame: by its own accesses from the return address on, by reading what it has not
/// written, and by its callees.
fn outline(
    program: &Program,
    function: &Function,
    frame: &Frame,
    slots: &[Slot],
    outlines: &Outlines,
) -> Outline {
    let lost = !frame.lost.is_empty() || !frame.unbalanced.is_empty() || !function.astray.is_empty();
    let mut out = Outline {
        keeps: frame::keeps(program, function, frame, outlines),
        demands: frame.demands.clone(),
        leaves: frame.leaves.clone(),
        writes: frame.writes.clone(),
        reach: BTreeSet::new(),
        stores: BTreeSet::new(),
        wild: lost || frame.gives,
        below: lost || slots::reads_below(function, frame, outlines, slots),
    };
    for access in frame.accesses.iter().filter(|access| access.writes) {
        if let Where::Known(Address { base: 0, offset }) = access.place
            && offset + access.size as i64 > 8
        {
            out.stores.insert((offset, offset + access.size as i64));
        }
    }
    for access in &frame.accesses {
        let (a, end) = match access.place {
            Where::Known(a) => (a, a.offset + access.size as i64),
            Where::Within(a, span) => (a, a.offset.saturating_add(span + access.size as i64)),
            _ => {
                out.wild = true;
                continue;
            }
        };
        // From a stack pointer at an unknown distance.
        if !frame.is_fixed(a.base) {
            out.wild = true;
            continue;
        }
        // Bytes from an aligned base lie at most as far up as from the place where it was made.
        let made = frame.aligned.get(&a.base).map_or(0, |made| made.offset);
        if a.base != 0 && (end + made > 0 || !matches!(access.place, Where::Known(_))) {
            out.wild |= end + made > 0;
        } else if a.base == 0 && (end > 0 || matches!(access.place, Where::Within(..)) && access.reads) {
            out.reach.insert((a.offset, end));
        }
    }
    for slot in slots.iter().filter(|slot| slot.from_outside) {
        if slot.address.base == 0 {
            out.reach.insert((slot.address.offset, slot.address.offset + slot.size as i64));
        } else {
            out.wild = true;
        }
    }
    for (op, call) in &function.calls {
        let Callee::Local(entry) = &call.callee else { continue };
        let rsp = frame.before.get(op).map(|state| state.of(Register::RSP));
        match (outlines.get(entry), rsp) {
            (_, None) => (),
            (Some(callee), Some(Value::Stack(Address { base: 0, offset }))) => {
                let top = offset - if call.link { 0 } else { 8 };
                out.wild |= callee.wild;
                out.below |= callee.below;
                out.reach.extend(callee.reach.iter().map(|&(from, to)| (top + from, top + to)));
                let stores = callee
                    .stores
                    .iter()
                    .map(|&(from, to)| (top.saturating_add(from), top.saturating_add(to)));
                out.stores.extend(stores.filter(|&(_, to)| to > 8));
            }
            (Some(callee), Some(Value::Stack(a))) => {
                out.wild |= callee.wild || !callee.reach.is_empty() || !frame.is_fixed(a.base);
                out.below |= callee.below;
            }
            _ => (out.wild, out.below) = (true, true),
        }
    }
    for (op, callee) in function.callees() {
        let Some(state) = frame.before.get(&op) else { continue };
        match callee {
            Callee::Local(entry) if let Some(callee) = outlines.get(entry) => {
                out.writes.call(&callee.writes, state);
            }
            _ => out.writes.anywhere = true,
        }
    }
    // Code outside reads its arguments on the stack.
    for (op, call) in &function.calls {
        let Some(state) = frame.before.get(op) else { continue };
        if !matches!(call.callee, Callee::Local(_)) {
            let given = slots.iter().filter(|slot| slot.suspects.contains(op));
            for value in given.flat_map(|slot| state.among(&frame.aligned, slot.address, slot.size as i64)) {
                if let Value::Entry(register) = value {
                    out.demands.insert(register);
                }
            }
        }
    }
    // A jump to another function: it runs in this one's place.
    for exit in function.exits.values() {
        match exit {
            Exit::Tail(Callee::Local(entry)) => match outlines.get(entry) {
                Some(callee) => {
                    out.wild |= callee.wild;
                    out.below |= callee.below;
                    out.reach.extend(&callee.reach);
                    out.stores.extend(&callee.stores);
                }
                None => (out.wild, out.below) = (true, true),
            },
            // Its arguments on the stack are this function's.
            Exit::Tail(_) => out.wild = true,
            _ => (),
        }
    }
    out.bound_stores();
    // Too many to track.
    if out.reach.len() > 256 {
        (out.wild, out.below) = (true, true);
        out.reach.clear();
    }
    out
}
