//! Both versions on many random inputs, their results compared byte by byte, in a child.
#![forbid(unsafe_code)]

use std::io;
use std::time::Duration;

use super::reason::Reason;
use super::runs::Versions;
use crate::case::{Arena, Case, Missing, Ready, Stream, poison};
use crate::sys::{self, Called, Ended, Voice};

/// The content of the dead stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    /// Different noise before every call.
    Poisoned,
    /// What the previous call left, which hides faults: for tests of that.
    AsLeft,
}

/// The result of differential runs.
#[derive(Clone, Debug, Default)]
pub struct Differential {
    /// Inputs that both versions got.
    pub inputs: u64,
    /// The faults, the first of each kind.
    pub reason: Option<Reason>,
    /// Whether the runs took longer than allowed.
    pub late: bool,
}

const INPUT: u8 = 0;
const ORIGINAL: u8 = 1;
const REWRITTEN: u8 = 2;
const DIFFERS: u8 = 3;
const DEPENDS: u8 = 4;
const MISSING: u8 = 5;

/// Runs both versions on inputs 0, 1, ..., in alternating order.
///
/// # Errors
/// No process can be started, or a missing function.
pub fn differential(
    case: &Case,
    versions: &Versions,
    inputs: u64,
    stack: Stack,
    limit: Duration,
) -> Result<Differential, DifferError> {
    let (said, ended) = sys::child(limit, |voice| talk(case, versions, inputs, stack, voice))?;
    let mut out = Differential::default();
    let (mut begun, mut which, mut at) = (0u64, false, 0);
    while let Some(&word) = said.get(at) {
        at += 1;
        match word {
            INPUT => begun += 1,
            ORIGINAL => which = false,
            REWRITTEN => which = true,
            MISSING => {
                return Err(DifferError::Missing(Missing(String::from_utf8_lossy(&said[at..]).into_owned())));
            }
            _ => {
                let what = String::from_utf8_lossy(&said[at..]).into_owned();
                let input = begun - 1;
                out.inputs = begun;
                out.reason = Some(match word {
                    DEPENDS => Reason::OriginalDepends { input, what },
                    _ => Reason::Results { input, what },
                });
                return Ok(out);
            }
        }
    }
    out.inputs = begun;
    if ended == Ended::Done {
        return Ok(out);
    }
    out.late = ended == Ended::TimedOut;
    let how = ended.to_string();
    out.reason = Some(Reason::Crashed { rewritten: which, how, input: begun.saturating_sub(1) });
    Ok(out)
}

/// Why inputs could not be run.
#[derive(Debug)]
pub enum DifferError {
    /// The case calls a missing function.
    Missing(Missing),
    /// No process can be started.
    Io(io::Error),
}

impl From<io::Error> for DifferError {
    fn from(e: io::Error) -> DifferError {
        DifferError::Io(e)
    }
}

impl core::fmt::Display for DifferError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            DifferError::Missing(missing) => write!(f, "{missing}"),
            DifferError::Io(e) => write!(f, "no process for the runs: {e}"),
        }
    }
}

impl core::error::Error for DifferError {}

fn talk(case: &Case, versions: &Versions, inputs: u64, stack: Stack, voice: &mut Voice) {
    let mut arena = case.arena();
    let pool: Vec<Vec<u64>> = (0..8).map(poison).collect();
    for input in 0..inputs {
        voice.say(&[INPUT, ORIGINAL]);
        versions.original.reset();
        let ready = case
            .prepare(&versions.original, &mut arena, input)
            .and_then(|one| Ok([one, case.ready_in(&versions.rewritten, &mut arena)?]));
        let ready = match ready {
            Ok(ready) => ready,
            Err(Missing(name)) => {
                voice.say(&[MISSING]);
                voice.say(name.as_bytes());
                return;
            }
        };
        let (before, variables) = (arena.contents().to_vec(), versions.original.variables());
        let mut turn = 2 * input as usize;
        let mut once = |ready: &Ready, arena: &mut Arena| {
            arena.restore(&before);
            versions.rewritten.reset();
            versions.original.put_back(&variables);
            sys::seed_random_bytes(Stream::new(input).word());
            turn += 1;
            match stack {
                Stack::Poisoned => ready.call(&pool[turn % pool.len()]),
                Stack::AsLeft => ready.call(&[]),
            }
        };
        // Input 0 and every 64th: the original against itself.
        if stack == Stack::Poisoned && input % 64 == 0 {
            let one = (once(&ready[0], &mut arena), arena.contents().to_vec());
            let two = (once(&ready[0], &mut arena), arena.contents());
            if let Some(what) = difference(case, (one.0, &one.1), two) {
                voice.say(&[DEPENDS]);
                voice.say(what.as_bytes());
                return;
            }
        }
        // Unfilled stacks are those of a plain test: the original runs first, then the tested version.
        let first = if stack == Stack::Poisoned { (input % 2) as usize } else { 0 };
        voice.say(&[[ORIGINAL, REWRITTEN][first]]);
        let one = (once(&ready[first], &mut arena), arena.contents().to_vec());
        voice.say(&[[REWRITTEN, ORIGINAL][first]]);
        let two = (once(&ready[1 - first], &mut arena), arena.contents());
        if let Some(what) = difference(case, (one.0, &one.1), two) {
            voice.say(&[DIFFERS]);
            voice.say(what.as_bytes());
            return;
        }
    }
}

/// The first difference between two calls' results, in words.
fn difference(case: &Case, one: (Called, &[u8]), two: (Called, &[u8])) -> Option<String> {
    if let Some(at) = (0..one.1.len()).find(|&i| one.1[i] != two.1[i]) {
        return Some(match case.buffer_at(at) {
            Some((name, byte)) => format!("byte {byte} of {name}"),
            None => "memory between the buffers".to_owned(),
        });
    }
    let (a, b) = (one.0, two.0);
    if a.result != b.result {
        return Some(format!("rax, {:#x} and {:#x}", a.result, b.result));
    }
    if a.kept != b.kept {
        return Some("a register that a callee keeps".to_owned());
    }
    if a.x87_empty != b.x87_empty {
        return Some("x87 registers that one version leaves full".to_owned());
    }
    (a.float[1].to_bits() != b.float[1].to_bits()).then(|| "the caller's floating point".to_owned())
}
