//! IMIT, the MAC of GOST 28147-89: RFC 5830, 8; with meshing and an initial block RFC 4357 and RFC 9189, 8.4.
#![forbid(unsafe_code)]

use lanework_cpu::memory::wipe;

use super::Meshing;
use super::meshing::Meshed;
use crate::error::Error;
use crate::key::{Gost28147, Sealed};
use crate::modes::{BLOCK, Tag, xor_block};
use crate::sbox::Sbox;

/// IMIT of one message: 4 bytes. Serial, with 16 rounds for a block.
///
/// The standard defines the code for two blocks and more (RFC 5830, 8). A message of 1 to 8 bytes is padded to a block
/// here, and a block of zeros follows. gost-engine and CryptoPro do the same. Bouncy Castle, pygost and gogost process
/// the padded block alone, so their codes of such messages differ. From 9 bytes on all agree.
///
/// [`Imit::update`] returns [`Error::KeyExhausted`] beyond the key's limits; with meshing the given key is charged only
/// for its own 1024 bytes. Codes that [`Imit::verify`] refuses count as refused messages ([`crate::limits`]).
#[derive(Clone)]
pub struct Imit {
    key: Meshed,
    rows: [u64; 8],
    value: [u8; BLOCK],
    last: [u8; BLOCK],
    /// Bytes in `last`; a whole block waits too.
    len: usize,
    /// Whether a block has been processed.
    begun: bool,
}

impl Imit {
    /// A message under a key.
    #[must_use]
    pub fn with_key(key: &Gost28147, meshing: Meshing) -> Imit {
        Imit::with_iv(key, &[0; BLOCK], meshing)
    }

    /// A message under a key, with an initial block instead of zeros: gost28147IMIT(IV, K, D) of RFC 4357, for key
    /// wrapping.
    #[must_use]
    pub fn with_iv(key: &Gost28147, iv: &[u8; BLOCK], meshing: Meshing) -> Imit {
        Imit {
            key: Meshed::new(key, meshing),
            rows: packed(key.core().encrypt.sbox),
            value: *iv,
            last: [0; BLOCK],
            len: 0,
            begun: false,
        }
    }

    /// The next piece of the message.
    ///
    /// # Errors
    /// [`Error::KeyExhausted`], and the piece is not part of the message then.
    pub fn update(&mut self, mut data: &[u8]) -> Result<(), Error> {
        self.key.admit(self.len, data.len())?;
        while !data.is_empty() {
            if self.len == BLOCK {
                self.block();
            }
            if self.len == 0 && data.len() > BLOCK {
                let (block, rest) = data.split_at(BLOCK);
                self.last.copy_from_slice(block);
                (self.len, data) = (BLOCK, rest);
            } else {
                let n = data.len().min(BLOCK - self.len);
                let (head, rest) = data.split_at(n);
                self.last[self.len..self.len + n].copy_from_slice(head);
                self.len += n;
                data = rest;
            }
        }
        Ok(())
    }

    /// The tag. For an empty message it is the first half of the initial block, independent of the key.
    #[must_use]
    pub fn finish(mut self) -> Tag {
        if self.len > 0 {
            let alone = !self.begun;
            self.last[self.len..].fill(0);
            self.block();
            if alone {
                self.last.fill(0);
                self.block();
            }
        }
        Tag::new(self.value, 4)
    }

    /// Whether `tag` is the message's, in constant time.
    ///
    /// # Errors
    /// [`Error::EmptyMessage`] for an empty message, whose tag is public; [`Error::TagLength`] unless the tag has 4
    /// bytes; [`Error::Refused`] if it is wrong; [`Error::TooManyRefused`] if too many were.
    pub fn verify(self, tag: &[u8]) -> Result<(), Error> {
        if self.len == 0 && !self.begun {
            return Err(Error::EmptyMessage);
        }
        let budget = self.key.core.budget.clone();
        budget.judge(0, || self.finish().verify(tag))
    }

    /// Processes the block that waits.
    fn block(&mut self) {
        if self.key.due() {
            // The chain is not an IV: it continues unchanged.
            self.key.change(None);
        }
        xor_block(&mut self.value, &self.last);
        let [mut n1, mut n2] =
            [0, 4].map(|at| u32::from_le_bytes(core::array::from_fn(|i| self.value[at + i])));
        let words = &self.key.core.words;
        for pair in words.chunks_exact(2).chain(words.chunks_exact(2)) {
            n2 ^= g(&self.rows, n1.wrapping_add(pair[0]));
            n1 ^= g(&self.rows, n2.wrapping_add(pair[1]));
        }
        self.value[..4].copy_from_slice(&n1.to_le_bytes());
        self.value[4..].copy_from_slice(&n2.to_le_bytes());
        self.key.count(BLOCK);
        (self.len, self.begun) = (0, true);
    }
}

impl Drop for Imit {
    fn drop(&mut self) {
        wipe(&mut self.value);
        wipe(&mut self.last);
    }
}

/// Every row as one word, entry i in bits 4i to 4i + 3. A look-up is then a shift by a secret amount, which takes
/// constant time on all processors with 64-bit registers; an index into memory does not.
fn packed(sbox: Sbox) -> [u64; 8] {
    sbox.rows().map(|row| row.iter().rev().fold(0, |word, &entry| word << 4 | u64::from(entry)))
}

/// Substitution and rotation.
fn g(rows: &[u64; 8], x: u32) -> u32 {
    let mut out = 0;
    for (i, row) in rows.iter().enumerate() {
        let nibble = x >> (4 * i) & 15;
        out |= ((row >> (4 * nibble)) as u32 & 15) << (4 * i);
    }
    out.rotate_left(11)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::internals::spec;

    #[test]
    fn nobody_is_told_that_an_empty_message_is_authentic() {
        let key = Gost28147::new(&[1; 32], Sbox::Z);
        let empty = Imit::with_key(&key, Meshing::None);
        assert_eq!(empty.clone().finish().as_ref(), [0; 4], "whatever the key is");
        assert_eq!(empty.clone().verify(&[0; 4]), Err(Error::EmptyMessage));
        let mut one = empty;
        one.update(&[0]).unwrap();
        let tag = one.clone().finish();
        assert_eq!(one.verify(tag.as_ref()), Ok(()));
    }

    #[test]
    fn the_round_is_the_specifications() {
        let mut x = 1u32;
        for sbox in Sbox::ALL {
            for _ in 0..500 {
                x = x.wrapping_mul(0x9e37_79b9).wrapping_add(0x7f4a_7c15).rotate_left(7);
                assert_eq!(g(&packed(sbox), x), spec::g(sbox.rows(), 0, x));
            }
        }
    }
}
