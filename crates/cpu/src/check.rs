//! Check results: every primitive's checks return these rows; the tests, the command and the laboratory read them.
#![forbid(unsafe_code)]

use alloc::borrow::ToOwned;
use alloc::string::String;

use crate::Unavailable;

/// How much to check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Some of everything: a second or two for a backend.
    Quick,
    /// Everything.
    Full,
}

/// The outcome of one check on one backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What was checked.
    pub what: String,
    /// On which backend.
    pub backend: String,
    /// Cases that passed.
    pub passed: usize,
    /// Cases that failed.
    pub failed: usize,
    /// Cases that were not run.
    pub skipped: usize,
    /// The first failure, or why cases were not run; empty if all passed.
    pub why: String,
}

impl Row {
    /// A row without cases yet.
    #[must_use]
    pub fn new(what: impl Into<String>, backend: impl Into<String>) -> Row {
        Row {
            what: what.into(),
            backend: backend.into(),
            passed: 0,
            failed: 0,
            skipped: 0,
            why: String::new(),
        }
    }

    /// The row of a backend that cannot run here.
    #[must_use]
    pub fn unavailable(what: impl Into<String>, reason: &Unavailable) -> Row {
        let mut row = Row::new(what, reason.what.as_str());
        row.skip(&reason.why);
        row
    }

    /// Whether nothing failed and something ran.
    #[must_use]
    pub fn ok(&self) -> bool {
        self.failed == 0 && self.passed > 0
    }

    /// Counts a case; `wrong` describes the first failure.
    pub fn case(&mut self, right: bool, wrong: impl FnOnce() -> String) {
        if right {
            self.passed += 1;
        } else {
            if self.failed == 0 {
                self.why = wrong();
            }
            self.failed += 1;
        }
    }

    /// Counts a case that was not run.
    pub fn skip(&mut self, why: &str) {
        self.skipped += 1;
        why.clone_into(&mut self.why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_wrong_case_gives_the_reason() {
        let mut row = Row::new("sums", "portable");
        assert!(!row.ok(), "nothing ran");
        row.case(true, || unreachable!());
        assert!(row.ok());
        row.case(false, || "first".to_owned());
        row.case(false, || "second".to_owned());
        assert_eq!((row.passed, row.failed, row.why.as_str(), row.ok()), (1, 2, "first", false));
    }
}
