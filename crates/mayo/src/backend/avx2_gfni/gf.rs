//! GF(16) in 256-bit registers: m-vectors joined in pairs, matrices and their tables.
//!
//! A byte holds two elements (x, y), low nibble first, and `vgf2p8affineqb` with the matrix of (a, b; c, d) makes
//! (a x + b y, c x + d y) of it (`field::matrix`). A table holds each matrix twice, so that 32 bytes are two neighbours,
//! one in each 128-bit lane. Leak class: constant time; elements are only ever data.

use core::arch::x86_64::*;

use crate::backend::avx2::lanes::Y;
use crate::field::{matrix, matrix_row};

/// Bytes of a matrix in a table.
pub(super) const MATRIX: usize = 16;

/// Loads 32 bytes, unaligned.
///
/// # Safety
/// They must be readable.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) unsafe fn load(from: *const u8) -> Y {
    // SAFETY: the caller's promise.
    unsafe { _mm256_loadu_si256(from.cast()) }
}

/// Stores 32 bytes, unaligned.
///
/// # Safety
/// They must be writable.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) unsafe fn store(to: *mut u8, value: Y) {
    // SAFETY: the caller's promise.
    unsafe { _mm256_storeu_si256(to.cast(), value) }
}

/// A qword from memory in all places.
///
/// # Safety
/// Eight bytes must be readable.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) unsafe fn broadcast(from: *const u8) -> Y {
    // SAFETY: the caller's promise.
    _mm256_set1_epi64x(unsafe { from.cast::<i64>().read_unaligned() })
}

/// sum + m x.
#[target_feature(enable = "avx2,gfni")]
#[inline]
pub(super) fn add_times(sum: Y, x: Y, m: Y) -> Y {
    _mm256_xor_si256(sum, _mm256_gf2p8affine_epi64_epi8::<0>(x, m))
}

/// Both low nibbles (x's low), and both high ones.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn join(x: Y, y: Y) -> [Y; 2] {
    // What x's high nibbles and y's low ones differ by changes their places.
    let differ = _mm256_and_si256(_mm256_xor_si256(_mm256_srli_epi16::<4>(x), y), _mm256_set1_epi8(0x0f));
    [_mm256_xor_si256(x, _mm256_slli_epi16::<4>(differ)), _mm256_xor_si256(y, differ)]
}

/// Eight bytes of each address, twice.
///
/// # Safety
/// They must be readable.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn both(x: [*const u8; 2]) -> Y {
    // SAFETY: the caller's promise; the assembly is empty. Without it the compiler makes four operations on the shuffling port
    // of two loads and a blend.
    unsafe {
        let mut high = broadcast(x[1]);
        core::arch::asm!("/* {0} */", inlateout(ymm_reg) high, options(pure, nomem, nostack, preserves_flags));
        _mm256_blend_epi32::<0xf0>(broadcast(x[0]), high)
    }
}

/// For two pairs of eight bytes, each a lane: the low nibbles joined, then the high ones.
///
/// # Safety
/// Eight bytes must be readable at each address.
#[target_feature(enable = "avx2,gfni")]
#[inline]
pub(super) unsafe fn join_tails(x: [*const u8; 2], y: [*const u8; 2]) -> Y {
    // SAFETY: the caller's promise.
    let (x, y) = unsafe { (both(x), both(y)) };
    let (low, high) = (matrix(1, 0, 0, 0) as i64, matrix(0, 1, 0, 0) as i64);
    let x = _mm256_gf2p8affine_epi64_epi8::<0>(x, _mm256_setr_epi64x(low, high, low, high));
    let (low, high) = (matrix(0, 0, 1, 0) as i64, matrix(0, 0, 0, 1) as i64);
    add_times(x, y, _mm256_setr_epi64x(low, high, low, high))
}

/// For i below 4 the bit matrix that makes row i of "times a" and of "times b" from the byte (a, b).
const ROWS: [i64; 4] = {
    let (mut out, mut i) = ([0; 4], 0);
    while i < 4 {
        let (mut rows, mut bit) = (0, 0);
        while bit < 4 {
            // Bit j of row i is bit i of a x^j, which is linear in a.
            let row = matrix_row(1 << bit, i) as u64;
            rows |= row << (8 * (7 - bit)) | row << (8 * (3 - bit) + 4);
            bit += 1;
        }
        out[i] = rows as i64;
        i += 1;
    }
    out
};

/// Writes the matrices (a, b; c, d) of pairs (a, b) in `first` and (c, d) in `second`.
///
/// # Safety
/// Both must have the same length, a multiple of 16; `out` room for as many matrices.
#[target_feature(enable = "avx2,gfni")]
pub(super) unsafe fn matrices(first: &[u8], second: &[u8], out: *mut u8) {
    for (at, (first, second)) in first.chunks_exact(16).zip(second.chunks_exact(16)).enumerate() {
        // SAFETY: sixteen bytes are readable.
        let pairs = unsafe { [second, first].map(|pairs| _mm_loadu_si128(pairs.as_ptr().cast())) };
        // By groups of eight: the dwords of (c, d), then those of (a, b), row 3 in their lowest byte.
        let halves = pairs.map(|pairs| {
            let row = |i: usize| _mm_gf2p8affine_epi64_epi8::<0>(pairs, _mm_set1_epi64x(ROWS[i]));
            let (high, low) = ((row(3), row(2)), (row(1), row(0)));
            let (h0, h1) = (_mm_unpacklo_epi8(high.0, high.1), _mm_unpackhi_epi8(high.0, high.1));
            let (l0, l1) = (_mm_unpacklo_epi8(low.0, low.1), _mm_unpackhi_epi8(low.0, low.1));
            [
                _mm_unpacklo_epi16(h0, l0),
                _mm_unpackhi_epi16(h0, l0),
                _mm_unpacklo_epi16(h1, l1),
                _mm_unpackhi_epi16(h1, l1),
            ]
        });
        for g in 0..4 {
            let (low, high) = (halves[0][g], halves[1][g]);
            let two = [_mm_unpacklo_epi32(low, high), _mm_unpackhi_epi32(low, high)];
            for (h, two) in two.into_iter().enumerate() {
                let twice = _mm256_permute4x64_epi64::<0b01_01_00_00>(_mm256_castsi128_si256(two));
                // SAFETY: the caller's promise.
                unsafe { store(out.add((16 * at + 4 * g + 2 * h) * MATRIX), twice) };
            }
        }
    }
}

/// Where joined registers come from: loads that are joined, the same and kept, those kept by the call before.
pub(super) const PLAIN: u8 = 0;
pub(super) const KEEP: u8 = 1;
pub(super) const KEPT: u8 = 2;

/// Calls a function for K pairs of vectors, in two parts if two sums for each do not fit into the registers: with `$from`,
/// the first pair of a part, and the way to joined registers as last generic argument.
macro_rules! in_parts {
    ($pairs:ident, $from:ident, $function:ident, [$($width:tt),*], ($($argument:expr),*)) => {{
        if const { $pairs <= 6 } {
            let $from = 0;
            $function::<$pairs $(, $width)*, PLAIN>($($argument),*);
        } else {
            let $from = 0;
            match const { $pairs.div_ceil(2) } {
                4 => $function::<4 $(, $width)*, KEEP>($($argument),*),
                5 => $function::<5 $(, $width)*, KEEP>($($argument),*),
                6 => $function::<6 $(, $width)*, KEEP>($($argument),*),
                _ => unreachable!("more than twelve pairs"),
            }
            let $from = $pairs.div_ceil(2);
            match const { $pairs / 2 } {
                3 => $function::<3 $(, $width)*, KEPT>($($argument),*),
                4 => $function::<4 $(, $width)*, KEPT>($($argument),*),
                5 => $function::<5 $(, $width)*, KEPT>($($argument),*),
                6 => $function::<6 $(, $width)*, KEPT>($($argument),*),
                _ => unreachable!("more than twelve pairs"),
            }
        }
    }};
}
pub(super) use in_parts;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrices_are_those_of_the_definition() {
        if !std::is_x86_feature_detected!("gfni") || !std::is_x86_feature_detected!("avx2") {
            let required = std::env::var("LANEWORK_REQUIRE").unwrap_or_default();
            assert!(!required.split(',').any(|name| name == "avx2-gfni"), "avx2-gfni is required");
            println!("SKIPPED avx2-gfni: this CPU has no GFNI");
            return;
        }
        let first: Vec<u8> = (0..=255).collect();
        let second: Vec<u8> = (0..=255u8).map(|e| e.wrapping_mul(167)).collect();
        let mut out = vec![0u8; 256 * MATRIX];
        // SAFETY: the features were checked, and the buffer has room for 256 matrices.
        unsafe { matrices(&first, &second, out.as_mut_ptr()) };
        for ((e, f), got) in first.iter().zip(&second).zip(out.chunks_exact(MATRIX)) {
            let want = matrix(e & 15, e >> 4, f & 15, f >> 4).to_le_bytes();
            assert_eq!(got, [want, want].concat(), "{e:02x} {f:02x}");
        }
    }
}
