//! The one unsafe call of the public interface: launching a kernel with its arguments.

use crate::backend::plain::Plain;
use crate::error::Error;
use crate::memory::Buffer;
use crate::module::Kernel;
use crate::stream::{Grid, Stream};

/// An argument's 1, 2, 4 or 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bits {
    pub(crate) value: u64,
    pub(crate) bytes: u8,
    pub(crate) pointer: bool,
}

/// A kernel's argument: a number of the kernel's own width, or the address of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument(pub(crate) Bits);

macro_rules! number {
    ($($t:ty as $u:ty),*) => {$(
        impl From<$t> for Argument {
            fn from(value: $t) -> Argument {
                Argument(Bits { value: u64::from(value as $u), bytes: size_of::<$t>() as u8, pointer: false })
            }
        }
    )*};
}
number!(u8 as u8, u16 as u16, u32 as u32, u64 as u64, i32 as u32, i64 as u64);

impl Argument {
    pub(crate) fn address(at: u64) -> Argument {
        Argument(Bits { value: at, bytes: 8, pointer: true })
    }

    /// A null pointer, for arguments that a kernel does not use.
    #[must_use]
    pub fn null() -> Argument {
        Argument::address(0)
    }
}

impl<T: Plain> From<&Buffer<T>> for Argument {
    fn from(buffer: &Buffer<T>) -> Argument {
        Argument::address(buffer.address())
    }
}

/// The arguments of a launch, in the kernel's order: `args![&buffer, 5u32]`.
#[macro_export]
macro_rules! args {
    ($($argument:expr),* $(,)?) => { &[$($crate::Argument::from($argument)),*] };
}

impl Stream {
    /// Queues a kernel.
    ///
    /// # Errors
    /// [`Error::Shape`] where the grid is empty or larger than a kernel may have, or the kernel belongs to a different device; in
    /// emulation also where the arguments' number or widths are not the kernel's. The kernel's own faults are returned
    /// by waiting for the stream.
    ///
    /// # Safety
    /// The arguments are those that the kernel declares, and with them it stays inside its buffers. Buffers may be
    /// dropped before it is done, since dropping waits.
    pub unsafe fn launch(&self, kernel: &Kernel, grid: Grid, arguments: &[Argument]) -> Result<(), Error> {
        let facts = kernel.facts();
        self.same(kernel.machine(), "the kernel")?;
        if grid.blocks == 0
            || grid.blocks > i32::MAX as u32
            || grid.threads == 0
            || grid.threads > facts.max_threads
        {
            return Err(Error::Shape(format!(
                "{} cannot be launched with {} blocks of {} threads: a block has 1 to {}",
                kernel.name(),
                grid.blocks,
                grid.threads,
                facts.max_threads
            )));
        }
        kernel.allow_shared(grid.shared)?;
        // SAFETY: the caller's promise is the method's condition.
        unsafe { self.machine().launch(self.number(), kernel.number(), grid, arguments) }
    }
}
