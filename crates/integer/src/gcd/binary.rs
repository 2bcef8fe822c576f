//! The algorithm that shifts from the bottom, for inverses modulo an odd number.
//!
//! A window works on words of 33 high and 31 low bits. The low bits decide exactly which number is even. The high bits
//! decide which is larger, and are sometimes wrong: that makes a number negative, and its sign is then changed.
#![forbid(unsafe_code)]

use super::{difference, significant, with_limbs};
use crate::kernels::{Lane, unpack};
use crate::limbs;

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
    // Divided by 2^33, and off by less than 2: the next run takes no lower bits.
    let times = |f: i64, high: u64| ((i128::from(f << 32) * i128::from((high >> 1) as i64)) >> 64) as i64;
    let top = |f: i64, g: i64| times(f, high.0) + times(g, high.1);
    let bottom =
        |f: i64, g: i64| (f as u64).wrapping_mul(low.0).wrapping_add((g as u64).wrapping_mul(low.1)) >> 31;
    let (x0, x1) = (top(f0, g0), top(f1, g1));
    // A number became negative, or the pair is too short to go on: the caller fixes it before the next window.
    if x0 | x1 <= 0 {
        return Matrix { f0, g0, f1, g1, shift: 31 };
    }
    let (x0, x1, y0, y1) = (x0 as u64, x1 as u64, bottom(f0, g0), bottom(f1, g1));
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

/// Both rows over the lowest K limbs of the pair: the exact quotients by 2^shift as magnitudes, and which were negative.
#[inline(always)]
fn rows<L: Lane, const N: usize, const K: usize>(
    lane: L,
    x: &[[u64; N]; 2],
    m: &Matrix,
    out: &mut [[u64; N]; 2],
) -> [bool; 2] {
    let one = |f: i64, g: i64, out: &mut [u64; N]| {
        let (i, p, q) = difference(f, g);
        let out = out.first_chunk_mut::<K>().expect("K limbs");
        let negative = lane.divided(short(&x[i]), short(&x[1 - i]), p, q, m.shift, out) >> 63 != 0;
        if negative {
            limbs::negate(out);
        }
        negative
    };
    let [out0, out1] = out;
    [one(m.f0, m.g0, out0), one(m.f1, m.g1, out1)]
}

/// Both rows over the lowest K limbs of the cofactors, in two's complement; of other sign where the pair's row was negative.
#[inline(always)]
fn cofactors<L: Lane, const M: usize, const K: usize>(
    lane: L,
    u: &[[u64; M]; 2],
    m: &Matrix,
    negative: [bool; 2],
    out: &mut [[u64; M]; 2],
) {
    for ((f, g), (out, negative)) in
        [(m.f0, m.g0), (m.f1, m.g1)].into_iter().zip(out.iter_mut().zip(negative))
    {
        let (i, p, q) = difference(f, g);
        let out = out.first_chunk_mut::<K>().expect("K limbs");
        lane.minus(short(&u[i]), short(&u[1 - i]), p, q, out);
        if negative {
            limbs::negate(out);
        }
    }
}

/// The lowest limbs.
#[inline(always)]
fn short<const N: usize, const K: usize>(x: &[u64; N]) -> &[u64; K] {
    x.first_chunk().expect("K limbs")
}

/// Limbs that the cofactors usually need in window `w`, counted from 0, and a whole one above them: they grow by 43 bits a
/// window, give or take a few. It does not depend on the numbers, so no processor waits for it. Numbers with long runs of equal
/// bits take more windows, of 31 shifts, than this rule has limbs for.
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
        n = significant(x, n);
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
        let negative = with_limbs!(n, N, rows(lane, x, &m, y));
        core::mem::swap(&mut x, &mut y);
        // Room for the cofactors: a whole limb of sign above them, since a window lengthens them by at most 63 bits. The
        // longer the numbers, the further some run ahead of the rule. Cofactors of 0 modulo a number of several limbs never
        // grow: windows of at least 31 shifts are counted, too.
        let sign = |x: u64| 0u64.wrapping_sub(x >> 63);
        let mut more = room(w).min(M).max(k);
        if more == k && k > 1 && u.iter().any(|factor| factor[k - 1] != sign(factor[k - 2])) {
            more += 1;
        }
        if more > M || w > 8 * N {
            return None;
        }
        if more > k {
            for factor in &mut *u {
                let fill = sign(factor[k - 1]);
                factor[k..more].fill(fill);
            }
            k = more;
        }
        with_limbs!(k, M, cofactors(lane, u, &m, negative, v));
        core::mem::swap(&mut u, &mut v);
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
        limbs::negate(&mut factor[..k]);
    }
    Some(Inverse { magnitude: *factor, limbs: k, negative, shift })
}
