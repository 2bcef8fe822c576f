//! Signed numbers: a sign and a magnitude.
#![forbid(unsafe_code)]

use core::cmp::Ordering;
use core::fmt;
use core::ops::{Neg, Shl};

use crate::Uint;

/// A signed number of N 64-bit limbs. 0 is never negative.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Int<const N: usize> {
    negative: bool,
    magnitude: Uint<N>,
}

impl<const N: usize> Int<N> {
    /// 0.
    pub const ZERO: Int<N> = Int { negative: false, magnitude: Uint::ZERO };
    /// 1.
    pub const ONE: Int<N> = Int { negative: false, magnitude: Uint::ONE };

    /// From a sign and a magnitude.
    #[must_use]
    pub fn new(negative: bool, magnitude: Uint<N>) -> Int<N> {
        Int { negative: negative && !magnitude.is_zero(), magnitude }
    }

    /// A small number.
    #[must_use]
    pub fn from_i64(x: i64) -> Int<N> {
        Int::new(x < 0, Uint::from_u64(x.unsigned_abs()))
    }

    /// Whether it is below 0.
    #[must_use]
    pub const fn is_negative(&self) -> bool {
        self.negative
    }

    /// Whether it is 0.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.magnitude.is_zero()
    }

    /// Whether it is odd.
    #[must_use]
    pub const fn is_odd(&self) -> bool {
        self.magnitude.is_odd()
    }

    /// Its distance from 0.
    #[must_use]
    pub const fn magnitude(&self) -> &Uint<N> {
        &self.magnitude
    }

    /// Bits of the magnitude.
    #[must_use]
    pub fn bits(&self) -> usize {
        self.magnitude.bits()
    }

    /// The same number in another width; `None` if it does not fit.
    #[must_use]
    pub fn try_resize<const M: usize>(&self) -> Option<Int<M>> {
        Some(Int { negative: self.negative, magnitude: self.magnitude.try_resize()? })
    }

    /// The same number in another width.
    ///
    /// # Panics
    /// If it does not fit.
    #[must_use]
    pub fn resize<const M: usize>(&self) -> Int<M> {
        Int { negative: self.negative, magnitude: self.magnitude.resize() }
    }

    /// The sum.
    ///
    /// # Panics
    /// If it does not fit.
    #[must_use]
    pub fn plus(&self, other: &Int<N>) -> Int<N> {
        if self.negative == other.negative {
            return Int::new(self.negative, self.magnitude.plus(&other.magnitude));
        }
        match self.magnitude.checked_sub(&other.magnitude) {
            Some(rest) => Int::new(self.negative, rest),
            None => Int::new(other.negative, other.magnitude.minus(&self.magnitude)),
        }
    }

    /// The difference.
    ///
    /// # Panics
    /// If it does not fit.
    #[must_use]
    pub fn minus(&self, other: &Int<N>) -> Int<N> {
        self.plus(&-*other)
    }

    /// The product in R limbs.
    ///
    /// # Panics
    /// If it does not fit.
    #[must_use]
    pub fn times<const M: usize, const R: usize>(&self, other: &Int<M>) -> Int<R> {
        Int::new(self.negative != other.negative, self.magnitude.times(&other.magnitude))
    }

    /// The quotient rounded down, and the remainder with the divisor's sign.
    ///
    /// # Panics
    /// If the divisor is 0.
    #[must_use]
    pub fn div_floor<const M: usize>(&self, divisor: &Int<M>) -> (Int<N>, Int<M>) {
        let (quotient, rest) = self.magnitude.div_rem(&divisor.magnitude);
        let negative = self.negative != divisor.negative;
        if negative && !rest.is_zero() {
            let rest = Int::new(divisor.negative, divisor.magnitude.minus(&rest));
            return (Int::new(true, quotient.plus(&Uint::ONE)), rest);
        }
        (Int::new(negative, quotient), Int::new(divisor.negative, rest))
    }

    /// The quotient of an exact division; `None` if there is a remainder.
    ///
    /// # Panics
    /// If the divisor is 0.
    #[must_use]
    pub fn div_exact<const M: usize>(&self, divisor: &Int<M>) -> Option<Int<N>> {
        let (quotient, rest) = self.magnitude.div_rem(&divisor.magnitude);
        rest.is_zero().then(|| Int::new(self.negative != divisor.negative, quotient))
    }
}

/// Times a power of two; bits that leave the width are lost.
impl<const N: usize> Shl<usize> for Int<N> {
    type Output = Int<N>;

    fn shl(self, shift: usize) -> Int<N> {
        Int::new(self.negative, self.magnitude << shift)
    }
}

impl<const N: usize> Neg for Int<N> {
    type Output = Int<N>;

    fn neg(self) -> Int<N> {
        Int::new(!self.negative, self.magnitude)
    }
}

impl<const N: usize> Ord for Int<N> {
    fn cmp(&self, other: &Int<N>) -> Ordering {
        match (self.negative, other.negative) {
            (false, false) => self.magnitude.cmp(&other.magnitude),
            (true, true) => other.magnitude.cmp(&self.magnitude),
            (negative, _) => {
                if negative {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
            }
        }
    }
}

impl<const N: usize> PartialOrd for Int<N> {
    fn partial_cmp(&self, other: &Int<N>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<const N: usize> fmt::Debug for Int<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", if self.negative { "-" } else { "" }, self.magnitude)
    }
}
