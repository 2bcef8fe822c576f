//! The header: everything a reader needs before the key.
#![forbid(unsafe_code)]

use super::{
    Error, FEWEST_ITERATIONS, HEADER, LARGEST_CHUNK, MAGIC, MOST_CHUNKS, MOST_ITERATIONS, SMALLEST_CHUNK,
    SUITE, VERSION,
};

/// Bytes of the header before the commitment, on which the keys depend.
pub(super) const START: usize = 48;

/// The source of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A key of 32 bytes.
    Key,
    /// A passphrase, through PBKDF2 with HMAC of Streebog-512 (RFC 9337) and the header's salt.
    Passphrase {
        /// The iterations.
        iterations: u32,
    },
}

/// Options of a new container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bytes of a chunk: a power of two from [`SMALLEST_CHUNK`] to [`LARGEST_CHUNK`].
    pub chunk: usize,
    /// Iterations of PBKDF2, where the secret is a passphrase.
    pub iterations: u32,
}

/// Chunks of 64 KiB; 100,000 iterations, which take somewhat more than half a second.
impl Default for Options {
    fn default() -> Options {
        Options { chunk: LARGEST_CHUNK, iterations: 100_000 }
    }
}

/// The header without its commitment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderStart {
    source: Source,
    /// The chunk size's exponent.
    exponent: u8,
    salt: [u8; 32],
}

impl HeaderStart {
    /// For a new container. Every container needs a salt of its own: draw it at random.
    ///
    /// # Errors
    /// [`Error::ChunkSize`], [`Error::Iterations`].
    pub fn new(options: Options, passphrase: bool, salt: [u8; 32]) -> Result<HeaderStart, Error> {
        if !options.chunk.is_power_of_two() || !(SMALLEST_CHUNK..=LARGEST_CHUNK).contains(&options.chunk) {
            return Err(Error::ChunkSize(options.chunk as u64));
        }
        let source = if passphrase {
            if !(FEWEST_ITERATIONS..=MOST_ITERATIONS).contains(&options.iterations) {
                return Err(Error::Iterations(options.iterations));
            }
            Source::Passphrase { iterations: options.iterations }
        } else {
            Source::Key
        };
        Ok(HeaderStart { source, exponent: options.chunk.trailing_zeros() as u8, salt })
    }

    fn parse(bytes: &[u8; START]) -> Result<HeaderStart, Error> {
        if bytes[..8] != MAGIC {
            return Err(Error::Magic);
        }
        let [version, suite, source, exponent] = [bytes[8], bytes[9], bytes[10], bytes[11]];
        if version != VERSION {
            return Err(Error::Version(version));
        }
        if suite != SUITE {
            return Err(Error::Suite(suite));
        }
        let size = 1u64.checked_shl(exponent.into()).unwrap_or(u64::MAX);
        if size < SMALLEST_CHUNK as u64 || size > LARGEST_CHUNK as u64 {
            return Err(Error::ChunkSize(size));
        }
        let iterations = u32::from_be_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]);
        let source = match source {
            0 if iterations == 0 => Source::Key,
            1 if (FEWEST_ITERATIONS..=MOST_ITERATIONS).contains(&iterations) => {
                Source::Passphrase { iterations }
            }
            0 | 1 => return Err(Error::Iterations(iterations)),
            other => return Err(Error::Source(other)),
        };
        let mut salt = [0; 32];
        salt.copy_from_slice(&bytes[16..]);
        Ok(HeaderStart { source, exponent, salt })
    }

    /// The bytes as in the container.
    pub(super) fn bytes(&self) -> [u8; START] {
        let (source, iterations) = match self.source {
            Source::Key => (0, 0),
            Source::Passphrase { iterations } => (1, iterations),
        };
        let mut bytes = [0; START];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&[VERSION, SUITE, source, self.exponent]);
        bytes[12..16].copy_from_slice(&iterations.to_be_bytes());
        bytes[16..].copy_from_slice(&self.salt);
        bytes
    }

    /// The source of the key.
    #[must_use]
    pub const fn source(&self) -> Source {
        self.source
    }

    /// Bytes of every chunk but the last.
    #[must_use]
    pub const fn chunk(&self) -> usize {
        1 << self.exponent
    }

    /// The salt.
    #[must_use]
    pub const fn salt(&self) -> &[u8; 32] {
        &self.salt
    }

    /// The most bytes that the container can hold.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        MOST_CHUNKS << self.exponent
    }
}

/// A container's first 80 bytes, parsed but not authenticated: that needs a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub(super) start: HeaderStart,
    pub(super) commitment: [u8; 32],
}

impl Header {
    /// Parses the beginning of a container; bytes after the header are ignored.
    ///
    /// # Errors
    /// [`Error::Magic`] where the bytes begin differently, however few they are; [`Error::HeaderEnds`],
    /// [`Error::Version`], [`Error::Suite`], [`Error::Source`], [`Error::ChunkSize`], [`Error::Iterations`].
    pub fn parse(bytes: &[u8]) -> Result<Header, Error> {
        let common = bytes.len().min(MAGIC.len());
        if bytes[..common] != MAGIC[..common] {
            return Err(Error::Magic);
        }
        let Some((start, rest)) = bytes.split_first_chunk::<START>() else {
            return Err(Error::HeaderEnds(bytes.len()));
        };
        let start = HeaderStart::parse(start)?;
        let Some(commitment) = rest.first_chunk::<32>() else {
            return Err(Error::HeaderEnds(bytes.len()));
        };
        Ok(Header { start, commitment: *commitment })
    }

    /// The bytes as in the container.
    #[must_use]
    pub fn bytes(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..START].copy_from_slice(&self.start.bytes());
        bytes[START..].copy_from_slice(&self.commitment);
        bytes
    }

    /// The bytes before the commitment.
    #[must_use]
    pub const fn start(&self) -> &HeaderStart {
        &self.start
    }
}
