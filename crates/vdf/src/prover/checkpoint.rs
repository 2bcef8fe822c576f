//! A file that only grows, from which a computation continues after its process ended. `CHECKPOINT.md` has its format.
#![forbid(unsafe_code)]

mod preamble;
mod read;
mod write;

use core::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::Task;
use super::plan::Part;
use crate::form::packed::PackedForms;
use crate::form::{Form, FormError};

pub(crate) use preamble::Reader;
pub(crate) use write::{Writer, has_name};

/// The first bytes of every checkpoint.
const MAGIC: &[u8; 8] = b"lanevdf\n";
/// The version of everything after them.
const VERSION: u32 = 1;
/// Bytes of a record's header: kind, three zeros, the payload's length, and a check of these.
const HEADER: usize = 16;
/// Bytes of the check after a payload.
const CHECK: usize = 16;

/// A record's kind: the chain's position.
const POSITION: u8 = 1;
/// A record's kind: a segment's proof.
const SEGMENT: u8 = 2;

/// Why a checkpoint cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The file cannot be opened, read or written.
    File(io::Error),
    /// Another process is using it.
    Busy,
    /// The file is something else.
    NotACheckpoint,
    /// It was written by a later version.
    Version {
        /// The version in the file.
        got: u32,
    },
    /// It belongs to another computation.
    Foreign(Difference),
    /// Bytes were changed after they had been written.
    Damaged {
        /// The beginning of the changed record.
        at: u64,
    },
    /// A form in it does not have the discriminant.
    Form {
        /// The beginning of its record.
        at: u64,
        /// What is wrong.
        why: FormError,
    },
}

/// A difference between a checkpoint's computation and the caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Difference {
    /// One is an evaluation, the other a proof.
    Purpose,
    /// The discriminant.
    Discriminant,
    /// The form that the chain starts from.
    Input,
    /// The number of squarings.
    Iterations,
    /// The segments' lengths.
    Segments,
    /// The group, the form that the chain starts from, or the results to be proved.
    Claims,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Difference::Purpose => "it is for a proof, not an evaluation, or the other way round",
            Difference::Discriminant => "the discriminant differs",
            Difference::Input => "the input differs",
            Difference::Iterations => "the number of squarings differs",
            Difference::Segments => "the segments differ",
            Difference::Claims => "the chain or the results to be proved differ",
        })
    }
}

impl fmt::Display for CheckpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckpointError::File(e) => e.fmt(f),
            CheckpointError::Busy => f.write_str("another process is using it"),
            CheckpointError::NotACheckpoint => f.write_str("this file is no checkpoint"),
            CheckpointError::Version { got } => {
                write!(f, "it has version {got}; this program reads {VERSION}")
            }
            CheckpointError::Foreign(what) => write!(f, "it belongs to another computation: {what}"),
            CheckpointError::Damaged { at } => write!(f, "its bytes from {at} on have been changed"),
            CheckpointError::Form { at, why } => write!(f, "in the record at byte {at}: {why}"),
        }
    }
}

impl core::error::Error for CheckpointError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            CheckpointError::File(e) => Some(e),
            CheckpointError::Form { why, .. } => Some(why),
            _ => None,
        }
    }
}

impl From<io::Error> for CheckpointError {
    fn from(e: io::Error) -> CheckpointError {
        CheckpointError::File(e)
    }
}

/// The hash of everything before a record. Each record's checks begin with it, so records cannot be left out, moved or
/// taken from another file.
#[derive(Clone, Debug)]
struct Link([u8; 32]);

impl Link {
    fn of_preamble(bytes: &[u8]) -> Link {
        Link(Sha256::digest(bytes).into())
    }

    fn of_header(&self, header: &[u8]) -> [u8; 8] {
        let hash: [u8; 32] = Sha256::new().chain_update(self.0).chain_update(header).finalize().into();
        let mut out = [0; 8];
        out.copy_from_slice(&hash[..8]);
        out
    }

    fn next(&self, header: &[u8], payload: &[u8]) -> Link {
        Link(Sha256::new().chain_update(self.0).chain_update(header).chain_update(payload).finalize().into())
    }

    fn check(&self) -> &[u8] {
        &self.0[..CHECK]
    }
}

/// A segment with data in a checkpoint.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// The kept forms; none if it is proved.
    pub(crate) kept: PackedForms,
    /// Its squarings done so far.
    pub(crate) at: u64,
    /// The form reached.
    pub(crate) form: Form,
    /// Its proof.
    pub(crate) proof: Option<Form>,
}

/// The content of a checkpoint.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// The computation's segments, with its first parameters. An evaluation has one, with unused parameters.
    pub(crate) parts: Vec<Part>,
    /// The data of the first of them.
    pub(crate) known: Vec<Known>,
    /// General squarings.
    pub(crate) slow: u64,
}

impl State {
    /// The state before the first record.
    pub(crate) fn new(parts: Vec<Part>) -> State {
        State { parts, known: Vec::new(), slow: 0 }
    }

    /// Where the part before this one ended.
    pub(crate) fn end_before(&self, index: usize) -> Option<&Form> {
        self.known.get(index.checked_sub(1)?).map(|known| &known.form)
    }

    /// Squarings done.
    pub(crate) fn done(&self) -> u64 {
        self.known.iter().map(|known| known.at).sum()
    }
}

/// Opens or makes a checkpoint: its content, and a writer for more. A torn end is cut off.
///
/// # Errors
/// [`CheckpointError`].
pub(crate) fn open(
    path: &Path,
    task: &Task,
    proving: bool,
    parts: Vec<Part>,
) -> Result<(State, Writer), CheckpointError> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    lock(&file)?;
    let (state, link, end) = match read::read(&file, task, proving, &parts)? {
        Some(found) => found,
        None => begin(&file, path, task, proving, parts)?,
    };
    file.set_len(end)?;
    Ok((state, Writer::start(file, path.to_owned(), end, link)?))
}

/// Keeps other processes from using the file.
pub(crate) fn lock(file: &File) -> Result<(), CheckpointError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(CheckpointError::Busy),
        // The file system has no locks.
        Err(TryLockError::Error(e)) if e.kind() == io::ErrorKind::Unsupported => Ok(()),
        Err(TryLockError::Error(e)) => Err(e.into()),
    }
}

/// Makes the file's name survive a loss of power, where directories can be opened.
pub(crate) fn sync_name(path: &Path) {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if let (false, Ok(folder)) = (cfg!(test), File::open(folder)) {
        let _ = folder.sync_all();
    }
}

/// Writes the preamble of a new file.
fn begin(
    file: &File,
    path: &Path,
    task: &Task,
    proving: bool,
    parts: Vec<Part>,
) -> Result<(State, Link, u64), CheckpointError> {
    let bytes = preamble::bytes(task, proving, &parts);
    file.set_len(0)?;
    let mut to = file;
    io::Seek::rewind(&mut to)?;
    io::Write::write_all(&mut to, &bytes)?;
    if !cfg!(test) {
        file.sync_all()?;
    }
    sync_name(path);
    Ok((State::new(parts), Link::of_preamble(&bytes), bytes.len() as u64))
}

#[cfg(test)]
mod tests;
