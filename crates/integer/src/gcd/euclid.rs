//! Lehmer's method with hardware division.
#![forbid(unsafe_code)]

use crate::kernels::Lane;

/// A window's effect on the pair: even parity x0' = p x0 - q x1, x1' = t x1 - r x0; odd parity the negatives.
/// The determinant p t - q r, of the entries and of the map alike, is 1 if even and -1 if odd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// Factor of x0 in x0'.
    pub p: u64,
    /// Factor of x1 in x0'.
    pub q: u64,
    /// Factor of x0 in x1'.
    pub r: u64,
    /// Factor of x1 in x1'.
    pub t: u64,
    /// Whether the number of Euclidean steps was odd.
    pub odd: bool,
}

/// The least remainder in a 64-bit window. Entries stay below 2^31, so every remainder is larger than the error from the bits
/// below the window.
const PRECISE: u64 = 1 << 33;

/// Euclidean steps on a >= b, while they are precise, until the smaller number is below `limit`.
#[inline(always)]
fn batch<L: Lane>(lane: L, mut a: u64, mut b: u64, limit: u64) -> Matrix {
    let (mut p, mut q, mut r, mut t) = (1u64, 0u64, 0u64, 1u64);
    let odd = loop {
        let (quotient, rest) = lane.div(a, b);
        if rest < PRECISE {
            break false;
        }
        a = rest;
        p = p.wrapping_add(quotient.wrapping_mul(r));
        q = q.wrapping_add(quotient.wrapping_mul(t));
        if rest < limit {
            break true;
        }
        let (quotient, rest) = lane.div(b, a);
        if rest < PRECISE {
            break true;
        }
        b = rest;
        r = r.wrapping_add(quotient.wrapping_mul(p));
        t = t.wrapping_add(quotient.wrapping_mul(q));
        if rest < limit {
            break false;
        }
    };
    // After an odd number of steps a is the smaller of the two.
    if odd { Matrix { p: r, q: t, r: p, t: q, odd } } else { Matrix { p, q, r, t, odd } }
}

/// 2^`stop` in a window whose lowest bit has weight 2^`weight`, but nothing below what is precise.
#[inline(always)]
fn limit(stop: i64, weight: i64) -> u64 {
    1 << (stop - weight).clamp(33, 63)
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
    let m = batch(lane, a, b, low);
    if m.r == 0 && !m.odd {
        return None;
    }
    if low > PRECISE {
        return Some(m);
    }
    // The window after it, to about 2^-33 of the first: the second run sees 64 bits of these.
    let wide = |x: u128, k: u64| x.wrapping_mul(u128::from(k));
    let (mut y0, mut y1) =
        (wide(x0, m.p).wrapping_sub(wide(x1, m.q)), wide(x1, m.t).wrapping_sub(wide(x0, m.r)));
    if m.odd {
        (y0, y1) = (y0.wrapping_neg(), y1.wrapping_neg());
    }
    let shift = ((y0 | y1) >> 64).max(1) as u64;
    let shift = i64::from(shift.leading_zeros());
    let (a, b) = ((y0 >> (64 - shift)) as u64, (y1 >> (64 - shift)) as u64);
    let low = limit(stop, bits - 64 - shift);
    // The first run's error may leave the pair in the wrong order, or b out of range.
    if b < low || b > a || y0 >> 120 != 0 || y1 >> 120 != 0 {
        return Some(m);
    }
    let n = batch(lane, a, b, low);
    Some(Matrix {
        p: n.p * m.p + n.q * m.r,
        q: n.p * m.q + n.q * m.t,
        r: n.r * m.p + n.t * m.r,
        t: n.r * m.q + n.t * m.t,
        odd: n.odd ^ m.odd,
    })
}

/// Both rows over the first n limbs, written to `out`; gives the sign limbs.
#[inline(always)]
fn rows<L: Lane, const N: usize>(
    lane: L,
    x: &[[u64; N]; 2],
    m: &Matrix,
    n: usize,
    out: &mut [[u64; N]; 2],
) -> (u64, u64) {
    let (a, b) = (&x[0][..n], &x[1][..n]);
    // The parity is random: choose operands, not code.
    let (u, v, s, w) = if m.odd { (b, a, a, b) } else { (a, b, b, a) };
    let (p, q, t, r) = if m.odd { (m.q, m.p, m.r, m.t) } else { (m.p, m.q, m.t, m.r) };
    let h0 = lane.minus(u, v, p, q, &mut out[0][..n]);
    let h1 = lane.minus(s, w, t, r, &mut out[1][..n]);
    (h0, h1)
}

/// Bits of the top limb's position: significant limbs of either number.
#[inline(always)]
fn length<const N: usize>(x0: &[u64; N], x1: &[u64; N], mut n: usize) -> usize {
    while n > 0 && x0[n - 1] | x1[n - 1] == 0 {
        n -= 1;
    }
    n
}

/// Bits i.. of x, 128 of them, ending at the top of limb n - 1 shifted left by `shift`.
#[inline(always)]
fn top<const N: usize>(x: &[u64; N], n: usize, shift: u32) -> u128 {
    let at = |i: usize| if n >= i { x[n - i] } else { 0 };
    let high = u128::from(at(1)) << 64 | u128::from(at(2));
    let low = u128::from(at(3));
    if shift == 0 { high } else { high << shift | low >> (64 - shift) }
}

/// Why [`reduce`] gave up: the pair is left as the last window made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rare {
    /// A quotient of 31 bits or more.
    LongQuotient,
    /// A window was wrong by more than its error allows; unimodular all the same.
    Negative,
}

/// Reduces x0 >= x1 > 0 until x1 has at most `stop` bits. Each matrix, already applied to the pair, is passed to `step`.
///
/// # Errors
/// [`Rare`]: the matrices so far describe the pair as it is now, except for one that made a number negative.
#[inline(always)]
pub fn reduce<L: Lane, const N: usize>(
    lane: L,
    x0: &mut [u64; N],
    x1: &mut [u64; N],
    stop: usize,
    mut step: impl FnMut(&Matrix),
) -> Result<(), Rare> {
    // Each window writes to the other half: copies of what was just written limb by limb would wait for the stores.
    let (mut pair, mut other) = ([*x0, *x1], [[0; N]; 2]);
    let (mut x, mut y) = (&mut pair, &mut other);
    let mut n = N;
    let outcome = loop {
        let [a, b] = &mut *x;
        n = length(a, b, n);
        if n == 0 {
            break Ok(());
        }
        if a[n - 1] < b[n - 1] || a[n - 1] == b[n - 1] && crate::limbs::compare(&a[..n], &b[..n]).is_lt() {
            core::mem::swap(a, b);
            step(&Matrix { p: 0, q: 1, r: 1, t: 0, odd: true });
        }
        let shift = a[n - 1].leading_zeros();
        let (y0, y1) = (top(a, n, shift), top(b, n, shift));
        let bits = 64 * n as i64 - i64::from(shift);
        // The bits of x1, exact where they can still matter.
        let rest =
            if y1 == 0 { crate::limbs::bits(&b[..n]) as i64 } else { bits - i64::from(y1.leading_zeros()) };
        if rest <= stop as i64 {
            break Ok(());
        }
        let m = if n == 1 {
            last(lane, a[0], b[0], stop)
        } else {
            match window(lane, y0, y1, bits, stop as i64).or_else(|| one(y0, y1)) {
                Some(m) => m,
                None => break Err(Rare::LongQuotient),
            }
        };
        let (h0, h1) = rows(lane, x, &m, n, y);
        core::mem::swap(&mut x, &mut y);
        if h0 | h1 != 0 {
            break Err(Rare::Negative);
        }
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
    let mut m = Matrix { p: 1, q: 0, r: 0, t: 1, odd: false };
    // Quotients beyond 2^62 are taken in two parts, so that entries stay below 2^63.
    while b >> stop != 0 && (m.t | m.r) >> 31 == 0 {
        let quotient = lane.div(a, b).0.min(1 << 62);
        if quotient >> 31 != 0 && m.odd | (m.t != 1) {
            break;
        }
        (a, b) = (b, a - quotient * b);
        (m.p, m.r) = (m.r, m.p + quotient * m.r);
        (m.q, m.t) = (m.t, m.q + quotient * m.t);
        m.odd = !m.odd;
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
    Some(Matrix { p: 0, q: 1, r: 1, t: quotient, odd: true })
}
