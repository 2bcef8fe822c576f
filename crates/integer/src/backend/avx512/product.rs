//! Products, squares and sums of products.
//!
//! Limb i of one factor times the vector t of the other lands at limb i + 8 t (low halves) and one above (high halves). Rows
//! whose i differ by a multiple of 8 lie alike in the vectors, so there are eight classes of rows: within a class products are
//! only accumulated, and each class is turned into its place once, by a rotation of lanes and two masked additions. A factor's
//! limbs beyond its last whole vector are taken the other way round, one by one times the vectors of the other factor,
//! so that vectors of two or four limbs are not multiplied by everything.
//!
//! Multiply-adds (each half counted): 256 bits 10, 512 bits 28, 1,024 bits 104, 2,112 bits 422; squares take about 10, 24,
//! 76 and 270, as products of different vectors are formed once and doubled. Floor: Zen 5 has two 512-bit multiply-adds a
//! cycle, Zen 4 one; latency 4, about four deep in a class, rotation and sums 10, then the carries' 21: about 45 cycles before a
//! short product can be used.

use super::carry::{carry, fits, settle as settle_lanes};
use super::{Number, Sum, Z, limbs};
use core::arch::x86_64::*;

/// Lanes turned up by O places.
#[target_feature(enable = "avx512f")]
#[inline]
fn turned<const O: usize>(x: Z) -> Z {
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

/// Limb i of a factor in every lane.
#[target_feature(enable = "avx512f")]
#[inline]
fn limb<const V: usize>(x: &Number<V>, i: usize) -> Z {
    _mm512_set1_epi64(x.words[i / 8][i % 8] as i64)
}

/// acc + the low halves, or the high ones, of lanes' products.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
fn accumulate<const HIGH: bool>(acc: Z, x: Z, y: Z) -> Z {
    if HIGH { _mm512_madd52hi_epu64(acc, x, y) } else { _mm512_madd52lo_epu64(acc, x, y) }
}

/// The rows of limb i, low or high halves, added to the accumulators of their class from `k` on.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
fn rows<const V: usize, const D: usize, const L: usize, const HIGH: bool>(
    a: &Number<V>,
    b: &Number<V>,
    i: usize,
    k: usize,
    acc: &mut [Z; D],
) {
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

/// Adds a class's accumulators to the result at their place.
#[target_feature(enable = "avx512f")]
#[inline]
fn place<const D: usize, const O: usize>(sum: &mut [Z; D], acc: &[Z; D]) {
    for k in 0..D {
        if O == 0 {
            sum[k] = _mm512_add_epi64(sum[k], acc[k]);
        } else {
            let turned = turned::<O>(acc[k]);
            sum[k] = _mm512_mask_add_epi64(sum[k], 0xff << O, sum[k], turned);
            if k + 1 < D {
                sum[k + 1] = _mm512_mask_add_epi64(sum[k + 1], !(0xff << O), sum[k + 1], turned);
            }
        }
    }
}

/// The class of rows that begin O lanes into a vector.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
fn class<const V: usize, const D: usize, const L: usize, const O: usize>(
    a: &Number<V>,
    b: &Number<V>,
    sum: &mut [Z; D],
) {
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

/// Lanes of the product of two numbers of L limbs, not carried.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub(crate) fn lanes<const V: usize, const D: usize, const L: usize>(a: &Number<V>, b: &Number<V>) -> [Z; D] {
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

/// The lanes of a product for operands of N 64-bit limbs: the count of limbs is the compiler's to know.
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
    let mut sum: [Z; D] = by_limbs!(lanes, N, V, D, a, b);
    carry(&mut sum, false);
    let negative = a.negative != b.negative && !a.is_zero() && !b.is_zero();
    out.store(&sum, negative);
}

/// The rows of a square: vector t times limb i for the limbs of vectors above t, to be doubled, or of vector t itself.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
fn square_rows<const V: usize, const D: usize, const HIGH: bool>(
    x: &Number<V>,
    i: usize,
    k: usize,
    own: bool,
    acc: &mut [Z; D],
) {
    let vectors = x.load();
    let factor = limb(x, i);
    let (from, to) = if own { (i / 8, i / 8 + 1) } else { (0, i / 8) };
    for t in 0..V {
        if from <= t && t < to {
            acc[k + t] = accumulate::<HIGH>(acc[k + t], vectors[t], factor);
        }
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
fn square_class<const V: usize, const D: usize, const L: usize, const O: usize>(
    x: &Number<V>,
    sum: &mut [Z; D],
) {
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

#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
fn square_lanes<const V: usize, const D: usize, const L: usize>(x: &Number<V>) -> [Z; D] {
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

/// Squares, for N 64-bit limbs.
///
/// # Safety
/// As [`mul`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,bmi1,bmi2")]
pub(crate) unsafe fn square<const V: usize, const D: usize, const N: usize>(
    x: &Number<V>,
    out: &mut Number<D>,
) {
    let mut sum: [Z; D] = by_limbs!(square_lanes, N, V, D, x);
    carry(&mut sum, false);
    out.store(&sum, false);
}

/// Terms after which a sum's lanes are carried one round. Lanes of a product of 41 limbs are below 2^59, so six are below 2^62.
const TERMS: u32 = 6;

impl<const D: usize> Sum<D> {
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn lanes(&self) -> [Z; D] {
        let mut out = [_mm512_setzero_si512(); D];
        for t in 0..D {
            // SAFETY: 64 readable bytes, at a multiple of 64: the words come first in an aligned type.
            out[t] = unsafe { _mm512_load_si512(self.words[t].as_ptr().cast()) };
        }
        out
    }

    /// Adds lanes, or takes them away.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq")]
    #[inline]
    fn accumulate(&mut self, x: &[Z; D], minus: bool) {
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
            // SAFETY: 64 writable bytes, at a multiple of 64.
            unsafe { _mm512_store_si512(self.words[t].as_mut_ptr().cast(), sum) };
        }
    }
}

/// One round of carries of lanes of either sign: they are 2^52 + 2^10 at most and -2^10 at least then. The highest lane keeps its
/// sign.
#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
#[inline]
fn relax<const D: usize>(x: &mut [Z; D]) {
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
    let product: [Z; D] = by_limbs!(lanes, N, V, D, a, b);
    sum.accumulate(&product, (a.negative != b.negative) != minus);
}

/// sum + x, or sum - x.
///
/// # Safety
/// As [`mul`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,bmi1,bmi2")]
pub(crate) unsafe fn add_wide<const D: usize>(sum: &mut Sum<D>, x: &Number<D>, minus: bool) {
    sum.accumulate(&x.load(), x.negative != minus);
}

/// Carries a sum, for W 64-bit limbs.
///
/// # Safety
/// As [`mul`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,bmi1,bmi2")]
pub(crate) unsafe fn settle<const D: usize, const W: usize>(sum: &Sum<D>, out: &mut Number<D>) -> bool {
    let mut lanes = sum.lanes();
    let negative = settle_lanes(&mut lanes);
    out.store(&lanes, negative);
    fits(&lanes, 64 * W)
}
