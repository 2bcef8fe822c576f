//! Python's buffers as slices, without copies: the only module with `unsafe`.
//!
//! A buffer is exported for as long as its value lives, so its memory neither moves nor goes away, also while the GIL is
//! released. Its bytes must not be written by another thread meanwhile; the package's documentation says so, as
//! `hashlib` does.

use std::slice;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::errors::{kind, malformed};

/// An exported buffer. Boxed, since an exporter may keep the structure's address.
struct View(Box<ffi::Py_buffer>);

impl View {
    fn get(obj: &Bound<'_, PyAny>, flags: i32) -> PyResult<View> {
        let mut view = Box::new(ffi::Py_buffer::new());
        // SAFETY: `obj` is a live object, we are attached to the interpreter, and `view` is a structure of our own.
        if unsafe { ffi::PyObject_GetBuffer(obj.as_ptr(), &mut *view, flags) } != 0 {
            return Err(PyErr::fetch(obj.py()));
        }
        Ok(View(view))
    }

    fn len(&self) -> usize {
        len(&self.0)
    }

    fn bytes(&self) -> &[u8] {
        bytes(&self.0)
    }

    /// The two lengths of a two-dimensional array of bytes whose shape was requested.
    fn lengths(&self) -> Option<(usize, usize)> {
        if self.0.ndim != 2 || self.0.itemsize != 1 || self.0.shape.is_null() {
            return None;
        }
        // SAFETY: the shape was given, so it holds `ndim` = 2 lengths for as long as the buffer is exported.
        let (count, width) = unsafe { (*self.0.shape, *self.0.shape.add(1)) };
        Some((usize::try_from(count).unwrap_or(0), usize::try_from(width).unwrap_or(0)))
    }
}

fn len(view: &ffi::Py_buffer) -> usize {
    // A negative length would contradict the protocol; it becomes an empty slice.
    usize::try_from(view.len).unwrap_or(0)
}

/// The bytes of a structure in a [`View`] or [`Views`].
fn bytes(view: &ffi::Py_buffer) -> &[u8] {
    if len(view) == 0 {
        return &[];
    }
    // SAFETY: only this module has such structures. The buffer was requested contiguous, so `len` bytes are readable from
    // `buf` until it is released, which the owner's `Drop` does; the borrow of the structure ends before. The module's
    // documentation forbids writes by other threads.
    unsafe { slice::from_raw_parts(view.buf.cast::<u8>(), len(view)) }
}

impl Drop for View {
    fn drop(&mut self) {
        // Values are dropped attached: they are arguments of functions, or live in one that is attached again.
        Python::attach(|_| {
            // SAFETY: the structure was filled by `PyObject_GetBuffer` and is released once, attached to the interpreter.
            unsafe { ffi::PyBuffer_Release(&mut *self.0) }
        });
    }
}

// SAFETY: the structure is only a description of memory; releasing it attaches to the interpreter first.
unsafe impl Send for View {}
// SAFETY: as above; a shared reference gives out read-only bytes.
unsafe impl Sync for View {}

/// Readable bytes: `bytes`, `bytearray`, `memoryview`, `mmap`, arrays and Arrow buffers.
pub(crate) struct Buffer(View);

impl Buffer {
    pub(crate) fn get(obj: &Bound<'_, PyAny>) -> PyResult<Buffer> {
        View::get(obj, ffi::PyBUF_SIMPLE).map(Buffer)
    }

    /// A two-dimensional array of bytes, and its two lengths; `None` for other shapes and other items.
    pub(crate) fn matrix(obj: &Bound<'_, PyAny>) -> PyResult<Option<(Buffer, usize, usize)>> {
        let view = View::get(obj, ffi::PyBUF_ND | ffi::PyBUF_C_CONTIGUOUS)?;
        Ok(view.lengths().map(|(count, width)| (Buffer(view), count, width)))
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        self.0.bytes()
    }

    /// Whether the two share a byte.
    fn overlaps(&self, other: &Writable) -> bool {
        let (a, b) = (self.as_slice().as_ptr_range(), other.0.bytes().as_ptr_range());
        a.start < b.end && b.start < a.end
    }
}

impl std::ops::Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl<'py> FromPyObject<'_, 'py> for Buffer {
    type Error = PyErr;

    fn extract(obj: Borrowed<'_, 'py, PyAny>) -> PyResult<Buffer> {
        Buffer::get(&obj)
    }
}

/// Writable bytes.
pub(crate) struct Writable(View);

impl Writable {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The bytes, which none of `readers` shares. The borrows of `readers` last as long as the result's.
    ///
    /// # Errors
    /// One of `readers` overlaps.
    pub(crate) fn beside<'a>(&'a mut self, readers: &[&'a Buffer]) -> PyResult<&'a mut [u8]> {
        if readers.iter().any(|reader| reader.overlaps(self)) {
            return Err(malformed("input and output overlap"));
        }
        if self.len() == 0 {
            return Ok(&mut []);
        }
        // SAFETY: the buffer was requested writable and contiguous; the exclusive borrow of `self` makes this the only
        // slice of it in this call, except for `readers`, which share no byte with it. Other threads: see the module.
        Ok(unsafe { slice::from_raw_parts_mut(self.0.0.buf.cast::<u8>(), self.len()) })
    }

    /// Whether this buffer begins with the first `len` bytes of `input`, at the same place in memory.
    pub(crate) fn begins_at(&self, input: &Buffer, len: usize) -> bool {
        self.0.bytes().as_ptr() == input.as_slice().as_ptr() && self.len() >= len
    }
}

impl<'py> FromPyObject<'_, 'py> for Writable {
    type Error = PyErr;

    fn extract(obj: Borrowed<'_, 'py, PyAny>) -> PyResult<Writable> {
        View::get(&obj, ffi::PyBUF_WRITABLE).map(Writable)
    }
}

/// The exported buffers of a list's items. The vector never grows, since an exporter may keep a structure's address.
pub(crate) struct Views(Vec<ffi::Py_buffer>);

impl Views {
    pub(crate) fn get(list: &Bound<'_, PyAny>) -> PyResult<Views> {
        let py = list.py();
        let mut views = Views(Vec::with_capacity(list.len()?));
        for (i, item) in list.try_iter()?.enumerate() {
            let item = item?;
            if i == views.0.capacity() {
                return Err(malformed("the list grew while it was read"));
            }
            views.0.push(ffi::Py_buffer::new());
            // SAFETY: `item` is a live object, we are attached to the interpreter, and the structure is our own.
            if unsafe { ffi::PyObject_GetBuffer(item.as_ptr(), &mut views.0[i], ffi::PyBUF_SIMPLE) } != 0 {
                views.0.pop();
                let why = PyErr::fetch(py);
                return Err(match why.is_instance_of::<PyTypeError>(py) {
                    true => PyTypeError::new_err(format!("item {i} is not bytes-like: {}", kind(&item))),
                    false => why,
                });
            }
        }
        Ok(views)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn slices(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(bytes)
    }
}

impl Drop for Views {
    fn drop(&mut self) {
        Python::attach(|_| {
            for view in &mut self.0 {
                // SAFETY: as for `View`: each structure of the vector was filled by `PyObject_GetBuffer`.
                unsafe { ffi::PyBuffer_Release(view) }
            }
        });
    }
}

// SAFETY: as for `View`.
unsafe impl Send for Views {}
// SAFETY: as for `View`.
unsafe impl Sync for Views {}
