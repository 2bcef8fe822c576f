//! Operations on secrets, compared instruction by instruction on the processor itself. This covers instructions that
//! valgrind lacks.
//!
//! A comparison shows that, for the given secrets, the instructions, the addresses and sizes of all memory touched
//! and the operands of divisions are the same. Unlike memcheck it does not follow a secret through the computation: what two
//! secrets happen to have in common shows nothing, so several are compared. And the data that an operation releases must not
//! decide its way either, or must be the same in all cases.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::time::Duration;

pub use lanework_trace::{Difference, Failure, Kind, Operation, Options, Report, Snapshot};

use crate::valgrind::say;

/// Set to 1 to fail on a machine where nothing can be traced.
pub const REQUIRE: &str = "LANEWORK_REQUIRE_TRACE";

/// An operation made of two closures: one makes a case's input, untraced; the other is traced.
struct Pair<I, P: Fn(usize) -> I, O: Fn(&mut I)> {
    prepare: P,
    operate: O,
    answer: fn(&I) -> Vec<u8>,
}

impl<I, P: Fn(usize) -> I, O: Fn(&mut I)> Operation for Pair<I, P, O> {
    type Input = I;

    fn prepare(&self, case: usize) -> I {
        (self.prepare)(case)
    }

    fn operate(&self, input: &mut I) {
        (self.operate)(input);
    }

    fn answer(&self, input: &I) -> Vec<u8> {
        (self.answer)(input)
    }
}

/// Compares the operation on the inputs of the cases 1, 2, ... with that on the input of case 0. `None`, with a printed
/// reason, where that cannot be done.
///
/// # Panics
/// If a run does not reach its end, or nothing can be traced and [`REQUIRE`] is 1.
#[must_use]
pub fn compared<I>(
    what: &str,
    cases: usize,
    prepare: impl Fn(usize) -> I,
    operate: impl Fn(&mut I),
    answer: fn(&I) -> Vec<u8>,
) -> Option<Report> {
    let options = Options { time: Duration::from_secs(60), ..Options::default() };
    let cases: Vec<usize> = (0..cases).collect();
    let report = Snapshot::take(&Pair { prepare, operate, answer }, options)
        .map_err(Failure::from)
        .and_then(|mut snapshot| snapshot.compare(&cases));
    match report {
        Ok(report) => Some(report),
        Err(Failure::Unavailable(why)) => {
            assert!(std::env::var_os(REQUIRE).is_none_or(|v| v != "1"), "{REQUIRE}=1, but {why}");
            say(&format!("SKIPPED: {what}: {why}"));
            None
        }
        Err(failure) => panic!("{what}: {failure}"),
    }
}

/// Whether this build can be checked; if not, prints the reason. See [`crate::valgrind::judged`].
#[must_use]
pub fn to_be_judged(test: &str) -> bool {
    if cfg!(debug_assertions) {
        say(&format!("SKIPPED: {test}: debug assertions branch on secrets; run it with --release"));
    }
    !cfg!(debug_assertions)
}

/// Figures of several comparisons, for the line that a test ends with.
#[derive(Debug, Default)]
pub struct Tally {
    operations: Cell<usize>,
    secrets: Cell<usize>,
    instructions: Cell<u64>,
}

impl Tally {
    /// Counts a report in.
    pub fn count(&self, report: &Report) {
        self.operations.set(self.operations.get() + 1);
        self.secrets.set(self.secrets.get().max(report.cases + 1));
        self.instructions.set(self.instructions.get() + report.compared);
    }
}

impl core::fmt::Display for Tally {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (operations, secrets) = (self.operations.get(), self.secrets.get());
        let millions = self.instructions.get() as f64 / 1e6;
        write!(
            f,
            "{operations} operations, {secrets} secrets each, {millions:.1} million instructions compared"
        )
    }
}
