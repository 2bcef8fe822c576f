//! The loops that `overhead.py` compares with Python's, as a module.

use std::time::Instant;

use lanework_cpu::Threads;
use lanework_mayo::batch::{self, Verifiers};
use lanework_mayo::{Params, PublicKey, Round, Set, Signature, VerifyingKey};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The module.
#[pymodule]
mod overhead {
    use super::*;

    /// Seconds of `times` verifications under an expanded MAYO-2 key, one by one, or as one batch. Both read the signatures
    /// from bytes, as Python's functions do.
    #[pyfunction]
    fn verify(
        py: Python<'_>,
        key: &[u8],
        message: &[u8],
        signature: &[u8],
        times: usize,
        all: bool,
    ) -> PyResult<f64> {
        let wrong = |why: lanework_mayo::Error| PyValueError::new_err(why.to_string());
        let params = Params::of(Round::Three, Set::Mayo2);
        let key = PublicKey::from_bytes(params, key).map_err(wrong)?;
        let key = VerifyingKey::new(lanework_mayo::Engine::best(), &key);
        let (messages, signatures) = (vec![message; times], vec![signature; times]);
        let run = || {
            let start = Instant::now();
            if all {
                let read = signatures.iter().map(|bytes| Signature::from_bytes(params, bytes));
                let signatures: Vec<Signature> = read.collect::<Result<_, _>>()?;
                let found = batch::verify(Verifiers::One(&key), &messages, &signatures, Threads::One)?;
                found.into_iter().collect::<Result<Vec<()>, _>>()?;
            } else {
                let each = messages.iter().zip(&signatures);
                each.into_iter().try_for_each(|(m, s)| key.verify(m, &Signature::from_bytes(params, s)?))?;
            }
            Ok(start.elapsed().as_secs_f64())
        };
        py.detach(run).map_err(wrong)
    }
}
