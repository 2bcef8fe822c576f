//! Writing on its own thread, so that a slow disk does not delay the squaring.
#![forbid(unsafe_code)]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use super::{CheckpointError, HEADER, Link, POSITION, SEGMENT, lock, sync_name};
use crate::prover::CheckpointFile;

/// Records that may wait for the disk.
const QUEUE: usize = 4;

/// The end of a checkpoint.
pub(crate) struct Writer {
    link: Link,
    to: Option<SyncSender<Vec<u8>>>,
    thread: Option<JoinHandle<io::Result<()>>>,
    /// How often the file was rewritten, or [`LOST`].
    anew: Arc<AtomicU32>,
}

/// Instead of a count: another process renamed or removed the file.
const LOST: u32 = u32::MAX;

impl Writer {
    pub(super) fn start(file: File, path: PathBuf, end: u64, link: Link) -> Result<Writer, CheckpointError> {
        let (to, from) = sync_channel::<Vec<u8>>(QUEUE);
        let anew = Arc::new(AtomicU32::new(0));
        let told = Arc::clone(&anew);
        let write = move || {
            let mut file = file;
            file.seek(SeekFrom::Start(end))?;
            let mut copies = 0;
            while let Ok(record) = from.recv() {
                file.write_all(&record)?;
                // Each record reaches the disk before the next one is written. Tests skip this: they write thousands of
                // files.
                if !cfg!(test) {
                    file.sync_data()?;
                }
                // Removing the file does not lose its work.
                if has_name(&file, &path)? {
                    told.store(copies, Ordering::Relaxed);
                } else if let Ok(copy) = write_anew(&mut file, &path) {
                    (file, copies) = (copy, copies + 1);
                    told.store(copies, Ordering::Relaxed);
                } else {
                    told.store(LOST, Ordering::Relaxed);
                    file.seek(SeekFrom::End(0))?;
                }
            }
            Ok(())
        };
        let thread = Builder::new().name("checkpoint".to_owned()).spawn(write)?;
        Ok(Writer { link, to: Some(to), thread: Some(thread), anew })
    }

    /// The file's state as of the last record written.
    pub(crate) fn file(&self) -> CheckpointFile {
        match self.anew.load(Ordering::Relaxed) {
            0 => CheckpointFile::Kept,
            LOST => CheckpointFile::Lost,
            copies => CheckpointFile::Anew(copies),
        }
    }

    pub(super) fn append(&mut self, kind: u8, payload: &[u8]) -> Result<(), CheckpointError> {
        let mut record = Vec::with_capacity(HEADER + payload.len() + 16);
        record.extend_from_slice(&[kind, 0, 0, 0]);
        record.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        let fields: [u8; 8] = [0, 1, 2, 3, 4, 5, 6, 7].map(|i| record[i]);
        record.extend_from_slice(&self.link.of_header(&fields));
        record.extend_from_slice(payload);
        self.link = self.link.next(&fields, payload);
        record.extend_from_slice(self.link.check());
        if self.to.as_ref().is_some_and(|to| to.send(record).is_ok()) {
            return Ok(());
        }
        // The thread has ended; joining it returns the reason.
        self.finish()?;
        Err(io::Error::from(io::ErrorKind::BrokenPipe).into())
    }

    /// The chain's position in part `index`: squarings and general squarings since its beginning, the form, and the
    /// forms kept in this part since the last such record.
    pub(crate) fn position(
        &mut self,
        index: usize,
        done: u64,
        slow: u64,
        form: &[u64],
        kept: &[u64],
    ) -> Result<(), CheckpointError> {
        let mut payload = Vec::with_capacity(24 + 8 * (form.len() + kept.len()));
        payload.extend_from_slice(&(index as u32).to_le_bytes());
        payload.extend_from_slice(&done.to_le_bytes());
        payload.extend_from_slice(&slow.to_le_bytes());
        payload.extend_from_slice(&((kept.len() / form.len()) as u32).to_le_bytes());
        form.iter().chain(kept).for_each(|word| payload.extend_from_slice(&word.to_le_bytes()));
        self.append(POSITION, &payload)
    }

    /// The proof of part `index`.
    pub(crate) fn segment(&mut self, index: usize, pi: &[u64]) -> Result<(), CheckpointError> {
        let mut payload = (index as u32).to_le_bytes().to_vec();
        pi.iter().for_each(|word| payload.extend_from_slice(&word.to_le_bytes()));
        self.append(SEGMENT, &payload)
    }

    /// Waits until everything is on the disk.
    pub(crate) fn finish(&mut self) -> Result<(), CheckpointError> {
        drop(self.to.take());
        match self.thread.take().map(JoinHandle::join) {
            None | Some(Ok(Ok(()))) => Ok(()),
            Some(Ok(Err(e))) => Err(e.into()),
            Some(Err(_)) => Err(io::Error::other("the writing thread failed").into()),
        }
    }
}

/// Whether the open file is the one under this name.
#[cfg(unix)]
pub(crate) fn has_name(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let ours = file.metadata()?;
    Ok(fs::metadata(path).is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())))
}

/// Elsewhere, open files cannot be removed.
#[cfg(not(unix))]
pub(crate) fn has_name(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

/// Copies a removed file to its old place, unless another file is there.
fn write_anew(file: &mut File, path: &Path) -> Result<File, CheckpointError> {
    let mut copy = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
    let copied = (|| {
        lock(&copy)?;
        file.rewind()?;
        io::copy(file, &mut copy)?;
        if !cfg!(test) {
            copy.sync_all()?;
        }
        sync_name(path);
        Ok(())
    })();
    // A partial copy could be mistaken for the whole.
    copied.inspect_err(|_| drop(fs::remove_file(path))).map(|()| copy)
}

impl Drop for Writer {
    fn drop(&mut self) {
        // `finish` reports whether it succeeded.
        let _ = self.finish();
    }
}
