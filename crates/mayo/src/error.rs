//! Errors, each with its own name.
#![forbid(unsafe_code)]

use alloc::string::String;
use core::fmt;

use crate::params::{Round, Set};

/// Why an operation was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A key, seed, randomizer or signature has the wrong number of bytes.
    Length {
        /// What was given.
        what: &'static str,
        /// The set it was passed for.
        set: Set,
        /// The right number of bytes.
        expected: usize,
        /// The number that was given.
        got: usize,
    },
    /// The container has another round than requested.
    WrongRound {
        /// The requested round.
        expected: Round,
        /// The round found.
        got: Round,
    },
    /// The container has another set than requested.
    WrongSet {
        /// The requested set.
        expected: Set,
        /// The set found.
        got: Set,
    },
    /// A key file or key document that cannot be read: what and why.
    Unreadable {
        /// What was being read.
        what: &'static str,
        /// The reason.
        why: String,
    },
    /// The two halves of a key document do not belong together.
    KeyMismatch,
    /// The parameter set has no published object identifier, so it has no PKCS#8 or SPKI form.
    NoIdentifier {
        /// The round.
        round: Round,
        /// The set.
        set: Set,
    },
    /// The signature is well formed but not valid for this message and key.
    Refused,
    /// A batch was given lists that do not fit together.
    Count {
        /// The items in question.
        what: &'static str,
        /// The expected number.
        expected: usize,
        /// The given number.
        got: usize,
    },
    /// Signing found no solvable system in 256 attempts. No signature exists; this does not happen to honest seeds.
    Exhausted,
    /// Verification after signing failed: a fault occurred, and the signature was destroyed.
    Fault,
    /// The system's random generator failed.
    Random(String),
    /// Threads could not be started.
    Threads(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Length { what, set, expected, got } => {
                write!(f, "a {set} {what} has {expected} bytes, this one has {got}")
            }
            Error::WrongRound { expected, got } => {
                write!(f, "this belongs to {got}, not to {expected}; rounds never share a key")
            }
            Error::WrongSet { expected, got } => write!(f, "this belongs to {got}, not to {expected}"),
            Error::Unreadable { what, why } => write!(f, "the {what} cannot be read: {why}"),
            Error::KeyMismatch => {
                f.write_str("the public key in this document does not match its secret key")
            }
            Error::NoIdentifier { round, set } => {
                write!(f, "{set} {round} has no published object identifier: use its PEM form")
            }
            Error::Refused => f.write_str("the signature is not valid for this message and key"),
            Error::Count { what, expected, got } => {
                write!(f, "{expected} {what} are needed, {got} were given")
            }
            Error::Exhausted => f.write_str("signing found no solution in 256 attempts; nothing was emitted"),
            Error::Fault => {
                f.write_str("the fresh signature did not verify: a fault occurred, nothing was emitted")
            }
            Error::Random(why) => write!(f, "the system's random generator failed: {why}"),
            Error::Threads(why) => f.write_str(why),
        }
    }
}

impl core::error::Error for Error {}
