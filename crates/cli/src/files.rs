//! Reading and writing: `-` for the standard streams, output files whole or not at all.
#![forbid(unsafe_code)]

use std::fs;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::outcome::{Failure, Outcome};

fn is_stream(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// All bytes of a file, or of standard input for `-`.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    if is_stream(path) {
        let mut bytes = Vec::new();
        io::stdin()
            .lock()
            .read_to_end(&mut bytes)
            .map_err(|e| Failure::input(format!("standard input: {e}")))?;
        return Ok(bytes);
    }
    fs::read(path).map_err(|e| Failure::file(path, e))
}

/// The bytes of a small file, a key say; larger ones are refused before they are read.
pub(crate) fn read_small(path: &Path, limit: u64) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let mut source = Source::open(path)?;
    // Room for all of it at once: a vector that grows leaves copies behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(limit as usize + 1));
    let name = source.name().to_owned();
    source
        .file()
        .take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| Failure::input(format!("{name}: {e}")))?;
    if bytes.len() as u64 > limit {
        return Err(Failure::input(format!("{name}: longer than {limit} bytes, and such a file is short")));
    }
    Ok(bytes)
}

/// The text of a small file, a key say; larger ones are refused before they are read.
pub(crate) fn read_text(path: &Path, limit: u64) -> Result<String, Failure> {
    let mut text = String::new();
    let mut source: Box<dyn Read> = if is_stream(path) {
        Box::new(io::stdin().lock())
    } else {
        Box::new(fs::File::open(path).map_err(|e| Failure::file(path, e))?)
    };
    source
        .by_ref()
        .take(limit + 1)
        .read_to_string(&mut text)
        .map_err(|e| Failure::file(path, format!("not readable as text: {e}")))?;
    if text.len() as u64 > limit {
        return Err(Failure::file(path, format!("longer than {limit} bytes; this is no key file")));
    }
    Ok(text)
}

/// Who may read a file that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// The owner alone.
    Private,
    /// Whoever the directory lets in.
    Public,
}

/// Writes to standard output, all of it or an error that says so.
pub(crate) fn print(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        // Whoever reads has had enough: the panic hook's case, met without a panic.
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => std::process::exit(crate::ui::CLOSED_PIPE),
        done => done.map_err(|e| Failure::input(format!("standard output: {e}"))),
    }
}

/// A file that is being made beside the place it shall have, where nobody takes it for the whole.
struct Beside<'a> {
    path: &'a Path,
    file: tempfile::NamedTempFile,
    target: PathBuf,
    access: Access,
    force: bool,
}

impl<'a> Beside<'a> {
    fn new(path: &'a Path, access: Access, force: bool) -> Result<Beside<'a>, Failure> {
        // A link stays a link: what it leads to is replaced. One that leads nowhere is replaced itself.
        let target =
            if force { fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()) } else { path.to_owned() };
        if target.is_dir() {
            return Err(Failure::file(path, "is a directory"));
        }
        let folder = target.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !folder.is_dir() {
            return Err(Failure::file(
                path,
                format!("there is no directory {}; make it first", crate::ui::shown(folder)),
            ));
        }
        let file = tempfile::NamedTempFile::new_in(folder).map_err(|e| unwritable(path, &e))?;
        Ok(Beside { path, file, target, access, force })
    }

    /// Gives the file its rights, and with `sync` also its place on the disk.
    fn finish(&self, sync: bool) -> Result<(), Failure> {
        let failed = |e: io::Error| unwritable(self.path, &e);
        if sync {
            self.file.as_file().sync_all().map_err(failed)?;
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = if self.access == Access::Private { 0o600 } else { 0o644 };
            self.file.as_file().set_permissions(fs::Permissions::from_mode(mode)).map_err(failed)?;
        }
        #[cfg(not(unix))]
        let _ = self.access;
        Ok(())
    }

    fn commit(self) -> Result<(), Failure> {
        let failed = |e: io::Error| Failure::file(self.path, e);
        let beside = self.file.into_temp_path();
        if self.force {
            return beside.persist(self.target).map_err(|e| failed(e.error));
        }
        beside.persist_noclobber(self.target).map_err(|e| match e.error.kind() {
            io::ErrorKind::AlreadyExists => exists(self.path),
            _ => failed(e.error),
        })
    }
}

/// The system's reason without the temporary file's name, which means nothing to anyone.
fn unwritable(path: &Path, e: &io::Error) -> Failure {
    Failure::file(path, format!("cannot be written: {}", e.kind()))
}

/// An output that is ready to be put in its place: everything that can fail for want of room or of rights has been done.
pub(crate) struct Staged<'a>(Content<'a>);

enum Content<'a> {
    /// Standard output, a device, a pipe: nothing can be replaced there, so the bytes are written at the end.
    Stream(&'a Path, &'a [u8]),
    /// A whole file beside the place it shall have.
    File(Beside<'a>),
}

/// What `path` names, links followed, if it exists: a stream (a device, a pipe, a socket) is written to, never replaced.
fn is_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir())
}

/// Prepares a file that will be there whole or not at all; an existing one is replaced only if `force` says so.
pub(crate) fn stage<'a>(
    path: &'a Path,
    bytes: &'a [u8],
    access: Access,
    force: bool,
) -> Result<Staged<'a>, Failure> {
    may_write(path, force)?;
    if is_stream(path) || is_device(path) {
        return Ok(Staged(Content::Stream(path, bytes)));
    }
    let mut beside = Beside::new(path, access, force)?;
    beside.file.write_all(bytes).map_err(|e| unwritable(path, &e))?;
    beside.finish(true)?;
    Ok(Staged(Content::File(beside)))
}

impl Staged<'_> {
    /// Puts the output in its place.
    pub(crate) fn commit(self) -> Result<(), Failure> {
        match self.0 {
            Content::Stream(path, bytes) if is_stream(path) => print(bytes),
            Content::Stream(path, bytes) => {
                let failed = |e: io::Error| Failure::file(path, e);
                let mut out = fs::OpenOptions::new().write(true).open(path).map_err(failed)?;
                out.write_all(bytes).and_then(|()| out.flush()).map_err(failed)
            }
            Content::File(beside) => beside.commit(),
        }
    }
}

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
            let file = own(io::stdin().as_fd()).map_err(|e| Failure::input(format!("{name}: {e}")))?;
            let length = regular(&file);
            return Ok(Source { file, name, length });
        }
        let file = fs::File::open(path).map_err(|e| Failure::file(path, e))?;
        if file.metadata().is_ok_and(|m| m.is_dir()) {
            return Err(Failure::file(path, "is a directory; name a file"));
        }
        let length = regular(&file);
        Ok(Source { file, name: crate::ui::shown(path), length })
    }

    pub(crate) fn file(&mut self) -> &mut fs::File {
        &mut self.file
    }

    /// How messages call it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The bytes there are, where the system knows.
    pub(crate) fn length(&self) -> Option<u64> {
        self.length
    }
}

/// An output of any size, written piece by piece; a file appears in its place only when it is whole.
pub(crate) struct Sink<'a> {
    path: &'a Path,
    place: Place<'a>,
}

enum Place<'a> {
    /// Standard output, a device, a pipe: what is written is out.
    Stream(fs::File),
    File(Beside<'a>),
}

impl<'a> Sink<'a> {
    pub(crate) fn create(path: &'a Path, access: Access, force: bool) -> Result<Sink<'a>, Failure> {
        may_write(path, force)?;
        let place = if is_stream(path) {
            // Not through Rust's standard output, which looks for line ends in what it is given.
            let file =
                own(io::stdout().as_fd()).map_err(|e| Failure::input(format!("standard output: {e}")))?;
            Place::Stream(file)
        } else if is_device(path) {
            let file = fs::OpenOptions::new().write(true).open(path).map_err(|e| Failure::file(path, e))?;
            Place::Stream(file)
        } else {
            Place::File(Beside::new(path, access, force)?)
        };
        Ok(Sink { path, place })
    }

    pub(crate) fn file(&mut self) -> &mut fs::File {
        match &mut self.place {
            Place::Stream(file) => file,
            Place::File(beside) => beside.file.as_file_mut(),
        }
    }

    /// Why writing failed, as a failure; a reader that has had enough ends the command quietly instead.
    pub(crate) fn failed(&self, e: &io::Error) -> Failure {
        match &self.place {
            Place::Stream(_) if e.kind() == io::ErrorKind::BrokenPipe => {
                std::process::exit(crate::ui::CLOSED_PIPE)
            }
            Place::Stream(_) if is_stream(self.path) => Failure::input(format!("standard output: {e}")),
            Place::Stream(_) => Failure::file(self.path, e),
            Place::File(_) => unwritable(self.path, e),
        }
    }

    /// Everything is written: puts a file in its place, on request not before the disk has it.
    pub(crate) fn commit(self, sync: bool) -> Result<(), Failure> {
        match self.place {
            Place::Stream(_) => Ok(()),
            Place::File(beside) => {
                beside.finish(sync)?;
                beside.commit()
            }
        }
    }
}

/// A file of our own for a descriptor: dropping it closes nothing of the process.
fn own(descriptor: BorrowedFd<'_>) -> io::Result<fs::File> {
    let file = fs::File::from(descriptor.try_clone_to_owned()?);
    widen(&file);
    Ok(file)
}

/// Lets a pipe hold more, so that its two ends wait for each other less often.
#[cfg(target_os = "linux")]
fn widen(file: &fs::File) {
    // What an ordinary user may have. Where it is refused, or this is no pipe, all works as it is.
    let _ = rustix::pipe::fcntl_setpipe_size(file, 1 << 20);
}

#[cfg(not(target_os = "linux"))]
fn widen(_: &fs::File) {}

/// The bytes that are left in a file: whoever had standard input before may have read some of it.
fn regular(mut file: &fs::File) -> Option<u64> {
    let length = file.metadata().ok().filter(fs::Metadata::is_file).map(|m| m.len())?;
    Some(length.saturating_sub(file.stream_position().ok()?))
}

/// Writes one file whole or not at all; an existing one is replaced only if `force` says so. `-` is standard output.
pub(crate) fn write(path: &Path, bytes: &[u8], access: Access, force: bool) -> Result<(), Failure> {
    stage(path, bytes, access, force)?.commit()
}

fn exists(path: &Path) -> Failure {
    Failure::file(path, "exists already; --force replaces it")
}

/// Refuses early what `stage` would refuse late, before any work is done.
pub(crate) fn may_write(path: &Path, force: bool) -> Result<(), Failure> {
    if path.is_dir() {
        return Err(Failure::file(path, "is a directory; name a file in it"));
    }
    if !force && !is_stream(path) && !is_device(path) && path.symlink_metadata().is_ok() {
        return Err(exists(path));
    }
    Ok(())
}

/// The manual: the main page on standard output, or every page into a directory.
pub(crate) fn man_pages(command: &clap::Command, out: Option<&Path>) -> Result<Outcome, Failure> {
    match out {
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command.clone()).render(&mut page).map_err(Failure::input)?;
            print(&page)?;
        }
        Some(folder) => {
            fs::create_dir_all(folder).map_err(|e| Failure::file(folder, e))?;
            clap_mangen::generate_to(command.clone(), folder).map_err(|e| Failure::file(folder, e))?;
        }
    }
    Ok(Outcome::Yes)
}
