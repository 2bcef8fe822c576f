//! Arithmetic modulo an odd number in Montgomery's form: x stands for x R^-1, R = 2^(64 N).
#![forbid(unsafe_code)]

use lanework_integer::limbs;

use super::sieve::inverse;
use crate::form::num::Num;

/// The inner loop of a product, on one instruction set. Values of this type carry no data: they prove that the CPU has
/// it.
pub(crate) trait Words: Copy {
    /// x += y * factor over the length of y, which is also x's; returns the limb that is carried out.
    fn add_mul(self, x: &mut [u64], y: &[u64], factor: u64) -> u64;
}

/// Words without any special instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain;

impl Words for Plain {
    #[inline(always)]
    fn add_mul(self, x: &mut [u64], y: &[u64], factor: u64) -> u64 {
        limbs::add_mul(x, y, factor)
    }
}

/// Numbers modulo n.
pub(crate) struct Montgomery<W: Words, const N: usize> {
    words: W,
    n: [u64; N],
    /// -1 / n modulo 2^64.
    inverse: u64,
    /// R modulo n: the 1 of this form.
    pub(crate) one: [u64; N],
}

impl<W: Words, const N: usize> Montgomery<W, N> {
    /// For an odd n > 1 of at most N limbs.
    #[inline(always)]
    pub(crate) fn new(words: W, modulus: &Num) -> Montgomery<W, N> {
        let n = fixed(modulus);
        let one = fixed(&Num::from_u64(1).shift_left(64 * N).modulo(modulus));
        Montgomery { words, n, inverse: inverse(n[0]).wrapping_neg(), one }
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
    #[inline(always)]
    pub(crate) fn mul(&self, x: &[u64; N], y: &[u64; N]) -> [u64; N] {
        if N < 8 {
            return self.short(x, y);
        }
        let mut room = [[0; N]; 2];
        let product = room.as_flattened_mut();
        for (i, &factor) in y.iter().enumerate() {
            product[i + N] = self.words.add_mul(&mut product[i..i + N], x, factor);
        }
        self.reduce(product)
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

    /// The square: each product of two different limbs is computed once.
    #[inline(always)]
    pub(crate) fn square(&self, x: &[u64; N]) -> [u64; N] {
        if N < 8 {
            return self.short(x, x);
        }
        // x times the part above each of its limbs. Rows of whole fours are the fastest, so some begin with zero limbs.
        let mut room = [[0; N]; 2];
        let product = room.as_flattened_mut();
        let mut above = *x;
        for (i, &factor) in x.iter().enumerate() {
            above[i] = 0;
            let from = (i + 1) / 4 * 4;
            if from < N {
                let (row, high) = product.split_at_mut(i + N);
                high[0] = self.words.add_mul(&mut row[i + from..], &above[from..], factor);
            }
        }
        let (mut carry, mut low) = (false, 0);
        for (i, &x) in x.iter().enumerate() {
            let (square, high) = x.carrying_mul(x, 0);
            let pair = &mut product[2 * i..2 * i + 2];
            let doubled = [pair[0] << 1 | low >> 63, pair[1] << 1 | pair[0] >> 63];
            low = pair[1];
            (pair[0], carry) = doubled[0].carrying_add(square, carry);
            (pair[1], carry) = doubled[1].carrying_add(high, carry);
        }
        self.reduce(product)
    }

    /// Montgomery's reduction.
    #[inline(always)]
    fn reduce(&self, product: &mut [u64]) -> [u64; N] {
        let mut carry = false;
        for i in 0..N {
            let factor = product[i].wrapping_mul(self.inverse);
            let high = self.words.add_mul(&mut product[i..i + N], &self.n, factor);
            (product[i + N], carry) = product[i + N].carrying_add(high, carry);
        }
        let out = core::array::from_fn(|i| product[N + i]);
        self.settle(out, carry)
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
