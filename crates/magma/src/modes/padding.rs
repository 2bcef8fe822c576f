//! The padding procedures of GOST R 34.13-2015, 4.1.
#![forbid(unsafe_code)]

use alloc::vec::Vec;

use super::{BLOCK, whole_blocks};
use crate::error::Error;
use crate::release;

/// The methods that extend a message to whole blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// Zeros up to the block's end; none where the message is whole blocks already. Removing them needs the message's
    /// length from elsewhere.
    Zeros,
    /// Procedure 2: a one bit and then zeros, always at least that one bit; can be removed again.
    OneZeros,
    /// Procedure 3: as 2 where the message is not whole blocks, and nothing where it is. For a MAC that treats both
    /// cases differently, as OMAC does by itself; it cannot be removed.
    Mac,
}

impl Padding {
    /// The number of bytes appended to a message of `len` bytes.
    #[must_use]
    pub const fn bytes(self, len: usize) -> usize {
        let open = len % BLOCK;
        match self {
            Padding::Zeros | Padding::Mac => (BLOCK - open) % BLOCK,
            Padding::OneZeros => BLOCK - open,
        }
    }

    /// Appends the padding.
    pub fn pad(self, message: &mut Vec<u8>) {
        let bytes = self.bytes(message.len());
        let first = message.len();
        message.resize(first + bytes, 0);
        if bytes > 0 && self != Padding::Zeros {
            message[first] = 0x80;
        }
    }
}

/// The length of the message without the padding of [`Padding::OneZeros`]. The last block is examined in constant time,
/// except for the resulting length.
///
/// Check a MAC first: revealing whether the padding of unauthenticated data was right reveals the plaintext (Vaudenay
/// 2002).
///
/// # Errors
/// [`Error::Unaligned`] without whole blocks; [`Error::Refused`] where the last block does not end in a one bit and
/// zeros, and where there is no block.
pub fn unpad_one_zeros(padded: &[u8]) -> Result<usize, Error> {
    whole_blocks(padded.len())?;
    let Some(last) = padded.last_chunk::<BLOCK>() else {
        return Err(Error::Refused);
    };
    // From the end: zeros until another byte, which must be 0x80. All masks are 0 or all ones.
    let (mut searching, mut found, mut at) = (u32::MAX, 0, 0);
    for (i, &byte) in last.iter().enumerate().rev() {
        let zero = mask_of_zero(u32::from(byte));
        let end = searching & !zero;
        let right = mask_of_zero(u32::from(byte) ^ 0x80);
        found |= end & right;
        at |= end & right & i as u32;
        searching &= zero;
    }
    // Only the answer, and with it the message's length, decides a branch.
    if !release::bit((found & 1) as u8) {
        return Err(Error::Refused);
    }
    Ok(padded.len() - BLOCK + at as usize)
}

/// The message without the zeros that padded it to whole blocks: checks that `len` bytes would have been padded this way.
///
/// # Errors
/// [`Error::Parameter`] where a message of `len` bytes is not padded to this length; [`Error::Refused`] where other bytes
/// than zeros follow it.
pub fn unpad_zeros(padded: &[u8], len: usize) -> Result<usize, Error> {
    if len.checked_next_multiple_of(BLOCK) != Some(padded.len()) {
        return Err(Error::Parameter("the message's length before it was padded"));
    }
    let rest = padded[len..].iter().fold(0, |all, byte| all | byte);
    if release::bit((mask_of_zero(u32::from(rest)) & 1) as u8) { Ok(len) } else { Err(Error::Refused) }
}

/// All ones for 0 and zero for 1 to 2^31.
fn mask_of_zero(x: u32) -> u32 {
    0u32.wrapping_sub(1 - ((x | x.wrapping_neg()) >> 31))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_padded_comes_back() {
        for len in 0..40 {
            let message: Vec<u8> = (0..len as u8).map(|i| i.wrapping_mul(0x40)).collect();
            for padding in [Padding::Zeros, Padding::OneZeros, Padding::Mac] {
                let mut padded = message.clone();
                padding.pad(&mut padded);
                assert_eq!(padded.len(), len + padding.bytes(len));
                assert_eq!(padded.len() % 8, 0);
                assert!(padded.len() - len <= 8 && padded.starts_with(&message));
                let one = padded[len..].first().is_some_and(|&byte| byte == 0x80);
                match padding {
                    Padding::Zeros => assert_eq!(unpad_zeros(&padded, len), Ok(len)),
                    Padding::OneZeros => assert_eq!(unpad_one_zeros(&padded), Ok(len)),
                    Padding::Mac => assert_eq!(one, len % 8 != 0),
                }
            }
        }
    }

    /// Every last block that ends in any byte at any place, against a plain search.
    #[test]
    fn unpadding_is_strict() {
        for at in 0..8 {
            for byte in 0..=255u8 {
                for before in [0u8, 0x80, 0x17] {
                    let mut padded = vec![before; 16];
                    padded[8 + at..].fill(0);
                    padded[8 + at] = byte;
                    let end = padded.iter().rposition(|&b| b != 0).filter(|&i| i >= 8 && padded[i] == 0x80);
                    assert_eq!(unpad_one_zeros(&padded), end.ok_or(Error::Refused), "{padded:02x?}");
                }
            }
        }
        assert_eq!(unpad_one_zeros(&[]), Err(Error::Refused));
        assert_eq!(unpad_one_zeros(&[0x80; 7]), Err(Error::Unaligned(7)));
    }

    #[test]
    fn zeros_are_checked_against_the_length() {
        assert_eq!(unpad_zeros(&[1, 2, 3, 0, 0, 0, 0, 0], 3), Ok(3));
        assert_eq!(unpad_zeros(&[1, 2, 3, 0, 0, 0, 0, 1], 3), Err(Error::Refused));
        for len in [0, 9, usize::MAX] {
            assert!(matches!(unpad_zeros(&[0; 8], len), Err(Error::Parameter(_))));
        }
    }
}
