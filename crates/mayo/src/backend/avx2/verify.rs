//! The products of verification, on the same lane pairs as those of signing.
//!
//! All n columns of a row pair are one sum: P1, then P2 (or P3 alone for the oil rows), with the tables of s. Variables
//! take positions 0..v and v_even..v_even + o, so that pairs of rows never mix P1 and P3. Cost in shuffles: n(n+1)/4
//! k/2 R + n/2 k k/2 R, half a cycle each. **Measured** on Zen 4 (MAYO-1, 2, 3, 5 of round 2): 36.5 k, 11.5 k, 106 k,
//! 232 k ticks. Leak class: public data only, in constant time nevertheless.

use super::eliminate::powers;
use super::lanes::{Sums, Y, chunk_bytes, take, unpack};
use super::products::{pair_at, second_symmetric};
use super::shape::{Shape, Triangle, halves, start, vector_tables};
use crate::backend::SetSpec;
use crate::sys::Block;

/// P S^T + (lambda in vector 0) for one chunk of all row pairs.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn public_rows<const R: usize>(
    s: &Shape,
    [p1, p3]: [Triangle; 2],
    sums: Sums,
    y: *mut Y,
    lambda: Option<*const u8>,
    row: usize,
    offset: usize,
) {
    // SAFETY: called by this file's kernels with memory as laid out by `Shape`.
    unsafe {
        let acc = y.add(row / 2 * s.k_pairs * R);
        let sums = sums.at(row);
        let oil = row >= s.v_even;
        let r = if oil { row - s.v_even } else { row };
        let variable = if oil { s.v + r } else { r };
        // A missing second row reads arbitrary bytes; its tables are zero.
        let below = if variable + 1 < s.n { variable + 1 } else { variable };
        let lambda = lambda.map(|l| (l.add(variable * s.mb + offset), l.add(below * s.mb + offset)));
        start::<R>(acc, s.k_pairs * R, lambda);
        if oil {
            p3.rows::<R>(sums, acc, r, offset);
            sums.rest::<R, false>(acc, s.o - r);
        } else {
            p1.rows::<R>(sums, acc, r, offset);
            let a = p1.base.add((s.v * (s.v + 1) / 2 + r * s.o) * s.mb + offset);
            let b = if r + 1 < s.v { a.add(s.o * s.mb) } else { a };
            let (from, mb) = (s.v_even - row, s.mb);
            sums.first::<R, false>(acc, from, s.o, |i| {
                unpack::<R>(a.add((i - from) * mb), b.add((i - from) * mb))
            });
            sums.rest::<R, false>(acc, from + s.o);
        }
    }
}

/// See `SetKernels::verify`.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn verify<S: SetSpec, const A: usize, const B: usize>(
    p: &[u8],
    p3: &[u8],
    s_elements: &[u8],
    lambda: &[u8],
    u: &mut [Block],
    mut scratch: &mut [Block],
) {
    let set = S::SIZES;
    let s = const { &Shape::of(S::SIZES) };
    let tables = take(&mut scratch, s.table_bytes(s.k_pairs));
    let operands: *mut Y = take(&mut scratch, s.operand_bytes()).cast();
    let y: *mut Y = take(&mut scratch, s.rows_bytes(s.v_even + s.o_even, s.k_pairs)).cast();
    let acc: *mut Y = take(&mut scratch, s.k_pairs * s.regs_max * size_of::<Y>()).cast();
    let powers = const { &powers(S::SIZES) };
    let sums = Sums { tables, stride: s.table_bytes(1), pairs: s.k_pairs, operands };
    let p1 = Triangle { base: p.as_ptr(), size: s.v, mb: s.mb };
    let p3 = Triangle { base: p3.as_ptr(), size: s.o, mb: s.mb };
    let rows = s.v_even + s.o_even;
    // SAFETY: `scratch_blocks` covers all areas taken; P, P3 and lambda have all their m-vectors with slack.
    unsafe {
        vector_tables(s, s_elements, s.n, tables);
        let at = pair_at(set, powers, u);
        let [y0, y1] = halves(s, y, rows, s.k_pairs, A);
        let linear = set.linear_term.then_some(lambda.as_ptr());
        for row in (0..rows).step_by(2) {
            public_rows::<A>(s, [p1, p3], sums, y0, linear, row, 0);
            if B > 0 {
                public_rows::<B>(s, [p1, p3], sums, y1, linear, row, 32);
            }
        }
        second_symmetric::<A>(sums, y0, rows, s.k, (0, chunk_bytes(set, 0)), acc, &at);
        if B > 0 {
            second_symmetric::<B>(sums, y1, rows, s.k, (32, chunk_bytes(set, 1)), acc, &at);
        }
    }
}
