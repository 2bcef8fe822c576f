//! The two halves of MGM in pieces that stay in the first-level cache, and short messages in one call of the cipher.
#![forbid(unsafe_code)]

use inout::InOutBuf;
use lanework_cpu::memory::{Block, bytes_mut, wipe};
use zeroize::Zeroize;

use super::field::reduce;
use super::{blocks, lengths};
use crate::backend::Kernels;
use crate::key::Core;
use crate::schedule::Counter;

/// Bytes of the factors H_i that are made before they are used: with an equal amount of data they stay in any first-level
/// cache.
const SPACE: usize = 4096;

/// Bytes of cipher blocks, gamma and factors, of messages that go through the cipher in one call.
const SHORT: usize = 512;

/// The start of a message's two counters.
#[derive(Clone, Copy)]
pub(super) struct Start {
    /// Y_1, which counts in the lower half.
    pub(super) encrypt: Counter,
    /// Z_1, which counts in the upper half.
    pub(super) hash: Counter,
}

impl Start {
    pub(super) fn new(core: &Core, nonce: [u8; 8]) -> Start {
        let mut both = [0; 16];
        both[..8].copy_from_slice(&nonce);
        both[8..].copy_from_slice(&nonce);
        both[8] |= 0x80;
        core.encrypt_blocks(both.as_mut_slice().into());
        let (y, z) = both.split_at(8);
        let number = |block: &[u8]| block.iter().fold(0, |n, &byte| n << 8 | u64::from(byte));
        Start { encrypt: Counter::low(number(y)), hash: Counter::high(number(z)) }
    }
}

/// A partial sum of products, and the space for its factors. Wiped when dropped.
pub(super) struct Work<'k> {
    core: &'k Core,
    /// Bytes of `space` in use at a time: whole batches of the backend.
    piece: usize,
    /// Bytes of `space` that have held factors.
    used: usize,
    pub(super) sum: [u64; 2],
    space: [Block; SPACE / 64],
}

impl<'k> Work<'k> {
    pub(super) fn new(core: &'k Core) -> Work<'k> {
        let batch = 8 * core.engine.parallel();
        // A batch larger than the space is cut, which costs speed, not correctness.
        let piece = if batch <= SPACE { SPACE / batch * batch } else { SPACE };
        Work { core, piece, used: 0, sum: [0; 2], space: [Block::ZERO; SPACE / 64] }
    }

    /// Adds H_1 * block 1 + H_2 * block 2 + ..., where H_i = E(counter i - 1) and the last block is padded with zeros.
    pub(super) fn absorb(&mut self, hash: Counter, data: &[u8]) {
        for (i, piece) in data.chunks(self.piece).enumerate() {
            let first = hash.from((i * self.piece / 8) as u32);
            self.absorb_piece(first, [piece, &[], &[]]);
        }
    }

    /// Adds the products of a whole message, ciphertext and lengths included.
    pub(super) fn absorb_message(&mut self, hash: Counter, aad: &[u8], ciphertext: &[u8]) {
        let lengths = lengths(aad.len(), ciphertext.len());
        if Work::holds(aad.len(), ciphertext.len()) {
            self.absorb_piece(hash, [aad, ciphertext, &lengths]);
        } else {
            let data = hash.from(blocks(aad.len()));
            self.absorb(hash, aad);
            self.absorb(data, ciphertext);
            self.absorb(data.from(blocks(ciphertext.len())), &lengths);
        }
    }

    /// Whether the space holds the factors of a whole message.
    fn holds(aad: usize, data: usize) -> bool {
        factor_bytes(aad, data, SPACE).is_some()
    }

    /// Adds the products of what fits in the space.
    fn absorb_piece(&mut self, hash: Counter, parts: [&[u8]; 3]) {
        let all = parts.iter().map(|part| part.len().next_multiple_of(8)).sum();
        let factors = &mut bytes_mut(&mut self.space)[..all];
        self.used = self.used.max(all);
        self.core.keystream(hash, factors);
        add(self.core.engine.kernels(), factors, parts, &mut self.sum);
    }

    /// Encrypts a whole message and adds all its products.
    pub(super) fn seal_message(&mut self, start: Start, aad: &[u8], mut data: InOutBuf<'_, '_, u8>) {
        if Work::holds(aad.len(), data.len()) {
            self.core.counter(start.encrypt, data.reborrow());
            self.absorb_message(start.hash, aad, data.get_out());
        } else {
            let lengths = lengths(aad.len(), data.len());
            let hash = start.hash.from(blocks(aad.len()));
            self.absorb(start.hash, aad);
            self.seal(start.encrypt, hash, data.reborrow());
            self.absorb(hash.from(blocks(data.len())), &lengths);
        }
    }

    /// Encrypts and adds the products of the ciphertext.
    pub(super) fn seal(&mut self, encrypt: Counter, hash: Counter, mut data: InOutBuf<'_, '_, u8>) {
        let mut done = 0;
        while !data.is_empty() {
            let n = data.len().min(self.piece);
            let (mut piece, rest) = data.split_at(n);
            self.core.counter(encrypt.from(done), piece.reborrow());
            self.absorb(hash.from(done), piece.get_out());
            done += blocks(n);
            data = rest;
        }
    }

    /// Adds the products of the ciphertext and decrypts.
    pub(super) fn open(&mut self, encrypt: Counter, hash: Counter, mut data: InOutBuf<'_, '_, u8>) {
        let mut done = 0;
        while !data.is_empty() {
            let n = data.len().min(self.piece);
            let (mut piece, rest) = data.split_at(n);
            self.absorb(hash.from(done), piece.get_in());
            self.core.counter(encrypt.from(done), piece.reborrow());
            done += blocks(n);
            data = rest;
        }
    }

    /// The whole tag of the sum so far.
    pub(super) fn tag(&self) -> [u8; 8] {
        finish(self.core, self.sum)
    }
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        wipe(&mut bytes_mut(&mut self.space)[..self.used]);
        self.sum.zeroize();
    }
}

/// E of the reduced sum.
pub(super) fn finish(core: &Core, sum: [u64; 2]) -> [u8; 8] {
    let mut tag = reduce(sum).to_be_bytes();
    core.encrypt_block(&mut tag);
    tag
}

/// Adds the products of `parts`, each padded with zeros to whole blocks, with factors that lie one after another.
fn add(kernels: &Kernels, mut factors: &[u8], parts: [&[u8]; 3], sum: &mut [u64; 2]) {
    for part in parts {
        let (whole, last) = part.split_at(part.len() / 8 * 8);
        kernels.products(&factors[..whole.len()], whole, sum);
        factors = &factors[whole.len()..];
        if !last.is_empty() {
            let mut block = [0; 8];
            block[..last.len()].copy_from_slice(last);
            kernels.products(&factors[..8], &block, sum);
            factors = &factors[8..];
        }
    }
}

/// Bytes of factors for a message of these lengths, if they are no more than `most`.
fn factor_bytes(aad: usize, data: usize, most: usize) -> Option<usize> {
    // Compared before they are added, since lengths are arbitrary.
    let bytes = |n: usize| (n <= most).then(|| n.next_multiple_of(8));
    Some(bytes(aad)? + bytes(data)? + 8).filter(|&all| all <= most)
}

/// A message so short that one call of the cipher makes gamma and factors, since each call on few blocks costs its
/// latency. Wiped when dropped.
pub(super) struct Short {
    /// Gamma, then factors.
    blocks: [u8; SHORT],
    aad: usize,
    data: usize,
    sum: [u64; 2],
}

impl Short {
    /// Whether a message of these lengths is short.
    pub(super) fn fits(aad: usize, data: usize) -> bool {
        factor_bytes(aad, data, SHORT).is_some_and(|all| all + data.next_multiple_of(8) <= SHORT)
    }

    pub(super) fn new(core: &Core, nonce: [u8; 8], aad: usize, data: usize) -> Short {
        let start = Start::new(core, nonce);
        let mut short = Short { blocks: [0; SHORT], aad, data, sum: [0; 2] };
        let used = short.used();
        let (gamma, factors) = short.blocks[..used].split_at_mut(data.next_multiple_of(8));
        for (part, counter) in [(gamma, start.encrypt), (factors, start.hash)] {
            for (i, block) in part.chunks_exact_mut(8).enumerate() {
                block.copy_from_slice(&counter.at(i as u32).to_be_bytes());
            }
        }
        core.encrypt_blocks((&mut short.blocks[..used]).into());
        short
    }

    fn used(&self) -> usize {
        self.aad.next_multiple_of(8) + 2 * self.data.next_multiple_of(8) + 8
    }

    /// output = input xor gamma.
    pub(super) fn crypt(&self, data: InOutBuf<'_, '_, u8>) {
        crate::modes::xor(data, &self.blocks[..self.data]);
    }

    /// The whole tag, with the associated data and the ciphertext of the announced lengths.
    pub(super) fn tag(&mut self, core: &Core, aad: &[u8], ciphertext: &[u8]) -> [u8; 8] {
        let factors = &self.blocks[self.data.next_multiple_of(8)..];
        let parts = [aad, ciphertext, &lengths(self.aad, self.data)];
        add(core.engine.kernels(), factors, parts, &mut self.sum);
        finish(core, self.sum)
    }
}

impl Drop for Short {
    fn drop(&mut self) {
        let used = self.used();
        wipe(&mut self.blocks[..used]);
        self.sum.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_what_its_blocks_say() {
        for aad in 0..=SHORT + 9 {
            for data in 0..=SHORT + 9 {
                let (gamma, all) = (data.div_ceil(8), aad.div_ceil(8) + data.div_ceil(8) + 1);
                let bytes = factor_bytes(aad, data, SHORT);
                assert_eq!(bytes, Some(8 * all).filter(|&n| n <= SHORT), "{aad} and {data}");
                assert_eq!(Short::fits(aad, data), 8 * (all + gamma) <= SHORT, "{aad} and {data}");
            }
        }
        for (aad, data) in [(usize::MAX, 0), (0, usize::MAX), (usize::MAX, usize::MAX), (usize::MAX - 7, 8)] {
            assert_eq!(factor_bytes(aad, data, SPACE), None);
        }
    }
}
