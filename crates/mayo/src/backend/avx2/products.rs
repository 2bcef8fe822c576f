//! The products of keygen and signing, on lane pairs of nibble-sliced m-vectors.
//!
//! U = P1 V^T takes rows r, r + 1 of P1 as the two lanes (their entries in column c share the table of v_i\[c\]);
//! W = U + P1^T V^T takes columns c, c + 1 as the lanes (their entries in row r share the table of v_i\[r\]).
//! L = (P1 + P1^T) O + P2 is never formed in signing: M = V L = W^T O + V P2, which takes fewer products than forming
//! L, since L would still have to be multiplied by V.
//!
//! Cost in shuffles (R registers a chunk, halves rounded up): keygen v(v+1)/4 o/2 R + v/2 o o/2 R; signing 2 v(v+1)/4
//! k/2 R + v/2 (k k/2 + k o/2 + o k/2) R; half a cycle each on Zen 4 and Zen 5. **Measured** on Zen 4 (MAYO-1, 2, 3, 5
//! of round 2): keygen 26.1 k, 35.0 k, 82.6 k, 206 k ticks, signing 65.6 k, 21.4 k, 194 k, 435 k, which is 0.55 to 0.62
//! ticks a shuffle. Leak class: constant time in O, V and everything made of them.

use core::arch::x86_64::*;

use super::eliminate::powers;
use super::lanes::{Sums, Y, chunk_bytes, fold, put, take, unpack};
use super::shape::{Shape, Triangle, halves, oil_tables, start, vector_tables};
use crate::backend::{SetKernels, SetSpec};
use crate::params::Sizes;
use crate::sys::Block;

/// Bytes of operands and of accumulators of one row of results.
const fn sums_bytes(s: &Shape) -> usize {
    s.operand_bytes() + s.pairs_max() * s.regs_max * size_of::<Y>()
}

/// Scratch of `keygen`, whose pieces begin blocks of their own.
pub(super) const fn keygen_blocks(p: &Sizes) -> usize {
    let s = &Shape::of(p);
    let rows = s.rows_bytes(s.v_even, s.o_pairs);
    (s.table_bytes(s.o_pairs) + sums_bytes(s) + rows + s.p3_bytes()).div_ceil(64) + 5
}

/// Scratch of `sign`; `sign_expanded` needs no more.
pub(super) const fn sign_blocks(p: &Sizes) -> usize {
    let s = &Shape::of(p);
    let rows = s.rows_bytes(s.v_even, s.k_pairs);
    (s.table_bytes(s.k_pairs + s.o_pairs) + sums_bytes(s) + rows).div_ceil(64) + 5
}

/// Scratch of `verify`.
pub(super) const fn verify_blocks(p: &Sizes) -> usize {
    let s = &Shape::of(p);
    let rows = s.rows_bytes(s.v_even + s.o_even, s.k_pairs);
    (s.table_bytes(s.k_pairs) + sums_bytes(s) + rows).div_ceil(64) + 4
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

/// `second` for constants and results of the same number, S(i, j) + S(j, i) or S(i, i) going to the chunk of the padded
/// m-vector at `at(i, j)`, which is the same as `at(j, i)`.
///
/// # Safety
/// As for `second`; `at` must give a padded m-vector for every pair, with zeros after the last element.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn second_symmetric<const R: usize>(
    sums: Sums,
    y: *const Y,
    rows: usize,
    count: usize,
    chunk: (usize, usize),
    acc: *mut Y,
    at: impl Fn(usize, usize) -> *mut u8,
) {
    // SAFETY: the caller's promise.
    unsafe {
        second::<R>(sums, y, rows, count, chunk.1, acc, |j, q, both| {
            for (h, x) in both.iter().enumerate() {
                let i = 2 * q + h;
                if i < count {
                    // j ascends, so S(i, j) with i > j comes first.
                    put::<R>(at(i, j).add(chunk.0), x, i < j);
                }
            }
        });
    }
}

/// The place of u_l, for every pair of vectors.
pub(super) fn pair_at(
    set: &'static Sizes,
    powers: &[[u8; 12]; 12],
    u: &mut [Block],
) -> impl Fn(usize, usize) -> *mut u8 {
    u.fill(Block::ZERO);
    let (u, stride) = (u.as_mut_ptr().cast::<u8>(), SetKernels::stride(set));
    // SAFETY: powers are below the number of pairs, and u has a padded m-vector for each.
    move |i, j| unsafe { u.add(usize::from(powers[i][j]) * stride) }
}

/// X = P1 O + P2, or P1 alone, for one chunk: accumulators of all row pairs.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn oil_rows<const R: usize>(
    s: &Shape,
    p1: Triangle,
    sums: Sums,
    x: *mut Y,
    r: usize,
    offset: usize,
) {
    // SAFETY: called by this file's kernels with memory as laid out by `Shape`.
    unsafe {
        let acc = x.add(r / 2 * s.o_pairs * R);
        let p2 = p1.base.add(s.v * (s.v + 1) / 2 * s.mb + offset);
        let entry = |r: usize, j: usize| p2.add((r * s.o + j) * s.mb);
        let below = if r + 1 < s.v { r + 1 } else { r };
        for q in 0..s.o_pairs {
            let mut x = unpack::<R>(entry(r, 2 * q), entry(below, 2 * q));
            if 2 * q + 1 < s.o {
                let high = unpack::<R>(entry(r, 2 * q + 1), entry(below, 2 * q + 1));
                for (x, high) in x.iter_mut().zip(high) {
                    *x = _mm256_or_si256(*x, _mm256_slli_epi16::<4>(high));
                }
            }
            for (n, x) in x.iter().enumerate() {
                acc.add(q * R + n).write(*x);
            }
        }
        let sums = sums.at(r);
        p1.rows::<R>(sums, acc, r, offset);
        sums.rest::<R, false>(acc, s.v - r);
    }
}

/// See `SetKernels::keygen`.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn keygen<S: SetSpec, const A: usize, const B: usize>(
    p: &[u8],
    o: &[u8],
    p3: &mut [u8],
    mut scratch: &mut [Block],
) {
    let set = S::SIZES;
    let s = const { &Shape::of(S::SIZES) };
    let tables = take(&mut scratch, s.table_bytes(s.o_pairs));
    let operands: *mut Y = take(&mut scratch, s.operand_bytes()).cast();
    let x: *mut Y = take(&mut scratch, s.rows_bytes(s.v_even, s.o_pairs)).cast();
    let acc: *mut Y = take(&mut scratch, s.o_pairs * s.regs_max * size_of::<Y>()).cast();
    let padded = take(&mut scratch, s.p3_bytes());
    let sums = Sums { tables, stride: s.stride(), pairs: s.o_pairs, operands };
    let p1 = Triangle { base: p.as_ptr(), size: s.v, mb: s.mb };
    // SAFETY: `scratch_blocks` covers all areas taken; P has all of P1 and P2 with slack; `padded` has p3_bytes, `p3` all of P3.
    unsafe {
        oil_tables::<S>(o, tables);
        let [x0, x1] = halves(s, x, s.v_even, s.o_pairs, A);
        for r in (0..s.v).step_by(2) {
            oil_rows::<A>(s, p1, sums, x0, r, 0);
            if B > 0 {
                oil_rows::<B>(s, p1, sums, x1, r, 32);
            }
        }
        let (to, stride) = if s.p3_in_place() {
            p3.fill(0);
            (p3.as_mut_ptr(), s.mb)
        } else {
            core::ptr::write_bytes(padded, 0, s.p3_bytes());
            (padded, s.padded)
        };
        let at = |i: usize, j: usize| {
            let (i, j) = (i.min(j), i.max(j));
            to.add((i * (2 * s.o - i + 1) / 2 + j - i) * stride)
        };
        second_symmetric::<A>(sums, x0, s.v_even, s.o, (0, chunk_bytes(set, 0)), acc, at);
        if B > 0 {
            second_symmetric::<B>(sums, x1, s.v_even, s.o, (32, chunk_bytes(set, 1)), acc, at);
        }
        if !s.p3_in_place() {
            for (n, out) in p3.chunks_exact_mut(s.mb).enumerate() {
                out.copy_from_slice(core::slice::from_raw_parts(padded.add(n * s.padded), s.mb));
            }
        }
    }
}

/// M(i, c) += sum over r of v_i\[r\] times entry (r, c) of a v x o matrix of raw m-vectors.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn vinegar_times<const R: usize>(
    s: &Shape,
    sums: Sums,
    matrix: *const u8,
    acc: *mut Y,
    m: *mut u8,
    chunk: (usize, usize),
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
                        put::<R>(m.add(((2 * q + h) * s.o + c) * s.padded + chunk.0), x, true);
                    }
                }
            }
        }
    }
}

/// The part of an m-vector in a chunk, added at `to`.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn add_bytes(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: the caller has `bytes` at both.
    let (to, from) =
        unsafe { (core::slice::from_raw_parts_mut(to, bytes), core::slice::from_raw_parts(from, bytes)) };
    to.iter_mut().zip(from).for_each(|(t, f)| *t ^= f);
}

/// U = P1 V^T + (lambda in vector 0) for one row pair of one chunk.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn vinegar_rows<const R: usize>(
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
pub(super) fn sign<S: SetSpec, const A: usize, const B: usize>(
    p: &[u8],
    o: &[u8],
    vinegar: &[u8],
    lambda: &[u8],
    m: &mut [Block],
    u: &mut [Block],
    mut scratch: &mut [Block],
) {
    let set = S::SIZES;
    let s = const { &Shape::of(S::SIZES) };
    let v_tables = take(&mut scratch, s.table_bytes(s.k_pairs));
    let o_tables = take(&mut scratch, s.table_bytes(s.o_pairs));
    let operands: *mut Y = take(&mut scratch, s.operand_bytes()).cast();
    let rows: *mut Y = take(&mut scratch, s.rows_bytes(s.v_even, s.k_pairs)).cast();
    let acc: *mut Y = take(&mut scratch, s.pairs_max() * s.regs_max * size_of::<Y>()).cast();
    let powers = const { &powers(S::SIZES) };
    let by_v = Sums { tables: v_tables, stride: s.stride(), pairs: s.k_pairs, operands };
    let by_o = Sums { tables: o_tables, stride: s.stride(), pairs: s.o_pairs, operands };
    let p1 = Triangle { base: p.as_ptr(), size: s.v, mb: s.mb };
    m.fill(Block::ZERO);
    let m: *mut u8 = m.as_mut_ptr().cast();
    // SAFETY: `scratch_blocks` covers all areas taken; P has all of P1 and P2 with slack, lambda n m-vectors with
    // slack.
    unsafe {
        vector_tables(s, vinegar, s.v, v_tables);
        oil_tables::<S>(o, o_tables);
        let at = pair_at(set, powers, u);
        let [u0, u1] = halves(s, rows, s.v_even, s.k_pairs, A);
        let linear = set.linear_term.then_some(lambda.as_ptr());
        for r in (0..s.v).step_by(2) {
            vinegar_rows::<A>(s, p1, by_v, u0, r, linear, 0);
            if B > 0 {
                vinegar_rows::<B>(s, p1, by_v, u1, r, linear, 32);
            }
        }
        second_symmetric::<A>(by_v, u0, s.v_even, s.k, (0, chunk_bytes(set, 0)), acc, &at);
        if B > 0 {
            second_symmetric::<B>(by_v, u1, s.v_even, s.k, (32, chunk_bytes(set, 1)), acc, &at);
        }
        // From U to W.
        for c in (0..s.v).step_by(2) {
            p1.columns::<A>(by_v, u0.add(c / 2 * s.k_pairs * A), c, 0);
            if B > 0 {
                p1.columns::<B>(by_v, u1.add(c / 2 * s.k_pairs * B), c, 32);
            }
        }
        oil_times::<A>(s, by_o, u0, acc, m, (0, chunk_bytes(set, 0)));
        let p2 = p.as_ptr().add(set.p1_vecs() * s.mb);
        vinegar_times::<A>(s, by_v, p2, acc, m, (0, chunk_bytes(set, 0)));
        if B > 0 {
            oil_times::<B>(s, by_o, u1, acc, m, (32, chunk_bytes(set, 1)));
            vinegar_times::<B>(s, by_v, p2, acc, m, (32, chunk_bytes(set, 1)));
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
