//! Tests of prime candidates: how many are tested side by side, and with what code. All values are public.

use crate::form::num::Num;

#[cfg(target_arch = "x86_64")]
pub(super) mod adx;
#[cfg(target_arch = "x86_64")]
pub(super) mod avx512;
pub(super) mod portable;

/// Which primes of the sieve to divide by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// The smallest, which most numbers have a multiple of.
    First,
    /// The others.
    Rest,
}

/// Kernels that test candidates. Numbers are odd, above 2^15, and have up to 33 limbs; those given together have the same
/// number of bits. A set bit of a mask speaks for the number of that place.
#[derive(Debug)]
pub(crate) struct Candidates {
    /// Numbers that are tested side by side: as many as are given to `coprime` and `likely`.
    pub(crate) lanes: usize,
    /// Numbers that no prime of the round divides.
    pub(super) coprime: unsafe fn(&[Num], Round) -> u8,
    /// Numbers n with 2^((n - 1) / 2) = 1 or -1 modulo n: all that pass the strong test to base 2, and if n is 3 modulo 4
    /// exactly those. (A kernel may give exactly those for all n.)
    pub(super) likely: unsafe fn(&[Num]) -> u8,
    /// The strong test to base 2.
    pub(super) strong: unsafe fn(&Num) -> bool,
    /// The Lucas-V test.
    pub(super) lucas: unsafe fn(&Num) -> bool,
}

impl Candidates {
    pub(crate) fn coprime(&self, numbers: &[Num], round: Round) -> u8 {
        assert!(numbers.len() == self.lanes, "as many numbers as lanes");
        // SAFETY: this value is reachable only through a backend whose features were checked.
        unsafe { (self.coprime)(numbers, round) }
    }

    pub(crate) fn likely(&self, numbers: &[Num]) -> u8 {
        assert!(numbers.len() == self.lanes, "as many numbers as lanes");
        // SAFETY: as above.
        unsafe { (self.likely)(numbers) }
    }

    pub(crate) fn strong(&self, n: &Num) -> bool {
        // SAFETY: as above.
        unsafe { (self.strong)(n) }
    }

    pub(crate) fn lucas(&self, n: &Num) -> bool {
        // SAFETY: as above.
        unsafe { (self.lucas)(n) }
    }
}
