//! Discriminants: which class group the chain runs in.
#![forbid(unsafe_code)]

use core::fmt;

use lanework_integer::Int;

use crate::backend::Engine;
use crate::form::LIMBS;
use crate::form::num::Num;
use crate::group::Group;
use crate::prime;

/// The longest discriminant, in bits.
pub const MAX_BITS: usize = 2048;

/// A negative number that is 1 modulo 4, of at most [`MAX_BITS`] bits, with constants of the group's operations.
#[derive(Clone, PartialEq, Eq)]
pub struct Discriminant {
    number: Num,
    fourth_root: Num,
}

/// Why a number is not accepted as a discriminant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DiscriminantError {
    /// The number is 0 or positive.
    NotNegative,
    /// The number is not 1 modulo 4.
    NotOneModuloFour,
    /// The number is longer than allowed.
    TooLong {
        /// The bits asked for.
        bits: usize,
        /// The most allowed.
        most: usize,
    },
    /// The length asked for is 0 or not a multiple of 8.
    OddLength {
        /// The bits asked for.
        bits: usize,
    },
    /// The challenge is empty.
    EmptySeed,
    /// The challenge is so short that its stream repeats before a prime. (chiavdf would search forever.)
    NoPrime,
}

impl fmt::Display for DiscriminantError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DiscriminantError::NotNegative => f.write_str("the discriminant is not negative"),
            DiscriminantError::NotOneModuloFour => f.write_str("the discriminant is not 1 modulo 4"),
            DiscriminantError::TooLong { bits, most } => {
                write!(f, "a discriminant of {bits} bits; at most {most} are allowed")
            }
            DiscriminantError::OddLength { bits } => {
                write!(f, "a discriminant of {bits} bits; the length must be a positive multiple of 8")
            }
            DiscriminantError::EmptySeed => f.write_str("the challenge is empty"),
            DiscriminantError::NoPrime => f.write_str(
                "the challenge is too short: the numbers that it generates repeat, and none is prime",
            ),
        }
    }
}

impl core::error::Error for DiscriminantError {}

impl Discriminant {
    /// Checks a number. It need not be prime: the group exists either way.
    ///
    /// A proof shows nothing in the group of a number that may be composite. The factors of |D| give forms of order 2,
    /// and with such a form e, the false result y e has a proof where y has one ([`crate::verify()`]). Verify only if
    /// the number comes from a challenge ([`Discriminant::from_seed`]) or from a trusted source, or if
    /// [`Discriminant::is_prime`] accepts it. It must be long, too: the group of a short prime can be counted, and then
    /// any result has a proof.
    ///
    /// # Errors
    /// The fault of the number.
    pub fn new(d: &Int<LIMBS>) -> Result<Discriminant, DiscriminantError> {
        if !d.is_negative() {
            return Err(DiscriminantError::NotNegative);
        }
        if d.bits() > MAX_BITS {
            return Err(DiscriminantError::TooLong { bits: d.bits(), most: MAX_BITS });
        }
        // -|D| = 1 modulo 4.
        if d.magnitude().limbs()[0] & 3 != 3 {
            return Err(DiscriminantError::NotOneModuloFour);
        }
        Ok(Discriminant::from_magnitude(&Num::from_int(d)))
    }

    fn from_magnitude(d: &Num) -> Discriminant {
        Discriminant { number: d.abs().neg(), fourth_root: d.abs().root().root() }
    }

    /// The group, with the kernels of a backend to compute in it. Where a function takes `impl Into<Group>`,
    /// `&Discriminant` means the group on the fastest backend of this CPU. Results do not depend on the backend.
    #[must_use]
    pub fn on(&self, engine: Engine) -> Group<'_> {
        Group::new(self, engine)
    }

    /// The discriminant of a challenge: the negative of the first prime, 7 modulo 8, in the stream of SHA-256 values
    /// that the challenge starts. From 16 bits on it is that of chiavdf's `CreateDiscriminant`. That function divides by
    /// the primes up to 233 and refuses them too, so it answers every challenge with -239 at 8 bits.
    ///
    /// # Errors
    /// An empty challenge, one of a byte or two without a prime, or a length that is not a multiple of 8 from 8 to
    /// [`MAX_BITS`]. Chia itself stops at 1,024.
    pub fn from_seed(seed: &[u8], bits: usize) -> Result<Discriminant, DiscriminantError> {
        Discriminant::from_seed_on(Engine::best(), seed, bits)
    }

    /// [`Discriminant::from_seed`] with the kernels of a backend.
    ///
    /// # Errors
    /// As [`Discriminant::from_seed`].
    pub fn from_seed_on(engine: Engine, seed: &[u8], bits: usize) -> Result<Discriminant, DiscriminantError> {
        Discriminant::check_seed(seed, bits)?;
        prime::hash_prime(engine, seed, bits, &[0, 1, 2, bits - 1])
            .map(|prime| Discriminant::from_magnitude(&prime))
            .ok_or(DiscriminantError::NoPrime)
    }

    /// Checks a challenge and a length before the search, which takes milliseconds to seconds.
    ///
    /// # Errors
    /// As [`Discriminant::from_seed`], except that there is no prime.
    pub fn check_seed(seed: &[u8], bits: usize) -> Result<(), DiscriminantError> {
        if seed.is_empty() {
            return Err(DiscriminantError::EmptySeed);
        }
        if bits == 0 || !bits.is_multiple_of(8) {
            return Err(DiscriminantError::OddLength { bits });
        }
        if bits > MAX_BITS {
            return Err(DiscriminantError::TooLong { bits, most: MAX_BITS });
        }
        Ok(())
    }

    /// Whether |D| is prime, by the same test as in the search for a challenge's prime ([`prime`]). It takes milliseconds
    /// at 2,048 bits.
    #[must_use]
    pub fn is_prime(&self) -> bool {
        Group::from(self).is_prime()
    }

    /// D.
    #[must_use]
    pub fn value(&self) -> Int<LIMBS> {
        self.number.to_int()
    }

    /// Bits of |D|.
    #[must_use]
    pub fn bits(&self) -> usize {
        self.number.bits()
    }

    pub(crate) fn number(&self) -> &Num {
        &self.number
    }

    /// |D|^(1/4), rounded down: where partial runs of Euclid's algorithm stop.
    pub(crate) fn fourth_root(&self) -> &Num {
        &self.fourth_root
    }

    /// Bits where rows of Euclid's algorithm stop in kernels. A quarter of the length would balance them; five more
    /// often save a window, and reduction compensates.
    pub(crate) fn stop(&self) -> usize {
        self.bits().div_ceil(4) + 5
    }
}

impl fmt::Debug for Discriminant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Discriminant({:?})", self.value())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Engine;
    use lanework_cpu::Cpu;

    /// Streams that repeat after 256 hashes: every backend ends, with the same answer.
    #[test]
    fn challenges_of_one_byte_have_a_prime_or_none() {
        for (bits, some) in [(512, false), (1024, true)] {
            let mut refused = 0;
            for seed in 0..16u8 {
                let plain = Engine::portable();
                let expected = Discriminant::from_seed_on(plain, &[seed], bits).map(|d| d.value());
                refused += usize::from(expected == Err(DiscriminantError::NoPrime));
                for engine in Engine::available(&Cpu::detect()) {
                    assert_eq!(
                        Discriminant::from_seed_on(engine, &[seed], bits).map(|d| d.value()),
                        expected
                    );
                }
            }
            assert_eq!(refused > 0, some, "{bits} bits: {refused} of 16 without a prime");
        }
        assert!(Discriminant::from_seed(&[0, 0], 1024).is_ok());
    }
}
