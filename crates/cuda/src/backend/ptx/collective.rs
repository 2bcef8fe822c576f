//! What the lanes of a warp do together: barriers, shuffles, votes, reductions and products of bits.
#![forbid(unsafe_code)]

use super::execute::{Block, Fault, Stop, each, fault};
use super::program::{Class, Inst, Kind};
use super::warp::{LANES, Warp, Words};

/// One value of all these lanes.
fn uniform(warp: &Warp, inst: &Inst, place: u16, lanes: u32, what: &str) -> Result<u32, Fault> {
    let place = usize::from(place);
    let missing = lanes & !warp.known_words[place];
    if missing != 0 {
        let why = format!("its {what} is a value that nothing has written");
        return Err(fault(warp, inst, each(missing).next(), why));
    }
    let words = &warp.words[place];
    let first = lanes.trailing_zeros() as usize;
    match each(lanes).find(|lane| words[*lane] != words[first]) {
        Some(lane) => {
            let why =
                format!("its {what} is {} here and {} elsewhere in the warp", words[lane], words[first]);
            Err(fault(warp, inst, Some(lane), why))
        }
        None => Ok(words[first]),
    }
}

/// The lanes that an instruction names must be those that reach it together, of those that the block has.
fn together(warp: &Warp, inst: &Inst, place: u16, lanes: u32) -> Result<(), Fault> {
    let members = uniform(warp, inst, place, lanes, "mask of lanes")?;
    whole(warp, inst, members & warp.exists, lanes)
}

fn whole(warp: &Warp, inst: &Inst, members: u32, lanes: u32) -> Result<(), Fault> {
    if members == lanes {
        return Ok(());
    }
    let ended = members & warp.exists & !warp.live;
    let rest = if ended == 0 { String::new() } else { format!(", and {ended:08x} have ended") };
    let why = format!("a part of warp {} is here: lanes {lanes:08x} of {members:08x}{rest}", warp.number);
    Err(fault(warp, inst, None, why))
}

impl Block<'_> {
    /// 9.7.13 bar.sync and bar.arrive, with .aligned: whole warps reach them.
    pub(super) fn barrier(&mut self, warp: &mut Warp, inst: &Inst, lanes: u32) -> Result<Stop, Fault> {
        whole(warp, inst, warp.exists, lanes)?;
        let number = uniform(warp, inst, inst.o[0], lanes, "barrier")?;
        if number > 15 {
            return Err(fault(warp, inst, None, format!("barrier {number}, of 16")));
        }
        let threads = match inst.count {
            2 => Some(uniform(warp, inst, inst.o[1], lanes, "count of threads")?),
            _ => None,
        };
        if let Some(threads) = threads.filter(|n| *n == 0 || n % LANES as u32 != 0) {
            return Err(fault(warp, inst, None, format!("a barrier of {threads} threads: warps have 32")));
        }
        self.ran.collectives += 1;
        Ok(Stop::Barrier { number, threads, waits: inst.kind == Kind::BarrierSync, line: inst.line })
    }

    pub(super) fn collective(&mut self, warp: &mut Warp, inst: &Inst, lanes: u32) -> Result<(), Fault> {
        self.ran.collectives += 1;
        match inst.kind {
            Kind::BarrierWarp => {
                together(warp, inst, inst.o[0], lanes)?;
                if lanes != warp.exists {
                    return Err(fault(warp, inst, None, "a barrier of a part of a warp is not executed"));
                }
                warp.clock.tick();
                Ok(())
            }
            Kind::ShuffleButterfly | Kind::ShuffleIndex => shuffle(warp, inst, lanes),
            Kind::Ballot => {
                together(warp, inst, inst.o[2], lanes)?;
                let place = usize::from(inst.o[1]);
                let known = spread(warp.known_predicates[place], lanes);
                warp.put(inst.o[0], &[warp.predicates[place] & lanes; LANES], lanes, known);
                Ok(())
            }
            Kind::ReduceOr | Kind::ReduceXor => {
                together(warp, inst, inst.o[2], lanes)?;
                let place = usize::from(inst.o[1]);
                let words = &warp.words[place];
                let value = each(lanes).fold(0, |sum, lane| match inst.kind {
                    Kind::ReduceOr => sum | words[lane],
                    _ => sum ^ words[lane],
                });
                let known = spread(warp.known_words[place], lanes);
                warp.put(inst.o[0], &[value; LANES], lanes, known);
                Ok(())
            }
            _ => {
                whole(warp, inst, u32::MAX, lanes)?;
                product(warp, inst, self.code.lists.as_slice());
                Ok(())
            }
        }
    }
}

/// Every lane's result comes from every lane's value.
fn spread(known: u32, lanes: u32) -> u32 {
    if lanes & !known == 0 { u32::MAX } else { 0 }
}

/// 9.7.9 shfl.sync.
fn shuffle(warp: &mut Warp, inst: &Inst, lanes: u32) -> Result<(), Fault> {
    together(warp, inst, inst.o[5], lanes)?;
    let [value, from, segment] = [inst.o[2], inst.o[3], inst.o[4]].map(usize::from);
    let (mut result, mut there, mut unknown) = ([0; LANES], 0, [0; LANES]);
    for lane in each(lanes) {
        let (b, c) = (warp.words[from][lane] & 31, warp.words[segment][lane]);
        let (clamp, mask) = (c & 31, c >> 8 & 31);
        let lowest = lane as u32 & mask;
        let highest = lowest | clamp & !mask;
        let source = match inst.kind {
            Kind::ShuffleButterfly => lane as u32 ^ b,
            _ => lowest | b & !mask,
        };
        let is_there = source <= highest;
        let source = if is_there { source as usize } else { lane };
        if lanes >> source & 1 == 0 {
            let why = format!("it reads from lane {source}, which is not there");
            return Err(fault(warp, inst, Some(lane), why));
        }
        result[lane] = warp.words[value][source];
        there |= u32::from(is_there) << lane;
        unknown[lane] = warp.unknown_bits(Class::Word, inst.o[2], source);
    }
    // Who reads from whom is known.
    for place in [inst.o[3], inst.o[4]] {
        let missing = lanes & !warp.known_words[usize::from(place)];
        if missing != 0 {
            let why = "its lane comes from a value that nothing has written";
            return Err(fault(warp, inst, each(missing).next(), why));
        }
    }
    warp.put(inst.o[0], &result, lanes, u32::MAX);
    warp.mark(Class::Word, inst.o[0], lanes, &unknown);
    warp.put_predicate(inst.o[1], there, lanes, u32::MAX);
    Ok(())
}

/// 9.7.14.5 mma.m16n8k256 of bits: with g = lane / 4 and t = lane % 4, registers a0 and a2 have row g, a1 and a3 row g + 8, at
/// columns 32t (a0, a1) and 128 + 32t; b0 and b1 have column g at the same rows; d0 and d1 are row g, columns 2t and 2t + 1, d2 and
/// d3 of row g + 8.
fn product(warp: &mut Warp, inst: &Inst, lists: &[u16]) {
    let list = &lists[inst.meet as usize..][..14];
    let words: [Words; 10] = core::array::from_fn(|i| warp.words[usize::from(list[4 + i])]);
    let known = list[4..].iter().fold(u32::MAX, |known, place| known & warp.known_words[usize::from(*place)]);
    let (mut left, mut right) = ([[0u32; 8]; 16], [[0u32; 8]; 8]);
    for lane in 0..LANES {
        let (g, t) = (lane / 4, lane % 4);
        (left[g][t], left[g + 8][t]) = (words[0][lane], words[1][lane]);
        (left[g][4 + t], left[g + 8][4 + t]) = (words[2][lane], words[3][lane]);
        (right[g][t], right[g][4 + t]) = (words[4][lane], words[5][lane]);
    }
    for i in 0..4 {
        let mut sums = words[6 + i];
        for (lane, sum) in sums.iter_mut().enumerate() {
            let (row, column) = (lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2);
            for word in 0..8 {
                *sum = sum.wrapping_add((left[row][word] & right[column][word]).count_ones());
            }
        }
        warp.put(list[i], &sums, u32::MAX, spread(known, u32::MAX));
    }
}
