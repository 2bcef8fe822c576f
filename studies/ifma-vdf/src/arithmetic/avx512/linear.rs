//! Sums, comparisons, shifts and matrices: everything that takes time in proportion to the length.
//!
//! Floors (latency): a sum takes comparing (4, into masks and general registers 3), the masked difference (2) and the last round
//! of carries (about 17): 26 cycles at any width up to eight vectors. A matrix takes two multiply-adds a row
//! and vector for entries of up to 52 bits and five for longer ones, 8 to 12 cycles deep, a lane shift, and the carries of
//! a signed sum, about 40 with the sign: some 60 cycles for both rows together.

use core::arch::x86_64::*;
use core::cmp::Ordering;

use super::carry::{self, fits, gather, reached};
use super::{BITS, LIMB, Matrix, Number, Z, limbs};

/// Lanes where x is larger, and where y is: as numbers these masks compare as x and y do.
#[inline(always)]
unsafe fn larger<const V: usize>(x: &[Z; V], y: &[Z; V]) -> (u128, u128) {
    // SAFETY: the caller has the features.
    unsafe {
        let (mut above, mut below) = ([0; V], [0; V]);
        for t in 0..V {
            above[t] = _mm512_cmpgt_epu64_mask(x[t], y[t]);
            below[t] = _mm512_cmplt_epu64_mask(x[t], y[t]);
        }
        (gather(above), gather(below))
    }
}

/// x + y or x - y, without a branch on signs: equal ones add, others take the smaller magnitude from the larger.
///
/// # Safety
/// The CPU must have the features of this backend.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
pub(crate) unsafe fn add<const V: usize, const N: usize>(
    x: &Number<V>,
    y: &Number<V>,
    minus: bool,
    out: &mut Number<V>,
) -> bool {
    // SAFETY: the features are this function's; memory is read and written within its types, or masked.
    unsafe {
        let differ = x.sign() != (y.sign() != minus);
        let (a, b) = (x.load(), y.load());
        let (above, below) = larger(&a, &b);
        // What borrows is where the larger number's limb is smaller; equal limbs pass a borrow on.
        let swap = below > above;
        let borrows = reached::<V>(if swap { above } else { below }, !(above | below));
        let sum_lanes = {
            let mut sum = a;
            for t in 0..V {
                sum[t] = _mm512_add_epi64(a[t], b[t]);
            }
            sum
        };
        let limb = _mm512_set1_epi64(LIMB as i64);
        let (mut makes, mut passes) = ([0; V], [0; V]);
        for t in 0..V {
            makes[t] = _mm512_cmpgt_epu64_mask(sum_lanes[t], limb);
            passes[t] = _mm512_cmpeq_epu64_mask(sum_lanes[t], limb);
        }
        let carries = reached::<V>(gather(makes), gather(passes));
        let moved = if differ { borrows } else { carries };
        // Lanes of the difference: one of a - b and b - a, chosen by a mask.
        let (taken, turned) = (mask(differ), mask(differ && swap));
        let one = _mm512_mask_set1_epi64(_mm512_set1_epi64(1), taken, -1);
        let mut result = a;
        let mut some = _mm512_setzero_si512();
        for t in 0..V {
            let difference = _mm512_sub_epi64(a[t], b[t]);
            let lanes = _mm512_mask_mov_epi64(sum_lanes[t], taken, difference);
            let lanes = _mm512_mask_sub_epi64(lanes, turned, _mm512_setzero_si512(), lanes);
            let lanes = _mm512_mask_add_epi64(lanes, (moved >> (8 * t)) as u8, lanes, one);
            result[t] = _mm512_and_si512(lanes, limb);
            some = _mm512_or_si512(some, result[t]);
        }
        let negative = x.sign() != (differ && swap);
        out.store(&result, negative && _mm512_test_epi64_mask(some, some) != 0);
        fits(&result, 64 * N)
    }
}

#[inline(always)]
fn mask(really: bool) -> __mmask8 {
    0u8.wrapping_sub(u8::from(really))
}

/// Compares signed values.
///
/// # Safety
/// As [`add`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
pub(crate) unsafe fn compare<const V: usize>(x: &Number<V>, y: &Number<V>) -> Ordering {
    // SAFETY: the features are this function's; memory is read and written within its types, or masked.
    unsafe {
        let (above, below) = larger(&x.load(), &y.load());
        match (x.sign(), y.sign()) {
            (false, false) => above.cmp(&below),
            (true, true) => below.cmp(&above),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

/// Room for every lane and a whole number on both sides.
#[repr(align(64))]
struct Padded<const V: usize>([[[u64; 8]; V]; 3]);

/// Limbs moved up by `lanes` - 8 V + 1 and `lanes` - 8 V, from memory.
#[inline(always)]
unsafe fn window<const V: usize>(x: &Number<V>, lanes: usize) -> ([Z; V], [Z; V]) {
    // SAFETY: the caller has the features.
    unsafe {
        let mut padded = Padded([[[0; 8]; V]; 3]);
        padded.0[1] = x.words;
        let all = padded.0.as_flattened().as_flattened();
        let (upper, lower) = (&all[lanes..lanes + 8 * V], &all[lanes + 1..lanes + 1 + 8 * V]);
        let mut out = ([_mm512_setzero_si512(); V], [_mm512_setzero_si512(); V]);
        for t in 0..V {
            out.0[t] = _mm512_loadu_si512(upper[8 * t..].as_ptr().cast());
            out.1[t] = _mm512_loadu_si512(lower[8 * t..].as_ptr().cast());
        }
        out
    }
}

/// The magnitude times 2^k; bits beyond the width are lost. k is below the width.
///
/// # Safety
/// As [`add`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
pub(crate) unsafe fn shift_left<const V: usize, const N: usize>(
    x: &Number<V>,
    k: usize,
    out: &mut Number<V>,
) {
    // SAFETY: the features are this function's; memory is read and written within its types, or masked.
    unsafe {
        let (lanes, bits) = (k / BITS, (k % BITS) as i64);
        let (below, own) = window(x, 8 * V - 1 - lanes);
        let limb = _mm512_set1_epi64(LIMB as i64);
        let (up, down) = (_mm512_set1_epi64(bits), _mm512_set1_epi64(BITS as i64 - bits));
        let (last, top) = (64 * N / BITS, 64 * N % BITS);
        let mut result = own;
        let mut some = _mm512_setzero_si512();
        for t in 0..V {
            let high = _mm512_and_si512(_mm512_sllv_epi64(own[t], up), limb);
            let joined = _mm512_or_si512(high, _mm512_srlv_epi64(below[t], down));
            // The mask of what fits is the largest number that does.
            result[t] = _mm512_and_si512(joined, carry::bound(t, last, top));
            some = _mm512_or_si512(some, result[t]);
        }
        out.store(&result, x.sign() && _mm512_test_epi64_mask(some, some) != 0);
    }
}

/// The magnitude divided by 2^k and rounded down. k is below the width.
///
/// # Safety
/// As [`add`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
pub(crate) unsafe fn shift_right<const V: usize, const N: usize>(
    x: &Number<V>,
    k: usize,
    out: &mut Number<V>,
) {
    // SAFETY: the features are this function's; memory is read and written within its types, or masked.
    unsafe {
        let (lanes, bits) = (k / BITS, (k % BITS) as i64);
        let (own, above) = window(x, 8 * V + lanes);
        let limb = _mm512_set1_epi64(LIMB as i64);
        let (down, up) = (_mm512_set1_epi64(bits), _mm512_set1_epi64(BITS as i64 - bits));
        let mut result = own;
        let mut some = _mm512_setzero_si512();
        for t in 0..V {
            let high = _mm512_and_si512(_mm512_sllv_epi64(above[t], up), limb);
            result[t] = _mm512_or_si512(high, _mm512_srlv_epi64(own[t], down));
            some = _mm512_or_si512(some, result[t]);
        }
        out.store(&result, x.sign() && _mm512_test_epi64_mask(some, some) != 0);
    }
}

/// Lanes of x times a factor, at their place and one and two above it.
#[inline(always)]
unsafe fn times<const V: usize>(x: &[Z; V], factor: u64, long: bool) -> [[Z; V]; 3] {
    // SAFETY: the caller has the features.
    unsafe {
        let zero = _mm512_setzero_si512();
        let low = _mm512_set1_epi64((factor & LIMB) as i64);
        let mut out = [[zero; V]; 3];
        for t in 0..V {
            out[0][t] = _mm512_madd52lo_epu64(zero, x[t], low);
            out[1][t] = _mm512_madd52hi_epu64(zero, x[t], low);
        }
        if long {
            let high = _mm512_set1_epi64((factor >> BITS) as i64);
            for t in 0..V {
                out[1][t] = _mm512_madd52lo_epu64(out[1][t], x[t], high);
                out[2][t] = _mm512_madd52hi_epu64(zero, x[t], high);
            }
        }
        out
    }
}

/// Applies a matrix to a pair.
///
/// # Safety
/// As [`add`]; no entry is -2^63.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,bmi1,bmi2")]
pub(crate) unsafe fn apply<const V: usize, const N: usize>(
    x: &[Number<V>; 2],
    m: &Matrix,
    out: &mut [Number<V>; 2],
) -> bool {
    // SAFETY: the features are this function's; memory is read and written within its types, or masked.
    unsafe {
        let (a, b) = (x[0].load(), x[1].load());
        let (long, signs) =
            (m.iter().flatten().any(|e| e.unsigned_abs() >> BITS != 0), [x[0].sign(), x[1].sign()]);
        let mut good = true;
        for (row, out) in m.iter().zip(out) {
            let (s, t) = (mask(signs[0] != (row[0] < 0)), mask(signs[1] != (row[1] < 0)));
            let (p, q) = (times(&a, row[0].unsigned_abs(), long), times(&b, row[1].unsigned_abs(), long));
            let zero = _mm512_setzero_si512();
            let mut lanes = [[zero; V]; 3];
            for k in 0..3 {
                for i in 0..V {
                    let first = _mm512_mask_sub_epi64(p[k][i], s, zero, p[k][i]);
                    let second = _mm512_mask_sub_epi64(q[k][i], t, zero, q[k][i]);
                    lanes[k][i] = _mm512_add_epi64(first, second);
                }
            }
            let upper = if long {
                let mut upper = carry::up(&lanes[2]);
                for i in 0..V {
                    upper[i] = _mm512_add_epi64(upper[i], lanes[1][i]);
                }
                upper
            } else {
                lanes[1]
            };
            let mut sum = carry::up(&upper);
            for i in 0..V {
                sum[i] = _mm512_add_epi64(sum[i], lanes[0][i]);
            }
            let negative = carry::settle(&mut sum);
            good &= fits(&sum, 64 * N);
            out.store(&sum, negative);
        }
        good
    }
}

// A matrix entry adds two limbs, and a sign needs a lane above.
const _: () =
    assert!(limbs(256) + 2 < 8 && limbs(512) + 2 < 16 && limbs(1024) + 2 < 24 && limbs(2112) + 2 < 48);
