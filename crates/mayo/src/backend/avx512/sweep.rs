//! The two kinds of pass that all products are made of (see `products`): sweeps over cells, and contractions of their
//! results.
//!
//! A [`sweep`] of K pairs of vectors over the G registers of a cell runs in chunks of at most 3 of them, so that 18
//! accumulators stay in registers; a matrix comes from memory as a broadcast, half a load on Zen 4, and serves the
//! whole chunk. For each two cells and each accumulator: two affine instructions and one `vpternlog` that adds both.
//! Floor on Zen 4: one 512-bit affine instruction a core cycle (measured 0.99 with one `vpternlog` for two); Zen 5:
//! two. For m = 64 four rows need no packing, and signing takes rows and columns of P1 in one pass ([`sweep_both`]). A
//! [`contract`]ion joins rows r, r + 1 of a result into pairs again, so that the same matrices serve. Source: see
//! `products`. Leak class: constant time in matrices and cells; addresses depend only on sizes.

use super::gf::{Z, add_tails, broadcast, first, highs, join_tails, load, lows, store, sum3, times};
use super::layout::{join_halves, join_neighbours, pack_rows, pack_triangle};
use super::rows::{ALL, FIRST};
use crate::backend::SetSpec;
use crate::params::Sizes;
use crate::sys::Block;
use core::arch::x86_64::*;

/// Registers of a row of a cell, the last perhaps in part.
pub(super) const fn row_registers(g: usize) -> usize {
    (16 * g).div_ceil(64)
}

/// Registers of an m-vector.
pub(super) const fn vector_registers(p: &Sizes) -> usize {
    p.m_bytes().div_ceil(64)
}

/// The cells of a sweep, each with its number: its place in the tables of matrices.
///
/// Four rows of m-vectors of 32 bytes (m = 64) are never packed; rows beyond the matrix are then read as its last one,
/// and a column beyond it as the bytes after it: the matrices of both are 0.
#[derive(Clone, Copy)]
pub(super) struct Work {
    /// Runs of cells in memory: where, the first one's number, how many.
    packed: [(*const u8, usize, usize); 4],
    /// Runs of pairs of m-vectors of 32 bytes: where each row's are, the first one's number, how many.
    direct: [([*const u8; 4], usize, usize); 2],
    runs: usize,
    direct_runs: usize,
    /// The first cells of a triangle's rows, of which only the part in [`EDGES`] is used; as in `direct`, at most 2.
    edge: ([*const u8; 4], usize, usize),
    /// Where the pairs of m-vectors of 32 bytes are that each row's sums begin with; null if `sweep` is given packed
    /// ones.
    start: [*const u8; 4],
}

/// The qwords of the pairs of columns 4b, 4b + 1 and 4b + 2, 4b + 3 that rows 4b to 4b + 3 of an upper triangle have.
const EDGES: [[u8; 4]; 2] = [[0xff, 0xf0, 0, 0], [0xff, 0xff, 0xff, 0xf0]];

impl Work {
    pub(super) const NONE: Work = Work {
        packed: [(core::ptr::null(), 0, 0); 4],
        direct: [([core::ptr::null(); 4], 0, 0); 2],
        runs: 0,
        direct_runs: 0,
        edge: ([core::ptr::null(); 4], 0, 0),
        start: [core::ptr::null(); 4],
    };

    pub(super) fn packed(&mut self, cells: *const u8, number: usize, count: usize) {
        self.packed[self.runs] = (cells, number, count);
        self.runs += 1;
    }

    /// Adds rows 4b to 4b + 3 of a triangle, packing them into `buffer` if needed; cell c has number `number + c`.
    /// Returns the rest of the buffer.
    ///
    /// # Safety
    /// As for [`pack_triangle`].
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    #[inline]
    pub(super) unsafe fn triangle<const G: usize>(
        &mut self,
        buffer: *mut u8,
        base: *const u8,
        width: usize,
        mb: usize,
        b: usize,
        number: usize,
    ) -> *mut u8 {
        let (first, end) = (2 * b, width.div_ceil(2));
        if G == 4 {
            let row = |q: usize| {
                let r = (4 * b + q).min(width - 1);
                base.wrapping_add((r * width).wrapping_sub(r * (r + 1) / 2).wrapping_add(2 * first) * mb)
            };
            let rows = [row(0), row(1), row(2), row(3)];
            let edge = (end - first).min(2);
            self.edge = (rows, number + first, edge);
            self.direct[self.direct_runs] =
                (rows.map(|row| row.wrapping_add(64 * edge)), number + first + edge, end - first - edge);
            self.direct_runs += 1;
            return buffer;
        }
        // SAFETY: the caller's promise.
        unsafe { pack_triangle::<G>(buffer, base, width, mb, b, first..end) };
        self.packed(buffer, number + first, end - first);
        buffer.wrapping_add(64 * G * (end - first))
    }

    /// Adds rows 4b to 4b + 3 of a matrix, as `triangle` does.
    ///
    /// # Safety
    /// As for [`pack_rows`].
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    #[inline]
    pub(super) unsafe fn rows<const G: usize>(
        &mut self,
        buffer: *mut u8,
        Matrix { base, height, width, mb }: Matrix,
        b: usize,
        number: usize,
    ) {
        let end = width.div_ceil(2);
        if G == 4 {
            self.direct[self.direct_runs] = (rows_at(base, height, width * mb, b), number, end);
            self.direct_runs += 1;
            return;
        }
        // SAFETY: the caller's promise.
        unsafe { pack_rows::<G>(buffer, base, height, width, mb, b, 0..end) };
        self.packed(buffer, number, end);
    }

    /// Makes sums begin with rows 4b to 4b + 3 of a matrix of m-vectors; if they need packing, `buffer` gets them, and
    /// is then the `init` of `sweep`.
    ///
    /// # Safety
    /// As for [`pack_rows`].
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    #[inline]
    pub(super) unsafe fn start<const G: usize>(
        &mut self,
        buffer: *mut u8,
        Matrix { base, height, width, mb }: Matrix,
        b: usize,
    ) {
        if G == 4 {
            self.start = rows_at(base, height, width * mb, b);
        } else {
            // SAFETY: the caller's promise.
            unsafe { pack_rows::<G>(buffer, base, height, width, mb, b, 0..width.div_ceil(2)) };
        }
    }
}

/// A matrix of m-vectors, row by row.
pub(super) struct Matrix {
    pub(super) base: *const u8,
    pub(super) height: usize,
    pub(super) width: usize,
    /// Bytes of an m-vector.
    pub(super) mb: usize,
}

/// Where rows 4b to 4b + 3 of a matrix begin, the last one for those beyond.
fn rows_at(base: *const u8, height: usize, row_bytes: usize, b: usize) -> [*const u8; 4] {
    [0, 1, 2, 3].map(|q| base.wrapping_add((4 * b + q).min(height - 1) * row_bytes))
}

/// Registers `g` to `g + GC` of the products of cells with `KT` pairs of vectors.
///
/// # Safety
/// The work's memory must be there; so must the matrices, at strides JS (between pairs of vectors) and CS (between
/// cells); `init` must have what FROM says, and `out` room for KT x G registers.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,gfni")]
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
                    let start = work.start[(g0 + g) % 4];
                    acc[j][g] = if G != 4 || start.is_null() {
                        load(init.add(64 * (j * G + g0 + g)))
                    } else if FROM == FIRST {
                        join_halves(_mm512_maskz_loadu_epi64(0x0f, start.cast()))
                    } else {
                        join_neighbours(start.add(64 * j))
                    };
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
            let (rows, number, cells) = work.edge;
            for (c, &edge) in EDGES.iter().enumerate().take(cells) {
                let mut x = [zero; GC];
                for g in 0..GC {
                    let at = rows[g0 + g].wrapping_add(64 * c);
                    x[g] = join_halves(_mm512_maskz_loadu_epi64(edge[g0 + g], at.cast()));
                }
                add_one(&mut acc, &x, table.add((number + c) * CS));
            }
            for &(rows, number, mut pairs) in &work.direct[..work.direct_runs] {
                let (mut at, mut t) = (0, table.add(number * CS));
                let (mut x, mut y) = ([zero; GC], [zero; GC]);
                while pairs >= 2 {
                    for g in 0..GC {
                        if KT > 3 {
                            // Two rows at a time advance too slowly for the hardware prefetcher.
                            _mm_prefetch::<_MM_HINT_T0>(rows[g0 + g].wrapping_add(at + 512).cast());
                            _mm_prefetch::<_MM_HINT_T0>(rows[g0 + g].wrapping_add(at + 576).cast());
                        }
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
#[target_feature(enable = "avx512f,avx512bw,avx512vl,gfni")]
#[inline]
pub(super) unsafe fn sweep<
    const KT: usize,
    const G: usize,
    const JS: usize,
    const CS: usize,
    const FROM: u8,
>(
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

/// For m = 64, four rows of an upper triangle P by rows and by columns at once: `us` receives the rows' products with
/// KP pairs of vectors, P V^T, as [`sweep`] writes them; `ws`, of that layout but whole, accumulates (P + P^T) V^T,
/// whose block of these rows is then complete. Blocks must come in order.
///
/// Joined rows r, r + 1 make joined columns with two shifts and two `vpternlog`, so that a 64-byte load serves 4 KP
/// products for 2 KP affine instructions and 5 others.
///
/// # Safety
/// As [`chunk`], G being 4; b is the number of the block and `ws` has room for all blocks.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,gfni")]
#[inline(never)]
pub(super) unsafe fn sweep_both<const KP: usize, const JS: usize>(
    work: &Work,
    b: usize,
    table: *const u64,
    us: *mut u8,
    ws: *mut u8,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let zero = _mm512_setzero_si512();
        let mut acc = [[zero; 4]; KP];
        if !work.start[0].is_null() {
            for g in 0..4 {
                acc[0][g] = join_halves(_mm512_maskz_loadu_epi64(0x0f, work.start[g].cast()));
            }
        }
        let mut own = [[zero; 2]; KP];
        for i in 0..KP {
            own[i] = [broadcast(table.add(i * JS + 2 * b)), broadcast(table.add(i * JS + 2 * b + 1))];
        }
        let columns = |x: &[Z; 4], c: usize| {
            let (l, h) = ([lows(x[0], x[1]), highs(x[0], x[1])], [lows(x[2], x[3]), highs(x[2], x[3])]);
            for i in 0..KP {
                for z in 0..2 {
                    let at = ws.add(64 * (c / 2 * KP * 4 + i * 4 + c % 2 * 2 + z));
                    let before = if b == 0 { zero } else { load(at) };
                    store(at, sum3(before, times(l[z], own[i][0]), times(h[z], own[i][1])));
                }
            }
        };
        let (rows, number, cells) = work.edge;
        for (c, &edge) in EDGES.iter().enumerate().take(cells) {
            let mut x = [zero; 4];
            for g in 0..4 {
                x[g] = join_halves(_mm512_maskz_loadu_epi64(edge[g], rows[g].wrapping_add(64 * c).cast()));
            }
            for i in 0..KP {
                let m = broadcast(table.add(i * JS + number + c));
                for g in 0..4 {
                    acc[i][g] = _mm512_xor_si512(acc[i][g], times(x[g], m));
                }
            }
            columns(&x, number + c);
        }
        let (rows, number, cells) = work.direct[0];
        let (mut at, mut c) = (0, number);
        let end = number + cells;
        while c + 2 <= end {
            let (mut x, mut y) = ([zero; 4], [zero; 4]);
            for g in 0..4 {
                x[g] = join_neighbours(rows[g].add(at));
                y[g] = join_neighbours(rows[g].add(at + 64));
            }
            for i in 0..KP {
                let (m, n) = (broadcast(table.add(i * JS + c)), broadcast(table.add(i * JS + c + 1)));
                for g in 0..4 {
                    acc[i][g] = sum3(acc[i][g], times(x[g], m), times(y[g], n));
                }
            }
            columns(&x, c);
            columns(&y, c + 1);
            at += 128;
            c += 2;
        }
        if c < end {
            let mut x = [zero; 4];
            for g in 0..4 {
                x[g] = join_neighbours(rows[g].add(at));
            }
            for i in 0..KP {
                let m = broadcast(table.add(i * JS + c));
                for g in 0..4 {
                    acc[i][g] = _mm512_xor_si512(acc[i][g], times(x[g], m));
                }
            }
            columns(&x, c);
        }
        for i in 0..KP {
            for g in 0..4 {
                let both = ws.add(64 * (b * KP * 4 + i * 4 + g));
                store(us.add(64 * (i * 4 + g)), acc[i][g]);
                store(both, _mm512_xor_si512(load(both), acc[i][g]));
            }
        }
    }
}

/// [`contract`]s m-vectors of 32 bytes as they lie in a matrix of `width` columns, with KA pairs of vectors by rows.
///
/// # Safety
/// As [`contract`]; the matrix has `height` rows and 32 readable bytes after it.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,gfni")]
#[inline(never)]
pub(super) unsafe fn contract_plain<const KA: usize, const JS: usize>(
    matrix: *const u8,
    height: usize,
    width: usize,
    table: *const u64,
    w: *mut u8,
) {
    // SAFETY: the caller's promise; rows beyond the last one are read as that one, and their matrices are 0.
    unsafe {
        let columns = width.next_multiple_of(2);
        for j in 0..columns / 2 {
            let mut a = [[_mm512_setzero_si512(); 2]; KA];
            for quad in 0..height.div_ceil(4) {
                let r = rows_at(matrix, height, 32 * width, quad).map(|row| load(row.add(64 * j)));
                // Both columns' even equations, and their odd ones.
                let (x0, x1) = (lows(r[0], r[1]), highs(r[0], r[1]));
                let (y0, y1) = (lows(r[2], r[3]), highs(r[2], r[3]));
                for i in 0..KA {
                    let t = table.add(i * JS + 2 * quad);
                    let (m, n) = (broadcast(t), broadcast(t.add(1)));
                    a[i][0] = sum3(a[i][0], times(x0, m), times(y0, n));
                    a[i][1] = sum3(a[i][1], times(x1, m), times(y1, n));
                }
            }
            for i in 0..KA {
                let to = w.add(64 * (i * columns + 2 * j));
                store(to, _mm512_shuffle_i64x2::<0x44>(a[i][0], a[i][1]));
                store(to.add(64), _mm512_shuffle_i64x2::<0xee>(a[i][0], a[i][1]));
            }
        }
    }
}

/// Constant vectors times the columns of a sweep's result: KA pairs of vectors by rows (`ta`, stride JS) and KB pairs
/// by columns (`tb`). `u` holds, for each of `quads` blocks of four rows, `count` cells, or with ROWS row by row what
/// `rows::multiply` writes. The result for vectors 2a, 2a + 1 and column j is one row of a cell, padded to whole
/// registers, at index `a * 2 count + j` of `wa` or `wb`.
///
/// # Safety
/// The memory must be there: `u` with 64 bytes behind, tables with 2 `quads` pairs, results with 64 bytes behind.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,gfni")]
#[inline(never)]
pub(super) unsafe fn contract<
    const KA: usize,
    const KB: usize,
    const G: usize,
    const JS: usize,
    const ROWS: bool,
>(
    u: *const u8,
    count: usize,
    quads: usize,
    ta: *const u64,
    tb: *const u64,
    wa: *mut u8,
    wb: *mut u8,
) {
    let registers = row_registers(G);
    // From one row to the next, and from one pair of vectors to the next.
    let (row, pair) = if ROWS { (16 * G * count, 16 * G) } else { (16 * G, 64 * G) };
    // SAFETY: the caller's promise.
    unsafe {
        for j in 0..count {
            for z in 0..registers {
                let mut a = [[_mm512_setzero_si512(); 2]; KA];
                let mut b = [[_mm512_setzero_si512(); 2]; KB];
                let mut at = u.add(j * pair + 64 * z);
                let (mut ta, mut tb) = (ta, tb);
                if 16 * G % 64 == 16 && z + 1 == registers {
                    // The last 16 bytes of a row: 128-bit instructions are half the work for Zen 4.
                    let (mut a_tail, mut b_tail) =
                        ([[_mm_setzero_si128(); 2]; KA], [[_mm_setzero_si128(); 2]; KB]);
                    for _ in 0..quads {
                        let (r0, r1) = (_mm_loadu_si128(at.cast()), _mm_loadu_si128(at.add(row).cast()));
                        let (r2, r3) = (
                            _mm_loadu_si128(at.add(2 * row).cast()),
                            _mm_loadu_si128(at.add(3 * row).cast()),
                        );
                        let (x0, x1) = join_tails(r0, r1);
                        let (y0, y1) = join_tails(r2, r3);
                        for i in 0..KA {
                            let (m, n) = (ta.add(i * JS), ta.add(i * JS + 1));
                            add_tails(&mut a_tail[i], [x0, x1], [y0, y1], m, n);
                        }
                        for i in 0..KB {
                            add_tails(&mut b_tail[i], [x0, x1], [y0, y1], tb.add(i), tb.add(i + KB));
                        }
                        at = at.add(64 * count * G);
                        ta = ta.wrapping_add(2);
                        tb = tb.wrapping_add(2 * KB);
                    }
                    for h in 0..2 {
                        for i in 0..KA {
                            a[i][h] = _mm512_zextsi128_si512(a_tail[i][h]);
                        }
                        for i in 0..KB {
                            b[i][h] = _mm512_zextsi128_si512(b_tail[i][h]);
                        }
                    }
                } else {
                    for _ in 0..quads {
                        let (r0, r1) = (load(at), load(at.add(row)));
                        let (r2, r3) = (load(at.add(2 * row)), load(at.add(3 * row)));
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
pub(super) unsafe fn vector<const G: usize>(w: *const u8, columns: usize, i: usize, j: usize, h: usize) -> Z {
    // SAFETY: the caller's promise.
    unsafe {
        let at = w.add(64 * ((i / 2 * columns + j) * row_registers(G) + h));
        let (e, o) = (load(at), load(at.add(8 * G)));
        if i.is_multiple_of(2) { lows(e, o) } else { highs(e, o) }
    }
}

/// Writes u: the sums of both orders of every pair of vectors, as padded m-vectors in schedule order.
///
/// # Safety
/// w must be the result of a [`contract`] of k vectors over `2 * k.div_ceil(2)` columns.
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) unsafe fn store_pairs<S: SetSpec, const G: usize>(w: *const u8, u: &mut [Block]) {
    let set = S::SIZES;
    let columns = 2 * set.k.div_ceil(2);
    let registers = const { vector_registers(S::SIZES) };
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
