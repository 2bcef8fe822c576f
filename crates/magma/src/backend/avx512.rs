//! AVX-512 with byte permutations.

pub(crate) mod few;
pub(crate) mod products;
pub(crate) mod tables;
mod vbmi;

use super::Kernels;

/// The backend.
pub(crate) static KERNELS: Kernels = Kernels {
    parallel: 8 * vbmi::PAIR,
    blocks: vbmi::blocks,
    counter: vbmi::counter,
    keystream: vbmi::keystream,
    lane_keys_blocks: vbmi::LANE_KEYS_BLOCKS,
    set_lane: vbmi::set_lane,
    lanes: vbmi::lanes,
    chain: super::chain::avx512::chain,
    products: products::products,
};
