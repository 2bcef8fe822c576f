//! The products of keygen, signing and verification.
//!
//! Everything is two kinds of pass. First, rows of a matrix of m-vectors times constant vectors: U = P1 V^T, X = P1 O +
//! P2, P S^T. Expanded keys, and signing but for m = 108, do it on dense cells of four rows ([`sweep`](super::sweep));
//! keygen and verification of compact keys go row by row without packing ([`rows`](super::rows)), and m = 64 needs no
//! packing at all. Second, constant vectors times the results ([`contract`]).
//!
//! Signing never forms L = (P1 + P1^T) O + P2. With U = P1 V^T and X = P1 O + P2, both made from each cell of P1 while
//! it is in the first-level cache, M = V L = U^T O + V X: v(v+1)/2 (k + o) + 2vko + vk^2 m-vector products, as many as
//! by columns if k = o, and fewer if k > o. For m = 64, where k is 4 or 5 and o 17 or 13, W = (P1 + P1^T) V^T comes
//! from the same loads as U, and M = W^T O + V P2: v(v+1)/2 2k instead of (k + o), and P2 is used without packing.
//!
//! Floor: m / 256 affine instructions for an m-vector product, at one 512-bit affine a core cycle on Zen 4 (1.42 core
//! cycles a tick there), two on Zen 5; `vpternlog` adds two products at once. In ticks on Zen 4, round 2, floor and
//! measured median: keygen 6.3 k, 9.5 k, 20.7 k, 55.5 k against 13.4 k, 16.0 k, 30.0 k, 94.5 k; signing 16.3 k, 4.7 k,
//! 47.7 k, 119 k against 29.2 k, 9.4 k, 70.4 k, 188 k; verification 9.9 k, 2.6 k, 27.2 k, 64.4 k against 18.6 k, 5.3 k,
//! 40.8 k, 105 k, and from expanded keys 12.9 k, 3.4 k, 35.0 k, 74.0 k. Source: the 2x2 form follows from the affine
//! instruction's definition; MAYO-C's round-3 code has it too. The dense cells and the U, X schedule are new. Leak
//! class: constant time in O, V, s and everything made of them; only the set decides branches.

use super::gf::{first, load_part, store, sum3, table_of_columns, table_of_rows, take};
use super::layout::{pack_rows, pack_transposed, pack_triangle};
use super::rows::{ALL, FIRST, Row, ZERO, multiply};
use super::sweep::{
    Matrix, Work, contract, contract_plain, row_registers, store_pairs, sweep, sweep_both, vector,
    vector_registers,
};
use crate::backend::SetSpec;
use crate::params::Sizes;
use crate::sys::Block;
use core::arch::x86_64::*;
use core::mem::MaybeUninit;

/// Blocks of four rows.
const fn quads(rows: usize) -> usize {
    rows.div_ceil(4)
}

/// Registers of a cell.
pub(super) const fn cell(p: &Sizes) -> usize {
    p.m_bytes().div_ceil(8)
}

/// Qwords from one pair of vectors to the next in a table of matrices: columns of P1, then of P2.
pub(super) const fn table_stride(p: &Sizes) -> usize {
    2 * quads(p.v()) + (p.o.div_ceil(2)).next_multiple_of(8) + 8
}

/// Bytes of the cells of rows 4b to 4b + 3 of P1.
const fn p1_cells(p: &Sizes, b: usize) -> usize {
    (p.v().div_ceil(2) - 2 * b) * cell(p) * 64
}

/// Bytes of the cells of all P1.
const fn all_p1_cells(p: &Sizes) -> usize {
    let (mut bytes, mut b) = (0, 0);
    while b < quads(p.v()) {
        bytes += p1_cells(p, b);
        b += 1;
    }
    bytes
}

const fn p2_cells(p: &Sizes) -> usize {
    p.o.div_ceil(2) * cell(p) * 64
}

const fn p3_cells(p: &Sizes) -> usize {
    let (mut bytes, mut b) = (0, 0);
    while b < quads(p.o) {
        bytes += (p.o.div_ceil(2) - 2 * b) * cell(p) * 64;
        b += 1;
    }
    bytes
}

/// Scratch for the largest of this file's kernels.
pub(super) const fn scratch_blocks(p: &Sizes) -> usize {
    let (kp, op, g) = (p.k.div_ceil(2), p.o.div_ceil(2), cell(p));
    let rows = quads(p.v()) + quads(p.o);
    let tables = kp * table_stride(p) + (2 * quads(p.v()) * op + 16);
    let cells = p1_cells(p, 0) + p2_cells(p) + 64 * (rows + 4) * g;
    let results = 64 * (rows * (kp + op) * g + (2 * kp * kp + 4 * kp * op + 2 * op * op) * row_registers(g));
    (8 * tables + cells + results).div_ceil(64) + 32
}

/// The part of it that `keygen` uses.
pub(super) const fn keygen_blocks(p: &Sizes) -> usize {
    let (op, g) = (p.o.div_ceil(2), cell(p));
    let table = (8 * (2 * quads(p.v()) * op + 16)).div_ceil(64);
    let results = quads(p.v()) * op * g + 1 + 2 * op * op * row_registers(g) + 1;
    table + results + (p1_cells(p, 0) + p2_cells(p)) / 64 + 2
}

/// The part of it that `sign` uses.
pub(super) const fn sign_blocks(p: &Sizes) -> usize {
    let (kp, op, g) = (p.k.div_ceil(2), p.o.div_ceil(2), cell(p));
    let tables = (8 * kp * table_stride(p)).div_ceil(64) + (8 * (2 * quads(p.v()) * op + 16)).div_ceil(64);
    let cells = (p1_cells(p, 0) + p2_cells(p)) / 64 + 2 + g + 1;
    let results = quads(p.v()) * (kp + op) * g + 2 + (2 * kp * kp + 4 * kp * op) * row_registers(g) + 3;
    tables + cells + results
}

/// The part of it that `sign_expanded` uses.
pub(super) const fn sign_expanded_blocks(p: &Sizes) -> usize {
    let (kp, op, g) = (p.k.div_ceil(2), p.o.div_ceil(2), cell(p));
    let tables = (8 * kp * table_stride(p)).div_ceil(64) + (8 * (2 * quads(p.v()) * op + 16)).div_ceil(64);
    let results = (2 * kp * kp + 2 * kp * op + 2 * op) * row_registers(g) + 3;
    tables + quads(p.v()) * (kp + 1) * g + 2 + results
}

/// Whether keygen and verification go row by row: m-vectors that fill registers well enough without packing.
const fn by_rows(g: usize) -> bool {
    matches!(g, 5 | 7 | 9)
}

/// Whether signing does: with twice as many constant vectors, dense cells pay for their packing unless m = 108, whose
/// rows waste least.
const fn sign_by_rows(g: usize) -> bool {
    g == 7
}

/// Whether signing goes over P1 by rows and by columns instead of multiplying it with O: at m = 64 columns are joined
/// in registers, and if k < o that takes fewer products. W then fits where X would be.
const fn both_ways(p: &Sizes) -> bool {
    cell(p) == 4 && p.k < p.o
}

/// See `SetKernels::keygen`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
pub(super) fn keygen<S: SetSpec, const OP: usize, const G: usize>(
    p: &[u8],
    o: &[u8],
    p3: &mut [u8],
    scratch: &mut [Block],
) {
    let set = S::SIZES;
    let (v, oil, mb) = (set.v(), set.o, set.m_bytes());
    let (mut scratch, _) = scratch.split_at_mut(const { keygen_blocks(S::SIZES) });
    let to: *mut u64 = take(&mut scratch, 8 * (2 * quads(v) * OP + 16)).cast();
    let x = take(&mut scratch, 64 * quads(v) * OP * G + 64);
    let w = take(&mut scratch, 64 * (2 * OP * OP * row_registers(G) + 1));
    // SAFETY: p holds P1 and P2 with slack, o v x o elements; the scratch was cut to the sizes that the functions need.
    unsafe {
        table_of_columns::<OP>(o.as_ptr(), v, oil, 2 * quads(v), to);
        if const { by_rows(G) } {
            for r in 0..v {
                let row = Row::of_triangle(p.as_ptr(), v, mb, r, 0);
                let p2 = p.as_ptr().add((set.p1_vecs() + r * oil) * mb);
                multiply::<OP, G, 1, OP, ALL>(&row, mb, to, p2, x.add(16 * G * OP * r));
            }
        } else {
            oil_rows::<S, OP, G>(p, to, x, scratch);
        }
        let (none, nowhere) = (core::ptr::null(), core::ptr::null_mut());
        if const { by_rows(G) } {
            contract::<0, OP, G, 0, true>(x, OP, quads(v), none, to, nowhere, w);
        } else {
            contract::<0, OP, G, 0, false>(x, OP, quads(v), none, to, nowhere, w);
        }
        let mut at = 0;
        for i in 0..oil {
            for j in i..oil {
                for h in 0..const { vector_registers(S::SIZES) } {
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
unsafe fn oil_rows<S: SetSpec, const OP: usize, const G: usize>(
    p: &[u8],
    to: *const u64,
    x: *mut u8,
    mut scratch: &mut [Block],
) {
    let set = S::SIZES;
    let (v, oil, mb) = (set.v(), set.o, set.m_bytes());
    let cells = take(&mut scratch, p1_cells(set, 0) + 64);
    let p2 = take(&mut scratch, p2_cells(set) + 64);
    // SAFETY: the caller's promise; the buffers hold the cells of the longest rows.
    unsafe {
        for b in 0..quads(v) {
            let mut work = Work::NONE;
            work.triangle::<G>(cells, p.as_ptr(), v, mb, b, 0);
            let base = p.as_ptr().add(set.p1_vecs() * mb);
            work.start::<G>(p2, Matrix { base, height: v, width: oil, mb }, b);
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
pub(super) fn sign<S: SetSpec, const KP: usize, const OP: usize, const G: usize, const JS: usize>(
    p: &[u8],
    o: &[u8],
    vinegar: &[u8],
    lambda: &[u8],
    m: &mut [Block],
    u: &mut [Block],
    mut scratch: &mut [Block],
) {
    let set = S::SIZES;
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
    // SAFETY: p holds P1 and P2 with slack, the elements and lambda have the contract's lengths, and the scratch was
    // cut to the sizes that the functions need.
    unsafe {
        table_of_rows(vinegar.as_ptr(), v, k, v, tv, JS);
        table_of_columns::<OP>(o.as_ptr(), v, oil, 2 * quads(v), to);
        if const { both_ways(S::SIZES) } {
            for b in 0..quads(v) {
                let mut work = Work::NONE;
                work.triangle::<G>(cells, p.as_ptr(), v, mb, b, 0);
                if set.linear_term {
                    work.start::<G>(linear, Matrix { base: lambda.as_ptr(), height: v, width: 1, mb }, b);
                }
                // X is not needed: its place takes (P1 + P1^T) V^T.
                sweep_both::<KP, JS>(&work, b, tv, us.add(64 * b * KP * G), xs);
            }
        } else if const { sign_by_rows(G) } {
            for r in 0..v {
                let row = Row::of_triangle(p.as_ptr(), v, mb, r, 0);
                let out = us.add(16 * G * KP * r);
                if set.linear_term {
                    multiply::<KP, G, JS, 1, FIRST>(&row, mb, tv, lambda.as_ptr().add(r * mb), out);
                } else {
                    multiply::<KP, G, JS, 1, ZERO>(&row, mb, tv, core::ptr::null(), out);
                }
                let p2 = p.as_ptr().add((set.p1_vecs() + r * oil) * mb);
                multiply::<OP, G, 1, OP, ALL>(&row, mb, to, p2, xs.add(16 * G * OP * r));
            }
        } else {
            for b in 0..quads(v) {
                let mut work = Work::NONE;
                work.triangle::<G>(cells, p.as_ptr(), v, mb, b, 0);
                let out = us.add(64 * b * KP * G);
                if set.linear_term {
                    work.start::<G>(linear, Matrix { base: lambda.as_ptr(), height: v, width: 1, mb }, b);
                    sweep::<KP, G, JS, 1, FIRST>(&work, tv, linear, out);
                } else {
                    sweep::<KP, G, JS, 1, ZERO>(&work, tv, core::ptr::null(), out);
                }
                let base = p.as_ptr().add(set.p1_vecs() * mb);
                work.start::<G>(p2, Matrix { base, height: v, width: oil, mb }, b);
                sweep::<OP, G, 1, OP, ALL>(&work, to, p2, xs.add(64 * b * OP * G));
            }
        }
        let (none, nowhere) = (core::ptr::null(), core::ptr::null_mut());
        if const { both_ways(S::SIZES) } {
            contract::<KP, 0, G, JS, false>(us, KP, quads(v), tv, none, w_pairs, nowhere);
            contract::<0, OP, G, 0, false>(xs, KP, quads(v), none, to, nowhere, w_oil);
            contract_plain::<KP, JS>(p.as_ptr().add(set.p1_vecs() * mb), v, oil, tv, w_x);
        } else if const { sign_by_rows(G) } {
            contract::<KP, OP, G, JS, true>(us, KP, quads(v), tv, to, w_pairs, w_oil);
            contract::<KP, 0, G, JS, true>(xs, OP, quads(v), tv, none, w_x, nowhere);
        } else {
            contract::<KP, OP, G, JS, false>(us, KP, quads(v), tv, to, w_pairs, w_oil);
            contract::<KP, 0, G, JS, false>(xs, OP, quads(v), tv, none, w_x, nowhere);
        }
        store_pairs::<S, G>(w_pairs, u);
        let per_vector = const { vector_registers(S::SIZES) };
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

/// Verification from cells in `expanded` (see [`expand_public`]), or from P and P3, which are packed first.
///
/// # Safety
/// `cells` must be the whole layout if EXPANDED; otherwise p and p3 must hold P and P3 with slack.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
#[inline]
unsafe fn verify_cells<S: SetSpec, const KP: usize, const G: usize, const JS: usize, const EXPANDED: bool>(
    expanded: *const u8,
    p: *const u8,
    p3: *const u8,
    s: &[u8],
    lambda: &[u8],
    u: &mut [Block],
    mut scratch: &mut [Block],
) {
    let set = S::SIZES;
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
        let finish = |work: &mut Work, b: usize, lambda: *const u8, rows: usize, at: usize| {
            let out = ps.add(64 * at * KP * G);
            if set.linear_term {
                work.start::<G>(linear, Matrix { base: lambda, height: rows, width: 1, mb }, b);
                sweep::<KP, G, JS, 1, FIRST>(work, t, linear, out);
            } else {
                sweep::<KP, G, JS, 1, ZERO>(work, t, core::ptr::null(), out);
            }
        };
        if const { !EXPANDED && by_rows(G) } {
            for r in 0..v + oil {
                let mut row = if r < v {
                    Row::of_triangle(p, v, mb, r, 0)
                } else {
                    Row::of_triangle(p3, oil, mb, r - v, oil_number)
                };
                if r < v {
                    row.runs[1] = (p.add((set.p1_vecs() + r * oil) * mb), oil_number, op);
                }
                let out = ps.add(16 * G * KP * (if r < v { r } else { 4 * quads(v) + r - v }));
                if set.linear_term {
                    let lambda = lambda.as_ptr().add(r * mb);
                    multiply::<KP, G, JS, 1, FIRST>(&row, mb, t, lambda, out);
                } else {
                    multiply::<KP, G, JS, 1, ZERO>(&row, mb, t, core::ptr::null(), out);
                }
            }
            let (none, nowhere) = (core::ptr::null(), core::ptr::null_mut());
            contract::<KP, 0, G, JS, true>(ps, KP, rows, t, none, w, nowhere);
            store_pairs::<S, G>(w, u);
            return;
        }
        for b in 0..quads(v) {
            let mut work = Work::NONE;
            if EXPANDED {
                work.packed(cells, 2 * b, v.div_ceil(2) - 2 * b);
                cells = cells.add(p1_cells(set, b));
                work.packed(cells, oil_number, op);
                cells = cells.add(p2_cells(set));
            } else {
                let rest = work.triangle::<G>(buffer, p, v, mb, b, 0);
                let base = p.add(set.p1_vecs() * mb);
                work.rows::<G>(rest, Matrix { base, height: v, width: oil, mb }, b, oil_number);
            }
            finish(&mut work, b, lambda.as_ptr(), v, b);
        }
        for b in 0..quads(oil) {
            let mut work = Work::NONE;
            if EXPANDED {
                work.packed(cells, oil_number + 2 * b, op - 2 * b);
                cells = cells.add(64 * (op - 2 * b) * G);
            } else {
                work.triangle::<G>(buffer, p3, oil, mb, b, oil_number);
            }
            finish(&mut work, b, lambda.as_ptr().wrapping_add(v * mb), oil, quads(v) + b);
        }
        contract::<KP, 0, G, JS, false>(ps, KP, rows, t, core::ptr::null(), w, core::ptr::null_mut());
        store_pairs::<S, G>(w, u);
    }
}

/// See `SetKernels::verify`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
pub(super) fn verify<S: SetSpec, const KP: usize, const G: usize, const JS: usize>(
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
pub(super) const fn public_blocks(p: &Sizes) -> usize {
    (all_p1_cells(p) + quads(p.v()) * p2_cells(p) + p3_cells(p)) / 64 + 1
}

/// See `PublicLayout`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
pub(super) fn expand_public<S: SetSpec, const G: usize>(
    p: &[u8],
    p3: &[u8],
    expanded: &mut [MaybeUninit<Block>],
) {
    let set = S::SIZES;
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

/// See `PublicLayout`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
pub(super) fn verify_expanded<S: SetSpec, const KP: usize, const G: usize, const JS: usize>(
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
pub(super) const fn secret_blocks(p: &Sizes) -> usize {
    (all_p1_cells(p) + quads(p.v()) * p2_cells(p)) / 64 + 1
}

/// See `SetKernels::expand_secret`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
pub(super) fn expand_secret<S: SetSpec, const OP: usize, const G: usize>(
    p: &[u8],
    o: &[u8],
    expanded: &mut [Block],
    mut scratch: &mut [Block],
) {
    let set = S::SIZES;
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
pub(super) fn sign_expanded<S: SetSpec, const KP: usize, const OP: usize, const G: usize, const JS: usize>(
    expanded: &[Block],
    o: &[u8],
    vinegar: &[u8],
    lambda: &[u8],
    m: &mut [Block],
    u: &mut [Block],
    mut scratch: &mut [Block],
) {
    let set = S::SIZES;
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
        contract::<KP, 0, G, JS, false>(us, KP, quads(v), tv, none, w_pairs, nowhere);
        contract::<KP, 0, G, JS, false>(cells, OP, quads(v), tv, none, w_l, nowhere);
        if set.linear_term {
            // O^T lambda, which L does not hold.
            let to: *mut u64 = take(&mut scratch, 8 * (2 * quads(v) * OP + 16)).cast();
            table_of_columns::<OP>(o.as_ptr(), v, oil, 2 * quads(v), to);
            contract::<0, OP, G, 0, false>(linear, 1, quads(v), none.cast(), to, nowhere, w_oil);
        }
        store_pairs::<S, G>(w_pairs, u);
        let per_vector = const { vector_registers(S::SIZES) };
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
