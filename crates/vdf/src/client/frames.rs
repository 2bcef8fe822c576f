//! The conversation's frames: bytes in, messages out, and the reverse. No input, no output, no clock.
//!
//! The timelord's frames, in order:
//!
//! | frame | bytes |
//! |---|---|
//! | kind of proofs | one letter: `T`, `S` or `N` |
//! | discriminant | its length in 3 decimal digits, then the number as text |
//! | start of the chain | its length in one byte, which is 100, then the form |
//! | any number of requests | the length of a number in 2 decimal digits, then the number as text |
//! | the end | a request for 0 squarings, mostly `010` |
//! | after our `STOP` | `ACK` |
//!
//! The worker answers `OK` after the first three; for each request a proof, as its length in four bytes (highest first)
//! and hexadecimal text of: squarings (8 bytes, highest first), length of y (8 bytes), y, the number of segments before
//! the last (one byte), and the rest of the proof; then `STOP`.
#![forbid(unsafe_code)]

use core::fmt;

use crate::discriminant::{Discriminant, DiscriminantError};
use crate::form::Form;
use crate::number::{self, NumberError};
use crate::proof::Proof;
use crate::serial::{CHIA_BITS, CHIA_BYTES, DecodeError, Mode};

/// The answer to the assignment.
pub const OK: &[u8; 2] = b"OK";
/// The worker's last frame.
pub const STOP: &[u8; 4] = b"STOP";
/// The timelord's last frame.
pub const ACK: &[u8; 3] = b"ACK";

/// The most bytes of a discriminant's text. chiavdf reads this many, and 1,024 bits need fewer.
pub const DISCRIMINANT_TEXT: usize = 349;
/// The most digits of a request: those of 2^64.
pub const REQUEST_DIGITS: usize = 20;

/// The kind of proofs that the timelord requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `T`: two segments before the last, for many requests.
    Three,
    /// `S`: one segment, for one request.
    One,
    /// `N`: enough segments to make each proof immediate.
    Many,
}

impl Kind {
    /// The kind of a letter.
    #[must_use]
    pub fn from_letter(letter: u8) -> Option<Kind> {
        match letter {
            b'T' => Some(Kind::Three),
            b'S' => Some(Kind::One),
            b'N' => Some(Kind::Many),
            _ => None,
        }
    }

    /// The letter.
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            Kind::Three => 'T',
            Kind::One => 'S',
            Kind::Many => 'N',
        }
    }
}

/// A worker's task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The kind of proofs.
    pub kind: Kind,
    /// The discriminant.
    pub discriminant: Discriminant,
    /// The start of the chain.
    pub x: Form,
}

/// A message of the timelord.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The first three frames.
    Assignment(Box<Assignment>),
    /// A request for a proof of this many squarings, at least 1.
    Request(u64),
    /// The end of requests.
    Stop,
    /// The timelord acknowledges that the worker has stopped.
    Acknowledged,
}

/// The parts of the conversation that the timelord sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// The kind of proofs.
    Kind,
    /// The number of bytes of the discriminant's text.
    DiscriminantLength,
    /// The discriminant.
    Discriminant,
    /// The number of bytes of the form.
    FormLength,
    /// The form.
    Form,
    /// The number of digits of a request.
    RequestLength,
    /// A request.
    Request,
    /// The last frame.
    Ack,
    /// Nothing: the conversation has ended.
    Nothing,
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Awaited::Kind => "the kind of proofs",
            Awaited::DiscriminantLength => "the discriminant's length",
            Awaited::Discriminant => "the discriminant",
            Awaited::FormLength => "the form's length",
            Awaited::Form => "the form",
            Awaited::RequestLength => "a request's length",
            Awaited::Request => "a request",
            Awaited::Ack => "the acknowledgement",
            Awaited::Nothing => "nothing more",
        })
    }
}

/// Why a frame is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrameError {
    /// A letter that is not a kind of proofs.
    Kind {
        /// The byte found.
        got: u8,
    },
    /// A length or a number of squarings with a byte that is not a decimal digit.
    Digits {
        /// Which frame.
        what: Awaited,
    },
    /// A length that the frame cannot have.
    Length {
        /// Which frame.
        what: Awaited,
        /// The length announced.
        got: usize,
        /// The longest length allowed.
        most: usize,
    },
    /// The discriminant's text is not a number.
    Number(NumberError),
    /// The number is not a discriminant.
    Discriminant(DiscriminantError),
    /// The form does not have this discriminant.
    Form(DecodeError),
    /// More squarings than 64 bits count.
    Overflow,
    /// Bytes other than `ACK` at the end.
    Ack,
    /// Bytes after the end.
    Trailing,
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameError::Kind { got } => {
                write!(f, "byte {got:#04x} instead of a kind of proofs: T, S or N")
            }
            FrameError::Digits { what } => write!(f, "{what}: not in decimal digits"),
            FrameError::Length { what, got, most } => {
                write!(f, "{what}: {got} bytes announced; it has from 1 to {most}")
            }
            FrameError::Number(e) => write!(f, "the discriminant: {e}"),
            FrameError::Discriminant(e) => e.fmt(f),
            FrameError::Form(e) => write!(f, "the form: {e}"),
            FrameError::Overflow => f.write_str("a request: more squarings than 64 bits count"),
            FrameError::Ack => f.write_str("bytes other than ACK after STOP"),
            FrameError::Trailing => f.write_str("more bytes after ACK"),
        }
    }
}

impl core::error::Error for FrameError {}

/// Decodes messages from bytes that arrive in pieces of any size. It holds at most one frame, and is unusable after an
/// error.
#[derive(Clone, Debug)]
pub struct Decoder<M: Mode> {
    mode: M,
    awaited: Awaited,
    need: usize,
    frame: Vec<u8>,
    kind: Option<Kind>,
    discriminant: Option<Discriminant>,
}

impl<M: Mode> Decoder<M> {
    /// A decoder for a new connection. The mode says which encodings of the chain's start are accepted.
    #[must_use]
    pub fn new(mode: M) -> Decoder<M> {
        Decoder {
            mode,
            awaited: Awaited::Kind,
            need: 1,
            frame: Vec::with_capacity(DISCRIMINANT_TEXT),
            kind: None,
            discriminant: None,
        }
    }

    /// The part that the next bytes belong to.
    #[must_use]
    pub fn awaited(&self) -> Awaited {
        self.awaited
    }

    /// Whether some bytes of that part have arrived.
    #[must_use]
    pub fn is_torn(&self) -> bool {
        !self.frame.is_empty()
    }

    /// Takes bytes and appends the messages that they complete.
    ///
    /// # Errors
    /// The fault of the frame where it stopped; earlier messages have been appended.
    pub fn feed(&mut self, mut bytes: &[u8], out: &mut Vec<Message>) -> Result<(), FrameError> {
        while !bytes.is_empty() {
            if self.awaited == Awaited::Nothing {
                return Err(FrameError::Trailing);
            }
            let (here, rest) = bytes.split_at(bytes.len().min(self.need - self.frame.len()));
            self.frame.extend_from_slice(here);
            bytes = rest;
            if self.frame.len() == self.need {
                let frame = core::mem::take(&mut self.frame);
                out.extend(self.complete(&frame)?);
                // The memory is kept for the next frame.
                self.frame = frame;
                self.frame.clear();
            }
        }
        Ok(())
    }

    fn await_next(&mut self, awaited: Awaited, need: usize) -> Option<Message> {
        (self.awaited, self.need) = (awaited, need);
        None
    }

    /// Reads a whole part and returns the message that it completes, if any.
    fn complete(&mut self, frame: &[u8]) -> Result<Option<Message>, FrameError> {
        let what = self.awaited;
        let length_within = |got: usize, most: usize, what: Awaited| {
            if (1..=most).contains(&got) { Ok(got) } else { Err(FrameError::Length { what, got, most }) }
        };
        Ok(match what {
            Awaited::Kind => {
                let got = frame[0];
                self.kind = Some(Kind::from_letter(got).ok_or(FrameError::Kind { got })?);
                self.await_next(Awaited::DiscriminantLength, 3)
            }
            Awaited::DiscriminantLength => {
                let length = digits(frame, what)? as usize;
                let length = length_within(length, DISCRIMINANT_TEXT, Awaited::Discriminant)?;
                self.await_next(Awaited::Discriminant, length)
            }
            Awaited::Discriminant => {
                self.discriminant = Some(discriminant(frame)?);
                self.await_next(Awaited::FormLength, 1)
            }
            Awaited::FormLength => {
                // Chia's forms have this length, whatever the discriminant's.
                let got = usize::from(frame[0]);
                if got != CHIA_BYTES {
                    return Err(FrameError::Form(DecodeError::Length { expected: CHIA_BYTES, got }));
                }
                self.await_next(Awaited::Form, got)
            }
            Awaited::Form => {
                let (Some(kind), Some(discriminant)) = (self.kind, self.discriminant.take()) else {
                    return Err(FrameError::Trailing);
                };
                let x = Form::from_bytes(self.mode, &discriminant, frame).map_err(FrameError::Form)?;
                self.await_next(Awaited::RequestLength, 2);
                Some(Message::Assignment(Box::new(Assignment { kind, discriminant, x })))
            }
            Awaited::RequestLength => match digits(frame, what)? as usize {
                0 => self.stopped(),
                length => {
                    let length = length_within(length, REQUEST_DIGITS, Awaited::Request)?;
                    self.await_next(Awaited::Request, length)
                }
            },
            Awaited::Request => match digits(frame, what)? {
                0 => self.stopped(),
                iterations => {
                    self.await_next(Awaited::RequestLength, 2);
                    Some(Message::Request(iterations))
                }
            },
            Awaited::Ack if frame == ACK => {
                self.await_next(Awaited::Nothing, 0);
                Some(Message::Acknowledged)
            }
            Awaited::Ack => return Err(FrameError::Ack),
            Awaited::Nothing => return Err(FrameError::Trailing),
        })
    }

    fn stopped(&mut self) -> Option<Message> {
        self.await_next(Awaited::Ack, ACK.len());
        Some(Message::Stop)
    }
}

/// A number in decimal digits and nothing else.
fn digits(text: &[u8], what: Awaited) -> Result<u64, FrameError> {
    text.iter().try_fold(0u64, |value, digit| {
        let digit = char::from(*digit).to_digit(10).ok_or(FrameError::Digits { what })?;
        value.checked_mul(10).and_then(|value| value.checked_add(digit.into())).ok_or(FrameError::Overflow)
    })
}

fn discriminant(text: &[u8]) -> Result<Discriminant, FrameError> {
    let number = number::parse(text).map_err(FrameError::Number)?;
    if number.bits() > CHIA_BITS {
        let error = DiscriminantError::TooLong { bits: number.bits(), most: CHIA_BITS };
        return Err(FrameError::Discriminant(error));
    }
    Discriminant::new(&number).map_err(FrameError::Discriminant)
}

/// A proof as the worker sends it.
///
/// # Panics
/// If the discriminant has more than [`CHIA_BITS`] bits or the proof more than 255 segments before the last. No
/// assignment leads to either.
#[must_use]
pub fn proof(d: &Discriminant, iterations: u64, proof: &Proof) -> Vec<u8> {
    let bytes = proof.to_bytes(d);
    let (y, rest) = bytes.split_at(CHIA_BYTES);
    let depth = u8::try_from(proof.segments.len()).expect("at most 255 segments before the last");
    let mut content = Vec::with_capacity(bytes.len() + 17);
    content.extend_from_slice(&iterations.to_be_bytes());
    content.extend_from_slice(&(y.len() as u64).to_be_bytes());
    content.extend_from_slice(y);
    content.push(depth);
    content.extend_from_slice(rest);
    let length = u32::try_from(2 * content.len()).expect("255 segments are not that long");
    let mut out = length.to_be_bytes().to_vec();
    for byte in content {
        out.extend([byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serial::{Lenient, Strict};

    fn task(kind: &str, d: &Discriminant, x: &[u8]) -> Vec<u8> {
        let number = number::to_decimal(&d.value());
        let mut out = format!("{kind}{:03}{number}", number.len()).into_bytes();
        out.push(x.len() as u8);
        out.extend_from_slice(x);
        out
    }

    fn group() -> (Discriminant, Form) {
        let d = Discriminant::from_seed(b"frames", 1024).expect("a discriminant");
        let x = Form::generator(&d).expect("D is 1 modulo 8").power(12_345, &d);
        (d, x)
    }

    fn decode(bytes: &[u8], piece: usize) -> (Vec<Message>, Result<(), FrameError>, Awaited) {
        let (mut decoder, mut out) = (Decoder::new(Lenient), Vec::new());
        let end = bytes.chunks(piece).try_for_each(|bytes| decoder.feed(bytes, &mut out));
        (out, end, decoder.awaited())
    }

    #[test]
    fn a_whole_conversation_in_pieces_of_every_size() {
        let (d, x) = group();
        for (letter, kind) in [("T", Kind::Three), ("S", Kind::One), ("N", Kind::Many)] {
            let mut bytes = task(letter, &d, &x.to_bytes(&d));
            // The third request has 20 digits, most of them zeros.
            bytes.extend_from_slice(format!("015{:02}{}20{:020}010ACK", 7, 2_000_000, 1).as_bytes());
            let expected = [
                Message::Assignment(Box::new(Assignment { kind, discriminant: d.clone(), x: x.clone() })),
                Message::Request(5),
                Message::Request(2_000_000),
                Message::Request(1),
                Message::Stop,
                Message::Acknowledged,
            ];
            for piece in 1..bytes.len() {
                let (messages, end, awaited) = decode(&bytes, piece);
                assert_eq!((end, awaited), (Ok(()), Awaited::Nothing), "pieces of {piece}");
                assert_eq!(messages, expected, "pieces of {piece}");
            }
        }
        let (messages, end, awaited) =
            decode(&[task("N", &d, &x.to_bytes(&d)), b"00ACK".to_vec()].concat(), 7);
        assert_eq!((messages.len(), end, awaited), (3, Ok(()), Awaited::Nothing), "00 stops too");
    }

    #[test]
    fn every_bad_frame_has_its_error() {
        use FrameError as E;
        let (d, x) = group();
        let x = x.to_bytes(&d);
        let good = task("N", &d, &x);
        let after = |tail: &[u8]| [good.as_slice(), tail].concat();
        let mut twisted = x.clone();
        twisted[2] ^= 1;
        let text = |text: &str| format!("N{:03}{text}", text.len()).into_bytes();
        let length = |what, got, most| E::Length { what, got, most };
        let cases = [
            (b"X".to_vec(), E::Kind { got: b'X' }),
            (b"\0".to_vec(), E::Kind { got: 0 }),
            (b"N-12".to_vec(), E::Digits { what: Awaited::DiscriminantLength }),
            (b"N 12".to_vec(), E::Digits { what: Awaited::DiscriminantLength }),
            (b"N000".to_vec(), length(Awaited::Discriminant, 0, 349)),
            (b"N350".to_vec(), length(Awaited::Discriminant, 350, 349)),
            (b"N999".to_vec(), length(Awaited::Discriminant, 999, 349)),
            (text("hello"), E::Number(NumberError::NotADigit { at: 0 })),
            (text("-"), E::Number(NumberError::Empty)),
            (text("-12\n"), E::Number(NumberError::NotADigit { at: 3 })),
            (text("23"), E::Discriminant(DiscriminantError::NotNegative)),
            (text("0"), E::Discriminant(DiscriminantError::NotNegative)),
            (text("-24"), E::Discriminant(DiscriminantError::NotOneModuloFour)),
            (text("-22"), E::Discriminant(DiscriminantError::NotOneModuloFour)),
            (
                text(&format!("-0x1{}7", "0".repeat(255))),
                E::Discriminant(DiscriminantError::TooLong { bits: 1025, most: 1024 }),
            ),
            (task("N", &d, &x[..99]), E::Form(DecodeError::Length { expected: 100, got: 99 })),
            (task("N", &d, &[]), E::Form(DecodeError::Length { expected: 100, got: 0 })),
            (task("N", &d, &[8; 255]), E::Form(DecodeError::Length { expected: 100, got: 255 })),
            (task("N", &d, &[0; 100]), E::Form(DecodeError::NoA)),
            (after(b"1x"), E::Digits { what: Awaited::RequestLength }),
            (after(b"21123456789012345678901"), length(Awaited::Request, 21, 20)),
            (after(b"99"), length(Awaited::Request, 99, 20)),
            (after(b"03-12"), E::Digits { what: Awaited::Request }),
            (after(b"2018446744073709551616"), E::Overflow),
            (after(b"010NAK"), E::Ack),
            (after(b"010ACK!"), E::Trailing),
        ];
        for (bytes, error) in cases {
            for piece in [1, 13, bytes.len()] {
                let (_, end, _) = decode(&bytes, piece);
                assert_eq!(end, Err(error), "{:?}", String::from_utf8_lossy(&bytes[..bytes.len().min(40)]));
            }
        }
        let (_, end, _) = decode(&task("N", &d, &twisted), 64);
        assert!(matches!(end, Err(E::Form(_))), "{end:?}");
        let (messages, end, _) = decode(&after(b"2018446744073709551615"), 64);
        assert_eq!((messages.last(), end), (Some(&Message::Request(u64::MAX)), Ok(())));
    }

    #[test]
    fn the_mode_decides_about_the_start() {
        let (d, _) = group();
        let mut x = vec![0xa5; 100];
        x[0] = 8;
        let bytes = task("S", &d, &x);
        assert!(Decoder::new(Lenient).feed(&bytes, &mut Vec::new()).is_ok());
        let strict = Decoder::new(Strict).feed(&bytes, &mut Vec::new());
        assert_eq!(strict, Err(FrameError::Form(DecodeError::NotCanonical)));
    }

    /// Any input gets an answer, and at most one frame is held.
    #[test]
    fn garbage_of_all_kinds() {
        let (d, x) = group();
        let mut good = task("T", &d, &x.to_bytes(&d));
        good.extend_from_slice(b"0812345678071234567010ACK");
        let mut state = 7u64;
        let mut below = |n: usize| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            ((state >> 33) as usize) % n
        };
        let (mut whole, mut refused) = (0, 0);
        for round in 0..4000 {
            let mut bytes = good.clone();
            match round % 4 {
                0 => bytes.truncate(below(good.len())),
                1 => (0..1 + below(3)).for_each(|_| bytes[below(good.len())] = below(256) as u8),
                2 => bytes = (0..below(600)).map(|_| b"TSN0123456789-"[below(14)]).collect(),
                _ => drop(bytes.splice(below(good.len()).., (0..below(400)).map(|i| (i * 7) as u8))),
            }
            let (mut decoder, mut out) = (Decoder::new(Lenient), Vec::new());
            let end = bytes.chunks(1 + below(200)).try_for_each(|bytes| {
                let end = decoder.feed(bytes, &mut out);
                assert!(decoder.frame.len() < decoder.need.max(1) && decoder.need <= DISCRIMINANT_TEXT);
                end
            });
            match end {
                Ok(()) => whole += 1,
                Err(_) => refused += 1,
            }
        }
        assert!(whole > 500 && refused > 1500, "{whole} {refused}");
    }

    #[test]
    fn a_proof_is_framed_as_the_timelord_reads_it() {
        let d = Discriminant::from_seed(b"frames", 512).expect("a discriminant");
        let x = Form::generator(&d).expect("D is 1 modulo 8");
        let task = crate::Task { segments: vec![20, 10], ..crate::Task::new(d.clone(), x, 50) };
        let made = crate::spec::prove(&task).expect("a proof");
        let frame = proof(&d, 50, &made);
        let (length, text) = frame.split_at(4);
        assert_eq!(length, (text.len() as u32).to_be_bytes());
        let content =
            crate::internals::known::bytes(core::str::from_utf8(text).expect("text")).expect("digits");
        assert_eq!(content[..8], 50u64.to_be_bytes());
        assert_eq!(content[8..16], 100u64.to_be_bytes());
        assert_eq!(content[116], 2);
        assert_eq!([&content[16..116], &content[117..]].concat(), made.to_bytes(&d));
    }
}
