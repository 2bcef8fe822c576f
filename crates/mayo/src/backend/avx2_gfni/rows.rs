//! Products of rows: four at a time, without packing.
//!
//! ```text
//! for each vector pair q:  sums[q] = init[q] + sum over c of matrix(q, c) (entry 2c, entry 2c + 1)
//! ```
//!
//! **Layout.** An m-vector has F *slices* of 32 bytes, then T *tails* of 8 (m = 64: F = 1, T = 0; 78 and 80: 1, 1; 108:
//! 1, 3; 142: 2, 1). Slices of neighbouring m-vectors are joined in registers: the even equations' bytes in one, the odd
//! ones' in another. The tails of rows 4t + h and 4t + h + 2 share a register, one in each lane. A byte of a sum holds the
//! results of vectors 2q and 2q + 1.
//!
//! **Floor.** An affine map and an XOR for 128 multiply-accumulates; on Intel's three vector ports, two of which have
//! affine maps, 2/3 of a cycle. A pair of slices costs 4 K + 6 operations with K pairs of vectors, a pair of tails of two
//! rows 2 K + 5: for K = 5 and m = 80 a cell of two rows and two columns takes 22.3 cycles.
//!
//! Leak class: constant time; addresses depend only on sizes.

use core::arch::x86_64::*;
use core::hint::select_unpredictable;

use super::gf::{KEEP, KEPT, MATRIX, PLAIN, add_times, broadcast, in_parts, join, join_tails, load, store};

/// Zeros in place of absent m-vectors.
static NONE: [u8; 128] = [0; 128];

/// M-vectors that follow each other in a row or column of a matrix.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub(super) at: *const u8,
    /// The first one's place: half of it, rounded down, is the number of its pair in the tables.
    pub(super) start: usize,
    pub(super) count: usize,
    /// Bytes from the first to the second, and by how many they become fewer each time.
    pub(super) step: usize,
    pub(super) less: usize,
}

/// A row of a matrix in one or two runs.
pub(super) type Row = [Run; 2];

impl Run {
    const EMPTY: Run = Run { at: core::ptr::null(), start: 0, count: 0, step: 0, less: 0 };

    /// Row r of an upper triangle of `width` columns, of which the first has the place `place`.
    pub(super) fn of_triangle(base: *const u8, width: usize, mb: usize, r: usize, place: usize) -> Run {
        let at = base.wrapping_add((r * width - r * r.saturating_sub(1) / 2) * mb);
        Run { at, start: place + r, count: width - r, step: mb, less: 0 }
    }

    /// Alone a row.
    pub(super) fn alone(self) -> Row {
        [self, Run::EMPTY]
    }

    fn end(&self) -> usize {
        self.start + self.count
    }

    /// Where a place at most the first would be.
    fn before(&self, place: usize) -> *const u8 {
        self.at.wrapping_sub((self.start - place) * self.step)
    }

    /// `at`, or zeros if the run does not have the place.
    fn or_zeros(&self, place: usize, at: *const u8) -> *const u8 {
        select_unpredictable(place.wrapping_sub(self.start) < self.count, at, NONE.as_ptr())
    }
}

/// Sums of rows times K pairs of vectors.
#[derive(Clone, Copy)]
pub(super) struct Sums<const K: usize, const F: usize, const T: usize> {
    /// Row by row, F x K x 2 registers.
    pub(super) slices: *mut u8,
    /// For each two rows T x K registers.
    pub(super) tails: *mut u8,
    /// Room for the joined slices of a row, or registers of a column, if more than six pairs are multiplied.
    pub(super) room: *mut u8,
}

impl<const K: usize, const F: usize, const T: usize> Sums<K, F, T> {
    /// Bytes of `quads` times four rows.
    pub(super) const fn bytes(quads: usize) -> usize {
        quads * K * (4 * 64 * F + 2 * 32 * T)
    }

    /// Those at `at`.
    pub(super) fn at(at: *mut u8, quads: usize, room: *mut u8) -> Self {
        Sums { slices: at, tails: at.wrapping_add(quads * K * 4 * 64 * F), room }
    }

    /// Makes rows 4t to 4t + 3 begin with `count` m-vectors at `init`, for vectors 2 `first` and later ones, and ends those
    /// of an odd count with 0.
    ///
    /// # Safety
    /// The m-vectors must have 128 readable bytes after them.
    #[target_feature(enable = "avx2,gfni")]
    pub(super) unsafe fn begin(
        self,
        t: usize,
        first: usize,
        (init, count): ([*const u8; 4], usize),
        mb: usize,
    ) {
        // SAFETY: the caller's promise; NONE is longer than an m-vector.
        unsafe {
            let vector = |r: usize, i: usize| if i < count { init[r].add(i * mb) } else { NONE.as_ptr() };
            for q in 0..count.div_ceil(2) {
                for r in 0..4 {
                    let (x, y) = (vector(r, 2 * q), vector(r, 2 * q + 1));
                    for f in 0..F {
                        let to = self.slices.add((((4 * t + r) * F + f) * K + first + q) * 64);
                        let sum = join(load(x.add(32 * f)), load(y.add(32 * f)));
                        store(to, sum[0]);
                        store(to.add(32), sum[1]);
                    }
                }
                for h in 0..2 {
                    for i in 0..T {
                        let at = |v: *const u8| v.add(32 * F + 8 * i);
                        let (x, y) = (
                            [h, h + 2].map(|r| at(vector(r, 2 * q))),
                            [h, h + 2].map(|r| at(vector(r, 2 * q + 1))),
                        );
                        store(self.tails.add((((2 * t + h) * T + i) * K + first + q) * 32), join_tails(x, y));
                    }
                }
            }
        }
    }

    /// Makes rows 4t to 4t + 3 begin with 0 for `pairs` pairs of vectors.
    ///
    /// # Safety
    /// There must be as many.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn begin_zero(self, t: usize, pairs: usize) {
        let zero = _mm256_setzero_si256();
        // SAFETY: the caller's promise.
        unsafe {
            for r in 0..4 * F {
                for q in 0..2 * pairs {
                    store(self.slices.add((4 * t * F + r) * K * 64 + 32 * q), zero);
                }
            }
            for i in 0..2 * T {
                for q in 0..pairs {
                    store(self.tails.add((2 * t * T + i) * K * 32 + 32 * q), zero);
                }
            }
        }
    }

    /// Adds four rows times K pairs of vectors to rows 4t to 4t + 3. Without COLUMNS steps do not change.
    ///
    /// # Safety
    /// The m-vectors must have 128 readable bytes after them; the tables must have the rows' numbers.
    #[target_feature(enable = "avx2,gfni")]
    #[inline]
    pub(super) unsafe fn add<const JS: usize, const COLUMNS: bool>(
        self,
        t: usize,
        rows: &[Row; 4],
        table: *const u8,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            for (r, row) in rows.iter().enumerate() {
                for f in 0..F {
                    let out = self.slices.add(((4 * t + r) * F + f) * K * 64);
                    in_parts!(
                        K,
                        from,
                        slice,
                        [JS, COLUMNS],
                        (row, 32 * f, table.add(from * JS), self.room, out.add(64 * from))
                    );
                }
            }
            if T > 0 {
                tails::<K, F, T, JS, COLUMNS>(rows, table, self.tails.add(2 * t * T * K * 32));
            }
        }
    }
}

/// Adds a slice of a row times K pairs of vectors, whose matrices are JS bytes apart.
///
/// # Safety
/// As for [`Sums::add`], with `out` for K x 2 registers and `room` for those of a row if VIA needs it.
#[target_feature(enable = "avx2,gfni")]
#[inline(never)]
unsafe fn slice<const K: usize, const JS: usize, const COLUMNS: bool, const VIA: u8>(
    row: &Row,
    offset: usize,
    table: *const u8,
    mut room: *mut u8,
    out: *mut u8,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut sums = [[_mm256_setzero_si256(); 2]; K];
        for (q, sum) in sums.iter_mut().enumerate() {
            *sum = [load(out.add(64 * q)), load(out.add(64 * q + 32))];
        }
        let mut add = |x: *const u8, y: *const u8, table: *const u8| {
            let joined = match VIA {
                KEPT => [load(room), load(room.add(32))],
                _ => join(load(x.add(offset)), load(y.add(offset))),
            };
            if VIA == KEEP {
                store(room, joined[0]);
                store(room.add(32), joined[1]);
            }
            if VIA != PLAIN {
                room = room.add(64);
            }
            for (q, sum) in sums.iter_mut().enumerate() {
                let m = broadcast(table.add(q * JS));
                *sum = [add_times(sum[0], joined[0], m), add_times(sum[1], joined[1], m)];
            }
        };
        for run in row {
            let less = if COLUMNS { run.less } else { 0 };
            let (mut at, mut step, mut left) = (run.at, run.step, run.count);
            let mut table = table.add(run.start / 2 * MATRIX);
            if left > 0 && run.start % 2 == 1 {
                add(NONE.as_ptr(), at, table);
                at = at.wrapping_add(step);
                (step, table, left) = (step.wrapping_sub(less), table.add(MATRIX), left - 1);
            }
            let mut ahead = (2 * step).wrapping_sub(less);
            for _ in 0..left / 2 {
                add(at, at.add(step), table);
                (at, table) = (at.wrapping_add(ahead), table.add(MATRIX));
                (step, ahead) = (step.wrapping_sub(2 * less), ahead.wrapping_sub(4 * less));
            }
            if left % 2 == 1 {
                add(at, NONE.as_ptr(), table);
            }
        }
        for (q, sum) in sums.iter().enumerate() {
            store(out.add(64 * q), sum[0]);
            store(out.add(64 * q + 32), sum[1]);
        }
    }
}

/// Adds the tails of four rows times K pairs of vectors.
///
/// # Safety
/// As for [`Sums::add`], with `out` for 2 T K registers; at the same place all rows have the same step.
#[target_feature(enable = "avx2,gfni")]
#[inline(never)]
unsafe fn tails<const K: usize, const F: usize, const T: usize, const JS: usize, const COLUMNS: bool>(
    rows: &[Row; 4],
    table: *const u8,
    out: *mut u8,
) {
    // SAFETY: the caller's promise; NONE is longer than an m-vector.
    unsafe {
        for n in 0..2 * T {
            let (offset, rows) = (32 * F + 8 * (n % T), [&rows[n / T], &rows[n / T + 2]]);
            let out = out.add(n * K * 32);
            let mut sums = [_mm256_setzero_si256(); K];
            for (q, sum) in sums.iter_mut().enumerate() {
                *sum = load(out.add(32 * q));
            }
            let mut add = |x: [*const u8; 2], y: [*const u8; 2], table: *const u8| {
                let (x, y) = ([x[0].add(offset), x[1].add(offset)], [y[0].add(offset), y[1].add(offset)]);
                let joined = join_tails(x, y);
                for (q, sum) in sums.iter_mut().enumerate() {
                    *sum = add_times(*sum, joined, broadcast(table.add(q * JS)));
                }
            };
            for (a, b) in rows[0].iter().zip(rows[1]) {
                let less = if COLUMNS { a.less } else { 0 };
                let mut pair = a.start.min(b.start) / 2;
                // Pairs that are whole in both.
                let from = a.start.max(b.start).div_ceil(2);
                let to = (a.end().min(b.end()) / 2).max(from);
                let end = a.end().max(b.end()).div_ceil(2);
                // Only columns have changing steps, and they have the same place first.
                let (mut x, mut y, mut step) = (a.before(2 * pair), b.before(2 * pair), a.step);
                let mut ahead = (2 * step).wrapping_sub(less);
                // A loop over these three is slower.
                macro_rules! until {
                    ($end:ident, $edge:literal) => {
                        while pair < $end {
                            let (mut now, mut next) = ([x, y], [x.wrapping_add(step), y.wrapping_add(step)]);
                            if $edge {
                                now = [a.or_zeros(2 * pair, x), b.or_zeros(2 * pair, y)];
                                next = [a.or_zeros(2 * pair + 1, next[0]), b.or_zeros(2 * pair + 1, next[1])];
                            }
                            add(now, next, table.add(pair * MATRIX));
                            (x, y, pair) = (x.wrapping_add(ahead), y.wrapping_add(ahead), pair + 1);
                            (step, ahead) = (step.wrapping_sub(2 * less), ahead.wrapping_sub(4 * less));
                        }
                    };
                }
                until!(from, true);
                until!(to, false);
                until!(end, true);
            }
            for (q, sum) in sums.iter().enumerate() {
                store(out.add(32 * q), *sum);
            }
        }
    }
}
