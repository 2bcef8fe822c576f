//! Signed numbers of varying length in a fixed store, for the group operations.
//!
//! A form's coefficients have half the discriminant's length, their products all of it. The length is kept beside the
//! limbs, so every operation costs only what its operands need.
#![forbid(unsafe_code)]

use core::cmp::Ordering;

use lanework_integer::{Int, Uint, limbs};

/// Limbs of the store: products of two coefficients for a discriminant of 2,048 bits, and some room above them.
pub(crate) const CAPACITY: usize = 40;

/// A signed number below 2^2560. Limbs above `len` are 0, and 0 is not negative.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Num {
    negative: bool,
    len: usize,
    limbs: [u64; CAPACITY],
}

impl PartialEq for Num {
    fn eq(&self, other: &Num) -> bool {
        self.negative == other.negative && self.magnitude() == other.magnitude()
    }
}

impl Eq for Num {}

impl Num {
    pub(crate) const ZERO: Num = Num { negative: false, len: 0, limbs: [0; CAPACITY] };

    pub(crate) fn from_u64(x: u64) -> Num {
        let mut out = Num::ZERO;
        out.limbs[0] = x;
        out.len = usize::from(x != 0);
        out
    }

    /// From limbs, lowest first. They must fit the store.
    pub(crate) fn from_limbs(negative: bool, from: &[u64]) -> Num {
        let len = limbs::significant(from);
        let mut out = Num::ZERO;
        out.limbs[..len].copy_from_slice(&from[..len]);
        out.len = len;
        out.negative = negative && len != 0;
        out
    }

    pub(crate) fn from_le_bytes(bytes: &[u8]) -> Num {
        let x: Uint<CAPACITY> = Uint::from_le_bytes(bytes).expect("the bytes fit the store");
        Num::from_limbs(false, x.limbs())
    }

    pub(crate) fn from_int<const N: usize>(x: &Int<N>) -> Num {
        Num::from_limbs(x.is_negative(), x.magnitude().limbs())
    }

    /// As a number of fixed width, which must hold it.
    pub(crate) fn to_int<const N: usize>(self) -> Int<N> {
        debug_assert!(self.len <= N, "the number fits");
        let mut magnitude = Uint::ZERO;
        magnitude.limbs_mut().copy_from_slice(&self.limbs[..N]);
        Int::new(self.negative, magnitude)
    }

    /// Writes the magnitude, lowest byte first; false if it does not fit.
    pub(crate) fn write_le_bytes(&self, out: &mut [u8]) -> bool {
        if self.bits() > 8 * out.len() {
            return false;
        }
        Uint::from_limbs(self.limbs).write_le_bytes(out);
        true
    }

    /// The limbs of the magnitude up to the highest that is not 0.
    pub(crate) fn magnitude(&self) -> &[u64] {
        &self.limbs[..self.len]
    }

    /// The lowest `len` limbs, including leading zeros.
    pub(crate) fn limbs(&self, len: usize) -> &[u64] {
        &self.limbs[..len]
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// All limbs of the store, for writing; [`Num::settle`] must follow.
    pub(crate) fn store(&mut self) -> &mut [u64; CAPACITY] {
        &mut self.limbs
    }

    /// Finds the length again after writing no limb at or above `most`.
    pub(crate) fn settle(&mut self, most: usize) {
        self.len = limbs::significant(&self.limbs[..most]);
        self.negative &= self.len != 0;
    }

    pub(crate) fn is_negative(&self) -> bool {
        self.negative
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn is_one(&self) -> bool {
        self.len == 1 && self.limbs[0] == 1 && !self.negative
    }

    pub(crate) fn is_odd(&self) -> bool {
        self.limbs[0] & 1 == 1
    }

    pub(crate) fn bits(&self) -> usize {
        limbs::bits(self.magnitude())
    }

    pub(crate) fn bit(&self, i: usize) -> bool {
        self.limbs.get(i / 64).is_some_and(|limb| limb >> (i % 64) & 1 == 1)
    }

    pub(crate) fn neg(mut self) -> Num {
        self.negative = !self.negative && self.len != 0;
        self
    }

    pub(crate) fn abs(mut self) -> Num {
        self.negative = false;
        self
    }

    /// The number, negated if `turn`.
    pub(crate) fn neg_if(self, turn: bool) -> Num {
        if turn { self.neg() } else { self }
    }

    pub(crate) fn compare_magnitude(&self, other: &Num) -> Ordering {
        self.len
            .cmp(&other.len)
            .then_with(|| self.magnitude().iter().rev().cmp(other.magnitude().iter().rev()))
    }

    pub(crate) fn add(&self, other: &Num) -> Num {
        if self.negative == other.negative {
            let (long, short) = if self.len >= other.len { (self, other) } else { (other, self) };
            let mut out = *long;
            let most = long.len + 1;
            let carry = limbs::add(&mut out.limbs[..most], short.magnitude());
            debug_assert!(!carry, "one limb takes the carry");
            out.len = if out.limbs[long.len] == 0 { long.len } else { most };
            return out;
        }
        let (mut out, less) = match self.compare_magnitude(other) {
            Ordering::Equal => return Num::ZERO,
            Ordering::Greater => (*self, other),
            Ordering::Less => (*other, self),
        };
        let most = out.len;
        limbs::sub(&mut out.limbs[..most], less.magnitude());
        out.settle(most);
        out
    }

    pub(crate) fn sub(&self, other: &Num) -> Num {
        self.add(&other.neg())
    }

    pub(crate) fn mul(&self, other: &Num) -> Num {
        let mut out = Num::ZERO;
        if self.len == 0 || other.len == 0 {
            return out;
        }
        let most = self.len + other.len;
        limbs::mul(self.magnitude(), other.magnitude(), &mut out.limbs[..most]);
        out.len = if out.limbs[most - 1] == 0 { most - 1 } else { most };
        out.negative = self.negative != other.negative;
        out
    }

    pub(crate) fn square(&self) -> Num {
        self.mul(self)
    }

    /// The quotient rounded towards 0, and the remainder with the dividend's sign. The divisor must not be 0.
    pub(crate) fn div_rem(&self, divisor: &Num) -> (Num, Num) {
        if self.len < divisor.len {
            return (Num::ZERO, *self);
        }
        let (mut rest, mut quotient) = (*self, Num::ZERO);
        let most = self.len - divisor.len + 1;
        limbs::div_rem(&mut rest.limbs[..self.len], divisor.magnitude(), &mut quotient.limbs[..most]);
        rest.settle(self.len);
        quotient.settle(most);
        quotient.negative = self.negative != divisor.negative && quotient.len != 0;
        (quotient, rest)
    }

    /// The remainder from 0 to the divisor, which must be positive.
    pub(crate) fn modulo(&self, divisor: &Num) -> Num {
        let rest = self.div_rem(divisor).1;
        if rest.negative { rest.add(divisor) } else { rest }
    }

    /// The quotient of an exact division. The divisor must not be 0.
    pub(crate) fn div_exact(&self, divisor: &Num) -> Num {
        let (quotient, rest) = self.div_rem(divisor);
        debug_assert!(rest.is_zero(), "the division is exact");
        quotient
    }

    pub(crate) fn double(&self) -> Num {
        self.shift_left(1)
    }

    pub(crate) fn shift_left(&self, shift: usize) -> Num {
        let mut out = *self;
        let most = (self.len + shift / 64 + 1).min(CAPACITY);
        limbs::shift_left(&mut out.limbs[..most], shift);
        out.settle(most);
        out
    }

    /// Half the number, rounded towards 0.
    pub(crate) fn half(&self) -> Num {
        let mut out = *self;
        let mut carry = 0;
        for limb in out.limbs[..self.len].iter_mut().rev() {
            (*limb, carry) = (*limb >> 1 | carry, *limb << 63);
        }
        out.settle(self.len);
        out
    }

    /// The square root, rounded down, of a number that is not negative.
    pub(crate) fn root(&self) -> Num {
        if self.len == 0 {
            return Num::ZERO;
        }
        // Newton's method from above.
        let mut x = Num::from_u64(1).shift_left(self.bits().div_ceil(2));
        loop {
            let next = x.add(&self.div_rem(&x).0).half();
            if next.compare_magnitude(&x) != Ordering::Less {
                return x;
            }
            x = next;
        }
    }
}

impl Ord for Num {
    fn cmp(&self, other: &Num) -> Ordering {
        match (self.negative, other.negative) {
            (false, false) => self.compare_magnitude(other),
            (true, true) => other.compare_magnitude(self),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

impl PartialOrd for Num {
    fn partial_cmp(&self, other: &Num) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
