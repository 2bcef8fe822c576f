//! Euclid's algorithm on eight pairs of numbers at once: nearest-integer quotients of their values in floating point,
//! whole rows every 25 bits.
//!
//! Quotients need not be exact, since matrices of determinant 1 or -1 are applied to whole numbers. A row's sign is free,
//! and is chosen so that no entry has to be negative but those of one column, whose numbers are complemented instead.

use core::arch::x86_64::*;
use core::array;

use super::lanes::{L, LIMB, MASK, Numbers, chosen, exp2, negative, value};

/// Pairs (x, p) and (y, q), where x - p v and y - q v are multiples of one modulus for some v.
pub(super) struct Rows {
    pub(super) x: Numbers<L>,
    pub(super) y: Numbers<L>,
    pub(super) p: Numbers<L>,
    pub(super) q: Numbers<L>,
    /// The lanes in which the rows have changed orientation.
    pub(super) odd: __mmask8,
}

/// A window's matrix: x' = u0 x + v0 y, y' = u1 x + v1 y, with v0 and v1 negative in the lanes `minus`.
struct Matrix {
    u: [__m512i; 2],
    v: [__m512i; 2],
    minus: __mmask8,
}

/// A bound on windows: of numbers of 520 bits, every window takes 25 bits or ends.
const WINDOWS: usize = 64;

/// Values below this are not used if limbs have been left out.
const UNKNOWN: f64 = (1 << 30) as f64;

/// (x, y) times the matrix, modulo 2^52 to their length.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
fn apply(m: &Matrix, x: &mut [__m512i], y: &mut [__m512i]) {
    let (zero, mask) = (_mm512_setzero_si512(), _mm512_set1_epi64(MASK));
    let flip = _mm512_maskz_mov_epi64(m.minus, mask);
    // -y is its complement and 1.
    let mut carry = m.v.map(|v| _mm512_maskz_mov_epi64(m.minus, v));
    let mut high = [zero; 2];
    for (x, y) in x.iter_mut().zip(y) {
        let (a, b) = (*x, _mm512_xor_si512(*y, flip));
        for (k, out) in [x, y].into_iter().enumerate() {
            let low = _mm512_madd52lo_epu64(_mm512_madd52lo_epu64(high[k], m.u[k], a), m.v[k], b);
            high[k] = _mm512_madd52hi_epu64(_mm512_madd52hi_epu64(zero, m.u[k], a), m.v[k], b);
            let t = _mm512_add_epi64(low, carry[k]);
            carry[k] = _mm512_srli_epi64::<{ LIMB as u32 }>(t);
            *out = _mm512_and_si512(t, mask);
        }
    }
}

/// A window in progress: a = u0 x + v0 y and b = u1 x + v1 y for the values of x and y.
struct Window {
    a: __m512d,
    b: __m512d,
    u: [__m512d; 2],
    v: [__m512d; 2],
    /// Where a divisor must not be smaller.
    least: __m512d,
    /// The lanes that have not ended.
    going: __mmask8,
    /// The lanes in which a began as y.
    turned: __mmask8,
}

impl Window {
    /// From the values of x and y, until the smaller is below `bound` or 2^25 times smaller than the larger was.
    #[target_feature(enable = "avx512f,avx512dq")]
    #[inline]
    fn new(x: __m512d, y: __m512d, bound: __m512d) -> Window {
        let (zero, one) = (_mm512_setzero_pd(), _mm512_set1_pd(1.0));
        let turned = _mm512_cmp_pd_mask::<_CMP_LT_OQ>(_mm512_abs_pd(x), _mm512_abs_pd(y));
        let (a, b) = (_mm512_mask_blend_pd(turned, x, y), _mm512_mask_blend_pd(turned, y, x));
        let u = [_mm512_mask_blend_pd(turned, one, zero), _mm512_mask_blend_pd(turned, zero, one)];
        let share = _mm512_mul_pd(_mm512_abs_pd(a), _mm512_set1_pd(1.0 / (1 << 25) as f64));
        let mut out =
            Window { a, b, u, v: [u[1], u[0]], least: _mm512_max_pd(bound, share), going: 0, turned };
        out.going = out.large(b);
        out
    }

    #[target_feature(enable = "avx512f,avx512dq")]
    #[inline]
    fn large(&self, x: __m512d) -> __mmask8 {
        _mm512_cmp_pd_mask::<_CMP_GE_OQ>(_mm512_abs_pd(x), self.least)
    }

    /// A step of each row.
    #[target_feature(enable = "avx512f,avx512dq")]
    #[inline]
    fn step(&mut self) {
        let n = _mm512_roundscale_pd::<0>(_mm512_div_pd(self.a, self.b));
        self.a = _mm512_mask3_fnmadd_pd(n, self.b, self.a, self.going);
        self.u[0] = _mm512_mask3_fnmadd_pd(n, self.u[1], self.u[0], self.going);
        self.v[0] = _mm512_mask3_fnmadd_pd(n, self.v[1], self.v[0], self.going);
        self.going &= self.large(self.a);
        let n = _mm512_roundscale_pd::<0>(_mm512_div_pd(self.b, self.a));
        self.b = _mm512_mask3_fnmadd_pd(n, self.a, self.b, self.going);
        self.u[1] = _mm512_mask3_fnmadd_pd(n, self.u[0], self.u[1], self.going);
        self.v[1] = _mm512_mask3_fnmadd_pd(n, self.v[0], self.v[1], self.going);
        self.going &= self.large(self.b);
    }

    /// The matrix, and the lanes whose rows change orientation.
    #[target_feature(enable = "avx512f,avx512dq")]
    #[inline]
    fn matrix(&self) -> (Matrix, __mmask8) {
        let zero = _mm512_setzero_pd();
        let Window { u, v, .. } = *self;
        // Both rows get a sign for which u is not negative; the signs of v then agree, or one v is 0, or its u is.
        let below = |x| _mm512_cmp_pd_mask::<_CMP_LT_OQ>(x, zero);
        let none = |x| _mm512_cmp_pd_mask::<_CMP_EQ_OQ>(x, zero);
        let minus = [below(u[0]), below(u[1])];
        let with_sign = |k: usize| {
            let v = _mm512_mask_sub_pd(v[k], minus[k], zero, v[k]);
            _mm512_mask_mov_pd(v, none(u[k]), zero)
        };
        let column = below(_mm512_add_pd(with_sign(0), with_sign(1)));
        let flipped = |k: usize| minus[k] | none(u[k]) & (below(v[k]) ^ column);
        let odd = self.turned ^ flipped(0) ^ flipped(1);
        let whole = |x| _mm512_cvttpd_epi64(_mm512_abs_pd(x));
        (Matrix { u: u.map(whole), v: v.map(whole), minus: column }, odd)
    }
}

/// The larger of two numbers' magnitudes.
#[target_feature(enable = "avx512f")]
#[inline]
fn larger(x: __m512d, y: __m512d) -> __m512d {
    _mm512_max_pd(_mm512_abs_pd(x), _mm512_abs_pd(y))
}

/// The lanes whose numbers are below 2^bits.
#[target_feature(enable = "avx512f")]
#[inline]
fn less(x: __m512d, bits: usize) -> __mmask8 {
    _mm512_cmp_pd_mask::<_CMP_LT_OQ>(x, _mm512_set1_pd(exp2(bits as i32)))
}

/// Whether all numbers are below 2^bits.
#[target_feature(enable = "avx512f")]
#[inline]
fn fit<const G: usize>(x: [__m512d; G], bits: usize) -> bool {
    x.into_iter().all(|x| less(x, bits) == 0xff)
}

/// Runs until the smaller number of every pair is below 2^stop; then x is the larger one. `None` if that does not happen.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub(super) fn run<const G: usize>(rows: &mut [Rows; G], stop: usize) -> Option<()> {
    // Limbs in use: x and y become shorter, p and q longer.
    let (mut length, mut cofactors) = (L, 1);
    // The length of numbers below 2^stop, and of those whose values have all their limbs.
    let shortest = 4.max(stop / LIMB + 2);
    // Bounds of |p| and |q|.
    let mut bounds = [(_mm512_setzero_pd(), _mm512_set1_pd(1.0)); G];
    for _ in 0..WINDOWS {
        let values = |rows: &[Rows; G], length: usize| -> [(__m512d, __m512d); G] {
            array::from_fn(|g| (value(&rows[g].x[..length]), value(&rows[g].y[..length])))
        };
        let mut now = values(rows, length);
        while length > 1 && fit(now.map(|(x, y)| larger(x, y)), LIMB * (length.min(4) - 1) - 2) {
            length -= 1;
            now = values(rows, length);
        }
        // In units of the limb from which values begin. If there are limbs below it, so small values are not known well.
        let left_out = LIMB * length.saturating_sub(4);
        let bound = exp2(stop as i32 - left_out as i32);
        let bound = _mm512_set1_pd(if left_out > 0 { bound.max(UNKNOWN) } else { bound });
        let mut windows = now.map(|(x, y)| Window::new(x, y, bound));
        if windows.iter().all(|window| window.going == 0) {
            if length <= shortest {
                for (rows, window) in rows.iter_mut().zip(windows) {
                    rows.end(window.turned, length, cofactors);
                }
                return Some(());
            }
            // A lane has ended with a number so long that the others' values are not seen: it is given up.
            for (rows, (x, y)) in rows.iter_mut().zip(now) {
                rows.clear(!less(larger(x, y), LIMB * 3 - 2));
            }
            continue;
        }
        while windows.iter().any(|window| window.going != 0) {
            windows.iter_mut().for_each(|window| window.step());
        }
        let matrices = windows.map(|window| window.matrix());
        for ((p, q), (m, _)) in bounds.iter_mut().zip(&matrices) {
            let [u0, u1, v0, v1] = [m.u[0], m.u[1], m.v[0], m.v[1]].map(|x| _mm512_cvtepi64_pd(x));
            (*p, *q) = (
                _mm512_fmadd_pd(u0, *p, _mm512_mul_pd(v0, *q)),
                _mm512_fmadd_pd(u1, *p, _mm512_mul_pd(v1, *q)),
            );
        }
        let before = cofactors;
        while cofactors < L && !fit(bounds.map(|(p, q)| larger(p, q)), LIMB * cofactors - 2) {
            cofactors += 1;
        }
        for (rows, (matrix, odd)) in rows.iter_mut().zip(&matrices) {
            rows.odd ^= odd;
            apply(matrix, &mut rows.x[..length], &mut rows.y[..length]);
            extend(&mut rows.p[..cofactors], before);
            extend(&mut rows.q[..cofactors], before);
            apply(matrix, &mut rows.p[..cofactors], &mut rows.q[..cofactors]);
        }
    }
    None
}

impl Rows {
    /// Makes x and y 0 in these lanes.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn clear(&mut self, lanes: __mmask8) {
        for limb in self.x.iter_mut().chain(&mut self.y) {
            *limb = _mm512_maskz_mov_epi64(!lanes, *limb);
        }
    }

    /// Extends all numbers to their full length, from these lengths, and exchanges the rows in the lanes `turned`.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn end(&mut self, turned: __mmask8, length: usize, cofactors: usize) {
        extend(&mut self.x, length);
        extend(&mut self.y, length);
        extend(&mut self.p, cofactors);
        extend(&mut self.q, cofactors);
        (self.x, self.y) = (chosen(turned, &self.y, &self.x), chosen(turned, &self.x, &self.y));
        (self.p, self.q) = (chosen(turned, &self.q, &self.p), chosen(turned, &self.p, &self.q));
        self.odd ^= turned;
    }
}

/// Sets all limbs from n on, from the sign of those below them.
#[target_feature(enable = "avx512f")]
#[inline]
fn extend(x: &mut [__m512i], n: usize) {
    let sign = _mm512_maskz_mov_epi64(negative(&x[..n]), _mm512_set1_epi64(MASK));
    x[n..].fill(sign);
}
