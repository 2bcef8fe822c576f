//! Whether a command would overwrite its input, or write or read one thing twice.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use lanework_study::Failure;

use super::{is_stream, own};

/// What a path refers to, whatever its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identity {
    /// Something that exists: device and inode.
    There(u64, u64),
    /// A device, whatever its nodes: whether it is a block device, and its number.
    Device(bool, u64),
    /// A name to be made in the directory with this device and inode.
    New(u64, u64, OsString),
}

const STDIN: &str = "standard input";
const STDOUT: &str = "standard output";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A file, or one to be made.
    File,
    /// A pipe or a device: its data can be read only once, and what is written may be what is read.
    Stream,
    /// A socket, or the terminal of a standard stream: its other end reads what is written.
    Dialogue,
    /// `/dev/null` and the like, which anything may share.
    Endless,
}

struct Named<'a> {
    path: &'a Path,
    standard: &'static str,
    identity: Identity,
    kind: Kind,
}

impl<'a> Named<'a> {
    /// `None` if the path leads nowhere. Opening it reports the reason.
    fn new(path: &'a Path, descriptor: BorrowedFd<'_>, standard: &'static str) -> Option<Named<'a>> {
        let metadata = if is_stream(path) {
            own(descriptor).and_then(|file| file.metadata())
        } else {
            fs::metadata(path)
        };
        let (identity, kind) = match metadata {
            Ok(found) => (identity(&found), kind(&found)),
            Err(_) => {
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                let folder = fs::metadata(folder.unwrap_or(Path::new("."))).ok()?;
                (Identity::New(folder.dev(), folder.ino(), path.file_name()?.to_owned()), Kind::File)
            }
        };
        Some(Named { path, standard, identity, kind })
    }

    fn name(&self) -> String {
        if is_stream(self.path) { self.standard.to_owned() } else { lanework_study::text::shown(self.path) }
    }
}

fn identity(metadata: &Metadata) -> Identity {
    let (kind, device) = (metadata.file_type(), metadata.rdev());
    if kind.is_block_device() || kind.is_char_device() {
        return Identity::Device(kind.is_block_device(), device);
    }
    Identity::There(metadata.dev(), metadata.ino())
}

fn kind(metadata: &Metadata) -> Kind {
    let kind = metadata.file_type();
    // A block device keeps what is written, as a file does.
    if metadata.is_file() || metadata.is_dir() || kind.is_block_device() {
        return Kind::File;
    }
    let same = |device: &str| fs::metadata(device).is_ok_and(|found| found.rdev() == metadata.rdev());
    if kind.is_char_device() && ["/dev/null", "/dev/zero", "/dev/full"].into_iter().any(same) {
        return Kind::Endless;
    }
    let terminal = |stream: BorrowedFd<'_>| {
        let found = own(stream).and_then(|file| file.metadata());
        stream.is_terminal() && found.is_ok_and(|found| found.rdev() == metadata.rdev())
    };
    let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
    let dialogue = kind.is_socket()
        || kind.is_char_device() && [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()].into_iter().any(terminal);
    if dialogue { Kind::Dialogue } else { Kind::Stream }
}

/// Refuses a standard stream that is named twice.
fn once(paths: &[&Path], standard: &str) -> Result<(), Failure> {
    if paths.iter().filter(|path| is_stream(path)).count() > 1 {
        return Err(Failure::input(format!("{standard} can serve only one of the files"))
            .help("name a file for the other"));
    }
    Ok(())
}

/// Refuses an output that is one of the inputs, two outputs that are one, and two inputs that are one stream: by device and
/// inode, whatever they are called and whatever links lead to them. Standard streams count where `-` names them. A terminal or
/// a socket may be both input and output.
///
/// # Errors
/// Which two are the same.
pub(crate) fn check_distinct<'a>(
    inputs: impl IntoIterator<Item = &'a Path>,
    outputs: impl IntoIterator<Item = &'a Path>,
) -> Result<(), Failure> {
    let (inputs, outputs): (Vec<&Path>, Vec<&Path>) =
        (inputs.into_iter().collect(), outputs.into_iter().collect());
    once(&inputs, STDIN)?;
    once(&outputs, STDOUT)?;
    let (stdin, stdout) = (io::stdin(), io::stdout());
    let mut read: BTreeMap<Identity, Named<'_>> = BTreeMap::new();
    for input in inputs.into_iter().filter_map(|path| Named::new(path, stdin.as_fd(), STDIN)) {
        // A file can be read twice.
        if let (Kind::Stream | Kind::Dialogue, Some(other)) = (input.kind, read.get(&input.identity)) {
            return Err(Failure::input(format!(
                "{} and {} are one stream, which can be read only once",
                other.name(),
                input.name()
            ))
            .help("name a file for one of them"));
        }
        read.insert(input.identity.clone(), input);
    }
    let mut written: BTreeMap<Identity, Named<'_>> = BTreeMap::new();
    for output in outputs.into_iter().filter_map(|path| Named::new(path, stdout.as_fd(), STDOUT)) {
        if let Some(other) = written.get(&output.identity)
            && output.kind != Kind::Endless
        {
            return Err(Failure::input(format!("{} and {} are the same file", other.name(), output.name()))
                .help("name another for one of the results"));
        }
        if let (Kind::File, Some(input)) = (output.kind, read.get(&output.identity)) {
            return Err(Failure::input(format!(
                "{} and {} are the same file, and the result would destroy the input",
                output.name(),
                input.name()
            ))
            .help("name another file for the result"));
        }
        if let (Kind::Stream, Some(input)) = (output.kind, read.get(&output.identity)) {
            return Err(Failure::input(format!(
                "{} and {} are one pipe or device, and the result would be read as input",
                output.name(),
                input.name()
            ))
            .help("name another for the result"));
        }
        written.insert(output.identity.clone(), output);
    }
    Ok(())
}
