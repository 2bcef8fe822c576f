//! The squaring chain as provers take it.
#![forbid(unsafe_code)]

use lanework_integer::{Int, Uint};

use crate::backend::Engine;
use crate::chain::{Chain, ChainError, Coefficients};
use crate::discriminant::Discriminant;
use crate::form::Form;

use super::prove::{Corrupted, Squarer};

/// A [`Chain`] that knows its discriminant: several times as fast as [`Plain`](super::Plain).
#[derive(Clone, Debug)]
pub struct Fast<'a> {
    d: &'a Discriminant,
    chain: Chain,
}

/// What a chain in d from x starts with: |D|, and the coefficients.
pub(crate) fn coefficients(d: &Discriminant, x: &Form) -> Result<(Uint<32>, Coefficients), ChainError> {
    let magnitude = d.value().magnitude().try_resize().ok_or(ChainError::Discriminant)?;
    let narrow = |n: Int<33>| n.try_resize().ok_or(ChainError::Form);
    let (a, b, c) = (narrow(x.a())?, narrow(x.b())?, narrow(x.c())?);
    Ok((magnitude, Coefficients { a: *a.magnitude(), b, c: *c.magnitude() }))
}

impl<'a> Fast<'a> {
    /// A chain that starts from x.
    ///
    /// # Errors
    /// [`ChainError`] if x does not have the discriminant d, or d is not odd.
    pub fn new(engine: Engine, d: &'a Discriminant, x: &Form) -> Result<Fast<'a>, ChainError> {
        let (magnitude, start) = coefficients(d, x)?;
        Ok(Fast { d, chain: Chain::new(engine, &magnitude, &start)? })
    }

    /// Squarings that only the general code could do.
    #[must_use]
    pub fn slow(&self) -> u64 {
        self.chain.slow()
    }
}

impl Squarer for Fast<'_> {
    fn advance(&mut self, squarings: u64) -> Result<(), Corrupted> {
        self.chain.square(squarings).map_err(|_| Corrupted { after: self.chain.done() })
    }

    fn form(&self) -> Form {
        let Coefficients { a, b, .. } = self.chain.form();
        let a = Int::new(false, a);
        Form::new(self.d, &a.resize(), &b.resize())
            .expect("the chain keeps the discriminant, and was just checked for it")
    }
}
