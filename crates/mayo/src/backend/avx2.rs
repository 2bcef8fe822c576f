//! AVX2, AES-NI and BMI: nibble-sliced products by byte shuffles, for CPUs without GFNI.

mod eliminate;
pub(crate) mod expand;
mod lanes;
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
use super::{Expand, Kernels, SetKernels, stamp_sets};
use lanes::regs;

/// Largest expanded key whose operands are laid out unpacked, at twice the size. Above it the gain (14 % for MAYO-1)
/// becomes a loss of a quarter when the key shares a level-2 cache of 1 MiB with other work.
const LAID_OUT_MAX: usize = 256 * 1024;

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
            sign_blocks: products::scratch_blocks(P),
            sign_expanded_blocks: products::scratch_blocks(P),
            keygen: kernel!(keygen: products::keygen::<S, A, B>),
            sign: kernel!(sign: products::sign::<S, A, B>),
            verify: kernel!(verify: verify::verify::<S, A, B>),
            whip: kernel!(whip: whip::whip::<S, NR>),
            solve: kernel!(solve: eliminate::solve::<S, NR>),
            finish: kernel!(finish: eliminate::finish::<S>),
            public_blocks: public::public_blocks(P),
            expand_public: kernel!(expand_public: public::expand_public::<S, A, B>),
            verify_expanded: kernel!(verify_expanded: public::verify_expanded::<S, A, B>),
            secret_blocks: secret::secret_blocks(P),
            expand_secret: kernel!(expand_secret: secret::expand_secret::<S, A, B>),
            sign_expanded: kernel!(sign_expanded: secret::sign_expanded::<S, A, B>),
        }
    }};
}

/// The symmetric kernels.
pub(crate) const EXPAND: Expand = Expand {
    aes: "aes-ni",
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

/// The same arithmetic where AES runs on 256-bit registers (Zen 3; Intel's client chips since Alder Lake).
pub(crate) static KERNELS_VAES: Kernels = Kernels {
    expand: Expand {
        aes: "vaes-256",
        aes128_ctr: super::aesni::vaes256::aes128_ctr,
        aes128_ctr_xor: super::aesni::vaes256::aes128_ctr_xor,
        ..EXPAND
    },
    sets: SETS,
};
