//! Repeated squaring of one form: the prover's chain, the timelord's, and the laboratory's.
#![forbid(unsafe_code)]

use alloc::boxed::Box;
#[cfg(any(test, feature = "std"))]
use alloc::vec::Vec;
use core::fmt;

use crate::backend::generic::compose::{minus, modulo, residue};
use crate::backend::{Engine, Form1024};
use crate::discriminant::Discriminant;
use crate::form::Form;
use crate::form::layout::Layout;
#[cfg(any(test, feature = "std"))]
use crate::form::packed;
use crate::group::Group;

/// Why a chain cannot start or continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainError {
    /// b^2 - 4 a c is not the discriminant.
    Form,
    /// The form's discriminant changed while squaring: a fault of the machine, or of this code.
    Corrupted {
        /// Squarings up to the last check that passed.
        good: u64,
    },
    /// The count of squarings would exceed [`u64::MAX`]. Nothing was squared, and the chain is as it was.
    TooMany,
}

impl fmt::Display for ChainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChainError::Form => f.write_str("the form does not have the discriminant"),
            ChainError::Corrupted { good } => {
                write!(f, "the form lost its discriminant after squaring {good}: hardware or memory fault")
            }
            ChainError::TooMany => f.write_str("more squarings than a chain can count"),
        }
    }
}

impl core::error::Error for ChainError {}

/// Squarings between two checks of the discriminant modulo a word.
pub const CHECK_EVERY: u64 = 1000;

/// A form being squared, again and again.
#[derive(Clone, Debug)]
pub struct Chain {
    discriminant: Discriminant,
    engine: Engine,
    bits: usize,
    /// The discriminant modulo 2^64 - 1.
    expected: u64,
    form: Layout,
    done: u64,
    /// Squarings at the last check that passed.
    checked: u64,
    slow: u64,
}

impl Chain {
    /// A chain from x.
    ///
    /// # Errors
    /// [`ChainError::Form`] if x does not have the discriminant.
    pub fn new<'a>(group: impl Into<Group<'a>>, x: &Form) -> Result<Chain, ChainError> {
        Chain::resume(group, x, 0, 0)
    }

    /// Continues a chain from `form`, after `done` squarings, `slow` of them by the general code. Counts continue from
    /// there.
    ///
    /// # Errors
    /// As [`Chain::new`].
    pub fn resume<'a>(
        group: impl Into<Group<'a>>,
        form: &Form,
        done: u64,
        slow: u64,
    ) -> Result<Chain, ChainError> {
        let group = group.into();
        let d = group.discriminant();
        if !form.has_discriminant(d) {
            return Err(ChainError::Form);
        }
        Ok(Chain {
            discriminant: d.clone(),
            engine: group.engine(),
            bits: d.bits(),
            expected: modulo(&[minus(modulo(d.number().magnitude()))]),
            form: Layout::General(Box::new(form.clone())),
            done,
            checked: done,
            slow,
        })
    }

    /// Squares n times, and checks the form at the end and every [`CHECK_EVERY`] squarings before.
    ///
    /// # Errors
    /// [`ChainError::TooMany`], before the first squaring. [`ChainError::Corrupted`]; the chain is then of no more use.
    pub fn square(&mut self, n: u64) -> Result<(), ChainError> {
        self.run(n)?;
        self.check()
    }

    /// [`Chain::square`] without the check at the end, for callers that read the form often: it may be up to
    /// [`CHECK_EVERY`] squarings away from the last check.
    ///
    /// # Errors
    /// As [`Chain::square`].
    pub fn run(&mut self, n: u64) -> Result<(), ChainError> {
        let end = self.done.checked_add(n).ok_or(ChainError::TooMany)?;
        while self.done < end {
            let due = self.checked.saturating_add(CHECK_EVERY);
            let stop = end.min(due);
            while self.done < stop {
                if !self.advance(stop - self.done) {
                    return Err(self.corrupted());
                }
            }
            if self.done == due {
                self.check()?;
            }
        }
        Ok(())
    }

    /// Whether the form still has the discriminant, modulo a word.
    ///
    /// # Errors
    /// [`ChainError::Corrupted`]; the chain is then of no more use.
    pub fn check(&mut self) -> Result<(), ChainError> {
        let (a, b, _, c) = self.form.parts();
        if residue(a, b, c) != self.expected {
            return Err(self.corrupted());
        }
        self.checked = self.done;
        Ok(())
    }

    /// The chain's form lost its discriminant after the last check that passed.
    pub(crate) fn corrupted(&self) -> ChainError {
        ChainError::Corrupted { good: self.checked }
    }

    /// Squares at least once and at most n times; false if the general code finds that the form does not have
    /// the discriminant.
    fn advance(&mut self, n: u64) -> bool {
        if let Layout::General(form) = &self.form {
            self.form = Layout::of(Form::clone(form), self.bits);
        }
        let done = self.form.square(self.discriminant.on(self.engine), n);
        self.done += done;
        if done < n {
            let Ok(form) = self.form() else { return false };
            self.form = Layout::General(Box::new(form.square_generally(&self.discriminant)));
            self.done += 1;
            // The count that a chain resumes with may be any.
            self.slow = self.slow.saturating_add(1);
        }
        true
    }

    /// The form in the layout of the next squaring.
    #[cfg(any(test, feature = "std"))]
    pub(crate) fn layout(&self) -> &Layout {
        &self.form
    }

    /// The form in the layout for 513 to 1,024 bits, if it fits, and the kernels' stop.
    pub(crate) fn form1024(&self) -> Option<(Form1024, usize)> {
        match &self.form {
            Layout::Form1024(form) => Some((*form, self.discriminant.stop())),
            _ => None,
        }
    }

    /// The form reached, with its discriminant checked in full.
    ///
    /// # Errors
    /// [`ChainError::Corrupted`]; the chain is then of no more use.
    pub fn form(&self) -> Result<Form, ChainError> {
        let mut form = self.form.unreduced();
        // Checked before any reduction: reducing a form of another discriminant may not end.
        if !form.has_discriminant(&self.discriminant) {
            return Err(self.corrupted());
        }
        form.reduce();
        Ok(form)
    }

    /// Appends the form, packed. Kernels leave |b| <= a <= c, so that a and b fit.
    #[cfg(any(test, feature = "std"))]
    pub(crate) fn pack(&self, out: &mut Vec<u64>) {
        let (a, b, negative, _) = self.form.parts();
        packed::append(packed::size(self.bits), a, b, negative, out);
    }

    /// The form, packed.
    #[cfg(any(test, feature = "std"))]
    pub(crate) fn packed(&self) -> Vec<u64> {
        let mut out = Vec::with_capacity(2 * packed::size(self.bits));
        self.pack(&mut out);
        out
    }

    /// The discriminant.
    #[must_use]
    pub fn discriminant(&self) -> &Discriminant {
        &self.discriminant
    }

    /// Squarings done, including those before a resumed start.
    #[must_use]
    pub const fn done(&self) -> u64 {
        self.done
    }

    /// Squarings that the general code did, because a number was too long or too short for a kernel.
    #[must_use]
    pub const fn slow(&self) -> u64 {
        self.slow
    }

    /// Flips one bit of the form, to test the check of the discriminant.
    #[doc(hidden)]
    pub fn corrupt(&mut self, bit: usize) {
        let flip = |c: &mut [u64]| c[bit / 64 % 4] ^= 1 << (bit % 64);
        match &mut self.form {
            Layout::Form512(form) => flip(&mut form.c),
            Layout::Form1024(form) => flip(&mut form.c),
            Layout::Form2048(form) => flip(&mut form.c),
            Layout::General(form) => {
                flip(form.c.store());
                form.c.settle(crate::form::num::CAPACITY);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Engine;
    use lanework_cpu::Cpu;

    /// A bit of any coefficient: kernels refuse the result or square it, and the general code never starts from it.
    #[test]
    fn a_flipped_bit_of_any_coefficient_is_noticed() {
        let d = Discriminant::from_seed(b"a flipped bit", 1024).expect("a discriminant");
        let x = Form::generator(&d).expect("a generator");
        for engine in Engine::available(&Cpu::detect()) {
            let mut right = Chain::new(d.on(engine), &x).expect("a form of d");
            right.square(100).expect("no fault");
            for bit in (0..64 * 25).step_by(7) {
                let mut chain = right.clone();
                let Layout::Form1024(form) = &mut chain.form else { panic!("a form of 1,024 bits") };
                let limbs = form.a.iter_mut().chain(&mut form.b).chain(&mut form.c);
                *limbs.into_iter().nth(bit / 64).expect("25 limbs") ^= 1 << (bit % 64);
                let name = engine.name();
                assert_eq!(
                    chain.form().err(),
                    Some(ChainError::Corrupted { good: 100 }),
                    "{name}, bit {bit}"
                );
                assert_eq!(chain.square(3), Err(ChainError::Corrupted { good: 100 }), "{name}, bit {bit}");
            }
        }
    }
}
