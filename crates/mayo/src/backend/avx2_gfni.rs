//! AVX2 with GFNI and VAES: dense 2x2 affine products in 256-bit registers, the rest as `avx2-vaes`.

mod gf;
mod products;
mod rows;
mod sweep;

use super::avx2::{EXPAND_VAES, max, solve_blocks};
use super::operands::kernel;
use super::{Kernels, SetKernels, SetSpec, every_set};
use crate::params::Sizes;

/// Pairs, parts of m-vectors and a stride, as generic arguments.
pub struct Widths {
    /// Pairs of vinegar vectors, k / 2 rounded up.
    pub k_pairs: usize,
    /// Pairs of columns of O, o / 2 rounded up.
    pub o_pairs: usize,
    /// Both together.
    pub pairs: usize,
    /// Slices of an m-vector.
    pub slices: usize,
    /// Tails of an m-vector.
    pub tails: usize,
    /// From one table to the next.
    pub stride: usize,
}

impl Widths {
    /// Those of a set.
    #[must_use]
    pub const fn of(sizes: &Sizes) -> Widths {
        let (slices, tails) = products::parts(sizes);
        Widths {
            k_pairs: sizes.k.div_ceil(2),
            o_pairs: sizes.o.div_ceil(2),
            pairs: sizes.k.div_ceil(2) + sizes.o.div_ceil(2),
            slices,
            tails,
            stride: products::stride(sizes),
        }
    }
}

/// The kernels of a set, those of `avx2` but for the products; the generic arguments after it are its [`Widths`].
///
/// # Safety
/// `avx2` must be that backend's kernels of the same set. The result may be reached only on a CPU with the features that the row
/// `avx2-gfni` needs.
#[must_use]
pub const unsafe fn set<
    S: SetSpec,
    const KP: usize,
    const OP: usize,
    const KO: usize,
    const F: usize,
    const T: usize,
    const JS: usize,
>(
    avx2: SetKernels,
) -> SetKernels {
    const {
        let w = Widths::of(S::SIZES);
        assert!(KP == w.k_pairs && OP == w.o_pairs && KO == w.pairs && KO <= 12);
        assert!(F == w.slices && T == w.tails && JS == w.stride);
    }
    let sign_blocks = max(products::sign_blocks(S::SIZES), solve_blocks(S::SIZES));
    SetKernels {
        scratch_blocks: max(
            max(sign_blocks, products::keygen_blocks(S::SIZES)),
            products::verify_blocks(S::SIZES),
        ),
        keygen_blocks: products::keygen_blocks(S::SIZES),
        sign_blocks,
        sign_expanded_blocks: sign_blocks,
        keygen: kernel!(keygen: products::keygen<S, OP, F, T, JS>),
        sign: kernel!(sign: products::sign<S, KP, OP, KO, F, T, JS>),
        verify: kernel!(verify: products::verify<S, KP, F, T, JS>),
        public: None,
        secret_blocks: products::secret_blocks(S::SIZES),
        expand_secret: kernel!(expand_secret: products::expand_secret<S, OP, F, T, JS>),
        sign_expanded: kernel!(sign_expanded: products::sign_expanded<S, KP, OP, F, T, JS>),
        ..avx2
    }
}

/// The field kernels.
const SETS: [SetKernels; super::SETS] =
    // SAFETY: only the row `avx2-gfni` has them.
    unsafe { every_set!(avx2_gfni) };

/// The backend.
pub(crate) static KERNELS: Kernels = Kernels { expand: EXPAND_VAES, sets: SETS };
