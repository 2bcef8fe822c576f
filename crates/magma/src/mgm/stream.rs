//! Messages that come in pieces: first all associated data, then all data, each cut anywhere.
#![forbid(unsafe_code)]

use inout::InOutBuf;
use zeroize::Zeroize;

use super::pieces::{Start, Work, finish};
use super::{FOUR, LONGEST, Mgm, Tag, lengths};
use crate::error::Error;
use crate::limits::begun;
use crate::schedule::Counter;

/// The common state of the three directions. Wiped when dropped.
struct Stream<'k> {
    mgm: &'k Mgm,
    /// The counters of the next blocks.
    encrypt: Counter,
    hash: Counter,
    sum: [u64; 2],
    /// The unfinished block of associated data or ciphertext; its length follows from `aad` and `data`.
    begun: [u8; 8],
    /// The gamma of the unfinished block of data.
    gamma: [u8; 8],
    aad: u64,
    data: u64,
    in_data: bool,
}

/// The direction of processing.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Seal,
    Open,
}

impl<'k> Stream<'k> {
    fn new(mgm: &'k Mgm, nonce: [u8; 8]) -> Stream<'k> {
        let start = Start::new(mgm.core(), nonce);
        Stream {
            mgm,
            encrypt: start.encrypt,
            hash: start.hash,
            sum: [0; 2],
            begun: [0; 8],
            gamma: [0; 8],
            aad: 0,
            data: 0,
            in_data: false,
        }
    }

    /// Refuses a piece that would make the message too long.
    fn admit(&self, piece: usize) -> Result<u64, Error> {
        let piece = piece as u64;
        match (self.aad + self.data).checked_add(piece) {
            Some(all) if all <= LONGEST => Ok(piece),
            _ => Err(Error::TooLong { limit: LONGEST }),
        }
    }

    /// Adds whole blocks.
    fn absorb(&mut self, data: &[u8]) {
        let core = self.mgm.core();
        if data.len() == 8 {
            // The block that two pieces share, too short for the work space.
            let mut factor = [0; 8];
            core.keystream(self.hash, &mut factor);
            core.engine.products(&factor, data, &mut self.sum);
            factor.zeroize();
        } else {
            let mut work = Work::new(core);
            work.absorb(self.hash, data);
            self.add(work.sum);
        }
        self.hash = self.hash.from((data.len() / 8) as u32);
    }

    fn add(&mut self, sum: [u64; 2]) {
        self.sum[0] ^= sum[0];
        self.sum[1] ^= sum[1];
    }

    /// Fills the unfinished block, which has `filled` bytes, from `data`; returns the number of bytes taken.
    fn fill(&mut self, filled: usize, data: &[u8]) -> usize {
        let n = data.len().min(8 - filled);
        self.begun[filled..filled + n].copy_from_slice(&data[..n]);
        if filled + n == 8 {
            let block = self.begun;
            self.absorb(&block);
        }
        n
    }

    /// Adds any bytes, after `before` bytes of the same kind.
    fn authenticate(&mut self, before: u64, mut data: &[u8]) {
        let filled = (before % 8) as usize;
        if filled > 0 {
            let n = self.fill(filled, data);
            data = &data[n..];
        }
        let (whole, last) = data.split_at(data.len() / 8 * 8);
        if !whole.is_empty() {
            self.absorb(whole);
        }
        self.begun[..last.len()].copy_from_slice(last);
    }

    /// Pads the unfinished block after `bytes` bytes of one kind.
    fn pad(&mut self, bytes: u64) {
        let filled = (bytes % 8) as usize;
        if filled > 0 {
            self.fill(filled, &[0; 8]);
        }
    }

    /// `charged`: whether the key's limits count it at once.
    fn aad(&mut self, aad: &[u8], charged: bool) -> Result<(), Error> {
        if self.in_data {
            return Err(Error::OutOfOrder);
        }
        let n = self.admit(aad.len())?;
        if charged {
            self.mgm.core().budget.spend(begun(self.aad, n))?;
        }
        self.authenticate(self.aad, aad);
        self.aad += n;
        Ok(())
    }

    /// Ends the associated data.
    fn begin_data(&mut self) {
        if !self.in_data {
            self.pad(self.aad);
            self.in_data = true;
        }
    }

    /// Ciphertext that is not decrypted yet.
    fn verify(&mut self, ciphertext: &[u8]) -> Result<(), Error> {
        let n = self.admit(ciphertext.len())?;
        self.begin_data();
        self.authenticate(self.data, ciphertext);
        self.data += n;
        Ok(())
    }

    fn crypt(&mut self, how: Way, mut data: InOutBuf<'_, '_, u8>) -> Result<(), Error> {
        let length = self.admit(data.len())?;
        if how == Way::Seal {
            self.mgm.core().budget.spend(begun(self.data, length))?;
        }
        self.begin_data();
        let filled = (self.data % 8) as usize;
        if filled > 0 {
            let n = data.len().min(8 - filled);
            let (piece, rest) = data.split_at(n);
            self.crypt_short(how, filled, piece);
            data = rest;
        }
        let whole = data.len() / 8 * 8;
        let (mut piece, last) = data.split_at(whole);
        if whole > 0 {
            let mut work = Work::new(self.mgm.core());
            match how {
                Way::Seal => work.seal(self.encrypt, self.hash, piece.reborrow()),
                Way::Open => work.open(self.encrypt, self.hash, piece.reborrow()),
            }
            self.add(work.sum);
            self.encrypt = self.encrypt.from((whole / 8) as u32);
            self.hash = self.hash.from((whole / 8) as u32);
        }
        if !last.is_empty() {
            self.mgm.core().keystream(self.encrypt, &mut self.gamma);
            self.encrypt = self.encrypt.from(1);
            self.crypt_short(how, 0, last);
        }
        self.data += length;
        Ok(())
    }

    /// Processes bytes of one block, whose gamma is ready.
    fn crypt_short(&mut self, how: Way, filled: usize, mut data: InOutBuf<'_, '_, u8>) {
        let n = data.len();
        if how == Way::Open {
            self.fill(filled, data.get_in());
        }
        data.xor_in2out(&self.gamma[filled..filled + n]);
        if how == Way::Seal {
            self.fill(filled, data.get_out());
        }
    }

    fn tag(&mut self) -> Result<[u8; 8], Error> {
        if self.aad + self.data == 0 {
            return Err(Error::EmptyMessage);
        }
        self.begin_data();
        self.pad(self.data);
        self.absorb(&lengths(self.aad as usize, self.data as usize));
        Ok(finish(self.mgm.core(), self.sum))
    }

    fn check(&mut self, tag: &[u8]) -> Result<(), Error> {
        self.mgm.admit_tag(tag)?;
        let computed = self.tag()?;
        self.mgm.judge((self.aad, self.data), &computed, tag, &mut [])
    }
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        self.sum.zeroize();
        self.gamma.zeroize();
        for counter in [&mut self.encrypt, &mut self.hash] {
            counter.high.zeroize();
            counter.low.zeroize();
        }
    }
}

/// Seals a message that comes in pieces; made by [`Mgm::sealer`]. Wiped when dropped.
pub struct Sealer<'k>(Stream<'k>);

impl<'k> Sealer<'k> {
    pub(super) fn new(mgm: &'k Mgm, nonce: [u8; 8]) -> Result<Sealer<'k>, Error> {
        mgm.core().budget.spend(FOUR)?;
        Ok(Sealer(Stream::new(mgm, nonce)))
    }

    /// The next associated data.
    ///
    /// # Errors
    /// [`Error::OutOfOrder`] after data; [`Error::TooLong`], [`Error::KeyExhausted`]. The piece is not taken then.
    pub fn aad(&mut self, aad: &[u8]) -> Result<(), Error> {
        self.0.aad(aad, true)
    }

    /// Encrypts the next data in place.
    ///
    /// # Errors
    /// [`Error::TooLong`], [`Error::KeyExhausted`]. The piece is not taken then.
    pub fn data(&mut self, data: &mut [u8]) -> Result<(), Error> {
        self.0.crypt(Way::Seal, data.into())
    }

    /// Encrypts the next data from one buffer into another or in place.
    ///
    /// # Errors
    /// [`Error::TooLong`], [`Error::KeyExhausted`]. The piece is not taken then.
    pub fn data_inout(&mut self, data: InOutBuf<'_, '_, u8>) -> Result<(), Error> {
        self.0.crypt(Way::Seal, data)
    }

    /// The tag of the whole message.
    ///
    /// # Errors
    /// [`Error::EmptyMessage`] if there was neither associated data nor data.
    pub fn finish(mut self) -> Result<Tag, Error> {
        Ok(Tag::new(self.0.tag()?, self.0.mgm.tag))
    }
}

/// Decrypts a message that comes in pieces, in one reading; made by [`Mgm::opener`]. Wiped when dropped.
///
/// The plaintext is **not authentic until [`Opener::finish`] succeeds**. Keep it unused until then (a file that is
/// renamed at the end), and destroy it if the tag is refused. Where the ciphertext can be read twice, [`Verifier`] needs
/// no such care.
pub struct Opener<'k>(Stream<'k>);

impl<'k> Opener<'k> {
    pub(super) fn new(mgm: &'k Mgm, nonce: [u8; 8]) -> Result<Opener<'k>, Error> {
        mgm.core().budget.may_open(0)?;
        Ok(Opener(Stream::new(mgm, nonce)))
    }

    /// The next associated data.
    ///
    /// # Errors
    /// [`Error::OutOfOrder`] after data; [`Error::TooLong`]. The piece is not taken then.
    pub fn aad(&mut self, aad: &[u8]) -> Result<(), Error> {
        self.0.aad(aad, false)
    }

    /// Decrypts the next data in place, although nothing has been checked yet.
    ///
    /// # Errors
    /// [`Error::TooLong`]. The piece is not taken then.
    pub fn data_unverified(&mut self, data: &mut [u8]) -> Result<(), Error> {
        self.0.crypt(Way::Open, data.into())
    }

    /// Decrypts the next data from one buffer into another or in place, although nothing has been checked yet.
    ///
    /// # Errors
    /// [`Error::TooLong`]. The piece is not taken then.
    pub fn data_unverified_inout(&mut self, data: InOutBuf<'_, '_, u8>) -> Result<(), Error> {
        self.0.crypt(Way::Open, data)
    }

    /// Checks that all decrypted data is authentic.
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::TooManyRefused`], [`Error::KeyExhausted`]: destroy the decrypted data.
    /// [`Error::EmptyMessage`], [`Error::TagLength`].
    pub fn finish(mut self, tag: &[u8]) -> Result<(), Error> {
        self.0.check(tag)
    }
}

/// Checks a message that comes in pieces; made by [`Mgm::verifier`]. Wiped when dropped.
pub struct Verifier<'k> {
    stream: Stream<'k>,
    first: Counter,
}

impl<'k> Verifier<'k> {
    pub(super) fn new(mgm: &'k Mgm, nonce: [u8; 8]) -> Result<Verifier<'k>, Error> {
        mgm.core().budget.may_open(0)?;
        let stream = Stream::new(mgm, nonce);
        Ok(Verifier { first: stream.encrypt, stream })
    }

    /// The next associated data.
    ///
    /// # Errors
    /// [`Error::OutOfOrder`] after data; [`Error::TooLong`]. The piece is not taken then.
    pub fn aad(&mut self, aad: &[u8]) -> Result<(), Error> {
        self.stream.aad(aad, false)
    }

    /// The next ciphertext.
    ///
    /// # Errors
    /// [`Error::TooLong`]. The piece is not taken then.
    pub fn data(&mut self, ciphertext: &[u8]) -> Result<(), Error> {
        self.stream.verify(ciphertext)
    }

    /// Checks the tag. The result decrypts the ciphertext in a second reading, which must read the same bytes: make sure
    /// that they cannot change in between.
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::TooManyRefused`], [`Error::EmptyMessage`], [`Error::TagLength`],
    /// [`Error::KeyExhausted`].
    pub fn finish(mut self, tag: &[u8]) -> Result<Decrypter<'k>, Error> {
        self.stream.check(tag)?;
        Ok(Decrypter {
            mgm: self.stream.mgm,
            next: self.first,
            gamma: [0; 8],
            done: 0,
            all: self.stream.data,
        })
    }
}

impl Drop for Verifier<'_> {
    fn drop(&mut self) {
        self.first.high.zeroize();
        self.first.low.zeroize();
    }
}

/// Decrypts a message whose tag was right, in pieces; made by [`Verifier::finish`]. Wiped when dropped.
pub struct Decrypter<'k> {
    mgm: &'k Mgm,
    next: Counter,
    /// The gamma of the begun block.
    gamma: [u8; 8],
    done: u64,
    all: u64,
}

impl Decrypter<'_> {
    /// Decrypts the next data in place.
    ///
    /// # Errors
    /// [`Error::TooLong`] if this is more than was verified. The piece is not taken then.
    pub fn data(&mut self, data: &mut [u8]) -> Result<(), Error> {
        self.data_inout(data.into())
    }

    /// Decrypts the next data from one buffer into another or in place.
    ///
    /// # Errors
    /// [`Error::TooLong`] if this is more than was verified. The piece is not taken then.
    pub fn data_inout(&mut self, mut data: InOutBuf<'_, '_, u8>) -> Result<(), Error> {
        let length = data.len() as u64;
        if length > self.all - self.done {
            return Err(Error::TooLong { limit: self.all });
        }
        let core = self.mgm.core();
        let filled = (self.done % 8) as usize;
        if filled > 0 {
            let n = data.len().min(8 - filled);
            let (mut piece, rest) = data.split_at(n);
            piece.xor_in2out(&self.gamma[filled..filled + n]);
            data = rest;
        }
        let whole = data.len() / 8 * 8;
        let (piece, mut last) = data.split_at(whole);
        core.counter(self.next, piece);
        self.next = self.next.from((whole / 8) as u32);
        if !last.is_empty() {
            core.keystream(self.next, &mut self.gamma);
            self.next = self.next.from(1);
            let n = last.len();
            last.xor_in2out(&self.gamma[..n]);
        }
        self.done += length;
        Ok(())
    }

    /// Whether all verified data has been decrypted.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.done == self.all
    }
}

impl Drop for Decrypter<'_> {
    fn drop(&mut self) {
        self.gamma.zeroize();
        self.next.high.zeroize();
        self.next.low.zeroize();
    }
}
