//! Whether a shared library is all there, before the loader maps it.
//!
//! The loader of Linux maps whatever segments the file's header announces, and a process that touches
//! a page beyond the file's end is killed by a signal that nothing can turn into an error. A card made
//! from a file that was already cut short would not notice; the header does.
#![forbid(unsafe_code)]

use object::elf::{FileHeader64, PT_LOAD, ProgramHeader64};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{LittleEndian, read};

/// Checks that every segment the header announces lies within `file`.
///
/// A file that is not 64-bit little-endian ELF is left to the loader, which refuses it.
///
/// # Errors
/// A sentence saying which part lies beyond the end.
pub(crate) fn complete(file: &[u8]) -> Result<(), String> {
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return Ok(());
    }
    let segments = segments(file)
        .map_err(|e| format!("its headers cannot be read ({e}): it is cut short or damaged"))?;
    let mut mapped = segments.iter().filter(|segment| segment.p_type(LittleEndian) == PT_LOAD);
    match mapped.find(|segment| segment.data(LittleEndian, file).is_err()) {
        Some(segment) => Err(format!(
            "a segment of {} bytes at {} lies beyond its end at {}: it is cut short",
            segment.p_filesz(LittleEndian),
            segment.p_offset(LittleEndian),
            file.len()
        )),
        None => Ok(()),
    }
}

fn segments(file: &[u8]) -> read::Result<&[ProgramHeader64<LittleEndian>]> {
    FileHeader64::<LittleEndian>::parse(file)?.program_headers(LittleEndian, file)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header with one segment of `bytes` bytes at `start`, and the file padded to `length`.
    fn file(start: u64, bytes: u64, length: usize) -> Vec<u8> {
        let mut file = vec![0; 120];
        file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        file[32..40].copy_from_slice(&64_u64.to_le_bytes());
        file[54] = 56;
        file[56] = 1;
        file[64] = PT_LOAD as u8;
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

    #[test]
    fn a_real_file_is_whole_until_it_is_cut() {
        let whole = std::fs::read(std::env::current_exe().expect("this test")).expect("its file");
        complete(&whole).expect("nothing is missing");
        for part in [64, 1000, 5000] {
            assert!(complete(&whole[..part]).is_err(), "{part} bytes");
        }
    }
}
