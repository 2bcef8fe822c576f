//! The strands' blocks fetched as rows of 64 bytes and transposed in registers: for backends that have AVX-512F and BW.

use core::arch::x86_64::*;

use super::{Chain, Fetch, LaneBlocks, Places, Plain, ROWS, Scratch, steps_by};

/// Eight lanes at a time.
struct Rows;

/// Transposes a matrix of 8 by 8 blocks.
#[target_feature(enable = "avx512f")]
#[inline]
fn transpose(r: [__m512i; 8]) -> [__m512i; 8] {
    // Pairs within 128 bits, then 128-bit quarters in two steps.
    let even = |i: usize| _mm512_unpacklo_epi64(r[2 * i], r[2 * i + 1]);
    let odd = |i: usize| _mm512_unpackhi_epi64(r[2 * i], r[2 * i + 1]);
    let e = [even(0), even(1), even(2), even(3)];
    let o = [odd(0), odd(1), odd(2), odd(3)];
    // Quarters (q0, q2) and (q1, q3) of two rows each.
    let quarters = |x: [__m512i; 4]| {
        let a = _mm512_shuffle_i64x2::<0x88>(x[0], x[1]);
        let b = _mm512_shuffle_i64x2::<0xdd>(x[0], x[1]);
        let c = _mm512_shuffle_i64x2::<0x88>(x[2], x[3]);
        let d = _mm512_shuffle_i64x2::<0xdd>(x[2], x[3]);
        [
            _mm512_shuffle_i64x2::<0x88>(a, c),
            _mm512_shuffle_i64x2::<0x88>(b, d),
            _mm512_shuffle_i64x2::<0xdd>(a, c),
            _mm512_shuffle_i64x2::<0xdd>(b, d),
        ]
    };
    let (e, o) = (quarters(e), quarters(o));
    [e[0], o[0], e[1], o[1], e[2], o[2], e[3], o[3]]
}

/// Whether eight lanes' strands all lie block after block.
#[inline(always)]
fn contiguous(places: &Places, lane: usize) -> bool {
    places.stride[lane..lane + 8].iter().all(|&stride| stride == 8)
}

/// The first `rows` of eight blocks.
#[inline(always)]
fn mask(rows: usize) -> __mmask8 {
    0xff >> (ROWS - rows)
}

/// [`Fetch::gather`].
///
/// # Safety
/// AVX-512F; see there.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) unsafe fn gather(
    tile: &mut [LaneBlocks; ROWS],
    places: &Places,
    n: usize,
    first: usize,
    rows: usize,
) {
    let whole = n / 8 * 8;
    for lane in (0..whole).step_by(8) {
        if !contiguous(places, lane) {
            // SAFETY: the caller's promises are the callee's.
            unsafe { Plain::read(tile, places, lane..lane + 8, first, rows) };
            continue;
        }
        // SAFETY: the strands are contiguous, and only the blocks that the caller vouches for are touched.
        let row = |i: usize| unsafe {
            _mm512_maskz_loadu_epi64(mask(rows), places.at[lane + i].add(8 * first).cast())
        };
        let columns = transpose([row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7)]);
        for (blocks, column) in tile.iter_mut().zip(columns) {
            // SAFETY: these are eight blocks of the tile.
            unsafe { _mm512_storeu_si512(blocks[lane..lane + 8].as_mut_ptr().cast(), column) };
        }
    }
    // SAFETY: the caller's promises are the callee's.
    unsafe { Plain::read(tile, places, whole..n, first, rows) }
}

/// [`Fetch::scatter`].
///
/// # Safety
/// AVX-512F; see there.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) unsafe fn scatter(
    tile: &[LaneBlocks; ROWS],
    places: &Places,
    n: usize,
    first: usize,
    rows: usize,
) {
    let whole = n / 8 * 8;
    for lane in (0..whole).step_by(8) {
        if !contiguous(places, lane) {
            // SAFETY: the caller's promises are the callee's.
            unsafe { Plain::write(tile, places, lane..lane + 8, first, rows) };
            continue;
        }
        // SAFETY: these are eight blocks of the tile.
        let column = |t: usize| unsafe { _mm512_loadu_si512(tile[t][lane..lane + 8].as_ptr().cast()) };
        let blocks = [column(0), column(1), column(2), column(3), column(4), column(5), column(6), column(7)];
        for (i, row) in transpose(blocks).into_iter().enumerate() {
            let at: *mut i64 = places.at[lane + i].wrapping_add(8 * first).cast();
            // SAFETY: the strands are contiguous, and only the blocks that the caller vouches for are touched.
            unsafe {
                if rows == ROWS {
                    _mm512_storeu_si512(at.cast(), row);
                } else {
                    _mm512_mask_storeu_epi64(at, mask(rows), row);
                }
            }
        }
    }
    // SAFETY: the caller's promises are the callee's.
    unsafe { Plain::write(tile, places, whole..n, first, rows) }
}

impl Fetch for Rows {
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn gather(tile: &mut [LaneBlocks; ROWS], places: &Places, n: usize, first: usize, rows: usize) {
        // SAFETY: the caller's promises are the callee's.
        unsafe { gather(tile, places, n, first, rows) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn scatter(tile: &[LaneBlocks; ROWS], places: &Places, n: usize, first: usize, rows: usize) {
        // SAFETY: the caller's promises are the callee's.
        unsafe { scatter(tile, places, n, first, rows) }
    }
}

/// For backends whose CPUs have AVX-512F and BW.
///
/// # Safety
/// See `Kernels::chain`'s field.
#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) unsafe fn chain(chain: &Chain<'_>, scratch: &mut Scratch) {
    // SAFETY: the caller's promises are the callee's.
    unsafe { steps_by::<Rows>(chain, scratch) }
}
