//! Whether a shared library is all there, before the loader maps it.
//!
//! The loader of Linux maps whatever segments the file's header announces, and a process that touches
//! a page beyond the file's end is killed by a signal that nothing can turn into an error. A card made
//! from a file that was already cut short would not notice; the header does.
#![forbid(unsafe_code)]

/// The type of a program header whose segment is mapped.
const LOAD: u64 = 1;

/// Checks that every segment the header announces lies within `file`.
///
/// What is not a 64-bit little-endian ELF file is left to the loader, which refuses it by itself.
///
/// # Errors
/// A sentence saying which part lies beyond the end.
pub(crate) fn complete(file: &[u8]) -> Result<(), String> {
    if file.get(..6) != Some(b"\x7fELF\x02\x01") {
        return Ok(());
    }
    let header = |offset, bytes| number(file, offset, bytes).ok_or("its header is cut short".to_owned());
    let table = header(32, 8)?;
    let entry = header(54, 2)?;
    let count = header(56, 2)?;
    for index in 0..count {
        let offset = table.checked_add(index * entry).and_then(|offset| usize::try_from(offset).ok());
        let field = |within: usize, bytes| number(file, offset?.checked_add(within)?, bytes);
        let (Some(kind), Some(start), Some(bytes)) = (field(0, 4), field(8, 8), field(32, 8)) else {
            return Err(format!("program header {index} lies beyond its end"));
        };
        let end = start.checked_add(bytes);
        if kind == LOAD && end.is_none_or(|end| end > file.len() as u64) {
            return Err(format!(
                "a segment of {bytes} bytes at {start} lies beyond its end at {}: it is cut short",
                file.len()
            ));
        }
    }
    Ok(())
}

/// The little-endian number of `bytes` bytes, at most eight, at `offset`.
fn number(file: &[u8], offset: usize, bytes: usize) -> Option<u64> {
    let field = file.get(offset..offset.checked_add(bytes)?)?;
    let mut whole = [0; 8];
    whole[..bytes].copy_from_slice(field);
    Some(u64::from_le_bytes(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header with one segment of `bytes` bytes at `start`, and the file padded to `length`.
    fn file(start: u64, bytes: u64, length: usize) -> Vec<u8> {
        let mut file = vec![0; 120];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[32..40].copy_from_slice(&64_u64.to_le_bytes());
        file[54] = 56;
        file[56] = 1;
        file[64] = LOAD as u8;
        file[72..80].copy_from_slice(&start.to_le_bytes());
        file[96..104].copy_from_slice(&bytes.to_le_bytes());
        file.resize(length, 0);
        file
    }

    #[test]
    fn a_segment_must_lie_within_the_file() {
        complete(&file(0, 4096, 4096)).expect("it just fits");
        for (start, bytes, length) in [(0, 4096, 4095), (4000, 200, 4096), (u64::MAX, 2, 4096), (0, 1, 100)] {
            assert!(complete(&file(start, bytes, length)).is_err(), "{start} {bytes} {length}");
        }
        assert!(complete(&file(0, 64, 4096)[..20]).is_err());
        complete(b"anything else").expect("is not judged here");
    }
}
