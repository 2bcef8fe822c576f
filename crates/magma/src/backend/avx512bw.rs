//! AVX-512 without byte permutations, as on the first AVX-512 CPUs: one byte of 64 blocks in a register, and byte
//! shuffles.

mod planes;
mod products;

use lanework_cpu::{Feature, Features};

use super::Kernels;

/// The backend's features.
pub(super) const NEEDS: Features = Features::AVX2_AES_BMI_PCLMULQDQ.union(Features::of(&[
    Feature::Avx512f,
    Feature::Avx512bw,
    Feature::Avx512dq,
    Feature::Avx512vl,
]));

/// The backend.
pub(crate) static KERNELS: Kernels = Kernels {
    parallel: 2 * planes::GROUP,
    blocks: planes::blocks,
    counter: planes::counter,
    keystream: planes::keystream,
    lane_keys_blocks: planes::LANE_KEYS_BLOCKS,
    set_lane: planes::set_lane,
    lanes: planes::lanes,
    chain: super::chain::avx512::chain,
    products: products::products,
};
