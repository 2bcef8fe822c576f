//! Evaluating the chain, and proving it.
#![forbid(unsafe_code)]

use core::fmt;

use super::{Challenge, Parameters, Proof, Segment};
use crate::discriminant::Discriminant;
use crate::form::Form;
use crate::form::num::Num;
use crate::verify::{self, VerifyError};

/// Something that squares a form again and again. The fast chains are other implementations of this.
pub trait Squarer {
    /// Squares so many times.
    ///
    /// # Errors
    /// The form has lost its discriminant on the way.
    fn advance(&mut self, squarings: u64) -> Result<(), Corrupted>;
    /// The form as it now is.
    fn form(&self) -> Form;
}

/// The form no longer has the discriminant: the machine or the code miscalculated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupted {
    /// Squarings done when it was noticed.
    pub after: u64,
}

impl fmt::Display for Corrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the form has another discriminant after {} squarings: the machine miscalculated",
            self.after
        )
    }
}

impl core::error::Error for Corrupted {}

/// The chain by [`Form::square`].
#[derive(Clone, Debug)]
pub struct Plain<'a> {
    d: &'a Discriminant,
    form: Form,
    done: u64,
}

/// Squarings between two looks at the discriminant.
const BETWEEN_CHECKS: u64 = 1024;

impl<'a> Plain<'a> {
    /// A chain that starts from x, which must have the discriminant d.
    #[must_use]
    pub fn new(d: &'a Discriminant, x: &Form) -> Plain<'a> {
        Plain { d, form: x.clone(), done: 0 }
    }
}

impl Squarer for Plain<'_> {
    fn advance(&mut self, squarings: u64) -> Result<(), Corrupted> {
        for _ in 0..squarings {
            self.form = self.form.square_generally(self.d);
            self.done += 1;
            if self.done.is_multiple_of(BETWEEN_CHECKS) && !self.form.has_discriminant(self.d) {
                return Err(Corrupted { after: self.done });
            }
        }
        Ok(())
    }

    fn form(&self) -> Form {
        self.form.clone()
    }
}

/// What squaring left behind for the proof.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// The start.
    pub x: Form,
    /// The result.
    pub y: Form,
    /// Squarings.
    pub iterations: u64,
    /// How the proof will be computed.
    pub parameters: Parameters,
    /// The forms before squarings 0, k l, 2 k l and so on.
    pub kept: Vec<Form>,
}

/// Why nothing was proved.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProveError {
    /// There are no squarings to prove.
    NoIterations,
    /// The segments are longer than the chain, or one of them is empty.
    Segments,
    /// The windows are empty or longer than 20 bits, or there are no passes.
    Parameters(Parameters),
    /// The observer said to stop.
    Cancelled {
        /// Squarings done until then.
        after: u64,
    },
    /// The form lost its discriminant while squaring.
    Corrupted(Corrupted),
    /// The finished proof does not verify: the machine, or the chain, miscalculated.
    Wrong(VerifyError),
}

impl fmt::Display for ProveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProveError::NoIterations => f.write_str("there are no squarings to prove"),
            ProveError::Segments => f.write_str("the segments do not fit the number of squarings"),
            ProveError::Parameters(p) => {
                write!(f, "windows of {} bits in {} passes are not possible", p.k, p.l)
            }
            ProveError::Cancelled { after } => write!(f, "stopped after {after} squarings"),
            ProveError::Corrupted(e) => e.fmt(f),
            ProveError::Wrong(e) => write!(f, "the finished proof does not verify: {e}"),
        }
    }
}

impl core::error::Error for ProveError {}

/// Squares, keeping a form for every k l squarings. The observer is told the number of squarings done, at least once in every 4,096,
/// and says whether to go on.
///
/// # Errors
/// No squarings, impossible parameters, or the observer's wish.
pub fn evaluate<C: Squarer>(
    chain: &mut C,
    iterations: u64,
    parameters: Parameters,
    observer: &mut dyn FnMut(u64) -> bool,
) -> Result<Evaluation, ProveError> {
    if iterations == 0 {
        return Err(ProveError::NoIterations);
    }
    if !(1..=20).contains(&parameters.k) || parameters.l == 0 {
        return Err(ProveError::Parameters(parameters));
    }
    let every = u64::from(parameters.k) * u64::from(parameters.l);
    let x = chain.form();
    let (mut kept, mut done) = (Vec::new(), 0);
    while done < iterations {
        if done.is_multiple_of(every) {
            kept.push(chain.form());
        }
        let next = (done / every + 1) * every;
        let step = (next.min(iterations) - done).min(4096);
        chain.advance(step).map_err(ProveError::Corrupted)?;
        done += step;
        if !observer(done) {
            return Err(ProveError::Cancelled { after: done });
        }
    }
    Ok(Evaluation { x, y: chain.form(), iterations, parameters, kept })
}

impl Evaluation {
    /// The prime of start and result, and the proof for it.
    #[must_use]
    pub fn prove(&self, d: &Discriminant) -> (Challenge, Form) {
        let b = Challenge::of(d, &self.x, &self.y);
        let pi = self.prove_for(d, &b);
        (b, pi)
    }

    /// x^(2^T / B rounded down): the quotient's digits of k bits each sort the kept forms into buckets.
    fn prove_for(&self, d: &Discriminant, b: &Challenge) -> Form {
        let (k, l) = (self.parameters.k as usize, self.parameters.l as usize);
        let mut buckets: Vec<Vec<Option<Form>>> = vec![vec![None; 1 << k]; l];
        // Long division of 2^T by B, from the highest digit down. The rest starts as the bits above the digits.
        let digits = self.iterations / k as u64;
        let mut rest = Num::from_u64(1).shift_left((self.iterations % k as u64) as usize);
        for i in (0..digits).rev() {
            let (digit, next) = rest.shift_left(k).div_rem(&b.0);
            rest = next;
            let digit = digit.magnitude().first().copied().unwrap_or(0) as usize;
            if digit == 0 {
                continue;
            }
            let (at, pass) = ((i / l as u64) as usize, (i % l as u64) as usize);
            let bucket = &mut buckets[pass][digit];
            *bucket = Some(match bucket.take() {
                Some(form) => form.compose(&self.kept[at], d),
                None => self.kept[at].clone(),
            });
        }
        let mut out = Form::identity(d);
        for pass in buckets.iter().rev() {
            for _ in 0..k {
                out = out.square(d);
            }
            if let Some(sum) = weighted(pass, d) {
                out = out.compose(&sum, d);
            }
        }
        out
    }
}

/// The product of bucket b to the power b: every bucket is multiplied into a running product from the highest down, and the running
/// products together hold bucket b just b times.
fn weighted(buckets: &[Option<Form>], d: &Discriminant) -> Option<Form> {
    let (mut running, mut out) = (None::<Form>, None::<Form>);
    for bucket in buckets[1..].iter().rev() {
        if let Some(form) = bucket {
            running = Some(running.map_or_else(|| form.clone(), |running| running.compose(form, d)));
        }
        if let Some(running) = &running {
            out = Some(out.map_or_else(|| running.clone(), |out| out.compose(running, d)));
        }
    }
    out
}

/// Squares x so many times and proves it in one segment, as chiavdf's `prove` does; the proof is verified before it is returned.
///
/// # Errors
/// No squarings, or a proof that came out wrong.
pub fn prove(d: &Discriminant, x: &Form, iterations: u64) -> Result<Proof, ProveError> {
    prove_segments(d, x, iterations, &[])
}

/// [`prove`] in several segments: `lengths` of those before the last.
///
/// # Errors
/// No squarings, segments that leave none for the last or are empty, or a proof that came out wrong.
pub fn prove_segments(
    d: &Discriminant,
    x: &Form,
    iterations: u64,
    lengths: &[u64],
) -> Result<Proof, ProveError> {
    let mut chain = Plain::new(d, x);
    prove_with(d, &mut chain, iterations, lengths, &mut |_| true)
}

/// [`prove_segments`] on any chain, with an observer as [`evaluate`] has one.
///
/// # Errors
/// As [`prove_segments`], or the observer's wish.
pub fn prove_with<C: Squarer>(
    d: &Discriminant,
    chain: &mut C,
    iterations: u64,
    lengths: &[u64],
    observer: &mut dyn FnMut(u64) -> bool,
) -> Result<Proof, ProveError> {
    let before = lengths.iter().try_fold(0u64, |sum, &length| sum.checked_add(length).filter(|_| length > 0));
    let last = match before.and_then(|before| iterations.checked_sub(before)) {
        None => return Err(ProveError::Segments),
        Some(0) if iterations == 0 => return Err(ProveError::NoIterations),
        Some(0) => return Err(ProveError::Segments),
        Some(last) => last,
    };
    let x = chain.form();
    let (mut segments, mut done) = (Vec::new(), 0);
    let mut part = |length: u64, done: u64| {
        let parameters = Parameters::one_segment(length);
        evaluate(chain, length, parameters, &mut |now| observer(done + now)).map_err(|e| match e {
            ProveError::Cancelled { after } => ProveError::Cancelled { after: done + after },
            other => other,
        })
    };
    for &length in lengths {
        let (b, pi) = part(length, done)?.prove(d);
        segments.push(Segment { iterations: length, b, pi });
        done += length;
    }
    let part = part(last, done)?;
    let proof = Proof { pi: part.prove(d).1, y: part.y, segments };
    verify::verify_proof(d, &x, &proof, iterations).map_err(|e| ProveError::Wrong(e.into()))?;
    Ok(proof)
}

#[cfg(test)]
mod checks {
    use super::*;

    /// A squarer that makes one mistake, or one that keeps the discriminant.
    struct Faulty<'a> {
        inner: Plain<'a>,
        at: u64,
        spoil: fn(&mut Form, &Discriminant),
    }

    impl Squarer for Faulty<'_> {
        fn advance(&mut self, squarings: u64) -> Result<(), Corrupted> {
            for _ in 0..squarings {
                self.inner.advance(1)?;
                if self.inner.done == self.at {
                    (self.spoil)(&mut self.inner.form, self.inner.d);
                }
            }
            Ok(())
        }

        fn form(&self) -> Form {
            self.inner.form()
        }
    }

    fn outcome(at: u64, iterations: u64, spoil: fn(&mut Form, &Discriminant)) -> Result<Proof, ProveError> {
        let d = Discriminant::from_seed(b"faults", 256).expect("a discriminant");
        let inner = Plain::new(&d, &Form::generator(&d).expect("D is 1 modulo 8"));
        prove_with(&d, &mut Faulty { inner, at, spoil }, iterations, &[], &mut |_| true)
    }

    #[test]
    fn a_lost_discriminant_is_noticed() {
        let wrong = outcome(1023, 1100, |form, _| form.c = form.c.add(&Num::from_u64(1)));
        assert!(matches!(wrong, Err(ProveError::Corrupted(Corrupted { after: 1024 }))), "{wrong:?}");
    }

    #[test]
    fn a_wrong_element_of_the_group_is_not_proved() {
        for at in [1, 500, 700] {
            let wrong = outcome(at, 700, |form, d| *form = form.compose(&Form::generator(d).unwrap(), d));
            assert!(matches!(wrong, Err(ProveError::Wrong(_))), "{at}: {wrong:?}");
        }
        assert!(outcome(800, 700, |_, _| ()).is_ok());
    }

    #[test]
    fn impossible_wishes_are_refused() {
        let d = Discriminant::from_seed(b"wishes", 256).expect("a discriminant");
        let x = Form::generator(&d).expect("D is 1 modulo 8");
        assert_eq!(prove(&d, &x, 0), Err(ProveError::NoIterations));
        for lengths in [&[10u64][..], &[11], &[0], &[u64::MAX, 11]] {
            assert_eq!(prove_segments(&d, &x, 10, lengths), Err(ProveError::Segments), "{lengths:?}");
        }
        let stopped = prove_with(&d, &mut Plain::new(&d, &x), 5000, &[100], &mut |done| done < 130);
        assert_eq!(stopped, Err(ProveError::Cancelled { after: 130 }));
        let parameters = Parameters { k: 21, l: 1 };
        let refused = evaluate(&mut Plain::new(&d, &x), 5, parameters, &mut |_| true);
        assert_eq!(refused.err(), Some(ProveError::Parameters(parameters)));
    }

    /// The proof is the same whatever the parameters, and is x^(2^T / B).
    #[test]
    fn parameters_do_not_matter() {
        let d = Discriminant::from_seed(b"parameters", 256).expect("a discriminant");
        let x = Form::generator(&d).expect("D is 1 modulo 8");
        for iterations in [1, 263, 264, 300, 777] {
            let proofs: Vec<Form> = [(1, 1), (3, 2), (5, 7), (10, 1), (12, 3)]
                .map(|(k, l)| {
                    let parameters = Parameters { k, l };
                    let mut chain = Plain::new(&d, &x);
                    evaluate(&mut chain, iterations, parameters, &mut |_| true).expect("no fault").prove(&d).1
                })
                .into();
            assert!(proofs.iter().all(|pi| *pi == proofs[0]), "{iterations}");
            // The quotient bit by bit.
            let mut y = x.clone();
            (0..iterations).for_each(|_| y = y.square(&d));
            let b = Challenge::of(&d, &x, &y);
            let (mut rest, mut pi) = (Num::from_u64(1), Form::identity(&d));
            for _ in 0..iterations {
                pi = pi.square(&d);
                rest = rest.double();
                if rest >= b.0 {
                    rest = rest.sub(&b.0);
                    pi = pi.compose(&x, &d);
                }
            }
            assert_eq!(pi, proofs[0], "{iterations}");
        }
    }
}
