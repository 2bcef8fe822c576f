//! Known answers as data: numbers from the standards and from other implementations' tests, each with its source.
#![forbid(unsafe_code)]

use alloc::vec::Vec;

pub mod keys;
pub mod mgm;
pub mod modes;
pub mod packets;

/// The bytes of an even number of hexadecimal digits.
///
/// # Panics
/// If the text is anything else: the texts are constants of this module.
#[must_use]
pub fn bytes(hex: &str) -> Vec<u8> {
    assert!(hex.len().is_multiple_of(2), "an even number of digits");
    let digit = |byte: u8| (byte as char).to_digit(16).expect("a hexadecimal digit") as u8;
    hex.as_bytes().chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// An array of bytes, as long as its type.
///
/// # Panics
/// If the text has another length, or is not hexadecimal.
#[must_use]
pub fn array<const N: usize>(hex: &str) -> [u8; N] {
    bytes(hex).try_into().expect("as many bytes as the type says")
}
