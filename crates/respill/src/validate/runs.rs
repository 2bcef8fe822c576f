//! Both versions of a program in this process, traced by `lanework-trace`.
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::time::Duration;

use lanework_trace::{Ending, Operation, Options as Depth, Snapshot, Unavailable};

use super::reason::Place;
use crate::case::{Arena, Case, Ready, poison};
use crate::load::{Externals, LoadError, Loaded};
use crate::program::Program;

/// A program and its other version, loaded.
#[derive(Debug)]
pub struct Versions {
    /// The original.
    pub original: Loaded,
    /// The other one. It uses the original's constants.
    pub rewritten: Loaded,
}

impl Versions {
    /// Loads both.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn new(
        original: &Program,
        rewritten: &Program,
        externals: &Externals,
    ) -> Result<Versions, LoadError> {
        let one = Loaded::new(original, externals)?;
        let two = Loaded::beside(rewritten, externals, Some(&one))?;
        Ok(Versions { original: one, rewritten: two })
    }
}

/// Case 2 n is the original with input n, case 2 n + 1 the other version with the same.
pub(super) struct Runs<'a> {
    case: &'a Case,
    versions: &'a Versions,
    arena: RefCell<Option<Arena>>,
    poison: [Vec<u64>; 2],
}

pub(super) struct Input {
    arena: Arena,
    ready: Ready,
    version: usize,
    results: [u64; 2],
}

impl<'a> Runs<'a> {
    pub(super) fn new(case: &'a Case, versions: &'a Versions) -> Runs<'a> {
        Runs { case, versions, arena: RefCell::new(Some(case.arena())), poison: [poison(1), poison(2)] }
    }

    pub(super) fn snapshot(&self, time: Duration) -> Result<Snapshot, Unavailable> {
        let depth = Depth { writes: true, time, steps: 400_000_000, ..Depth::default() };
        Snapshot::take(self, depth)
    }
}

impl Operation for Runs<'_> {
    type Input = Input;

    fn prepare(&self, case: usize) -> Input {
        // Both children take the same memory.
        let mut arena = self.arena.borrow_mut().take().expect("each child prepares once");
        let loaded = [&self.versions.original, &self.versions.rewritten][case % 2];
        let input = (case / 2) as u64;
        let prepared = self.case.prepare(&self.versions.original, &mut arena, input);
        let ready = prepared.and_then(|_| self.case.ready_in(loaded, &mut arena));
        match ready {
            Ok(ready) => Input { arena, ready, version: case % 2, results: [0; 2] },
            Err(missing) => panic!("{missing}"),
        }
    }

    fn operate(&self, input: &mut Input) {
        let called = input.ready.call(&self.poison[input.version]);
        input.results = [called.result, called.second];
    }

    fn answer(&self, input: &Input) -> Vec<u8> {
        // The most bytes of an answer; the differential runs compare the rest.
        let mut out: Vec<u8> = input.results[0].to_le_bytes().to_vec();
        let contents = input.arena.contents();
        out.extend_from_slice(&contents[..contents.len().min(1 << 20)]);
        out
    }
}

/// How a run that did not return ended. An address in the program is reported as its line.
pub(crate) fn in_words(ending: &Ending, loaded: &Loaded, program: &Program) -> String {
    words(ending, |address| match loaded.op_at(address) {
        Some(op) => format!("at {}", Place::of(program, op)),
        None => format!("at {address:#x}, outside {}", program.file),
    })
}

/// How a run that did not return ended, with its place by `at`.
pub(crate) fn words(ending: &Ending, at: impl Fn(u64) -> String) -> String {
    match ending {
        Ending::Returned => "returned".to_owned(),
        Ending::Panicked(why) => format!("could not be prepared: {why}"),
        Ending::Exited => "exited".to_owned(),
        Ending::Signal { signal, address } => {
            format!("was killed by {} {}", crate::names::signal(*signal), at(*address))
        }
        Ending::Unsupported { address, why } => format!("cannot be traced {}: {why}", at(*address)),
        Ending::TooLong => "executed more instructions than allowed".to_owned(),
        Ending::TimedOut => "took too long".to_owned(),
        Ending::Stopped => "was stopped".to_owned(),
    }
}
