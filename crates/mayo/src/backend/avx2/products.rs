//! The products of keygen and signing, on lane pairs of nibble-sliced m-vectors.
//!
//! U = P1 V^T takes rows r, r + 1 of P1 as the two lanes (their entries in column c share the table of v_i\[c\]);
//! W = U + P1^T V^T takes columns c, c + 1 as the lanes (their entries in row r share the table of v_i\[r\]).
//! L = (P1 + P1^T) O + P2 is never formed in signing: M = V L = W^T O + V P2, which for k vectors is fewer products
//! than forming L wherever k < 2 o or so, and also otherwise, as L would still have to be multiplied by V.
//!
//! Cost in shuffles (R registers a chunk, halves rounded up): keygen v(v+1)/4 o/2 R + v/2 o o/2 R; signing
//! 2 v(v+1)/4 k/2 R + v/2 (k k/2 + k o/2 + o k/2) R; half a cycle each on Zen 4 and Zen 5.
//! Leak class: constant time in O, V and everything made of them.

use core::arch::x86_64::*;

use super::lanes::{NOTHING, Sums, TABLE, Y, chunk_bytes, fold, pack, put, regs, tables, take, unpack};
use crate::backend::SetKernels;
use crate::params::Params;
use crate::sys::{Block, bytes, bytes_mut};

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
    pub(super) const fn of(p: &Params) -> Shape {
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

    const fn pairs_max(&self) -> usize {
        if self.k_pairs > self.o_pairs { self.k_pairs } else { self.o_pairs }
    }

    const fn stride(&self) -> usize {
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

    /// Bytes of the sums of `count` x `count` m-vectors.
    pub(super) const fn square_bytes(&self, count: usize) -> usize {
        count * count * self.padded
    }
}

/// Scratch for the largest kernel of a set.
pub(super) const fn scratch_blocks(p: &Params) -> usize {
    let s = Shape::of(p);
    let most = s.pairs_max();
    let products = s.table_bytes(s.k_pairs)
        + s.table_bytes(s.o_pairs)
        + s.operand_bytes()
        + s.rows_bytes(s.v_even + s.o_even, most)
        + most * s.regs_max * size_of::<Y>()
        + s.square_bytes(2 * most);
    let solve = super::eliminate::scratch_bytes(p);
    (if products > solve { products } else { solve }).div_ceil(64) + 16
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
    /// It must exist or lie within the slack behind the last one.
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
        // SAFETY: rows r and, if it exists, r + 1; a missing one reads row r instead, for lanes that count for nothing.
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

    /// acc += columns c, c + 1 times the tables from position 0 on, diagonal included.
    ///
    /// # Safety
    /// As for `Sums::first`, with tables for every row.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn columns<const R: usize>(self, sums: Sums, acc: *mut Y, c: usize, offset: usize) {
        // SAFETY: a column c + 1 that does not exist reads what follows, for lanes that count for nothing.
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
        for (c, (&a, at)) in low.iter().zip((0..s.v).chain(s.v_even..)).enumerate() {
            row[at] = a | high.get(c).copied().unwrap_or(0) << 4;
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
unsafe fn oil_tables(s: &Shape, o: &[u8], out: *mut u8) {
    for q in 0..s.o_pairs {
        let mut row = [0u8; 192];
        if 2 * q + 1 < s.o {
            for (e, o) in row.iter_mut().zip(o.chunks_exact(s.o)) {
                *e = o[2 * q] | o[2 * q + 1] << 4;
            }
        } else {
            for (e, o) in row.iter_mut().zip(o.chunks_exact(s.o)) {
                *e = o[2 * q];
            }
        }
        // SAFETY: the caller's promise.
        unsafe { tables(&row[..s.positions], out.add(q * s.stride())) };
    }
}

/// Sums over rows r of (constants of r) times (row r's results), the results being those that `rows` accumulated:
/// for each of `count` results j, `sink(j, q, packed)` gets the results of constants 2q and 2q + 1.
///
/// # Safety
/// `y` must have rows / 2 x ((count + 1) / 2) x R registers, `acc` room for `sums.pairs` x R.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn second<const R: usize>(
    sums: Sums,
    y: *const Y,
    rows: usize,
    count: usize,
    chunk: usize,
    acc: *mut Y,
    mut sink: impl FnMut(usize, usize, [[__m128i; 3]; 2]),
) {
    let low = _mm256_set1_epi8(15);
    let step = count.div_ceil(2) * R;
    for j in 0..count {
        // SAFETY: the caller's promise.
        unsafe {
            let y = y.add(j / 2 * R);
            for n in 0..sums.pairs * R {
                acc.add(n).write(_mm256_setzero_si256());
            }
            if j % 2 == 0 {
                sums.first::<R, true>(acc, 0, rows / 2, |i| {
                    core::array::from_fn(|n| _mm256_and_si256(y.add(i * step + n).read(), low))
                });
            } else {
                sums.first::<R, true>(acc, 0, rows / 2, |i| {
                    core::array::from_fn(|n| {
                        _mm256_and_si256(_mm256_srli_epi16::<4>(y.add(i * step + n).read()), low)
                    })
                });
            }
            sums.rest::<R, true>(acc, rows / 2);
            for q in 0..sums.pairs {
                sink(j, q, fold::<R>(acc.add(q * R), chunk));
            }
        }
    }
}

/// The square of `second` (constants i, results j) as padded m-vectors i x j in `square`.
///
/// # Safety
/// As for `second`; `square` must have `square_bytes`.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn second_square<const R: usize>(
    sums: Sums,
    y: *const Y,
    rows: usize,
    count: usize,
    chunk: (usize, usize),
    acc: *mut Y,
    square: (*mut u8, usize),
) {
    // SAFETY: the caller's promise.
    unsafe {
        second::<R>(sums, y, rows, count, chunk.1, acc, |j, q, both| {
            for (h, x) in both.iter().enumerate() {
                if 2 * q + h < count {
                    put::<R>(square.0.add(((2 * q + h) * count + j) * square.1 + chunk.0), x, false);
                }
            }
        });
    }
}

/// u_l = square(i, j) + square(j, i), or square(i, i).
///
/// # Safety
/// `square` must have k x k padded m-vectors with zeros behind the last element.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn store_pairs(set: &Params, square: *const u8, u: &mut [Block]) {
    let stride = SetKernels::stride(set);
    for (out, &(i, j)) in bytes_mut(u).chunks_exact_mut(stride).zip(set.schedule) {
        let (i, j) = (usize::from(i), usize::from(j));
        for at in (0..stride).step_by(32) {
            // SAFETY: both are within the square; `out` has `stride` bytes.
            unsafe {
                let mut x = _mm256_loadu_si256(square.add((i * set.k + j) * stride + at).cast());
                if i != j {
                    x = _mm256_xor_si256(
                        x,
                        _mm256_loadu_si256(square.add((j * set.k + i) * stride + at).cast()),
                    );
                }
                _mm256_storeu_si256(out.as_mut_ptr().add(at).cast(), x);
            }
        }
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

/// X = P1 O + P2, or P1 alone, for one chunk: accumulators of all row pairs.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn oil_rows<const R: usize>(s: &Shape, p1: Triangle, sums: Sums, x: *mut Y, r: usize, offset: usize) {
    // SAFETY: called by this file's kernels with memory as laid out by `Shape`.
    unsafe {
        let acc = x.add(r / 2 * s.o_pairs * R);
        let p2 = p1.base.add(s.v * (s.v + 1) / 2 * s.mb + offset);
        let entry = |r: usize, j: usize| p2.add((r * s.o + j) * s.mb);
        let below = if r + 1 < s.v { r + 1 } else { r };
        for q in 0..s.o_pairs {
            start::<R>(acc.add(q * R), R, Some((entry(r, 2 * q), entry(below, 2 * q))));
            if 2 * q + 1 < s.o {
                let high = unpack::<R>(entry(r, 2 * q + 1), entry(below, 2 * q + 1));
                for (n, x) in high.iter().enumerate() {
                    let at = acc.add(q * R + n);
                    at.write(_mm256_or_si256(at.read(), _mm256_slli_epi16::<4>(*x)));
                }
            }
        }
        let sums = sums.at(r);
        p1.rows::<R>(sums, acc, r, offset);
        sums.rest::<R, false>(acc, s.v - r);
    }
}

/// See `SetKernels::keygen`.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn keygen<const S: usize, const A: usize, const B: usize>(
    p: &[u8],
    o: &[u8],
    p3: &mut [u8],
    mut scratch: &mut [Block],
) {
    let set = const { Params::by_index(S) };
    let s = const { &Shape::of(Params::by_index(S)) };
    let tables = take(&mut scratch, s.table_bytes(s.o_pairs));
    let operands: *mut Y = take(&mut scratch, s.operand_bytes()).cast();
    let x: *mut Y = take(&mut scratch, s.rows_bytes(s.v_even, s.o_pairs)).cast();
    let acc: *mut Y = take(&mut scratch, s.o_pairs * s.regs_max * size_of::<Y>()).cast();
    let square = take(&mut scratch, s.square_bytes(s.o));
    let sums = Sums { tables, stride: s.stride(), pairs: s.o_pairs, operands };
    let p1 = Triangle { base: p.as_ptr(), size: s.v, mb: s.mb };
    // SAFETY: `scratch_blocks` covers what was taken; P has all of P1 and P2 with slack; `square` is written in full
    // up to `padded`'s part that is read below.
    unsafe {
        oil_tables(s, o, tables);
        let [x0, x1] = halves(s, x, s.v_even, s.o_pairs, A);
        for r in (0..s.v).step_by(2) {
            oil_rows::<A>(s, p1, sums, x0, r, 0);
            if B > 0 {
                oil_rows::<B>(s, p1, sums, x1, r, 32);
            }
        }
        let square_of = (square, s.padded);
        second_square::<A>(sums, x0, s.v_even, s.o, (0, chunk_bytes(set, 0)), acc, square_of);
        if B > 0 {
            second_square::<B>(sums, x1, s.v_even, s.o, (32, chunk_bytes(set, 1)), acc, square_of);
        }
        let mut out = p3.chunks_exact_mut(s.mb);
        for i in 0..s.o {
            for (j, out) in (i..s.o).zip(&mut out) {
                let a = core::slice::from_raw_parts(square.add((i * s.o + j) * s.padded), s.mb);
                out.copy_from_slice(a);
                if i != j {
                    let b = core::slice::from_raw_parts(square.add((j * s.o + i) * s.padded), s.mb);
                    out.iter_mut().zip(b).for_each(|(x, b)| *x ^= b);
                }
            }
        }
    }
}

/// M(i, c) += or = sum over r of v_i\[r\] times entry (r, c) of a v x o matrix of raw m-vectors.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn vinegar_times<const R: usize>(
    s: &Shape,
    sums: Sums,
    matrix: *const u8,
    acc: *mut Y,
    m: *mut u8,
    chunk: (usize, usize),
    add: bool,
) {
    // SAFETY: called by this file's kernels with memory as laid out by `Shape`.
    unsafe {
        for c in 0..s.o {
            let column = matrix.add(c * s.mb + chunk.0);
            start::<R>(acc, s.k_pairs * R, None);
            sums.first::<R, true>(acc, 0, s.v_even / 2, |i| {
                // Where v is odd, the last row's partner is itself, for a lane whose table is zero.
                let below = if 2 * i + 1 < s.v { 2 * i + 1 } else { 2 * i };
                unpack::<R>(column.add(2 * i * s.o * s.mb), column.add(below * s.o * s.mb))
            });
            sums.rest::<R, true>(acc, s.v_even / 2);
            for q in 0..s.k_pairs {
                for (h, x) in fold::<R>(acc.add(q * R), chunk.1).iter().enumerate() {
                    if 2 * q + h < s.k {
                        put::<R>(m.add(((2 * q + h) * s.o + c) * s.padded + chunk.0), x, add);
                    }
                }
            }
        }
    }
}

/// The part of an m-vector in a chunk, added at `to`.
#[target_feature(enable = "avx2")]
unsafe fn add_bytes(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: the caller has `bytes` at both.
    let (to, from) =
        unsafe { (core::slice::from_raw_parts_mut(to, bytes), core::slice::from_raw_parts(from, bytes)) };
    to.iter_mut().zip(from).for_each(|(t, f)| *t ^= f);
}

/// U = P1 V^T + (lambda in vector 0) for one row pair of one chunk.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn vinegar_rows<const R: usize>(
    s: &Shape,
    p1: Triangle,
    sums: Sums,
    u: *mut Y,
    r: usize,
    lambda: Option<*const u8>,
    offset: usize,
) {
    // SAFETY: called by this file's kernels with memory as laid out by `Shape`; lambda has n >= v + 1 m-vectors.
    unsafe {
        let acc = u.add(r / 2 * s.k_pairs * R);
        let lambda = lambda.map(|l| (l.add(r * s.mb + offset), l.add((r + 1) * s.mb + offset)));
        start::<R>(acc, s.k_pairs * R, lambda);
        let sums = sums.at(r);
        p1.rows::<R>(sums, acc, r, offset);
        sums.rest::<R, false>(acc, s.v - r);
    }
}

/// See `SetKernels::sign`.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn sign<const S: usize, const A: usize, const B: usize>(
    p: &[u8],
    o: &[u8],
    vinegar: &[u8],
    lambda: &[u8],
    m: &mut [Block],
    u: &mut [Block],
    mut scratch: &mut [Block],
) {
    let set = const { Params::by_index(S) };
    let s = const { &Shape::of(Params::by_index(S)) };
    let v_tables = take(&mut scratch, s.table_bytes(s.k_pairs));
    let o_tables = take(&mut scratch, s.table_bytes(s.o_pairs));
    let operands: *mut Y = take(&mut scratch, s.operand_bytes()).cast();
    let rows: *mut Y = take(&mut scratch, s.rows_bytes(s.v_even, s.k_pairs)).cast();
    let acc: *mut Y = take(&mut scratch, s.pairs_max() * s.regs_max * size_of::<Y>()).cast();
    let square = take(&mut scratch, s.square_bytes(s.k));
    let by_v = Sums { tables: v_tables, stride: s.stride(), pairs: s.k_pairs, operands };
    let by_o = Sums { tables: o_tables, stride: s.stride(), pairs: s.o_pairs, operands };
    let p1 = Triangle { base: p.as_ptr(), size: s.v, mb: s.mb };
    m.fill(Block::ZERO);
    let m: *mut u8 = m.as_mut_ptr().cast();
    // SAFETY: `scratch_blocks` covers what was taken; P has all of P1 and P2 with slack, lambda n m-vectors with slack.
    unsafe {
        vector_tables(s, vinegar, s.v, v_tables);
        oil_tables(s, o, o_tables);
        core::ptr::write_bytes(square, 0, s.square_bytes(s.k));
        let [u0, u1] = halves(s, rows, s.v_even, s.k_pairs, A);
        let linear = set.linear_term.then_some(lambda.as_ptr());
        for r in (0..s.v).step_by(2) {
            vinegar_rows::<A>(s, p1, by_v, u0, r, linear, 0);
            if B > 0 {
                vinegar_rows::<B>(s, p1, by_v, u1, r, linear, 32);
            }
        }
        let square_of = (square, s.padded);
        second_square::<A>(by_v, u0, s.v_even, s.k, (0, chunk_bytes(set, 0)), acc, square_of);
        if B > 0 {
            second_square::<B>(by_v, u1, s.v_even, s.k, (32, chunk_bytes(set, 1)), acc, square_of);
        }
        store_pairs(set, square, u);
        // From U to W.
        for c in (0..s.v).step_by(2) {
            p1.columns::<A>(by_v, u0.add(c / 2 * s.k_pairs * A), c, 0);
            if B > 0 {
                p1.columns::<B>(by_v, u1.add(c / 2 * s.k_pairs * B), c, 32);
            }
        }
        oil_times::<A>(s, by_o, u0, acc, m, (0, chunk_bytes(set, 0)));
        let p2 = p.as_ptr().add(set.p1_vecs() * s.mb);
        vinegar_times::<A>(s, by_v, p2, acc, m, (0, chunk_bytes(set, 0)), true);
        if B > 0 {
            oil_times::<B>(s, by_o, u1, acc, m, (32, chunk_bytes(set, 1)));
            vinegar_times::<B>(s, by_v, p2, acc, m, (32, chunk_bytes(set, 1)), true);
        }
        if set.linear_term {
            for c in 0..s.o {
                add_bytes(m.add(c * s.padded), lambda.as_ptr().add((s.v + c) * s.mb), s.mb);
            }
        }
    }
}

/// M = W^T O for one chunk.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn oil_times<const R: usize>(
    s: &Shape,
    by_o: Sums,
    w: *const Y,
    acc: *mut Y,
    m: *mut u8,
    chunk: (usize, usize),
) {
    // SAFETY: called by this file's kernels with memory as laid out by `Shape`.
    unsafe {
        second::<R>(by_o, w, s.v_even, s.k, chunk.1, acc, |j, q, both| {
            for (h, x) in both.iter().enumerate() {
                if 2 * q + h < s.o {
                    put::<R>(m.add((j * s.o + 2 * q + h) * s.padded + chunk.0), x, false);
                }
            }
        });
    }
}

/// An expanded secret key is P1 as it is, with slack, and L likewise.
pub(super) const fn secret_blocks(p: &Params) -> usize {
    l_offset(p) + (p.v() * p.o * p.m_bytes() + crate::backend::SLACK).div_ceil(64)
}

/// Blocks before L.
const fn l_offset(p: &Params) -> usize {
    (p.p1_vecs() * p.m_bytes() + crate::backend::SLACK).div_ceil(64)
}

/// L's rows r, r + 1 for one chunk, from its accumulators.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn store_l<const R: usize>(s: &Shape, x: *const Y, r: usize, l: *mut u8, chunk: (usize, usize)) {
    for q in 0..s.o_pairs {
        for lane in 0..2 {
            if r + lane >= s.v {
                continue;
            }
            let mut part = [_mm_setzero_si128(); R];
            for (n, part) in part.iter_mut().enumerate() {
                // SAFETY: called by this file's kernels with memory as laid out by `Shape`.
                let x = unsafe { x.add((r / 2 * s.o_pairs + q) * R + n).read() };
                *part = if lane == 0 { _mm256_castsi256_si128(x) } else { _mm256_extracti128_si256::<1>(x) };
            }
            for (h, x) in pack(&part, chunk.1).iter().enumerate() {
                if 2 * q + h < s.o {
                    let mut packed = [0u8; 48];
                    // SAFETY: 48 bytes are enough; L has room for all entries, chunk by chunk.
                    unsafe {
                        put::<R>(packed.as_mut_ptr(), x, false);
                        let to = l.add(((r + lane) * s.o + 2 * q + h) * s.mb + chunk.0);
                        core::ptr::copy_nonoverlapping(packed.as_ptr(), to, chunk.1);
                    }
                }
            }
        }
    }
}

/// See `SetKernels::expand_secret`.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn expand_secret<const S: usize, const A: usize, const B: usize>(
    p: &[u8],
    o: &[u8],
    expanded: &mut [Block],
    mut scratch: &mut [Block],
) {
    let set = const { Params::by_index(S) };
    let s = const { &Shape::of(Params::by_index(S)) };
    let (front, l) = expanded.split_at_mut(l_offset(set));
    front.fill(Block::ZERO);
    l.fill(Block::ZERO);
    let p1_bytes = set.p1_vecs() * s.mb;
    bytes_mut(front)[..p1_bytes].copy_from_slice(&p[..p1_bytes]);
    let l = bytes_mut(l).as_mut_ptr();
    let tables = take(&mut scratch, s.table_bytes(s.o_pairs));
    let operands: *mut Y = take(&mut scratch, s.operand_bytes()).cast();
    let x: *mut Y = take(&mut scratch, s.rows_bytes(s.v_even, s.o_pairs)).cast();
    let sums = Sums { tables, stride: s.stride(), pairs: s.o_pairs, operands };
    let p1 = Triangle { base: p.as_ptr(), size: s.v, mb: s.mb };
    // SAFETY: `scratch_blocks` covers what was taken; P has all of P1 and P2 with slack.
    unsafe {
        oil_tables(s, o, tables);
        let [x0, x1] = halves(s, x, s.v_even, s.o_pairs, A);
        for r in (0..s.v).step_by(2) {
            oil_rows::<A>(s, p1, sums, x0, r, 0);
            p1.columns::<A>(sums, x0.add(r / 2 * s.o_pairs * A), r, 0);
            store_l::<A>(s, x0, r, l, (0, chunk_bytes(set, 0)));
            if B > 0 {
                oil_rows::<B>(s, p1, sums, x1, r, 32);
                p1.columns::<B>(sums, x1.add(r / 2 * s.o_pairs * B), r, 32);
                store_l::<B>(s, x1, r, l, (32, chunk_bytes(set, 1)));
            }
        }
    }
}

/// See `SetKernels::sign_expanded`.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn sign_expanded<const S: usize, const A: usize, const B: usize>(
    expanded: &[Block],
    o: &[u8],
    vinegar: &[u8],
    lambda: &[u8],
    m: &mut [Block],
    u: &mut [Block],
    mut scratch: &mut [Block],
) {
    let set = const { Params::by_index(S) };
    let s = const { &Shape::of(Params::by_index(S)) };
    let (p1, l) = expanded.split_at(l_offset(set));
    let (p1, l) = (bytes(p1), bytes(l).as_ptr());
    let v_tables = take(&mut scratch, s.table_bytes(s.k_pairs));
    let o_tables = take(&mut scratch, s.table_bytes(s.o_pairs));
    let operands: *mut Y = take(&mut scratch, s.operand_bytes()).cast();
    let rows: *mut Y = take(&mut scratch, s.rows_bytes(s.v_even, s.k_pairs)).cast();
    let acc: *mut Y = take(&mut scratch, s.pairs_max() * s.regs_max * size_of::<Y>()).cast();
    let square = take(&mut scratch, s.square_bytes(s.k));
    let by_v = Sums { tables: v_tables, stride: s.stride(), pairs: s.k_pairs, operands };
    let by_o = Sums { tables: o_tables, stride: s.stride(), pairs: s.o_pairs, operands };
    let p1 = Triangle { base: p1.as_ptr(), size: s.v, mb: s.mb };
    m.fill(Block::ZERO);
    let m: *mut u8 = m.as_mut_ptr().cast();
    // SAFETY: as in `sign`, with P1 and L from the expanded key.
    unsafe {
        vector_tables(s, vinegar, s.v, v_tables);
        core::ptr::write_bytes(square, 0, s.square_bytes(s.k));
        let [u0, u1] = halves(s, rows, s.v_even, s.k_pairs, A);
        let linear = set.linear_term.then_some(lambda.as_ptr());
        for r in (0..s.v).step_by(2) {
            vinegar_rows::<A>(s, p1, by_v, u0, r, linear, 0);
            if B > 0 {
                vinegar_rows::<B>(s, p1, by_v, u1, r, linear, 32);
            }
        }
        let square_of = (square, s.padded);
        second_square::<A>(by_v, u0, s.v_even, s.k, (0, chunk_bytes(set, 0)), acc, square_of);
        vinegar_times::<A>(s, by_v, l, acc, m, (0, chunk_bytes(set, 0)), false);
        if B > 0 {
            second_square::<B>(by_v, u1, s.v_even, s.k, (32, chunk_bytes(set, 1)), acc, square_of);
            vinegar_times::<B>(s, by_v, l, acc, m, (32, chunk_bytes(set, 1)), false);
        }
        store_pairs(set, square, u);
        if set.linear_term {
            oil_tables(s, o, o_tables);
            lambda_times::<A>(s, by_o, lambda.as_ptr(), acc, m, (0, chunk_bytes(set, 0)));
            if B > 0 {
                lambda_times::<B>(s, by_o, lambda.as_ptr(), acc, m, (32, chunk_bytes(set, 1)));
            }
            for c in 0..s.o {
                add_bytes(m.add(c * s.padded), lambda.as_ptr().add((s.v + c) * s.mb), s.mb);
            }
        }
    }
}

/// M_0 += O^T lambda_vinegar for one chunk.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn lambda_times<const R: usize>(
    s: &Shape,
    by_o: Sums,
    lambda: *const u8,
    acc: *mut Y,
    m: *mut u8,
    chunk: (usize, usize),
) {
    // SAFETY: called by this file's kernels with memory as laid out by `Shape`; lambda has n >= v + 1 m-vectors.
    unsafe {
        start::<R>(acc, s.o_pairs * R, None);
        let at = |r: usize| lambda.add(r * s.mb + chunk.0);
        by_o.first::<R, true>(acc, 0, s.v_even / 2, |i| unpack::<R>(at(2 * i), at(2 * i + 1)));
        by_o.rest::<R, true>(acc, s.v_even / 2);
        for q in 0..s.o_pairs {
            for (h, x) in fold::<R>(acc.add(q * R), chunk.1).iter().enumerate() {
                if 2 * q + h < s.o {
                    put::<R>(m.add((2 * q + h) * s.padded + chunk.0), x, true);
                }
            }
        }
    }
}
