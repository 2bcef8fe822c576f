//! A team of threads that waits as OpenMP's does: awake for a while, so that the next fork costs a cache line's transfer
//! and not a wake-up by the system, then asleep.
//!
//! A fork publishes a pointer to the caller's closure and a new generation; workers that see it run the closure and count
//! themselves off; the join waits for the last of them. The closure outlives the fork because the join happens before
//! [`Team::run`] returns or unwinds.

use std::cell::{RefCell, UnsafeCell};
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle, Thread};

/// What a fork runs on every member, given the member's number.
type Work<'a> = dyn Fn(usize) + Sync + 'a;

/// Checks of the generation before a worker goes to sleep: some hundred microseconds, the time between forks of signing.
const PATIENCE: usize = 20_000;
/// The same with more threads than cores, where waiting awake takes the core from a thread that has work.
const NO_PATIENCE: usize = 100;

/// Checks between two offers to let another thread have the core. Without them a member that the system has taken off its
/// core keeps the others waiting at full speed for a whole time slice, as soon as anything else runs on the machine.
const LOOKS: usize = 64;

/// Passes a moment of waiting awake.
fn moment(looks: usize) {
    if looks.is_multiple_of(LOOKS) { thread::yield_now() } else { std::hint::spin_loop() }
}

struct Shared {
    /// Counts forks; `usize::MAX` ends the team.
    generation: AtomicUsize,
    /// Workers that have not finished the fork.
    pending: AtomicUsize,
    work: UnsafeCell<Option<*const Work<'static>>>,
    asleep: Vec<AtomicBool>,
    patience: usize,
}

// SAFETY: `work` is written by the owner alone, when no worker is pending, before the generation is released; workers read
// it after acquiring that generation and until they count themselves off. The closure it points to is Sync.
unsafe impl Sync for Shared {}
// SAFETY: as above; the pointer is never used outside of that protocol.
unsafe impl Send for Shared {}

/// Threads that fork and join with the thread that owns them.
pub(super) struct Team {
    shared: Arc<Shared>,
    workers: Vec<(Thread, Option<JoinHandle<()>>)>,
    /// A team belongs to the thread that started it: two forks at once would share one pointer.
    owned: PhantomData<Rc<()>>,
}

thread_local! {
    /// The teams of this thread, started on first use and kept.
    static TEAMS: RefCell<Vec<Rc<Team>>> = const { RefCell::new(Vec::new()) };
}

/// This thread's team of `threads`, itself included.
///
/// # Panics
/// When the system refuses the threads: there is no caller to return an error to, and going on alone would put a false
/// name on the figures.
pub(super) fn of(threads: usize) -> Rc<Team> {
    TEAMS.with_borrow_mut(|teams| {
        if let Some(team) = teams.iter().find(|t| t.workers.len() + 1 == threads) {
            return Rc::clone(team);
        }
        let team = Rc::new(Team::start(threads));
        teams.push(Rc::clone(&team));
        team
    })
}

impl Team {
    fn start(threads: usize) -> Team {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let shared = Arc::new(Shared {
            generation: AtomicUsize::new(0),
            pending: AtomicUsize::new(0),
            work: UnsafeCell::new(None),
            asleep: (1..threads).map(|_| AtomicBool::new(false)).collect(),
            patience: if threads > cores { NO_PATIENCE } else { PATIENCE },
        });
        let workers = (1..threads)
            .map(|member| {
                let shared = Arc::clone(&shared);
                match thread::Builder::new().spawn(move || serve(&shared, member)) {
                    Ok(handle) => (handle.thread().clone(), Some(handle)),
                    Err(why) => panic!("the system refused to start {threads} threads: {why}"),
                }
            })
            .collect();
        Team { shared, workers, owned: PhantomData }
    }

    fn publish(&self, generation: usize) {
        self.shared.generation.store(generation, Ordering::SeqCst);
        for ((worker, _), asleep) in self.workers.iter().zip(&self.shared.asleep) {
            if asleep.load(Ordering::SeqCst) {
                worker.unpark();
            }
        }
    }

    /// Runs `work` once on every member, with the member's number, and waits for all.
    pub(super) fn run(&self, work: &Work<'_>) {
        /// Waits for the workers, also when the owner's share panics.
        struct Join<'a>(&'a Shared);
        impl Drop for Join<'_> {
            fn drop(&mut self) {
                let mut looks = 0;
                while self.0.pending.load(Ordering::Acquire) != 0 {
                    looks += 1;
                    if looks < self.0.patience { moment(looks) } else { thread::yield_now() }
                }
            }
        }
        assert_eq!(self.shared.pending.load(Ordering::Acquire), 0, "a fork within a fork of the same team");
        let pointer: *const Work<'_> = work;
        // SAFETY: only the lifetime changes; `Join` keeps this function from returning while a worker may use it.
        let pointer: *const Work<'static> = unsafe { std::mem::transmute(pointer) };
        // SAFETY: no worker is pending, as just asserted, so none reads this; a team is not Sync, so nothing else writes.
        unsafe { *self.shared.work.get() = Some(pointer) };
        self.shared.pending.store(self.workers.len(), Ordering::Release);
        let join = Join(&self.shared);
        self.publish(self.shared.generation.load(Ordering::Relaxed) + 1);
        work(0);
        drop(join);
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.publish(usize::MAX);
        for (_, handle) in &mut self.workers {
            if let Some(handle) = handle.take() {
                // A worker that panicked has aborted the process already.
                let _ = handle.join();
            }
        }
    }
}

/// A worker's life.
fn serve(shared: &Shared, member: usize) {
    /// A share that panics would leave the owner waiting, or its results half done: the process must not continue.
    struct Abort;
    impl Drop for Abort {
        fn drop(&mut self) {
            if thread::panicking() {
                std::process::abort();
            }
        }
    }
    let _abort = Abort;
    let mut seen = 0;
    loop {
        let mut looks = 0;
        let mut now = shared.generation.load(Ordering::Acquire);
        while now == seen {
            looks += 1;
            if looks < shared.patience {
                moment(looks);
            } else {
                let asleep = &shared.asleep[member - 1];
                asleep.store(true, Ordering::SeqCst);
                // Checked again after announcing sleep: a fork in between would not have woken this worker.
                if shared.generation.load(Ordering::SeqCst) == seen {
                    thread::park();
                }
                asleep.store(false, Ordering::SeqCst);
            }
            now = shared.generation.load(Ordering::Acquire);
        }
        if now == usize::MAX {
            return;
        }
        seen = now;
        // SAFETY: the owner wrote it before this generation and does not change it until this worker counts itself off;
        // the closure lives until then.
        if let Some(work) = unsafe { *shared.work.get() } {
            // SAFETY: as above.
            unsafe { (*work)(member) };
        }
        shared.pending.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_runs_every_fork_once() {
        for threads in [1, 2, 3, 8] {
            let team = of(threads);
            let hits: Vec<AtomicUsize> = (0..threads).map(|_| AtomicUsize::new(0)).collect();
            for fork in 0..200 {
                team.run(&|member| {
                    hits[member].fetch_add(1, Ordering::Relaxed);
                });
                assert!(hits.iter().all(|h| h.load(Ordering::Relaxed) == fork + 1), "{threads}");
                if fork % 50 == 0 {
                    // Long enough for the workers to fall asleep.
                    thread::sleep(std::time::Duration::from_millis(3));
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "a fork within a fork")]
    fn a_fork_within_a_fork_is_refused() {
        let team = of(2);
        team.run(&|member| {
            if member == 0 {
                of(2).run(&|_| ());
            } else {
                thread::sleep(std::time::Duration::from_millis(20));
            }
        });
    }

    #[test]
    fn the_owners_panic_waits_for_the_workers() {
        let done = AtomicUsize::new(0);
        let team = of(2);
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            team.run(&|member| {
                assert!(member != 0, "planted");
                thread::sleep(std::time::Duration::from_millis(5));
                done.fetch_add(1, Ordering::Relaxed);
            });
        }));
        assert!(caught.is_err() && done.load(Ordering::Relaxed) == 1);
    }
}
