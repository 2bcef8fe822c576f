//! AVX2, AES-NI and BMI: nibble-sliced products by byte shuffles, for CPUs without GFNI.

mod eliminate;
pub(crate) mod expand;
mod lanes;
mod poly;
mod products;
#[cfg(test)]
mod tests;
mod verify;
mod whip;

use super::{Expand, Kernels, SetKernels, stamp_sets};
use lanes::regs;

macro_rules! set {
    ($params:expr) => {{
        const P: &crate::params::Params = $params;
        const S: usize = P.index();
        const A: usize = regs(P, 0);
        const B: usize = regs(P, 1);
        const NR: usize = P.m.div_ceil(32);
        SetKernels {
            params: P,
            scratch_blocks: products::scratch_blocks(P),
            keygen_blocks: products::scratch_blocks(P),
            keygen: products::keygen::<S, A, B>,
            sign: products::sign::<S, A, B>,
            verify: verify::verify::<S, A, B>,
            whip: whip::whip::<S, NR>,
            solve: eliminate::solve::<S, NR>,
            finish: eliminate::finish::<S>,
            public_blocks: verify::public_blocks(P),
            expand_public: verify::expand_public::<S>,
            verify_expanded: verify::verify_expanded::<S, A, B>,
            secret_blocks: products::secret_blocks(P),
            expand_secret: products::expand_secret::<S, A, B>,
            sign_expanded: products::sign_expanded::<S, A, B>,
        }
    }};
}

/// The symmetric kernels.
pub(crate) const EXPAND: Expand = Expand {
    aes: "aes-ni",
    aes128_ctr: expand::aes128_ctr,
    aes128_ctr_xor: expand::aes128_ctr_xor,
    shake256: expand::shake256,
};

/// The field kernels.
pub(crate) const SETS: [SetKernels; super::SETS] = stamp_sets!(set);

/// The backend.
pub(crate) static KERNELS: Kernels = Kernels { expand: EXPAND, sets: SETS };
