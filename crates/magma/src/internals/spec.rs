//! Straight from RFC 8891 and RFC 5830: slow, readable, indexed by secrets. Only for tests, as their oracle.
#![forbid(unsafe_code)]

use crate::sbox::Rows;

pub mod modes;

/// t: the eight substitutions, row i on bits 4i to 4i+3 (RFC 8891, 4.1).
#[must_use]
pub fn t(rows: &Rows, word: u32) -> u32 {
    (0..8).fold(0, |out, i| out | u32::from(rows[i][(word >> (4 * i)) as usize & 15]) << (4 * i))
}

/// g\[k\]: addition of the round key modulo 2^32, t, rotation by 11 (RFC 8891, 4.2).
#[must_use]
pub fn g(rows: &Rows, key: u32, word: u32) -> u32 {
    t(rows, word.wrapping_add(key)).rotate_left(11)
}

/// The words of a Magma key, K1 to K8 (RFC 8891, 4.3): big-endian.
#[must_use]
pub fn magma_words(key: &[u8; 32]) -> [u32; 8] {
    core::array::from_fn(|i| u32::from_be_bytes([key[4 * i], key[4 * i + 1], key[4 * i + 2], key[4 * i + 3]]))
}

/// The words of a GOST 28147-89 key (RFC 5830, 5): little-endian.
#[must_use]
pub fn gost28147_words(key: &[u8; 32]) -> [u32; 8] {
    magma_words(key).map(u32::swap_bytes)
}

/// One block, a1 in the upper half and a0 in the lower one (RFC 8891, 4.3 and 5.1).
#[must_use]
pub fn encrypt(rows: &Rows, words: &[u32; 8], block: u64) -> u64 {
    rounds(rows, (0..32).map(|i| words[if i < 24 { i % 8 } else { 7 - i % 8 }]), block)
}

/// The inverse of [`encrypt`] (RFC 8891, 5.2).
#[must_use]
pub fn decrypt(rows: &Rows, words: &[u32; 8], block: u64) -> u64 {
    rounds(rows, (0..32).map(|i| words[if i < 8 { i } else { 7 - i % 8 }]), block)
}

/// Rounds under the given keys; the last one leaves its halves unswapped, written here as an additional swap.
#[must_use]
pub fn rounds(rows: &Rows, keys: impl Iterator<Item = u32>, block: u64) -> u64 {
    let (mut a1, mut a0) = ((block >> 32) as u32, block as u32);
    for key in keys {
        (a1, a0) = (a0, a1 ^ g(rows, key, a0));
    }
    u64::from(a0) << 32 | u64::from(a1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sbox::Sbox;

    const KEY: &str = "ffeeddccbbaa99887766554433221100f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";

    fn key() -> [u8; 32] {
        core::array::from_fn(|i| u8::from_str_radix(&KEY[2 * i..2 * i + 2], 16).expect("hexadecimal"))
    }

    #[test]
    fn rfc_8891_a1_t() {
        for (a, b) in [
            (0xfdb97531, 0x2a196f34),
            (0x2a196f34, 0xebd9f03a),
            (0xebd9f03a, 0xb039bb3d),
            (0xb039bb3d, 0x68695433),
        ] {
            assert_eq!(t(Sbox::Z.rows(), a), b);
        }
    }

    #[test]
    fn rfc_8891_a2_g() {
        for (k, a, b) in [
            (0x87654321, 0xfedcba98, 0xfdcbc20c),
            (0xfdcbc20c, 0x87654321, 0x7e791a4b),
            (0x7e791a4b, 0xfdcbc20c, 0xc76549ec),
            (0xc76549ec, 0x7e791a4b, 0x9791c849),
        ] {
            assert_eq!(g(Sbox::Z.rows(), k, a), b);
        }
    }

    #[test]
    fn rfc_8891_a3_to_a5_words_and_block() {
        let words = magma_words(&key());
        assert_eq!(words[0], 0xffeeddcc);
        assert_eq!(words[7], 0xfcfdfeff);
        let c = encrypt(Sbox::Z.rows(), &words, 0xfedcba9876543210);
        assert_eq!(c, 0x4ee901e5c2d8ca3d);
        assert_eq!(decrypt(Sbox::Z.rows(), &words, c), 0xfedcba9876543210);
    }
}
