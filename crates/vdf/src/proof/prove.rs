//! Evaluating the chain, and proving it.
#![forbid(unsafe_code)]

use core::fmt;

use super::{Challenge, Parameters, Proof, Segment};
use crate::discriminant::Discriminant;
use crate::form::Form;
use crate::form::num::Num;
use crate::verify::{self, VerifyError};

/// Something that squares a form again and again. The fast chains are other implementations of this.
pub trait Chain {
    /// Squares so many times.
    fn advance(&mut self, squarings: u64);
    /// The form as it now is.
    fn form(&self) -> Form;
}

/// The chain by [`Form::square`].
#[derive(Clone, Debug)]
pub struct Plain<'a> {
    d: &'a Discriminant,
    form: Form,
}

impl<'a> Plain<'a> {
    /// A chain that starts from x, which must have the discriminant d.
    #[must_use]
    pub fn new(d: &'a Discriminant, x: &Form) -> Plain<'a> {
        Plain { d, form: x.clone() }
    }
}

impl Chain for Plain<'_> {
    fn advance(&mut self, squarings: u64) {
        for _ in 0..squarings {
            self.form = self.form.square(self.d);
        }
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
pub fn evaluate<C: Chain>(
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
        chain.advance(step);
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
pub fn prove_with<C: Chain>(
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
    for &length in lengths {
        let parameters = Parameters::one_segment(length);
        let part = evaluate(chain, length, parameters, &mut |now| observer(done + now))?;
        let (b, pi) = part.prove(d);
        segments.push(Segment { iterations: length, b, pi });
        done += length;
    }
    let parameters = Parameters::one_segment(last);
    let part = evaluate(chain, last, parameters, &mut |now| observer(done + now))?;
    let proof = Proof { pi: part.prove(d).1, y: part.y, segments };
    verify::verify_proof(d, &x, &proof, iterations).map_err(|e| ProveError::Wrong(e.into()))?;
    Ok(proof)
}
