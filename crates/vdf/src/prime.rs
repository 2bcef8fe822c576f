//! Primes from hashes, and the primality test.
//!
//! The test is the strengthened Baillie-PSW test of Baillie, Fiori and Wagstaff (arXiv 2006.14425), as Chia uses it: a
//! strong probable-prime test to base 2, then a Lucas-V test. Every node must reach the same answer, so the parameters
//! are Chia's; trial division beforehand changes no answer.
#![forbid(unsafe_code)]

use alloc::vec::Vec;

use lanework_integer::limbs;

pub(crate) mod bpsw;
pub(crate) mod montgomery;
pub(crate) mod sieve;
mod stream;

use crate::backend::Engine;
use crate::backend::candidates::{Batch, Candidates, Round};
use crate::form::LIMBS;
use crate::form::num::Num;
use montgomery::Montgomery;
use sieve::Sieve;
use stream::Stream;

/// The first number of `bits` bits in the seed's stream that passes [`is_prime`], after setting the given bits and bit
/// 0 (chiavdf's `HashPrime`). The seed counts up as one number before every hash, from candidate to candidate.
///
/// `bits` must be a multiple of 8 up to 2,048. `None` if the stream has no prime: a seed of one byte repeats after 256
/// values, and four in ten such streams of about 1,024 bits hold none.
pub(crate) fn hash_prime(engine: Engine, seed: &[u8], bits: usize, set: &[usize]) -> Option<Num> {
    let tests = engine.candidates;
    if bits < SIFTED || !set.contains(&(bits - 1)) {
        return first_prime(engine, seed, bits, set);
    }
    let mut next = numbers(seed, bits, set);
    // Each queue is in the stream's order. A round takes a number for each lane from one queue and puts those that pass
    // into the next.
    let (size, lanes) = (bits.div_ceil(64), tests.lanes);
    let all = size * lanes;
    let (mut fresh, mut sifted, mut ready) = (Vec::new(), Vec::new(), Vec::new());
    let mut taken = 0;
    loop {
        while ready.len() < all {
            while sifted.len() < all {
                if taken > period(seed) {
                    // The queues may never fill a round: the plain search decides.
                    return first_prime(engine, seed, bits, set);
                }
                taken += lanes;
                fresh.clear();
                (0..lanes).for_each(|_| fresh.extend_from_slice(next().limbs(size)));
                let mask = tests.coprime(Batch::new(&fresh, bits), Round::First);
                chosen(Batch::new(&fresh, bits), mask).for_each(|n| sifted.extend_from_slice(n));
            }
            let mask = tests.coprime(Batch::new(&sifted[..all], bits), Round::Rest);
            chosen(Batch::new(&sifted[..all], bits), mask).for_each(|n| ready.extend_from_slice(n));
            sifted.drain(..all);
        }
        let mask = tests.likely(Batch::new(&ready[..all], bits));
        let prime = chosen(Batch::new(&ready[..all], bits), mask)
            .map(|n| Num::from_limbs(false, n))
            .find(|n| settled(tests, n));
        if prime.is_some() {
            return prime;
        }
        ready.drain(..all);
    }
}

/// The number of values after which a stream repeats, or enough that a prime among them is practically certain.
fn period(seed: &[u8]) -> usize {
    if seed.len() == 1 { 1 << 8 } else { 1 << 16 }
}

/// The search number by number and test by test.
pub(crate) fn first_prime(engine: Engine, seed: &[u8], bits: usize, set: &[usize]) -> Option<Num> {
    core::iter::repeat_with(numbers(seed, bits, set))
        .take(period(seed))
        .find(|n| passes(engine.candidates, n))
}

/// The stream's numbers, with the given bits and bit 0 set.
fn numbers(seed: &[u8], bits: usize, set: &[usize]) -> impl FnMut() -> Num {
    let mut stream = Stream::new(seed, bits);
    move || {
        let bytes = stream.next();
        for &bit in set.iter().chain(&[0]) {
            bytes[bit / 8] |= 1 << (bit % 8);
        }
        Num::from_le_bytes(bytes)
    }
}

/// The numbers whose bit is set.
fn chosen(batch: Batch<'_>, mask: u8) -> impl Iterator<Item = &[u64]> {
    batch.numbers().enumerate().filter(move |(i, _)| mask >> i & 1 == 1).map(|(_, n)| n)
}

/// The remaining test of a number that passed [`Candidates::likely`].
fn settled(tests: &Candidates, n: &Num) -> bool {
    let likely_is_strong = tests.lanes == 1 || n.magnitude()[0] & 3 == 3;
    (likely_is_strong || tests.strong(n)) && tests.lucas(n)
}

/// Whether a number passes for prime: at most [`LIMBS`] limbs, lowest first, not counting zeros at the end.
///
/// # Panics
/// If the number is longer.
#[must_use]
pub fn is_prime(limbs: &[u64]) -> bool {
    is_prime_on(Engine::best(), limbs)
}

/// [`is_prime`] with the kernels of a backend.
///
/// # Panics
/// As [`is_prime`].
#[must_use]
pub fn is_prime_on(engine: Engine, limbs: &[u64]) -> bool {
    assert!(limbs::significant(limbs) <= LIMBS, "a number of more than {LIMBS} limbs");
    passes(engine.candidates, &Num::from_limbs(false, limbs))
}

/// Numbers of this many bits are divided by small primes before they are tested: none is one of those primes.
const SIFTED: usize = 17;

fn passes(tests: &Candidates, n: &Num) -> bool {
    if n.bits() < SIFTED {
        // The tests are right for all numbers of 64 bits, and so is this.
        let n = n.magnitude().first().copied().unwrap_or(0);
        return n > 1 && (2..).take_while(|p| p * p <= n).all(|p| !n.is_multiple_of(p));
    }
    n.is_odd() && sieve::coprime(Sieve::words(n.bits()), n.magnitude()) && tests.strong(n) && tests.lucas(n)
}

/// 2^e modulo an odd or even n > 0.
pub(crate) fn power_of_two(e: u64, n: &Num) -> Num {
    if n.is_one() {
        return Num::ZERO;
    }
    if n.is_odd() && n.len() <= 5 {
        let field = Montgomery::<5>::new(n);
        let mut x = field.one;
        for i in (0..u64::BITS - e.leading_zeros()).rev() {
            x = field.square(&x);
            if e >> i & 1 == 1 {
                x = field.double(&x);
            }
        }
        return Num::from_limbs(false, &field.value(&x));
    }
    // A blob may hold any B. An honest one is odd; this bounds the time for the others.
    let mut x = Num::from_u64(1);
    for i in (0..u64::BITS - e.leading_zeros()).rev() {
        x = x.square().shift_left((e >> i & 1) as usize).modulo(n);
    }
    x
}

#[cfg(test)]
mod checks {
    use super::*;

    fn plain(n: u64) -> bool {
        n > 1 && (2..).take_while(|p| p * p <= n).all(|p| !n.is_multiple_of(p))
    }

    #[test]
    fn small_numbers() {
        for n in 0..if cfg!(miri) { 300 } else { 40_000 } {
            assert_eq!(is_prime(&[n]), plain(n), "{n}");
        }
    }

    #[test]
    fn pseudoprimes_are_refused() {
        // Strong pseudoprimes to base 2, Lucas pseudoprimes, Carmichael numbers, squares.
        for n in
            [2047u64, 3277, 4033, 25_326_001, 3_215_031_751, 5459, 5777, 10877, 561, 1_194_649, 12_327_121]
        {
            assert!(!is_prime(&[n]), "{n}");
        }
        assert!(is_prime(&[0xffff_ffff_ffff_ffc5]));
        assert!(!is_prime(&[1, 0, 1])); // 2^128 + 1
        assert!(is_prime(&[u64::MAX, u64::MAX >> 1])); // 2^127 - 1
        let mut mersenne = [u64::MAX; 9];
        mersenne[8] = (1 << 9) - 1; // 2^521 - 1
        assert!(is_prime(&mersenne));
        mersenne[8] = (1 << 10) - 1;
        assert!(!is_prime(&mersenne));
    }

    /// Zeros at the end do not count; a 34th limb does.
    #[test]
    #[should_panic(expected = "a number of more than 33 limbs")]
    fn a_number_that_is_too_long_is_refused() {
        let mut number = [0; 60];
        number[0] = 7;
        assert!(is_prime(&number));
        number[32] = 1;
        let _ = is_prime(&number);
        number[33] = 1;
        let _ = is_prime(&number);
    }

    #[test]
    fn powers_of_two() {
        for n in [1u64, 2, 3, 10, 97, 1 << 40, 0xffff_ffff_ffff_ffc5] {
            for e in [0u64, 1, 5, 63, 64, 1000, u64::MAX] {
                let mut expected = 1 % u128::from(n);
                for i in (0..64).rev() {
                    expected = expected * expected % u128::from(n);
                    if e >> i & 1 == 1 {
                        expected = expected * 2 % u128::from(n);
                    }
                }
                let got = power_of_two(e, &Num::from_u64(n));
                assert_eq!(got, Num::from_u64(expected as u64), "2^{e} mod {n}");
            }
        }
    }
}
