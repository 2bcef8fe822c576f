//! The linear system and what follows it: A and y by whipping, Gauss-Jordan by columns, s = (v + O x, x).
//!
//! A column of A is one register of packed elements (two for m = 142), so that a row is a nibble in every register. Column j
//! gives the first free row with a nonzero entry: `vptestmb` and `tzcnt` find it without a branch, `vpermb` reads it. Every
//! later column c then loses (its entry in that row) times the multiplier column, one affine instruction with the entry's
//! matrix. Eight columns at a time: eight `vpermb`, each leaving its entry in one qword of a common register; one
//! `vpermi2q` turns them into eight matrices, which come back from memory as broadcasts. There is no row
//! swap and no back substitution: at the end x_j is y's entry in j's pivot row.
//!
//! Floor: C = k o columns give C^2 / 2 updates of `vpermb` + affine + store for each register: on Zen 4, where permutations
//! and affine maps share two of the four 256-bit pipes and a 512-bit store takes two cycles, 2.25 core cycles each; on
//! Zen 5 half of that. The chain from one pivot to the next (test, `tzcnt`, `vpermb`, `vpermi2q`, two affine maps) is about 45
//! cycles and overlaps with the updates, because the next pivot's column is made first.
//! Source: the column orientation is that of the readable version in `portable/eliminate.rs`.
//! Leak class: constant time; pivot rows are only ever lane indices of `vpermb` and masks. The rank test is the one bit that
//! is returned.

use super::gf::{DIAGONAL, Diagonal, Z, broadcast, load, store, sum3, table_of_rows, take, times};
use super::whip::{FRONT, Sum, buffer_bytes, places, slot, spread_out, whip_spread};
use crate::field::inv;
use crate::params::Params;
use crate::sys::Block;
use core::arch::x86_64::*;

/// Columns behind the right side that the groups of eight may touch.
const SPARE: usize = 8;

/// The spread-out vectors and the columns.
pub(super) const fn scratch_blocks(p: &Params) -> usize {
    let vectors = if p.k * p.o > p.pairs() { p.k * p.o } else { p.pairs() };
    buffer_bytes(p, vectors).div_ceil(64) + (p.k * p.o + 1 + SPARE) * p.m_bytes().div_ceil(64)
}

/// The matrices of 1 / a.
static INVERSES: Diagonal = {
    let mut out = [0; 16];
    let mut a = 0;
    while a < 16 {
        out[a] = DIAGONAL.0[inv(a as u8) as usize];
        a += 1;
    }
    Diagonal(out)
};

/// For each vector i the terms of its columns of A: how many with even l, and offsets into the buffer, those with even l
/// first.
struct Terms {
    even: [usize; 12],
    offsets: [[usize; 12]; 12],
}

const fn terms(p: &Params) -> Terms {
    let mut out = Terms { even: [0; 12], offsets: [[0; 12]; 12] };
    let mut i = 0;
    while i < p.k {
        let (mut parity, mut at) = (0, 0);
        while parity < 2 {
            let mut l = parity;
            while l < p.pairs() {
                let (a, b) = (p.schedule[l].0 as usize, p.schedule[l].1 as usize);
                if a == i || b == i {
                    let other = if a == i { b } else { a };
                    out.offsets[i][at] = FRONT + other * p.o * slot(p) - l / 2;
                    at += 1;
                }
                l += 2;
            }
            if parity == 0 {
                out.even[i] = at;
            }
            parity += 1;
        }
        i += 1;
    }
    out
}

/// See `SetKernels::solve`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni,bmi1")]
pub(super) fn solve<const S: usize, const NR: usize>(
    m: &[Block],
    u: &[Block],
    t: &[u8],
    r: &[u8],
    x: &mut [u8],
    mut scratch: &mut [Block],
) -> bool {
    let set = const { Params::by_index(S) };
    let terms = const { &terms(Params::by_index(S)) };
    let (k, oil) = (set.k, set.o);
    let vectors = if k * oil > set.pairs() { k * oil } else { set.pairs() };
    let buffer = take(&mut scratch, buffer_bytes(set, vectors));
    let columns = take(&mut scratch, 64 * NR * (k * oil + 1 + SPARE));
    // SAFETY: the buffers have the sizes that their users ask for; the columns are all written before they are read; m, u,
    // t, r and x have the contract's lengths.
    unsafe {
        spread_out::<S, NR>(u, buffer);
        let mut y = whip_spread::<S, NR>(buffer);
        spread_out::<S, NR>(m, buffer);
        let mut matrices = [0u64; 152];
        element_matrices(r, &mut matrices);
        let mut to = columns;
        for i in 0..k {
            for c in 0..oil {
                let mut sum = Sum::zero();
                let base = buffer.add(c * slot(set));
                let (even, odd) = terms.offsets[i][..k].split_at(terms.even[i]);
                for &offset in even {
                    sum.add::<S>(0, base.add(offset));
                }
                for &offset in odd {
                    sum.add::<S>(1, base.add(offset));
                }
                let column = sum.reduce::<S, NR>();
                let m = broadcast(&matrices[i * oil + c]);
                for h in 0..NR {
                    store(to.add(64 * h), column[h]);
                    y[h] = _mm512_xor_si512(y[h], times(column[h], m));
                }
                to = to.add(64 * NR);
            }
        }
        for h in 0..NR {
            y[h] = _mm512_xor_si512(y[h], super::gf::load_part(t.as_ptr().add(64 * h), t.len() - 64 * h));
            store(to.add(64 * h), y[h]);
        }
        for spare in NR..NR * (1 + SPARE) {
            store(to.add(64 * spare), _mm512_setzero_si512());
        }
        eliminate::<NR>(columns, k * oil, set.m, r, x)
    }
}

/// The diagonal matrices of elements, rounded up to a multiple of 8.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn element_matrices(elements: &[u8], out: &mut [u64; 152]) {
    for (from, to) in elements.chunks(8).zip(out.chunks_exact_mut(8)) {
        // SAFETY: only the elements are read; eight matrices are written; the table has 16.
        unsafe {
            let e = _mm_maskz_loadu_epi8((1 << from.len()) - 1, from.as_ptr().cast());
            let at = DIAGONAL.0.as_ptr().cast();
            let m = _mm512_permutex2var_epi64(load(at), _mm512_cvtepu8_epi64(e), load(at.add(64)));
            store(to.as_mut_ptr().cast(), m);
        }
    }
}

/// Solves for the last of `count + 1` columns; x = solution + r; whether the rank is `m`.
///
/// # Safety
/// `columns` must be `count + 1 + SPARE` columns of NZ registers, aligned, entries behind the m-th being 0.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni,bmi1")]
#[inline(never)]
unsafe fn eliminate<const NZ: usize>(
    columns: *mut u8,
    count: usize,
    m: usize,
    r: &[u8],
    x: &mut [u8],
) -> bool {
    let zero = _mm512_setzero_si512();
    let places = places();
    let (low, high) = (_mm512_set1_epi8(0x0f), _mm512_set1_epi8(0xf0u8 as i8));
    // Reads the byte at `place` into all bytes.
    let read = |place: Z, column: &[Z; NZ]| {
        if NZ == 1 {
            _mm512_permutexvar_epi8(place, column[0])
        } else {
            _mm512_permutex2var_epi8(column[0], place, column[NZ - 1])
        }
    };
    // SAFETY: the caller's promise for the columns; the tables have 16 matrices; pivots and x are `count` long.
    unsafe {
        let at: *const u8 = DIAGONAL.0.as_ptr().cast();
        let (t0, t1) = (load(at), load(at.add(64)));
        let at: *const u8 = INVERSES.0.as_ptr().cast();
        let (i0, i1) = (load(at), load(at.add(64)));
        let get = |c: usize| {
            let mut column = [zero; NZ];
            for h in 0..NZ {
                column[h] = load(columns.add(64 * (c * NZ + h)));
            }
            column
        };
        // Rows that are no pivot's yet, as nibbles of ones.
        let mut free = [_mm512_set1_epi8(-1); NZ];
        free[NZ - 1] = _mm512_maskz_mov_epi8(super::gf::first(m / 2 - 64 * (NZ - 1)), free[NZ - 1]);
        let mut pivots = [128u8; 192];
        let mut halves = [0u8; 192];
        let mut rank = 0;
        let mut matrices = Block::ZERO;
        let mut next = get(0);
        for j in 0..count {
            let column = next;
            let mut open = [zero; NZ];
            for h in 0..NZ {
                open[h] = _mm512_and_si512(column[h], free[h]);
            }
            // 64 NZ if there is none, which is no place at all.
            let mut bit = _tzcnt_u64(_mm512_test_epi8_mask(open[0], open[0]));
            if NZ == 2 {
                let rest = _tzcnt_u64(_mm512_test_epi8_mask(open[NZ - 1], open[NZ - 1]));
                bit += rest & (bit >> 6).wrapping_neg();
            }
            rank += 1 - (bit >> (5 + NZ));
            let place = _mm512_set1_epi8(bit as i8);
            let pivot = read(place, &open);
            // All ones if the pivot is in the high nibble, or there is none.
            let is_high = _mm512_testn_epi8_mask(pivot, low);
            let shift = _mm512_maskz_set1_epi64(is_high as u8, 4);
            let inverse = _mm512_permutex2var_epi64(i0, _mm512_srlv_epi64(pivot, shift), i1);
            let nibble = _mm512_mask_blend_epi8(is_high, low, high);
            pivots[j] = bit as u8;
            halves[j] = is_high as u8;
            // In the pivot row the multiplier is 1 - 1 / pivot, so that entry / pivot stays there.
            let mut factor = [zero; NZ];
            for h in 0..NZ {
                let own = _mm512_add_epi8(places, _mm512_set1_epi8((64 * h) as i8));
                let one = _mm512_maskz_mov_epi8(_mm512_cmpeq_epi8_mask(own, place), nibble);
                free[h] = _mm512_andnot_si512(one, free[h]);
                let ones = _mm512_and_si512(one, _mm512_set1_epi8(0x11));
                factor[h] = times(_mm512_xor_si512(column[h], ones), inverse);
            }
            // The next pivot's column first, in registers, to shorten the chain from pivot to pivot.
            next = get(j + 1);
            let entry = _mm512_srlv_epi64(read(place, &next), shift);
            let matrix = _mm512_permutex2var_epi64(t0, entry, t1);
            for h in 0..NZ {
                next[h] = _mm512_xor_si512(next[h], times(factor[h], matrix));
                store(columns.add(64 * ((j + 1) * NZ + h)), next[h]);
            }
            let mut c = j + 2;
            while c <= count {
                let e = |i: usize| {
                    let column = get(c + i);
                    let mask = 0xff << (8 * i);
                    if NZ == 1 {
                        _mm512_maskz_permutexvar_epi8(mask, place, column[0])
                    } else {
                        _mm512_maskz_permutex2var_epi8(mask, column[0], place, column[NZ - 1])
                    }
                };
                let entries =
                    sum3(sum3(e(0), e(1), e(2)), sum3(e(3), e(4), e(5)), _mm512_xor_si512(e(6), e(7)));
                let eight = _mm512_permutex2var_epi64(t0, _mm512_srlv_epi64(entries, shift), t1);
                store(matrices.0.as_mut_ptr(), eight);
                for i in 0..8 {
                    let matrix = broadcast(matrices.0.as_ptr().cast::<u64>().add(i));
                    for h in 0..NZ {
                        let to = columns.add(64 * ((c + i) * NZ + h));
                        store(to, _mm512_xor_si512(load(to), times(factor[h], matrix)));
                    }
                }
                c += 8;
            }
        }
        let right = get(count);
        for (at, (x, r)) in x.chunks_mut(64).zip(r.chunks(64)).enumerate() {
            let place = load(pivots.as_ptr().add(64 * at));
            let half = load(halves.as_ptr().add(64 * at));
            let found = _mm512_cmplt_epu8_mask(place, _mm512_set1_epi8((64 * NZ) as u8 as i8));
            let bytes = read(place, &right);
            let is_high = _mm512_test_epi8_mask(half, half);
            let elements = _mm512_mask_blend_epi8(is_high, bytes, _mm512_srli_epi16::<4>(bytes));
            let solution = _mm512_maskz_and_epi64(0xff, elements, low);
            let solution = _mm512_maskz_mov_epi8(found, solution);
            let mask = super::gf::first(x.len());
            let r = _mm512_maskz_loadu_epi8(mask, r.as_ptr().cast());
            _mm512_mask_storeu_epi8(x.as_mut_ptr().cast(), mask, _mm512_xor_si512(solution, r));
        }
        rank == m as u64
    }
}

/// See `SetKernels::finish`. The elements of O are joined in pairs of columns, one byte for each row, so that one affine
/// instruction makes two vectors' sums over two of the columns for 64 rows.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
pub(super) fn finish<const S: usize>(o: &[u8], vinegar: &[u8], x: &[u8], s: &mut [u8]) {
    let set = const { Params::by_index(S) };
    let (n, v, oil, k) = (set.n, set.v(), set.o, set.k);
    let pairs = oil.div_ceil(2);
    let mut joined = [[0u8; 192]; 9];
    for (r, row) in o.chunks_exact(oil).enumerate() {
        for (j, pair) in row.chunks(2).enumerate() {
            joined[j][r] = pair[0] | pair.get(1).map_or(0, |high| high << 4);
        }
    }
    let mut matrices = [0u64; 6 * 16];
    // SAFETY: x is k x o; the table has six rows of 16 pairs; joined rows have 192 bytes, v at most 142; masks keep
    // every access to vinegar and s inside.
    unsafe {
        table_of_rows(x.as_ptr(), oil, k, oil, matrices.as_mut_ptr(), 16);
        for i in 0..k.div_ceil(2) {
            for z in 0..v.div_ceil(64) {
                let mut sum = _mm512_setzero_si512();
                for j in 0..pairs {
                    let m = broadcast(&matrices[16 * i + j]);
                    sum = _mm512_xor_si512(sum, times(load(joined[j].as_ptr().add(64 * z)), m));
                }
                let low = _mm512_set1_epi8(0x0f);
                let both = [sum, _mm512_srli_epi16::<4>(sum)];
                for (h, part) in both.into_iter().enumerate().take((k - 2 * i).min(2)) {
                    let (i, mask) = (2 * i + h, super::gf::first(v - 64 * z));
                    let own = _mm512_maskz_loadu_epi8(mask, vinegar.as_ptr().add(i * v + 64 * z).cast());
                    let out = _mm512_xor_si512(_mm512_and_si512(part, low), own);
                    _mm512_mask_storeu_epi8(s.as_mut_ptr().add(i * n + 64 * z).cast(), mask, out);
                }
            }
        }
    }
    for (s, x) in s.chunks_exact_mut(n).zip(x.chunks_exact(oil)) {
        s[v..].copy_from_slice(x);
    }
}
