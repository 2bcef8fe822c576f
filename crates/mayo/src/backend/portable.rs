//! Plain constant-time Rust for every CPU: 64-bit words, 16 nibbles each, and nothing else.

pub(crate) mod eliminate;
pub(crate) mod expand;
pub(crate) mod products;
pub(crate) mod whip;
pub(in crate::backend) mod words;

use super::operands::kernel;
use super::{Expand, Kernels, SetKernels, stamp_sets};

macro_rules! set {
    ($params:expr) => {{
        const P: &crate::params::Params = $params;
        const S: usize = P.index();
        const NW: usize = P.m_bytes().div_ceil(8);
        SetKernels {
            params: P,
            scratch_blocks: products::scratch_blocks(P),
            keygen_blocks: products::scratch_blocks(P),
            sign_blocks: products::scratch_blocks(P),
            sign_expanded_blocks: products::scratch_blocks(P),
            keygen: kernel!(keygen: products::keygen::<S, NW>),
            sign: kernel!(sign: products::sign::<S, NW>),
            verify: kernel!(verify: products::verify::<S, NW>),
            whip: kernel!(whip: whip::whip::<S, NW>),
            solve: kernel!(solve: eliminate::solve::<S, NW>),
            finish: kernel!(finish: eliminate::finish::<S>),
            public_blocks: products::public_blocks(P),
            expand_public: kernel!(expand_public: products::expand_public::<S>),
            verify_expanded: kernel!(verify_expanded: products::verify_expanded::<S, NW>),
            secret_blocks: products::secret_blocks(P),
            expand_secret: kernel!(expand_secret: products::expand_secret::<S, NW>),
            sign_expanded: kernel!(sign_expanded: products::sign_expanded::<S, NW>),
        }
    }};
}

/// The symmetric kernels.
pub(crate) const EXPAND: Expand = Expand {
    aes: "bitsliced",
    aes128_ctr: expand::aes128_ctr,
    aes128_ctr_xor: expand::aes128_ctr_xor,
    shake256: expand::shake256,
    shake256_absorb: expand::shake256_absorb,
    lanes: expand::LANES,
    shake256_xn: expand::shake256_xn,
};

/// The field kernels.
pub(crate) const SETS: [SetKernels; super::SETS] = stamp_sets!(set);

/// The backend.
pub(crate) static KERNELS: Kernels = Kernels { expand: EXPAND, sets: SETS };
