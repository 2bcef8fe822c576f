//! The loops in this process, and a clock around them.
#![forbid(unsafe_code)]

use core::fmt;
use std::collections::HashMap;
use std::time::Instant;

use lanework_cpu::Features;

use super::kernels::{Kernel, text};
use super::{BrokenClock, Effort, Stopwatch, Table, measure};
use crate::load::{Externals, LoadError, Loaded};
use crate::program::{Program, ProgramError};
use crate::sys;

/// Why measuring failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum CpuError {
    /// The loops could not be assembled.
    Program(ProgramError),
    /// They could not be loaded.
    Load(LoadError),
    /// They could not be timed.
    Clock(BrokenClock),
}

impl fmt::Display for CpuError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CpuError::Program(e) => e.fmt(f),
            CpuError::Load(e) => e.fmt(f),
            CpuError::Clock(e) => e.fmt(f),
        }
    }
}

impl core::error::Error for CpuError {}

struct Loops {
    addresses: HashMap<Kernel, u64>,
    _loaded: Loaded,
}

impl Loops {
    fn new(features: Features) -> Result<Loops, CpuError> {
        let all = Kernel::all(features);
        let program = Program::new("the loops", text(&all)).map_err(CpuError::Program)?;
        let none = Externals { known: Default::default(), process: false };
        let loaded = Loaded::new(&program, &none).map_err(CpuError::Load)?;
        let addresses = all.iter().filter_map(|&k| Some((k, loaded.symbol(&k.symbol())?))).collect();
        Ok(Loops { addresses, _loaded: loaded })
    }
}

impl Stopwatch for Loops {
    fn time(&mut self, kernel: Kernel, turns: u64) -> f64 {
        // A missing loop takes no time, which measuring reports as an error.
        let Some(&function) = self.addresses.get(&kernel) else { return 0.0 };
        let begin = Instant::now();
        let _ = sys::call(function, &[turns.max(1)], &[]);
        begin.elapsed().as_secs_f64() * 1e9
    }
}

/// Measures the processor that this thread runs on; pin it first.
///
/// # Errors
/// [`CpuError`].
pub fn here(
    features: Features,
    effort: Effort,
    progress: impl FnMut(usize, usize),
) -> Result<Table, CpuError> {
    let mut loops = Loops::new(features)?;
    measure(&mut loops, features, effort, progress).map_err(CpuError::Clock)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanework_cpu::Cpu;

    #[test]
    fn every_loop_that_this_processor_has_comes_back() {
        let features = Cpu::detect().features();
        let mut loops = Loops::new(features).unwrap_or_else(|e| panic!("{e}"));
        let all = Kernel::all(features);
        assert_eq!(loops.addresses.len(), all.len());
        for kernel in all {
            assert!(loops.time(kernel, 3) > 0.0, "{kernel:?}");
            let called = sys::call(loops.addresses[&kernel], &[2], &[]);
            assert!(called.kept && called.x87_empty && called.float == [4.5; 2], "{kernel:?}: {called:?}");
        }
    }
}
