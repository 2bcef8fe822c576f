//! Writing, on a thread of its own: a disk that takes its time does not hold up the squaring.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use super::{CheckpointError, HEADER, Link, POSITION, SEGMENT};

/// Records that may wait for the disk.
const QUEUE: usize = 4;

/// The end of a checkpoint.
pub(crate) struct Writer {
    link: Link,
    to: Option<SyncSender<Vec<u8>>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Writer {
    pub(super) fn start(file: File, end: u64, link: Link) -> Result<Writer, CheckpointError> {
        let (to, from) = sync_channel::<Vec<u8>>(QUEUE);
        let write = move || {
            let mut file = file;
            file.seek(SeekFrom::Start(end))?;
            while let Ok(record) = from.recv() {
                file.write_all(&record)?;
                // Each record reaches the disk before the next one is written. Tests end no machine, and write thousands of files.
                if !cfg!(test) {
                    file.sync_data()?;
                }
            }
            Ok(())
        };
        let thread = Builder::new().name("checkpoint".to_owned()).spawn(write)?;
        Ok(Writer { link, to: Some(to), thread: Some(thread) })
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
        // The thread ended, and knows why.
        self.finish()?;
        Err(io::Error::from(io::ErrorKind::BrokenPipe).into())
    }

    /// Where the chain is in part `index`: squarings and general squarings since its beginning, the form, and the forms kept in this
    /// part since the last such record.
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

impl Drop for Writer {
    fn drop(&mut self) {
        // Who wants to know whether it succeeded calls `finish`.
        let _ = self.finish();
    }
}
