//! The contract of a device, for the CUDA driver, the emulation, and PTX executed here.
//!
//! Addresses, streams, events, programs and functions are numbers of their own machine. Methods take only numbers that
//! the same machine returned and has not released; the types of `memory`, `stream` and `module` guarantee it.

pub(crate) mod driver;
#[cfg(feature = "emulated")]
pub(crate) mod emulated;
#[cfg(any(feature = "emulated", feature = "ptx"))]
pub(crate) mod hosted;
mod launch;
pub(crate) mod nvml;
pub(crate) mod plain;
#[cfg(feature = "ptx")]
pub(crate) mod ptx;
pub(crate) mod selftest;
pub(crate) mod transfer;

use core::fmt::Debug;
use core::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use crate::card::{Card, Memory};
use crate::error::{Error, Grave};
use crate::module::{Facts, Image};
use crate::stream::Grid;

pub use launch::Argument;

/// A limit that a device keeps for the threads of its kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Bytes of stack for a thread.
    Stack,
    /// Bytes of the heap that kernels allocate from.
    Heap,
}

/// Opens a context of the same device again, after its release.
pub(crate) type Reopen = Box<dyn Fn() -> Result<Arc<dyn Machine>, Error> + Send + Sync>;

/// A device. Every call returns [`Error::Dead`] once the device is lost, except for releases.
pub(crate) trait Machine: Send + Sync + Debug {
    fn card(&self) -> &Card;
    fn grave(&self) -> &Grave;
    /// It keeps nothing of this context.
    fn reopen(&self) -> Reopen;
    fn memory(&self) -> Result<Memory, Error>;
    fn limit(&self, limit: Limit, bytes: usize) -> Result<(), Error>;

    /// Device memory of unspecified content.
    fn allocate(&self, bytes: usize) -> Result<u64, Error>;
    /// Waits for all work, overwrites with zero if `wipe`, and frees.
    fn free(&self, address: u64, bytes: usize, wipe: bool);
    /// Host memory that the device can reach, aligned to 4096 bytes, initialised with unspecified content.
    fn pin(&self, bytes: usize) -> Result<NonNull<u8>, Error>;
    /// Frees the memory of a `pin` without clearing it. Nothing uses it afterwards.
    fn unpin(&self, memory: NonNull<u8>, bytes: usize);

    fn load(&self, image: &Image) -> Result<usize, Error>;
    fn unload(&self, module: usize);
    fn function(&self, module: usize, image: &Image, name: &str) -> Result<(usize, Facts), Error>;
    /// Allows the function `bytes` of dynamic shared memory.
    fn allow_shared(&self, function: usize, bytes: u32) -> Result<(), Error>;
    /// Blocks of the function that one multiprocessor holds at once.
    fn occupancy(&self, function: usize, threads: u32, shared: u32) -> Result<u32, Error>;

    fn open_stream(&self) -> Result<usize, Error>;
    /// Waits for the stream's work and ends it.
    fn close_stream(&self, stream: usize);
    fn finish(&self, stream: usize) -> Result<(), Error>;
    /// Waits for everything, also on a device that is condemned but not lost: its copies may still run.
    fn finish_all(&self) -> Result<(), Error>;

    fn open_event(&self, timed: bool) -> Result<usize, Error>;
    fn close_event(&self, event: usize);
    fn record(&self, stream: usize, event: usize) -> Result<(), Error>;
    fn wait_in(&self, stream: usize, event: usize) -> Result<(), Error>;
    fn wait(&self, event: usize) -> Result<(), Error>;
    fn is_done(&self, event: usize) -> Result<bool, Error>;
    fn between(&self, start: usize, end: usize) -> Result<Duration, Error>;

    /// # Safety
    /// `from` is pinned memory of this device, readable for `bytes` and unchanged until the copy is done, and `to` lies in
    /// its memory with at least `bytes` after it.
    unsafe fn upload(&self, stream: usize, from: *const u8, to: u64, bytes: usize) -> Result<(), Error>;
    /// # Safety
    /// As for `upload`, in reverse: nothing reads `to` until the copy is done.
    unsafe fn download(&self, stream: usize, from: u64, to: *mut u8, bytes: usize) -> Result<(), Error>;
    /// # Safety
    /// Both lie in this device's memory with `bytes` after them.
    unsafe fn copy(&self, stream: usize, from: u64, to: u64, bytes: usize) -> Result<(), Error>;
    /// # Safety
    /// `at` lies in this device's memory with `bytes` after it.
    unsafe fn zero(&self, stream: usize, at: u64, bytes: usize) -> Result<(), Error>;
    /// # Safety
    /// The arguments are those that the function declares, and it reads and writes only device memory that lives until
    /// the work is done.
    unsafe fn launch(
        &self,
        stream: usize,
        function: usize,
        grid: Grid,
        arguments: &[Argument],
    ) -> Result<(), Error>;
}
