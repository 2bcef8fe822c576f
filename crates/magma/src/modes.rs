//! The modes of operation of GOST R 34.13-2015, their successors that change keys, and those of 28147-89.
//!
//! Every mode is a state that takes its message in pieces of any size and gives the same bytes however the pieces are
//! cut. A state owns its key or borrows it: both `Ctr::with_key(key, iv)` and `Ctr::with_key(&key, iv)` work. States
//! are wiped when dropped. None of them authenticates: that takes a MAC or MGM.
//!
//! | mode | pieces | runs in parallel |
//! |---|---|---|
//! | [`Ctr`], [`CtrAcpkm`] | any | yes, over threads too |
//! | [`CbcEncryptor`] | whole blocks | over the z chains of a long IV |
//! | [`CbcDecryptor`] | whole blocks | yes, over threads too |
//! | [`CfbEncryptor`], [`Ofb`] | any | over the z chains of a long IV |
//! | [`CfbDecryptor`] | any | yes, over threads too |
//! | [`Omac`], [`OmacAcpkm`] | any | no |
//! | [`legacy::Cnt`], [`legacy::CfbEncryptor`], [`legacy::CfbDecryptor`], [`legacy::Imit`] | any | CNT and CFB decryption, within 1 KiB if the key meshes |
#![forbid(unsafe_code)]

use alloc::string::ToString;
use core::ops::Range;

use inout::InOutBuf;
use lanework_cpu::PoolError;

use crate::error::Error;
use crate::key::Keyed;

mod acpkm;
mod cbc;
mod cfb;
mod ctr;
pub mod hazmat;
pub mod legacy;
mod ofb;
pub(crate) mod omac;
mod omac_acpkm;
pub mod padding;
mod parallel;
#[cfg(test)]
mod tests;

pub use acpkm::CtrAcpkm;
pub use cbc::{CbcDecryptor, CbcEncryptor};
pub use cfb::{CfbDecryptor, CfbEncryptor};
pub use ctr::{Ctr, MagmaKey};
pub use ofb::Ofb;
pub use omac::{Omac, Tag};
pub use omac_acpkm::OmacAcpkm;

/// Bytes of a block.
pub(crate) const BLOCK: usize = 8;

/// Bytes that a mode works on at a time where it needs a buffer: a few of every backend's batches, and well within the
/// first level of cache together with input and output.
pub(crate) const CHUNK: usize = 4096;

/// The same for short pieces, where a buffer of [`CHUNK`] costs measurable time.
pub(crate) const SMALL: usize = 256;

/// A mode in one direction: bytes in, as many bytes out.
pub trait Stream {
    /// The next piece of the message, from one buffer into another or in place.
    ///
    /// # Errors
    /// The mode's own errors, listed in its documentation. Neither the state nor the output has changed then.
    fn process(&mut self, data: InOutBuf<'_, '_, u8>) -> Result<(), Error>;

    /// Whether the mode would take this many more bytes. Nothing is processed and no key is charged. Use it for messages
    /// of known length, before their first byte is released.
    ///
    /// # Errors
    /// Those of [`Stream::process`] for a piece of this length.
    fn would_take(&self, bytes: u64) -> Result<(), Error>;

    /// The next piece, in place.
    ///
    /// # Errors
    /// As [`Stream::process`].
    fn apply(&mut self, data: &mut [u8]) -> Result<(), Error> {
        self.process(data.into())
    }

    /// The next piece, from `input` to `output`.
    ///
    /// # Errors
    /// [`Error::Lengths`]; and as [`Stream::process`].
    fn apply_to(&mut self, input: &[u8], output: &mut [u8]) -> Result<(), Error> {
        let lengths = Error::Lengths { input: input.len(), output: output.len() };
        self.process(InOutBuf::new(input, output).map_err(|_| lengths)?)
    }

    /// The next piece, from `from` to the place that begins at `to` in the same buffer: the same place, or one that
    /// does not touch it.
    ///
    /// # Errors
    /// [`Error::Overlap`] where the two overlap without being the same; [`Error::Parameter`] where one reaches beyond the
    /// buffer; and as [`Stream::process`].
    fn apply_within(&mut self, buffer: &mut [u8], from: Range<usize>, to: usize) -> Result<(), Error> {
        let len =
            from.end.checked_sub(from.start).ok_or(Error::Parameter("a range that ends before it begins"))?;
        let end = to.checked_add(len).filter(|&end| end <= buffer.len() && from.end <= buffer.len());
        let end = end.ok_or(Error::Parameter("a range beyond the buffer"))?;
        if from.start == to {
            self.apply(&mut buffer[from])
        } else if end <= from.start {
            let (output, input) = buffer.split_at_mut(from.start);
            self.apply_to(&input[..len], &mut output[to..end])
        } else if from.end <= to {
            let (input, output) = buffer.split_at_mut(to);
            self.apply_to(&input[from], &mut output[..len])
        } else {
            Err(Error::Overlap)
        }
    }
}

/// out = in xor `with`, of one length. Sixteen words at a time through registers: a plain loop over two pointers that
/// may be the same would not be vectorised. Then whole blocks, for the reason of [`xor_block`].
pub(crate) fn xor(mut data: InOutBuf<'_, '_, u8>, with: &[u8]) {
    let n = data.len();
    assert_eq!(n, with.len(), "one length");
    let done = xor_by::<64>(&mut data, with, 0);
    let done = xor_by::<BLOCK>(&mut data, with, done);
    for i in done..n {
        let byte = data.get_in()[i] ^ with[i];
        data.get_out()[i] = byte;
    }
}

/// The same, `N` bytes at a time from `at` on. Returns the position where fewer are left.
#[inline(always)]
fn xor_by<const N: usize>(data: &mut InOutBuf<'_, '_, u8>, with: &[u8], mut at: usize) -> usize {
    while at + N <= with.len() {
        let mut step = [0; N];
        step.copy_from_slice(&data.get_in()[at..at + N]);
        step.iter_mut().zip(&with[at..at + N]).for_each(|(x, y)| *x ^= y);
        data.get_out()[at..at + N].copy_from_slice(&step);
        at += N;
    }
    at
}

/// x ^= y, of one length.
pub(crate) fn xor_into(x: &mut [u8], y: &[u8]) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x ^= y);
}

/// x ^= y, one block, in registers: a load of a block that was stored byte by byte waits for all its bytes.
#[inline(always)]
pub(crate) fn xor_block(x: &mut [u8; BLOCK], y: &[u8; BLOCK]) {
    *x = (u64::from_ne_bytes(*x) ^ u64::from_ne_bytes(*y)).to_ne_bytes();
}

/// Whole blocks, one after another, through `step`. Returns the bytes that are left.
#[inline(always)]
fn each_block<'a, 'b>(
    data: InOutBuf<'a, 'b, u8>,
    mut step: impl FnMut(&mut [u8; BLOCK]),
) -> InOutBuf<'a, 'b, u8> {
    let whole = data.len() / BLOCK * BLOCK;
    let (mut blocks, rest) = data.split_at(whole);
    for at in (0..whole).step_by(BLOCK) {
        let mut block = [0; BLOCK];
        block.copy_from_slice(&blocks.get_in()[at..at + BLOCK]);
        step(&mut block);
        blocks.get_out()[at..at + BLOCK].copy_from_slice(&block);
    }
    rest
}

/// The length of a long IV: z blocks, z >= 1.
pub(crate) fn whole_blocks_of_iv(iv: &[u8]) -> Result<(), Error> {
    if iv.is_empty() || !iv.len().is_multiple_of(BLOCK) {
        return Err(Error::NonceLength { got: iv.len(), want: "a positive multiple of 8" });
    }
    Ok(())
}

/// Whole blocks, or an error.
pub(crate) fn whole_blocks(len: usize) -> Result<(), Error> {
    if len.is_multiple_of(BLOCK) { Ok(()) } else { Err(Error::Unaligned(len)) }
}

/// Whether a key may process this many more bytes, for modes that take any length.
fn within_limits(key: &impl Keyed, bytes: u64) -> Result<(), Error> {
    key.core().budget.allows(bytes)
}

/// The same for modes of whole blocks.
fn blocks_within_limits(key: &impl Keyed, bytes: u64) -> Result<(), Error> {
    if !bytes.is_multiple_of(BLOCK as u64) {
        return Err(Error::Unaligned(usize::try_from(bytes).unwrap_or(usize::MAX)));
    }
    within_limits(key, bytes)
}

impl From<PoolError> for Error {
    fn from(why: PoolError) -> Error {
        Error::Threads(why.to_string())
    }
}
