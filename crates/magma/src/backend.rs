//! The contract that every backend fulfils, and the table of backends.
//!
//! Kernels are `unsafe fn` pointers because they assume the instruction set that their row in [`BACKENDS`] names, and
//! take raw pointers because every mode works in place and from one buffer into another. They are reached only through
//! `lanework_cpu::Backend::get`, which checks the features; the safe methods of [`Kernels`] rely on that and check the
//! lengths. All kernels run in constant time for given lengths: keys, blocks, states and products are secret; the S-box
//! set, the byte order, lengths and counters are public. Every kernel equals its description in terms of
//! [`crate::internals::spec`].

use inout::InOutBuf;
#[cfg(target_arch = "x86_64")]
use lanework_cpu::Feature;
use lanework_cpu::memory::Block;
use lanework_cpu::{Backend, Backends, Features};

use crate::sbox::Sbox;
use crate::schedule::{ByteOrder, Counter, Schedule};

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512bw;
pub(crate) mod chain;
#[cfg(all(test, target_os = "linux", target_arch = "x86_64"))]
pub(crate) mod leaky;
pub(crate) mod portable;
#[cfg(test)]
mod tests;

/// Lanes that a batch works on: independent messages, each with its own key.
pub const LANES: usize = 128;

/// A backend of Magma that this CPU can run.
pub type Engine = lanework_cpu::Engine<Kernels>;

impl Backends for Kernels {
    const PRIMITIVE: &'static str = "magma";
    const BACKENDS: &'static [Backend<Kernels>] = BACKENDS;
}

/// An engine with a test's kernels.
#[cfg(all(test, target_arch = "x86_64"))]
pub(crate) fn altered(name: &'static str, kernels: &'static Kernels) -> Engine {
    // SAFETY: tests take the kernels of a row that runs here; a replaced kernel enables no feature that this row lacks.
    unsafe { Engine::outside(name, kernels) }
}

/// The blocks of every lane, as bytes.
pub(crate) type LaneBlocks = [[u8; 8]; LANES];

/// All kernels of one backend.
#[derive(Debug)]
pub struct Kernels {
    /// Blocks of one key that are worked on at once in bulk: whole multiples run at full speed.
    pub(crate) parallel: usize,
    /// Encrypts or decrypts `n` blocks: block i of the output is E(block i of the input).
    ///
    /// input: 8n readable bytes; output: 8n writable bytes; the same address or disjoint; any alignment. n may be 0. A
    /// small n must cost little more than its share, since serial modes take one block at a time.
    pub(crate) blocks: unsafe fn(s: &Schedule, input: *const u8, output: *mut u8, n: usize),
    /// output = input xor (E(counter 0), E(counter 1), ...), cut to `n` *bytes*; the last block may be cut. Pointers as
    /// for `blocks`.
    pub(crate) counter:
        unsafe fn(s: &Schedule, counter: Counter, input: *const u8, output: *mut u8, n: usize),
    /// The `n` blocks E(counter 0), E(counter 1), ... themselves. output: 8n writable bytes.
    pub(crate) keystream: unsafe fn(s: &Schedule, counter: Counter, output: *mut u8, n: usize),
    /// Blocks of memory that hold the keys of [`LANES`] lanes in this backend's own layout.
    pub(crate) lane_keys_blocks: usize,
    /// Puts a key, as the words K1 to K8, into a lane. keys: `lane_keys_blocks` blocks; lane < [`LANES`].
    pub(crate) set_lane: unsafe fn(keys: &mut [Block], lane: usize, words: &[u32; 8]),
    /// Encrypts one block in each of the first `n` <= [`LANES`] lanes under that lane's key, in place. Blocks of other
    /// lanes are unspecified afterwards. keys: `lane_keys_blocks` blocks.
    pub(crate) lanes:
        unsafe fn(keys: &[Block], sbox: Sbox, order: ByteOrder, data: &mut LaneBlocks, n: usize),
    /// Takes a chain's steps in each of its lanes, starting from the lane's state in the scratch and leaving it there.
    /// Other lanes' sums stay; their states are unspecified afterwards. Any backend may use `chain::plain`; those with
    /// AVX-512F and BW have `chain::avx512::chain`.
    pub(crate) chain: unsafe fn(chain: &chain::Chain<'_>, scratch: &mut chain::Scratch),
    /// MGM's products: the sum over i < n of h\[i\] * x\[i\] in GF(2)\[x\], not reduced, added to `sum` (low half, high
    /// half). Blocks are polynomials in big-endian order: the first byte's top bit is the coefficient of x^63 (RFC
    /// 9058, 4). h and x: 8n readable bytes each, any alignment.
    pub(crate) products: unsafe fn(h: *const u8, x: *const u8, n: usize, sum: &mut [u64; 2]),
}

/// Every backend, from the plainest, which needs nothing, to the fastest.
pub static BACKENDS: &[Backend<Kernels>] =
    // SAFETY: a row's list has every feature that its kernels enable; `lab/suite/tests/features.rs` compares it with the sources.
    unsafe {
        &[
            Backend::new(
                "portable",
                "plain Rust without tables; bitsliced in bulk",
                Features::NONE,
                &portable::KERNELS,
            ),
            #[cfg(target_arch = "x86_64")]
            Backend::new(
                "avx2",
                "byte planes, 128 blocks at once",
                Features::AVX2_AES_BMI_PCLMULQDQ,
                &avx2::KERNELS,
            ),
            #[cfg(target_arch = "x86_64")]
            Backend::new(
                "avx2-gfni",
                "the same with GFNI parting nibbles",
                Features::of(&[Feature::Avx2, Feature::Gfni, Feature::Pclmulqdq]),
                &avx2::KERNELS_GFNI,
            ),
            #[cfg(target_arch = "x86_64")]
            Backend::new(
                "avx512bw",
                "byte-sliced on 512 bits, 128 blocks in flight, without byte permutations",
                avx512bw::NEEDS,
                &avx512bw::KERNELS,
            ),
            #[cfg(target_arch = "x86_64")]
            Backend::new(
                "avx512-bitslice",
                "a bit of 512 blocks in a register for large inputs under set Z, else as avx512",
                Features::AVX512,
                &avx512::BITSLICE,
            ),
            #[cfg(target_arch = "x86_64")]
            Backend::new(
                "avx512",
                "byte permutations in 64-byte tables, 128 blocks in flight",
                Features::AVX512,
                &avx512::KERNELS,
            ),
        ]
    };

impl Kernels {
    /// The number of blocks of one key that are worked on at once.
    #[must_use]
    pub const fn parallel(&self) -> usize {
        self.parallel
    }

    /// Encrypts or decrypts whole blocks.
    ///
    /// # Panics
    /// If the length is not a multiple of 8.
    pub(crate) fn blocks(&self, schedule: &Schedule, mut data: InOutBuf<'_, '_, u8>) {
        assert_eq!(data.len() % 8, 0, "whole blocks");
        let n = data.len() / 8;
        let (input, output) = (data.get_in().as_ptr(), data.get_out().as_mut_ptr());
        // SAFETY: this value is reachable only through a backend whose features were checked; InOutBuf's halves have
        // one length and are the same memory or disjoint.
        unsafe { (self.blocks)(schedule, input, output, n) }
    }

    /// Adds the keystream of `counter` to any number of bytes.
    pub(crate) fn counter(&self, schedule: &Schedule, counter: Counter, mut data: InOutBuf<'_, '_, u8>) {
        let n = data.len();
        let (input, output) = (data.get_in().as_ptr(), data.get_out().as_mut_ptr());
        // SAFETY: as above.
        unsafe { (self.counter)(schedule, counter, input, output, n) }
    }

    /// Whole blocks of keystream.
    ///
    /// # Panics
    /// If the length is not a multiple of 8.
    pub(crate) fn keystream(&self, schedule: &Schedule, counter: Counter, out: &mut [u8]) {
        assert_eq!(out.len() % 8, 0, "whole blocks");
        // SAFETY: features as above; the length is the slice's.
        unsafe { (self.keystream)(schedule, counter, out.as_mut_ptr(), out.len() / 8) }
    }

    /// Puts a key into a lane.
    ///
    /// # Panics
    /// If there is no such lane, or `keys` is shorter than `lane_keys_blocks`.
    pub(crate) fn set_lane(&self, keys: &mut [Block], lane: usize, words: &[u32; 8]) {
        assert!(lane < LANES && keys.len() >= self.lane_keys_blocks, "a lane within the keys");
        // SAFETY: features as above; lengths were just checked.
        unsafe { (self.set_lane)(keys, lane, words) }
    }

    /// Encrypts one block in each of the first `n` lanes.
    ///
    /// # Panics
    /// If `n` is above [`LANES`], or `keys` is shorter than `lane_keys_blocks`.
    pub(crate) fn lanes(
        &self,
        keys: &[Block],
        sbox: Sbox,
        order: ByteOrder,
        data: &mut LaneBlocks,
        n: usize,
    ) {
        assert!(n <= LANES && keys.len() >= self.lane_keys_blocks, "lanes within the keys");
        // SAFETY: features as above; lengths were just checked.
        unsafe { (self.lanes)(keys, sbox, order, data, n) }
    }

    /// Adds the products of the blocks of `h` and `x` to `sum`.
    ///
    /// # Panics
    /// If the lengths differ or are not multiples of 8.
    pub(crate) fn products(&self, h: &[u8], x: &[u8], sum: &mut [u64; 2]) {
        assert!(h.len() == x.len() && h.len().is_multiple_of(8), "as many whole blocks");
        // SAFETY: features as above; lengths were just checked.
        unsafe { (self.products)(h.as_ptr(), x.as_ptr(), h.len() / 8, sum) }
    }
}
