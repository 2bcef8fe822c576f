//! Jobs: what a command does and a race measures, so that what `tune` finds reaches the command.
//!
//! A job's text is the path of its race. [`Job::all`] is the list of what `tune` races and a profile may hold; every entry names the
//! command that reads the choice.
#![forbid(unsafe_code)]

use core::cmp::Ordering;
use core::fmt;

use lanework_mayo::Params;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{magma, mayo, vdf};

/// One operation on inputs of one kind and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// An operation of MAYO with one parameter set.
    Mayo(&'static Params, mayo::Operation),
    /// A mode of Magma or GOST 28147-89, on one message of this many bytes.
    Magma(magma::Operation, usize),
    /// An operation of the delay function on discriminants of this many bits.
    Vdf(vdf::Operation, usize),
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Job::Mayo(params, operation) => f.write_str(&mayo::path(params, *operation)),
            Job::Magma(operation, bytes) => write!(f, "magma/{}/{bytes}", operation.name()),
            Job::Vdf(operation, bits) => write!(f, "vdf/{bits}/{}", operation.name()),
        }
    }
}

/// By their texts.
impl Ord for Job {
    fn cmp(&self, other: &Job) -> Ordering {
        self.to_string().cmp(&other.to_string())
    }
}

impl PartialOrd for Job {
    fn partial_cmp(&self, other: &Job) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Serialize for Job {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Job {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Job, D::Error> {
        let path = String::deserialize(deserializer)?;
        Job::of_path(&path).ok_or_else(|| D::Error::custom(format!("'{path}' is not a job of this version")))
    }
}

impl Job {
    /// Every job that is raced and that a command does.
    #[must_use]
    pub fn all() -> Vec<Job> {
        let mayo = Params::all()
            .flat_map(|params| mayo::Operation::ALL.map(|operation| Job::Mayo(params, operation)));
        let magma = magma::CASES
            .iter()
            .filter(|case| case.messages == 1)
            .map(|case| Job::Magma(case.operation, case.bytes));
        let vdf = vdf::Operation::ALL.map(|operation| Job::Vdf(operation, vdf::BITS));
        mayo.chain(magma).chain(vdf).filter(|job| job.command().is_some()).collect()
    }

    /// The job of [`Job::all`] with this text.
    #[must_use]
    pub fn of_path(path: &str) -> Option<Job> {
        Job::all().into_iter().find(|job| job.to_string() == path)
    }

    /// The command that reads what a profile says of this job; none if it is raced for its figures alone.
    #[must_use]
    pub const fn command(self) -> Option<&'static str> {
        match self {
            Job::Mayo(_, operation) => operation.command(),
            Job::Magma(operation, _) => operation.command(),
            Job::Vdf(operation, _) => Some(operation.command()),
        }
    }

    /// How far `other` is from this job by size: a ratio, 1 at the same size; `None` if it is another operation.
    #[must_use]
    pub fn distance(self, other: Job) -> Option<f64> {
        let ratio = |x: usize, y: usize| x.max(y).max(1) as f64 / x.min(y).max(1) as f64;
        match (self, other) {
            (Job::Mayo(..), _) => (self == other).then_some(1.0),
            (Job::Magma(x, a), Job::Magma(y, b)) => (x == y).then(|| ratio(a, b)),
            (Job::Vdf(x, a), Job::Vdf(y, b)) => (x == y).then(|| ratio(a, b)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use lanework_cpu::Settings;

    use super::*;
    use crate::Context;

    #[test]
    fn every_job_is_raced_under_its_own_path() {
        let subjects = crate::all(&Context::new(Settings::default()));
        let jobs = Job::all();
        assert!(jobs.len() > 60, "{}", jobs.len());
        for job in &jobs {
            let path = job.to_string();
            assert_eq!(subjects.iter().filter(|s| s.path() == path).count(), 1, "{path}");
            assert_eq!(Job::of_path(&path), Some(*job), "{path}");
        }
        assert_eq!(Job::of_path("magma/omac-batch/128x1024"), None, "no command does batches of Magma");
    }

    #[test]
    fn sizes_are_apart_by_their_ratio_and_operations_for_good() {
        let ctr = |bytes| Job::Magma(magma::Operation::Ctr, bytes);
        assert_eq!(ctr(64).distance(ctr(1024)), Some(16.0));
        assert_eq!(ctr(1024).distance(ctr(64)), Some(16.0));
        assert_eq!(ctr(0).distance(ctr(1)), Some(1.0));
        assert_eq!(ctr(64).distance(Job::Magma(magma::Operation::Ecb, 64)), None);
        assert_eq!(ctr(64).distance(Job::Vdf(vdf::Operation::Square, 64)), None);
    }
}
