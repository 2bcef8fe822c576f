//! Plain Rust for any CPU.

use lanework_cpu::memory::Block;

use super::{Kernels, LaneBlocks};
use crate::sbox::Sbox;
use crate::schedule::{ByteOrder, Counter, Schedule};
use crate::spec;

/// The backend.
pub(crate) static KERNELS: Kernels = Kernels {
    parallel: 1,
    blocks,
    counter,
    keystream,
    lane_keys_blocks: super::LANES * 32 / 64,
    set_lane,
    lanes,
    products,
};

fn encrypt(s: &Schedule, number: u64) -> u64 {
    spec::rounds(s.sbox.rows(), s.rounds.iter().copied(), number)
}

/// # Safety
/// See `Kernels::blocks`.
unsafe fn blocks(s: &Schedule, input: *const u8, output: *mut u8, n: usize) {
    for i in 0..n {
        // SAFETY: i < n blocks are readable and writable.
        unsafe {
            let block = input.add(8 * i).cast::<[u8; 8]>().read();
            output.add(8 * i).cast::<[u8; 8]>().write(s.order.block(encrypt(s, s.order.number(block))));
        }
    }
}

/// # Safety
/// See `Kernels::counter`.
unsafe fn counter(s: &Schedule, counter: Counter, input: *const u8, output: *mut u8, n: usize) {
    for i in 0..n {
        let gamma = s.order.block(encrypt(s, counter.at((i / 8) as u32)));
        // SAFETY: i < n bytes are readable and writable.
        unsafe { output.add(i).write(input.add(i).read() ^ gamma[i % 8]) };
    }
}

/// # Safety
/// See `Kernels::keystream`.
unsafe fn keystream(s: &Schedule, counter: Counter, output: *mut u8, n: usize) {
    for i in 0..n {
        let gamma = s.order.block(encrypt(s, counter.at(i as u32)));
        // SAFETY: i < n blocks are writable.
        unsafe { output.add(8 * i).cast::<[u8; 8]>().write(gamma) };
    }
}

/// # Safety
/// See `Kernels::set_lane`.
unsafe fn set_lane(keys: &mut [Block], lane: usize, words: &[u32; 8]) {
    for (i, word) in words.iter().enumerate() {
        keys[lane / 2].0[32 * (lane % 2) + 4 * i..][..4].copy_from_slice(&word.to_le_bytes());
    }
}

/// # Safety
/// See `Kernels::lanes`.
unsafe fn lanes(keys: &[Block], sbox: Sbox, order: ByteOrder, data: &mut LaneBlocks, n: usize) {
    for lane in 0..n {
        let key: &[u8; 32] = keys[lane / 2].0[32 * (lane % 2)..][..32].try_into().expect("32 bytes");
        let s = Schedule::encrypt(&ByteOrder::Little.words(key), sbox, order);
        data[lane] = order.block(encrypt(&s, order.number(data[lane])));
    }
}

/// # Safety
/// See `Kernels::products`.
unsafe fn products(h: *const u8, x: *const u8, n: usize, sum: &mut [u64; 2]) {
    for i in 0..n {
        // SAFETY: i < n blocks are readable.
        let (h, x) =
            unsafe { (h.add(8 * i).cast::<[u8; 8]>().read(), x.add(8 * i).cast::<[u8; 8]>().read()) };
        let (h, x) = (u64::from_be_bytes(h), u64::from_be_bytes(x));
        for bit in 0..64 {
            let mask = 0u64.wrapping_sub(x >> bit & 1);
            sum[0] ^= (h & mask) << bit;
            if bit > 0 {
                sum[1] ^= (h & mask) >> (64 - bit);
            }
        }
    }
}
