//! Threads, independent of the instruction set and the device.
#![forbid(unsafe_code)]

use core::fmt;

/// The threads of a batch call. Library calls never use rayon's global pool.
#[derive(Clone, Copy, Debug, Default)]
pub enum Threads<'a> {
    /// The calling thread alone.
    #[default]
    One,
    /// A pool of this many threads, made for the call, but of no more than [`Threads::MOST`]. Zero means one for each core that
    /// may be used.
    Own(usize),
    /// The caller's pool.
    Pool(&'a rayon::ThreadPool),
}

/// The operating system refused to start the threads of [`Threads::Own`].
#[derive(Debug)]
pub struct PoolError(rayon::ThreadPoolBuildError);

impl fmt::Display for PoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the threads could not be started: {}", self.0)
    }
}

impl core::error::Error for PoolError {}

impl Threads<'_> {
    /// The most threads that [`Threads::Own`] and [`Threads::pool`] start: more than any machine has cores, and below
    /// every limit on processes. Programs should refuse larger numbers from users.
    pub const MOST: usize = 1024;

    /// A pool for [`Threads::Pool`] that outlives one call; zero threads means one for each core that may be used.
    ///
    /// # Errors
    /// [`PoolError`] when the operating system refuses the threads.
    pub fn pool(threads: usize) -> Result<rayon::ThreadPool, PoolError> {
        let count = Threads::Own(threads).count();
        rayon::ThreadPoolBuilder::new().num_threads(count).build().map_err(PoolError)
    }

    /// The number of threads.
    #[must_use]
    pub fn count(&self) -> usize {
        match self {
            Threads::One => 1,
            Threads::Own(0) => std::thread::available_parallelism().map_or(1, usize::from),
            Threads::Own(n) => (*n).min(Threads::MOST),
            Threads::Pool(pool) => pool.current_num_threads(),
        }
    }

    /// Runs `task` on every item of `items`, with the index of the item, spread over the threads.
    ///
    /// Threads take items one at a time, so that uneven work (a restarted signature) leaves no thread idle.
    ///
    /// # Errors
    /// [`PoolError`] when an own pool cannot be started; nothing has run then.
    pub fn for_each<T: Send>(
        &self,
        items: &mut [T],
        task: impl Fn(usize, &mut T) + Sync,
    ) -> Result<(), PoolError> {
        let spread = |items: &mut [T]| {
            use rayon::prelude::*;
            items.par_iter_mut().with_max_len(1).enumerate().for_each(|(i, item)| task(i, item));
        };
        match self {
            Threads::Pool(pool) => pool.install(|| spread(items)),
            _ if self.count() == 1 || items.len() < 2 => {
                items.iter_mut().enumerate().for_each(|(i, item)| task(i, item));
            }
            _ => Threads::pool(self.count().min(items.len()))?.install(|| spread(items)),
        }
        Ok(())
    }
}

#[cfg(test)]
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
