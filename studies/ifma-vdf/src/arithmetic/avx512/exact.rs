//! Division from the bottom: exact quotients, and Montgomery's reduction.
//!
//! Both make the lowest limb 0 by adding a multiple of the divisor, drop it, and go on: a quotient keeps the multiples, a
//! reduction what is left. Lanes are not carried on the way, only what the dropped lane held beyond its limb.
//!
//! Floor: a limb's chain is multiplying by -1/d (4), the lowest lane to all (4), multiply-add (4), the lane shift (4) and two
//! sums (2): 18 cycles, so 180 for 512 bits and 740 for 2,112; vectors run beside each other.

use core::arch::x86_64::*;

use super::carry::{carry, down, fits};
use super::linear;
use super::{Modulus, Number, Z, limbs};
use crate::arithmetic::word_inverse;

/// Adds multiples of m until the lowest L limbs are 0, and drops them; returns the multiples' limbs. `factor` is -1/m modulo
/// 2^52.
#[inline(always)]
unsafe fn strip<const V: usize, const D: usize>(x: &mut [Z; D], m: &[Z; V], factor: u64, digits: &mut [u64]) {
    // SAFETY: the caller has the features.
    unsafe {
        let (zero, factor) = (_mm512_setzero_si512(), _mm512_set1_epi64(factor as i64));
        for digit in digits {
            let q = _mm512_madd52lo_epu64(zero, x[0], factor);
            *digit = _mm_cvtsi128_si64(_mm512_castsi512_si128(q)) as u64;
            let q = _mm512_broadcastq_epi64(_mm512_castsi512_si128(q));
            for t in 0..V {
                x[t] = _mm512_madd52lo_epu64(x[t], m[t], q);
            }
            let over = _mm512_maskz_srai_epi64::<52>(1, x[0]);
            *x = down(x);
            x[0] = _mm512_add_epi64(x[0], over);
            for t in 0..V {
                let high = _mm512_madd52hi_epu64(zero, m[t], q);
                x[t] = _mm512_add_epi64(x[t], high);
            }
        }
    }
}

/// Zero bits below the lowest one; nothing for 0.
#[inline(always)]
fn zeros(words: &[u64]) -> Option<usize> {
    let i = words.iter().position(|&x| x != 0)?;
    Some(super::BITS * i + words[i].trailing_zeros() as usize)
}

/// The quotient of numbers of N 64-bit limbs by numbers of N, if there is no remainder and it fits.
///
/// # Safety
/// The CPU must have the features of this backend; d is not 0.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,bmi1,bmi2")]
pub(crate) unsafe fn div_exact<const V: usize, const D: usize, const N: usize>(
    x: &Number<D>,
    d: &Number<V>,
    out: &mut Number<V>,
) -> bool {
    // SAFETY: the features are this function's; memory is read and written within its types, or masked.
    unsafe {
        let shift = zeros(d.words.as_flattened()).unwrap_or(0);
        let (mut rest, mut divisor) = (*x, *d);
        if shift != 0 {
            if zeros(x.words.as_flattened()).is_some_and(|z| z < shift) {
                return false;
            }
            linear::shift_right::<D, N>(x, shift, &mut rest);
            linear::shift_right::<V, N>(d, shift, &mut divisor);
        }
        let (mut lanes, m) = (rest.load(), divisor.load());
        // From -x, so that what is added makes it 0 and the digits are the quotient's own.
        for t in 0..D {
            lanes[t] = _mm512_sub_epi64(_mm512_setzero_si512(), lanes[t]);
        }
        let mut quotient = Number { words: [[0; 8]; V], negative: false, radix: super::BITS as u8 };
        let digits = &mut quotient.words.as_flattened_mut()[..limbs(64 * N)];
        let factor = word_inverse(divisor.words[0][0] | divisor.words[0][1] << 52).wrapping_neg();
        strip(&mut lanes, &m, factor & super::LIMB, digits);
        // -x + q d is a number whose lanes may still cancel each other.
        let mut sum = lanes;
        super::carry::settle(&mut sum);
        let mut some = _mm512_setzero_si512();
        for t in 0..D {
            some = _mm512_or_si512(some, sum[t]);
        }
        let exact = _mm512_test_epi64_mask(some, some) == 0;
        let lanes = quotient.load();
        let negative = x.sign() != d.sign() && !quotient.is_zero();
        out.store(&lanes, negative);
        exact && fits(&lanes, 64 * N)
    }
}

/// x 2^(-52 L) modulo m, from 0 to m - 1.
///
/// # Safety
/// As [`div_exact`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,bmi1,bmi2")]
pub(crate) unsafe fn reduce<const V: usize, const D: usize, const N: usize>(
    x: &Number<D>,
    modulus: &Modulus<V>,
    out: &mut Number<V>,
) {
    // SAFETY: the features are this function's; memory is read and written within its types, or masked.
    unsafe {
        let (mut lanes, m) = (x.load(), modulus.value.load());
        let mut digits = [0; 48];
        strip(&mut lanes, &m, modulus.factor & super::LIMB, &mut digits[..limbs(64 * N)]);
        let mut rest = m;
        rest.copy_from_slice(&lanes[..V]);
        // Subtract m once; keep the difference unless it is negative.
        let mut less = rest;
        for t in 0..V {
            less[t] = _mm512_sub_epi64(rest[t], m[t]);
        }
        let below = super::carry::settle(&mut less);
        carry(&mut rest, false);
        let mut result = rest;
        for t in 0..V {
            result[t] = _mm512_mask_mov_epi64(less[t], 0u8.wrapping_sub(u8::from(below)), rest[t]);
        }
        let mut some = _mm512_setzero_si512();
        for t in 0..V {
            some = _mm512_or_si512(some, result[t]);
        }
        if x.sign() && _mm512_test_epi64_mask(some, some) != 0 {
            // m - r: both are canonical, so differences borrow at most one.
            for t in 0..V {
                result[t] = _mm512_sub_epi64(m[t], result[t]);
            }
            super::carry::settle(&mut result);
        }
        out.store(&result, false);
    }
}
