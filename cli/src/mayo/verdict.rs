//! The verdicts of `verify` on each file, in the order in which they were named.
#![forbid(unsafe_code)]

use std::fmt;
use std::path::Path;

use lanework_mayo::{Error, MessageDigest, Signature};
use lanework_study::{Failure, Outcome};

/// Verifies signatures against digests of the same index.
pub(super) type Judge<'a> =
    dyn FnMut(&[MessageDigest], &[Signature]) -> Result<Vec<Result<(), Error>>, Error> + 'a;

/// The verdict on one file and its signature.
#[derive(Debug)]
pub(super) enum Verdict {
    Valid,
    /// The library's reason.
    Refused(Error),
    /// Why the file or its signature cannot be read, or is not a signature.
    Malformed(Failure),
}

impl Verdict {
    /// One for each file, read or not; `judged` holds those of the files that were read.
    pub(super) fn of<T>(
        read: Vec<Result<T, Failure>>,
        judged: Vec<Result<(), Error>>,
    ) -> impl Iterator<Item = Verdict> {
        let mut judged = judged.into_iter();
        read.into_iter().map(move |read| match read.map(|_| judged.next()) {
            Err(why) => Verdict::Malformed(why),
            Ok(Some(Ok(()))) => Verdict::Valid,
            Ok(Some(Err(why))) => Verdict::Refused(why),
            // The library gives a verdict on each.
            Ok(None) => Verdict::Refused(Error::Refused),
        })
    }

    /// The overall outcome: one malformed file outweighs any refused ones.
    pub(super) fn worst(all: &[Verdict]) -> Outcome {
        if all.iter().any(|verdict| matches!(verdict, Verdict::Malformed(_))) {
            Outcome::Malformed
        } else {
            Outcome::from_bool(all.iter().all(|verdict| matches!(verdict, Verdict::Valid)))
        }
    }

    pub(super) fn json(&self, file: &Path) -> serde_json::Value {
        let (name, why, help) = match self {
            Verdict::Valid => ("valid", None, None),
            Verdict::Refused(why) => ("refused", Some(why.to_string()), None),
            Verdict::Malformed(why) => ("malformed", Some(why.message().to_owned()), why.remedy()),
        };
        let valid = matches!(self, Verdict::Valid);
        let mut object =
            serde_json::json!({ "file": super::shown(file), "valid": valid, "verdict": name, "why": why });
        if let Some(help) = help {
            object["help"] = help.into();
        }
        object
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Valid => f.write_str("signature is valid"),
            Verdict::Refused(why) => write!(f, "SIGNATURE REFUSED: {why}"),
            Verdict::Malformed(why) => write!(f, "MALFORMED: {}", why.message()),
        }
    }
}
