//! Plain Rust for any CPU, in constant time: no table, no branch and no address depends on a key or a block.
//!
//! Bulk is bitsliced ([`plane`], [`rounds`], [`circuits`]): 128 blocks are transposed to 64 planes, an S-box is about 15
//! gates, and the rotation by 11 is a renaming. Fewer blocks go eight or one at a time through [`words`].
//!
//! Prediction for 128 blocks under set Z: a round is 124 gates of addition, 121 of substitution and 32 XORs into
//! the other half, 277 in all; at three 128-bit operations a cycle, 32 rounds take 2,950 cycles, the transpositions
//! of 1,000 operations each way 670: 3.5 cycles a byte. Floor at four operations a cycle, with loads, stores and
//! copies free: 2.6. Measured on Zen 4: 4.0.

use lanework_cpu::memory::{Block, wipe};

use super::{Kernels, LANES, LaneBlocks};
use crate::sbox::Sbox;
use crate::schedule::{ByteOrder, Counter, Schedule, wipe_words};

mod circuits;
mod plane;
mod products;
mod rounds;
mod words;

use circuits::{Circuits, CryptoProA, CryptoProB, CryptoProC, CryptoProD, Test, Z};
use plane::{BATCH, Bytes, Half, Plane};
use rounds::{Room, rounds_of_lanes};
use words::{ROW, Row};

/// The backend.
pub(crate) static KERNELS: Kernels = Kernels {
    parallel: BATCH,
    blocks,
    counter,
    keystream,
    lane_keys_blocks: size_of::<LaneKeys>() / size_of::<Block>(),
    set_lane,
    lanes,
    chain: super::chain::plain,
    products: products::products,
};

/// From this many blocks on, a batch is faster than rows. Measured; see DESIGN.md.
const BREAK_EVEN: usize = 33;

/// From this many blocks on, a row is faster than one block after another. Measured.
const ROW_FROM: usize = 3;

/// Calls a function that is generic over the circuits with those of a set, which is public.
macro_rules! with_circuits {
    ($sbox:expr, $f:ident($($arg:expr),*)) => {
        match $sbox {
            Sbox::Z => $f::<Z>($($arg),*),
            Sbox::CryptoProA => $f::<CryptoProA>($($arg),*),
            Sbox::CryptoProB => $f::<CryptoProB>($($arg),*),
            Sbox::CryptoProC => $f::<CryptoProC>($($arg),*),
            Sbox::CryptoProD => $f::<CryptoProD>($($arg),*),
            Sbox::Test => $f::<Test>($($arg),*),
        }
    };
}

/// Zeroes a batch.
fn wipe_batch(batch: &mut Bytes) {
    wipe(batch.as_flattened_mut());
}

/// The number of `n` blocks that go through batches: all, or only whole batches.
const fn in_batches(n: usize) -> usize {
    if n % BATCH >= BREAK_EVEN { n } else { n - n % BATCH }
}

/// The number of `left` blocks to take next where no batch pays: one, or a row.
const fn step(left: usize) -> usize {
    if left < ROW_FROM {
        1
    } else if left < ROW {
        left
    } else {
        ROW
    }
}

/// # Safety
/// See `Kernels::blocks`.
unsafe fn blocks(s: &Schedule, input: *const u8, output: *mut u8, n: usize) {
    let bulk = in_batches(n);
    if bulk > 0 {
        // SAFETY: bulk <= n blocks.
        unsafe { with_circuits!(s.sbox, blocks_in_batches(s, input, output, bulk)) };
    }
    let mut first = bulk;
    while first < n {
        let count = step(n - first);
        // SAFETY: `count` blocks from `first` on are within n; a row holds as many.
        unsafe {
            let input = input.add(8 * first).cast::<[u8; 8]>();
            let output = output.add(8 * first).cast::<[u8; 8]>();
            if count == 1 {
                output.write(s.order.block(words::one(s, s.order.number(input.read()))));
            } else {
                let mut row = [[0u8; 8]; ROW];
                input.copy_to_nonoverlapping(row.as_mut_ptr(), count);
                row = words::eight(s, row.map(|b| s.order.number(b))).map(|b| s.order.block(b));
                output.copy_from_nonoverlapping(row.as_ptr(), count);
            }
        }
        first += count;
    }
}

/// # Safety
/// See `Kernels::blocks`.
unsafe fn blocks_in_batches<S: Circuits>(s: &Schedule, input: *const u8, output: *mut u8, n: usize) {
    let mut room = Room::new();
    let masks = room.fill::<S>(s);
    let mut planes = [[Plane::ZERO; 32]; 2];
    for first in (0..n).step_by(BATCH) {
        let count = (n - first).min(BATCH);
        // SAFETY: `first` < n.
        let (input, output) = unsafe { (input.add(8 * first), output.add(8 * first)) };
        if count == BATCH {
            // SAFETY: 128 blocks are readable and writable; each reference ends before the other begins.
            unsafe {
                plane::to_planes(&*input.cast::<Bytes>(), s.order, &mut planes);
                rounds::rounds::<S>(&mut planes, masks);
                plane::to_blocks(&mut planes, s.order, &mut *output.cast::<Bytes>());
            }
        } else {
            let mut batch: Bytes = [[0; 8]; BATCH];
            // SAFETY: `count` <= 128 blocks are readable.
            unsafe { input.cast::<[u8; 8]>().copy_to_nonoverlapping(batch.as_mut_ptr(), count) };
            plane::to_planes(&batch, s.order, &mut planes);
            rounds::rounds::<S>(&mut planes, masks);
            plane::to_blocks(&mut planes, s.order, &mut batch);
            // SAFETY: the same number is writable.
            unsafe { output.cast::<[u8; 8]>().copy_from_nonoverlapping(batch.as_ptr(), count) };
            wipe_batch(&mut batch);
        }
    }
    rounds::wipe_planes(&mut planes);
}

/// The planes of 128 counters.
fn counters(counter: &Counter, planes: &mut [Half; 2]) {
    if counter.step_low <= 1 && counter.step_high <= 1 {
        planes[0] = plane::counting(counter.low, counter.step_low == 1);
        planes[1] = plane::counting(counter.high, counter.step_high == 1);
    } else {
        let numbers = core::array::from_fn(|i| counter.at(i as u32).to_le_bytes());
        plane::to_planes(&numbers, ByteOrder::Little, planes);
    }
}

/// Passes the first `n` blocks of keystream to `sink`, some at a time, with the number of the first one.
fn generate(s: &Schedule, counter: Counter, n: usize, sink: &mut dyn FnMut(usize, &[[u8; 8]])) {
    let bulk = in_batches(n);
    if bulk > 0 {
        with_circuits!(s.sbox, generate_in_batches(s, counter, bulk, sink));
    }
    let mut first = bulk;
    while first < n {
        let count = step(n - first);
        if count == 1 {
            sink(first, &[s.order.block(words::one(s, counter.at(first as u32)))]);
        } else {
            let row = words::eight(s, core::array::from_fn(|i| counter.at((first + i) as u32)));
            sink(first, &row.map(|b| s.order.block(b))[..count]);
        }
        first += count;
    }
}

fn generate_in_batches<S: Circuits>(
    s: &Schedule,
    counter: Counter,
    n: usize,
    sink: &mut dyn FnMut(usize, &[[u8; 8]]),
) {
    let mut room = Room::new();
    let masks = room.fill::<S>(s);
    let mut planes = [[Plane::ZERO; 32]; 2];
    let mut batch: Bytes = [[0; 8]; BATCH];
    for first in (0..n).step_by(BATCH) {
        counters(&counter.from(first as u32), &mut planes);
        rounds::rounds::<S>(&mut planes, masks);
        plane::to_blocks(&mut planes, s.order, &mut batch);
        sink(first, &batch[..(n - first).min(BATCH)]);
    }
    wipe_batch(&mut batch);
    rounds::wipe_planes(&mut planes);
}

/// # Safety
/// See `Kernels::counter`.
unsafe fn counter(s: &Schedule, counter: Counter, input: *const u8, output: *mut u8, n: usize) {
    generate(s, counter, n.div_ceil(8), &mut |first, gamma| {
        let whole = gamma.len().min(n / 8 - first);
        // SAFETY: `whole` blocks from `first` on are within n bytes. Each is read before it is written.
        unsafe {
            let input = input.add(8 * first).cast::<u64>();
            let output = output.add(8 * first).cast::<u64>();
            for i in 0..whole {
                let sum = input.add(i).read_unaligned() ^ u64::from_ne_bytes(gamma[i]);
                output.add(i).write_unaligned(sum);
            }
        }
        if let Some(last) = gamma.get(whole) {
            for i in 8 * (first + whole)..n {
                // SAFETY: i < n.
                unsafe { output.add(i).write(input.add(i).read() ^ last[i % 8]) };
            }
        }
    });
}

/// # Safety
/// See `Kernels::keystream`.
unsafe fn keystream(s: &Schedule, counter: Counter, output: *mut u8, n: usize) {
    generate(s, counter, n, &mut |first, gamma| {
        // SAFETY: `first` and the sink's number of blocks together are at most n.
        unsafe { output.add(8 * first).copy_from_nonoverlapping(gamma.as_ptr().cast(), 8 * gamma.len()) };
    });
}

/// The keys of all lanes, twice: as planes for many of them and as words for a few.
#[repr(C)]
struct LaneKeys {
    planes: [Half; 8],
    words: [[u32; LANES]; 8],
}

const _: () = assert!(LANES == BATCH && align_of::<LaneKeys>() <= align_of::<Block>());

/// # Safety
/// See `Kernels::set_lane`.
unsafe fn set_lane(keys: &mut [Block], lane: usize, key: &[u32; 8]) {
    // SAFETY: the blocks hold a LaneKeys at a stricter alignment, and every byte pattern is a valid LaneKeys.
    let keys = unsafe { &mut *keys.as_mut_ptr().cast::<LaneKeys>() };
    let (half, bit) = plane::place(lane);
    for (w, &word) in key.iter().enumerate() {
        keys.words[w][lane] = word;
        for (i, plane) in keys.planes[w].iter_mut().enumerate() {
            plane.0[half] = plane.0[half] & !(1 << bit) | u64::from(word >> i & 1) << bit;
        }
    }
}

/// # Safety
/// See `Kernels::lanes`.
unsafe fn lanes(keys: &[Block], sbox: Sbox, order: ByteOrder, data: &mut LaneBlocks, n: usize) {
    // SAFETY: as in `set_lane`.
    let keys = unsafe { &*keys.as_ptr().cast::<LaneKeys>() };
    if n >= BREAK_EVEN {
        let mut planes = [[Plane::ZERO; 32]; 2];
        plane::to_planes(data, order, &mut planes);
        with_circuits!(sbox, rounds_of_lanes(&mut planes, &keys.planes));
        plane::to_blocks(&mut planes, order, data);
        rounds::wipe_planes(&mut planes);
    } else if n < ROW_FROM {
        for (lane, block) in data[..n].iter_mut().enumerate() {
            *block = order.block(words::lane(sbox, &keys.words, lane, order.number(*block)));
        }
    } else {
        for first in (0..n).step_by(ROW) {
            let mut words: [Row; 8] =
                core::array::from_fn(|w| *keys.words[w][first..].first_chunk().expect("whole rows"));
            let row = data[first..].first_chunk_mut().expect("whole rows");
            *row = words::lanes(sbox, order, &words, *row);
            wipe_words(words.as_flattened_mut());
        }
    }
}
