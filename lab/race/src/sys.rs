//! The few places where the laboratory asks the CPU or the kernel for something no safe wrapper offers.
#![allow(unsafe_code)]

use std::io;

/// The time-stamp counter, where there is one.
pub(crate) fn ticks() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86-64 CPU has RDTSC. It reads a register and touches no memory. (A kernel may forbid
        // it with CR4.TSD; Linux does so only for a process that asked for it by prctl.)
        Some(unsafe { core::arch::x86_64::_rdtsc() })
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        None
    }
}

/// Additions in one turn of [`add_chain`].
pub(crate) const CHAIN: u64 = 64;

/// Runs `turns` × [`CHAIN`] register additions, each of which needs the one before it: one core cycle each on
/// every x86-64 core, whatever its width. The operand is a register because some cores fold additions of
/// immediates away before they execute. Returns `None` where the chain is not written for the ISA.
pub(crate) fn add_chain(turns: u64) -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    {
        let mut sum = 1_u64;
        if turns > 0 {
            // SAFETY: only the named registers and the flags change; no memory or stack is touched; `turns` is
            // not zero, so the loop ends.
            unsafe {
                core::arch::asm!(
                    "2:",
                    ".rept 64",
                    "add {sum}, {step}",
                    ".endr",
                    "dec {turns}",
                    "jnz 2b",
                    sum = inout(reg) sum,
                    step = in(reg) std::hint::black_box(3_u64),
                    turns = inout(reg) turns => _,
                    options(nomem, nostack),
                );
            }
        }
        Some(sum)
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = turns;
        None
    }
}

/// Makes the kernel end the child that `command` starts if this process ends first, however that happens. A worker left behind
/// would go on measuring and spoil the next measurement. Best effort; does nothing outside Linux.
pub(crate) fn ends_with_this_process(command: &mut std::process::Command) {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::process::CommandExt as _;
        let parent = std::process::id();
        let ask = move || {
            // SAFETY: prctl with these arguments sets a number in the kernel's description of the calling process.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) };
            // SAFETY: getppid takes nothing and always succeeds.
            let now = unsafe { libc::getppid() };
            // The parent ended before the request.
            if u32::try_from(now) == Ok(parent) {
                Ok(())
            } else {
                Err(io::Error::from_raw_os_error(libc::ESRCH))
            }
        };
        // SAFETY: between fork and exec only async-signal-safe calls are allowed: the closure makes two system calls and neither
        // allocates nor locks anything.
        unsafe { command.pre_exec(ask) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = command;
}

/// What the kernel reports about a child that has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    /// The raw wait status.
    pub(crate) status: i32,
    /// Processor time in user mode, in nanoseconds.
    pub(crate) user_ns: u64,
    /// Processor time in the kernel, in nanoseconds.
    pub(crate) system_ns: u64,
    /// Peak resident set, in KiB.
    pub(crate) peak_kib: u64,
}

/// Waits for the child `pid` of this process and reports what it used.
#[cfg(target_os = "linux")]
pub(crate) fn wait_with_usage(pid: u32) -> io::Result<Usage> {
    let pid = libc::pid_t::try_from(pid).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    loop {
        let mut status = 0;
        // SAFETY: `rusage` is a C struct of integers, for which all zeroes is a value.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: both pointers are to live, writable locals of the types that wait4 expects.
        let got = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
        if got == pid {
            let ns = |t: libc::timeval| {
                u64::try_from(t.tv_sec).unwrap_or(0) * 1_000_000_000
                    + u64::try_from(t.tv_usec).unwrap_or(0) * 1_000
            };
            return Ok(Usage {
                status,
                user_ns: ns(usage.ru_utime),
                system_ns: ns(usage.ru_stime),
                peak_kib: u64::try_from(usage.ru_maxrss).unwrap_or(0),
            });
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Waits for the child `pid` of this process and reports what it used.
#[cfg(not(target_os = "linux"))]
pub(crate) fn wait_with_usage(_pid: u32) -> io::Result<Usage> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

/// Tries to open the hardware cycle counter for this thread, user mode only, and closes it again.
#[cfg(target_os = "linux")]
pub(crate) fn probe_cycle_counter() -> io::Result<()> {
    // struct perf_event_attr, first published size (64 bytes): type 0 (hardware), size, config 0 (cycles), and the
    // flag word at byte 40 with exclude_kernel (bit 5) and exclude_hv (bit 6).
    let mut attr = [0_u64; 8];
    attr[0] = 64 << 32;
    attr[5] = (1 << 5) | (1 << 6);
    // SAFETY: the kernel reads `size` = 64 bytes from `attr`, which is 64 bytes long and 8-byte aligned. The
    // other arguments are: this thread, any CPU, no group, no flags.
    let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, attr.as_ptr(), 0, -1, -1, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call above has just returned this descriptor, and nothing else uses it.
    unsafe { libc::close(fd as libc::c_int) };
    Ok(())
}

/// Tries to open the hardware cycle counter for this thread, user mode only, and closes it again.
#[cfg(not(target_os = "linux"))]
pub(crate) fn probe_cycle_counter() -> io::Result<()> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}
