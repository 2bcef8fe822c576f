//! Whole record files, compressed as gzip does (RFC 1952): `zcat` shows them.
#![forbid(unsafe_code)]

use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;

/// What every compressed file begins with.
pub(super) const MAGIC: [u8; 2] = [0x1f, 0x8b];
/// The most characters of a record, compressed or not, and of its packed samples. Stops a small file that unpacks to a large one.
pub(super) const LIMIT: u64 = 64 << 20;

fn wrong(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.into())
}

/// Equal texts give equal bytes: there is no time and no name in them.
pub(super) fn pack(text: &str) -> io::Result<Vec<u8>> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(text.as_bytes())?;
    gzip.finish()
}

/// The text of a compressed file.
pub(super) fn unpack(bytes: &[u8]) -> io::Result<String> {
    let mut text = String::new();
    let mut stream = GzDecoder::new(bytes);
    (&mut stream).take(LIMIT).read_to_string(&mut text)?;
    if text.len() as u64 == LIMIT {
        return Err(wrong(format!("it holds more than {LIMIT} characters")));
    }
    if !stream.into_inner().is_empty() {
        return Err(wrong("data follows the compressed text"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_file_is_refused() {
        let text = "a record".repeat(1000);
        let packed = pack(&text).expect("packed");
        assert!(packed.len() < 200 && unpack(&packed).expect("text") == text);
        let mut changed = packed.clone();
        *changed.last_mut().expect("a byte") ^= 1;
        let more = [packed.as_slice(), b"!"].concat();
        for bad in [&changed[..], &packed[..packed.len() - 1], &more] {
            assert!(unpack(bad).is_err());
        }
        let large = pack(&" ".repeat(LIMIT as usize)).expect("packed");
        assert!(unpack(&large).is_err_and(|e| e.to_string().contains("more than")));
    }
}
