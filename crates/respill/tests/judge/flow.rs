//! Functions of both versions, cut into pairs of blocks that begin at the same label or after the same branch.

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{FlowControl, Register};

use super::image::{Image, same};
use super::vector::named;

/// The first instructions of a block in both versions.
pub(crate) type Pair = (usize, usize);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Callee {
    /// A function of the file.
    Local(usize),
    Outside(String),
    Unknown,
}

/// How a block ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// At another block, or by a branch that only leads to other blocks.
    Goes,
    Call(Callee),
    Return,
    /// A jump to another function, on a condition where there is a next block.
    Tail(Callee),
    /// Nothing runs after it.
    Stops,
}

#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// The instructions of both versions, with the branch at the end.
    pub(crate) ops: [Vec<usize>; 2],
    pub(crate) end: End,
    pub(crate) next: Vec<Pair>,
}

#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) id: usize,
    pub(crate) name: String,
    pub(crate) entry: Pair,
    /// Whether code outside may call or jump to it; otherwise only code of the file calls it.
    pub(crate) entered: bool,
    pub(crate) blocks: BTreeMap<Pair, Block>,
    pub(crate) callees: BTreeSet<usize>,
    /// Whether both versions have the same instructions.
    pub(crate) same: bool,
    /// MMX, vector and mask registers that the versions name.
    pub(crate) names: [BTreeSet<Register>; 2],
    /// Branches that are not understood, by name.
    pub(crate) problems: Vec<String>,
    /// Ways that the two versions do not share.
    pub(crate) different: Vec<String>,
}

/// Names after which nothing runs.
const ENDS: [&str; 9] = [
    "abort",
    "exit",
    "_exit",
    "__stack_chk_fail",
    "__assert_fail",
    "longjmp",
    "__cxa_throw",
    "_Unwind_Resume",
    "__cxa_rethrow",
];

const CALLED: usize = 1 << 40;

/// Both versions of a text.
pub(crate) struct Both {
    pub(crate) images: [Image; 2],
    /// Functions by their first instruction in the original. One that is entered from outside and called in the file counts as two,
    /// and [`CALLED`] is added to the second's number.
    pub(crate) functions: BTreeMap<usize, Function>,
}

impl Both {
    /// Nothing where the assembler refuses a text.
    pub(crate) fn of(original: &str, rewritten: &str) -> Option<Both> {
        let images = [Image::of(original)?, Image::of(rewritten)?];
        let one = &images[0];
        let mut entries: BTreeSet<usize> = one.functions.clone();
        let (mut called, mut jumped) = (BTreeSet::new(), BTreeSet::new());
        for op in &one.ops {
            if let Some(Ok(to)) = op.to
                && op.i.flow_control() == FlowControl::Call
            {
                entries.insert(to);
                called.insert(to);
            }
        }
        // A function's first instruction to which something other than a call leads: a jump, or what lies before it.
        for (n, op) in one.ops.iter().enumerate() {
            let falls = matches!(op.i.flow_control(), FlowControl::Next | FlowControl::ConditionalBranch);
            let branch = op.i.flow_control() != FlowControl::Call;
            let ways = [op.to.clone().and_then(Result::ok).filter(|_| branch), op.next.filter(|_| falls)];
            let home = entries.range(..=n).next_back();
            for to in ways.into_iter().flatten() {
                if entries.contains(&to) && home != Some(&to) && op.i.mnemonic() != iced_x86::Mnemonic::Nop {
                    jumped.insert(to);
                }
            }
        }
        // Code to which nothing leads begins a function, too.
        let mut led: BTreeSet<usize> = BTreeSet::new();
        for op in &one.ops {
            led.extend(op.to.clone().and_then(Result::ok));
            use FlowControl::{Call, ConditionalBranch, IndirectCall, Next};
            let falls = matches!(op.i.flow_control(), Next | ConditionalBranch | Call | IndirectCall);
            led.extend(op.next.filter(|_| falls && op.i.mnemonic() != iced_x86::Mnemonic::Nop));
        }
        let begins = |names: &BTreeSet<String>| names.iter().any(|name| !name.starts_with(['.', 'L']));
        entries.extend(
            one.names.iter().filter(|(op, names)| begins(names) && !led.contains(op)).map(|(op, _)| *op),
        );
        let is_entered = |entry: &usize| {
            one.exported.contains(entry)
                || one.taken.contains(entry)
                || jumped.contains(entry)
                || !called.contains(entry)
        };
        let entered: BTreeSet<usize> = entries.iter().copied().filter(is_entered).collect();
        let mut functions = BTreeMap::new();
        for &entry in &entries {
            let name = one.names.get(&entry).and_then(|names| names.iter().next()).cloned();
            let there = name.as_ref().and_then(|name| images[1].labels.get(name));
            let mut all = Vec::new();
            if entered.contains(&entry) {
                all.push((entry, true));
            }
            if called.contains(&entry) {
                all.push((if entered.contains(&entry) { entry + CALLED } else { entry }, false));
            }
            for (id, is_entered) in all {
                let mut function = Function {
                    id,
                    name: name.clone().unwrap_or_default(),
                    entry: (entry, there.copied().unwrap_or(0)),
                    entered: is_entered,
                    blocks: BTreeMap::new(),
                    callees: BTreeSet::new(),
                    same: true,
                    names: [BTreeSet::new(), BTreeSet::new()],
                    problems: Vec::new(),
                    different: Vec::new(),
                };
                if there.is_none() {
                    function.different.push("it has no counterpart".to_owned());
                } else {
                    Walk { images: &images, entries: &entries, entered: &entered, function: &mut function }
                        .all();
                }
                functions.insert(id, function);
            }
        }
        Some(Both { images, functions })
    }

    /// The functions that a function calls or jumps to, directly or not, without itself unless it is among them.
    pub(crate) fn below(&self, from: usize) -> BTreeSet<usize> {
        let mut out = BTreeSet::new();
        let mut todo = vec![from];
        while let Some(at) = todo.pop() {
            for &callee in &self.functions[&at].callees {
                if out.insert(callee) {
                    todo.push(callee);
                }
            }
        }
        out
    }

    /// Registers whose values may differ in a function: those that the rewritten version alone names in it, in a caller, or in what a
    /// caller reaches, unless the original names them here or below.
    pub(crate) fn homes(&self, of: usize) -> BTreeSet<Register> {
        let above = self.functions.keys().filter(|&&n| n == of || self.below(n).contains(&of));
        let mut around: BTreeSet<usize> = BTreeSet::new();
        for &n in above {
            around.insert(n);
            around.extend(self.below(n));
        }
        let mut out: BTreeSet<Register> = BTreeSet::new();
        for n in around {
            let [one, two] = &self.functions[&n].names;
            out.extend(two.difference(one));
        }
        for n in self.below(of).into_iter().chain([of]) {
            out.retain(|register| !self.functions[&n].names[0].contains(register));
        }
        out
    }
}

struct Walk<'a> {
    images: &'a [Image; 2],
    entries: &'a BTreeSet<usize>,
    entered: &'a BTreeSet<usize>,
    function: &'a mut Function,
}

impl Walk<'_> {
    fn all(&mut self) {
        let mut todo = vec![self.function.entry];
        while let Some(pair) = todo.pop() {
            if self.function.blocks.contains_key(&pair) {
                continue;
            }
            let block = self.block(pair);
            self.function.same &= block.ops[0].len() == block.ops[1].len();
            for (&a, &b) in block.ops[0].iter().zip(&block.ops[1]) {
                self.function.same &= same(&self.images[0].ops[a], &self.images[1].ops[b]);
            }
            for version in 0..2 {
                for &op in &block.ops[version] {
                    self.function.names[version].extend(named(&self.images[version].ops[op].i));
                }
            }
            if let End::Call(Callee::Local(callee)) | End::Tail(Callee::Local(callee)) = block.end {
                self.function.callees.insert(callee);
            }
            todo.extend(&block.next);
            self.function.blocks.insert(pair, block);
        }
    }

    fn labels(&self, version: usize, op: usize) -> BTreeSet<String> {
        self.images[version].names.get(&op).cloned().unwrap_or_default()
    }

    /// Whether two instructions have a label in common.
    fn meet(&self, one: usize, two: usize) -> bool {
        !self.labels(0, one).is_disjoint(&self.labels(1, two))
    }

    fn block(&mut self, (one, two): Pair) -> Block {
        let [a, b] = self.images;
        let mut block = Block { ops: [vec![], vec![]], end: End::Goes, next: vec![] };
        // The original, up to a branch or a label.
        let (mut at, mut stop) = (one, None);
        loop {
            block.ops[0].push(at);
            if a.leaves(at) {
                break;
            }
            let Some(next) = a.ops[at].next else {
                self.function.problems.push("code ends without a branch".to_owned());
                return block;
            };
            if a.names.contains_key(&next) {
                stop = Some(next);
                break;
            }
            at = next;
        }
        // The other version, up to the counterpart.
        let mut there = two;
        loop {
            if let Some(stop) = stop
                && self.meet(stop, there)
            {
                break;
            }
            block.ops[1].push(there);
            if b.leaves(there) {
                break;
            }
            let Some(next) = b.ops[there].next else {
                self.function.different.push("code of the other version ends".to_owned());
                return block;
            };
            there = next;
        }
        if let Some(stop) = stop {
            if !self.meet(stop, there) {
                self.function.different.push(format!("{}: the other version branches", self.said(one)));
            } else if self.entries.contains(&stop) && stop != self.function.entry.0 {
                block.end = End::Tail(Callee::Local(stop));
            } else {
                block.next.push((stop, there));
            }
            return block;
        }
        let (x, y) = (&a.ops[at], &b.ops[there]);
        if x.i.is_invalid() {
            self.function.problems.push("bytes that are not an instruction".to_owned());
            return block;
        }
        if x.i.code() != y.i.code() && !(x.to.is_some() && x.i.mnemonic() == y.i.mnemonic()) {
            self.function.different.push(format!("{}: another branch", self.said(one)));
            return block;
        }
        let target = match (&x.to, &y.to) {
            (Some(Ok(m)), Some(Ok(n))) if self.meet(*m, *n) => Some(Ok((*m, *n))),
            (Some(Err(m)), Some(Err(n))) if m == n => Some(Err(m.clone())),
            (None, None) => None,
            (Some(Ok(m)), Some(Ok(_))) if self.labels(0, *m).is_empty() => {
                self.function.problems.push("a branch to a place without a label".to_owned());
                return block;
            }
            _ => {
                self.function.different.push(format!("{}: another target", self.said(one)));
                return block;
            }
        };
        let behind = x.next.zip(y.next);
        match x.i.flow_control() {
            FlowControl::Return => block.end = End::Return,
            FlowControl::Exception | FlowControl::Interrupt => block.end = End::Stops,
            FlowControl::ConditionalBranch => {
                block.next.extend(behind);
                match target {
                    Some(Ok(pair)) if !self.is_other(pair.0) => block.next.push(pair),
                    Some(Ok(pair)) => block.end = End::Tail(Callee::Local(pair.0)),
                    Some(Err(name)) => block.end = End::Tail(Callee::Outside(name)),
                    None => self.function.problems.push("a branch to nowhere".to_owned()),
                }
                if behind.is_none() {
                    self.function.problems.push("code ends without a branch".to_owned());
                }
            }
            FlowControl::UnconditionalBranch => match target {
                Some(Ok(pair)) if self.is_other(pair.0) => block.end = End::Tail(Callee::Local(pair.0)),
                Some(Ok(pair)) => block.next.push(pair),
                Some(Err(name)) => block.end = End::Tail(Callee::Outside(name)),
                None => self.function.problems.push("a branch to nowhere".to_owned()),
            },
            FlowControl::IndirectBranch => {
                let inside = self.inside();
                if inside.is_empty() {
                    block.end = End::Tail(Callee::Unknown);
                }
                block.next.extend(inside);
            }
            FlowControl::Call | FlowControl::IndirectCall => {
                let callee = match target {
                    Some(Ok((entry, _))) if self.entered.contains(&entry) => Callee::Local(entry + CALLED),
                    Some(Ok((entry, _))) => Callee::Local(entry),
                    Some(Err(name)) => Callee::Outside(name.trim_end_matches("@PLT").to_owned()),
                    None => Callee::Unknown,
                };
                let ends = matches!(&callee, Callee::Outside(name) if ENDS.contains(&name.as_str()) || name.contains("panic"));
                block.end = End::Call(callee);
                block.next.extend(behind.filter(|_| !ends));
            }
            _ => self.function.problems.push(format!("{:?}: no meaning for this branch", x.i.mnemonic())),
        }
        block
    }

    fn is_other(&self, op: usize) -> bool {
        self.entries.contains(&op) && op != self.function.entry.0
    }

    /// Places of the function whose address is taken: from its first instruction to that of the next function.
    fn inside(&self) -> Vec<Pair> {
        let [a, b] = self.images;
        let begin = a.ops[self.function.entry.0].place;
        let end = self.entries.iter().map(|&n| a.ops[n].place).filter(|p| p.0 == begin.0 && *p > begin).min();
        a.taken
            .iter()
            .filter(|&&n| {
                let place = a.ops[n].place;
                place.0 == begin.0 && place > begin && end.is_none_or(|end| place < end)
            })
            .filter_map(|&n| {
                let there = self.labels(0, n).iter().find_map(|name| b.labels.get(name).copied())?;
                Some((n, there))
            })
            .collect()
    }

    /// A label at or before an instruction.
    fn said(&self, op: usize) -> String {
        let a = &self.images[0];
        let place = a.ops[op].place;
        let label = a
            .names
            .iter()
            .filter(|(n, _)| a.ops[**n].place.0 == place.0 && a.ops[**n].place <= place)
            .max_by_key(|(n, _)| a.ops[**n].place.1)
            .and_then(|(n, names)| Some((names.iter().next()?.clone(), place.1 - a.ops[*n].place.1)));
        let (name, distance) = label.unwrap_or_default();
        format!("{name}+{distance:#x}")
    }
}
