//! Pinned memory as slices.

use core::marker::PhantomData;
use core::ptr::NonNull;

use zeroize::Zeroize as _;

use crate::backend::plain::Plain;

/// `len` values at an address aligned for any of them. Its creator frees the memory.
#[derive(Debug)]
pub(crate) struct Pages<T: Plain> {
    start: NonNull<u8>,
    len: usize,
    of: PhantomData<T>,
}

// SAFETY: it is ordinary memory, accessed through `&self` for reading and `&mut self` for writing only.
unsafe impl<T: Plain> Send for Pages<T> {}
// SAFETY: as above.
unsafe impl<T: Plain> Sync for Pages<T> {}

impl<T: Plain> Pages<T> {
    /// Over initialised memory of `len` values, aligned to 4096 bytes, that nothing else uses but copies which
    /// [`Pinned`](crate::Pinned) waits for. Crate-internal callers get it from `Machine::pin`, which guarantees this.
    pub(crate) fn new(start: NonNull<u8>, len: usize) -> Pages<T> {
        Pages { start, len, of: PhantomData }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(crate) fn slice(&self) -> &[T] {
        // SAFETY: `new` was given memory of `len` values, initialised and aligned, and any bytes are values.
        unsafe { core::slice::from_raw_parts(self.start.as_ptr().cast(), self.len) }
    }

    pub(crate) fn slice_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and `self` is borrowed for as long.
        unsafe { core::slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.len) }
    }

    /// Makes it zero, for its first use.
    pub(crate) fn clear(&mut self) {
        // SAFETY: as above; any bytes are values.
        unsafe { self.start.as_ptr().write_bytes(0, self.len * size_of::<T>()) };
    }

    /// Overwrites it with zero, by writes that the compiler must keep.
    pub(crate) fn wipe(&mut self) {
        // SAFETY: as above; such values have no padding, so their bytes are readable.
        let bytes =
            unsafe { core::slice::from_raw_parts_mut(self.start.as_ptr(), self.len * size_of::<T>()) };
        bytes.zeroize();
    }
}
