//! The core that a thread runs on. Only Linux tells; elsewhere nothing is known and nothing done.

#[cfg(all(target_os = "linux", not(miri)))]
mod system {
    use core::ffi::{c_int, c_ulong};

    /// The words of a set of 1,024 cores, as the C library's `cpu_set_t`.
    type Set = [c_ulong; 1024 / c_ulong::BITS as usize];

    unsafe extern "C" {
        safe fn sched_getcpu() -> c_int;
        fn sched_getaffinity(thread: c_int, bytes: usize, set: *mut Set) -> c_int;
        fn sched_setaffinity(thread: c_int, bytes: usize, set: *const Set) -> c_int;
    }

    pub(crate) fn current() -> Option<usize> {
        usize::try_from(sched_getcpu()).ok()
    }

    pub(crate) fn leave(core: usize) -> bool {
        let mut allowed: Set = [0; _];
        // SAFETY: the kernel writes at most the bytes of the set, which is exclusively borrowed; 0 is this thread.
        if unsafe { sched_getaffinity(0, size_of::<Set>(), &raw mut allowed) } != 0 {
            return false;
        }
        let mut others = allowed;
        let (word, bit) = (core / c_ulong::BITS as usize, core % c_ulong::BITS as usize);
        if let Some(word) = others.get_mut(word) {
            *word &= !(1 << bit);
        }
        // SAFETY: the kernel reads the bytes of a whole set; 0 is this thread.
        let allow = |set: &Set| unsafe { sched_setaffinity(0, size_of::<Set>(), set) } == 0;
        let left = others.iter().any(|&word| word != 0) && allow(&others);
        if left {
            allow(&allowed);
        }
        left
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod system {
    pub(crate) fn current() -> Option<usize> {
        None
    }

    pub(crate) fn leave(_: usize) -> bool {
        false
    }
}

/// The core that this thread runs on now.
pub(crate) use system::current;
/// Moves this thread to another core that it may use, if there is one, and returns whether it did. It may use all the same cores
/// afterwards.
pub(crate) use system::leave;

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_leaves_its_core_and_keeps_all_of_them() {
        let cores = || std::thread::available_parallelism().unwrap();
        let before = cores();
        // A quota may leave one core of many that are allowed, so a single core may be left, too.
        let left = (0..100).any(|_| {
            let core = current().unwrap();
            leave(core) && current().unwrap() != core
        });
        assert!(left || before.get() == 1);
        assert_eq!(cores(), before);
        leave(usize::MAX);
        assert_eq!(cores(), before);
    }
}
