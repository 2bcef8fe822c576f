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
use super::{Expand, Kernels, SetKernels, stamp_sets};

const fn max(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

macro_rules! set {
    ($params:expr) => {{
        const P: &crate::params::Params = $params;
        const S: usize = P.index();
        const KP: usize = P.k.div_ceil(2);
        const OP: usize = P.o.div_ceil(2);
        const G: usize = products::cell(P);
        const JS: usize = products::table_stride(P);
        const ZP: usize = eliminate::pair_registers(P);
        const NR: usize = P.m_bytes().div_ceil(64);
        SetKernels {
            params: P,
            keygen_blocks: products::keygen_blocks(P),
            sign_blocks: max(products::sign_blocks(P), eliminate::scratch_blocks(P)),
            sign_expanded_blocks: max(products::sign_expanded_blocks(P), eliminate::scratch_blocks(P)),
            scratch_blocks: max(products::scratch_blocks(P), eliminate::scratch_blocks(P)),
            keygen: kernel!(keygen: products::keygen::<S, OP, G>),
            sign: kernel!(sign: products::sign::<S, KP, OP, G, JS>),
            verify: kernel!(verify: products::verify::<S, KP, G, JS>),
            whip: kernel!(whip: whip::whip::<S, NR>),
            solve: kernel!(solve: eliminate::solve::<S, NR, ZP>),
            finish: kernel!(finish: eliminate::finish::<S>),
            public_blocks: products::public_blocks(P),
            expand_public: kernel!(expand_public: products::expand_public::<S, G>),
            verify_expanded: kernel!(verify_expanded: products::verify_expanded::<S, KP, G, JS>),
            secret_blocks: products::secret_blocks(P),
            expand_secret: kernel!(expand_secret: products::expand_secret::<S, OP, G>),
            sign_expanded: kernel!(sign_expanded: products::sign_expanded::<S, KP, OP, G, JS>),
        }
    }};
}

/// The symmetric kernels.
pub(crate) const EXPAND: Expand = Expand {
    aes: "vaes-512",
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
