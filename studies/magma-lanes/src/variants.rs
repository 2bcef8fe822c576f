//! Variants that only a study may run: the table-driven cipher that everyone else has, which leaks, and the design of the report
//! `magma-lanes`, each with and without the measures that the report credits.
//!
//! They are in a table of their own, [`VARIANTS`], which no choice of a backend ever reads. Every variant that leaks says so in its
//! name. All are Magma in the direction of encryption, in whole operations: one block or eight.

use core::hint::black_box;

use lanework_cpu::{Backend, Features};
use lanework_magma::Error;
use lanework_magma::internals::spec;

mod table;
#[cfg(target_arch = "x86_64")]
mod vector;

/// The 32 round keys of an encryption under set Z (RFC 8891, 4.3).
#[derive(Clone, Debug)]
pub(crate) struct Schedule([u32; 32]);

impl Schedule {
    /// Of a key.
    pub(crate) fn new(key: &[u8; 32]) -> Schedule {
        let words = spec::magma_words(key);
        Schedule(core::array::from_fn(|i| words[if i < 24 { i % 8 } else { 7 - i % 8 }]))
    }
}

/// One variant: what it is, and its kernels, which assume what its row in [`VARIANTS`] names.
#[derive(Debug)]
pub(crate) struct Variant {
    at_once: usize,
    aligned: bool,
    /// (schedule of an encryption under set Z, in, out, n): n a multiple of `at_once`, pointers at multiples of 32
    /// if `aligned`; otherwise any.
    blocks: unsafe fn(&Schedule, *const u8, *mut u8, usize),
    f: unsafe fn(&[u32; 8]) -> [u32; 8],
}

/// A row without vectors.
const fn scalar<const CALLS: bool>() -> Variant {
    Variant { at_once: 1, aligned: false, blocks: table::blocks::<CALLS>, f: table::f::<CALLS> }
}

/// A row of the report's design.
#[cfg(target_arch = "x86_64")]
const fn eight<const CALLS: bool, const ALIGNED: bool>() -> Variant {
    Variant { at_once: 8, aligned: ALIGNED, blocks: vector::blocks::<CALLS, ALIGNED>, f: vector::f::<CALLS> }
}

static SCALAR: [Variant; 2] = [scalar::<false>(), scalar::<true>()];

#[cfg(target_arch = "x86_64")]
static EIGHT: [Variant; 4] =
    [eight::<false, false>(), eight::<true, false>(), eight::<false, true>(), eight::<true, true>()];

/// All variants.
pub(crate) static VARIANTS: &[Backend<Variant>] =
    // SAFETY: a row's list has every feature that its kernels enable.
    unsafe {
        &[
            Backend::new(
                "table-scalar (leaks)",
                "one block, four tables, inlined",
                Features::NONE,
                &SCALAR[0],
            ),
            Backend::new(
                "table-scalar-calls (leaks)",
                "one block, four tables, f and round called",
                Features::NONE,
                &SCALAR[1],
            ),
            #[cfg(target_arch = "x86_64")]
            Backend::new(
                "report-avx2",
                "eight blocks, inlined, unaligned loads",
                Features::AVX2_AES_BMI_PCLMULQDQ,
                &EIGHT[0],
            ),
            #[cfg(target_arch = "x86_64")]
            Backend::new(
                "report-avx2-calls",
                "eight blocks, f and round called, unaligned loads",
                Features::AVX2_AES_BMI_PCLMULQDQ,
                &EIGHT[1],
            ),
            #[cfg(target_arch = "x86_64")]
            Backend::new(
                "report-avx2-aligned",
                "eight blocks, inlined, aligned loads",
                Features::AVX2_AES_BMI_PCLMULQDQ,
                &EIGHT[2],
            ),
            #[cfg(target_arch = "x86_64")]
            Backend::new(
                "report-avx2-calls-aligned",
                "eight blocks, f and round called, aligned loads",
                Features::AVX2_AES_BMI_PCLMULQDQ,
                &EIGHT[3],
            ),
        ]
    };

/// The round function without a key on eight words, as the report tests it: f(x) = t(x) rotated left by 11, S-box
/// set Z.
pub(crate) const REPORT_F: [(u32, u32); 8] = [
    (0x0123_4567, 0xd6fa_c8f7),
    (0x89ab_cdef, 0x71c8_0a24),
    (0xfedc_ba98, 0xdabf_7119),
    (0x7654_3210, 0x40ac_6189),
    (0x0000_0000, 0xbe5b_60c2),
    (0xffff_ffff, 0x6587_8938),
    (0x1234_5678, 0x4256_7393),
    (0x9abc_def0, 0xdf37_e7d8),
];

impl Variant {
    /// Blocks of one operation.
    #[must_use]
    pub(crate) const fn blocks_at_once(&self) -> usize {
        self.at_once
    }

    /// The round function without a key on eight words.
    #[must_use]
    pub(crate) fn f(&self, words: &[u32; 8]) -> [u32; 8] {
        // SAFETY: this value is reachable only through a row whose features were checked.
        unsafe { (self.f)(words) }
    }

    /// # Panics
    /// If the lengths differ or are not whole operations, or a buffer is not aligned as required.
    fn run(&self, s: &Schedule, input: &[u8], output: &mut [u8]) {
        assert!(
            input.len() == output.len() && input.len().is_multiple_of(8 * self.at_once),
            "whole operations"
        );
        let aligned = input.as_ptr().addr().is_multiple_of(32) && output.as_ptr().addr().is_multiple_of(32);
        assert!(aligned || !self.aligned, "aligned buffers");
        // SAFETY: features as above; lengths and alignment were just checked.
        unsafe { (self.blocks)(s, input.as_ptr(), output.as_mut_ptr(), input.len() / 8) }
    }

    /// Encrypts whole operations from one buffer into another.
    ///
    /// # Errors
    /// [`Error::Lengths`]; [`Error::Unaligned`] if the length is not a multiple of an operation's; [`Error::Parameter`] if a buffer
    /// is not at a multiple of 32 bytes where its load and store instructions need that.
    pub(crate) fn encrypt(&self, key: &Schedule, input: &[u8], output: &mut [u8]) -> Result<(), Error> {
        if input.len() != output.len() {
            return Err(Error::Lengths { input: input.len(), output: output.len() });
        }
        if !input.len().is_multiple_of(8 * self.at_once) {
            return Err(Error::Unaligned(input.len()));
        }
        if self.aligned
            && !(input.as_ptr().addr().is_multiple_of(32) && output.as_ptr().addr().is_multiple_of(32))
        {
            return Err(Error::Parameter("buffers at multiples of 32 bytes"));
        }
        self.run(key, input, output);
        Ok(())
    }

    /// The report's loop: `times` operations on one block, the same in every lane, in buffers that never leave the
    /// first-level cache. Returns the blocks of the last operation; those beyond
    /// [`blocks_at_once`](Variant::blocks_at_once) are zeros.
    #[must_use]
    pub(crate) fn constant_block(&self, key: &Schedule, block: &[u8; 8], times: usize) -> [u8; 64] {
        #[repr(align(64))]
        struct Buffer([u8; 64]);
        let (mut input, mut output) = (Buffer([0; 64]), Buffer([0; 64]));
        input.0.chunks_exact_mut(8).for_each(|b| b.copy_from_slice(block));
        let bytes = 8 * self.at_once;
        for _ in 0..times {
            self.run(key, &black_box(&input).0[..bytes], &mut output.0[..bytes]);
            black_box(&mut output);
        }
        output.0
    }
}

#[cfg(test)]
mod tests;
