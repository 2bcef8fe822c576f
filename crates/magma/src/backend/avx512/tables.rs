//! The kernels' tables: the S-boxes by bytes, and the orders of bytes and lanes.
#![forbid(unsafe_code)]

use crate::sbox::{ROWS, Rows};
use crate::schedule::ByteOrder;

/// The eight substitutions of a set for the four bytes of a word: 16 entries for byte 0, then byte 1, 2 and 3.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Tables {
    /// For the low nibbles.
    pub(crate) low: [u8; 64],
    /// For the high nibbles, in the upper half of the entry.
    pub(crate) high: [u8; 64],
}

const fn tables(rows: &Rows) -> Tables {
    let (mut low, mut high) = ([0; 64], [0; 64]);
    let mut i = 0;
    while i < 64 {
        low[i] = rows[i / 16 * 2][i % 16];
        high[i] = rows[i / 16 * 2 + 1][i % 16] << 4;
        i += 1;
    }
    Tables { low, high }
}

/// By the set's discriminant.
pub(crate) static TABLES: [Tables; ROWS.len()] = {
    let mut all = [const { tables(&ROWS[0]) }; ROWS.len()];
    let mut i = 1;
    while i < ROWS.len() {
        all[i] = tables(&ROWS[i]);
        i += 1;
    }
    all
};

/// A byte shuffle of two blocks that turns each block into a little-endian number, or back.
pub(crate) const fn swap(order: ByteOrder) -> &'static [u8; 16] {
    match order {
        ByteOrder::Big => &[7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8],
        ByteOrder::Little => &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    }
}

/// For each of sixteen lanes, the block whose word lies there after two registers of eight blocks were taken apart: 128
/// bits hold two blocks of the first register, then two of the second.
pub(crate) const BLOCK_OF_LANE: [u32; 16] = [0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15];

/// The lane of each of sixteen blocks.
pub(crate) const LANE_OF_BLOCK: [usize; 16] = {
    let mut lanes = [0; 16];
    let mut i = 0;
    while i < 16 {
        lanes[BLOCK_OF_LANE[i] as usize] = i;
        i += 1;
    }
    lanes
};
