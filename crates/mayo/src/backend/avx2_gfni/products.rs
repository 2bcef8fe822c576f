//! The products of keygen, signing and verification: passes over rows ([`Sums::add`]), then contractions ([`contract`]).
//!
//! Signing needs U = P1 V^T and M = V L with L = (P1 + P1^T) O + P2. With X = P1 O + P2, M = U^T O + V X; where m = 64 and
//! k < o, M = W^T O + V P2 with W = U + P1^T V^T takes fewer products.
//!
//! **Floor**: two thirds of a cycle on Intel for 128 multiply-accumulates. Leak class: constant time in O, V, s and everything
//! made of them; only the set decides branches.

use super::gf::{MATRIX, matrices};
use super::rows::{Row, Run, Sums};
use super::sweep::{contract, plus, put, result_bytes, store_pairs, vector};
use crate::backend::avx2::lanes::take;
use crate::backend::{SLACK, SetKernels, SetSpec};
use crate::field::pack;
use crate::params::Sizes;
use crate::sys::{Block, bytes, bytes_mut};

/// Blocks of four rows.
const fn quads(rows: usize) -> usize {
    rows.div_ceil(4)
}

/// Slices of an m-vector, and tails.
pub(super) const fn parts(p: &Sizes) -> (usize, usize) {
    let (slices, rest) = (p.m_bytes() / 32, p.m_bytes() % 32);
    if rest > 24 { (slices + 1, 0) } else { (slices, rest.div_ceil(8)) }
}

/// Bytes from one pair of vectors to the next in a table of matrices: variables, then those of P3.
pub(super) const fn stride(p: &Sizes) -> usize {
    (2 * (quads(p.v()) + quads(p.o))).next_multiple_of(16) * MATRIX
}

/// Bytes of the sums of `rows` rows with `pairs` pairs of vectors.
const fn sums_bytes(p: &Sizes, rows: usize, pairs: usize) -> usize {
    let (slices, tails) = parts(p);
    quads(rows) * pairs * (4 * 64 * slices + 2 * 32 * tails)
}

const fn results(p: &Sizes, pairs: usize, columns: usize) -> usize {
    let (slices, tails) = parts(p);
    result_bytes(pairs, columns, slices, tails)
}

/// Bytes for the joined slices of a row.
pub(super) const fn room_bytes(p: &Sizes) -> usize {
    (2 * quads(p.v()) + 1) * 64
}

/// Scratch of `keygen`, of which `expand_secret` needs a part, whose pieces begin blocks of their own.
pub(super) const fn keygen_blocks(p: &Sizes) -> usize {
    let op = p.o.div_ceil(2);
    (op * stride(p) + room_bytes(p) + sums_bytes(p, p.v(), op) + results(p, op, op)).div_ceil(64) + 4
}

/// Scratch of `sign`; `sign_expanded` needs less.
pub(super) const fn sign_blocks(p: &Sizes) -> usize {
    let (kp, op) = (p.k.div_ceil(2), p.o.div_ceil(2));
    let sums = sums_bytes(p, p.v(), kp + op);
    let results = results(p, kp, kp + op + 2) + results(p, op, kp);
    ((kp + op) * stride(p) + room_bytes(p) + sums + results).div_ceil(64) + 6
}

/// Scratch of `verify`.
pub(super) const fn verify_blocks(p: &Sizes) -> usize {
    let kp = p.k.div_ceil(2);
    let sums = sums_bytes(p, 4 * (quads(p.v()) + quads(p.o)), kp);
    (kp * stride(p) + room_bytes(p) + sums + results(p, kp, kp)).div_ceil(64) + 4
}

/// Matrices of vectors of `len` elements, two vectors at a time; elements from v on have numbers from 2 quads(v) on.
///
/// # Safety
/// `out` must have room for `stride` for each pair.
#[target_feature(enable = "avx2,gfni")]
unsafe fn vector_matrices<S: SetSpec>(elements: &[u8], len: usize, out: *mut u8) {
    let set = S::SIZES;
    let (v, places) = (set.v().min(len), const { stride(S::SIZES) } / MATRIX);
    for (q, pair) in elements.chunks(2 * len).enumerate() {
        let mut packed = [[0u8; 96]; 2];
        for (vector, packed) in pair.chunks(len).zip(&mut packed) {
            pack(&vector[..v], &mut packed[..v.div_ceil(2)]);
            pack(&vector[v..], &mut packed[2 * quads(v)..][..(len - v).div_ceil(2)]);
        }
        // SAFETY: the caller's promise.
        unsafe { matrices(&packed[0][..places], &packed[1][..places], out.add(q * places * MATRIX)) };
    }
}

/// Matrices of the columns of O, two at a time.
///
/// # Safety
/// As for [`vector_matrices`].
#[target_feature(enable = "avx2,gfni")]
unsafe fn oil_matrices<S: SetSpec>(o: &[u8], out: *mut u8) {
    const { assert!(S::SIZES.o <= 20 && stride(S::SIZES) <= 96 * MATRIX) };
    let (set, places) = (S::SIZES, const { stride(S::SIZES) } / MATRIX);
    let mut packed = [[0u8; 96]; 20];
    for (r, rows) in o.chunks(2 * set.o).enumerate() {
        let (first, second) = rows.split_at(set.o);
        for (packed, e) in packed.iter_mut().zip(first) {
            packed[r] = *e;
        }
        for (packed, e) in packed.iter_mut().zip(second) {
            packed[r] |= e << 4;
        }
    }
    for (q, pair) in packed.chunks_exact(2).enumerate().take(set.o.div_ceil(2)) {
        // SAFETY: the caller's promise.
        unsafe { matrices(&pair[0][..places], &pair[1][..places], out.add(q * places * MATRIX)) };
    }
}

/// Rows 4t to 4t + 3, those beyond `height` being the last, whose matrices are 0.
fn quad<T>(t: usize, height: usize, row: impl Fn(usize) -> T) -> [T; 4] {
    [0, 1, 2, 3].map(|q| row((4 * t + q).min(height - 1)))
}

/// Rows 4t to 4t + 3 of P1.
fn p1_rows(set: &Sizes, p: *const u8, t: usize) -> [Row; 4] {
    quad(t, set.v(), |r| Run::of_triangle(p, set.v(), set.m_bytes(), r, 0).alone())
}

/// Columns 4t to 4t + 3 of P1.
fn p1_columns(set: &Sizes, p: *const u8, t: usize) -> [Row; 4] {
    let (v, mb) = (set.v(), set.m_bytes());
    let run = |c| Run { at: p.wrapping_add(c * mb), start: 0, count: c + 1, step: (v - 1) * mb, less: mb };
    quad(t, v, |c| run(c).alone())
}

/// Rows 4t to 4t + 3 of P2.
fn p2_rows(set: &Sizes, p: *const u8, t: usize) -> [*const u8; 4] {
    quad(t, set.v(), |r| p.wrapping_add((set.p1_vecs() + r * set.o) * set.m_bytes()))
}

/// See `SetKernels::keygen`.
#[target_feature(enable = "avx2,gfni,bmi1,bmi2")]
pub(super) fn keygen<S: SetSpec, const OP: usize, const F: usize, const T: usize, const JS: usize>(
    p: &[u8],
    o: &[u8],
    p3: &mut [u8],
    mut scratch: &mut [Block],
) {
    let set = S::SIZES;
    let (v, oil, mb) = (set.v(), set.o, set.m_bytes());
    let table = take(&mut scratch, OP * JS);
    let room = take(&mut scratch, const { room_bytes(S::SIZES) });
    let x = Sums::<OP, F, T>::at(take(&mut scratch, Sums::<OP, F, T>::bytes(quads(v))), quads(v), room);
    let w = take(&mut scratch, result_bytes(OP, OP, F, T));
    // SAFETY: p holds P1 and P2 with slack, o v x o elements; the areas have the sizes that the functions need.
    unsafe {
        oil_matrices::<S>(o, table);
        for t in 0..quads(v) {
            x.begin(t, 0, (p2_rows(set, p.as_ptr(), t), oil), mb);
            x.add::<JS, false>(t, &p1_rows(set, p.as_ptr(), t), table);
        }
        contract::<OP, JS, OP, F, T>(x, OP, quads(v), table, w);
        let mut padded = [Block::ZERO; 2];
        let mut at = 0;
        for i in 0..oil {
            for j in i..oil {
                let mut sum = vector::<OP, F, T>(w, i, j);
                if i != j {
                    sum = plus(sum, vector::<OP, F, T>(w, j, i));
                }
                put::<S>(padded.as_mut_ptr().cast(), &sum);
                p3[at..at + mb].copy_from_slice(&bytes(&padded)[..mb]);
                at += mb;
            }
        }
    }
}

/// Whether signing goes over P1 by rows and columns instead of multiplying it with O.
const fn both_ways(p: &Sizes) -> bool {
    matches!(parts(p), (1, 0)) && p.k.div_ceil(2) < p.o.div_ceil(2)
}

/// Makes rows 4t to 4t + 3 of U begin with lambda in vector 0.
///
/// # Safety
/// As for [`Sums::begin`]; lambda must have n m-vectors and slack.
#[target_feature(enable = "avx2,gfni")]
#[inline]
unsafe fn begin_linear<S: SetSpec, const K: usize, const F: usize, const T: usize>(
    sums: Sums<K, F, T>,
    t: usize,
    lambda: [*const u8; 4],
) {
    // SAFETY: the caller's promise.
    unsafe {
        sums.begin_zero(t, S::SIZES.k.div_ceil(2));
        if const { S::SIZES.linear_term } {
            sums.begin(t, 0, (lambda, 1), S::SIZES.m_bytes());
        }
    }
}

/// See `SetKernels::sign`. KO is KP + OP.
#[target_feature(enable = "avx2,gfni,bmi1,bmi2")]
pub(super) fn sign<
    S: SetSpec,
    const KP: usize,
    const OP: usize,
    const KO: usize,
    const F: usize,
    const T: usize,
    const JS: usize,
>(
    p: &[u8],
    o: &[u8],
    vinegar: &[u8],
    lambda: &[u8],
    m: &mut [Block],
    u: &mut [Block],
    mut scratch: &mut [Block],
) {
    let set = S::SIZES;
    let (v, oil, mb) = (set.v(), set.o, set.m_bytes());
    let table = take(&mut scratch, KO * JS);
    let by_o = table.wrapping_add(KP * JS);
    let room = take(&mut scratch, const { room_bytes(S::SIZES) });
    let sums = take(&mut scratch, Sums::<KO, F, T>::bytes(quads(v)));
    // Of V with U, then with X or P2, whose columns are at most three more in blocks of four.
    let w = take(&mut scratch, result_bytes(KP, KO + 2, F, T));
    let w_oil = take(&mut scratch, result_bytes(OP, KP, F, T));
    let linear = |t: usize| quad(t, v, |r| lambda.as_ptr().wrapping_add(r * mb));
    // SAFETY: p holds P1 and P2 with slack, the elements and lambda have the contract's lengths; the areas have the sizes
    // that the functions need.
    unsafe {
        vector_matrices::<S>(vinegar, v, table);
        oil_matrices::<S>(o, by_o);
        if const { both_ways(S::SIZES) } {
            let us = Sums::<KP, F, T>::at(sums, quads(v), room);
            for t in 0..quads(v) {
                begin_linear::<S, KP, F, T>(us, t, linear(t));
                us.add::<JS, false>(t, &p1_rows(set, p.as_ptr(), t), table);
            }
            contract::<KP, JS, KP, F, T>(us, KP, quads(v), table, w);
            for t in 0..quads(v) {
                us.add::<JS, true>(t, &p1_columns(set, p.as_ptr(), t), table);
            }
            contract::<OP, JS, KP, F, T>(us, KP, quads(v), by_o, w_oil);
            // The results of a column of P2 are those of a row of one slice.
            let p2 = p.as_ptr().add(set.p1_vecs() * mb);
            let columns = Sums::<KP, F, T>::at(w.add(result_bytes(KP, KP, F, T)), OP.div_ceil(2), room);
            for t in 0..quads(oil) {
                let at = |c: usize| p2.wrapping_add(c * mb);
                let run = |c| Run { at: at(c), start: 0, count: v, step: oil * mb, less: 0 };
                columns.begin_zero(t, KP);
                columns.add::<JS, false>(t, &quad(t, oil, |c| run(c).alone()), table);
            }
        } else {
            let all = Sums::<KO, F, T>::at(sums, quads(v), room);
            for t in 0..quads(v) {
                begin_linear::<S, KO, F, T>(all, t, linear(t));
                all.begin(t, KP, (p2_rows(set, p.as_ptr(), t), oil), mb);
                all.add::<JS, false>(t, &p1_rows(set, p.as_ptr(), t), table);
            }
            contract::<KP, JS, KO, F, T>(all, KO, quads(v), table, w);
            contract::<OP, JS, KO, F, T>(all, KP, quads(v), by_o, w_oil);
        }
        store_pairs::<S, KP, F, T>(w, u);
        for (at, out) in m.chunks_exact_mut(const { SetKernels::stride(S::SIZES) / 64 }).enumerate() {
            let (i, c) = (at / oil, at % oil);
            let sum = plus(vector::<KP, F, T>(w, i, 2 * KP + c), vector::<OP, F, T>(w_oil, c, i));
            put::<S>(out.as_mut_ptr().cast(), &sum);
        }
    }
    add_oil_lambda::<S>(lambda, m);
}

/// M_0 += lambda_oil.
fn add_oil_lambda<S: SetSpec>(lambda: &[u8], m: &mut [Block]) {
    let (set, mb) = (S::SIZES, S::SIZES.m_bytes());
    if set.linear_term {
        let padded = bytes_mut(m).chunks_exact_mut(const { SetKernels::stride(S::SIZES) });
        for (out, lambda) in padded.take(set.o).zip(lambda[set.v() * mb..].chunks_exact(mb)) {
            out.iter_mut().zip(lambda).for_each(|(out, lambda)| *out ^= lambda);
        }
    }
}

/// See `SetKernels::verify`.
#[target_feature(enable = "avx2,gfni,bmi1,bmi2")]
pub(super) fn verify<S: SetSpec, const KP: usize, const F: usize, const T: usize, const JS: usize>(
    p: &[u8],
    p3: &[u8],
    s: &[u8],
    lambda: &[u8],
    u: &mut [Block],
    mut scratch: &mut [Block],
) {
    let set = S::SIZES;
    let (v, oil, mb) = (set.v(), set.o, set.m_bytes());
    let height = quads(v) + quads(oil);
    let table = take(&mut scratch, KP * JS);
    let room = take(&mut scratch, const { room_bytes(S::SIZES) });
    let sums = Sums::<KP, F, T>::at(take(&mut scratch, Sums::<KP, F, T>::bytes(height)), height, room);
    let w = take(&mut scratch, result_bytes(KP, KP, F, T));
    // SAFETY: p and p3 have all their m-vectors with slack, s and lambda the contract's lengths; the areas have the sizes
    // that the functions need.
    unsafe {
        vector_matrices::<S>(s, set.n, table);
        // The columns of P2 begin a new pair, also where v is odd.
        let oil_place = 4 * quads(v);
        let linear = |r: usize| lambda.as_ptr().wrapping_add(r * mb);
        for t in 0..quads(v) {
            let mut rows = p1_rows(set, p.as_ptr(), t);
            for (row, at) in rows.iter_mut().zip(p2_rows(set, p.as_ptr(), t)) {
                row[1] = Run { at, start: oil_place, count: oil, step: mb, less: 0 };
            }
            begin_linear::<S, KP, F, T>(sums, t, quad(t, v, linear));
            sums.add::<JS, false>(t, &rows, table);
        }
        for t in 0..quads(oil) {
            let rows = quad(t, oil, |r| Run::of_triangle(p3.as_ptr(), oil, mb, r, oil_place).alone());
            begin_linear::<S, KP, F, T>(sums, quads(v) + t, quad(t, oil, |r| linear(v + r)));
            sums.add::<JS, false>(quads(v) + t, &rows, table);
        }
        contract::<KP, JS, KP, F, T>(sums, KP, height, table, w);
        store_pairs::<S, KP, F, T>(w, u);
    }
}

/// Blocks of P1 in an expanded secret key; L follows, as sums.
const fn l_offset(p: &Sizes) -> usize {
    (p.p1_vecs() * p.m_bytes() + SLACK).div_ceil(64)
}

/// See `SetKernels::secret_blocks`.
pub(super) const fn secret_blocks(p: &Sizes) -> usize {
    l_offset(p) + sums_bytes(p, p.v(), p.o.div_ceil(2)).div_ceil(64)
}

/// See `SetKernels::expand_secret`.
#[target_feature(enable = "avx2,gfni,bmi1,bmi2")]
pub(super) fn expand_secret<S: SetSpec, const OP: usize, const F: usize, const T: usize, const JS: usize>(
    p: &[u8],
    o: &[u8],
    expanded: &mut [Block],
    mut scratch: &mut [Block],
) {
    let set = S::SIZES;
    let (v, mb) = (set.v(), set.m_bytes());
    let (p1, l) = expanded.split_at_mut(const { l_offset(S::SIZES) });
    bytes_mut(p1)[..set.p1_vecs() * mb].copy_from_slice(&p[..set.p1_vecs() * mb]);
    let table = take(&mut scratch, OP * JS);
    let l = Sums::<OP, F, T>::at(
        l.as_mut_ptr().cast(),
        quads(v),
        take(&mut scratch, const { room_bytes(S::SIZES) }),
    );
    // SAFETY: as in `keygen`; the layout has room for L.
    unsafe {
        oil_matrices::<S>(o, table);
        for t in 0..quads(v) {
            l.begin(t, 0, (p2_rows(set, p.as_ptr(), t), set.o), mb);
            l.add::<JS, false>(t, &p1_rows(set, p.as_ptr(), t), table);
        }
        for t in 0..quads(v) {
            l.add::<JS, true>(t, &p1_columns(set, p.as_ptr(), t), table);
        }
    }
}

/// See `SetKernels::sign_expanded`.
#[target_feature(enable = "avx2,gfni,bmi1,bmi2")]
pub(super) fn sign_expanded<
    S: SetSpec,
    const KP: usize,
    const OP: usize,
    const F: usize,
    const T: usize,
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
    let set = S::SIZES;
    let (v, oil, mb) = (set.v(), set.o, set.m_bytes());
    let (p1, l) = expanded.split_at(const { l_offset(S::SIZES) });
    let by_v = take(&mut scratch, KP * JS);
    let room = take(&mut scratch, const { room_bytes(S::SIZES) });
    // Only read.
    let l = Sums::<OP, F, T>::at(l.as_ptr().cast_mut().cast(), quads(v), room);
    let us = Sums::<KP, F, T>::at(take(&mut scratch, Sums::<KP, F, T>::bytes(quads(v))), quads(v), room);
    let w_pairs = take(&mut scratch, result_bytes(KP, KP, F, T));
    let w_l = take(&mut scratch, result_bytes(KP, OP, F, T));
    let lambdas = |t: usize| quad(t, v, |r| lambda.as_ptr().wrapping_add(r * mb));
    // SAFETY: the layout is that of `expand_secret`, the rest as in `sign`.
    unsafe {
        vector_matrices::<S>(vinegar, v, by_v);
        for t in 0..quads(v) {
            begin_linear::<S, KP, F, T>(us, t, lambdas(t));
            us.add::<JS, false>(t, &p1_rows(set, p1.as_ptr().cast(), t), by_v);
        }
        contract::<KP, JS, KP, F, T>(us, KP, quads(v), by_v, w_pairs);
        contract::<KP, JS, OP, F, T>(l, OP, quads(v), by_v, w_l);
        store_pairs::<S, KP, F, T>(w_pairs, u);
        let stride = const { SetKernels::stride(S::SIZES) / 64 };
        for (at, out) in m.chunks_exact_mut(stride).enumerate() {
            put::<S>(out.as_mut_ptr().cast(), &vector::<KP, F, T>(w_l, at / oil, at % oil));
        }
        if set.linear_term {
            // O^T lambda, which L does not hold.
            let by_o = take(&mut scratch, OP * JS);
            let linear = take(&mut scratch, Sums::<1, F, T>::bytes(quads(v)));
            let linear = Sums::<1, F, T>::at(linear, quads(v), room);
            let w_oil = take(&mut scratch, result_bytes(OP, 1, F, T));
            oil_matrices::<S>(o, by_o);
            for t in 0..quads(v) {
                linear.begin(t, 0, (lambdas(t), 1), mb);
            }
            contract::<OP, JS, 1, F, T>(linear, 1, quads(v), by_o, w_oil);
            for (c, out) in m.chunks_exact_mut(stride).enumerate().take(oil) {
                let sum = plus(vector::<KP, F, T>(w_l, 0, c), vector::<OP, F, T>(w_oil, c, 0));
                put::<S>(out.as_mut_ptr().cast(), &sum);
            }
        }
    }
    add_oil_lambda::<S>(lambda, m);
}
