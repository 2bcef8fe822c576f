//! Threads, independent of the instruction set and the device.
#![forbid(unsafe_code)]

use core::fmt;

#[cfg(feature = "std")]
pub use crate::pool::ThreadPool;

/// A pool of threads; without the feature `std` a type that has no value.
#[cfg(not(feature = "std"))]
#[derive(Debug)]
pub enum ThreadPool {}

/// How many threads a batch call may use, and whose.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub enum Threads<'a> {
    /// The calling thread alone.
    #[default]
    One,
    /// A pool of this many threads, made for the call, at most [`Threads::MOST`]. Zero means one for each core that
    /// may be used.
    Own(usize),
    /// The caller's pool, which outlives the call: the fastest for many short calls.
    Pool(&'a ThreadPool),
    /// The caller's pool of rayon, for programs that have one already. No call touches rayon's global pool.
    #[cfg(feature = "rayon")]
    Rayon(&'a rayon::ThreadPool),
}

/// The operating system refused to start threads, or this was built without the feature `std`.
#[derive(Debug)]
pub struct PoolError(#[cfg(feature = "std")] pub(crate) std::io::Error);

impl fmt::Display for PoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[cfg(feature = "std")]
        return write!(f, "the threads could not be started: {}", self.0);
        #[cfg(not(feature = "std"))]
        f.write_str("the threads could not be started: this was built without the feature std")
    }
}

impl core::error::Error for PoolError {}

impl Threads<'_> {
    /// The most threads that [`Threads::Own`] and [`Threads::pool`] use, whatever the request: more than any machine has
    /// cores for, and few enough for every process limit. A program should refuse larger numbers.
    ///
    /// Without the feature `std` it is 1: the calling thread does everything.
    pub const MOST: usize = if cfg!(feature = "std") { 1024 } else { 1 };

    /// A pool for [`Threads::Pool`] that outlives one call; zero threads means one for each core that may be used.
    ///
    /// # Errors
    /// [`PoolError`] when the operating system refuses the threads.
    #[cfg(feature = "std")]
    pub fn pool(threads: usize) -> Result<ThreadPool, PoolError> {
        ThreadPool::new(threads)
    }

    /// A pool for [`Threads::Pool`]: none without the feature `std`.
    ///
    /// # Errors
    /// [`PoolError`] always.
    #[cfg(not(feature = "std"))]
    pub fn pool(_: usize) -> Result<ThreadPool, PoolError> {
        Err(PoolError())
    }

    /// How many threads will run, at most: a pool whose threads are taken runs a call on its caller's alone.
    #[must_use]
    pub fn count(&self) -> usize {
        match self {
            Threads::One => 1,
            #[cfg(feature = "std")]
            Threads::Own(0) => crate::pool::cores().min(Threads::MOST),
            Threads::Own(n) => (*n).clamp(1, Threads::MOST),
            #[cfg(feature = "std")]
            Threads::Pool(pool) => pool.threads(),
            #[cfg(not(feature = "std"))]
            Threads::Pool(pool) => match **pool {},
            #[cfg(feature = "rayon")]
            Threads::Rayon(pool) => pool.current_num_threads(),
        }
    }

    /// Runs `task` on every item of `items`, with the index of the item, spread over the threads.
    ///
    /// Threads take items one at a time, so that uneven work (a restarted signature) leaves no thread idle.
    ///
    /// # Errors
    /// [`PoolError`] when [`Threads::Own`]'s pool cannot be started; nothing has run then.
    ///
    /// # Panics
    /// If `task` does.
    pub fn for_each<T: Send>(
        &self,
        items: &mut [T],
        task: impl Fn(usize, &mut T) + Sync,
    ) -> Result<(), PoolError> {
        match self {
            #[cfg(feature = "std")]
            Threads::Own(_) if items.len() > 1 && self.count() > 1 => {
                ThreadPool::new(self.count().min(items.len()))?.for_each(items, task);
            }
            #[cfg(feature = "std")]
            Threads::Pool(pool) => pool.for_each(items, task),
            #[cfg(feature = "rayon")]
            Threads::Rayon(pool) => {
                use rayon::prelude::*;
                let spread =
                    || items.par_iter_mut().with_max_len(1).enumerate().for_each(|(i, item)| task(i, item));
                pool.install(spread);
            }
            _ => items.iter_mut().enumerate().for_each(|(i, item)| task(i, item)),
        }
        Ok(())
    }
}

#[cfg(all(test, feature = "std"))]
mod tests;

#[cfg(all(test, not(feature = "std")))]
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
        assert!(Threads::pool(2).unwrap_err().to_string().contains("feature std"));
    }
}
