//! Reading and writing: `-` for the standard streams, output files whole or not at all.
#![forbid(unsafe_code)]

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

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

/// An output that is ready to be put in its place: everything that can fail for want of room or of rights has been done.
pub(crate) struct Staged<'a> {
    path: &'a Path,
    content: Content<'a>,
    force: bool,
}

enum Content<'a> {
    /// Standard output, a device, a pipe: nothing can be replaced there, so the bytes are written at the end.
    Stream(&'a [u8]),
    /// A whole file beside the place it shall have.
    File { beside: tempfile::TempPath, target: PathBuf },
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
        return Ok(Staged { path, content: Content::Stream(bytes), force });
    }
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
            format!("there is no directory {}; make it first", folder.display()),
        ));
    }
    // The system's reason without the temporary file's name, which means nothing to anyone.
    let failed = |e: io::Error| Failure::file(path, format!("cannot be written: {}", e.kind()));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    file.write_all(bytes).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = if access == Access::Private { 0o600 } else { 0o644 };
        file.as_file().set_permissions(fs::Permissions::from_mode(mode)).map_err(failed)?;
    }
    #[cfg(not(unix))]
    let _ = access;
    Ok(Staged { path, content: Content::File { beside: file.into_temp_path(), target }, force })
}

impl Staged<'_> {
    /// Puts the output in its place.
    pub(crate) fn commit(self) -> Result<(), Failure> {
        let failed = |e: io::Error| Failure::file(self.path, e);
        match self.content {
            Content::Stream(bytes) if is_stream(self.path) => print(bytes),
            Content::Stream(bytes) => {
                let mut out = fs::OpenOptions::new().write(true).open(self.path).map_err(failed)?;
                out.write_all(bytes).and_then(|()| out.flush()).map_err(failed)
            }
            Content::File { beside, target } if self.force => {
                beside.persist(target).map_err(|e| failed(e.error))
            }
            Content::File { beside, target } => {
                beside.persist_noclobber(target).map_err(|e| match e.error.kind() {
                    io::ErrorKind::AlreadyExists => exists(self.path),
                    _ => failed(e.error),
                })
            }
        }
    }
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
