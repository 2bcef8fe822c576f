//! Counters as planes, made in registers.

use core::arch::x86_64::*;

use super::planes::{GROUP, Group, Y};
use crate::schedule::Counter;

/// One half of the numbers that count.
struct Half {
    start: u32,
    step: u32,
    /// Offsets of a group's 32 blocks from its first, in the order that `planes` uses.
    ahead: [Y; 4],
}

/// A counter, prepared.
pub(super) struct Counting {
    low: Half,
    high: Half,
}

impl Half {
    #[inline(always)]
    unsafe fn new(start: u32, step: u32) -> Half {
        // SAFETY: AVX2.
        unsafe {
            let mut ahead = [_mm256_setzero_si256(); 4];
            let index = _mm256_setr_epi32(0, 1, 4, 5, 2, 3, 6, 7);
            for m in 0..4 {
                let index = _mm256_add_epi32(index, _mm256_set1_epi32(8 * m as i32));
                ahead[m] = _mm256_mullo_epi32(index, _mm256_set1_epi32(step as i32));
            }
            Half { start, step, ahead }
        }
    }

    /// The four planes of this half of 32 numbers from block i on.
    #[inline(always)]
    unsafe fn planes(&self, i: u32) -> [Y; 4] {
        // SAFETY: AVX2.
        unsafe {
            let flip = _mm256_set1_epi8(-128);
            let start = self.start.wrapping_add(self.step.wrapping_mul(i));
            let by_plane = _mm256_broadcastsi128_si256(_mm_setr_epi8(
                0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15,
            ));
            let mut z = self.ahead;
            for z in &mut z {
                *z = _mm256_add_epi32(*z, _mm256_set1_epi32(start as i32));
                *z = _mm256_xor_si256(_mm256_shuffle_epi8(*z, by_plane), flip);
            }
            let (a0, a1) = (_mm256_unpacklo_epi32(z[0], z[1]), _mm256_unpackhi_epi32(z[0], z[1]));
            let (b0, b1) = (_mm256_unpacklo_epi32(z[2], z[3]), _mm256_unpackhi_epi32(z[2], z[3]));
            [
                _mm256_unpacklo_epi64(a0, b0),
                _mm256_unpackhi_epi64(a0, b0),
                _mm256_unpacklo_epi64(a1, b1),
                _mm256_unpackhi_epi64(a1, b1),
            ]
        }
    }
}

impl Counting {
    /// # Safety
    /// AVX2.
    #[inline(always)]
    pub(super) unsafe fn new(counter: &Counter) -> Counting {
        // SAFETY: the caller's promise.
        unsafe {
            Counting {
                low: Half::new(counter.low, counter.step_low),
                high: Half::new(counter.high, counter.step_high),
            }
        }
    }

    /// The numbers i to i + 31 as planes.
    ///
    /// # Safety
    /// AVX2.
    #[inline(always)]
    pub(super) unsafe fn group(&self, i: usize) -> Group {
        const { assert!(GROUP == 32) };
        // SAFETY: the caller's promise.
        unsafe {
            let [a0, a1, a2, a3] = self.low.planes(i as u32);
            let [b0, b1, b2, b3] = self.high.planes(i as u32);
            [a0, a1, a2, a3, b0, b1, b2, b3]
        }
    }
}
