//! Nothing is timed before its checks pass.
#![forbid(unsafe_code)]

use std::fmt;

use serde::{Deserialize, Serialize};

/// One line of a check: what was checked, with which backend, and how it went. The same shape as a row of
/// `check --json`.
///
/// Not `lanework_cpu::check::Row`: records hold this one, and this crate is independent of what it races.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateRow {
    /// What was checked, for example the name of a vector file.
    pub what: String,
    /// The backend that really ran.
    pub backend: String,
    /// Cases that passed.
    pub passed: u64,
    /// Cases that failed.
    pub failed: u64,
    /// Cases that could not be run.
    pub skipped: u64,
    /// Why cases failed or were skipped; empty when neither happened.
    #[serde(default)]
    pub why: String,
}

/// Why a gate stayed shut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateError {
    /// A check failed.
    Failed(GateRow),
    /// The check could not be made at all.
    Broken(String),
    /// The gate did not check a single case, which is not evidence.
    Empty,
}

impl fmt::Display for GateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(row) => write!(
                f,
                "check {:?} failed on backend {:?}: {} of {} cases: {}",
                row.what,
                row.backend,
                row.failed,
                row.failed + row.passed,
                row.why
            ),
            Self::Broken(why) => write!(f, "the check could not be made: {why}"),
            Self::Empty => f.write_str("the gate checked nothing"),
        }
    }
}

impl std::error::Error for GateError {}

type Check = dyn Fn() -> Result<Vec<GateRow>, String>;

/// The checks before a race.
pub struct Gate {
    check: Box<Check>,
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gate")
    }
}

/// Proof that a gate has opened. Only [`Gate::pass`] makes one, and timing requires one.
#[derive(Debug)]
pub struct Passed {
    rows: Vec<GateRow>,
}

impl Passed {
    /// What was checked.
    #[must_use]
    pub fn rows(&self) -> &[GateRow] {
        &self.rows
    }

    /// For a launch whose sibling has passed the gate in the same run: it is not passed again.
    pub(crate) fn by_sibling() -> Self {
        Self { rows: Vec::new() }
    }
}

impl Gate {
    /// A gate that runs `check`. An `Err` means that the check could not be made.
    pub fn new(check: impl Fn() -> Result<Vec<GateRow>, String> + 'static) -> Self {
        Self { check: Box::new(check) }
    }

    /// Runs the checks.
    ///
    /// # Errors
    /// [`GateError`] when a check failed, could not be made, or when no case was checked at all.
    pub fn pass(&self) -> Result<Passed, GateError> {
        let rows = (self.check)().map_err(GateError::Broken)?;
        if let Some(row) = rows.iter().find(|row| row.failed > 0) {
            return Err(GateError::Failed(row.clone()));
        }
        if rows.iter().map(|row| row.passed).sum::<u64>() == 0 {
            return Err(GateError::Empty);
        }
        Ok(Passed { rows })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(passed: u64, failed: u64) -> GateRow {
        GateRow { what: "w".into(), backend: "b".into(), passed, failed, skipped: 0, why: String::new() }
    }

    #[test]
    fn opens_only_on_evidence() {
        assert_eq!(Gate::new(|| Ok(vec![row(3, 0)])).pass().expect("passes").rows(), &[row(3, 0)]);
        assert_eq!(
            Gate::new(|| Ok(vec![row(3, 0), row(99, 1)])).pass().expect_err("one case fails"),
            GateError::Failed(row(99, 1))
        );
        assert_eq!(Gate::new(|| Ok(vec![])).pass().expect_err("no rows"), GateError::Empty);
        assert_eq!(Gate::new(|| Ok(vec![row(0, 0)])).pass().expect_err("no cases"), GateError::Empty);
        assert_eq!(
            Gate::new(|| Err("no vectors".into())).pass().expect_err("broken"),
            GateError::Broken("no vectors".into())
        );
    }
}
