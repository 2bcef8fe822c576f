//! Magnitudes.
#![forbid(unsafe_code)]

use core::cmp::Ordering;
use core::fmt;
use core::ops::{Shl, Shr};

use crate::limbs;

/// A number of N 64-bit limbs, lowest first.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Uint<const N: usize> {
    limbs: [u64; N],
}

impl<const N: usize> Uint<N> {
    /// 0.
    pub const ZERO: Uint<N> = Uint { limbs: [0; N] };
    /// 1.
    pub const ONE: Uint<N> = Uint::from_u64(1);
    /// The width in bits.
    pub const BITS: usize = 64 * N;

    /// A number of one limb.
    #[must_use]
    pub const fn from_u64(x: u64) -> Uint<N> {
        let mut limbs = [0; N];
        limbs[0] = x;
        Uint { limbs }
    }

    /// From limbs, lowest first.
    #[must_use]
    pub const fn from_limbs(limbs: [u64; N]) -> Uint<N> {
        Uint { limbs }
    }

    /// The limbs, lowest first.
    #[must_use]
    pub const fn limbs(&self) -> &[u64; N] {
        &self.limbs
    }

    /// The limbs, for writing.
    #[must_use]
    pub const fn limbs_mut(&mut self) -> &mut [u64; N] {
        &mut self.limbs
    }

    /// From bytes, highest first; `None` if the number does not fit. Leading zeros are allowed.
    #[must_use]
    pub fn from_be_bytes(bytes: &[u8]) -> Option<Uint<N>> {
        let mut x = Uint::ZERO;
        for (i, &byte) in bytes.iter().rev().enumerate() {
            match x.limbs.get_mut(i / 8) {
                Some(limb) => *limb |= u64::from(byte) << (8 * (i % 8)),
                None if byte == 0 => {}
                None => return None,
            }
        }
        Some(x)
    }

    /// From bytes, lowest first; `None` if the number does not fit.
    #[must_use]
    pub fn from_le_bytes(bytes: &[u8]) -> Option<Uint<N>> {
        let mut x = Uint::ZERO;
        for (i, &byte) in bytes.iter().enumerate() {
            match x.limbs.get_mut(i / 8) {
                Some(limb) => *limb |= u64::from(byte) << (8 * (i % 8)),
                None if byte == 0 => {}
                None => return None,
            }
        }
        Some(x)
    }

    /// Byte i, counted from the lowest; 0 above the highest.
    #[must_use]
    pub fn byte(&self, i: usize) -> u8 {
        self.limbs.get(i / 8).map_or(0, |limb| (limb >> (8 * (i % 8))) as u8)
    }

    /// Writes the number into all of `out`, highest byte first.
    ///
    /// # Panics
    /// If it does not fit.
    pub fn write_be_bytes(&self, out: &mut [u8]) {
        assert!(self.bits() <= 8 * out.len(), "the number fits");
        for (i, byte) in out.iter_mut().rev().enumerate() {
            *byte = self.byte(i);
        }
    }

    /// Writes the number into all of `out`, lowest byte first.
    ///
    /// # Panics
    /// If it does not fit.
    pub fn write_le_bytes(&self, out: &mut [u8]) {
        assert!(self.bits() <= 8 * out.len(), "the number fits");
        for (i, byte) in out.iter_mut().enumerate() {
            *byte = self.byte(i);
        }
    }

    /// Bits up to the highest set one.
    #[must_use]
    pub fn bits(&self) -> usize {
        limbs::bits(&self.limbs)
    }

    /// Limbs up to the highest that is not 0.
    #[must_use]
    pub fn significant(&self) -> usize {
        limbs::significant(&self.limbs)
    }

    /// Bit i.
    #[must_use]
    pub fn bit(&self, i: usize) -> bool {
        self.limbs.get(i / 64).is_some_and(|limb| limb >> (i % 64) & 1 == 1)
    }

    /// Whether it is 0.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.limbs.iter().all(|&limb| limb == 0)
    }

    /// Whether it is odd.
    #[must_use]
    pub const fn is_odd(&self) -> bool {
        self.limbs[0] & 1 == 1
    }

    /// Zeros below the lowest set bit; the width for 0.
    #[must_use]
    pub fn trailing_zeros(&self) -> usize {
        match self.limbs.iter().position(|&limb| limb != 0) {
            Some(i) => 64 * i + self.limbs[i].trailing_zeros() as usize,
            None => Self::BITS,
        }
    }

    /// The same number in another width; `None` if it does not fit.
    #[must_use]
    pub fn try_resize<const M: usize>(&self) -> Option<Uint<M>> {
        let n = self.significant();
        let mut out = Uint::ZERO;
        out.limbs.get_mut(..n)?.copy_from_slice(&self.limbs[..n]);
        Some(out)
    }

    /// The same number in another width.
    ///
    /// # Panics
    /// If it does not fit.
    #[must_use]
    pub fn resize<const M: usize>(&self) -> Uint<M> {
        self.try_resize().expect("the number fits the width")
    }

    /// The sum; `None` if it does not fit.
    #[must_use]
    pub fn checked_add(mut self, other: &Uint<N>) -> Option<Uint<N>> {
        (!limbs::add(&mut self.limbs, &other.limbs)).then_some(self)
    }

    /// The difference; `None` if it is negative.
    #[must_use]
    pub fn checked_sub(mut self, other: &Uint<N>) -> Option<Uint<N>> {
        (!limbs::sub(&mut self.limbs, &other.limbs)).then_some(self)
    }

    /// The sum.
    ///
    /// # Panics
    /// If it does not fit.
    #[must_use]
    pub fn plus(self, other: &Uint<N>) -> Uint<N> {
        self.checked_add(other).expect("the sum fits")
    }

    /// The difference.
    ///
    /// # Panics
    /// If it is negative.
    #[must_use]
    pub fn minus(self, other: &Uint<N>) -> Uint<N> {
        self.checked_sub(other).expect("the difference is not negative")
    }

    /// The product in R limbs.
    ///
    /// # Panics
    /// If it does not fit.
    #[must_use]
    pub fn times<const M: usize, const R: usize>(&self, other: &Uint<M>) -> Uint<R> {
        let mut out = Uint::ZERO;
        let (x, y) = (&self.limbs[..self.significant()], &other.limbs[..other.significant()]);
        if x.is_empty() || y.is_empty() {
            return out;
        }
        // Of R + 1 limbs the top one may still be 0; nothing wider can fit.
        assert!(x.len() + y.len() <= R + 1, "the product fits");
        for (i, &factor) in y.iter().enumerate() {
            let carry = limbs::add_mul(&mut out.limbs[i..i + x.len()], x, factor);
            match out.limbs.get_mut(i + x.len()) {
                Some(top) => *top = carry,
                None => assert_eq!(carry, 0, "the product fits"),
            }
        }
        out
    }

    /// The quotient and the remainder.
    ///
    /// # Panics
    /// If the divisor is 0.
    #[must_use]
    pub fn div_rem<const M: usize>(&self, divisor: &Uint<M>) -> (Uint<N>, Uint<M>) {
        let (mut rest, mut quotient) = (self.limbs, Uint::ZERO);
        limbs::div_rem(&mut rest, &divisor.limbs, &mut quotient.limbs);
        let n = limbs::significant(&rest);
        let mut out = Uint::ZERO;
        out.limbs[..n].copy_from_slice(&rest[..n]);
        (quotient, out)
    }
}

/// Shifted left; bits beyond the width are lost.
impl<const N: usize> Shl<usize> for Uint<N> {
    type Output = Uint<N>;

    fn shl(mut self, shift: usize) -> Uint<N> {
        limbs::shift_left(&mut self.limbs, shift);
        self
    }
}

/// Shifted right.
impl<const N: usize> Shr<usize> for Uint<N> {
    type Output = Uint<N>;

    fn shr(mut self, shift: usize) -> Uint<N> {
        limbs::shift_right(&mut self.limbs, shift);
        self
    }
}

impl<const N: usize> Ord for Uint<N> {
    fn cmp(&self, other: &Uint<N>) -> Ordering {
        self.limbs.iter().rev().cmp(other.limbs.iter().rev())
    }
}

impl<const N: usize> PartialOrd for Uint<N> {
    fn partial_cmp(&self, other: &Uint<N>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<const N: usize> fmt::LowerHex for Uint<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.significant();
        if n == 0 {
            return f.write_str("0");
        }
        write!(f, "{:x}", self.limbs[n - 1])?;
        self.limbs[..n - 1].iter().rev().try_for_each(|limb| write!(f, "{limb:016x}"))
    }
}

impl<const N: usize> fmt::Debug for Uint<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{self:x}")
    }
}
