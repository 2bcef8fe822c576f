//! Lehmer's method with hardware division and the nearest quotients.
#![forbid(unsafe_code)]

use super::{difference, significant, with_limbs};
use crate::kernels::{Lane, PRECISE, unpack};
use crate::limbs;

/// A window's effect on the pair: x0' = f0 x0 + g0 x1 and x1' = f1 x0 + g1 x1. Unless one of them is 0, the two factors of a row
/// have opposite signs. They are below 2^63 in magnitude.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// f0 and f1, the factors of x0.
    pub f: [i64; 2],
    /// g0 and g1, the factors of x1.
    pub g: [i64; 2],
}

impl Matrix {
    const ONE: Matrix = Matrix { f: [1, 0], g: [0, 1] };
    const SWAP: Matrix = Matrix { f: [0, 1], g: [1, 0] };

    /// 1 or -1.
    #[inline(always)]
    #[must_use]
    pub fn determinant(&self) -> i64 {
        self.f[0].wrapping_mul(self.g[1]).wrapping_sub(self.f[1].wrapping_mul(self.g[0]))
    }

    /// Bits of the factors' absolute values, those of a row added up: what a number may be longer afterwards.
    #[inline(always)]
    #[must_use]
    pub fn bits(&self) -> u32 {
        let size = |i: usize| self.f[i].unsigned_abs() + self.g[i].unsigned_abs();
        64 - (size(0) | size(1)).leading_zeros()
    }

    /// Row `i` on the lowest K limbs of two numbers in two's complement, modulo 2^(64 K), and the signed limb above if they are
    /// not negative.
    ///
    /// # Panics
    /// If N is below K.
    #[inline(always)]
    pub fn row<L: Lane, const N: usize, const K: usize>(
        &self,
        lane: L,
        i: usize,
        x: &[[u64; N]; 2],
        out: &mut [u64; K],
    ) -> u64 {
        let (first, p, q) = difference(self.f[i], self.g[i]);
        let short = |i: usize| x[i].first_chunk().expect("K limbs");
        lane.minus(short(first), short(1 - first), p, q, out)
    }

    /// Negates row `i` if `negative` is 1.
    #[inline(always)]
    fn turn(&mut self, i: usize, negative: u64) {
        let mask = (negative as i64).wrapping_neg();
        let turned = |x: i64| (x ^ mask) - mask;
        (self.f[i], self.g[i]) = (turned(self.f[i]), turned(self.g[i]));
    }

    /// The matrix of `m`, then this one.
    #[inline(always)]
    fn after(&self, m: &Matrix) -> Matrix {
        let entry = |i: usize, column: &[i64; 2]| self.f[i] * column[0] + self.g[i] * column[1];
        Matrix { f: [entry(0, &m.f), entry(1, &m.f)], g: [entry(0, &m.g), entry(1, &m.g)] }
    }
}

/// The matrix of [`Lane::nearest`].
#[inline(always)]
fn nearest<L: Lane>(lane: L, a: u64, b: u64, limit: u64) -> Matrix {
    let (m0, m1) = lane.nearest(a, b, limit);
    let ((f0, g0), (f1, g1)) = (unpack(m0), unpack(m1));
    Matrix { f: [f0, f1], g: [g0, g1] }
}

/// 2^`stop` in a window whose lowest bit has weight 2^`weight`, but nothing below what is precise.
#[inline(always)]
fn limit(stop: i64, weight: i64) -> u64 {
    1 << (stop - weight).clamp(i64::from(PRECISE.trailing_zeros()), 63)
}

/// The matrix of one window of x0 >= x1, whose highest 128 bits are given (the top bit of x0's set): `bits` is the length
/// of x0. No step is taken once x1 has at most `stop` bits. `None` if a quotient is too long for a window.
#[inline(always)]
fn window<L: Lane>(lane: L, x0: u128, x1: u128, bits: i64, stop: i64) -> Option<Matrix> {
    let (a, b) = ((x0 >> 64) as u64, (x1 >> 64) as u64);
    if b < PRECISE {
        return None;
    }
    let low = limit(stop, bits - 64);
    let mut m = nearest(lane, a, b, low);
    if m == Matrix::ONE {
        return None;
    }
    if low > PRECISE {
        return Some(m);
    }
    // The window after it, to about 2^-33 of the first: the second run sees 64 bits of these.
    let wide = |x: u128, k: i64| x.wrapping_mul(i128::from(k) as u128);
    let value = |i: usize| wide(x0, m.f[i]).wrapping_add(wide(x1, m.g[i]));
    let (y0, mut y1) = (value(0), value(1));
    // The last remainder may be negative by less than its error.
    m.turn(1, (y1 >> 127) as u64);
    let sign = ((y1 as i128) >> 127) as u128;
    y1 = (y1 ^ sign).wrapping_sub(sign);
    let (high0, high1) = ((y0 >> 64) as u64, (y1 >> 64) as u64);
    let shift = (high0 | high1).max(1).leading_zeros();
    let top = |high: u64, low: u64| high << (shift & 63) | low >> 1 >> (63 - (shift & 63));
    let (a, b) = (top(high0, y0 as u64), top(high1, y1 as u64));
    let low = limit(stop, bits - 64 - i64::from(shift));
    if b < low || b > a || (high0 | high1) >> 56 != 0 {
        return Some(m);
    }
    Some(nearest(lane, a, b, low).after(&m))
}

/// Both rows over the lowest K limbs. The matrix's row of a negative number is negated.
#[inline(always)]
fn rows<L: Lane, const N: usize, const K: usize>(
    lane: L,
    x: &[[u64; N]; 2],
    m: &mut Matrix,
    out: &mut [[u64; N]; 2],
) {
    for (i, out) in out.iter_mut().enumerate() {
        let out = out.first_chunk_mut::<K>().expect("K limbs");
        if m.row(lane, i, x, out) >> 63 != 0 {
            limbs::negate(out);
            m.turn(i, 1);
        }
    }
}

/// The highest 128 bits of x from bit `shift` below the top of limb n - 1 on.
#[inline(always)]
fn top<const N: usize>(x: &[u64; N], n: usize, shift: u32) -> u128 {
    let at = |i: usize| if n >= i { x[n - i] } else { 0 };
    let word = |high: u64, low: u64| u128::from(high << (shift & 63) | low >> 1 >> (63 - (shift & 63)));
    word(at(1), at(2)) << 64 | word(at(2), at(3))
}

/// [`reduce`] gave up: at a quotient of 31 bits or more, or after 64 N windows, more than a right lane needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GaveUp;

/// Reduces x0 >= x1 > 0 until x1 has at most `stop` bits. Each matrix, already applied to the pair, is passed to `step`.
///
/// # Errors
/// [`GaveUp`]: the matrices so far describe the pair as it is now.
#[inline(always)]
pub fn reduce<L: Lane, const N: usize>(
    lane: L,
    x0: &mut [u64; N],
    x1: &mut [u64; N],
    stop: usize,
    mut step: impl FnMut(&Matrix),
) -> Result<(), GaveUp> {
    // Each window writes to the other half: copies of what was just written limb by limb would wait for the stores.
    let (mut pair, mut other) = ([*x0, *x1], [[0; N]; 2]);
    let (mut x, mut y) = (&mut pair, &mut other);
    let mut n = N;
    let mut windows = 0..64 * N;
    let outcome = loop {
        if windows.next().is_none() {
            break Err(GaveUp);
        }
        n = significant(x, n);
        let [a, b] = &mut *x;
        if a[n - 1] | b[n - 1] == 0 {
            break Ok(());
        }
        if a[n - 1] < b[n - 1] || a[n - 1] == b[n - 1] && limbs::compare(&a[..n], &b[..n]).is_lt() {
            core::mem::swap(a, b);
            step(&Matrix::SWAP);
        }
        let shift = a[n - 1].leading_zeros();
        let (y0, y1) = (top(a, n, shift), top(b, n, shift));
        let bits = 64 * n as i64 - i64::from(shift);
        // The bits of x1, exact where they can still matter.
        let rest = if y1 == 0 { limbs::bits(&b[..n]) as i64 } else { bits - i64::from(y1.leading_zeros()) };
        if rest <= stop as i64 {
            break Ok(());
        }
        let mut m = if n == 1 {
            last(lane, a[0], b[0], stop)
        } else {
            match window(lane, y0, y1, bits, stop as i64).or_else(|| one(y0, y1)) {
                Some(m) => m,
                None => break Err(GaveUp),
            }
        };
        with_limbs!(n, N, rows(lane, x, &mut m, y));
        core::mem::swap(&mut x, &mut y);
        step(&m);
    };
    for (out, x) in [x0, x1].into_iter().zip(&*x) {
        out[..n].copy_from_slice(&x[..n]);
        out[n..].fill(0);
    }
    outcome
}

/// Steps on numbers of one limb, exact.
#[inline(always)]
fn last<L: Lane>(lane: L, mut a: u64, mut b: u64, stop: usize) -> Matrix {
    let mut m = Matrix::ONE;
    let short = |m: &Matrix| (m.f[1].unsigned_abs() | m.g[1].unsigned_abs()) >> 31 == 0;
    // Quotients beyond 2^62 are taken in two parts, so that entries stay below 2^63.
    while b >> stop != 0 && short(&m) {
        let quotient = lane.div(a, b).0.min(1 << 62);
        if quotient >> 31 != 0 && m != Matrix::ONE {
            break;
        }
        (a, b) = (b, a - quotient * b);
        let next = |k: [i64; 2]| [k[1], k[0] - quotient as i64 * k[1]];
        m = Matrix { f: next(m.f), g: next(m.g) };
    }
    m
}

/// One step with a quotient from the top 128 bits: right, or too large or small by 1, and below 2^62.
#[inline(always)]
fn one(y0: u128, y1: u128) -> Option<Matrix> {
    if y1 >> 66 == 0 {
        return None;
    }
    // Rounded down for certain, so no number becomes negative. It may be 1 short; the next step makes up for that.
    // It is at least 1, as x0 >= x1.
    let quotient = y1.checked_add(1).map_or(1, |above| y0 / above).max(1);
    let quotient = u64::try_from(quotient).ok().filter(|&q| q >> 62 == 0)?;
    Some(Matrix { f: [0, 1], g: [1, -(quotient as i64)] })
}
