//! A file that is being made, and is put in its place once it is complete.
//!
//! Until then it has no name (`O_TMPFILE`), so no signal leaves anything behind. To replace a file it needs a name for a moment:
//! `.lanework-0.tmp` in the same directory, or the next number if that is in use. Signals wait for that moment to pass. SIGKILL
//! does not, and then the next run that writes into the directory removes the file. On file systems without unnamed files it has
//! that name from the start, and a signal that ends the command removes it.
//!
//! A temporary name is in use as long as its file is locked (`flock`).
#![forbid(unsafe_code)]

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, fchmod, flock, fstat, linkat, openat, renameat,
    statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::Access;
use crate::signals::{self, Held, Moment};

/// The most temporary names in one directory.
const MOST: usize = 1000;

const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);
const PUBLIC: Mode = PRIVATE.union(Mode::RGRP).union(Mode::WGRP).union(Mode::ROTH).union(Mode::WOTH);

/// How to open a directory for making files in it: it need not be readable.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

/// The file, and its future place.
pub(super) struct Draft {
    file: File,
    folder: Arc<OwnedFd>,
    name: OsString,
    /// Its permissions: those asked for, less the user's umask.
    mode: Mode,
    /// Its temporary name, and the number of its signal action.
    temporary: Option<(String, u64)>,
}

impl Draft {
    /// Starts a file that will replace or become `target`, which must not be a symbolic link.
    pub(super) fn new(target: &Path, access: Access) -> io::Result<Draft> {
        Draft::of_kind(target, access, true)
    }

    fn of_kind(target: &Path, access: Access, unnamed: bool) -> io::Result<Draft> {
        let name = target.file_name().ok_or(io::ErrorKind::IsADirectory)?.to_owned();
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = Arc::new(openat(CWD, folder.unwrap_or(Path::new(".")), FOLDER, Mode::empty())?);
        if not_ours_to_replace(&folder, &name) {
            return Err(Errno::PERM.into());
        }
        (0..MOST).take_while(|&n| remove_left(&folder, &temporary(n)) != Left::Nothing).for_each(drop);
        let mode = if access == Access::Private { PRIVATE } else { PUBLIC };
        if unnamed && let Some(file) = without_name(&folder, mode)? {
            let mode = rights(&file)?;
            return Ok(Draft { file, folder, name, mode, temporary: None });
        }
        Draft::with_name(folder, name, mode)
    }

    /// A file with a name, where it cannot do without one.
    fn with_name(folder: Arc<OwnedFd>, name: OsString, mode: Mode) -> io::Result<Draft> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
        let mut held = signals::hold();
        loop {
            let (temporary, file) = name_in(&folder, |name| openat(&folder, name, flags, mode))?;
            let file = File::from(file);
            lock(&file);
            if fstat(&file)?.st_nlink == 0 {
                // Before it was locked, another run took it for one left behind.
                continue;
            }
            let strict = rights(&file).and_then(|mode| fchmod(&file, mode & PRIVATE).map(|()| mode));
            let mode = strict.inspect_err(|_| {
                let _ = unlinkat(&folder, &*temporary, AtFlags::empty());
            })?;
            let (there, entry) = (Arc::clone(&folder), temporary.clone());
            let number = held.on(move |moment| {
                if moment == Moment::End {
                    let _ = unlinkat(&*there, &*entry, AtFlags::empty());
                }
            });
            return Ok(Draft { file, folder, name, mode, temporary: Some((temporary, number)) });
        }
    }

    pub(super) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Puts files in their places, one after the other, with no signal in between. Several are locked against other runs that
    /// put several files in the same directories.
    ///
    /// # Errors
    /// Which file could not be placed, and why. New files placed before it are removed again.
    pub(super) fn place_all(mut drafts: Vec<Draft>, force: bool) -> Result<(), (usize, io::Error)> {
        let _locks = if drafts.len() > 1 { folders(&drafts) } else { Vec::new() };
        let mut held = signals::hold();
        let mut new = Vec::new();
        for at in 0..drafts.len() {
            match drafts[at].place(force, &mut held) {
                Ok(true) => new.push(at),
                Ok(false) => {}
                Err(e) => {
                    new.into_iter().for_each(|at| drafts[at].take_back());
                    drop(held);
                    return Err((at, e));
                }
            }
        }
        // Dropping a draft takes the lock itself.
        drop(held);
        Ok(())
    }

    /// Puts the file in its place; returns whether there was none before.
    fn place(&mut self, force: bool, held: &mut Held) -> io::Result<bool> {
        let Some((name, number)) = self.temporary.take() else {
            return match self.link(&self.name) {
                Err(Errno::EXIST) if force => {
                    fchmod(&self.file, self.mode & PRIVATE)?;
                    let (name, ()) = name_in(&self.folder, |name| self.link(OsStr::new(name)))?;
                    self.replace(&name).inspect_err(|_| self.remove(&name))?;
                    Ok(false)
                }
                linked => Ok(linked.map(|()| true)?),
            };
        };
        held.forget(number);
        let placed =
            if force { self.replace(&name).map(|()| false) } else { self.rename(&name).map(|()| true) };
        placed.inspect_err(|_| self.remove(&name))
    }

    /// Gives an unnamed file an unused name.
    fn link(&self, name: &OsStr) -> rustix::io::Result<()> {
        linkat(CWD, own_path(&self.file), &self.folder, name, AtFlags::SYMLINK_FOLLOW)
    }

    /// Replaces the existing file. The permissions are those that both files allow.
    fn replace(&self, temporary: &str) -> io::Result<()> {
        let old = statat(&self.folder, &*self.name, AtFlags::SYMLINK_NOFOLLOW).ok();
        let old = old.filter(|old| FileType::from_raw_mode(old.st_mode) == FileType::RegularFile);
        let group = fstat(&self.file)?.st_gid;
        let old = old.map(|old| (Mode::from_raw_mode(old.st_mode), old.st_gid == group));
        fchmod(&self.file, allowed(self.mode, old))?;
        Ok(renameat(&self.folder, temporary, &self.folder, &*self.name)?)
    }

    /// Takes an unused name.
    fn rename(&self, temporary: &str) -> io::Result<()> {
        fchmod(&self.file, self.mode)?;
        match no_replace(&self.folder, temporary, &self.name) {
            // The file system cannot do that. Most of these have links.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                linkat(&self.folder, temporary, &self.folder, &*self.name, AtFlags::empty())?;
                self.remove(temporary);
                Ok(())
            }
            renamed => Ok(renamed?),
        }
    }

    fn remove(&self, name: &str) {
        // If this fails, the next run removes it.
        let _ = unlinkat(&self.folder, name, AtFlags::empty());
    }

    /// Removes a new file again, unless something else has its name by now.
    fn take_back(&self) {
        let there = statat(&self.folder, &*self.name, AtFlags::SYMLINK_NOFOLLOW);
        if let (Ok(there), Ok(ours)) = (there, fstat(&self.file))
            && (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)
        {
            let _ = unlinkat(&self.folder, &*self.name, AtFlags::empty());
        }
    }
}

/// Permissions of a file that replaces another: those that both allow. Another group gets none, since the old file's may be
/// larger or smaller.
fn allowed(new: Mode, old: Option<(Mode, bool)>) -> Mode {
    match old {
        None => new,
        Some((old, true)) => new & old,
        Some((old, false)) => (new & old).difference(Mode::RWXG),
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some((name, number)) = self.temporary.take() {
            let mut held = signals::hold();
            held.forget(number);
            self.remove(&name);
        }
    }
}

fn temporary(n: usize) -> String {
    format!(".lanework-{n}.tmp")
}

fn rights(file: &File) -> rustix::io::Result<Mode> {
    Ok(Mode::from_raw_mode(fstat(file)?.st_mode) & PUBLIC)
}

fn own_path(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Marks a file's temporary name as in use. On a file system without locks, every such name counts as in use: nothing there is
/// removed.
fn lock(file: impl AsFd) {
    let _ = flock(file, FlockOperation::LockExclusive);
}

/// A file without a name, if the file system and the kernel support it.
#[cfg(target_os = "linux")]
fn without_name(folder: &OwnedFd, mode: Mode) -> io::Result<Option<File>> {
    match openat(folder, ".", OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode) {
        Ok(file) => {
            let file = File::from(file);
            lock(&file);
            // It is named through /proc later.
            let can_be_named = rustix::fs::access(own_path(&file), rustix::fs::Access::EXISTS).is_ok();
            Ok(can_be_named.then_some(file))
        }
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT | Errno::NOSYS) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn without_name(_: &OwnedFd, _: Mode) -> io::Result<Option<File>> {
    Ok(None)
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn no_replace(folder: &OwnedFd, from: &str, to: &OsStr) -> rustix::io::Result<()> {
    rustix::fs::renameat_with(folder, from, folder, to, rustix::fs::RenameFlags::NOREPLACE)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn no_replace(_: &OwnedFd, _: &str, _: &OsStr) -> rustix::io::Result<()> {
    Err(Errno::NOSYS)
}

/// Makes something under the first unused temporary name.
fn name_in<T>(folder: &OwnedFd, make: impl Fn(&str) -> rustix::io::Result<T>) -> io::Result<(String, T)> {
    for n in 0..MOST {
        let name = temporary(n);
        let mut made = make(&name);
        if made.as_ref().is_err_and(|e| *e == Errno::EXIST) && remove_left(folder, &name) == Left::Removed {
            made = make(&name);
        }
        match made {
            Err(Errno::EXIST) => {}
            made => return Ok((name, made?)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// What was found under a temporary name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    Nothing,
    InUse,
    Removed,
}

/// Removes the file of a run that was killed: one of ours that is not locked.
fn remove_left(folder: &OwnedFd, name: &str) -> Left {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match openat(folder, name, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Left::Nothing,
        Err(_) => return Left::InUse,
    };
    let ours = fstat(&file).is_ok_and(|found| {
        FileType::from_raw_mode(found.st_mode) == FileType::RegularFile && found.st_uid == geteuid().as_raw()
    });
    if !ours || flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Left::InUse;
    }
    // While the lock is held, no other run removes it and gives its name to another file.
    let (there, open) = (statat(folder, name, AtFlags::SYMLINK_NOFOLLOW), fstat(&file));
    match (there, open) {
        (Ok(there), Ok(open)) if (there.st_dev, there.st_ino) == (open.st_dev, open.st_ino) => {
            if unlinkat(folder, name, AtFlags::empty()).is_ok() { Left::Removed } else { Left::InUse }
        }
        _ => Left::InUse,
    }
}

/// Whether the directory's sticky bit lets only others replace this name.
fn not_ours_to_replace(folder: &OwnedFd, name: &OsStr) -> bool {
    let (Ok(there), Ok(file)) = (fstat(folder), statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)) else {
        return false;
    };
    let us = geteuid();
    Mode::from_raw_mode(there.st_mode).contains(Mode::SVTX)
        && !us.is_root()
        && there.st_uid != us.as_raw()
        && file.st_uid != us.as_raw()
}

/// Locks the directories of several files, in the order of their inodes so that two runs never wait for each other. A directory
/// that cannot be read, or a file system without locks, is left unlocked.
fn folders(drafts: &[Draft]) -> Vec<OwnedFd> {
    let mut folders: Vec<_> = drafts
        .iter()
        .filter_map(|draft| Some((fstat(&draft.folder).ok().map(|s| (s.st_dev, s.st_ino))?, &draft.folder)))
        .collect();
    folders.sort_by_key(|(identity, _)| *identity);
    folders.dedup_by_key(|(identity, _)| *identity);
    let locked = |(_, folder): (_, &Arc<OwnedFd>)| {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat(&**folder, ".", flags, Mode::empty()).ok()?;
        lock(&folder);
        Some(folder)
    };
    folders.into_iter().filter_map(locked).collect()
}

#[cfg(test)]
mod tests;
