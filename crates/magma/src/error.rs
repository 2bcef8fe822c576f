//! Faults of inputs, each with its own name.
#![forbid(unsafe_code)]

use alloc::string::String;
use core::fmt;

use crate::limits::Limits;

/// Why an operation was refused. Nothing is silently cleared, padded or cut.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The key has this many bytes instead of 32.
    KeyLength(usize),
    /// The initialisation vector or nonce has `got` bytes; `want` describes the length that the mode needs.
    NonceLength {
        /// Bytes given.
        got: usize,
        /// The length that the mode needs.
        want: &'static str,
    },
    /// The top bit of an MGM nonce is set; it is reserved (RFC 9058, 4.1).
    NonceTopBit,
    /// Data of this many bytes for a mode that takes only whole blocks of 8.
    Unaligned(usize),
    /// MGM with neither data nor associated data, whose tag would help a forgery (RFC 9058, 6). Or IMIT's tag of an empty
    /// message, which does not depend on the key.
    EmptyMessage,
    /// More data than the mode allows in one message; the limit in bytes.
    TooLong {
        /// The most bytes that the mode takes.
        limit: u64,
    },
    /// Associated data after the message has begun.
    OutOfOrder,
    /// CTR would repeat a counter.
    CounterExhausted,
    /// The key has processed as many bytes as its policy allows; the limit in bytes.
    KeyExhausted {
        /// The most bytes under one key.
        limit: u64,
    },
    /// The key has refused as many messages as its policy allows, and verifies or opens nothing more; it still seals.
    /// The limit in bytes (see [`crate::limits`]).
    TooManyRefused {
        /// The most bytes of refused messages.
        limit: u64,
    },
    /// A tag of this many bytes, which the mode or the policy does not allow.
    TagLength(usize),
    /// The tag, the wrapped key's check or the padding is wrong. Deliberately without detail.
    Refused,
    /// A record number above the policy's last.
    SequenceOverflow {
        /// The last allowed number.
        last: u64,
    },
    /// An ACPKM section of this many bytes: not a positive multiple of the block, or longer than
    /// [`Limits::LONGEST_SECTION`].
    Section(usize),
    /// Input and output differ in length.
    Lengths {
        /// Bytes of input.
        input: usize,
        /// Bytes of output.
        output: usize,
    },
    /// Input and output overlap without being the same.
    Overlap,
    /// The operating system refused to start threads, for this reason.
    Threads(String),
    /// A parameter outside its range, with its description.
    Parameter(&'static str),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::KeyLength(got) => write!(f, "the key has {got} bytes instead of 32"),
            Error::NonceLength { got, want } => {
                write!(f, "the IV or nonce has {got} bytes instead of {want}")
            }
            Error::NonceTopBit => write!(f, "the nonce's top bit is set, but it is reserved"),
            Error::Unaligned(got) => write!(f, "{got} bytes are not whole blocks of 8"),
            Error::EmptyMessage => write!(f, "neither data nor associated data to authenticate"),
            Error::TooLong { limit } => write!(f, "the message is longer than {limit} bytes"),
            Error::OutOfOrder => write!(f, "associated data after the message has begun"),
            Error::CounterExhausted => write!(f, "the counter would repeat"),
            Error::KeyExhausted { limit } => write!(f, "the key's limit of {limit} bytes is used up"),
            Error::TooManyRefused { limit } => {
                write!(f, "the key has refused {limit} bytes that were not authentic, and opens nothing more")
            }
            Error::TagLength(got) => write!(f, "a tag of {got} bytes is not allowed"),
            Error::Refused => write!(f, "refused: the data or the key is not authentic"),
            Error::SequenceOverflow { last } => write!(f, "the record number is above {last}"),
            Error::Section(got) => {
                let most = Limits::LONGEST_SECTION;
                write!(f, "a section of {got} bytes is not a positive multiple of 8 up to {most}")
            }
            Error::Lengths { input, output } => write!(f, "{input} bytes of input but {output} of output"),
            Error::Overlap => write!(f, "input and output overlap without being the same"),
            Error::Threads(why) => write!(f, "{why}"),
            Error::Parameter(what) => write!(f, "out of range: {what}"),
        }
    }
}

impl core::error::Error for Error {}
