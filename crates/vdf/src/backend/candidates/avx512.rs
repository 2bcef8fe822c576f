//! Eight candidates side by side: digit i of all eight, 52 bits each, is one vector.
//!
//! Powers are computed in Montgomery's form with R = 2^(52 digits). R is larger than the numbers by some bits, so no
//! step compares or subtracts: the square of a number below about 2^8 times the modulus is below 9/8 of it. The
//! doublings for the exponent's bits use that room. The square is computed four (or three) columns at a time: products
//! of blocks of digits are summed in registers, 16 (or 9) products of two digits for 8 (or 6) loads.

use core::arch::x86_64::{
    __m512i, _mm512_add_epi64, _mm512_and_si512, _mm512_cmpgt_epu64_mask, _mm512_madd52hi_epu64,
    _mm512_madd52lo_epu64, _mm512_or_si512, _mm512_set1_epi64, _mm512_setzero_si512, _mm512_sllv_epi64,
    _mm512_srli_epi64, _mm512_srlv_epi64, _mm512_sub_epi64,
};

use super::{Batch, Candidates, Round, portable};
use crate::form::num::Num;
use crate::prime::sieve::{Product, Sieve, inverse};

const LANES: usize = 8;
const DIGIT: usize = 52;
const MASK: u64 = (1 << DIGIT) - 1;
/// Digits of the longest numbers.
const MOST: usize = 41;

pub(in crate::backend) static CANDIDATES: Candidates =
    Candidates { lanes: LANES, coprime, likely, strong: portable::strong, lucas: portable::lucas };

/// One number's word in each lane.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Lanes([u64; LANES]);

impl Lanes {
    #[inline(always)]
    fn get(&self) -> __m512i {
        // SAFETY: any eight words are a vector.
        unsafe { core::mem::transmute(self.0) }
    }

    #[inline(always)]
    fn set(&mut self, x: __m512i) {
        // SAFETY: a vector is eight words.
        self.0 = unsafe { core::mem::transmute::<__m512i, [u64; LANES]>(x) };
    }
}

/// Digit i of a number.
#[inline(always)]
fn digit(x: &[u64], i: usize) -> u64 {
    let (at, shift) = (DIGIT * i / 64, DIGIT * i % 64);
    let limb = |i: usize| x.get(i).copied().unwrap_or(0);
    (limb(at) >> shift | limb(at + 1) << 1 << (63 - shift)) & MASK
}

/// The digits of up to eight numbers.
#[inline(always)]
fn spread<'a>(numbers: impl Iterator<Item = &'a [u64]>, out: &mut [Lanes]) {
    for (lane, n) in numbers.take(LANES).enumerate() {
        for (i, out) in out.iter_mut().enumerate() {
            out.0[lane] = digit(n, i);
        }
    }
}

/// # Safety
/// The CPU must have the features that the table of backends lists for this one.
#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn coprime(batch: Batch<'_>, round: Round) -> u8 {
    let sieve = Sieve::lanes(batch.bits);
    let mut x = [Lanes([0; LANES]); MOST];
    let x = &mut x[..batch.bits.div_ceil(DIGIT)];
    spread(batch.numbers(), x);
    match round {
        Round::First => divide(x, &sieve.products[..sieve.first]),
        Round::Rest => divide(x, &sieve.products[sieve.first..]),
    }
}

/// The lanes that no prime of the products divides.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn divide(x: &[Lanes], products: &[Product]) -> u8 {
    let zero = _mm512_setzero_si512();
    let mut out = 0xff;
    for product in products {
        let value = _mm512_set1_epi64(product.value as i64);
        let inverse = _mm512_set1_epi64(product.negative_inverse as i64);
        // Sums of up to 41 halves of products stay below 2^58.
        let (mut low, mut high) = ([zero; 2], [zero; 2]);
        for (i, (x, &weight)) in x.iter().zip(&product.weights).enumerate() {
            let weight = _mm512_set1_epi64(weight as i64);
            low[i % 2] = _mm512_madd52lo_epu64(low[i % 2], x.get(), weight);
            high[i % 2] = _mm512_madd52hi_epu64(high[i % 2], x.get(), weight);
        }
        let low = _mm512_add_epi64(low[0], low[1]);
        let high = _mm512_add_epi64(high[0], high[1]);
        // Two steps of Montgomery's reduction, by 2^52 each: the second leaves less than 2^52.
        let reduce = |low: __m512i, high: __m512i| {
            let quotient = _mm512_madd52lo_epu64(zero, low, inverse);
            let sum = _mm512_madd52lo_epu64(low, quotient, value);
            _mm512_madd52hi_epu64(_mm512_add_epi64(high, _mm512_srli_epi64::<52>(sum)), quotient, value)
        };
        let rest = reduce(reduce(low, high), zero);
        for prime in &product.primes {
            let quotient = _mm512_madd52lo_epu64(zero, rest, _mm512_set1_epi64(prime.inverse as i64));
            out &= _mm512_cmpgt_epu64_mask(quotient, _mm512_set1_epi64(prime.most as i64));
        }
    }
    out
}

/// The candidates and the constants of powers modulo them. D digits.
struct Power<const D: usize> {
    n: [Lanes; D],
    /// -1 / n modulo 2^52.
    negative_inverse: Lanes,
    x: [Lanes; D],
}

/// Adds the low and high halves of all products of two blocks' digits to their columns.
macro_rules! block {
    ($sum:ident, $x:expr, $y:expr, $w:literal) => {{
        for i in 0..$w {
            let x = $x[i].get();
            for j in 0..$w {
                $sum[i + j] = _mm512_madd52lo_epu64($sum[i + j], x, $y[j].get());
                $sum[i + j + 1] = _mm512_madd52hi_epu64($sum[i + j + 1], x, $y[j].get());
            }
        }
    }};
}

/// A kernel for D = `$w` * `$blocks` digits: squares x and divides by R modulo n.
macro_rules! square {
    ($name:ident, $w:literal, $blocks:literal) => {
        #[inline]
        #[target_feature(enable = "avx512f,avx512ifma")]
        fn $name(power: &mut Power<{ $w * $blocks }>) {
            const W: usize = $w;
            const B: usize = $blocks;
            let zero = _mm512_setzero_si512();
            let mask = _mm512_set1_epi64(MASK as i64);
            let inverse = power.negative_inverse.get();
            let mut quotients = [Lanes([0; LANES]); W * B];
            let mut out = [Lanes([0; LANES]); W * B];
            let (x, n) = (&power.x, &power.n);
            // Columns W column .. W column + 2 W; the upper ones go on to the next round.
            let mut sum = [zero; 2 * W];
            let mut carry = zero;
            for column in 0..2 * B {
                // Products of different blocks, then of different digits of one block: twice.
                let mut pairs = [zero; 2 * W];
                let first = (column + 1).saturating_sub(B);
                for i in first..column.div_ceil(2) {
                    let j = column - i;
                    block!(pairs, x[W * i..W * i + W], x[W * j..W * j + W], $w);
                }
                let middle = column / 2;
                if column % 2 == 0 {
                    let x = &x[W * middle..W * middle + W];
                    for i in 0..W {
                        for j in i + 1..W {
                            pairs[i + j] = _mm512_madd52lo_epu64(pairs[i + j], x[i].get(), x[j].get());
                            pairs[i + j + 1] =
                                _mm512_madd52hi_epu64(pairs[i + j + 1], x[i].get(), x[j].get());
                        }
                    }
                }
                for i in 0..2 * W {
                    sum[i] = _mm512_add_epi64(sum[i], _mm512_add_epi64(pairs[i], pairs[i]));
                }
                if column % 2 == 0 {
                    let x = &x[W * middle..W * middle + W];
                    for i in 0..W {
                        sum[2 * i] = _mm512_madd52lo_epu64(sum[2 * i], x[i].get(), x[i].get());
                        sum[2 * i + 1] = _mm512_madd52hi_epu64(sum[2 * i + 1], x[i].get(), x[i].get());
                    }
                }
                for i in first..column.min(B) {
                    let j = column - i;
                    block!(sum, quotients[W * i..W * i + W], n[W * j..W * j + W], $w);
                }
                if column < B {
                    for i in 0..W {
                        let low = _mm512_add_epi64(sum[i], carry);
                        let quotient = _mm512_madd52lo_epu64(zero, low, inverse);
                        let low = _mm512_madd52lo_epu64(low, quotient, n[0].get());
                        carry = _mm512_srli_epi64::<52>(low);
                        quotients[W * column + i].set(quotient);
                        sum[i + 1] = _mm512_madd52hi_epu64(sum[i + 1], quotient, n[0].get());
                        for j in 1..W {
                            sum[i + j] = _mm512_madd52lo_epu64(sum[i + j], quotient, n[j].get());
                            sum[i + j + 1] = _mm512_madd52hi_epu64(sum[i + j + 1], quotient, n[j].get());
                        }
                    }
                } else {
                    for i in 0..W {
                        let low = _mm512_add_epi64(sum[i], carry);
                        carry = _mm512_srli_epi64::<52>(low);
                        out[W * (column - B) + i].set(_mm512_and_si512(low, mask));
                    }
                }
                for i in 0..W {
                    sum[i] = sum[W + i];
                    sum[W + i] = zero;
                }
            }
            power.x = out;
        }
    };
}

square!(square6, 3, 2);
square!(square12, 4, 3);
square!(square20, 4, 5);
square!(square32, 4, 8);
square!(square40, 4, 10);

/// A kernel for D digits, the highest with room for doublings: `likely` for numbers of up to 52 D - 8 bits.
macro_rules! power {
    ($name:ident, $square:ident, $digits:literal) => {
        #[inline(never)]
        #[target_feature(enable = "avx512f,avx512ifma")]
        fn $name(batch: Batch<'_>) -> u8 {
            const D: usize = $digits;
            let bits = batch.bits;
            let mut numbers = [Num::ZERO; LANES];
            for (number, n) in numbers.iter_mut().zip(batch.numbers()) {
                *number = Num::from_limbs(false, n);
            }
            // After `window` squarings x is doubled up to 2^window - 1 times; its square's excess over R must be gone
            // after.
            let window = if 52 * D - bits >= 31 {
                4
            } else if 52 * D - bits >= 15 {
                3
            } else {
                2
            };
            let one = numbers.map(|n| Num::from_u64(1).shift_left(52 * D).modulo(&n));
            let mut power = Power::<D> {
                n: [Lanes([0; LANES]); D],
                negative_inverse: Lanes([0; LANES]),
                x: [Lanes([0; LANES]); D],
            };
            spread(numbers.iter().map(Num::magnitude), &mut power.n);
            spread(one.iter().map(Num::magnitude), &mut power.x);
            for lane in 0..LANES {
                power.negative_inverse.0[lane] = inverse(power.n[0].0[lane]).wrapping_neg() & MASK;
            }
            let mask = _mm512_set1_epi64(MASK as i64);
            let width = _mm512_set1_epi64(DIGIT as i64);
            // The exponent is the number without its lowest bit; its bits come in windows from the highest down.
            let mut at = (bits - 1).next_multiple_of(window);
            while at > 0 {
                if at < (bits - 1).next_multiple_of(window) {
                    for _ in 0..window {
                        $square(&mut power);
                    }
                }
                at -= window;
                let mut shifts = Lanes([0; LANES]);
                for (shift, n) in shifts.0.iter_mut().zip(&numbers) {
                    *shift = (0..window).fold(0, |word, i| word | u64::from(n.bit(at + 1 + i)) << i);
                }
                let (left, right) = (shifts.get(), _mm512_sub_epi64(width, shifts.get()));
                let mut below = _mm512_setzero_si512();
                for x in &mut power.x {
                    let digit = x.get();
                    x.set(_mm512_or_si512(_mm512_and_si512(_mm512_sllv_epi64(digit, left), mask), below));
                    below = _mm512_srlv_epi64(digit, right);
                }
            }
            let mut out = 0;
            for (lane, (n, one)) in numbers.iter().zip(&one).enumerate() {
                let x = gather(&power.x, lane).modulo(n);
                out |= u8::from(x == *one || x.add(one) == *n) << lane;
            }
            out
        }
    };
}
power!(likely6, square6, 6);
power!(likely12, square12, 12);
power!(likely20, square20, 20);
power!(likely32, square32, 32);
power!(likely40, square40, 40);

/// The number in one lane.
fn gather(digits: &[Lanes], lane: usize) -> Num {
    let mut limbs = [0u64; 37];
    for (i, x) in digits.iter().enumerate() {
        let (at, shift) = (DIGIT * i / 64, DIGIT * i % 64);
        limbs[at] |= x.0[lane] << shift;
        limbs[at + 1] |= x.0[lane] >> 1 >> (63 - shift);
    }
    Num::from_limbs(false, &limbs)
}

/// # Safety
/// The CPU must have the features that the table of backends lists for this one.
#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn likely(batch: Batch<'_>) -> u8 {
    match batch.bits {
        0..=304 => likely6(batch),
        305..=616 => likely12(batch),
        617..=1032 => likely20(batch),
        1033..=1656 => likely32(batch),
        _ => likely40(batch),
    }
}
