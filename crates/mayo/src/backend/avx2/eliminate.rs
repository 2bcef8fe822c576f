//! The linear system: A and y by whipping, then Gauss-Jordan elimination by pairs of columns.
//!
//! **Layout.** Columns 2c and 2c + 1 of a block of A share bytes: row r of both is one byte, in NR = ceil(m/32)
//! registers. y is a pair of its own, the last.
//!
//! **One pivot.** The first free row with a nonzero entry in column j gives a one-hot byte mask. Every later pair's
//! byte in that row is found by AND, OR and sums of absolute differences (eight pairs at a time, no address depends on
//! it); it makes the table of the pair's two multiples, and the table times the scaled column j is added to the pair:
//! NR shuffles for 32 NR x 2 products. Both columns of a pair are done before the later pairs are touched, once for
//! both. No back substitution and no row swap: x_j is y's entry in j's pivot row.
//!
//! **Floor** for each (pivot, later pair): NR + 5 shuffles, sums and packs, about 3 NR + 5 logic operations, NR / 2
//! loads and stores; at four vector operations a cycle NR + 2.5 cycles, for ko(ko + 2)/4 of them: 9 k cycles for MAYO-1
//! (NR = 3, 80 columns), 39 k for MAYO-5 (NR = 5, 144), and a latency of some 120 cycles for each pair of pivots, half
//! of it hidden. **Measured** on Zen 4, in ticks: 16.5 k, 10.3 k, 32.6 k, 59.2 k for all of `solve` (MAYO-1, 2, 3, 5),
//! of which building A and y takes 4.2 k, 2.0 k, 8.1 k, 12.7 k. Source of the idea: column-wise constant-time
//! elimination as in ePrint 2026/2350, with shuffles for vectors of rows. Leak class: constant time; the rank test is
//! the one bit that is returned (a restart is public).

use core::arch::x86_64::*;

use super::lanes::{TABLE, Y, table_of, tables, take};
use super::poly::{add_shifted, below, fill, iota, long_bytes, reduce, registers, slot_bytes, spread};
use super::whip::whip_bytes;
use crate::backend::{SetKernels, SetSpec};
use crate::field::mul;
use crate::params::Sizes;
use crate::sys::{Block, bytes};

/// Pairs of columns, with y's.
const fn pairs(p: &Sizes) -> usize {
    p.k * p.o.div_ceil(2) + 1
}

/// Pairs extracted at a time.
const GROUP: usize = 8;

/// Slots of M, sums, columns with a group of zeros after them, quads, tables of r.
pub(super) const fn scratch_bytes(p: &Sizes) -> usize {
    let nr = registers(p);
    p.k * p.o.div_ceil(2) * slot_bytes(nr)
        + p.o.div_ceil(2) * long_bytes(p)
        + (pairs(p) + GROUP) * nr * 32
        + (pairs(p) + 16) * TABLE
        + 512
}

/// l for each (i, j).
pub(super) const fn powers(p: &Sizes) -> [[u8; 12]; 12] {
    let mut out = [[0; 12]; 12];
    let mut l = 0;
    while l < p.pairs() {
        let (i, j) = (p.schedule[l].0 as usize, p.schedule[l].1 as usize);
        out[i][j] = l as u8;
        out[j][i] = l as u8;
        l += 1;
    }
    out
}

/// See `SetKernels::solve`.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn solve<S: SetSpec, const NR: usize>(
    m: &[Block],
    u: &[Block],
    t: &[u8],
    r: &[u8],
    x: &mut [u8],
    mut scratch: &mut [Block],
) -> bool {
    let set = S::SIZES;
    let halves = set.o.div_ceil(2);
    let slots = take(&mut scratch, set.k * halves * slot_bytes(NR));
    let long = take(&mut scratch, halves * long_bytes(set));
    let columns: *mut Y = take(&mut scratch, (pairs(set) + GROUP) * NR * 32).cast();
    let r_tables = take(&mut scratch, (pairs(set) + 16) * TABLE);
    // SAFETY: the scratch holds all of this; m and u are padded m-vectors.
    unsafe {
        matrix::<S, NR>(m, slots, long, columns);
        for n in 0..(GROUP + 1) * NR {
            columns.add((pairs(set) - 1) * NR + n).write(_mm256_setzero_si256());
        }
        let mut y = whip_bytes::<S, NR>(u);
        let mut target = [0u8; 80];
        target[..t.len()].copy_from_slice(t);
        for (n, y) in y.iter_mut().enumerate() {
            let t = spread(_mm_loadu_si128(target.as_ptr().add(16 * n).cast()));
            *y = _mm256_xor_si256(*y, t);
        }
        add_product::<S, NR>(r, columns, r_tables, &mut y);
        for (n, y) in y.iter().enumerate() {
            columns.add((pairs(set) - 1) * NR + n).write(*y);
        }
        // The pivot row of every column, by its number.
        let mut rows = [0xffu8; 160];
        let full = eliminate::<S, NR>(columns, r_tables, &mut rows);
        collect::<NR>(columns.add((pairs(set) - 1) * NR), &rows, r, x);
        full
    }
}

/// A's pairs of columns.
#[target_feature(enable = "avx2")]
unsafe fn matrix<S: SetSpec, const NR: usize>(m: &[Block], slots: *mut u8, long: *mut u8, columns: *mut Y) {
    let set = S::SIZES;
    let powers = const { &powers(S::SIZES) };
    let (halves, stride) = (set.o.div_ceil(2), SetKernels::stride(set));
    let m = bytes(m).as_ptr();
    // SAFETY: called by `solve` with room for all of it; padded m-vectors have NR x 16 bytes.
    unsafe {
        for j in 0..set.k {
            for c in 0..halves {
                let low = m.add((j * set.o + 2 * c) * stride);
                let mut x = [_mm256_setzero_si256(); NR];
                for (n, x) in x.iter_mut().enumerate() {
                    *x = spread(_mm_loadu_si128(low.add(16 * n).cast()));
                    if 2 * c + 1 < set.o {
                        let high = spread(_mm_loadu_si128(low.add(stride + 16 * n).cast()));
                        *x = _mm256_or_si256(*x, _mm256_slli_epi16::<4>(high));
                    }
                }
                fill(slots.add((j * halves + c) * slot_bytes(NR)), &x);
            }
        }
        for i in 0..set.k {
            core::ptr::write_bytes(long, 0, halves * long_bytes(set));
            for (j, &l) in powers[i][..set.k].iter().enumerate() {
                let slot = slots.add(j * halves * slot_bytes(NR));
                add_shifted::<S>(long, halves, usize::from(l), slot, slot_bytes(NR));
            }
            for c in 0..halves {
                let column = reduce::<S, NR>(long.add(c * long_bytes(set)));
                for (n, x) in column.iter().enumerate() {
                    columns.add((i * halves + c) * NR + n).write(*x);
                }
            }
        }
    }
}

/// y += A r.
#[target_feature(enable = "avx2")]
unsafe fn add_product<S: SetSpec, const NR: usize>(
    r: &[u8],
    columns: *const Y,
    r_tables: *mut u8,
    y: &mut [Y; NR],
) {
    let set = S::SIZES;
    let halves = set.o.div_ceil(2);
    let low = _mm256_set1_epi8(15);
    let mut constants = [0u8; 96];
    for (at, &r) in r.iter().enumerate() {
        let (i, c) = (at / set.o, at % set.o);
        constants[i * halves + c / 2] |= r << (4 * (c % 2));
    }
    let count = set.k * halves;
    // SAFETY: called by `solve` with room for all of it.
    unsafe {
        tables(&constants[..count.next_multiple_of(16)], r_tables);
        let mut sums = [[_mm256_setzero_si256(); NR]; 2];
        for c in 0..count {
            let table = _mm256_broadcastsi128_si256(_mm_loadu_si128(r_tables.add(c * TABLE).cast()));
            for n in 0..NR {
                let x = columns.add(c * NR + n).read();
                let high = _mm256_and_si256(_mm256_srli_epi16::<4>(x), low);
                let product = _mm256_shuffle_epi8(table, _mm256_and_si256(x, low));
                sums[0][n] = _mm256_xor_si256(sums[0][n], product);
                sums[1][n] = _mm256_xor_si256(sums[1][n], _mm256_shuffle_epi8(table, high));
            }
        }
        for n in 0..NR {
            let sum = _mm256_xor_si256(sums[0][n], _mm256_srli_epi16::<4>(sums[1][n]));
            y[n] = _mm256_xor_si256(y[n], _mm256_and_si256(sum, low));
        }
    }
}

/// Discrete logarithms to the base x, and for 0 a number whose difference to any logarithm has its top bit set.
const LOG: [u8; 16] = {
    let mut out = [0xc0; 16];
    let (mut power, mut e) = (1u8, 0);
    while e < 15 {
        out[power as usize] = e;
        power = mul(power, 2);
        e += 1;
    }
    out
};
/// Powers of x.
const EXP: [u8; 16] = {
    let mut out = [1; 16];
    let mut e = 1;
    while e < 16 {
        out[e] = mul(out[e - 1], 2);
        e += 1;
    }
    out
};

/// The logarithms and powers in both lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn logarithms() -> (Y, Y) {
    // SAFETY: sixteen bytes each.
    unsafe {
        (
            _mm256_broadcastsi128_si256(_mm_loadu_si128(LOG.as_ptr().cast())),
            _mm256_broadcastsi128_si256(_mm_loadu_si128(EXP.as_ptr().cast())),
        )
    }
}

/// The table n -> n / e, given e in every byte; unspecified if e is 0.
#[inline]
#[target_feature(enable = "avx2")]
fn quotients(e: Y) -> Y {
    let (log, exp) = logarithms();
    let difference = _mm256_sub_epi8(log, _mm256_shuffle_epi8(log, e));
    // A negative difference is a large unsigned one; 15 more is the same power.
    let power = _mm256_min_epu8(difference, _mm256_add_epi8(difference, _mm256_set1_epi8(15)));
    _mm256_shuffle_epi8(exp, power)
}

/// The table n -> n e, given e in every byte.
#[inline]
#[target_feature(enable = "avx2")]
fn products(e: Y) -> Y {
    let (log, exp) = logarithms();
    let sum = _mm256_adds_epu8(log, _mm256_shuffle_epi8(log, e));
    // Below 15, 15 less is a large unsigned number; above, it is the same power.
    let power = _mm256_min_epu8(sum, _mm256_sub_epi8(sum, _mm256_set1_epi8(15)));
    _mm256_shuffle_epi8(exp, power)
}

/// A pivot.
struct Pivot<const NR: usize> {
    /// Its row's number, or a number without a row.
    number: u32,
    /// Whether it exists: 1 or 0.
    found: u32,
    /// The number in every byte.
    everywhere: Y,
    /// Ones in its row's byte.
    row: [Y; NR],
    /// Every row's entry over the pivot; in the pivot row itself 1 - 1/pivot, so that subtracting (entry in the pivot
    /// row times multiplier) leaves entry/pivot there.
    multiplier: [Y; NR],
}

/// The byte in row `number` (in every byte) of which `row` is the mask, in every byte; 0 if there is no such row.
#[inline]
#[target_feature(enable = "avx2")]
fn pick<const NR: usize>(column: &[Y; NR], row: &[Y; NR], number: Y) -> Y {
    let mut any = _mm256_setzero_si256();
    for n in 0..NR {
        any = _mm256_or_si256(any, _mm256_and_si256(column[n], row[n]));
    }
    // Its doubleword by its number, then its byte.
    let word = _mm256_and_si256(_mm256_srli_epi16::<2>(number), _mm256_set1_epi32(7));
    let any = _mm256_permutevar8x32_epi32(any, word);
    _mm256_shuffle_epi8(any, _mm256_and_si256(number, _mm256_set1_epi8(3)))
}

/// The first free row with an entry that is not zero.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn find<const NR: usize>(column: &[Y; NR], free: &mut [Y; NR]) -> Pivot<NR> {
    let zero = _mm256_setzero_si256();
    let mut words = [0u64; 3];
    for n in 0..NR {
        let empty = _mm256_cmpeq_epi8(_mm256_and_si256(column[n], free[n]), zero);
        words[n / 2] |= u64::from(!_mm256_movemask_epi8(empty) as u32) << (n % 2 * 32);
    }
    // A sum of trailing zeros: 64 of them go on to the next word.
    let count = |w: usize| words[w].trailing_zeros();
    let beyond = |zeros: u32, next: u32| zeros + (next & 0u32.wrapping_sub(zeros >> 6));
    let (number, none) = match NR.div_ceil(2) {
        1 => (count(0), 64),
        2 => (beyond(count(0), count(1)), 128),
        _ => (beyond(count(0), beyond(count(1), count(2))), 192),
    };
    let missed = number ^ none;
    let everywhere = _mm256_set1_epi8(number as i8);
    let mut row = [zero; NR];
    for n in 0..NR {
        row[n] =
            _mm256_cmpeq_epi8(_mm256_add_epi8(iota(), _mm256_set1_epi8((32 * n) as u8 as i8)), everywhere);
        free[n] = _mm256_andnot_si256(row[n], free[n]);
    }
    let quotients = quotients(pick(column, &row, everywhere));
    let mut multiplier = [zero; NR];
    for n in 0..NR {
        let one = _mm256_and_si256(row[n], _mm256_set1_epi8(1));
        multiplier[n] = _mm256_shuffle_epi8(quotients, _mm256_xor_si256(column[n], one));
    }
    Pivot { number, found: (missed | missed.wrapping_neg()) >> 31, everywhere, row, multiplier }
}

/// Gauss-Jordan on the pairs of columns, the last of which is y; fills the pivots' row numbers; whether the rank is m.
///
/// Both columns of a pair are done before any later pair is touched, which then takes both updates at once. The second
/// pivot's row of the later pairs is not read after the first update but corrected by (first row's entry) times (first
/// multiplier in the second row).
#[target_feature(enable = "avx2,bmi1,bmi2")]
unsafe fn eliminate<S: SetSpec, const NR: usize>(
    columns: *mut Y,
    quads: *mut u8,
    rows: &mut [u8; 160],
) -> bool {
    let set = S::SIZES;
    let (total, halves) = (pairs(set), set.o.div_ceil(2));
    let low = _mm256_set1_epi8(15);
    let zero = _mm256_setzero_si256();
    let mut free = [_mm256_set1_epi8(-1); NR];
    if !set.m.is_multiple_of(32) {
        free[NR - 1] = below(set.m % 32);
    }
    let (mut rank, mut j) = (0, 0);
    for q in 0..total - 1 {
        let (mut even, mut odd) = ([zero; NR], [zero; NR]);
        for n in 0..NR {
            // SAFETY: called by `solve` with all columns there.
            let x = unsafe { columns.add(q * NR + n).read() };
            even[n] = _mm256_and_si256(x, low);
            odd[n] = _mm256_and_si256(_mm256_srli_epi16::<4>(x), low);
        }
        let first = find(&even, &mut free);
        rows[j] = first.number as u8;
        rank += first.found;
        j += 1;
        if q % halves * 2 + 1 == set.o {
            // SAFETY: as above.
            unsafe { update::<NR, false>(columns, q + 1, total, quads, [&first, &first]) };
            continue;
        }
        let table = products(pick(&odd, &first.row, first.everywhere));
        for n in 0..NR {
            odd[n] = _mm256_xor_si256(odd[n], _mm256_shuffle_epi8(table, first.multiplier[n]));
        }
        let second = find(&odd, &mut free);
        rows[j] = second.number as u8;
        rank += second.found;
        j += 1;
        // SAFETY: as above.
        unsafe { update::<NR, true>(columns, q + 1, total, quads, [&first, &second]) };
    }
    rank as usize == set.m
}

/// Takes one pivot, or two, from the pairs of columns from `from` on.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn update<const NR: usize, const TWO: bool>(
    columns: *mut Y,
    from: usize,
    total: usize,
    quads: *mut u8,
    pivots: [&Pivot<NR>; 2],
) {
    let low = _mm256_set1_epi8(15);
    let [first, second] = pivots;
    let correction = products(pick(&first.multiplier, &second.row, second.everywhere));
    let mut c = from;
    while c < total {
        // SAFETY: a group of zero columns lies after the last, and the quads have room for two groups.
        unsafe {
            let x = row_bytes::<NR>(columns.add(c * NR), &first.row);
            store_quads(x, quads);
            if TWO {
                let lows = _mm256_shuffle_epi8(correction, _mm256_and_si256(x, low));
                let highs = _mm256_shuffle_epi8(correction, _mm256_and_si256(_mm256_srli_epi16::<4>(x), low));
                let product = _mm256_xor_si256(lows, _mm256_slli_epi16::<4>(highs));
                let y = row_bytes::<NR>(columns.add(c * NR), &second.row);
                store_quads(_mm256_xor_si256(y, product), quads.add(8 * GROUP));
            }
            for g in 0..GROUP.min(total - c) {
                let table = table_of(_mm256_set1_epi64x(quads.add(8 * g).cast::<i64>().read_unaligned()));
                let other =
                    table_of(_mm256_set1_epi64x(quads.add(8 * (GROUP + g)).cast::<i64>().read_unaligned()));
                let to = columns.add((c + g) * NR);
                for n in 0..NR {
                    let mut x =
                        _mm256_xor_si256(to.add(n).read(), _mm256_shuffle_epi8(table, first.multiplier[n]));
                    if TWO {
                        x = _mm256_xor_si256(x, _mm256_shuffle_epi8(other, second.multiplier[n]));
                    }
                    to.add(n).write(x);
                }
            }
        }
        c += GROUP;
    }
}

/// The bytes of eight pairs of columns in the marked row, four times each.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn row_bytes<const NR: usize>(columns: *const Y, row: &[Y; NR]) -> Y {
    let zero = _mm256_setzero_si256();
    let mut found = [zero; GROUP];
    for (g, found) in found.iter_mut().enumerate() {
        let mut any = zero;
        for n in 0..NR {
            // SAFETY: the caller has GROUP columns there.
            any = _mm256_or_si256(any, _mm256_and_si256(unsafe { columns.add(g * NR + n).read() }, row[n]));
        }
        // At most one byte is not zero, so its quadword's sum is that byte.
        *found = _mm256_sad_epu8(any, zero);
    }
    let words = |g: usize| _mm256_packus_epi32(found[g], found[g + 1]);
    let (a, b) = (_mm256_packus_epi16(words(0), words(2)), _mm256_packus_epi16(words(4), words(6)));
    // Doubleword g of the sum has pair g's byte in byte 0 or in byte 2.
    let both =
        _mm256_or_si256(_mm256_permute2x128_si256::<0x20>(a, b), _mm256_permute2x128_si256::<0x31>(a, b));
    let bytes = _mm256_or_si256(both, _mm256_srli_epi32::<16>(both));
    let (even, odd) = (0x0404_0404_0000_0000, 0x0c0c_0c0c_0808_0808);
    _mm256_shuffle_epi8(bytes, _mm256_setr_epi64x(even, odd, even, odd))
}

/// The quads (see `lanes::quads`) of eight bytes, each of which is present four times.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn store_quads(x1: Y, quads: *mut u8) {
    let x2 = double(x1);
    let x4 = double(x2);
    let x8 = double(x4);
    let (odd, high) = (_mm256_set1_epi32(0xff00_ff00_u32 as i32), _mm256_set1_epi32(0xffff_0000_u32 as i32));
    let small = _mm256_xor_si256(_mm256_and_si256(x1, odd), _mm256_and_si256(x2, high));
    let large = _mm256_xor_si256(_mm256_and_si256(x4, odd), _mm256_and_si256(x8, high));
    let (a, b) = (_mm256_unpacklo_epi32(small, large), _mm256_unpackhi_epi32(small, large));
    // SAFETY: the caller has 64 bytes there.
    unsafe {
        _mm256_storeu_si256(quads.cast(), _mm256_permute2x128_si256::<0x20>(a, b));
        _mm256_storeu_si256(quads.add(32).cast(), _mm256_permute2x128_si256::<0x31>(a, b));
    }
}

/// Twice each nibble.
#[inline]
#[target_feature(enable = "avx2")]
fn double(x: Y) -> Y {
    let shifted = _mm256_and_si256(x, _mm256_set1_epi8(0x77));
    let top = _mm256_and_si256(_mm256_srli_epi16::<3>(x), _mm256_set1_epi8(0x11));
    _mm256_xor_si256(_mm256_add_epi8(shifted, shifted), _mm256_xor_si256(top, _mm256_add_epi8(top, top)))
}

/// x_j = r_j + y's entry in row `rows[j]`, or r_j if there is no such row.
#[target_feature(enable = "avx2")]
unsafe fn collect<const NR: usize>(y: *const Y, rows: &[u8; 160], r: &[u8], x: &mut [u8]) {
    let low = _mm256_set1_epi8(15);
    let mut found = [0u8; 160];
    for at in (0..160).step_by(32) {
        // SAFETY: `rows` and `found` have 160 bytes, y has NR x 32.
        unsafe {
            let rows = _mm256_loadu_si256(rows.as_ptr().add(at).cast());
            let mut sum = _mm256_setzero_si256();
            for b in 0..2 * NR {
                let entries = _mm256_broadcastsi128_si256(_mm_loadu_si128(y.cast::<u8>().add(16 * b).cast()));
                // Any other sixteen rows' numbers get their top bit set, which selects zero.
                let local = _mm256_xor_si256(rows, _mm256_set1_epi8((16 * b) as u8 as i8));
                let local = _mm256_adds_epu8(local, _mm256_set1_epi8(0x70));
                sum = _mm256_xor_si256(sum, _mm256_shuffle_epi8(entries, local));
            }
            _mm256_storeu_si256(found.as_mut_ptr().add(at).cast(), _mm256_and_si256(sum, low));
        }
    }
    for ((x, &r), &found) in x.iter_mut().zip(r).zip(&found) {
        *x = found ^ r;
    }
}

/// See `SetKernels::finish`.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn finish<S: SetSpec>(o: &[u8], vinegar: &[u8], x: &[u8], s: &mut [u8]) {
    let set = S::SIZES;
    let (v, oil) = (set.v(), set.o);
    const PITCH: usize = 160;
    let mut columns = [0u8; 20 * PITCH];
    for (r, row) in o.chunks_exact(oil).enumerate() {
        for (c, &o) in row.iter().enumerate() {
            columns[c * PITCH + r] = o;
        }
    }
    let low = _mm256_set1_epi8(15);
    for q in 0..set.k.div_ceil(2) {
        let mut constants = [0u8; 32];
        for c in 0..oil {
            let high = if 2 * q + 1 < set.k { x[(2 * q + 1) * oil + c] } else { 0 };
            constants[c] = x[2 * q * oil + c] | high << 4;
        }
        let mut table = [0u8; 32 * TABLE];
        let mut both = [[0u8; PITCH]; 2];
        // SAFETY: 32 tables; every column and both results have PITCH >= v bytes, a multiple of 32.
        unsafe {
            tables(&constants[..oil.next_multiple_of(16)], table.as_mut_ptr());
            for at in (0..v).step_by(32) {
                let mut sum = _mm256_setzero_si256();
                for c in 0..oil {
                    let t =
                        _mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().add(c * TABLE).cast()));
                    let x = _mm256_loadu_si256(columns.as_ptr().add(c * PITCH + at).cast());
                    sum = _mm256_xor_si256(sum, _mm256_shuffle_epi8(t, x));
                }
                let high = _mm256_and_si256(_mm256_srli_epi16::<4>(sum), low);
                _mm256_storeu_si256(both[0].as_mut_ptr().add(at).cast(), _mm256_and_si256(sum, low));
                _mm256_storeu_si256(both[1].as_mut_ptr().add(at).cast(), high);
            }
        }
        for (h, ox) in both.iter().enumerate().take(set.k - 2 * q) {
            let i = 2 * q + h;
            let out = &mut s[i * set.n..(i + 1) * set.n];
            for ((out, &vin), &ox) in out[..v].iter_mut().zip(&vinegar[i * v..(i + 1) * v]).zip(ox) {
                *out = vin ^ ox;
            }
            out[v..].copy_from_slice(&x[i * oil..(i + 1) * oil]);
        }
    }
}
