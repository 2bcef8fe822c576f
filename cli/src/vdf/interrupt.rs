//! Ctrl-C and similar signals: the first asks the work to stop, the second ends the command.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use lanework_study::Failure;

use crate::signals;

/// Whether a signal has come, and which.
#[derive(Clone, Debug)]
pub(super) struct Interrupt {
    came: Arc<AtomicUsize>,
    any: Arc<AtomicBool>,
}

impl Interrupt {
    /// Listens from now on, until the command ends.
    pub(super) fn listen() -> Result<Interrupt, Failure> {
        let interrupt =
            Interrupt { came: Arc::new(AtomicUsize::new(0)), any: Arc::new(AtomicBool::new(false)) };
        let told = interrupt.clone();
        signals::listen_for_work(move |signal| {
            told.came.store(signal as usize, Ordering::Relaxed);
            told.any.store(true, Ordering::Relaxed);
        })?;
        Ok(interrupt)
    }

    /// A flag that is set once any signal has come.
    pub(super) fn any(&self) -> &AtomicBool {
        &self.any
    }

    /// The signal that came first.
    pub(super) fn signal(&self) -> Option<i32> {
        match self.came.load(Ordering::Relaxed) {
            0 => None,
            signal => i32::try_from(signal).ok(),
        }
    }
}

/// What shells report for a command that a signal ended.
pub(super) fn shell_status(signal: i32) -> i32 {
    128 + signal
}
