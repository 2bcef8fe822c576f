//! The contract that every backend fulfils, and the table of backends.
//!
//! A backend is a set of coarse kernels: the symmetric ones ([`Expand`]) and, for each parameter set, the field ones
//! (`SetKernels`). They exchange plain formats, so that any two backends can be compared phase by phase:
//!
//! * *elements*: one field element per byte, in the low nibble, the high one 0;
//! * *m-vector*: m elements packed two to a byte, low nibble first: `m_bytes` bytes, without padding between vectors;
//! * *padded m-vector*: the same in `stride` = `m_bytes` rounded up to 64 bytes, zero after the last element;
//! * P: the m-vectors of P1 then P2 as expanded, followed by at least `SLACK` readable bytes of any value.
//!
//! Kernels are `unsafe fn` pointers because they assume the instruction set that their row in [`BACKENDS`] names. They
//! are reached only through `lanework_cpu::Backend::get`, which checks it; the safe methods here rest on that. Leak
//! class: `keygen`, `sign`, `solve`, `finish`, `expand_secret`, `sign_expanded` and those of SHAKE256 take secrets
//! and run in constant time except for the one bit that `solve` returns; the others take public data only.

use alloc::vec::Vec;

#[cfg(target_arch = "x86_64")]
use lanework_cpu::Feature;
use lanework_cpu::{Backend, Backends, Features};

use crate::params::{Params, Sizes};
use crate::scheme::Scheme;
use crate::sys::{Block, bytes, bytes_mut};
use crate::typed::ParameterSet;
use crate::workspace::Workspace;
use operands::{ExpandPublic, ExpandSecret, Finish, Keygen, Matrices, Sign, Solve, Verify, Whip};

#[cfg(target_arch = "x86_64")]
pub(crate) mod aesni;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2_gfni;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
#[cfg(test)]
mod expand_tests;
pub mod operands;
pub(crate) mod portable;
pub(crate) mod sponge;

/// A parameter set as a type, which kernels are compiled for.
///
/// # Safety
/// The sizes must be a specification's: kernels place their reads and writes by them. So n > o > 0, m is even and at most
/// 142, k at most 12, and the schedule has each of its pairs of numbers below k once. They must be the same every time they
/// are asked for. Tests must have compared the kernels with the specification for these sizes.
pub unsafe trait SetSpec: 'static {
    /// The sizes.
    const SIZES: &'static Sizes;
}

// SAFETY: the trait `ParameterSet` is sealed, and its sets are those of the tables, which the tests run.
unsafe impl<P: ParameterSet> SetSpec for P {
    const SIZES: &'static Sizes = P::PARAMS.sizes();
}

/// Bytes that kernels may read, but not use, after P, P3 and lambda.
pub const SLACK: usize = 128;

/// A kernel that hashes a seed and expands the stream under the hash side by side.
pub(crate) type SeedAndStream = unsafe fn(&[u8], &mut [u8], &mut [u8]);

/// The symmetric kernels of one backend.
#[derive(Clone, Copy, Debug)]
pub struct Expand {
    /// The AES implementation, for the machine-readable record: `bitsliced`, `aes-ni`, `vaes-512`.
    pub(crate) aes: &'static str,
    pub(crate) aes128_ctr: unsafe fn(&[u8; 16], u32, &mut [u8]),
    pub(crate) aes128_ctr_xor: unsafe fn(&[u8; 16], &[u8; 16], &mut [u8]),
    pub(crate) shake256: unsafe fn(&[&[u8]], &mut [u8]),
    /// See [`Expand::seed_and_stream`]; `None` where hashing comes first and the stream after it.
    pub(crate) seed_and_stream: Option<SeedAndStream>,
    pub(crate) shake256_absorb: unsafe fn(&mut [u64; 25], &[u8]),
    /// Messages that `shake256_xn` hashes in about the time of one.
    pub(crate) lanes: usize,
    pub(crate) shake256_xn: unsafe fn(&[&[u8]], &mut [&mut [u8]]),
}

impl Expand {
    /// The same hashing beside another backend's AES.
    #[must_use]
    pub const fn with_aes_of(self, other: &Expand) -> Expand {
        let (aes128_ctr, aes128_ctr_xor) = (other.aes128_ctr, other.aes128_ctr_xor);
        Expand { aes: other.aes, aes128_ctr, aes128_ctr_xor, seed_and_stream: None, ..self }
    }

    /// The same hashing beside AES-NI, one block at a time.
    ///
    /// # Safety
    /// The kernels may be reached only on a CPU with AES-NI and SSE4.1.
    #[cfg(target_arch = "x86_64")]
    #[must_use]
    pub const unsafe fn with_aesni(self) -> Expand {
        let (aes128_ctr, aes128_ctr_xor) = (aesni::aes128_ctr, aesni::aes128_ctr_xor);
        Expand { aes: "aes-ni", aes128_ctr, aes128_ctr_xor, seed_and_stream: None, ..self }
    }

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

    /// SHAKE256 of a secret seed into `hash`, and the AES-128-CTR keystream under the first 16 bytes of `hash`, which are
    /// public, into `stream`; constant time for given lengths. The two run side by side where the backend can.
    ///
    /// # Panics
    /// If `hash` is shorter than a key.
    pub fn seed_and_stream(&self, seed: &[u8], hash: &mut [u8], stream: &mut [u8]) {
        assert!(hash.len() >= 16, "a hash shorter than a key");
        if let Some(side_by_side) = self.seed_and_stream {
            // SAFETY: as above.
            return unsafe { side_by_side(seed, hash, stream) };
        }
        self.shake256(&[seed], hash);
        self.aes128_ctr(hash.first_chunk().expect("a key"), 0, stream);
    }

    /// Absorbs whole blocks of SHAKE256 into `state`, with the permutation after each; secret data, constant time for
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
pub struct SetKernels {
    pub(crate) sizes: &'static Sizes,
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
    /// The layout of expanded public keys. `None`: P and P3 as they are.
    pub(crate) public: Option<PublicLayout>,
    /// Blocks of an expanded secret key in this backend's own layout.
    pub(crate) secret_blocks: usize,
    pub(crate) expand_secret: unsafe fn(ExpandSecret<'_>),
    pub(crate) sign_expanded: unsafe fn(Sign<'_, &[Block]>),
}

/// A backend's own layout of an expanded public key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PublicLayout {
    pub(crate) blocks: usize,
    pub(crate) expand: unsafe fn(ExpandPublic<'_>),
    pub(crate) verify: unsafe fn(Verify<'_, &[Block]>),
}

impl PublicLayout {
    /// P and P3 in this layout. The memory is not filled with zeros first.
    pub(crate) fn expanded(&self, kernels: &SetKernels, key: Matrices<'_>) -> Vec<Block> {
        let mut blocks = Vec::with_capacity(self.blocks);
        let layout = &mut blocks.spare_capacity_mut()[..self.blocks];
        if let Some(last) = layout.last_mut() {
            last.write(Block::ZERO);
        }
        self.expand(kernels, ExpandPublic { key, layout });
        // SAFETY: the kernel has written every byte but the end of the last block, which is 0.
        unsafe { blocks.set_len(self.blocks) };
        blocks
    }

    fn expand(&self, kernels: &SetKernels, operands: ExpandPublic<'_>) {
        operands.check(kernels);
        // SAFETY: as in `SetKernels::keygen`.
        unsafe { (self.expand)(operands) }
    }
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
    /// A backend of these parts.
    ///
    /// # Safety
    /// The kernels of each set must be for the sizes of the set at its position. An engine of this backend may exist only where
    /// the CPU has every feature that one of the kernels enables.
    #[doc(hidden)]
    #[must_use]
    pub const unsafe fn new(expand: Expand, sets: [SetKernels; SETS]) -> Kernels {
        Kernels { expand, sets }
    }

    /// The kernels of every set, in the order of `Params::all`.
    #[doc(hidden)]
    #[must_use]
    pub const fn sets(&self) -> &[SetKernels; SETS] {
        &self.sets
    }

    /// The backend's symmetric kernels, for the specification and for comparing them.
    #[doc(hidden)]
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

    /// What operations on this set run on.
    #[doc(hidden)]
    #[must_use]
    pub const fn scheme(&'static self, params: &Params) -> Scheme {
        Scheme { symmetric: &self.expand, kernels: self.set(params) }
    }
}

/// An engine of a check's kernels: those of a row that runs here, some of them replaced.
#[cfg(any(test, all(feature = "leaks", target_os = "linux", target_arch = "x86_64")))]
pub(crate) fn altered(name: &'static str, kernels: Kernels) -> Engine {
    // SAFETY: checks take the kernels of a row that runs here; a replaced kernel enables no feature that this row
    // lacks.
    unsafe { Engine::outside(name, Box::leak(Box::new(kernels))) }
}

/// Parameter sets that a backend has kernels for.
pub const SETS: usize = 8;

/// The kernels of one backend for one set, from the backend's name and the set's type. Generic arguments that follow from the
/// sizes are computed here, because a generic function cannot.
#[doc(hidden)]
#[macro_export]
macro_rules! set_kernels {
    ($backend:ident, $set:ty) => {{
        use $crate::internals::{SetSpec, $backend::{Widths, set}};
        const W: Widths = Widths::of(<$set as SetSpec>::SIZES);
        $crate::set_kernels!(@ $backend, $set)
    }};
    (@ portable, $set:ty) => { set::<$set, { W.words }>() };
    (@ avx2, $set:ty) => { set::<$set, { W.first }, { W.second }, { W.registers }>() };
    (@ avx2_gfni, $set:ty) => {
        set::<$set, { W.k_pairs }, { W.o_pairs }, { W.pairs }, { W.slices }, { W.tails }, { W.stride }>(
            $crate::set_kernels!(avx2, $set),
        )
    };
    (@ avx512, $set:ty) => {
        set::<$set, { W.k_pairs }, { W.o_pairs }, { W.cell }, { W.stride }, { W.columns }, { W.registers }>()
    };
}

/// The kernels of every set, in the order of `Params::index`.
macro_rules! every_set {
    ($backend:ident) => {{
        use $crate::typed::{round2, round3};
        [
            $crate::set_kernels!($backend, round3::Mayo1),
            $crate::set_kernels!($backend, round3::Mayo2),
            $crate::set_kernels!($backend, round3::Mayo3),
            $crate::set_kernels!($backend, round3::Mayo5),
            $crate::set_kernels!($backend, round2::Mayo1),
            $crate::set_kernels!($backend, round2::Mayo2),
            $crate::set_kernels!($backend, round2::Mayo3),
            $crate::set_kernels!($backend, round2::Mayo5),
        ]
    }};
}
pub(crate) use every_set;

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
                "avx2-gfni",
                "256-bit GFNI on dense 2x2 cells, the rest as avx2-vaes",
                Features::AVX2_AES_BMI_PCLMULQDQ.union(Features::of(&[Feature::Gfni, Feature::Vaes])),
                &avx2_gfni::KERNELS,
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
    /// The same with other products for compact keys, which need `scratch_blocks` blocks of scratch.
    ///
    /// # Safety
    /// The kernels must do what their operands' types say for the same sizes, within that scratch, and need no feature that
    /// the others do not.
    #[must_use]
    pub const unsafe fn with_products(
        self,
        scratch_blocks: usize,
        keygen: unsafe fn(Keygen<'_>),
        sign: unsafe fn(Sign<'_, &[u8]>),
        verify: unsafe fn(Verify<'_, Matrices<'_>>),
    ) -> SetKernels {
        let most = if scratch_blocks > self.scratch_blocks { scratch_blocks } else { self.scratch_blocks };
        SetKernels {
            scratch_blocks: most,
            keygen_blocks: most,
            sign_blocks: most,
            sign_expanded_blocks: most,
            keygen,
            sign,
            verify,
            ..self
        }
    }

    /// The set's sizes.
    #[must_use]
    pub const fn sizes(&self) -> &'static Sizes {
        self.sizes
    }

    /// Blocks of scratch that any of these kernels needs.
    #[must_use]
    pub const fn scratch_blocks(&self) -> usize {
        self.scratch_blocks
    }

    /// Whether signing solves its system by the same code.
    #[must_use]
    pub fn solves_as(&self, other: &SetKernels) -> bool {
        core::ptr::fn_addr_eq(self.solve, other.solve)
    }

    /// Whether signing with a compact key multiplies by the same code.
    #[must_use]
    pub fn multiplies_as(&self, other: &SetKernels) -> bool {
        core::ptr::fn_addr_eq(self.sign, other.sign)
    }

    /// Bytes of a padded m-vector.
    pub const fn stride(sizes: &Sizes) -> usize {
        sizes.m_bytes().next_multiple_of(64)
    }

    /// Blocks of `count` padded m-vectors.
    pub const fn padded_blocks(sizes: &Sizes, count: usize) -> usize {
        Self::stride(sizes) / 64 * count
    }

    /// The products of key generation.
    ///
    /// # Panics
    /// If an operand has another length than its type says.
    pub fn keygen(&self, operands: Keygen<'_>) {
        operands.check(self);
        // SAFETY: the features were checked by `Backend::get`; the lengths are those of the contract.
        unsafe { (self.keygen)(operands.within(self.keygen_blocks)) }
    }

    /// The products of an attempt at signing.
    ///
    /// # Panics
    /// If an operand has another length than its type says.
    pub fn sign(&self, operands: Sign<'_, &[u8]>) {
        operands.check(self);
        // SAFETY: as in `keygen`.
        unsafe { (self.sign)(operands.within(self.sign_blocks)) }
    }

    /// The products of verification.
    ///
    /// # Panics
    /// If an operand has another length than its type says.
    pub fn verify(&self, operands: Verify<'_, Matrices<'_>>) {
        operands.check(self);
        // SAFETY: as in `keygen`.
        unsafe { (self.verify)(operands) }
    }

    /// Whipping, for verification.
    ///
    /// # Panics
    /// If an operand has another length than its type says.
    pub fn whip(&self, operands: Whip<'_>) {
        operands.check(self);
        // SAFETY: as in `keygen`.
        unsafe { (self.whip)(operands) }
    }

    /// Whipping and elimination; whether the system has full rank.
    ///
    /// # Panics
    /// If an operand has another length than its type says.
    #[must_use]
    pub fn solve(&self, operands: Solve<'_>) -> bool {
        operands.check(self);
        // SAFETY: as in `keygen`.
        unsafe { (self.solve)(operands.within(self.sign_blocks.min(self.sign_expanded_blocks))) }
    }

    /// The last step of signing.
    ///
    /// # Panics
    /// If an operand has another length than its type says.
    pub fn finish(&self, operands: Finish<'_>) {
        operands.check(self);
        // SAFETY: as in `keygen`.
        unsafe { (self.finish)(operands) }
    }

    /// Bytes of P in an expanded public key that keeps it as it is. P3 follows.
    const fn p_bytes(&self) -> usize {
        self.sizes.p12_bytes() + SLACK
    }

    /// Blocks of an expanded public key.
    pub(crate) fn public_blocks(&self) -> usize {
        let plain = self.p_bytes() + self.sizes.p3_vecs() * self.sizes.m_bytes() + SLACK;
        self.public.map_or(plain.div_ceil(64), |own| own.blocks)
    }

    /// Places of P and P3, each with slack, in an expanded public key that keeps them as they are.
    pub(crate) fn places<'a>(&self, key: &'a mut [Block]) -> (&'a mut [u8], &'a mut [u8]) {
        bytes_mut(key).split_at_mut(self.p_bytes())
    }

    /// With all of the scratch for every kernel, as a kernel needs that calls another.
    #[cfg(any(test, all(feature = "leaks", target_os = "linux", target_arch = "x86_64")))]
    pub(crate) fn around_another(self) -> SetKernels {
        let all = self.scratch_blocks;
        SetKernels { keygen_blocks: all, sign_blocks: all, sign_expanded_blocks: all, ..self }
    }

    /// P and P3 in this backend's layout, which may hold anything before.
    #[cfg(all(test, target_arch = "x86_64"))]
    fn expand_public(&self, key: Matrices<'_>, layout: &mut [Block]) {
        match &self.public {
            Some(own) => {
                // SAFETY: what is initialised may be taken as what need not be; the kernel leaves it initialised.
                let layout =
                    unsafe { &mut *(core::ptr::from_mut(layout) as *mut [core::mem::MaybeUninit<Block>]) };
                own.expand(self, ExpandPublic { key, layout });
            }
            None => {
                let (p, p3) = self.places(layout);
                p.copy_from_slice(&key.p[..p.len()]);
                let len = self.sizes.p3_vecs() * self.sizes.m_bytes();
                p3[..len].copy_from_slice(&key.p3[..len]);
            }
        }
    }

    pub(crate) fn verify_expanded(&self, operands: Verify<'_, &[Block]>) {
        operands.check_expanded(self);
        if let Some(own) = &self.public {
            // SAFETY: as in `keygen`.
            return unsafe { (own.verify)(operands) };
        }
        let Verify { key, s, lambda, u, scratch } = operands;
        let (p, p3) = bytes(key).split_at(self.p_bytes());
        self.verify(Verify { key: Matrices { p, p3 }, s, lambda, u, scratch });
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
