//! Tests of prime candidates: their number side by side, and their code. All values are public.

use crate::form::num::Num;

#[cfg(target_arch = "x86_64")]
pub(super) mod adx;
#[cfg(target_arch = "x86_64")]
pub(super) mod avx512;
pub(super) mod portable;

/// The sieve's primes to divide by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// The smallest, which divide most numbers.
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

/// Kernels that test candidates. Numbers are odd, above 2^15, and have up to 2,048 bits. Bit i of a mask stands for
/// number i.
#[derive(Debug)]
pub(crate) struct Candidates {
    /// Numbers tested side by side: `coprime` and `likely` take this many.
    pub(crate) lanes: usize,
    /// Numbers that no prime of the round divides.
    pub(crate) coprime: unsafe fn(Batch<'_>, Round) -> u8,
    /// Numbers n with 2^((n - 1) / 2) = 1 or -1 modulo n: all that pass the strong test to base 2, and exactly those if
    /// n is 3 modulo 4. (A kernel may give exactly those for all n.)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Engine;
    use lanework_cpu::Cpu;

    /// Lengths, at and after the ends of kernels' ranges; how far the smallest prime of a length is above its power of
    /// 2, and the largest below the next.
    const EDGES: [(usize, u64, u64); 14] = [
        (24, 9, 3),
        (64, 29, 59),
        (264, 9, 275),
        (338, 71, 15),
        (339, 97, 147),
        (512, 111, 569),
        (686, 27, 651),
        (687, 303, 871),
        (1024, 1155, 105),
        (1034, 227, 897),
        (1035, 79, 441),
        (1670, 39, 1331),
        (1671, 757, 1221),
        (2048, 1919, 1557),
    ];

    /// The smallest and largest primes of a length beside multiples of 3, each in every lane.
    #[test]
    fn the_ends_of_every_length() {
        for engine in Engine::available(&Cpu::detect()) {
            for (bits, above, below) in EDGES {
                let power = |bits| Num::from_u64(1).shift_left(bits);
                let smallest = power(bits - 1).add(&Num::from_u64(above));
                let largest = power(bits).sub(&Num::from_u64(below));
                let beside = |prime: &Num, step: u64| {
                    let multiple = |n: &Num| n.modulo(&Num::from_u64(3)).is_zero();
                    (1..3u64)
                        .map(|i| Num::from_u64(i * step))
                        .map(|d| (prime.add(&d), prime.sub(&d)))
                        .find_map(|(up, down)| {
                            [up, down].into_iter().find(|n| multiple(n) && n.bits() == bits)
                        })
                };
                let numbers = [Some(smallest), beside(&smallest, 2), Some(largest), beside(&largest, 2)]
                    .map(Option::unwrap);
                let tests = engine.candidates;
                for turn in 0..numbers.len() {
                    let of = |lane: usize| (lane + turn) % numbers.len();
                    let limbs: Vec<u64> = (0..tests.lanes)
                        .flat_map(|i| numbers[of(i)].limbs(bits.div_ceil(64)).to_vec())
                        .collect();
                    let batch = Batch::new(&limbs, bits);
                    let primes = (0..tests.lanes).fold(0, |mask, i| mask | u8::from(of(i) % 2 == 0) << i);
                    let coprime = tests.coprime(batch, Round::First) & tests.coprime(batch, Round::Rest);
                    assert_eq!(coprime, primes, "{}, {bits} bits, turn {turn}, division", engine.name());
                    assert_eq!(
                        tests.likely(batch),
                        primes,
                        "{}, {bits} bits, turn {turn}, base 2",
                        engine.name()
                    );
                }
                for (i, n) in numbers.iter().enumerate() {
                    assert_eq!(tests.strong(n), i % 2 == 0, "{}, {bits} bits, number {i}", engine.name());
                    assert_eq!(tests.lucas(n), i % 2 == 0, "{}, {bits} bits, number {i}", engine.name());
                }
            }
        }
    }
}
