//! AVX-512 with byte permutations.

mod bitslice;
mod chain;
mod circuits;
pub(crate) mod few;
pub(crate) mod products;
pub(crate) mod tables;
mod vbmi;

use super::Kernels;
use crate::sbox::Sbox;
use crate::schedule::{Counter, Schedule};

/// The backend.
pub(crate) static KERNELS: Kernels = Kernels {
    parallel: 8 * vbmi::PAIR,
    blocks: vbmi::blocks,
    counter: vbmi::counter,
    keystream: vbmi::keystream,
    lane_keys_blocks: vbmi::LANE_KEYS_BLOCKS,
    set_lane: vbmi::set_lane,
    lanes: vbmi::lanes,
    chain: chain::chain,
    products: products::products,
};

/// The backend whose bulk is bitsliced.
pub(crate) static BITSLICE: Kernels = Kernels {
    parallel: 2 * bitslice::SET,
    blocks,
    counter,
    keystream,
    lane_keys_blocks: vbmi::LANE_KEYS_BLOCKS,
    set_lane: vbmi::set_lane,
    lanes: vbmi::lanes,
    chain: chain::chain,
    products: products::products,
};

/// # Safety
/// `Features::AVX512`; see `Kernels::blocks`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
unsafe fn blocks(s: &Schedule, input: *const u8, output: *mut u8, n: usize) {
    // SAFETY: what the first has not done the second does.
    unsafe {
        let done = match s.sbox {
            Sbox::Z if n >= 2 * bitslice::SET => bitslice::blocks(s, input, output, n),
            _ => 0,
        };
        vbmi::blocks(s, input.wrapping_add(8 * done), output.wrapping_add(8 * done), n - done);
    }
}

/// # Safety
/// `Features::AVX512`; see `Kernels::counter`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
unsafe fn counter(s: &Schedule, counter: Counter, input: *const u8, output: *mut u8, n: usize) {
    // SAFETY: what the first has not done the second does.
    unsafe {
        let done = match s.sbox {
            Sbox::Z if n >= 16 * bitslice::SET => bitslice::stream::<true>(s, counter, input, output, n / 8),
            _ => 0,
        };
        let (input, output) = (input.wrapping_add(8 * done), output.wrapping_add(8 * done));
        vbmi::counter(s, counter.from(done as u32), input, output, n - 8 * done);
    }
}

/// # Safety
/// `Features::AVX512`; see `Kernels::keystream`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
unsafe fn keystream(s: &Schedule, counter: Counter, output: *mut u8, n: usize) {
    // SAFETY: what the first has not done the second does.
    unsafe {
        let done = match s.sbox {
            Sbox::Z if n >= 2 * bitslice::SET => bitslice::stream::<false>(s, counter, output, output, n),
            _ => 0,
        };
        vbmi::keystream(s, counter.from(done as u32), output.wrapping_add(8 * done), n - done);
    }
}
