//! AVX2, AES-NI and BMI: nibble-sliced products by byte shuffles, for CPUs without GFNI.

mod eliminate;
pub(crate) mod expand;
pub(super) mod lanes;
mod poly;
mod products;
mod public;
mod secret;
mod shape;
#[cfg(test)]
mod tests;
mod verify;
mod whip;

use super::operands::kernel;
use super::{Expand, Kernels, PublicLayout, SetKernels, SetSpec, every_set};
use crate::params::Sizes;
use lanes::regs;

/// Largest expanded key whose operands are laid out unpacked, at twice the size. Above it the gain (14 % for MAYO-1)
/// becomes a loss of a quarter when the key shares a level-2 cache of 1 MiB with other work.
const LAID_OUT_MAX: usize = 256 * 1024;

/// Registers of an m-vector, as generic arguments.
pub struct Widths {
    /// Registers of the first chunk of a pair of m-vectors, and of the second.
    pub first: usize,
    /// See `first`.
    pub second: usize,
    /// Registers of an m-vector with an element to a byte.
    pub registers: usize,
}

impl Widths {
    /// Those of a set.
    #[must_use]
    pub const fn of(sizes: &Sizes) -> Widths {
        Widths { first: regs(sizes, 0), second: regs(sizes, 1), registers: sizes.m.div_ceil(32) }
    }
}

pub(super) const fn max(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

/// The kernels of a set; the generic arguments after it are its [`Widths`].
///
/// # Safety
/// The kernels may be reached only on a CPU with the features that the row `avx2` needs.
#[must_use]
pub const unsafe fn set<S: SetSpec, const A: usize, const B: usize, const NR: usize>() -> SetKernels {
    const {
        let widths = Widths::of(S::SIZES);
        assert!(A == widths.first && B == widths.second && NR == widths.registers);
    }
    let keygen_blocks = products::keygen_blocks(S::SIZES);
    let sign_blocks = max(products::sign_blocks(S::SIZES), solve_blocks(S::SIZES));
    SetKernels {
        sizes: S::SIZES,
        scratch_blocks: max(max(keygen_blocks, sign_blocks), products::verify_blocks(S::SIZES)),
        keygen_blocks,
        sign_blocks,
        sign_expanded_blocks: sign_blocks,
        keygen: kernel!(keygen: products::keygen<S, A, B>),
        sign: kernel!(sign: products::sign<S, A, B>),
        verify: kernel!(verify: verify::verify<S, A, B>),
        whip: kernel!(whip: whip::whip<S, NR>),
        solve: kernel!(solve: eliminate::solve<S, NR>),
        finish: kernel!(finish: eliminate::finish<S>),
        public: if public::laid_out(S::SIZES) {
            Some(PublicLayout {
                blocks: public::operand_bytes(S::SIZES).div_ceil(64),
                expand: kernel!(expand_public: public::expand_public<S, A, B>),
                verify: kernel!(verify_expanded: public::verify_expanded<S, A, B>),
            })
        } else {
            None
        },
        secret_blocks: secret::secret_blocks(S::SIZES),
        expand_secret: kernel!(expand_secret: secret::expand_secret<S, A, B>),
        sign_expanded: kernel!(sign_expanded: secret::sign_expanded<S, A, B>),
    }
}

/// Scratch of `solve`.
pub(super) const fn solve_blocks(p: &Sizes) -> usize {
    eliminate::scratch_bytes(p).div_ceil(64) + 8
}

/// The symmetric kernels.
pub(crate) const EXPAND: Expand = Expand {
    aes: "aes-ni",
    aes128_ctr: expand::aes128_ctr,
    aes128_ctr_xor: expand::aes128_ctr_xor,
    shake256: expand::shake256,
    seed_and_stream: Some(expand::beside_aesni::seed_and_stream),
    shake256_absorb: expand::shake256_absorb,
    lanes: expand::LANES,
    shake256_xn: expand::shake256_xn,
};

/// The field kernels.
pub(crate) const SETS: [SetKernels; super::SETS] =
    // SAFETY: only the rows `avx2`, `avx2-vaes` and, in part, `avx2-gfni` have them.
    unsafe { every_set!(avx2) };

/// The backend.
pub(crate) static KERNELS: Kernels = Kernels { expand: EXPAND, sets: SETS };

/// The symmetric kernels where AES runs on 256-bit registers (Zen 3; Intel's client chips since Alder Lake).
pub(super) const EXPAND_VAES: Expand = Expand {
    aes: "vaes-256",
    aes128_ctr: super::aesni::vaes256::aes128_ctr,
    aes128_ctr_xor: super::aesni::vaes256::aes128_ctr_xor,
    seed_and_stream: Some(expand::beside_vaes::seed_and_stream),
    ..EXPAND
};

/// The same arithmetic with [`EXPAND_VAES`].
pub(crate) static KERNELS_VAES: Kernels = Kernels { expand: EXPAND_VAES, sets: SETS };
