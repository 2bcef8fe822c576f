//! OFB, GOST R 34.13-2015, 5.3, with s = 64 and IVs of z blocks.
#![forbid(unsafe_code)]

use alloc::vec::Vec;

use inout::InOutBuf;
use lanework_cpu::memory::{wipe, wipe_vector_registers};

use super::{BLOCK, Stream, each_block, whole_blocks_of_iv, within_limits, xor, xor_block};
use crate::error::Error;
use crate::key::Keyed;
use crate::limits::begun;

/// OFB with whole blocks of feedback: encryption and decryption are one. Serial, but for an IV of z blocks: z chains
/// run at once.
///
/// Never repeat an IV under one key. [`Stream::process`] returns [`Error::KeyExhausted`] beyond the key's limits.
#[derive(Clone)]
pub struct Ofb<K: Keyed> {
    key: K,
    /// The current z blocks of keystream, at first the IV; each round encrypts them all.
    register: Vec<u8>,
    at: usize,
}

impl<K: Keyed> Ofb<K> {
    /// A message under an IV of 8z bytes, z >= 1.
    ///
    /// # Errors
    /// [`Error::NonceLength`].
    pub fn with_key(key: K, iv: &[u8]) -> Result<Ofb<K>, Error> {
        whole_blocks_of_iv(iv)?;
        Ok(Ofb { key, register: iv.to_vec(), at: iv.len() })
    }
}

impl<K: Keyed> Stream for Ofb<K> {
    fn process(&mut self, mut data: InOutBuf<'_, '_, u8>) -> Result<(), Error> {
        let core = self.key.core();
        core.budget.spend(begun(self.at as u64, data.len() as u64))?;
        if let (BLOCK, Ok(gamma)) = (self.at, <&mut [u8; BLOCK]>::try_from(&mut *self.register)) {
            data = each_block(data, |block| {
                core.encrypt_block(gamma);
                xor_block(block, gamma);
            });
        }
        while !data.is_empty() {
            if self.at == self.register.len() {
                core.encrypt_blocks(self.register.as_mut_slice().into());
                self.at = 0;
            }
            let n = data.len().min(self.register.len() - self.at);
            let (now, rest) = data.split_at(n);
            xor(now, &self.register[self.at..self.at + n]);
            self.at += n;
            data = rest;
        }
        Ok(())
    }

    fn would_take(&self, bytes: u64) -> Result<(), Error> {
        within_limits(&self.key, begun(self.at as u64, bytes))
    }
}

impl<K: Keyed> Drop for Ofb<K> {
    fn drop(&mut self) {
        wipe(&mut self.register);
        wipe_vector_registers();
    }
}
