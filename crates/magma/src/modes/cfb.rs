//! CFB, GOST R 34.13-2015, 5.5, with s = 64 and IVs of z blocks; with z = 1 it is that of 28147-89 (RFC 5830, 7).
#![forbid(unsafe_code)]

use alloc::vec::Vec;

use inout::InOutBuf;
use lanework_cpu::Threads;
use lanework_cpu::memory::{wipe, wipe_vector_registers};

use super::parallel::piece;
use super::{BLOCK, CHUNK, SMALL, Stream, each_block, whole_blocks_of_iv, within_limits, xor, xor_block};
use crate::error::Error;
use crate::key::{Core, Keyed};
use crate::limits::begun;

/// The state of both directions. A round is z blocks: their keystream is the encrypted register, and their ciphertext
/// becomes the register of the next round.
#[derive(Clone)]
pub(super) struct Register {
    /// The ciphertext of this round up to `at`; then that of the previous round, which is no longer needed.
    ciphertext: Vec<u8>,
    /// Empty before the first round that does not take whole blocks.
    gamma: Vec<u8>,
    /// Bytes of the round that are done.
    at: usize,
}

impl Register {
    pub(super) fn new(iv: &[u8]) -> Result<Register, Error> {
        whole_blocks_of_iv(iv)?;
        Ok(Register { ciphertext: iv.to_vec(), gamma: Vec::new(), at: iv.len() })
    }

    /// The register of a round that has just ended.
    pub(super) fn ended(&mut self) -> Option<&mut [u8]> {
        (self.at == self.ciphertext.len()).then_some(&mut self.ciphertext)
    }

    /// Bytes of the round that are done.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// What a key's limits count for the next bytes.
    fn due(&self, bytes: u64) -> u64 {
        begun(self.at as u64, bytes)
    }

    /// Begins a round if the last one has ended; returns the number of bytes left in the round, at most `n`.
    fn begin(&mut self, core: &Core, n: usize) -> usize {
        if self.at == self.ciphertext.len() {
            self.gamma.clear();
            self.gamma.extend_from_slice(&self.ciphertext);
            core.encrypt_blocks(self.gamma.as_mut_slice().into());
            self.at = 0;
        }
        n.min(self.ciphertext.len() - self.at)
    }

    pub(super) fn encrypt(&mut self, core: &Core, mut data: InOutBuf<'_, '_, u8>) {
        if let (BLOCK, Ok(last)) = (self.at, <&mut [u8; BLOCK]>::try_from(&mut *self.ciphertext)) {
            data = each_block(data, |block| {
                core.encrypt_block(last);
                xor_block(last, block);
                *block = *last;
            });
        }
        while !data.is_empty() {
            let n = self.begin(core, data.len());
            let (mut now, rest) = data.split_at(n);
            let here = self.at..self.at + n;
            xor(now.reborrow(), &self.gamma[here.clone()]);
            self.ciphertext[here].copy_from_slice(now.get_out());
            self.at += n;
            data = rest;
        }
    }

    pub(super) fn decrypt(&mut self, core: &Core, data: InOutBuf<'_, '_, u8>) {
        if data.len() <= SMALL {
            self.decrypt_with::<SMALL>(core, data);
        } else {
            self.decrypt_with::<CHUNK>(core, data);
        }
    }

    fn decrypt_with<const N: usize>(&mut self, core: &Core, mut data: InOutBuf<'_, '_, u8>) {
        let z = self.ciphertext.len();
        let mut gamma = [0; N];
        let mut dirty = 0;
        while !data.is_empty() {
            let whole = data.len().min(N) / z * z;
            if self.at == z && whole > z {
                let (now, rest) = data.split_at(whole);
                let gamma = &mut gamma[..whole];
                gamma[..z].copy_from_slice(&self.ciphertext);
                gamma[z..].copy_from_slice(&now.get_in()[..whole - z]);
                self.ciphertext.copy_from_slice(&now.get_in()[whole - z..]);
                core.encrypt_blocks((&mut *gamma).into());
                xor(now, gamma);
                dirty = dirty.max(whole);
                data = rest;
            } else {
                let n = self.begin(core, data.len());
                let (now, rest) = data.split_at(n);
                let here = self.at..self.at + n;
                self.ciphertext[here.clone()].copy_from_slice(now.get_in());
                xor(now, &self.gamma[here]);
                self.at += n;
                data = rest;
            }
        }
        wipe(&mut gamma[..dirty]);
    }
}

impl Drop for Register {
    fn drop(&mut self) {
        wipe(&mut self.gamma);
        wipe_vector_registers();
    }
}

/// CFB encryption with whole blocks of feedback. Serial, but for an IV of z blocks: z chains run at once.
///
/// Never repeat an IV under one key. [`Stream::process`] returns [`Error::KeyExhausted`] beyond the key's limits.
#[derive(Clone)]
pub struct CfbEncryptor<K: Keyed> {
    key: K,
    register: Register,
}

impl<K: Keyed> CfbEncryptor<K> {
    /// A message under an IV of 8z bytes, z >= 1.
    ///
    /// # Errors
    /// [`Error::NonceLength`].
    pub fn with_key(key: K, iv: &[u8]) -> Result<CfbEncryptor<K>, Error> {
        Ok(CfbEncryptor { key, register: Register::new(iv)? })
    }
}

impl<K: Keyed> Stream for CfbEncryptor<K> {
    fn process(&mut self, data: InOutBuf<'_, '_, u8>) -> Result<(), Error> {
        self.key.core().budget.spend(self.register.due(data.len() as u64))?;
        self.register.encrypt(self.key.core(), data);
        Ok(())
    }

    fn would_take(&self, bytes: u64) -> Result<(), Error> {
        within_limits(&self.key, self.register.due(bytes))
    }
}

/// CFB decryption; runs in parallel. Errors as for [`CfbEncryptor`].
#[derive(Clone)]
pub struct CfbDecryptor<K: Keyed> {
    key: K,
    register: Register,
}

impl<K: Keyed> CfbDecryptor<K> {
    /// A message under an IV of 8z bytes, z >= 1.
    ///
    /// # Errors
    /// [`Error::NonceLength`].
    pub fn with_key(key: K, iv: &[u8]) -> Result<CfbDecryptor<K>, Error> {
        Ok(CfbDecryptor { key, register: Register::new(iv)? })
    }

    /// The next piece in place, spread over threads.
    ///
    /// # Errors
    /// As [`Stream::process`]; [`Error::Threads`], and only the end of an unfinished round has been processed then,
    /// though the key counts it all.
    pub fn apply_with(&mut self, threads: Threads<'_>, data: &mut [u8]) -> Result<(), Error> {
        let z = self.register.ciphertext.len();
        let granule = z * self.key.core().engine.parallel();
        let piece = piece(data.len(), granule, threads);
        let head = z - self.register.at;
        if threads.count() == 1 || data.len() <= head + piece {
            return self.apply(data);
        }
        self.key.core().budget.spend(self.register.due(data.len() as u64))?;
        let core = self.key.core();
        let (head, bulk) = data.split_at_mut(head);
        self.register.decrypt(core, head.into());
        // A piece is whole rounds, so the next one's register is its last z bytes.
        let mut pieces = Vec::new();
        let mut iv = self.register.ciphertext.clone();
        for data in bulk.chunks_mut(piece) {
            let register = Register::new(&iv)?;
            if data.len() == piece {
                iv.copy_from_slice(&data[piece - z..]);
            }
            pieces.push((register, data));
        }
        threads.for_each(&mut pieces, |_, (register, data)| register.decrypt(core, (&mut **data).into()))?;
        if let Some((register, _)) = pieces.pop() {
            self.register = register;
        }
        Ok(())
    }
}

impl<K: Keyed> Stream for CfbDecryptor<K> {
    fn process(&mut self, data: InOutBuf<'_, '_, u8>) -> Result<(), Error> {
        self.key.core().budget.spend(self.register.due(data.len() as u64))?;
        self.register.decrypt(self.key.core(), data);
        Ok(())
    }

    fn would_take(&self, bytes: u64) -> Result<(), Error> {
        within_limits(&self.key, self.register.due(bytes))
    }
}
