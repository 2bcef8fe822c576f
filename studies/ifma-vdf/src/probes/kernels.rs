//! Forms of the vector kernels that only a study runs: products as one loop over the classes of rows, products with twice
//! the multiplications, half of them superfluous, and sums in two's complement.
//!
//! The functions that are raced are in sections of their own, so that the linker reports the length of their code.

use core::arch::asm;
use core::arch::x86_64::*;
use core::hint::black_box;

use crate::arithmetic::Number;
use crate::arithmetic::avx512::carry::{carry, last_bits, negate_if};
use crate::arithmetic::avx512::{Z, product};

use super::Product;

/// Lanes of a product, in a loop of eight classes: one class's code, with rotations by an index that is computed.
#[inline(always)]
unsafe fn looped<const V: usize, const D: usize, const L: usize>(a: &Number<V>, b: &Number<V>) -> [Z; D] {
    // SAFETY: the caller has the features.
    unsafe {
        let zero = _mm512_setzero_si512();
        let (x, y) = (a.load(), b.load());
        let (full, tail) = (L / 8, L % 8);
        let (factors, tails) = (b.words.as_flattened(), &a.words[full]);
        let mut sum = [zero; D];
        let lanes = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
        for o in 0..black_box(8usize) {
            let mut acc = [zero; D];
            for k in 0..full {
                let low = _mm512_set1_epi64(factors[8 * k + o] as i64);
                // One above: the limb before, or none before the first.
                let before = if 8 * k + o == 0 { 0 } else { factors[8 * k + o - 1] };
                let high = _mm512_set1_epi64(before as i64);
                for t in 0..full {
                    acc[k + t] = _mm512_madd52lo_epu64(acc[k + t], x[t], low);
                    acc[k + t] = _mm512_madd52hi_epu64(acc[k + t], x[t], high);
                }
            }
            if o <= tail {
                let (low, before) =
                    (factors[8 * full + o], factors[8 * full + o - usize::from(8 * full + o > 0)]);
                let (low, high) = (_mm512_set1_epi64(low as i64), _mm512_set1_epi64(before as i64));
                for t in 0..full {
                    acc[full + t] = _mm512_madd52lo_epu64(acc[full + t], x[t], low);
                    acc[full + t] = _mm512_madd52hi_epu64(acc[full + t], x[t], high);
                }
                let before = if o == 0 { 0 } else { tails[o - 1] };
                let (low, high) = (_mm512_set1_epi64(tails[o] as i64), _mm512_set1_epi64(before as i64));
                for t in 0..V {
                    acc[full + t] = _mm512_madd52lo_epu64(acc[full + t], y[t], low);
                    acc[full + t] = _mm512_madd52hi_epu64(acc[full + t], y[t], high);
                }
            }
            let index = _mm512_sub_epi64(lanes, _mm512_set1_epi64(o as i64));
            let mask = (0xffu32 << o) as u8;
            for k in 0..D {
                let turned = _mm512_permutexvar_epi64(index, acc[k]);
                sum[k] = _mm512_mask_add_epi64(sum[k], mask, sum[k], turned);
                if k + 1 < D {
                    sum[k + 1] = _mm512_mask_add_epi64(sum[k + 1], !mask, sum[k + 1], turned);
                }
            }
        }
        sum
    }
}

/// Carries and stores, as the shipped product does.
#[inline(always)]
unsafe fn finish<const V: usize, const D: usize>(
    mut sum: [Z; D],
    a: &Number<V>,
    b: &Number<V>,
    out: &mut Number<D>,
) {
    // SAFETY: the caller has the features.
    unsafe {
        carry(&mut sum, false);
        out.store(&sum, a.sign() != b.sign() && product::nonzero(&sum));
    }
}

/// As many multiply-adds as a product of L limbs has, on registers that are not read, each independent of the next seven.
#[inline(always)]
unsafe fn busy(count: usize) {
    // SAFETY: the caller has the features.
    unsafe {
        for _ in 0..count / 8 {
            asm!(
                "vpmadd52luq zmm24, zmm16, zmm17",
                "vpmadd52luq zmm25, zmm16, zmm17",
                "vpmadd52luq zmm26, zmm16, zmm17",
                "vpmadd52luq zmm27, zmm16, zmm17",
                "vpmadd52luq zmm28, zmm16, zmm17",
                "vpmadd52luq zmm29, zmm16, zmm17",
                "vpmadd52luq zmm30, zmm16, zmm17",
                "vpmadd52luq zmm31, zmm16, zmm17",
                out("zmm16") _, out("zmm17") _, out("zmm24") _, out("zmm25") _, out("zmm26") _, out("zmm27") _,
                out("zmm28") _, out("zmm29") _, out("zmm30") _, out("zmm31") _,
                options(nomem, nostack, preserves_flags)
            );
        }
    }
}

macro_rules! sections {
    ($($name:ident, $section:literal, $start:ident, $stop:ident, $v:literal, $d:literal: |$a:ident, $b:ident| $body:expr;)*) => {
        $(
            /// # Safety
            /// The CPU must have the features of the backend `avx512`.
            #[cfg_attr(target_os = "linux", unsafe(link_section = $section))]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,bmi1,bmi2")]
            pub(crate) unsafe fn $name($a: &Number<$v>, $b: &Number<$v>, out: &mut Number<$d>) {
// SAFETY: the features are this function's; memory is read and written within its types, or masked.
unsafe {
                finish($body, $a, $b, out);
            }
}
        )*

        /// Bytes of code of these functions, from their sections' bounds.
        #[cfg(target_os = "linux")]
        pub(crate) mod bytes {
            unsafe extern "C" {
                $(
                    static $start: u8;
                    static $stop: u8;
                )*
            }
            $(
                pub(crate) fn $name() -> Option<usize> {
                    Some((&raw const $stop).addr() - (&raw const $start).addr())
                }
            )*
        }

        /// Elsewhere it is unknown.
        #[cfg(not(target_os = "linux"))]
        pub(crate) mod bytes {
            $(
                pub(crate) fn $name() -> Option<usize> {
                    None
                }
            )*
        }
    };
}

sections! {
    unrolled_512, "lw_u512", __start_lw_u512, __stop_lw_u512, 2, 3: |a, b| product::lanes::<2, 3, 10>(a, b);
    unrolled_1024, "lw_u1024", __start_lw_u1024, __stop_lw_u1024, 3, 6: |a, b| product::lanes::<3, 6, 20>(a, b);
    looped_512, "lw_l512", __start_lw_l512, __stop_lw_l512, 2, 3: |a, b| looped::<2, 3, 10>(a, b);
    looped_1024, "lw_l1024", __start_lw_l1024, __stop_lw_l1024, 3, 6: |a, b| looped::<3, 6, 20>(a, b);
    busy_512, "lw_b512", __start_lw_b512, __stop_lw_b512, 2, 3: |a, b| {
        busy(28);
        product::lanes::<2, 3, 10>(a, b)
    };
    busy_1024, "lw_b1024", __start_lw_b1024, __stop_lw_b1024, 3, 6: |a, b| {
        busy(104);
        product::lanes::<3, 6, 20>(a, b)
    };
}

/// From sign and magnitude to two's complement: limbs below a highest lane that has the sign.
///
/// # Safety
/// The CPU must have the features of the backend `avx512`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
pub(crate) unsafe fn to_twos<const V: usize>(x: &Number<V>, out: &mut Number<V>) {
    // SAFETY: the features are this function's; memory is read and written within its types, or masked.
    unsafe {
        let mut lanes = x.load();
        negate_if(&mut lanes, x.sign());
        out.store(&lanes, false);
    }
}

/// And back.
///
/// # Safety
/// As [`to_twos`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
pub(crate) unsafe fn from_twos<const V: usize>(x: &Number<V>, out: &mut Number<V>) {
    // SAFETY: the features are this function's; memory is read and written within its types, or masked.
    unsafe {
        let mut lanes = x.load();
        let negative = _mm512_movepi64_mask(lanes[V - 1]) >> 7 != 0;
        negate_if(&mut lanes, negative);
        out.store(&lanes, negative);
    }
}

/// x + y in two's complement: no comparison and no choice of operation, one round of carries.
///
/// # Safety
/// As [`to_twos`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
pub(crate) unsafe fn add_twos<const V: usize>(x: &Number<V>, y: &Number<V>, out: &mut Number<V>) {
    // SAFETY: the features are this function's; memory is read and written within its types, or masked.
    unsafe {
        let (mut sum, y) = (x.load(), y.load());
        for t in 0..V {
            sum[t] = _mm512_add_epi64(sum[t], y[t]);
        }
        last_bits(&mut sum, true);
        out.store(&sum, false);
    }
}

/// out = from & mask: it makes the low bits of a product the next operand, in either format of limbs.
///
/// # Safety
/// As [`to_twos`].
#[target_feature(enable = "avx512f")]
pub(crate) unsafe fn mask<const V: usize>(
    from: &[[u64; 8]; V],
    mask: &[[u64; 8]; V],
    out: &mut [[u64; 8]; V],
) {
    for ((from, mask), out) in from.iter().zip(mask).zip(out) {
        // SAFETY: eight words each; the feature is this function's.
        unsafe {
            let x = _mm512_loadu_si512(from.as_ptr().cast());
            let y = _mm512_loadu_si512(mask.as_ptr().cast());
            _mm512_storeu_si512(out.as_mut_ptr().cast(), _mm512_and_si512(x, y));
        }
    }
}

/// Independent multiply-adds of 512 bits, or of 256: eight accumulators, `count` turns.
///
/// # Safety
/// As [`to_twos`].
#[target_feature(enable = "avx512f,avx512vl,avx512ifma")]
pub(crate) unsafe fn multiply_adds(wide: bool, count: u64) {
    for _ in 0..count {
        // SAFETY: registers only; the features are there, as they are this function's.
        unsafe {
            if wide {
                busy(8);
            } else {
                asm!(
                    "vpmadd52luq ymm24, ymm16, ymm17",
                    "vpmadd52luq ymm25, ymm16, ymm17",
                    "vpmadd52luq ymm26, ymm16, ymm17",
                    "vpmadd52luq ymm27, ymm16, ymm17",
                    "vpmadd52luq ymm28, ymm16, ymm17",
                    "vpmadd52luq ymm29, ymm16, ymm17",
                    "vpmadd52luq ymm30, ymm16, ymm17",
                    "vpmadd52luq ymm31, ymm16, ymm17",
                    out("zmm16") _, out("zmm17") _, out("zmm24") _, out("zmm25") _, out("zmm26") _, out("zmm27") _,
                    out("zmm28") _, out("zmm29") _, out("zmm30") _, out("zmm31") _,
                    options(nomem, nostack, preserves_flags)
                );
            }
        }
    }
}

/// Runs through 48 KiB of code that does nothing, more than a first-level instruction cache holds.
#[inline(never)]
pub(crate) fn other_code() {
    // SAFETY: instructions without effect.
    unsafe {
        asm!(
            ".rept 6144",
            ".byte 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0",
            ".endr",
            options(nomem, nostack, preserves_flags)
        );
    }
}

/// A chain of additions, one a cycle: `count` times 64. Cycles of the core, whatever the time-stamp counter counts.
#[inline(never)]
pub(crate) fn cycles(count: u64) {
    let mut sum = count;
    for _ in 0..count {
        // SAFETY: two registers.
        unsafe {
            asm!(".rept 64", "add {x}, {y}", ".endr", x = inout(reg) sum, y = in(reg) count,
                options(nomem, nostack));
        }
    }
}

pub(super) static UNROLLED: Product = Product {
    mul512: unrolled_512,
    mul1024: unrolled_1024,
    bytes: [bytes::unrolled_512, bytes::unrolled_1024],
};
pub(super) static LOOPED: Product =
    Product { mul512: looped_512, mul1024: looped_1024, bytes: [bytes::looped_512, bytes::looped_1024] };
pub(super) static BUSY: Product =
    Product { mul512: busy_512, mul1024: busy_1024, bytes: [bytes::busy_512, bytes::busy_1024] };

/// Sums in two's complement, and loops that probe the core.
#[derive(Debug)]
pub struct Probes(());

impl Probes {
    /// From sign and magnitude to two's complement.
    #[inline]
    pub fn to_twos<const V: usize>(&self, x: &Number<V>, out: &mut Number<V>) {
        // SAFETY: this value is reachable only through a backend whose features were checked.
        unsafe { to_twos(x, out) }
    }

    /// From two's complement to sign and magnitude.
    #[inline]
    pub fn from_twos<const V: usize>(&self, x: &Number<V>, out: &mut Number<V>) {
        // SAFETY: as above.
        unsafe { from_twos(x, out) }
    }

    /// out = x + y, all in two's complement.
    #[inline]
    pub fn add_twos<const V: usize>(&self, x: &Number<V>, y: &Number<V>, out: &mut Number<V>) {
        // SAFETY: as above.
        unsafe { add_twos(x, y, out) }
    }

    /// out = from & mask.
    #[inline]
    pub fn mask<const V: usize>(&self, from: &[[u64; 8]; V], with: &[[u64; 8]; V], out: &mut [[u64; 8]; V]) {
        // SAFETY: as above.
        unsafe { mask(from, with, out) }
    }

    /// `count` times eight independent multiply-adds of 512 bits, or of 256.
    pub fn multiply_adds(&self, wide: bool, count: u64) {
        // SAFETY: as above.
        unsafe { multiply_adds(wide, count) }
    }

    /// Runs through 48 KiB of code that does nothing.
    pub fn other_code(&self) {
        other_code();
    }

    /// `count` times 64 additions that wait for each other: as many cycles.
    pub fn cycles(&self, count: u64) {
        cycles(count);
    }
}

pub(super) static PROBES: Probes = Probes(());
