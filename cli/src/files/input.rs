//! Inputs: files, and standard input for `-`.
#![forbid(unsafe_code)]

use std::fs;
use std::io::{self, Read, Seek};
use std::os::fd::AsFd;
use std::path::Path;

use lanework_race::files::read_at_most;
use lanework_study::Failure;
use zeroize::{Zeroize, Zeroizing};

use super::{is_stream, own, widen};
use crate::sys;

/// An input of any size, read piece by piece: a file, or standard input for `-`.
pub(crate) struct Source {
    file: fs::File,
    name: String,
    length: Option<u64>,
}

impl Source {
    pub(crate) fn open(path: &Path) -> Result<Source, Failure> {
        if is_stream(path) {
            let name = "standard input".to_owned();
            if sys::stdin_was_closed() {
                return Err(Failure::input(format!("{name}: closed"))
                    .help("name a file, or redirect it from /dev/null"));
            }
            // Not through Rust's standard input, whose buffer is not wiped.
            let file = own(io::stdin().as_fd()).map_err(|e| Failure::input(format!("{name}: {e}")))?;
            widen(&file);
            let length = regular(&file);
            return Ok(Source { file, name, length });
        }
        let file = fs::File::open(path).map_err(|e| Failure::file(path, e))?;
        if file.metadata().is_ok_and(|m| m.is_dir()) {
            return Err(Failure::file(path, "is a directory").help("name a file"));
        }
        let length = regular(&file);
        Ok(Source { file, name: lanework_study::text::shown(path), length })
    }

    pub(crate) fn file(&mut self) -> &mut fs::File {
        &mut self.file
    }

    /// Its name in messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The number of bytes, if the system knows it.
    pub(crate) fn length(&self) -> Option<u64> {
        self.length
    }
}

/// The bytes left in a file. Another program may have read part of standard input before.
fn regular(mut file: &fs::File) -> Option<u64> {
    let length = file.metadata().ok().filter(fs::Metadata::is_file).map(|m| m.len())?;
    Some(length.saturating_sub(file.stream_position().ok()?))
}

/// All bytes of a file, or of standard input for `-`, if there are at most `limit`.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Vec<u8>, Failure> {
    let mut source = Source::open(path)?;
    read_at_most(source.file(), limit).map_err(|e| Failure::input(format!("{}: {e}", source.name())))
}

/// The bytes of a small file, such as a key; larger ones are refused before they are read.
pub(crate) fn read_small(path: &Path, limit: u64) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let mut source = Source::open(path)?;
    let name = source.name().to_owned();
    if source.length().is_some_and(|length| length > limit) {
        return Err(too_long(&name, limit));
    }
    // Room for all of it at once, since a growing vector leaves copies behind. System files report a length of 0.
    let expected = source.length().filter(|&length| length > 0).unwrap_or(limit) as usize;
    let mut bytes = Zeroizing::new(vec![0; expected + 1]);
    let mut filled = 0;
    loop {
        match source.file().read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(Failure::input(format!("{name}: {e}"))),
        }
    }
    if filled as u64 > limit {
        return Err(too_long(&name, limit));
    }
    if filled > expected {
        return Err(Failure::input(format!("{name}: grew while it was read")).help("try again"));
    }
    bytes.truncate(filled);
    Ok(bytes)
}

fn too_long(name: &str, limit: u64) -> Failure {
    Failure::input(format!("{name}: longer than the {limit} bytes allowed for such a file"))
        .help("check that it is the right file; a list can be divided")
}

/// The text of a small file, such as a key; larger ones are refused before they are read.
pub(crate) fn read_text(path: &Path, limit: u64) -> Result<Zeroizing<String>, Failure> {
    let mut bytes = read_small(path, limit)?;
    // The same memory, under another type.
    String::from_utf8(std::mem::take(&mut *bytes)).map(Zeroizing::new).map_err(|e| {
        let failure = Failure::file(path, format!("not readable as text: {}", e.utf8_error()));
        e.into_bytes().zeroize();
        failure
    })
}
