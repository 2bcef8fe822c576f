//! ECB, GOST R 34.13-2015, 5.1: each block by itself.
//!
//! Equal plaintext blocks give equal ciphertext blocks, and exchanged blocks are not detected. Use this to build modes,
//! not to encrypt data.
#![forbid(unsafe_code)]

use alloc::vec::Vec;

use inout::InOutBuf;
use lanework_cpu::Threads;

use super::parallel::piece;
use super::{BLOCK, Stream, blocks_within_limits, whole_blocks};
use crate::error::Error;
use crate::key::{Core, Keyed};

/// ECB encryption of whole blocks; runs in parallel. [`Stream::process`] returns [`Error::Unaligned`] for pieces that
/// are not whole blocks and [`Error::KeyExhausted`] beyond the key's limits.
#[derive(Clone)]
pub struct EcbEncryptor<K: Keyed>(K);

/// ECB decryption. Errors as for [`EcbEncryptor`].
#[derive(Clone)]
pub struct EcbDecryptor<K: Keyed>(K);

impl<K: Keyed> EcbEncryptor<K> {
    /// Under a key.
    #[must_use]
    pub fn with_key(key: K) -> EcbEncryptor<K> {
        EcbEncryptor(key)
    }

    /// Blocks in place, spread over threads.
    ///
    /// # Errors
    /// As [`Stream::process`]; [`Error::Threads`], and nothing has been processed then, though the key counts it.
    pub fn apply_with(&mut self, threads: Threads<'_>, data: &mut [u8]) -> Result<(), Error> {
        admit(&self.0, data.len())?;
        let core = self.0.core();
        spread(core, threads, data, |data| core.encrypt_blocks(data.into()))
    }
}

impl<K: Keyed> EcbDecryptor<K> {
    /// Under a key.
    #[must_use]
    pub fn with_key(key: K) -> EcbDecryptor<K> {
        EcbDecryptor(key)
    }

    /// Blocks in place, spread over threads.
    ///
    /// # Errors
    /// As for encryption.
    pub fn apply_with(&mut self, threads: Threads<'_>, data: &mut [u8]) -> Result<(), Error> {
        admit(&self.0, data.len())?;
        let core = self.0.core();
        spread(core, threads, data, |data| core.decrypt_blocks(data.into()))
    }
}

impl<K: Keyed> Stream for EcbEncryptor<K> {
    fn process(&mut self, data: InOutBuf<'_, '_, u8>) -> Result<(), Error> {
        admit(&self.0, data.len())?;
        self.0.core().encrypt_blocks(data);
        Ok(())
    }

    fn would_take(&self, bytes: u64) -> Result<(), Error> {
        blocks_within_limits(&self.0, bytes)
    }
}

impl<K: Keyed> Stream for EcbDecryptor<K> {
    fn process(&mut self, data: InOutBuf<'_, '_, u8>) -> Result<(), Error> {
        admit(&self.0, data.len())?;
        self.0.core().decrypt_blocks(data);
        Ok(())
    }

    fn would_take(&self, bytes: u64) -> Result<(), Error> {
        blocks_within_limits(&self.0, bytes)
    }
}

fn admit<K: Keyed>(key: &K, bytes: usize) -> Result<(), Error> {
    whole_blocks(bytes)?;
    key.core().budget.spend(bytes as u64)
}

fn spread(
    core: &Core,
    threads: Threads<'_>,
    data: &mut [u8],
    blocks: impl Fn(&mut [u8]) + Sync,
) -> Result<(), Error> {
    let piece = piece(data.len(), BLOCK * core.engine.parallel(), threads);
    let mut pieces: Vec<&mut [u8]> = data.chunks_mut(piece).collect();
    Ok(threads.for_each(&mut pieces, |_, data| blocks(data))?)
}
