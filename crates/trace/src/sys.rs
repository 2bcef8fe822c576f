//! System calls and raw memory of this crate: shared lanes, forks, futexes, `ptrace`.

pub(crate) mod step;

use std::io::Error;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use crate::Unavailable;
use crate::layout::{CODE, CODE_END, CONTROL, FS_BASE, LANE, PRIVATE_STACK, PRIVATE_TOP};

fn refused(what: &str) -> Unavailable {
    Unavailable { why: format!("{what}: {}", Error::last_os_error()) }
}

/// Memory that a traced child shares with its tracer.
pub(crate) struct Lane {
    base: *mut u8,
}

// SAFETY: the memory is only accessed through atomics and whole copies with checked bounds. Another process may change
// values, never validity, since all of it is plain bytes.
unsafe impl Send for Lane {}

impl Lane {
    /// Finds free space that begins at a multiple of 4 GiB.
    pub(crate) fn map() -> Result<Lane, Unavailable> {
        for place in 0x100..0x180u64 {
            let flags =
                libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
            let all = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
            // SAFETY: a new mapping in unmapped space.
            let base = unsafe { libc::mmap((place << 32) as *mut libc::c_void, LANE, all, flags, -1, 0) };
            if base == libc::MAP_FAILED {
                if Error::last_os_error().raw_os_error() == Some(libc::EEXIST) {
                    continue;
                }
                return Err(refused("no executable shared memory"));
            }
            let lane = Lane { base: base.cast() };
            if lane.base() != place << 32 {
                // An old kernel took the address as a hint.
                return Err(Unavailable { why: "no shared memory at a given address".into() });
            }
            lane.set_word(CONTROL + PRIVATE_STACK, lane.base() + (CONTROL + PRIVATE_TOP) as u64);
            return Ok(lane);
        }
        Err(Unavailable { why: "no free address for shared memory".into() })
    }

    pub(crate) fn base(&self) -> u64 {
        self.base as u64
    }

    fn at<T>(&self, offset: usize, count: usize) -> *mut T {
        let bytes = count.checked_mul(size_of::<T>());
        let end = bytes.and_then(|bytes| offset.checked_add(bytes));
        assert!(
            end.is_some_and(|end| end <= LANE) && offset.is_multiple_of(align_of::<T>()),
            "within the lane"
        );
        // SAFETY: just checked.
        unsafe { self.base.add(offset).cast() }
    }

    fn half_word(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: mapped, aligned, and lives as long as the lane.
        unsafe { AtomicU32::from_ptr(self.at(offset, 1)) }
    }

    fn whole_word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: as above.
        unsafe { AtomicU64::from_ptr(self.at(offset, 1)) }
    }

    pub(crate) fn half(&self, offset: usize) -> u32 {
        self.half_word(offset).load(SeqCst)
    }

    pub(crate) fn set_half(&self, offset: usize, value: u32) {
        self.half_word(offset).store(value, SeqCst);
    }

    pub(crate) fn word(&self, offset: usize) -> u64 {
        self.whole_word(offset).load(SeqCst)
    }

    pub(crate) fn set_word(&self, offset: usize, value: u64) {
        self.whole_word(offset).store(value, SeqCst);
    }

    /// Takes a value and leaves 0.
    pub(crate) fn take_half(&self, offset: usize) -> u32 {
        self.half_word(offset).swap(0, SeqCst)
    }

    pub(crate) fn ring(&self, offset: usize) {
        self.half_word(offset).fetch_add(1, SeqCst);
        self.wake(offset);
    }

    pub(crate) fn wake(&self, offset: usize) {
        let word = self.half_word(offset).as_ptr();
        // SAFETY: a futex in shared memory.
        unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE, 1i32) };
    }

    /// Waits while the value stays, for at most this long.
    pub(crate) fn wait(&self, offset: usize, value: u32, most: Duration) {
        let time = libc::timespec {
            tv_sec: most.as_secs() as libc::time_t,
            tv_nsec: libc::c_long::from(most.subsec_nanos() as i32),
        };
        let word = self.half_word(offset).as_ptr();
        // SAFETY: as above; the time lives during the call.
        unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, value, &raw const time) };
    }

    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) {
        // SAFETY: within the mapping; this process has no reference to it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.at(offset, bytes.len()), bytes.len()) };
    }

    /// Copies whole words out.
    pub(crate) fn read(&self, offset: usize, words: usize, to: &mut Vec<u64>) {
        to.clear();
        to.reserve(words);
        // SAFETY: both have this length, and the words are written before their count.
        unsafe {
            std::ptr::copy_nonoverlapping(self.at(offset, words), to.as_mut_ptr(), words);
            to.set_len(words);
        }
    }

    pub(crate) fn bytes(&self, offset: usize, length: usize) -> Vec<u8> {
        let mut to = vec![0; length];
        // SAFETY: both have this length.
        unsafe { std::ptr::copy_nonoverlapping(self.at(offset, length), to.as_mut_ptr(), length) };
        to
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own.
        unsafe { libc::munmap(self.base.cast(), LANE) };
    }
}

/// Forks. The child does its work and ends; it never returns to the caller's code.
///
/// Only the calling thread continues in the child. The C library's `fork` keeps its allocator usable there. Locks of
/// other threads stay locked, so the work must not print, start threads, or wait.
pub(crate) fn fork(mut work: impl FnMut()) -> Result<i32, Unavailable> {
    // SAFETY: the documentation above limits the child's work, and the child exits below.
    match unsafe { libc::fork() } {
        -1 => Err(refused("no new process")),
        0 => {
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(&mut work));
            leave(0)
        }
        child => Ok(child),
    }
}

/// Ends this process at once.
pub(crate) fn leave(code: i32) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(code) }
}

/// Makes this process end with its parent, and in the zygote makes all of its children killable at once.
pub(crate) fn orphans_die(parent: u32, lead: bool) {
    // SAFETY: settings of this process.
    unsafe {
        if lead {
            libc::setpgid(0, 0);
        }
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() as u32 != parent {
            leave(0);
        }
    }
}

/// A child that has ended, and how.
pub(crate) fn reap() -> Option<(i32, i32)> {
    let mut status = 0;
    // SAFETY: writes the status.
    let child = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
    (child > 0).then_some((child, status))
}

/// Whether a child of this process has ended. It is not reaped, so that its number stays its own until [`end_group`].
pub(crate) fn has_ended(child: i32) -> bool {
    // SAFETY: the structure is plain data, of which zeros are a value.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let how = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: writes the structure, whose process number stays 0 while the child runs.
    unsafe { libc::waitid(libc::P_PID, child as libc::id_t, &raw mut info, how) != 0 || info.si_pid() != 0 }
}

/// Ends a child of this process and all that it has started.
pub(crate) fn end_group(child: i32) {
    // SAFETY: the child leads its group, has not been reaped, and ends by this.
    unsafe {
        libc::kill(-child, libc::SIGKILL);
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, std::ptr::null_mut(), 0);
    }
}

/// The signal that ended a process, or the code that it ended with.
pub(crate) fn ending(status: i32) -> Result<i32, i32> {
    if libc::WIFSIGNALED(status) { Err(libc::WTERMSIG(status)) } else { Ok(libc::WEXITSTATUS(status)) }
}

/// Resets the signals of crashes to their defaults, and disables core files.
pub(crate) fn plain_signals() {
    let crashes = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGABRT];
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: settings of this process.
    unsafe {
        for signal in crashes {
            libc::signal(signal, libc::SIG_DFL);
        }
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
    }
}

/// In the child: calls `operation` through the lane's routine `enter`, with `gs` on the control page.
///
/// # Safety
/// `enter` was written by `emit::routines` into this lane, and the tracer answers.
pub(crate) unsafe fn traced(
    lane: &Lane,
    enter: u64,
    mut operation: &mut dyn FnMut(),
) -> Result<(), Unavailable> {
    const SET_GS: i32 = 0x1001;
    const GET_FS: i32 = 0x1003;
    let control = lane.at::<u8>(CONTROL, 1);
    // SAFETY: `gs` is free for programs; the words are in the lane; the code is not written to by the child.
    let ready = unsafe {
        libc::syscall(libc::SYS_arch_prctl, GET_FS, lane.at::<u64>(CONTROL + FS_BASE, 1)) == 0
            && libc::syscall(libc::SYS_arch_prctl, SET_GS, control) == 0
            && libc::mprotect(
                lane.at::<libc::c_void>(CODE, 1),
                CODE_END - CODE,
                libc::PROT_READ | libc::PROT_EXEC,
            ) == 0
    };
    if !ready {
        return Err(refused("the register gs cannot be used"));
    }
    // SAFETY: the routine's address and its type are the caller's promise.
    let enter: extern "C" fn(*mut libc::c_void, u64) = unsafe { std::mem::transmute(enter as *const ()) };
    enter((&raw mut operation).cast(), first());
    Ok(())
}

/// The address of the first traced function.
pub(crate) fn first() -> u64 {
    begin as *const () as u64
}

extern "C" fn begin(operation: *mut libc::c_void) {
    // SAFETY: `traced` passes its own pointer, and waits for this.
    let operation = unsafe { &mut *operation.cast::<&mut dyn FnMut()>() };
    operation();
}

/// Fills the stack below the caller with numbers that follow from `seed`.
#[inline(never)]
pub(crate) fn fill_stack(seed: u64) {
    let mut room = [0u64; 8192];
    let mut x = seed;
    for word in &mut room {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *word = x ^ x >> 29;
    }
    std::hint::black_box(&mut room);
}

/// Bytes of this process's code. By the memory map, `from..to` is readable and executable.
pub(crate) fn code(from: u64, to: u64) -> &'static [u8] {
    // SAFETY: the caller has looked the range up in the memory map; traced code is neither unloaded nor written to.
    unsafe { std::slice::from_raw_parts(from as *const u8, (to - from) as usize) }
}

/// Bytes that `xsave` writes for the state of this system, and whether it is available.
pub(crate) fn extended_state() -> Option<usize> {
    use std::arch::x86_64::__cpuid_count;
    if !std::is_x86_feature_detected!("xsave") {
        return None;
    }
    // The requested state ends with the upper zmm registers; protection keys, tiles and others follow.
    let mut end = 576;
    for component in [2u32, 5, 6, 7] {
        let leaf = __cpuid_count(0xd, component);
        if leaf.eax > 0 {
            end = end.max((leaf.ebx + leaf.eax) as usize);
        }
    }
    Some(end.next_multiple_of(64))
}

/// [`traced`] for a lane whose routine this is.
pub(crate) fn enter(
    lane: &Lane,
    enter: u64,
    stepped: bool,
    operation: &mut dyn FnMut(),
) -> Result<(), Unavailable> {
    if stepped && !step::offer() {
        return Err(refused("ptrace is forbidden"));
    }
    // SAFETY: a lane's runner returns the routine that its translator has written.
    unsafe { traced(lane, enter, operation) }
}
