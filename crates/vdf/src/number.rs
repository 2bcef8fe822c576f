//! Whole numbers as text: decimal, or hexadecimal behind `0x`.
#![forbid(unsafe_code)]

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use lanework_integer::{Int, Uint};

use crate::form::LIMBS;

/// Bits of the longest number that is read.
const BITS: usize = 2048;
/// The most decimal digits of such a number.
const DECIMAL_DIGITS: usize = 617;
/// The most hexadecimal digits of such a number.
const HEXADECIMAL_DIGITS: usize = 512;
/// The largest power of ten in a limb, and its digits.
const CHUNK: (u64, usize) = (10_000_000_000_000_000_000, 19);

/// Why a text is not accepted as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NumberError {
    /// There are no digits.
    Empty,
    /// A character that is not a digit.
    NotADigit {
        /// Its place, in bytes from 0.
        at: usize,
    },
    /// A decimal number with a leading 0, which other programs read as octal.
    LeadingZero,
    /// More bits than the longest discriminant has, in no more digits.
    TooLarge {
        /// The number's bits.
        bits: usize,
    },
    /// More digits than the longest discriminant has.
    TooLong {
        /// The text's digits.
        digits: usize,
        /// The most digits allowed.
        most: usize,
    },
}

impl fmt::Display for NumberError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NumberError::Empty => f.write_str("no digits"),
            NumberError::NotADigit { at } => write!(f, "character {} is no digit", at + 1),
            NumberError::LeadingZero => {
                f.write_str("a decimal number that begins with 0; hexadecimal ones begin with 0x")
            }
            NumberError::TooLarge { bits } => write!(f, "a number of {bits} bits; at most {BITS} are read"),
            NumberError::TooLong { digits, most } => {
                write!(f, "a number of {digits} digits; at most {most} are read")
            }
        }
    }
}

impl core::error::Error for NumberError {}

/// Parses an optional `-`, then decimal digits, or `0x` and hexadecimal ones. Blanks and other characters are errors.
///
/// # Errors
/// The fault of the text. The work is bounded for any text.
pub fn parse(text: &[u8]) -> Result<Int<LIMBS>, NumberError> {
    let (negative, rest) = text.strip_prefix(b"-").map_or((false, text), |rest| (true, rest));
    let at = text.len() - rest.len();
    let magnitude = match rest.strip_prefix(b"0x") {
        Some(digits) => hexadecimal(digits, at + 2)?,
        None => decimal(rest, at)?,
    };
    if magnitude.bits() > BITS {
        return Err(NumberError::TooLarge { bits: magnitude.bits() });
    }
    Ok(Int::new(negative, magnitude))
}

/// The values of digits that begin at `at` in a longer text.
fn values(digits: &[u8], at: usize, radix: u32, most: usize) -> Result<Vec<u64>, NumberError> {
    if digits.is_empty() {
        return Err(NumberError::Empty);
    }
    if digits.len() > most {
        return Err(NumberError::TooLong { digits: digits.len(), most });
    }
    let value = |(i, &digit): (usize, &u8)| {
        char::from(digit).to_digit(radix).map(u64::from).ok_or(NumberError::NotADigit { at: at + i })
    };
    digits.iter().enumerate().map(value).collect()
}

fn hexadecimal(digits: &[u8], at: usize) -> Result<Uint<LIMBS>, NumberError> {
    let mut out = Uint::ZERO;
    for (i, value) in values(digits, at, 16, HEXADECIMAL_DIGITS)?.into_iter().rev().enumerate() {
        out.limbs_mut()[i / 16] |= value << (4 * (i % 16));
    }
    Ok(out)
}

fn decimal(digits: &[u8], at: usize) -> Result<Uint<LIMBS>, NumberError> {
    let values = values(digits, at, 10, DECIMAL_DIGITS)?;
    if values[0] == 0 && values.len() > 1 {
        return Err(NumberError::LeadingZero);
    }
    let (mut out, mut rest) = (Uint::<LIMBS>::ZERO, values.as_slice());
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at((rest.len() - 1) % CHUNK.1 + 1);
        let value = chunk.iter().fold(0, |value, digit| 10 * value + digit);
        // All chunks but the first are whole.
        let scaled: Uint<LIMBS> = out.times(&Uint::<1>::from_u64(CHUNK.0));
        out = scaled.plus(&Uint::from_u64(value));
        rest = after;
    }
    Ok(out)
}

/// The number in decimal digits, as chiavdf and the timelord write discriminants.
#[must_use]
pub fn to_decimal(number: &Int<LIMBS>) -> String {
    let mut chunks = Vec::new();
    let mut rest = *number.magnitude();
    while !rest.is_zero() {
        let (quotient, chunk): (_, Uint<1>) = rest.div_rem(&Uint::from_u64(CHUNK.0));
        chunks.push(chunk.limbs()[0]);
        rest = quotient;
    }
    let sign = if number.is_negative() { "-" } else { "" };
    let mut out = format!("{sign}{}", chunks.pop().unwrap_or(0));
    while let Some(chunk) = chunks.pop() {
        out.push_str(&format!("{chunk:019}"));
    }
    out
}

/// The number in hexadecimal digits behind `0x`, in a form that [`parse`] reads.
#[must_use]
pub fn to_hexadecimal(number: &Int<LIMBS>) -> String {
    format!("{}0x{:x}", if number.is_negative() { "-" } else { "" }, number.magnitude())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_are_written() {
        let longest = (Uint::<LIMBS>::ONE << 2048).minus(&Uint::ONE);
        let mut numbers =
            vec![Int::new(false, longest), Int::new(true, longest), Int::ZERO, Int::from_i64(-1)];
        for shift in (0..200).step_by(if cfg!(miri) { 97 } else { 1 }) {
            // Powers of two and of ten, and their neighbours: where chunks begin and end.
            let power = (0..shift).fold(Uint::<LIMBS>::ONE, |power, _| power.times(&Uint::<1>::from_u64(10)));
            for number in [power, Uint::ONE << (10 * shift), (Uint::ONE << shift).plus(&Uint::from_u64(5))] {
                numbers.extend([Int::new(true, number), Int::new(false, number.minus(&Uint::ONE))]);
            }
        }
        for number in numbers {
            for text in [to_decimal(&number), to_hexadecimal(&number)] {
                assert_eq!(parse(text.as_bytes()), Ok(number), "{text}");
            }
        }
        let number = parse(b"-340282366920938463463374607431768211456");
        assert_eq!(number, Ok(Int::new(true, Uint::ONE << 128)));
        assert_eq!(to_decimal(&Int::new(true, Uint::ONE << 128)), "-340282366920938463463374607431768211456");
        assert_eq!(to_hexadecimal(&Int::from_i64(-255)), "-0xff");
    }

    #[test]
    fn anything_else_is_refused() {
        use NumberError as E;
        for (text, error) in [
            ("", E::Empty),
            ("-", E::Empty),
            ("-0x", E::Empty),
            ("hello", E::NotADigit { at: 0 }),
            ("-12 ", E::NotADigit { at: 3 }),
            ("--1", E::NotADigit { at: 1 }),
            ("+1", E::NotADigit { at: 0 }),
            ("0X12", E::NotADigit { at: 1 }),
            ("0x1g", E::NotADigit { at: 3 }),
            ("ff", E::NotADigit { at: 0 }),
            ("1a", E::NotADigit { at: 1 }),
            ("-07", E::LeadingZero),
            ("1\u{661}", E::NotADigit { at: 1 }),
        ] {
            assert_eq!(parse(text.as_bytes()), Err(error), "{text}");
        }
        let digits = [b'9'; 618];
        assert_eq!(parse(&digits), Err(E::TooLong { digits: 618, most: 617 }));
        // A number read in one base can be written in the other, and must be readable there too.
        assert_eq!(parse(&digits[1..]), Err(E::TooLarge { bits: 2050 }));
        let hexadecimal = [b"0x", &[b'd'; 513][..]].concat();
        assert_eq!(parse(&hexadecimal), Err(E::TooLong { digits: 513, most: 512 }));
        assert!(parse(&hexadecimal[..514]).is_ok());
    }
}
