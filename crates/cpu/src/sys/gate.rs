//! The gate of a pool: a call lends its task to other threads, and returns when they are done with it.

use std::hint::spin_loop;
use std::ptr::{from_ref, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use super::cores;

/// What every thread of a call runs, once.
pub(crate) type Task<'a> = dyn Fn() + Sync + 'a;

/// Threads inside, in a word of the gate.
const INSIDE: usize = 0xfff;
/// The call lets threads in.
const OPEN: usize = 1 << 12;
/// The caller sleeps until the last thread has left.
const AWAITED: usize = 1 << 13;
/// The pool ends.
const ENDED: usize = 1 << 14;
/// The lowest bit of the call's number.
const CALL: usize = 1 << 15;

/// Looks between two offers of the core to other threads.
const LOOKS: usize = 64;

/// A round of looks that took this long was interrupted by another thread's time slice.
const INTERRUPTED: Duration = Duration::from_micros(300);

/// The time without spinning after that: on a busy core a thread that sleeps gets its turn sooner than one that spins.
const BUSY: Duration = Duration::from_millis(20);

/// How a thread waits.
#[derive(Debug)]
pub(crate) struct Waiter {
    patience: Duration,
    /// The core was busy, and this thread does not spin until then.
    busy: Option<Instant>,
}

impl Waiter {
    /// Waits awake for at most `patience`.
    pub(crate) const fn new(patience: Duration) -> Waiter {
        Waiter { patience, busy: None }
    }

    /// The core is this thread's again.
    pub(crate) fn calm(&mut self) {
        self.busy = None;
    }

    /// Waits awake while that is allowed; returns whether `done`.
    pub(crate) fn spin(&mut self, done: impl Fn() -> bool) -> bool {
        if done() {
            return true;
        }
        if self.patience.is_zero() {
            return false;
        }
        let begin = Instant::now();
        if self.busy.is_some_and(|end| begin < end) {
            return false;
        }
        let mut last = begin;
        loop {
            for _ in 0..LOOKS {
                spin_loop();
                if done() {
                    return true;
                }
            }
            thread::yield_now();
            let now = Instant::now();
            if now - last >= INTERRUPTED {
                self.busy = Some(now + BUSY);
                return done();
            }
            if now - begin >= self.patience {
                return done();
            }
            last = now;
        }
    }
}

/// At most one call at a time, and the threads that work for it.
///
/// A thread enters only while the call is open. The caller closes it when its own share is done, so a thread that
/// wakes too late keeps nobody waiting.
#[derive(Debug)]
pub(crate) struct Gate {
    /// The call's number, and the bits described above, on a cache line that only calls and waiting threads touch.
    word: Line<AtomicUsize>,
    /// Held by the call that owns the other fields.
    calls: Line<Mutex<Waiter>>,
    /// A reference to the open call's task.
    task: AtomicPtr<()>,
    /// The caller's core, if it is known.
    core: AtomicUsize,
    /// The core on which a thread last fell asleep, if it is known.
    slept: AtomicUsize,
    /// The caller sleeps here once the word has [`AWAITED`].
    sleep: Mutex<()>,
    left: Condvar,
}

/// Two cache lines, since they are fetched in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Line<T>(T);

impl Gate {
    /// Callers wait awake for at most `patience`.
    pub(crate) const fn new(patience: Duration) -> Gate {
        Gate {
            word: Line(AtomicUsize::new(0)),
            calls: Line(Mutex::new(Waiter::new(patience))),
            task: AtomicPtr::new(null_mut()),
            core: AtomicUsize::new(usize::MAX),
            slept: AtomicUsize::new(usize::MAX),
            sleep: Mutex::new(()),
            left: Condvar::new(),
        }
    }

    /// Runs `task` on this thread and on all that enter meanwhile, and returns when all have left. `wake` runs once
    /// they can enter.
    ///
    /// If another call holds the gate, perhaps one around this call, this thread runs `task` alone.
    pub(crate) fn call(&self, task: &Task<'_>, wake: impl FnOnce()) {
        let mut held = match self.calls.0.try_lock() {
            Ok(held) => held,
            Err(TryLockError::Poisoned(held)) => held.into_inner(),
            Err(TryLockError::WouldBlock) => return task(),
        };
        /// Closes the call and waits for the threads inside, also when the caller's share panics.
        struct Close<'a>(&'a Gate, &'a mut Waiter);
        impl Drop for Close<'_> {
            fn drop(&mut self) {
                self.0.close(self.1);
            }
        }
        let close = Close(self, &mut held);
        self.task.store(from_ref(&task).cast_mut().cast(), Ordering::Relaxed);
        let slept = self.slept.load(Ordering::Relaxed);
        if cores::current() == Some(slept) {
            // A system with few cores may wake the thread on this one and leave it there for milliseconds.
            cores::leave(slept);
        }
        self.core.store(cores::current().unwrap_or(usize::MAX), Ordering::Relaxed);
        // Nothing else changes the word now: no thread is inside, none can enter, and `end` comes after the last call.
        let number = self.word.0.load(Ordering::Relaxed) & !(CALL - 1);
        self.word.0.store(number.wrapping_add(CALL) | OPEN, Ordering::Release);
        wake();
        task();
        drop(close);
    }

    /// Lets no more threads in, and waits for those inside.
    fn close(&self, waiter: &mut Waiter) {
        let empty = || self.word.0.load(Ordering::Acquire) & INSIDE == 0;
        if self.word.0.fetch_and(!OPEN, Ordering::Acquire) & INSIDE == 0 || waiter.spin(empty) {
            return;
        }
        let mut asleep = self.sleep.lock().unwrap_or_else(PoisonError::into_inner);
        self.word.0.fetch_or(AWAITED, Ordering::AcqRel);
        while !empty() {
            asleep = self.left.wait(asleep).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Runs the task of the current call, unless this thread has `seen` that call, or it is closed or full.
    pub(crate) fn enter(&self, seen: &mut usize) {
        /// Leaves, also when the task panics.
        struct Leave<'a>(&'a Gate);
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                let before = self.0.word.0.fetch_sub(1, Ordering::AcqRel);
                if before & (AWAITED | INSIDE) == AWAITED | 1 {
                    // Taking the lock waits for the caller to fall asleep; it holds the lock until then.
                    drop(self.0.sleep.lock().unwrap_or_else(PoisonError::into_inner));
                    self.0.left.notify_one();
                }
            }
        }
        let mut word = self.word.0.load(Ordering::Acquire);
        loop {
            let number = word & !(CALL - 1);
            if number == *seen || word & OPEN == 0 || word & INSIDE == INSIDE {
                *seen = number;
                return;
            }
            let entered =
                self.word.0.compare_exchange_weak(word, word + 1, Ordering::AcqRel, Ordering::Acquire);
            match entered {
                Ok(_) => break *seen = number,
                Err(now) => word = now,
            }
        }
        let _leave = Leave(self);
        let task: *const &Task<'_> = self.task.load(Ordering::Relaxed).cast_const().cast();
        // SAFETY: `call` stored a pointer to its argument `task`, of this type, before the word that this thread acquired with
        // OPEN. `Close` keeps that `call` from returning or unwinding until this thread, which it counts among those inside,
        // has left. `_leave` is dropped after the last use. `Task` is Sync.
        unsafe { (*task)() };
        // They may hold secrets of the task, and this thread lives on.
        super::wipe_vector_registers();
    }

    /// Moves this thread off the caller's core: threads that are awake are seldom parted by a system whose other cores are busy.
    /// Returns whether it was there and moved.
    pub(crate) fn part(&self) -> bool {
        let core = self.core.load(Ordering::Relaxed);
        cores::current() == Some(core) && cores::leave(core)
    }

    /// Notes that this thread falls asleep on this core, which a caller then leaves to it.
    pub(crate) fn note_sleep(&self) {
        self.slept.store(cores::current().unwrap_or(usize::MAX), Ordering::Relaxed);
    }

    /// Whether something has happened since the call that was `seen`.
    pub(crate) fn has_news(&self, seen: usize) -> bool {
        let word = self.word.0.load(Ordering::Acquire);
        word & !(CALL - 1) != seen || word & ENDED != 0
    }

    /// Ends the threads that wait. No call may follow.
    pub(crate) fn end(&self) {
        self.word.0.fetch_or(ENDED, Ordering::Release);
    }

    /// Whether the pool ends.
    pub(crate) fn has_ended(&self) -> bool {
        self.word.0.load(Ordering::Acquire) & ENDED != 0
    }
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn a_caller_leaves_the_core_on_which_a_thread_sleeps() {
        if thread::available_parallelism().is_ok_and(|cores| cores.get() == 1) {
            println!("SKIPPED: one core");
            return;
        }
        // The system may move a thread back at once, but not every time.
        let left = (0..100).any(|_| {
            let gate = Gate::new(Duration::ZERO);
            gate.note_sleep();
            let (noted, ran) = (gate.slept.load(Ordering::Relaxed), AtomicUsize::new(usize::MAX));
            gate.call(&|| ran.store(cores::current().unwrap_or(usize::MAX), Ordering::Relaxed), || ());
            ran.into_inner() != noted
        });
        assert!(left);
        // Without a sleeping thread nothing moves it.
        let stays = (0..100).any(|_| {
            let (gate, before) = (Gate::new(Duration::ZERO), cores::current());
            let ran = AtomicUsize::new(usize::MAX);
            gate.call(&|| ran.store(cores::current().unwrap_or(usize::MAX), Ordering::Relaxed), || ());
            Some(ran.into_inner()) == before
        });
        assert!(stays);
    }
}
