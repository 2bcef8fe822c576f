//! Short proofs of results that are known beforehand.
//!
//! A proof's prime hashes the result. [`prove`](crate::prove) reaches the result last, so it keeps forms while it squares
//! and makes the proof from them afterwards. Where the results are known, as for the proofs of a block chain (Chia's
//! *blueboxes*), the proof is gathered during the squaring. No forms are kept, and results of one chain share its
//! squarings.
#![forbid(unsafe_code)]

mod buckets;
mod checkpoint;
mod crew;
mod digits;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use crate::chain::{Chain, ChainError};
use crate::discriminant::Discriminant;
use crate::form::Form;
use crate::form::layout::Layout;
use crate::form::packed;
use crate::group::Group;
use crate::proof::{Challenge, Proof};
use crate::prover::{CheckpointError, CheckpointFile, Options, Phase, Progress, ProverError};
use crate::verify::verify_proof;
use checkpoint::{Checkpoint, Kept, State};
use crew::{Crew, Part};
use digits::Digits;

/// Squarings or products between two calls of the observer, at most. Those for one place of the chain are not divided.
const STEP: u64 = 4096;
/// Products that take about as long as a claim's prime.
const PRIME: u64 = 100;
/// Squarings and products of a verification.
const VERIFICATION: u64 = 400;
/// Claims whose buckets are emptied or whose proofs wait, at most: a checkpoint waits for them.
const EMPTYING: usize = 8;
/// Time between two calls of the observer while other threads work.
const WAIT: Duration = Duration::from_millis(50);

/// A result to be proved: x squared `iterations` times is y.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Squarings.
    pub iterations: u64,
    /// The result.
    pub y: Form,
}

/// Results of one chain that are to be proved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    /// The group.
    pub discriminant: Discriminant,
    /// Where the chain starts.
    pub x: Form,
    /// The results, in any order.
    pub claims: Vec<Claim>,
}

impl Claims {
    /// A hash of all of it: lists with equal hashes are the same work and share checkpoints.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        let Claims { discriminant, x, claims } = self;
        let mut hash = Sha256::new();
        let mut words = |words: &[u64]| words.iter().for_each(|word| hash.update(word.to_le_bytes()));
        words(&[discriminant.bits() as u64, claims.len() as u64]);
        words(discriminant.number().magnitude());
        words(&packed::pack(discriminant, x));
        for claim in claims {
            words(&[claim.iterations]);
            words(&packed::pack(discriminant, &claim.y));
        }
        hash.finalize().into()
    }
}

/// The outcome of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is right. Here are its proof in one segment, which has been verified, and the proof's prime.
    Proved(Box<(Proof, Challenge)>),
    /// The chain has another result there. No proof is returned.
    Wrong,
}

/// The result of [`compact`] besides the outcomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compacted {
    /// Squarings that only the general code could do.
    pub slow: u64,
    /// Squarings resumed from a checkpoint.
    pub resumed: u64,
    /// The state of the checkpoint's file when it was last written.
    pub checkpoint: CheckpointFile,
}

/// Squares x up to the longest claim, and proves every claim on the way.
///
/// The proofs are those that [`prove`](crate::prove) makes in one segment, byte for byte. `outcome` is called with each
/// claim's index in the list as soon as its outcome is known, and the observer several times a second, however many
/// claims there are, both on the caller's thread. The observer returns whether to go on. One thread squares; others, up
/// to [`Options::threads`] in all, fill the buckets. [`Options::memory`] bounds the buckets of all claims together, with
/// the forms that wait for them. A checkpoint holds two states of the buckets, each as long as the most memory that they
/// take. With [`Options::interval`] at a minute, writing them takes less than a hundredth of the time.
///
/// # Errors
/// No claims or one of no squarings, a form of another discriminant, a chain that lost its discriminant, a proof that
/// does not verify though its result is right, an unusable checkpoint, or the observer's stop. Earlier outcomes are valid.
pub fn compact(
    all: &Claims,
    options: &Options<'_>,
    observer: &mut dyn FnMut(Progress) -> bool,
    outcome: &mut dyn FnMut(usize, Outcome),
) -> Result<Compacted, ProverError> {
    let Claims { discriminant, x, claims } = all;
    if claims.is_empty() || claims.iter().any(|claim| claim.iterations == 0) {
        return Err(ProverError::NoIterations);
    }
    let group = discriminant.on(options.engine);
    let mut chain = Chain::new(group, x)?;
    if !claims.iter().all(|claim| claim.y.has_discriminant(discriminant)) {
        return Err(ChainError::Form.into());
    }
    let share = options.memory / claims.len() / Layout::bytes(discriminant.bits());
    let (waiting, all_waiting) = crew::waiting(options.threads, share);
    let most = share.saturating_sub(all_waiting);
    let mut widths: Vec<u32> = claims.iter().map(|claim| buckets::width(claim.iterations, most)).collect();
    let (file, state) = match options.checkpoint {
        Some(path) => {
            let (file, state) = Checkpoint::open(path, all, &mut widths)?;
            (Some(file), state)
        }
        None => (None, None),
    };
    let resumed = state.as_ref().map_or(0, |state| state.done);
    let taken = match &state {
        Some(state) => {
            chain = Chain::resume(group, &unpacked(group, &state.form)?, state.done, state.slow)?;
            taken(group, state)?
        }
        None => widths.iter().map(|&width| Some(vec![None; buckets::count(width)])).collect(),
    };
    std::thread::scope(|scope| {
        let crew =
            Crew::start(scope, group, taken, options.threads.max(1), waiting).map_err(ProverError::Thread)?;
        let mut run = Run {
            group,
            x,
            claims,
            b: Vec::with_capacity(claims.len()),
            crew,
            sums: vec![(0, None); claims.len()],
            ends: vec![None; claims.len()],
            emptying: 0,
            products: 0,
            total: claims.iter().map(|claim| claim.iterations).max().unwrap_or(0),
            resumed,
            file,
            written: (Instant::now(), CheckpointFile::Kept),
            interval: options.interval,
            observer,
            outcome,
        };
        run.begin(&chain, state)?;
        run.square(&mut chain, &widths)?;
        run.wait(&chain)?;
        run.store(&chain)?;
        Ok(Compacted { slow: chain.slow(), resumed, checkpoint: run.written.1 })
    })
}

/// A form of a checkpoint.
fn unpacked(group: Group<'_>, words: &[u64]) -> Result<Form, ProverError> {
    let form = packed::unpack(group.discriminant(), words);
    form.map_err(|why| CheckpointError::Form { at: 0, why }.into())
}

/// The buckets of each claim that had not ended.
fn taken(group: Group<'_>, state: &State) -> Result<Vec<Option<Vec<Option<Layout>>>>, ProverError> {
    let bits = group.discriminant().bits();
    let bucket = |words: &[u64]| {
        let full = words.iter().any(|&word| word != 0);
        full.then(|| unpacked(group, words).map(|form| Layout::of(form, bits))).transpose()
    };
    let claim = |kept: &Kept| match kept {
        Kept::Buckets(words) => {
            words.chunks_exact(2 * packed::size(bits)).map(bucket).collect::<Result<_, _>>().map(Some)
        }
        Kept::Proof(_) | Kept::Wrong => Ok(None),
    };
    state.kept.iter().map(claim).collect()
}

struct Run<'a, 'b> {
    group: Group<'a>,
    x: &'a Form,
    claims: &'a [Claim],
    /// The prime of each claim.
    b: Vec<Challenge>,
    crew: Crew<'a>,
    /// For each claim, how many parts of its proof have arrived, and their product.
    sums: Vec<(usize, Option<Form>)>,
    /// The outcomes of the claims that have ended.
    ends: Vec<Option<Kept>>,
    /// Claims whose buckets are being emptied.
    emptying: usize,
    /// Products, or what takes as long, since the observer was called.
    products: u64,
    total: u64,
    /// Squarings resumed from a checkpoint.
    resumed: u64,
    file: Option<Checkpoint>,
    /// When the file was last written, and its state then.
    written: (Instant, CheckpointFile),
    interval: Duration,
    observer: &'b mut dyn FnMut(Progress) -> bool,
    outcome: &'b mut dyn FnMut(usize, Outcome),
}

impl Run<'_, '_> {
    /// Calls the observer; returns whether to go on.
    fn ask(&mut self, chain: &Chain, phase: Phase) -> bool {
        self.products = 0;
        let (done, total) = match phase {
            Phase::Squaring => (chain.done(), self.total),
            _ => (self.ends.iter().flatten().count() as u64, self.claims.len() as u64),
        };
        (self.observer)(Progress {
            phase,
            done,
            total,
            slow: chain.slow(),
            resumed: self.resumed,
            checkpoint: self.written.1,
        })
    }

    fn cancelled(&self, chain: &Chain) -> ProverError {
        ProverError::Cancelled { after: chain.done(), checkpoint: self.written.1 }
    }

    fn observe(&mut self, chain: &Chain, phase: Phase) -> Result<(), ProverError> {
        let go_on = self.ask(chain, phase);
        if !go_on || self.written.0.elapsed() >= self.interval {
            self.store(chain)?;
        }
        if go_on { Ok(()) } else { Err(self.cancelled(chain)) }
    }

    /// Finds the primes and takes over a checkpoint's state. Until then nothing is written: the file has all of it.
    fn begin(&mut self, chain: &Chain, state: Option<State>) -> Result<(), ProverError> {
        let mut kept = state.into_iter().flat_map(|state| state.kept);
        for (n, claim) in self.claims.iter().enumerate() {
            self.b.push(Challenge::of(self.group, self.x, &claim.y));
            self.products += PRIME;
            if let Some(kept) = kept.next() {
                self.take_over(n, kept)?;
            }
            if self.products >= STEP && !self.ask(chain, Phase::Squaring) {
                return Err(self.cancelled(chain));
            }
        }
        Ok(())
    }

    /// Writes the state to the checkpoint, if there is one.
    fn store(&mut self, chain: &Chain) -> Result<(), ProverError> {
        if self.file.is_none() {
            return Ok(());
        }
        while self.emptying > 0 {
            let part = self.crew.parts.recv().map_err(|_| chain.corrupted())?;
            self.take(part, chain)?;
        }
        // Checked in full, so that no wrong form is kept.
        let form = packed::pack(self.group.discriminant(), &chain.form()?);
        let copies = self.crew.copy().ok_or(chain.corrupted())?;
        let kept = self.ends.iter().zip(copies);
        let kept =
            kept.map(|(end, copy)| end.clone().unwrap_or_else(|| Kept::Buckets(copy.unwrap_or_default())));
        let state = State { done: chain.done(), slow: chain.slow(), form, kept: kept.collect() };
        if let Some(file) = &mut self.file {
            self.written = (Instant::now(), file.write(&state)?);
        }
        Ok(())
    }

    /// Takes over a claim's state from a checkpoint. A proof is verified again, since the file is not trusted.
    fn take_over(&mut self, n: usize, kept: Kept) -> Result<(), ProverError> {
        match kept {
            Kept::Buckets(_) => Ok(()),
            Kept::Wrong => {
                self.refuse(n);
                Ok(())
            }
            Kept::Proof(words) => self.prove(n, unpacked(self.group, &words)?),
        }
    }

    fn refuse(&mut self, n: usize) {
        self.ends[n] = Some(Kept::Wrong);
        (self.outcome)(n, Outcome::Wrong);
    }

    /// The end of a claim whose result is right.
    fn prove(&mut self, n: usize, pi: Form) -> Result<(), ProverError> {
        let Claim { iterations, y } = &self.claims[n];
        let kept = packed::pack(self.group.discriminant(), &pi);
        self.products += VERIFICATION;
        let proof = Proof { y: y.clone(), pi, segments: Vec::new() };
        verify_proof(self.group, self.x, &proof, *iterations)
            .map_err(|why| ProverError::Wrong { segment: n, why })?;
        self.ends[n] = Some(Kept::Proof(kept));
        (self.outcome)(n, Outcome::Proved(Box::new((proof, self.b[n].clone()))));
        Ok(())
    }

    /// Squares the whole chain and hands its forms to the crew.
    fn square(&mut self, chain: &mut Chain, widths: &[u32]) -> Result<(), ProverError> {
        let before = chain.done();
        let mut digits: Vec<_> = (0..self.claims.len())
            .map(|n| Digits::new(self.claims[n].iterations, &self.b[n], widths[n]))
            .map(|digits| digits.skip_while(move |&(place, _)| place < before).peekable())
            .collect();
        // The next stop of each claim: a digit's place, or its end. At one place, ends come first.
        let claims = self.claims;
        let next = |n: usize, place: Option<u64>| {
            Reverse((place.unwrap_or(claims[n].iterations), place.is_some(), n))
        };
        let mut stops = BinaryHeap::new();
        for n in (0..claims.len()).filter(|&n| self.ends[n].is_none()) {
            stops.push(next(n, digits[n].peek().map(|&(place, _)| place)));
        }
        let (mut observed, mut added) = (before, None);
        while let Some(Reverse((stop, _, n))) = stops.pop() {
            loop {
                let due = chain.done() - observed >= STEP || self.products >= STEP;
                // A checkpoint has all digits of a place or none of them.
                if due && added != Some(chain.done()) {
                    observed = chain.done();
                    self.observe(chain, Phase::Squaring)?;
                    while let Ok(part) = self.crew.parts.try_recv() {
                        self.take(part, chain)?;
                    }
                }
                if chain.done() == stop {
                    break;
                }
                let until = stop.min(observed.saturating_add(STEP));
                chain.run(until - chain.done())?;
            }
            let going = match digits[n].next() {
                Some((place, digit)) => {
                    added = Some(place);
                    self.products += 1;
                    stops.push(next(n, digits[n].peek().map(|&(place, _)| place)));
                    self.crew.add(n, digit, chain.layout())
                }
                None => {
                    let right = chain.form()? == claims[n].y;
                    if right {
                        while self.emptying == EMPTYING {
                            let part = self.crew.parts.recv().map_err(|_| chain.corrupted())?;
                            self.take(part, chain)?;
                        }
                        self.emptying += 1;
                        self.products += 2 * buckets::count(widths[n]) as u64;
                    } else {
                        self.refuse(n);
                    }
                    self.crew.finish(n, right)
                }
            };
            if !going {
                return self.wait(chain);
            }
        }
        Ok(())
    }

    /// Waits for the proofs that are still being put together.
    fn wait(&mut self, chain: &Chain) -> Result<(), ProverError> {
        while self.ends.contains(&None) {
            match self.crew.parts.recv_timeout(WAIT) {
                Ok(part) => self.take(part, chain)?,
                Err(RecvTimeoutError::Timeout) => self.observe(chain, Phase::Proving)?,
                Err(RecvTimeoutError::Disconnected) => return Err(chain.corrupted().into()),
            }
        }
        Ok(())
    }

    /// Takes a part of a proof; the last one completes it.
    fn take(&mut self, part: Part, chain: &Chain) -> Result<(), ProverError> {
        let Part { claim: n, product } = part;
        let corrupted = || ProverError::from(chain.corrupted());
        let (parts, sum) = &mut self.sums[n];
        *parts += 1;
        if let Some(product) = product.map_err(|_| corrupted())? {
            *sum = Some(match sum.take() {
                Some(sum) => sum.compose(&product, self.group),
                None => product,
            });
        }
        if *parts < self.crew.ranges() {
            return Ok(());
        }
        let pi = sum.take().unwrap_or_else(|| Form::identity(self.group.discriminant()));
        self.emptying -= 1;
        self.prove(n, pi)
    }
}

#[cfg(test)]
mod tests;
