//! Rows on AVX-512 with GFNI: a scalar is a bit matrix that multiplies both nibbles of a byte at once.
//!
//! **Layout.** An m-vector is one or two 512-bit registers of packed nibbles; the matrix holds the 4 x 4 matrix of the
//! scalar twice on its diagonal.
//!
//! **Floor.** 1 affine and 1 XOR for 128 products. Zen 4 issues one 512-bit affine a cycle, Zen 5 two.
//!
//! Leak class: constant time; matrices are made by masks and read at public places.

use core::arch::x86_64::*;

use lanework_cpu::memory::{Block, bytes_mut};
use lanework_mayo::internals::field;

use super::{Isa, Scalar, Walk};

/// AVX-512 with GFNI.
pub(crate) struct Avx512;

/// The matrices of 1, x, x^2 and x^3: row b (byte 7 - b) selects the bits whose products reach bit b.
const MATRICES: [u64; 4] = {
    let mut out = [0; 4];
    let mut bit = 0;
    while bit < 4 {
        let mut from = 0;
        while from < 4 {
            let product = field::mul(1 << bit, 1 << from);
            let mut to = 0;
            while to < 4 {
                if product >> to & 1 == 1 {
                    out[bit] |= 1u64 << ((7 - to) * 8 + from) | 1u64 << ((3 - to) * 8 + from + 4);
                }
                to += 1;
            }
            from += 1;
        }
        bit += 1;
    }
    out
};

impl Isa for Avx512 {
    fn prepare(element: u8) -> Scalar {
        let matrix = MATRICES
            .iter()
            .enumerate()
            .fold(0, |sum, (bit, m)| sum ^ (m & 0u64.wrapping_sub(u64::from(element >> bit & 1))));
        [matrix; 4]
    }

    unsafe fn combine<const NW: usize, const PUBLIC: bool>(
        entries: &[u8],
        walk: Walk,
        count: usize,
        scalars: &[Scalar],
        acc: &mut [Block],
    ) {
        // SAFETY: the caller vouches for AVX-512 and GFNI.
        unsafe {
            if NW <= 8 {
                tiles::<1, 9>(entries, walk, count, scalars, acc.len(), acc);
            } else {
                tiles::<2, 6>(entries, walk, count, scalars, acc.len() / 2, acc);
            }
        }
    }
}

/// Accumulators `TILE` at a time, then the rest three by three and one by one.
#[target_feature(enable = "avx512f,avx512bw,gfni")]
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
    while j + 3 <= width {
        tile::<NR, 3>(entries, walk, count, scalars, width, j, acc);
        j += 3;
    }
    while j < width {
        tile::<NR, 1>(entries, walk, count, scalars, width, j, acc);
        j += 1;
    }
}

#[target_feature(enable = "avx512f,avx512bw,gfni")]
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
    let mut sums = [[_mm512_setzero_si512(); NR]; TILE];
    for row in scalars.chunks_exact(width).take(count) {
        // Two registers read 128 bytes, which is more than the contract's 96: the second one is masked to 32.
        let entry = &entries[walk.advance()..][..if NR == 1 { 64 } else { 96 }];
        let row = &row[j..j + TILE];
        for r in 0..NR {
            let mask = if r == 0 { u64::MAX } else { 0xffff_ffff };
            // SAFETY: 64 bytes, or 32 from byte 64 on, lie within `entry`; masked bytes are not read.
            let e = unsafe { _mm512_maskz_loadu_epi8(mask, entry.as_ptr().add(64 * r).cast()) };
            for i in 0..TILE {
                let matrix = _mm512_set1_epi64(row[i][0].cast_signed());
                sums[i][r] = _mm512_xor_si512(sums[i][r], _mm512_gf2p8affine_epi64_epi8::<0>(e, matrix));
            }
        }
    }
    for i in 0..TILE {
        let out = &mut acc[(j + i) * NR * 64..][..NR * 64];
        for r in 0..NR {
            let at = out[r * 64..].as_mut_ptr().cast();
            // SAFETY: 64 bytes from 64 r on lie within the NR * 64 bytes of `out`.
            unsafe { _mm512_storeu_si512(at, _mm512_xor_si512(_mm512_loadu_si512(at), sums[i][r])) };
        }
    }
}
