//! System calls and foreign code: memory for loaded programs, calls into them, children in which they may crash, and
//! their random bytes.

use std::arch::asm;
use std::cell::Cell;
use std::ffi::CString;
use std::io::{Error, ErrorKind, Result};
use std::time::{Duration, Instant};

pub(crate) const PAGE: usize = 4096;

/// The rights of a part of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rights {
    /// Executed and read.
    Code,
    /// Read.
    Constant,
}

/// Memory in the low 2 GiB, whose addresses fit 32-bit fields.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: *mut u8,
    length: usize,
}

// SAFETY: the memory belongs to the mapping alone and stays until it is dropped; nothing here is tied to a thread.
unsafe impl Send for Mapping {}
// SAFETY: a shared mapping only returns its address.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// `length` zero bytes, rounded up to pages.
    pub(crate) fn new(length: usize) -> Result<Mapping> {
        let length = length.max(1).next_multiple_of(PAGE);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_32BIT;
        // SAFETY: a new mapping, in unmapped space.
        let base = unsafe {
            libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
        };
        if base == libc::MAP_FAILED {
            Err(Error::last_os_error())
        } else {
            Ok(Mapping { base: base.cast(), length })
        }
    }

    pub(crate) fn address(&self) -> u64 {
        self.base as u64
    }

    /// Puts bytes at an offset.
    ///
    /// # Panics
    /// If they do not fit.
    pub(crate) fn write(&mut self, offset: usize, bytes: &[u8]) {
        assert!(offset.checked_add(bytes.len()).is_some_and(|end| end <= self.length), "within the mapping");
        // SAFETY: the bounds are checked, and the memory has no other user while it is filled.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.base.add(offset), bytes.len()) }
    }

    /// Gives a range of whole pages its rights.
    pub(crate) fn protect(&mut self, offset: usize, length: usize, rights: Rights) -> Result<()> {
        assert!(offset.is_multiple_of(PAGE) && offset + length <= self.length, "whole pages of the mapping");
        let rights = match rights {
            Rights::Code => libc::PROT_READ | libc::PROT_EXEC,
            Rights::Constant => libc::PROT_READ,
        };
        // SAFETY: pages of this mapping, to which no reference is kept.
        let done = unsafe { libc::mprotect(self.base.add(offset).cast(), length, rights) };
        if done == 0 { Ok(()) } else { Err(Error::last_os_error()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length; addresses in it are documented to end with it.
        unsafe { libc::munmap(self.base.cast(), self.length) };
    }
}

/// A copy of a loaded program's variables.
pub(crate) fn kept(address: u64, count: usize) -> Vec<u8> {
    // SAFETY: as for `restore`; the pages are readable.
    unsafe { std::slice::from_raw_parts(address as *const u8, count) }.to_vec()
}

/// Writes bytes to an address of a loaded program's variables.
pub(crate) fn restore(address: u64, bytes: &[u8]) {
    // SAFETY: `load` passes sections that it has placed in its own mapping, which is writable there and lives as long
    // as the program; foreign code is not running meanwhile, and no reference to that memory exists.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len()) }
}

/// Limits the size of the files that a child of this process writes. One that has ended already, or has a lower limit, needs none.
pub(crate) fn limit_files(child: u32, bytes: u64) -> Result<()> {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: the new limit is a local value, and no old one is asked for.
    let done =
        unsafe { libc::prlimit(child as libc::pid_t, libc::RLIMIT_FSIZE, &limit, std::ptr::null_mut()) };
    match Error::last_os_error() {
        _ if done == 0 => Ok(()),
        e if matches!(e.raw_os_error(), Some(libc::ESRCH | libc::EPERM)) => Ok(()),
        e => Err(e),
    }
}

/// A function of this process, by its name.
pub(crate) fn function(name: &str) -> Option<u64> {
    let name = CString::new(name).ok()?;
    // SAFETY: a string that ends with a zero; the default handle needs no opening.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found as u64)
}

/// The most integer arguments of a call: six in registers, six on the stack.
pub const ARGUMENTS: usize = 12;

/// The environment of x87, as `fnstenv` leaves it.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Environment([u32; 8]);

/// A call's inputs and outputs. The assembly below uses the offsets.
#[repr(C)]
struct Frame {
    function: u64,
    arguments: [u64; ARGUMENTS],
    poison: *const u64,
    poison_words: u64,
    results: [u64; 2],
    kept: [u64; 6],
    flags: u64,
    before: f64,
    after: f64,
    x: f64,
    y: f64,
    environment: Environment,
}

/// The values of callee-saved registers before a call: rbx, rbp, r12 to r15.
const KEPT: [u64; 6] = [
    0x1b1b_0101_1b1b_0101,
    0x1b1b_0202_1b1b_0202,
    0x1b1b_0303_1b1b_0303,
    0x1b1b_0404_1b1b_0404,
    0x1b1b_0505_1b1b_0505,
    0x1b1b_0606_1b1b_0606,
];

/// The state after a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Called {
    /// rax.
    pub result: u64,
    /// rdx.
    pub second: u64,
    /// Whether rbx, rbp and r12 to r15 are unchanged, and the direction flag is clear.
    pub kept: bool,
    /// Whether every x87 register is empty, as System V requires.
    pub x87_empty: bool,
    /// 1.5 * 2 + 1.5 on the x87 stack, just before and just after the call: 4.5, or NaN if the stack is full.
    pub float: [f64; 2],
}

/// Calls foreign code, with the stack below it filled with `poison` first.
///
/// The code runs in this process with all rights: call faulty code in a [`child`].
///
/// # Panics
/// With more than [`ARGUMENTS`] arguments.
#[must_use]
pub fn call(function: u64, arguments: &[u64], poison: &[u64]) -> Called {
    assert!(arguments.len() <= ARGUMENTS, "at most {ARGUMENTS} arguments");
    let mut frame = Frame {
        function,
        arguments: [0; ARGUMENTS],
        poison: poison.as_ptr(),
        poison_words: poison.len() as u64,
        results: [0; 2],
        kept: KEPT,
        flags: 0,
        before: 0.0,
        after: 0.0,
        x: 1.5,
        y: 2.0,
        environment: Environment::default(),
    };
    frame.arguments[..arguments.len()].copy_from_slice(arguments);
    // SAFETY: `frame` outlives the block and is found again on the stack, where a callee that keeps the stack pointer
    // leaves it. All registers are clobbered except rbx and rbp, which are restored. The fill goes below the stack
    // pointer, into dead memory; the stack has that room (callers keep `poison` to `case::POISON`). The loader's user
    // vouches for the function itself, or runs it in a child.
    unsafe {
        asm!(
            "push rbx",
            "push rbp",
            "push r12",
            "sub rsp, 8",
            "fld qword ptr [r12 + {x}]",
            "fmul qword ptr [r12 + {y}]",
            "fadd qword ptr [r12 + {x}]",
            "fstp qword ptr [r12 + {before}]",
            "cld",
            "mov rcx, [r12 + {poison_words}]",
            "mov rsi, [r12 + {poison}]",
            "lea rdi, [8*rcx]",
            "neg rdi",
            "add rdi, rsp",
            "rep movsq",
            "push [r12 + {arguments} + 88]",
            "push [r12 + {arguments} + 80]",
            "push [r12 + {arguments} + 72]",
            "push [r12 + {arguments} + 64]",
            "push [r12 + {arguments} + 56]",
            "push [r12 + {arguments} + 48]",
            "mov rdi, [r12 + {arguments}]",
            "mov rsi, [r12 + {arguments} + 8]",
            "mov rdx, [r12 + {arguments} + 16]",
            "mov rcx, [r12 + {arguments} + 24]",
            "mov r8, [r12 + {arguments} + 32]",
            "mov r9, [r12 + {arguments} + 40]",
            "mov rbx, [r12 + {kept}]",
            "mov rbp, [r12 + {kept} + 8]",
            "mov r13, [r12 + {kept} + 24]",
            "mov r14, [r12 + {kept} + 32]",
            "mov r15, [r12 + {kept} + 40]",
            "mov r11, [r12 + {function}]",
            "mov r12, [r12 + {kept} + 16]",
            "xor r10d, r10d",
            "xor eax, eax",
            "call r11",
            "mov r11, [rsp + 56]",
            "mov [r11 + {results}], rax",
            "mov [r11 + {results} + 8], rdx",
            "mov [r11 + {kept}], rbx",
            "mov [r11 + {kept} + 8], rbp",
            "mov [r11 + {kept} + 16], r12",
            "mov [r11 + {kept} + 24], r13",
            "mov [r11 + {kept} + 32], r14",
            "mov [r11 + {kept} + 40], r15",
            "pushfq",
            "pop [r11 + {flags}]",
            "cld",
            "fnstenv [r11 + {environment}]",
            "fld qword ptr [r11 + {x}]",
            "fmul qword ptr [r11 + {y}]",
            "fadd qword ptr [r11 + {x}]",
            "fstp qword ptr [r11 + {after}]",
            "fninit",
            "add rsp, 64",
            "pop rbp",
            "pop rbx",
            function = const std::mem::offset_of!(Frame, function),
            arguments = const std::mem::offset_of!(Frame, arguments),
            poison = const std::mem::offset_of!(Frame, poison),
            poison_words = const std::mem::offset_of!(Frame, poison_words),
            results = const std::mem::offset_of!(Frame, results),
            kept = const std::mem::offset_of!(Frame, kept),
            flags = const std::mem::offset_of!(Frame, flags),
            before = const std::mem::offset_of!(Frame, before),
            after = const std::mem::offset_of!(Frame, after),
            x = const std::mem::offset_of!(Frame, x),
            y = const std::mem::offset_of!(Frame, y),
            environment = const std::mem::offset_of!(Frame, environment),
            inlateout("r12") &raw mut frame => _,
            lateout("r13") _,
            lateout("r14") _,
            lateout("r15") _,
            out("k0") _, out("k1") _, out("k2") _, out("k3") _,
            out("k4") _, out("k5") _, out("k6") _, out("k7") _,
            clobber_abi("sysv64"),
        );
    }
    Called {
        result: frame.results[0],
        second: frame.results[1],
        kept: frame.kept == KEPT && frame.flags & 0x400 == 0,
        x87_empty: frame.environment.0[2] & 0xffff == 0xffff,
        float: [frame.before, frame.after],
    }
}

/// How a child ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It did its work.
    Done,
    /// It exited before that.
    Left(i32),
    /// A signal ended it: 11 is a bad address, 4 an unknown instruction.
    Signal(i32),
    /// It was killed after the time limit.
    TimedOut,
}

impl core::fmt::Display for Ended {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Ended::Done => f.write_str("ended"),
            Ended::Left(code) => write!(f, "exited with code {code}"),
            Ended::Signal(signal) => write!(f, "was killed by {}", crate::names::signal(*signal)),
            Ended::TimedOut => f.write_str("took too long"),
        }
    }
}

/// A child's message to its parent.
#[derive(Debug)]
pub struct Voice(i32);

impl Voice {
    /// Sends it. On failure it is lost with the child.
    pub fn say(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            // SAFETY: a descriptor of this process and a slice of its memory.
            let written = unsafe { libc::write(self.0, bytes.as_ptr().cast(), bytes.len()) };
            match written {
                n if n > 0 => bytes = &bytes[n as usize..],
                _ if Error::last_os_error().kind() == ErrorKind::Interrupted => (),
                _ => return,
            }
        }
    }
}

/// Does work in a copy of this process, where foreign code may crash; returns its message, and how it ended.
///
/// # Errors
/// If no process can be started.
pub fn child(limit: Duration, work: impl FnOnce(&mut Voice)) -> Result<(Vec<u8>, Ended)> {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(Error::last_os_error());
    }
    let [from, to] = ends;
    let parent = std::process::id();
    // SAFETY: the child continues with its one thread, does the work and exits without unwinding into the parent's
    // frames.
    let process = unsafe { libc::fork() };
    match process {
        -1 => {
            let why = Error::last_os_error();
            close(from);
            close(to);
            Err(why)
        }
        0 => {
            close(from);
            live(parent, limit);
            let mut voice = Voice(to);
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&mut voice))).is_ok();
            // SAFETY: exits at once, without the parent's exit handlers.
            unsafe { libc::_exit(if done { 0 } else { 101 }) }
        }
        _ => {
            close(to);
            Ok(listen(process, from, limit))
        }
    }
}

fn close(descriptor: i32) {
    // SAFETY: a descriptor that `child` has opened, without other holders.
    unsafe { libc::close(descriptor) };
}

/// The child dies with its parent and by default signals, which the parent can observe.
fn live(parent: u32, limit: Duration) {
    // SAFETY: changes this process alone; the standard library's handlers need state that is unreliable here.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGABRT]
        {
            libc::signal(signal, libc::SIG_DFL);
        }
        libc::alarm(limit.as_secs().saturating_add(2).min(1 << 20) as u32);
        if libc::getppid() as u32 != parent {
            libc::_exit(102);
        }
    }
}

fn listen(process: i32, from: i32, limit: Duration) -> (Vec<u8>, Ended) {
    let start = Instant::now();
    let (mut said, mut room, mut late) = (Vec::new(), vec![0u8; 1 << 16], false);
    loop {
        let left = limit.saturating_sub(start.elapsed());
        let mut poll = libc::pollfd { fd: from, events: libc::POLLIN, revents: 0 };
        // SAFETY: one descriptor.
        let ready = unsafe { libc::poll(&raw mut poll, 1, left.as_millis().min(1 << 30) as i32) };
        if ready == 0 && left.is_zero() {
            late = true;
            // SAFETY: a child of ours that has not been waited for.
            unsafe { libc::kill(process, libc::SIGKILL) };
            break;
        }
        if ready <= 0 {
            continue;
        }
        // SAFETY: reads into a buffer of that size.
        let got = unsafe { libc::read(from, room.as_mut_ptr().cast(), room.len()) };
        match got {
            n if n > 0 => said.extend_from_slice(&room[..n as usize]),
            0 => break,
            _ if Error::last_os_error().kind() == ErrorKind::Interrupted => (),
            _ => break,
        }
    }
    close(from);
    let mut status = 0;
    // SAFETY: waits for a child of ours.
    while unsafe { libc::waitpid(process, &raw mut status, 0) } < 0
        && Error::last_os_error().kind() == ErrorKind::Interrupted
    {}
    let ended = if late {
        Ended::TimedOut
    } else if libc::WIFSIGNALED(status) {
        match libc::WTERMSIG(status) {
            libc::SIGALRM => Ended::TimedOut,
            signal => Ended::Signal(signal),
        }
    } else {
        match libc::WEXITSTATUS(status) {
            0 => Ended::Done,
            code => Ended::Left(code),
        }
    };
    (said, ended)
}

thread_local! {
    static RANDOM: Cell<u64> = const { Cell::new(0) };
}

/// The state of this thread's random bytes for foreign code.
pub fn seed_random_bytes(seed: u64) {
    RANDOM.set(seed);
}

/// The random bytes of foreign code (`randombytes` and such): the same after the same seed.
pub(crate) extern "C" fn random_bytes(to: *mut u8, count: u64) -> *mut u8 {
    for i in 0..count as usize {
        let state = RANDOM.get();
        RANDOM.set(state.wrapping_add(0x9e37_79b9_7f4a_7c15));
        let word = crate::case::mixed(state);
        // SAFETY: the caller has given room for that many bytes.
        unsafe { to.add(i).write(word as u8) };
    }
    to
}
