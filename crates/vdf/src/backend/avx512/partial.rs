//! The partial GCD: words by hardware division with nearest-integer quotients, rows in IFMA lanes behind them.
//!
//! A row is the lattice vector (x, v, e) of `generic::nudupl`, each number in lanes of 51 bits: one bit less than what
//! IFMA multiplies, so one round of carries makes lanes valid operands again. Numbers are modulo 2^408 (x modulo 2^816
//! while it is long), negative ones in complement; a lane may hold a few units above 2^51.
//!
//! A window needs the highest bits of x. Those of the row before, times the window's matrix, are right for 64 bits. So
//! the division for the next window starts before the vectors have this one's matrix, and overlaps their work.
//! Quotients need not be exact: every matrix has determinant 1 or -1, and it is applied to whole numbers.

use core::arch::asm;
use core::arch::x86_64::*;

use lanework_integer::kernels::unpack;

/// Bits in a lane.
pub(super) const LANE: usize = 51;
pub(super) const MASK: i64 = (1 << LANE) - 1;
/// A window stops when its smaller number was below this: then entries are below 1.5 * 2^30.
const PRECISE: i64 = 34;
/// Steps that begin before the vectors get the previous matrix.
const AHEAD: u64 = 2;
/// Steps after that before the rows' highest bits are used: the latency of fetching them.
const AGAIN: u64 = 4;

/// Two rows in lanes; the upper halves of x are not kept once it fits in the lower.
#[derive(Clone, Copy)]
pub struct Rows {
    pub(super) x: [__m512i; 2],
    upper: [__m512i; 2],
    pub(super) v: [__m512i; 2],
    pub(super) e: [__m512i; 2],
}

/// A window's matrix: x0' = f0 x0 + g0 x1, x1' = f1 x0 + g1 x1; f and g have opposite signs, if any.
#[derive(Clone, Copy, Debug)]
struct Matrix {
    f: [i64; 2],
    g: [i64; 2],
}

/// A run of steps on words a >= b with rows m0 and m1 (packed as in `Lane::halve31`), at most `most`, until b < limit.
macro_rules! steps {
    ($a:ident => $to:tt, $b:ident => $rest:tt, $m0:ident, $m1:ident, $limit:ident, $most:expr) => {
        // SAFETY: registers only; the dividend's upper half is 0, and b is at least `limit`, which is not 0.
        unsafe {
            asm!(
                "cmp {b}, {limit}",
                "jb 3f",
                ".p2align 4",
                "2:",
                "xor edx, edx",
                "mov {h}, {b}",
                "shr {h}, 1",
                "mov {t}, {b}",
                "mov {n}, {m1}",
                "div {b}",
                "sub {t}, rdx",
                "cmp {h}, rdx",
                "cmovb rdx, {t}",
                "sbb {t}, {t}",
                "sub rax, {t}",
                "imul {n}, rax",
                "mov rax, {b}",
                "mov {b}, rdx",
                "sub {m0}, {n}",
                "xor {m0}, {t}",
                "sub {m0}, {t}",
                "mov {n}, {m0}",
                "mov {m0}, {m1}",
                "mov {m1}, {n}",
                "dec {k}",
                "jz 3f",
                "cmp {b}, {limit}",
                "jae 2b",
                "3:",
                b = inout(reg) $b => $rest, m0 = inout(reg) $m0, m1 = inout(reg) $m1, limit = in(reg) $limit,
                k = inout(reg) $most => _, t = out(reg) _, h = out(reg) _, n = out(reg) _,
                inout("rax") $a => $to, out("rdx") _,
                options(pure, nomem, nostack)
            );
        }
    };
}

/// The 64 bits of x that end `shift` bits below its top.
#[inline(always)]
fn shifted(x: u128, shift: u32) -> u64 {
    let (high, low) = ((x >> 64) as u64, x as u64);
    high << (shift & 63) | low >> 1 >> (63 - (shift & 63))
}

/// f x + g y.
#[inline(always)]
fn apply(x: u128, y: u128, f: i64, g: i64) -> u128 {
    let wide = |k: i64| i128::from(k) as u128;
    x.wrapping_mul(wide(f)).wrapping_add(y.wrapping_mul(wide(g)))
}

/// Eight numbers of 51 bits from 64-bit limbs; lane i starts in limb `from[i]`.
#[target_feature(enable = "avx512f,avx512vbmi2")]
#[inline]
fn lanes(x: __m512i, from: __m512i, shift: __m512i) -> __m512i {
    let low = _mm512_permutexvar_epi64(from, x);
    let high = _mm512_permutexvar_epi64(_mm512_add_epi64(from, _mm512_set1_epi64(1)), x);
    _mm512_and_si512(_mm512_shrdv_epi64(low, high, shift), _mm512_set1_epi64(MASK))
}

/// The lower eight lanes of a number of 512 bits.
#[target_feature(enable = "avx512f,avx512vbmi2")]
#[inline]
pub(super) fn lower(x: __m512i) -> __m512i {
    let from = _mm512_setr_epi64(0, 0, 1, 2, 3, 3, 4, 5);
    let shift = _mm512_setr_epi64(0, 51, 38, 25, 12, 63, 50, 37);
    lanes(x, from, shift)
}

/// The lanes above them.
#[target_feature(enable = "avx512f,avx512vbmi2")]
#[inline]
fn upper(x: __m512i) -> __m512i {
    // The bits from 408 and from 459 on, and the two that remain.
    let from = _mm512_setr_epi64(6, 7, 7, 7, 7, 7, 7, 7);
    let shift = _mm512_setr_epi64(24, 11, 62, 0, 0, 0, 0, 0);
    let low = _mm512_maskz_permutexvar_epi64(0b111, from, x);
    let high = _mm512_maskz_permutexvar_epi64(0b1, _mm512_set1_epi64(7), x);
    _mm512_and_si512(_mm512_shrdv_epi64(low, high, shift), _mm512_set1_epi64(MASK))
}

/// p a - q b lane by lane, with twice the upper halves apart, to be added one lane up.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
fn products(bias: __m512i, p: __m512i, q: __m512i, a: __m512i, b: __m512i) -> (__m512i, __m512i) {
    let zero = _mm512_setzero_si512();
    let low = _mm512_sub_epi64(_mm512_madd52lo_epu64(bias, p, a), _mm512_madd52lo_epu64(zero, q, b));
    let high = _mm512_sub_epi64(_mm512_madd52hi_epu64(zero, p, a), _mm512_madd52hi_epu64(zero, q, b));
    (low, _mm512_add_epi64(high, high))
}

/// One row's coefficients: the factors of the positive and the negative term, and whether the operands swap places.
#[derive(Clone, Copy)]
struct Pair {
    p: __m512i,
    q: __m512i,
    turned: __mmask8,
}

#[target_feature(enable = "avx512f")]
#[inline]
fn pair(f: i64, g: i64) -> Pair {
    let turned = f < 0 || g > 0;
    let (p, q) = if turned { (g, -f) } else { (f, -g) };
    Pair { p: _mm512_set1_epi64(p), q: _mm512_set1_epi64(q), turned: if turned { 0xff } else { 0 } }
}

/// 0 in limbs that stay positive when added to anything above -2^53.
#[target_feature(enable = "avx512f")]
#[inline]
fn bias(first: bool) -> __m512i {
    const UNIT: i64 = 1 << (LANE + 2);
    let other = UNIT - 4;
    _mm512_setr_epi64(if first { UNIT } else { other }, other, other, other, other, other, other, other)
}

/// f a + g b of numbers of eight lanes.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
fn short(pair: Pair, a: __m512i, b: __m512i) -> __m512i {
    let (zero, mask) = (_mm512_setzero_si512(), _mm512_set1_epi64(MASK));
    let (a, b) = (_mm512_mask_blend_epi64(pair.turned, a, b), _mm512_mask_blend_epi64(pair.turned, b, a));
    let (low, high) = products(bias(true), pair.p, pair.q, a, b);
    let t = _mm512_add_epi64(low, _mm512_alignr_epi64::<7>(high, zero));
    let carry = _mm512_srli_epi64::<{ LANE as u32 }>(t);
    _mm512_add_epi64(_mm512_and_si512(t, mask), _mm512_alignr_epi64::<7>(carry, zero))
}

/// f a + g b of numbers of sixteen lanes.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
fn long(pair: Pair, a: [__m512i; 2], b: [__m512i; 2]) -> (__m512i, __m512i) {
    let (zero, mask) = (_mm512_setzero_si512(), _mm512_set1_epi64(MASK));
    let turned = pair.turned;
    let (a0, b0) = (_mm512_mask_blend_epi64(turned, a[0], b[0]), _mm512_mask_blend_epi64(turned, b[0], a[0]));
    let (a1, b1) = (_mm512_mask_blend_epi64(turned, a[1], b[1]), _mm512_mask_blend_epi64(turned, b[1], a[1]));
    let (low0, high0) = products(bias(true), pair.p, pair.q, a0, b0);
    let (low1, high1) = products(bias(false), pair.p, pair.q, a1, b1);
    let t0 = _mm512_add_epi64(low0, _mm512_alignr_epi64::<7>(high0, zero));
    let t1 = _mm512_add_epi64(low1, _mm512_alignr_epi64::<7>(high1, high0));
    let carry0 = _mm512_srli_epi64::<{ LANE as u32 }>(t0);
    let carry1 = _mm512_srli_epi64::<{ LANE as u32 }>(t1);
    (
        _mm512_add_epi64(_mm512_and_si512(t0, mask), _mm512_alignr_epi64::<7>(carry0, zero)),
        _mm512_add_epi64(_mm512_and_si512(t1, mask), _mm512_alignr_epi64::<7>(carry1, carry0)),
    )
}

impl Rows {
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    fn times(self, m: &Matrix, wide: bool) -> Rows {
        let (first, second) = (pair(m.f[0], m.g[0]), pair(m.f[1], m.g[1]));
        let Rows { x, upper, v, e } = self;
        let (x, upper) = if wide {
            let (x0, upper0) = long(first, [x[0], upper[0]], [x[1], upper[1]]);
            let (x1, upper1) = long(second, [x[0], upper[0]], [x[1], upper[1]]);
            ([x0, x1], [upper0, upper1])
        } else {
            ([short(first, x[0], x[1]), short(second, x[0], x[1])], upper)
        };
        let v = [short(first, v[0], v[1]), short(second, v[0], v[1])];
        let e = [short(first, e[0], e[1]), short(second, e[0], e[1])];
        Rows { x, upper, v, e }
    }
}

/// Rows in memory: x with eight zeros below, and v and e.
#[repr(align(64))]
struct Spill {
    x: [[u64; 24]; 2],
    others: [[u64; 8]; 4],
}

impl Spill {
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn store(&mut self, rows: &Rows, wide: bool) {
        for (to, (x, upper)) in self.x.iter_mut().zip(rows.x.iter().zip(&rows.upper)) {
            // SAFETY: 24 words are there, and aligned.
            unsafe {
                _mm512_store_si512(to.as_mut_ptr().add(8).cast(), *x);
                if wide {
                    _mm512_store_si512(to.as_mut_ptr().add(16).cast(), *upper);
                }
            }
        }
        for (to, from) in self.others.iter_mut().zip(rows.v.iter().chain(&rows.e)) {
            // SAFETY: eight words are there, and aligned.
            unsafe { _mm512_store_si512(to.as_mut_ptr().cast(), *from) };
        }
    }

    /// v0, v1, e0, e1 over 2^(51 base), rounded down and modulo 2^128.
    #[inline(always)]
    fn middles(&self, base: usize) -> [u128; 4] {
        self.others.map(|x| {
            let at = |i: usize| u128::from(x[(base + i).min(7)]);
            at(0).wrapping_add(at(1) << LANE).wrapping_add(at(2) << (2 * LANE))
        })
    }

    /// The highest 127 bits of a number below 2^bits, bits at most 512.
    #[inline(always)]
    fn top(&self, row: usize, bits: usize) -> u128 {
        let (limb, rest) = ((bits - 1) / LANE, (bits - 1) % LANE);
        let limbs = &self.x[row];
        let at = |i: usize| limbs[(limb + 8 - i).min(23)];
        let below =
            (((u128::from(at(1)) << LANE) + u128::from(at(2))) << 24) + u128::from(at(3) >> (LANE - 24));
        let (top, bottom) = ((below >> 64) as u64, below as u64);
        let bottom = bottom >> rest | top << 1 << (63 - rest);
        u128::from((top >> rest).wrapping_add(at(0) << (62 - rest))) << 64 | u128::from(bottom)
    }
}

const TWO_64: f64 = (1u128 << 64) as f64;

/// 2^n.
#[inline(always)]
fn power(n: i64) -> f64 {
    f64::from_bits(((1023 + n) as u64) << 52)
}

/// The last matrix, and the first steps of reducing the form of the rows after it: the highest bits give their norms
/// and product well enough. The form's own reduction finishes and corrects this.
#[inline(always)]
fn finished(m: Matrix, x: [f64; 2], [v0, v1, e0, e1]: [u128; 4], determinant: &mut i64) -> Matrix {
    let Matrix { mut f, mut g } = m;
    // The part above 2^127 vanishes when the matrix has made it short.
    let row = |i: usize, first, second| {
        let value = apply(first, second, f[i], g[i]) as i128;
        (value >> 64) as i64 as f64 * TWO_64 + value as u64 as f64
    };
    let (v, e) = ([row(0, v0, v1), row(1, v0, v1)], [row(0, e0, e1), row(1, e0, e1)]);
    let mut a = x[0] * x[0] + e[0] * v[0];
    let mut c = x[1] * x[1] + e[1] * v[1];
    let mut b = 2.0 * x[0] * x[1] + e[0] * v[1] + e[1] * v[0];
    for _ in 0..STEPS {
        // The shorter row first, then the nearest multiple of it off the other.
        if a > c {
            (a, c) = (c, a);
            f.swap(0, 1);
            g.swap(0, 1);
            *determinant = -*determinant;
        }
        let q = nearest(b / (a + a));
        if q.is_nan() || q.abs() > LARGEST {
            break;
        }
        let next = |k: [i64; 2]| k[1] - q as i64 * k[0];
        let (f1, g1) = (next(f), next(g));
        // Lanes take differences only.
        if f1.signum() * g1.signum() > 0 || (f1 | g1) == 0 || (f1.abs() | g1.abs()) >> 48 != 0 {
            break;
        }
        (f[1], g[1]) = (f1, g1);
        c -= q * (b - q * a);
        b -= 2.0 * q * a;
        if c >= a {
            break;
        }
    }
    Matrix { f, g }
}

/// The nearest whole number, the even one of two.
#[cfg(feature = "std")]
#[inline(always)]
fn nearest(x: f64) -> f64 {
    x.round_ties_even()
}

#[cfg(not(feature = "std"))]
use nearest_by_sums as nearest;

/// The same without the standard library, for numbers whose quotient [`finished`] takes; others stay unchanged.
#[cfg(any(test, not(feature = "std")))]
pub(super) fn nearest_by_sums(x: f64) -> f64 {
    // Above this number there are no fractions.
    const WHOLE: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52
    if x.abs() < 2.0 * LARGEST { x + WHOLE - WHOLE } else { x }
}

/// Steps of reduction in advance, and their largest quotient.
const STEPS: usize = 3;
const LARGEST: f64 = 65536.0;

/// The numbers that the rows start from: (a, 0, b) and (k, 1, m).
pub(super) struct Start<'a> {
    pub(super) a: &'a [u64; 8],
    pub(super) k: &'a [u64; 8],
    pub(super) b: &'a [u64; 8],
    pub(super) m: &'a [u64; 8],
}

/// The highest 127 bits of both, and how many bits the first has.
#[inline(always)]
fn tops(a: &[u64; 8], k: &[u64; 8]) -> Option<(u128, u128, usize)> {
    let mut n = 8;
    while n > 2 && a[n - 1] == 0 {
        n -= 1;
    }
    if n < 3 {
        return None;
    }
    let shift = a[n - 1].leading_zeros();
    let top = |x: &[u64; 8]| {
        let (high, low) = (u128::from(x[n - 1]) << 64 | u128::from(x[n - 2]), u128::from(x[n - 3]));
        (high << shift | low << shift >> 64) >> 1
    };
    Some((top(a), top(k), 64 * n - shift as usize))
}

/// Longest x that the products take.
pub(super) const LONGEST: usize = 300;

/// Rows with x1 < 2^stop <= x0, and the determinant of their matrix. `None` if a quotient or x is too long.
#[target_feature(enable = "avx512f,avx512ifma,avx512vbmi2,lzcnt")]
#[inline]
pub(super) fn reduce(start: &Start<'_>, stop: usize) -> Option<(Rows, i64)> {
    // SAFETY: eight words each.
    let load = |x: &[u64; 8]| unsafe { _mm512_loadu_si512(x.as_ptr().cast()) };
    let (a, k) = (load(start.a), load(start.k));
    let zero = _mm512_setzero_si512();
    let mut rows = Rows {
        x: [lower(a), lower(k)],
        upper: [upper(a), upper(k)],
        v: [zero, _mm512_zextsi128_si512(_mm_cvtsi64_si128(1))],
        e: [lower(load(start.b)), lower(load(start.m))],
    };
    let (mut t0, mut t1, bits) = tops(start.a, start.k)?;
    let (mut y0, mut y1) = (t0, t1);
    // The weight of the lowest bit of t and y.
    let mut weight = bits as i64 - 127;
    let mut spill = Spill { x: [[0; 24]; 2], others: [[0; 8]; 4] };
    spill.store(&rows, true);
    let base = stop.saturating_sub(112).div_ceil(LANE);
    let mut determinant = 1i64;
    let mut wide = true;
    let mut before: Option<Matrix> = None;
    let bits = loop {
        let high = (y0 >> 64) as u64;
        if (high as i64) < 1 << 32 {
            return None;
        }
        let shift = high.leading_zeros();
        let (mut a, mut b) = (shifted(y0, shift), shifted(y1, shift));
        let lowest = weight + 64 - i64::from(shift);
        let bits = (lowest + 64) as usize;
        let limit = 1u64 << (stop as i64 - lowest).clamp(PRECISE, 63);
        let done = b < limit;
        if done && stop as i64 - lowest < PRECISE {
            return None;
        }
        let (mut m0, mut m1) = (1u64, 1u64 << 32);
        steps!(a => a, b => b, m0, m1, limit, AHEAD);
        if done {
            let m = before.unwrap_or(Matrix { f: [1, 0], g: [0, 1] });
            let unit = power(weight - (LANE * base) as i64);
            let x = [y0, y1].map(|y| ((y >> 64) as u64 as f64 * TWO_64 + y as u64 as f64) * unit);
            before = Some(finished(m, x, spill.middles(base), &mut determinant));
        }
        if let Some(m) = &before {
            rows = rows.times(m, wide);
        }
        if done {
            break bits;
        }
        if before.is_some() {
            spill.store(&rows, wide);
            wide &= bits > 400;
            steps!(a => a, b => b, m0, m1, limit, AGAIN);
            (t0, t1) = (spill.top(0, bits), spill.top(1, bits));
            weight = bits as i64 - 127;
        }
        steps!(a => _, b => _, m0, m1, limit, 64u64);
        let ((f0, g0), (f1, g1)) = (unpack(m0), unpack(m1));
        y0 = apply(t0, t1, f0, g0);
        y1 = apply(t0, t1, f1, g1);
        // The last remainder may be negative by less than its error.
        let sign = (y1 >> 64) as i64 >> 63;
        let turn = |x: i64| (x ^ sign) - sign;
        let wide_sign = sign as i128 as u128;
        y1 = (y1 ^ wide_sign).wrapping_sub(wide_sign);
        let (f1, g1) = (turn(f1), turn(g1));
        determinant = determinant.wrapping_mul(f0.wrapping_mul(g1).wrapping_sub(f1.wrapping_mul(g0)));
        before = Some(Matrix { f: [f0, f1], g: [g0, g1] });
    };
    (bits <= LONGEST).then_some((rows, determinant))
}
