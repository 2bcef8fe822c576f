//! The algorithm that shifts from the bottom, for inverses modulo an odd number.
//!
//! A window works on words of 33 high and 31 low bits. The low bits decide exactly which number is even. The high bits
//! decide which is larger, and are sometimes wrong: that makes a number negative, and its sign is then changed.
#![forbid(unsafe_code)]

use crate::kernels::{Lane, unpack};

const LOW: u64 = (1 << 31) - 1;

/// Rows (f0, g0) and (f1, g1), to be divided by 2^shift. Absolute values of a row add up to 2^shift at most.
struct Matrix {
    f0: i64,
    g0: i64,
    f1: i64,
    g1: i64,
    shift: u32,
}

/// Both windows of 31 shifts on numbers whose highest 64 bits and lowest limbs are given; b is odd.
#[inline(always)]
fn window<L: Lane>(lane: L, high: (u64, u64), low: (u64, u64)) -> Matrix {
    let word = |high: u64, low: u64| high & !LOW | low & LOW;
    let (m0, m1) = lane.halve31(word(high.0, low.0), word(high.1, low.1));
    let ((f0, g0), (f1, g1)) = (unpack(m0), unpack(m1));
    let apply = |f: i64, g: i64| {
        let top = (i128::from(f) * i128::from(high.0)).wrapping_add(i128::from(g) * i128::from(high.1)) >> 31;
        let bottom = (f as u64).wrapping_mul(low.0).wrapping_add((g as u64).wrapping_mul(low.1)) >> 31;
        (top, bottom)
    };
    let ((x0, y0), (x1, y1)) = (apply(f0, g0), apply(f1, g1));
    // A number became negative, or the pair is too short to go on: the caller fixes it before the next window.
    if x0 | x1 <= 0 {
        return Matrix { f0, g0, f1, g1, shift: 31 };
    }
    let (x0, x1) = (x0 as u64, x1 as u64);
    let shift = (x0 | x1).leading_zeros();
    let (m0, m1) = lane.halve31(word(x0 << shift, y0), word(x1 << shift, y1));
    let ((h0, k0), (h1, k1)) = (unpack(m0), unpack(m1));
    Matrix {
        f0: h0 * f0 + k0 * f1,
        g0: h0 * g0 + k0 * g1,
        f1: h1 * f0 + k1 * f1,
        g1: h1 * g0 + k1 * g1,
        shift: 62,
    }
}

/// f a + g b of factors of opposite signs, as a difference of products, and the signed limb above.
#[inline(always)]
fn combine<L: Lane>(lane: L, a: &[u64], b: &[u64], f: i64, g: i64, out: &mut [u64]) -> u64 {
    let (p, q) = (f.unsigned_abs(), g.unsigned_abs());
    let turned = f < 0 || g > 0;
    let (x, y, p, q) = if turned { (b, a, q, p) } else { (a, b, p, q) };
    lane.minus(x, y, p, q, out)
}

/// One row of the pair: the exact quotient by 2^shift as a magnitude, and whether it was negative.
#[inline(always)]
fn row<L: Lane>(lane: L, a: &[u64], b: &[u64], f: i64, g: i64, shift: u32, out: &mut [u64]) -> bool {
    let mut high = combine(lane, a, b, f, g, out);
    let negative = (high as i64) < 0;
    if negative {
        high = !high;
        let zero = out.iter().all(|&x| x == 0);
        negate(out);
        high = high.wrapping_add(u64::from(zero));
    }
    for i in 1..out.len() {
        out[i - 1] = out[i - 1] >> shift | out[i] << (64 - shift);
    }
    let last = out.len() - 1;
    out[last] = out[last] >> shift | high << (64 - shift);
    negative
}

fn negate(x: &mut [u64]) {
    let mut carry = true;
    for limb in x {
        (*limb, carry) = (!*limb).overflowing_add(u64::from(carry));
    }
}

/// Limbs that the cofactors usually need in window `w`, counted from 0, and a whole one above them: they grow by 43 bits a
/// window, give or take a few. It does not depend on the numbers, so no processor waits for it.
const fn room(w: usize) -> usize {
    match w {
        0 => 1,
        1 => 2,
        _ => (43 * w + 25).div_ceil(64) + 1,
    }
}

/// v with v a = 2^shift modulo b, of either sign: the result of [`invert`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inverse<const M: usize> {
    /// |v|, lowest limb first.
    pub magnitude: [u64; M],
    /// Limbs of the magnitude that may not be 0.
    pub limbs: usize,
    /// Whether v is negative.
    pub negative: bool,
    /// The power of two.
    pub shift: u32,
}

/// The inverse of a modulo an odd b > 0, times a power of two that is about 1.45 times as long as b.
///
/// `None` if they have a common divisor. M must be at least N + 5. Cofactors that do not fit would also give `None`; no such
/// case is known.
#[inline(always)]
#[must_use]
pub fn invert<L: Lane, const N: usize, const M: usize>(
    lane: L,
    a: &[u64; N],
    b: &[u64; N],
) -> Option<Inverse<M>> {
    if b[0] & 1 == 0 {
        return None;
    }
    // Each window writes to the other half: copies of what was just written limb by limb would wait for the stores.
    let (mut pair, mut other) = ([*a, *b], [[0; N]; 2]);
    let (mut x, mut y) = (&mut pair, &mut other);
    let (mut factors, mut others) = ([[0u64; M]; 2], [[0u64; M]; 2]);
    factors[0][0] = 1;
    let (mut u, mut v) = (&mut factors, &mut others);
    let (mut n, mut w, mut k, mut shift) = (N, 0, 1, 0);
    loop {
        while x[0][n - 1] | x[1][n - 1] == 0 {
            // The second is odd, never 0.
            n -= 1;
        }
        if n == 1 && x[0][0] == 0 {
            break;
        }
        let [a, b] = &*x;
        let zeros = (a[n - 1] | b[n - 1]).leading_zeros();
        let top = |x: &[u64; N]| {
            let below = if n > 1 { x[n - 2] } else { 0 };
            x[n - 1] << zeros | below >> 1 >> (63 - zeros)
        };
        let m = window(lane, (top(a), top(b)), (a[0], b[0]));
        let n0 = row(lane, &a[..n], &b[..n], m.f0, m.g0, m.shift, &mut y[0][..n]);
        let n1 = row(lane, &a[..n], &b[..n], m.f1, m.g1, m.shift, &mut y[1][..n]);
        core::mem::swap(&mut x, &mut y);
        // Room for the cofactors: a whole limb of sign above them, since a window lengthens them by at most 63 bits. The
        // longer the numbers, the further some run ahead of the rule.
        let sign = |x: u64| 0u64.wrapping_sub(x >> 63);
        let mut more = room(w).max(k);
        if more == k && k > 1 && u.iter().any(|factor| factor[k - 1] != sign(factor[k - 2])) {
            more += 1;
        }
        if more > M {
            return None;
        }
        if more > k {
            for factor in &mut *u {
                let fill = sign(factor[k - 1]);
                factor[k..more].fill(fill);
            }
            k = more;
        }
        combine(lane, &u[0][..k], &u[1][..k], m.f0, m.g0, &mut v[0][..k]);
        combine(lane, &u[0][..k], &u[1][..k], m.f1, m.g1, &mut v[1][..k]);
        core::mem::swap(&mut u, &mut v);
        if n0 {
            negate(&mut u[0][..k]);
        }
        if n1 {
            negate(&mut u[1][..k]);
        }
        shift += m.shift;
        w += 1;
    }
    // Here one limb is left of the pair.
    if x[1][0] != 1 {
        return None;
    }
    let factor = &mut u[1];
    factor[k..].fill(0);
    let negative = factor[k - 1] >> 63 != 0;
    if negative {
        negate(&mut factor[..k]);
    }
    Some(Inverse { magnitude: *factor, limbs: k, negative, shift })
}
