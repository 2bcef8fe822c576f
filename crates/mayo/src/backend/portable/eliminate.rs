//! The linear system in plain words: A and y by whipping, then Gauss-Jordan elimination by columns.
//!
//! Column j of A gives, among the rows that are not yet pivots, the first with a nonzero entry (by a running mask over
//! words, never by an index); every later column c then loses (its entry in the pivot row) times the multiplier
//! column. With columns as m-vectors this is one masked product for each (j, c): ko(ko+1)/2 of them, no back
//! substitution, no row swap. At the end x_j is y's entry in j's pivot row.
//! Leak class: constant time; the rank test is the one bit that is returned (a restart is public).

use super::whip::{Long, whip_words};
use super::words::{MVec, ONES, Words, add, load, masks, mul_add, powers, take};
use crate::backend::{SetKernels, SetSpec};
use crate::field::{inv, mul};
use crate::params::Sizes;
use crate::sys::{Block, bytes};

/// Columns of A, y, and the pivots' one-hot masks.
pub(super) const fn scratch_blocks(p: &Sizes) -> usize {
    ((2 * p.k * p.o + 1) * p.m_bytes().div_ceil(8) * 8).div_ceil(64) + 2
}

/// See `SetKernels::solve`.
#[inline(never)]
pub(super) fn solve<S: SetSpec, const NW: usize>(
    m: &[Block],
    u: &[Block],
    t: &[u8],
    r: &[u8],
    x: &mut [u8],
    mut scratch: &mut [Block],
) -> bool
where
    MVec<NW>: Words,
{
    let set = S::SIZES;
    let (k, oil, stride) = (set.k, set.o, SetKernels::stride(set));
    let columns = take::<MVec<NW>>(&mut scratch, k * oil + 1);
    let m = bytes(m);
    for i in 0..k {
        for c in 0..oil {
            let mut long = Long::zero();
            for (l, &(a, b)) in set.schedule.iter().enumerate() {
                let (a, b) = (usize::from(a), usize::from(b));
                if a == i || b == i {
                    let other = if a == i { b } else { a };
                    long.add_shifted(l, &load::<NW>(m, (other * oil + c) * stride));
                }
            }
            columns[i * oil + c] = long.reduce(set);
        }
    }
    // y = t + sum z^l u_l + A r.
    let mut y = whip_words::<S, NW>(u);
    for (i, &byte) in t.iter().enumerate() {
        y[i / 8] ^= u64::from(byte) << (i % 8 * 8);
    }
    for (column, &r) in columns.iter().zip(r) {
        mul_add(&mut y, &masks(r), &powers(column));
    }
    columns[k * oil] = y;
    let pivots = take::<MVec<NW>>(&mut scratch, k * oil);
    let full = eliminate(set, columns, pivots);
    for ((x, pivot), &r) in x.iter_mut().zip(pivots.iter()).zip(r) {
        *x = at(&columns[k * oil], pivot) ^ r;
    }
    full
}

/// The entry of `column` in the row that `pivot` (one nibble of ones, or none) marks.
fn at<const NW: usize>(column: &MVec<NW>, pivot: &MVec<NW>) -> u8 {
    let mut found = 0;
    for w in 0..NW {
        found |= column[w] & pivot[w];
    }
    found |= found >> 32;
    found |= found >> 16;
    found |= found >> 8;
    found |= found >> 4;
    found as u8 & 0xf
}

/// Gauss-Jordan on `columns`, the last of which is the right side; fills the pivots' masks; whether the rank is m.
fn eliminate<const NW: usize>(set: &Sizes, columns: &mut [MVec<NW>], pivots: &mut [MVec<NW>]) -> bool {
    let mut free = [u64::MAX; NW];
    if !set.m.is_multiple_of(16) {
        free[NW - 1] = (1 << (set.m % 16 * 4)) - 1;
    }
    let mut rank = 0u32;
    for j in 0..pivots.len() {
        let column = columns[j];
        // The first free row with a nonzero entry, as a nibble of ones; none if there is no such row.
        let mut pivot = [0; NW];
        let mut open = u64::MAX;
        for w in 0..NW {
            let x = column[w] & free[w];
            let nonzero = (x | x >> 1 | x >> 2 | x >> 3) & ONES;
            let first = nonzero & nonzero.wrapping_neg() & open;
            pivot[w] = first * 15;
            // All ones until one is found: (first | -first) has its top bit set exactly if first is not 0.
            open &= (((first | first.wrapping_neg()) >> 63) ^ 1).wrapping_neg();
        }
        rank += (open & 1) as u32 ^ 1;
        // The multiplier column takes every row's entry over the pivot; in the pivot row itself 1 - 1/pivot, so that
        // subtracting (entry times multiplier) leaves entry/pivot there.
        let scale = inv(at(&column, &pivot));
        let mut multiplier = column;
        for w in 0..NW {
            multiplier[w] ^= pivot[w] & ONES;
            free[w] &= !pivot[w];
        }
        let mut scaled = [0; NW];
        mul_add(&mut scaled, &masks(scale), &powers(&multiplier));
        let multiplier = powers(&scaled);
        for later in &mut columns[j + 1..] {
            let entry = at(later, &pivot);
            let mut update = [0; NW];
            mul_add(&mut update, &masks(entry), &multiplier);
            add(later, &update);
        }
        pivots[j] = pivot;
    }
    rank as usize == set.m
}

/// See `SetKernels::finish`.
#[inline(never)]
pub(super) fn finish<S: SetSpec>(o: &[u8], vinegar: &[u8], x: &[u8], s: &mut [u8]) {
    let set = S::SIZES;
    let (v, oil) = (set.v(), set.o);
    for i in 0..set.k {
        let xi = &x[i * oil..(i + 1) * oil];
        let out = &mut s[i * set.n..(i + 1) * set.n];
        for (r, out) in out[..v].iter_mut().enumerate() {
            *out = vinegar[i * v + r];
            for (&o, &x) in o[r * oil..(r + 1) * oil].iter().zip(xi) {
                *out ^= mul(o, x);
            }
        }
        out[v..].copy_from_slice(xi);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{Params, Round, Set};

    /// A system whose rank is one too small must be refused; with the last row restored it must be solved.
    #[test]
    fn rank_decides() {
        let set = &Params::of(Round::Three, Set::Mayo2).sizes;
        const NW: usize = 4;
        let mut columns = vec![[0u64; NW]; set.k * set.o + 1];
        for row in 0..set.m {
            columns[row][row / 16] = 7 << (row % 16 * 4);
        }
        columns[set.k * set.o] = [0x5555_5555_5555_5555; NW];
        let mut pivots = vec![[0u64; NW]; set.k * set.o];
        let mut short = columns.clone();
        short[set.m - 1] = [0; NW];
        assert!(!eliminate(set, &mut short, &mut pivots));
        assert!(eliminate(set, &mut columns, &mut pivots));
        for row in 0..set.m {
            assert_eq!(at(&columns[set.k * set.o], &pivots[row]), mul(inv(7), 5), "row {row}");
        }
        assert_eq!(
            at(&columns[set.k * set.o], &pivots[set.m]),
            0,
            "a column without a pivot is a free variable"
        );
    }

    /// Systems whose rank is known: the rows of a triangle in any order, some added to others, and in every other
    /// system one row present twice. Entries are mostly 0 and 1, so that a single one often decides; the bytes after the
    /// last row are arbitrary.
    fn known_ranks<const NW: usize>(set: &Sizes) {
        let mut seed = set.m as u64;
        let mut below = |n: usize| {
            seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (seed >> 33) as usize % n
        };
        let m = set.m;
        let rounds = if cfg!(miri) { 2 } else { 24 };
        for round in 0..rounds {
            // Spare columns would hide an overlooked one.
            let wide = m + round / 2 % 4;
            // The last entry of a row is the right side's.
            let mut rows = vec![vec![0u8; wide + 1]; m];
            for (i, row) in rows.iter_mut().enumerate() {
                for _ in 0..3 {
                    row[i + 1 + below(wide - i)] = 1 + below(15) as u8;
                }
                row[i] = if below(2) == 0 { 1 } else { 1 + below(15) as u8 };
            }
            for i in (1..m).rev() {
                rows.swap(i, below(i + 1));
            }
            for _ in 0..round % 3 * m {
                let (from, to, factor) = (rows[below(m)].clone(), below(m), below(16) as u8);
                if from != rows[to] {
                    rows[to].iter_mut().zip(from).for_each(|(to, from)| *to ^= mul(factor, from));
                }
            }
            let full = round % 2 == 0;
            if !full {
                let (from, to) = (below(m), below(m - 1));
                rows[if to < from { to } else { to + 1 }] = rows[from].clone();
            }
            let mut columns = vec![[0u64; NW]; wide + 1];
            for (c, column) in columns.iter_mut().enumerate() {
                for r in 0..16 * NW {
                    let entry = if r < m { rows[r][c] } else { below(16) as u8 };
                    column[r / 16] |= u64::from(entry) << (r % 16 * 4);
                }
            }
            let mut pivots = vec![[0u64; NW]; wide];
            assert_eq!(eliminate(set, &mut columns, &mut pivots), full, "m = {m}, round {round}");
            if full {
                let x: Vec<u8> = pivots.iter().map(|pivot| at(&columns[wide], pivot)).collect();
                for (r, row) in rows.iter().enumerate() {
                    let sum = row.iter().zip(&x).fold(0, |sum, (&a, &x)| sum ^ mul(a, x));
                    assert_eq!(sum, row[wide], "m = {m}, round {round}, row {r}");
                }
            }
        }
    }

    #[test]
    fn ranks_and_solutions_are_right_for_every_m() {
        let mut partial = 0;
        // Under an interpreter, some thousand times slower, only m = 80 and 78.
        for params in Params::all().step_by(if cfg!(miri) { 4 } else { 1 }) {
            let set = params.sizes();
            partial += usize::from(!set.m.is_multiple_of(16));
            match set.m.div_ceil(16) {
                4 => known_ranks::<4>(set),
                5 => known_ranks::<5>(set),
                6 => known_ranks::<6>(set),
                7 => known_ranks::<7>(set),
                8 => known_ranks::<8>(set),
                9 => known_ranks::<9>(set),
                words => panic!("{words} words"),
            }
        }
        assert!(partial > 0, "no set whose last word is not full");
    }
}
