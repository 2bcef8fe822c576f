//! Forms as bytes.
//!
//! Up to 1,024 bits of discriminant a form has Chia's encoding: 100 bytes. The cofactor t of a run of Euclid's
//! algorithm on (a, |b|) that stops at √a replaces b, since b t is then a small root of t² D modulo a. Byte 0 holds
//! flags (sign of b, sign of t, identity, generator), byte 1 the length of g less 1; then, lowest byte first, a / g, t
//! / g, g = gcd(a, t) and b0 = |b| g / a rounded down. Larger discriminants have a plain encoding of this crate: the
//! version (1), the length of what follows in two bytes, the sign of b, and a and |b| in equally many bytes, highest
//! byte first.
//!
//! Under [`Strict`] a form has one encoding. Chia's nodes accept a few more, and a network must keep agreeing:
//! [`Lenient`] accepts what they accept. The two are types, so a program cannot mix them by accident.
#![forbid(unsafe_code)]

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use crate::discriminant::{Discriminant, MAX_BITS};
use crate::form::euclid::{euclid, gcd_inverse};
use crate::form::num::Num;
use crate::form::{Form, FormError};

/// The longest discriminant with a Chia encoding.
pub const CHIA_BITS: usize = 1024;
/// Bytes of Chia's encoding.
pub const CHIA_BYTES: usize = 100;
/// The version of the encoding for longer discriminants.
pub const LONG_VERSION: u8 = 1;

const B_NEGATIVE: u8 = 1;
const T_NEGATIVE: u8 = 2;
const IDENTITY: u8 = 4;
const GENERATOR: u8 = 8;

/// The accepted encodings: [`Strict`] or [`Lenient`].
pub trait Mode: sealed::Sealed + Copy + Default + fmt::Debug + Send + Sync + 'static {
    /// The name that commands and reports use.
    const NAME: &'static str;
    /// Whether a form has only one encoding.
    const STRICT: bool;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Strict {}
    impl Sealed for super::Lenient {}
}

/// One encoding for each form, as in chiavdf 1.2.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Strict;

/// The encodings that Chia's nodes accept by consensus as of 2026: also anything after the flags of identity and
/// generator, and forms that are not reduced if they say so consistently (b0 raised by multiples of twice g).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lenient;

impl Mode for Strict {
    const NAME: &'static str = "strict";
    const STRICT: bool = true;
}

impl Mode for Lenient {
    const NAME: &'static str = "lenient";
    const STRICT: bool = false;
}

/// Why bytes are not a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// The wrong number of bytes.
    Length {
        /// Bytes of a form of this discriminant.
        expected: usize,
        /// Bytes given.
        got: usize,
    },
    /// The discriminant is longer than [`MAX_BITS`].
    Bits {
        /// Its bits.
        got: usize,
    },
    /// The length of g leaves no room for t.
    SizeOfG {
        /// Byte 1, the length of g less 1.
        got: u8,
    },
    /// a / g is 0.
    NoA,
    /// t and a / g have a common divisor, so t does not determine b.
    CommonDivisor,
    /// t² D modulo a / g is not a square: no b belongs to this t.
    NoRoot,
    /// The numbers are not a reduced form of this discriminant.
    Form(FormError),
    /// The form has another, canonical encoding.
    NotCanonical,
    /// The encoding has another version.
    Version {
        /// The version found.
        got: u8,
    },
    /// A sign that is neither 0 nor 1, or a length that is not the discriminant's.
    Header,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Length { expected, got } => {
                write!(f, "a form of {got} bytes; it must have {expected}")
            }
            DecodeError::Bits { got } => {
                write!(f, "a discriminant of {got} bits; at most {MAX_BITS} are allowed")
            }
            DecodeError::SizeOfG { got } => {
                write!(f, "g of {} bytes leaves no room for t", u16::from(*got) + 1)
            }
            DecodeError::NoA => f.write_str("a is 0"),
            DecodeError::CommonDivisor => f.write_str("t and a have a common divisor"),
            DecodeError::NoRoot => f.write_str("no b belongs to t: t² D is not a square modulo a"),
            DecodeError::Form(e) => e.fmt(f),
            DecodeError::NotCanonical => f.write_str("the form has another encoding, which is the valid one"),
            DecodeError::Version { got } => {
                write!(f, "version {got} of the encoding; only version {LONG_VERSION} is supported")
            }
            DecodeError::Header => f.write_str("the sign or the length in front of the form is wrong"),
        }
    }
}

impl core::error::Error for DecodeError {}

impl From<FormError> for DecodeError {
    fn from(e: FormError) -> DecodeError {
        DecodeError::Form(e)
    }
}

/// Bytes of one coefficient in the encoding for long discriminants.
fn coefficient_bytes(bits: usize) -> usize {
    bits.div_ceil(16)
}

/// Bytes of any form of the discriminant.
#[must_use]
pub fn form_bytes(d: &Discriminant) -> usize {
    form_bytes_for(d.bits())
}

/// Bytes of any form of a discriminant of `bits` bits.
#[must_use]
pub fn form_bytes_for(bits: usize) -> usize {
    if bits <= CHIA_BITS { CHIA_BYTES } else { 4 + 2 * coefficient_bytes(bits) }
}

/// Lengths of a / g, t / g and g (also b0's) for a g of `g_size` + 1 bytes; `None` if t has no room.
fn layout(bits: usize, g_size: usize) -> Option<[usize; 3]> {
    let units = bits.div_ceil(32);
    (g_size < units).then(|| [2 * units - g_size, units - g_size, g_size + 1])
}

/// Writes a form, reduced or not; `None` if a number does not fit its field, which happens only to forms that are not
/// reduced.
fn write(a: &Num, b: &Num, bits: usize) -> Option<Vec<u8>> {
    let mut out = vec![0; form_bytes_for(bits)];
    if bits > CHIA_BITS {
        let width = coefficient_bytes(bits);
        out[0] = LONG_VERSION;
        out[1..3].copy_from_slice(&u16::try_from(1 + 2 * width).ok()?.to_be_bytes());
        out[3] = u8::from(b.is_negative());
        let (first, second) = out[4..].split_at_mut(width);
        for (number, field) in [(a, first), (b, second)] {
            if !number.write_le_bytes(field) {
                return None;
            }
            field.reverse();
        }
        return Some(out);
    }
    if b.is_one() && (a.is_one() || *a == Num::from_u64(2)) {
        out[0] = if a.is_one() { IDENTITY } else { GENERATOR };
        return Some(out);
    }
    let (mut first, mut t, mut g, mut b0) = (*a, Num::ZERO, Num::ZERO, Num::ZERO);
    if a != b {
        out[0] = if b.is_negative() { B_NEGATIVE } else { 0 };
        t = euclid(a, &b.abs(), &a.root(), false).cofactor();
        g = gcd_inverse(&t.modulo(a), a).0;
        if !g.is_one() {
            first = a.div_exact(&g);
            t = t.div_exact(&g);
            b0 = b.abs().div_rem(&first).0;
        }
    }
    if t.is_negative() {
        out[0] |= T_NEGATIVE;
    }
    let g_size = g.bits().max(1).div_ceil(8) - 1;
    out[1] = u8::try_from(g_size).ok()?;
    let [a_bytes, t_bytes, g_bytes] = layout(bits, g_size)?;
    let mut at = 2;
    for (number, bytes) in [(first, a_bytes), (t, t_bytes), (g, g_bytes), (b0, g_bytes)] {
        if !number.write_le_bytes(&mut out[at..at + bytes]) {
            return None;
        }
        at += bytes;
    }
    Some(out)
}

/// The content of a form's bytes, before the discriminant is known.
struct Written {
    /// a, or a / g where b is a root.
    a: Num,
    b: Num,
    root: Option<Root>,
}

/// Chia's fields for a b that follows from the discriminant.
struct Root {
    t: Num,
    /// The inverse of t modulo a / g.
    inverse: Num,
    g: Num,
    b0: Num,
    negative: bool,
}

impl Written {
    /// Reads the form of any discriminant of `bits` bits. Does not check that the numbers are a form.
    fn read(bits: usize, bytes: &[u8]) -> Result<Written, DecodeError> {
        if bits > MAX_BITS {
            return Err(DecodeError::Bits { got: bits });
        }
        let expected = form_bytes_for(bits);
        if bytes.len() != expected {
            return Err(DecodeError::Length { expected, got: bytes.len() });
        }
        if bits > CHIA_BITS { Written::read_long(bits, bytes) } else { Written::read_chia(bits, bytes) }
    }

    fn known(a: Num, b: Num) -> Written {
        Written { a, b, root: None }
    }

    fn read_chia(bits: usize, bytes: &[u8]) -> Result<Written, DecodeError> {
        let flags = bytes[0];
        if flags & (IDENTITY | GENERATOR) != 0 {
            let a = if flags & GENERATOR != 0 { 2 } else { 1 };
            return Ok(Written::known(Num::from_u64(a), Num::from_u64(1)));
        }
        let lengths = layout(bits, usize::from(bytes[1])).ok_or(DecodeError::SizeOfG { got: bytes[1] })?;
        let [a_bytes, t_bytes, g_bytes] = lengths;
        let mut at = 2;
        let [first, t, g, b0] = [a_bytes, t_bytes, g_bytes, g_bytes].map(|length| {
            at += length;
            Num::from_le_bytes(&bytes[at - length..at])
        });
        if first.is_zero() {
            return Err(DecodeError::NoA);
        }
        if t.is_zero() {
            return Ok(Written::known(first, first));
        }
        let t = t.neg_if(flags & T_NEGATIVE != 0).modulo(&first);
        let (divisor, inverse) = gcd_inverse(&t, &first);
        if !divisor.is_one() {
            return Err(DecodeError::CommonDivisor);
        }
        let root = Root { t, inverse, g, b0, negative: flags & B_NEGATIVE != 0 };
        Ok(Written { a: first, b: Num::ZERO, root: Some(root) })
    }

    fn read_long(bits: usize, bytes: &[u8]) -> Result<Written, DecodeError> {
        if bytes[0] != LONG_VERSION {
            return Err(DecodeError::Version { got: bytes[0] });
        }
        let width = coefficient_bytes(bits);
        if usize::from(u16::from_be_bytes([bytes[1], bytes[2]])) != 1 + 2 * width || bytes[3] > 1 {
            return Err(DecodeError::Header);
        }
        let number = |from: &[u8]| Num::from_le_bytes(&from.iter().rev().copied().collect::<Vec<u8>>());
        let (a, b) = bytes[4..].split_at(width);
        Ok(Written::known(number(a), number(b).neg_if(bytes[3] == 1)))
    }

    /// a and b; does not check that they are a form of the discriminant.
    fn numbers(self, d: &Discriminant) -> Result<(Num, Num), DecodeError> {
        let Written { a: first, b, root } = self;
        let Some(Root { t, inverse, g, b0, negative }) = root else { return Ok((first, b)) };
        let square = t.square().modulo(&first).mul(&d.number().modulo(&first)).modulo(&first);
        let root = square.root();
        if root.square() != square {
            return Err(DecodeError::NoRoot);
        }
        let b = root.mul(&inverse.modulo(&first)).modulo(&first);
        let a = if g.bits() > 1 { first.mul(&g) } else { first };
        let b = b.add(&first.mul(&b0)).neg_if(negative);
        Ok((a, b))
    }
}

/// The bytes of [`Form::generator`] for any discriminant of `bits` bits, from 5 to [`MAX_BITS`], that has one.
///
/// # Panics
/// If `bits` is above [`MAX_BITS`].
#[must_use]
pub fn generator_bytes(bits: usize) -> Vec<u8> {
    assert!(bits <= MAX_BITS, "a discriminant has at most {MAX_BITS} bits");
    write(&Num::from_u64(2), &Num::from_u64(1), bits).expect("the generator fits its encoding")
}

/// Refuses bytes that encode a form of no discriminant of `bits` bits.
///
/// # Errors
/// The fault of the bytes, or [`DecodeError::Bits`].
pub fn check_without_group(bits: usize, bytes: &[u8]) -> Result<(), DecodeError> {
    Written::read(bits, bytes).map(drop)
}

impl Form {
    /// The form as bytes: [`form_bytes`] of them.
    ///
    /// # Panics
    /// If the form has a longer discriminant.
    #[must_use]
    pub fn to_bytes(&self, d: &Discriminant) -> Vec<u8> {
        write(&self.a, &self.b, d.bits()).expect("a reduced form fits its encoding")
    }

    /// The form of these bytes, checked to have this discriminant.
    ///
    /// # Errors
    /// The fault of the bytes. The discriminant's length bounds the work.
    pub fn from_bytes<M: Mode>(_: M, d: &Discriminant, bytes: &[u8]) -> Result<Form, DecodeError> {
        let long = d.bits() > CHIA_BITS;
        let (a, b) = Written::read(d.bits(), bytes)?.numbers(d)?;
        // Checks that 4a divides b² - D before any work whose time depends on the numbers' shape.
        let mut form = Form::unreduced(d, &a, &b)?;
        if M::STRICT || long {
            if !form.is_reduced() {
                return Err(FormError::NotReduced.into());
            }
        } else if bytes[0] & (IDENTITY | GENERATOR) != 0 {
            form.reduce();
            return Ok(form);
        }
        if write(&a, &b, d.bits()).as_deref() != Some(bytes) {
            return Err(DecodeError::NotCanonical);
        }
        form.reduce();
        Ok(form)
    }
}
