//! Squaring on the caller's thread; proofs on others.
#![forbid(unsafe_code)]

use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::thread::{Builder, Scope};
use std::time::{Duration, Instant};

use lanework_cpu::Threads;

use super::buckets::{self, Meter};
use super::checkpoint::{self, Known, State, Writer};
use super::plan::{self, Parameters, Part};
use super::segment::{Answer, Finished, Squared};
use super::{Evaluated, Options, Phase, Progress, Proved, ProverError, Seconds, Task};
use crate::chain::Chain;
use crate::form::packed::{self, PackedForms};
use crate::group::Group;
use crate::proof::{Challenge, Proof, Segment};

/// Squarings between two calls of the observer, at most.
const STEP: u64 = 4096;
/// Time between two calls of the observer while other threads work.
const WAIT: Duration = Duration::from_millis(50);
/// Words of kept forms that are written without waiting for the interval to pass.
const UNWRITTEN: usize = 1 << 18;

type Observer<'a> = dyn FnMut(Progress) -> bool + 'a;

/// One computation.
struct Run<'a, 'b> {
    task: &'a Task,
    group: Group<'a>,
    options: &'a Options<'a>,
    observer: &'a mut Observer<'b>,
    meter: &'a Meter,
    writer: Option<Writer>,
    proving: bool,
    /// Squarings resumed from the checkpoint.
    resumed: u64,
    done: u64,
    slow: u64,
    finished: Vec<Option<Finished>>,
}

/// Squares x.
///
/// The observer is called several times a second and returns whether to go on. With a checkpoint, its squarings are not
/// repeated, and stopping loses nothing.
///
/// # Errors
/// No squarings, a form of another discriminant, a chain that lost its discriminant, an unusable checkpoint, or the
/// observer's stop.
pub fn evaluate(
    task: &Task,
    options: &Options<'_>,
    observer: &mut Observer<'_>,
) -> Result<Evaluated, ProverError> {
    if task.iterations == 0 {
        return Err(ProverError::NoIterations);
    }
    let parts = vec![Part { start: 0, length: task.iterations, parameters: Parameters { k: 1, l: 1 } }];
    let meter = &Meter::default();
    let (mut run, mut state) = Run::start(task, options, observer, meter, parts, false)?;
    let begin = Instant::now();
    let (_unused, answers) = mpsc::channel();
    let outcome = run.chain(&state).and_then(|mut chain| run.square(&mut chain, 0, &mut state, &answers));
    let work = run.close(outcome)?;
    let seconds = Seconds { squaring: begin.elapsed().as_secs_f64(), ..Seconds::default() };
    Ok(Evaluated { y: work.y, slow: run.slow, resumed: run.resumed, seconds })
}

/// Squares x, proves every segment, and verifies the proofs.
///
/// The observer is called several times a second, always on the caller's thread, and returns whether to continue. A
/// checkpoint works as in [`evaluate`]; it also holds the kept forms, and the proofs of finished segments.
///
/// # Errors
/// As [`evaluate`], segments that do not fit the squarings, or a wrong proof.
pub fn prove(task: &Task, options: &Options<'_>, observer: &mut Observer<'_>) -> Result<Proved, ProverError> {
    let parts = plan::parts(task, options.memory)?;
    let meter = &Meter::default();
    let (mut run, mut state) = Run::start(task, options, observer, meter, parts, true)?;
    let mut seconds = Seconds::default();
    // Started before they are needed: a thread that has just started may wait milliseconds for a core. Without them the
    // proving thread works alone.
    let pool = if options.threads > 1 { Threads::pool(options.threads).ok() } else { None };
    let threads = pool.as_ref().map_or(Threads::One, Threads::Pool);
    let outcome = std::thread::scope(|scope| {
        let outcome = run.all(&mut state, scope, threads, &mut seconds);
        if outcome.is_err() {
            // The scope waits for its threads.
            meter.stop.store(true, Ordering::Relaxed);
        }
        outcome
    });
    run.close(outcome)?;
    run.assemble(seconds)
}

impl<'a, 'b> Run<'a, 'b> {
    fn start(
        task: &'a Task,
        options: &'a Options<'a>,
        observer: &'a mut Observer<'b>,
        meter: &'a Meter,
        parts: Vec<Part>,
        proving: bool,
    ) -> Result<(Run<'a, 'b>, State), ProverError> {
        // Before any file is made: the form must have the discriminant.
        let group = task.discriminant.on(options.engine);
        Chain::new(group, &task.x)?;
        let (state, writer) = match options.checkpoint {
            Some(path) => {
                let (state, writer) = checkpoint::open(path, task, proving, parts)?;
                (state, Some(writer))
            }
            None => (State::new(parts), None),
        };
        let (done, slow) = (state.done(), state.slow);
        let finished = state.parts.iter().map(|_| None).collect();
        let run = Run {
            task,
            group,
            options,
            observer,
            meter,
            writer,
            proving,
            resumed: done,
            done,
            slow,
            finished,
        };
        Ok((run, state))
    }

    /// The chain from where the checkpoint left it.
    fn chain(&self, state: &State) -> Result<Chain, ProverError> {
        let form = state.known.last().map_or(&self.task.x, |known| &known.form);
        Ok(Chain::resume(self.group, form, self.done, self.slow)?)
    }

    /// Waits until the last record is on the disk. If it cannot be written, that is the error, also of a run that was cancelled.
    fn close<T>(&mut self, outcome: Result<T, ProverError>) -> Result<T, ProverError> {
        let Some(writer) = &mut self.writer else { return outcome };
        match outcome {
            Ok(value) => writer.finish().map(|()| value).map_err(ProverError::Checkpoint),
            Err(ProverError::Cancelled { after, .. }) => {
                writer.finish()?;
                Err(ProverError::Cancelled { after, checkpoint: writer.file() })
            }
            failed => failed,
        }
    }

    fn observe(&mut self, phase: Phase, done: u64, total: u64) -> Result<(), ProverError> {
        let checkpoint = self.writer.as_ref().map(Writer::file).unwrap_or_default();
        let progress = Progress { phase, done, total, slow: self.slow, resumed: self.resumed, checkpoint };
        if (self.observer)(progress) {
            return Ok(());
        }
        self.meter.stop.store(true, Ordering::Relaxed);
        Err(ProverError::cancelled(self.done))
    }

    fn take(&mut self, answer: Answer) -> Result<(), ProverError> {
        let finished = answer?;
        if let Some(writer) = &mut self.writer {
            writer.segment(finished.index, &packed::pack(&self.task.discriminant, &finished.pi))?;
        }
        let index = finished.index;
        self.finished[index] = Some(finished);
        Ok(())
    }

    /// Hands a segment to the proving thread, and waits if it is two segments behind: that bounds the memory.
    fn hand_over(
        &mut self,
        mut work: Squared,
        to: &SyncSender<Squared>,
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
            self.observe(Phase::Squaring, self.done, self.task.iterations)?;
        }
    }

    /// The proving thread is gone: its last answer has the reason.
    fn lost(&mut self, answers: &Receiver<Answer>) -> Result<(), ProverError> {
        while let Ok(answer) = answers.try_recv() {
            self.take(answer)?;
        }
        Err(ProverError::cancelled(self.done))
    }

    /// Part `index`, squared: taken from the checkpoint as far as it goes.
    fn square(
        &mut self,
        chain: &mut Chain,
        index: usize,
        state: &mut State,
        answers: &Receiver<Answer>,
    ) -> Result<Squared, ProverError> {
        let part = state.parts[index];
        let x = state.end_before(index).unwrap_or(&self.task.x).clone();
        if index == state.known.len() {
            let kept = PackedForms::new(&self.task.discriminant);
            state.known.push(Known { kept, at: 0, form: x.clone(), proof: None });
        }
        let known = &mut state.known[index];
        if known.at < part.length {
            self.advance(chain, index, part, known, answers)?;
        }
        let kept = std::mem::replace(&mut known.kept, PackedForms::new(&self.task.discriminant));
        Ok(Squared { index, part, x, y: known.form.clone(), kept })
    }

    /// Squares to the end of a part, keeping forms.
    fn advance(
        &mut self,
        chain: &mut Chain,
        index: usize,
        part: Part,
        known: &mut Known,
        answers: &Receiver<Answer>,
    ) -> Result<(), ProverError> {
        let kept = &mut known.kept.words;
        let (mut written, mut told, mut recorded) = (kept.len(), self.done, Instant::now());
        let every = if self.proving { part.parameters.every() } else { STEP };
        while known.at < part.length {
            if self.proving && known.at.is_multiple_of(every) {
                chain.pack(kept);
            }
            let step = (every - known.at % every).min(part.length - known.at).min(STEP);
            chain.run(step)?;
            known.at += step;
            self.done += step;
            #[cfg(test)]
            if let Some((at, fault)) = self.options.fault
                && (self.done - step < at && at <= self.done)
            {
                fault(chain);
            }
            let end = known.at == part.length;
            if self.done - told < STEP && !end {
                continue;
            }
            (told, self.slow) = (self.done, chain.slow());
            let go_on = self.observe(Phase::Squaring, self.done, self.task.iterations);
            let due = recorded.elapsed() >= self.options.interval || kept.len() - written > UNWRITTEN;
            if due || end || go_on.is_err() {
                chain.check()?;
                if let Some(writer) = &mut self.writer {
                    writer.position(index, self.done, self.slow, &chain.packed(), &kept[written..])?;
                }
                (written, recorded) = (kept.len(), Instant::now());
            }
            go_on?;
            while let Ok(answer) = answers.try_recv() {
                self.take(answer)?;
            }
        }
        known.form = chain.form()?;
        Ok(())
    }

    /// Waits for an answer, with progress in products for the observer.
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

    /// Squares and proves all parts.
    fn all<'scope>(
        &mut self,
        state: &mut State,
        scope: &'scope Scope<'scope, '_>,
        threads: Threads<'scope>,
        seconds: &mut Seconds,
    ) -> Result<(), ProverError>
    where
        'a: 'scope,
    {
        let (group, meter) = (self.group, self.meter);
        let begin = Instant::now();
        let mut chain = self.chain(state)?;
        let last = state.parts.len() - 1;
        let (work_to, work_from) = mpsc::sync_channel::<Squared>(1);
        let (answer_to, answers) = mpsc::channel::<Answer>();
        let helper = self.options.threads > 1 && last > 0;
        if helper {
            let answer_to = answer_to.clone();
            let work = move || {
                while let Ok(work) = work_from.recv() {
                    let answer = work.answer(group, Threads::One, meter);
                    let wrong = answer.is_err();
                    if answer_to.send(answer).is_err() || wrong {
                        return;
                    }
                }
            };
            Builder::new().spawn_scoped(scope, work).map_err(ProverError::Thread)?;
        }
        for index in 0..=last {
            if let Some(pi) = state.known.get_mut(index).and_then(|known| known.proof.take()) {
                // Already proved: verified again, since the file is not trusted.
                let work = self.square(&mut chain, index, state, &answers)?;
                let b = Challenge::of(group, &work.x, &work.y);
                let taken = Finished { index, b, pi, y: work.y.clone(), verifying: 0.0 };
                self.finished[index] = Some(work.verified(group, taken)?);
                continue;
            }
            let work = self.square(&mut chain, index, state, &answers)?;
            if index == last {
                seconds.squaring = begin.elapsed().as_secs_f64();
                self.finish(work, scope, &answers, answer_to, threads, seconds)?;
                break;
            }
            if helper {
                self.hand_over(work, &work_to, &answers)?;
            } else {
                // One thread for everything.
                let (one_to, one_from) = mpsc::channel();
                let total = buckets::products(&work.part);
                prove_apart(scope, group, work, Threads::One, meter, one_to)?;
                self.wait(&one_from, total)?;
            }
        }
        drop(work_to);
        Ok(())
    }

    /// Proves the last part with all threads, and waits for those before it.
    fn finish<'scope>(
        &mut self,
        work: Squared,
        scope: &'scope Scope<'scope, '_>,
        answers: &Receiver<Answer>,
        answer_to: mpsc::Sender<Answer>,
        threads: Threads<'scope>,
        seconds: &mut Seconds,
    ) -> Result<(), ProverError>
    where
        'a: 'scope,
    {
        let begin = Instant::now();
        let (index, total) = (work.index, buckets::products(&work.part));
        self.meter.done.store(0, Ordering::Relaxed);
        self.observe(Phase::Proving, 0, total)?;
        prove_apart(scope, self.group, work, threads, self.meter, answer_to)?;
        while self.finished.iter().any(Option::is_none) {
            self.wait(answers, total)?;
        }
        let verifying = self.finished[index].as_ref().map_or(0.0, |finished| finished.verifying);
        seconds.verifying = verifying;
        seconds.proving = begin.elapsed().as_secs_f64() - verifying;
        self.observe(Phase::Verifying, 1, 1)
    }

    fn assemble(self, seconds: Seconds) -> Result<Proved, ProverError> {
        let mut out = None;
        let mut segments = Vec::new();
        let lengths = self.task.segments.iter().map(|&length| Some(length)).chain([None]);
        for (finished, length) in self.finished.into_iter().zip(lengths) {
            let Some(Finished { b, pi, y, .. }) = finished else {
                return Err(ProverError::cancelled(self.done));
            };
            match length {
                Some(iterations) => segments.push(Segment { iterations, b, pi }),
                None => out = Some((b, pi, y)),
            }
        }
        let (b, pi, y) = out.ok_or(ProverError::NoIterations)?;
        let proof = Proof { y, pi, segments };
        Ok(Proved { proof, b, slow: self.slow, resumed: self.resumed, seconds })
    }
}

/// Proves and verifies one segment on a thread of its own, so that the caller's thread can report progress.
fn prove_apart<'scope>(
    scope: &'scope Scope<'scope, '_>,
    group: Group<'scope>,
    work: Squared,
    threads: Threads<'scope>,
    meter: &'scope Meter,
    to: mpsc::Sender<Answer>,
) -> Result<(), ProverError> {
    let answer = move || {
        // The receiver is gone if the caller has given up.
        let _ = to.send(work.answer(group, threads, meter));
    };
    Builder::new().spawn_scoped(scope, answer).map(|_| ()).map_err(ProverError::Thread)
}
