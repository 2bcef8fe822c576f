//! GMP, the library that everybody's integers are measured against, through the package `rug`: its own sources, compiled for
//! this CPU while building (feature `gmp`).
//!
//! Only what a race or a comparison needs, on numbers of 64-bit limbs.
#![forbid(unsafe_code)]

use std::cmp::Ordering;

use rug::integer::Order;
use rug::ops::{DivRounding, RemRounding};
use rug::{Assign, Integer};

/// The version of GMP that is linked.
pub const VERSION: (i32, i32, i32) =
    (gmp_mpfr_sys::gmp::VERSION, gmp_mpfr_sys::gmp::VERSION_MINOR, gmp_mpfr_sys::gmp::VERSION_PATCHLEVEL);

/// A signed GMP integer.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gmp(Integer);

impl Gmp {
    /// From the limbs of a magnitude, lowest first, and a sign.
    #[must_use]
    pub fn new(limbs: &[u64], negative: bool) -> Gmp {
        let x = Integer::from_digits(limbs, Order::Lsf);
        Gmp(if negative { -x } else { x })
    }

    /// A number with room for `bits` bits, so that later results allocate nothing.
    #[must_use]
    pub fn with_room(bits: usize) -> Gmp {
        Gmp(Integer::with_capacity(bits))
    }

    /// The significant limbs of the magnitude, lowest first.
    #[must_use]
    pub fn limbs(&self) -> Vec<u64> {
        let mut limbs = vec![0; self.0.significant_digits::<u64>()];
        self.0.write_digits(&mut limbs, Order::Lsf);
        limbs
    }

    /// Whether it is below 0.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        self.0.cmp0() == Ordering::Less
    }

    /// Whether it is 0.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.0.cmp0() == Ordering::Equal
    }

    /// Bits of the magnitude.
    #[must_use]
    pub fn bits(&self) -> usize {
        self.0.significant_bits() as usize
    }

    /// self = x + y (`mpz_add`).
    #[inline]
    pub fn set_sum(&mut self, x: &Gmp, y: &Gmp) {
        self.0.assign(&x.0 + &y.0);
    }

    /// self = x y (`mpz_mul`).
    #[inline]
    pub fn set_product(&mut self, x: &Gmp, y: &Gmp) {
        self.0.assign(&x.0 * &y.0);
    }

    /// Makes a number that is not negative its lowest `bits` bits (`mpz_fdiv_r_2exp`).
    #[inline]
    pub fn keep_low(&mut self, bits: u32) {
        self.0.keep_bits_mut(bits);
    }

    /// The magnitude's lowest `bits` bits, with the sign.
    #[must_use]
    pub fn low_bits(&self, bits: u32) -> Gmp {
        let low = self.0.clone().abs().keep_bits(bits);
        Gmp(if self.is_negative() { -low } else { low })
    }

    /// The magnitude divided by 2^k, with the sign.
    #[must_use]
    pub fn halved(&self, k: u32) -> Gmp {
        // Shifting a magnitude rounds towards 0.
        let high = self.0.clone().abs() >> k;
        Gmp(if self.is_negative() { -high } else { high })
    }

    /// The quotient rounded down and the remainder with the divisor's sign; `None` if the divisor is 0.
    #[must_use]
    pub fn divided(&self, divisor: &Gmp) -> Option<(Gmp, Gmp)> {
        (!divisor.is_zero()).then(|| {
            let quotient = self.0.clone().div_floor(&divisor.0);
            let rest = self.0.clone().rem_floor(&divisor.0);
            (Gmp(quotient), Gmp(rest))
        })
    }

    /// The quotient, if there is no remainder (`mpz_divisible_p`, `mpz_divexact`).
    #[must_use]
    pub fn div_exact(&self, divisor: &Gmp) -> Option<Gmp> {
        let divides = !divisor.is_zero() && self.0.is_divisible(&divisor.0);
        divides.then(|| Gmp(self.0.clone().div_exact(&divisor.0)))
    }

    /// The greatest common divisor (`mpz_gcd`).
    #[must_use]
    pub fn gcd(&self, other: &Gmp) -> Gmp {
        Gmp(Integer::from(self.0.gcd_ref(&other.0)))
    }

    /// The inverse modulo m, from 0 to m - 1 (`mpz_invert`).
    #[must_use]
    pub fn inverse(&self, m: &Gmp) -> Option<Gmp> {
        self.0.invert_ref(&m.0).map(|x| Gmp(Integer::from(x)))
    }
}

/// A small number.
#[must_use]
pub fn small(x: i64) -> Gmp {
    Gmp(Integer::from(x))
}

/// x + y.
#[must_use]
pub fn plus(x: &Gmp, y: &Gmp) -> Gmp {
    Gmp(Integer::from(&x.0 + &y.0))
}

/// x - y.
#[must_use]
pub fn minus(x: &Gmp, y: &Gmp) -> Gmp {
    Gmp(Integer::from(&x.0 - &y.0))
}

/// x y.
#[must_use]
pub fn times(x: &Gmp, y: &Gmp) -> Gmp {
    Gmp(Integer::from(&x.0 * &y.0))
}

/// x 2^k.
#[must_use]
pub fn shifted(x: &Gmp, k: usize) -> Gmp {
    Gmp(Integer::from(&x.0 << k))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lead_back_and_operations_are_theirs() {
        let x = Gmp::new(&[u64::MAX, 0, 5, 0], true);
        assert_eq!((x.limbs(), x.is_negative(), x.bits()), (vec![u64::MAX, 0, 5], true, 131));
        let y = Gmp::new(&[3], false);
        let mut z = Gmp::with_room(512);
        z.set_product(&x, &y);
        assert_eq!(z.div_exact(&y), Some(x.clone()));
        assert_eq!(Gmp::new(&[7], false).div_exact(&y), None);
        assert_eq!(Gmp::new(&[7], false).div_exact(&Gmp::default()), None);
        assert_eq!(Gmp::new(&[7], true).divided(&y), Some((Gmp::new(&[3], true), Gmp::new(&[2], false))));
        assert_eq!(Gmp::new(&[21], false).gcd(&Gmp::new(&[35], true)), Gmp::new(&[7], false));
        assert_eq!(y.inverse(&Gmp::new(&[7], false)), Some(Gmp::new(&[5], false)));
        assert_eq!(x.halved(64), Gmp::new(&[0, 5], true));
        assert_eq!(x.low_bits(65), Gmp::new(&[u64::MAX], true));
        assert!(VERSION.0 >= 6);
    }
}
