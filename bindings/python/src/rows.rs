//! Many byte strings as slices, without copies.
#![forbid(unsafe_code)]

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::errors::{kind, malformed};
use crate::sys::{Buffer, Views};

/// A list or tuple of buffers, the rows of a two-dimensional array of bytes, or an Arrow array.
pub(crate) enum Rows {
    Each(Views),
    Offsets { data: Buffer, ends: Vec<usize>, valid: Option<Valid> },
}

/// Arrow's bitmap of values that are not null, from a bit on.
pub(crate) struct Valid {
    bitmap: Buffer,
    from: usize,
}

impl Valid {
    fn is_set(&self, i: usize) -> bool {
        let at = self.from + i;
        self.bitmap.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1)
    }
}

impl Rows {
    pub(crate) fn get(obj: &Bound<'_, PyAny>) -> PyResult<Rows> {
        if obj.is_instance_of::<PyList>() || obj.is_instance_of::<PyTuple>() {
            return Views::get(obj).map(Rows::Each);
        }
        if obj.hasattr("__arrow_c_array__")? || obj.hasattr("__arrow_c_stream__")? {
            return Rows::arrow(obj);
        }
        let matrix = match Buffer::matrix(obj) {
            Err(why) if why.is_instance_of::<PyTypeError>(obj.py()) => None,
            other => other?,
        };
        let (data, count, width) = matrix.ok_or_else(|| not_rows(obj))?;
        // The length is `count` times `width`; an exporter that says otherwise meets the bounds checks of slices.
        let ends = (0..=count).map(|i| i * width).collect();
        Ok(Rows::Offsets { data, ends, valid: None })
    }

    /// An Arrow array through the buffer protocol of its buffers; `lanework.arrow` takes it apart.
    fn arrow(obj: &Bound<'_, PyAny>) -> PyResult<Rows> {
        type Parts<'py> =
            (Bound<'py, PyAny>, Option<Bound<'py, PyAny>>, Bound<'py, PyAny>, usize, usize, usize);
        let parts = obj.py().import("lanework.arrow")?.getattr("_parts")?.call1((obj,))?;
        let (data, bitmap, offsets, width, from, count): Parts<'_> = parts.extract()?;
        let valid = bitmap.map(|b| Buffer::get(&b).map(|bitmap| Valid { bitmap, from })).transpose()?;
        let data = Buffer::get(&data)?;
        let fault = || malformed("the Arrow array's buffers do not hold its rows");
        if offsets.is_none() {
            let skip = width.checked_mul(from).ok_or_else(fault)?;
            let end = width.checked_mul(count).and_then(|n| n.checked_add(skip)).ok_or_else(fault)?;
            if end > data.len() {
                return Err(fault());
            }
            let ends = (0..=count).map(|i| skip + i * width).collect();
            return Ok(Rows::Offsets { data, ends, valid });
        }
        // `width` is the size of an offset: 4 or 8 bytes.
        let offsets = Buffer::get(&offsets)?;
        let word =
            |bytes: &[u8]| bytes.iter().rev().fold(0u64, |sum, &byte| sum << 8 | u64::from(byte)) as usize;
        if count == 0 {
            return Ok(Rows::Offsets { data, ends: vec![0], valid });
        }
        let all = offsets.chunks_exact(width.max(1)).skip(from).take(count + 1);
        let ends: Vec<usize> = all.map(word).collect();
        if ends.len() != count + 1 || !ends.is_sorted() || ends.last().is_some_and(|&end| end > data.len()) {
            return Err(fault());
        }
        Ok(Rows::Offsets { data, ends, valid })
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Rows::Each(each) => each.len(),
            Rows::Offsets { ends, .. } => ends.len() - 1,
        }
    }

    /// The rows; a null one is `None`.
    pub(crate) fn slices(&self) -> Vec<Option<&[u8]>> {
        let unless_null =
            |valid: &Option<Valid>, i: usize| valid.as_ref().is_none_or(|valid| valid.is_set(i));
        match self {
            Rows::Each(each) => each.slices().map(Some).collect(),
            Rows::Offsets { data, ends, valid } => ends
                .windows(2)
                .enumerate()
                .map(|(i, pair)| unless_null(valid, i).then(|| &data[pair[0]..pair[1]]))
                .collect(),
        }
    }
}

fn not_rows(obj: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!(
        "a batch is a list of bytes-like objects, a two-dimensional array of bytes or an Arrow array, not {}",
        kind(obj)
    ))
}

impl<'py> FromPyObject<'_, 'py> for Rows {
    type Error = PyErr;

    fn extract(obj: Borrowed<'_, 'py, PyAny>) -> PyResult<Rows> {
        Rows::get(&obj)
    }
}
