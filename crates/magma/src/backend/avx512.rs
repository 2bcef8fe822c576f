//! AVX-512 with byte permutations.

mod bitslice;
mod chain;
mod circuits;
mod permute;
pub(crate) mod products;
pub(crate) mod tables;
pub(crate) mod words;

use super::Kernels;
use crate::sbox::Sbox;
use crate::schedule::{Counter, Schedule};

/// The backend.
pub(crate) static KERNELS: Kernels = Kernels {
    parallel: 8 * permute::PAIR,
    blocks: permute::blocks,
    counter: permute::counter,
    keystream: permute::keystream,
    lane_keys_blocks: permute::LANE_KEYS_BLOCKS,
    set_lane: permute::set_lane,
    lanes: permute::lanes,
    chain: chain::chain,
    products: products::products,
};

/// The backend that bitslices in bulk.
pub(crate) static BITSLICE: Kernels = Kernels {
    parallel: 2 * bitslice::SET,
    blocks,
    counter,
    keystream,
    lane_keys_blocks: permute::LANE_KEYS_BLOCKS,
    set_lane: permute::set_lane,
    lanes: permute::lanes,
    chain: chain::chain,
    products: products::products,
};

/// # Safety
/// `Features::AVX512`; see `Kernels::blocks`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
unsafe fn blocks(s: &Schedule, input: *const u8, output: *mut u8, n: usize) {
    // SAFETY: the caller's promise; the second call starts behind the `done` blocks of the first.
    unsafe {
        let done = match s.sbox {
            Sbox::Z if n >= 2 * bitslice::SET => bitslice::blocks(s, input, output, n),
            _ => 0,
        };
        permute::blocks(s, input.wrapping_add(8 * done), output.wrapping_add(8 * done), n - done);
    }
}

/// # Safety
/// `Features::AVX512`; see `Kernels::counter`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
unsafe fn counter(s: &Schedule, counter: Counter, input: *const u8, output: *mut u8, n: usize) {
    // SAFETY: the caller's promise; the second call starts behind the `done` blocks of the first.
    unsafe {
        let done = match s.sbox {
            Sbox::Z if n >= 16 * bitslice::SET => bitslice::stream::<true>(s, counter, input, output, n / 8),
            _ => 0,
        };
        let (input, output) = (input.wrapping_add(8 * done), output.wrapping_add(8 * done));
        permute::counter(s, counter.from(done as u32), input, output, n - 8 * done);
    }
}

/// # Safety
/// `Features::AVX512`; see `Kernels::keystream`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
unsafe fn keystream(s: &Schedule, counter: Counter, output: *mut u8, n: usize) {
    // SAFETY: the caller's promise; the second call starts behind the `done` blocks of the first.
    unsafe {
        let done = match s.sbox {
            Sbox::Z if n >= 2 * bitslice::SET => bitslice::stream::<false>(s, counter, output, output, n),
            _ => 0,
        };
        permute::keystream(s, counter.from(done as u32), output.wrapping_add(8 * done), n - done);
    }
}
