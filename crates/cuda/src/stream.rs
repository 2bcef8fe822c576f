//! Queues of work, and marks in them.
#![forbid(unsafe_code)]

use core::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::backend::Machine;
use crate::backend::plain::Plain;
use crate::error::Error;
use crate::memory::{Buffer, Pinned};

/// The grid of a kernel: blocks, threads of each, and bytes of dynamic shared memory of each block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Blocks.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of dynamic shared memory of a block.
    pub shared: u32,
}

/// A queue: its work happens in order, concurrently with other streams' work.
#[derive(Debug)]
pub struct Stream {
    machine: Arc<dyn Machine>,
    number: usize,
}

impl Stream {
    pub(crate) fn new(machine: &Arc<dyn Machine>) -> Result<Stream, Error> {
        let number = machine.open_stream()?;
        Ok(Stream { machine: Arc::clone(machine), number })
    }

    pub(crate) fn machine(&self) -> &Arc<dyn Machine> {
        &self.machine
    }

    pub(crate) fn number(&self) -> usize {
        self.number
    }

    pub(crate) fn same(&self, other: &Arc<dyn Machine>, what: &str) -> Result<(), Error> {
        if Arc::ptr_eq(&self.machine, other) {
            return Ok(());
        }
        Err(Error::Shape(format!("{what} and the stream belong to different devices")))
    }

    /// Queues a copy of the values `range` of `from` to `to`, from its value `at` on.
    ///
    /// # Errors
    /// [`Error::Shape`] if either is too short, or they belong to different devices; the driver's error.
    pub fn upload<T: Plain>(
        &self,
        from: &Pinned<T>,
        range: Range<usize>,
        to: &Buffer<T>,
        at: usize,
    ) -> Result<(), Error> {
        self.same(from.machine(), "the pinned memory")?;
        self.same(to.machine(), "the buffer")?;
        from.part(&range)?;
        let (address, bytes) = to.part(&(at..at.saturating_add(range.len())))?;
        if bytes == 0 {
            return Ok(());
        }
        crate::backend::transfer::upload(&self.machine, self.number, from, range.start, address, bytes)?;
        self.mark_use(from)
    }

    /// Queues a copy of the values `range` of `from` to `to`, from its value `at` on. Reading `to` waits for it.
    ///
    /// # Errors
    /// As for [`upload`](Stream::upload).
    pub fn download<T: Plain>(
        &self,
        from: &Buffer<T>,
        range: Range<usize>,
        to: &mut Pinned<T>,
        at: usize,
    ) -> Result<(), Error> {
        self.same(to.machine(), "the pinned memory")?;
        self.same(from.machine(), "the buffer")?;
        let (address, bytes) = from.part(&range)?;
        to.part(&(at..at.saturating_add(range.len())))?;
        if bytes == 0 {
            return Ok(());
        }
        crate::backend::transfer::download(&self.machine, self.number, address, to, at, bytes)?;
        self.mark_use(to)
    }

    /// The pinned memory waits for its copy. A copy that cannot be marked is waited for here.
    fn mark_use<T: Plain>(&self, memory: &Pinned<T>) -> Result<(), Error> {
        memory.used(self.number).inspect_err(|_| {
            let _ = self.machine.finish(self.number);
        })
    }

    /// Queues a copy between buffers, which may not overlap if they are one.
    ///
    /// # Errors
    /// As for [`upload`](Stream::upload).
    pub fn copy<T: Plain>(
        &self,
        from: &Buffer<T>,
        range: Range<usize>,
        to: &Buffer<T>,
        at: usize,
    ) -> Result<(), Error> {
        self.same(from.machine(), "the buffer")?;
        self.same(to.machine(), "the buffer")?;
        let (source, bytes) = from.part(&range)?;
        let (target, _) = to.part(&(at..at.saturating_add(range.len())))?;
        if source.abs_diff(target) < bytes as u64 {
            return Err(Error::Shape("a copy inside one buffer may not overlap".to_owned()));
        }
        crate::backend::transfer::copy(&self.machine, self.number, source, target, bytes)
    }

    /// Queues zeros into the values `range`.
    ///
    /// # Errors
    /// As for [`upload`](Stream::upload).
    pub fn zero<T: Plain>(&self, buffer: &Buffer<T>, range: Range<usize>) -> Result<(), Error> {
        self.same(buffer.machine(), "the buffer")?;
        let (address, bytes) = buffer.part(&range)?;
        crate::backend::transfer::zero(&self.machine, self.number, address, bytes)
    }

    /// Copies `values` to `to`, from its value `at` on, and waits for it. For small copies without staging.
    ///
    /// # Errors
    /// As for [`upload`](Stream::upload), and lack of pinned memory.
    pub fn put<T: Plain>(&self, values: &[T], to: &Buffer<T>, at: usize) -> Result<(), Error> {
        let mut pinned = Pinned::new(&self.machine, values.len())?.cleared();
        pinned.write()?.copy_from_slice(values);
        self.upload(&pinned, 0..values.len(), to, at)?;
        self.finish()
    }

    /// The values of `range`, waited for.
    ///
    /// # Errors
    /// As for [`download`](Stream::download), and lack of pinned memory.
    pub fn get<T: Plain>(&self, from: &Buffer<T>, range: Range<usize>) -> Result<Vec<T>, Error> {
        from.part(&range)?;
        let mut pinned = Pinned::new(&self.machine, range.len())?.cleared();
        self.download(from, range, &mut pinned, 0)?;
        pinned.read().map(<[T]>::to_vec)
    }

    /// Waits for all that was queued.
    ///
    /// # Errors
    /// The work's fault: [`Error::Fault`] if it lost the device.
    pub fn finish(&self) -> Result<(), Error> {
        self.machine.finish(self.number)
    }

    /// A mark after the work queued so far.
    ///
    /// # Errors
    /// The driver's error.
    pub fn mark(&self) -> Result<Event, Error> {
        let number = self.machine.open_event(true)?;
        let event = Event { machine: Arc::clone(&self.machine), number };
        self.machine.record(self.number, number)?;
        Ok(event)
    }

    /// Work queued from now on waits for `event`.
    ///
    /// # Errors
    /// [`Error::Shape`] for another device's event; the driver's error.
    pub fn wait_for(&self, event: &Event) -> Result<(), Error> {
        self.same(&event.machine, "the event")?;
        self.machine.wait_in(self.number, event.number)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.machine.close_stream(self.number);
    }
}

/// A mark in a stream.
#[derive(Debug)]
pub struct Event {
    machine: Arc<dyn Machine>,
    number: usize,
}

impl Event {
    /// Waits until all work before it is done.
    ///
    /// # Errors
    /// The work's fault.
    pub fn wait(&self) -> Result<(), Error> {
        self.machine.wait(self.number)
    }

    /// Whether all work before it is done.
    ///
    /// # Errors
    /// The work's fault.
    pub fn is_done(&self) -> Result<bool, Error> {
        self.machine.is_done(self.number)
    }

    /// The device's time between two marks, to half a microsecond. Waits for both. Meaningless in emulation.
    ///
    /// # Errors
    /// [`Error::Shape`] for marks of different devices; the work's fault.
    pub fn since(&self, earlier: &Event) -> Result<Duration, Error> {
        if !Arc::ptr_eq(&self.machine, &earlier.machine) {
            return Err(Error::Shape("the marks belong to different devices".to_owned()));
        }
        earlier.wait()?;
        self.wait()?;
        self.machine.between(earlier.number, self.number)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        self.machine.close_event(self.number);
    }
}
