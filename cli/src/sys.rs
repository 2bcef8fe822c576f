//! What must be found out before Rust's runtime starts: it opens `/dev/null` in place of each closed standard stream, and a
//! result written there is lost without an error. No flag distinguishes that `/dev/null` from one that the user asked for.
#![allow(unsafe_code)]

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// Standard input and standard output, in this order.
static CLOSED: [AtomicBool; 2] = [AtomicBool::new(false), AtomicBool::new(false)];

/// Called by the system's loader, before `main` and before there is a second thread.
extern "C" fn look() {
    for (number, closed) in (0..).zip(&CLOSED) {
        // SAFETY: the borrowed number is only queried for its flags, which is sound for a closed one too: the system then reports
        // that. It is not kept.
        let stream = unsafe { BorrowedFd::borrow_raw(number) };
        closed.store(rustix::io::fcntl_getfd(stream).is_err(), Ordering::Relaxed);
    }
}

// SAFETY: the section holds addresses of functions of this type (arguments may be left out in C's calling convention), which
// the loader calls once. `look` uses neither the heap nor anything that the runtime sets up.
#[used]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
static LOOK: extern "C" fn() = look;

/// Whether standard input was closed when the command started.
pub(crate) fn stdin_was_closed() -> bool {
    CLOSED[0].load(Ordering::Relaxed)
}

/// Whether standard output was closed when the command started.
pub(crate) fn stdout_was_closed() -> bool {
    CLOSED[1].load(Ordering::Relaxed)
}
