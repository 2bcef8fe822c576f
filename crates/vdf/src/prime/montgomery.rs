//! Arithmetic modulo an odd number in Montgomery's form: x stands for x R^-1, R = 2^(64 N).
#![forbid(unsafe_code)]

use lanework_integer::limbs;

use crate::form::num::Num;

/// A sum of products, of three limbs.
#[derive(Clone, Copy, Default)]
struct Sum {
    low: u128,
    high: u64,
}

impl Sum {
    #[inline(always)]
    fn add(&mut self, x: u64, y: u64) {
        let (low, carry) = self.low.overflowing_add(u128::from(x) * u128::from(y));
        self.low = low;
        self.high += u64::from(carry);
    }

    /// Adds twice another sum.
    #[inline(always)]
    fn add_twice(&mut self, other: &Sum) {
        let (low, carry) = self.low.overflowing_add(other.low << 1);
        self.low = low;
        self.high += (other.high << 1 | (other.low >> 127) as u64) + u64::from(carry);
    }

    /// The lowest limb; the others move down.
    #[inline(always)]
    fn take(&mut self) -> u64 {
        let out = self.low as u64;
        self.low = self.low >> 64 | u128::from(self.high) << 64;
        self.high = 0;
        out
    }
}

pub(crate) struct Montgomery<const N: usize> {
    n: [u64; N],
    /// -1 / n modulo 2^64.
    inverse: u64,
    /// R modulo n: the 1 of this form.
    pub(crate) one: [u64; N],
}

impl<const N: usize> Montgomery<N> {
    /// For an odd n > 1.
    pub(crate) fn new(n: [u64; N]) -> Montgomery<N> {
        // Newton's method doubles the number of right bits from 3.
        let mut inverse = n[0];
        for _ in 0..5 {
            inverse = inverse.wrapping_mul(2u64.wrapping_sub(n[0].wrapping_mul(inverse)));
        }
        let modulus = Num::from_limbs(false, &n);
        let one = Num::from_u64(1).shift_left(64 * N).modulo(&modulus);
        let mut limbs = [0; N];
        limbs[..one.len()].copy_from_slice(one.magnitude());
        Montgomery { n, inverse: inverse.wrapping_neg(), one: limbs }
    }

    /// x - n if the number of N limbs and a carry is n or more.
    #[inline]
    fn settle(&self, mut x: [u64; N], carry: bool) -> [u64; N] {
        if carry || x.iter().rev().ge(self.n.iter().rev()) {
            limbs::sub(&mut x, &self.n);
        }
        x
    }

    /// The product. Limb by limb of the result, lowest first: all products that meet there are summed in one three-limb number,
    /// which costs fewer carries than row by row.
    #[inline]
    pub(crate) fn mul(&self, x: &[u64; N], y: &[u64; N]) -> [u64; N] {
        self.reduce(
            |i, sum| x[..=i].iter().zip(y[..=i].iter().rev()).for_each(|(&x, &y)| sum.add(x, y)),
            |i, sum| x[i..].iter().zip(y[i..].iter().rev()).for_each(|(&x, &y)| sum.add(x, y)),
        )
    }

    /// The square: each product of two different limbs is computed once.
    #[inline]
    pub(crate) fn square(&self, x: &[u64; N]) -> [u64; N] {
        let twice = |x: &[u64], sum: &mut Sum| {
            let mut pairs = Sum::default();
            let (low, high) = x.split_at(x.len() / 2);
            low.iter().zip(high.iter().rev()).for_each(|(&x, &y)| pairs.add(x, y));
            sum.add_twice(&pairs);
            if x.len() % 2 == 1 {
                sum.add(high[0], high[0]);
            }
        };
        self.reduce(|i, sum| twice(&x[..=i], sum), |i, sum| twice(&x[i..], sum))
    }

    /// Montgomery's reduction of a product given by its columns: `low` adds column i, `high` column N - 1 + i.
    #[inline(always)]
    fn reduce(&self, low: impl Fn(usize, &mut Sum), high: impl Fn(usize, &mut Sum)) -> [u64; N] {
        let (mut out, mut quotients) = ([0u64; N], [0u64; N]);
        let mut sum = Sum::default();
        for i in 0..N {
            low(i, &mut sum);
            quotients[..i].iter().zip(self.n[1..=i].iter().rev()).for_each(|(&q, &n)| sum.add(q, n));
            let quotient = (sum.low as u64).wrapping_mul(self.inverse);
            quotients[i] = quotient;
            sum.add(quotient, self.n[0]);
            sum.take();
        }
        for i in 1..N {
            high(i, &mut sum);
            quotients[i..].iter().zip(self.n[i..].iter().rev()).for_each(|(&q, &n)| sum.add(q, n));
            out[i - 1] = sum.take();
        }
        out[N - 1] = sum.take();
        self.settle(out, sum.low != 0)
    }

    /// Twice the number.
    pub(crate) fn double(&self, x: &[u64; N]) -> [u64; N] {
        let mut out = *x;
        let carry = limbs::add(&mut out, x);
        self.settle(out, carry)
    }

    /// The difference.
    pub(crate) fn sub(&self, x: &[u64; N], y: &[u64; N]) -> [u64; N] {
        let mut out = *x;
        if limbs::sub(&mut out, y) {
            limbs::add(&mut out, &self.n);
        }
        out
    }

    /// A small number in this form.
    pub(crate) fn small(&self, x: i64) -> [u64; N] {
        let mut out = [0; N];
        for i in (0..64 - x.unsigned_abs().leading_zeros()).rev() {
            out = self.double(&out);
            if x.unsigned_abs() >> i & 1 == 1 {
                let carry = limbs::add(&mut out, &self.one);
                out = self.settle(out, carry);
            }
        }
        if x < 0 { self.sub(&[0; N], &out) } else { out }
    }

    /// The number that x stands for.
    pub(crate) fn value(&self, x: &[u64; N]) -> [u64; N] {
        let mut one = [0; N];
        one[0] = 1;
        self.mul(x, &one)
    }
}
