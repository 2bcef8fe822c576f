//! The processor's time-stamp counter.

use core::arch::x86_64::{__rdtscp, _mm_lfence};

/// Ticks of the counter, read after everything before it is done and before anything after it begins.
#[inline(always)]
pub(crate) fn ticks() -> u64 {
    let mut core = 0;
    // SAFETY: every processor that this crate's users run on has both: rdtscp came in 2006 and 2008, the fence with SSE2.
    // `core` is this function's own.
    unsafe {
        let ticks = __rdtscp(&raw mut core);
        _mm_lfence();
        ticks
    }
}
