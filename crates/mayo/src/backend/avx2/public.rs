//! Expanded public keys: every operand of verification unpacked, in the order in which it is read.
//!
//! For each pair of rows and each chunk, one group of R registers per column (see `verify` for the columns' order).
//! This takes twice the space of P, and the products no longer pay for unpacking: 12 of 62 operations a column for m =
//! 80, k = 10. Larger ones than `LAID_OUT_MAX` keep P1, P2, P3 as they are. Leak class: public data only.

use core::mem::MaybeUninit;

use super::eliminate::powers;
use super::lanes::{NOTHING, Sums, Y, chunk_bytes, take, unpack};
use super::products::{pair_at, second_symmetric};
use super::shape::{Shape, Triangle, halves, lay, start, vector_tables};
use crate::backend::SetSpec;

use crate::params::Sizes;
use crate::sys::Block;

/// Columns of the pair of rows at position `row`.
const fn columns(s: &Shape, row: usize) -> usize {
    if row < s.v_even { s.v_even - row + s.o } else { s.o + s.v_even - row }
}

/// Bytes of all operands.
pub(super) const fn operand_bytes(p: &Sizes) -> usize {
    let s = Shape::of(p);
    let (mut total, mut row) = (0, 0);
    while row < s.v_even + s.o_even {
        total += columns(&s, row);
        row += 2;
    }
    total * s.regs * size_of::<Y>()
}

/// Whether the operands are laid out.
pub(super) const fn laid_out(p: &Sizes) -> bool {
    operand_bytes(p) <= super::LAID_OUT_MAX
}

/// One chunk of a pair of rows.
#[target_feature(enable = "avx2")]
unsafe fn lay_row<const R: usize>(
    s: &Shape,
    p1: Triangle,
    p3: Triangle,
    to: *mut Y,
    row: usize,
    offset: usize,
) -> *mut Y {
    // SAFETY: `expand_public` has all of P1, P2, P3 with slack and room for all operands.
    unsafe {
        if row >= s.v_even {
            return p3.lay_rows::<R>(to, row - s.v_even, offset);
        }
        let mut to = p1.lay_rows::<R>(to, row, offset);
        // The position between an odd v and P2 has tables of zeros; its operand is zero too, so that the layout is
        // deterministic.
        for _ in s.v..s.v_even {
            to = lay(to, &unpack::<R>(NOTHING.0.as_ptr(), NOTHING.0.as_ptr()));
        }
        let a = p1.base.add((s.v * (s.v + 1) / 2 + row * s.o) * s.mb + offset);
        let b = if row + 1 < s.v { a.add(s.o * s.mb) } else { a };
        for j in 0..s.o {
            to = lay(to, &unpack::<R>(a.add(j * s.mb), b.add(j * s.mb)));
        }
        to
    }
}

/// See `PublicLayout`.
#[target_feature(enable = "avx2")]
pub(super) fn expand_public<S: SetSpec, const A: usize, const B: usize>(
    p: &[u8],
    p3: &[u8],
    expanded: &mut [MaybeUninit<Block>],
) {
    let s = const { &Shape::of(S::SIZES) };
    let p1 = Triangle { base: p.as_ptr(), size: s.v, mb: s.mb };
    let p3 = Triangle { base: p3.as_ptr(), size: s.o, mb: s.mb };
    let mut to: *mut Y = expanded.as_mut_ptr().cast();
    for row in (0..s.v_even + s.o_even).step_by(2) {
        // SAFETY: P, P3 have all their m-vectors with slack; `expanded` has `operand_bytes`.
        unsafe {
            to = lay_row::<A>(s, p1, p3, to, row, 0);
            if B > 0 {
                to = lay_row::<B>(s, p1, p3, to, row, 32);
            }
        }
    }
}

/// One chunk of a pair of rows times s.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn laid_row<const R: usize>(
    s: &Shape,
    sums: Sums,
    y: *mut Y,
    lambda: Option<*const u8>,
    row: usize,
    offset: usize,
) -> *mut Y {
    // SAFETY: called by `verify_expanded` with memory as laid out by `Shape` and `expand_public`.
    unsafe {
        let acc = y.add(row / 2 * s.k_pairs * R);
        let variable = if row < s.v_even { row } else { s.v + row - s.v_even };
        // A missing second row reads arbitrary bytes; its tables are zero.
        let below = if variable + 1 < s.n { variable + 1 } else { variable };
        let lambda = lambda.map(|l| (l.add(variable * s.mb + offset), l.add(below * s.mb + offset)));
        start::<R>(acc, s.k_pairs * R, lambda);
        sums.at(row).all::<R, false>(acc, columns(s, row));
        sums.operands.add(columns(s, row) * R)
    }
}

/// See `PublicLayout`.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn verify_expanded<S: SetSpec, const A: usize, const B: usize>(
    expanded: &[Block],
    s_elements: &[u8],
    lambda: &[u8],
    u: &mut [Block],
    mut scratch: &mut [Block],
) {
    let set = S::SIZES;
    let s = const { &Shape::of(S::SIZES) };
    let rows = s.v_even + s.o_even;
    let tables = take(&mut scratch, s.table_bytes(s.k_pairs));
    let operands: *mut Y = take(&mut scratch, s.operand_bytes()).cast();
    let y: *mut Y = take(&mut scratch, s.rows_bytes(rows, s.k_pairs)).cast();
    let acc: *mut Y = take(&mut scratch, s.k_pairs * s.regs_max * size_of::<Y>()).cast();
    let powers = const { &powers(S::SIZES) };
    let sums = Sums { tables, stride: s.table_bytes(1), pairs: s.k_pairs, operands };
    // The products only read their operands.
    let mut laid = Sums { operands: expanded.as_ptr().cast_mut().cast(), ..sums };
    let at = pair_at(set, powers, u);
    // SAFETY: `scratch_blocks` covers all areas taken; lambda has all its m-vectors with slack.
    unsafe {
        vector_tables(s, s_elements, s.n, tables);
        let [y0, y1] = halves(s, y, rows, s.k_pairs, A);
        let linear = set.linear_term.then_some(lambda.as_ptr());
        for row in (0..rows).step_by(2) {
            laid.operands = laid_row::<A>(s, laid, y0, linear, row, 0);
            if B > 0 {
                laid.operands = laid_row::<B>(s, laid, y1, linear, row, 32);
            }
        }
        second_symmetric::<A>(sums, y0, rows, s.k, (0, chunk_bytes(set, 0)), acc, &at);
        if B > 0 {
            second_symmetric::<B>(sums, y1, rows, s.k, (32, chunk_bytes(set, 1)), acc, &at);
        }
    }
}
