//! Sets which cores a thread may use, and restores them afterwards.
#![forbid(unsafe_code)]

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The cores this thread may use, in ascending order.
///
/// # Errors
/// The kernel's error.
pub fn allowed() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// Holds the calling thread's affinity; dropping it restores the previous one. Threads started meanwhile
/// inherit the current affinity.
#[derive(Debug)]
pub struct Pin {
    before: CpuSet,
    /// The measuring core first, then the others from the highest down.
    order: Vec<usize>,
    now: usize,
}

impl Pin {
    /// Takes hold without changing anything yet. The measuring core is `core`, or else the highest one allowed,
    /// since interrupts and daemons tend to gather on the lowest.
    ///
    /// # Errors
    /// The kernel's error, or `NotFound` when this thread may not use `core`.
    pub fn hold(core: Option<usize>) -> io::Result<Self> {
        let before = sched_getaffinity(None)?;
        let mut order = allowed()?;
        order.reverse();
        if let Some(core) = core {
            let at = order.iter().position(|&c| c == core).ok_or_else(|| {
                io::Error::new(io::ErrorKind::NotFound, format!("this process may not use core {core}"))
            })?;
            order.remove(at);
            order.insert(0, core);
        }
        Ok(Self { before, order, now: 0 })
    }

    /// How many cores can be used.
    #[must_use]
    pub fn available(&self) -> usize {
        self.order.len()
    }

    /// Allows the calling thread `cores` cores, the measuring core among them; all if there are fewer.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn use_cores(&mut self, cores: usize) -> io::Result<()> {
        let cores = cores.clamp(1, self.order.len());
        if cores != self.now {
            let mut set = CpuSet::new();
            for &cpu in &self.order[..cores] {
                set.set(cpu);
            }
            sched_setaffinity(None, &set)?;
            self.now = cores;
        }
        Ok(())
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        if self.now != 0 {
            // Nothing can be done about a refusal here; the thread then stays pinned.
            let _ = sched_setaffinity(None, &self.before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_and_puts_back() {
        let before = allowed().expect("affinity can be read");
        {
            let mut pin = Pin::hold(None).expect("affinity can be held");
            pin.use_cores(1).expect("one core can be had");
            assert_eq!(allowed().expect("read"), vec![*before.last().expect("some core")]);
            pin.use_cores(usize::MAX).expect("all cores can be had");
            assert_eq!(allowed().expect("read"), before);
            pin.use_cores(1).expect("one core can be had");
        }
        assert_eq!(allowed().expect("read"), before);
    }

    #[test]
    fn a_core_that_is_not_ours_is_refused() {
        assert_eq!(Pin::hold(Some(100_000)).expect_err("no such core").kind(), io::ErrorKind::NotFound);
    }
}
