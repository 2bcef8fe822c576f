//! What `lanework.compat.chiavdf` needs beside the public functions: forms as Chia's nodes read them. The functions are
//! private to the package.
#![forbid(unsafe_code)]

use lanework_vdf::{Form, Lenient, number};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::errors::Raise;
use crate::sys::Buffer;
use crate::vdf::Discriminant;

/// The coefficients a and b in hexadecimal digits.
#[pyfunction]
pub(crate) fn coefficients<'py>(
    py: Python<'py>,
    discriminant: PyRef<'_, Discriminant>,
    form: Buffer,
) -> PyResult<(Bound<'py, PyString>, Bound<'py, PyString>)> {
    let form = Form::from_bytes(Lenient, &discriminant.0, &form).raise()?;
    let text = |value| PyString::new(py, &number::to_hexadecimal(&value));
    Ok((text(form.a()), text(form.b())))
}

/// The prime that x and y hash to.
#[pyfunction]
pub(crate) fn challenge<'py>(
    py: Python<'py>,
    discriminant: PyRef<'_, Discriminant>,
    x: Buffer,
    y: Buffer,
) -> PyResult<Bound<'py, PyBytes>> {
    let d = &discriminant.0;
    let (x, y) = (Form::from_bytes(Lenient, d, &x).raise()?, Form::from_bytes(Lenient, d, &y).raise()?);
    let b = py.detach(|| lanework_vdf::Challenge::of(d, &x, &y));
    Ok(PyBytes::new(py, &b.to_bytes()))
}

/// pi^b x^r as bytes; b and r are numbers, highest byte first.
#[pyfunction]
pub(crate) fn product<'py>(
    py: Python<'py>,
    discriminant: PyRef<'_, Discriminant>,
    pi: Buffer,
    b: Buffer,
    x: Buffer,
    r: Buffer,
) -> PyResult<Bound<'py, PyBytes>> {
    let d = &discriminant.0;
    let (pi, x) = (Form::from_bytes(Lenient, d, &pi).raise()?, Form::from_bytes(Lenient, d, &x).raise()?);
    let power = |form: &Form, exponent: &[u8]| {
        let step = |out: Form, &byte: &u8| out.power(256, d).compose(&form.power(byte.into(), d), d);
        exponent.iter().fold(Form::identity(d), step)
    };
    let y = py.detach(|| power(&pi, &b).compose(&power(&x, &r), d).to_bytes(d));
    Ok(PyBytes::new(py, &y))
}
