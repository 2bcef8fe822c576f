//! The two halves of MGM in pieces that stay in the first-level cache, and short messages in one call of the cipher.
#![forbid(unsafe_code)]

use inout::InOutBuf;
use lanework_cpu::memory::{Block, bytes_mut, wipe};
use zeroize::Zeroize;

use super::field::reduce;
use super::{blocks, lengths};
use crate::key::Core;
use crate::schedule::Counter;

/// Bytes of the factors H_i that are made before they are used: with as much ciphertext they fill half of a small first-level
/// cache.
const SPACE: usize = 8192;

/// Blocks of the cipher that a short message may need to go through it in one call.
const SMALL: usize = 128;

/// Where the two counters of a message start.
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

/// A sum of products under way, and the space for its factors. Wiped when dropped.
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
        let batch = 8 * core.choice.kernels().parallel();
        // A batch larger than the space is cut, which costs such a backend speed, not correctness.
        let piece = if batch <= SPACE { SPACE / batch * batch } else { SPACE };
        Work { core, piece, used: 0, sum: [0; 2], space: [Block::ZERO; SPACE / 64] }
    }

    /// Adds H_1 * block 1 + H_2 * block 2 + ..., where H_i = E(counter i - 1) and the last block is padded with zeros.
    pub(super) fn absorb(&mut self, hash: Counter, data: &[u8]) {
        for (i, piece) in data.chunks(self.piece).enumerate() {
            let whole = piece.len() / 8 * 8;
            let factors = &mut bytes_mut(&mut self.space)[..piece.len().next_multiple_of(8)];
            self.used = self.used.max(factors.len());
            self.core.keystream(hash.from((i * self.piece / 8) as u32), factors);
            let kernels = self.core.choice.kernels();
            kernels.products(&factors[..whole], &piece[..whole], &mut self.sum);
            if whole < piece.len() {
                let mut last = [0; 8];
                last[..piece.len() - whole].copy_from_slice(&piece[whole..]);
                kernels.products(&factors[whole..], &last, &mut self.sum);
            }
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

    /// The whole tag of everything added so far.
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

/// Whether a message of these lengths goes through the cipher in one call.
pub(super) fn is_small(aad: usize, data: usize) -> bool {
    // Compared before they are added, because anything may be asked.
    aad <= 8 * SMALL && data <= 8 * SMALL && cipher_blocks(aad, data) <= SMALL
}

fn cipher_blocks(aad: usize, data: usize) -> usize {
    aad.div_ceil(8) + 2 * data.div_ceil(8) + 1
}

/// A short message: gamma and factors made by one call of the cipher, since a call on few blocks costs its latency. Wiped
/// when dropped.
pub(super) struct Small {
    /// Gamma, then factors.
    blocks: [u8; 8 * SMALL],
    aad: usize,
    data: usize,
    sum: [u64; 2],
}

impl Small {
    pub(super) fn new(core: &Core, nonce: [u8; 8], aad: usize, data: usize) -> Small {
        let start = Start::new(core, nonce);
        let mut small = Small { blocks: [0; 8 * SMALL], aad, data, sum: [0; 2] };
        let all = cipher_blocks(aad, data);
        let (gamma, factors) = small.blocks[..8 * all].split_at_mut(data.next_multiple_of(8));
        for (part, counter) in [(gamma, start.encrypt), (factors, start.hash)] {
            for (i, block) in part.chunks_exact_mut(8).enumerate() {
                block.copy_from_slice(&counter.at(i as u32).to_be_bytes());
            }
        }
        core.encrypt_blocks((&mut small.blocks[..8 * all]).into());
        small
    }

    /// As much gamma as there is data.
    pub(super) fn gamma(&self) -> &[u8] {
        &self.blocks[..self.data]
    }

    /// The whole tag, with the associated data and the ciphertext of the announced lengths.
    pub(super) fn tag(&mut self, core: &Core, aad: &[u8], ciphertext: &[u8]) -> [u8; 8] {
        let kernels = core.choice.kernels();
        let mut factors = &self.blocks[self.data.next_multiple_of(8)..];
        for part in [aad, ciphertext, &lengths(self.aad, self.data)] {
            let (whole, last) = part.split_at(part.len() / 8 * 8);
            kernels.products(&factors[..whole.len()], whole, &mut self.sum);
            factors = &factors[whole.len()..];
            if !last.is_empty() {
                let mut block = [0; 8];
                block[..last.len()].copy_from_slice(last);
                kernels.products(&factors[..8], &block, &mut self.sum);
                factors = &factors[8..];
            }
        }
        finish(core, self.sum)
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let used = 8 * cipher_blocks(self.aad, self.data);
        wipe(&mut self.blocks[..used]);
        self.sum.zeroize();
    }
}
