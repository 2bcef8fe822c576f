//! The function, file and line of an address.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use addr2line::Loader;
use object::{Object, ObjectSegment};

use crate::program::Program;

/// One of the functions that an instruction belongs to: the innermost has been inlined into the next, and so on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its name.
    pub function: String,
    /// The file's name without folders, and the line.
    pub line: Option<(String, u32)>,
}

/// The place of an instruction in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its address in this process.
    pub address: u64,
    /// The innermost function first; empty without symbols.
    pub frames: Vec<Frame>,
    /// The file of the code, without folders.
    pub module: String,
}

impl Place {
    /// Whether the name of one of the functions contains this.
    #[must_use]
    pub fn is_in(&self, function: &str) -> bool {
        self.frames.iter().any(|frame| frame.function.contains(function))
    }
}

impl core::fmt::Display for Place {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for (i, frame) in self.frames.iter().enumerate() {
            f.write_str(if i == 0 { "" } else { ", in " })?;
            f.write_str(&frame.function)?;
            if let Some((file, line)) = &frame.line {
                write!(f, " ({file}:{line})")?;
            }
        }
        if self.frames.is_empty() {
            write!(f, "{:#x} of {}", self.address, self.module)?;
        }
        Ok(())
    }
}

/// The debugging information of a traced program, read at the first use.
pub struct Symbols {
    program: Program,
    files: HashMap<PathBuf, Option<(Loader, Vec<Segment>)>>,
}

impl core::fmt::Debug for Symbols {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Symbols").finish_non_exhaustive()
    }
}

/// Offsets in a file, and their addresses in its tables.
#[derive(Clone, Copy, Debug)]
struct Segment {
    offset: u64,
    length: u64,
    address: u64,
}

fn load(file: &Path) -> Option<(Loader, Vec<Segment>)> {
    let bytes = std::fs::read(file).ok()?;
    let parsed = object::File::parse(&*bytes).ok()?;
    let segment = |segment: object::Segment<'_, '_>| {
        let (offset, length) = segment.file_range();
        Segment { offset, length, address: segment.address() }
    };
    let segments = parsed.segments().map(segment).collect();
    Some((Loader::new(file).ok()?, segments))
}

impl Symbols {
    pub(crate) fn new(program: Program) -> Symbols {
        Symbols { program, files: HashMap::new() }
    }

    /// The place of an address in the source.
    pub fn place(&mut self, address: u64) -> Place {
        let mut place = Place { address, frames: Vec::new(), module: "no file".into() };
        let Some(piece) = self.program.piece(address) else { return place };
        let Some(file) = piece.file.clone() else { return place };
        place.module = base(&file.to_string_lossy());
        let offset = address - piece.from + piece.offset;
        let Some((loader, segments)) = self.files.entry(file).or_insert_with_key(|file| load(file)) else {
            return place;
        };
        let Some(segment) = segments.iter().find(|s| (s.offset..s.offset + s.length).contains(&offset))
        else {
            return place;
        };
        let known = offset - segment.offset + segment.address;
        if let Ok(mut frames) = loader.find_frames(known) {
            while let Ok(Some(frame)) = frames.next() {
                let Some(function) = frame.function.as_ref().and_then(|f| f.demangle().ok()) else {
                    continue;
                };
                let line = frame.location.and_then(|l| Some((base(l.file?), l.line?)));
                place.frames.push(Frame { function: short(&function), line });
            }
        }
        if place.frames.is_empty()
            && let Some(symbol) = loader.find_symbol(known)
        {
            let function = addr2line::demangle_auto(symbol.into(), None);
            place.frames.push(Frame { function: short(&function), line: None });
        }
        place
    }
}

fn base(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_string()
}

/// A name without the hash that compilers append to it.
fn short(name: &str) -> String {
    match name.rsplit_once("::h") {
        Some((name, hash)) if hash.len() == 16 => name.to_string(),
        _ => name.to_string(),
    }
}
