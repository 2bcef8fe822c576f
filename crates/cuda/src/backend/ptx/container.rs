//! The PTX text of a program that ships: a fat binary, or the text itself.
//!
//! A fat binary is a header and entries, all little-endian; no document of NVIDIA describes it, so every field that is read here
//! is checked, and everything unknown is refused. nvcc 13.0 compresses an entry by Zstandard.
#![forbid(unsafe_code)]

use core::fmt;
use std::io::Read;

use ruzstd::decoding::StreamingDecoder;

const MAGIC: u32 = 0xba55_ed50;
const HEADER: usize = 16;
/// The smallest header of an entry, which has all fields that are read here.
const ENTRY: usize = 0x40;
/// An entry's kind: PTX. Machine code is 2.
const PTX: u16 = 1;
const CUBIN: u16 = 2;
/// Flags of an entry.
const ZSTANDARD: u64 = 1 << 15;
const LZ4: u64 = 1 << 13;
/// The most text that is unpacked.
const LIMIT: u64 = 256 << 20;

/// Why a container is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It ends within this part.
    Truncated(&'static str),
    /// It begins with neither a fat binary's number nor PTX.
    Unknown { magic: u32 },
    /// A field has an unexpected value.
    Field { what: &'static str, found: u64 },
    /// There is no PTX in it.
    NoPtx,
    /// More than one entry has PTX.
    Several,
    /// The compressed text cannot be unpacked.
    Packed(String),
    /// The text has another length than its entry says.
    Length { declared: u64, found: u64 },
    /// The text is not UTF-8.
    Text,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Truncated(what) => write!(f, "the fat binary ends within {what}"),
            Refusal::Unknown { magic } => {
                write!(f, "it begins with {magic:#010x}, neither a fat binary's number nor PTX")
            }
            Refusal::Field { what, found } => write!(f, "the fat binary's {what} is {found:#x}"),
            Refusal::NoPtx => f.write_str("the fat binary has no PTX"),
            Refusal::Several => f.write_str("the fat binary has PTX more than once"),
            Refusal::Packed(why) => write!(f, "the PTX cannot be unpacked: {why}"),
            Refusal::Length { declared, found } => {
                write!(f, "the PTX has {found} bytes, and the fat binary says {declared}")
            }
            Refusal::Text => f.write_str("the PTX is not UTF-8"),
        }
    }
}

/// A part of the file, with what it is for messages.
fn part<'a>(bytes: &'a [u8], at: usize, len: usize, what: &'static str) -> Result<&'a [u8], Refusal> {
    at.checked_add(len).and_then(|end| bytes.get(at..end)).ok_or(Refusal::Truncated(what))
}

fn number(bytes: &[u8], at: usize, len: usize, what: &'static str) -> Result<u64, Refusal> {
    Ok(part(bytes, at, len, what)?.iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte)))
}

fn length(bytes: &[u8], at: usize, len: usize, what: &'static str) -> Result<usize, Refusal> {
    let found = number(bytes, at, len, what)?;
    usize::try_from(found).map_err(|_| Refusal::Field { what, found })
}

/// The PTX in a program as it ships.
pub(crate) fn text(code: &[u8]) -> Result<String, Refusal> {
    let found = number(code, 0, 4, "its first number")?;
    if found != u64::from(MAGIC) {
        // PTX as such: text up to a zero byte.
        let text = code.split(|byte| *byte == 0).next().unwrap_or_default();
        return match core::str::from_utf8(text) {
            Ok(text) if text.contains(".version") => Ok(text.to_owned()),
            _ => Err(Refusal::Unknown { magic: found as u32 }),
        };
    }
    for (what, at, len, expected) in [("version", 4, 2, 1), ("header's size", 6, 2, HEADER as u64)] {
        let found = number(code, at, len, "its header")?;
        if found != expected {
            return Err(Refusal::Field { what, found });
        }
    }
    let entries = part(code, HEADER, length(code, 8, 8, "its header")?, "its entries")?;
    let (mut at, mut found) = (0, None);
    while at < entries.len() {
        let what = "an entry's header";
        let header = length(entries, at + 4, 4, what)?;
        if header < ENTRY {
            return Err(Refusal::Field { what: "entry's header size", found: header as u64 });
        }
        part(entries, at, header, what)?;
        let size = length(entries, at + 8, 8, what)?;
        let payload = part(entries, at + header, size, "an entry")?;
        match number(entries, at, 2, what)? as u16 {
            CUBIN => {}
            PTX if found.is_some() => return Err(Refusal::Several),
            PTX => found = Some(unpack(&entries[at..at + header], payload)?),
            kind => return Err(Refusal::Field { what: "kind of entry", found: kind.into() }),
        }
        at += header + size;
    }
    found.ok_or(Refusal::NoPtx)
}

/// The text of an entry. A payload is padded to eight bytes; its own size is in the header where it is compressed.
fn unpack(header: &[u8], payload: &[u8]) -> Result<String, Refusal> {
    let what = "an entry's header";
    let flags = number(header, 0x28, 8, what)?;
    if flags & LZ4 != 0 {
        return Err(Refusal::Packed("LZ4, which nvcc 13 no longer writes".to_owned()));
    }
    let bytes = if flags & ZSTANDARD == 0 {
        payload.to_vec()
    } else {
        let declared = number(header, 0x38, 8, what)?;
        if declared > LIMIT {
            return Err(Refusal::Field { what: "text's size", found: declared });
        }
        let packed = part(payload, 0, length(header, 0x10, 4, what)?, "the compressed text")?;
        let wrong = |why: &dyn fmt::Display| Refusal::Packed(why.to_string());
        let decoder = StreamingDecoder::new(packed).map_err(|e| wrong(&e))?;
        let mut bytes = Vec::new();
        decoder.take(LIMIT + 1).read_to_end(&mut bytes).map_err(|e| wrong(&e))?;
        if bytes.len() as u64 != declared {
            return Err(Refusal::Length { declared, found: bytes.len() as u64 });
        }
        bytes
    };
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    core::str::from_utf8(text).map(str::to_owned).map_err(|_| Refusal::Text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHIPPED: &[u8] = include_bytes!("../selftest.fatbin");

    #[test]
    fn the_shipped_text_is_found() {
        let text = text(SHIPPED).unwrap();
        assert!(text.contains(".visible .entry lanework_warps("), "{text}");
        assert_eq!(super::text(b".version 9.0\n\0anything").unwrap(), ".version 9.0\n");
    }

    #[test]
    fn every_shorter_file_is_refused() {
        // Entries of machine code follow the text: their end is missed by the size in the header.
        for len in (0..0x600).chain(SHIPPED.len() - 9..SHIPPED.len()) {
            assert!(text(&SHIPPED[..len]).is_err(), "{len} bytes");
        }
    }

    #[test]
    fn changed_fields_are_refused_by_name() {
        let text_at = 0x60;
        for (at, byte, expected) in [
            (0, 0x51, "neither a fat binary's number"),
            (4, 2, "version is 0x2"),
            (6, 17, "header's size is 0x11"),
            (0x10, 9, "kind of entry is 0x9"),
            (0x10, 2, "has no PTX"),
            (0x14, 0x3f, "entry's header size is 0x3f"),
            (0x1b, 0x7f, "ends within an entry"),
            (0x23, 0x7f, "ends within the compressed text"),
            (0x39, 0xa0, "LZ4"),
            (0x48, 0xae, "bytes, and the fat binary says"),
            (0x4c, 0x01, "text's size is"),
            (text_at, 0x29, "cannot be unpacked"),
        ] {
            let mut code = SHIPPED.to_vec();
            assert_ne!(code[at], byte, "{at:#x}");
            code[at] = byte;
            let why = text(&code).unwrap_err().to_string();
            assert!(why.contains(expected), "{at:#x}: {why}");
        }
    }
}
