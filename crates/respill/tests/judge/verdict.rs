//! The judgement of a rewrite, function by function and block by block.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use iced_x86::{ConditionCode, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register};

use super::flow::{Block, Both, Callee, End, Function, Pair};
use super::integer::writes;
use super::known::{Float, Frame, Known, along, begin, end};
use super::solver::{Answer, Solver};
use super::symbolic::{Cell, Home, Machine, State};
use super::terms::{Sort, Term, Terms};

/// What the judge found.
#[derive(Debug, Default)]
pub(crate) struct Judgement {
    /// Functions that differ in the two versions, their pairs of blocks, and the equations that z3 was asked for.
    pub(crate) functions: usize,
    pub(crate) blocks: usize,
    pub(crate) goals: usize,
    /// Moved slots that were found.
    pub(crate) slots: usize,
    /// What is not equal.
    pub(crate) different: Vec<String>,
    /// What the judge has no meaning for, by name.
    pub(crate) unsupported: BTreeMap<String, usize>,
    /// Blocks for which z3 found no answer in time.
    pub(crate) undecided: Vec<String>,
}

impl Judgement {
    pub(crate) fn accepts(&self) -> bool {
        self.different.is_empty() && self.unsupported.is_empty() && self.undecided.is_empty()
    }
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} functions, {} blocks, {} equations", self.functions, self.blocks, self.goals)?;
        self.different.iter().try_for_each(|what| write!(f, "\n  different: {what}"))?;
        self.unsupported.iter().try_for_each(|(what, n)| write!(f, "\n  unsupported: {what} ({n} times)"))?;
        self.undecided.iter().try_for_each(|what| write!(f, "\n  undecided: {what}"))
    }
}

/// What a function does to its callers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Summary {
    /// Home registers that it changes; nothing if it may change all.
    pub(super) changed: Option<BTreeSet<Home>>,
    /// x87 at its returns; nothing while none is known.
    pub(super) float: Option<Float>,
    /// Whether it leaves x87 as it finds it, whatever that is.
    pub(super) leaves_float: bool,
}

/// A way of a branch: the function, the block, and the number of the way.
type Way = (usize, Pair, usize);

pub(super) struct Judge<'a> {
    pub(super) both: &'a Both,
    /// Ways that are never taken, as z3 has shown or must still show.
    dead: BTreeSet<Way>,
    /// General registers that are equal after a block although their terms differ, as z3 has shown or must still show.
    alike: BTreeSet<(usize, Pair, usize)>,
    pub(super) frames: BTreeMap<usize, (Terms, Frame)>,
    pub(super) entries: BTreeMap<usize, Known>,
    pub(super) summaries: BTreeMap<usize, Summary>,
    out: BTreeMap<usize, Judgement>,
}

/// A goal, with its name.
pub(super) type Goal = (String, Term, Term);

/// Names of C whose functions return nothing in x87.
const NO_FLOAT: [&str; 8] = ["memset", "memcpy", "memmove", "memcmp", "strlen", "bcmp", "malloc", "free"];

/// Registers that a callee keeps.
pub(super) const KEPT: [usize; 7] = [3, 4, 5, 12, 13, 14, 15];

/// Whether a register is the general register of this number, or a part of it.
fn is(one: Register, number: usize) -> bool {
    one.is_gpr() && one.full_register().number() == number
}

/// Judges a rewrite: the texts of both versions, and nothing else.
pub(crate) fn judge(original: &str, rewritten: &str, solver: &mut Solver) -> Judgement {
    let Some(both) = Both::of(original, rewritten) else {
        return Judgement { different: vec!["a text does not assemble".to_owned()], ..Judgement::default() };
    };
    let mut judge = Judge {
        both: &both,
        dead: BTreeSet::new(),
        alike: BTreeSet::new(),
        frames: BTreeMap::new(),
        entries: BTreeMap::new(),
        summaries: BTreeMap::new(),
        out: BTreeMap::new(),
    };
    // A function that is the same in both may still pass to code outside what another left in a register.
    let judged = |f: &&Function| !f.same || !both.homes(f.id).is_empty();
    let mut todo: BTreeSet<usize> = both.functions.values().filter(judged).map(|f| f.id).collect();
    // Where a block is not equal, it may be one that never runs, or more is equal before it than the terms show.
    while !todo.is_empty() {
        judge.guess();
        let mut again = BTreeSet::new();
        for n in todo {
            let judged = judge.prove(&both.functions[&n], solver);
            if !judged.accepts() && judge.learn(&both.functions[&n], solver) {
                again.insert(n);
            }
            judge.out.insert(n, judged);
        }
        let near = |n: usize| {
            again.iter().any(|&m| n == m || both.below(n).contains(&m) || both.below(m).contains(&n))
        };
        todo = judge.out.keys().copied().filter(|&n| near(n)).collect();
    }
    let slots: BTreeSet<(usize, Cell)> = judge
        .out
        .keys()
        .flat_map(|n| judge.frames[n].1.moved.keys().map(|cell| (both.functions[n].entry.0, *cell)))
        .collect();
    let mut out = Judgement { slots: slots.len(), ..Judgement::default() };
    if both.images[0].data != both.images[1].data {
        out.different.push("data".to_owned());
    }
    for judged in judge.out.into_values() {
        out.functions += judged.functions;
        out.blocks += judged.blocks;
        out.goals += judged.goals;
        out.different.extend(judged.different);
        out.undecided.extend(judged.undecided);
        for (what, n) in judged.unsupported {
            *out.unsupported.entry(what).or_default() += n;
        }
    }
    for function in both.functions.values() {
        out.different.extend(function.different.iter().map(|what| format!("{}: {what}", function.name)));
        if !function.same {
            for problem in &function.problems {
                *out.unsupported.entry(problem.clone()).or_default() += 1;
            }
            if both.images[0].handlers {
                *out.unsupported.entry("a table of exception handlers".to_owned()).or_default() += 1;
            }
        }
    }
    out
}

/// Both versions of a block, followed.
pub(super) struct Ran {
    pub(super) begin: [State; 2],
    pub(super) end: [State; 2],
    pub(super) given: Vec<(Term, Term)>,
    /// The targets of an indirect branch, or what decides another one.
    pub(super) goals: Vec<Goal>,
    /// Whether a conditional branch is taken.
    pub(super) taken: Option<Term>,
    pub(super) problems: Vec<String>,
    pub(super) touched: [Vec<(Cell, u32)>; 2],
}

impl Judge<'_> {
    /// Follows both versions of a block from what is known before it.
    fn run(&self, terms: &mut Terms, frame: &mut Frame, block: &Block, known: &Known, guess: bool) -> Ran {
        let (states, mut given) = begin(terms, frame, known, guess);
        let mut out = Ran {
            begin: states.clone(),
            end: states,
            given: Vec::new(),
            goals: Vec::new(),
            taken: None,
            problems: Vec::new(),
            touched: [vec![], vec![]],
        };
        let mut decided: [Vec<Term>; 2] = [vec![], vec![]];
        for version in 0..2 {
            let image = &self.both.images[version];
            let Frame { moved, homes, bases, depths, .. } = frame;
            let mut machine = Machine {
                terms,
                bases,
                moved,
                homes,
                depths,
                site: 16 * block.ops[0][0],
                given: Vec::new(),
                problems: Vec::new(),
                touched: Vec::new(),
            };
            let state = &mut out.end[version];
            for &n in &block.ops[version] {
                let op = &image.ops[n];
                if !image.leaves(n) {
                    machine.step(op, state);
                    continue;
                }
                match op.i.flow_control() {
                    FlowControl::IndirectBranch | FlowControl::IndirectCall => {
                        decided[version].push(machine.operand(op, state, 0, 8));
                    }
                    FlowControl::ConditionalBranch => {
                        let short =
                            matches!(op.i.mnemonic(), Mnemonic::Loop | Mnemonic::Loope | Mnemonic::Loopne);
                        if short {
                            let minus = machine.terms.constant(64, u64::MAX);
                            state.general[1] = machine.terms.add(state.general[1], minus);
                        }
                        let counted =
                            matches!(op.i.mnemonic(), Mnemonic::Jrcxz | Mnemonic::Jecxz | Mnemonic::Jcxz);
                        if short || counted {
                            decided[version].push(state.general[1]);
                        } else if op.i.condition_code() != ConditionCode::None && version == 0 {
                            out.taken = Some(machine.condition(op.i.condition_code(), state));
                        }
                    }
                    _ => (),
                }
            }
            given.append(&mut machine.given);
            out.problems.append(&mut machine.problems);
            out.touched[version] = std::mem::take(&mut machine.touched);
        }
        let [one, two] = decided;
        out.goals.extend(one.into_iter().zip(two).map(|(a, b)| ("the branch".to_owned(), a, b)));
        out.given = given;
        out
    }

    /// Finds what is known before each block, over all functions together.
    fn guess(&mut self) {
        self.entries.clear();
        self.summaries.clear();
        for (&n, function) in &self.both.functions {
            let mut terms = Terms::default();
            let entry = terms.variable("entry", Sort::Bits(64));
            let mut frame = Frame {
                moved: BTreeMap::new(),
                homes: self.both.homes(n),
                bases: BTreeMap::from([(entry, 0)]),
                depths: BTreeMap::new(),
                wrong: Vec::new(),
            };
            if !function.same {
                self.slots(function, &mut terms, &mut frame);
            }
            self.frames.insert(n, (terms, frame));
            self.summaries
                .insert(n, Summary { changed: Some(BTreeSet::new()), float: None, leaves_float: true });
            if function.entered {
                self.entries.insert(n, Known::entry());
            }
        }
        loop {
            let before = (self.entries.clone(), self.summaries.clone());
            for function in self.both.functions.values() {
                let n = function.id;
                let Some(entry) = self.entries.get(&n).cloned() else { continue };
                let (mut terms, mut frame) = self.frames.remove(&n).expect("a frame");
                self.blocks(function, &mut terms, &mut frame, entry, true);
                self.frames.insert(n, (terms, frame));
            }
            if before == (self.entries.clone(), self.summaries.clone()) {
                break;
            }
        }
    }

    /// The slots that moved: those that the original names more often than the other version, in some block.
    fn slots(&mut self, function: &Function, terms: &mut Terms, frame: &mut Frame) {
        let (known, _) = self.blocks(function, terms, frame, Known::entry(), false);
        for (pair, known) in &known {
            // Which values moved is not known yet, but addresses are the same in both.
            let known = &Known { differ: BTreeSet::new(), ..known.clone() };
            let ran = self.run(terms, frame, &function.blocks[pair], known, true);
            let count = |version: usize, what: &(Cell, u32)| {
                ran.touched[version].iter().filter(|one| *one == what).count()
            };
            for what in &ran.touched[0] {
                if count(0, what) > count(1, what) {
                    let (cell, size) = *what;
                    let depth = frame.depths.get(&cell.base).copied().unwrap_or(0);
                    if cell.offset + i64::from(size) + depth <= 0 && matches!(size, 4 | 8) {
                        frame.moved.insert(cell, size);
                    } else {
                        frame.wrong.push(format!("{}: {size} bytes at {} moved", function.name, cell.offset));
                    }
                }
            }
        }
    }

    /// What is known before each block of a function. `deep` also notes what it leaves for callees and callers.
    fn blocks(
        &mut self,
        function: &Function,
        terms: &mut Terms,
        frame: &mut Frame,
        entry: Known,
        deep: bool,
    ) -> (BTreeMap<Pair, Known>, BTreeSet<(Pair, usize)>) {
        let mut closed = BTreeSet::new();
        let mut visits: BTreeMap<Pair, usize> = BTreeMap::new();
        let mut known: BTreeMap<Pair, Known> = BTreeMap::from([(function.entry, entry)]);
        let mut todo: Vec<Pair> = vec![function.entry];
        while let Some(pair) = todo.pop() {
            let Some(block) = function.blocks.get(&pair) else { continue };
            let ran = self.run(terms, frame, block, &known[&pair], true);
            let mut after = end(terms, frame, &known[&pair], &ran.begin[0], &ran.end);
            after.differ.retain(|&n| !self.alike.contains(&(function.id, pair, n)));
            if deep {
                self.note(function, frame, block, &ran, &after);
            }
            if let End::Call(callee) = &block.end {
                match self.behind(callee, &after) {
                    Some(behind) => after = behind,
                    // It has not returned yet.
                    None if deep => continue,
                    None => {
                        after = Known {
                            equal: BTreeSet::new(),
                            differ: BTreeSet::new(),
                            float: Float::SAME,
                            ..after
                        }
                    }
                }
            }
            for (way, &next) in block.next.iter().enumerate() {
                let never = ran.taken.and_then(|bit| terms.value(bit)).is_some_and(|bit| bit != way as u64);
                if never || self.dead.contains(&(function.id, pair, way)) {
                    closed.insert((pair, way));
                    continue;
                }
                let Some(after) = along(terms, &after, &ran.end[0], ran.taken, way == 1) else {
                    closed.insert((pair, way));
                    continue;
                };
                closed.remove(&(pair, way));
                let changed = match known.get_mut(&next) {
                    Some(old) => {
                        let numbers = old.numbers.clone();
                        let changed = old.meet(&after);
                        // Bounds that keep growing are given up.
                        let visits = visits.entry(next).or_insert(0);
                        *visits += 1;
                        if *visits > 8 {
                            old.numbers.retain(|n, bounds| numbers.get(n) == Some(bounds));
                        }
                        changed
                    }
                    None => {
                        known.insert(next, after);
                        true
                    }
                };
                if changed && !todo.contains(&next) {
                    todo.push(next);
                }
            }
        }
        (known, closed)
    }

    /// What a block leaves for a callee's entry, and for this function's callers.
    fn note(&mut self, function: &Function, frame: &Frame, block: &Block, ran: &Ran, after: &Known) {
        if let End::Call(Callee::Local(callee)) = block.end {
            let known = Known { constants: after.constants.clone(), float: after.float, ..Known::entry() };
            let homes = &self.frames.get(&callee).map_or(&frame.homes, |(_, frame)| &frame.homes).clone();
            let mut known = known;
            known.constants.retain(
                |home, _| matches!(home, Home::K(n) if homes.contains(&(Register::K0 + u32::from(*n)))),
            );
            match self.entries.get_mut(&callee) {
                Some(old) => {
                    old.meet(&known);
                }
                None => {
                    self.entries.insert(callee, known);
                }
            }
        }
        let n = function.id;
        let mut all = match &block.end {
            End::Call(Callee::Local(callee)) | End::Tail(Callee::Local(callee)) => {
                self.summaries.get(callee).and_then(|summary| summary.changed.clone())
            }
            End::Call(_) | End::Tail(_) => None,
            _ => Some(BTreeSet::new()),
        };
        if let Some(all) = &mut all {
            let [_, end] = &ran.end;
            all.extend(
                ran.begin[1]
                    .homes
                    .iter()
                    .filter(|(home, term)| end.homes[home] != **term)
                    .map(|(home, _)| *home),
            );
        }
        let leaves = match &block.end {
            End::Return => Some(after.float),
            End::Tail(_) => Some(Float::SAME),
            _ => None,
        };
        let quiet = match &block.end {
            End::Call(Callee::Local(callee)) | End::Tail(Callee::Local(callee)) => {
                self.summaries.get(callee).is_some_and(|summary| summary.leaves_float)
            }
            End::Call(_) | End::Tail(_) => false,
            _ => true,
        };
        let same = |n: usize| ran.begin[n].tags == ran.end[n].tags && ran.begin[n].float == ran.end[n].float;
        let summary = self.summaries.get_mut(&n).expect("a summary");
        summary.leaves_float &= quiet && same(0) && same(1);
        summary.changed = match (summary.changed.take(), all) {
            (Some(mut old), Some(more)) => {
                old.extend(more);
                Some(old)
            }
            _ => None,
        };
        if let Some(leaves) = leaves {
            match &mut summary.float {
                Some(old) => old.meet(leaves),
                none => *none = Some(leaves),
            }
        }
    }

    /// What is known after a call.
    fn behind(&self, callee: &Callee, before: &Known) -> Option<Known> {
        let mut out = Known { differ: BTreeSet::new(), stored: BTreeMap::new(), ..before.clone() };
        let keeps = |n: usize| match callee {
            Callee::Local(callee) => {
                n == 4 || KEPT.contains(&n) && !self.spoils(*callee, n) || self.leaves_alone(*callee, n)
            }
            _ => KEPT.contains(&n),
        };
        out.frame.retain(|&n, _| keeps(n));
        out.numbers.retain(|&n, _| keeps(n));
        out.short.retain(|&n| keeps(n));
        match callee {
            Callee::Local(callee) => {
                let summary = self.summaries.get(callee)?;
                let float = summary.float?;
                out.float = if summary.leaves_float { before.float } else { float };
                // The return address, and the callee's frame.
                let top = before.frame.get(&4).copied();
                let below =
                    |cell: Cell| top.is_none_or(|top| cell.base != top.base || cell.offset < top.offset);
                let kept =
                    |home: Home| summary.changed.as_ref().is_some_and(|changed| !changed.contains(&home));
                out.equal.retain(|&(cell, home)| !below(cell) && kept(home));
                out.fixed.retain(|&cell, _| !below(cell));
                out.constants.retain(|&home, _| kept(home));
            }
            Callee::Outside(name) => {
                // What it keeps stays as it is, whatever that is.
                out.differ = before.differ.iter().copied().filter(|&n| keeps(n)).collect();
                out.equal.clear();
                out.fixed.clear();
                out.constants.clear();
                out.float = if NO_FLOAT.contains(&name.as_str()) { Float::EMPTY } else { Float::SAME };
            }
            Callee::Unknown => {
                out.equal.clear();
                out.fixed.clear();
                out.constants.clear();
                out.float = Float::SAME;
            }
        }
        Some(out)
    }

    /// A function of the file, and all that it calls there.
    fn with_below(&self, callee: usize) -> BTreeSet<usize> {
        let mut all = self.both.below(callee);
        all.insert(callee);
        all
    }

    /// The original's instructions of a function.
    fn instructions(&self, n: usize) -> impl Iterator<Item = &Instruction> {
        let blocks = self.both.functions[&n].blocks.values();
        blocks.flat_map(|block| &block.ops[0]).map(|&op| &self.both.images[0].ops[op].i)
    }

    /// Whether a function writes a register.
    fn writes(&self, n: usize, register: usize) -> bool {
        let mut factory = InstructionInfoFactory::new();
        self.instructions(n).any(|i| {
            let mut used = factory.info(i).used_registers().iter();
            used.any(|used| writes(used.access()) && is(used.register(), register))
        })
    }

    /// Whether a function of the file, and all below it, never write a register and call nothing outside.
    fn leaves_alone(&self, callee: usize, register: usize) -> bool {
        self.with_below(callee).iter().all(|&n| {
            let inside = self.both.functions[&n].blocks.values().all(|block| match &block.end {
                End::Call(callee) | End::Tail(callee) => matches!(callee, Callee::Local(_)),
                _ => true,
            });
            inside && !self.writes(n, register)
        })
    }

    /// Whether a function of the file, or one below it, writes a register without saving it first.
    fn spoils(&self, callee: usize, register: usize) -> bool {
        self.with_below(callee).iter().any(|&n| {
            let saved = self.instructions(n).any(|i| {
                i.mnemonic() == Mnemonic::Push
                    && i.op0_kind() == OpKind::Register
                    && is(i.op0_register(), register)
                    || i.mnemonic() == Mnemonic::Mov
                        && i.op0_kind() == OpKind::Memory
                        && i.op1_kind() == OpKind::Register
                        && is(i.op1_register(), register)
            });
            !saved && self.writes(n, register)
        })
    }

    /// Looks for ways that are never taken, and for registers that are equal after all. True if there are more than before.
    fn learn(&mut self, function: &Function, solver: &mut Solver) -> bool {
        let n = function.id;
        let Some(entry) = self.entries.get(&n).cloned() else { return false };
        let (mut terms, mut frame) = self.frames.remove(&n).expect("a frame");
        let (known, closed) = self.blocks(function, &mut terms, &mut frame, entry, false);
        let before = self.dead.len() + self.alike.len();
        for (&pair, known) in &known {
            let Some(block) = function.blocks.get(&pair) else { continue };
            let ran = self.run(&mut terms, &mut frame, block, known, false);
            let [one, two] = [0, 1].map(|n| (ran.begin[n].general, ran.end[n].general));
            for n in 0..16 {
                let changed = one.0[n] != one.1[n] || two.0[n] != two.1[n];
                if one.1[n] != two.1[n]
                    && changed
                    && solver.ask(&terms.query(&ran.given, &[(one.1[n], two.1[n])])) == Answer::Never
                {
                    self.alike.insert((function.id, pair, n));
                }
            }
            let Some(taken) = ran.taken else { continue };
            for way in 0..2 {
                let never = terms.constant(1, 1 - way as u64);
                if !closed.contains(&(pair, way))
                    && solver.ask(&terms.query(&ran.given, &[(taken, never)])) == Answer::Never
                {
                    self.dead.insert((n, pair, way));
                }
            }
        }
        self.frames.insert(n, (terms, frame));
        self.dead.len() + self.alike.len() > before
    }

    /// Has z3 decide every block of a function.
    fn prove(&mut self, function: &Function, solver: &mut Solver) -> Judgement {
        let mut out = Judgement::default();
        let n = function.id;
        // Nothing that can be called calls it.
        let Some(entry) = self.entries.get(&n).cloned() else { return out };
        let (mut terms, mut frame) = self.frames.remove(&n).expect("a frame");
        let (known, closed) = self.blocks(function, &mut terms, &mut frame, entry, false);
        out.functions = 1;
        out.different.append(&mut frame.wrong.clone());
        for (pair, before) in &known {
            let Some(block) = function.blocks.get(pair) else { continue };
            out.blocks += 1;
            let ran = self.run(&mut terms, &mut frame, block, before, false);
            for problem in ran.problems.iter().filter(|_| !function.same) {
                *out.unsupported.entry(problem.clone()).or_default() += 1;
            }
            let mut goals = ran.goals.clone();
            self.goals(function, *pair, block, &mut terms, &frame, &ran, (&known, &closed), &mut goals);
            goals.retain(|(_, a, b)| a != b);
            out.goals += goals.len();
            if goals.is_empty() {
                continue;
            }
            let mut ask = |goals: &[Goal]| {
                let equations: Vec<(Term, Term)> = goals.iter().map(|(_, a, b)| (*a, *b)).collect();
                solver.ask(&terms.query(&ran.given, &equations))
            };
            let place = format!("{} at {:#x}", function.name, self.both.images[0].ops[pair.0].place.1);
            match ask(&goals) {
                Answer::Never => (),
                Answer::Unknown => out.undecided.push(place),
                Answer::Sometimes => {
                    let wrong: BTreeSet<&str> = goals
                        .iter()
                        .filter(|goal| ask(std::slice::from_ref(goal)) != Answer::Never)
                        .map(|(name, ..)| name.as_str())
                        .collect();
                    let wrong: Vec<&str> = wrong.into_iter().collect();
                    out.different.push(format!("{place}: {}", wrong.join(", ")));
                }
            }
        }
        self.frames.insert(n, (terms, frame));
        out
    }
}
