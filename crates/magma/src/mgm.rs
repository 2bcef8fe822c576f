//! MGM, the multilinear Galois mode, over Magma (RFC 9058): encryption with associated data.
//!
//! A message costs two encryptions and one product in GF(2^64) for each block of data: one block of gamma, and one
//! secret factor H_i that the ciphertext's block i is multiplied with. Nothing depends on the block before, so all of
//! it runs in the cipher's bulk kernels, in pieces that stay in the first-level cache, and the products are reduced
//! once, at the end.
//!
//! Sealing counts the blocks of associated data and data, and four for each message, against the key's limits
//! ([`crate::limits`]). [`Mgm::would_seal`] asks beforehand. Opening counts only authentic messages, so forgeries cannot
//! use the key up. Forgeries count separately; beyond their limit the key opens nothing more but still seals.
//!
//! The caller must never repeat a nonce under one key (its top bit must be 0, RFC 9058, 4.1). The protocol fixes the
//! length of the tag, hence the constructor. Opening checks the tag over the whole ciphertext before the first byte is
//! decrypted; a refusal leaves zeros in the output. The mode does not commit to its key: a ciphertext that opens under
//! two keys can be made (see the container for a format that commits).
#![forbid(unsafe_code)]

use core::fmt;

use inout::InOutBuf;
use lanework_cpu::Threads;
use lanework_cpu::memory::wipe;
use rand_core::TryCryptoRng;

use crate::backend::Engine;
use crate::error::Error;
use crate::key::{Core, Keyed, Magma, Sealed};
use crate::limits::begun;
use crate::release::equal;

pub(crate) mod field;
mod pieces;
mod spread;
mod stream;
#[cfg(test)]
mod tests;

use pieces::{Short, Start, Work};
pub use stream::{Decrypter, Opener, Sealer, Verifier};

/// Bytes of a nonce; the top bit of the first one is 0.
pub const NONCE: usize = 8;

/// A nonce that MGM takes: 8 bytes, the top bit of the first one 0 (RFC 9058, 4.1).
///
/// No two messages under one key may share a nonce. A counter never repeats: `Nonce::try_from(count.to_be_bytes())`.
/// Random nonces have 63 bits: among 2^24 messages two share one with a probability of 2^-16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonce([u8; NONCE]);

impl Nonce {
    /// A random nonce.
    ///
    /// # Errors
    /// The generator's errors.
    pub fn random<R: TryCryptoRng + ?Sized>(rng: &mut R) -> Result<Nonce, R::Error> {
        let mut bytes = [0; NONCE];
        rng.try_fill_bytes(&mut bytes)?;
        bytes[0] &= 0x7f;
        Ok(Nonce(bytes))
    }
}

/// [`Error::NonceTopBit`].
impl TryFrom<[u8; NONCE]> for Nonce {
    type Error = Error;

    fn try_from(bytes: [u8; NONCE]) -> Result<Nonce, Error> {
        if bytes[0] & 0x80 == 0 { Ok(Nonce(bytes)) } else { Err(Error::NonceTopBit) }
    }
}

/// [`Error::NonceLength`], [`Error::NonceTopBit`].
impl TryFrom<&[u8]> for Nonce {
    type Error = Error;

    fn try_from(bytes: &[u8]) -> Result<Nonce, Error> {
        let all: [u8; NONCE] =
            bytes.try_into().map_err(|_| Error::NonceLength { got: bytes.len(), want: "8" })?;
        Nonce::try_from(all)
    }
}

impl AsRef<[u8]> for Nonce {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Nonce> for [u8; NONCE] {
    fn from(nonce: Nonce) -> [u8; NONCE] {
        nonce.0
    }
}

/// The most bytes of associated data and data together: RFC 9058 counts fewer than 2^32 bits.
pub const LONGEST: u64 = (1 << 29) - 1;

/// A tag of 4 to 8 bytes.
#[derive(Clone, Copy)]
pub struct Tag {
    bytes: [u8; 8],
    length: u8,
}

impl Tag {
    fn new(whole: [u8; 8], length: usize) -> Tag {
        let mut bytes = [0; 8];
        bytes[..length].copy_from_slice(&whole[..length]);
        Tag { bytes, length: length as u8 }
    }

    /// The tag's bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl AsRef<[u8]> for Tag {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// MGM under a Magma key, with tags of one length. Wiped when dropped.
#[derive(Clone)]
pub struct Mgm {
    key: Magma,
    tag: usize,
}

impl Mgm {
    /// A key on this machine's best backend, with whole tags of 8 bytes.
    #[must_use]
    pub fn new(key: &[u8; 32]) -> Mgm {
        Mgm { key: Magma::new(key), tag: 8 }
    }

    /// A key on a chosen backend, with tags of `tag` bytes.
    ///
    /// # Errors
    /// [`Error::TagLength`] if `tag` is not 4 to 8: RFC 9058 allows 32 to 64 bits.
    pub fn with(key: &[u8; 32], tag: usize, engine: Engine) -> Result<Mgm, Error> {
        Mgm::with_key(Magma::with(key, engine), tag)
    }

    /// MGM over a cipher that already has its key.
    ///
    /// # Errors
    /// [`Error::TagLength`] if `tag` is not 4 to 8.
    pub fn with_key(key: Magma, tag: usize) -> Result<Mgm, Error> {
        if (4..=8).contains(&tag) { Ok(Mgm { key, tag }) } else { Err(Error::TagLength(tag)) }
    }

    /// Bytes of this key's tags.
    #[must_use]
    pub const fn tag_length(&self) -> usize {
        self.tag
    }

    /// The cipher underneath.
    #[must_use]
    pub const fn cipher(&self) -> &Magma {
        &self.key
    }

    /// Encrypts `data` in place and returns the tag over `aad` and the ciphertext.
    ///
    /// # Errors
    /// [`Error::NonceLength`], [`Error::NonceTopBit`], [`Error::EmptyMessage`], [`Error::TooLong`],
    /// [`Error::KeyExhausted`]; nothing is changed then.
    pub fn seal(&self, nonce: &[u8], aad: &[u8], data: &mut [u8]) -> Result<Tag, Error> {
        self.seal_inout(nonce, aad, data.into())
    }

    /// Encrypts `input` into `output`, which has the same length, and returns the tag.
    ///
    /// # Errors
    /// [`Error::Lengths`], and those of [`Mgm::seal`]; nothing is changed then.
    pub fn seal_to(&self, nonce: &[u8], aad: &[u8], input: &[u8], output: &mut [u8]) -> Result<Tag, Error> {
        self.seal_inout(nonce, aad, pair(input, output)?)
    }

    /// Encrypts from one buffer into another or in place.
    ///
    /// # Errors
    /// Those of [`Mgm::seal`].
    pub fn seal_inout(&self, nonce: &[u8], aad: &[u8], mut data: InOutBuf<'_, '_, u8>) -> Result<Tag, Error> {
        let nonce = admit(nonce, aad.len(), data.len())?;
        let core = self.core();
        core.budget.spend(charge(aad.len() as u64, data.len() as u64))?;
        if Short::fits(aad.len(), data.len()) {
            let mut short = Short::new(core, nonce, aad.len(), data.len());
            short.crypt(data.reborrow());
            return Ok(Tag::new(short.tag(core, aad, data.get_out()), self.tag));
        }
        let mut work = Work::new(core);
        work.seal_message(Start::new(core, nonce), aad, data);
        Ok(Tag::new(work.tag(), self.tag))
    }

    /// Decrypts `data` in place if `tag` is right. The tag is checked first: no plaintext exists before.
    ///
    /// # Errors
    /// [`Error::TagLength`], [`Error::TooManyRefused`] and those of [`Mgm::seal`], with nothing changed;
    /// [`Error::Refused`] if the tag is wrong, with `data` overwritten by zeros.
    pub fn open(&self, nonce: &[u8], aad: &[u8], data: &mut [u8], tag: &[u8]) -> Result<(), Error> {
        self.open_inout(nonce, aad, data.into(), tag)
    }

    /// Decrypts `input` into `output`, which has the same length, if `tag` is right.
    ///
    /// # Errors
    /// [`Error::Lengths`], and those of [`Mgm::open`]; the output is zeros if the tag is wrong.
    pub fn open_to(
        &self,
        nonce: &[u8],
        aad: &[u8],
        input: &[u8],
        output: &mut [u8],
        tag: &[u8],
    ) -> Result<(), Error> {
        self.open_inout(nonce, aad, pair(input, output)?, tag)
    }

    /// Decrypts from one buffer into another or in place, if `tag` is right.
    ///
    /// # Errors
    /// Those of [`Mgm::open`].
    pub fn open_inout(
        &self,
        nonce: &[u8],
        aad: &[u8],
        mut data: InOutBuf<'_, '_, u8>,
        tag: &[u8],
    ) -> Result<(), Error> {
        let nonce = admit(nonce, aad.len(), data.len())?;
        self.admit_tag(tag)?;
        let core = self.core();
        let lengths = (aad.len() as u64, data.len() as u64);
        core.budget.may_open(charge(lengths.0, lengths.1))?;
        if Short::fits(aad.len(), data.len()) {
            let mut short = Short::new(core, nonce, aad.len(), data.len());
            let computed = short.tag(core, aad, data.get_in());
            self.judge(lengths, &computed, tag, data.get_out())?;
            short.crypt(data);
            return Ok(());
        }
        // Two passes: a forgery then costs half and leaves no plaintext anywhere. The second reading has no measurable
        // cost compared with one pass over pieces.
        let start = Start::new(core, nonce);
        let mut work = Work::new(core);
        work.absorb_message(start.hash, aad, data.get_in());
        self.judge(lengths, &work.tag(), tag, data.get_out())?;
        core.counter(start.encrypt, data);
        Ok(())
    }

    /// [`Mgm::seal`] on several threads, which pays from some 100 KiB of data on.
    ///
    /// # Errors
    /// Those of [`Mgm::seal`], and [`Error::Threads`]; nothing is changed then.
    pub fn seal_with(
        &self,
        threads: Threads<'_>,
        nonce: &[u8],
        aad: &[u8],
        data: &mut [u8],
    ) -> Result<Tag, Error> {
        if spread::is_worth_it(threads, data.len()) {
            let nonce = admit(nonce, aad.len(), data.len())?;
            self.core().budget.spend(charge(aad.len() as u64, data.len() as u64))?;
            return Ok(Tag::new(spread::seal(self.core(), threads, nonce, aad, data)?, self.tag));
        }
        self.seal(nonce, aad, data)
    }

    /// [`Mgm::open`] on several threads, which pays from some 100 KiB of data on.
    ///
    /// # Errors
    /// Those of [`Mgm::open`]; [`Error::Threads`], with `data` unchanged.
    pub fn open_with(
        &self,
        threads: Threads<'_>,
        nonce: &[u8],
        aad: &[u8],
        data: &mut [u8],
        tag: &[u8],
    ) -> Result<(), Error> {
        if spread::is_worth_it(threads, data.len()) {
            let nonce = admit(nonce, aad.len(), data.len())?;
            self.admit_tag(tag)?;
            let lengths = (aad.len() as u64, data.len() as u64);
            self.core().budget.may_open(charge(lengths.0, lengths.1))?;
            let opening = spread::Opening::new(self.core(), threads, nonce, aad, data)?;
            self.judge(lengths, &opening.tag, tag, data)?;
            return opening.decrypt(self.core(), threads, data);
        }
        self.open(nonce, aad, data, tag)
    }

    /// Whether a message with this many bytes of associated data and of data would be sealed now. Nothing is processed
    /// and no key is charged. Use it for messages of known length, before their first byte is released.
    ///
    /// # Errors
    /// [`Error::EmptyMessage`], [`Error::TooLong`], [`Error::KeyExhausted`].
    pub fn would_seal(&self, aad: u64, data: u64) -> Result<(), Error> {
        admit_lengths(aad, data)?;
        self.core().budget.allows(charge(aad, data))
    }

    /// Seals a message that comes in pieces. The key is charged for its four blocks of every message.
    ///
    /// # Errors
    /// [`Error::NonceLength`], [`Error::NonceTopBit`], [`Error::KeyExhausted`].
    pub fn sealer(&self, nonce: &[u8]) -> Result<Sealer<'_>, Error> {
        Sealer::new(self, admit_nonce(nonce)?)
    }

    /// Checks a message that comes in pieces, and only then allows its decryption in a second reading.
    ///
    /// # Errors
    /// [`Error::NonceLength`], [`Error::NonceTopBit`], [`Error::TooManyRefused`].
    pub fn verifier(&self, nonce: &[u8]) -> Result<Verifier<'_>, Error> {
        Verifier::new(self, admit_nonce(nonce)?)
    }

    /// Decrypts a message that comes in pieces *before* its tag can be checked; see [`Opener`] for the duties that
    /// follow.
    ///
    /// # Errors
    /// [`Error::NonceLength`], [`Error::NonceTopBit`], [`Error::TooManyRefused`].
    pub fn opener(&self, nonce: &[u8]) -> Result<Opener<'_>, Error> {
        Opener::new(self, admit_nonce(nonce)?)
    }

    fn core(&self) -> &Core {
        Sealed::core(&self.key)
    }

    fn admit_tag(&self, tag: &[u8]) -> Result<(), Error> {
        if tag.len() == self.tag { Ok(()) } else { Err(Error::TagLength(tag.len())) }
    }

    /// Whether a message of these lengths is authentic, with tags compared in constant time. Charges the key if it is;
    /// counts the refusal and wipes `output` if it is not.
    fn judge(
        &self,
        (aad, data): (u64, u64),
        computed: &[u8; 8],
        tag: &[u8],
        output: &mut [u8],
    ) -> Result<(), Error> {
        let authentic = equal(&computed[..self.tag], tag);
        let verdict = self.core().budget.open(aad + data, charge(aad, data), authentic);
        if verdict == Err(Error::Refused) {
            wipe(output);
        }
        verdict
    }
}

impl fmt::Debug for Mgm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mgm")
            .field("tag", &self.tag)
            .field("backend", &self.key.backend())
            .finish_non_exhaustive()
    }
}

/// Checks a message before any work; returns the nonce.
pub(crate) fn admit(nonce: &[u8], aad: usize, data: usize) -> Result<[u8; 8], Error> {
    let nonce = admit_nonce(nonce)?;
    admit_lengths(aad as u64, data as u64)?;
    Ok(nonce)
}

fn admit_lengths(aad: u64, data: u64) -> Result<(), Error> {
    match aad.checked_add(data) {
        Some(0) => Err(Error::EmptyMessage),
        Some(all) if all <= LONGEST => Ok(()),
        _ => Err(Error::TooLong { limit: LONGEST }),
    }
}

/// Bytes of the four blocks that every message has: two first counters, the lengths and the tag.
const FOUR: u64 = 32;

/// What the key's limits count for a message of these lengths, at most [`LONGEST`] together.
pub(crate) fn charge(aad: u64, data: u64) -> u64 {
    begun(0, aad) + begun(0, data) + FOUR
}

fn admit_nonce(nonce: &[u8]) -> Result<[u8; 8], Error> {
    Nonce::try_from(nonce).map(|nonce| nonce.0)
}

fn pair<'i, 'o>(input: &'i [u8], output: &'o mut [u8]) -> Result<InOutBuf<'i, 'o, u8>, Error> {
    let lengths = Error::Lengths { input: input.len(), output: output.len() };
    InOutBuf::new(input, output).map_err(|_| lengths)
}

/// Blocks that this many bytes fill or begin. Messages are shorter than 2^29 bytes, so a `u32` holds it.
fn blocks(bytes: usize) -> u32 {
    bytes.div_ceil(8) as u32
}

/// len(A) || len(C), in bits.
pub(crate) fn lengths(aad: usize, data: usize) -> [u8; 8] {
    ((aad as u64 * 8) << 32 | (data as u64 * 8)).to_be_bytes()
}
