//! Where time comes from.
//!
//! Samples are timed with the operating system's monotonic clock (`std::time::Instant`): it counts nanoseconds,
//! is disciplined, and exists everywhere. Reading it costs some tens of nanoseconds: less than a thousandth of a sample
//! of 200 µs or more, and the same on both sides of a ratio. The time-stamp counter is also read, but only
//! reported. It ticks at a constant rate unrelated to the core's frequency, so it adds no information about
//! cycles, but other people's tables are in ticks.
#![forbid(unsafe_code)]

use std::time::Instant;

use crate::sys;

/// A source of time. The sampler takes it as an argument, so that tests can supply their own.
pub trait Clock {
    /// Nanoseconds since some fixed moment; never goes back.
    fn now_ns(&self) -> u64;

    /// The time-stamp counter, where there is one.
    fn ticks(&self) -> Option<u64>;

    /// The smallest difference this clock shows in practice, in nanoseconds: its step or the cost of reading it,
    /// whichever is larger. At least 1.
    fn step_ns(&self) -> u64;

    /// The clock's name in a record.
    fn name(&self) -> &'static str;
}

/// The operating system's monotonic clock.
#[derive(Debug, Clone)]
pub struct Monotonic {
    origin: Instant,
    step_ns: u64,
}

impl Monotonic {
    /// Starts the clock and measures its step.
    #[must_use]
    pub fn new() -> Self {
        let origin = Instant::now();
        let nanos = || u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let mut steps: Vec<u64> = Vec::with_capacity(255);
        let mut last = nanos();
        while steps.len() < steps.capacity() {
            let now = nanos();
            if now > last {
                steps.push(now - last);
            }
            last = now;
        }
        steps.sort_unstable();
        Self { origin, step_ns: steps[steps.len() / 2].max(1) }
    }
}

impl Default for Monotonic {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for Monotonic {
    fn now_ns(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn ticks(&self) -> Option<u64> {
        sys::ticks()
    }

    fn step_ns(&self) -> u64 {
        self.step_ns
    }

    fn name(&self) -> &'static str {
        "monotonic"
    }
}
