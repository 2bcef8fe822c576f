//! AVX-512 without byte permutations, as on the first CPUs that had it: bytes of 64 blocks in a register, and byte shuffles.

mod products;
mod sliced;

use lanework_cpu::{Feature, Features};

use super::Kernels;

/// What the backend needs.
pub(super) const NEEDS: Features = Features::AVX2_AES_BMI_PCLMULQDQ.union(Features::of(&[
    Feature::Avx512f,
    Feature::Avx512bw,
    Feature::Avx512dq,
    Feature::Avx512vl,
]));

/// The backend.
pub(crate) static KERNELS: Kernels = Kernels {
    parallel: 2 * sliced::GROUP,
    blocks: sliced::blocks,
    counter: sliced::counter,
    keystream: sliced::keystream,
    lane_keys_blocks: sliced::LANE_KEYS_BLOCKS,
    set_lane: sliced::set_lane,
    lanes: sliced::lanes,
    chain: super::chain::avx512::chain,
    products: products::products,
};
