//! CBC, GOST R 34.13-2015, 5.4, with IVs of z blocks; for 28147-89 see RFC 4357, 2.1.
#![forbid(unsafe_code)]

use alloc::vec::Vec;

use inout::InOutBuf;
use lanework_cpu::Threads;
use lanework_cpu::memory::wipe_vector_registers;

use super::parallel::piece;
use super::{
    BLOCK, CHUNK, SMALL, Stream, blocks_within_limits, each_block, whole_blocks, whole_blocks_of_iv, xor,
    xor_block, xor_into,
};
use crate::error::Error;
use crate::key::{Core, Keyed};

/// The register: the last z blocks of ciphertext, at first the IV. The next block chains with the one at `at`, and then
/// replaces it.
#[derive(Clone)]
struct Register {
    blocks: Vec<u8>,
    /// Bytes, below the length.
    at: usize,
}

impl Register {
    fn new(iv: &[u8]) -> Result<Register, Error> {
        whole_blocks_of_iv(iv)?;
        Ok(Register { blocks: iv.to_vec(), at: 0 })
    }

    /// The number of bytes that chain with the register's content, at most `n`.
    fn reach(&self, n: usize) -> usize {
        n.min(self.blocks.len() - self.at)
    }

    /// Puts processed ciphertext into the register.
    fn put(&mut self, ciphertext: &[u8]) {
        self.blocks[self.at..self.at + ciphertext.len()].copy_from_slice(ciphertext);
        self.at = (self.at + ciphertext.len()) % self.blocks.len();
    }

    /// The chained blocks for the next `n` bytes in reach.
    fn next(&self, n: usize) -> &[u8] {
        &self.blocks[self.at..self.at + n]
    }
}

/// The register itself is ciphertext; the kernels' registers hold round keys.
impl Drop for Register {
    fn drop(&mut self) {
        wipe_vector_registers();
    }
}

/// CBC encryption, of whole blocks; pad before (see [`super::padding`]). Serial, but for an IV of z blocks: z chains
/// run at once.
///
/// The IV must be unpredictable for every message. [`Stream::process`] returns [`Error::Unaligned`] for pieces that are
/// not whole blocks and [`Error::KeyExhausted`] beyond the key's limits.
#[derive(Clone)]
pub struct CbcEncryptor<K: Keyed> {
    key: K,
    register: Register,
}

impl<K: Keyed> CbcEncryptor<K> {
    /// A message under an IV of 8z bytes, z >= 1.
    ///
    /// # Errors
    /// [`Error::NonceLength`].
    pub fn with_key(key: K, iv: &[u8]) -> Result<CbcEncryptor<K>, Error> {
        Ok(CbcEncryptor { key, register: Register::new(iv)? })
    }
}

impl<K: Keyed> Stream for CbcEncryptor<K> {
    fn process(&mut self, mut data: InOutBuf<'_, '_, u8>) -> Result<(), Error> {
        whole_blocks(data.len())?;
        let core = self.key.core();
        core.budget.spend(data.len() as u64)?;
        if let Ok(last) = <&mut [u8; BLOCK]>::try_from(&mut *self.register.blocks) {
            data = each_block(data, |block| {
                xor_block(last, block);
                core.encrypt_block(last);
                *block = *last;
            });
        }
        while !data.is_empty() {
            let n = self.register.reach(data.len());
            let (mut now, rest) = data.split_at(n);
            xor(now.reborrow(), self.register.next(n));
            let out = now.into_out();
            core.encrypt_blocks((&mut *out).into());
            self.register.put(out);
            data = rest;
        }
        Ok(())
    }

    fn would_take(&self, bytes: u64) -> Result<(), Error> {
        blocks_within_limits(&self.key, bytes)
    }
}

/// CBC decryption, of whole blocks; runs in parallel. Errors as for [`CbcEncryptor`].
#[derive(Clone)]
pub struct CbcDecryptor<K: Keyed> {
    key: K,
    register: Register,
}

impl<K: Keyed> CbcDecryptor<K> {
    /// A message under an IV of 8z bytes, z >= 1.
    ///
    /// # Errors
    /// [`Error::NonceLength`].
    pub fn with_key(key: K, iv: &[u8]) -> Result<CbcDecryptor<K>, Error> {
        Ok(CbcDecryptor { key, register: Register::new(iv)? })
    }

    /// The next piece in place, spread over threads.
    ///
    /// # Errors
    /// As [`Stream::process`]; [`Error::Threads`], and nothing has been processed then, though the key counts it.
    pub fn apply_with(&mut self, threads: Threads<'_>, data: &mut [u8]) -> Result<(), Error> {
        whole_blocks(data.len())?;
        let z = self.register.blocks.len();
        let granule = z * self.key.core().engine.parallel();
        let piece = piece(data.len(), granule, threads);
        if threads.count() == 1 || data.len() <= piece {
            return self.apply(data);
        }
        self.key.core().budget.spend(data.len() as u64)?;
        // Every piece begins with the register after the previous piece: that piece's end, all ciphertext. Pieces are
        // multiples of the register, so it has the same offset at the beginning of each.
        let mut pieces = Vec::new();
        let mut register = self.register.clone();
        for data in data.chunks_mut(piece) {
            let begin = register.clone();
            let tail = &data[data.len().saturating_sub(z)..];
            let at = (register.at + data.len() - tail.len()) % z;
            for (i, &byte) in tail.iter().enumerate() {
                register.blocks[(at + i) % z] = byte;
            }
            register.at = (register.at + data.len()) % z;
            pieces.push((begin, data));
        }
        let core = self.key.core();
        threads.for_each(&mut pieces, |_, (begin, data)| {
            decrypt::<CHUNK>(core, begin, (&mut **data).into());
        })?;
        self.register = register;
        Ok(())
    }
}

impl<K: Keyed> Stream for CbcDecryptor<K> {
    fn process(&mut self, data: InOutBuf<'_, '_, u8>) -> Result<(), Error> {
        whole_blocks(data.len())?;
        self.key.core().budget.spend(data.len() as u64)?;
        if data.len() <= SMALL {
            decrypt::<SMALL>(self.key.core(), &mut self.register, data);
        } else {
            decrypt::<CHUNK>(self.key.core(), &mut self.register, data);
        }
        Ok(())
    }

    fn would_take(&self, bytes: u64) -> Result<(), Error> {
        blocks_within_limits(&self.key, bytes)
    }
}

/// In place, the ciphertext that later blocks chain with is overwritten, so a chunk of it is kept aside.
fn decrypt<const N: usize>(core: &Core, register: &mut Register, mut data: InOutBuf<'_, '_, u8>) {
    let mut kept = [0; N];
    let z = register.blocks.len();
    while !data.is_empty() {
        // Either the rest of the register's round, or whole rounds.
        let whole = data.len().min(N) / z * z;
        let n = if register.at > 0 || whole == 0 { register.reach(data.len().min(N)) } else { whole };
        let (mut now, rest) = data.split_at(n);
        let kept = &mut kept[..n];
        kept.copy_from_slice(now.get_in());
        core.decrypt_blocks(now.reborrow());
        let out = now.into_out();
        if n > z {
            xor_into(&mut out[..z], register.next(z));
            xor_into(&mut out[z..], &kept[..n - z]);
            register.put(&kept[n - z..]);
        } else {
            xor_into(out, register.next(n));
            register.put(kept);
        }
        data = rest;
    }
}
