//! The 32 rounds on bit planes.
//!
//! **The adder takes four gates a bit.** With x the block's bit, k the key's and c the carry, let u = x ^ k and d =
//! c ^ k. Then the sum is x ^ d, the carry out k ^ (u & d), and d of the next bit is (u & d) ^ (k ^ k'), k' being
//! the key's next bit. So two masks per bit and word of the key, k and k ^ k', leave two XORs for u and the sum and
//! two gates for the next d.
//!
//! **Substitutions cost no inversions.** The circuits compute S(x) ^ S(0), which AND, OR, XOR and AND NOT can do. They
//! omit a constant word. So a half that was changed once is kept as its value XOR a constant c, and one that was
//! changed twice as its value. A round whose right half is inverted in some bits needs no extra gate: u comes from
//! k ^ c, d is kept as d ^ c so that the sum is right, and AND becomes AND NOT. Halves are inverted in rounds 2 and 3 of
//! every four. In either direction these use the words K2, K3, K6 and K7 and no others, so each word needs one kind of
//! mask.

use core::mem::MaybeUninit;

use lanework_cpu::memory::wipe;

use super::circuits::Circuits;
use super::plane::{Half, Plane, Quarters, Unwritten, spread};
use crate::schedule::{Schedule, word};

/// The key's planes: k ^ c and k ^ k' ^ c' for each word.
#[repr(C, align(64))]
pub(super) struct Masks {
    key: [Quarters; 8],
    edge: [Quarters; 8],
}

/// Memory for a key's masks, wiped when dropped. It starts uninitialised: zeroing 8 KiB would take as long as filling it.
pub(super) struct Room(MaybeUninit<Masks>);

impl Room {
    pub(super) const fn new() -> Room {
        Room(MaybeUninit::uninit())
    }

    /// The masks of a key in one direction.
    #[inline(always)]
    pub(super) fn fill<S: Circuits>(&mut self, s: &Schedule) -> Key<'_> {
        let masks = self.0.as_mut_ptr();
        for (w, &word) in s.rounds[..8].iter().enumerate() {
            let kept = if matches!(w % 4, 1 | 2) { word ^ S::CONSTANT } else { word };
            // SAFETY: a place within memory that nothing else refers to; uninitialised quarters are only written.
            unsafe {
                spread(kept, &mut *(&raw mut (*masks).key[w]).cast::<Unwritten>());
                spread(word ^ kept >> 1, &mut *(&raw mut (*masks).edge[w]).cast::<Unwritten>());
            }
        }
        // SAFETY: the loop wrote all eight words of both arrays.
        Key { masks: unsafe { self.0.assume_init_ref() }, rising: s.rising }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // SAFETY: these are the value's own bytes, and `wipe` writes all of them before reading.
        wipe(unsafe {
            core::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast::<u8>(), size_of::<Masks>())
        });
    }
}

/// A key in one direction, ready for [`rounds`].
#[derive(Clone, Copy)]
pub(super) struct Key<'a> {
    masks: &'a Masks,
    rising: usize,
}

impl Key<'_> {
    /// The masks of round r.
    #[inline(always)]
    fn round(&self, r: usize) -> (&Half, &Half) {
        let w = word(r, self.rising);
        let whole = |quarters: &Quarters| {
            // SAFETY: as many bytes, all values valid; Masks aligns them to 64 bytes, and each is 512 long.
            unsafe { &*(&raw const *quarters).cast::<Half>() }
        };
        (whole(&self.masks.key[w]), whole(&self.masks.edge[w]))
    }
}

/// The form in which the right half of a round is kept.
pub(super) mod kept {
    /// As its value.
    pub(crate) const PLAIN: u8 = 0;
    /// As its value XOR the set's constant.
    pub(crate) const INVERTED: u8 = 1;
    /// As its value, and so is the left half afterwards: substitutions are completed at once.
    pub(crate) const ALWAYS_PLAIN: u8 = 2;
}

/// Wipes planes.
pub(super) fn wipe_planes(planes: &mut [Half; 2]) {
    // SAFETY: planes are plain words without padding, and the slice covers exactly their bytes.
    wipe(unsafe {
        core::slice::from_raw_parts_mut(planes.as_mut_ptr().cast::<u8>(), size_of::<[Half; 2]>())
    });
}

/// left ^= g\[k\](right), with planes kept in the form KEPT.
#[inline(never)]
fn round<S: Circuits, const KEPT: u8>(left: &mut Half, right: &Half, key: &Half, edge: &Half) {
    let mut d = key[0];
    macro_rules! nibble {
        ($n:literal, $circuit:ident) => {{
            let mut sum = [Plane::ZERO; 4];
            for j in 0..4 {
                let i = 4 * $n + j;
                let x = right[i];
                sum[j] = x ^ d;
                if i < 31 {
                    let u = x ^ key[i];
                    let inverted = KEPT == kept::INVERTED && S::CONSTANT >> i & 1 == 1;
                    d = if inverted { u & !d } else { u & d } ^ edge[i];
                }
            }
            let out = S::$circuit(sum);
            for j in 0..4 {
                let to = (4 * $n + j + 11) % 32;
                let missing = KEPT == kept::ALWAYS_PLAIN && S::CONSTANT >> to & 1 == 1;
                left[to] = left[to] ^ if missing { !out[j] } else { out[j] };
            }
        }};
    }
    nibble!(0, s0);
    nibble!(1, s1);
    nibble!(2, s2);
    nibble!(3, s3);
    nibble!(4, s4);
    nibble!(5, s5);
    nibble!(6, s6);
    nibble!(7, s7);
}

/// All rounds. `halves` are a0 and a1; afterwards they are the upper and the lower half of the result.
pub(super) fn rounds<S: Circuits>(halves: &mut [Half; 2], key: Key<'_>) {
    let [a0, a1] = halves;
    for r in (0..32).step_by(4) {
        let (k, edge) = key.round(r);
        round::<S, { kept::PLAIN }>(a1, a0, k, edge);
        let (k, edge) = key.round(r + 1);
        round::<S, { kept::INVERTED }>(a0, a1, k, edge);
        let (k, edge) = key.round(r + 2);
        round::<S, { kept::INVERTED }>(a1, a0, k, edge);
        let (k, edge) = key.round(r + 3);
        round::<S, { kept::PLAIN }>(a0, a1, k, edge);
    }
}

/// All rounds of an encryption where every block has its own key: `keys` holds the planes of K1 to K8.
pub(super) fn rounds_of_lanes<S: Circuits>(halves: &mut [Half; 2], keys: &[Half; 8]) {
    let [a0, a1] = halves;
    let mut edges = [[Plane::ZERO; 32]; 8];
    for w in 0..8 {
        for i in 0..31 {
            edges[w][i] = keys[w][i] ^ keys[w][i + 1];
        }
    }
    for r in (0..32).step_by(2) {
        let (even, odd) = (word(r, 24), word(r + 1, 24));
        round::<S, { kept::ALWAYS_PLAIN }>(a1, a0, &keys[even], &edges[even]);
        round::<S, { kept::ALWAYS_PLAIN }>(a0, a1, &keys[odd], &edges[odd]);
    }
    // SAFETY: as in `wipe_planes`.
    wipe(unsafe { core::slice::from_raw_parts_mut(edges.as_mut_ptr().cast::<u8>(), size_of::<[Half; 8]>()) });
}
