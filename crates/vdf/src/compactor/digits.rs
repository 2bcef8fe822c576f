//! The exponent 2^T / B, rounded down, as odd signed digits from the lowest place up.
//!
//! The quotient's low bits at place i are those of -r / B, where r is 2^(T - i) modulo B: the term that Montgomery's
//! reduction adds to halve r is the digit. So the places come in the order in which the chain reaches them.
#![forbid(unsafe_code)]

use crate::prime::power_of_two;
use crate::proof::{B_BITS, Challenge};

/// Limbs of a remainder with a digit's multiple of B added.
const LIMBS: usize = 5;

/// Places and digits: the quotient is the sum of digit 2^place. Digits are odd and below 2^(w - 1) in magnitude, and
/// their places are at least w apart. So one place in w + 1 has a digit, on average.
#[derive(Clone, Debug)]
pub(super) struct Digits {
    b: [u64; LIMBS],
    /// -1 / B modulo 2^64.
    minus_inverse: u64,
    /// 2^(T - place) modulo B.
    rest: [u64; LIMBS],
    iterations: u64,
    place: u64,
    width: u32,
    /// What a negative digit carries.
    carry: u64,
}

impl Digits {
    /// B is odd and has [`B_BITS`] bits; widths lie between 2 and 20.
    pub(super) fn new(iterations: u64, b: &Challenge, width: u32) -> Digits {
        debug_assert!((2..=20).contains(&width) && b.0.bits() == B_BITS && b.0.is_odd());
        let mut out = Digits {
            b: [0; LIMBS],
            minus_inverse: 0,
            rest: [0; LIMBS],
            iterations,
            place: 0,
            width,
            carry: 0,
        };
        out.b[..b.0.len()].copy_from_slice(b.0.magnitude());
        let rest = power_of_two(iterations, &b.0);
        out.rest[..rest.len()].copy_from_slice(rest.magnitude());
        // Newton's iteration: 3 bits, then 6, 12, 24, 48 and 96.
        let mut inverse = out.b[0];
        for _ in 0..5 {
            inverse = inverse.wrapping_mul(2u64.wrapping_sub(out.b[0].wrapping_mul(inverse)));
        }
        out.minus_inverse = inverse.wrapping_neg();
        out
    }

    /// The quotient's w bits from this place on.
    fn bits(&self) -> u64 {
        self.rest[0].wrapping_mul(self.minus_inverse) & ((1 << self.width) - 1)
    }

    /// Goes on by n <= w places, whose bits are the lowest of `bits`.
    fn advance(&mut self, n: u32, bits: u64) {
        let factor = bits & ((1 << n) - 1);
        let (mut carry, mut over) = (0, false);
        for i in 0..LIMBS {
            let product;
            (product, carry) = self.b[i].carrying_mul(factor, carry);
            (self.rest[i], over) = self.rest[i].carrying_add(product, over);
        }
        for i in 0..LIMBS {
            let above = self.rest.get(i + 1).copied().unwrap_or(0);
            self.rest[i] = self.rest[i] >> n | above << (64 - n);
        }
        self.place += u64::from(n);
    }
}

impl Iterator for Digits {
    type Item = (u64, i32);

    fn next(&mut self) -> Option<(u64, i32)> {
        // Above, 2^(T - place) is below B.
        while self.iterations - self.place >= B_BITS as u64 {
            let bits = self.bits();
            // Zeros, or ones that pass a carry on.
            let run = if self.carry == 0 { bits.trailing_zeros() } else { bits.trailing_ones() };
            if run > 0 {
                self.advance(run.min(self.width), bits);
                continue;
            }
            let (place, digit, base) = (self.place, bits + self.carry, 1 << self.width);
            self.carry = u64::from(digit > base / 2);
            self.advance(self.width, bits);
            return Some((place, (digit as i64 - (base * self.carry) as i64) as i32));
        }
        let last = std::mem::take(&mut self.carry);
        (last == 1).then_some((self.place, 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::num::Num;

    #[test]
    fn digits_make_up_the_quotient() {
        for (seed, iterations) in [(1u8, 1u64), (2, 263), (3, 264), (4, 265), (5, 300), (6, 1000), (7, 2050)]
        {
            for width in [2, 3, 5, 13, 20] {
                let b = Challenge(
                    crate::prime::hash_prime(crate::Engine::best(), &[seed, 0, 0], B_BITS, &[B_BITS - 1])
                        .expect("a prime"),
                );
                let (mut sum, mut after) = (Num::ZERO, 0);
                for (place, digit) in Digits::new(iterations, &b, width) {
                    assert!(
                        digit % 2 != 0 && digit.unsigned_abs() < 1 << (width - 1),
                        "{digit}, {width} bits"
                    );
                    assert!(place >= after && place < iterations, "{place} of {iterations}");
                    after = place + u64::from(width);
                    let digit = Num::from_limbs(digit < 0, &[u64::from(digit.unsigned_abs())]);
                    sum = sum.add(&digit.shift_left(place as usize));
                }
                let expected = Num::from_u64(1).shift_left(iterations as usize).div_rem(&b.0).0;
                assert!(sum == expected, "{iterations} squarings, {width} bits");
            }
        }
    }
}
