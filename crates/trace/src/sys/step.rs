//! Single steps by the processor's trap flag, through `ptrace`: slow, and the reference for the copies.

use crate::Unavailable;
use crate::sys::refused;

/// The state of a stepped process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stepped {
    /// It has stopped before its next instruction.
    Stands,
    /// A signal is pending.
    Signalled(i32),
    /// It has ended, with this status.
    Ended(i32),
}

/// In the child: lets the parent trace it, and stops. False if the system forbids it.
pub(crate) fn offer() -> bool {
    // SAFETY: the parent waits for the stop.
    unsafe {
        if libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) != 0 {
            return false;
        }
        libc::raise(libc::SIGSTOP) == 0
    }
}

/// The state of a child that was resumed.
pub(crate) fn wait(child: i32) -> Stepped {
    let mut status = 0;
    loop {
        // SAFETY: writes the status.
        let got = unsafe { libc::waitpid(child, &raw mut status, 0) };
        if got == child {
            break;
        }
        if got < 0 && std::io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return Stepped::Ended(0);
        }
    }
    if !libc::WIFSTOPPED(status) {
        return Stepped::Ended(status);
    }
    match libc::WSTOPSIG(status) {
        libc::SIGTRAP | libc::SIGSTOP => Stepped::Stands,
        signal => Stepped::Signalled(signal),
    }
}

/// One instruction, with a signal to be delivered or 0.
pub(crate) fn step(child: i32, signal: i32) -> Stepped {
    // SAFETY: a stopped child of this process.
    if unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, child, 0, signal) } != 0 {
        return wait(child);
    }
    wait(child)
}

/// Resumes the child.
pub(crate) fn release(child: i32) {
    // SAFETY: as above.
    unsafe { libc::ptrace(libc::PTRACE_DETACH, child, 0, 0) };
}

/// Delivers a signal to the child, and waits for its end.
pub(crate) fn meet(child: i32, signal: i32) -> i32 {
    let mut next = signal;
    loop {
        // SAFETY: as above.
        unsafe { libc::ptrace(libc::PTRACE_CONT, child, 0, next) };
        match wait(child) {
            Stepped::Ended(status) => return status,
            Stepped::Signalled(signal) => next = signal,
            Stepped::Stands => next = 0,
        }
    }
}

/// Ends the child.
pub(crate) fn end(child: i32) {
    // SAFETY: a child that has not been reaped.
    unsafe { libc::kill(child, libc::SIGKILL) };
}

/// The instruction pointer, then r15 down to rax as records have them, then the flags.
pub(crate) fn registers(child: i32) -> Option<[u64; 18]> {
    let mut r = std::mem::MaybeUninit::<libc::user_regs_struct>::zeroed();
    // SAFETY: room for the registers; zeros are valid ones.
    let r = unsafe {
        if libc::ptrace(libc::PTRACE_GETREGS, child, 0, r.as_mut_ptr()) != 0 {
            return None;
        }
        r.assume_init()
    };
    Some([
        r.rip, r.r15, r.r14, r.r13, r.r12, r.r11, r.r10, r.r9, r.r8, r.rdi, r.rsi, r.rbp, r.rsp, r.rbx,
        r.rdx, r.rcx, r.rax, r.eflags,
    ])
}

/// Reads the extended state as `xsave` writes it; returns its length in bytes.
pub(crate) fn extended(child: i32, to: &mut [u8]) -> usize {
    const XSTATE: i32 = 0x202;
    let mut place = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
    // SAFETY: the vector names live bytes and their number.
    if unsafe { libc::ptrace(libc::PTRACE_GETREGSET, child, XSTATE, &raw mut place) } != 0 {
        return 0;
    }
    place.iov_len
}

/// Whether the system allows a process to step its own child.
pub(crate) fn permitted() -> Result<(), Unavailable> {
    // SAFETY: the child only asks to be traced and exits; it is reaped.
    unsafe {
        let child = libc::fork();
        if child < 0 {
            return Err(refused("no new process"));
        }
        if child == 0 {
            libc::_exit(i32::from(!offer()));
        }
        let stands = wait(child) == Stepped::Stands;
        let stepped = stands && step(child, 0) == Stepped::Stands;
        if stands {
            end(child);
            wait(child);
        }
        if stepped { Ok(()) } else { Err(Unavailable { why: "ptrace is forbidden".into() }) }
    }
}
