//! Which slot gets which home.
#![forbid(unsafe_code)]

use core::fmt;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use iced_x86::OpKind;

use crate::analysis::{Analysis, Opaque, Unit};
use crate::flow::Callee;
use crate::homes::{Bank, Home};
use crate::neighbours::{Neighbours, Objection};
use crate::rewrite;
use crate::slots::{Class, Slot};
use crate::validate::pairs::takes_register;

/// The slots to move, and the order in which they get homes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Slots that hold pointers, the hottest first.
    Pointers,
    /// All, the hottest first.
    Hottest,
    /// All, the coldest first.
    Coldest,
}

/// What a plan should do.
#[derive(Clone, Debug)]
pub struct Wish {
    /// Kinds of homes, each with the most that may be used; the first kind is filled first.
    pub banks: Vec<(Bank, Option<usize>)>,
    /// Which slots, and in which order.
    pub policy: Policy,
    /// The number of times each instruction ran; without counts, loops count ten times for each level.
    pub counts: Option<HashMap<usize, u64>>,
    /// The slots, as (unit, slot), that must stay, for example aliased ones.
    pub stay: BTreeSet<(usize, usize)>,
    /// Only these slots, unless it is empty.
    pub only: BTreeSet<(usize, usize)>,
    /// Whether slots that arithmetic names as operands are taken through a free register.
    pub operands: bool,
}

/// Why a slot stays in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stays {
    /// It is not a spilled value.
    Class(Class),
    /// Its value comes from outside the function, or was never written.
    FromOutside,
    /// Its function cannot be analysed.
    Opaque(Opaque),
    /// This instruction names it, and also belongs to another function.
    Shared(usize),
    /// Its value lives across this call to code that is not in the file, or that calls such code or the function itself.
    Across(usize),
    /// This instruction names it in a way that cannot be rewritten, or has no free register for the rewrite.
    Operand(usize),
    /// All homes are taken where it lives.
    Full,
    /// A caller or a callee refuses every requested home: the first, and why.
    Refused(Objection),
    /// It was found aliased.
    Aliased,
    /// It was not requested.
    NotWanted,
}

impl fmt::Display for Stays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stays::Class(class) => write!(f, "it holds no spilled value ({})", class.name()),
            Stays::FromOutside => {
                f.write_str("it is read before it is written, or lies in the caller's frame")
            }
            Stays::Opaque(_) => f.write_str("its function cannot be followed"),
            Stays::Across(_) => {
                f.write_str("it lives across a call to unknown code, or into its own function")
            }
            Stays::Shared(_) => f.write_str("an instruction that names it also belongs to another function"),
            Stays::Operand(_) => f.write_str("it is named by an instruction that cannot be rewritten here"),
            Stays::Full => f.write_str("it finds no free home"),
            Stays::Refused(_) => f.write_str("its callers or callees use the homes"),
            Stays::Aliased => f.write_str("something else may touch it"),
            Stays::NotWanted => f.write_str("it was not requested"),
        }
    }
}

/// Homes for slots, both by (unit, slot).
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The home of each slot that moves.
    pub homes: BTreeMap<(usize, usize), Home>,
    /// The slots that stay, and why.
    pub stays: BTreeMap<(usize, usize), Stays>,
}

/// The number of uses of a slot.
#[must_use]
pub fn weight(unit: &Unit, slot: &Slot, counts: Option<&HashMap<usize, u64>>) -> u64 {
    slot.uses()
        .map(|op| match counts {
            Some(counts) => counts.get(&op).copied().unwrap_or(0),
            None => 10u64.pow(unit.function.depth.get(&op).copied().unwrap_or(0).min(6)),
        })
        .sum()
}

/// Gives homes to slots, callees first: a caller's value that lives across a call avoids the callee's registers.
#[must_use]
pub fn plan(analysis: &Analysis, wish: &Wish) -> Plan {
    let mut out = Plan::default();
    // The homes of each unit and all below it.
    let mut used: Vec<HashSet<Home>> = vec![HashSet::new(); analysis.units.len()];
    // Lanes need their masks and one register from beginning to end.
    let lanes = wish.banks.iter().any(|&(bank, _)| bank == Bank::ZmmLane);
    let mut given: HashMap<Bank, HashSet<Home>> = HashMap::new();
    let order = analysis.callees_first();
    for (at, &n) in order.iter().enumerate() {
        let unit = &analysis.units[n];
        let below: HashSet<Home> = unit.callees.iter().flat_map(|&c| &used[c]).copied().collect();
        let mut candidates: Vec<usize> = Vec::new();
        for (s, slot) in unit.slots.iter().enumerate() {
            match stays(analysis, unit, (n, s), slot, wish) {
                Some(why) => {
                    out.stays.insert((n, s), why);
                }
                None => candidates.push(s),
            }
        }
        candidates.sort_by_key(|&s| {
            let weight = weight(unit, &unit.slots[s], wish.counts.as_ref());
            (if wish.policy == Policy::Coldest { weight } else { u64::MAX - weight }, s)
        });
        let conflicts = conflicts(unit, &candidates);
        let across = across_calls(analysis, unit, &used);
        let neighbours = (!candidates.is_empty()).then(|| Neighbours::of(analysis, n));
        let objection = |home: Home| neighbours.as_ref().and_then(|around| around.objection(home));
        // What such a home needs at entries and exits would run in the other function, too.
        // Each entry makes the masks anew.
        let recursive = analysis.below(n).contains(&n);
        let shares = !candidates.is_empty() && !analysis.shared.is_empty() && shares(analysis, n);
        for &s in &candidates {
            let beside: HashSet<Home> = conflicts
                .get(&s)
                .into_iter()
                .flatten()
                .filter_map(|other| out.homes.get(&(n, *other)))
                .copied()
                .collect();
            let fits = |home: &Home| {
                !beside.iter().any(|other| home.clashes(*other))
                    && objection(*home).is_none()
                    && across.get(&s).is_none_or(|taken| !taken.iter().any(|other| home.clashes(*other)))
                    && !(recursive && matches!(home, Home::Lane { .. }))
                    && !(shares && matches!(home, Home::Mm(_) | Home::Lane { .. }))
                    && !(lanes && matches!(home, Home::K(1..) | Home::Xmm(16..)))
            };
            let home = wish.banks.iter().find_map(|&(bank, most)| {
                let given = given.get(&bank);
                bank.homes()
                    .into_iter()
                    .filter(fits)
                    .find(|home| {
                        most.is_none_or(|most| {
                            given.is_some_and(|g| g.contains(home)) || given.map_or(0, HashSet::len) < most
                        })
                    })
                    .map(|home| (bank, home))
            });
            match home {
                Some((bank, home)) => {
                    out.homes.insert((n, s), home);
                    given.entry(bank).or_default().insert(home);
                    used[n].insert(home);
                }
                None => {
                    let mut asked = wish.banks.iter().flat_map(|(bank, _)| bank.homes());
                    // If some home is allowed, too few are free; if none is, the reason for the first one is given.
                    let first = asked.next().and_then(objection);
                    let refused = first.filter(|_| asked.all(|home| objection(home).is_some()));
                    out.stays.insert((n, s), refused.map_or(Stays::Full, Stays::Refused));
                }
            }
        }
        used[n].extend(below);
        // Functions that call each other use all their homes.
        if order.get(at + 1).is_none_or(|&next| analysis.units[next].cycle != unit.cycle) {
            let cycle =
                order[..=at].iter().rev().take_while(|&&other| analysis.units[other].cycle == unit.cycle);
            let members: Vec<usize> = cycle.copied().collect();
            let all: HashSet<Home> =
                members.iter().flat_map(|&member| used[member].iter().copied()).collect();
            members.into_iter().for_each(|member| used[member].clone_from(&all));
        }
    }
    out
}

fn stays(analysis: &Analysis, unit: &Unit, key: (usize, usize), slot: &Slot, wish: &Wish) -> Option<Stays> {
    if let Some(opaque) = unit.opaque {
        return Some(Stays::Opaque(opaque));
    }
    match slot.class {
        Class::Spill | Class::Pointer => (),
        Class::Operand if wish.operands => (),
        class => return Some(Stays::Class(class)),
    }
    if slot.from_outside {
        return Some(Stays::FromOutside);
    }
    if wish.stay.contains(&key) {
        return Some(Stays::Aliased);
    }
    let wanted = match wish.policy {
        Policy::Pointers => slot.class == Class::Pointer,
        Policy::Hottest | Policy::Coldest => true,
    };
    if !wanted || !wish.only.is_empty() && !wish.only.contains(&key) {
        return Some(Stays::NotWanted);
    }
    let s = key.1;
    let outward = |callee: &Callee| match callee {
        Callee::Local(entry) => {
            analysis.at(*entry).is_none_or(|callee| analysis.units[callee].outward.is_some())
        }
        Callee::External(_) | Callee::Unknown => true,
    };
    // A function that is entered again gives its homes new values.
    let reenters = |callee: &Callee| match callee {
        Callee::Local(entry) => {
            analysis.at(*entry).is_some_and(|callee| analysis.units[callee].cycle == unit.cycle)
        }
        _ => false,
    };
    let mut across = unit.function.calls.iter().filter(|(op, _)| unit.live.after[op].contains(&s));
    if let Some((&op, _)) = across.find(|(_, call)| outward(&call.callee) || reenters(&call.callee)) {
        return Some(Stays::Across(op));
    }
    if let Some(op) = slot.uses().find(|op| analysis.shared.contains(op)) {
        return Some(Stays::Shared(op));
    }
    if let Some(op) = slot.uses().find(|&op| !analysis.program.is_plain(op)) {
        return Some(Stays::Operand(op));
    }
    slot.others.iter().copied().find(|&op| !rewritable(analysis, unit, op)).map(Stays::Operand)
}

/// Whether a function, or one that calls it, shares instructions with another function.
fn shares(analysis: &Analysis, n: usize) -> bool {
    let above = |other: &usize| *other == n || analysis.below(*other).contains(&n);
    let has =
        |other: &usize| analysis.units[*other].function.body.iter().any(|op| analysis.shared.contains(op));
    (0..analysis.units.len()).filter(has).any(|other| above(&other))
}

/// Whether an instruction that names a slot as an operand can name a register in its place, and one is free.
fn rewritable(analysis: &Analysis, unit: &Unit, op: usize) -> bool {
    let instruction = &analysis.program.ops[op].instruction;
    let memory = (0..instruction.op_count()).filter(|&n| instruction.op_kind(n) == OpKind::Memory).count();
    let general = (0..instruction.op_count()).all(|n| match instruction.op_kind(n) {
        OpKind::Register => instruction.op_register(n).is_gpr(),
        OpKind::Memory => {
            matches!(instruction.memory_size().size(), 4 | 8) && !instruction.memory_size().is_broadcast()
        }
        _ => true,
    });
    let said = analysis.program.said(op);
    let prefixed = said.split_ascii_whitespace().next().is_none_or(is_prefix);
    memory == 1
        && general
        && takes_register(instruction)
        && !prefixed
        && !said.contains(['"', '{', '\''])
        && rewrite::is_apart(said)
        && unit.registers.free(op).is_some()
}

/// Whether the first word of a statement is a prefix.
fn is_prefix(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    ["data", "addr", "rex", "cs", "ds", "es", "fs", "gs", "ss", "xacquire", "xrelease", "bnd", "notrack"]
        .iter()
        .any(|prefix| {
            word.strip_prefix(prefix).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_lowercase()))
        })
}

/// Slots whose values live at the same time, among the candidates.
fn conflicts(unit: &Unit, candidates: &[usize]) -> HashMap<usize, HashSet<usize>> {
    let wanted: HashSet<usize> = candidates.iter().copied().collect();
    let mut out: HashMap<usize, HashSet<usize>> = HashMap::new();
    for &s in candidates {
        // Writing a slot begins its value, live or not.
        for op in unit.slots[s].uses() {
            for &other in unit.live.after[&op].iter().filter(|other| **other != s && wanted.contains(other)) {
                out.entry(s).or_default().insert(other);
                out.entry(other).or_default().insert(s);
            }
        }
    }
    out
}

/// For each slot, the homes of the callees across whose calls it lives.
fn across_calls(analysis: &Analysis, unit: &Unit, used: &[HashSet<Home>]) -> HashMap<usize, HashSet<Home>> {
    let mut out: HashMap<usize, HashSet<Home>> = HashMap::new();
    for (op, call) in &unit.function.calls {
        let Callee::Local(entry) = call.callee else { continue };
        let Some(callee) = analysis.at(entry) else { continue };
        for &s in &unit.live.after[op] {
            out.entry(s).or_default().extend(&used[callee]);
        }
    }
    out
}
