//! The proof as the paper defines it.
#![forbid(unsafe_code)]

use crate::backend::Engine;
use crate::chain::ChainError;
use crate::discriminant::Discriminant;
use crate::form::Form;
use crate::form::num::Num;
use crate::proof::{Challenge, Proof, Segment};
use crate::prover::{ProverError, Task};

/// The proof that [`prove`](crate::prove) must return.
///
/// # Errors
/// No squarings, segments that do not fit them, or a form of another discriminant.
pub fn prove(task: &Task) -> Result<Proof, ProverError> {
    let Task { discriminant: d, x, .. } = task;
    if !x.has_discriminant(d) {
        return Err(ChainError::Form.into());
    }
    let (mut y, mut segments) = (x.clone(), Vec::new());
    for iterations in task.lengths()? {
        let x = y.clone();
        (0..iterations).for_each(|_| y = y.square_generally(d));
        let b = Challenge::of(d.on(Engine::portable()), &x, &y);
        let pi = quotient_power(&x, iterations, &b, d);
        segments.push(Segment { iterations, b, pi });
    }
    let last = segments.pop().ok_or(ProverError::NoIterations)?;
    Ok(Proof { y, pi: last.pi, segments })
}

/// x^(2^T / B rounded down): the quotient's bits by long division, the highest first.
fn quotient_power(x: &Form, iterations: u64, b: &Challenge, d: &Discriminant) -> Form {
    let (mut pi, mut rest) = (Form::identity(d), Num::from_u64(1));
    for _ in 0..iterations {
        pi = pi.square_generally(d);
        rest = rest.double();
        if rest >= b.0 {
            rest = rest.sub(&b.0);
            pi = pi.compose_generally(x, d);
        }
    }
    pi
}
