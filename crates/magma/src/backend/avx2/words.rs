//! Whole words: 5 to 8 blocks, one to a doubleword.
//!
//! **Round.** Eight shuffles, each substituting one nibble of every word: the index is masked to that nibble, and all
//! other bytes look up entry 0, which the tables make 0. This omits one constant for each set. The critical path from
//! one round to the next is addition, shift, mask, shuffle, two levels of XOR, rotation, XOR. The lower nibbles, which
//! need no shift, and the constant are summed beside it.
//!
//! **Floor.** That path has 11 cycles on Zen 4, where a byte shuffle takes two and all else one; the last of the eight
//! shuffles, on two ports, starts three cycles after the first: some 12 to 14 cycles a round for 8 blocks.

use core::arch::x86_64::*;

use super::planes::Y;
use super::tables::Words;
use crate::schedule::{ByteOrder, Counter, Schedule};

/// Blocks in a pair of registers.
pub(super) const BLOCKS: usize = 8;

/// Lower halves and upper halves.
pub(super) type Pair = [Y; 2];

/// The order of bytes that turns blocks into numbers, and numbers into blocks.
#[inline(always)]
pub(super) unsafe fn numbers(order: ByteOrder) -> Y {
    // SAFETY: AVX2.
    unsafe {
        let flip = _mm256_set1_epi8(if order == ByteOrder::Big { 7 } else { 0 });
        let same = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        _mm256_xor_si256(flip, _mm256_broadcastsi128_si256(same))
    }
}

/// Blocks as halves: two registers of four blocks each.
#[inline(always)]
pub(super) unsafe fn load(blocks: [Y; 2], order: ByteOrder) -> Pair {
    // SAFETY: AVX2.
    unsafe {
        let numbers = numbers(order);
        let x = _mm256_castsi256_ps(_mm256_shuffle_epi8(blocks[0], numbers));
        let y = _mm256_castsi256_ps(_mm256_shuffle_epi8(blocks[1], numbers));
        [
            _mm256_castps_si256(_mm256_shuffle_ps::<0x88>(x, y)),
            _mm256_castps_si256(_mm256_shuffle_ps::<0xdd>(x, y)),
        ]
    }
}

/// Blocks 0 to 7 of a counter as halves.
#[inline(always)]
pub(super) unsafe fn count(counter: &Counter) -> Pair {
    // SAFETY: AVX2.
    unsafe {
        // In the order of `load`.
        let index = _mm256_setr_epi32(0, 1, 4, 5, 2, 3, 6, 7);
        let low = _mm256_mullo_epi32(index, _mm256_set1_epi32(counter.step_low as i32));
        let high = _mm256_mullo_epi32(index, _mm256_set1_epi32(counter.step_high as i32));
        [
            _mm256_add_epi32(low, _mm256_set1_epi32(counter.low as i32)),
            _mm256_add_epi32(high, _mm256_set1_epi32(counter.high as i32)),
        ]
    }
}

/// The blocks of halves: the inverse of [`load`] with the halves swapped, as the last round leaves them.
#[inline(always)]
unsafe fn unload(pair: Pair, order: ByteOrder) -> [Y; 2] {
    // SAFETY: AVX2.
    unsafe {
        let numbers = numbers(order);
        [
            _mm256_shuffle_epi8(_mm256_unpacklo_epi32(pair[1], pair[0]), numbers),
            _mm256_shuffle_epi8(_mm256_unpackhi_epi32(pair[1], pair[0]), numbers),
        ]
    }
}

/// b plus g(a).
#[inline(always)]
unsafe fn round(rows: &[Y; 8], zero: Y, key: u32, a: Y, b: Y) -> Y {
    // SAFETY: AVX2.
    unsafe {
        let masks = [
            _mm256_set1_epi32(0xf),
            _mm256_set1_epi32(0xf00),
            _mm256_set1_epi32(0xf_0000),
            _mm256_set1_epi32(0xf00_0000),
        ];
        let x = _mm256_add_epi32(a, _mm256_set1_epi32(key as i32));
        let y = _mm256_srli_epi32::<4>(x);
        let mut low = [x; 4];
        let mut high = [y; 4];
        for p in 0..4 {
            low[p] = _mm256_shuffle_epi8(rows[2 * p], _mm256_and_si256(x, masks[p]));
            high[p] = _mm256_shuffle_epi8(rows[2 * p + 1], _mm256_and_si256(y, masks[p]));
        }
        let low = _mm256_xor_si256(_mm256_xor_si256(low[0], low[1]), _mm256_xor_si256(low[2], low[3]));
        let high = _mm256_xor_si256(_mm256_xor_si256(high[0], high[1]), _mm256_xor_si256(high[2], high[3]));
        let t = _mm256_xor_si256(low, high);
        let b = _mm256_xor_si256(b, zero);
        _mm256_xor_si256(_mm256_xor_si256(b, _mm256_slli_epi32::<11>(t)), _mm256_srli_epi32::<21>(t))
    }
}

/// The blocks after all rounds of 8 words.
///
/// # Safety
/// AVX2.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn rounds(t: &Words, s: &Schedule, pair: Pair) -> [Y; 2] {
    // SAFETY: AVX2; every row is 16 aligned bytes.
    unsafe {
        let mut rows = [_mm256_setzero_si256(); 8];
        for i in 0..8 {
            rows[i] = _mm256_broadcastsi128_si256(_mm_load_si128(t.rows[i].as_ptr().cast()));
        }
        let zero = _mm256_set1_epi32(t.zero as i32);
        let [mut a, mut b] = pair;
        for r in (0..32).step_by(2) {
            b = round(&rows, zero, s.rounds[r], a, b);
            a = round(&rows, zero, s.rounds[r + 1], b, a);
        }
        unload([a, b], s.order)
    }
}
