//! Squaring on the caller's thread; proofs on others.
#![forbid(unsafe_code)]

use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::thread::{Builder, Scope};
use std::time::{Duration, Instant};

use super::buckets::{self, Meter};
use super::kept::Kept;
use super::plan::{self, Part};
use super::{Evaluated, Job, Options, Phase, Progress, Proved, ProverError, Seconds};
use crate::chain::ChainError;
use crate::discriminant::Discriminant;
use crate::form::Form;
use crate::proof::{Challenge, Fast, Proof, Segment, Squarer};
use crate::verify::verify_proof;

/// Squarings between two calls of the observer, at most.
const STEP: u64 = 4096;
/// Between two calls of the observer where others work.
const WAIT: Duration = Duration::from_millis(50);

type Observer<'a> = dyn FnMut(Progress) -> bool + 'a;

/// Squares x.
///
/// The observer is called several times a second and says whether to go on.
///
/// # Errors
/// No squarings, a form of another discriminant, a chain that lost its discriminant, or the observer's wish.
pub fn evaluate(job: &Job, options: &Options, observer: &mut Observer<'_>) -> Result<Evaluated, ProverError> {
    if job.iterations == 0 {
        return Err(ProverError::NoIterations);
    }
    let start = Instant::now();
    let mut chain = Fast::new(options.kernels, &job.discriminant, &job.x)?;
    let mut done = 0;
    while done < job.iterations {
        let step = STEP.min(job.iterations - done);
        chain.advance(step).map_err(|_| ChainError::Corrupted { good: done })?;
        done += step;
        let progress =
            Progress { phase: Phase::Squaring, done, total: job.iterations, slow: chain.slow(), resumed: 0 };
        if !observer(progress) {
            return Err(ProverError::Cancelled { after: done });
        }
    }
    let seconds = Seconds { squaring: start.elapsed().as_secs_f64(), ..Seconds::default() };
    Ok(Evaluated { y: chain.form(), slow: chain.slow(), resumed: 0, seconds })
}

/// A squared segment, ready to be proved.
struct Work {
    index: usize,
    part: Part,
    x: Form,
    y: Form,
    kept: Kept,
}

/// A proof of one segment that verifies.
struct Finished {
    index: usize,
    b: Challenge,
    pi: Form,
    y: Form,
}

impl Work {
    /// Nothing if stopped.
    fn prove(&self, d: &Discriminant, threads: usize, meter: &Meter) -> Option<Finished> {
        let b = Challenge::of(d, &self.x, &self.y);
        let pi = buckets::prove(d, &self.part, &self.kept, &b, threads, meter)?;
        Some(Finished { index: self.index, b, pi, y: self.y.clone() })
    }

    fn verified(&self, d: &Discriminant, finished: Finished) -> Answer {
        let proof = Proof { y: finished.y.clone(), pi: finished.pi.clone(), segments: Vec::new() };
        verify_proof(d, &self.x, &proof, self.part.length)
            .map_err(|why| ProverError::Wrong { segment: self.index, why })?;
        Ok(finished)
    }
}

type Answer = Result<Finished, ProverError>;

/// Everything on the way to a proof.
struct Run<'a, 'b> {
    job: &'a Job,
    options: &'a Options,
    observer: &'a mut Observer<'b>,
    meter: &'a Meter,
    done: u64,
    slow: u64,
    finished: Vec<Option<Finished>>,
}

impl<'a> Run<'a, '_> {
    fn observe(&mut self, phase: Phase, done: u64, total: u64) -> Result<(), ProverError> {
        let progress = Progress { phase, done, total, slow: self.slow, resumed: 0 };
        if (self.observer)(progress) {
            return Ok(());
        }
        self.meter.stop.store(true, Ordering::Relaxed);
        Err(ProverError::Cancelled { after: self.done })
    }

    fn take(&mut self, answer: Answer) -> Result<(), ProverError> {
        let finished = answer?;
        let index = finished.index;
        self.finished[index] = Some(finished);
        Ok(())
    }

    /// Hands a segment to the proving thread, and waits if it is two segments behind: that bounds the memory.
    fn hand_over(
        &mut self,
        mut work: Work,
        to: &SyncSender<Work>,
        answers: &Receiver<Answer>,
    ) -> Result<(), ProverError> {
        loop {
            match to.try_send(work) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Full(back)) => work = back,
                Err(TrySendError::Disconnected(_)) => return self.lost(answers),
            }
            if let Ok(answer) = answers.recv_timeout(WAIT) {
                self.take(answer)?;
            }
            self.observe(Phase::Squaring, self.done, self.job.iterations)?;
        }
    }

    /// The proving thread is gone: its last answer says why.
    fn lost(&mut self, answers: &Receiver<Answer>) -> Result<(), ProverError> {
        while let Ok(answer) = answers.try_recv() {
            self.take(answer)?;
        }
        Err(ProverError::Cancelled { after: self.done })
    }

    /// Squares one segment, keeping forms.
    fn square(
        &mut self,
        chain: &mut Fast<'_>,
        index: usize,
        part: Part,
        answers: &Receiver<Answer>,
    ) -> Result<Work, ProverError> {
        let x = chain.form();
        let mut kept = Kept::new(&self.job.discriminant);
        let (every, mut at, mut told) = (part.every(), 0, 0);
        while at < part.length {
            if at % every == 0 {
                kept.push(&chain.form());
            }
            let next = (at / every + 1) * every;
            let step = (next.min(part.length) - at).min(STEP);
            chain.advance(step).map_err(|_| ChainError::Corrupted { good: self.done })?;
            at += step;
            self.done += step;
            if self.done - told >= STEP || at == part.length {
                told = self.done;
                self.slow = chain.slow();
                self.observe(Phase::Squaring, self.done, self.job.iterations)?;
                while let Ok(answer) = answers.try_recv() {
                    self.take(answer)?;
                }
            }
        }
        Ok(Work { index, part, x, y: chain.form(), kept })
    }

    /// Waits for an answer, telling the observer how many products are done.
    fn wait(&mut self, answers: &Receiver<Answer>, total: u64) -> Result<(), ProverError> {
        loop {
            match answers.recv_timeout(WAIT) {
                Ok(answer) => return self.take(answer),
                Err(RecvTimeoutError::Disconnected) => return self.lost(answers),
                Err(RecvTimeoutError::Timeout) => {
                    let done = self.meter.done.load(Ordering::Relaxed).min(total);
                    self.observe(Phase::Proving, done, total)?;
                }
            }
        }
    }

    /// Squares and proves all segments.
    fn all<'scope>(
        &mut self,
        chain: &mut Fast<'_>,
        parts: &[Part],
        scope: &'scope Scope<'scope, '_>,
        seconds: &mut Seconds,
    ) -> Result<(), ProverError>
    where
        'a: 'scope,
    {
        let (d, meter) = (&self.job.discriminant, self.meter);
        let begin = Instant::now();
        let (last, before) = parts.split_last().ok_or(ProverError::NoIterations)?;
        let (work_to, work_from) = mpsc::sync_channel::<Work>(1);
        let (answer_to, answers) = mpsc::channel::<Answer>();
        let helper = self.options.threads > 1 && !before.is_empty();
        if helper {
            let answer_to = answer_to.clone();
            let work = move || {
                while let Ok(work) = work_from.recv() {
                    let Some(answer) = work.prove(d, 1, meter) else { return };
                    if answer_to.send(work.verified(d, answer)).is_err() {
                        return;
                    }
                }
            };
            Builder::new().spawn_scoped(scope, work).map_err(ProverError::Thread)?;
        }
        for (index, part) in before.iter().enumerate() {
            let work = self.square(chain, index, *part, &answers)?;
            if helper {
                self.hand_over(work, &work_to, &answers)?;
            } else {
                // One thread for everything.
                let (one_to, one_from) = mpsc::channel();
                prove_apart(scope, d, work, 1, meter, one_to)?;
                self.wait(&one_from, buckets::products(part))?;
            }
        }
        drop(work_to);
        let work = self.square(chain, before.len(), *last, &answers)?;
        seconds.squaring = begin.elapsed().as_secs_f64();
        let begin = Instant::now();
        let total = buckets::products(last);
        meter.done.store(0, Ordering::Relaxed);
        self.observe(Phase::Proving, 0, total)?;
        prove_apart(scope, d, work, self.options.threads, meter, answer_to)?;
        while self.finished.iter().any(Option::is_none) {
            self.wait(&answers, total)?;
        }
        self.observe(Phase::Proving, total, total)?;
        seconds.proving = begin.elapsed().as_secs_f64();
        Ok(())
    }
}

/// Squares x, proves every segment, and verifies the proofs.
///
/// The observer is called several times a second, always on the caller's thread, and says whether to go on.
///
/// # Errors
/// As [`evaluate`], segments that do not fit the squarings, or a proof that came out wrong.
pub fn prove(job: &Job, options: &Options, observer: &mut Observer<'_>) -> Result<Proved, ProverError> {
    let parts = plan::parts(job, options.memory)?;
    let d = &job.discriminant;
    let mut chain = Fast::new(options.kernels, d, &job.x)?;
    let meter = &Meter::default();
    let finished = parts.iter().map(|_| None).collect();
    let mut run = Run { job, options, observer, meter, done: 0, slow: 0, finished };
    let mut seconds = Seconds::default();
    let outcome = std::thread::scope(|scope| {
        let outcome = run.all(&mut chain, &parts, scope, &mut seconds);
        if outcome.is_err() {
            // The scope waits for its threads.
            meter.stop.store(true, Ordering::Relaxed);
        }
        outcome
    });
    outcome?;
    assemble(run, seconds)
}
/// Proves and verifies one segment on a thread of its own, so that the caller's can go on telling the observer.
fn prove_apart<'scope>(
    scope: &'scope Scope<'scope, '_>,
    d: &'scope Discriminant,
    work: Work,
    threads: usize,
    meter: &'scope Meter,
    to: mpsc::Sender<Answer>,
) -> Result<(), ProverError> {
    let task = move || {
        let Some(finished) = work.prove(d, threads, meter) else { return };
        let answer = work.verified(d, finished);
        // Nobody listens any more if the caller has given up.
        let _ = to.send(answer);
    };
    Builder::new().spawn_scoped(scope, task).map(|_| ()).map_err(ProverError::Thread)
}

fn assemble(run: Run<'_, '_>, seconds: Seconds) -> Result<Proved, ProverError> {
    let mut out = None;
    let mut segments = Vec::new();
    let lengths = run.job.segments.iter().map(|&length| Some(length)).chain([None]);
    for (finished, length) in run.finished.into_iter().zip(lengths) {
        let Some(Finished { b, pi, y, .. }) = finished else {
            return Err(ProverError::Cancelled { after: run.done });
        };
        match length {
            Some(iterations) => segments.push(Segment { iterations, b, pi }),
            None => out = Some((pi, y)),
        }
    }
    let (pi, y) = out.ok_or(ProverError::NoIterations)?;
    Ok(Proved { proof: Proof { y, pi, segments }, slow: run.slow, resumed: 0, seconds })
}
