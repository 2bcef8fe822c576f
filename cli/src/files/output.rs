//! Outputs: files, and standard output for `-`.
#![forbid(unsafe_code)]

use std::fs;
use std::io::{self, IoSlice, Write};
use std::os::fd::AsFd;
use std::path::Path;

use lanework_study::Failure;

use super::draft::Draft;
use super::{Access, is_stream, own, widen};
use crate::{signals, sys};

/// An output of any size; a file appears in its place only once it is complete.
pub(crate) struct Sink<'a> {
    path: &'a Path,
    place: Place,
    force: bool,
}

enum Place {
    /// Standard output. Written bytes cannot be taken back.
    Standard(fs::File),
    /// A device, a pipe or a socket. It is opened at the first byte, since one reader may wait for two pipes in turn.
    Device(Option<fs::File>),
    File(Draft),
}

impl<'a> Sink<'a> {
    /// Opens an output, and refuses one that could not be written at the end. An existing file is replaced only with `force`.
    pub(crate) fn create(path: &'a Path, access: Access, force: bool) -> Result<Sink<'a>, Failure> {
        Ok(Sink { path, place: place(path, access, force)?, force })
    }

    /// Why writing failed, as a failure; a reader that stopped early ends the command quietly instead.
    pub(crate) fn failed(&self, e: &io::Error) -> Failure {
        match &self.place {
            Place::File(_) => unwritable(self.path, e),
            _ if e.kind() == io::ErrorKind::BrokenPipe => signals::exit(crate::ui::CLOSED_PIPE),
            Place::Standard(_) => Failure::input(format!("standard output: {e}")),
            Place::Device(_) => Failure::file(self.path, e),
        }
    }

    /// Puts a complete file in its place; with `sync`, not before it is on disk.
    pub(crate) fn commit(self, sync: bool) -> Result<(), Failure> {
        let Place::File(mut draft) = self.place else { return Ok(()) };
        if sync {
            draft.file().sync_all().map_err(|e| unwritable(self.path, &e))?;
        }
        Draft::place_all(vec![draft], self.force).map_err(|(_, e)| unplaced(self.path, &e))
    }

    /// Writes all bytes, and puts a file in its place once it is on disk.
    pub(crate) fn put(self, bytes: &[u8]) -> Result<(), Failure> {
        put_all(vec![(self, bytes)])
    }

    fn fill(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.write_all(bytes).map_err(|e| self.failed(&e))?;
        match &mut self.place {
            Place::File(draft) => draft.file().sync_all().map_err(|e| unwritable(self.path, &e)),
            _ => Ok(()),
        }
    }
}

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.place.file(self.path)?.write(bytes)
    }

    fn write_vectored(&mut self, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
        self.place.file(self.path)?.write_vectored(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        // Nothing is buffered.
        Ok(())
    }
}

impl Place {
    fn file(&mut self, path: &Path) -> io::Result<&mut fs::File> {
        match self {
            Place::Standard(file) => Ok(file),
            Place::File(draft) => Ok(draft.file()),
            Place::Device(Some(file)) => Ok(file),
            Place::Device(closed) => Ok(closed.insert(fs::OpenOptions::new().write(true).open(path)?)),
        }
    }
}

/// Writes several outputs, then puts the files among them in their places: all of them, or none. Streams are written after all
/// files are on disk and before any is in its place.
pub(crate) fn put_all(mut outputs: Vec<(Sink<'_>, &[u8])>) -> Result<(), Failure> {
    for to_files in [true, false] {
        for (sink, bytes) in &mut outputs {
            if matches!(sink.place, Place::File(_)) == to_files {
                sink.fill(bytes)?;
            }
        }
    }
    let force = outputs.iter().all(|(sink, _)| sink.force);
    let (mut drafts, mut paths) = (Vec::new(), Vec::new());
    for (sink, _) in outputs {
        if let Place::File(draft) = sink.place {
            drafts.push(draft);
            paths.push(sink.path);
        }
    }
    Draft::place_all(drafts, force).map_err(|(at, e)| unplaced(paths[at], &e))
}

fn place(path: &Path, access: Access, force: bool) -> Result<Place, Failure> {
    if is_stream(path) {
        return standard_output().map(Place::Standard);
    }
    let found = fs::metadata(path);
    let names_directory = path.as_os_str().as_encoded_bytes().ends_with(b"/");
    if names_directory || found.as_ref().is_ok_and(fs::Metadata::is_dir) {
        return Err(Failure::file(path, "is a directory").help("name a file in it"));
    }
    if found.is_ok_and(|found| !found.is_file()) {
        rustix::fs::access(path, rustix::fs::Access::WRITE_OK)
            .map_err(|e| Failure::file(path, io::Error::from(e)))?;
        return Ok(Place::Device(None));
    }
    if !force && path.symlink_metadata().is_ok() {
        return Err(exists(path));
    }
    // A link stays a link: its target is replaced. A dangling link is replaced itself.
    let target =
        if force { fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()) } else { path.to_owned() };
    let folder = target.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        let folder = lanework_study::text::shown(folder);
        return Err(Failure::file(path, format!("no directory {folder}")).help(format!("mkdir -p {folder}")));
    }
    // From here on, a signal that ends the command has something to undo.
    signals::listen()?;
    Draft::new(&target, access).map(Place::File).map_err(|e| unwritable(path, &e))
}

/// Refuses a standard output that was closed: the result would be lost silently.
pub(crate) fn needs_standard_output() -> Result<(), Failure> {
    if sys::stdout_was_closed() {
        return Err(Failure::input("standard output: closed, so the result would be lost")
            .help("name a file, or send it to /dev/null"));
    }
    Ok(())
}

/// Standard output as a file: Rust's own searches its input for line ends, and buffers the rest.
fn standard_output() -> Result<fs::File, Failure> {
    needs_standard_output()?;
    let failed = |e: io::Error| Failure::input(format!("standard output: {e}"));
    let mut standard = io::stdout();
    standard.flush().map_err(failed)?;
    let file = own(standard.as_fd()).map_err(failed)?;
    widen(&file);
    Ok(file)
}

/// Writes one file whole or not at all; an existing one is replaced only with `force`. `-` is standard output.
pub(crate) fn write(path: &Path, bytes: &[u8], access: Access, force: bool) -> Result<(), Failure> {
    Sink::create(path, access, force)?.put(bytes)
}

/// Refuses early what [`write()`] would refuse late, for outputs that are too many to keep open.
pub(crate) fn may_write(path: &Path, force: bool) -> Result<(), Failure> {
    place(path, Access::Public, force).map(drop)
}

/// The system's reason by its kind, without the error number.
fn unwritable(path: &Path, e: &io::Error) -> Failure {
    Failure::file(path, format!("cannot be written: {}", e.kind()))
}

fn unplaced(path: &Path, e: &io::Error) -> Failure {
    if e.kind() == io::ErrorKind::AlreadyExists { exists(path) } else { unwritable(path, e) }
}

fn exists(path: &Path) -> Failure {
    Failure::file(path, "already exists").help("--force replaces it")
}
