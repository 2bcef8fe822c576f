//! Euclid's algorithm by Lehmer's method: many steps on the numbers' highest bits, then one matrix over all limbs.
//!
//! The window has 63 bits and takes a step when Jebelean's condition says that it is the whole numbers' step too. Where a
//! partial run stops is part of Chia's encoding (its `t` is the cofactor there), and so the window also decides by its own bits
//! whether the bound is reached, as that encoding's makers do.
#![forbid(unsafe_code)]

use super::num::Num;

/// Two consecutive rows of Euclid's algorithm on (x, y): r0 = s0 x + t0 y and r1 = s1 x + t1 y for some s0, s1.
pub(crate) struct Rows {
    /// The remainder before the last.
    pub(crate) r0: Num,
    /// The last remainder.
    pub(crate) r1: Num,
    /// The magnitude of r0's cofactor.
    t0: Num,
    /// The magnitude of r1's cofactor.
    t1: Num,
    /// Whether the number of steps taken is odd: then t1 is negative and t0 is not.
    pub(crate) odd: bool,
}

/// What a window did, by magnitudes: r0' = ±(p r0 - q r1) and r1' = ±(t r1 - r r0).
struct Matrix {
    p: u64,
    q: u64,
    r: u64,
    t: u64,
    steps: u32,
}

/// As many steps as the windows of both numbers can vouch for, while the lower is above `bound`.
///
/// Cofactors are at most the windows' greater one divided by the remainder before theirs: they stay below 2^63, also in the step
/// that is not taken.
#[inline]
fn window(mut x: u64, mut y: u64, bound: u64, exact: bool) -> Matrix {
    // Row by row the magnitudes of both cofactors; they alternate in sign.
    let (mut u0, mut v0, mut u1, mut v1) = (1u64, 0u64, 0u64, 1u64);
    let mut steps = 0;
    // Two steps a round, since the condition alternates between the cofactors and the rows then keep their places.
    while y > bound {
        let quotient = x / y;
        let rest = x - quotient * y;
        let (u, v) = (u0 + quotient * u1, v0 + quotient * v1);
        if !exact && (rest < v || y - rest < u + u1) {
            break;
        }
        (x, u0, v0) = (rest, u, v);
        steps += 1;
        if x <= bound {
            return Matrix { p: u1, q: v1, r: u0, t: v0, steps };
        }
        let quotient = y / x;
        let rest = y - quotient * x;
        let (u, v) = (u1 + quotient * u0, v1 + quotient * v0);
        if !exact && (rest < u || x - rest < v + v0) {
            return Matrix { p: u1, q: v1, r: u0, t: v0, steps };
        }
        (y, u1, v1) = (rest, u, v);
        steps += 1;
    }
    Matrix { p: u0, q: v0, r: u1, t: v1, steps }
}

impl Matrix {
    /// Both remainders over `len` limbs. Neither result is negative.
    fn remainders<const ODD: bool>(&self, x: &mut [u64], y: &mut [u64]) {
        let [p, q, r, t] = [self.p, self.q, self.r, self.t].map(i128::from);
        let (mut first, mut second) = (0i128, 0i128);
        for (x, y) in x.iter_mut().zip(y) {
            let (a, b) = (i128::from(*x), i128::from(*y));
            // Entries are below 2^63, so that no sum leaves 128 bits.
            if ODD {
                first += b * q - a * p;
                second += a * r - b * t;
            } else {
                first += a * p - b * q;
                second += b * t - a * r;
            }
            (*x, *y) = (first as u64, second as u64);
            first >>= 64;
            second >>= 64;
        }
        debug_assert!(first == 0 && second == 0, "remainders are not negative");
    }

    /// The magnitudes of both cofactors.
    fn cofactors(&self, x: &mut Num, y: &mut Num) {
        let len = y.len().max(x.len());
        let [p, q, r, t] = [self.p, self.q, self.r, self.t].map(u128::from);
        let (mut first, mut second) = (0u128, 0u128);
        let (a, b) = (&mut x.store()[..=len], &mut y.store()[..=len]);
        for (x, y) in a.iter_mut().zip(b) {
            let (a, b) = (u128::from(*x), u128::from(*y));
            first += a * p + b * q;
            second += a * r + b * t;
            (*x, *y) = (first as u64, second as u64);
            first >>= 64;
            second >>= 64;
        }
        x.settle(len + 1);
        y.settle(len + 1);
    }
}

/// The 63 bits of x from `shift` upwards.
fn bits_from(x: &[u64], shift: usize) -> u64 {
    let (limb, bits) = (shift / 64, shift % 64);
    let at = |i: usize| x.get(i).copied().unwrap_or(0);
    if bits == 0 { at(limb) } else { at(limb) >> bits | at(limb + 1) << (64 - bits) }
}

/// Runs Euclid's algorithm on x >= 0 and y >= 0 until the last remainder is at most `bound`.
///
/// With `whole`, windows that hold all bits of both numbers take every step; without it they are as careful as any other, which
/// Chia's encoding of small discriminants depends on.
pub(crate) fn euclid(x: &Num, y: &Num, bound: &Num, whole: bool) -> Rows {
    let mut rows = Rows { r0: *x, r1: *y, t0: Num::ZERO, t1: Num::from_u64(1), odd: false };
    while !rows.r1.is_zero() && rows.r1 > *bound {
        let shift = rows.r0.bits().max(rows.r1.bits()).saturating_sub(63);
        let top = |x: &Num| bits_from(x.magnitude(), shift);
        let matrix = window(top(&rows.r0), top(&rows.r1), top(bound), whole && shift == 0);
        if matrix.steps == 0 {
            let (quotient, rest) = rows.r0.div_rem(&rows.r1);
            (rows.r0, rows.r1) = (rows.r1, rest);
            (rows.t0, rows.t1) = (rows.t1, rows.t0.add(&quotient.mul(&rows.t1)));
            rows.odd = !rows.odd;
            continue;
        }
        let len = rows.r0.len().max(rows.r1.len());
        let (r0, r1) = (&mut rows.r0.store()[..len], &mut rows.r1.store()[..len]);
        if matrix.steps & 1 == 1 {
            matrix.remainders::<true>(r0, r1);
        } else {
            matrix.remainders::<false>(r0, r1);
        }
        rows.r0.settle(len);
        rows.r1.settle(len);
        matrix.cofactors(&mut rows.t0, &mut rows.t1);
        rows.odd ^= matrix.steps & 1 == 1;
    }
    rows
}

impl Rows {
    /// The cofactor of y in the last remainder.
    pub(crate) fn cofactor(&self) -> Num {
        self.t1.neg_if(self.odd)
    }

    /// The cofactor of y in the remainder before it.
    pub(crate) fn cofactor_before(&self) -> Num {
        self.t0.neg_if(!self.odd)
    }
}

/// The greatest common divisor g of y and m > 0, and a number u with u y = g modulo m; 0 <= y < m.
pub(crate) fn gcd_inverse(y: &Num, m: &Num) -> (Num, Num) {
    let rows = euclid(m, y, &Num::from_u64(1), true);
    if rows.r1.is_zero() { (rows.r0, rows.cofactor_before()) } else { (rows.r1, rows.cofactor()) }
}
