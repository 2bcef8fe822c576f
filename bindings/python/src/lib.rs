//! The extension module of the Python package `lanework`: one file for each primitive. `python/lanework` re-exports it.

mod chiavdf;
mod errors;
mod magma;
mod mayo;
mod rows;
mod sys;
mod vdf;

use pyo3::prelude::*;

/// The compiled part of the package.
#[pymodule]
mod _lanework {
    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        crate::errors::add(module)
    }

    #[pymodule]
    mod mayo {
        #[pymodule_export]
        use crate::mayo::{PublicKey, SecretKey, SigningKey, VerifyingKey, sign_batch, verify_batch};
    }

    #[pymodule]
    mod magma {
        #[pymodule_export]
        use crate::magma::{Ctr, Key, Mgm, Omac, decrypt_file, encrypt_file};
    }

    #[pymodule]
    mod vdf {
        #[pymodule_export]
        use crate::vdf::{
            Discriminant, Progress, Proof, compact, evaluate, prove, verify, verify_batch, verify_compact,
        };
    }

    #[pymodule]
    mod chiavdf {
        #[pymodule_export]
        use crate::chiavdf::{challenge, coefficients, product};
    }
}
