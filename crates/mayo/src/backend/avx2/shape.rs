//! The common part of the product kernels: sizes, triangles of m-vectors, tables of vectors and of O, initial
//! accumulators.
//!
//! Leak class: constant time in the elements that tables are made of.

use core::arch::x86_64::*;

use super::lanes::{NOTHING, Sums, TABLE, Y, regs, tables, unpack};
use crate::backend::{SetKernels, SetSpec};
use crate::params::Sizes;

/// Sizes that all product kernels of a set share.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) v: usize,
    pub(super) o: usize,
    pub(super) k: usize,
    pub(super) n: usize,
    pub(super) mb: usize,
    /// Bytes of a padded m-vector.
    pub(super) padded: usize,
    /// v and o rounded up to whole pairs of rows.
    pub(super) v_even: usize,
    pub(super) o_even: usize,
    /// Pairs of constants: of vinegar vectors, of columns of O.
    pub(super) k_pairs: usize,
    pub(super) o_pairs: usize,
    /// Positions of a row of tables: v_even, then o_even, rounded up to what `tables` builds.
    pub(super) positions: usize,
    /// Registers of both chunks, and of the larger one.
    pub(super) regs: usize,
    pub(super) regs_max: usize,
}

impl Shape {
    pub(super) const fn of(p: &Sizes) -> Shape {
        let (v_even, o_even) = (p.v().next_multiple_of(2), p.o.next_multiple_of(2));
        let (a, b) = (regs(p, 0), regs(p, 1));
        Shape {
            v: p.v(),
            o: p.o,
            k: p.k,
            n: p.n,
            mb: p.m_bytes(),
            padded: SetKernels::stride(p),
            v_even,
            o_even,
            k_pairs: p.k.div_ceil(2),
            o_pairs: p.o.div_ceil(2),
            positions: (v_even + o_even).next_multiple_of(16),
            regs: a + b,
            regs_max: if a > b { a } else { b },
        }
    }

    pub(super) const fn pairs_max(&self) -> usize {
        if self.k_pairs > self.o_pairs { self.k_pairs } else { self.o_pairs }
    }

    pub(super) const fn stride(&self) -> usize {
        self.positions * TABLE
    }

    pub(super) const fn table_bytes(&self, pairs: usize) -> usize {
        pairs * self.stride()
    }

    pub(super) const fn operand_bytes(&self) -> usize {
        (self.positions + 2) * self.regs_max * size_of::<Y>()
    }

    /// Bytes of the accumulators of `rows` rows times `pairs` pairs of constants.
    pub(super) const fn rows_bytes(&self, rows: usize, pairs: usize) -> usize {
        rows / 2 * pairs * self.regs * size_of::<Y>()
    }

    /// Whether m-vectors are whole registers, so that P3 is summed up where it stays.
    pub(super) const fn p3_in_place(&self) -> bool {
        self.mb.is_multiple_of(32)
    }

    /// Bytes of P3 as padded m-vectors, where it is not summed up in place.
    pub(super) const fn p3_bytes(&self) -> usize {
        if self.p3_in_place() { 0 } else { self.o * (self.o + 1) / 2 * self.padded }
    }
}

/// The upper triangle of a square matrix of m-vectors, row by row.
#[derive(Clone, Copy)]
pub(super) struct Triangle {
    pub(super) base: *const u8,
    pub(super) size: usize,
    pub(super) mb: usize,
}

impl Triangle {
    /// Entry (r, c), c >= r.
    ///
    /// # Safety
    /// It must exist or lie within the slack after the last one.
    #[inline(always)]
    pub(super) unsafe fn at(self, r: usize, c: usize) -> *const u8 {
        // SAFETY: the caller's promise.
        unsafe { self.base.add((r * (2 * self.size - r + 1) / 2 + c - r) * self.mb) }
    }

    /// acc += rows r, r + 1 (which share columns from r on) times the tables from position r on; operands at c - r.
    ///
    /// # Safety
    /// As for `Sums::first`, with tables for every column.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn rows<const R: usize>(self, sums: Sums, acc: *mut Y, r: usize, offset: usize) {
        // SAFETY: rows r and, if it exists, r + 1; a missing one reads row r instead, for lanes whose tables are zero.
        unsafe {
            let a = self.at(r, r).add(offset);
            let b = if r + 1 < self.size { self.at(r + 1, r + 1).add(offset) } else { a };
            let nothing = NOTHING.0.as_ptr();
            sums.first::<R, false>(acc, 0, 1, |_| unpack::<R>(a, nothing));
            let mb = self.mb;
            sums.first::<R, false>(acc, 1, self.size - r - 1, |i| {
                unpack::<R>(a.add(i * mb), b.add((i - 1) * mb))
            });
        }
    }

    /// Writes rows r, r + 1 unpacked, from column r on, as `rows` leaves them. Returns the end.
    ///
    /// # Safety
    /// As for `rows`; `to` must have room for size - r times R registers.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn lay_rows<const R: usize>(self, mut to: *mut Y, r: usize, offset: usize) -> *mut Y {
        // SAFETY: as in `rows`.
        unsafe {
            let a = self.at(r, r).add(offset);
            let b = if r + 1 < self.size { self.at(r + 1, r + 1).add(offset) } else { a };
            to = lay(to, &unpack::<R>(a, NOTHING.0.as_ptr()));
            for i in 1..self.size - r {
                to = lay(to, &unpack::<R>(a.add(i * self.mb), b.add((i - 1) * self.mb)));
            }
            to
        }
    }

    /// acc += columns c, c + 1 times the tables from position 0 on, diagonal included.
    ///
    /// # Safety
    /// As for `Sums::first`, with tables for every row.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn columns<const R: usize>(self, sums: Sums, acc: *mut Y, c: usize, offset: usize) {
        // SAFETY: a missing column c + 1 reads the bytes that follow, for lanes whose tables are zero.
        unsafe {
            let mb = self.mb;
            sums.first::<R, false>(acc, 0, c + 1, |r| {
                let a = self.at(r, c).add(offset);
                unpack::<R>(a, a.add(mb))
            });
            let mut count = c + 1;
            if c + 1 < self.size {
                let b = self.at(c + 1, c + 1).add(offset);
                sums.first::<R, false>(acc, count, 1, |_| unpack::<R>(NOTHING.0.as_ptr(), b));
                count += 1;
            }
            sums.rest::<R, false>(acc, count);
        }
    }
}

/// Tables of vectors of `len` elements, two vectors at a time; elements from `v` on go to positions from v_even on.
///
/// # Safety
/// `out` must have room for `table_bytes` of as many pairs.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn vector_tables(s: &Shape, elements: &[u8], len: usize, out: *mut u8) {
    for (q, pair) in elements.chunks(2 * len).enumerate() {
        let mut row = [0u8; 192];
        let (low, high) = pair.split_at(len);
        for (vars, at) in [(0..s.v.min(len), 0), (s.v.min(len)..len, s.v_even)] {
            let row = &mut row[at..at + vars.len()];
            row.copy_from_slice(&low[vars.clone()]);
            if !high.is_empty() {
                row.iter_mut().zip(&high[vars]).for_each(|(e, h)| *e |= h << 4);
            }
        }
        // SAFETY: the caller's promise.
        unsafe { tables(&row[..s.positions], out.add(q * s.stride())) };
    }
}

/// Tables of the columns of O, two columns at a time.
///
/// # Safety
/// As for `vector_tables`.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn oil_tables<S: SetSpec>(o: &[u8], out: *mut u8) {
    let s = const { &Shape::of(S::SIZES) };
    // Up to ten pairs of columns.
    let mut pairs = [[0u8; 192]; 10];
    for (r, row) in o.chunks_exact(s.o).enumerate().take(s.v) {
        for q in 0..s.o_pairs {
            let high = if 2 * q + 1 < s.o { row[2 * q + 1] } else { 0 };
            pairs[q][r] = row[2 * q] | high << 4;
        }
    }
    for (q, pairs) in pairs.iter().enumerate().take(s.o_pairs) {
        // SAFETY: the caller's promise.
        unsafe { tables(&pairs[..s.v_even.next_multiple_of(16)], out.add(q * s.stride())) };
    }
}

/// Zeroes registers, and puts an m-vector for each lane into the low nibbles of the first R.
///
/// # Safety
/// `acc` must have `count` registers.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn start<const R: usize>(acc: *mut Y, count: usize, low: Option<(*const u8, *const u8)>) {
    // SAFETY: the caller's promise.
    unsafe {
        for n in 0..count {
            acc.add(n).write(_mm256_setzero_si256());
        }
        if let Some((a, b)) = low {
            for (n, x) in unpack::<R>(a, b).iter().enumerate() {
                acc.add(n).write(*x);
            }
        }
    }
}

/// Splits accumulators of all rows into those of the two chunks.
///
/// # Safety
/// `rows` must have `rows_bytes`.
pub(super) unsafe fn halves(
    s: &Shape,
    rows: *mut Y,
    row_count: usize,
    pairs: usize,
    first: usize,
) -> [*mut Y; 2] {
    debug_assert!(first <= s.regs);
    // SAFETY: the caller's promise.
    [rows, unsafe { rows.add(row_count / 2 * pairs * first) }]
}

/// Writes registers, and returns their end.
///
/// # Safety
/// `to` must have room for them.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn lay<const R: usize>(to: *mut Y, x: &[Y; R]) -> *mut Y {
    for (n, x) in x.iter().enumerate() {
        // SAFETY: the caller's promise.
        unsafe { to.add(n).write(*x) };
    }
    // SAFETY: as above.
    unsafe { to.add(R) }
}
