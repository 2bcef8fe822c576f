//! Bit planes: 128 blocks, transposed.
//!
//! Plane i of a half holds bit i of that half of 128 blocks. Block b lies in bit 32 * (b / 2 % 2) + b / 4 of word b %
//! 2: shifts and masks alone, without any shuffle, bring it there.
#![forbid(unsafe_code)]

use core::mem::MaybeUninit;
use core::ops::{BitAnd, BitOr, BitXor, Not};

use crate::schedule::ByteOrder;

/// Blocks in a batch.
pub(super) const BATCH: usize = 128;

/// One bit of every block of a batch. Two words, because every 64-bit architecture's baseline has 128-bit registers,
/// and the compiler joins pairs of equal operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(16))]
pub(super) struct Plane(pub(super) [u64; 2]);

/// The 32 planes of one half of the blocks.
pub(super) type Half = [Plane; 32];

impl Plane {
    pub(super) const ZERO: Plane = Plane([0; 2]);

    /// The same word twice.
    pub(super) const fn splat(word: u64) -> Plane {
        Plane([word; 2])
    }

    #[inline(always)]
    fn up(self, by: u32) -> Plane {
        Plane([self.0[0] << by, self.0[1] << by])
    }

    #[inline(always)]
    fn down(self, by: u32) -> Plane {
        Plane([self.0[0] >> by, self.0[1] >> by])
    }
}

impl BitAnd for Plane {
    type Output = Plane;
    #[inline(always)]
    fn bitand(self, b: Plane) -> Plane {
        Plane([self.0[0] & b.0[0], self.0[1] & b.0[1]])
    }
}

impl BitOr for Plane {
    type Output = Plane;
    #[inline(always)]
    fn bitor(self, b: Plane) -> Plane {
        Plane([self.0[0] | b.0[0], self.0[1] | b.0[1]])
    }
}

impl BitXor for Plane {
    type Output = Plane;
    #[inline(always)]
    fn bitxor(self, b: Plane) -> Plane {
        Plane([self.0[0] ^ b.0[0], self.0[1] ^ b.0[1]])
    }
}

impl Not for Plane {
    type Output = Plane;
    #[inline(always)]
    fn not(self) -> Plane {
        Plane([!self.0[0], !self.0[1]])
    }
}

/// Whether a transposition also reverses the bytes of every word, which is the same as planes i and i ^ 24 trading
/// places.
mod reverse {
    pub(super) const NOTHING: u8 = 0;
    /// The words are the input of the transposition.
    pub(super) const WORDS_BEFORE: u8 = 1;
    /// The words are its output.
    pub(super) const WORDS_AFTER: u8 = 2;
}

/// Exchanges the bits of `mask`, moved up by S, in row `a` with those of `mask` in row `b`.
#[inline(always)]
fn exchange<const S: u32>(a: Plane, b: Plane, mask: u64) -> [Plane; 2] {
    let moved = (a.down(S) ^ b) & Plane::splat(mask);
    [a ^ moved.up(S), b ^ moved]
}

/// Two levels of the transposition at a time, of rows 2S and S apart. Levels 16 and 8 bring the planes to their
/// places when bytes are reversed.
#[inline(always)]
fn two_levels<const S2: u32, const S1: u32, const REVERSE: u8>(rows: &mut Half, masks: [u64; 2]) {
    let s = S1 as usize;
    for group in (0..32).step_by(4 * s) {
        for i in group..group + s {
            let mut r = [rows[i], rows[i + s], rows[i + 2 * s], rows[i + 3 * s]];
            if REVERSE == reverse::WORDS_AFTER {
                r.reverse();
            }
            let ([a, c], [b, d]) =
                (exchange::<S2>(r[0], r[2], masks[0]), exchange::<S2>(r[1], r[3], masks[0]));
            let ([a, b], [c, d]) = (exchange::<S1>(a, b, masks[1]), exchange::<S1>(c, d, masks[1]));
            r = [a, b, c, d];
            if REVERSE == reverse::WORDS_BEFORE {
                r.reverse();
            }
            [rows[i], rows[i + s], rows[i + 2 * s], rows[i + 3 * s]] = r;
        }
    }
}

/// Transposes the four 32 x 32 matrices that lie side by side in the planes.
#[inline(never)]
fn transpose<const REVERSE: u8>(rows: &mut Half) {
    two_levels::<16, 8, REVERSE>(rows, [0x0000_ffff_0000_ffff, 0x00ff_00ff_00ff_00ff]);
    two_levels::<4, 2, { reverse::NOTHING }>(rows, [0x0f0f_0f0f_0f0f_0f0f, 0x3333_3333_3333_3333]);
    for pair in rows.chunks_exact_mut(2) {
        pair.copy_from_slice(&exchange::<1>(pair[0], pair[1], 0x5555_5555_5555_5555));
    }
}

const LOW: Plane = Plane::splat(0x0000_0000_ffff_ffff);

/// A batch of blocks, as bytes.
pub(super) type Bytes = [[u8; 8]; BATCH];

/// The planes of a batch of blocks: a0 and a1.
pub(super) fn to_planes(blocks: &Bytes, order: ByteOrder, planes: &mut [Half; 2]) {
    let [a0, a1] = planes;
    let (first, last) = match order {
        ByteOrder::Big => (a1, a0),
        ByteOrder::Little => (a0, a1),
    };
    let word = |b: usize| u64::from_le_bytes(blocks[b]);
    for r in 0..32 {
        let even = Plane([word(4 * r), word(4 * r + 1)]);
        let odd = Plane([word(4 * r + 2), word(4 * r + 3)]);
        first[r] = (even & LOW) | odd.up(32);
        last[r] = even.down(32) | (odd & !LOW);
    }
    for half in [first, last] {
        match order {
            ByteOrder::Big => transpose::<{ reverse::WORDS_BEFORE }>(half),
            ByteOrder::Little => transpose::<{ reverse::NOTHING }>(half),
        }
    }
}

/// The blocks of planes after the rounds: upper half, lower half. Destroys the planes.
pub(super) fn to_blocks(planes: &mut [Half; 2], order: ByteOrder, blocks: &mut Bytes) {
    let [upper, lower] = planes;
    let (first, last) = match order {
        ByteOrder::Big => (upper, lower),
        ByteOrder::Little => (lower, upper),
    };
    for half in [&mut *first, &mut *last] {
        match order {
            ByteOrder::Big => transpose::<{ reverse::WORDS_AFTER }>(half),
            ByteOrder::Little => transpose::<{ reverse::NOTHING }>(half),
        }
    }
    for r in 0..32 {
        let even = (first[r] & LOW) | last[r].up(32);
        let odd = first[r].down(32) | (last[r] & !LOW);
        for h in 0..2 {
            blocks[4 * r + h] = even.0[h].to_le_bytes();
            blocks[4 * r + 2 + h] = odd.0[h].to_le_bytes();
        }
    }
}

/// The planes of `start` + `step` * (number of the block), `step` being 0 or 1.
pub(super) fn counting(start: u32, step: bool) -> Half {
    /// The bits of the block's number.
    const NUMBER: [Plane; 7] = [
        Plane([0, !0]),
        Plane::splat(0xffff_ffff_0000_0000),
        Plane::splat(0xaaaa_aaaa_aaaa_aaaa),
        Plane::splat(0xcccc_cccc_cccc_cccc),
        Plane::splat(0xf0f0_f0f0_f0f0_f0f0),
        Plane::splat(0xff00_ff00_ff00_ff00),
        Plane::splat(0xffff_0000_ffff_0000),
    ];
    let mut carry = Plane::ZERO;
    core::array::from_fn(|i| {
        let bit = everywhere(start >> i & 1);
        let number = if step && i < 7 { NUMBER[i] } else { Plane::ZERO };
        let sum = bit ^ number ^ carry;
        carry = (bit & (number | carry)) | (number & carry);
        sum
    })
}

/// All ones for 1, all zeros for 0.
#[inline(always)]
fn everywhere(bit: u32) -> Plane {
    Plane::splat(0u64.wrapping_sub(u64::from(bit)))
}

/// A half in quarters of its planes.
pub(super) type Quarters = [[u32; 4]; 32];

/// Room for [`Quarters`].
pub(super) type Unwritten = [MaybeUninit<[u32; 4]>; 32];

/// The planes that hold one word for all blocks: all ones where its bit is 1.
#[inline(always)]
pub(super) fn spread(word: u32, planes: &mut Unwritten) {
    // First four bits side by side; then each fills a plane. That takes the fewest operations where a vector's lanes
    // can all be set to one lane. The baseline of x86-64 extends signs only in 32-bit lanes, hence quarters.
    for (g, planes) in planes.chunks_exact_mut(4).enumerate() {
        let q: [u32; 4] =
            core::array::from_fn(|j| (0u32.wrapping_sub(word & 1 << (4 * g + j)) as i32 >> 31) as u32);
        for (plane, q) in planes.iter_mut().zip(q) {
            plane.write([q; 4]);
        }
    }
}

/// Where the bit of block b lies: word and position.
pub(super) const fn place(b: usize) -> (usize, usize) {
    (b % 2, 32 * (b / 2 % 2) + b / 4)
}
