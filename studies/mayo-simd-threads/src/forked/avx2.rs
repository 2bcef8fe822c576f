//! Rows on AVX2: a scalar is a table of its sixteen products, looked up for 64 elements by two byte shuffles.
//!
//! **Layout.** An m-vector is one to three 256-bit registers of packed nibbles; low and high nibbles are looked up
//! apart and accumulate apart, so that the high ones are shifted back once a row, not once a product.
//!
//! **Floor.** 2 shuffles and 2 XOR for 64 products. Zen 4 issues two 256-bit shuffles a cycle: one cycle for 64 products,
//! beside the four operations that split an entry once for every tile of accumulators.
//!
//! Source: the shuffle arithmetic of Chen, Chen, Chen, Cheng, Yang, "SSE implementation of multivariate PKCs", CHES 2009.
//! Leak class: constant time; tables are made by masks and read at public places.

use core::arch::x86_64::*;

use lanework_cpu::memory::{Block, bytes_mut};
use lanework_mayo::internals::field;

use super::{Isa, Scalar, Walk};

/// AVX2.
pub(crate) struct Avx2;

/// Products of 1, x, x^2 and x^3 with all sixteen elements, one a byte.
const PRODUCTS: [[u64; 2]; 4] = {
    let mut out = [[0; 2]; 4];
    let mut bit = 0;
    while bit < 4 {
        let mut e = 0;
        while e < 16 {
            out[bit][e / 8] |= (field::mul(1 << bit, e as u8) as u64) << (e % 8 * 8);
            e += 1;
        }
        bit += 1;
    }
    out
};

impl Isa for Avx2 {
    fn prepare(element: u8) -> Scalar {
        let mut out = [0; 4];
        for (bit, products) in PRODUCTS.iter().enumerate() {
            let mask = 0u64.wrapping_sub(u64::from(element >> bit & 1));
            for w in 0..4 {
                out[w] ^= products[w % 2] & mask;
            }
        }
        out
    }

    unsafe fn combine<const NW: usize, const PUBLIC: bool>(
        entries: &[u8],
        walk: Walk,
        count: usize,
        scalars: &[Scalar],
        acc: &mut [Block],
    ) {
        let width = acc.len() * 64 / (NW * 8).next_multiple_of(64);
        // SAFETY: the caller vouches for AVX2.
        unsafe {
            match NW.div_ceil(4) {
                1 => tiles::<1, 4>(entries, walk, count, scalars, width, acc),
                2 => tiles::<2, 2>(entries, walk, count, scalars, width, acc),
                _ => tiles::<3, 2>(entries, walk, count, scalars, width, acc),
            }
        }
    }
}

/// Accumulators `tile` at a time, then the rest one by one.
#[target_feature(enable = "avx2")]
fn tiles<const NR: usize, const TILE: usize>(
    entries: &[u8],
    walk: Walk,
    count: usize,
    scalars: &[Scalar],
    width: usize,
    acc: &mut [Block],
) {
    let acc = bytes_mut(acc);
    let mut j = 0;
    while j + TILE <= width {
        tile::<NR, TILE>(entries, walk, count, scalars, width, j, acc);
        j += TILE;
    }
    while j < width {
        tile::<NR, 1>(entries, walk, count, scalars, width, j, acc);
        j += 1;
    }
}

#[target_feature(enable = "avx2")]
#[inline]
fn tile<const NR: usize, const TILE: usize>(
    entries: &[u8],
    mut walk: Walk,
    count: usize,
    scalars: &[Scalar],
    width: usize,
    j: usize,
    acc: &mut [u8],
) {
    let nibbles = _mm256_set1_epi8(0xf);
    let mut low = [[_mm256_setzero_si256(); NR]; TILE];
    let mut high = [[_mm256_setzero_si256(); NR]; TILE];
    for row in scalars.chunks_exact(width).take(count) {
        let entry = &entries[walk.advance()..][..NR * 32];
        let row = &row[j..j + TILE];
        for r in 0..NR {
            // SAFETY: 32 bytes from 32 r on lie within the NR * 32 bytes of `entry`.
            let e = unsafe { _mm256_loadu_si256(entry.as_ptr().add(32 * r).cast()) };
            let (l, h) = (_mm256_and_si256(e, nibbles), _mm256_and_si256(_mm256_srli_epi16::<4>(e), nibbles));
            for i in 0..TILE {
                // SAFETY: a Scalar is 32 bytes.
                let table = unsafe { _mm256_loadu_si256(row[i].as_ptr().cast()) };
                low[i][r] = _mm256_xor_si256(low[i][r], _mm256_shuffle_epi8(table, l));
                high[i][r] = _mm256_xor_si256(high[i][r], _mm256_shuffle_epi8(table, h));
            }
        }
    }
    let stride = (NR * 32).next_multiple_of(64);
    for i in 0..TILE {
        let out = &mut acc[(j + i) * stride..][..NR * 32];
        for r in 0..NR {
            let at = out[r * 32..].as_mut_ptr().cast();
            let sum = _mm256_xor_si256(low[i][r], _mm256_slli_epi16::<4>(high[i][r]));
            // SAFETY: 32 bytes from 32 r on lie within the NR * 32 bytes of `out`.
            unsafe { _mm256_storeu_si256(at, _mm256_xor_si256(_mm256_loadu_si256(at), sum)) };
        }
    }
}
