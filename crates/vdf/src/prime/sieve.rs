//! Trial division of candidates by small primes.
//!
//! A number is reduced modulo a product of small primes by one sum over its digits, each times the digit's weight
//! modulo the product; digits have 64 or 52 bits. One multiplication by a prime's inverse modulo a power of 2 then tells
//! whether the prime divides the remainder: only its multiples give small results.
#![forbid(unsafe_code)]

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use once_cell::race::OnceBox;

/// The most bits of a product: fewer than a digit has, so that sums of digits and weights have room above them.
const fn product_bits(digit: u32) -> u32 {
    if digit == 64 { 58 } else { digit - 2 }
}

/// A small prime p.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prime {
    /// 1 / p modulo 2^digit.
    pub(crate) inverse: u64,
    /// The largest multiple of p below 2^digit, divided by p.
    pub(crate) most: u64,
}

/// A product of small primes.
#[derive(Clone, Debug)]
pub(crate) struct Product {
    pub(crate) value: u64,
    /// -1 / value modulo 2^digit.
    pub(crate) negative_inverse: u64,
    /// 2^(digit i) modulo the product.
    pub(crate) weights: Vec<u64>,
    pub(crate) primes: Vec<Prime>,
}

/// The odd primes below a bound, for numbers of a length and digits of a size.
#[derive(Debug)]
pub(crate) struct Sieve {
    /// From the smallest primes up.
    pub(crate) products: Vec<Product>,
    /// Products of the first round, which removes most numbers.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "only AVX-512 sieves by lanes"))]
    pub(crate) first: usize,
}

/// Odd primes below `bound`.
fn primes(bound: u64) -> impl Iterator<Item = u64> {
    let mut composite = vec![false; bound as usize];
    (3..bound).step_by(2).filter(move |&p| {
        if composite[p as usize] {
            return false;
        }
        (p * p..bound).step_by(2 * p as usize).for_each(|multiple| composite[multiple as usize] = true);
        true
    })
}

/// 1 / x modulo 2^64, x odd.
pub(crate) fn inverse(x: u64) -> u64 {
    // Newton's method doubles the number of right bits from 3.
    (0..5).fold(x, |y, _| y.wrapping_mul(2u64.wrapping_sub(x.wrapping_mul(y))))
}

impl Sieve {
    fn new(digit: u32, digits: usize, bound: u64) -> Sieve {
        let mask = u64::MAX >> (64 - digit);
        let mut products: Vec<(u64, Vec<Prime>)> = Vec::new();
        for p in primes(bound) {
            let prime = Prime { inverse: inverse(p) & mask, most: mask / p };
            match products.last_mut() {
                Some((product, primes)) if p < (1 << product_bits(digit)) / *product => {
                    *product *= p;
                    primes.push(prime);
                }
                _ => products.push((p, vec![prime])),
            }
        }
        let products: Vec<Product> = products
            .into_iter()
            .map(|(value, primes)| {
                let step = ((1u128 << digit) % u128::from(value)) as u64;
                let mut weight = 1;
                let weights = (0..digits)
                    .map(|_| {
                        let now = weight;
                        weight = (u128::from(weight) * u128::from(step) % u128::from(value)) as u64;
                        now
                    })
                    .collect();
                let negative_inverse = inverse(value).wrapping_neg() & mask;
                Product { value, negative_inverse, weights, primes }
            })
            .collect();
        let first = products.len().min(4);
        Sieve { products, first }
    }

    /// Sieves for digits of 64 bits and numbers of `bits` bits, made on first use. Numbers must be above 2^16, so that
    /// none is a small prime itself.
    pub(crate) fn words(bits: usize) -> &'static Sieve {
        static SIEVES: [OnceBox<Sieve>; 5] = [const { OnceBox::new() }; 5];
        Sieve::of(&SIEVES, 64, [1 << 11, 1 << 13, 1 << 15, 1 << 16, 1 << 16], bits)
    }

    /// The same for digits of 52 bits.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn lanes(bits: usize) -> &'static Sieve {
        static SIEVES: [OnceBox<Sieve>; 5] = [const { OnceBox::new() }; 5];
        Sieve::of(&SIEVES, 52, [1 << 10, 1 << 12, 1 << 14, 1 << 15, 1 << 15], bits)
    }

    /// The sieve of primes below a bound, which depends on the length: lengths come in five classes.
    fn of(sieves: &'static [OnceBox<Sieve>; 5], digit: u32, bounds: [u64; 5], bits: usize) -> &'static Sieve {
        const MOST: [usize; 5] = [304, 616, 1032, 1656, 2112];
        let class = MOST.iter().position(|&most| bits <= most).unwrap_or(4);
        sieves[class]
            .get_or_init(|| Box::new(Sieve::new(digit, MOST[class].div_ceil(digit as usize), bounds[class])))
    }
}

/// Whether no prime of the sieve, which is one for words, divides the number.
#[inline(always)]
pub(crate) fn coprime(sieve: &Sieve, number: &[u64]) -> bool {
    sieve.products.iter().all(|product| {
        let sum: u128 =
            number.iter().zip(&product.weights).map(|(&x, &w)| u128::from(x) * u128::from(w)).sum();
        // A step of Montgomery's reduction. Weights have 58 bits and there are 33 digits at most: the rest has 64. It is
        // the number times a power of 2, which no prime divides.
        let quotient = (sum as u64).wrapping_mul(product.negative_inverse);
        let rest = ((sum + u128::from(quotient) * u128::from(product.value)) >> 64) as u64;
        product.primes.iter().all(|prime| rest.wrapping_mul(prime.inverse) > prime.most)
    })
}

#[cfg(test)]
mod checks {
    use super::*;

    #[test]
    fn every_prime_is_there_once() {
        let bound = if cfg!(miri) { 1 << 11 } else { 1 << 16 };
        let plain: Vec<u64> = (3..bound)
            .filter(|n| n % 2 == 1 && (3..).step_by(2).take_while(|p| p * p <= *n).all(|p| n % p != 0))
            .collect();
        assert!(primes(bound).eq(plain.iter().copied()));
        for digit in [52, 64] {
            for bound in [1 << 11, 1 << 13, bound] {
                let mask = u64::MAX >> (64 - digit);
                let mut found = Vec::new();
                for product in Sieve::new(digit, 20, bound).products {
                    assert!(product.value < 1 << product_bits(digit));
                    let own: Vec<u64> =
                        product.primes.iter().map(|prime| inverse(prime.inverse) & mask).collect();
                    let whole = own.iter().try_fold(1u64, |x, &p| x.checked_mul(p));
                    assert_eq!(whole, Some(product.value), "{digit} bits, {own:?}");
                    found.extend(own);
                }
                assert!(found.iter().eq(plain.iter().take_while(|&&p| p < bound)), "{digit} bits, {bound}");
            }
        }
    }

    #[test]
    fn multiples_are_found() {
        let sieve = Sieve::words(128);
        for p in primes(1 << 10) {
            // A prime above the sieve times p, and that prime alone.
            let number = u128::from(p) * 18_446_744_073_709_551_557;
            assert!(!coprime(sieve, &[number as u64, (number >> 64) as u64]), "{p}");
        }
        assert!(coprime(sieve, &[18_446_744_073_709_551_557, 0]));
    }
}
