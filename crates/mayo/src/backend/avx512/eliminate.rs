//! The linear system and what follows it: A and y by whipping, Gauss-Jordan by pairs of columns, s = (v + O x, x).
//!
//! Two neighbouring columns of A lie in one vector of bytes: row i's entries in the nibbles of byte i, the even rows'
//! bytes in the first register, the odd rows' in the second (m = 64: both in one; m = 142: the rest of both in a
//! third). A pair of columns gives two pivots: `vptestmb` and `tzcnt` find the first free row with a nonzero entry
//! without a branch, `vpermb` reads it, and the two multiplier columns become the nibbles of one vector F. Every later
//! pair of columns then loses F times the 2x2 matrix of its four entries in the two pivot rows: one affine instruction
//! for four products in each byte. The entries of eight pairs are gathered into the qwords of two registers, of which
//! two byte look-ups make eight matrices, that come back from memory as broadcasts. There is no row swap and no back
//! substitution: at the end x_j is y's entry in j's pivot row.
//!
//! The matrices of a step are all made before its first column changes, and a step's work is done in five shares
//! between the parts of the next pivots' chain. Neither the queues of waiting instructions (128 on Zen 4) nor the
//! window of 320 reach across a step, so the two overlap only if they alternate in the program.
//!
//! Floor: C = k o columns give C^2 / 8 updates of a pair by a pair, for one, two and three registers 3.75, 4.75 and
//! 7.75 instructions on the pipes that have byte permutations and affine maps, one a core cycle on Zen 4 and two on Zen
//! 5: for C = 80 on Zen 4 3.8 k cycles (2.7 k ticks), for C = 144 20 k (14 k). Stores, two cycles each on Zen 4, take
//! 2, 4 and 6 cycles of the same time. The chain from one pair of pivots to the next is about 125 cycles, 3.5 k ticks
//! in all for C = 80. Source: the column orientation is that of the readable version in `portable/eliminate.rs`; pairs
//! of pivots are ours. Leak class: constant time; pivot rows are only ever lane indices of byte permutations and masks.
//! The rank test is the one bit that is returned.

use super::gf::{
    DIAGONAL, Diagonal, Z, broadcast, first, from_nibbles, highs, load, lows, matrix, store, sum3,
    table_of_rows, take, times,
};
use super::whip::{FRONT, Sum, buffer_bytes, places, slot, spread_out, whip_spread, wide};
use crate::backend::SetSpec;
use crate::field::inv;
use crate::params::Sizes;
use crate::sys::Block;
use core::arch::x86_64::*;

/// Pairs of columns after the last that the groups of eight may touch.
const SPARE: usize = 8;

/// Groups of eight pairs that a step changes at most.
const GROUPS: usize = 10;

/// Registers of a pair of columns.
pub(super) const fn pair_registers(p: &Sizes) -> usize {
    p.m.div_ceil(64)
}

/// Pairs of columns, the right side with them.
const fn column_pairs(p: &Sizes) -> usize {
    (p.k * p.o + 1).div_ceil(2)
}

/// The spread-out vectors and the columns.
pub(super) const fn scratch_blocks(p: &Sizes) -> usize {
    let vectors = if p.k * p.o > p.pairs() { p.k * p.o } else { p.pairs() };
    buffer_bytes(p, vectors).div_ceil(64) + (column_pairs(p) + SPARE) * pair_registers(p)
}

/// The matrices of (1/a, 0; 0, 1), of (1, 0; 0, 1/a) and of (1, 0; a, 1).
static FIRST_PIVOT: Diagonal = by_element(0);
static SECOND_PIVOT: Diagonal = by_element(1);
static ADD_LOW: Diagonal = by_element(2);

const fn by_element(kind: u8) -> Diagonal {
    let mut out = [0; 16];
    let mut a = 0;
    while a < 16 {
        let e = a as u8;
        out[a] = match kind {
            0 => matrix(inv(e), 0, 0, 1),
            1 => matrix(1, 0, 0, inv(e)),
            _ => matrix(1, 0, e, 1),
        };
        a += 1;
    }
    Diagonal(out)
}

/// For each vector i the terms of its columns of A as offsets into the buffer: those with even l that one window holds,
/// those with even l that take two, the same with odd l; and where the second, third and fourth sort begin.
struct Terms {
    begins: [[usize; 3]; 12],
    offsets: [[usize; 12]; 12],
}

const fn terms(p: &Sizes) -> Terms {
    let mut out = Terms { begins: [[0; 3]; 12], offsets: [[0; 12]; 12] };
    let mut i = 0;
    while i < p.k {
        let (mut sort, mut at) = (0, 0);
        while sort < 4 {
            if sort > 0 {
                out.begins[i][sort - 1] = at;
            }
            let mut l = sort / 2;
            while l < p.pairs() {
                let (a, b) = (p.schedule[l].0 as usize, p.schedule[l].1 as usize);
                if (a == i || b == i) && wide(p, l) == (sort % 2 == 1) {
                    let other = if a == i { b } else { a };
                    out.offsets[i][at] = FRONT + other * p.o * slot(p) - l / 2;
                    at += 1;
                }
                l += 2;
            }
            sort += 1;
        }
        i += 1;
    }
    out
}

/// See `SetKernels::solve`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni,bmi1")]
pub(super) fn solve<S: SetSpec, const NR: usize, const ZP: usize>(
    m: &[Block],
    u: &[Block],
    t: &[u8],
    r: &[u8],
    x: &mut [u8],
    mut scratch: &mut [Block],
) -> bool {
    let set = S::SIZES;
    let terms = const { &terms(S::SIZES) };
    let (k, oil) = (set.k, set.o);
    let vectors = if k * oil > set.pairs() { k * oil } else { set.pairs() };
    let buffer = take(&mut scratch, buffer_bytes(set, vectors));
    let pairs = take(&mut scratch, 64 * ZP * (column_pairs(set) + SPARE));
    // SAFETY: the buffers have the sizes of their constants; all columns are written before they are read; m, u, t, r
    // and x have the contract's lengths.
    unsafe {
        spread_out::<S, NR>(u, buffer);
        let mut y = whip_spread::<S, NR>(buffer);
        spread_out::<S, NR>(m, buffer);
        let mut matrices = [0u64; 152];
        element_matrices(r, &mut matrices);
        let mut even = [_mm512_setzero_si512(); NR];
        for i in 0..k {
            for c in 0..oil {
                let mut sum = Sum::zero();
                let base = buffer.add(c * slot(set));
                let (offsets, [one, two, three]) = (&terms.offsets[i], terms.begins[i]);
                for &offset in &offsets[..one] {
                    sum.add::<false>(0, base.add(offset));
                }
                for &offset in &offsets[one..two] {
                    sum.add::<true>(0, base.add(offset));
                }
                for &offset in &offsets[two..three] {
                    sum.add::<false>(1, base.add(offset));
                }
                for &offset in &offsets[three..k] {
                    sum.add::<true>(1, base.add(offset));
                }
                let column = sum.reduce::<S, NR>();
                let at = i * oil + c;
                let m = broadcast(&matrices[at]);
                for h in 0..NR {
                    y[h] = _mm512_xor_si512(y[h], times(column[h], m));
                }
                if at % 2 == 0 {
                    even = column;
                } else {
                    store_columns::<NR, ZP>(pairs.add(64 * ZP * (at / 2)), &even, &column);
                }
            }
        }
        for h in 0..NR {
            y[h] = _mm512_xor_si512(y[h], super::gf::load_part(t.as_ptr().add(64 * h), t.len() - 64 * h));
        }
        let last = column_pairs(set) - 1;
        let zero = [_mm512_setzero_si512(); NR];
        if k * oil % 2 == 0 {
            store_columns::<NR, ZP>(pairs.add(64 * ZP * last), &y, &zero);
        } else {
            store_columns::<NR, ZP>(pairs.add(64 * ZP * last), &even, &y);
        }
        for spare in 1..=SPARE {
            store_columns::<NR, ZP>(pairs.add(64 * ZP * (last + spare)), &zero, &zero);
        }
        eliminate::<ZP>(pairs, k * oil, set.m, r, x)
    }
}

/// Writes two packed columns as a vector of pairs.
///
/// # Safety
/// ZP registers must be writable at `to`.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
unsafe fn store_columns<const NR: usize, const ZP: usize>(to: *mut u8, a: &[Z; NR], b: &[Z; NR]) {
    let (e, o) = (lows(a[0], b[0]), highs(a[0], b[0]));
    // SAFETY: the caller's promise.
    unsafe {
        if ZP == 1 {
            store(to, _mm512_shuffle_i64x2::<0x44>(e, o));
        } else {
            store(to, e);
            store(to.add(64), o);
        }
        if ZP == 3 {
            let (a, b) = (a[NR - 1], b[NR - 1]);
            store(to.add(128), _mm512_unpacklo_epi64(lows(a, b), highs(a, b)));
        }
    }
}

/// Which bytes of a vector of pairs are rows, by register.
const fn rows(m: usize, zp: usize) -> [u64; 3] {
    match zp {
        1 => [first(m), 0, 0],
        2 => [first(m / 2), first(m / 2), 0],
        _ => [u64::MAX, u64::MAX, first(m / 2 - 64) | first(m / 2 - 64) << 8],
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

/// The place of the first one among ZP masks' bits, or 64 ZP if there is none.
#[target_feature(enable = "bmi1")]
#[inline]
fn first_place<const ZP: usize>(masks: [u64; ZP]) -> u64 {
    let mut place = 0;
    let mut open = u64::MAX;
    for mask in masks {
        let here = _tzcnt_u64(mask);
        place += here & open;
        // Continues only if this mask has none.
        open &= (here >> 6).wrapping_neg();
    }
    place
}

/// The matrices (e1.low, e2.low; e1.high, e2.high) of entries that fill a qword each.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
#[inline]
fn entry_matrices(e1: Z, e2: Z) -> Z {
    // The high half of a qword makes the low half of the result.
    let high_half = _mm512_set1_epi64(0xffff_ffff_0000_0000u64 as i64);
    let spread = |e: Z| {
        let chosen = _mm512_ternarylogic_epi64::<0xca>(high_half, e, _mm512_srli_epi16::<4>(e));
        _mm512_and_si512(chosen, _mm512_set1_epi8(0x0f))
    };
    from_nibbles(spread(e1), spread(e2))
}

/// Solves for the last of `count + 1` columns; x = solution + r; whether the rank is `m`.
///
/// # Safety
/// `pairs` must be the columns in pairs of ZP registers, with SPARE pairs after them; bytes that are not rows must be 0.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni,bmi1")]
#[inline(never)]
unsafe fn eliminate<const ZP: usize>(pairs: *mut u8, count: usize, m: usize, r: &[u8], x: &mut [u8]) -> bool {
    let zero = _mm512_setzero_si512();
    let (low, high) = (_mm512_set1_epi8(0x0f), _mm512_set1_epi8(0xf0u8 as i8));
    let places = places();
    // Reads the byte at `place` into the bytes of `mask`, the others becoming 0.
    let read = |mask: u64, place: Z, columns: &[Z; ZP]| match ZP {
        1 => _mm512_maskz_permutexvar_epi8(mask, place, columns[0]),
        2 => _mm512_maskz_permutex2var_epi8(mask, columns[0], place, columns[ZP - 1]),
        _ => {
            let third = _mm512_movepi8_mask(place);
            let two = _mm512_maskz_permutex2var_epi8(mask, columns[0], place, columns[ZP - 2]);
            _mm512_mask_permutexvar_epi8(two, third & mask, place, columns[ZP - 1])
        }
    };
    // SAFETY: the caller's promise for the columns; the tables have 16 matrices; pivots and x are `count` long.
    unsafe {
        let look_up = |table: &Diagonal, at: Z| {
            let table: *const u8 = table.0.as_ptr().cast();
            _mm512_permutex2var_epi64(load(table), at, load(table.add(64)))
        };
        let get_at = |from: *const u8| {
            let mut columns = [zero; ZP];
            for h in 0..ZP {
                columns[h] = load(from.add(64 * h));
            }
            columns
        };
        let get = |c: usize| get_at(pairs.add(64 * ZP * c));
        // Rows without a pivot so far.
        let mut free = [zero; ZP];
        for h in 0..ZP {
            free[h] = _mm512_movm_epi8(rows(m, ZP)[h]);
        }
        // The nibble of `which` becomes 1 in the row of the pivot, which is no longer free.
        let mark = |columns: &mut [Z; ZP], free: &mut [Z; ZP], place: Z, which: i8| {
            for h in 0..ZP {
                let own = _mm512_add_epi8(places, _mm512_set1_epi8((64 * h) as i8));
                let one = _mm512_cmpeq_epi8_mask(own, place);
                free[h] = _mm512_mask_mov_epi8(free[h], one, zero);
                columns[h] = _mm512_xor_si512(columns[h], _mm512_maskz_set1_epi8(one, which));
            }
        };
        let search = |columns: &[Z; ZP], free: &[Z; ZP], nibble: Z| {
            let mut masks = [0; ZP];
            for h in 0..ZP {
                masks[h] = _mm512_test_epi8_mask(_mm512_and_si512(columns[h], free[h]), nibble);
            }
            first_place(masks)
        };
        let none = 64 * ZP as u64;
        let mut pivots = [0xffu8; 192];
        let mut rank = 0;
        let mut matrices = [Block::ZERO; GROUPS];
        let last = count / 2;
        let mut next = get(0);
        // The step whose pivots are known; at first one without effect.
        let (mut f, mut place1, mut second, mut cross) = ([zero; ZP], zero, zero, zero);
        for p in 0..count.div_ceil(2) {
            // The columns after this pair, which step p - 1 has yet to change.
            let base = pairs.add(64 * ZP * (p + 1));
            let left = if p == 0 { 0 } else { last.saturating_sub(p) };
            let groups = left.div_ceil(8);
            let (mut made, mut changed) = (0, 0);
            // A share of step p - 1: matrices of eight pairs each in the first three, columns in the last four.
            macro_rules! share {
                ($number:literal) => {
                    let until = if $number < 2 { (groups * ($number + 1)).div_ceil(3) } else { groups };
                    while made < until {
                        let from = base.add(64 * ZP * 8 * made);
                        let gather = |place: Z| {
                            let e = |i: usize| read(0xff << (8 * i), place, &get_at(from.add(64 * ZP * i)));
                            sum3(sum3(e(0), e(1), e(2)), sum3(e(3), e(4), e(5)), _mm512_xor_si512(e(6), e(7)))
                        };
                        let e1 = gather(place1);
                        let e2 = _mm512_xor_si512(gather(second), times(e1, cross));
                        store(matrices[made].0.as_mut_ptr(), entry_matrices(e1, e2));
                        made += 1;
                    }
                    // Empty assembly: without it the compiler extracts the matrices from registers one by one, on the
                    // busy pipes, instead of loading them.
                    core::arch::asm!("", in("rax") &raw mut matrices, options(nostack, preserves_flags));
                    let until = left * $number / 4;
                    while changed < until {
                        let matrix = broadcast(matrices.as_ptr().cast::<u64>().add(changed));
                        for h in 0..ZP {
                            let to = base.add(64 * (changed * ZP + h));
                            store(to, _mm512_xor_si512(load(to), times(f[h], matrix)));
                        }
                        changed += 1;
                    }
                };
            }
            let mut own = next;
            let new1 = search(&own, &free, low);
            pivots[2 * p] = new1 as u8;
            rank += u64::from(new1 != none);
            let new1 = _mm512_set1_epi8(new1 as i8);
            share!(0);
            // (pivot, entry of the second column); 0 in the low nibble if there is none.
            let pivot = read(u64::MAX, new1, &own);
            let found = read(u64::MAX, new1, &free);
            let scale = look_up(&FIRST_PIVOT, _mm512_and_si512(pivot, found));
            let add = look_up(&ADD_LOW, _mm512_srli_epi64::<4>(pivot));
            // In the pivot row the multiplier is 1 - 1 / pivot, so that entry / pivot stays there.
            mark(&mut own, &mut free, new1, 1);
            share!(1);
            for h in 0..ZP {
                own[h] = times(times(own[h], scale), add);
            }
            if 2 * p + 1 == count {
                // The right side shares the last pivot's pair, and is updated here.
                for h in 0..ZP {
                    store(pairs.add(64 * (p * ZP + h)), own[h]);
                }
            }
            let new2 = if 2 * p + 1 < count { search(&own, &free, high) } else { none };
            pivots[2 * p + 1] = new2 as u8;
            rank += u64::from(new2 != none);
            let new2_place = _mm512_set1_epi8(new2 as i8);
            share!(2);
            let pivot = read(u64::MAX, new2_place, &own);
            // Without a second pivot its multiplier is 0.
            let exists = _mm512_maskz_mov_epi64(((new2 != none) as u8).wrapping_neg(), pivot);
            let scale = look_up(&SECOND_PIVOT, _mm512_srli_epi64::<4>(exists));
            let new_cross = look_up(&DIAGONAL, exists);
            mark(&mut own, &mut free, new2_place, 0x10);
            share!(3);
            for h in 0..ZP {
                own[h] = times(own[h], scale);
            }
            share!(4);
            (f, place1, second, cross) = (own, new1, new2_place, new_cross);
            // The next pivots' columns before all others, in registers, to shorten the chain from pivots to pivots.
            next = get(p + 1);
            let e1 = read(u64::MAX, place1, &next);
            let e2 = _mm512_xor_si512(read(u64::MAX, second, &next), times(e1, cross));
            let matrix = entry_matrices(e1, e2);
            for h in 0..ZP {
                next[h] = _mm512_xor_si512(next[h], times(f[h], matrix));
                store(pairs.add(64 * ((p + 1) * ZP + h)), next[h]);
            }
        }
        let right = get(last);
        for (at, (x, r)) in x.chunks_mut(64).zip(r.chunks(64)).enumerate() {
            let place = load(pivots.as_ptr().add(64 * at));
            let found = _mm512_cmpneq_epi8_mask(place, _mm512_set1_epi8(none as i8));
            let bytes = read(found, place, &right);
            let own = if count.is_multiple_of(2) { bytes } else { _mm512_srli_epi16::<4>(bytes) };
            let mask = first(x.len());
            let r = _mm512_maskz_loadu_epi8(mask, r.as_ptr().cast());
            let sum = _mm512_xor_si512(_mm512_and_si512(own, low), r);
            _mm512_mask_storeu_epi8(x.as_mut_ptr().cast(), mask, sum);
        }
        rank == m as u64
    }
}

/// See `SetKernels::finish`. The elements of O are joined in pairs of columns, one byte for each row, so that one
/// affine instruction makes two vectors' sums over two of the columns for 64 rows.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
pub(super) fn finish<S: SetSpec>(o: &[u8], vinegar: &[u8], x: &[u8], s: &mut [u8]) {
    let set = S::SIZES;
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
    // every access to vinegar, x and s inside; o is at most 17.
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
                    let (i, mask) = (2 * i + h, first(v - 64 * z));
                    let own = _mm512_maskz_loadu_epi8(mask, vinegar.as_ptr().add(i * v + 64 * z).cast());
                    let out = _mm512_xor_si512(_mm512_and_si512(part, low), own);
                    _mm512_mask_storeu_epi8(s.as_mut_ptr().add(i * n + 64 * z).cast(), mask, out);
                }
            }
        }
        // By masks: from plain copies of 8 bytes the compiler makes one scatter, whose time is not documented as
        // independent of data.
        for (s, x) in s.chunks_exact_mut(n).zip(x.chunks_exact(oil)) {
            let x = _mm256_maskz_loadu_epi8(first(oil) as u32, x.as_ptr().cast());
            _mm256_mask_storeu_epi8(s.as_mut_ptr().add(v).cast(), first(oil) as u32, x);
        }
    }
}
