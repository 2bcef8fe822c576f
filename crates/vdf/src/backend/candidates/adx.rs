//! Four candidates side by side: digit i of all four, 29 or 28 bits each, is one AVX2 vector.
//!
//! ```text
//! square(x):                             x^2 / 2^(R D) modulo n
//!   for column k of 2 D, four at a time:
//!     sum[k] = carry + 2 (x_i x_j, i + j = k, i < j) + x_(k/2)^2 + (q_i n_j, i + j = k)
//!     k < D:   q_k = -sum[k] / n_0 modulo 2^R, which makes sum[k] a multiple of 2^R
//!     k >= D:  x_(k - D) = sum[k] modulo 2^R, the nearest to 0
//!     carry = sum[k] / 2^R
//! ```
//!
//! R D exceeds the numbers' length by at least 10 bits, so no step compares or subtracts. Let s be at most half of
//! (extra bits - 4). The square of a number below 2^s times 9/8 of the modulus is then below 9/8 of it. The doublings
//! for the exponent's bits use that room, a window of bits at once.
//!
//! Digits of x are signed, others are not. With 36 digits of 29 bits a sum's parts are below 2.25 * 2^60 (either sign)
//! and 9 * 2^60. Sums begin at 3 * 2^60 and so are never negative, since AVX2 shifts no signs.
//!
//! Floor at 1,024 bits: 666 products for the square, 1,332 for the reduction, one addition each. At two products and two
//! additions a cycle that is 1,000 cycles for four squarings; 64-bit limbs take 392 products for one.

use core::arch::x86_64::{
    __m256i, _mm256_add_epi64, _mm256_and_si256, _mm256_mul_epi32, _mm256_mul_epu32, _mm256_set1_epi64x,
    _mm256_setzero_si256, _mm256_sllv_epi64, _mm256_srli_epi64, _mm256_sub_epi64,
};

use super::{Batch, Candidates, portable};
use crate::form::num::Num;
use crate::prime::sieve::inverse;

/// Candidates side by side.
const LANES: usize = 4;
/// Digits whose columns are summed together.
const BLOCK: usize = 4;
/// The bias of every sum: a multiple of all digits' base, above the size of any negative sum.
const BIAS: i64 = 3 << 60;
/// Bits of the exponent that are free: they choose the power of 2 to start from.
const FREE: usize = 8;

pub(in crate::backend) static CANDIDATES: Candidates = Candidates {
    lanes: LANES,
    coprime: portable::coprime,
    likely,
    strong: portable::strong,
    lucas: portable::lucas,
};

/// One number's digit in each lane.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Lanes([i64; LANES]);

impl Lanes {
    const ZERO: Lanes = Lanes([0; LANES]);

    #[inline(always)]
    fn get(&self) -> __m256i {
        // SAFETY: any four words are a vector.
        unsafe { core::mem::transmute(self.0) }
    }

    #[inline(always)]
    fn set(&mut self, x: __m256i) {
        // SAFETY: a vector is four words.
        self.0 = unsafe { core::mem::transmute::<__m256i, [i64; LANES]>(x) };
    }
}

/// Numbers of D digits of R bits, and the constants of powers modulo n.
struct Power<const D: usize, const R: i32> {
    n: [Lanes; D],
    /// -1 / n modulo 2^R.
    negative_inverse: Lanes,
    x: [Lanes; D],
    /// The digits q of the square under way.
    quotient: [Lanes; D],
}

/// Adds the products of two blocks' digits to their columns.
macro_rules! block {
    ($sum:ident, $x:expr, $y:expr) => {{
        let (x, y): (&[Lanes; BLOCK], &[Lanes; BLOCK]) = (&$x, &$y);
        for j in 0..BLOCK {
            let y = y[j].get();
            for i in 0..BLOCK {
                $sum[i + j] = _mm256_add_epi64($sum[i + j], _mm256_mul_epi32(x[i].get(), y));
            }
        }
    }};
}

impl<const D: usize, const R: i32> Power<D, R> {
    /// For odd moduli, and x below 2^(R D - 1).
    #[target_feature(enable = "avx2")]
    fn new(n: &[Num; LANES], x: &[Num; LANES]) -> Power<D, R> {
        let spread = |numbers: &[Num; LANES]| {
            core::array::from_fn(|i| {
                Lanes(core::array::from_fn(|lane| digit::<R>(numbers[lane].magnitude(), i)))
            })
        };
        let n: [Lanes; D] = spread(n);
        let negative = |n: i64| inverse(n as u64).wrapping_neg() as i64 & ((1 << R) - 1);
        let mut power = Power {
            n,
            negative_inverse: Lanes(n[0].0.map(negative)),
            x: spread(x),
            quotient: [Lanes::ZERO; D],
        };
        power.double(&Lanes::ZERO);
        power
    }

    /// The start of every sum besides the carry: the bias, without the part of it in the carry.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn start() -> __m256i {
        _mm256_set1_epi64x(BIAS - (BIAS >> R))
    }

    /// The bias's part in the first carry.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn carry() -> __m256i {
        _mm256_set1_epi64x(BIAS >> R)
    }

    /// Multiplies each x by its power of 2 up to 2^15.
    #[inline(never)]
    #[target_feature(enable = "avx2")]
    fn double(&mut self, shifts: &Lanes) {
        let mask = _mm256_set1_epi64x((1 << R) - 1);
        let half = _mm256_set1_epi64x(1 << (R - 1));
        let (start, shifts) = (_mm256_add_epi64(Self::start(), half), shifts.get());
        let mut carry = Self::carry();
        for x in &mut self.x {
            let sum = _mm256_add_epi64(_mm256_add_epi64(_mm256_sllv_epi64(x.get(), shifts), start), carry);
            carry = _mm256_srli_epi64::<R>(sum);
            x.set(_mm256_sub_epi64(_mm256_and_si256(sum, mask), half));
        }
    }

    /// Squares each x and divides by 2^(R D) modulo n.
    #[inline(never)]
    #[target_feature(enable = "avx2")]
    fn square(&mut self) {
        let blocks = D / BLOCK;
        let zero = _mm256_setzero_si256();
        let mask = _mm256_set1_epi64x((1 << R) - 1);
        let half = _mm256_set1_epi64x(1 << (R - 1));
        let start = Self::start();
        let negative_inverse = self.negative_inverse.get();
        let (n, x) = (self.n.as_chunks::<BLOCK>().0, self.x.as_chunks_mut::<BLOCK>().0);
        let quotient = self.quotient.as_chunks_mut::<BLOCK>().0;
        // The columns of a block and, as far as they are summed, of the next one.
        let mut sum = [start; 2 * BLOCK];
        let mut carry = Self::carry();
        for column in 0..2 * blocks {
            // Products of different blocks, then of different digits of one block: twice.
            let mut pairs = [zero; 2 * BLOCK];
            let first = (column + 1).saturating_sub(blocks);
            for i in first..column.div_ceil(2) {
                block!(pairs, x[i], x[column - i]);
            }
            if column % 2 == 0 {
                let x = &x[column / 2];
                for i in 0..BLOCK {
                    for j in i + 1..BLOCK {
                        let product = _mm256_mul_epi32(x[i].get(), x[j].get());
                        pairs[i + j] = _mm256_add_epi64(pairs[i + j], product);
                    }
                }
            }
            for i in 0..2 * BLOCK {
                sum[i] = _mm256_add_epi64(sum[i], _mm256_add_epi64(pairs[i], pairs[i]));
            }
            if column % 2 == 0 {
                for (i, x) in x[column / 2].iter().enumerate() {
                    sum[2 * i] = _mm256_add_epi64(sum[2 * i], _mm256_mul_epi32(x.get(), x.get()));
                }
            }
            for i in first..column.min(blocks) {
                block!(sum, quotient[i], n[column - i]);
            }
            if column < blocks {
                // First the columns that the next digits of the quotient wait for.
                let (q, n) = (&mut quotient[column], &n[0]);
                for i in 0..BLOCK {
                    let low = _mm256_add_epi64(sum[i], carry);
                    q[i].set(_mm256_and_si256(_mm256_mul_epu32(low, negative_inverse), mask));
                    let low = _mm256_add_epi64(low, _mm256_mul_epu32(q[i].get(), n[0].get()));
                    carry = _mm256_srli_epi64::<R>(low);
                    for j in 1..BLOCK - i {
                        let product = _mm256_mul_epu32(q[i].get(), n[j].get());
                        sum[i + j] = _mm256_add_epi64(sum[i + j], product);
                    }
                }
                for i in 1..BLOCK {
                    for j in BLOCK - i..BLOCK {
                        let product = _mm256_mul_epu32(q[i].get(), n[j].get());
                        sum[i + j] = _mm256_add_epi64(sum[i + j], product);
                    }
                }
            } else {
                // No later column needs this block of the old x.
                for (x, sum) in x[column - blocks].iter_mut().zip(sum) {
                    let low = _mm256_add_epi64(sum, carry);
                    carry = _mm256_srli_epi64::<R>(low);
                    x.set(_mm256_sub_epi64(_mm256_and_si256(low, mask), half));
                }
            }
            // Half of the base rounds a digit of x to the nearest.
            let start = if column + 2 < blocks { start } else { _mm256_add_epi64(start, half) };
            for i in 0..BLOCK {
                (sum[i], sum[BLOCK + i]) = (sum[BLOCK + i], start);
            }
        }
    }

    /// The x of a lane.
    fn get(&self, lane: usize) -> Num {
        let mut limbs = [0u64; 36];
        let mut carry = 0;
        for (i, x) in self.x.iter().enumerate() {
            let sum = x.0[lane] + carry;
            carry = sum >> R;
            let digit = (sum & ((1 << R) - 1)) as u64;
            let (at, shift) = (R as usize * i / 64, R as usize * i % 64);
            limbs[at] |= digit << shift;
            limbs[at + 1] |= digit >> 1 >> (63 - shift);
        }
        Num::from_limbs(false, &limbs)
    }
}

/// Digit i of a number.
#[inline(always)]
fn digit<const R: i32>(x: &[u64], i: usize) -> i64 {
    let (at, shift) = (R as usize * i / 64, R as usize * i % 64);
    let limb = |i: usize| x.get(i).copied().unwrap_or(0);
    ((limb(at) >> shift | limb(at + 1) << 1 << (63 - shift)) & ((1 << R) - 1)) as i64
}

/// `likely` for numbers of up to R D - 10 bits.
#[target_feature(enable = "avx2")]
fn likely_in<const D: usize, const R: i32>(batch: Batch<'_>) -> u8 {
    let (bits, length) = (batch.bits, R as usize * D);
    let mut numbers = [Num::ZERO; LANES];
    for (number, n) in numbers.iter_mut().zip(batch.numbers()) {
        *number = Num::from_limbs(false, n);
    }
    // After `window` squarings x is doubled up to 2^window - 1 times: twice that and 4 bits are left.
    let window = match length - bits {
        34.. => 4,
        18.. => 3,
        _ => 2,
    };
    let power_of_two = |n: &Num, e: u64| Num::from_u64(1).shift_left(length + e as usize).modulo(n);
    // The exponent is the number without its lowest bit: some bits to begin with, then windows.
    let bits_of =
        |n: &Num, from: usize, to: usize| (from..to).rev().fold(0, |word, i| word << 1 | u64::from(n.bit(i)));
    let mut at = (bits - 1 - FREE).next_multiple_of(window);
    let x = core::array::from_fn(|i| power_of_two(&numbers[i], bits_of(&numbers[i], at + 1, bits)));
    let mut power = Power::<D, R>::new(&numbers, &x);
    while at > 0 {
        for _ in 0..window {
            power.square();
        }
        at -= window;
        power.double(&Lanes(core::array::from_fn(|i| bits_of(&numbers[i], at + 1, at + 1 + window) as i64)));
    }
    (0..LANES).fold(0, |mask, lane| {
        let (n, one) = (&numbers[lane], power_of_two(&numbers[lane], 0));
        let x = power.get(lane).modulo(n);
        mask | u8::from(x == one || x.add(&one) == *n) << lane
    })
}

/// # Safety
/// The CPU must have the features that the table of backends lists for this one.
#[target_feature(enable = "avx2")]
unsafe fn likely(batch: Batch<'_>) -> u8 {
    match batch.bits {
        0..=338 => likely_in::<12, 29>(batch),
        339..=686 => likely_in::<24, 29>(batch),
        687..=1034 => likely_in::<36, 29>(batch),
        1035..=1670 => likely_in::<60, 28>(batch),
        _ => likely_in::<76, 28>(batch),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Engine;
    use lanework_cpu::Cpu;
    use num_bigint::BigUint;

    fn big(x: &Num) -> BigUint {
        x.magnitude().iter().rev().fold(BigUint::ZERO, |x, &limb| (x << 64) + limb)
    }

    /// Squares of the largest sums of products that `likely_in` may form, and of random ones.
    #[target_feature(enable = "avx2")]
    fn squares<const D: usize, const R: i32>(bits: usize, window: usize) {
        let length = R as usize * D;
        let mut state = bits as u64;
        let mut random = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (state ^ state >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
        };
        for round in 0..12 {
            let top = bits.div_ceil(64) - 1;
            let n: [Num; LANES] = core::array::from_fn(|lane| {
                let mut limbs = [0u64; 36];
                for (i, limb) in limbs[..=top].iter_mut().enumerate() {
                    *limb = match (round + lane) % 3 {
                        0 => u64::MAX,
                        1 => u64::from(i == 0),
                        _ => random(),
                    };
                }
                let last = (bits - 1) % 64;
                limbs[top] = limbs[top] & u64::MAX >> (63 - last) | 1 << last;
                limbs[0] |= 1;
                Num::from_limbs(false, &limbs)
            });
            let x = core::array::from_fn(|lane| n[(lane + 1) % LANES].modulo(&n[lane]));
            let mut power = Power::<D, R>::new(&n, &x);
            // Digits are as large as they get; the value is 2^s times the modulus.
            let least = -(1 << (R - 1));
            if round > 0 {
                for (i, x) in power.x.iter_mut().enumerate() {
                    for lane in 0..LANES {
                        x.0[lane] = match (round + lane) % 4 {
                            0 => least,
                            1 => -least - 1,
                            2 => [least, -least - 1][i % 2],
                            _ => x.0[lane],
                        };
                    }
                }
                let above = bits + (1 << window) - 1;
                for (i, x) in power.x.iter_mut().enumerate().skip(above / R as usize) {
                    let highest = i == above / R as usize;
                    x.0 = [if highest { (1 << (above % R as usize)).min(-least - 1) } else { 0 }; LANES];
                }
            }
            let before: [Num; LANES] = core::array::from_fn(|lane| power.get(lane));
            power.square();
            for lane in 0..LANES {
                let (n, before, after) = (big(&n[lane]), big(&before[lane]), big(&power.get(lane)));
                assert_eq!(
                    (&after << length) % &n,
                    &before * &before % &n,
                    "{bits} bits, round {round}, lane {lane}"
                );
                assert!(after * 8u8 <= n * 9u8, "{bits} bits, round {round}, lane {lane}: too large");
                assert!(power.x.iter().all(|x| (least..-least).contains(&x.0[lane])));
            }
            let before: [Num; LANES] = core::array::from_fn(|lane| power.get(lane));
            let most = (1 << window) - 1;
            power.double(&Lanes(core::array::from_fn(|lane| [0, 1, most - 1, most][lane])));
            for lane in 0..LANES {
                let shift = [0, 1, most - 1, most][lane] as usize;
                assert_eq!(
                    power.get(lane),
                    before[lane].shift_left(shift),
                    "{bits} bits, round {round}, lane {lane}"
                );
            }
        }
    }

    #[test]
    fn squares_and_doublings_of_every_length() {
        if !Engine::available(&Cpu::detect()).any(|engine| engine.name() == "adx") {
            return;
        }
        // SAFETY: this CPU has AVX2, which the row of the engine found requires.
        unsafe {
            squares::<12, 29>(24, 4);
            squares::<12, 29>(264, 4);
            squares::<12, 29>(338, 2);
            squares::<24, 29>(512, 4);
            squares::<24, 29>(686, 2);
            squares::<36, 29>(1023, 3);
            squares::<36, 29>(1024, 3);
            squares::<36, 29>(1034, 2);
            squares::<60, 28>(1536, 4);
            squares::<60, 28>(1670, 2);
            squares::<76, 28>(2048, 4);
        }
    }
}
