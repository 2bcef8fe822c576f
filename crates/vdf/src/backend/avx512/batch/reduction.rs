//! Steps of reduction of eight forms at once: a substitution is found from the coefficients' values in floating point, and
//! applied to whole numbers.

use core::arch::x86_64::*;

use super::lanes::{LIMB, MASK, Numbers, exp2, value};

/// Steps after which the rest is left to other code.
const STEPS: usize = 24;

/// A substitution x = p x' + q y', y = r x' + s y' of determinant 1.
struct Substitution {
    p: __m512d,
    q: __m512d,
    r: __m512d,
    s: __m512d,
}

/// The one that reduces forms with these coefficients, or almost; `None` if it changes nothing.
#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
fn substitution(mut a: __m512d, mut b: __m512d, mut c: __m512d) -> Option<Substitution> {
    let (zero, one) = (_mm512_setzero_pd(), _mm512_set1_pd(1.0));
    let mut to = Substitution { p: one, q: zero, r: zero, s: one };
    let mut changed = false;
    for _ in 0..STEPS {
        // (a, b, c) to (c, -b, a).
        let turned = _mm512_cmp_pd_mask::<_CMP_LT_OQ>(c, a);
        (a, c) = (_mm512_mask_blend_pd(turned, a, c), _mm512_mask_blend_pd(turned, c, a));
        b = _mm512_mask_sub_pd(b, turned, zero, b);
        let Substitution { p, q, r, s } = to;
        let (p, r) = (_mm512_mask_blend_pd(turned, p, q), _mm512_mask_blend_pd(turned, r, s));
        let (q, s) = (_mm512_mask_sub_pd(q, turned, zero, to.p), _mm512_mask_sub_pd(s, turned, zero, to.r));
        // y' = y - n x.
        let positive = _mm512_cmp_pd_mask::<_CMP_GT_OQ>(a, zero);
        let n = _mm512_maskz_roundscale_pd::<0>(positive, _mm512_div_pd(b, _mm512_add_pd(a, a)));
        let half = _mm512_fnmadd_pd(n, a, b);
        c = _mm512_fnmadd_pd(n, half, c);
        b = _mm512_fnmadd_pd(n, a, half);
        to = Substitution { p, q: _mm512_fnmadd_pd(n, p, q), r, s: _mm512_fnmadd_pd(n, r, s) };
        let moved = _mm512_cmp_pd_mask::<_CMP_NEQ_OQ>(n, zero);
        changed |= turned | moved != 0;
        // A product of two entries has to fit in a limb.
        let large =
            |x| _mm512_cmp_pd_mask::<_CMP_GE_OQ>(_mm512_abs_pd(x), _mm512_set1_pd((1u64 << 25) as f64));
        if moved == 0 || large(to.q) | large(to.s) != 0 {
            break;
        }
    }
    changed.then_some(to)
}

/// A sum of three numbers times small signed factors, modulo 2^572.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
#[inline]
fn combined(factors: [__m512d; 3], x: [&Numbers<11>; 3]) -> Numbers<11> {
    let (zero, mask) = (_mm512_setzero_si512(), _mm512_set1_epi64(MASK));
    let minus = factors.map(|f| _mm512_cmp_pd_mask::<_CMP_LT_OQ>(f, _mm512_setzero_pd()));
    let size = factors.map(|f| _mm512_cvttpd_epi64(_mm512_abs_pd(f)));
    let flip = minus.map(|lanes| _mm512_maskz_mov_epi64(lanes, mask));
    // -x is its complement and 1.
    let mut carry = zero;
    for i in 0..3 {
        carry = _mm512_mask_add_epi64(carry, minus[i], carry, size[i]);
    }
    let (mut out, mut high) = ([zero; 11], zero);
    for (k, out) in out.iter_mut().enumerate() {
        let (mut low, mut above) = (high, zero);
        for i in 0..3 {
            let x = _mm512_xor_si512(x[i][k], flip[i]);
            low = _mm512_madd52lo_epu64(low, size[i], x);
            above = _mm512_madd52hi_epu64(above, size[i], x);
        }
        high = above;
        let t = _mm512_add_epi64(low, carry);
        carry = _mm512_srli_epi64::<{ LIMB as u32 }>(t);
        *out = _mm512_and_si512(t, mask);
    }
    out
}

/// Reduces forms, or almost.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
#[inline]
pub(super) fn reduce(a: &mut Numbers<11>, b: &mut Numbers<11>, c: &mut Numbers<11>) {
    let mut length = 11;
    let mut values;
    loop {
        values = [&*a, &*b, &*c].map(|x| value(&x[..length]));
        let limit = _mm512_set1_pd(exp2((LIMB * 3) as i32 - 2));
        let fits = |x| _mm512_cmp_pd_mask::<_CMP_LT_OQ>(_mm512_abs_pd(x), limit) == 0xff;
        if length == 4 || !values.into_iter().all(fits) {
            break;
        }
        length -= 1;
    }
    let [x, y, z] = values;
    let Some(Substitution { p, q, r, s }) = substitution(x, y, z) else { return };
    let times = |x, y| _mm512_mul_pd(x, y);
    let twice = |x| _mm512_add_pd(x, x);
    let form = [&*a, &*b, &*c];
    let first = combined([times(p, p), times(p, r), times(r, r)], form);
    let middle = _mm512_fmadd_pd(p, s, times(q, r));
    let second = combined([twice(times(p, q)), middle, twice(times(r, s))], form);
    let third = combined([times(q, q), times(q, s), times(s, s)], form);
    (*a, *b, *c) = (first, second, third);
}
