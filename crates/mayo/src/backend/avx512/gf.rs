//! GF(16) in 512-bit registers: affine matrices, their tables, loads and stores.
//!
//! A byte holds two elements (x, y), low nibble first. `vgf2p8affineqb` with the 8x8 bit matrix of
//! (a, b; c, d) makes (a x + b y, c x + d y) of it: four products in one instruction for each of 64 bytes.
//! A matrix is a qword; its byte 7 - i makes bit i of the result.
//! Leak class: everything here is constant time; elements are only ever data, never addresses.

use core::arch::x86_64::*;

pub(super) use crate::field::matrix;
use crate::field::matrix_row;
use crate::sys::Block;

/// A register.
pub(super) type Z = __m512i;

/// The matrices of (a, 0; 0, a): both nibbles times a.
pub(super) static DIAGONAL: Diagonal = {
    let mut out = [0u64; 16];
    let mut a = 0;
    while a < 16 {
        out[a] = matrix(a as u8, 0, 0, a as u8);
        a += 1;
    }
    Diagonal(out)
};

/// Sixteen matrices, two registers.
#[repr(align(64))]
pub(super) struct Diagonal(pub(super) [u64; 16]);

/// Rows of the sixteen 4x4 matrices by place in the qword's halves: byte 16 t + a is row 3 - t of "times a".
static ROWS: Block = {
    let mut out = [0; 64];
    let mut at = 0;
    while at < 64 {
        out[at] = matrix_row(at as u8 % 16, 3 - at / 16);
        at += 1;
    }
    Block(out)
};

/// t in bits 4 and 5 of byte t of either half of every qword: the page of `ROWS`.
const PAGES: i64 = 0x3020_1000_3020_1000;

/// For eight matrices from columns 2i, 2i + 1 of two rows that lie 16 bytes apart: the element that belongs into each
/// byte's low nibble. The first row makes the low half of the result, so it goes to the qword's upper bytes.
static FROM_ROWS: Block = {
    let mut out = [0; 64];
    let mut at = 0;
    while at < 64 {
        let (i, byte) = (at / 8, at % 8);
        out[at] = (2 * i + if byte < 4 { 16 } else { 0 }) as u8;
        at += 1;
    }
    Block(out)
};

/// Loads 64 bytes, unaligned.
///
/// # Safety
/// They must be readable.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) unsafe fn load(from: *const u8) -> Z {
    // SAFETY: the caller's promise.
    unsafe { _mm512_loadu_si512(from.cast()) }
}

/// Stores 64 bytes, unaligned.
///
/// # Safety
/// They must be writable.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) unsafe fn store(to: *mut u8, value: Z) {
    // SAFETY: the caller's promise.
    unsafe { _mm512_storeu_si512(to.cast(), value) }
}

/// Loads the first `count` bytes (at most 64), and zeros after them.
///
/// # Safety
/// `count` bytes must be readable; the others are not accessed.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
pub(super) unsafe fn load_part(from: *const u8, count: usize) -> Z {
    // SAFETY: the caller's promise; masked bytes are not accessed.
    unsafe { _mm512_maskz_loadu_epi8(first(count), from.cast()) }
}

/// A mask of the first `count` of 64 bytes; all from 64 on.
#[inline(always)]
pub(super) const fn first(count: usize) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

/// A qword from memory in all lanes.
///
/// # Safety
/// Eight bytes must be readable.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) unsafe fn broadcast(from: *const u64) -> Z {
    // SAFETY: the caller's promise.
    _mm512_set1_epi64(unsafe { from.read_unaligned() } as i64)
}

/// x times the matrices m.
#[target_feature(enable = "avx512f,gfni")]
#[inline]
pub(super) fn times(x: Z, m: Z) -> Z {
    _mm512_gf2p8affine_epi64_epi8::<0>(x, m)
}

/// a + b + c.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn sum3(a: Z, b: Z, c: Z) -> Z {
    _mm512_ternarylogic_epi64::<0x96>(a, b, c)
}

/// a's low nibbles and b's high ones.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
pub(super) fn join(a: Z, b: Z) -> Z {
    _mm512_ternarylogic_epi64::<0xca>(_mm512_set1_epi8(0x0f), a, b)
}

/// (low nibbles of a, low nibbles of b).
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
pub(super) fn lows(a: Z, b: Z) -> Z {
    join(a, _mm512_slli_epi16::<4>(b))
}

/// (high nibbles of a, high nibbles of b).
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
pub(super) fn highs(a: Z, b: Z) -> Z {
    join(_mm512_srli_epi16::<4>(a), b)
}

/// `lows` and `highs` of 16 bytes.
#[target_feature(enable = "avx512f,avx512vl")]
#[inline]
pub(super) fn join_tails(a: __m128i, b: __m128i) -> (__m128i, __m128i) {
    let low = _mm_set1_epi8(0x0f);
    let lows = _mm_ternarylogic_epi64::<0xca>(low, a, _mm_slli_epi16::<4>(b));
    (lows, _mm_ternarylogic_epi64::<0xca>(low, _mm_srli_epi16::<4>(a), b))
}

/// Adds m x + n y.
///
/// # Safety
/// The matrices must be readable.
#[target_feature(enable = "avx512f,avx512vl,gfni")]
#[inline]
pub(super) unsafe fn add_tails(
    sums: &mut [__m128i; 2],
    x: [__m128i; 2],
    y: [__m128i; 2],
    m: *const u64,
    n: *const u64,
) {
    // SAFETY: the caller's promise.
    let (m, n) = unsafe { (_mm_set1_epi64x(*m as i64), _mm_set1_epi64x(*n as i64)) };
    for (sum, (x, y)) in sums.iter_mut().zip(x.into_iter().zip(y)) {
        let (x, y) = (_mm_gf2p8affine_epi64_epi8::<0>(x, m), _mm_gf2p8affine_epi64_epi8::<0>(y, n));
        *sum = _mm_ternarylogic_epi64::<0x96>(*sum, x, y);
    }
}

/// Takes `bytes`, rounded up to whole blocks, from the front of the scratch.
///
/// # Panics
/// If the scratch is too short.
pub(super) fn take(scratch: &mut &mut [Block], bytes: usize) -> *mut u8 {
    let (front, back) = core::mem::take(scratch).split_at_mut(bytes.div_ceil(64));
    *scratch = back;
    front.as_mut_ptr().cast()
}

/// Eight matrices (a, b; c, d): `from_low` has a in the upper four bytes of each qword and c in the lower four,
/// `from_high` has b and d.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
#[inline]
pub(super) fn from_nibbles(from_low: Z, from_high: Z) -> Z {
    // SAFETY: a block is 64 readable bytes.
    let rows = unsafe { load(ROWS.0.as_ptr()) };
    let pages = _mm512_set1_epi64(PAGES);
    let low = _mm512_permutexvar_epi8(_mm512_or_si512(from_low, pages), rows);
    let high = _mm512_permutexvar_epi8(_mm512_or_si512(from_high, pages), _mm512_slli_epi16::<4>(rows));
    _mm512_or_si512(low, high)
}

/// Matrices for vectors that lie row by row: `out[j * stride + c]` is (x[2j][2c], x[2j][2c+1]; x[2j+1][2c],
/// x[2j+1][2c+1]), elements beyond `count` vectors or `columns` columns being 0. Fills `out` to the multiple of 8 above
/// `columns / 2`.
///
/// # Safety
/// x must have `count` rows of `columns` elements, `row_bytes` apart; out room for `count.div_ceil(2)` times `stride`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
pub(super) unsafe fn table_of_rows(
    x: *const u8,
    row_bytes: usize,
    count: usize,
    columns: usize,
    out: *mut u64,
    stride: usize,
) {
    // SAFETY: a block is 64 readable bytes.
    let pick = unsafe { load(FROM_ROWS.0.as_ptr()) };
    let next = _mm512_add_epi8(pick, _mm512_set1_epi8(1));
    for j in 0..count.div_ceil(2) {
        let mut c = 0;
        while c < columns {
            let mask = ((1u32 << (columns - c).min(16)) - 1) as u16;
            let second = if 2 * j + 1 < count { mask } else { 0 };
            // SAFETY: the masks admit only elements of x; the store stays in row j of out, whose length is the stride,
            // a multiple of 8 and at least columns / 2.
            unsafe {
                let a = _mm_maskz_loadu_epi8(mask, x.add(2 * j * row_bytes + c).cast());
                let b = _mm_maskz_loadu_epi8(second, x.wrapping_add((2 * j + 1) * row_bytes + c).cast());
                let both = _mm512_castsi256_si512(_mm256_set_m128i(b, a));
                let m =
                    from_nibbles(_mm512_permutexvar_epi8(pick, both), _mm512_permutexvar_epi8(next, both));
                store(out.add(j * stride + c / 2).cast(), m);
            }
            c += 16;
        }
    }
}

/// Matrices for the columns of `x`, `rows` x `count`: `out[r * PAIRS + j]` is
/// (x[2r][2j], x[2r+1][2j]; x[2r][2j+1], x[2r+1][2j+1]), elements beyond the edges being 0; for `pairs` values of r.
///
/// # Safety
/// x must have `rows * count` elements; out room for `pairs * PAIRS + 8` matrices.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub(super) unsafe fn table_of_columns<const PAIRS: usize>(
    x: *const u8,
    rows: usize,
    count: usize,
    pairs: usize,
    out: *mut u64,
) {
    let mut low = [[0u8; 64]; 2];
    let mut high = [[0u8; 64]; 2];
    for at in 0..8 * PAIRS {
        // The first of two columns makes the low half of the result. A column beyond the edge picks the zero after it.
        let column = 2 * (at / 8) + usize::from(at % 8 < 4);
        let inside = column < count;
        low[at / 64][at % 64] = if inside { column as u8 } else { 63 };
        high[at / 64][at % 64] = if inside { (count + column) as u8 } else { 63 };
    }
    for r in 0..pairs {
        let left = (rows * count).saturating_sub(2 * r * count).min(2 * count);
        // SAFETY: only elements of x are accessed; two rows are at most 34 bytes, so byte 63 is 0; the stores reach at
        // most 8 matrices past this r's, and are overwritten by the next.
        unsafe {
            let both = load_part(x.wrapping_add(2 * r * count), left);
            for half in 0..PAIRS.div_ceil(8) {
                let low = _mm512_permutexvar_epi8(load(low[half].as_ptr()), both);
                let high = _mm512_permutexvar_epi8(load(high[half].as_ptr()), both);
                store(out.add(r * PAIRS + 8 * half).cast(), from_nibbles(low, high));
            }
        }
    }
}
