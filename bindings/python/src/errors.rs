//! The exceptions: one class for each thing that a caller can do about an error, with the library's own message.
#![forbid(unsafe_code)]

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

/// What a caller can do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The call makes no sense: another length, another set, an unreadable key.
    Malformed,
    /// The input is well formed, and the answer is no.
    Refused,
    /// A key or a counter is used up.
    Exhausted,
    /// The machine failed: no randomness, no threads, a wrong result.
    Fault,
}

struct Classes {
    error: Py<PyType>,
    malformed: Py<PyType>,
    refused: Py<PyType>,
    exhausted: Py<PyType>,
    fault: Py<PyType>,
}

static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();

fn classes(py: Python<'_>) -> PyResult<&Classes> {
    CLASSES.get_or_try_init(py, || {
        let class = |name: &str, doc: &str, bases: Vec<Bound<'_, PyAny>>| -> PyResult<Py<PyType>> {
            let members = PyDict::new(py);
            members.set_item("__doc__", doc)?;
            members.set_item("__module__", "lanework")?;
            let made = py.get_type::<PyType>().call1((name, PyTuple::new(py, bases)?, members))?;
            Ok(made.cast_into::<PyType>()?.unbind())
        };
        let builtin = |name: &str| py.import("builtins")?.getattr(name);
        let error = class("Error", "Every error of lanework.", vec![builtin("Exception")?])?;
        let base = || error.bind(py).clone().into_any();
        Ok(Classes {
            malformed: class(
                "Malformed",
                "The call makes no sense: a wrong length, another parameter set, an unreadable key.",
                vec![base(), builtin("ValueError")?],
            )?,
            refused: class(
                "Refused",
                "The input is well formed, but not authentic or not proved.",
                vec![base()],
            )?,
            exhausted: class("Exhausted", "A key or a counter is used up.", vec![base()])?,
            fault: class(
                "Fault",
                "The machine failed: no randomness, no threads, or a wrong result that was not returned.",
                vec![base(), builtin("RuntimeError")?],
            )?,
            error,
        })
    })
}

/// The exception of a kind, with a message.
pub(crate) fn exception(kind: Kind, message: String) -> PyErr {
    Python::attach(|py| match classes(py) {
        Ok(all) => {
            let class = match kind {
                Kind::Malformed => &all.malformed,
                Kind::Refused => &all.refused,
                Kind::Exhausted => &all.exhausted,
                Kind::Fault => &all.fault,
            };
            PyErr::from_type(class.bind(py).clone(), message)
        }
        Err(why) => why,
    })
}

pub(crate) fn malformed(message: impl Into<String>) -> PyErr {
    exception(Kind::Malformed, message.into())
}

/// An error of the library as an exception with its message.
pub(crate) trait Raise<T> {
    fn raise(self) -> PyResult<T>;
}

impl<T, E: Class + std::fmt::Display> Raise<T> for Result<T, E> {
    fn raise(self) -> PyResult<T> {
        self.map_err(|e| exception(e.kind(), e.to_string()))
    }
}

/// The kind of a library's error.
pub(crate) trait Class {
    fn kind(&self) -> Kind;
}

impl Class for lanework_mayo::Error {
    fn kind(&self) -> Kind {
        use lanework_mayo::Error as E;
        match self {
            E::Refused => Kind::Refused,
            E::Exhausted | E::Fault | E::Random(_) | E::Threads(_) => Kind::Fault,
            _ => Kind::Malformed,
        }
    }
}

impl Class for lanework_magma::Error {
    fn kind(&self) -> Kind {
        use lanework_magma::Error as E;
        match self {
            E::Refused => Kind::Refused,
            E::CounterExhausted
            | E::KeyExhausted { .. }
            | E::TooManyRefused { .. }
            | E::SequenceOverflow { .. } => Kind::Exhausted,
            E::Threads(_) => Kind::Fault,
            _ => Kind::Malformed,
        }
    }
}

impl Class for lanework_magma::container::Error {
    fn kind(&self) -> Kind {
        use lanework_magma::container::Error as E;
        match self {
            // A header that ends early began like one: the file was cut short.
            E::HeaderEnds(_)
            | E::WrongKey
            | E::Damaged { .. }
            | E::Torn { .. }
            | E::Truncated { .. }
            | E::Trailing { .. } => Kind::Refused,
            E::TooManyRefused { .. } => Kind::Exhausted,
            _ => Kind::Malformed,
        }
    }
}

impl Class for lanework_vdf::VerifyError {
    fn kind(&self) -> Kind {
        if self.is_malformed() { Kind::Malformed } else { Kind::Refused }
    }
}

impl Class for lanework_vdf::DiscriminantError {
    fn kind(&self) -> Kind {
        Kind::Malformed
    }
}

impl Class for lanework_vdf::DecodeError {
    fn kind(&self) -> Kind {
        Kind::Malformed
    }
}

impl Class for lanework_vdf::number::NumberError {
    fn kind(&self) -> Kind {
        Kind::Malformed
    }
}

impl Class for lanework_vdf::ProverError {
    fn kind(&self) -> Kind {
        use lanework_vdf::ProverError as E;
        match self {
            E::NoIterations | E::Segments | E::Checkpoint(_) => Kind::Malformed,
            E::Chain(lanework_vdf::chain::ChainError::Form) => Kind::Malformed,
            _ => Kind::Fault,
        }
    }
}

impl Class for lanework_cpu::PoolError {
    fn kind(&self) -> Kind {
        Kind::Fault
    }
}

impl Class for getrandom::Error {
    fn kind(&self) -> Kind {
        Kind::Fault
    }
}

/// Adds the classes to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let all = classes(py)?;
    for (name, class) in [
        ("Error", &all.error),
        ("Malformed", &all.malformed),
        ("Refused", &all.refused),
        ("Exhausted", &all.exhausted),
        ("Fault", &all.fault),
    ] {
        module.add(name, class.bind(py))?;
    }
    Ok(())
}

/// The name of an object's class, for messages.
pub(crate) fn kind(obj: &Bound<'_, PyAny>) -> String {
    obj.get_type().name().map_or_else(|_| "this".to_owned(), |name| name.to_string())
}
