//! From 64-bit limbs to limbs of 52 bits and back.
//!
//! Eight limbs are 52 bytes, so every vector takes its bytes from 52 bytes further on: one load, one permutation of bytes
//! (limb j begins at byte 6.5 j), one shift by 0 or 4 bits, one mask. Back: neighbouring limbs are joined to 13 bytes in each
//! 128-bit lane, and one permutation of two vectors' bytes makes eight 64-bit limbs. Every store is therefore aligned with
//! the limbs, and code that loads them singly finds them in one store.
//!
//! A full width is read by loads without masks: the last vector's load ends where the limbs end, and its permutation begins further on.
//! Masks made from a length cost 20 cycles.
//!
//! Floor: three and four instructions a vector, latency about 10 each way. Memory costs more: the loads here are wider than
//! the stores that wrote the limbs if those were written one by one, and cannot be forwarded from them.

use super::{LIMB, Number, Z};
use core::arch::x86_64::*;

#[repr(align(64))]
struct Bytes([u8; 64]);

/// Where the bytes of limb j are.
static SPREAD: Bytes = {
    let mut out = [0; 64];
    let mut i = 0;
    while i < 64 {
        out[i] = (13 * (i / 8) / 2 + i % 8) as u8;
        i += 1;
    }
    Bytes(out)
};

/// For every vector of 64-bit limbs, from which bytes of two joined vectors it is taken.
static JOIN: [Bytes; 9] = {
    let mut out = [const { Bytes([0; 64]) }; 9];
    let mut u = 0;
    while u < 9 {
        let mut i = 0;
        while i < 64 {
            let byte = 64 * u + i;
            let (group, rest) = (byte / 52, byte % 52);
            let group = group - 64 * u / 52;
            out[u].0[i] = if group < 2 { (64 * group + rest / 13 * 16 + rest % 13) as u8 } else { 15 };
            i += 1;
        }
        u += 1;
    }
    out
};

#[inline(always)]
unsafe fn load(bytes: &'static Bytes) -> Z {
    // SAFETY: the caller has the features.
    unsafe { _mm512_load_si512(bytes.0.as_ptr().cast()) }
}

/// Limbs of a full width of V vectors, where every vector's load stays within them.
const fn full<const V: usize>() -> usize {
    match V {
        2 => 8,
        3 => 16,
        _ => 0,
    }
}

/// Where the bytes of limb j are in the last 64 bytes of a full width; 64 and above are zeros.
struct Tail<const V: usize>;

impl<const V: usize> Tail<V> {
    const SPREAD: Bytes = {
        let mut out = [0; 64];
        let mut i = 0;
        while i < 64 {
            out[i] = (52 * (V - 1) + 64 - 8 * full::<V>() + (13 * (i / 8) / 2 + i % 8)) as u8;
            i += 1;
        }
        Bytes(out)
    };
}

/// The limbs of a magnitude, and the sign to take if it is not 0.
///
/// # Safety
/// The CPU must have the features of this backend; the limbs fit the number.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi1,bmi2")]
pub(crate) unsafe fn read<const V: usize>(from: &[u64], negative: bool, out: &mut Number<V>) {
    // SAFETY: the features are this function's; memory is read and written within its types, or masked. Of a full width, the loads begin
    // at 52 t and end by 52 (V - 2) + 64, which `full` has only where it is within the limbs, and the last ends with them.
    unsafe {
        let (spread, bytes) = (load(&SPREAD), 8 * from.len());
        let shifts = _mm512_setr_epi64(0, 4, 0, 4, 0, 4, 0, 4);
        let limb = _mm512_set1_epi64(LIMB as i64);
        let mut vectors = [_mm512_setzero_si512(); V];
        let mut some = _mm512_setzero_si512();
        // A full width needs no masks: its last vector is the last 64 bytes, from where its limbs are.
        let whole = full::<V>() > 0 && from.len() == full::<V>();
        if whole {
            for t in 0..V {
                let last = t == V - 1;
                let at = if last { (8 * full::<V>()).saturating_sub(64) } else { 52 * t };
                let x = _mm512_loadu_si512(from.as_ptr().cast::<i8>().wrapping_add(at).cast());
                some = _mm512_or_si512(some, x);
                let spread = if last {
                    let index = load(&Tail::<V>::SPREAD);
                    _mm512_permutex2var_epi8(x, index, _mm512_setzero_si512())
                } else {
                    _mm512_permutexvar_epi8(spread, x)
                };
                vectors[t] = _mm512_and_si512(_mm512_srlv_epi64(spread, shifts), limb);
            }
        }
        for t in 0..if whole { 0 } else { V } {
            let there = bytes.saturating_sub(52 * t).min(64) as u32;
            // All ones, shifted in two steps since a shift by 64 does nothing.
            let mask = !(u64::MAX << (there / 2) << (there - there / 2));
            let x = _mm512_maskz_loadu_epi8(mask, from.as_ptr().cast::<i8>().wrapping_add(52 * t));
            some = _mm512_or_si512(some, x);
            vectors[t] =
                _mm512_and_si512(_mm512_srlv_epi64(_mm512_permutexvar_epi8(spread, x), shifts), limb);
        }
        let negative = negative && _mm512_test_epi64_mask(some, some) != 0;
        out.store(&vectors, negative);
    }
}

/// All limbs of the magnitude that `out` has room for; returns how many are significant.
///
/// # Safety
/// As [`read`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi1,bmi2")]
pub(crate) unsafe fn write<const V: usize>(x: &Number<V>, out: &mut [u64]) -> usize {
    // SAFETY: the features are this function's; memory is read and written within its types, or masked.
    unsafe {
        let mut joined = x.load();
        for t in 0..V {
            // Even lanes take 12 bits of their neighbour, odd lanes keep the other 40.
            let other = _mm512_shuffle_epi32::<0x4e>(joined[t]);
            let even = _mm512_or_si512(joined[t], _mm512_slli_epi64::<52>(other));
            joined[t] = _mm512_mask_srli_epi64::<12>(even, 0xaa, joined[t]);
        }
        let mut significant = 0;
        let whole = out.len();
        for u in 0..whole.div_ceil(8) {
            let (first, second) = (64 * u / 52, 64 * u / 52 + 1);
            let at = |i: usize| joined[i.min(V - 1)];
            let mut words = _mm512_permutex2var_epi8(at(first), load(&JOIN[u]), at(second));
            if u == 4 && V > 6 {
                // Here a vector reaches into a third, for its last lane.
                words = _mm512_mask_broadcastq_epi64(words, 0x80, _mm512_castsi512_si128(at(6)));
            }
            let left = (whole - 8 * u).min(8);
            let mask = ((1u32 << left) - 1) as u8;
            words = _mm512_maskz_mov_epi64(mask, words);
            _mm512_mask_storeu_epi64(out.as_mut_ptr().add(8 * u).cast(), mask, words);
            let some = _mm512_test_epi64_mask(words, words);
            if some != 0 {
                significant = 8 * u + 8 - some.leading_zeros() as usize;
            }
        }
        significant
    }
}
