//! The squaring chain as the prover runs it: from any point of the whole chain on, giving packed forms.
#![forbid(unsafe_code)]

use super::kept;
use crate::backend::Engine;
use crate::chain::{Chain, ChainError};
use crate::discriminant::Discriminant;
use crate::form::Form;
use crate::proof::coefficients;

/// A [`Chain`] that counts from the beginning of the whole chain.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    d: Discriminant,
    limbs: usize,
    chain: Chain,
    done: u64,
    slow: u64,
}

impl Line {
    /// From `form`, which was reached after so many squarings of which `slow` were general.
    pub(crate) fn new(
        engine: Engine,
        d: &Discriminant,
        form: &Form,
        done: u64,
        slow: u64,
    ) -> Result<Line, ChainError> {
        let (magnitude, form) = coefficients(d, form)?;
        let chain = Chain::new(engine, &magnitude, &form)?;
        Ok(Line { d: d.clone(), limbs: kept::limbs(d.bits()), chain, done, slow })
    }

    fn absolute(&self, e: ChainError) -> ChainError {
        match e {
            ChainError::Corrupted { good } => ChainError::Corrupted { good: self.done + good },
            other => other,
        }
    }

    pub(crate) fn run(&mut self, n: u64) -> Result<(), ChainError> {
        self.chain.run(n).map_err(|e| self.absolute(e))
    }

    /// Looks at the discriminant now.
    pub(crate) fn check(&mut self) -> Result<(), ChainError> {
        self.chain.check().map_err(|e| self.absolute(e))
    }

    /// General squarings, from the beginning.
    pub(crate) fn slow(&self) -> u64 {
        self.slow + self.chain.slow()
    }

    /// Appends the form.
    pub(crate) fn pack(&self, out: &mut Vec<u64>) {
        self.chain.pack(self.limbs, out);
    }

    /// The form, packed.
    pub(crate) fn packed(&self) -> Vec<u64> {
        let mut out = Vec::with_capacity(2 * self.limbs);
        self.pack(&mut out);
        out
    }

    /// The form, with its discriminant checked in full.
    pub(crate) fn form(&self) -> Result<Form, ChainError> {
        kept::unpack(&self.d, &self.packed()).map_err(|_| ChainError::Corrupted { good: self.done })
    }

    #[cfg(test)]
    pub(crate) fn corrupt(&mut self, bit: usize) {
        self.chain.corrupt(bit);
    }
}
