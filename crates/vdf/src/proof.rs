//! The parts of a proof, and its bytes in Chia's layout.
//!
//! A proof that y = x^(2^T) is one number pi = x^(2^T / B rounded down) for a prime B that hashes x and y: then pi^B
//! x^r = y with r = 2^T modulo B. Of n segments, each starts where the one before ends; all but the last carry B in
//! place of their end, which the verifier computes. The bytes are y, pi of the last segment, and then for each earlier
//! segment, the last first: its iterations (8 bytes, highest first), B (33 bytes, highest first) and pi. A *compact*
//! proof omits y, and its verifier gets B.
#![forbid(unsafe_code)]

use alloc::vec::Vec;
use core::fmt;

use crate::discriminant::Discriminant;
use crate::form::Form;
use crate::form::num::Num;
use crate::group::Group;
use crate::prime;
use crate::serial::{self, DecodeError, Mode};

/// Bits of the prime that a proof is made for.
pub const B_BITS: usize = 264;
/// Bytes of that prime.
pub const B_BYTES: usize = B_BITS / 8;

/// The prime (or, in a proof from elsewhere, the number) that a segment's proof is made for.
#[derive(Clone, PartialEq, Eq)]
pub struct Challenge(pub(crate) Num);

impl Challenge {
    /// The prime that x and y hash to (chiavdf's `GetB`).
    ///
    /// # Panics
    /// Never: the forms' bytes start a stream in which one number in a hundred is prime.
    #[must_use]
    pub fn of<'a>(group: impl Into<Group<'a>>, x: &Form, y: &Form) -> Challenge {
        let group = group.into();
        let d = group.discriminant();
        let mut bytes = x.to_bytes(d);
        bytes.extend_from_slice(&y.to_bytes(d));
        let prime = prime::hash_prime(group.engine(), &bytes, B_BITS, &[B_BITS - 1]);
        Challenge(prime.expect("a long seed's stream holds a prime"))
    }

    /// From bytes, highest first.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; B_BYTES]) -> Challenge {
        let mut bytes = *bytes;
        bytes.reverse();
        Challenge(Num::from_le_bytes(&bytes))
    }

    /// As bytes, highest first.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; B_BYTES] {
        let mut out = [0; B_BYTES];
        let fits = self.0.write_le_bytes(&mut out);
        debug_assert!(fits, "a challenge has at most 264 bits");
        out.reverse();
        out
    }
}

impl fmt::Debug for Challenge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0x")?;
        self.to_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A segment before the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Squarings.
    pub iterations: u64,
    /// The prime of its start and its end.
    pub b: Challenge,
    /// Its proof.
    pub pi: Form,
}

/// A proof. Its segments are in the order of the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The result.
    pub y: Form,
    /// The last segment's proof.
    pub pi: Form,
    /// The segments before it.
    pub segments: Vec<Segment>,
}

/// A proof without its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compact {
    /// The last segment's proof.
    pub pi: Form,
    /// The segments before it.
    pub segments: Vec<Segment>,
}

/// Why bytes are not a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProofError {
    /// The wrong number of bytes for the number of segments.
    Length {
        /// Bytes of such a proof; `None` if no length is right.
        expected: Option<usize>,
        /// Bytes given.
        got: usize,
    },
    /// More segments than the limit allows.
    Depth {
        /// The limit.
        most: u64,
        /// Segments before the last, as given.
        got: u64,
    },
    /// A form in the proof cannot be read.
    Form {
        /// Which: the result (`y`), the last proof (`pi`), or a segment's.
        what: Part,
        /// What is wrong.
        why: DecodeError,
    },
}

/// A part of a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The form that the chain starts from.
    X,
    /// The result.
    Y,
    /// The last segment's proof.
    Pi,
    /// A segment before the last, counted from 0 at the chain's start.
    Segment(usize),
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::X => f.write_str("the input"),
            Part::Y => f.write_str("the result"),
            Part::Pi => f.write_str("the last proof"),
            Part::Segment(i) => write!(f, "segment {i}"),
        }
    }
}

impl fmt::Display for ProofError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProofError::Length { expected: Some(expected), got } => {
                write!(f, "a proof of {got} bytes; with this many segments it has {expected}")
            }
            ProofError::Length { expected: None, got } => {
                write!(f, "a proof of {got} bytes; no proof has that many segments")
            }
            ProofError::Depth { most, got } => {
                write!(f, "a proof with {got} segments before the last; at most {most} are allowed")
            }
            ProofError::Form { what, why } => write!(f, "{what}: {why}"),
        }
    }
}

impl core::error::Error for ProofError {}

/// Bytes of a segment before the last.
#[must_use]
pub fn segment_bytes(d: &Discriminant) -> usize {
    8 + B_BYTES + serial::form_bytes(d)
}

/// Checks the bytes' number before anything is read from them.
fn check_length(
    d: &Discriminant,
    forms: usize,
    bytes: &[u8],
    depth: u64,
    most: u64,
) -> Result<(), ProofError> {
    length_fits(serial::form_bytes(d), forms, bytes, depth, most)
}

/// A segment before the last as it is written, with its proof still unread: squarings, B, and the proof.
fn split_segment(bytes: &[u8]) -> (u64, Challenge, &[u8]) {
    let (iterations, rest) = bytes.split_first_chunk::<8>().expect("a segment is longer");
    let (b, pi) = rest.split_first_chunk::<B_BYTES>().expect("a segment is longer");
    (u64::from_be_bytes(*iterations), Challenge::from_bytes(b), pi)
}

/// Refuses bytes that are not a proof for any discriminant of `bits` bits: by their number, and by each form's bytes.
/// `forms` come before the segments. Returns the squarings and B of each segment before the last, in the chain's order.
pub(crate) fn check_without_group(
    bits: usize,
    forms: &[Part],
    bytes: &[u8],
    depth: u64,
    most: u64,
) -> Result<Vec<(u64, Challenge)>, ProofError> {
    let size = serial::form_bytes_for(bits);
    length_fits(size, forms.len(), bytes, depth, most)?;
    let check =
        |bytes, what| serial::check_without_group(bits, bytes).map_err(|why| ProofError::Form { what, why });
    let (front, segments) = bytes.split_at(forms.len() * size);
    for (bytes, part) in front.chunks_exact(size).zip(forms) {
        check(bytes, *part)?;
    }
    let segments = segments.chunks_exact(8 + B_BYTES + size).rev().enumerate();
    segments
        .map(|(i, bytes)| {
            let (iterations, b, pi) = split_segment(bytes);
            check(pi, Part::Segment(i)).map(|()| (iterations, b))
        })
        .collect()
}

fn length_fits(form: usize, forms: usize, bytes: &[u8], depth: u64, most: u64) -> Result<(), ProofError> {
    if depth > most {
        return Err(ProofError::Depth { most, got: depth });
    }
    let expected = usize::try_from(depth)
        .ok()
        .and_then(|depth| depth.checked_mul(8 + B_BYTES + form))
        .and_then(|bytes| bytes.checked_add(forms * form));
    if expected == Some(bytes.len()) {
        Ok(())
    } else {
        Err(ProofError::Length { expected, got: bytes.len() })
    }
}

fn read_form<M: Mode>(mode: M, d: &Discriminant, bytes: &[u8], what: Part) -> Result<Form, ProofError> {
    Form::from_bytes(mode, d, bytes).map_err(|why| ProofError::Form { what, why })
}

/// Reads segments from their bytes, the last first, into the chain's order.
fn read_segments<M: Mode>(mode: M, d: &Discriminant, bytes: &[u8]) -> Result<Vec<Segment>, ProofError> {
    let mut out = Vec::new();
    for (i, bytes) in bytes.chunks_exact(segment_bytes(d)).rev().enumerate() {
        let (iterations, b, pi) = split_segment(bytes);
        out.push(Segment { iterations, b, pi: read_form(mode, d, pi, Part::Segment(i))? });
    }
    Ok(out)
}

fn write_segments(d: &Discriminant, segments: &[Segment], out: &mut Vec<u8>) {
    for segment in segments.iter().rev() {
        out.extend_from_slice(&segment.iterations.to_be_bytes());
        out.extend_from_slice(&segment.b.to_bytes());
        out.extend_from_slice(&segment.pi.to_bytes(d));
    }
}

impl Proof {
    /// Reads a proof with `depth` segments before the last (Chia's witness type), of which `most` are allowed.
    ///
    /// # Errors
    /// The fault of the bytes; their number is checked first.
    pub fn from_bytes<M: Mode>(
        mode: M,
        d: &Discriminant,
        bytes: &[u8],
        depth: u64,
        most: u64,
    ) -> Result<Proof, ProofError> {
        check_length(d, 2, bytes, depth, most)?;
        let size = serial::form_bytes(d);
        Ok(Proof {
            y: read_form(mode, d, &bytes[..size], Part::Y)?,
            pi: read_form(mode, d, &bytes[size..2 * size], Part::Pi)?,
            segments: read_segments(mode, d, &bytes[2 * size..])?,
        })
    }

    /// The proof as bytes.
    #[must_use]
    pub fn to_bytes(&self, d: &Discriminant) -> Vec<u8> {
        let mut out = self.y.to_bytes(d);
        out.extend_from_slice(&self.pi.to_bytes(d));
        write_segments(d, &self.segments, &mut out);
        out
    }

    /// Segments before the last: Chia's witness type.
    #[must_use]
    pub fn depth(&self) -> u64 {
        self.segments.len() as u64
    }

    /// The proof without its result.
    #[must_use]
    pub fn compact(&self) -> Compact {
        Compact { pi: self.pi.clone(), segments: self.segments.clone() }
    }
}

impl Compact {
    /// Reads a proof without its result, otherwise as [`Proof::from_bytes`].
    ///
    /// # Errors
    /// What is wrong with the bytes.
    pub fn from_bytes<M: Mode>(
        mode: M,
        d: &Discriminant,
        bytes: &[u8],
        depth: u64,
        most: u64,
    ) -> Result<Compact, ProofError> {
        check_length(d, 1, bytes, depth, most)?;
        let size = serial::form_bytes(d);
        Ok(Compact {
            pi: read_form(mode, d, &bytes[..size], Part::Pi)?,
            segments: read_segments(mode, d, &bytes[size..])?,
        })
    }

    /// The proof as bytes.
    #[must_use]
    pub fn to_bytes(&self, d: &Discriminant) -> Vec<u8> {
        let mut out = self.pi.to_bytes(d);
        write_segments(d, &self.segments, &mut out);
        out
    }
}
