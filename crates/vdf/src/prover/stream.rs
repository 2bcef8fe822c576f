//! The timelord's prover: squares ahead of all requests, and proves requested numbers of squarings.
//!
//! One thread squares. Others prove segments of 2^16, 2^18, 2^20 ... squarings as soon as they are squared. Each length
//! tiles the chain from its beginning, and the shortest and earliest come first, as in chiavdf. A proof for n squarings
//! has the longest segments proved by then, shorter ones after them, and one last segment for n modulo 2^16, proved on
//! request. It waits until it needs no more segments than Chia allows. The smallest request comes first, with all its
//! missing segments.
#![forbid(unsafe_code)]

mod prove;
mod square;

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use lanework_cpu::Threads;

use super::buckets::Meter;
use super::plan::{self, Parameters};
use super::{Options, ProverError};
use crate::backend::Engine;
use crate::chain::{Chain, ChainError};
use crate::discriminant::Discriminant;
use crate::form::Form;
use crate::form::packed::{self, PackedForms};
use crate::group::Group;
use crate::proof::{Proof, Segment};
use crate::verify::Refused;

/// The segments that a stream proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheme {
    /// The shortest have 2^`shortest` squarings: 4 to 30.
    pub shortest: u32,
    /// Lengths; each is four times the one before. At least 1, and no longer than 2^60 squarings.
    pub lengths: u32,
    /// The most segments before the last that a proof may have.
    pub witnesses: usize,
}

impl Default for Scheme {
    /// Chia's: eight lengths from 2^16 to 2^30, and 63 segments before the last.
    fn default() -> Scheme {
        Scheme { shortest: 16, lengths: 8, witnesses: 63 }
    }
}

impl Scheme {
    fn length(&self, level: usize) -> u64 {
        1 << (self.shortest + 2 * level as u32)
    }

    /// The most squarings that these segments prove. A stream goes no further.
    #[must_use]
    pub fn longest(&self) -> u64 {
        let whole = self.length(self.levels() - 1).saturating_mul(self.witnesses as u64);
        whole.saturating_add(self.length(0) - 1)
    }

    fn levels(&self) -> usize {
        self.lengths as usize
    }

    fn is_possible(&self) -> bool {
        (4..=30).contains(&self.shortest)
            && (1..=29).contains(&self.lengths)
            && self.shortest + 2 * (self.lengths - 1) <= 60
    }
}

/// A stream's progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamProgress {
    /// Squarings done.
    pub squared: u64,
    /// Those done by the general code.
    pub slow: u64,
    /// Squarings from the beginning that segments prove without a gap.
    pub proved: u64,
    /// Requests that have no answer yet.
    pub waiting: usize,
}

/// A segment to be proved.
struct Pending {
    start: u64,
    kept: PackedForms,
}

/// The last segment of a requested proof.
enum Tail {
    /// Its end is not squared yet.
    Ahead,
    /// Its kept forms.
    Ready(PackedForms),
    /// It was squared before it was requested.
    Passed,
    /// A thread is proving it.
    Taken,
    /// Its proof and its end; an empty segment has no proof.
    Done(Box<(Option<Segment>, Form)>),
}

struct Request {
    /// The identity of a request.
    number: u64,
    iterations: u64,
    tail: Tail,
}

/// The error that ended the chain or a proof.
#[derive(Clone, Copy)]
enum Failure {
    Chain(ChainError),
    Wrong(Refused),
}

impl From<Failure> for ProverError {
    fn from(failure: Failure) -> ProverError {
        match failure {
            Failure::Chain(e) => e.into(),
            Failure::Wrong(why) => ProverError::Wrong { segment: 0, why },
        }
    }
}

#[derive(Default)]
struct Inner {
    squared: u64,
    slow: u64,
    /// The form after every shortest segment, packed, from the chain's start on.
    ends: Vec<Vec<u64>>,
    /// For each length, segments that wait.
    pending: Vec<VecDeque<Pending>>,
    /// Words that they and the requests' last segments hold.
    held: usize,
    /// For each length, proofs by position: pi, packed, and the limbs of B.
    proved: Vec<Vec<Option<Box<[u64]>>>>,
    /// The smallest first.
    requests: Vec<Request>,
    next: u64,
    answers: VecDeque<(u64, Proof)>,
    failure: Option<Failure>,
}

struct Shared {
    d: Discriminant,
    engine: Engine,
    scheme: Scheme,
    /// Where the squaring ends.
    longest: u64,
    parameters: Vec<Parameters>,
    /// Words of waiting forms beyond which the squaring waits.
    most: usize,
    inner: Mutex<Inner>,
    /// Signals a segment to prove, room for more, an answer, or the end.
    news: Condvar,
    meter: Meter,
}

impl Shared {
    fn group(&self) -> Group<'_> {
        self.d.on(self.engine)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, inner: MutexGuard<'a, Inner>) -> MutexGuard<'a, Inner> {
        self.news.wait(inner).unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, failure: Failure) {
        self.lock().failure.get_or_insert(failure);
        self.stop();
    }

    fn stop(&self) {
        self.meter.stop.store(true, Ordering::Relaxed);
        // A thread that read the flag before it was set holds the lock until it waits.
        drop(self.lock());
        self.news.notify_all();
    }
}

/// The threads that prove, of `threads` in all. One squares.
fn provers(threads: usize) -> usize {
    threads.clamp(2, Threads::MOST) - 1
}

/// A chain that is squared on threads of its own, up to [`Scheme::longest`]. At 1,024 bits, what it keeps of a chain of that
/// length takes half a gigabyte with Chia's segments, beside [`Options::memory`].
pub struct Stream {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Stream {
    /// Starts squaring x, with Chia's segments. One thread squares and [`Options::threads`] less one prove, but at
    /// least one; [`Options::checkpoint`] has no meaning here.
    ///
    /// # Errors
    /// [`ProverError::Chain`] if x does not have the discriminant, [`ProverError::Thread`].
    pub fn start(d: &Discriminant, x: &Form, options: &Options<'_>) -> Result<Stream, ProverError> {
        Stream::with_scheme(d, x, options, Scheme::default())
    }

    /// [`Stream::start`] with other segments.
    ///
    /// # Errors
    /// As [`Stream::start`], and [`ProverError::Segments`] for an impossible scheme.
    pub fn with_scheme(
        d: &Discriminant,
        x: &Form,
        options: &Options<'_>,
        scheme: Scheme,
    ) -> Result<Stream, ProverError> {
        let (mut stream, chain) = Stream::at_rest(d, x, options, scheme)?;
        stream.spawn("squaring", move |shared| square::run(shared, chain))?;
        for _ in 0..provers(options.threads) {
            stream.spawn("proving", prove::run)?;
        }
        Ok(stream)
    }

    /// A stream without threads, and the chain that is to be squared.
    fn at_rest(
        d: &Discriminant,
        x: &Form,
        options: &Options<'_>,
        scheme: Scheme,
    ) -> Result<(Stream, Chain), ProverError> {
        if !scheme.is_possible() {
            return Err(ProverError::Segments);
        }
        let chain = Chain::new(d.on(options.engine), x)?;
        let size = 2 * packed::size(d.bits());
        // Half of the memory is for the segments being squared, one of each length, and half for those that wait.
        let most = options.memory / 2 / (8 * size);
        let parameters = (0..scheme.levels())
            .map(|level| plan::choose(scheme.length(level), most / scheme.levels()))
            .collect();
        let inner = Inner {
            ends: vec![chain.packed()],
            pending: (0..scheme.levels()).map(|_| VecDeque::new()).collect(),
            proved: vec![Vec::new(); scheme.levels()],
            ..Inner::default()
        };
        let shared = Arc::new(Shared {
            d: d.clone(),
            engine: options.engine,
            scheme,
            longest: scheme.longest(),
            parameters,
            most: most * size,
            inner: Mutex::new(inner),
            news: Condvar::new(),
            meter: Meter::default(),
        });
        Ok((Stream { shared, threads: Vec::new() }, chain))
    }

    fn spawn(&mut self, name: &str, task: impl FnOnce(&Shared) + Send + 'static) -> Result<(), ProverError> {
        let shared = Arc::clone(&self.shared);
        // On an error the stream is dropped, which ends the threads started so far.
        let thread = Builder::new().name(name.to_owned()).spawn(move || task(&shared));
        self.threads.push(thread.map_err(ProverError::Thread)?);
        Ok(())
    }

    /// Requests a proof of `iterations` squarings from the beginning, done or not. Each request has its own answer. The
    /// smallest waiting request is served first.
    ///
    /// # Errors
    /// [`ProverError::NoIterations`], [`ProverError::TooMany`], or the error that ended the stream.
    pub fn request(&self, iterations: u64) -> Result<(), ProverError> {
        let most = self.shared.longest;
        if iterations == 0 {
            return Err(ProverError::NoIterations);
        }
        if iterations > most {
            return Err(ProverError::TooMany { got: iterations, most });
        }
        let mut inner = self.shared.lock();
        if let Some(failure) = inner.failure {
            return Err(failure.into());
        }
        let number = inner.next;
        inner.next += 1;
        let block = self.shared.scheme.length(0);
        // The squaring thread hands over the current segment; earlier ones must be squared again.
        let passed = iterations < inner.squared - inner.squared % block || inner.squared == most;
        let tail = if passed { Tail::Passed } else { Tail::Ahead };
        let at = inner.requests.partition_point(|request| request.iterations <= iterations);
        inner.requests.insert(at, Request { number, iterations, tail });
        drop(inner);
        self.shared.news.notify_all();
        Ok(())
    }

    /// Withdraws a waiting request for `iterations` squarings, if any. A proof that is ready is still returned.
    pub fn withdraw(&self, iterations: u64) {
        let mut inner = self.shared.lock();
        let at = inner.requests.iter().position(|request| request.iterations == iterations);
        if let Some(Tail::Ready(kept)) = at.map(|at| inner.requests.remove(at).tail) {
            inner.held -= kept.words.len();
        }
        drop(inner);
        // The squaring may have waited for room.
        self.shared.news.notify_all();
    }

    /// The next proof, with its squarings; `None` if there is none in time. A timeout beyond the clock's range, such as
    /// [`Duration::MAX`], never ends.
    ///
    /// # Errors
    /// The error that ended the stream: a corrupted chain, or a proof that did not verify.
    pub fn receive(&self, timeout: Duration) -> Result<Option<(u64, Proof)>, ProverError> {
        let end = Instant::now().checked_add(timeout);
        let mut inner = self.shared.lock();
        loop {
            if let Some(answer) = inner.answers.pop_front() {
                return Ok(Some(answer));
            }
            if let Some(failure) = inner.failure {
                return Err(failure.into());
            }
            let left = end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() || self.shared.meter.stopped() {
                return Ok(None);
            }
            inner = self.shared.news.wait_timeout(inner, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The stream's progress.
    #[must_use]
    pub fn progress(&self) -> StreamProgress {
        let inner = self.shared.lock();
        let segments = inner.proved[0].iter().take_while(|segment| segment.is_some()).count() as u64;
        StreamProgress {
            squared: inner.squared,
            slow: inner.slow,
            proved: segments * self.shared.scheme.length(0),
            waiting: inner.requests.len(),
        }
    }

    /// Ends all threads, without waiting for proofs.
    pub fn stop(mut self) -> StreamProgress {
        self.end();
        self.progress()
    }

    fn end(&mut self) {
        self.shared.stop();
        for thread in self.threads.drain(..) {
            // A thread that panicked has reported it.
            let _ = thread.join();
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.end();
    }
}

impl core::fmt::Debug for Stream {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Stream").field("progress", &self.progress()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
