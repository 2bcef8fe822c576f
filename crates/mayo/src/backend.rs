//! The contract that every backend fulfils, and the table of backends.
//!
//! A backend is a set of coarse kernels: the symmetric ones ([`Expand`]) and, for each parameter set, the field ones
//! (`SetKernels`). They exchange plain formats, so that any two backends can be compared phase by phase:
//!
//! * *elements*: one field element per byte, in the low nibble, the high one 0;
//! * *m-vector*: m elements packed two to a byte, low nibble first: `m_bytes` bytes, without padding between vectors;
//! * *padded m-vector*: the same in `stride` = `m_bytes` rounded up to 64 bytes, zero behind the last element;
//! * P: the m-vectors of P1 then P2 as expanded, followed by at least `SLACK` readable bytes of any value.
//!
//! Kernels are `unsafe fn` pointers because they assume the instruction set that their row in [`BACKENDS`] names. They
//! are reached only through `lanework_cpu::Backend::get`, which checks it; the safe methods here rest on that. Leak
//! class: `keygen`, `sign`, `solve`, `finish`, `expand_secret`, `sign_expanded` and the three of SHAKE256 take secrets
//! and run in constant time except for the one bit that `solve` returns; the others take public data only.

#[cfg(target_arch = "x86_64")]
use lanework_cpu::Feature;
use lanework_cpu::{Backend, Backends, Features};

use crate::params::Params;
use crate::sys::Block;
use crate::workspace::Workspace;
use operands::{ExpandPublic, ExpandSecret, Finish, Keygen, Matrices, Sign, Solve, Verify, Whip};

#[cfg(target_arch = "x86_64")]
pub(crate) mod aesni;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
#[cfg(test)]
mod expand_tests;
#[cfg(feature = "study")]
pub(crate) mod inside;
pub(crate) mod operands;
pub(crate) mod portable;
pub(crate) mod sponge;

/// Bytes that kernels may read, but not use, behind P, P3 and lambda.
pub(crate) const SLACK: usize = 128;

/// The symmetric kernels of one backend.
#[derive(Clone, Copy, Debug)]
pub struct Expand {
    /// The AES implementation, for the machine-readable record: `bitsliced`, `aes-ni`, `vaes-512`.
    pub(crate) aes: &'static str,
    pub(crate) aes128_ctr: unsafe fn(&[u8; 16], u32, &mut [u8]),
    pub(crate) aes128_ctr_xor: unsafe fn(&[u8; 16], &[u8; 16], &mut [u8]),
    pub(crate) shake256: unsafe fn(&[&[u8]], &mut [u8]),
    pub(crate) shake256_absorb: unsafe fn(&mut [u64; 25], &[u8]),
    /// Messages that `shake256_xn` hashes in about the time of one.
    pub(crate) lanes: usize,
    pub(crate) shake256_xn: unsafe fn(&[&[u8]], &mut [&mut [u8]]),
}

impl Expand {
    /// AES-128-CTR keystream under a public key: block i is AES(key, BE128(i)), from `first_block` on.
    pub fn aes128_ctr(&self, key: &[u8; 16], first_block: u32, out: &mut [u8]) {
        // SAFETY: this value is reachable only through a backend whose features were checked; slices carry lengths.
        unsafe { (self.aes128_ctr)(key, first_block, out) }
    }

    /// Block i is AES(key, nonce xor BE128(i)); public data.
    pub fn aes128_ctr_xor(&self, key: &[u8; 16], nonce: &[u8; 16], out: &mut [u8]) {
        // SAFETY: as above.
        unsafe { (self.aes128_ctr_xor)(key, nonce, out) }
    }

    /// SHAKE256 of the concatenated parts; secret data, constant time for given lengths.
    pub fn shake256(&self, parts: &[&[u8]], out: &mut [u8]) {
        // SAFETY: as above.
        unsafe { (self.shake256)(parts, out) }
    }

    /// Absorbs whole blocks of SHAKE256 into `state`, with the permutation behind each; secret data, constant time for
    /// given lengths.
    pub(crate) fn shake256_absorb(&self, state: &mut [u64; 25], blocks: &[u8]) {
        // SAFETY: as above.
        unsafe { (self.shake256_absorb)(state, blocks) }
    }

    /// Messages that [`Expand::shake256_xn`] hashes side by side.
    #[must_use]
    pub const fn lanes(&self) -> usize {
        self.lanes
    }

    /// SHAKE256 of each message into the output of the same index; secret data, constant time for given lengths. Any
    /// number of them, side by side where all messages have one length and all outputs too.
    ///
    /// # Panics
    /// If there are not as many outputs as messages.
    pub fn shake256_xn(&self, messages: &[&[u8]], outs: &mut [&mut [u8]]) {
        assert_eq!(messages.len(), outs.len(), "an output for each message");
        // SAFETY: as above.
        unsafe { (self.shake256_xn)(messages, outs) }
    }
}

/// The field kernels of one backend for one parameter set. The operands' types say what each computes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SetKernels {
    pub(crate) params: &'static Params,
    /// Blocks of scratch that any kernel of this set needs.
    pub(crate) scratch_blocks: usize,
    /// Blocks at the front of scratch that `keygen` uses; the others need no wiping.
    pub(crate) keygen_blocks: usize,
    /// The same for `sign` and `solve`, and for `sign_expanded` and `solve`.
    pub(crate) sign_blocks: usize,
    pub(crate) sign_expanded_blocks: usize,
    pub(crate) keygen: unsafe fn(Keygen<'_>),
    pub(crate) sign: unsafe fn(Sign<'_, &[u8]>),
    pub(crate) verify: unsafe fn(Verify<'_, Matrices<'_>>),
    pub(crate) whip: unsafe fn(Whip<'_>),
    pub(crate) solve: unsafe fn(Solve<'_>) -> bool,
    pub(crate) finish: unsafe fn(Finish<'_>),
    /// Blocks of an expanded public key in this backend's own layout.
    pub(crate) public_blocks: usize,
    pub(crate) expand_public: unsafe fn(ExpandPublic<'_>),
    pub(crate) verify_expanded: unsafe fn(Verify<'_, &[Block]>),
    /// Blocks of an expanded secret key in this backend's own layout.
    pub(crate) secret_blocks: usize,
    pub(crate) expand_secret: unsafe fn(ExpandSecret<'_>),
    pub(crate) sign_expanded: unsafe fn(Sign<'_, &[Block]>),
}

/// All kernels of one backend.
#[derive(Debug)]
pub struct Kernels {
    pub(crate) expand: Expand,
    /// In the order of `Params::index`.
    pub(crate) sets: [SetKernels; SETS],
}

/// A backend of MAYO that this CPU can run.
///
/// ```
/// use lanework_mayo::Engine;
///
/// println!("signing runs on {}", Engine::best().name());
/// ```
pub type Engine = lanework_cpu::Engine<Kernels>;

impl Backends for Kernels {
    const PRIMITIVE: &'static str = "mayo";
    const BACKENDS: &'static [Backend<Kernels>] = BACKENDS;
}

impl Kernels {
    /// The backend's symmetric kernels, for [`crate::spec`] and for comparing them.
    #[must_use]
    pub const fn expand(&self) -> &Expand {
        &self.expand
    }

    /// The backend's AES-128-CTR: `bitsliced`, `aes-ni`, `vaes-512`.
    #[must_use]
    pub const fn aes(&self) -> &'static str {
        self.expand.aes
    }

    /// Heap bytes that one thread needs for any operation of `params` on this backend, batches included.
    #[must_use]
    pub fn workspace_bytes(&self, params: &Params) -> usize {
        Workspace::bytes(self.set(params), self.expand.lanes)
    }

    pub(crate) const fn set(&self, params: &Params) -> &SetKernels {
        &self.sets[params.index()]
    }
}

/// An engine of a check's kernels: those of a row that runs here, some of them replaced.
#[cfg(any(test, feature = "leaks"))]
pub(crate) fn altered(name: &'static str, kernels: Kernels) -> Engine {
    // SAFETY: checks take the kernels of a row that runs here; a replaced kernel enables no feature that this row
    // lacks.
    unsafe { Engine::outside(name, Box::leak(Box::new(kernels))) }
}

/// Parameter sets that a backend has kernels for.
pub(crate) const SETS: usize = if cfg!(feature = "study") { 12 } else { 8 };

/// Stamps the table of `SetKernels` from a macro that makes one from `Params`.
macro_rules! stamp_sets {
    ($set:ident) => {{
        use crate::params::{Params, Round, Set};
        [
            $set!(Params::of(Round::Three, Set::Mayo1)),
            $set!(Params::of(Round::Three, Set::Mayo2)),
            $set!(Params::of(Round::Three, Set::Mayo3)),
            $set!(Params::of(Round::Three, Set::Mayo5)),
            $set!(Params::of(Round::Two, Set::Mayo1)),
            $set!(Params::of(Round::Two, Set::Mayo2)),
            $set!(Params::of(Round::Two, Set::Mayo3)),
            $set!(Params::of(Round::Two, Set::Mayo5)),
            #[cfg(feature = "study")]
            $set!(Params::of(Round::One, Set::Mayo1)),
            #[cfg(feature = "study")]
            $set!(Params::of(Round::One, Set::Mayo2)),
            #[cfg(feature = "study")]
            $set!(Params::of(Round::One, Set::Mayo3)),
            #[cfg(feature = "study")]
            $set!(Params::of(Round::One, Set::Mayo5)),
        ]
    }};
}
pub(crate) use stamp_sets;

/// Every backend, from the plainest to the fastest.
pub static BACKENDS: &[Backend<Kernels>] =
    // SAFETY: a row's list has every feature that its kernels enable; `lab/suite/tests/features.rs` compares it with the sources.
    unsafe {
        &[
            Backend::new(
                "portable",
                "plain constant-time Rust, bitsliced AES, no intrinsics",
                Features::NONE,
                &portable::KERNELS,
            ),
            #[cfg(target_arch = "x86_64")]
            Backend::new(
                "avx2",
                "nibble-sliced byte shuffles in 256-bit registers, AES-NI",
                Features::AVX2_AES_BMI_PCLMULQDQ,
                &avx2::KERNELS,
            ),
            #[cfg(target_arch = "x86_64")]
            Backend::new(
                "avx2-vaes",
                "the same with two AES blocks to a register",
                Features::AVX2_AES_BMI_PCLMULQDQ.union(Features::of(&[Feature::Vaes])),
                &avx2::KERNELS_VAES,
            ),
            #[cfg(target_arch = "x86_64")]
            Backend::new(
                "avx512",
                "512-bit GFNI on dense 2x2 cells, VAES, column-wise elimination by byte permutations",
                Features::AVX512,
                &avx512::KERNELS,
            ),
        ]
    };

impl SetKernels {
    /// Bytes of a padded m-vector.
    pub(crate) const fn stride(params: &Params) -> usize {
        params.m_bytes().next_multiple_of(64)
    }

    /// Blocks of `count` padded m-vectors.
    pub(crate) const fn padded_blocks(params: &Params, count: usize) -> usize {
        Self::stride(params) / 64 * count
    }

    pub(crate) fn keygen(&self, operands: Keygen<'_>) {
        operands.check(self);
        // SAFETY: the features were checked by `Backend::get`; the lengths are those of the contract.
        unsafe { (self.keygen)(operands) }
    }

    pub(crate) fn sign(&self, operands: Sign<'_, &[u8]>) {
        operands.check(self);
        // SAFETY: as in `keygen`.
        unsafe { (self.sign)(operands.within(self.sign_blocks)) }
    }

    pub(crate) fn verify(&self, operands: Verify<'_, Matrices<'_>>) {
        operands.check(self);
        // SAFETY: as in `keygen`.
        unsafe { (self.verify)(operands) }
    }

    pub(crate) fn whip(&self, operands: Whip<'_>) {
        operands.check(self);
        // SAFETY: as in `keygen`.
        unsafe { (self.whip)(operands) }
    }

    #[must_use]
    pub(crate) fn solve(&self, operands: Solve<'_>) -> bool {
        operands.check(self);
        // SAFETY: as in `keygen`.
        unsafe { (self.solve)(operands.within(self.sign_blocks.min(self.sign_expanded_blocks))) }
    }

    pub(crate) fn finish(&self, operands: Finish<'_>) {
        operands.check(self);
        // SAFETY: as in `keygen`.
        unsafe { (self.finish)(operands) }
    }

    pub(crate) fn expand_public(&self, operands: ExpandPublic<'_>) {
        operands.check(self);
        // SAFETY: as in `keygen`.
        unsafe { (self.expand_public)(operands) }
    }

    pub(crate) fn verify_expanded(&self, operands: Verify<'_, &[Block]>) {
        operands.check_expanded(self);
        // SAFETY: as in `keygen`.
        unsafe { (self.verify_expanded)(operands) }
    }

    pub(crate) fn expand_secret(&self, operands: ExpandSecret<'_>) {
        operands.check(self);
        // SAFETY: as in `keygen`.
        unsafe { (self.expand_secret)(operands) }
    }

    pub(crate) fn sign_expanded(&self, operands: Sign<'_, &[Block]>) {
        operands.check_expanded(self);
        // SAFETY: as in `keygen`.
        unsafe { (self.sign_expanded)(operands.within(self.sign_expanded_blocks)) }
    }
}
