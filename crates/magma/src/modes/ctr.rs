//! CTR, GOST R 34.13-2015, 5.2.
#![forbid(unsafe_code)]

use alloc::vec::Vec;

use inout::InOutBuf;
use lanework_cpu::Threads;
use lanework_cpu::memory::{wipe, wipe_vector_registers};

use super::parallel::piece;
use super::{BLOCK, Stream};
use crate::error::Error;
use crate::key::{Core, Keyed, Magma};
use crate::limits::Charge;
use crate::schedule::Counter;

/// Blocks under one IV: after them the counter would carry into the IV.
pub(super) const BLOCKS: u64 = 1 << 32;

/// The keys of CTR: Magma's, owned or borrowed.
pub trait MagmaKey: Keyed {}
impl MagmaKey for Magma {}
impl<K: MagmaKey> MagmaKey for &K {}

/// Magma in CTR: encryption and decryption are one. The IV is the counter's upper half, the lower half counts blocks
/// from 0.
///
/// Never repeat an IV under one key: two messages under the same keystream reveal the sum of their plaintexts. It has
/// only 4 bytes, so random IVs repeat after some 2^16 messages; use a counter instead.
///
/// [`Stream::process`] returns [`Error::CounterExhausted`] beyond 2^32 blocks and [`Error::KeyExhausted`] beyond the
/// key's limits.
#[derive(Clone)]
pub struct Ctr<K: MagmaKey> {
    key: K,
    iv: u32,
    /// Bytes from the beginning of the message.
    position: u64,
    /// Keystream of the block that `position` lies in, if known: a message in small pieces computes each block only once.
    gamma: Option<[u8; BLOCK]>,
    charge: Charge,
}

impl<K: MagmaKey> Ctr<K> {
    /// A message under a key and an IV of 4 bytes.
    ///
    /// # Errors
    /// [`Error::NonceLength`].
    pub fn with_key(key: K, iv: &[u8]) -> Result<Ctr<K>, Error> {
        Ok(Ctr { key, iv: iv4(iv)?, position: 0, gamma: None, charge: Charge::new(u64::MAX) })
    }

    /// Bytes from the beginning of the message to where the next piece begins.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Seeks to the beginning of a block, counted from 0; 2^32 is the end.
    ///
    /// # Errors
    /// [`Error::CounterExhausted`] beyond it.
    pub fn seek_block(&mut self, block: u64) -> Result<(), Error> {
        if block > BLOCKS {
            return Err(Error::CounterExhausted);
        }
        self.forget();
        self.position = block * BLOCK as u64;
        // A seek into a block begins it again.
        self.charge = Charge::new(u64::MAX);
        Ok(())
    }

    /// The next piece in place, spread over threads.
    ///
    /// # Errors
    /// As [`Stream::process`]; [`Error::Threads`], and nothing has been processed then, though the key counts it.
    pub fn apply_with(&mut self, threads: Threads<'_>, data: &mut [u8]) -> Result<(), Error> {
        let head = data.len().min(self.left_in_block());
        let granule = BLOCK * self.key.core().engine.parallel();
        let piece = piece(data.len() - head, granule, threads);
        if threads.count() == 1 || data.len() - head <= piece {
            return self.apply(data);
        }
        self.admit(data.len())?;
        let first = (self.position + head as u64) / BLOCK as u64;
        let (head, bulk) = data.split_at_mut(head);
        let (core, iv) = (self.key.core(), self.iv);
        let mut pieces: Vec<&mut [u8]> = bulk.chunks_mut(piece).collect();
        threads.for_each(&mut pieces, |i, data| {
            core.counter(counter(iv, first + (i * piece / BLOCK) as u64), (&mut **data).into());
        })?;
        let done = head.len() + bulk.len();
        self.run(head.into());
        self.forget();
        self.position += (done - head.len()) as u64;
        Ok(())
    }

    /// Seeks to a byte of a block.
    pub(crate) fn seek_byte(&mut self, block: u64, byte: u8) -> Result<(), Error> {
        if block == BLOCKS && byte > 0 {
            return Err(Error::CounterExhausted);
        }
        self.seek_block(block)?;
        self.position += u64::from(byte);
        Ok(())
    }

    /// Whether the counter has room for this many bytes.
    fn counts(&self, bytes: u64) -> Result<(), Error> {
        match self.position.checked_add(bytes) {
            Some(end) if end <= BLOCKS * BLOCK as u64 => Ok(()),
            _ => Err(Error::CounterExhausted),
        }
    }

    /// Whether this many bytes may follow; charges the key for them.
    fn admit(&mut self, bytes: usize) -> Result<(), Error> {
        self.counts(bytes as u64)?;
        self.charge.spend(&self.key.core().budget, self.position, bytes as u64)
    }

    /// The next keystream, in place of `out`.
    pub(crate) fn write(&mut self, out: &mut [u8]) -> Result<(), Error> {
        self.admit(out.len())?;
        out.fill(0);
        self.run(out.into());
        Ok(())
    }

    /// The next piece, without checks of the counter and the key's limits; the key counts it if they allow it.
    pub(crate) fn go_on(&mut self, data: InOutBuf<'_, '_, u8>) {
        // An exhausted key stays exhausted; the caller got the error, or chose an unchecked method.
        let _ = self.charge.spend(&self.key.core().budget, self.position, data.len() as u64);
        self.run(data);
    }

    /// Bytes up to the beginning of the next block.
    fn left_in_block(&self) -> usize {
        (BLOCK - self.position as usize % BLOCK) % BLOCK
    }

    fn run(&mut self, data: InOutBuf<'_, '_, u8>) {
        let (head, bulk) = {
            let head = data.len().min(self.left_in_block());
            data.split_at(head)
        };
        if !head.is_empty() {
            let at = self.position as usize % BLOCK;
            let (core, counter) = (self.key.core(), counter(self.iv, self.position / BLOCK as u64));
            let gamma = self.gamma.get_or_insert_with(|| block(core, counter));
            let n = head.len();
            super::xor(head, &gamma[at..at + n]);
            self.position += n as u64;
        }
        if !bulk.is_empty() {
            self.forget();
            let n = bulk.len() as u64;
            self.key.core().counter(counter(self.iv, self.position / BLOCK as u64), bulk);
            self.position += n;
        } else if self.left_in_block() == 0 {
            self.forget();
        }
    }

    fn forget(&mut self) {
        if let Some(gamma) = &mut self.gamma {
            wipe(gamma);
        }
        self.gamma = None;
    }
}

impl<K: MagmaKey> Stream for Ctr<K> {
    fn process(&mut self, data: InOutBuf<'_, '_, u8>) -> Result<(), Error> {
        self.admit(data.len())?;
        self.run(data);
        Ok(())
    }

    fn would_take(&self, bytes: u64) -> Result<(), Error> {
        self.counts(bytes)?;
        self.key.core().budget.allows(self.charge.due(self.position, bytes))
    }
}

impl<K: MagmaKey> Drop for Ctr<K> {
    fn drop(&mut self) {
        self.forget();
        wipe_vector_registers();
    }
}

/// The IV of CTR and CTR-ACPKM.
pub(super) fn iv4(iv: &[u8]) -> Result<u32, Error> {
    let bytes = iv.try_into().map_err(|_| Error::NonceLength { got: iv.len(), want: "4" })?;
    Ok(u32::from_be_bytes(bytes))
}

/// The counter of block `at`, which is below 2^32 or not used.
pub(super) fn counter(iv: u32, at: u64) -> Counter {
    Counter::low(u64::from(iv) << 32 | (at & (BLOCKS - 1)))
}

/// One block of keystream.
fn block(core: &Core, counter: Counter) -> [u8; BLOCK] {
    let mut gamma = [0; BLOCK];
    core.keystream(counter, &mut gamma);
    gamma
}
