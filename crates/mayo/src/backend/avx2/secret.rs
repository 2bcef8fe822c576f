//! Expanded secret keys: P1 and L = (P1 + P1^T) O + P2, so that signing needs neither P2 nor the second pass over P1.
//!
//! Both are laid out as unpacked operands in the order in which signing reads them (for each pair of rows and each
//! chunk P1's columns, then for each chunk and column of L its pairs of rows). Larger keys than `LAID_OUT_MAX` keep P1
//! as it is and lay out only L. Leak class: constant time in O, V, L and everything made of them.

use core::arch::x86_64::*;

use super::eliminate::powers;
use super::lanes::{Sums, Y, chunk_bytes, fold, put, take, unpack};
use super::products::{add_bytes, oil_rows, pair_at, second_symmetric, vinegar_rows};
use super::shape::{Shape, Triangle, halves, oil_tables, start, vector_tables};
use crate::backend::{SLACK, SetSpec};
use crate::params::Sizes;
use crate::sys::{Block, bytes_mut};

/// Bytes of P1's operands.
const fn p1_operand_bytes(s: &Shape) -> usize {
    let (mut total, mut row) = (0, 0);
    while row < s.v {
        total += s.v - row;
        row += 2;
    }
    total * s.regs * size_of::<Y>()
}

/// Bytes of L's operands.
const fn l_bytes(s: &Shape) -> usize {
    s.o * s.v_even / 2 * s.regs * size_of::<Y>()
}

/// Whether P1 is laid out.
const fn laid_out(s: &Shape) -> bool {
    p1_operand_bytes(s) + l_bytes(s) <= super::LAID_OUT_MAX
}

/// Blocks before L.
const fn l_offset(p: &Sizes) -> usize {
    let s = Shape::of(p);
    (if laid_out(&s) { p1_operand_bytes(&s) } else { p.p1_vecs() * p.m_bytes() + SLACK }).div_ceil(64)
}

/// See `SetKernels::secret_blocks`.
pub(super) const fn secret_blocks(p: &Sizes) -> usize {
    l_offset(p) + l_bytes(&Shape::of(p)).div_ceil(64)
}

/// L's rows r, r + 1 for one chunk, from their accumulators to the operands of every column.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn lay_l<const R: usize>(s: &Shape, x: *const Y, r: usize, l: *mut Y) {
    let low = _mm256_set1_epi8(15);
    for j in 0..s.o {
        for n in 0..R {
            // SAFETY: called by `expand_secret` with memory as laid out by `Shape` and `l_bytes`.
            unsafe {
                let x = x.add((r / 2 * s.o_pairs + j / 2) * R + n).read();
                let x = if j % 2 == 0 { x } else { _mm256_srli_epi16::<4>(x) };
                l.add((j * s.v_even / 2 + r / 2) * R + n).write(_mm256_and_si256(x, low));
            }
        }
    }
}

/// See `SetKernels::expand_secret`.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn expand_secret<S: SetSpec, const A: usize, const B: usize>(
    p: &[u8],
    o: &[u8],
    expanded: &mut [Block],
    mut scratch: &mut [Block],
) {
    let set = S::SIZES;
    let s = const { &Shape::of(S::SIZES) };
    let (front, l) = expanded.split_at_mut(const { l_offset(S::SIZES) });
    let l: *mut Y = l.as_mut_ptr().cast();
    let tables = take(&mut scratch, s.table_bytes(s.o_pairs));
    let operands: *mut Y = take(&mut scratch, s.operand_bytes()).cast();
    let x: *mut Y = take(&mut scratch, s.rows_bytes(s.v_even, s.o_pairs)).cast();
    let sums = Sums { tables, stride: s.table_bytes(1), pairs: s.o_pairs, operands };
    let p1 = Triangle { base: p.as_ptr(), size: s.v, mb: s.mb };
    // SAFETY: `scratch_blocks` covers all areas taken; P has all of P1 and P2 with slack; `expanded` has the operands.
    unsafe {
        oil_tables::<S>(o, tables);
        let [x0, x1] = halves(s, x, s.v_even, s.o_pairs, A);
        let l1 = l.add(s.o * s.v_even / 2 * A);
        let mut to: *mut Y = front.as_mut_ptr().cast();
        for r in (0..s.v).step_by(2) {
            oil_rows::<A>(s, p1, sums, x0, r, 0);
            p1.columns::<A>(sums, x0.add(r / 2 * s.o_pairs * A), r, 0);
            lay_l::<A>(s, x0, r, l);
            if B > 0 {
                oil_rows::<B>(s, p1, sums, x1, r, 32);
                p1.columns::<B>(sums, x1.add(r / 2 * s.o_pairs * B), r, 32);
                lay_l::<B>(s, x1, r, l1);
            }
            if const { laid_out(&Shape::of(S::SIZES)) } {
                to = p1.lay_rows::<A>(to, r, 0);
                if B > 0 {
                    to = p1.lay_rows::<B>(to, r, 32);
                }
            }
        }
    }
    if !const { laid_out(&Shape::of(S::SIZES)) } {
        let len = set.p1_vecs() * s.mb;
        bytes_mut(front)[..len].copy_from_slice(&p[..len]);
    }
}

/// U = P1 V^T + (lambda in vector 0) for one row pair of one chunk that is laid out; returns its end.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn laid_rows<const R: usize>(
    s: &Shape,
    sums: Sums,
    u: *mut Y,
    r: usize,
    lambda: Option<*const u8>,
    offset: usize,
) -> *mut Y {
    // SAFETY: called by `sign_expanded` with memory as laid out by `Shape` and `expand_secret`.
    unsafe {
        let acc = u.add(r / 2 * s.k_pairs * R);
        let lambda = lambda.map(|l| (l.add(r * s.mb + offset), l.add((r + 1) * s.mb + offset)));
        start::<R>(acc, s.k_pairs * R, lambda);
        sums.at(r).all::<R, false>(acc, s.v - r);
        sums.operands.add((s.v - r) * R)
    }
}

/// M = V L for one chunk.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn vinegar_times_l<const R: usize>(
    s: &Shape,
    sums: Sums,
    l: *mut Y,
    acc: *mut Y,
    m: *mut u8,
    chunk: (usize, usize),
) {
    // SAFETY: called by `sign_expanded` with memory as laid out by `Shape` and `expand_secret`.
    unsafe {
        for c in 0..s.o {
            start::<R>(acc, s.k_pairs * R, None);
            let operands = l.add(c * s.v_even / 2 * R);
            Sums { operands, ..sums }.all::<R, true>(acc, s.v_even / 2);
            for q in 0..s.k_pairs {
                for (h, x) in fold::<R>(acc.add(q * R), chunk.1).iter().enumerate() {
                    if 2 * q + h < s.k {
                        put::<R>(m.add(((2 * q + h) * s.o + c) * s.padded + chunk.0), x, false);
                    }
                }
            }
        }
    }
}

/// See `SetKernels::sign_expanded`.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn sign_expanded<S: SetSpec, const A: usize, const B: usize>(
    expanded: &[Block],
    o: &[u8],
    vinegar: &[u8],
    lambda: &[u8],
    m: &mut [Block],
    u: &mut [Block],
    mut scratch: &mut [Block],
) {
    let set = S::SIZES;
    let s = const { &Shape::of(S::SIZES) };
    let (p1, l) = expanded.split_at(const { l_offset(S::SIZES) });
    let v_tables = take(&mut scratch, s.table_bytes(s.k_pairs));
    let o_tables = take(&mut scratch, s.table_bytes(s.o_pairs));
    let operands: *mut Y = take(&mut scratch, s.operand_bytes()).cast();
    let rows: *mut Y = take(&mut scratch, s.rows_bytes(s.v_even, s.k_pairs)).cast();
    let acc: *mut Y = take(&mut scratch, s.pairs_max() * s.regs_max * size_of::<Y>()).cast();
    let powers = const { &powers(S::SIZES) };
    let by_v = Sums { tables: v_tables, stride: s.table_bytes(1), pairs: s.k_pairs, operands };
    let by_o = Sums { tables: o_tables, stride: s.table_bytes(1), pairs: s.o_pairs, operands };
    // The products only read their operands.
    let mut laid = Sums { operands: p1.as_ptr().cast_mut().cast(), ..by_v };
    let p1 = Triangle { base: p1.as_ptr().cast(), size: s.v, mb: s.mb };
    let l: *mut Y = l.as_ptr().cast_mut().cast();
    m.fill(Block::ZERO);
    let m: *mut u8 = m.as_mut_ptr().cast();
    let at = pair_at(set, powers, u);
    // SAFETY: `scratch_blocks` covers all areas taken; P1 and L are the expanded key's; lambda has n m-vectors with
    // slack.
    unsafe {
        vector_tables(s, vinegar, s.v, v_tables);
        let [u0, u1] = halves(s, rows, s.v_even, s.k_pairs, A);
        let linear = set.linear_term.then_some(lambda.as_ptr());
        for r in (0..s.v).step_by(2) {
            if const { laid_out(&Shape::of(S::SIZES)) } {
                laid.operands = laid_rows::<A>(s, laid, u0, r, linear, 0);
                if B > 0 {
                    laid.operands = laid_rows::<B>(s, laid, u1, r, linear, 32);
                }
            } else {
                vinegar_rows::<A>(s, p1, by_v, u0, r, linear, 0);
                if B > 0 {
                    vinegar_rows::<B>(s, p1, by_v, u1, r, linear, 32);
                }
            }
        }
        second_symmetric::<A>(by_v, u0, s.v_even, s.k, (0, chunk_bytes(set, 0)), acc, &at);
        vinegar_times_l::<A>(s, by_v, l, acc, m, (0, chunk_bytes(set, 0)));
        if B > 0 {
            second_symmetric::<B>(by_v, u1, s.v_even, s.k, (32, chunk_bytes(set, 1)), acc, &at);
            let l = l.add(s.o * s.v_even / 2 * A);
            vinegar_times_l::<B>(s, by_v, l, acc, m, (32, chunk_bytes(set, 1)));
        }
        if set.linear_term {
            oil_tables::<S>(o, o_tables);
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
