//! CNT ("gamma"), RFC 5830, 6.
#![forbid(unsafe_code)]

use inout::InOutBuf;
use lanework_cpu::memory::{wipe, wipe_vector_registers};

use super::Meshing;
use super::meshing::Meshed;
use crate::error::Error;
use crate::key::Gost28147;
use crate::modes::{BLOCK, CHUNK, SMALL, Stream, xor};

/// Added to N3 modulo 2^32 for every block.
const C2: u32 = 0x0101_0101;
/// Added to N4 modulo 2^32 - 1 for every block.
const C1: u32 = 0x0101_0104;

/// GOST 28147-89 in counter mode: encryption and decryption are one. Runs in parallel, under one key at a time.
///
/// Never repeat an IV under one key. [`Stream::process`] returns [`Error::KeyExhausted`] beyond the key's limits; with
/// meshing the given key is charged only for the IV and its own 1024 bytes.
#[derive(Clone)]
pub struct Cnt {
    key: Meshed,
    /// N3 in the first half and N4 in the second. They are the encrypted IV and as secret as keystream.
    counter: [u8; BLOCK],
    /// The current block of keystream.
    gamma: [u8; BLOCK],
    at: usize,
}

impl Cnt {
    /// A message under a key and an IV of 8 bytes, for whose encryption the key is charged.
    ///
    /// # Errors
    /// [`Error::NonceLength`], [`Error::KeyExhausted`].
    pub fn with_key(key: &Gost28147, iv: &[u8], meshing: Meshing) -> Result<Cnt, Error> {
        let mut counter = iv.try_into().map_err(|_| Error::NonceLength { got: iv.len(), want: "8" })?;
        let key = Meshed::new(key, meshing);
        key.core.budget.spend(BLOCK as u64)?;
        key.core.encrypt_block(&mut counter);
        Ok(Cnt { key, counter, gamma: [0; BLOCK], at: BLOCK })
    }

    /// The next counters, one for each block of `out`.
    fn counters(&mut self, out: &mut [u8]) {
        let low = u32::from_le_bytes(core::array::from_fn(|i| self.counter[i]));
        let high = u32::from_le_bytes(core::array::from_fn(|i| self.counter[4 + i]));
        for (i, block) in out.chunks_exact_mut(BLOCK).enumerate() {
            let i = i as u32 + 1;
            // Counting up in one step needs no chain and no branch: i times C1 is public and folded modulo 2^32 - 1
            // first. The sum's carry is added at the bottom, so the result is 1 to 2^32 - 1, as when counting one by
            // one.
            let step = u64::from(i) * u64::from(C1);
            let step = (step & 0xffff_ffff) + (step >> 32);
            let sum = u64::from(high) + ((step & 0xffff_ffff) + (step >> 32));
            let high = (sum as u32).wrapping_add((sum >> 32) as u32);
            let low = low.wrapping_add(C2.wrapping_mul(i));
            block[..4].copy_from_slice(&low.to_le_bytes());
            block[4..].copy_from_slice(&high.to_le_bytes());
        }
        if let Some(last) = out.last_chunk() {
            self.counter = *last;
        }
    }
}

impl Stream for Cnt {
    fn process(&mut self, data: InOutBuf<'_, '_, u8>) -> Result<(), Error> {
        self.key.admit(self.at, data.len())?;
        if data.len() <= SMALL {
            self.run::<SMALL>(data);
        } else {
            self.run::<CHUNK>(data);
        }
        Ok(())
    }

    fn would_take(&self, bytes: u64) -> Result<(), Error> {
        self.key.would_take(self.at, bytes)
    }
}

impl Cnt {
    fn run<const N: usize>(&mut self, mut data: InOutBuf<'_, '_, u8>) {
        let mut buffer = [0; N];
        let mut dirty = 0;
        while !data.is_empty() {
            if self.at < BLOCK {
                let n = data.len().min(BLOCK - self.at);
                let (now, rest) = data.split_at(n);
                xor(now, &self.gamma[self.at..self.at + n]);
                self.at += n;
                data = rest;
                continue;
            }
            if self.key.due() {
                self.key.change(Some(&mut self.counter));
            }
            let whole = self.key.reach(data.len().min(N)) / BLOCK * BLOCK;
            if whole > 0 {
                let gamma = &mut buffer[..whole];
                self.counters(gamma);
                self.key.core.encrypt_blocks((&mut *gamma).into());
                let (now, rest) = data.split_at(whole);
                xor(now, gamma);
                self.key.count(whole);
                dirty = dirty.max(whole);
                data = rest;
            } else {
                let mut gamma = [0; BLOCK];
                self.counters(&mut gamma);
                self.key.core.encrypt_block(&mut gamma);
                self.gamma = gamma;
                self.key.count(BLOCK);
                self.at = 0;
            }
        }
        wipe(&mut buffer[..dirty]);
    }
}

impl Drop for Cnt {
    fn drop(&mut self) {
        wipe(&mut self.counter);
        wipe(&mut self.gamma);
        wipe_vector_registers();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sbox::Sbox;

    /// Starts where the carry comes at once, late, exactly at the modulus, and both forms of zero.
    #[test]
    fn counting_in_one_step_is_counting_one_by_one() {
        let key = Gost28147::new(&[1; 32], Sbox::Z);
        let exact = |i: u32| u32::MAX - i * C1;
        for high in
            [0, 1, u32::MAX, u32::MAX - 1, u32::MAX - C1, exact(1), exact(100), exact(200) + 1, 0x8000_0000]
        {
            let mut state = Cnt::with_key(&key, &[0; 8], Meshing::None).unwrap();
            state.counter = [0xffff_fff0u32.to_le_bytes(), high.to_le_bytes()].concat().try_into().unwrap();
            let mut blocks = vec![0; CHUNK];
            state.counters(&mut blocks);
            let (mut n3, mut n4) = (0xffff_fff0u32, u64::from(high));
            for (i, block) in blocks.chunks(8).enumerate() {
                n3 = n3.wrapping_add(C2);
                n4 += u64::from(C1);
                if n4 > u64::from(u32::MAX) {
                    n4 -= u64::from(u32::MAX);
                }
                assert_eq!(block, (n4 << 32 | u64::from(n3)).to_le_bytes(), "{high:#x}, block {i}");
            }
            assert_eq!(state.counter, blocks[CHUNK - 8..]);
        }
    }
}
