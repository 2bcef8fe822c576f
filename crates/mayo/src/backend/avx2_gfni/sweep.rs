//! Contractions: constant vectors times the columns of what [`rows`](super::rows) gives.
//!
//! ```text
//! for each column c of the sums, constant vector pair q:  w[c][q] = sum over r of matrix(q, r) (row 2r, row 2r + 1)
//! ```
//!
//! Rows 2r and 2r + 1 of the sums are joined as m-vectors are, which gives two columns. **Floor**: as for rows, 4 K + 6
//! operations for two registers and K pairs of vectors. Leak class: constant time; addresses depend only on sizes.

use core::arch::x86_64::*;

use super::gf::{KEEP, KEPT, MATRIX, PLAIN, add_times, broadcast, in_parts, join, load, store};
use super::rows::Sums;
use crate::backend::avx2::lanes::Y;
use crate::backend::{SetKernels, SetSpec};
use crate::params::Sizes;
use crate::sys::Block;

/// Registers of a result.
pub(super) const fn registers(full: usize, tail: usize) -> usize {
    2 * full + tail
}

/// Bytes of the results of `columns` pairs of columns.
pub(super) const fn result_bytes(pairs: usize, columns: usize, full: usize, tail: usize) -> usize {
    2 * columns * pairs * registers(full, tail) * 32
}

/// One register of all rows. TAIL: lanes have matrices of their own, neighbours in the table.
///
/// # Safety
/// As for [`contract`]: `count` pairs of registers from `at` on, each `step` bytes after the other; `out` for the results
/// of two columns, `column` bytes apart, of pairs of vectors `pair` bytes apart.
#[target_feature(enable = "avx2,gfni")]
#[inline(never)]
unsafe fn sum<const K: usize, const JS: usize, const TAIL: bool, const VIA: u8>(
    mut at: *const u8,
    step: usize,
    count: usize,
    mut table: *const u8,
    mut room: *mut u8,
    out: *mut u8,
    [column, pair]: [usize; 2],
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut sums = [[_mm256_setzero_si256(); 2]; K];
        for _ in 0..count {
            let x = if VIA == KEPT {
                [load(room), load(room.add(32))]
            } else {
                join(load(at), load(at.add(step)))
            };
            if VIA == KEEP {
                store(room, x[0]);
                store(room.add(32), x[1]);
            }
            if VIA != PLAIN {
                room = room.add(64);
            }
            for (q, sum) in sums.iter_mut().enumerate() {
                let m = table.add(q * JS);
                let m = if TAIL { load(m) } else { broadcast(m) };
                *sum = [add_times(sum[0], x[0], m), add_times(sum[1], x[1], m)];
            }
            // Past the last pair, nothing is read there.
            (at, table) = (at.wrapping_add(2 * step), table.add(if TAIL { 2 * MATRIX } else { MATRIX }));
        }
        for (q, sum) in sums.iter().enumerate() {
            store(out.add(q * pair), sum[0]);
            store(out.add(q * pair + column), sum[1]);
        }
    }
}

/// All results of C pairs of constant vectors with the first 2 `columns` columns of `quads` times four rows.
///
/// # Safety
/// `sums` must have that many rows, `table` have all rows' numbers, `w` `result_bytes`.
#[target_feature(enable = "avx2,gfni")]
pub(super) unsafe fn contract<
    const C: usize,
    const JS: usize,
    const K: usize,
    const F: usize,
    const T: usize,
>(
    sums: Sums<K, F, T>,
    columns: usize,
    quads: usize,
    table: *const u8,
    w: *mut u8,
) {
    let pair = registers(F, T) * 32;
    let apart = [C * pair, pair];
    // SAFETY: the caller's promise.
    unsafe {
        for c in 0..columns {
            let w = w.add(2 * c * C * pair);
            for n in 0..2 * F {
                let at = sums.slices.add(((n / 2 * K + c) * 2 + n % 2) * 32);
                let (row, w) = (F * K * 64, w.add(32 * n));
                in_parts!(
                    C,
                    from,
                    sum,
                    [JS, false],
                    (at, row, 2 * quads, table.add(from * JS), sums.room, w.add(from * pair), apart)
                );
            }
            for i in 0..T {
                let at = sums.tails.add((i * K + c) * 32);
                let (row, w) = (T * K * 32, w.add(64 * F + 32 * i));
                in_parts!(
                    C,
                    from,
                    sum,
                    [JS, true],
                    (at, row, quads, table.add(from * JS), sums.room, w.add(from * pair), apart)
                );
            }
        }
    }
}

/// An m-vector as packed bytes, with any bytes after it.
type Vector = [Y; 4];

/// The sum of two.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn plus(a: Vector, b: Vector) -> Vector {
    core::array::from_fn(|f| _mm256_xor_si256(a[f], b[f]))
}

/// The result of constant vector i and column c.
///
/// # Safety
/// `w` must be the results of a [`contract`] of K pairs.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) unsafe fn vector<const K: usize, const F: usize, const T: usize>(
    w: *const u8,
    i: usize,
    c: usize,
) -> Vector {
    let mut out = [_mm256_setzero_si256(); 4];
    // SAFETY: the caller's promise.
    unsafe {
        let at = w.add((c * K + i / 2) * registers(F, T) * 32);
        for (f, out) in out.iter_mut().enumerate().take(F) {
            // The equations' parity is that of the register.
            *out = join(load(at.add(64 * f)), load(at.add(64 * f + 32)))[i % 2];
        }
        let mut tails = [_mm_setzero_si128(); 4];
        for (n, tail) in tails.iter_mut().enumerate().take(T) {
            // Both lanes belong to one sum; the even equations are before the odd ones.
            let x = load(at.add(64 * F + 32 * n));
            let x = _mm_xor_si128(_mm256_castsi256_si128(x), _mm256_extracti128_si256::<1>(x));
            let joined = join(_mm256_zextsi128_si256(x), _mm256_zextsi128_si256(_mm_srli_si128::<8>(x)));
            *tail = _mm256_castsi256_si128(joined[i % 2]);
        }
        if T > 0 {
            let [low, high] = [0, 2].map(|n| _mm_unpacklo_epi64(tails[n], tails[n + 1]));
            out[F] = _mm256_set_m128i(high, low);
        }
    }
    out
}

/// Ones in the bytes of an m-vector.
pub(super) const fn own_bytes(p: &Sizes) -> [[u8; 32]; 4] {
    let (mut out, mut at) = ([[0; 32]; 4], 0);
    while at < p.m_bytes() {
        out[at / 32][at % 32] = 0xff;
        at += 1;
    }
    out
}

/// Writes a padded m-vector.
///
/// # Safety
/// `to` must have room for it.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) unsafe fn put<S: SetSpec>(to: *mut u8, x: &Vector) {
    let own = const { &own_bytes(S::SIZES) };
    for (f, x) in x.iter().enumerate().take(const { SetKernels::stride(S::SIZES) / 32 }) {
        // SAFETY: the caller's promise.
        unsafe { store(to.add(32 * f), _mm256_and_si256(*x, load(own[f].as_ptr()))) };
    }
}

/// Writes u: the sums of both orders of every pair of vectors, as padded m-vectors in schedule order.
///
/// # Safety
/// `w` must be the result of a [`contract`] of K pairs of vectors with their own products.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn store_pairs<S: SetSpec, const K: usize, const F: usize, const T: usize>(
    w: *const u8,
    u: &mut [Block],
) {
    let set = S::SIZES;
    let padded = u.chunks_exact_mut(const { SetKernels::stride(S::SIZES) / 64 });
    for (out, &(i, j)) in padded.zip(set.schedule) {
        let (i, j) = (usize::from(i), usize::from(j));
        // SAFETY: i and j are below k; `out` is a padded m-vector.
        unsafe {
            let mut sum = vector::<K, F, T>(w, i, j);
            if i != j {
                sum = plus(sum, vector::<K, F, T>(w, j, i));
            }
            put::<S>(out.as_mut_ptr().cast(), &sum);
        }
    }
}
