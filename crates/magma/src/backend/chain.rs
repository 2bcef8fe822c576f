//! Many messages, one step at a time in all of them: the loops of the serial modes over the lanes.
//!
//! A *strand* is a run of blocks of one message that belong to one lane. Each step of a mode encrypts one block in
//! every lane ([`Kernels::lanes`]); between steps, the lanes' states combine with the next block of their strands.
//! Strands lie anywhere in memory, so eight steps' blocks are fetched at once: a row of 64 bytes from each strand,
//! turned by a matrix transposition into eight rows of [`LANES`] blocks, the *tile*.
//!
//! Floor of the fetching, per step of 128 lanes, in core cycles: plain code moves each block by a load and a store,
//! about 130 each way; with AVX-512 eight lanes' eight steps take 16 row loads, 48 shuffles and 16 stores: about 56
//! where 512-bit operations run in halves (Zen 4), else 28 (Zen 5). The 128 encryptions cost at least 1024 or 512.

use alloc::boxed::Box;
use core::marker::PhantomData;
use core::ops::Range;

use lanework_cpu::memory::{self, Block};
use zeroize::Zeroize;

pub(super) use super::LaneBlocks;
use super::{Kernels, LANES};
use crate::sbox::Sbox;
use crate::schedule::ByteOrder;

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;

/// Steps whose blocks are fetched at once: 64 bytes of each strand.
pub(super) const ROWS: usize = 8;

/// The effect of one step on a lane's state s and the next block p of its strand; E is encryption under the lane's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// s = E(s xor p): OMAC.
    Mac,
    /// s = p = E(s xor p): CBC.
    Cbc,
    /// s = p = p xor E(s): CFB.
    Cfb,
    /// p = E(p): ECB. The state is not read.
    Ecb,
    /// p = p xor E(s), then s counts: CTR, and MGM's encryption.
    Counter(Half),
    /// E(s) * p is added to the lane's sum, as in `Kernels::products`; then s counts: MGM's authentication.
    Multiply(Half),
}

/// The half of the state that counts, as a number in the cipher's byte order; a carry out of a half is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    /// The upper 32 bits.
    High,
    /// The lower 32 bits.
    Low,
}

impl Half {
    fn next(self, number: u64) -> u64 {
        match self {
            Half::High => number.wrapping_add(1 << 32),
            Half::Low => number & !0xffff_ffff | u64::from((number as u32).wrapping_add(1)),
        }
    }
}

impl Step {
    pub(super) const fn writes(self) -> bool {
        !matches!(self, Step::Mac | Step::Multiply(_))
    }
}

/// The places of every lane's strand: the next block's address, and the bytes from one block to the next.
pub(crate) struct Places {
    at: [*mut u8; LANES],
    stride: [usize; LANES],
}

/// The operands of `Kernels::chain`: the same steps in some lanes.
pub(crate) struct Chain<'a> {
    /// The backend's kernels, which this kernel may use.
    pub(super) kernels: &'a Kernels,
    /// The keys of all lanes: `lane_keys_blocks` blocks in the backend's layout.
    pub(super) keys: &'a [Block],
    /// The S-box set of all keys.
    pub(super) sbox: Sbox,
    /// The byte order of blocks, and of the numbers that count.
    pub(super) order: ByteOrder,
    /// The operation of every step.
    pub(super) step: Step,
    /// The places of the lanes' strands.
    pub(super) places: &'a Places,
    /// The number of lanes that take the steps, from the first on: 1 to [`LANES`].
    pub(super) lanes: usize,
    /// Blocks of each of these lanes' strands. They are readable and, if the step writes, writable; written blocks of
    /// different lanes are disjoint.
    pub(super) steps: Range<usize>,
}

/// Working memory of [`Kernels::chain`], and the lanes' states. Wiped when dropped.
#[repr(C, align(64))]
pub(crate) struct Scratch {
    /// The state of every lane.
    pub(crate) states: LaneBlocks,
    /// The sum of every lane's products, not reduced: low half, high half.
    pub(crate) sums: [[u64; 2]; LANES],
    pub(super) tile: [LaneBlocks; ROWS],
    /// Rows of multipliers, lane by lane.
    multipliers: [[[u8; 8]; ROWS]; LANES],
    /// Final states of lanes whose strands ended before others.
    ended: LaneBlocks,
}

impl Scratch {
    /// All zeros.
    pub(crate) fn new() -> Box<Scratch> {
        Box::new(Scratch {
            states: [[0; 8]; LANES],
            sums: [[0; 2]; LANES],
            tile: [[[0; 8]; LANES]; ROWS],
            multipliers: [[[0; 8]; ROWS]; LANES],
            ended: [[0; 8]; LANES],
        })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for blocks in [&mut self.states, &mut self.ended].into_iter().chain(&mut self.tile) {
            memory::wipe(blocks.as_flattened_mut());
        }
        memory::wipe(self.multipliers.as_flattened_mut().as_flattened_mut());
        self.sums.as_flattened_mut().zeroize();
    }
}

/// Memory for [`Strands`], kept between walks: filling it again would cost as much as a step.
pub(crate) struct Table {
    places: Places,
    /// Blocks of each strand.
    blocks: [usize; LANES],
}

impl Table {
    /// The table of no strands.
    pub(crate) fn new() -> Box<Table> {
        let places = Places { at: [core::ptr::null_mut(); LANES], stride: [0; LANES] };
        Box::new(Table { places, blocks: [0; LANES] })
    }
}

/// The strands of up to [`LANES`] lanes, which borrow their messages.
pub(crate) struct Strands<'a> {
    table: Box<Table>,
    lanes: usize,
    /// Whether no strand is longer than the one before it.
    sorted: bool,
    /// Blocks of the longest strand, and of the last one added.
    longest: usize,
    last: usize,
    writable: bool,
    messages: PhantomData<&'a mut [u8]>,
}

impl<'a> Strands<'a> {
    fn new(table: Box<Table>, writable: bool) -> Strands<'a> {
        let messages = PhantomData;
        Strands { table, lanes: 0, sorted: true, longest: 0, last: usize::MAX, writable, messages }
    }

    /// No strands yet; their blocks will be read only.
    pub(crate) fn reading(table: Box<Table>) -> Strands<'a> {
        Strands::new(table, false)
    }

    /// No strands yet; their blocks will be written, or read and written.
    pub(crate) fn writing(table: Box<Table>) -> Strands<'a> {
        Strands::new(table, true)
    }

    /// Adds the next lane's strand.
    #[inline]
    fn push(&mut self, at: *mut u8, stride: usize, blocks: usize) {
        // Within the message; an empty strand's address is never dereferenced.
        let Table { places, blocks: all } = &mut *self.table;
        places.at[self.lanes] = at;
        places.stride[self.lanes] = stride;
        all[self.lanes] = blocks;
        self.sorted &= blocks <= self.last;
        self.longest = self.longest.max(blocks);
        self.last = blocks;
        self.lanes += 1;
    }

    /// Adds whole blocks as the next lane's strand.
    ///
    /// # Panics
    /// If all lanes are taken, the bytes are not whole blocks, or these strands are to be written.
    pub(crate) fn read(&mut self, blocks: &'a [u8]) {
        assert!(!self.writable, "strands for reading");
        assert_eq!(blocks.len() % 8, 0, "whole blocks");
        self.push(blocks.as_ptr().cast_mut(), 8, blocks.len() / 8);
    }

    /// Distributes whole blocks over the strands of the next `ways` lanes, one block each in turn.
    ///
    /// # Panics
    /// If fewer lanes are left, the bytes are not whole blocks, or these strands are for reading.
    pub(crate) fn write(&mut self, blocks: &'a mut [u8], ways: usize) {
        assert!(self.writable, "strands for writing");
        assert_eq!(blocks.len() % 8, 0, "whole blocks");
        let (at, n) = (blocks.as_mut_ptr(), blocks.len() / 8);
        if ways == 1 {
            self.push(at, 8, n);
        } else {
            for way in 0..ways {
                self.push(at.wrapping_add(8 * way), 8 * ways, n.saturating_sub(way).div_ceil(ways));
            }
        }
    }
}

impl Kernels {
    /// Processes every strand from its first block to its last, under its lane's key, from its lane's state on. The
    /// state ends as after the strand's last block. Lanes with an empty strand, or none, keep their state.
    ///
    /// It costs least when all strands are equally long, and little more when longer ones come first. The strands'
    /// table is returned for reuse.
    ///
    /// # Panics
    /// If `keys` is shorter than `lane_keys_blocks`, or the step writes and the strands are for reading.
    pub(crate) fn chain(
        &self,
        keys: &[Block],
        sbox: Sbox,
        order: ByteOrder,
        step: Step,
        strands: Strands<'_>,
        scratch: &mut Scratch,
    ) -> Box<Table> {
        assert!(keys.len() >= self.lane_keys_blocks, "the keys of all lanes");
        assert!(strands.writable || !step.writes(), "strands for writing");
        let Strands { mut table, lanes: used, sorted, longest, last, .. } = strands;
        let run = |places: &Places, lanes: usize, steps: Range<usize>, scratch: &mut Scratch| {
            let chain = Chain { kernels: self, keys, sbox, order, step, places, lanes, steps };
            // SAFETY: this value is reachable only through a backend whose features were checked. Every one of the
            // lanes points to the first blocks of its borrowed message, as many as the steps' end, writable if the step
            // writes, or to its block of the sinks with stride 0; messages of different lanes are disjoint because they
            // were borrowed apart or dealt out.
            unsafe { (self.chain)(&chain, scratch) };
        };
        let Table { places, blocks } = &mut *table;
        let blocks = &blocks[..used];
        if sorted && last == longest {
            if longest > 0 {
                run(places, used, 0..longest, scratch);
            }
        } else if sorted {
            scratch.ended[..used].copy_from_slice(&scratch.states[..used]);
            // Lanes end from the last to the first.
            let (mut done, mut running) = (0, used);
            while running > 0 {
                let next = blocks[running - 1];
                if next > done {
                    run(places, running, done..next, scratch);
                    done = next;
                }
                let still = blocks[..running].iter().rposition(|&n| n > next).map_or(0, |last| last + 1);
                if next > 0 {
                    scratch.ended[still..running].copy_from_slice(&scratch.states[still..running]);
                }
                running = still;
            }
            scratch.states[..used].copy_from_slice(&scratch.ended[..used]);
        } else {
            scratch.ended[..used].copy_from_slice(&scratch.states[..used]);
            // Ended strands behind the last running one cost nothing; those before it continue in a sink.
            let mut sinks: LaneBlocks = [[0; 8]; LANES];
            let sink = sinks.as_mut_ptr().cast::<u8>();
            let (mut done, mut running) = (0, used);
            loop {
                for lane in (0..running).filter(|&lane| blocks[lane] == done) {
                    if done > 0 {
                        scratch.ended[lane] = scratch.states[lane];
                    }
                    (places.at[lane], places.stride[lane]) = (sink.wrapping_add(8 * lane), 0);
                }
                running = blocks[..running].iter().rposition(|&n| n > done).map_or(0, |last| last + 1);
                let Some(next) = blocks[..running].iter().copied().filter(|&n| n > done).min() else { break };
                run(places, running, done..next, scratch);
                done = next;
            }
            scratch.states[..used].copy_from_slice(&scratch.ended[..used]);
            memory::wipe(sinks.as_flattened_mut());
        }
        table
    }
}

/// Moves blocks between strands and tile.
trait Fetch {
    /// tile\[t\]\[lane\] = block `first` + t of the lane's strand, for t < rows <= [`ROWS`] and lane < n.
    ///
    /// # Safety
    /// These blocks are readable; the implementation's instructions exist.
    unsafe fn gather(tile: &mut [LaneBlocks; ROWS], places: &Places, n: usize, first: usize, rows: usize);

    /// The opposite of `gather`.
    ///
    /// # Safety
    /// These blocks are writable; the implementation's instructions exist.
    unsafe fn scatter(tile: &[LaneBlocks; ROWS], places: &Places, n: usize, first: usize, rows: usize);
}

/// Block by block, on any CPU.
struct Plain;

impl Plain {
    /// [`Fetch::gather`] for some lanes.
    ///
    /// # Safety
    /// See there.
    #[inline(always)]
    unsafe fn read(
        tile: &mut [LaneBlocks; ROWS],
        places: &Places,
        lanes: Range<usize>,
        first: usize,
        rows: usize,
    ) {
        for lane in lanes {
            let (at, stride) = (places.at[lane], places.stride[lane]);
            for t in 0..rows {
                // SAFETY: the caller's promise.
                tile[t][lane] = unsafe { at.add(stride * (first + t)).cast::<[u8; 8]>().read() };
            }
        }
    }

    /// [`Fetch::scatter`] for some lanes.
    ///
    /// # Safety
    /// See there.
    #[inline(always)]
    unsafe fn write(
        tile: &[LaneBlocks; ROWS],
        places: &Places,
        lanes: Range<usize>,
        first: usize,
        rows: usize,
    ) {
        for lane in lanes {
            let (at, stride) = (places.at[lane], places.stride[lane]);
            for t in 0..rows {
                // SAFETY: the caller's promise.
                unsafe { at.add(stride * (first + t)).cast::<[u8; 8]>().write(tile[t][lane]) };
            }
        }
    }
}

impl Fetch for Plain {
    #[inline(always)]
    unsafe fn gather(tile: &mut [LaneBlocks; ROWS], places: &Places, n: usize, first: usize, rows: usize) {
        // SAFETY: the caller's promises are the callee's.
        unsafe { Plain::read(tile, places, 0..n, first, rows) }
    }

    #[inline(always)]
    unsafe fn scatter(tile: &[LaneBlocks; ROWS], places: &Places, n: usize, first: usize, rows: usize) {
        // SAFETY: the caller's promises are the callee's.
        unsafe { Plain::write(tile, places, 0..n, first, rows) }
    }
}

#[inline(always)]
fn xor(a: &mut LaneBlocks, b: &LaneBlocks) {
    for (a, b) in a.iter_mut().zip(b) {
        *a = (u64::from_ne_bytes(*a) ^ u64::from_ne_bytes(*b)).to_ne_bytes();
    }
}

#[inline(always)]
fn count(states: &mut LaneBlocks, order: ByteOrder, half: Half) {
    for state in states {
        *state = order.block(half.next(order.number(*state)));
    }
}

/// The steps over any backend's `lanes`.
///
/// # Safety
/// See `Kernels::chain`'s field.
#[inline(always)]
unsafe fn steps_by<F: Fetch>(chain: &Chain<'_>, scratch: &mut Scratch) {
    let Chain { kernels, keys, sbox, order, step, places, lanes: n, ref steps } = *chain;
    let Scratch { states, sums, tile, multipliers, .. } = scratch;
    // SAFETY: the caller's promise covers n, the keys and the features.
    let encrypt = |blocks: &mut LaneBlocks| unsafe { (kernels.lanes)(keys, sbox, order, blocks, n) };
    for first in steps.clone().step_by(ROWS) {
        let rows = ROWS.min(steps.end - first);
        if !matches!(step, Step::Multiply(_)) {
            // SAFETY: first + rows <= steps.end blocks of n lanes are readable.
            unsafe { F::gather(tile, places, n, first, rows) };
        }
        for p in &mut tile[..rows] {
            match step {
                Step::Mac => {
                    xor(states, p);
                    encrypt(states);
                }
                Step::Cbc => {
                    xor(states, p);
                    encrypt(states);
                    *p = *states;
                }
                Step::Cfb => {
                    encrypt(states);
                    xor(states, p);
                    *p = *states;
                }
                Step::Ecb => encrypt(p),
                Step::Counter(half) => {
                    let mut gamma = *states;
                    encrypt(&mut gamma);
                    xor(p, &gamma);
                    count(states, order, half);
                }
                Step::Multiply(half) => {
                    *p = *states;
                    encrypt(p);
                    count(states, order, half);
                }
            }
        }
        if step.writes() {
            // SAFETY: first + rows <= steps.end blocks of n lanes are writable.
            unsafe { F::scatter(tile, places, n, first, rows) };
        }
        if let Step::Multiply(_) = step {
            // Transposes the multipliers from a row for each step to a row for each lane, beside the strand's own
            // blocks.
            let mut at = [core::ptr::null_mut(); LANES];
            for (at, row) in at.iter_mut().zip(&mut *multipliers) {
                *at = row.as_mut_ptr().cast();
            }
            // SAFETY: `rows` blocks of every lane's own row are writable.
            unsafe { F::scatter(tile, &Places { at, stride: [8; LANES] }, n, 0, rows) };
            for lane in 0..n {
                let (h, stride) = (at[lane].cast_const(), places.stride[lane]);
                let x = places.at[lane].wrapping_add(stride * first).cast_const();
                let sum = &mut sums[lane];
                // SAFETY: the same blocks of the strand as above, in one run or one by one, and as many of the row.
                unsafe {
                    if stride == 8 {
                        (kernels.products)(h, x, rows, sum);
                    } else {
                        (0..rows).for_each(|t| (kernels.products)(h.add(8 * t), x.add(stride * t), 1, sum));
                    }
                }
            }
        }
    }
}

/// For any backend.
///
/// # Safety
/// See `Kernels::chain`'s field.
pub(super) unsafe fn plain(chain: &Chain<'_>, scratch: &mut Scratch) {
    // SAFETY: the caller's promises are the callee's.
    unsafe { steps_by::<Plain>(chain, scratch) }
}
