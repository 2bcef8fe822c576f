//! From rows in lanes to a form: all products side by side, one number in each lane.

use core::arch::x86_64::*;

use super::partial::{LANE, MASK, Rows};
use crate::backend::Form1024;
use crate::backend::generic::compose;

/// Limbs of 51 bits of a row's number, and of a product.
const HALF: usize = 6;
const FULL: usize = 2 * HALF;

/// Limb i of x0, x1, v0, v1, e0, e1 in lanes 0 to 5 of vector i, the highest with the number's sign.
#[target_feature(enable = "avx512f")]
#[inline]
fn turned(rows: &Rows) -> [__m512i; HALF] {
    let zero = _mm512_setzero_si512();
    let even = |pair: &[__m512i; 2]| _mm512_unpacklo_epi64(pair[0], pair[1]);
    let odd = |pair: &[__m512i; 2]| _mm512_unpackhi_epi64(pair[0], pair[1]);
    let mut out = [zero; HALF];
    let mut carry = zero;
    let mask = _mm512_set1_epi64(MASK);
    for (i, out) in out.iter_mut().enumerate() {
        let [x, v, e] = if i & 1 == 0 {
            [even(&rows.x), even(&rows.v), even(&rows.e)]
        } else {
            [odd(&rows.x), odd(&rows.v), odd(&rows.e)]
        };
        let at = (i & !1) as i64;
        let four = _mm512_permutex2var_epi64(x, _mm512_setr_epi64(at, at + 1, at + 8, at + 9, 0, 0, 0, 0), v);
        let index = _mm512_setr_epi64(0, 1, 2, 3, at + 8, at + 9, 0, 0);
        let t = _mm512_maskz_permutex2var_epi64(0x3f, four, index, e);
        let t = _mm512_add_epi64(t, carry);
        carry = _mm512_srli_epi64::<{ LANE as u32 }>(t);
        *out = _mm512_and_si512(t, mask);
    }
    out
}

/// x0^2 + e0 v0, x1^2 + e1 v1 and x0 x1 + e0 v1, in lanes 0 to 2 of twelve limbs, the highest signed.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vl")]
#[inline]
fn products(rows: &Rows) -> [__m256i; FULL] {
    let limbs = turned(rows);
    let zero = _mm512_setzero_si512();
    let left = _mm512_setr_epi64(0, 1, 0, 7, 4, 5, 4, 7);
    let right = _mm512_setr_epi64(0, 1, 1, 7, 2, 3, 3, 7);
    let (mut x, mut y) = ([zero; HALF], [zero; HALF]);
    for i in 0..HALF {
        x[i] = _mm512_permutexvar_epi64(left, limbs[i]);
        y[i] = _mm512_permutexvar_epi64(right, limbs[i]);
    }
    let sign = _mm512_set1_epi64(1 << (LANE - 1));
    // Negative numbers are stored as their value plus 2^306.
    let minus_x = _mm512_test_epi64_mask(x[HALF - 1], sign);
    let minus_y = _mm512_test_epi64_mask(y[HALF - 1], sign);
    let (mut low, mut high) = ([zero; FULL], [zero; FULL]);
    for i in 0..HALF {
        low[i + HALF] = _mm512_mask_sub_epi64(low[i + HALF], minus_y, low[i + HALF], x[i]);
        low[i + HALF] = _mm512_mask_sub_epi64(low[i + HALF], minus_x, low[i + HALF], y[i]);
    }
    for i in 0..HALF {
        for j in 0..HALF {
            low[i + j] = _mm512_madd52lo_epu64(low[i + j], x[i], y[j]);
            high[i + j + 1] = _mm512_madd52hi_epu64(high[i + j + 1], x[i], y[j]);
        }
    }
    let mask = _mm256_set1_epi64x(MASK);
    let mut out = [_mm256_setzero_si256(); FULL];
    let mut carry = out[0];
    for i in 0..FULL {
        let t = _mm512_add_epi64(low[i], _mm512_add_epi64(high[i], high[i]));
        let t = _mm256_add_epi64(_mm512_castsi512_si256(t), _mm512_extracti64x4_epi64::<1>(t));
        let t = _mm256_add_epi64(t, carry);
        carry = _mm256_srai_epi64::<{ LANE as u32 }>(t);
        out[i] = if i + 1 < FULL {
            _mm256_and_si256(t, mask)
        } else {
            // Modulo 2^612: for two negative factors the sum is off by that.
            _mm256_srai_epi64::<{ 64 - LANE as u32 }>(_mm256_slli_epi64::<{ 64 - LANE as i32 }>(t))
        };
    }
    out
}

/// The limbs of one lane as nine of 64 bits, and the bits above them.
#[inline(always)]
fn limbs(store: &[[u64; 4]; FULL], lane: usize) -> ([u64; 9], i64) {
    let mut out = [0; 9];
    for (i, out) in out.iter_mut().enumerate() {
        let (limb, shift) = (64 * i / LANE, 64 * i % LANE);
        *out = store[limb][lane] >> shift | store[limb + 1][lane] << (LANE - shift);
        if shift > 2 * LANE - 64 {
            *out |= store[limb + 2][lane] << (2 * LANE - shift);
        }
    }
    // Bit 576 is bit 15 of the highest.
    (out, store[FULL - 1][lane] as i64 >> 15)
}

/// The form that the rows span, nearly reduced, or `None` if it does not fit. b is the squared form's.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vl")]
#[inline]
pub(super) fn compose(rows: &Rows, determinant: i64, b: &[u64; 8]) -> Option<Form1024> {
    let mut store = [[0u64; 4]; FULL];
    for (to, from) in store.iter_mut().zip(products(rows)) {
        // SAFETY: four words are there.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), from) };
    }
    let ((a, over_a), (c, over_c), (mut middle, over)) =
        (limbs(&store, 0), limbs(&store, 1), limbs(&store, 2));
    if over_a != 0 || over_c != 0 || !(-1..=0).contains(&over) {
        return None;
    }
    // e1 v0 = e0 v1 - det b, since det a = x0 v1 - x1 v0 and e0 v1 - e1 v0 = b (x0 v1 - x1 v0) / a.
    let odd = determinant < 0;
    // - det b in complement.
    let flip = if odd { 0 } else { u64::MAX };
    let (mut carry, mut below) = (!odd, 0);
    for (i, out) in middle.iter_mut().enumerate() {
        let limb = if i < 8 { b[i] } else { 0 };
        let twice = *out << 1 | below >> 63;
        below = *out;
        (*out, carry) = twice.carrying_add(limb ^ flip, carry);
    }
    compose::reduce(a, middle, c, odd)
}
