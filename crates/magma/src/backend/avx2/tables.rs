//! The S-boxes in the kernels' layouts.

use crate::sbox::{ROWS, Rows};

/// One set for byte planes: the contribution of a nibble of the sum's byte j to the word's bytes after the rotation by
/// 11.
#[repr(C, align(64))]
pub(super) struct Planes {
    /// The low nibble: its substitution, shifted by 3, falls into byte j + 1.
    pub(super) low: [[u8; 16]; 4],
    /// The high nibble: the lowest bit of its substitution becomes the top bit of byte j + 1.
    pub(super) high_bit: [[u8; 16]; 4],
    /// The high nibble: the other three bits become the lowest ones of byte j + 2.
    pub(super) high_rest: [[u8; 16]; 4],
}

/// One set for whole words: row i substitutes nibble i and leaves it in place. Entry 0 of each row is 0, so that rows
/// whose nibble was masked away add nothing. `zero` is the omitted constant: the substitution of the word 0, rotated by
/// 11.
#[repr(C, align(64))]
pub(super) struct Words {
    pub(super) rows: [[u8; 16]; 8],
    pub(super) zero: u32,
}

/// One set for quadwords: row i substitutes nibble i, and leaves it in the upper half of a byte where i is even. Entry 0
/// of each row is 0, as in [`Words`].
#[repr(C, align(64))]
pub(super) struct Quadwords {
    /// The masks of a nibble in bytes 0, 1, 2 and 3, the mask of a nibble in bytes 0 and 4, and the omitted constant as
    /// a half: each for every block.
    pub(super) fixed: [[u64; 4]; 6],
    pub(super) rows: [[u8; 16]; 8],
}

/// By the set's discriminant.
pub(super) static PLANES: [Planes; 6] = [
    planes(&ROWS[0]),
    planes(&ROWS[1]),
    planes(&ROWS[2]),
    planes(&ROWS[3]),
    planes(&ROWS[4]),
    planes(&ROWS[5]),
];

/// By the set's discriminant.
pub(super) static WORDS: [Words; 6] =
    [words(&ROWS[0]), words(&ROWS[1]), words(&ROWS[2]), words(&ROWS[3]), words(&ROWS[4]), words(&ROWS[5])];

/// By the set's discriminant.
pub(super) static QUADWORDS: [Quadwords; 6] = [
    quadwords(&ROWS[0]),
    quadwords(&ROWS[1]),
    quadwords(&ROWS[2]),
    quadwords(&ROWS[3]),
    quadwords(&ROWS[4]),
    quadwords(&ROWS[5]),
];

const fn planes(rows: &Rows) -> Planes {
    let mut out = Planes { low: [[0; 16]; 4], high_bit: [[0; 16]; 4], high_rest: [[0; 16]; 4] };
    let mut j = 0;
    while j < 4 {
        let mut i = 0;
        while i < 16 {
            out.low[j][i] = rows[2 * j][i] << 3;
            // Planes hold every byte with its top bit flipped.
            let high = rows[2 * j + 1][i ^ 8];
            out.high_bit[j][i] = high << 7;
            out.high_rest[j][i] = high >> 1;
            i += 1;
        }
        j += 1;
    }
    out
}

const fn words(rows: &Rows) -> Words {
    let mut out = Words { rows: [[0; 16]; 8], zero: 0 };
    let mut j = 0;
    while j < 8 {
        let mut i = 0;
        while i < 16 {
            out.rows[j][i] = (rows[j][i] ^ rows[j][0]) << (4 * (j % 2));
            i += 1;
        }
        out.zero |= (rows[j][0] as u32) << (4 * j);
        j += 1;
    }
    out.zero = out.zero.rotate_left(11);
    out
}

const fn quadwords(rows: &Rows) -> Quadwords {
    let words = words(rows);
    let zero = (words.zero as u64) << 1;
    let fixed = [[0xf; 4], [0xf00; 4], [0xf_0000; 4], [0xf00_0000; 4], [0xf_0000_000f; 4], [zero; 4]];
    let mut out = Quadwords { fixed, rows: words.rows };
    let mut j = 0;
    while j < 8 {
        let mut i = 0;
        while i < 16 {
            // `words` has odd nibbles in the upper half.
            out.rows[j][i] = words.rows[j][i].rotate_left(4);
            i += 1;
        }
        j += 1;
    }
    out
}
