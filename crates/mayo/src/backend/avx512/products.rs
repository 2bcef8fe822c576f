//! The products of keygen, signing and verification on dense cells (see `layout`).
//!
//! Everything is two kinds of pass:
//!
//! * [`sweep`]: rows of a matrix of m-vectors times constant vectors, four rows at a time. U = P1 V^T, X = P1 O + P2 and
//!   P S^T are sweeps; a result lies as a cell does, the nibbles of a byte belonging to two neighbouring constant vectors.
//! * [`contract`]: constant vectors times the result of a sweep. Rows r, r + 1 of it are joined into pairs again, and the same
//!   tables of matrices serve.
//!
//! Signing never forms L = (P1 + P1^T) O + P2, nor reads P1 by columns: with U = P1 V^T and X = P1 O + P2, both made from
//! each cell of P1 while it is in the first-level cache, M = V L = U^T O + V X. That is v(v+1)/2 (k + o) + 2vko + vk^2
//! m-vector products, as many as by U + P1^T V^T if k = o, and fewer if k > o.
//!
//! Floor: m / 256 affine instructions for an m-vector product, at one 512-bit affine a core cycle on Zen 4, two on Zen 5;
//! `vpternlog` adds two products to an accumulator at once, so half as many of those. A sweep of K pairs of
//! vectors over G registers runs in chunks of at most 3 of the G, 18 accumulators, so that a matrix from memory serves three
//! times and loads (one 64-byte load a cycle on Zen 4) stay behind the affine instructions.
//! Source: the 2x2 form of the affine instruction follows from the instruction's definition; MAYO-C's round-3 code
//! has it too. The dense cells and the U, X schedule are ours.
//! Leak class: constant time in O, V, s and everything made of them.

use super::gf::{
    Z, broadcast, first, highs, load, load_part, lows, store, sum3, table_of_columns, table_of_rows, take,
    times,
};
use super::layout::{join_neighbours, pack_rows, pack_transposed, pack_triangle};
use crate::params::Params;
use crate::sys::Block;
use core::arch::x86_64::*;

/// Where a sweep's accumulators begin: all 0, the first pair of vectors given, or all given.
const ZERO: u8 = 0;
const FIRST: u8 = 1;
const ALL: u8 = 2;

/// Registers of a row of a cell, the last perhaps in part.
const fn row_registers(g: usize) -> usize {
    (16 * g).div_ceil(64)
}

/// Blocks of four rows.
const fn quads(rows: usize) -> usize {
    rows.div_ceil(4)
}

/// Registers of an m-vector.
const fn vector_registers(p: &Params) -> usize {
    p.m_bytes().div_ceil(64)
}

/// Registers of a cell.
pub(super) const fn cell(p: &Params) -> usize {
    p.m_bytes().next_multiple_of(8) / 8
}

/// Qwords from one pair of vectors to the next in a table of matrices: columns of P1, then of P2.
pub(super) const fn table_stride(p: &Params) -> usize {
    2 * quads(p.v()) + (p.o.div_ceil(2)).next_multiple_of(8) + 8
}

/// Bytes of the cells of rows 4b to 4b + 3 of P1.
const fn p1_cells(p: &Params, b: usize) -> usize {
    (p.v().div_ceil(2) - 2 * b) * cell(p) * 64
}

/// Bytes of the cells of all P1.
const fn all_p1_cells(p: &Params) -> usize {
    let (mut bytes, mut b) = (0, 0);
    while b < quads(p.v()) {
        bytes += p1_cells(p, b);
        b += 1;
    }
    bytes
}

const fn p2_cells(p: &Params) -> usize {
    p.o.div_ceil(2) * cell(p) * 64
}

const fn p3_cells(p: &Params) -> usize {
    let (mut bytes, mut b) = (0, 0);
    while b < quads(p.o) {
        bytes += (p.o.div_ceil(2) - 2 * b) * cell(p) * 64;
        b += 1;
    }
    bytes
}

/// Scratch for the largest of this file's kernels.
pub(super) const fn scratch_blocks(p: &Params) -> usize {
    let (kp, op, g) = (p.k.div_ceil(2), p.o.div_ceil(2), cell(p));
    let rows = quads(p.v()) + quads(p.o);
    let tables = kp * table_stride(p) + (2 * quads(p.v()) * op + 16);
    let cells = p1_cells(p, 0) + p2_cells(p) + 64 * (rows + 4) * g;
    let results = 64 * (rows * (kp + op) * g + (2 * kp * kp + 4 * kp * op + 2 * op * op) * row_registers(g));
    (8 * tables + cells + results).div_ceil(64) + 32
}

/// The part of it that `keygen` uses.
pub(super) const fn keygen_blocks(p: &Params) -> usize {
    let (op, g) = (p.o.div_ceil(2), cell(p));
    let table = (8 * (2 * quads(p.v()) * op + 16)).div_ceil(64);
    let results = quads(p.v()) * op * g + 1 + 2 * op * op * row_registers(g) + 1;
    table + results + (p1_cells(p, 0) + p2_cells(p)) / 64 + 2
}

/// What a sweep goes over: cells, each with its number, which is its place in the tables of matrices.
#[derive(Clone, Copy)]
struct Work {
    /// Runs of cells in memory: where, the first one's number, how many.
    packed: [(*const u8, usize, usize); 4],
    /// Runs of pairs of m-vectors of 32 bytes that need no packing: where each row's are, the first one's number, how many.
    direct: [([*const u8; 4], usize, usize); 2],
    runs: usize,
    direct_runs: usize,
}

impl Work {
    const NONE: Work = Work {
        packed: [(core::ptr::null(), 0, 0); 4],
        direct: [([core::ptr::null(); 4], 0, 0); 2],
        runs: 0,
        direct_runs: 0,
    };

    fn packed(&mut self, cells: *const u8, number: usize, count: usize) {
        self.packed[self.runs] = (cells, number, count);
        self.runs += 1;
    }

    /// Adds rows 4b to 4b + 3 of a triangle, packing them into `buffer` where that is needed; cell c has number
    /// `number + c`. Returns where the buffer goes on.
    ///
    /// # Safety
    /// As for [`pack_triangle`].
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn triangle<const G: usize>(
        &mut self,
        mut buffer: *mut u8,
        base: *const u8,
        width: usize,
        mb: usize,
        b: usize,
        number: usize,
    ) -> *mut u8 {
        let (start, end) = (2 * b, width.div_ceil(2));
        let whole = if G == 4 && 4 * b + 3 < width {
            (start + 2).min(end)..(width / 2).max(start + 2).min(end)
        } else {
            end..end
        };
        for cells in [start..whole.start, whole.end..end] {
            if !cells.is_empty() {
                // SAFETY: the caller's promise.
                unsafe { pack_triangle::<G>(buffer, base, width, mb, b, cells.clone()) };
                self.packed(buffer, number + cells.start, cells.len());
                buffer = buffer.wrapping_add(64 * G * cells.len());
            }
        }
        if !whole.is_empty() {
            let row = |r: usize| {
                base.wrapping_add(
                    (r * width).wrapping_sub(r * (r + 1) / 2).wrapping_add(2 * whole.start) * mb,
                )
            };
            let r = 4 * b;
            self.direct[self.direct_runs] =
                ([row(r), row(r + 1), row(r + 2), row(r + 3)], number + whole.start, whole.len());
            self.direct_runs += 1;
        }
        buffer
    }

    /// Adds rows 4b to 4b + 3 of a matrix, as `triangle` does.
    ///
    /// # Safety
    /// As for [`pack_rows`].
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn rows<const G: usize>(
        &mut self,
        buffer: *mut u8,
        base: *const u8,
        height: usize,
        width: usize,
        mb: usize,
        b: usize,
        number: usize,
    ) {
        let end = width.div_ceil(2);
        let whole = if G == 4 && 4 * b + 3 < height { width / 2 } else { 0 };
        if whole < end {
            // SAFETY: the caller's promise.
            unsafe { pack_rows::<G>(buffer, base, height, width, mb, b, whole..end) };
            self.packed(buffer, number + whole, end - whole);
        }
        if whole > 0 {
            let row = |q: usize| base.wrapping_add((4 * b + q) * width * mb);
            self.direct[self.direct_runs] = ([row(0), row(1), row(2), row(3)], number, whole);
            self.direct_runs += 1;
        }
    }
}

/// Registers `g` to `g + GC` of the products of cells with `KT` pairs of vectors.
///
/// # Safety
/// The work's memory must be there; so must the matrices, at strides JS (between pairs of vectors) and CS (between cells);
/// `init` must have what FROM says, and `out` room for KT x G registers.
#[target_feature(enable = "avx512f,avx512bw,gfni")]
#[inline(never)]
unsafe fn chunk<
    const KT: usize,
    const G: usize,
    const GC: usize,
    const JS: usize,
    const CS: usize,
    const FROM: u8,
>(
    work: &Work,
    g0: usize,
    table: *const u64,
    init: *const u8,
    out: *mut u8,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let zero = _mm512_setzero_si512();
        let mut acc = [[zero; GC]; KT];
        for j in 0..KT {
            for g in 0..GC {
                if FROM == ALL || (FROM == FIRST && j == 0) {
                    acc[j][g] = load(init.add(64 * (j * G + g0 + g)));
                }
            }
        }
        let add_two = |acc: &mut [[Z; GC]; KT], x: &[Z; GC], y: &[Z; GC], t: *const u64| {
            for j in 0..KT {
                let (m, n) = (broadcast(t.add(j * JS)), broadcast(t.add(j * JS + CS)));
                for g in 0..GC {
                    acc[j][g] = sum3(acc[j][g], times(x[g], m), times(y[g], n));
                }
            }
        };
        let add_one = |acc: &mut [[Z; GC]; KT], x: &[Z; GC], t: *const u64| {
            for j in 0..KT {
                let m = broadcast(t.add(j * JS));
                for g in 0..GC {
                    acc[j][g] = _mm512_xor_si512(acc[j][g], times(x[g], m));
                }
            }
        };
        for &(cells, number, mut pairs) in &work.packed[..work.runs] {
            let (mut cells, mut t) = (cells.add(64 * g0), table.add(number * CS));
            let (mut x, mut y) = ([zero; GC], [zero; GC]);
            while pairs >= 2 {
                for g in 0..GC {
                    x[g] = load(cells.add(64 * g));
                    y[g] = load(cells.add(64 * (G + g)));
                }
                add_two(&mut acc, &x, &y, t);
                cells = cells.add(128 * G);
                t = t.add(2 * CS);
                pairs -= 2;
            }
            if pairs == 1 {
                for g in 0..GC {
                    x[g] = load(cells.add(64 * g));
                }
                add_one(&mut acc, &x, t);
            }
        }
        if G == 4 {
            for &(rows, number, mut pairs) in &work.direct[..work.direct_runs] {
                let (mut at, mut t) = (0, table.add(number * CS));
                let (mut x, mut y) = ([zero; GC], [zero; GC]);
                while pairs >= 2 {
                    for g in 0..GC {
                        x[g] = join_neighbours(rows[g0 + g].add(at));
                        y[g] = join_neighbours(rows[g0 + g].add(at + 64));
                    }
                    add_two(&mut acc, &x, &y, t);
                    at += 128;
                    t = t.add(2 * CS);
                    pairs -= 2;
                }
                if pairs == 1 {
                    for g in 0..GC {
                        x[g] = join_neighbours(rows[g0 + g].add(at));
                    }
                    add_one(&mut acc, &x, t);
                }
            }
        }
        for j in 0..KT {
            for g in 0..GC {
                store(out.add(64 * (j * G + g0 + g)), acc[j][g]);
            }
        }
    }
}

/// The products of four rows with KT pairs of vectors: KT cells at `out`.
///
/// # Safety
/// As [`chunk`].
#[target_feature(enable = "avx512f,avx512bw,gfni")]
#[inline]
unsafe fn sweep<const KT: usize, const G: usize, const JS: usize, const CS: usize, const FROM: u8>(
    work: &Work,
    table: *const u64,
    init: *const u8,
    out: *mut u8,
) {
    let mut g = 0;
    // SAFETY: the caller's promise.
    unsafe {
        if KT <= 3 && G == 4 {
            return chunk::<KT, G, 4, JS, CS, FROM>(work, 0, table, init, out);
        }
        if KT <= 6 {
            while g + 3 <= G {
                chunk::<KT, G, 3, JS, CS, FROM>(work, g, table, init, out);
                g += 3;
            }
        }
        while g + 2 <= G {
            chunk::<KT, G, 2, JS, CS, FROM>(work, g, table, init, out);
            g += 2;
        }
        if g < G {
            chunk::<KT, G, 1, JS, CS, FROM>(work, g, table, init, out);
        }
    }
}

/// Constant vectors times the columns of a sweep's result: KA pairs of vectors by rows (`ta`, stride JS) and KB pairs by
/// columns (`tb`). `u` holds, for each of `quads` blocks of four rows, `count` cells. The result for vectors 2a, 2a + 1 and
/// column j is one row of a cell, padded to whole registers, at index `a * 2 count + j` of `wa` or `wb`.
///
/// # Safety
/// The memory must be there: `u` with 64 bytes behind, tables with 2 `quads` pairs, results with 64 bytes behind.
#[target_feature(enable = "avx512f,avx512bw,gfni")]
#[inline(never)]
unsafe fn contract<const KA: usize, const KB: usize, const G: usize, const JS: usize>(
    u: *const u8,
    count: usize,
    quads: usize,
    ta: *const u64,
    tb: *const u64,
    wa: *mut u8,
    wb: *mut u8,
) {
    let registers = row_registers(G);
    // SAFETY: the caller's promise.
    unsafe {
        for j in 0..count {
            for z in 0..registers {
                let mut a = [[_mm512_setzero_si512(); 2]; KA];
                let mut b = [[_mm512_setzero_si512(); 2]; KB];
                let mut at = u.add(64 * (j * G + z));
                let (mut ta, mut tb) = (ta, tb);
                for _ in 0..quads {
                    let (r0, r1) = (load(at), load(at.add(16 * G)));
                    let (r2, r3) = (load(at.add(32 * G)), load(at.add(48 * G)));
                    let (x0, x1) = (lows(r0, r1), highs(r0, r1));
                    let (y0, y1) = (lows(r2, r3), highs(r2, r3));
                    for i in 0..KA {
                        let (m, n) = (broadcast(ta.add(i * JS)), broadcast(ta.add(i * JS + 1)));
                        a[i][0] = sum3(a[i][0], times(x0, m), times(y0, n));
                        a[i][1] = sum3(a[i][1], times(x1, m), times(y1, n));
                    }
                    for i in 0..KB {
                        let (m, n) = (broadcast(tb.add(i)), broadcast(tb.add(i + KB)));
                        b[i][0] = sum3(b[i][0], times(x0, m), times(y0, n));
                        b[i][1] = sum3(b[i][1], times(x1, m), times(y1, n));
                    }
                    at = at.add(64 * count * G);
                    ta = ta.wrapping_add(2);
                    tb = tb.wrapping_add(2 * KB);
                }
                for h in 0..2 {
                    for i in 0..KA {
                        store(wa.add(64 * ((i * 2 * count + 2 * j + h) * registers + z)), a[i][h]);
                    }
                    for i in 0..KB {
                        store(wb.add(64 * ((i * 2 * count + 2 * j + h) * registers + z)), b[i][h]);
                    }
                }
            }
        }
    }
}

/// Register h of the m-vector that result (vector i, column j) of a [`contract`] over `columns` columns is.
///
/// # Safety
/// w must be such a result.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
unsafe fn vector<const G: usize>(w: *const u8, columns: usize, i: usize, j: usize, h: usize) -> Z {
    // SAFETY: the caller's promise.
    unsafe {
        let at = w.add(64 * ((i / 2 * columns + j) * row_registers(G) + h));
        let (e, o) = (load(at), load(at.add(8 * G)));
        if i % 2 == 0 { lows(e, o) } else { highs(e, o) }
    }
}

/// Writes u: the sums of both orders of every pair of vectors, as padded m-vectors in schedule order.
///
/// # Safety
/// w must be the result of a [`contract`] of k vectors over `2 * k.div_ceil(2)` columns.
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn store_pairs<const S: usize, const G: usize>(w: *const u8, u: &mut [Block]) {
    let set = const { Params::by_index(S) };
    let columns = 2 * set.k.div_ceil(2);
    let registers = const { vector_registers(Params::by_index(S)) };
    for (out, &(i, j)) in u.chunks_exact_mut(registers).zip(set.schedule) {
        let (i, j) = (usize::from(i), usize::from(j));
        for (h, out) in out.iter_mut().enumerate() {
            // SAFETY: i and j are below k.
            unsafe {
                let mut sum = vector::<G>(w, columns, i, j, h);
                if i != j {
                    sum = _mm512_xor_si512(sum, vector::<G>(w, columns, j, i, h));
                }
                store(out.0.as_mut_ptr(), _mm512_maskz_mov_epi8(first(set.m_bytes() - 64 * h), sum));
            }
        }
    }
}

/// See `SetKernels::keygen`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
pub(super) fn keygen<const S: usize, const OP: usize, const G: usize>(
    p: &[u8],
    o: &[u8],
    p3: &mut [u8],
    scratch: &mut [Block],
) {
    let set = const { Params::by_index(S) };
    let (v, oil, mb) = (set.v(), set.o, set.m_bytes());
    let (mut scratch, _) = scratch.split_at_mut(const { keygen_blocks(Params::by_index(S)) });
    let to: *mut u64 = take(&mut scratch, 8 * (2 * quads(v) * OP + 16)).cast();
    let x = take(&mut scratch, 64 * quads(v) * OP * G + 64);
    let w = take(&mut scratch, 64 * (2 * OP * OP * row_registers(G) + 1));
    // SAFETY: p holds P1 and P2 with slack, o v x o elements; the scratch was cut to the sizes that the functions ask for.
    unsafe {
        table_of_columns::<OP>(o.as_ptr(), v, oil, 2 * quads(v), to);
        oil_rows::<S, OP, G>(p, to, x, scratch);
        contract::<0, OP, G, 0>(x, OP, quads(v), core::ptr::null(), to, core::ptr::null_mut(), w);
        let mut at = 0;
        for i in 0..oil {
            for j in i..oil {
                for h in 0..const { vector_registers(Params::by_index(S)) } {
                    let mut sum = vector::<G>(w, 2 * OP, i, j, h);
                    if i != j {
                        sum = _mm512_xor_si512(sum, vector::<G>(w, 2 * OP, j, i, h));
                    }
                    let out = &mut p3[at + 64 * h..];
                    if out.len() >= 64 {
                        store(out.as_mut_ptr(), sum);
                    } else {
                        let mask = first((mb - 64 * h).min(out.len()));
                        _mm512_mask_storeu_epi8(out.as_mut_ptr().cast(), mask, sum);
                    }
                }
                at += mb;
            }
        }
    }
}

/// X = P1 O + P2, as cells.
///
/// # Safety
/// p must hold P1 and P2 with slack, `to` the matrices of O, x room for all blocks of OP cells.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
#[inline]
unsafe fn oil_rows<const S: usize, const OP: usize, const G: usize>(
    p: &[u8],
    to: *const u64,
    x: *mut u8,
    mut scratch: &mut [Block],
) {
    let set = const { Params::by_index(S) };
    let (v, oil, mb) = (set.v(), set.o, set.m_bytes());
    let cells = take(&mut scratch, p1_cells(set, 0) + 64);
    let p2 = take(&mut scratch, p2_cells(set) + 64);
    // SAFETY: the caller's promise; the buffers hold the cells of the longest rows.
    unsafe {
        for b in 0..quads(v) {
            let mut work = Work::NONE;
            work.triangle::<G>(cells, p.as_ptr(), v, mb, b, 0);
            pack_rows::<G>(p2, p.as_ptr().add(set.p1_vecs() * mb), v, oil, mb, b, 0..OP);
            sweep::<OP, G, 1, OP, ALL>(&work, to, p2, x.add(64 * b * OP * G));
        }
    }
}

/// Packs the linear term's m-vectors of rows 4b to 4b + 3 as the low nibbles of a cell.
///
/// # Safety
/// lambda must have `rows` m-vectors and slack, `to` room for a cell and 24 bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn pack_lambda<const G: usize>(to: *mut u8, lambda: *const u8, rows: usize, mb: usize, b: usize) {
    // A column of m-vectors is a matrix of width 1.
    // SAFETY: the caller's promise.
    unsafe { pack_rows::<G>(to, lambda, rows, 1, mb, b, 0..1) }
}

/// See `SetKernels::sign`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
pub(super) fn sign<const S: usize, const KP: usize, const OP: usize, const G: usize, const JS: usize>(
    p: &[u8],
    o: &[u8],
    vinegar: &[u8],
    lambda: &[u8],
    m: &mut [Block],
    u: &mut [Block],
    mut scratch: &mut [Block],
) {
    let set = const { Params::by_index(S) };
    let (v, oil, k, mb) = (set.v(), set.o, set.k, set.m_bytes());
    let tv: *mut u64 = take(&mut scratch, 8 * KP * JS).cast();
    let to: *mut u64 = take(&mut scratch, 8 * (2 * quads(v) * OP + 16)).cast();
    let cells = take(&mut scratch, p1_cells(set, 0) + 64);
    let p2 = take(&mut scratch, p2_cells(set) + 64);
    let linear = take(&mut scratch, 64 * (G + 1));
    let us = take(&mut scratch, 64 * (quads(v) * KP * G + 1));
    let xs = take(&mut scratch, 64 * (quads(v) * OP * G + 1));
    let registers = row_registers(G);
    let w_pairs = take(&mut scratch, 64 * (2 * KP * KP * registers + 1));
    let w_oil = take(&mut scratch, 64 * (2 * KP * OP * registers + 1));
    let w_x = take(&mut scratch, 64 * (2 * KP * OP * registers + 1));
    // SAFETY: p holds P1 and P2 with slack, the elements and lambda are as long as the contract says, and the scratch was
    // cut to the sizes that the functions ask for.
    unsafe {
        table_of_rows(vinegar.as_ptr(), v, k, v, tv, JS);
        table_of_columns::<OP>(o.as_ptr(), v, oil, 2 * quads(v), to);
        for b in 0..quads(v) {
            let mut work = Work::NONE;
            work.triangle::<G>(cells, p.as_ptr(), v, mb, b, 0);
            pack_rows::<G>(p2, p.as_ptr().add(set.p1_vecs() * mb), v, oil, mb, b, 0..OP);
            let out = us.add(64 * b * KP * G);
            if set.linear_term {
                pack_lambda::<G>(linear, lambda.as_ptr(), v, mb, b);
                sweep::<KP, G, JS, 1, FIRST>(&work, tv, linear, out);
            } else {
                sweep::<KP, G, JS, 1, ZERO>(&work, tv, core::ptr::null(), out);
            }
            sweep::<OP, G, 1, OP, ALL>(&work, to, p2, xs.add(64 * b * OP * G));
        }
        contract::<KP, OP, G, JS>(us, KP, quads(v), tv, to, w_pairs, w_oil);
        contract::<KP, 0, G, JS>(xs, OP, quads(v), tv, core::ptr::null(), w_x, core::ptr::null_mut());
        store_pairs::<S, G>(w_pairs, u);
        let per_vector = const { vector_registers(Params::by_index(S)) };
        for (at, out) in m.chunks_exact_mut(per_vector).enumerate() {
            let (i, j) = (at / oil, at % oil);
            for (h, out) in out.iter_mut().enumerate() {
                let mut sum =
                    _mm512_xor_si512(vector::<G>(w_x, 2 * OP, i, j, h), vector::<G>(w_oil, 2 * KP, j, i, h));
                if set.linear_term && i == 0 {
                    sum = _mm512_xor_si512(
                        sum,
                        load_part(lambda.as_ptr().add((v + j) * mb + 64 * h), mb - 64 * h),
                    );
                }
                store(out.0.as_mut_ptr(), _mm512_maskz_mov_epi8(first(mb - 64 * h), sum));
            }
        }
    }
}

/// Verification from cells that lie in `expanded` (see [`expand_public`]) or are packed on the way from P and P3.
///
/// # Safety
/// `cells` must be the whole layout if EXPANDED; otherwise p and p3 must hold P and P3 with slack.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
#[inline]
unsafe fn verify_cells<
    const S: usize,
    const KP: usize,
    const G: usize,
    const JS: usize,
    const EXPANDED: bool,
>(
    expanded: *const u8,
    p: *const u8,
    p3: *const u8,
    s: &[u8],
    lambda: &[u8],
    u: &mut [Block],
    mut scratch: &mut [Block],
) {
    let set = const { Params::by_index(S) };
    let (n, v, oil, k, mb) = (set.n, set.v(), set.o, set.k, set.m_bytes());
    let op = oil.div_ceil(2);
    let t: *mut u64 = take(&mut scratch, 8 * KP * JS).cast();
    let buffer = if EXPANDED {
        core::ptr::null_mut()
    } else {
        take(&mut scratch, p1_cells(set, 0) + p2_cells(set) + 64)
    };
    let linear = take(&mut scratch, 64 * (G + 1));
    let rows = quads(v) + quads(oil);
    let ps = take(&mut scratch, 64 * (rows * KP * G + 1));
    let w = take(&mut scratch, 64 * (2 * KP * KP * row_registers(G) + 1));
    let mut cells = expanded;
    // SAFETY: as in `sign`; s is k x n elements.
    unsafe {
        // The columns of P2 begin a new pair, also where v is odd.
        let oil_number = 2 * quads(v);
        table_of_rows(s.as_ptr(), n, k, v, t, JS);
        table_of_rows(s.as_ptr().add(v), n, k, oil, t.add(oil_number), JS);
        let finish = |work: &Work, b: usize, lambda: *const u8, rows: usize, at: usize| {
            let out = ps.add(64 * at * KP * G);
            if set.linear_term {
                pack_lambda::<G>(linear, lambda, rows, mb, b);
                sweep::<KP, G, JS, 1, FIRST>(work, t, linear, out);
            } else {
                sweep::<KP, G, JS, 1, ZERO>(work, t, core::ptr::null(), out);
            }
        };
        for b in 0..quads(v) {
            let mut work = Work::NONE;
            if EXPANDED {
                work.packed(cells, 2 * b, v.div_ceil(2) - 2 * b);
                cells = cells.add(p1_cells(set, b));
                work.packed(cells, oil_number, op);
                cells = cells.add(p2_cells(set));
            } else {
                let rest = work.triangle::<G>(buffer, p, v, mb, b, 0);
                work.rows::<G>(rest, p.add(set.p1_vecs() * mb), v, oil, mb, b, oil_number);
            }
            finish(&work, b, lambda.as_ptr(), v, b);
        }
        for b in 0..quads(oil) {
            let mut work = Work::NONE;
            if EXPANDED {
                work.packed(cells, oil_number + 2 * b, op - 2 * b);
                cells = cells.add(64 * (op - 2 * b) * G);
            } else {
                work.triangle::<G>(buffer, p3, oil, mb, b, oil_number);
            }
            finish(&work, b, lambda.as_ptr().wrapping_add(v * mb), oil, quads(v) + b);
        }
        contract::<KP, 0, G, JS>(ps, KP, rows, t, core::ptr::null(), w, core::ptr::null_mut());
        store_pairs::<S, G>(w, u);
    }
}

/// See `SetKernels::verify`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
pub(super) fn verify<const S: usize, const KP: usize, const G: usize, const JS: usize>(
    p: &[u8],
    p3: &[u8],
    s: &[u8],
    lambda: &[u8],
    u: &mut [Block],
    scratch: &mut [Block],
) {
    // SAFETY: the contract's lengths.
    unsafe {
        verify_cells::<S, KP, G, JS, false>(
            core::ptr::null(),
            p.as_ptr(),
            p3.as_ptr(),
            s,
            lambda,
            u,
            scratch,
        );
    }
}

/// An expanded public key: the cells of four rows of P1 and of P2, block after block, then those of P3.
pub(super) const fn public_blocks(p: &Params) -> usize {
    (all_p1_cells(p) + quads(p.v()) * p2_cells(p) + p3_cells(p)) / 64 + 1
}

/// See `SetKernels::expand_public`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
pub(super) fn expand_public<const S: usize, const G: usize>(p: &[u8], p3: &[u8], expanded: &mut [Block]) {
    let set = const { Params::by_index(S) };
    let (v, oil, mb) = (set.v(), set.o, set.m_bytes());
    let mut to: *mut u8 = expanded.as_mut_ptr().cast();
    // SAFETY: the contract's lengths; `public_blocks` counts the cells and a block for the stores past the last one.
    unsafe {
        for b in 0..quads(v) {
            pack_triangle::<G>(to, p.as_ptr(), v, mb, b, 2 * b..v.div_ceil(2));
            to = to.add(p1_cells(set, b));
            pack_rows::<G>(to, p.as_ptr().add(set.p1_vecs() * mb), v, oil, mb, b, 0..oil.div_ceil(2));
            to = to.add(p2_cells(set));
        }
        for b in 0..quads(oil) {
            let cells = 2 * b..oil.div_ceil(2);
            pack_triangle::<G>(to, p3.as_ptr(), oil, mb, b, cells.clone());
            to = to.add(64 * G * cells.len());
        }
    }
}

/// See `SetKernels::verify_expanded`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
pub(super) fn verify_expanded<const S: usize, const KP: usize, const G: usize, const JS: usize>(
    expanded: &[Block],
    s: &[u8],
    lambda: &[u8],
    u: &mut [Block],
    scratch: &mut [Block],
) {
    let none = core::ptr::null();
    // SAFETY: the contract's lengths.
    unsafe {
        verify_cells::<S, KP, G, JS, true>(expanded.as_ptr().cast(), none, none, s, lambda, u, scratch);
    }
}

/// An expanded secret key: the cells of P1, then those of L, OP for each block of four rows.
pub(super) const fn secret_blocks(p: &Params) -> usize {
    (all_p1_cells(p) + quads(p.v()) * p2_cells(p)) / 64 + 1
}

/// See `SetKernels::expand_secret`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
pub(super) fn expand_secret<const S: usize, const OP: usize, const G: usize>(
    p: &[u8],
    o: &[u8],
    expanded: &mut [Block],
    mut scratch: &mut [Block],
) {
    let set = const { Params::by_index(S) };
    let (v, oil, mb) = (set.v(), set.o, set.m_bytes());
    let to: *mut u64 = take(&mut scratch, 8 * (2 * quads(v) * OP + 16)).cast();
    let x = take(&mut scratch, 64 * (quads(v) * OP * G + 1));
    let mut out: *mut u8 = expanded.as_mut_ptr().cast();
    // SAFETY: the contract's lengths; `secret_blocks` counts the cells and a block for the stores past the last one.
    unsafe {
        table_of_columns::<OP>(o.as_ptr(), v, oil, 2 * quads(v), to);
        oil_rows::<S, OP, G>(p, to, x, scratch);
        for b in 0..quads(v) {
            pack_triangle::<G>(out, p.as_ptr(), v, mb, b, 2 * b..v.div_ceil(2));
            out = out.add(p1_cells(set, b));
        }
        let cells = take(&mut scratch, p1_cells(set, 0) + 64 * (2 * G + 1));
        for b in 0..quads(v) {
            let pairs = pack_transposed::<G>(cells, p.as_ptr(), v, mb, b);
            let mut work = Work::NONE;
            work.packed(cells, 0, pairs);
            sweep::<OP, G, 1, OP, ALL>(&work, to, x.add(64 * b * OP * G), out);
            out = out.add(64 * OP * G);
        }
    }
}

/// See `SetKernels::sign_expanded`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
pub(super) fn sign_expanded<
    const S: usize,
    const KP: usize,
    const OP: usize,
    const G: usize,
    const JS: usize,
>(
    expanded: &[Block],
    o: &[u8],
    vinegar: &[u8],
    lambda: &[u8],
    m: &mut [Block],
    u: &mut [Block],
    mut scratch: &mut [Block],
) {
    let set = const { Params::by_index(S) };
    let (v, oil, k, mb) = (set.v(), set.o, set.k, set.m_bytes());
    let tv: *mut u64 = take(&mut scratch, 8 * KP * JS).cast();
    let linear = take(&mut scratch, 64 * (quads(v) * G + 1));
    let us = take(&mut scratch, 64 * (quads(v) * KP * G + 1));
    let registers = row_registers(G);
    let w_pairs = take(&mut scratch, 64 * (2 * KP * KP * registers + 1));
    let w_l = take(&mut scratch, 64 * (2 * KP * OP * registers + 1));
    let w_oil = take(&mut scratch, 64 * (2 * OP * registers + 1));
    let mut cells: *const u8 = expanded.as_ptr().cast();
    // SAFETY: the layout is that of `expand_secret`, the rest as in `sign`.
    unsafe {
        table_of_rows(vinegar.as_ptr(), v, k, v, tv, JS);
        for b in 0..quads(v) {
            let mut work = Work::NONE;
            work.packed(cells, 2 * b, v.div_ceil(2) - 2 * b);
            let out = us.add(64 * b * KP * G);
            if set.linear_term {
                let linear = linear.add(64 * b * G);
                pack_lambda::<G>(linear, lambda.as_ptr(), v, mb, b);
                sweep::<KP, G, JS, 1, FIRST>(&work, tv, linear, out);
            } else {
                sweep::<KP, G, JS, 1, ZERO>(&work, tv, core::ptr::null(), out);
            }
            cells = cells.add(p1_cells(set, b));
        }
        let (none, nowhere) = (core::ptr::null(), core::ptr::null_mut());
        contract::<KP, 0, G, JS>(us, KP, quads(v), tv, none, w_pairs, nowhere);
        contract::<KP, 0, G, JS>(cells, OP, quads(v), tv, none, w_l, nowhere);
        if set.linear_term {
            // O^T lambda, which L does not hold.
            let to: *mut u64 = take(&mut scratch, 8 * (2 * quads(v) * OP + 16)).cast();
            table_of_columns::<OP>(o.as_ptr(), v, oil, 2 * quads(v), to);
            contract::<0, OP, G, 0>(linear, 1, quads(v), none.cast(), to, nowhere, w_oil);
        }
        store_pairs::<S, G>(w_pairs, u);
        let per_vector = const { vector_registers(Params::by_index(S)) };
        for (at, out) in m.chunks_exact_mut(per_vector).enumerate() {
            let (i, j) = (at / oil, at % oil);
            for (h, out) in out.iter_mut().enumerate() {
                let mut sum = vector::<G>(w_l, 2 * OP, i, j, h);
                if set.linear_term && i == 0 {
                    let oil_part = load_part(lambda.as_ptr().add((v + j) * mb + 64 * h), mb - 64 * h);
                    sum = sum3(sum, oil_part, vector::<G>(w_oil, 2, j, 0, h));
                }
                store(out.0.as_mut_ptr(), _mm512_maskz_mov_epi8(first(mb - 64 * h), sum));
            }
        }
    }
}
