//! The traced program's own memory map: its code, and the files of it.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use crate::Unavailable;
use crate::sys;

/// A mapped piece of a file with code.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) offset: u64,
    pub(crate) file: Option<PathBuf>,
}

/// All code of this process.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) pieces: Vec<Piece>,
}

impl Program {
    /// Reads the memory map of this process.
    pub(crate) fn read() -> Result<Program, Unavailable> {
        let maps = std::fs::read_to_string("/proc/self/maps")
            .map_err(|error| Unavailable { why: format!("/proc/self/maps: {error}") })?;
        Ok(Program { pieces: maps.lines().filter_map(piece).collect() })
    }

    /// The code at an address, to the end of its piece.
    pub(crate) fn code(&self, address: u64) -> &'static [u8] {
        match self.piece(address) {
            Some(piece) => sys::code(address, piece.to.min(address + 15)),
            None => &[],
        }
    }

    /// The mapped file of an address.
    pub(crate) fn piece(&self, address: u64) -> Option<&Piece> {
        self.pieces.iter().find(|piece| (piece.from..piece.to).contains(&address))
    }
}

/// A line of the map, if it is of readable code.
fn piece(line: &str) -> Option<Piece> {
    let mut words = line.split_ascii_whitespace();
    let (from, to) = words.next()?.split_once('-')?;
    let rights = words.next()?;
    let offset = words.next()?;
    let hexadecimal = |digits| u64::from_str_radix(digits, 16).ok();
    if !(rights.starts_with('r') && rights.contains('x')) || rights.ends_with('s') {
        return None;
    }
    let file = words.nth(2).filter(|name| name.starts_with('/')).map(PathBuf::from);
    Some(Piece { from: hexadecimal(from)?, to: hexadecimal(to)?, offset: hexadecimal(offset)?, file })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_is_read() {
        let line = "55d0-65d0 r-xp 00001000 fe:00 123 /a/file";
        let found = piece(line).unwrap();
        assert_eq!((found.from, found.to, found.offset), (0x55d0, 0x65d0, 0x1000));
        assert_eq!(found.file.as_deref(), Some(std::path::Path::new("/a/file")));
        assert!(piece("55d0-65d0 rw-p 00001000 fe:00 123 /a/file").is_none());
        assert!(piece("100000000-200000000 rwxs 0 00:01 1 /dev/zero (deleted)").is_none());
        let here = the_map_is_read as *const () as u64;
        assert!(Program::read().unwrap().code(here).len() == 15);
    }
}
