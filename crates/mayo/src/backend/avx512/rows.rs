//! Products of single rows, without packing.
//!
//! Two neighbouring m-vectors are joined in registers: the even equations' bytes in one, the odd ones' in another, and
//! for m = 142 the last 7 bytes of both in a 128-bit third, which costs Zen 4 half an instruction. m = 78 and 80 fill
//! 61 % of their lanes, m = 108 84 %, m = 142 89 %. Packing fills 96 % and more but costs 6 to 11 core cycles for each
//! row of a cell, which with up to 6 pairs of vectors is as much as it saves (MAYO-1) or more: paired, in one run,
//! keygen of MAYO-1, 3, 5 went from 37.3 k, 88.6 k, 209 k to 33.3 k, 75.9 k, 193 k ticks and verification from 40.3 k,
//! 95.8 k, 212 k to 36.9 k, 81.7 k, 197 k. Signing, with 9 and 12 pairs, lost 3 % on MAYO-1 and 5 and won 5 % on
//! MAYO-3.
//!
//! Floor, for a pair of m-vectors and K pairs of vectors, on the two pipes that have affine maps and shifts: 2 K + 2
//! core cycles on Zen 4 (2.5 K + 3 for m = 142), half of that on Zen 5. Source: the 2x2 form as in `products`. A row's
//! results lie one after another, 16 G bytes for each pair of vectors, in the order of a cell's row. Leak class:
//! constant time; the addresses depend only on sizes.

use super::gf::{Z, broadcast, highs, load, lows, store, sum3, times};
use core::arch::x86_64::*;

/// The initial accumulators of a row: all 0, the first pair of vectors given, or all given.
pub(super) const ZERO: u8 = 0;
pub(super) const FIRST: u8 = 1;
pub(super) const ALL: u8 = 2;

/// Two joined m-vectors.
#[derive(Clone, Copy)]
struct Joined {
    even: Z,
    odd: Z,
    /// Bytes 64 to 71 of both, if G = 9.
    rest: __m128i,
}

/// Joins the m-vectors at `a` and `b`.
///
/// # Safety
/// 64 bytes must be readable at each, 80 if G = 9.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
unsafe fn join<const G: usize>(a: *const u8, b: *const u8) -> Joined {
    // SAFETY: the caller's promise.
    unsafe {
        let (x, y) = (load(a), load(b));
        let mut out = Joined { even: lows(x, y), odd: highs(x, y), rest: _mm_setzero_si128() };
        if G == 9 {
            let (x, y) = (_mm_loadu_si128(a.add(64).cast()), _mm_loadu_si128(b.add(64).cast()));
            let low = _mm_set1_epi8(0x0f);
            let even = _mm_ternarylogic_epi64::<0xca>(low, x, _mm_slli_epi16::<4>(y));
            let odd = _mm_ternarylogic_epi64::<0xca>(low, _mm_srli_epi16::<4>(x), y);
            out.rest = _mm_unpacklo_epi64(even, odd);
        }
        out
    }
}

/// A row of a matrix of m-vectors: in an upper triangle the first may have no left neighbour.
#[derive(Clone, Copy)]
pub(super) struct Row {
    /// An m-vector that is the second of its pair, and the number of that pair.
    pub(super) lone: Option<(*const u8, usize)>,
    /// Runs of pairs: where, the number of the first, how many.
    pub(super) runs: [(*const u8, usize, usize); 2],
}

impl Row {
    /// Row r of an upper triangle of even `width`; pair c has number `number + c`.
    pub(super) fn of_triangle(base: *const u8, width: usize, mb: usize, r: usize, number: usize) -> Row {
        debug_assert!(width.is_multiple_of(2));
        let at = base.wrapping_add((r * width - r * r.saturating_sub(1) / 2) * mb);
        let first = r.div_ceil(2);
        let lone = (r % 2 == 1).then_some((at, number + r / 2));
        let pairs = at.wrapping_add(r % 2 * mb);
        Row { lone, runs: [(pairs, number + first, width / 2 - first), (at, 0, 0)] }
    }
}

/// The products of a row with KT pairs of vectors, whose matrices lie at strides JS (between pairs of vectors) and CS
/// (between pairs of columns). By FROM, sums begin with the m-vector at `init` (for the first vector), with the 2 KT
/// m-vectors there, or with 0.
///
/// # Safety
/// The m-vectors, of `mb` bytes, must have 64 readable bytes after them; matrices must be readable; `out` must have room for
/// KT times 16 G bytes and 64 more.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,gfni")]
#[inline(never)]
pub(super) unsafe fn multiply<
    const KT: usize,
    const G: usize,
    const JS: usize,
    const CS: usize,
    const FROM: u8,
>(
    row: &Row,
    mb: usize,
    table: *const u64,
    init: *const u8,
    out: *mut u8,
) {
    static NONE: [u8; 128] = [0; 128];
    // SAFETY: the caller's promise; NONE is longer than an m-vector's loads.
    unsafe {
        let zero = _mm512_setzero_si512();
        let mut acc = [[zero; 2]; KT];
        let mut rest = [_mm_setzero_si128(); KT];
        for j in 0..KT {
            if FROM == ALL || (FROM == FIRST && j == 0) {
                let a = init.add(2 * j * mb);
                let start = join::<G>(a, if FROM == ALL { a.add(mb) } else { NONE.as_ptr() });
                acc[j] = [start.even, start.odd];
                rest[j] = start.rest;
            }
        }
        let add_one = |acc: &mut [[Z; 2]; KT], rest: &mut [__m128i; KT], x: Joined, t: *const u64| {
            for j in 0..KT {
                let m = broadcast(t.add(j * JS));
                acc[j][0] = _mm512_xor_si512(acc[j][0], times(x.even, m));
                acc[j][1] = _mm512_xor_si512(acc[j][1], times(x.odd, m));
                if G == 9 {
                    let m = _mm512_castsi512_si128(m);
                    rest[j] = _mm_xor_si128(rest[j], _mm_gf2p8affine_epi64_epi8::<0>(x.rest, m));
                }
            }
        };
        if let Some((at, number)) = row.lone {
            add_one(&mut acc, &mut rest, join::<G>(NONE.as_ptr(), at), table.add(number * CS));
        }
        for &(mut at, number, mut pairs) in &row.runs {
            let mut t = table.add(number * CS);
            while pairs >= 2 {
                let x = join::<G>(at, at.add(mb));
                let y = join::<G>(at.add(2 * mb), at.add(3 * mb));
                for j in 0..KT {
                    let (m, n) = (broadcast(t.add(j * JS)), broadcast(t.add(j * JS + CS)));
                    acc[j][0] = sum3(acc[j][0], times(x.even, m), times(y.even, n));
                    acc[j][1] = sum3(acc[j][1], times(x.odd, m), times(y.odd, n));
                    if G == 9 {
                        let (m, n) = (_mm512_castsi512_si128(m), _mm512_castsi512_si128(n));
                        rest[j] = _mm_ternarylogic_epi64::<0x96>(
                            rest[j],
                            _mm_gf2p8affine_epi64_epi8::<0>(x.rest, m),
                            _mm_gf2p8affine_epi64_epi8::<0>(y.rest, n),
                        );
                    }
                }
                at = at.add(4 * mb);
                t = t.add(2 * CS);
                pairs -= 2;
            }
            if pairs == 1 {
                add_one(&mut acc, &mut rest, join::<G>(at, at.add(mb)), t);
            }
        }
        for j in 0..KT {
            let to = out.add(16 * G * j);
            store(to, acc[j][0]);
            if G == 9 {
                _mm_storeu_si128(to.add(64).cast(), rest[j]);
            }
            store(to.add(8 * G), acc[j][1]);
            if G == 9 {
                _mm_storel_epi64(to.add(136).cast(), _mm_unpackhi_epi64(rest[j], rest[j]));
            }
        }
    }
}
