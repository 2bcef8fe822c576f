//! Numbers side by side: limb i of eight numbers in the lanes of vector i, 52 bits each, lowest first, in two's complement.

use core::arch::x86_64::*;
use core::array;

/// Bits of a limb.
pub(super) const LIMB: usize = 52;
pub(super) const MASK: i64 = (1 << LIMB) - 1;
/// Limbs of a whole number.
pub(super) const L: usize = 10;

pub(super) type Numbers<const N: usize> = [__m512i; N];

/// N limbs of numbers of nine words, modulo 2^(52 N).
#[target_feature(enable = "avx512f,avx512vbmi2")]
#[inline]
pub(super) fn load<const N: usize>(words: &[[u64; 8]; 9]) -> Numbers<N> {
    // SAFETY: eight words are there.
    let word = |i: usize| unsafe { _mm512_loadu_si512(words[i].as_ptr().cast()) };
    array::from_fn(|i| {
        let (at, shift) = (LIMB * i / 64, LIMB * i % 64);
        let above = word((at + 1).min(8));
        let limb = _mm512_shrdv_epi64(word(at), above, _mm512_set1_epi64(shift as i64));
        _mm512_and_si512(limb, _mm512_set1_epi64(MASK))
    })
}

/// Eleven limbs as nine words, the highest with the number's sign.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn store(x: &Numbers<11>, words: &mut [[u64; 8]; 9]) {
    for (i, words) in words.iter_mut().enumerate() {
        let (at, shift) = (64 * i / LIMB, 64 * i % LIMB);
        // The highest has copies of its sign above it.
        let limb = |k: usize| if at + k < 10 { x[at + k] } else { signed(x[10]) };
        let left = |x, by: usize| _mm512_sllv_epi64(x, _mm512_set1_epi64(by as i64));
        let mut word = _mm512_srav_epi64(limb(0), _mm512_set1_epi64(shift as i64));
        word = _mm512_or_si512(word, left(limb(1), LIMB - shift));
        if at + 2 <= 10 && 2 * LIMB - shift < 64 {
            word = _mm512_or_si512(word, left(limb(2), 2 * LIMB - shift));
        }
        // SAFETY: eight words are there.
        unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), word) };
    }
}

/// A highest limb with its sign.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn signed(x: __m512i) -> __m512i {
    _mm512_srai_epi64::<{ 64 - LIMB as u32 }>(_mm512_slli_epi64::<{ 64 - LIMB as u32 }>(x))
}

/// The lanes whose numbers are negative.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn negative(x: &[__m512i]) -> __mmask8 {
    _mm512_test_epi64_mask(x[x.len() - 1], _mm512_set1_epi64(1 << (LIMB - 1)))
}

/// Passes carries up, of limbs of at most 63 bits.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn carry(x: &mut [__m512i]) {
    let mut carry = _mm512_setzero_si512();
    for x in x {
        let t = _mm512_add_epi64(*x, carry);
        carry = _mm512_srai_epi64::<{ LIMB as u32 }>(t);
        *x = _mm512_and_si512(t, _mm512_set1_epi64(MASK));
    }
}

/// Minus the numbers of these lanes.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn negated<const N: usize>(mut x: Numbers<N>, lanes: __mmask8) -> Numbers<N> {
    let zero = _mm512_setzero_si512();
    for x in &mut x {
        *x = _mm512_mask_sub_epi64(*x, lanes, zero, *x);
    }
    carry(&mut x);
    x
}

/// x in these lanes, y in the others.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn chosen<const N: usize>(lanes: __mmask8, x: &Numbers<N>, y: &Numbers<N>) -> Numbers<N> {
    array::from_fn(|i| _mm512_mask_blend_epi64(lanes, y[i], x[i]))
}

/// x - y.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn difference<const N: usize>(x: &Numbers<N>, y: &Numbers<N>) -> Numbers<N> {
    let mut out = array::from_fn(|i| _mm512_sub_epi64(x[i], y[i]));
    carry(&mut out);
    out
}

/// x y + z modulo 2^(52 R), of numbers that are not negative; carries are not passed up.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub(super) fn times_plus<const A: usize, const B: usize, const R: usize>(
    x: &Numbers<A>,
    y: &Numbers<B>,
    z: Numbers<R>,
) -> Numbers<R> {
    let mut out = z;
    for j in 0..B {
        for i in 0..A {
            if i + j < R {
                out[i + j] = _mm512_madd52lo_epu64(out[i + j], x[i], y[j]);
            }
            if i + j + 1 < R {
                out[i + j + 1] = _mm512_madd52hi_epu64(out[i + j + 1], x[i], y[j]);
            }
        }
    }
    out
}

/// -1 / x modulo 2^52, of odd numbers' lowest limbs.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub(super) fn minus_inverse(x: __m512i) -> __m512i {
    let (zero, two) = (_mm512_setzero_si512(), _mm512_set1_epi64(2));
    // Newton's iteration: 3 bits, then 6, 12, 24, 48 and 96.
    let mut inverse = x;
    for _ in 0..5 {
        let product = _mm512_madd52lo_epu64(zero, x, inverse);
        inverse = _mm512_madd52lo_epu64(zero, inverse, _mm512_sub_epi64(two, product));
    }
    _mm512_sub_epi64(zero, inverse)
}

/// t / 2^520 modulo v, by Montgomery's reduction: at most v + t / 2^520. t is not negative.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub(super) fn montgomery(mut t: Numbers<{ 2 * L }>, v: &Numbers<L>, minus_inverse: __m512i) -> Numbers<L> {
    let zero = _mm512_setzero_si512();
    for i in 0..L {
        let q = _mm512_madd52lo_epu64(zero, t[i], minus_inverse);
        for j in 0..L {
            t[i + j] = _mm512_madd52lo_epu64(t[i + j], q, v[j]);
            t[i + j + 1] = _mm512_madd52hi_epu64(t[i + j + 1], q, v[j]);
        }
        t[i + 1] = _mm512_add_epi64(t[i + 1], _mm512_srli_epi64::<{ LIMB as u32 }>(t[i]));
    }
    let mut out = array::from_fn(|i| t[i + L]);
    carry(&mut out);
    out
}

/// t / v modulo 2^(52 N), if v divides t.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub(super) fn quotient<const N: usize>(
    mut t: Numbers<N>,
    v: &Numbers<L>,
    minus_inverse: __m512i,
) -> Numbers<N> {
    let zero = _mm512_setzero_si512();
    let mut out = [zero; N];
    for i in 0..N {
        let q = _mm512_madd52lo_epu64(zero, t[i], minus_inverse);
        for j in 0..N - i {
            t[i + j] = _mm512_madd52lo_epu64(t[i + j], q, v[j]);
            if i + j + 1 < N {
                t[i + j + 1] = _mm512_madd52hi_epu64(t[i + j + 1], q, v[j]);
            }
        }
        if i + 1 < N {
            t[i + 1] = _mm512_add_epi64(t[i + 1], _mm512_srli_epi64::<{ LIMB as u32 }>(t[i]));
        }
        // Minus the quotient's limb.
        out[i] = _mm512_sub_epi64(zero, _mm512_and_si512(q, _mm512_set1_epi64(MASK)));
    }
    carry(&mut out);
    out
}

/// x y of signed numbers of six limbs, to be added to `sum`, modulo 2^572; carries are not passed up.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
pub(super) fn signed_times_plus(x: &Numbers<6>, y: &Numbers<6>, sum: Numbers<11>) -> Numbers<11> {
    let mut out = times_plus(x, y, sum);
    let (minus_x, minus_y) = (negative(x), negative(y));
    for i in 0..5 {
        // A negative number stands for itself and 2^312.
        let t = _mm512_mask_sub_epi64(out[i + 6], minus_x, out[i + 6], y[i]);
        out[i + 6] = _mm512_mask_sub_epi64(t, minus_y, t, x[i]);
    }
    out
}

/// 2^n; n lies between -1022 and 1023. (`powi` is not in `core`.)
pub(super) const fn exp2(n: i32) -> f64 {
    f64::from_bits(((n + 1023) as u64) << 52)
}

/// The values of numbers of at least one limb: of their four highest limbs, in units of the lowest of those.
#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
pub(super) fn value(x: &[__m512i]) -> __m512d {
    let n = x.len();
    let scale = _mm512_set1_pd((1u64 << LIMB) as f64);
    let mut out = _mm512_cvtepi64_pd(signed(x[n - 1]));
    for x in x[n.saturating_sub(4)..n - 1].iter().rev() {
        out = _mm512_fmadd_pd(out, scale, _mm512_cvtepi64_pd(*x));
    }
    out
}
