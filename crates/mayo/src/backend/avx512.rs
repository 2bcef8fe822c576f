//! AVX-512 with GFNI and VAES: dense 2x2 affine products, registers as columns in the elimination.

pub(crate) mod eliminate;
pub(crate) mod expand;
mod gf;
mod layout;
pub(crate) mod products;
mod rows;
mod sweep;
#[cfg(test)]
mod tests;
pub(crate) mod whip;

use super::operands::kernel;
use super::{Expand, Kernels, PublicLayout, SetKernels, SetSpec, every_set};
use crate::params::Sizes;

const fn max(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

/// Registers, cells and strides, as generic arguments.
pub struct Widths {
    /// Pairs of vinegar vectors, k / 2 rounded up.
    pub k_pairs: usize,
    /// Pairs of columns of O, o / 2 rounded up.
    pub o_pairs: usize,
    /// Registers of a cell.
    pub cell: usize,
    /// From one table to the next.
    pub stride: usize,
    /// Registers of a pair of columns of the linear system.
    pub columns: usize,
    /// Registers of an m-vector.
    pub registers: usize,
}

impl Widths {
    /// Those of a set.
    #[must_use]
    pub const fn of(sizes: &Sizes) -> Widths {
        Widths {
            k_pairs: sizes.k.div_ceil(2),
            o_pairs: sizes.o.div_ceil(2),
            cell: products::cell(sizes),
            stride: products::table_stride(sizes),
            columns: eliminate::pair_registers(sizes),
            registers: sizes.m_bytes().div_ceil(64),
        }
    }
}

/// The kernels of a set; the generic arguments after it are its [`Widths`].
///
/// # Safety
/// The kernels may be reached only on a CPU with the features that the row `avx512` needs.
#[must_use]
pub const unsafe fn set<
    S: SetSpec,
    const KP: usize,
    const OP: usize,
    const G: usize,
    const JS: usize,
    const ZP: usize,
    const NR: usize,
>() -> SetKernels {
    const {
        let w = Widths::of(S::SIZES);
        assert!(KP == w.k_pairs && OP == w.o_pairs && G == w.cell);
        assert!(JS == w.stride && ZP == w.columns && NR == w.registers);
    }
    SetKernels {
        sizes: S::SIZES,
        keygen_blocks: products::keygen_blocks(S::SIZES),
        sign_blocks: max(products::sign_blocks(S::SIZES), eliminate::scratch_blocks(S::SIZES)),
        sign_expanded_blocks: max(
            products::sign_expanded_blocks(S::SIZES),
            eliminate::scratch_blocks(S::SIZES),
        ),
        scratch_blocks: max(products::scratch_blocks(S::SIZES), eliminate::scratch_blocks(S::SIZES)),
        keygen: kernel!(keygen: products::keygen<S, OP, G>),
        sign: kernel!(sign: products::sign<S, KP, OP, G, JS>),
        verify: kernel!(verify: products::verify<S, KP, G, JS>),
        whip: kernel!(whip: whip::whip<S, NR>),
        solve: kernel!(solve: eliminate::solve<S, NR, ZP>),
        finish: kernel!(finish: eliminate::finish<S>),
        public: Some(PublicLayout {
            blocks: products::public_blocks(S::SIZES),
            expand: kernel!(expand_public: products::expand_public<S, G>),
            verify: kernel!(verify_expanded: products::verify_expanded<S, KP, G, JS>),
        }),
        secret_blocks: products::secret_blocks(S::SIZES),
        expand_secret: kernel!(expand_secret: products::expand_secret<S, OP, G>),
        sign_expanded: kernel!(sign_expanded: products::sign_expanded<S, KP, OP, G, JS>),
    }
}

/// The symmetric kernels.
pub(crate) const EXPAND: Expand = Expand {
    aes: "vaes-512",
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
    // SAFETY: only the row `avx512` has them.
    unsafe { every_set!(avx512) };

/// The backend.
pub(crate) static KERNELS: Kernels = Kernels { expand: EXPAND, sets: SETS };
