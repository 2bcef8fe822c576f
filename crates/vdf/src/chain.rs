//! Repeated squaring of one form.
#![forbid(unsafe_code)]

use core::fmt;

use lanework_integer::{Int, Uint};

use crate::backend::generic::compose::{PRIME, modulo, residue};
use crate::backend::generic::general::General;
use crate::backend::generic::nudupl::State;
use crate::backend::{Broad, Engine, Middle, Narrow};

/// The coefficients of a form a x^2 + b x y + c y^2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coefficients {
    /// a > 0.
    pub a: Uint<32>,
    /// b, of either sign.
    pub b: Int<32>,
    /// c > 0.
    pub c: Uint<32>,
}

/// Why a chain cannot start or go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainError {
    /// The discriminant is 0, or its negative is not 3 modulo 4: only odd discriminants are served.
    Discriminant,
    /// b^2 - 4 a c is not the discriminant, or a is 0.
    Form,
    /// The form's discriminant changed while squaring: the machine, or this code, made a mistake.
    Corrupted {
        /// Squarings up to the last check that passed.
        good: u64,
    },
}

impl fmt::Display for ChainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChainError::Discriminant => f.write_str("the discriminant is not odd and 1 modulo 4 below 0"),
            ChainError::Form => f.write_str("the form does not have the discriminant"),
            ChainError::Corrupted { good } => {
                write!(f, "the form lost its discriminant after squaring {good}: hardware or memory fault")
            }
        }
    }
}

impl core::error::Error for ChainError {}

/// Squarings between two checks of the discriminant modulo a word.
pub const CHECK_EVERY: u64 = 1000;

// One per chain, and never moved on the way.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Copy, Debug)]
enum Width {
    Narrow(Narrow),
    Middle(Middle),
    Broad(Broad),
    /// A shape that only the general code takes; the fast one is tried again after it.
    General(General),
}

/// A form being squared, again and again.
#[derive(Clone, Debug)]
pub struct Chain {
    engine: Engine,
    /// Of the discriminant.
    magnitude: Uint<32>,
    bits: usize,
    expected: u64,
    form: Width,
    done: u64,
    /// Squarings at the last check that passed.
    checked: u64,
    slow: u64,
}

impl Chain {
    /// A chain from `form`, whose discriminant is the negative of `magnitude` (up to 2,048 bits).
    ///
    /// # Errors
    /// [`ChainError::Discriminant`] and [`ChainError::Form`].
    pub fn new(engine: Engine, magnitude: &Uint<32>, form: &Coefficients) -> Result<Chain, ChainError> {
        if magnitude.limbs()[0] & 3 != 3 {
            return Err(ChainError::Discriminant);
        }
        if form.a.is_zero() || form.c.is_zero() {
            return Err(ChainError::Form);
        }
        let (a, c): (Uint<72>, Uint<72>) = (form.a.resize(), form.c.resize());
        let square: Uint<72> = form.b.magnitude().times(form.b.magnitude());
        let product: Uint<72> = a.times(&c);
        if square.plus(&magnitude.resize()) != product << 2 {
            return Err(ChainError::Form);
        }
        let general = General { a: Int::new(false, a), b: form.b.resize(), c: Int::new(false, c) }.reduced();
        Ok(Chain {
            engine,
            magnitude: *magnitude,
            bits: magnitude.bits(),
            expected: (PRIME - modulo(magnitude.limbs())) % PRIME,
            form: Width::General(general),
            done: 0,
            checked: 0,
            slow: 0,
        })
    }

    /// Squares n times, and checks the form at the end and every [`CHECK_EVERY`] squarings before.
    ///
    /// # Errors
    /// [`ChainError::Corrupted`]; the chain is then of no more use.
    pub fn square(&mut self, n: u64) -> Result<(), ChainError> {
        self.run(n)?;
        self.check()
    }

    /// [`Chain::square`] without the check at the end, for those who look at the form often: it may be up to
    /// [`CHECK_EVERY`] squarings away from the last check.
    ///
    /// # Errors
    /// [`ChainError::Corrupted`]; the chain is then of no more use.
    pub fn run(&mut self, n: u64) -> Result<(), ChainError> {
        let end = self.done + n;
        while self.done < end {
            let due = self.checked + CHECK_EVERY;
            let stop = end.min(due);
            while self.done < stop {
                if !self.advance(stop - self.done) {
                    return Err(ChainError::Corrupted { good: self.checked });
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
        if self.residue() != self.expected {
            return Err(ChainError::Corrupted { good: self.checked });
        }
        self.checked = self.done;
        Ok(())
    }

    /// Squares at least once and at most n times; false if the form turned out not to have the discriminant.
    fn advance(&mut self, n: u64) -> bool {
        if let Width::General(form) = &self.form {
            self.form = self.narrowed(form);
        }
        let stop = self.stop();
        let engine = self.engine;
        let done = match &mut self.form {
            Width::Narrow(form) => engine.narrow(form, stop, n),
            Width::Middle(form) => engine.middle(form, stop, n),
            Width::Broad(form) => engine.broad(form, stop, n),
            Width::General(_) => 0,
        };
        self.done += done;
        if done < n {
            let Some(square) = self.general().square(&self.magnitude) else { return false };
            self.form = Width::General(square);
            self.done += 1;
            self.slow += 1;
        }
        true
    }

    /// The form as the kernels take it, where it fits.
    fn narrowed(&self, form: &General) -> Width {
        fn state<const N: usize, const C: usize>(form: &General) -> Option<State<N, C>> {
            Some(State {
                a: *form.a.magnitude().try_resize::<N>()?.limbs(),
                b: *form.b.magnitude().try_resize::<N>()?.limbs(),
                negative: form.b.is_negative(),
                c: *form.c.magnitude().try_resize::<C>()?.limbs(),
            })
        }
        let width = if self.bits <= 512 {
            state(form).map(Width::Narrow)
        } else if self.bits <= 1024 {
            state(form).map(Width::Middle)
        } else {
            state(form).map(Width::Broad)
        };
        width.unwrap_or(Width::General(*form))
    }

    /// The form as the kernels for 513 to 1,024 bits take it, if it is one of theirs, and where they stop.
    pub(crate) fn middle(&self) -> Option<(Middle, usize)> {
        match &self.form {
            Width::Middle(form) => Some((*form, self.stop())),
            _ => None,
        }
    }

    /// Where the partial GCD stops. A quarter of the length would balance the rows; five bits more often save a window, and
    /// reduction makes good for it.
    const fn stop(&self) -> usize {
        self.bits.div_ceil(4) + 5
    }

    fn general(&self) -> General {
        fn widen<const N: usize, const C: usize>(form: &State<N, C>) -> General {
            General {
                a: Int::new(false, Uint::from_limbs(form.a).resize()),
                b: Int::new(form.negative, Uint::from_limbs(form.b).resize()),
                c: Int::new(false, Uint::from_limbs(form.c).resize()),
            }
        }
        match &self.form {
            Width::Narrow(form) => widen(form),
            Width::Middle(form) => widen(form),
            Width::Broad(form) => widen(form),
            Width::General(form) => *form,
        }
    }

    fn residue(&self) -> u64 {
        match &self.form {
            Width::Narrow(form) => residue(form),
            Width::Middle(form) => residue(form),
            Width::Broad(form) => residue(form),
            Width::General(form) => {
                // A general form may have a long c, or none of the widths; the same sum of the same residues.
                let state = State::<72, 72> {
                    a: *form.a.magnitude().limbs(),
                    b: *form.b.magnitude().limbs(),
                    negative: form.b.is_negative(),
                    c: *form.c.magnitude().limbs(),
                };
                residue(&state)
            }
        }
    }

    /// The form reached, reduced.
    #[must_use]
    pub fn form(&self) -> Coefficients {
        let form = self.general().reduced();
        Coefficients { a: form.a.magnitude().resize(), b: form.b.resize(), c: form.c.magnitude().resize() }
    }

    /// Appends the form as a prover keeps it (`prover::kept`): a and |b| in `limbs` limbs each, and the sign in b's lowest bit, which
    /// is otherwise 1. Kernels leave |b| <= a <= c, so that both fit.
    pub(crate) fn pack(&self, limbs: usize, out: &mut Vec<u64>) {
        fn both(limbs: usize, a: &[u64], b: &[u64], negative: bool, out: &mut Vec<u64>) {
            for number in [a, b] {
                let end = out.len() + limbs;
                out.extend_from_slice(&number[..limbs.min(number.len())]);
                out.resize(end, 0);
            }
            let sign = out.len() - limbs;
            out[sign] = out[sign] & !1 | u64::from(negative);
        }
        match &self.form {
            Width::Narrow(form) => both(limbs, &form.a, &form.b, form.negative, out),
            Width::Middle(form) => both(limbs, &form.a, &form.b, form.negative, out),
            Width::Broad(form) => both(limbs, &form.a, &form.b, form.negative, out),
            Width::General(form) => {
                let form = form.reduced();
                let (a, b) = (form.a.magnitude().limbs(), form.b.magnitude().limbs());
                both(limbs, a, b, form.b.is_negative(), out);
            }
        }
    }

    /// Squarings done.
    #[must_use]
    pub const fn done(&self) -> u64 {
        self.done
    }

    /// How many of them the general code did, because a number was too long or too short for the fast one.
    #[must_use]
    pub const fn slow(&self) -> u64 {
        self.slow
    }

    /// Flips one bit of the form, to show that the check of the discriminant notices.
    #[doc(hidden)]
    pub fn corrupt(&mut self, bit: usize) {
        match &mut self.form {
            Width::Narrow(form) => form.c[bit / 64 % 4] ^= 1 << (bit % 64),
            Width::Middle(form) => form.c[bit / 64 % 8] ^= 1 << (bit % 64),
            Width::Broad(form) => form.c[bit / 64 % 16] ^= 1 << (bit % 64),
            Width::General(form) => {
                let flipped = *form.c.magnitude();
                let mut limbs = *flipped.limbs();
                limbs[bit / 64 % 4] ^= 1 << (bit % 64);
                form.c = Int::new(false, Uint::from_limbs(limbs));
            }
        }
    }
}
