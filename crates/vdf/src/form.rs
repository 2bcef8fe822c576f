//! Binary quadratic forms of negative discriminant: elements of the class group, always reduced.
//!
//! The form (a, b, c) means a x² + b x y + c y²; its discriminant is D = b² - 4 a c. Reduced means |b| <= a <= c, and b
//! >= 0 where |b| = a or a = c; every class holds exactly one such form.
#![forbid(unsafe_code)]

mod compose;
pub(crate) mod euclid;
pub(crate) mod layout;
pub(crate) mod num;
#[cfg(any(test, feature = "std"))]
pub(crate) mod packed;
pub(crate) mod power;
pub(crate) mod words;

use core::fmt;

use lanework_integer::Int;

use crate::discriminant::Discriminant;
use num::Num;

/// Limbs of returned coefficients: 2,112 bits.
pub const LIMBS: usize = 33;

/// A reduced form. It does not store its discriminant; [`Form::new`] checks it.
#[derive(Clone, PartialEq, Eq)]
pub struct Form {
    pub(crate) a: Num,
    pub(crate) b: Num,
    pub(crate) c: Num,
}

/// Why numbers are not a form of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormError {
    /// a is 0 or negative.
    NotPositive,
    /// 4 a does not divide b² - D: no form of this discriminant begins with a and b.
    WrongDiscriminant,
    /// The form is not reduced.
    NotReduced,
    /// A coefficient is longer than any coefficient of a reduced form can be.
    TooLarge,
}

impl fmt::Display for FormError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FormError::NotPositive => "the form's first coefficient is not positive",
            FormError::WrongDiscriminant => "the form does not have this discriminant",
            FormError::NotReduced => "the form is not reduced",
            FormError::TooLarge => "a coefficient is too long for this discriminant",
        })
    }
}

impl core::error::Error for FormError {}

impl Form {
    /// The neutral element (1, 1, (1 - D) / 4).
    #[must_use]
    pub fn identity(d: &Discriminant) -> Form {
        let (a, b) = (Num::from_u64(1), Num::from_u64(1));
        // D is 1 modulo 4, so this division is exact.
        let c = a.sub(d.number()).div_exact(&Num::from_u64(4));
        Form { a, b, c }
    }

    /// The element (2, 1, (1 - D) / 8) that Chia's chains start from; `None` unless D is 1 modulo 8.
    #[must_use]
    pub fn generator(d: &Discriminant) -> Option<Form> {
        let (a, b) = (Num::from_u64(2), Num::from_u64(1));
        let c = last(d, &a, &b)?;
        let mut out = Form { a, b, c };
        out.reduce();
        Some(out)
    }

    /// The form that begins with a and b.
    ///
    /// # Errors
    /// The fault. The discriminant's length bounds the cost.
    pub fn new(d: &Discriminant, a: &Int<LIMBS>, b: &Int<LIMBS>) -> Result<Form, FormError> {
        Form::from_numbers(d, &Num::from_int(a), &Num::from_int(b))
    }

    /// [`Form::new`] on this crate's own numbers.
    pub(crate) fn from_numbers(d: &Discriminant, a: &Num, b: &Num) -> Result<Form, FormError> {
        let form = Form::unreduced(d, a, b)?;
        if form.is_reduced() { Ok(form) } else { Err(FormError::NotReduced) }
    }

    /// A form that may not be reduced. Its coefficients are hardly longer than a reduced form's.
    pub(crate) fn unreduced(d: &Discriminant, a: &Num, b: &Num) -> Result<Form, FormError> {
        if a.is_negative() || a.is_zero() {
            return Err(FormError::NotPositive);
        }
        // Two bytes more than a reduced form can have: the room of an encoding.
        if a.bits().max(b.bits()) > d.bits().div_ceil(2) + 40 {
            return Err(FormError::TooLarge);
        }
        let c = last(d, a, b).ok_or(FormError::WrongDiscriminant)?;
        Ok(Form { a: *a, b: *b, c })
    }

    /// The inverse.
    #[must_use]
    pub fn inverse(&self) -> Form {
        let mut out = self.clone();
        if self.b != self.a && self.a != self.c {
            out.b = out.b.neg();
        }
        out
    }

    /// The first coefficient, from 1 to √(|D| / 3).
    #[must_use]
    pub fn a(&self) -> Int<LIMBS> {
        self.a.to_int()
    }

    /// The middle coefficient, from -a to a.
    #[must_use]
    pub fn b(&self) -> Int<LIMBS> {
        self.b.to_int()
    }

    /// The last coefficient, (b² - D) / 4a.
    #[must_use]
    pub fn c(&self) -> Int<LIMBS> {
        self.c.to_int()
    }

    /// Whether b² - 4 a c is D.
    #[must_use]
    pub fn has_discriminant(&self, d: &Discriminant) -> bool {
        self.b.square().sub(&self.a.mul(&self.c).shift_left(2)) == *d.number()
    }

    /// Whether |b| <= a <= c, and b >= 0 where two of them are equal.
    #[must_use]
    pub fn is_reduced(&self) -> bool {
        let by_b = self.b.compare_magnitude(&self.a);
        let by_c = self.a.compare_magnitude(&self.c);
        by_b.is_le() && by_c.is_le() && !(self.b.is_negative() && (by_b.is_eq() || by_c.is_eq()))
    }

    /// Replaces the form by the reduced one of its class. (Cohen, A Course in Computational Algebraic Number Theory,
    /// algorithm 5.4.2; c is carried along.)
    pub(crate) fn reduce(&mut self) {
        loop {
            if self.b.compare_magnitude(&self.a).is_gt()
                || (self.b.is_negative() && self.b.compare_magnitude(&self.a).is_eq())
            {
                self.centre();
            }
            match self.a.cmp(&self.c) {
                core::cmp::Ordering::Greater => {
                    core::mem::swap(&mut self.a, &mut self.c);
                    self.b = self.b.neg();
                }
                core::cmp::Ordering::Equal => {
                    self.b = self.b.abs();
                    return;
                }
                core::cmp::Ordering::Less => return,
            }
        }
    }

    /// Brings b between -a (excluded) and a: b' = b - 2 a q, c' = c - q (b + b') / 2.
    fn centre(&mut self) {
        let twice = self.a.double();
        // b + a = q 2a + rest with 0 < rest <= 2a gives b' = rest - a in that interval.
        let (mut q, mut rest) = self.b.add(&self.a).div_rem(&twice);
        if rest.is_negative() || rest.is_zero() {
            rest = rest.add(&twice);
            q = q.sub(&Num::from_u64(1));
        }
        let b = rest.sub(&self.a);
        self.c = self.c.sub(&q.mul(&self.b.add(&b).half()));
        self.b = b;
    }
}

/// c = (b² - D) / 4a, if it is a whole number.
fn last(d: &Discriminant, a: &Num, b: &Num) -> Option<Num> {
    let (c, rest) = b.square().sub(d.number()).div_rem(&a.shift_left(2));
    rest.is_zero().then_some(c)
}

impl fmt::Debug for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Form").field("a", &self.a()).field("b", &self.b()).field("c", &self.c()).finish()
    }
}
