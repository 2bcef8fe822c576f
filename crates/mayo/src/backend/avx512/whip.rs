//! Whipping: sums of z^l a_l modulo f(z), for the target side of verification and for every column of A.
//!
//! z^l shifts a packed m-vector by l nibbles: by l / 2 bytes, and by one nibble more if l is odd. The byte shift is an
//! unaligned load from a buffer with zeros around each vector; even and odd l have separate accumulators, so each sum
//! has one nibble shift. The m + k(k+1)/2 coefficients of a sum may take more than a register, so that those terms that
//! reach beyond it are loaded at two windows: from byte 0, and from byte 63. The high part is then multiplied by the
//! four low coefficients of f with four affine instructions, after which the result is reduced.
//!
//! Floor: a load and an XOR for a term and window (unaligned loads that cross a line take two cycles on Zen 4), about
//! 30 instructions for a reduction: for A, k^2 o terms and k o reductions. Leak class: constant time; l and thus every
//! address is public.

use super::gf::{DIAGONAL, Z, broadcast, first, join, load, store, sum3, times};
use crate::backend::SetSpec;
use crate::params::Sizes;
use crate::sys::Block;
use core::arch::x86_64::*;

/// Zeros before the first vector of a buffer: the longest shift, rounded up.
pub(super) const FRONT: usize = 64;

/// Bytes of a sum above the m-vector's.
const fn high_bytes(p: &Sizes) -> usize {
    (p.pairs() - 1).div_ceil(2)
}

/// Bytes from one vector of a buffer to the next: between two of them lie enough zeros for any shift.
pub(super) const fn slot(p: &Sizes) -> usize {
    (p.m_bytes() + high_bytes(p)).next_multiple_of(16)
}

/// Bytes of a buffer for `count` vectors.
pub(super) const fn buffer_bytes(p: &Sizes, count: usize) -> usize {
    FRONT + slot(p) * count + 256
}

/// Where the second window begins: with one byte of the first, whose upper nibble an odd shift needs.
const WINDOW: usize = 63;

/// Whether the vector times z^l reaches beyond the first window.
pub(super) const fn wide(p: &Sizes, l: usize) -> bool {
    p.m_bytes() + l / 2 > 64
}

/// For byte j the place of byte `m_bytes + j - before` of a sum among the bytes of both windows.
const fn high_places(p: &Sizes, before: usize) -> Block {
    let (mut out, mut j) = ([0; 64], 0);
    while j < 64 {
        let byte = p.m_bytes() + j - before;
        out[j] = (if byte < 64 { byte } else { 64 + byte - WINDOW }) as u8;
        j += 1;
    }
    Block(out)
}

/// Lays padded m-vectors out with zeros between them.
///
/// # Safety
/// `buffer` must have `buffer_bytes` for the vectors in `from`.
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) unsafe fn spread_out<S: SetSpec, const NR: usize>(from: &[Block], buffer: *mut u8) {
    let set = S::SIZES;
    let zero = _mm512_setzero_si512();
    // SAFETY: the caller's promise: the stores end at most 192 bytes after the beginning of the last vector.
    unsafe {
        store(buffer, zero);
        let mut to = buffer.add(FRONT);
        for vector in from.chunks_exact(NR) {
            for (h, block) in vector.iter().enumerate() {
                store(to.add(64 * h), load(block.0.as_ptr()));
            }
            if slot(set) > 64 * NR {
                store(to.add(64 * NR), zero);
            }
            to = to.add(slot(set));
        }
        store(to, zero);
        store(to.add(64), zero);
    }
}

/// A sum in the making.
#[derive(Clone, Copy)]
pub(super) struct Sum {
    /// By parity of l, then by window.
    parts: [[Z; 2]; 2],
}

impl Sum {
    #[target_feature(enable = "avx512f")]
    #[inline]
    pub(super) fn zero() -> Sum {
        Sum { parts: [[_mm512_setzero_si512(); 2]; 2] }
    }

    /// Adds the vector at `from`, which is l / 2 bytes before its place in a spread-out buffer. WIDE as [`wide`] says.
    ///
    /// # Safety
    /// `from` must be as described.
    #[target_feature(enable = "avx512f")]
    #[inline]
    pub(super) unsafe fn add<const WIDE: bool>(&mut self, odd: usize, from: *const u8) {
        let part = &mut self.parts[odd];
        // SAFETY: the caller's promise; the buffer has 128 bytes after every vector.
        unsafe {
            part[0] = _mm512_xor_si512(part[0], load(from));
            if WIDE {
                part[1] = _mm512_xor_si512(part[1], load(from.add(WINDOW)));
            }
        }
    }

    /// The remainder modulo f(z).
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
    #[inline]
    pub(super) fn reduce<S: SetSpec, const NR: usize>(&self) -> [Z; NR] {
        let set = S::SIZES;
        let [[e0, e1], [o0, o1]] = self.parts;
        let places = places();
        let behind = _mm512_sub_epi8(places, _mm512_set1_epi8(1));
        // One byte up, i.e. times z^2.
        let up = |x: Z| _mm512_maskz_permutexvar_epi8(!1, behind, x);
        // Times z, given the same a byte up.
        let nibble = |x: Z, up: Z| join(_mm512_srli_epi16::<4>(up), _mm512_slli_epi16::<4>(x));
        let at =
            |x: Z, offset: i8| _mm512_permutexvar_epi8(_mm512_add_epi8(places, _mm512_set1_epi8(offset)), x);
        // SAFETY: a block is 64 bytes.
        let (own, below) = unsafe {
            let (own, below) = const { &(high_places(S::SIZES, 0), high_places(S::SIZES, 1)) };
            (load(own.0.as_ptr()), load(below.0.as_ptr()))
        };
        let among = |x: [Z; 2], at: Z| {
            if const { wide(S::SIZES, S::SIZES.pairs() - 1) } {
                _mm512_permutex2var_epi8(x[0], at, x[1])
            } else {
                _mm512_permutexvar_epi8(at, x[0])
            }
        };
        let odds = [o0, o1];
        let high = _mm512_xor_si512(among([e0, e1], own), nibble(among(odds, own), among(odds, below)));
        let high = _mm512_maskz_mov_epi8(first(high_bytes(set)), high);
        // SAFETY: the table has sixteen entries.
        let scaled = |i: usize| unsafe {
            times(high, broadcast(DIAGONAL.0.as_ptr().add(usize::from(set.tail[i] & 0xf))))
        };
        let mut even = sum3(e0, scaled(0), up(scaled(2)));
        if const { S::SIZES.tail[4] != 0 } {
            even = _mm512_xor_si512(even, up(up(scaled(4))));
        }
        let odd = sum3(o0, scaled(1), up(scaled(3)));
        let low = _mm512_xor_si512(even, nibble(odd, up(odd)));
        let mut out = [low; NR];
        if NR == 2 {
            let rest = _mm512_xor_si512(at(e1, 1), nibble(at(o1, 1), o1));
            out[1] = _mm512_maskz_mov_epi8(first(set.m_bytes() - 64), rest);
        } else {
            out[0] = _mm512_maskz_mov_epi8(first(set.m_bytes()), low);
        }
        out
    }
}

/// 0, 1, ..., 63.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn places() -> Z {
    static PLACES: Block = {
        let mut out = [0; 64];
        let mut i = 0;
        while i < 64 {
            out[i] = i as u8;
            i += 1;
        }
        Block(out)
    };
    // SAFETY: a block is 64 bytes.
    unsafe { load(PLACES.0.as_ptr()) }
}

/// The sum of z^l u_l, u spread out.
///
/// # Safety
/// `buffer` must be filled by [`spread_out`] with all of u.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
pub(super) unsafe fn whip_spread<S: SetSpec, const NR: usize>(buffer: *const u8) -> [Z; NR] {
    let set = S::SIZES;
    let mut sum = Sum::zero();
    for l in 0..set.pairs() {
        // SAFETY: the caller's promise; l / 2 is below FRONT and below the zeros between vectors.
        unsafe {
            let from = buffer.add(FRONT + l * slot(set) - l / 2);
            if wide(set, l) {
                sum.add::<true>(l % 2, from);
            } else {
                sum.add::<false>(l % 2, from);
            }
        }
    }
    sum.reduce::<S, NR>()
}

/// Room for u of the largest set, spread out.
const LARGEST: usize = 78 * 112 + 64 + 256;

/// See `SetKernels::whip`.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
pub(super) fn whip<S: SetSpec, const NR: usize>(u: &[Block], y: &mut [u8]) {
    const { assert!(buffer_bytes(S::SIZES, S::SIZES.pairs()) <= LARGEST) };
    let mut buffer = core::mem::MaybeUninit::<[u8; LARGEST]>::uninit();
    let buffer: *mut u8 = buffer.as_mut_ptr().cast();
    // SAFETY: the buffer is long enough, by the assertion; `spread_out` writes all of it that is read.
    unsafe {
        spread_out::<S, NR>(u, buffer);
        let sum = whip_spread::<S, NR>(buffer);
        for (h, part) in y.chunks_mut(64).enumerate() {
            _mm512_mask_storeu_epi8(part.as_mut_ptr().cast(), first(part.len()), sum[h]);
        }
    }
}
