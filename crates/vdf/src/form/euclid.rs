//! Euclid's algorithm by Lehmer's method: many steps on the numbers' highest bits, then one matrix over all limbs.
//!
//! The window has 63 bits and takes a step when Jebelean's condition guarantees that whole numbers take it too. The
//! stop of a partial run is part of Chia's encoding (its `t` is the cofactor there). So the window's own bits also
//! decide whether the bound is reached, as in chiavdf.
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

/// A window's matrix, by magnitudes: r0' = ±(p r0 - q r1) and r1' = ±(t r1 - r r0).
struct Matrix {
    p: u64,
    q: u64,
    r: u64,
    t: u64,
    steps: u32,
}

/// As many steps as the windows of both numbers guarantee, while the smaller is above `bound`.
///
/// Cofactors are at most the greater window divided by the previous remainder: they stay below 2^63, also in the step
/// that is not taken.
#[inline]
fn window(mut x: u64, mut y: u64, bound: u64, exact: bool) -> Matrix {
    // Row by row the magnitudes of both cofactors; they alternate in sign.
    let (mut u0, mut v0, mut u1, mut v1) = (1u64, 0u64, 0u64, 1u64);
    let mut steps = 0;
    // Two steps a round, since the condition alternates between the cofactors, and the rows then keep their places.
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
/// With `whole`, windows that hold all bits of both numbers take every step; without it they stay conservative, as
/// Chia's encoding of small discriminants requires.
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

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::{BigInt, Sign};

    fn big(x: &Num) -> BigInt {
        let bytes: Vec<u8> = x.magnitude().iter().flat_map(|limb| limb.to_le_bytes()).collect();
        BigInt::from_bytes_le(if x.is_negative() { Sign::Minus } else { Sign::Plus }, &bytes)
    }

    fn num(x: &BigInt) -> Num {
        Num::from_le_bytes(&x.to_bytes_le().1)
    }

    /// The last two remainders and their cofactors of y. Windows apply Jebelean's condition to signed numbers, one step
    /// a round. Remainder i, of cofactors (s, t), is sure if it is at least the magnitude of its negative cofactor, and
    /// as far below the previous remainder as the positive cofactor is above its predecessor.
    fn plain(x: &BigInt, y: &BigInt, bound: &BigInt) -> [BigInt; 4] {
        let (mut r, mut c) = ([x.clone(), y.clone()], [BigInt::ZERO, BigInt::from(1)]);
        while r[1] > *bound {
            let shift = r[0].bits().max(r[1].bits()).saturating_sub(63);
            let top = |x: &BigInt| i128::try_from(x >> shift).expect("63 bits");
            let (mut a, mut b, limit) = (top(&r[0]), top(&r[1]), top(bound));
            let mut rows = [[1i128, 0], [0, 1]];
            for step in 0.. {
                if b <= limit {
                    break;
                }
                let quotient = a / b;
                let rest = a % b;
                let [before, last] = rows;
                let next = [before[0] - quotient * last[0], before[1] - quotient * last[1]];
                let (minus, plus) = if step % 2 == 0 { (1, 0) } else { (0, 1) };
                if rest < -next[minus] || b - rest < next[plus] - last[plus] {
                    break;
                }
                (a, b, rows) = (b, rest, [last, next]);
            }
            let apply = |pair: &[BigInt; 2]| match rows {
                // No step was sure.
                [_, [0, 1]] => [pair[1].clone(), &pair[0] - (&r[0] / &r[1]) * &pair[1]],
                rows => rows.map(|[s, t]| &pair[0] * s + &pair[1] * t),
            };
            (r, c) = (apply(&r), apply(&c));
        }
        let ([r0, r1], [t0, t1]) = (r, c);
        [r0, r1, t0, t1]
    }

    fn agrees(x: &BigInt, y: &BigInt, bound: &BigInt) {
        // The encoding's bound.
        assert_eq!(big(&num(x).root()), x.sqrt(), "the root of {x:x}");
        let rows = euclid(&num(x), &num(y), &num(bound), false);
        let got = [big(&rows.r0), big(&rows.r1), big(&rows.cofactor_before()), big(&rows.cofactor())];
        assert_eq!(got, plain(x, y, bound), "{x:x} and {y:x} down to {bound:x}");
        // Where every step is taken the stop may differ, but the rows are still rows.
        let rows = euclid(&num(x), &num(y), &num(bound), true);
        assert!(big(&rows.r1) <= *bound);
        for (r, t) in [(&rows.r0, rows.cofactor_before()), (&rows.r1, rows.cofactor())] {
            let off = big(r) - big(&t) * y;
            assert!(
                if *x == BigInt::ZERO { off == BigInt::ZERO } else { off % x == BigInt::ZERO },
                "{x:x} and {y:x}"
            );
        }
    }

    /// The stop is part of Chia's encoding, and so is every window's end.
    #[test]
    fn windows_end_where_the_condition_says() {
        // The second step's quotient is 1, and the third remainder is as far from the second as the positive cofactor is
        // large: one short of the condition. Taking the step stops a remainder earlier.
        let hex = |text: &[u8]| BigInt::parse_bytes(text, 16).expect("a number");
        agrees(
            &hex(b"1f6a72ae85be8886e03fd826c53518ba6fc747ffca02"),
            &hex(b"891651853056b100000000000000000000000000000"),
            &hex(b"3eda5eb0d9c5da08f9a442"),
        );
        let mut state = 5u64;
        let mut below = |n: u64| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (state >> 33) % n
        };
        for round in 0..if cfg!(miri) { 8 } else { 20_000 } {
            let mut random = |bits: u64| {
                let limbs: Vec<u32> = (0..bits.div_ceil(31) + 1).map(|_| below(1 << 31) as u32).collect();
                BigInt::from_slice(Sign::Plus, &limbs) % (BigInt::from(1) << bits)
            };
            let (x, y) = if round % 2 == 0 {
                let (n, m) = (random(8), random(8));
                (random(1 + u64::try_from(n).expect("8 bits")), random(1 + u64::try_from(m).expect("8 bits")))
            } else {
                // Quotients q, 1, p and a remainder that is p + 1 below the last, or nearly so, with any bits behind.
                let (q, p) = (random(1 + round / 2 % 6) + 1, random(1 + round / 12 % 5) + 1);
                let r3: BigInt = random(8 + round % 52) + &p + 3;
                let r2: BigInt = &p * &r3 + (&r3 - &p - 2 + random(2));
                let r1: BigInt = &r2 + &r3;
                let shift = round / 2 % 150;
                let end = (BigInt::from(1) << shift) - 1;
                (
                    ((q * &r1 + &r2) << shift) + end,
                    (r1 << shift) + if round % 3 == 0 { random(1 + shift) >> 1 } else { BigInt::ZERO },
                )
            };
            let bound = match round % 5 {
                0 => BigInt::from(1),
                1 => x.sqrt(),
                2 => &y >> 1,
                3 => &y >> (y.bits() / 2),
                _ => random(1 + y.bits()),
            };
            agrees(&x, &y, &bound);
        }
    }
}
