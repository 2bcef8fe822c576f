//! Carries: from lanes of up to 63 bits to limbs of 52.
//!
//! One round moves what is above 52 bits a lane up; then a lane is at most 2^52 + 2^11, and what is still carried is one bit a
//! lane, which runs through lanes that are all ones. One addition of mask registers follows those runs: lanes that carry, shifted
//! up, plus lanes that pass a carry on, flips exactly the lanes that a carry reaches.
//!
//! Floor (latency, Zen 4 and 5): shift 1, lane shift 4, add 1, compare into a mask 4, mask to general register 3, three
//! operations on it 3, back 3, masked addition 1, and 1: about 21 cycles, whatever the width.

use super::{BITS, LIMB, Z};
use core::arch::x86_64::*;

/// Moves lanes up by one: lane 0 becomes 0 and the highest is lost.
#[inline(always)]
pub(crate) unsafe fn up<const K: usize>(x: &[Z; K]) -> [Z; K] {
    // SAFETY: the caller has the features.
    unsafe {
        let mut out = *x;
        let mut below = _mm512_setzero_si512();
        for t in 0..K {
            out[t] = _mm512_alignr_epi64::<7>(x[t], below);
            below = x[t];
        }
        out
    }
}

/// Moves lanes down by one: the highest becomes 0.
#[inline(always)]
pub(crate) unsafe fn down<const K: usize>(x: &[Z; K]) -> [Z; K] {
    // SAFETY: the caller has the features.
    unsafe {
        let mut out = *x;
        for t in 0..K {
            let above = if t + 1 < K { x[t + 1] } else { _mm512_setzero_si512() };
            out[t] = _mm512_alignr_epi64::<1>(above, x[t]);
        }
        out
    }
}

/// A bit of every lane, lowest first.
#[inline(always)]
pub(crate) fn gather<const K: usize>(bits: [__mmask8; K]) -> u128 {
    let mut all = 0u128;
    if K <= 8 {
        let mut low = 0u64;
        for t in 0..K {
            low |= u64::from(bits[t]) << (8 * t);
        }
        return u128::from(low);
    }
    for t in 0..K {
        all |= u128::from(bits[t]) << (8 * t);
    }
    all
}

/// Lanes that a carry reaches, given the lanes that make one and the lanes that pass it on.
#[inline(always)]
pub(crate) fn reached<const K: usize>(makes: u128, passes: u128) -> u128 {
    if K <= 8 {
        let (g, p) = ((makes as u64) << 1, passes as u64);
        u128::from(g.wrapping_add(p) ^ p)
    } else {
        (makes << 1).wrapping_add(passes) ^ passes
    }
}

/// What a lane may hold at the end: the highest lane keeps its sign.
#[inline(always)]
unsafe fn ceiling<const K: usize>(t: usize, signed: bool) -> Z {
    // SAFETY: the caller has the features.
    unsafe {
        if signed && t + 1 == K {
            _mm512_mask_set1_epi64(_mm512_set1_epi64(LIMB as i64), 0x80, -1)
        } else {
            _mm512_set1_epi64(LIMB as i64)
        }
    }
}

/// Carries of lanes from 0 to 2^63 - 1. With `signed` the highest lane may have either sign and keeps it.
#[inline(always)]
pub(crate) unsafe fn carry<const K: usize>(x: &mut [Z; K], signed: bool) {
    // SAFETY: the caller has the features.
    unsafe {
        let mut over = *x;
        for t in 0..K {
            over[t] = _mm512_srli_epi64::<{ BITS as u32 }>(x[t]);
            x[t] = _mm512_and_si512(x[t], ceiling::<K>(t, signed));
        }
        let over = up(&over);
        for t in 0..K {
            x[t] = _mm512_add_epi64(x[t], over[t]);
        }
        last_bits(x, signed);
    }
}

/// The last round of carries: lanes are below 2^53 - 1.
#[inline(always)]
pub(crate) unsafe fn last_bits<const K: usize>(x: &mut [Z; K], signed: bool) {
    // SAFETY: the caller has the features.
    unsafe {
        let limb = _mm512_set1_epi64(LIMB as i64);
        let (mut makes, mut passes) = ([0; K], [0; K]);
        for t in 0..K {
            makes[t] = _mm512_cmpgt_epu64_mask(x[t], limb);
            passes[t] = _mm512_cmpeq_epu64_mask(x[t], limb);
        }
        let carried = reached::<K>(gather(makes), gather(passes));
        let one = _mm512_set1_epi64(1);
        for t in 0..K {
            let sum = _mm512_mask_add_epi64(x[t], (carried >> (8 * t)) as u8, x[t], one);
            x[t] = _mm512_and_si512(sum, ceiling::<K>(t, signed));
        }
    }
}

/// From lanes of either sign, less than 2^62 from 0, to a magnitude and whether it is negated. The number must be
/// shorter than the lanes by a whole lane.
///
/// A number that is 0 but whose lanes are 2^62 or nearly so is added first, so that only the highest lane is of either
/// sign.
#[inline(always)]
pub(crate) unsafe fn settle<const K: usize>(x: &mut [Z; K]) -> bool {
    // SAFETY: the caller has the features.
    unsafe {
        const HIGH: i64 = 1 << 62;
        const LENT: i64 = HIGH >> BITS;
        for t in 0..K {
            let middle = _mm512_set1_epi64(HIGH - LENT);
            let bias = if t == 0 { _mm512_mask_set1_epi64(middle, 1, HIGH) } else { middle };
            let bias = if t + 1 == K { _mm512_mask_set1_epi64(bias, 0x80, -LENT) } else { bias };
            x[t] = _mm512_add_epi64(x[t], bias);
        }
        carry(x, true);
        let negative = _mm512_movepi64_mask(x[K - 1]) >> 7 != 0;
        negate_if(x, negative);
        negative
    }
}

/// Negates limbs below a signed highest lane: above the lowest limb that is not 0 all are inverted, and that limb is negated.
#[inline(always)]
pub(crate) unsafe fn negate_if<const K: usize>(x: &mut [Z; K], really: bool) {
    // SAFETY: the caller has the features.
    unsafe {
        let mut some = [0; K];
        for t in 0..K {
            some[t] = _mm512_test_epi64_mask(x[t], x[t]);
        }
        let some = gather(some);
        let all = 0u128.wrapping_sub(u128::from(really));
        let (lowest, turned) = if K <= 8 {
            let some = some as u64;
            let lowest = some & some.wrapping_neg();
            (u128::from(lowest), u128::from(lowest.wrapping_neg()))
        } else {
            let lowest = some & some.wrapping_neg();
            (lowest, lowest.wrapping_neg())
        };
        let (lowest, turned) = (lowest & all, turned & all);
        let one = _mm512_set1_epi64(1);
        for t in 0..K {
            let (turned, lowest) = ((turned >> (8 * t)) as u8, (lowest >> (8 * t)) as u8);
            let flipped = _mm512_mask_sub_epi64(x[t], turned, ceiling::<K>(t, true), x[t]);
            x[t] = _mm512_mask_add_epi64(flipped, lowest, flipped, one);
        }
    }
}

/// Whether the limbs hold no more than `bits` bits.
#[inline(always)]
pub(crate) unsafe fn fits<const K: usize>(x: &[Z; K], bits: usize) -> bool {
    // SAFETY: the caller has the features.
    unsafe {
        let (last, top) = (bits / BITS, bits % BITS);
        let mut over = 0;
        for t in last / 8..K {
            let bound = bound(t, last, top);
            over |= _mm512_cmpgt_epu64_mask(x[t], bound);
        }
        over == 0
    }
}

/// The largest lanes of vector t in a number of `last` whole limbs and one of `top` bits.
#[inline(always)]
pub(crate) unsafe fn bound(t: usize, last: usize, top: usize) -> Z {
    // SAFETY: the caller has the features.
    unsafe {
        let mut bounds = [0i64; 8];
        let mut i = 0;
        while i < 8 {
            let limb = 8 * t + i;
            bounds[i] = if limb < last {
                LIMB as i64
            } else if limb == last {
                (1 << top) - 1
            } else {
                0
            };
            i += 1;
        }
        let [a, b, c, d, e, f, g, h] = bounds;
        _mm512_setr_epi64(a, b, c, d, e, f, g, h)
    }
}
