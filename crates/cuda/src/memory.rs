//! Device memory, and host memory that a device can reach.
#![forbid(unsafe_code)]

use core::marker::PhantomData;
use core::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use crate::backend::plain::Plain;
use crate::backend::{Argument, Machine};
use crate::error::Error;

/// `len` values of `T` in device memory.
///
/// Dropping one waits for all of the device's work, as freeing device memory does anyway, and overwrites a secret's
/// memory with zero first. The memory of a lost device cannot be overwritten; the driver clears it before another
/// process gets it.
#[derive(Debug)]
pub struct Buffer<T: Plain> {
    machine: Arc<dyn Machine>,
    address: u64,
    len: usize,
    secret: bool,
    of: PhantomData<T>,
}

impl<T: Plain> Buffer<T> {
    pub(crate) fn new(machine: &Arc<dyn Machine>, len: usize, secret: bool) -> Result<Buffer<T>, Error> {
        let bytes = size(len, size_of::<T>())?;
        let address = machine.allocate(bytes)?;
        Ok(Buffer { machine: Arc::clone(machine), address, len, secret, of: PhantomData })
    }

    /// The number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether it is overwritten before it is freed.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        self.secret
    }

    /// The address of its value `index`, for a kernel that works on a part.
    ///
    /// # Errors
    /// [`Error::Shape`] if `index` is greater than the number of values.
    pub fn at(&self, index: usize) -> Result<Argument, Error> {
        self.part(&(index..self.len)).map(|(address, _)| Argument::address(address))
    }

    /// Whether both are memory of one device: a kernel can reach only its own device's.
    #[must_use]
    pub fn is_beside<U: Plain>(&self, other: &Buffer<U>) -> bool {
        Arc::ptr_eq(&self.machine, &other.machine)
    }

    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    pub(crate) fn machine(&self) -> &Arc<dyn Machine> {
        &self.machine
    }

    /// Where a range begins, and its bytes.
    pub(crate) fn part(&self, range: &Range<usize>) -> Result<(u64, usize), Error> {
        let (start, bytes) = part(range, self.len, size_of::<T>(), "a device buffer")?;
        Ok((self.address + start as u64, bytes))
    }
}

impl<T: Plain> Drop for Buffer<T> {
    fn drop(&mut self) {
        self.machine.free(self.address, self.len * size_of::<T>(), self.secret);
    }
}

/// `len` values of `T` in host memory that a device copies from and to by itself. It is zero at first and is overwritten
/// before it is freed.
///
/// Reading and writing wait for the copies that use it.
#[derive(Debug)]
pub struct Pinned<T: Plain> {
    pub(crate) memory: crate::sys::Pages<T>,
    machine: Arc<dyn Machine>,
    /// Whether it is overwritten before it is freed.
    wiped: bool,
    /// For every stream that has used it, an event after its last copy.
    uses: Mutex<Vec<(usize, usize)>>,
}

impl<T: Plain> Pinned<T> {
    /// With unspecified content.
    pub(crate) fn new(machine: &Arc<dyn Machine>, len: usize) -> Result<Pinned<T>, Error> {
        let bytes = size(len, size_of::<T>())?;
        let start = machine.pin(bytes)?;
        let memory = crate::sys::Pages::new(start, len);
        Ok(Pinned { memory, machine: Arc::clone(machine), wiped: true, uses: Mutex::new(Vec::new()) })
    }

    /// Zero at first.
    pub(crate) fn cleared(mut self) -> Pinned<T> {
        self.memory.clear();
        self
    }

    /// If set, freed without clearing.
    pub(crate) fn left(mut self, left: bool) -> Pinned<T> {
        self.wiped = !left;
        self
    }

    /// The number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// Whether it has no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values, when all copies from and to them are done.
    ///
    /// # Errors
    /// The fault of those copies, or of work before them.
    pub fn read(&mut self) -> Result<&[T], Error> {
        self.settle()?;
        Ok(self.memory.slice())
    }

    /// The values, to change them, when all copies from and to them are done.
    ///
    /// # Errors
    /// The fault of those copies, or of work before them.
    pub fn write(&mut self) -> Result<&mut [T], Error> {
        self.settle()?;
        Ok(self.memory.slice_mut())
    }

    /// Overwrites the values with zero when all copies from and to them are done, as before they are freed.
    ///
    /// # Errors
    /// The fault of those copies, or of work before them.
    pub fn wipe(&mut self) -> Result<(), Error> {
        self.settle()?;
        if self.wiped {
            self.memory.wipe();
        }
        Ok(())
    }

    pub(crate) fn machine(&self) -> &Arc<dyn Machine> {
        &self.machine
    }

    pub(crate) fn part(&self, range: &Range<usize>) -> Result<(usize, usize), Error> {
        part(range, self.len(), size_of::<T>(), "pinned memory")
    }

    /// A copy has been queued in `stream`.
    pub(crate) fn used(&self, stream: usize) -> Result<(), Error> {
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        let event = match uses.iter().find(|(of, _)| *of == stream) {
            Some((_, event)) => *event,
            None => {
                let event = self.machine.open_event(false)?;
                uses.push((stream, event));
                event
            }
        };
        self.machine.record(stream, event)
    }

    fn settle(&mut self) -> Result<(), Error> {
        let uses = self.uses.get_mut().unwrap_or_else(PoisonError::into_inner);
        uses.iter().try_for_each(|(_, event)| self.machine.wait(*event))
    }
}

impl<T: Plain> Drop for Pinned<T> {
    fn drop(&mut self) {
        // A copy that could not be marked has no event, and a condemned device lets nobody wait for one, so only waiting for
        // everything is safe: a copy that is still under way would write over the zeros below.
        if self.settle().is_err() {
            let _ = self.machine.finish_all();
        }
        let uses = self.uses.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (_, event) in uses.drain(..) {
            self.machine.close_event(event);
        }
        if self.wiped {
            self.memory.wipe();
        }
        self.machine.unpin(self.memory.start(), self.memory.len() * size_of::<T>());
    }
}

/// The bytes of `len` values, at most half of a program's address space.
fn size(len: usize, of: usize) -> Result<usize, Error> {
    len.checked_mul(of)
        .filter(|bytes| isize::try_from(*bytes).is_ok())
        .ok_or_else(|| Error::Shape(format!("{len} values of {of} bytes are more than there are addresses")))
}

fn part(range: &Range<usize>, len: usize, of: usize, what: &str) -> Result<(usize, usize), Error> {
    if range.start > range.end || range.end > len {
        return Err(Error::Shape(format!(
            "values {}..{} are not all in {what} of {len}",
            range.start, range.end
        )));
    }
    Ok((range.start * of, (range.end - range.start) * of))
}
