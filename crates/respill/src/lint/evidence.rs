//! The failing run: a caller's floating point after a call.
#![forbid(unsafe_code)]

use core::fmt;
use std::time::Duration;

use crate::case::Case;
use crate::load::Loaded;
use crate::sys::{self, Ended};
use crate::validate::differ::DifferError;

/// The state that a caller finds after a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// The function that was called.
    pub function: String,
    /// 1.5 * 2 + 1.5 on the x87 stack just before the call and just after; `None` if the call did not return.
    pub float: Option<[f64; 2]>,
    /// Whether all x87 registers are empty afterwards.
    pub x87_empty: bool,
    /// How the call ended.
    pub ended: Ended,
}

impl Evidence {
    /// Whether the caller's next floating point is broken.
    #[must_use]
    pub fn broken(&self) -> bool {
        self.float.is_some_and(|[before, after]| before != after)
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.float {
            Some([before, after]) => {
                let full = if self.x87_empty { "empty" } else { "not empty" };
                write!(
                    f,
                    "{}: a caller's long double 1.5 * 2 + 1.5 is {before} before the call and {after} after it; the x87 \
                     registers are {full}",
                    self.function
                )
            }
            None => write!(f, "{}: the call did not come back: it {}", self.function, self.ended),
        }
    }
}

/// Makes a case's measured call in a child, and computes with floating point before and after.
///
/// # Errors
/// No process can be started, or a missing function.
pub fn run(case: &Case, loaded: &Loaded, limit: Duration) -> Result<Evidence, DifferError> {
    for name in case.preparing().chain([case.measured()]) {
        if loaded.symbol(name).is_none() {
            return Err(DifferError::Missing(crate::case::Missing(name.to_owned())));
        }
    }
    let (said, ended) = sys::child(limit, |voice| {
        let mut arena = case.arena();
        if let Ok(ready) = case.prepare(loaded, &mut arena, 0) {
            let called = ready.call(&crate::case::poison(0));
            voice.say(&called.float[0].to_bits().to_le_bytes());
            voice.say(&called.float[1].to_bits().to_le_bytes());
            voice.say(&[u8::from(called.x87_empty)]);
        }
    })?;
    let word = |at: usize| {
        let bytes = said.get(at..at + 8)?.try_into().ok()?;
        Some(f64::from_bits(u64::from_le_bytes(bytes)))
    };
    let float = word(0).zip(word(8)).map(|(before, after)| [before, after]);
    let function = case.measured().to_owned();
    Ok(Evidence { function, float, x87_empty: said.get(16) == Some(&1), ended })
}
