//! The flow of a kernel: where the paths of a branch meet again, which registers hold a value where, and so which of them share a
//! place.
//!
//! Text in single-assignment form has tens of thousands of registers, of which a few hundred are in use at a time. Registers
//! that some path reads before it writes them keep places of their own, so that such a read is seen.
#![forbid(unsafe_code)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::decode::{Body, Draft, Register};
use super::parse::Wrong;
use super::program::{Class, Code, Constant, Inst, Kind, NEVER};

/// A piece without branches, and the pieces after it.
struct Block {
    drafts: Range<usize>,
    next: Vec<usize>,
    /// Whether threads may end at its end.
    ends: bool,
}

fn blocks(drafts: &[Draft]) -> (Vec<Block>, Vec<usize>) {
    let mut leads = vec![false; drafts.len() + 1];
    leads[0] = true;
    for (i, draft) in drafts.iter().enumerate() {
        if let Some(target) = draft.target {
            leads[target as usize] = true;
        }
        if matches!(draft.kind, Kind::Branch | Kind::Return) {
            leads[i + 1] = true;
        }
    }
    let starts: Vec<usize> = (0..drafts.len()).filter(|i| leads[*i]).collect();
    let mut of = vec![0; drafts.len()];
    let mut blocks = Vec::new();
    for (number, start) in starts.iter().enumerate() {
        let end = starts.get(number + 1).copied().unwrap_or(drafts.len());
        of[*start..end].fill(number);
        blocks.push(Block { drafts: *start..end, next: Vec::new(), ends: false });
    }
    for block in &mut blocks {
        let last = &drafts[block.drafts.end - 1];
        let (returns, leaves) = (last.kind == Kind::Return, matches!(last.kind, Kind::Branch | Kind::Return));
        block.ends = returns;
        block.next.extend(last.target.map(|target| of[target as usize]));
        if (!leaves || last.guard.is_some()) && block.drafts.end < drafts.len() {
            block.next.push(of[block.drafts.end]);
        }
    }
    (blocks, of)
}

/// For each block the nearest one that all its paths reach, by Cooper, Harvey and Kennedy, "A simple, fast dominance algorithm",
/// on the reversed graph. The end is block `blocks.len()`.
fn meets(blocks: &[Block]) -> Vec<Option<usize>> {
    let end = blocks.len();
    let mut before = vec![Vec::new(); end + 1];
    for (i, block) in blocks.iter().enumerate() {
        block.next.iter().for_each(|next| before[*next].push(i));
        if block.ends {
            before[end].push(i);
        }
    }
    // Blocks by the order in which a walk back from the end leaves them.
    let (mut order, mut place) = (Vec::new(), vec![usize::MAX; end + 1]);
    let mut seen = vec![false; end + 1];
    let mut walk = vec![(end, 0)];
    seen[end] = true;
    while let Some((block, at)) = walk.pop() {
        match before[block].get(at) {
            Some(&other) => {
                walk.push((block, at + 1));
                if !seen[other] {
                    seen[other] = true;
                    walk.push((other, 0));
                }
            }
            None => {
                place[block] = order.len();
                order.push(block);
            }
        }
    }
    let mut meet = vec![None; end + 1];
    meet[end] = Some(end);
    let mut changed = true;
    while changed {
        changed = false;
        for &block in order.iter().rev().filter(|block| **block != end) {
            let next = blocks[block].next.iter().copied().chain(blocks[block].ends.then_some(end));
            let mut found: Option<usize> = None;
            for next in next.filter(|next| meet[*next].is_some()) {
                found = Some(match found {
                    None => next,
                    Some(mut a) => {
                        let mut b = next;
                        while a != b {
                            while place[a] < place[b] {
                                a = meet[a].unwrap_or(end);
                            }
                            while place[b] < place[a] {
                                b = meet[b].unwrap_or(end);
                            }
                        }
                        a
                    }
                });
            }
            if found != meet[block] {
                meet[block] = found;
                changed = true;
            }
        }
    }
    meet.truncate(end);
    meet
}

/// A set of registers, all classes in one row of numbers.
#[derive(Clone, PartialEq)]
struct Set(Vec<u64>);

impl Set {
    fn new(len: usize) -> Set {
        Set(vec![0; len.div_ceil(64)])
    }

    fn has(&self, i: usize) -> bool {
        self.0[i / 64] >> (i % 64) & 1 == 1
    }

    fn add(&mut self, i: usize) {
        self.0[i / 64] |= 1 << (i % 64);
    }

    fn each(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().flat_map(|(at, word)| {
            let mut word = *word;
            std::iter::from_fn(move || {
                let bit = word.trailing_zeros() as usize;
                (word != 0).then(|| {
                    word &= word - 1;
                    64 * at + bit
                })
            })
        })
    }
}

/// Registers that have a value which is still wanted, at each block's beginning.
fn live(blocks: &[Block], drafts: &[Draft], number: &dyn Fn(Register) -> usize, total: usize) -> Vec<Set> {
    let (mut uses, mut defines) = (Vec::new(), Vec::new());
    for block in blocks {
        let (mut used, mut defined) = (Set::new(total), Set::new(total));
        for draft in &drafts[block.drafts.clone()] {
            let sources = draft.operands.iter().filter(|(_, writes)| !writes).map(|(r, _)| *r);
            for source in sources.chain(draft.guard.map(|(guard, _)| guard)) {
                if !defined.has(number(source)) {
                    used.add(number(source));
                }
            }
            // Where a guard is false the old value stays.
            if draft.guard.is_none() {
                draft.operands.iter().filter(|o| o.1).for_each(|(r, _)| defined.add(number(*r)));
            }
        }
        uses.push(used);
        defines.push(defined);
    }
    let mut live = uses;
    let mut changed = true;
    while changed {
        changed = false;
        for (i, block) in blocks.iter().enumerate().rev() {
            for next in &block.next {
                for word in 0..live[i].0.len() {
                    let more = live[*next].0[word] & !defines[i].0[word] | live[i].0[word];
                    if more != live[i].0[word] {
                        live[i].0[word] = more;
                        changed = true;
                    }
                }
            }
        }
    }
    live
}

const CLASSES: [Class; 3] = [Class::Predicate, Class::Word, Class::Long];

/// Where registers are.
struct Places {
    sizes: [usize; 3],
    all: Vec<Vec<u16>>,
    /// Whether some path reads a register that it has not written.
    early_reads: bool,
}

/// Places of registers in their files: one interval of the text for each, from first to last use.
fn places(body: &Body, blocks: &[Block]) -> Result<Places, Wrong> {
    let starts = [0, body.registers[0], body.registers[0] + body.registers[1]].map(|n| n as usize);
    let number = |r: Register| starts[r.class as usize] + r.number as usize;
    let total = body.registers.iter().map(|n| *n as usize).sum();
    let live = live(blocks, &body.drafts, &number, total);
    let mut interval: Vec<Option<(usize, usize)>> = vec![None; total];
    let mut reach = |register: usize, at: usize| {
        let (start, end) = interval[register].unwrap_or((at, at));
        interval[register] = Some((start.min(at), end.max(at)));
    };
    for (i, block) in blocks.iter().enumerate() {
        // Sources are read at even numbers, results written at odd ones.
        live[i].each().for_each(|register| reach(register, 2 * block.drafts.start));
        for next in &block.next {
            live[*next].each().for_each(|register| reach(register, 2 * block.drafts.end));
        }
        for at in block.drafts.clone() {
            let draft = &body.drafts[at];
            for (register, writes) in &draft.operands {
                reach(number(*register), 2 * at + usize::from(*writes));
                if *writes && draft.guard.is_some() {
                    reach(number(*register), 2 * at);
                }
            }
            draft.guard.iter().for_each(|(guard, _)| reach(number(*guard), 2 * at));
        }
    }
    let (mut sizes, mut early_reads) = ([0; 3], false);
    let mut all = Vec::new();
    for class in CLASSES {
        let count = body.registers[class as usize];
        let mut of = vec![0u16; count as usize];
        let mut size = 0;
        let mut rest = Vec::new();
        for register in 0..count {
            let register = Register { class, number: register };
            let reach = interval[number(register)];
            if body.constants.contains_key(&register) {
                continue;
            }
            let Some((start, end)) = reach else { continue };
            let early = live.first().is_some_and(|first| first.has(number(register)));
            early_reads |= early;
            rest.push(if early { (0, usize::MAX, register.number) } else { (start, end, register.number) });
        }
        for constant in constants(body, class) {
            of[constant.0 as usize] = size as u16;
            size += 1;
        }
        rest.sort_unstable();
        let (mut busy, mut free) = (BinaryHeap::new(), Vec::new());
        for (start, end, register) in rest {
            while let Some(Reverse((until, _))) = busy.peek()
                && *until < start
            {
                let Some(Reverse((_, place))) = busy.pop() else { break };
                free.push(place);
            }
            let place = free.pop().unwrap_or_else(|| {
                size += 1;
                size - 1
            });
            of[register as usize] = u16::try_from(place).map_err(|_| Wrong {
                line: 0,
                why: format!("{} has more than 65536 registers in use at a time", body.name),
            })?;
            busy.push(Reverse((end, place)));
        }
        sizes[class as usize] = size;
        all.push(of);
    }
    Ok(Places { sizes, all, early_reads })
}

/// The constants of a class by their numbers, which are in the order of their first use.
fn constants(body: &Body, class: Class) -> Vec<(u32, Constant)> {
    let of = body.constants.iter().filter(|(register, _)| register.class == class);
    let mut all: Vec<(u32, Constant)> = of.map(|(register, value)| (register.number, *value)).collect();
    all.sort_unstable_by_key(|(number, _)| *number);
    all
}

pub(super) fn arrange(body: Body) -> Result<Code, Wrong> {
    let (blocks, of) = blocks(&body.drafts);
    let meets = meets(&blocks);
    let Places { sizes, all, early_reads } = places(&body, &blocks)?;
    let place = |r: Register| all[r.class as usize][r.number as usize];
    let (mut insts, mut lists) = (Vec::with_capacity(body.drafts.len()), Vec::new());
    for (i, draft) in body.drafts.iter().enumerate() {
        let mut o = [0; 6];
        let mut meet = NEVER;
        if draft.operands.len() > o.len() {
            meet = lists.len() as u32;
            lists.extend(draft.operands.iter().map(|(register, _)| place(*register)));
        } else {
            o.iter_mut().zip(&draft.operands).for_each(|(to, (register, _))| *to = place(*register));
        }
        if draft.kind == Kind::Branch {
            meet = match meets[of[i]] {
                Some(block) if block < blocks.len() => blocks[block].drafts.start as u32,
                _ => NEVER,
            };
        }
        let (guard, negated) = draft.guard.map_or((0, false), |(guard, negated)| (place(guard), negated));
        insts.push(Inst {
            kind: draft.kind,
            code: draft.code,
            count: draft.count,
            negated,
            guard,
            o,
            meet,
            aux: draft.target.map_or(draft.aux, u64::from),
            line: draft.line,
        });
    }
    let values = |class| constants(&body, class).into_iter().map(|(_, value)| value).collect();
    Ok(Code {
        words: values(Class::Word),
        longs: values(Class::Long),
        predicates: values(Class::Predicate),
        name: body.name,
        parameters: body.parameters,
        max_threads: body.max_threads,
        insts,
        lists,
        places: sizes,
        early_reads,
        local: body.local,
    })
}
