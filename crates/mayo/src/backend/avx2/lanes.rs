//! Sums of multiples of m-vectors: the layout, the tables, and the one loop that all products share.
//!
//! **Layout.** Two m-vectors a and b of packed nibbles share registers: a in the low 128-bit lane, b in the high one. A
//! *chunk* of R registers covers up to 40 bytes of each: every 16 bytes give one register with the low nibbles and one
//! with the high ones, one nibble to a byte; a remainder of up to 8 bytes gives a single register with both (low
//! nibbles in bytes 0..8 of a lane, high ones in bytes 8..16). m = 64, 78, 80 take one chunk (R = 4, 5, 5), m = 108
//! takes 4 + 3, m = 142 takes 4 + 5; the loss against m/32 registers is at most 2.5 %, 3.7 % and 1.4 %.
//!
//! **Product.** The table of a pair of constants (c0, c1) holds n c0 in the low nibble and n c1 in the high nibble of
//! byte n: one byte shuffle multiplies 32 elements by both. Accumulators therefore hold two results, nibble by nibble.
//! Where a and b have the same constants the table is broadcast to both lanes; where they are rows r and r + 1 of a sum
//! over r, both lanes' tables lie next to each other in memory, and the lanes are added at the end.
//!
//! **Floor.** One shuffle and one XOR for 64 multiply-accumulates. Zen 4 and Zen 5 issue two 256-bit shuffles and four
//! logic operations a cycle: half a cycle for each. Two tables at once against R registers keep 2 R accumulators, two
//! tables and one operand in the 16 registers and need (R + 2) / 2R loads for each shuffle (two loads a cycle).
//! Unpacking (11 operations for R = 5) happens in the first pass over an operand, which stores it for the others.
//!
//! **Measured** on Zen 4: shuffle and XOR alone 0.43 ticks; with loads 0.52 (R = 4, 5) and 0.49 (R = 3); first passes,
//! which unpack, 0.89 (one pair) and 0.66 (two pairs, R = 4).
//!
//! Source of the idea: nibble slicing as in ePrint 2023/1683. Leak class: constant time; tables are built without a
//! secret address.

use core::arch::x86_64::*;

use crate::params::Sizes;
use crate::sys::Block;

/// A register.
pub(in crate::backend) type Y = __m256i;

/// Bytes of a table.
pub(super) const TABLE: usize = 16;

/// Registers of chunk `chunk` of a pair of m-vectors; 0 for a chunk that does not exist.
pub(super) const fn regs(p: &Sizes, chunk: usize) -> usize {
    let mb = p.m_bytes();
    let (from, first) = (32 * chunk, chunk == 0);
    if mb <= from || (!first && mb <= 40) {
        return 0;
    }
    // The first chunk takes all if it can, and 32 bytes otherwise.
    let bytes = if mb - from <= 40 { mb - from } else { 32 };
    2 * (bytes / 16) + (bytes % 16 != 0) as usize
}

/// Bytes of chunk `chunk`.
pub(super) const fn chunk_bytes(p: &Sizes, chunk: usize) -> usize {
    let left = p.m_bytes() - 32 * chunk;
    if left <= 40 { left } else { 32 }
}

/// Zeros to read in place of a missing m-vector.
pub(super) static NOTHING: Block = Block::ZERO;

/// The registers of chunk bytes at `a` and `b`.
///
/// # Safety
/// R / 2 * 16 bytes must be readable at both, and 8 more if R is odd.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn unpack<const R: usize>(a: *const u8, b: *const u8) -> [Y; R] {
    let low = _mm256_set1_epi8(15);
    let mut out = [_mm256_setzero_si256(); R];
    for f in 0..R / 2 {
        // SAFETY: the caller's promise.
        let x = unsafe {
            _mm256_inserti128_si256::<1>(
                _mm256_castsi128_si256(_mm_loadu_si128(a.add(16 * f).cast())),
                _mm_loadu_si128(b.add(16 * f).cast()),
            )
        };
        out[2 * f] = _mm256_and_si256(x, low);
        out[2 * f + 1] = _mm256_and_si256(_mm256_srli_epi16::<4>(x), low);
    }
    if R % 2 == 1 {
        let at = R / 2 * 16;
        // SAFETY: the caller's promise.
        let (a, b) =
            unsafe { (a.add(at).cast::<i64>().read_unaligned(), b.add(at).cast::<i64>().read_unaligned()) };
        let x = _mm256_blend_epi32::<0xf0>(_mm256_set1_epi64x(a), _mm256_set1_epi64x(b));
        out[R - 1] = _mm256_and_si256(_mm256_srlv_epi64(x, _mm256_setr_epi64x(0, 4, 0, 4)), low);
    }
    out
}

/// The places of a family of sums: its tables and its unpacked operands.
#[derive(Clone, Copy)]
pub(super) struct Sums {
    /// The table of pair 0 and position 0.
    pub(super) tables: *const u8,
    /// Bytes from one pair's tables to the next pair's.
    pub(super) stride: usize,
    /// Pairs of constants.
    pub(super) pairs: usize,
    /// Room for the unpacked operands.
    pub(super) operands: *mut Y,
}

impl Sums {
    /// The same with its tables starting at another position.
    ///
    /// # Safety
    /// The position must be within the tables.
    pub(super) unsafe fn at(self, position: usize) -> Sums {
        // SAFETY: the caller's promise.
        Sums { tables: unsafe { self.tables.add(position * TABLE) }, ..self }
    }

    /// Adds operands `from..from + count` times their tables to the first accumulators, and stores the operands for
    /// [`Sums::rest`]. PAIRED: lane b has the tables after lane a's, and a step is two positions.
    ///
    /// # Safety
    /// `acc` must have pairs x R registers, the tables and the room must reach to `from + count`.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn first<const R: usize, const PAIRED: bool>(
        self,
        acc: *mut Y,
        from: usize,
        count: usize,
        operand: impl Fn(usize) -> [Y; R],
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            match (self.pairs, first_pairs::<R>(self.pairs)) {
                (1, _) => self.first_of::<R, 1, PAIRED, false>(acc, from, count, operand),
                (2, 2) => self.first_of::<R, 2, PAIRED, false>(acc, from, count, operand),
                (_, 1) => self.first_of::<R, 1, PAIRED, true>(acc, from, count, operand),
                _ => self.first_of::<R, 2, PAIRED, true>(acc, from, count, operand),
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn first_of<const R: usize, const Q: usize, const PAIRED: bool, const KEEP: bool>(
        self,
        acc: *mut Y,
        from: usize,
        count: usize,
        operand: impl Fn(usize) -> [Y; R],
    ) {
        // SAFETY: the promise of `first`.
        unsafe {
            let mut sums = load_sums::<R, Q>(acc);
            for i in from..from + count {
                let x = operand(i);
                if KEEP {
                    for (n, x) in x.iter().enumerate() {
                        self.operands.add(i * R + n).write(*x);
                    }
                }
                multiply::<R, Q, PAIRED>(&mut sums, self.tables, self.stride, i, |n| x[n]);
            }
            store_sums(acc, &sums);
        }
    }

    /// Adds the first `count` operands times their tables to the accumulators that `first` omitted.
    ///
    /// # Safety
    /// As for `first`, which must have run for all of `0..count` (or the tables of the others be zero).
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn rest<const R: usize, const PAIRED: bool>(self, acc: *mut Y, count: usize) {
        let mut q = first_pairs::<R>(self.pairs);
        // SAFETY: the caller's promise.
        unsafe {
            while q + 1 < self.pairs {
                self.rest_of::<R, 2, PAIRED>(acc, q, count);
                q += 2;
            }
            if q < self.pairs {
                self.rest_of::<R, 1, PAIRED>(acc, q, count);
            }
        }
    }

    /// Adds `count` operands that are already unpacked times their tables to all accumulators.
    ///
    /// # Safety
    /// As for `first`, with operands for all of `0..count`.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn all<const R: usize, const PAIRED: bool>(self, acc: *mut Y, count: usize) {
        let mut q = 0;
        // SAFETY: the caller's promise.
        unsafe {
            while q + 1 < self.pairs {
                self.rest_of::<R, 2, PAIRED>(acc, q, count);
                q += 2;
            }
            if q < self.pairs {
                self.rest_of::<R, 1, PAIRED>(acc, q, count);
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn rest_of<const R: usize, const Q: usize, const PAIRED: bool>(
        self,
        acc: *mut Y,
        q: usize,
        count: usize,
    ) {
        // SAFETY: the promise of `rest`.
        unsafe {
            let acc = acc.add(q * R);
            let tables = self.tables.add(q * self.stride);
            let mut sums = load_sums::<R, Q>(acc);
            for i in 0..count {
                let x = self.operands.add(i * R);
                multiply::<R, Q, PAIRED>(&mut sums, tables, self.stride, i, |n| x.add(n).read());
            }
            store_sums(acc, &sums);
        }
    }
}

/// Pairs of constants in the first pass. Five registers of two pairs and the unpacking do not fit into sixteen.
const fn first_pairs<const R: usize>(pairs: usize) -> usize {
    if R == 5 || pairs % 2 == 1 { 1 } else { 2 }
}

#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load_sums<const R: usize, const Q: usize>(acc: *const Y) -> [[Y; R]; Q] {
    let mut sums = [[_mm256_setzero_si256(); R]; Q];
    for q in 0..Q {
        for n in 0..R {
            // SAFETY: the caller has Q x R registers there.
            sums[q][n] = unsafe { acc.add(q * R + n).read() };
        }
    }
    sums
}

#[inline]
#[target_feature(enable = "avx2")]
unsafe fn store_sums<const R: usize, const Q: usize>(acc: *mut Y, sums: &[[Y; R]; Q]) {
    for q in 0..Q {
        for n in 0..R {
            // SAFETY: the caller has Q x R registers there.
            unsafe { acc.add(q * R + n).write(sums[q][n]) };
        }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
unsafe fn multiply<const R: usize, const Q: usize, const PAIRED: bool>(
    sums: &mut [[Y; R]; Q],
    tables: *const u8,
    stride: usize,
    i: usize,
    x: impl Fn(usize) -> Y,
) {
    let mut table = [_mm256_setzero_si256(); Q];
    for (q, table) in table.iter_mut().enumerate() {
        // SAFETY: the caller's tables reach this far.
        *table = unsafe {
            if PAIRED {
                _mm256_loadu_si256(tables.add(q * stride + 2 * i * TABLE).cast())
            } else {
                _mm256_broadcastsi128_si256(_mm_loadu_si128(tables.add(q * stride + i * TABLE).cast()))
            }
        };
    }
    for n in 0..R {
        let x = x(n);
        for q in 0..Q {
            sums[q][n] = _mm256_xor_si256(sums[q][n], _mm256_shuffle_epi8(table[q], x));
        }
    }
}

/// Builds the tables of `pairs` (c0 in the low nibble, c1 in the high one), whose number is a multiple of 16.
///
/// # Safety
/// `out` must have room for a table for each.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn tables(pairs: &[u8], out: *mut u8) {
    debug_assert!(pairs.len().is_multiple_of(16));
    for (g, group) in pairs.chunks_exact(16).enumerate() {
        // SAFETY: sixteen bytes are readable.
        let x1 = unsafe { _mm_loadu_si128(group.as_ptr().cast()) };
        let quads = quads(x1);
        for (h, quad) in quads.iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { _mm256_storeu_si256(out.add((g * 16 + 2 * h) * TABLE).cast(), spread_quads(*quad)) };
        }
    }
}

/// Twice each nibble.
#[inline]
#[target_feature(enable = "avx2")]
fn double(x: __m128i) -> __m128i {
    let shifted = _mm_and_si128(x, _mm_set1_epi8(0x77));
    let top = _mm_and_si128(_mm_srli_epi16::<3>(x), _mm_set1_epi8(0x11));
    _mm_xor_si128(_mm_add_epi8(shifted, shifted), _mm_xor_si128(top, _mm_add_epi8(top, top)))
}

/// Of each byte e the eight bytes 0, e, 2e, 3e, 0, 4e, 8e, 12e, nibble by nibble; two to a register.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn quads(x1: __m128i) -> [__m128i; 8] {
    let zero = _mm_setzero_si128();
    let x2 = double(x1);
    let x3 = _mm_xor_si128(x1, x2);
    let x4 = double(x2);
    let x8 = double(x4);
    let x12 = _mm_xor_si128(x4, x8);
    let mut out = [zero; 8];
    let small = [
        (_mm_unpacklo_epi8(zero, x1), _mm_unpacklo_epi8(x2, x3)),
        (_mm_unpackhi_epi8(zero, x1), _mm_unpackhi_epi8(x2, x3)),
    ];
    let large = [
        (_mm_unpacklo_epi8(zero, x4), _mm_unpacklo_epi8(x8, x12)),
        (_mm_unpackhi_epi8(zero, x4), _mm_unpackhi_epi8(x8, x12)),
    ];
    for h in 0..2 {
        let (a, b) = (_mm_unpacklo_epi16(small[h].0, small[h].1), _mm_unpackhi_epi16(small[h].0, small[h].1));
        let (c, d) = (_mm_unpacklo_epi16(large[h].0, large[h].1), _mm_unpackhi_epi16(large[h].0, large[h].1));
        out[4 * h] = _mm_unpacklo_epi32(a, c);
        out[4 * h + 1] = _mm_unpackhi_epi32(a, c);
        out[4 * h + 2] = _mm_unpacklo_epi32(b, d);
        out[4 * h + 3] = _mm_unpackhi_epi32(b, d);
    }
    out
}

/// The two tables, one to a lane, of two quads.
#[inline]
#[target_feature(enable = "avx2")]
fn spread_quads(quads: __m128i) -> Y {
    table_of(_mm256_permute4x64_epi64::<0b01_01_00_00>(_mm256_castsi128_si256(quads)))
}

/// The table in each lane of the quad in that lane's low half.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn table_of(quad: Y) -> Y {
    let low = _mm256_set1_epi32(0x0302_0100);
    let high = _mm256_setr_epi32(
        0x0404_0404,
        0x0505_0505,
        0x0606_0606,
        0x0707_0707,
        0x0404_0404,
        0x0505_0505,
        0x0606_0606,
        0x0707_0707,
    );
    _mm256_xor_si256(_mm256_shuffle_epi8(quad, low), _mm256_shuffle_epi8(quad, high))
}

/// Both lanes' sum of R registers, as packed bytes of the two results: (low nibbles' result, high nibbles').
/// Each is up to 40 bytes: three registers, of the last of which 8 bytes count; bytes from `bytes` on are zero.
///
/// # Safety
/// `acc` must have R registers.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn fold<const R: usize>(acc: *const Y, bytes: usize) -> [[__m128i; 3]; 2] {
    let mut lane = [_mm_setzero_si128(); R];
    for n in 0..R {
        // SAFETY: the caller's promise.
        let x = unsafe { acc.add(n).read() };
        lane[n] = _mm_xor_si128(_mm256_castsi256_si128(x), _mm256_extracti128_si256::<1>(x));
    }
    pack(&lane, bytes)
}

/// The packed bytes of both results of one lane; see [`fold`].
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn pack<const R: usize>(lane: &[__m128i; R], bytes: usize) -> [[__m128i; 3]; 2] {
    let low = _mm_set1_epi8(15);
    let mut out = [[_mm_setzero_si128(); 3]; 2];
    let join = |evens: __m128i, odds: __m128i| {
        [
            _mm_or_si128(_mm_and_si128(evens, low), _mm_slli_epi16::<4>(_mm_and_si128(odds, low))),
            _mm_or_si128(_mm_and_si128(_mm_srli_epi16::<4>(evens), low), _mm_andnot_si128(low, odds)),
        ]
    };
    for f in 0..R / 2 {
        let both = join(lane[2 * f], lane[2 * f + 1]);
        (out[0][f], out[1][f]) = (both[0], both[1]);
    }
    if R % 2 == 1 {
        let f = R / 2;
        let both = join(lane[R - 1], _mm_srli_si128::<8>(lane[R - 1]));
        let keep = _mm_cvtsi64_si128((u64::MAX >> (64 - 8 * (bytes - 16 * f))) as i64);
        (out[0][f], out[1][f]) = (_mm_and_si128(both[0], keep), _mm_and_si128(both[1], keep));
    }
    out
}

/// Stores the output of [`pack`]: R / 2 * 16 bytes and, if R is odd, 8 more.
///
/// # Safety
/// `to` must have that many bytes.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn put<const R: usize>(to: *mut u8, x: &[__m128i; 3], add: bool) {
    for f in 0..R / 2 {
        // SAFETY: the caller's promise.
        unsafe {
            let to = to.add(16 * f).cast::<__m128i>();
            let old = if add { _mm_loadu_si128(to) } else { _mm_setzero_si128() };
            _mm_storeu_si128(to, _mm_xor_si128(old, x[f]));
        }
    }
    if R % 2 == 1 {
        // SAFETY: the caller's promise.
        unsafe {
            let to = to.add(R / 2 * 16).cast::<__m128i>();
            let old = if add { _mm_loadl_epi64(to) } else { _mm_setzero_si128() };
            _mm_storel_epi64(to, _mm_xor_si128(old, x[R / 2]));
        }
    }
}

/// Takes the front of `scratch`: `bytes` of unspecified content, aligned to 64.
pub(in crate::backend) fn take(scratch: &mut &mut [Block], bytes: usize) -> *mut u8 {
    let (front, back) = core::mem::take(scratch).split_at_mut(bytes.div_ceil(64));
    *scratch = back;
    front.as_mut_ptr().cast()
}
