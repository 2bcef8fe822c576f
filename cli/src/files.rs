//! Reading and writing: `-` for the standard streams, output files whole or not at all.
//!
//! A command first compares all its inputs and outputs ([`check_distinct`]), then opens its outputs ([`Sink`]), and then begins
//! its work: anything that can be refused is refused before that.
#![forbid(unsafe_code)]

use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

use lanework_study::{Failure, Outcome};

mod distinct;
mod draft;
mod input;
mod output;

pub(crate) use distinct::check_distinct;
pub(crate) use input::{Source, read, read_small, read_text};
pub(crate) use output::{Sink, may_write, needs_standard_output, put_all, write};

/// Who may read a file that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// The owner alone.
    Private,
    /// Everyone the umask allows.
    Public,
}

fn is_stream(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// A file of our own for a descriptor: dropping it closes nothing of the process.
fn own(descriptor: BorrowedFd<'_>) -> io::Result<fs::File> {
    descriptor.try_clone_to_owned().map(fs::File::from)
}

/// Lets a pipe hold more, so that its two ends wait for each other less often.
#[cfg(target_os = "linux")]
fn widen(file: &fs::File) {
    // The most that an ordinary user may have. If it is refused, or this is not a pipe, nothing changes.
    let _ = rustix::pipe::fcntl_setpipe_size(file, 1 << 20);
}

#[cfg(not(target_os = "linux"))]
fn widen(_: &fs::File) {}

/// Writes to standard output, all of it or an error that says so.
pub(crate) fn print(bytes: &[u8]) -> Result<(), Failure> {
    write(Path::new("-"), bytes, Access::Public, false)
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
