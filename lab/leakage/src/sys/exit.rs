//! The memory of another program at the moment of its end, through `ptrace`.

use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus};

/// Memory that a program could write to.
#[derive(Debug)]
pub struct Region {
    /// The system's line for it: addresses, rights, and `[heap]`, `[stack]` or a file.
    pub name: String,
    /// What it held.
    pub bytes: Vec<u8>,
}

/// Runs a program, and reads all memory that it could write to when it is about to end: nothing is unmapped by then. Also
/// returns how it ended.
///
/// # Errors
/// Where the system forbids `ptrace`, or the program does not start.
pub fn at_exit(command: &mut Command) -> Result<(Vec<Region>, ExitStatus)> {
    let offer = || {
        // SAFETY: a request to the system about this process itself; it touches no memory.
        match unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) } {
            0 => Ok(()),
            _ => Err(Error::last_os_error()),
        }
    };
    // SAFETY: between `fork` and `exec` the closure makes one system call, and allocates only where that fails.
    let mut child = unsafe { command.pre_exec(offer) }.spawn()?;
    let pid = child.id() as i32;
    // It stops before its first instruction.
    stopped(pid)?;
    let options = libc::PTRACE_O_TRACEEXIT | libc::PTRACE_O_EXITKILL;
    // SAFETY: the child of this thread is stopped; the request writes no memory here.
    if unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, pid, 0, options) } != 0 {
        return Err(Error::last_os_error());
    }
    let mut signal = 0;
    loop {
        // SAFETY: as above.
        if unsafe { libc::ptrace(libc::PTRACE_CONT, pid, 0, signal) } != 0 {
            return Err(Error::last_os_error());
        }
        let status = stopped(pid)?;
        if status >> 16 == libc::PTRACE_EVENT_EXIT {
            break;
        }
        // Pass on the signal that stopped it.
        signal = libc::WSTOPSIG(status);
    }
    // Threads that end at the same time may take their stacks away between the list and the reading.
    let mut tries = 0;
    let regions = loop {
        match regions(pid) {
            Err(e) if e.raw_os_error() == Some(libc::EIO) && tries < 100 => tries += 1,
            read => break read?,
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    };
    // SAFETY: as above.
    unsafe { libc::ptrace(libc::PTRACE_DETACH, pid, 0, 0) };
    Ok((regions, child.wait()?))
}

/// Waits until a child stops.
fn stopped(pid: i32) -> Result<i32> {
    let mut status = 0;
    loop {
        // SAFETY: writes the status.
        let got = unsafe { libc::waitpid(pid, &raw mut status, 0) };
        if got == pid {
            break;
        }
        let e = Error::last_os_error();
        if e.kind() != ErrorKind::Interrupted {
            return Err(e);
        }
    }
    if libc::WIFSTOPPED(status) {
        return Ok(status);
    }
    Err(Error::other("the program ended without a stop"))
}

fn regions(pid: i32) -> Result<Vec<Region>> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let memory = std::fs::File::open(format!("/proc/{pid}/mem"))?;
    let mut regions = Vec::new();
    for line in maps.lines() {
        let mut fields = line.split_whitespace();
        let (Some(range), Some(rights)) = (fields.next(), fields.next()) else { continue };
        let Some((from, to)) = range.split_once('-') else { continue };
        let (Ok(from), Ok(to)) = (u64::from_str_radix(from, 16), u64::from_str_radix(to, 16)) else {
            continue;
        };
        if !rights.starts_with("rw") {
            continue;
        }
        let mut bytes = vec![0; (to - from) as usize];
        memory.read_exact_at(&mut bytes, from)?;
        regions.push(Region { name: line.to_owned(), bytes });
    }
    Ok(regions)
}
