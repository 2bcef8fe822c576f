//! A pool of threads whose workers wait awake for a moment, so that the next call costs no wake-up.
#![forbid(unsafe_code)]

use std::any::Any;
use std::boxed::Box;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::vec::Vec;

use crate::sys::gate::{Gate, Waiter};
use crate::{PoolError, Threads};

/// Threads that are started once and work for many calls, for [`Threads::Pool`].
///
/// The calling thread is one of the pool's threads: a pool of four starts three workers. A worker without work spins
/// for at most [`ThreadPool::PATIENCE`], yielding to other threads now and then, and sleeps afterwards. So calls
/// that follow each other closely cost no wake-up. Where other threads want its core, it soon sleeps. Threads are not
/// pinned. On Linux a worker that finds itself on the caller's core moves off it by `sched_setaffinity`, and may use all cores
/// again. A caller on a core where a worker fell asleep does the same. Threads of a pool that sleep at once
/// ([`ThreadPool::with_patience`]) never move.
///
/// A worker clears its vector registers after each call, since they may hold what the task worked on.
///
/// One call at a time has the workers. A call that finds them taken runs on its own thread alone: one from another
/// thread, or from inside a task of this pool. So nested calls cannot wait for each other.
///
/// A panic of a task reaches the caller when the other threads have finished. Some items may then be left undone.
/// Dropping the pool ends its threads.
///
/// ```
/// use lanework_cpu::{ThreadPool, Threads};
///
/// let pool = ThreadPool::new(2)?;
/// let mut squares = [0; 100];
/// Threads::Pool(&pool).for_each(&mut squares, |i, square| *square = i * i)?;
/// assert_eq!(squares[9], 81);
/// # Ok::<(), lanework_cpu::PoolError>(())
/// ```
#[derive(Debug)]
pub struct ThreadPool {
    gate: Arc<Gate>,
    workers: Vec<JoinHandle<()>>,
}

impl ThreadPool {
    /// The time that threads of [`ThreadPool::new`] wait awake: longer than a caller usually needs between two batches,
    /// and too short to matter to anybody else.
    pub const PATIENCE: Duration = Duration::from_micros(200);

    /// This many threads, at most [`Threads::MOST`]; zero means one for each core that may be used.
    ///
    /// More threads than cores do not wait awake, since they would take cores from threads that have work.
    ///
    /// # Errors
    /// [`PoolError`] when the operating system refuses the threads.
    pub fn new(threads: usize) -> Result<ThreadPool, PoolError> {
        let threads = Threads::Own(threads).count();
        let patience = if threads > cores() { Duration::ZERO } else { ThreadPool::PATIENCE };
        ThreadPool::with_patience(threads, patience)
    }

    /// As [`ThreadPool::new`], with threads that wait awake for at most `patience`. Zero means that they sleep at once.
    ///
    /// # Errors
    /// As for [`ThreadPool::new`].
    pub fn with_patience(threads: usize, patience: Duration) -> Result<ThreadPool, PoolError> {
        let mut pool = ThreadPool { gate: Arc::new(Gate::new(patience)), workers: Vec::new() };
        for _ in 1..Threads::Own(threads).count() {
            let gate = Arc::clone(&pool.gate);
            let worker = thread::Builder::new().name("lanework".into());
            // Those already started end when the pool is dropped.
            pool.workers.push(worker.spawn(move || serve(&gate, patience)).map_err(PoolError)?);
        }
        Ok(pool)
    }

    /// The number of threads, the caller's among them.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Runs `task` on every item, each thread taking the next one when it has finished its last.
    pub(crate) fn for_each<T: Send>(&self, items: &mut [T], task: impl Fn(usize, &mut T) + Sync) {
        let helpers = self.workers.len().min(items.len().saturating_sub(1));
        let left = Mutex::new(items.iter_mut().enumerate());
        let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
        let panic: Mutex<Option<Box<dyn Any + Send>>> = Mutex::new(None);
        let share = || {
            let work = || {
                while let Some((i, item)) = next() {
                    task(i, item);
                }
            };
            if let Err(payload) = catch_unwind(AssertUnwindSafe(work)) {
                panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(payload);
            }
        };
        if helpers == 0 {
            share();
        } else {
            self.gate.call(&share, || wake(&self.workers[..helpers]));
        }
        if let Some(payload) = panic.into_inner().unwrap_or_else(PoisonError::into_inner) {
            resume_unwind(payload);
        }
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        self.gate.end();
        wake(&self.workers);
        for worker in self.workers.drain(..) {
            // Workers catch the panics of tasks.
            let _ = worker.join();
        }
    }
}

/// Cores that this process may use.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Makes no system call for workers that are awake.
fn wake(workers: &[JoinHandle<()>]) {
    workers.iter().for_each(|worker| worker.thread().unpark());
}

/// A worker's life.
fn serve(gate: &Gate, patience: Duration) {
    let (mut seen, mut waiter) = (0, Waiter::new(patience));
    while !gate.has_ended() {
        gate.enter(&mut seen);
        if !waiter.spin(|| gate.has_news(seen)) {
            if !patience.is_zero() {
                if gate.part() {
                    waiter.calm();
                }
                gate.note_sleep();
            }
            while !gate.has_news(seen) {
                thread::park();
            }
        }
    }
}
