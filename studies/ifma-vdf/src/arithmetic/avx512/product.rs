//! Products, squares and sums of products.
//!
//! Limb i of one factor times the vector t of the other lands at limb i + 8 t (low halves) and one above (high halves). Rows
//! whose i differ by a multiple of 8 are aligned alike in the vectors, so there are eight classes of rows. Within a class
//! products are only accumulated, and each class is turned into its place once, by a rotation of lanes and two masked additions.
//! A factor's limbs beyond its last whole vector are taken the other way round, one by one times the vectors of the other factor,
//! so that vectors of two or four limbs are not multiplied by everything.
//!
//! Multiply-adds (each half counted): 256 bits 10, 512 bits 28, 1,024 bits 104, 2,112 bits 422; squares take 10, 24, 76
//! and (as products) 422: products of different vectors are formed once and doubled. Floor: Zen 5 has two 512-bit multiply-adds a
//! cycle, Zen 4 one; latency 4, about four deep in a class, rotation and sums 10, then the carries' 21: about 45 cycles before a
//! short product can be used.

use super::carry::{carry, fits, settle as settle_lanes};
use super::{Number, Sum, Z, limbs};
use core::arch::asm;
use core::arch::x86_64::*;

/// Lanes turned up by O places.
#[inline(always)]
unsafe fn turned<const O: usize>(x: Z) -> Z {
    // SAFETY: the caller has the features.
    unsafe {
        match O {
            1 => _mm512_alignr_epi64::<7>(x, x),
            2 => _mm512_alignr_epi64::<6>(x, x),
            3 => _mm512_alignr_epi64::<5>(x, x),
            4 => _mm512_alignr_epi64::<4>(x, x),
            5 => _mm512_alignr_epi64::<3>(x, x),
            6 => _mm512_alignr_epi64::<2>(x, x),
            7 => _mm512_alignr_epi64::<1>(x, x),
            _ => x,
        }
    }
}

/// Limb i of a factor in every lane.
#[inline(always)]
unsafe fn limb<const V: usize>(x: &Number<V>, i: usize) -> Z {
    // SAFETY: the caller has the features.
    unsafe { _mm512_set1_epi64(x.words[i / 8][i % 8] as i64) }
}

/// acc + the low halves, or the high ones, of lanes' products.
#[inline(always)]
unsafe fn accumulate<const HIGH: bool>(acc: Z, x: Z, y: Z) -> Z {
    // SAFETY: the caller has the features.
    unsafe { if HIGH { _mm512_madd52hi_epu64(acc, x, y) } else { _mm512_madd52lo_epu64(acc, x, y) } }
}

/// The rows of limb i, low or high halves, added to the accumulators of their class from `k` on.
#[inline(always)]
unsafe fn rows<const V: usize, const D: usize, const L: usize, const HIGH: bool>(
    a: &Number<V>,
    b: &Number<V>,
    i: usize,
    k: usize,
    acc: &mut [Z; D],
) {
    // SAFETY: the caller has the features.
    unsafe {
        let (x, y) = (a.load(), b.load());
        let factor = limb(b, i);
        for t in 0..L / 8 {
            acc[k + t] = accumulate::<HIGH>(acc[k + t], x[t], factor);
        }
        if i >= L / 8 * 8 {
            let factor = limb(a, i);
            for t in 0..V {
                acc[k + t] = accumulate::<HIGH>(acc[k + t], y[t], factor);
            }
        }
    }
}

/// A mask hidden from the compiler, which turns masked additions with a constant mask into blends and shuffles.
#[inline(always)]
fn mask(lanes: u8) -> __mmask8 {
    let mut lanes = u32::from(lanes);
    // SAFETY: no instruction.
    unsafe {
        asm!("/* {0:e} */", inout(reg) lanes, options(pure, nomem, nostack, preserves_flags));
    }
    lanes as u8
}

/// Adds a class's accumulators to the result at their place.
#[inline(always)]
unsafe fn place<const D: usize, const O: usize>(sum: &mut [Z; D], acc: &[Z; D]) {
    // SAFETY: the caller has the features.
    unsafe {
        if O == 0 {
            for k in 0..D {
                sum[k] = _mm512_add_epi64(sum[k], acc[k]);
            }
            return;
        }
        let (own, next) = (mask(0xff << O), mask(!(0xff << O)));
        for k in 0..D {
            let turned = turned::<O>(acc[k]);
            sum[k] = _mm512_mask_add_epi64(sum[k], own, sum[k], turned);
            if k + 1 < D {
                sum[k + 1] = _mm512_mask_add_epi64(sum[k + 1], next, sum[k + 1], turned);
            }
        }
    }
}

/// The class of rows that begin O lanes into a vector.
#[inline(always)]
unsafe fn class<const V: usize, const D: usize, const L: usize, const O: usize>(
    a: &Number<V>,
    b: &Number<V>,
    sum: &mut [Z; D],
) {
    // SAFETY: the caller has the features.
    unsafe {
        let mut acc = [_mm512_setzero_si512(); D];
        for k in 0..V {
            if 8 * k + O < L {
                rows::<V, D, L, false>(a, b, 8 * k + O, k, &mut acc);
            }
            if O > 0 && 8 * k + O <= L {
                rows::<V, D, L, true>(a, b, 8 * k + O - 1, k, &mut acc);
            }
            if O == 0 && 8 * k + 8 <= L {
                rows::<V, D, L, true>(a, b, 8 * k + 7, k + 1, &mut acc);
            }
        }
        place::<D, O>(sum, &acc);
    }
}

/// Lanes of the product of two numbers of L limbs, not carried.
#[inline(always)]
pub(crate) unsafe fn lanes<const V: usize, const D: usize, const L: usize>(
    a: &Number<V>,
    b: &Number<V>,
) -> [Z; D] {
    // SAFETY: the caller has the features.
    unsafe {
        let mut sum = [_mm512_setzero_si512(); D];
        class::<V, D, L, 0>(a, b, &mut sum);
        class::<V, D, L, 1>(a, b, &mut sum);
        class::<V, D, L, 2>(a, b, &mut sum);
        class::<V, D, L, 3>(a, b, &mut sum);
        class::<V, D, L, 4>(a, b, &mut sum);
        class::<V, D, L, 5>(a, b, &mut sum);
        class::<V, D, L, 6>(a, b, &mut sum);
        class::<V, D, L, 7>(a, b, &mut sum);
        sum
    }
}

/// The lanes of a product for operands of N 64-bit limbs: the compiler must know the count of limbs.
macro_rules! by_limbs {
    ($f:ident, $n:expr, $v:expr, $d:expr, $($x:expr),*) => {
        match $n {
            4 => $f::<$v, $d, 5>($($x),*),
            8 => $f::<$v, $d, 10>($($x),*),
            16 => $f::<$v, $d, 20>($($x),*),
            _ => $f::<$v, $d, 41>($($x),*),
        }
    };
}

const _: () = assert!(limbs(256) == 5 && limbs(512) == 10 && limbs(1024) == 20 && limbs(2112) == 41);

/// Products, for N 64-bit limbs.
///
/// # Safety
/// The CPU must have the features of this backend.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,bmi1,bmi2")]
pub(crate) unsafe fn mul<const V: usize, const D: usize, const N: usize>(
    a: &Number<V>,
    b: &Number<V>,
    out: &mut Number<D>,
) {
    // SAFETY: the features are this function's; memory is read and written within its types, or masked.
    unsafe {
        let mut sum: [Z; D] = by_limbs!(lanes, N, V, D, a, b);
        carry(&mut sum, false);
        let negative = a.sign() != b.sign() && nonzero(&sum);
        out.store(&sum, negative);
    }
}

/// Whether any lane is not 0.
#[inline(always)]
pub(crate) unsafe fn nonzero<const K: usize>(x: &[Z; K]) -> bool {
    // SAFETY: the caller has the features.
    unsafe {
        let mut some = x[0];
        for t in 1..K {
            some = _mm512_or_si512(some, x[t]);
        }
        _mm512_test_epi64_mask(some, some) != 0
    }
}

/// The rows of a square: vector t times limb i for the limbs of vectors above t, to be doubled, or of vector t itself.
#[inline(always)]
unsafe fn square_rows<const V: usize, const D: usize, const HIGH: bool>(
    x: &Number<V>,
    i: usize,
    k: usize,
    own: bool,
    acc: &mut [Z; D],
) {
    // SAFETY: the caller has the features.
    unsafe {
        let vectors = x.load();
        let factor = limb(x, i);
        let (from, to) = if own { (i / 8, i / 8 + 1) } else { (0, i / 8) };
        for t in 0..V {
            if from <= t && t < to {
                acc[k + t] = accumulate::<HIGH>(acc[k + t], vectors[t], factor);
            }
        }
    }
}

#[inline(always)]
unsafe fn square_class<const V: usize, const D: usize, const L: usize, const O: usize>(
    x: &Number<V>,
    sum: &mut [Z; D],
) {
    // SAFETY: the caller has the features.
    unsafe {
        let mut acc = [_mm512_setzero_si512(); D];
        for own in [false, true] {
            for k in 0..V {
                if 8 * k + O < L {
                    square_rows::<V, D, false>(x, 8 * k + O, k, own, &mut acc);
                }
                if O > 0 && 8 * k + O <= L {
                    square_rows::<V, D, true>(x, 8 * k + O - 1, k, own, &mut acc);
                }
                if O == 0 && 8 * k + 8 <= L {
                    square_rows::<V, D, true>(x, 8 * k + 7, k + 1, own, &mut acc);
                }
            }
            if !own {
                for k in 0..D {
                    acc[k] = _mm512_add_epi64(acc[k], acc[k]);
                }
            }
        }
        place::<D, O>(sum, &acc);
    }
}

#[inline(always)]
unsafe fn square_lanes<const V: usize, const D: usize, const L: usize>(x: &Number<V>) -> [Z; D] {
    // SAFETY: the caller has the features.
    unsafe {
        let mut sum = [_mm512_setzero_si512(); D];
        square_class::<V, D, L, 0>(x, &mut sum);
        square_class::<V, D, L, 1>(x, &mut sum);
        square_class::<V, D, L, 2>(x, &mut sum);
        square_class::<V, D, L, 3>(x, &mut sum);
        square_class::<V, D, L, 4>(x, &mut sum);
        square_class::<V, D, L, 5>(x, &mut sum);
        square_class::<V, D, L, 6>(x, &mut sum);
        square_class::<V, D, L, 7>(x, &mut sum);
        sum
    }
}

/// Squares, for N 64-bit limbs.
///
/// # Safety
/// As [`mul`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,bmi1,bmi2")]
pub(crate) unsafe fn square<const V: usize, const D: usize, const N: usize>(
    x: &Number<V>,
    out: &mut Number<D>,
) {
    // SAFETY: the features are this function's; memory is read and written within its types, or masked.
    unsafe {
        // Beyond 20 limbs the doubled half no longer fits the registers, and the compiler keeps its rows in memory.
        let mut sum: [Z; D] =
            if N > 16 { by_limbs!(lanes, N, V, D, x, x) } else { by_limbs!(square_lanes, N, V, D, x) };
        carry(&mut sum, false);
        out.store(&sum, false);
    }
}

/// Terms after which a sum's lanes are carried one round. Lanes of a product of 41 limbs are below 2^59, so six are below 2^62.
const TERMS: u32 = 6;

impl<const D: usize> Sum<D> {
    #[inline(always)]
    unsafe fn lanes(&self) -> [Z; D] {
        // SAFETY: the caller has the features.
        unsafe {
            let mut out = [_mm512_setzero_si512(); D];
            for t in 0..D {
                out[t] = _mm512_load_si512(self.words[t].as_ptr().cast());
            }
            out
        }
    }

    /// Adds lanes, or takes them away.
    #[inline(always)]
    unsafe fn accumulate(&mut self, x: &[Z; D], minus: bool) {
        // SAFETY: the caller has the features.
        unsafe {
            let mut sum = self.lanes();
            if self.terms == TERMS {
                relax(&mut sum);
                self.terms = 1;
            }
            self.terms += 1;
            let mask = if minus { 0xff } else { 0 };
            for t in 0..D {
                let x = _mm512_mask_sub_epi64(x[t], mask, _mm512_setzero_si512(), x[t]);
                let sum = _mm512_add_epi64(sum[t], x);
                _mm512_store_si512(self.words[t].as_mut_ptr().cast(), sum);
            }
        }
    }
}

/// One round of carries of lanes of either sign: afterwards they are between -2^10 and 2^52 + 2^10. The highest lane keeps its
/// sign.
#[inline(always)]
unsafe fn relax<const D: usize>(x: &mut [Z; D]) {
    // SAFETY: the caller has the features.
    unsafe {
        let mut over = *x;
        for t in 0..D {
            over[t] = _mm512_srai_epi64::<52>(x[t]);
            let limb = _mm512_set1_epi64(super::LIMB as i64);
            let keep = if t + 1 == D { _mm512_mask_set1_epi64(limb, 0x80, -1) } else { limb };
            x[t] = _mm512_and_si512(x[t], keep);
        }
        let over = super::carry::up(&over);
        for t in 0..D {
            x[t] = _mm512_add_epi64(x[t], over[t]);
        }
    }
}

/// sum + a b, or sum - a b.
///
/// # Safety
/// As [`mul`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,bmi1,bmi2")]
pub(crate) unsafe fn add_product<const V: usize, const D: usize, const N: usize>(
    sum: &mut Sum<D>,
    a: &Number<V>,
    b: &Number<V>,
    minus: bool,
) {
    // SAFETY: the features are this function's; memory is read and written within its types, or masked.
    unsafe {
        let product: [Z; D] = by_limbs!(lanes, N, V, D, a, b);
        sum.accumulate(&product, (a.sign() != b.sign()) != minus);
    }
}

/// sum + x, or sum - x.
///
/// # Safety
/// As [`mul`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,bmi1,bmi2")]
pub(crate) unsafe fn add_wide<const D: usize>(sum: &mut Sum<D>, x: &Number<D>, minus: bool) {
    // SAFETY: the features are this function's; memory is read and written within its types, or masked.
    unsafe {
        sum.accumulate(&x.load(), x.sign() != minus);
    }
}

/// Carries a sum, for W 64-bit limbs.
///
/// # Safety
/// As [`mul`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,bmi1,bmi2")]
pub(crate) unsafe fn settle<const D: usize, const W: usize>(sum: &Sum<D>, out: &mut Number<D>) -> bool {
    // SAFETY: the features are this function's; memory is read and written within its types, or masked.
    unsafe {
        let mut lanes = sum.lanes();
        let negative = settle_lanes(&mut lanes);
        out.store(&lanes, negative);
        fits(&lanes, 64 * W)
    }
}
