//! A launch: blocks one after another, the warps of a block in turns.
#![forbid(unsafe_code)]

use std::collections::HashMap;

use super::device_race::DeviceCells;
use super::execute::{Block, Fault, Stop};
use super::memory::Memory;
use super::program::{Code, Kind};
use super::race::Cells;
use super::traffic;
use super::warp::{Given, LANES, State, Warp};
use crate::backend::hosted::{Order, Ran};
use crate::stream::Grid;

/// Instructions of a warp after which a shuffled order may give another one its turn.
const TURN: u32 = 48;

/// A barrier of a block.
#[derive(Clone, Default)]
struct Barrier {
    /// Threads that it is for, once one of them is there.
    threads: u32,
    /// A bit for each warp that has come.
    here: u32,
    waiting: Vec<usize>,
    /// What the arrived warps know (`Clock`).
    account: [u32; 32],
    line: u32,
}

impl Barrier {
    fn arrived(&self) -> u32 {
        self.here.count_ones() * LANES as u32
    }
}

/// The order of turns.
struct Turns {
    order: Order,
    state: u64,
}

impl Turns {
    fn next(&mut self, below: u32) -> u32 {
        // xorshift64, Marsaglia.
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 33) as u32 % below.max(1)
    }

    /// The next warp that can go on, and for how many instructions.
    fn choose(&mut self, warps: &[Warp]) -> Option<(usize, u32)> {
        let ready = |i: &usize| warps[*i].state == State::Ready;
        match self.order {
            Order::Forward => (0..warps.len()).find(ready).map(|i| (i, u32::MAX)),
            Order::Reverse => (0..warps.len()).rev().find(ready).map(|i| (i, u32::MAX)),
            Order::Shuffled(_) => {
                let count = (0..warps.len()).filter(ready).count() as u32;
                let chosen = self.next(count) as usize;
                let turn = 1 + self.next(TURN);
                (0..warps.len()).filter(ready).nth(chosen).map(|i| (i, turn))
            }
        }
    }
}

/// A fault with its block.
pub(super) type Placed = (u32, Fault);

/// The size of a place for races, as a power of two, by the smallest store to it.
fn grain(code: &Code, stores: &[Kind]) -> u32 {
    let bytes = |inst: &super::program::Inst| stores.contains(&inst.kind) && inst.code < 4;
    if code.insts.iter().any(bytes) { 0 } else { 2 }
}

/// Whether warps have no barriers but the whole block's.
fn whole(code: &Code) -> bool {
    let named = |inst: &super::program::Inst| {
        inst.kind == Kind::BarrierArrive || (inst.kind == Kind::BarrierSync && inst.count == 2)
    };
    !code.insts.iter().any(named)
}

/// Returns the most bytes that a block left in shared memory, and how many collectives happened.
pub(super) fn launch(
    code: &Code,
    memory: &mut Memory,
    given: &Given<'_>,
    grid: Grid,
    order: Order,
    counting: bool,
) -> Result<Ran, Placed> {
    let shared = grid.shared as usize;
    let count = (grid.threads as usize).div_ceil(LANES);
    let mut warps: Vec<Warp> = (0..count).map(|number| Warp::new(code, number)).collect();
    let mut block = Block {
        code,
        memory,
        shared: vec![0; shared],
        shared_known: vec![0; shared],
        cells: Cells::new(shared, grain(code, &[Kind::StoreShared]), count, whole(code)),
        device: DeviceCells::new(grain(code, &[Kind::StoreGlobal, Kind::StoreGeneric]), count, whole(code)),
        jumps_first: true,
        executed: 0,
        ran: Ran::default(),
        counting,
        by_line: HashMap::new(),
    };
    let seed = if let Order::Shuffled(seed) = order { seed.into() } else { 0 };
    let mut turns = Turns { order, state: 0x9e37_79b9_7f4a_7c15 ^ seed };
    let mut base = 0;
    for number in 0..grid.blocks {
        // Blocks go whole, and in a shuffled order by rising number too.
        let number = if order == Order::Reverse { grid.blocks - 1 - number } else { number };
        block.shared.fill(0xa5);
        block.shared_known.fill(0);
        base = block.cells.next_block(base);
        block.device.begin(number);
        for warp in &mut warps {
            warp.start(code, given, number, base);
        }
        one(&mut block, &mut warps, &mut turns).map_err(|fault| (number, fault))?;
        base = warps.iter().map(|warp| warp.clock.now()).max().unwrap_or(0);
        block.ran.left = block.ran.left.max(block.left());
    }
    if counting {
        block.ran.accesses = traffic::accesses(code, &block.by_line);
    }
    Ok(block.ran)
}

fn one(block: &mut Block<'_>, warps: &mut [Warp], turns: &mut Turns) -> Result<(), Fault> {
    let mut barriers = vec![Barrier::default(); 16];
    while let Some((chosen, turn)) = turns.choose(warps) {
        if turns.order != Order::Forward {
            block.jumps_first = turns.next(2) == 0;
        }
        match block.run(&mut warps[chosen], turn)? {
            Stop::Turn => {}
            Stop::Ended => warps[chosen].state = State::Ended,
            Stop::Barrier { number, threads, waits, line } => {
                let all = (warps.len() * LANES) as u32;
                let wrong = |why: String| Fault { line, thread: Some((chosen * LANES) as u32), why };
                let ended = warps.iter().filter(|warp| warp.state == State::Ended).count();
                if threads.is_none() && ended > 0 {
                    return Err(wrong(format!(
                        "it waits for the whole block, of which {ended} warps have ended"
                    )));
                }
                let threads = threads.unwrap_or(all);
                let barrier = &mut barriers[number as usize];
                if reach(barrier, warps, chosen, (threads, waits, line, number)).map_err(wrong)? {
                    block.cells.pass();
                    block.device.pass();
                }
            }
        }
    }
    if let Some((number, barrier)) = barriers.iter().enumerate().find(|(_, barrier)| barrier.here != 0) {
        let waiting: Vec<String> = barrier.waiting.iter().map(usize::to_string).collect();
        let who = match waiting.is_empty() {
            true => "no warp waits".to_owned(),
            false => format!("warps {} wait", waiting.join(", ")),
        };
        let why = format!(
            "barrier {number} has {} of {} threads, and nothing else can come: {who}",
            barrier.arrived(),
            barrier.threads
        );
        return Err(Fault { line: barrier.line, thread: None, why });
    }
    Ok(())
}

/// A warp at a barrier. True if that completes it.
fn reach(
    barrier: &mut Barrier,
    warps: &mut [Warp],
    chosen: usize,
    (threads, waits, line, number): (u32, bool, u32, u32),
) -> Result<bool, String> {
    if barrier.here == 0 {
        (barrier.threads, barrier.account) = (threads, [0; 32]);
    } else if barrier.threads != threads {
        let (found, at) = (barrier.threads, barrier.line);
        return Err(format!("barrier {number} is for {threads} threads here and for {found} at line {at}"));
    }
    barrier.line = line;
    if barrier.here >> chosen & 1 == 1 {
        return Err(format!("barrier {number} gets warp {chosen} twice before it is complete"));
    }
    barrier.here |= 1 << chosen;
    let warp = &mut warps[chosen];
    warp.clock.give(&mut barrier.account);
    if waits {
        warp.state = State::Waiting;
        barrier.waiting.push(chosen);
    } else {
        warp.clock.go_on();
    }
    if barrier.arrived() < threads {
        return Ok(false);
    }
    if barrier.waiting.is_empty() {
        return Err(format!("barrier {number} is complete, and no warp waits at it"));
    }
    for waiting in core::mem::take(&mut barrier.waiting) {
        let warp = &mut warps[waiting];
        warp.clock.take(&barrier.account);
        warp.state = State::Ready;
    }
    barrier.here = 0;
    Ok(true)
}
