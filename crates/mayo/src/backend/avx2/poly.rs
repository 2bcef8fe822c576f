//! Polynomials in z with one coefficient to a byte, two of them nibble by nibble, and their reduction modulo f(z).
//!
//! Multiplying by z^l moves bytes, so a sum of z^l a_l is a sum of unaligned loads: the a_l lie in *slots* with 32 zero
//! bytes before and after them, the sum is formed window by window of 32 aligned bytes. Reduction multiplies the bytes
//! from m on by the four coefficients of f's tail (two shuffles each, for both nibbles) and adds them 0 to 3 bytes
//! further down; the excess is at most 78 bytes, so that once is enough.
//!
//! Floor: three or four loads and XORs for each a_l and 32 coefficients, two loads a cycle.
//! Leak class: constant time; the powers l are public.

use core::arch::x86_64::*;

use super::lanes::Y;
use crate::backend::SetSpec;
use crate::field::mul;
use crate::params::Sizes;

/// Zero bytes on both sides of a slot's coefficients.
const PAD: usize = 32;

/// Bytes of a slot for NR registers of coefficients.
pub(super) const fn slot_bytes(nr: usize) -> usize {
    nr * 32 + 2 * PAD
}

/// Registers of an m-vector with one element to a byte.
pub(super) const fn registers(p: &Sizes) -> usize {
    p.m.div_ceil(32)
}

/// Windows of an unreduced sum.
const fn windows(p: &Sizes) -> usize {
    (p.m + p.pairs() - 1).div_ceil(32)
}

/// Bytes of an unreduced sum; the reduction reads zeros after its end.
pub(super) const fn long_bytes(p: &Sizes) -> usize {
    (windows(p) + 2) * 32
}

/// The multiples of every element.
static MULTIPLES: [[u8; 16]; 16] = {
    let mut out = [[0; 16]; 16];
    let mut i = 0;
    while i < 256 {
        out[i / 16][i % 16] = mul((i / 16) as u8, (i % 16) as u8);
        i += 1;
    }
    out
};

/// Sixteen bytes of packed elements as 32 elements.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn spread(packed: __m128i) -> Y {
    let wide = _mm256_cvtepu8_epi16(packed);
    _mm256_and_si256(_mm256_or_si256(wide, _mm256_slli_epi16::<4>(wide)), _mm256_set1_epi8(15))
}

/// The 32 low nibbles of a register as sixteen packed bytes.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn gather(elements: Y) -> __m128i {
    let low = _mm256_and_si256(elements, _mm256_set1_epi8(15));
    let pairs = _mm256_maddubs_epi16(low, _mm256_set1_epi16(0x1001));
    let packed = _mm256_packus_epi16(pairs, pairs);
    _mm256_castsi256_si128(_mm256_permute4x64_epi64::<0b10_00>(packed))
}

/// Fills a slot.
///
/// # Safety
/// `slot` must have `slot_bytes(NR)`.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn fill<const NR: usize>(slot: *mut u8, x: &[Y; NR]) {
    // SAFETY: the caller's promise.
    unsafe {
        _mm256_storeu_si256(slot.cast(), _mm256_setzero_si256());
        for (n, x) in x.iter().enumerate() {
            _mm256_storeu_si256(slot.add(PAD + 32 * n).cast(), *x);
        }
        _mm256_storeu_si256(slot.add(PAD + 32 * NR).cast(), _mm256_setzero_si256());
    }
}

/// long += z^l times the slot, for each of `count` sums with slots `slot_step` apart.
///
/// # Safety
/// `long` must have `count` times `long_bytes`, the slots their bytes.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn add_shifted<S: SetSpec>(
    long: *mut u8,
    count: usize,
    l: usize,
    slot: *const u8,
    slot_step: usize,
) {
    let set = S::SIZES;
    let (from, to) = (l / 32, (l + set.m - 1) / 32);
    for c in 0..count {
        for w in from..=to {
            // SAFETY: windows from..=to meet the shifted coefficients, so the load stays within the slot.
            unsafe {
                let at = long.add(c * const { long_bytes(S::SIZES) } + 32 * w).cast();
                let x = _mm256_loadu_si256(slot.add(c * slot_step + PAD + 32 * w).sub(l).cast());
                _mm256_storeu_si256(at, _mm256_xor_si256(_mm256_loadu_si256(at), x));
            }
        }
    }
}

/// The remainder of `long` modulo f(z); bytes from m on are zero.
///
/// # Safety
/// `long` must have `long_bytes`.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn reduce<S: SetSpec, const NR: usize>(long: *const u8) -> [Y; NR] {
    let set = S::SIZES;
    let low = _mm256_set1_epi8(15);
    let mut out = [_mm256_setzero_si256(); NR];
    for (n, out) in out.iter_mut().enumerate() {
        // SAFETY: the caller's promise; the windows cover m.
        *out = unsafe { _mm256_loadu_si256(long.add(32 * n).cast()) };
    }
    for w in 0..(set.pairs() + 2).div_ceil(32) {
        for (t, &f) in set.tail.iter().enumerate() {
            if f == 0 {
                continue;
            }
            // SAFETY: t <= 3 < m, and the end is within `long_bytes`.
            let (mut x, table) = unsafe {
                (
                    _mm256_loadu_si256(long.add(set.m + 32 * w - t).cast()),
                    _mm256_broadcastsi128_si256(_mm_loadu_si128(MULTIPLES[usize::from(f)].as_ptr().cast())),
                )
            };
            if w == 0 {
                // Bytes before m belong to the remainder.
                x = _mm256_andnot_si256(below(t), x);
            }
            let lows = _mm256_shuffle_epi8(table, _mm256_and_si256(x, low));
            let highs = _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16::<4>(x), low));
            out[w] = _mm256_xor_si256(out[w], _mm256_xor_si256(lows, _mm256_slli_epi16::<4>(highs)));
        }
    }
    if set.m % 32 != 0 {
        out[NR - 1] = _mm256_and_si256(out[NR - 1], below(set.m % 32));
    }
    out
}

/// Ones in the bytes before `count`.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn below(count: usize) -> Y {
    _mm256_cmpgt_epi8(_mm256_set1_epi8(count as i8), iota())
}

/// 0, 1, .. 31.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn iota() -> Y {
    _mm256_setr_epi8(
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27,
        28, 29, 30, 31,
    )
}
