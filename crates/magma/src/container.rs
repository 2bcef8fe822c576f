//! The authenticated container: a file or a stream of any size under one secret, in chunks that each have their own
//! key.
//!
//! `FORMAT.md` beside this crate's README describes the format and its reasons. An [`Encryptor`] gives out the places
//! of a file, each once, and seals a chunk in each; a [`Decryptor`] opens the chunk of any place. Both take `&self`, so
//! that threads share one. [`encrypt`] and [`decrypt`] process a whole stream on one thread.
//!
//! Errors distinguish a malformed header, another key (before any chunk: the header commits to the key), a damaged or
//! moved chunk, a missing end, and bytes after the end.
#![forbid(unsafe_code)]

use core::fmt;

mod chunks;
mod header;
mod keys;
mod stream;
#[cfg(test)]
mod tests;

pub use chunks::{Decryptor, Encryptor, Place, Places};
pub use header::{Header, HeaderStart, Options, Source};
pub use keys::Secret;
pub use stream::{StreamError, decrypt, encrypt};

/// The first bytes of every container. The first is not ASCII, and the line ends reveal a text conversion.
pub const MAGIC: [u8; 8] = *b"\x89LWMGM\r\n";

/// The version that this module writes and reads.
pub const VERSION: u8 = 1;

/// The suite that this module writes and reads: Magma in MGM with tags of 8 bytes, `KDF_TREE_GOSTR3411_2012_256`.
pub const SUITE: u8 = 1;

/// Bytes of the header, the key's commitment included.
pub const HEADER: usize = 80;

/// Bytes of a chunk's tag, which follows it.
pub const TAG: usize = 8;

/// The smallest chunk that a header may name.
pub const SMALLEST_CHUNK: usize = 1 << 12;

/// The largest chunk that a header may name, and the default.
pub const LARGEST_CHUNK: usize = 1 << 16;

/// The most chunks of one container: 1 TiB of the largest chunks. `FORMAT.md` has the security bounds up to there.
pub const MOST_CHUNKS: u64 = 1 << 24;

/// The fewest iterations of PBKDF2 (RFC 9337, 7.1 allows no fewer).
pub const FEWEST_ITERATIONS: u32 = 1000;

/// The most iterations of PBKDF2: a header with more is refused, so that it cannot occupy the reader.
pub const MOST_ITERATIONS: u32 = 10_000_000;

/// A fault of a container, or of the inputs for a new one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The data ends after this many bytes, within the header.
    HeaderEnds(usize),
    /// The first bytes are not a container's.
    Magic,
    /// An unsupported version.
    Version(u8),
    /// An unsupported suite.
    Suite(u8),
    /// An unknown source of keys.
    Source(u8),
    /// A chunk size that is not a power of two between the smallest and the largest. For a header, the power of two
    /// that it encodes.
    ChunkSize(u64),
    /// A number of iterations of PBKDF2 that is out of bounds, or not 0 although there is no passphrase.
    Iterations(u32),
    /// The container was made with a passphrase, and a key was given.
    NeedsPassphrase,
    /// The container was made with a key, and a passphrase was given.
    NeedsKey,
    /// The header does not commit to this key or passphrase: the secret is wrong, or the header was changed.
    WrongKey,
    /// The chunk of this number is damaged, or belongs elsewhere.
    Damaged {
        /// Its number, from 0.
        chunk: u64,
    },
    /// The data ends within or before the chunk of this number; the rest looks like a damaged chunk.
    Torn {
        /// Its number.
        chunk: u64,
    },
    /// The data ends cleanly after a chunk that is not the last: chunks are missing.
    Truncated {
        /// The number of the first chunk that is missing.
        chunk: u64,
    },
    /// The last chunk is whole, and more bytes follow it.
    Trailing {
        /// The last chunk's number.
        chunk: u64,
    },
    /// This decryptor has refused the most bytes of chunks allowed ([`crate::limits::Limits::REFUSED`]), and opens
    /// nothing more.
    TooManyRefused {
        /// The most bytes of refused chunks.
        limit: u64,
    },
    /// More chunks than [`MOST_CHUNKS`].
    TooLong {
        /// The most bytes in chunks of this size.
        limit: u64,
    },
    /// A chunk of `got` bytes, which does not fit its place.
    ChunkLength {
        /// The chunk's number.
        chunk: u64,
        /// Its bytes.
        got: usize,
    },
    /// An empty passphrase.
    EmptyPassphrase,
    /// A place of another encryptor, or an end without a place.
    NoPlace,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::HeaderEnds(got) => {
                write!(
                    f,
                    "no container of Magma, or cut short: it ends after {got} of the header's {HEADER} bytes"
                )
            }
            Error::Magic => write!(f, "no container of Magma: it does not begin like one"),
            Error::Version(got) => write!(f, "a container of version {got}; this program reads {VERSION}"),
            Error::Suite(got) => write!(f, "a container of suite {got}; this program reads {SUITE}"),
            Error::Source(got) => write!(f, "the header names an unknown source of keys, {got}"),
            Error::ChunkSize(got) => write!(
                f,
                "chunks of {got} bytes: not a power of two from {SMALLEST_CHUNK} to {LARGEST_CHUNK}"
            ),
            Error::Iterations(got) => write!(
                f,
                "{got} iterations of PBKDF2: not from {FEWEST_ITERATIONS} to {MOST_ITERATIONS} (0 without a passphrase)"
            ),
            Error::NeedsPassphrase => write!(f, "the container was made with a passphrase, not with a key"),
            Error::NeedsKey => write!(f, "the container was made with a key, not with a passphrase"),
            Error::WrongKey => {
                write!(f, "the key or passphrase is not this container's, or its header was changed")
            }
            Error::Damaged { chunk } => write!(f, "chunk {chunk} is damaged or not where it belongs"),
            Error::Torn { chunk } => write!(f, "chunk {chunk} is cut short or damaged"),
            Error::Truncated { chunk } => {
                write!(f, "cut short: it ends before chunk {chunk}, and the last one is missing")
            }
            Error::Trailing { chunk } => write!(f, "bytes follow the last chunk, number {chunk}"),
            Error::TooManyRefused { limit } => {
                write!(f, "{limit} bytes of chunks were refused, and no more are opened")
            }
            Error::TooLong { limit } => {
                write!(f, "longer than the {limit} bytes that one container may hold")
            }
            Error::ChunkLength { chunk, got } => write!(f, "{got} bytes are not a chunk for place {chunk}"),
            Error::NoPlace => write!(f, "a place that this container has not given out"),
            Error::EmptyPassphrase => write!(f, "the passphrase is empty"),
        }
    }
}

impl core::error::Error for Error {}
