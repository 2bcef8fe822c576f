//! Ctrl-C and similar signals. A separate thread handles them, so that undoing may take a lock.
//!
//! Until [`listen`] is called, signals do what they do by default. After it, one that ends the command first undoes what was
//! registered: it removes a temporary name, or restores the terminal's echo. A signal that was ignored when the command
//! started (`nohup`) stays ignored.
#![forbid(unsafe_code)]

use std::io;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use lanework_study::Failure;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level::emulate_default_handler;

/// When an action is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The command is about to end.
    End,
    /// It is about to be suspended.
    Suspend,
    /// It has been continued.
    Resume,
}

/// What is done when a signal comes.
type Action = Box<dyn FnMut(Moment) + Send>;

struct State {
    /// By number, in the order in which they were registered.
    actions: Vec<(u64, Action)>,
    next: u64,
    /// Asks the work to stop. The first signal takes it; a second one ends the command.
    stop: Option<Box<dyn FnOnce(i32) + Send>>,
}

static STATE: Mutex<State> = Mutex::new(State { actions: Vec::new(), next: 0, stop: None });
static THREAD: OnceLock<Result<Handle, String>> = OnceLock::new();

/// Signals wait while this is held.
pub(crate) struct Held(MutexGuard<'static, State>);

/// Keeps signals waiting until the result is dropped.
pub(crate) fn hold() -> Held {
    Held(STATE.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Held {
    /// Registers an action; the number is for [`Held::forget`].
    pub(crate) fn on(&mut self, action: impl FnMut(Moment) + Send + 'static) -> u64 {
        self.0.next += 1;
        let number = self.0.next;
        self.0.actions.push((number, Box::new(action)));
        number
    }

    /// Removes an action.
    pub(crate) fn forget(&mut self, number: u64) {
        self.0.actions.retain(|(other, _)| *other != number);
    }

    fn tell(&mut self, moment: Moment) {
        self.0.actions.iter_mut().for_each(|(_, action)| action(moment));
    }
}

/// Undoes what was registered and exits, if the command does not end in `main`.
pub(crate) fn exit(code: i32) -> ! {
    hold().tell(Moment::End);
    std::process::exit(code)
}

/// Handles signals from now on.
///
/// # Errors
/// If the system refuses a thread or a handler.
pub(crate) fn listen() -> Result<(), Failure> {
    handle().map(|_| ())
}

/// Like [`listen`], and handles suspension too.
pub(crate) fn listen_for_suspension() -> Result<(), Failure> {
    let handle = handle()?;
    if ignored(SIGTSTP) {
        return Ok(());
    }
    handle.add_signal(SIGTSTP).map_err(unavailable)
}

/// Like [`listen`], but the first signal calls `stop` with its number instead of ending the command. SIGQUIT always ends it.
pub(crate) fn listen_for_work(stop: impl FnOnce(i32) + Send + 'static) -> Result<(), Failure> {
    hold().0.stop = Some(Box::new(stop));
    listen()
}

fn unavailable(e: impl std::fmt::Display) -> Failure {
    Failure::unavailable(format!("cannot listen for signals: {e}"))
}

fn handle() -> Result<&'static Handle, Failure> {
    THREAD.get_or_init(|| start().map_err(|e| e.to_string())).as_ref().map_err(unavailable)
}

fn start() -> io::Result<Handle> {
    let wanted = [SIGHUP, SIGINT, SIGQUIT, SIGTERM].into_iter().filter(|&signal| !ignored(signal));
    let mut signals = Signals::new(wanted)?;
    let handle = signals.handle();
    let meeting = move || signals.forever().for_each(meet);
    std::thread::Builder::new().name("signals".to_owned()).spawn(meeting)?;
    Ok(handle)
}

fn meet(signal: i32) {
    let mut held = hold();
    if signal == SIGTSTP {
        held.tell(Moment::Suspend);
        // Returns when the command is continued.
        let _ = emulate_default_handler(signal);
        held.tell(Moment::Resume);
        return;
    }
    if signal != SIGQUIT
        && let Some(stop) = held.0.stop.take()
    {
        return stop(signal);
    }
    held.tell(Moment::End);
    // Does not return.
    let _ = emulate_default_handler(signal);
}

/// Whether a signal is ignored. If the system does not say, none is.
fn ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}
