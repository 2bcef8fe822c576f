//! Reading and writing: `-` for the standard streams, output files whole or not at all.
#![forbid(unsafe_code)]

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

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

/// Writes a file whole or not at all; an existing one is replaced only if `force` says so. `-` is standard output.
pub(crate) fn write(path: &Path, bytes: &[u8], access: Access, force: bool) -> Result<(), Failure> {
    if is_stream(path) {
        let mut out = io::stdout().lock();
        return out
            .write_all(bytes)
            .and_then(|()| out.flush())
            .map_err(|e| Failure::input(format!("standard output: {e}")));
    }
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let failed = |e: io::Error| Failure::file(path, e);
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
    if force {
        file.persist(path).map_err(|e| failed(e.error))?;
    } else {
        file.persist_noclobber(path).map_err(|e| match e.error.kind() {
            io::ErrorKind::AlreadyExists => Failure::file(path, "exists already; --force replaces it"),
            _ => failed(e.error),
        })?;
    }
    Ok(())
}

/// Refuses early what `write` would refuse late, before any work is done.
pub(crate) fn may_write(path: &Path, force: bool) -> Result<(), Failure> {
    if !force && !is_stream(path) && path.symlink_metadata().is_ok() {
        return Err(Failure::file(path, "exists already; --force replaces it"));
    }
    Ok(())
}

/// The manual: the main page on standard output, or every page into a directory.
pub(crate) fn man_pages(command: &clap::Command, out: Option<&Path>) -> Result<Outcome, Failure> {
    match out {
        None => clap_mangen::Man::new(command.clone())
            .render(&mut io::stdout())
            .map_err(|e| Failure::input(format!("standard output: {e}")))?,
        Some(folder) => {
            fs::create_dir_all(folder).map_err(|e| Failure::file(folder, e))?;
            clap_mangen::generate_to(command.clone(), folder).map_err(|e| Failure::file(folder, e))?;
        }
    }
    Ok(Outcome::Yes)
}
