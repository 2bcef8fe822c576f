//! One long message on several threads: both halves of MGM are sums over numbered blocks.
#![forbid(unsafe_code)]

use alloc::vec::Vec;

use lanework_cpu::Threads;

use super::pieces::{Start, Work, finish};
use super::{blocks, lengths};
use crate::error::Error;
use crate::key::Core;

/// The shortest piece for a thread.
const PIECE: usize = 32 * 1024;

/// Whether there is enough work for several threads.
pub(super) fn is_worth_it(threads: Threads<'_>, data: usize) -> bool {
    data >= 3 * PIECE && threads.count() > 1
}

/// Bytes for each piece: a few pieces for each thread, so that one delayed thread does not delay the others.
fn piece(threads: Threads<'_>, data: usize) -> usize {
    data.div_ceil(4 * threads.count()).next_multiple_of(8192).max(PIECE)
}

struct Part<T> {
    data: T,
    /// The number of its first block.
    first: u32,
    sum: [u64; 2],
}

/// The tag from the parts' sums, with those of the associated data and the lengths.
fn tag<T>(core: &Core, start: Start, aad: &[u8], data: usize, parts: &[Part<T>]) -> [u8; 8] {
    let mut work = Work::new(core);
    work.absorb(start.hash, aad);
    work.absorb(start.hash.from(blocks(aad.len()) + blocks(data)), &lengths(aad.len(), data));
    for part in parts {
        work.sum[0] ^= part.sum[0];
        work.sum[1] ^= part.sum[1];
    }
    finish(core, work.sum)
}

/// Encrypts in place and returns the whole tag.
pub(super) fn seal(
    core: &Core,
    threads: Threads<'_>,
    nonce: [u8; 8],
    aad: &[u8],
    data: &mut [u8],
) -> Result<[u8; 8], Error> {
    let start = Start::new(core, nonce);
    let hash = start.hash.from(blocks(aad.len()));
    let (length, piece) = (data.len(), piece(threads, data.len()));
    let mut parts: Vec<_> = data
        .chunks_mut(piece)
        .enumerate()
        .map(|(i, data)| Part { data, first: (i * (piece / 8)) as u32, sum: [0; 2] })
        .collect();
    threads.for_each(&mut parts, |_, part| {
        let mut work = Work::new(core);
        work.seal(start.encrypt.from(part.first), hash.from(part.first), (&mut *part.data).into());
        part.sum = work.sum;
    })?;
    Ok(tag(core, start, aad, length, &parts))
}

/// A message whose tag is known and whose decryption has not begun.
pub(super) struct Opening {
    /// Its expected whole tag.
    pub(super) tag: [u8; 8],
    start: Start,
}

impl Opening {
    pub(super) fn new(
        core: &Core,
        threads: Threads<'_>,
        nonce: [u8; 8],
        aad: &[u8],
        data: &[u8],
    ) -> Result<Opening, Error> {
        let start = Start::new(core, nonce);
        let hash = start.hash.from(blocks(aad.len()));
        let (length, piece) = (data.len(), piece(threads, data.len()));
        let mut parts: Vec<_> = data
            .chunks(piece)
            .enumerate()
            .map(|(i, data)| Part { data, first: (i * (piece / 8)) as u32, sum: [0; 2] })
            .collect();
        threads.for_each(&mut parts, |_, part| {
            let mut work = Work::new(core);
            work.absorb(hash.from(part.first), part.data);
            part.sum = work.sum;
        })?;
        Ok(Opening { tag: tag(core, start, aad, length, &parts), start })
    }

    pub(super) fn decrypt(&self, core: &Core, threads: Threads<'_>, data: &mut [u8]) -> Result<(), Error> {
        let piece = piece(threads, data.len());
        let mut parts: Vec<_> = data.chunks_mut(piece).collect();
        threads.for_each(&mut parts, |i, part| {
            let first = (i * (piece / 8)) as u32;
            core.counter(self.start.encrypt.from(first), (&mut **part).into());
        })?;
        Ok(())
    }
}
