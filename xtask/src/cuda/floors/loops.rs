//! The loops of a kernel, from its jumps.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};

use crate::cuda::sass::{Function, Instruction};

/// A stretch of code without jumps into it or out of it.
pub(super) struct Block {
    pub(super) code: Vec<usize>,
    pub(super) next: Vec<usize>,
    /// Whether the kernel ends behind it.
    pub(super) ends: bool,
}

/// The blocks that control reaches, each behind those that all paths to it lead through. A call of a routine without jumps counts
/// as the routine's own instructions.
pub(super) fn blocks(function: &Function) -> Result<Vec<Block>, String> {
    let code = function.code.as_slice();
    let at: BTreeMap<u64, usize> = code.iter().enumerate().map(|(n, i)| (i.at, n)).collect();
    let place = |i: &Instruction| {
        let target = i.target().and_then(|to| at.get(&to)).copied();
        target.ok_or_else(|| format!("'{}' at {:#x} goes to an unknown place", i.text, i.at))
    };
    let jumps =
        |i: &Instruction| matches!(i.root.as_str(), "BRA" | "CALL" | "RET" | "EXIT" | "BSYNC" | "WARPSYNC");
    // Where the routine ends that a call enters, unless the call is a jump.
    let routine = |i: &Instruction| -> Result<Option<(usize, usize)>, String> {
        let from = place(i)?;
        let ends = |i: &Instruction| matches!(i.root.as_str(), "BRA" | "CALL" | "RET" | "EXIT");
        let to = (from..code.len()).find(|n| ends(&code[*n]));
        Ok(to.filter(|to| code[*to].root == "RET").map(|to| (from, to)))
    };
    let mut joins: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut starts = BTreeSet::from([0]);
    for (n, i) in code.iter().enumerate() {
        if jumps(i) {
            starts.insert(n + 1);
        }
        match i.root.as_str() {
            "BSSY" => joins.entry(&i.operands[0].text).or_default().push(place(i)?),
            "BRA" | "CALL" => _ = starts.insert(place(i)?),
            "WARPSYNC" if i.has("COLLECTIVE") => _ = starts.insert(place(i)?),
            _ => {}
        }
    }
    starts.extend(joins.values().flatten());
    let starts: Vec<usize> = starts.into_iter().filter(|n| *n < code.len()).collect();
    let mut all = Vec::new();
    for (n, from) in starts.iter().enumerate() {
        let to = starts.get(n + 1).copied().unwrap_or(code.len());
        let mut own: Vec<usize> = (*from..to).collect();
        let (mut next, last) = (Vec::new(), &code[to - 1]);
        let guarded = last.text.starts_with('@');
        let mut goes_on = true;
        match last.root.as_str() {
            "BRA" => {
                next.push(place(last)?);
                let decided = last.operands.iter().any(|o| !o.value.is_empty());
                goes_on = guarded || decided || last.has("DIV") || last.has("CONV");
            }
            "CALL" => match routine(last)? {
                Some((from, end)) => {
                    let behind = code.get(to).map(|i| i.at);
                    if !own.iter().any(|n| code[*n].root != "CALL" && code[*n].target() == behind) {
                        return Err(format!("the call at {:#x} does not return behind itself", last.at));
                    }
                    own.extend(from..=end);
                }
                None => {
                    next.push(place(last)?);
                    goes_on = guarded;
                }
            },
            "WARPSYNC" if last.has("COLLECTIVE") => next.push(place(last)?),
            // Threads that meet go on where the barrier says, which is the next instruction if that is one of its places.
            "BSYNC" => {
                let joins = joins.get(last.operands[0].text.as_str()).map_or(&[][..], Vec::as_slice);
                if !joins.contains(&to) {
                    next.extend(joins);
                }
            }
            "EXIT" | "RET" => goes_on = guarded,
            _ => {}
        }
        let ends = last.root == "EXIT" && !guarded;
        if goes_on && to < code.len() {
            next.push(to);
        }
        let next = next.iter().filter_map(|to| starts.binary_search(to).ok()).collect();
        all.push(Block { code: own, next, ends });
    }
    Ok(ordered(all))
}

/// The blocks that the first one reaches, in reverse postorder.
pub(super) fn ordered(mut blocks: Vec<Block>) -> Vec<Block> {
    let (mut order, mut seen, mut path) = (Vec::new(), BTreeSet::from([0]), vec![(0, 0)]);
    while let Some((block, way)) = path.last_mut() {
        let to = blocks[*block].next.get(*way).copied();
        *way += 1;
        match to {
            Some(to) if seen.insert(to) => path.push((to, 0)),
            Some(_) => {}
            None => {
                order.push(*block);
                path.pop();
            }
        }
    }
    order.reverse();
    let place: BTreeMap<usize, usize> = order.iter().enumerate().map(|(new, old)| (*old, new)).collect();
    let mut take =
        |old: &usize| std::mem::replace(&mut blocks[*old], Block { code: vec![], next: vec![], ends: false });
    let mut all: Vec<Block> = order.iter().map(&mut take).collect();
    for block in &mut all {
        block.next = block.next.iter().map(|old| place[old]).collect();
    }
    all
}

/// A loop: its own blocks without those of the loops inside it, and whether each runs on every trip.
#[derive(Debug)]
pub(super) struct Loop {
    /// The loop around it, by its number in order.
    pub(super) inside: Option<usize>,
    pub(super) own: Vec<(usize, bool)>,
}

/// The loops of a kernel by their places in the code, and last what is in none.
pub(super) fn loops(blocks: &[Block]) -> Result<Vec<Loop>, String> {
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); blocks.len()];
    for (n, block) in blocks.iter().enumerate() {
        block.next.iter().for_each(|to| before[*to].push(n));
    }
    // The nearest block that all paths to a block lead through.
    let mut nearest: Vec<Option<usize>> = vec![None; blocks.len()];
    nearest[0] = Some(0);
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for n in 1..blocks.len() {
            let mut new: Option<usize> = None;
            for from in before[n].iter().filter(|from| nearest[**from].is_some()) {
                let (mut a, mut b) = (*from, new.unwrap_or(*from));
                while a != b {
                    let later = if a > b { &mut a } else { &mut b };
                    *later = nearest[*later].unwrap_or(0);
                }
                new = Some(a);
            }
            if nearest[n] != new {
                nearest[n] = new;
                changed = true;
            }
        }
    }
    let leads = |from: usize, to: usize| {
        let mut at = to;
        while at > from {
            at = nearest[at].unwrap_or(0);
        }
        at == from
    };
    // By first block: all blocks of the loop, and those that go back.
    let mut found: BTreeMap<usize, (BTreeSet<usize>, Vec<usize>)> = BTreeMap::new();
    for (n, block) in blocks.iter().enumerate() {
        for to in block.next.iter().filter(|to| **to <= n) {
            if !leads(*to, n) {
                return Err(format!("a loop has two entries, one at instruction {}", blocks[*to].code[0]));
            }
            let (all, back) = found.entry(*to).or_insert_with(|| (BTreeSet::from([*to]), Vec::new()));
            back.push(n);
            let mut work = vec![n];
            while let Some(n) = work.pop() {
                if all.insert(n) {
                    work.extend(&before[n]);
                }
            }
        }
    }
    let mut found: Vec<_> =
        found.into_iter().map(|(head, (all, back))| (blocks[head].code[0], all, back)).collect();
    found.sort_by_key(|(begin, ..)| *begin);
    let ends = (0..blocks.len()).filter(|n| blocks[*n].ends).collect();
    found.push((usize::MAX, (0..blocks.len()).collect(), ends));
    let contains = |outer: usize, inner: usize| outer != inner && found[outer].1.is_superset(&found[inner].1);
    let of = |n: usize| {
        let inner: BTreeSet<usize> =
            (0..found.len()).filter(|m| contains(n, *m)).flat_map(|m| found[m].1.clone()).collect();
        let around = (0..found.len() - 1).filter(|m| contains(*m, n));
        let (_, all, back) = &found[n];
        let own = all.difference(&inner).map(|block| (*block, back.iter().all(|end| leads(*block, *end))));
        Loop { inside: around.min_by_key(|m| found[*m].1.len()), own: own.collect() }
    };
    Ok((0..found.len()).map(of).collect())
}
