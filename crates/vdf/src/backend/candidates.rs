//! Tests of prime candidates: their number side by side, and their code. All values are public.

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

/// Numbers of one length, one behind the other, limb by limb with the lowest first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch<'a> {
    /// All numbers' limbs.
    limbs: &'a [u64],
    /// Bits of every number: the highest is set.
    pub(super) bits: usize,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(limbs: &'a [u64], bits: usize) -> Batch<'a> {
        Batch { limbs, bits }
    }

    pub(crate) fn numbers(self) -> impl Iterator<Item = &'a [u64]> {
        self.limbs.chunks_exact(self.bits.div_ceil(64))
    }

    fn expect(self, numbers: usize) {
        assert!(self.bits <= 2048 && self.limbs.len() == numbers * self.bits.div_ceil(64), "a number a lane");
    }
}

/// Kernels that test candidates. Numbers are odd, above 2^15, and have up to 2,048 bits. A set bit of a mask means the
/// number of that place.
#[derive(Debug)]
pub(crate) struct Candidates {
    /// Numbers that are tested side by side: as many as are given to `coprime` and `likely`.
    pub(crate) lanes: usize,
    /// Numbers that no prime of the round divides.
    pub(crate) coprime: unsafe fn(Batch<'_>, Round) -> u8,
    /// Numbers n with 2^((n - 1) / 2) = 1 or -1 modulo n: all that pass the strong test to base 2, and if n is 3 modulo
    /// 4 exactly those. (A kernel may give exactly those for all n.)
    pub(crate) likely: unsafe fn(Batch<'_>) -> u8,
    /// The strong test to base 2.
    pub(crate) strong: unsafe fn(&Num) -> bool,
    /// The Lucas-V test.
    pub(crate) lucas: unsafe fn(&Num) -> bool,
}

impl Candidates {
    pub(crate) fn coprime(&self, batch: Batch<'_>, round: Round) -> u8 {
        batch.expect(self.lanes);
        // SAFETY: this value is reachable only through a backend whose features were checked.
        unsafe { (self.coprime)(batch, round) }
    }

    pub(crate) fn likely(&self, batch: Batch<'_>) -> u8 {
        batch.expect(self.lanes);
        // SAFETY: as above.
        unsafe { (self.likely)(batch) }
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
