//! The dense layout: four rows of a matrix of m-vectors side by side, so that no lane is idle.
//!
//! A *cell* is a pair of neighbouring columns (c, c + 1) of four neighbouring rows. Each row of a cell holds one byte
//! for each equation: the element of column c in the low nibble, that of c + 1 in the high one; first the bytes of the
//! even equations (`HALF` = m_bytes rounded up to 8), then those of the odd ones. A cell is G registers:
//!
//! | m | HALF | row of a cell | G | lanes in use |
//! |---|---|---|---|---|
//! | 64 | 32 | 64 | 4 | 100 % |
//! | 78, 80 | 40 | 80 | 5 | 98 %, 100 % |
//! | 108 | 56 | 112 | 7 | 96 % |
//! | 142 | 72 | 144 | 9 | 99 % |
//!
//! (a row for itself in whole registers: 61 to 84 %). Packing costs two loads, two shifts, two `vpternlog` and two or
//! more overlapping stores for each row of a cell, whose bytes past the slot the next store overwrites; measured on Zen
//! 4: 6 core cycles at G = 5, 8 at G = 7, 11 at G = 9, of which the unaligned stores alone take 4.7 (2.37 each, 2.0 if
//! aligned). Every product with the cell then costs G affine instructions for 16 m-vector products. So expanded keys
//! always pay for it, compact ones only where many constant vectors share a cell. Leak class: constant time; the
//! addresses depend only on sizes.

use super::gf::{Z, highs, load, lows, store};
use core::arch::x86_64::*;
use core::ops::Range;

/// Zeros in place of an absent m-vector.
static NONE: [u8; 128] = [0; 128];

/// Bytes of half a row of a cell.
const fn half<const G: usize>() -> usize {
    8 * G
}

/// A row of a cell for m = 64, from the two neighbouring m-vectors of 32 bytes at `from`: one register, so that four
/// rows need no packing.
///
/// # Safety
/// 64 bytes must be readable.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) unsafe fn join_neighbours(from: *const u8) -> Z {
    // SAFETY: the caller's promise.
    join_halves(unsafe { load(from) })
}

/// [`join_neighbours`] of a register; its own inverse.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn join_halves(both: Z) -> Z {
    // The first half takes its low nibbles from the first vector and its high ones from the second's low ones; the
    // second half takes its high nibbles from the second vector and its low ones from the first's high ones.
    let other = _mm512_shuffle_i64x2::<0x4e>(both, both);
    let turned = _mm512_rolv_epi64(other, _mm512_setr_epi64(4, 4, 4, 4, 60, 60, 60, 60));
    let low = 0x0f0f_0f0f_0f0f_0f0f;
    let own = _mm512_setr_epi64(low, low, low, low, !low, !low, !low, !low);
    _mm512_ternarylogic_epi64::<0xca>(own, both, turned)
}

/// Writes one cell from the m-vectors of its even and its odd column.
///
/// # Safety
/// From each address 64 bytes must be readable (80 if G = 9); G registers and 24 bytes more must be writable at `to`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
pub(super) unsafe fn pack<const G: usize>(to: *mut u8, even: [*const u8; 4], odd: [*const u8; 4]) {
    // SAFETY: the caller's promise; row q's stores begin inside it and end at most 24 bytes after it.
    unsafe {
        for q in 0..4 {
            let row = to.add(q * 2 * half::<G>());
            let (a, b) = (load(even[q]), load(odd[q]));
            let (e, o): (Z, Z) = (lows(a, b), highs(a, b));
            if G == 4 {
                store(row, _mm512_shuffle_i64x2::<0x44>(e, o));
            } else if G == 5 {
                // Ten qwords: eight in one store, two in another.
                let from_odd = _mm512_setr_epi64(0, 0, 0, 0, 0, 0, 1, 2);
                store(row, _mm512_mask_permutexvar_epi64(e, 0xe0, from_odd, o));
                let rest = _mm512_castsi512_si128(_mm512_alignr_epi64::<3>(o, o));
                _mm_storeu_si128(row.add(64).cast(), rest);
            } else if G == 9 {
                let a = _mm512_castsi128_si512(_mm_loadu_si128(even[q].add(64).cast()));
                let b = _mm512_castsi128_si512(_mm_loadu_si128(odd[q].add(64).cast()));
                store(row, e);
                _mm_storeu_si128(row.add(64).cast(), _mm512_castsi512_si128(lows(a, b)));
                store(row.add(72), o);
                _mm_storeu_si128(row.add(136).cast(), _mm512_castsi512_si128(highs(a, b)));
            } else {
                store(row, e);
                store(row.add(half::<G>()), o);
            }
        }
    }
}

/// Packs rows 4b to 4b + 3 of an upper triangle with `width` rows: the cells numbered `cells`, cell c being columns 2c
/// and 2c + 1. The rows begin in cell 2b.
///
/// # Safety
/// `base` must hold the triangle's m-vectors of `mb` bytes and 64 readable bytes after them; `to` must have room for the
/// cells and 24 bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) unsafe fn pack_triangle<const G: usize>(
    to: *mut u8,
    base: *const u8,
    width: usize,
    mb: usize,
    b: usize,
    cells: Range<usize>,
) {
    let mut rows = [NONE.as_ptr(); 4];
    for (q, row) in rows.iter_mut().enumerate() {
        let r = 4 * b + q;
        // Where column 0 would be.
        *row = base.wrapping_add((r * width).wrapping_sub(r * (r + 1) / 2).wrapping_mul(mb));
    }
    let (first, start) = (2 * b, cells.start);
    for c in cells {
        let cell = to.wrapping_add((c - start) * 64 * G);
        let (mut even, mut odd) = ([NONE.as_ptr(); 4], [NONE.as_ptr(); 4]);
        if c >= first + 2 && 2 * c + 1 < width {
            for q in 0..4 {
                even[q] = rows[q].wrapping_add(2 * c * mb);
                odd[q] = even[q].wrapping_add(mb);
            }
        } else {
            for q in 0..4 {
                let inside = |column: usize| 4 * b + q <= column && column < width;
                if inside(2 * c) {
                    even[q] = rows[q].wrapping_add(2 * c * mb);
                }
                if inside(2 * c + 1) {
                    odd[q] = rows[q].wrapping_add((2 * c + 1) * mb);
                }
            }
        }
        // SAFETY: each address is that of an m-vector of the triangle, or of NONE.
        unsafe { pack::<G>(cell, even, odd) };
    }
}

/// Packs rows 4b to 4b + 3 of the transposed triangle: columns 0 to 4b + 3, or to the last.
///
/// # Safety
/// As [`pack_triangle`], with room for `2b + 2` cells.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) unsafe fn pack_transposed<const G: usize>(
    to: *mut u8,
    base: *const u8,
    width: usize,
    mb: usize,
    b: usize,
) -> usize {
    let last = (2 * b + 2).min(width.div_ceil(2));
    for c in 0..last {
        let at = |column: usize, q: usize| {
            let r = 4 * b + q;
            if column <= r && r < width {
                base.wrapping_add((column * width - column * (column + 1) / 2 + r) * mb)
            } else {
                NONE.as_ptr()
            }
        };
        let even = [at(2 * c, 0), at(2 * c, 1), at(2 * c, 2), at(2 * c, 3)];
        let odd = [at(2 * c + 1, 0), at(2 * c + 1, 1), at(2 * c + 1, 2), at(2 * c + 1, 3)];
        // SAFETY: each address is that of an m-vector of the triangle, or of NONE.
        unsafe { pack::<G>(to.wrapping_add(c * 64 * G), even, odd) };
    }
    last
}

/// Packs rows 4b to 4b + 3 of a matrix with `height` rows and `width` columns: the cells numbered `cells`.
///
/// # Safety
/// As [`pack_triangle`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) unsafe fn pack_rows<const G: usize>(
    to: *mut u8,
    base: *const u8,
    height: usize,
    width: usize,
    mb: usize,
    b: usize,
    cells: Range<usize>,
) {
    let start = cells.start;
    for c in cells {
        let (mut even, mut odd) = ([NONE.as_ptr(); 4], [NONE.as_ptr(); 4]);
        for q in 0..4 {
            if 4 * b + q < height {
                even[q] = base.wrapping_add(((4 * b + q) * width + 2 * c) * mb);
                if 2 * c + 1 < width {
                    odd[q] = even[q].wrapping_add(mb);
                }
            }
        }
        // SAFETY: each address is that of an m-vector of the matrix, or of NONE.
        unsafe { pack::<G>(to.wrapping_add((c - start) * 64 * G), even, odd) };
    }
}
