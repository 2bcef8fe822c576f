//! Ctrl-C and its like: the first asks the work to stop, the second ends the command.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::outcome::Failure;

/// Whether a signal has come, and which.
#[derive(Clone, Debug)]
pub(super) struct Interrupt {
    came: Arc<AtomicUsize>,
    any: Arc<AtomicBool>,
}

impl Interrupt {
    /// Listens from now on, until the command ends.
    pub(super) fn listen() -> Result<Interrupt, Failure> {
        let came = Arc::new(AtomicUsize::new(0));
        let any = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In the order of the calls: a first signal passes the shutdown and arms it, a second does not pass.
            flag::register_conditional_shutdown(signal, shell_status(signal), Arc::clone(&any))
                .and_then(|_| flag::register(signal, Arc::clone(&any)))
                .and_then(|_| flag::register_usize(signal, Arc::clone(&came), signal as usize))
                .map_err(|e| Failure::unavailable(format!("signals cannot be listened for: {e}")))?;
        }
        Ok(Interrupt { came, any })
    }

    /// Whether one has come, for those who ask nothing else.
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

/// What shells report of a command that a signal ended.
pub(super) fn shell_status(signal: i32) -> i32 {
    128 + signal
}
