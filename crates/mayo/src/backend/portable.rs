//! Plain constant-time Rust for every CPU: 64-bit words, 16 nibbles each, and nothing else.

pub(crate) mod eliminate;
pub(crate) mod expand;
pub(crate) mod products;
pub(crate) mod whip;
pub mod words;

use super::operands::kernel;
use super::{Expand, Kernels, SetKernels, SetSpec, every_set};
use crate::params::Sizes;

/// Words of an m-vector, as a generic argument.
pub struct Widths {
    /// 64-bit words of an m-vector.
    pub words: usize,
}

impl Widths {
    /// Those of a set.
    #[must_use]
    pub const fn of(sizes: &Sizes) -> Widths {
        Widths { words: sizes.m_bytes().div_ceil(8) }
    }
}

/// The kernels of a set; the generic arguments after it are its [`Widths`].
///
/// # Safety
/// None on any CPU: `unsafe` as in the other backends, where it is the features.
#[must_use]
pub const unsafe fn set<S: SetSpec, const NW: usize>() -> SetKernels {
    const { assert!(NW == Widths::of(S::SIZES).words) };
    SetKernels {
        sizes: S::SIZES,
        scratch_blocks: products::scratch_blocks(S::SIZES),
        keygen_blocks: products::scratch_blocks(S::SIZES),
        sign_blocks: products::scratch_blocks(S::SIZES),
        sign_expanded_blocks: products::scratch_blocks(S::SIZES),
        keygen: kernel!(keygen: products::keygen<S, NW>),
        sign: kernel!(sign: products::sign<S, NW>),
        verify: kernel!(verify: products::verify<S, NW>),
        whip: kernel!(whip: whip::whip<S, NW>),
        solve: kernel!(solve: eliminate::solve<S, NW>),
        finish: kernel!(finish: eliminate::finish<S>),
        public: None,
        secret_blocks: products::secret_blocks(S::SIZES),
        expand_secret: kernel!(expand_secret: products::expand_secret<S, NW>),
        sign_expanded: kernel!(sign_expanded: products::sign_expanded<S, NW>),
    }
}

/// The symmetric kernels.
pub(crate) const EXPAND: Expand = Expand {
    aes: "bitsliced",
    aes128_ctr: expand::aes128_ctr,
    aes128_ctr_xor: expand::aes128_ctr_xor,
    shake256: expand::shake256,
    seed_and_stream: None,
    shake256_absorb: expand::shake256_absorb,
    lanes: expand::LANES,
    shake256_xn: expand::shake256_xn,
};

/// The field kernels.
pub(crate) const SETS: [SetKernels; super::SETS] =
    // SAFETY: portable kernels run on any CPU.
    unsafe { every_set!(portable) };

/// The backend.
pub(crate) static KERNELS: Kernels = Kernels { expand: EXPAND, sets: SETS };
