//! A few blocks at a time, for serial modes and short inputs: all eight S-boxes of a word at once, without planes.
//!
//! Each output bit of an S-box is a polynomial over GF(2) in its four input bits, so y = XOR over the 16 sets m of
//! input bits of C\[m\] & M\[m\], where M\[m\] has all four bits of a nibble set where the product of the nibble's
//! bits in m is 1, and C\[m\] holds, nibble by nibble, the coefficients of all four outputs. Grouped by the upper
//! two input bits that is y = L0 ^ (M3 & L1) ^ (M2 & L2) ^ (M3 & M2 & L3), each L = C ^ (M0 & C') ^ (M1 & C'') ^
//! (M0 & M1 & C'''). Nothing is looked up, and the eight S-boxes may all differ.
#![forbid(unsafe_code)]

use crate::sbox::{ROWS, Rows, Sbox};
use crate::schedule::{ByteOrder, Schedule, wipe_words, word};

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

/// All four bits of every nibble whose bit J is set.
#[inline(always)]
const fn nibbles<const J: u32>(x: u32) -> u32 {
    let bit = x & (0x1111_1111 << J);
    // Modulo 2^32, for the top nibble.
    (bit << (4 - J)).wrapping_sub(bit >> J)
}

/// t(x), rotated by 11; `c` gives the coefficients.
#[inline(always)]
fn substitute(c: impl Fn(usize) -> u32, x: u32) -> u32 {
    let (m0, m1) = (nibbles::<0>(x), nibbles::<1>(x));
    let (m2, m3) = (nibbles::<2>(x), nibbles::<3>(x));
    let (m01, m23) = (m0 & m1, m2 & m3);
    let level = |upper: usize| {
        let c = |lower: usize| c(4 * upper + lower);
        (c(0) ^ (m0 & c(1))) ^ ((m1 & c(2)) ^ (m01 & c(3)))
    };
    let y = (level(0) ^ (m2 & level(1))) ^ ((m3 & level(2)) ^ (m23 & level(3)));
    y.rotate_left(11)
}

/// One block, as a number; `key` gives each round's.
#[inline(always)]
fn rounds(sbox: Sbox, key: impl Fn(usize) -> u32, block: u64) -> u64 {
    let coefficients = &COEFFICIENTS[sbox as usize];
    let g = |key: u32, x: u32| substitute(|m| coefficients[m], x.wrapping_add(key));
    let (mut a1, mut a0) = ((block >> 32) as u32, block as u32);
    for r in (0..32).step_by(2) {
        a1 ^= g(key(r), a0);
        a0 ^= g(key(r + 1), a1);
    }
    u64::from(a0) << 32 | u64::from(a1)
}

/// One block, as a number.
#[inline(never)]
pub(super) fn one(s: &Schedule, block: u64) -> u64 {
    rounds(s.sbox, |r| s.rounds[r], block)
}

/// One block encrypted under a lane's key, as a number; `keys` holds K1 to K8 of all lanes.
#[inline(never)]
pub(super) fn lane<const N: usize>(sbox: Sbox, keys: &[[u32; N]; 8], lane: usize, block: u64) -> u64 {
    rounds(sbox, |r| keys[word(r, 24)][lane], block)
}

/// Blocks in a row: enough that the compiler keeps the loop over them and vectorises it.
pub(super) const ROW: usize = 8;

/// A word of every block of a row.
pub(super) type Row = [u32; ROW];

/// The coefficients, each spread to a row beforehand.
static COEFFICIENT_ROWS: [[Row; 16]; 6] = {
    let mut all = [[[0; ROW]; 16]; 6];
    let mut set = 0;
    while set < 6 {
        let mut m = 0;
        while m < 16 {
            all[set][m] = [COEFFICIENTS[set][m]; ROW];
            m += 1;
        }
        set += 1;
    }
    all
};

/// left ^= g\[key\](right) in every block of a row.
#[inline(never)]
fn round(c: &[Row; 16], key: &Row, left: &mut Row, right: &Row) {
    for i in 0..ROW {
        left[i] ^= substitute(|m| c[m][i], right[i].wrapping_add(key[i]));
    }
}

/// A row of blocks, as numbers. `keys` holds K1 to K8 for every block; the first `rising` rounds take the words in
/// rising order.
#[inline(always)]
fn row(sbox: Sbox, keys: &[Row; 8], rising: usize, blocks: [u64; ROW]) -> [u64; ROW] {
    let c = &COEFFICIENT_ROWS[sbox as usize];
    let (mut a1, mut a0) = (blocks.map(|b| (b >> 32) as u32), blocks.map(|b| b as u32));
    for r in (0..32).step_by(2) {
        round(c, &keys[word(r, rising)], &mut a1, &a0);
        round(c, &keys[word(r + 1, rising)], &mut a0, &a1);
    }
    core::array::from_fn(|i| u64::from(a0[i]) << 32 | u64::from(a1[i]))
}

/// A row of blocks under one key, as numbers.
#[inline(never)]
pub(super) fn eight(s: &Schedule, blocks: [u64; ROW]) -> [u64; ROW] {
    let mut keys: [Row; 8] = core::array::from_fn(|w| [s.rounds[w]; ROW]);
    let out = row(s.sbox, &keys, s.rising, blocks);
    wipe_words(keys.as_flattened_mut());
    out
}

/// A row of blocks, each under its own key, in bytes; `keys` holds K1 to K8 of all.
#[inline(never)]
pub(super) fn lanes(sbox: Sbox, order: ByteOrder, keys: &[Row; 8], blocks: [[u8; 8]; ROW]) -> [[u8; 8]; ROW] {
    row(sbox, keys, 24, blocks.map(|b| order.number(b))).map(|b| order.block(b))
}
