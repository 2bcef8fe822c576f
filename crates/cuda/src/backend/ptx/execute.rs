//! One warp at a time, one instruction for all of its lanes.
//!
//! Paths of a warp that part at a branch meet at the branch's nearest common point, as compilers assume; a device may let them
//! part for longer, and then only `bar.warp.sync` joins them.
#![forbid(unsafe_code)]

use std::collections::HashMap;

use super::alu;
use super::device_race::DeviceCells;
use super::follow::follow;
use super::memory::Memory;
use super::program::{Code, Compare, Inst, Kind, NEVER};
use super::race::Cells;
use super::warp::{LANES, Path, Warp};
use crate::backend::hosted::{Ran, Traffic};

/// What a kernel must not do, and where it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// The line of the text.
    pub(super) line: u32,
    /// The thread of the block, if it is one alone.
    pub(super) thread: Option<u32>,
    pub(super) why: String,
}

/// Why a warp's turn ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// Its turn is over.
    Turn,
    /// All its threads have ended.
    Ended,
    /// It is at a barrier with this number, for so many threads, and waits there or not.
    Barrier { number: u32, threads: Option<u32>, waits: bool, line: u32 },
}

/// A block's state besides its warps.
pub(super) struct Block<'a> {
    pub(super) code: &'a Code,
    pub(super) memory: &'a mut Memory,
    pub(super) shared: Vec<u8>,
    pub(super) shared_known: Vec<u8>,
    pub(super) cells: Cells,
    pub(super) device: DeviceCells,
    /// Whether the path that jumps goes first.
    pub(super) jumps_first: bool,
    /// Instructions so far, which is what `%clock64` counts.
    pub(super) executed: u64,
    pub(super) ran: Ran,
    /// Whether `ran.traffic` is counted.
    pub(super) counting: bool,
    /// Executions of each line with an access, and what they asked for, if that is counted.
    pub(super) by_line: HashMap<u32, (u64, Traffic)>,
}

/// The lanes of a mask.
pub(super) fn each(mut lanes: u32) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let lane = lanes.trailing_zeros() as usize;
        (lanes != 0).then(|| {
            lanes &= lanes - 1;
            lane
        })
    })
}

pub(super) fn fault(warp: &Warp, inst: &Inst, lane: Option<usize>, why: impl Into<String>) -> Fault {
    let thread = lane.map(|lane| (warp.number * LANES + lane) as u32);
    Fault { line: inst.line, thread, why: why.into() }
}

#[inline(always)]
fn compare<T: Ord>(code: u8, warp: &mut Warp, f: impl FnOnce(&mut Warp, fn(T, T) -> bool)) {
    match Compare::ALL[usize::from(code)] {
        Compare::Eq => f(warp, |a, b| a == b),
        Compare::Ne => f(warp, |a, b| a != b),
        Compare::Lt => f(warp, |a, b| a < b),
        Compare::Le => f(warp, |a, b| a <= b),
        Compare::Gt => f(warp, |a, b| a > b),
        Compare::Ge => f(warp, |a, b| a >= b),
    }
}

impl Block<'_> {
    /// Runs a warp until it has to wait, ends, or has had so many instructions.
    pub(super) fn run(&mut self, warp: &mut Warp, mut turn: u32) -> Result<Stop, Fault> {
        let code = self.code;
        loop {
            let Some(path) = warp.paths.last_mut() else { return Ok(Stop::Ended) };
            if path.at == path.meet || path.lanes == 0 {
                warp.paths.pop();
                continue;
            }
            if turn == 0 {
                return Ok(Stop::Turn);
            }
            turn -= 1;
            self.executed += 1;
            let inst = &code.insts[path.at as usize];
            let on_path = path.lanes;
            path.at += 1;
            let guard = usize::from(inst.guard);
            let flip = if inst.negated { u32::MAX } else { 0 };
            let lanes = on_path & (warp.predicates[guard] ^ flip);
            let unknown = on_path & !warp.known_predicates[guard];
            if unknown != 0 {
                let lane = each(unknown).next();
                return Err(fault(
                    warp,
                    inst,
                    lane,
                    "what is done depends on a value that nothing has written",
                ));
            }
            if lanes == 0 {
                continue;
            }
            match inst.kind {
                Kind::Branch => self.branch(warp, inst, on_path, lanes),
                Kind::Return => {
                    warp.paths.iter_mut().for_each(|path| path.lanes &= !lanes);
                    warp.live &= !lanes;
                }
                Kind::BarrierSync | Kind::BarrierArrive => return self.barrier(warp, inst, lanes),
                kind => {
                    let followed = warp.follows && follow(warp, inst, lanes);
                    if !followed && !compute(warp, inst, kind, lanes) {
                        self.other(warp, inst, lanes)?;
                    }
                }
            }
        }
    }

    fn branch(&mut self, warp: &mut Warp, inst: &Inst, on_path: u32, lanes: u32) {
        let (target, rest) = (inst.aux as u32, on_path & !lanes);
        let Some(path) = warp.paths.last_mut() else { return };
        if rest == 0 {
            path.at = target;
            return;
        }
        let (next, meet) = (path.at, inst.meet);
        // Where the enclosing paths meet at the same place, or nowhere, nothing is left to do there.
        if meet == NEVER || meet == path.meet {
            warp.paths.pop();
        } else {
            path.at = meet;
        }
        let jump = Path { at: target, meet, lanes };
        let stay = Path { at: next, meet, lanes: rest };
        let both = if self.jumps_first { [stay, jump] } else { [jump, stay] };
        warp.paths.extend(both.into_iter().filter(|path| path.at != meet));
    }

    /// Everything but arithmetic.
    fn other(&mut self, warp: &mut Warp, inst: &Inst, lanes: u32) -> Result<(), Fault> {
        match inst.kind {
            Kind::LoadGlobal | Kind::LoadShared | Kind::LoadLocal | Kind::LoadGeneric => {
                self.load(warp, inst, lanes)
            }
            Kind::StoreGlobal | Kind::StoreShared | Kind::StoreLocal | Kind::StoreGeneric => {
                self.store(warp, inst, lanes)
            }
            Kind::AtomicXorShared => self.atomic_xor(warp, inst, lanes),
            Kind::CopyAsync | Kind::CopyCommit | Kind::CopyWait => self.copy(warp, inst, lanes),
            Kind::Allocate | Kind::Free => self.heap(warp, inst, lanes),
            Kind::Clock => {
                warp.put_long(inst.o[0], &[self.executed; LANES], lanes, u32::MAX);
                Ok(())
            }
            _ => self.collective(warp, inst, lanes),
        }
    }
}

/// Arithmetic, logic, comparisons and conversions. False for everything else.
#[inline(always)]
pub(super) fn compute(warp: &mut Warp, inst: &Inst, kind: Kind, lanes: u32) -> bool {
    let (o, mask) = (&inst.o, inst.aux as u32);
    match kind {
        Kind::Move => warp.map1(o, lanes, |a| a),
        Kind::And => warp.map2(o, lanes, |a, b| a & b),
        Kind::Or => warp.map2(o, lanes, |a, b| a | b),
        Kind::Xor => warp.map2(o, lanes, |a, b| a ^ b),
        Kind::Not => warp.map1(o, lanes, |a| !a & mask),
        Kind::Neg => warp.map1(o, lanes, |a| a.wrapping_neg() & mask),
        Kind::Add => warp.map2(o, lanes, |a, b| a.wrapping_add(b) & mask),
        Kind::Sub => warp.map2(o, lanes, |a, b| a.wrapping_sub(b) & mask),
        Kind::MulLo => warp.map2(o, lanes, |a, b| a.wrapping_mul(b) & mask),
        Kind::MadLo => warp.map3(o, lanes, |a, b, c| a.wrapping_mul(b).wrapping_add(c)),
        Kind::Shl => warp.map2(o, lanes, |a, b| alu::shl(a, b) & mask),
        Kind::ShrUnsigned => warp.map2(o, lanes, alu::shr),
        Kind::ShrSigned => warp.map2(o, lanes, alu::shr_signed),
        Kind::MinUnsigned => warp.map2(o, lanes, u32::min),
        Kind::MaxUnsigned => warp.map2(o, lanes, u32::max),
        Kind::DivUnsigned => divide(warp, inst, lanes),
        Kind::FunnelLeft => warp.map3(o, lanes, alu::funnel_left),
        Kind::FunnelRight => warp.map3(o, lanes, alu::funnel_right),
        Kind::Insert => warp.map4(o, lanes, alu::insert),
        Kind::Permute => warp.map3(o, lanes, alu::permute),
        Kind::Logic3 => warp.map4(o, lanes, alu::logic3),
        Kind::Dot4 => warp.map3(o, lanes, alu::dot4),
        Kind::Dot2 => warp.map3(o, lanes, alu::dot2),
        Kind::Pack => warp.map2(o, lanes, |a, b| a & 0xffff | b << 16),
        Kind::MulWide16 => warp.map2(o, lanes, |a, b| (a & 0xffff) * (b & 0xffff)),
        Kind::MulWideUnsigned => warp.map_wide(o, lanes, |a, b| u64::from(a) * u64::from(b)),
        Kind::MulWideSigned => {
            warp.map_wide(o, lanes, |a, b| (i64::from(a as i32) * i64::from(b as i32)) as u64);
        }
        Kind::Select => select(warp, inst, lanes),
        Kind::MoveLong => warp.map_long1(o, lanes, |a| a),
        Kind::AndLong => warp.map_long2(o, lanes, |a, b| a & b),
        Kind::OrLong => warp.map_long2(o, lanes, |a, b| a | b),
        Kind::XorLong => warp.map_long2(o, lanes, |a, b| a ^ b),
        Kind::NotLong => warp.map_long1(o, lanes, |a| !a),
        Kind::NegLong => warp.map_long1(o, lanes, u64::wrapping_neg),
        Kind::AddLong => warp.map_long2(o, lanes, u64::wrapping_add),
        Kind::SubLong => warp.map_long2(o, lanes, u64::wrapping_sub),
        Kind::MulLoLong => warp.map_long2(o, lanes, u64::wrapping_mul),
        Kind::MulHiLong => {
            warp.map_long2(o, lanes, |a, b| ((u128::from(a) * u128::from(b)) >> 64) as u64);
        }
        Kind::ShlLong => warp.map_mixed(o, lanes, alu::shl_long),
        Kind::ShrLong => warp.map_mixed(o, lanes, alu::shr_long),
        Kind::InsertLong => insert_long(warp, inst, lanes),
        Kind::SelectLong => select_long(warp, inst, lanes),
        Kind::MovePredicate => warp.logic_predicate(&[o[0], o[1], o[1], 0, 0, 0], lanes, |a, _| a),
        Kind::AndPredicate => warp.logic_predicate(o, lanes, |a, b| a & b),
        Kind::OrPredicate => warp.logic_predicate(o, lanes, |a, b| a | b),
        Kind::XorPredicate => warp.logic_predicate(o, lanes, |a, b| a ^ b),
        Kind::NotPredicate => warp.logic_predicate(&[o[0], o[1], o[1], 0, 0, 0], lanes, |a, _| !a),
        Kind::SetUnsigned => compare(inst.code, warp, |warp, f| warp.compare(o, lanes, f)),
        Kind::SetSigned => {
            compare(inst.code, warp, |warp, f| warp.compare(o, lanes, |a, b| f(a as i32, b as i32)));
        }
        Kind::SetUnsignedLong => compare(inst.code, warp, |warp, f| warp.compare_long(o, lanes, f)),
        Kind::SetSignedLong => {
            compare(inst.code, warp, |warp, f| warp.compare_long(o, lanes, |a, b| f(a as i64, b as i64)));
        }
        Kind::Narrow => warp.map1(o, lanes, |a| a & mask),
        Kind::Widen => warp.map_wide(&[o[0], o[1], o[1], 0, 0, 0], lanes, |a, _| u64::from(a & mask)),
        Kind::Shorten => {
            let known = warp.known_longs[usize::from(o[1])];
            let value = warp.longs[usize::from(o[1])].map(|a| a as u32 & mask);
            warp.put(o[0], &value, lanes, known);
        }
        Kind::Extend => {
            let bits = inst.code.into();
            warp.map_wide(&[o[0], o[1], o[1], 0, 0, 0], lanes, |a, _| alu::extend(a, bits));
        }
        Kind::ExtendWord => {
            let bits = inst.code.into();
            warp.map1(o, lanes, |a| alu::extend(a, bits) as u32 & mask);
        }
        _ => return false,
    }
    true
}

/// 9.7.1: division by zero gives an unspecified value.
fn divide(warp: &mut Warp, inst: &Inst, lanes: u32) {
    let [a, b] = [inst.o[1], inst.o[2]].map(usize::from);
    let divisor = warp.words[b];
    let value =
        core::array::from_fn(|lane| warp.words[a][lane].checked_div(divisor[lane]).unwrap_or(u32::MAX));
    let zero = each(lanes).filter(|lane| divisor[*lane] == 0).fold(0, |mask, lane| mask | 1 << lane);
    warp.put(inst.o[0], &value, lanes, warp.known_words[a] & warp.known_words[b] & !zero);
}

/// 9.7.7 selp: the value that is not taken need not be known.
fn select(warp: &mut Warp, inst: &Inst, lanes: u32) {
    let [a, b, p] = [inst.o[1], inst.o[2], inst.o[3]].map(usize::from);
    let taken = warp.predicates[p];
    let mut value = [0; LANES];
    for lane in 0..LANES {
        value[lane] = if taken >> lane & 1 == 1 { warp.words[a][lane] } else { warp.words[b][lane] };
    }
    let known = (taken & warp.known_words[a] | !taken & warp.known_words[b]) & warp.known_predicates[p];
    warp.put(inst.o[0], &value, lanes, known);
}

fn select_long(warp: &mut Warp, inst: &Inst, lanes: u32) {
    let [a, b, p] = [inst.o[1], inst.o[2], inst.o[3]].map(usize::from);
    let taken = warp.predicates[p];
    let mut value = [0; LANES];
    for lane in 0..LANES {
        value[lane] = if taken >> lane & 1 == 1 { warp.longs[a][lane] } else { warp.longs[b][lane] };
    }
    let known = (taken & warp.known_longs[a] | !taken & warp.known_longs[b]) & warp.known_predicates[p];
    warp.put_long(inst.o[0], &value, lanes, known);
}

fn insert_long(warp: &mut Warp, inst: &Inst, lanes: u32) {
    let [a, b, c, d] = [inst.o[1], inst.o[2], inst.o[3], inst.o[4]].map(usize::from);
    let value = core::array::from_fn(|lane| {
        let (position, length) = (warp.words[c][lane], warp.words[d][lane]);
        alu::insert_long(warp.longs[a][lane], warp.longs[b][lane], position, length)
    });
    let known = warp.known_longs[a] & warp.known_longs[b] & warp.known_words[c] & warp.known_words[d];
    warp.put_long(inst.o[0], &value, lanes, known);
}
