//! Threads, independent of the instruction set and the device.
#![forbid(unsafe_code)]

use core::fmt;

/// A pool of threads: rayon's, or without the feature `rayon` a type that has no value.
#[cfg(feature = "rayon")]
pub type ThreadPool = rayon::ThreadPool;

/// A pool of threads: rayon's, or without the feature `rayon` a type that has no value.
#[cfg(not(feature = "rayon"))]
#[derive(Debug)]
pub enum ThreadPool {}

/// How many threads a batch call may use, and whose. Library calls never touch rayon's global pool.
#[derive(Clone, Copy, Debug, Default)]
pub enum Threads<'a> {
    /// The calling thread alone.
    #[default]
    One,
    /// A pool of this many threads, made for the call, at most [`Threads::MOST`]. Zero means one for each core that
    /// may be used.
    Own(usize),
    /// The caller's pool.
    Pool(&'a ThreadPool),
}

/// The operating system refused to start the threads of [`Threads::Own`], or this was built without the feature `rayon`.
#[derive(Debug)]
pub struct PoolError(#[cfg(feature = "rayon")] rayon::ThreadPoolBuildError);

impl fmt::Display for PoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[cfg(feature = "rayon")]
        return write!(f, "the threads could not be started: {}", self.0);
        #[cfg(not(feature = "rayon"))]
        f.write_str("the threads could not be started: this was built without the feature rayon")
    }
}

impl core::error::Error for PoolError {}

impl Threads<'_> {
    /// The most threads that [`Threads::Own`] and [`Threads::pool`] start, whatever the request: more than any machine has
    /// cores for, and few enough for every process limit. A program should refuse larger numbers.
    ///
    /// Without the feature `rayon` it is 1: the calling thread does everything.
    pub const MOST: usize = if cfg!(feature = "rayon") { 1024 } else { 1 };

    /// A pool for [`Threads::Pool`] that outlives one call; zero threads means one for each core that may be used.
    ///
    /// # Errors
    /// [`PoolError`] when the operating system refuses the threads, or without the feature `rayon`.
    #[cfg(feature = "rayon")]
    pub fn pool(threads: usize) -> Result<ThreadPool, PoolError> {
        let count = Threads::Own(threads).count();
        rayon::ThreadPoolBuilder::new().num_threads(count).build().map_err(PoolError)
    }

    /// A pool for [`Threads::Pool`]: none without the feature `rayon`.
    ///
    /// # Errors
    /// [`PoolError`] always.
    #[cfg(not(feature = "rayon"))]
    pub fn pool(_: usize) -> Result<ThreadPool, PoolError> {
        Err(PoolError())
    }

    /// How many threads will run.
    #[must_use]
    pub fn count(&self) -> usize {
        match self {
            Threads::One => 1,
            #[cfg(feature = "rayon")]
            Threads::Own(0) => std::thread::available_parallelism().map_or(1, usize::from),
            Threads::Own(n) => (*n).clamp(1, Threads::MOST),
            #[cfg(feature = "rayon")]
            Threads::Pool(pool) => pool.current_num_threads(),
            #[cfg(not(feature = "rayon"))]
            Threads::Pool(pool) => match **pool {},
        }
    }

    /// Runs `task` on every item of `items`, with the index of the item, spread over the threads.
    ///
    /// Threads take items one at a time, so that uneven work (a restarted signature) leaves no thread idle.
    ///
    /// # Errors
    /// [`PoolError`] when [`Threads::Own`]'s pool cannot be started; nothing has run then.
    pub fn for_each<T: Send>(
        &self,
        items: &mut [T],
        task: impl Fn(usize, &mut T) + Sync,
    ) -> Result<(), PoolError> {
        #[cfg(feature = "rayon")]
        if self.count() > 1 && items.len() > 1 || matches!(self, Threads::Pool(_)) {
            use rayon::prelude::*;
            let few = self.count().min(items.len());
            let spread =
                || items.par_iter_mut().with_max_len(1).enumerate().for_each(|(i, item)| task(i, item));
            match self {
                Threads::Pool(pool) => pool.install(spread),
                _ => Threads::pool(few)?.install(spread),
            }
            return Ok(());
        }
        items.iter_mut().enumerate().for_each(|(i, item)| task(i, item));
        Ok(())
    }
}

#[cfg(all(test, feature = "rayon"))]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_done_once_on_every_kind_of_pool() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        for threads in [Threads::One, Threads::Own(0), Threads::Own(4), Threads::Pool(&pool)] {
            let mut items = vec![0usize; 101];
            threads.for_each(&mut items, |i, item| *item += i + 1).unwrap();
            assert!(items.iter().enumerate().all(|(i, &x)| x == i + 1), "{threads:?}");
        }
    }

    #[test]
    fn no_number_of_threads_is_too_large_to_ask_for() {
        for asked in [Threads::MOST + 1, 1 << 61, usize::MAX] {
            let threads = Threads::Own(asked);
            assert_eq!(threads.count(), Threads::MOST);
            let mut items = [0; 3];
            threads.for_each(&mut items, |i, item| *item = i + 1).unwrap();
            assert_eq!(items, [1, 2, 3]);
        }
        assert_eq!(Threads::Own(Threads::MOST).count(), Threads::MOST);
    }

    #[test]
    fn a_callers_pool_is_the_one_that_runs() {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(2)
            .thread_name(|_| "callers".to_owned())
            .build()
            .unwrap();
        let mut names = vec![String::new(); 8];
        Threads::Pool(&pool)
            .for_each(&mut names, |_, n| *n = std::thread::current().name().unwrap_or("").to_owned())
            .unwrap();
        assert!(names.iter().all(|n| n == "callers"), "{names:?}");
    }
}

#[cfg(all(test, not(feature = "rayon")))]
mod tests {
    use super::*;

    #[test]
    fn the_calling_thread_does_everything() {
        for threads in [Threads::One, Threads::Own(0), Threads::Own(4)] {
            assert_eq!(threads.count(), 1);
            let caller = std::thread::current().id();
            let mut items = [0usize; 101];
            threads
                .for_each(&mut items, |i, item| {
                    assert_eq!(std::thread::current().id(), caller);
                    *item += i + 1;
                })
                .unwrap();
            assert!(items.iter().enumerate().all(|(i, &x)| x == i + 1), "{threads:?}");
        }
        assert!(Threads::pool(2).unwrap_err().to_string().contains("feature rayon"));
    }
}
