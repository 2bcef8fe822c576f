//! Chunks: sealing them into their places, and opening them again.
#![forbid(unsafe_code)]

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use lanework_cpu::memory::wipe;

use super::header::{Header, HeaderStart, Options};
use super::keys::{Keys, Secret};
use super::{Error, HEADER, MOST_CHUNKS, TAG};
use crate::backend::Engine;
use crate::limits::{Limits, Refusals};

/// The bit of a nonce that marks the last chunk.
const LAST: u64 = 1 << 62;

/// A chunk's nonce: its number, and whether it is the last. The top bit stays 0, as MGM requires.
fn nonce(chunk: u64, last: bool) -> [u8; 8] {
    (if last { chunk | LAST } else { chunk }).to_be_bytes()
}

/// The number of an encryptor within this process: a place is valid only for the encryptor that gave it out.
fn identity() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The place of one chunk. Sealing uses it up, and only its own encryptor accepts it, so no two chunks ever share a key
/// and a nonce.
#[derive(Debug, PartialEq, Eq)]
pub struct Place {
    owner: u64,
    chunk: u64,
    last: bool,
}

/// Consecutive places.
#[derive(Debug)]
pub struct Places {
    owner: u64,
    next: u64,
    end: u64,
    last: bool,
}

impl Iterator for Places {
    type Item = Place;

    fn next(&mut self) -> Option<Place> {
        (self.next < self.end).then(|| {
            self.next += 1;
            Place { owner: self.owner, chunk: self.next - 1, last: self.last && self.next == self.end }
        })
    }
}

/// Makes a container: the header first, then the chunks, each followed by its tag.
pub struct Encryptor {
    identity: u64,
    keys: Keys,
    header: Header,
    bytes: [u8; HEADER],
    /// The next place, and whether the last has been given out.
    next: Mutex<(u64, bool)>,
}

impl Encryptor {
    /// Begins a container. `salt` must be random and never used before: two containers with the same secret and salt
    /// share their keys, and their contents can be computed from the two.
    ///
    /// # Errors
    /// [`Error::ChunkSize`], [`Error::Iterations`], [`Error::EmptyPassphrase`].
    pub fn new(
        secret: &Secret,
        options: Options,
        salt: [u8; 32],
        engine: Engine,
    ) -> Result<Encryptor, Error> {
        let start = HeaderStart::new(options, secret.is_passphrase(), salt)?;
        let (keys, header) = Keys::create(secret, start, engine)?;
        Ok(Encryptor {
            identity: identity(),
            keys,
            header,
            bytes: header.bytes(),
            next: Mutex::new((0, false)),
        })
    }

    /// The header's bytes, which come first.
    #[must_use]
    pub const fn header(&self) -> &[u8; HEADER] {
        &self.bytes
    }

    /// Bytes of every chunk but the last.
    #[must_use]
    pub const fn chunk(&self) -> usize {
        self.header.start.chunk()
    }

    /// The next `count` places; with `last`, the last of them ends the container. A container has at least one place,
    /// and its end needs a place.
    ///
    /// # Errors
    /// [`Error::TooLong`] for places beyond [`MOST_CHUNKS`], and where the end has already been given out;
    /// [`Error::NoPlace`] for an end of no places.
    pub fn places(&self, count: u64, last: bool) -> Result<Places, Error> {
        if last && count == 0 {
            return Err(Error::NoPlace);
        }
        let mut given = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let (next, ended) = *given;
        let end = next.checked_add(count).filter(|&end| end <= MOST_CHUNKS && !ended);
        let Some(end) = end else { return Err(Error::TooLong { limit: self.header.start.limit() }) };
        *given = (end, last);
        Ok(Places { owner: self.identity, next, end, last })
    }

    /// Seals a chunk in place and returns its tag. Only the last chunk may be shorter than the chunk size, but not empty
    /// unless it is also the first.
    ///
    /// # Errors
    /// [`Error::ChunkLength`]; [`Error::NoPlace`] for another encryptor's place. `data` is unchanged then.
    pub fn seal(&self, place: Place, data: &mut [u8]) -> Result<[u8; TAG], Error> {
        let Place { owner, chunk, last } = place;
        if owner != self.identity {
            return Err(Error::NoPlace);
        }
        let fits = fits(&self.header.start, chunk, last, data.len());
        // MGM's own limits are larger than any chunk.
        let tag = if fits {
            self.keys.chunk(chunk).seal(&nonce(chunk, last), &self.bytes, data).ok()
        } else {
            None
        };
        let wrong = Error::ChunkLength { chunk, got: data.len() };
        tag.and_then(|tag| tag.as_slice().try_into().ok()).ok_or(wrong)
    }
}

/// Whether a chunk of this length fits this place.
fn fits(start: &HeaderStart, chunk: u64, last: bool, length: usize) -> bool {
    length == start.chunk() || last && length < start.chunk() && (length > 0 || chunk == 0)
}

/// Opens a container's chunks, in any order and on any thread.
///
/// Each chunk has its own key, which lives for one call, so the decryptor counts refused chunks itself. After
/// [`Limits::REFUSED`] bytes it opens nothing more, which limits guesses at tags where chunks can be repeated.
pub struct Decryptor {
    keys: Keys,
    header: Header,
    bytes: [u8; HEADER],
    pub(super) refused: Refusals,
}

impl Decryptor {
    /// Checks that the header commits to this secret. With a passphrase, this takes the time of the header's
    /// iterations.
    ///
    /// # Errors
    /// [`Error::NeedsKey`], [`Error::NeedsPassphrase`], [`Error::EmptyPassphrase`], [`Error::WrongKey`].
    pub fn new(secret: &Secret, header: &Header, engine: Engine) -> Result<Decryptor, Error> {
        let (keys, refused) = (Keys::check(secret, header, engine)?, Refusals::default());
        Ok(Decryptor { keys, header: *header, bytes: header.bytes(), refused })
    }

    /// Bytes of every chunk but the last.
    #[must_use]
    pub const fn chunk(&self) -> usize {
        self.header.start.chunk()
    }

    /// Opens one record, which is a chunk and its tag, in place. Returns the length of the plaintext, which is at the
    /// record's start. `last` means that the data ends after this record. Nothing is decrypted before the tag is
    /// verified; on failure the record is wiped.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::Torn`], [`Error::Truncated`], [`Error::Trailing`], [`Error::TooLong`].
    /// [`Error::TooManyRefused`] after too many of them, with the record unchanged.
    pub fn open(&self, chunk: u64, last: bool, record: &mut [u8]) -> Result<usize, Error> {
        let start = &self.header.start;
        if chunk >= MOST_CHUNKS {
            return Err(Error::TooLong { limit: start.limit() });
        }
        let limit = Limits::REFUSED;
        self.refused.allow(limit).map_err(|_| Error::TooManyRefused { limit })?;
        let Some(length) = record.len().checked_sub(TAG) else {
            // Shorter than a tag: always the end of the data.
            wipe(record);
            return Err(if record.is_empty() { Error::Truncated { chunk } } else { Error::Torn { chunk } });
        };
        if !fits(start, chunk, last, length) {
            wipe(record);
            return Err(if last { Error::Torn { chunk } } else { Error::Damaged { chunk } });
        }
        let (data, tag) = record.split_at_mut(length);
        if self.authentic(chunk, last, data, tag) {
            return Ok(length);
        }
        // A whole chunk may be of the other kind; a second verification finds out.
        let whole = length == start.chunk();
        let error = match last {
            true if whole && self.authentic(chunk, false, data, tag) => Error::Truncated { chunk: chunk + 1 },
            false if self.authentic(chunk, true, data, tag) => Error::Trailing { chunk },
            true if !whole => Error::Torn { chunk },
            _ => Error::Damaged { chunk },
        };
        wipe(record);
        Err(error)
    }

    /// Decrypts a chunk if its tag is right; otherwise leaves it unchanged and counts it.
    fn authentic(&self, chunk: u64, last: bool, data: &mut [u8], tag: &[u8]) -> bool {
        let mgm = self.keys.chunk(chunk);
        let check = || {
            let mut verifier = mgm.verifier(&nonce(chunk, last))?;
            verifier.aad(&self.bytes)?;
            verifier.data(data)?;
            verifier.finish(tag)
        };
        // MGM's own limits are larger than any chunk, so only refusals occur.
        let checked = check();
        if checked.is_err() {
            self.refused.count((HEADER + data.len()) as u64);
        }
        checked.is_ok_and(|mut decrypter| decrypter.data(data).is_ok())
    }
}
