//! Copies whose ranges have been checked, and whose memory waits for them.

use std::sync::Arc;

use crate::backend::Machine;
use crate::backend::plain::Plain;
use crate::error::Error;
use crate::memory::Pinned;

/// From value `start` of pinned memory. The caller has checked that `bytes` are present there and at `to`, and marks the use.
pub(crate) fn upload<T: Plain>(
    machine: &Arc<dyn Machine>,
    stream: usize,
    from: &Pinned<T>,
    start: usize,
    to: u64,
    bytes: usize,
) -> Result<(), Error> {
    // SAFETY: the caller has checked that the value exists.
    let source = unsafe { from.memory.start().as_ptr().add(start * size_of::<T>()) };
    // SAFETY: the range is inside pinned memory and inside a buffer, by the caller; the pinned memory is not written or
    // freed before it has waited for the copy, and a buffer is not freed before all work is done.
    unsafe { machine.upload(stream, source, to, bytes) }
}

/// To value `start` of pinned memory.
pub(crate) fn download<T: Plain>(
    machine: &Arc<dyn Machine>,
    stream: usize,
    from: u64,
    to: &mut Pinned<T>,
    start: usize,
    bytes: usize,
) -> Result<(), Error> {
    // SAFETY: as above.
    let target = unsafe { to.memory.start().as_ptr().add(start * size_of::<T>()) };
    // SAFETY: as above; only `Pinned::read` and `Pinned::write` access the pinned memory, and wait, as does its drop.
    unsafe { machine.download(stream, from, target, bytes) }
}

/// Between two places in device memory.
pub(crate) fn copy(
    machine: &Arc<dyn Machine>,
    stream: usize,
    from: u64,
    to: u64,
    bytes: usize,
) -> Result<(), Error> {
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: both ranges are inside buffers, by the caller, which are not freed before all work is done.
    unsafe { machine.copy(stream, from, to, bytes) }
}

/// Zeros into device memory.
pub(crate) fn zero(machine: &Arc<dyn Machine>, stream: usize, at: u64, bytes: usize) -> Result<(), Error> {
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: as above.
    unsafe { machine.zero(stream, at, bytes) }
}
