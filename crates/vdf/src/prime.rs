//! Primes out of hashes, and the test that decides which numbers pass for prime.
//!
//! The test is the strengthened Baillie-PSW test of Baillie, Fiori and Wagstaff (arXiv 2006.14425), as Chia uses it: a
//! strong probable-prime test to base 2, then a Lucas-V test. Every node must come to the same answer, and so the parameters are
//! chosen as there; trial division beforehand changes no answer.
#![forbid(unsafe_code)]

mod montgomery;

use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use crate::form::num::Num;
use montgomery::Montgomery;

/// The first number of `bits` bits in the seed's stream that passes [`is_prime`], after setting the given bits and bit 0
/// (chiavdf's `HashPrime`). The seed counts up as one number before every hash; it goes on counting from candidate to
/// candidate.
///
/// `bits` must be a multiple of 8 that the store holds.
pub(crate) fn hash_prime(seed: &[u8], bits: usize, set: &[usize]) -> Num {
    let mut sprout = seed.to_vec();
    let mut bytes = Vec::with_capacity(bits / 8 + 32);
    loop {
        bytes.clear();
        while bytes.len() * 8 < bits {
            for byte in sprout.iter_mut().rev() {
                *byte = byte.wrapping_add(1);
                if *byte != 0 {
                    break;
                }
            }
            bytes.extend_from_slice(&Sha256::digest(&sprout));
        }
        bytes.truncate(bits / 8);
        bytes.reverse();
        for &bit in set.iter().chain(&[0]) {
            bytes[bit / 8] |= 1 << (bit % 8);
        }
        let candidate = Num::from_le_bytes(&bytes);
        if passes(&candidate) {
            return candidate;
        }
    }
}

/// Whether a number of limbs, lowest first and at most 33, passes for prime.
#[must_use]
pub fn is_prime(limbs: &[u64]) -> bool {
    passes(&Num::from_limbs(false, limbs))
}

/// Odd primes below 4,096 in products that fit a limb, with the highest of each product.
fn products() -> &'static [(u64, u64)] {
    static PRODUCTS: OnceLock<Vec<(u64, u64)>> = OnceLock::new();
    PRODUCTS.get_or_init(|| {
        let mut composite = [false; 4096];
        let mut out: Vec<(u64, u64)> = Vec::new();
        for p in 3..4096u64 {
            if p % 2 == 0 || composite[p as usize] {
                continue;
            }
            for multiple in (p * p..4096).step_by(p as usize) {
                composite[multiple as usize] = true;
            }
            match out.last_mut() {
                Some((product, highest)) if product.checked_mul(p).is_some() => {
                    (*product, *highest) = (*product * p, p);
                }
                _ => out.push((p, p)),
            }
        }
        out
    })
}

fn gcd(mut x: u64, mut y: u64) -> u64 {
    while y != 0 {
        (x, y) = (y, x % y);
    }
    x
}

pub(crate) fn passes(n: &Num) -> bool {
    if n.len() <= 1 && n.magnitude().first().is_none_or(|&n| n < 8) {
        return matches!(n.magnitude().first(), Some(2 | 3 | 5 | 7));
    }
    if !n.is_odd() {
        return false;
    }
    // Numbers that may be one of the primes themselves are left to the tests, which are exact for them.
    if n.bits() > 12 {
        // The longer the number, the dearer the tests, and the more division pays beforehand.
        let most = if n.bits() > 900 {
            4096
        } else if n.bits() > 500 {
            2048
        } else {
            512
        };
        for &(product, highest) in products() {
            if highest > most {
                break;
            }
            let rest = n.magnitude().iter().rev().fold(0u64, |rest, &limb| {
                ((u128::from(rest) << 64 | u128::from(limb)) % u128::from(product)) as u64
            });
            if gcd(product, rest) != 1 {
                return false;
            }
        }
    }
    match n.len() {
        0..=2 => tests::<2>(n),
        3..=5 => tests::<5>(n),
        6..=8 => tests::<8>(n),
        9..=16 => tests::<16>(n),
        17..=24 => tests::<24>(n),
        _ => tests::<33>(n),
    }
}

fn tests<const N: usize>(n: &Num) -> bool {
    let mut limbs = [0; N];
    limbs[..n.len()].copy_from_slice(n.magnitude());
    let field = Montgomery::new(limbs);
    strong(&field, n) && lucas(&field, n)
}

/// The strong probable-prime test to base 2.
fn strong<const N: usize>(field: &Montgomery<N>, n: &Num) -> bool {
    let less = n.sub(&Num::from_u64(1));
    let twos = (0..).find(|&i| less.bit(i)).unwrap_or(0);
    // 2^d for the odd part d of n - 1: the bits of n above its lowest ones, from the highest down.
    let mut x = field.one;
    for i in (twos..n.bits()).rev() {
        x = field.square(&x);
        if n.bit(i) {
            x = field.double(&x);
        }
    }
    let minus_one = field.sub(&[0; N], &field.one);
    if x == field.one || x == minus_one {
        return true;
    }
    (1..twos).any(|_| {
        x = field.square(&x);
        x == minus_one
    })
}

/// The Jacobi symbol (d / n) of an odd n.
fn jacobi(d: i64, n: &Num) -> i32 {
    let low = n.magnitude()[0];
    let mut sign = if d < 0 && low & 3 == 3 { -1 } else { 1 };
    // d is odd: (|d| / n) by reciprocity, and then in machine words.
    let (mut x, mut y) = (d.unsigned_abs(), 0);
    let rest = n
        .magnitude()
        .iter()
        .rev()
        .fold(0u64, |rest, &limb| ((u128::from(rest) << 64 | u128::from(limb)) % u128::from(x)) as u64);
    if x & 3 == 3 && low & 3 == 3 {
        sign = -sign;
    }
    core::mem::swap(&mut x, &mut y);
    x = rest;
    // (x / y) with y odd.
    while x != 0 {
        while x & 1 == 0 {
            x >>= 1;
            if matches!(y & 7, 3 | 5) {
                sign = -sign;
            }
        }
        core::mem::swap(&mut x, &mut y);
        if x & 3 == 3 && y & 3 == 3 {
            sign = -sign;
        }
        x %= y;
    }
    if y == 1 { sign } else { 0 }
}

/// The Lucas-V test: V(n+1) = 2 Q for the first d of 5, -7, 9, -11 ... with (d / n) = -1, where P = Q = 5 for 5, and P = 1,
/// Q = (1 - d) / 4 otherwise. Without such a d below 1,000 the number is refused.
fn lucas<const N: usize>(field: &Montgomery<N>, n: &Num) -> bool {
    let found =
        (5..1000i64).step_by(2).map(|d| if d % 4 == 1 { d } else { -d }).find(|&d| jacobi(d, n) == -1);
    let Some(d) = found else { return false };
    let (p, q) = if d == 5 { (5, 5) } else { (1, (1 - d) / 4) };
    let plain = p == 1;
    let (p, q) = (field.small(p), field.small(q));
    let two = field.double(&field.one);
    // V(k), V(k+1) and Q^k from k = 0 along the bits of n + 1.
    let (mut v, mut next, mut power) = (two, p, field.one);
    let e = n.add(&Num::from_u64(1));
    for i in (0..e.bits()).rev() {
        let shared = if plain { power } else { field.mul(&power, &p) };
        let middle = field.sub(&field.mul(&v, &next), &shared);
        if e.bit(i) {
            let above = field.mul(&power, &q);
            next = field.sub(&field.square(&next), &field.double(&above));
            v = middle;
            power = field.mul(&field.square(&power), &q);
        } else {
            v = field.sub(&field.square(&v), &field.double(&power));
            next = middle;
            power = field.square(&power);
        }
    }
    v == field.double(&q)
}

/// 2^e modulo an odd or even n > 0.
pub(crate) fn power_of_two(e: u64, n: &Num) -> Num {
    if n.is_one() {
        return Num::ZERO;
    }
    if n.is_odd() && n.len() <= 5 {
        let mut limbs = [0; 5];
        limbs[..n.len()].copy_from_slice(n.magnitude());
        let field = Montgomery::<5>::new(limbs);
        let mut x = field.one;
        for i in (0..u64::BITS - e.leading_zeros()).rev() {
            x = field.square(&x);
            if e >> i & 1 == 1 {
                x = field.double(&x);
            }
        }
        return Num::from_limbs(false, &field.value(&x));
    }
    // A blob may hold any B; an honest one is odd, and this is only for answering the others in good time.
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
        for n in 0..40_000 {
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
