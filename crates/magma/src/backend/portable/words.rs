//! A few blocks at a time, for serial modes and short inputs: all eight S-boxes of a word at once, without planes.
//!
//! Each output bit of an S-box is a polynomial over GF(2) in its four input bits, so y = XOR over the 16 sets m of input bits of
//! C\[m\] & M\[m\], where M\[m\] has all four bits of a nibble set where the product of the nibble's bits in m is 1, and C\[m\] holds,
//! nibble by nibble, the coefficients of all four outputs. Grouped by the upper two input bits that is
//! y = L0 ^ (M3 & L1) ^ (M2 & L2) ^ (M3 & M2 & L3), each L = C ^ (M0 & C') ^ (M1 & C'') ^ (M0 & M1 & C''').
//! Nothing is looked up, and the eight S-boxes may all differ.
#![forbid(unsafe_code)]

use crate::sbox::{ROWS, Rows, Sbox};
use crate::schedule::{ByteOrder, Schedule};

/// The coefficients of a set: \[m\] for the set m of input bits.
type Coefficients = [u32; 16];

/// The Moebius transform of all 32 output bits.
const fn coefficients(rows: &Rows) -> Coefficients {
    let mut c = [0; 16];
    let mut m = 0;
    while m < 16 {
        let mut nibble = 0;
        while nibble < 8 {
            let mut x = 0;
            while x < 16 {
                if x & !m == 0 {
                    c[m] ^= (rows[nibble][x] as u32) << (4 * nibble);
                }
                x += 1;
            }
            nibble += 1;
        }
        m += 1;
    }
    c
}

/// The coefficients of every set.
static COEFFICIENTS: [Coefficients; 6] = {
    let mut all = [[0; 16]; 6];
    let mut set = 0;
    while set < 6 {
        all[set] = coefficients(&ROWS[set]);
        set += 1;
    }
    all
};

/// N words side by side. The compiler makes vector operations of them.
#[derive(Clone, Copy)]
struct Words<const N: usize>([u32; N]);

macro_rules! each {
    ($n:ident, $i:ident: $e:expr) => {{
        let mut out = [0; $n];
        for $i in 0..$n {
            out[$i] = $e;
        }
        Words(out)
    }};
}

impl<const N: usize> Words<N> {
    #[inline(always)]
    fn and(self, b: Self) -> Self {
        each!(N, i: self.0[i] & b.0[i])
    }
    #[inline(always)]
    fn with(self, constant: u32) -> Self {
        each!(N, i: self.0[i] & constant)
    }
    #[inline(always)]
    fn xor(self, b: Self) -> Self {
        each!(N, i: self.0[i] ^ b.0[i])
    }
    #[inline(always)]
    fn add(self, b: Self) -> Self {
        each!(N, i: self.0[i].wrapping_add(b.0[i]))
    }
    /// All four bits of every nibble whose bit J is set.
    #[inline(always)]
    fn nibbles<const J: u32>(self) -> Self {
        each!(N, i: {
            let bit = self.0[i] & (0x1111_1111 << J);
            // Modulo 2^32, for the top nibble.
            (bit << (4 - J)).wrapping_sub(bit >> J)
        })
    }
    #[inline(always)]
    fn rotate(self) -> Self {
        each!(N, i: self.0[i].rotate_left(11))
    }
}

/// t(x), rotated by 11.
#[inline(always)]
fn substitute<const N: usize>(c: &Coefficients, x: Words<N>) -> Words<N> {
    let (m0, m1) = (x.nibbles::<0>(), x.nibbles::<1>());
    let (m2, m3) = (x.nibbles::<2>(), x.nibbles::<3>());
    let (m01, m23) = (m0.and(m1), m2.and(m3));
    let level = |upper: usize| {
        let splat = Words([c[4 * upper]; N]);
        let zero_one = splat.xor(m0.with(c[4 * upper + 1]));
        zero_one.xor(m1.with(c[4 * upper + 2]).xor(m01.with(c[4 * upper + 3])))
    };
    let y = level(0).xor(m2.and(level(1)));
    y.xor(m3.and(level(2)).xor(m23.and(level(3)))).rotate()
}

/// N blocks as numbers; `key` gives the round keys of all of them.
#[inline(always)]
fn rounds<const N: usize>(sbox: Sbox, key: impl Fn(usize) -> [u32; N], blocks: [u64; N]) -> [u64; N] {
    let c = &COEFFICIENTS[sbox as usize];
    let mut a1 = Words(blocks.map(|b| (b >> 32) as u32));
    let mut a0 = Words(blocks.map(|b| b as u32));
    for r in (0..32).step_by(2) {
        a1 = a1.xor(substitute(c, a0.add(Words(key(r)))));
        a0 = a0.xor(substitute(c, a1.add(Words(key(r + 1)))));
    }
    core::array::from_fn(|i| u64::from(a0.0[i]) << 32 | u64::from(a1.0[i]))
}

/// One block, as a number.
#[inline(never)]
pub(super) fn one(s: &Schedule, block: u64) -> u64 {
    rounds(s.sbox, |r| [s.rounds[r]], [block])[0]
}

/// Four blocks, as numbers.
#[inline(never)]
pub(super) fn four(s: &Schedule, blocks: [u64; 4]) -> [u64; 4] {
    rounds(s.sbox, |r| [s.rounds[r]; 4], blocks)
}

/// Four blocks, each under its own key, in bytes; `words` gives K1 to K8 of all four.
#[inline(never)]
pub(super) fn lanes(
    sbox: Sbox,
    order: ByteOrder,
    words: &[[u32; 4]; 8],
    blocks: [[u8; 8]; 4],
) -> [[u8; 8]; 4] {
    let key = |r: usize| words[if r < 24 { r % 8 } else { 7 - r % 8 }];
    rounds(sbox, key, blocks.map(|b| order.number(b))).map(|b| order.block(b))
}
