//! Arithmetic modulo an odd number in Montgomery's form: x stands for x R^-1, R = 2^(64 N).
#![forbid(unsafe_code)]

use lanework_integer::limbs;

use crate::form::num::Num;

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

    /// The product.
    #[inline]
    pub(crate) fn mul(&self, x: &[u64; N], y: &[u64; N]) -> [u64; N] {
        let mut out = [0u64; N];
        let mut top = false;
        for &factor in y {
            let (mut a, mut b) = (0u64, 0u64);
            let (low, high) = x[0].carrying_mul_add(factor, out[0], 0);
            a = a.wrapping_add(high);
            let quotient = low.wrapping_mul(self.inverse);
            (_, b) = self.n[0].carrying_mul_add(quotient, low, b);
            for i in 1..N {
                let sum;
                (sum, a) = x[i].carrying_mul_add(factor, out[i], a);
                (out[i - 1], b) = self.n[i].carrying_mul_add(quotient, sum, b);
            }
            (out[N - 1], top) = a.carrying_add(b, top);
        }
        self.settle(out, top)
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
