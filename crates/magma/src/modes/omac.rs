//! The MAC of GOST R 34.13-2015, 5.6, also known as OMAC1 and CMAC.
#![forbid(unsafe_code)]

use core::fmt;

use lanework_cpu::memory::{wipe, wipe_vector_registers};

use super::{BLOCK, xor_block};
use crate::error::Error;
use crate::key::Keyed;
use crate::limits::Charge;
use crate::release::equal;

/// A MAC's value: the first s bytes of the last block.
///
/// The `verify` of a mode compares tags in constant time. There is deliberately no `==`.
#[derive(Clone, Copy)]
pub struct Tag {
    bytes: [u8; BLOCK],
    len: usize,
}

impl Tag {
    pub(super) fn new(bytes: [u8; BLOCK], len: usize) -> Tag {
        Tag { bytes, len }
    }

    /// Compares in constant time.
    pub(super) fn verify(&self, tag: &[u8]) -> Result<(), Error> {
        if tag.len() != self.len {
            return Err(Error::TagLength(tag.len()));
        }
        if equal(self.as_ref(), tag) { Ok(()) } else { Err(Error::Refused) }
    }
}

impl AsRef<[u8]> for Tag {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Allowed tags: below 4 bytes one forgery in 2^24 tries succeeds.
pub(super) fn tag_length(len: usize) -> Result<usize, Error> {
    if (4..=BLOCK).contains(&len) { Ok(len) } else { Err(Error::TagLength(len)) }
}

/// The chain of a MAC: each block is added to it and it is encrypted. The last block waits, since it is treated
/// differently.
#[derive(Clone)]
pub(crate) struct Chain {
    value: [u8; BLOCK],
    last: [u8; BLOCK],
    /// Bytes in `last`; a whole block waits too.
    len: usize,
}

impl Chain {
    pub(crate) fn new() -> Chain {
        Chain { value: [0; BLOCK], last: [0; BLOCK], len: 0 }
    }

    /// The next bytes; every block but the last goes through `encrypt`.
    pub(crate) fn update(&mut self, mut data: &[u8], mut encrypt: impl FnMut(&mut [u8; BLOCK])) {
        if data.is_empty() {
            return;
        }
        if self.len > 0 {
            let n = data.len().min(BLOCK - self.len);
            let (head, rest) = data.split_at(n);
            self.last[self.len..self.len + n].copy_from_slice(head);
            self.len += n;
            data = rest;
            if data.is_empty() {
                return;
            }
            xor_block(&mut self.value, &self.last);
            encrypt(&mut self.value);
        }
        let (blocks, last) = data.split_at((data.len() - 1) / BLOCK * BLOCK);
        for block in blocks.as_chunks().0 {
            xor_block(&mut self.value, block);
            encrypt(&mut self.value);
        }
        self.len = last.len();
        self.last[..self.len].copy_from_slice(last);
    }

    /// Adds the last block, padded by procedure 3, with `key` where it is whole and twice `key` where it is not.
    /// Encrypting the result gives the MAC.
    pub(super) fn end(&mut self, key: u64) -> [u8; BLOCK] {
        let key = if self.len == BLOCK {
            key
        } else {
            self.last[self.len..].fill(0);
            self.last[self.len] = 0x80;
            double(key)
        };
        let mut value = self.value;
        xor_block(&mut value, &self.last);
        xor_block(&mut value, &key.to_be_bytes());
        value
    }

    /// The MAC, where the key is K1 of GOST R 34.13-2015, 5.6.1: twice the encrypted zero block.
    pub(crate) fn finish(mut self, encrypt: impl Fn(&mut [u8; BLOCK])) -> [u8; BLOCK] {
        let mut zero = [0; BLOCK];
        encrypt(&mut zero);
        let mut value = self.end(double(u64::from_be_bytes(zero)));
        wipe(&mut zero);
        encrypt(&mut value);
        value
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        wipe(&mut self.value);
        wipe(&mut self.last);
        wipe_vector_registers();
    }
}

/// Times x in GF(2)\[x\] / (x^64 + x^4 + x^3 + x + 1), without a branch.
pub(crate) fn double(x: u64) -> u64 {
    x << 1 ^ (0x1b & 0u64.wrapping_sub(x >> 63))
}

/// OMAC of one message, with a tag of 4 to 8 bytes. Serial; use a batch for many messages at once.
///
/// Do not encrypt with the same key. [`Omac::update`] returns [`Error::KeyExhausted`] beyond the key's limits. Verified
/// messages count too, authentic or not, so forgeries can use the key up. Tags that [`Omac::verify`] refuses also count
/// as refused messages ([`crate::limits`]), which limits guesses on short or empty messages.
#[derive(Clone)]
pub struct Omac<K: Keyed> {
    key: K,
    chain: Chain,
    charge: Charge,
    tag: usize,
}

impl<K: Keyed> Omac<K> {
    /// A message under a key; its tag will have `tag` bytes.
    ///
    /// # Errors
    /// [`Error::TagLength`] unless 4 <= `tag` <= 8.
    pub fn with_key(key: K, tag: usize) -> Result<Omac<K>, Error> {
        Ok(Omac { key, chain: Chain::new(), charge: Charge::new(u64::MAX), tag: tag_length(tag)? })
    }

    /// The next piece of the message.
    ///
    /// # Errors
    /// [`Error::KeyExhausted`], and the piece is not part of the message then.
    pub fn update(&mut self, data: &[u8]) -> Result<(), Error> {
        let core = self.key.core();
        self.charge.spend(&core.budget, self.chain.len as u64, data.len() as u64)?;
        self.chain.update(data, |block| core.encrypt_block(block));
        Ok(())
    }

    /// The tag. An empty message has one too.
    #[must_use]
    pub fn finish(self) -> Tag {
        let core = self.key.core();
        Tag::new(self.chain.finish(|block| core.encrypt_block(block)), self.tag)
    }

    /// Whether `tag` is the message's, in constant time.
    ///
    /// # Errors
    /// [`Error::TagLength`] unless it has the length chosen at the beginning; [`Error::Refused`] if it is wrong;
    /// [`Error::TooManyRefused`] if too many were.
    pub fn verify(self, tag: &[u8]) -> Result<(), Error> {
        let budget = self.key.core().budget.clone();
        budget.judge(0, || self.finish().verify(tag))
    }
}
