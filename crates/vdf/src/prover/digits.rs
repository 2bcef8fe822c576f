//! The exponent 2^T / B, rounded down, in signed digits.
#![forbid(unsafe_code)]

use super::plan::Parameters;
use crate::form::num::Num;
use crate::prime::power_of_two;
use crate::proof::{B_BITS, Challenge};

/// Limbs of a remainder and of a digit above it.
const LIMBS: usize = 5;

/// Long division of a power of two by B, a digit at a time from the highest.
struct Division {
    b: [u64; LIMBS],
    /// B's highest 44 bits, and 1.
    above: u64,
    rest: [u64; LIMBS],
}

impl Division {
    fn new(b: &Challenge, rest: &Num) -> Division {
        let mut out = Division { b: [0; LIMBS], above: 0, rest: [0; LIMBS] };
        out.b[..b.0.len()].copy_from_slice(b.0.magnitude());
        out.rest[..rest.len()].copy_from_slice(rest.magnitude());
        out.above = (out.b[3] >> 28 | out.b[4] << 36) + 1;
        out
    }

    /// The next k <= 20 bits of the quotient.
    fn digit(&mut self, k: u32) -> u64 {
        for i in (1..LIMBS).rev() {
            self.rest[i] = self.rest[i] << k | self.rest[i - 1] >> (64 - k);
        }
        self.rest[0] <<= k;
        // 64 bits by 44: at most 1 too small, since the quotient has 20 bits.
        let mut quotient = (self.rest[3] >> 28 | self.rest[4] << 36) / self.above;
        let (mut carry, mut borrow) = (0, false);
        for i in 0..LIMBS {
            let product;
            (product, carry) = self.b[i].carrying_mul(quotient, carry);
            (self.rest[i], borrow) = self.rest[i].borrowing_sub(product, borrow);
        }
        while let Some(less) = self.less(&self.rest) {
            self.rest = less;
            quotient += 1;
        }
        quotient
    }

    /// x - B, if that is not negative.
    fn less(&self, x: &[u64; LIMBS]) -> Option<[u64; LIMBS]> {
        let (mut out, mut borrow) = ([0; LIMBS], false);
        for i in 0..LIMBS {
            (out[i], borrow) = x[i].borrowing_sub(self.b[i], borrow);
        }
        (!borrow).then_some(out)
    }

    /// The quotient's next bit, without consuming it.
    fn peek(&self) -> bool {
        let mut twice = self.rest;
        for i in (1..LIMBS).rev() {
            twice[i] = twice[i] << 1 | twice[i - 1] >> 63;
        }
        twice[0] <<= 1;
        self.less(&twice).is_some()
    }

    /// Skips digits: multiplies the rest by `factor`.
    fn skip(&mut self, factor: &Num, b: &Num) {
        let rest = Num::from_limbs(false, &self.rest).mul(factor).div_rem(b).1;
        self.rest = [0; LIMBS];
        self.rest[..rest.len()].copy_from_slice(rest.magnitude());
    }
}

/// Every l-th digit, to the base 2^k, of the quotient of 2^T by B: those at `pass`, `pass` + l and so on, from the lowest
/// place up. Digits lie between -2^(k-1) and 2^(k-1). B has [`B_BITS`] bits.
pub(crate) fn of_pass(iterations: u64, parameters: Parameters, pass: u32, b: &Challenge) -> Vec<i32> {
    let Parameters { k, l } = parameters;
    debug_assert!((1..=20).contains(&k) && b.0.bits() == B_BITS);
    // Places 0 to iterations / k; the highest has only a carry, which is 0 since B is longer.
    let places = iterations / u64::from(k);
    if places <= u64::from(pass) {
        return Vec::new();
    }
    let count = (places - 1 - u64::from(pass)) / u64::from(l) + 1;
    let highest = (count - 1) * u64::from(l) + u64::from(pass);
    // The rest of 2^T after all higher digits.
    let above = iterations - u64::from(k) * (highest + 1);
    let mut division = Division::new(b, &power_of_two(above, &b.0));
    let factor = (l > 1).then(|| power_of_two(u64::from(k) * u64::from(l - 1), &b.0));
    let mut out = vec![0; count as usize];
    let half = 1u64 << (k - 1);
    for (i, place) in out.iter_mut().enumerate().rev() {
        let digit = division.digit(k);
        // Digits from half the base up become negative and carry; each place predicts the carry from below.
        let signed = digit as i64 - if digit >= half { 2 * half as i64 } else { 0 };
        let lowest = i == 0 && pass == 0;
        *place = (signed + i64::from(!lowest && division.peek())) as i32;
        if let Some(factor) = &factor {
            division.skip(factor, &b.0);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The weighted digits of all passes together, against the quotient by long division of whole numbers.
    #[test]
    fn digits_make_up_the_quotient() {
        for (seed, iterations, k, l) in [
            (1u8, 1u64, 3u32, 2u32),
            (2, 263, 4, 1),
            (3, 264, 1, 1),
            (4, 270, 5, 3),
            (5, 1000, 13, 1),
            (6, 1500, 20, 4),
            (7, 2010, 7, 5),
            (8, 2049, 1, 9),
        ] {
            let b = Challenge(
                crate::prime::hash_prime(crate::Engine::best(), &[seed, 0, 0], B_BITS, &[B_BITS - 1])
                    .expect("a prime"),
            );
            let mut places = vec![0; (iterations / u64::from(k)) as usize];
            for pass in 0..l {
                let digits = of_pass(iterations, Parameters { k, l }, pass, &b);
                for (i, digit) in digits.iter().enumerate() {
                    assert!(digit.unsigned_abs() <= 1 << (k - 1), "{digit} of {k} bits");
                    places[i * l as usize + pass as usize] = *digit;
                }
            }
            let mut sum = Num::ZERO;
            for digit in places.iter().rev() {
                let digit = Num::from_limbs(*digit < 0, &[u64::from(digit.unsigned_abs())]);
                sum = sum.shift_left(k as usize).add(&digit);
            }
            let expected = Num::from_u64(1).shift_left(iterations as usize).div_rem(&b.0).0;
            assert!(sum == expected, "{iterations} squarings, {k} bits, {l} passes");
        }
    }
}
