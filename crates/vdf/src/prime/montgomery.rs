//! Arithmetic modulo an odd number in Montgomery's form: x stands for x R^-1, R = 2^(64 N).
//!
//! A product and its reduction are one sum, column by column: three limbs hold the sum of all products of limbs that
//! belong to a column. The lower N columns each fix one limb of the quotient by R.
#![forbid(unsafe_code)]

use lanework_integer::limbs;

use super::sieve::inverse;
use crate::form::num::Num;

/// The sum of a column, its lowest limb first.
#[derive(Clone, Copy)]
struct Sum(u64, u64, u64);

impl Sum {
    /// Adds a number of three limbs.
    #[inline(always)]
    fn add(&mut self, low: u64, middle: u64, high: u64) {
        let mut carry;
        (self.0, carry) = self.0.overflowing_add(low);
        (self.1, carry) = self.1.carrying_add(middle, carry);
        (self.2, _) = self.2.carrying_add(high, carry);
    }

    #[inline(always)]
    fn add_product(&mut self, x: u64, y: u64) {
        let (low, high) = x.carrying_mul(y, 0);
        self.add(low, high, 0);
    }

    /// Adds the products of x and of y backwards.
    #[inline(always)]
    fn add_products(&mut self, x: &[u64], y: &[u64]) {
        let ((fours, rest), (begin, y_fours)) = (x.as_chunks::<4>(), y.as_rchunks::<4>());
        for (x, y) in fours.iter().zip(y_fours.iter().rev()) {
            for i in 0..4 {
                self.add_product(x[i], y[3 - i]);
            }
        }
        for (&x, &y) in rest.iter().zip(begin.iter().rev()) {
            self.add_product(x, y);
        }
    }

    /// Takes the lowest limb and goes on to the next column.
    #[inline(always)]
    fn shift(&mut self) -> u64 {
        let low = self.0;
        *self = Sum(self.1, self.2, 0);
        low
    }
}

/// Repeats a block for every column of numbers of up to 16 limbs.
macro_rules! unrolled {
    ($column:ident, $body:block) => {
        unrolled!($column, $body, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31)
    };
    ($column:ident, $body:block, $($value:literal)*) => {
        $({
            let $column: usize = $value;
            $body
        })*
    };
}

/// Numbers modulo n.
pub(crate) struct Montgomery<const N: usize> {
    n: [u64; N],
    /// -1 / n modulo 2^64.
    inverse: u64,
    /// R modulo n: the 1 of this form.
    pub(crate) one: [u64; N],
}

impl<const N: usize> Montgomery<N> {
    /// For an odd n > 1 of at most N limbs.
    #[inline(always)]
    pub(crate) fn new(modulus: &Num) -> Montgomery<N> {
        let n = fixed(modulus);
        let one = fixed(&Num::from_u64(1).shift_left(64 * N).modulo(modulus));
        Montgomery { n, inverse: inverse(n[0]).wrapping_neg(), one }
    }

    /// x - n if the number of N limbs and a carry is n or more.
    #[inline(always)]
    fn settle(&self, mut x: [u64; N], carry: bool) -> [u64; N] {
        if carry || x.iter().rev().ge(self.n.iter().rev()) {
            limbs::sub(&mut x, &self.n);
        }
        x
    }

    /// The product.
    pub(crate) fn mul(&self, x: &[u64; N], y: &[u64; N]) -> [u64; N] {
        self.product::<false>(x, y)
    }

    /// The square: each product of two different limbs is computed once.
    pub(crate) fn square(&self, x: &[u64; N]) -> [u64; N] {
        self.product::<true>(x, x)
    }

    #[inline(never)]
    fn product<const SQUARE: bool>(&self, x: &[u64; N], y: &[u64; N]) -> [u64; N] {
        if N < 8 {
            return self.short(x, y);
        }
        let (mut sum, mut factors, mut out) = (Sum(0, 0, 0), [0; N], [0; N]);
        if N <= 16 {
            unrolled!(column, {
                if column < 2 * N {
                    self.column::<SQUARE>(column, x, y, &mut sum, &mut factors, &mut out);
                }
            });
        } else {
            for column in 0..2 * N {
                self.column::<SQUARE>(column, x, y, &mut sum, &mut factors, &mut out);
            }
        }
        self.settle(out, sum.0 != 0)
    }

    /// The product of numbers so short that all of it stays in registers: one limb of y, one of the quotient, in turns.
    #[inline(always)]
    fn short(&self, x: &[u64; N], y: &[u64; N]) -> [u64; N] {
        let (mut sum, mut above) = ([0u64; N], 0u64);
        for &factor in y {
            let mut high = 0;
            for j in 0..N {
                (sum[j], high) = x[j].carrying_mul_add(factor, sum[j], high);
            }
            let (top, over) = above.carrying_add(high, false);
            let factor = sum[0].wrapping_mul(self.inverse);
            let (_, mut high) = self.n[0].carrying_mul_add(factor, sum[0], 0);
            for j in 1..N {
                (sum[j - 1], high) = self.n[j].carrying_mul_add(factor, sum[j], high);
            }
            let carry;
            (sum[N - 1], carry) = top.carrying_add(high, false);
            above = u64::from(over) + u64::from(carry);
        }
        self.settle(sum, above != 0)
    }

    /// One column of x y + n times the factors.
    #[inline(always)]
    fn column<const SQUARE: bool>(
        &self,
        column: usize,
        x: &[u64; N],
        y: &[u64; N],
        sum: &mut Sum,
        factors: &mut [u64; N],
        out: &mut [u64; N],
    ) {
        let first = (column + 1).saturating_sub(N);
        if SQUARE {
            let half = column.div_ceil(2);
            let mut pairs = Sum(0, 0, 0);
            pairs.add_products(&x[first..half], &x[column + 1 - half..column + 1 - first]);
            sum.add(pairs.0, pairs.1, pairs.2);
            sum.add(pairs.0, pairs.1, pairs.2);
            if column.is_multiple_of(2) {
                sum.add_product(x[half], x[half]);
            }
        } else {
            let last = N.min(column + 1);
            sum.add_products(&x[first..last], &y[column + 1 - last..column + 1 - first]);
        }
        // A separate sum, so that two carry chains run side by side.
        let (last, mut multiples) = (N.min(column), Sum(0, 0, 0));
        multiples.add_products(&factors[first..last], &self.n[column + 1 - last..column + 1 - first]);
        sum.add(multiples.0, multiples.1, multiples.2);
        if column < N {
            factors[column] = sum.0.wrapping_mul(self.inverse);
            sum.add_product(factors[column], self.n[0]);
            sum.shift();
        } else {
            out[column - N] = sum.shift();
        }
    }

    /// Twice the number.
    #[inline(always)]
    pub(crate) fn double(&self, x: &[u64; N]) -> [u64; N] {
        let mut out = *x;
        let carry = limbs::add(&mut out, x);
        self.settle(out, carry)
    }

    /// The difference.
    #[inline(always)]
    pub(crate) fn sub(&self, x: &[u64; N], y: &[u64; N]) -> [u64; N] {
        let mut out = *x;
        if limbs::sub(&mut out, y) {
            limbs::add(&mut out, &self.n);
        }
        out
    }

    /// x times a small number.
    pub(crate) fn times(&self, x: &[u64; N], factor: i64) -> [u64; N] {
        let mut out = [0; N];
        for i in (0..64 - factor.unsigned_abs().leading_zeros()).rev() {
            out = self.double(&out);
            if factor.unsigned_abs() >> i & 1 == 1 {
                let carry = limbs::add(&mut out, x);
                out = self.settle(out, carry);
            }
        }
        if factor < 0 { self.sub(&[0; N], &out) } else { out }
    }

    /// The number that x stands for.
    #[inline(always)]
    pub(crate) fn value(&self, x: &[u64; N]) -> [u64; N] {
        let mut one = [0; N];
        one[0] = 1;
        self.mul(x, &one)
    }
}

/// A number of at most N limbs.
pub(super) fn fixed<const N: usize>(x: &Num) -> [u64; N] {
    let mut out = [0; N];
    out[..x.len()].copy_from_slice(x.magnitude());
    out
}

#[cfg(test)]
mod checks {
    use super::*;
    use num_bigint::BigUint;

    fn big(limbs: &[u64]) -> BigUint {
        limbs.iter().rev().fold(BigUint::ZERO, |x, &limb| (x << 64) + limb)
    }

    fn compare<const N: usize>() {
        let mut state = N as u64;
        let mut random = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (state ^ state >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
        };
        let mut number = |kind: usize| -> [u64; N] {
            match kind {
                0 => [u64::MAX; N],
                1 => core::array::from_fn(|i| if i == N - 1 { 1 << 63 } else { u64::from(i == 0) }),
                2 => core::array::from_fn(|i| if i % 2 == 0 { u64::MAX } else { 0 }),
                3 => core::array::from_fn(|i| u64::from(i == 0)),
                _ => core::array::from_fn(|_| random()),
            }
        };
        let (kinds, numbers) = if cfg!(miri) { (3, 6) } else { (8, 12) };
        for kind in 0..kinds {
            let mut n = number(kind);
            n[0] |= 1;
            n[N - 1] |= 2;
            let modulus = big(&n);
            let field = Montgomery::<N>::new(&Num::from_limbs(false, &n));
            let one = BigUint::from(1u8);
            let mut xs: Vec<[u64; N]> = (0..numbers)
                .map(|kind| fixed(&Num::from_limbs(false, &number(kind)).modulo(&Num::from_limbs(false, &n))))
                .collect();
            // n - 1, n - 2 and 0.
            let mut most = n;
            most[0] -= 1;
            xs.push(most);
            xs.push(field.sub(&[0; N], &fixed(&Num::from_u64(2))));
            xs.push([0; N]);
            let back = |x: &[u64; N]| {
                assert!(big(x) < modulus, "{N} limbs, below the modulus");
                (big(x) << (64 * N)) % &modulus
            };
            assert_eq!(big(&field.one), (&one << (64 * N)) % &modulus);
            for x in &xs {
                assert_eq!(
                    back(&field.square(x)),
                    big(x) * big(x) % &modulus,
                    "{N} limbs, the square of {x:x?} modulo {n:x?}"
                );
                assert_eq!(
                    big(&field.double(x)),
                    big(x) * 2u8 % &modulus,
                    "{N} limbs, twice {x:x?} modulo {n:x?}"
                );
                for y in &xs {
                    assert_eq!(
                        back(&field.mul(x, y)),
                        big(x) * big(y) % &modulus,
                        "{N} limbs, {x:x?} times {y:x?} modulo {n:x?}"
                    );
                }
            }
        }
    }

    #[test]
    fn products_of_every_length() {
        compare::<2>();
        compare::<5>();
        compare::<8>();
        compare::<16>();
        compare::<24>();
        compare::<32>();
        compare::<36>();
    }
}
