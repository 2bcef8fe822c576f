//! Whipping in plain words: sums of z^l u_l modulo f(z).
//!
//! The products with z^l are shifts by l nibbles into a long polynomial of m + k(k+1)/2 coefficients; only the end is
//! reduced, coefficient by coefficient from the top: at most 81 steps of four small products. Constant time.

use super::words::{MVec, load, store};
use crate::backend::{SetKernels, SetSpec};
use crate::field::mul;
use crate::params::Sizes;
use crate::sys::{Block, bytes};

/// Words of the longest unreduced polynomial: 142 + 78 + 16 nibbles.
const LONG: usize = 16;

/// A polynomial in z that is waiting for its reduction.
pub(super) struct Long([u64; LONG]);

impl Long {
    pub(super) const fn zero() -> Long {
        Long([0; LONG])
    }

    /// Adds z^l a. The shift l is public.
    #[inline(always)]
    pub(super) fn add_shifted<const NW: usize>(&mut self, l: usize, a: &MVec<NW>) {
        let (word, bit) = (l / 16, l % 16 * 4);
        for w in 0..NW {
            self.0[word + w] ^= a[w] << bit;
            // A shift by 64 does nothing: split it in two.
            self.0[word + w + 1] ^= a[w] >> 1 >> (63 - bit);
        }
    }

    /// The remainder modulo f(z), its nibbles after m zero.
    pub(super) fn reduce<const NW: usize>(&mut self, set: &Sizes) -> MVec<NW> {
        for d in (set.m..set.m + set.pairs() + 3).rev() {
            let c = (self.0[d / 16] >> (d % 16 * 4)) as u8 & 0xf;
            for (t, &f) in set.tail.iter().enumerate() {
                let to = d - set.m + t;
                // The public factor first: `mul` turns the bits of its first argument into factors of 0 and 1, and a
                // compiler may branch on those.
                self.0[to / 16] ^= u64::from(mul(f, c)) << (to % 16 * 4);
            }
        }
        let mut out = [0; NW];
        out.copy_from_slice(&self.0[..NW]);
        if !set.m.is_multiple_of(16) {
            out[NW - 1] &= (1 << (set.m % 16 * 4)) - 1;
        }
        out
    }
}

/// See `SetKernels::whip`.
#[inline(never)]
pub(super) fn whip<S: SetSpec, const NW: usize>(u: &[Block], y: &mut [u8]) {
    store(&whip_words::<S, NW>(u), y);
}

/// The same, in words.
pub(super) fn whip_words<S: SetSpec, const NW: usize>(u: &[Block]) -> MVec<NW> {
    let set = S::SIZES;
    let mut long = Long::zero();
    for l in 0..set.pairs() {
        long.add_shifted(l, &load::<NW>(bytes(u), l * SetKernels::stride(set)));
    }
    long.reduce(set)
}
