//! A series in a process of its own: the request and the answer.
#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::time::Duration;

use super::measure::{Dice, Watched, planted};
use super::{Largest, Which};
use crate::evidence::Subject;

/// A request to repeat a series in another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Again {
    /// The operation's path, or the name of a planted leak after [`Again::PLANTED`].
    pub what: String,
    /// Its backend, or the planted leak's tier.
    pub backend: String,
    /// Samples after which it ends.
    pub samples: u64,
    /// Time after which it ends.
    pub time: Duration,
    /// Turns of the loop that is planted after the operation; 0 for none.
    pub turns: u32,
    /// The seed that classes and cases are drawn with.
    pub seed: u64,
}

impl Again {
    /// The prefix of a planted leak's name.
    pub const PLANTED: &str = "planted/";
}

/// The name of a test in its line.
fn name(which: Which) -> String {
    match which {
        Which::All => "all".to_owned(),
        Which::Second => "second".to_owned(),
        Which::Crop(number) => number.to_string(),
    }
}

/// Runs the series, and returns the results of its tests: one line for each, which [`told`] reads. `find` gives the operation.
///
/// # Errors
/// A message, where there is no such operation or planted leak, or it has too few cases.
pub fn series(again: &Again, find: impl FnOnce() -> Option<Subject>) -> Result<String, String> {
    let subject = match again.what.strip_prefix(Again::PLANTED) {
        Some(name) => planted(&again.backend, name),
        None => find(),
    };
    let subject = subject.ok_or_else(|| format!("no {} of {} here", again.what, again.backend))?;
    if subject.cases < 3 {
        return Err(format!("{} has too few cases", again.what));
    }
    let watched = Watched::of(&subject, again.turns);
    let series = watched.series((again.samples, again.time), &mut Dice(again.seed));
    let mut text = String::new();
    for Largest { which, t, relative } in series.tests() {
        let name = name(which);
        // The shortest decimals that parse to the same number, including infinities.
        let _ = writeln!(text, "{name} {t:?} {relative:?}");
    }
    Ok(text)
}

/// Reads what [`series`] returned.
///
/// # Errors
/// A message, where that is not every test once, in order.
pub fn told(text: &str) -> Result<Vec<Largest>, String> {
    let mut lines = text.lines();
    let read = |which: Which, line: Option<&str>| {
        let words: Vec<&str> = line.unwrap_or_default().split(' ').collect();
        let name = name(which);
        match (words.as_slice(), words.get(1).map(|t| t.parse()), words.get(2).map(|r| r.parse())) {
            ([first, _, _], Some(Ok(t)), Some(Ok(relative))) if *first == name && !f64::is_nan(t) => {
                Ok(Largest { which, t, relative })
            }
            _ => Err(format!("the series printed {line:?} for the test {name}")),
        }
    };
    let tests = Which::each().map(|which| read(which, lines.next())).collect::<Result<Vec<_>, _>>()?;
    match lines.next() {
        None => Ok(tests),
        Some(more) => Err(format!("the series printed {more:?} after its tests")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(what: &str, samples: u64) -> Again {
        let time = Duration::from_secs(600);
        Again { what: what.into(), backend: "portable".into(), samples, time, turns: 0, seed: 5 }
    }

    #[test]
    fn what_a_series_says_is_read_as_it_was_and_nothing_else_is() {
        let said = series(&order("planted/loop_over_bits", 300), || None).expect("it is there");
        let tests = told(&said).expect("it is whole");
        assert_eq!(tests.len(), Which::each().count());
        let lines: Vec<&str> = said.lines().collect();
        let test = |line: &str| told(&[&[line], &lines[1..]].concat().join("\n"));
        let first = test("all -inf -0.25").expect("a test");
        assert_eq!(first[0], Largest { which: Which::All, t: f64::NEG_INFINITY, relative: -0.25 });
        for wrong in ["second 1.0 2.0", "all NaN 1.0", "all 1.0", "all 1.0 2.0 3.0", "all one 2.0", ""] {
            assert!(test(wrong).is_err(), "{wrong:?}");
        }
        assert!(told(&lines[..lines.len() - 1].join("\n")).is_err());
        assert!(told(&format!("{said}0 1.0 1.0\n")).is_err());
    }

    #[test]
    fn what_is_not_there_is_named() {
        let said = series(&order("magma/ctr", 300), || None);
        assert_eq!(said, Err("no magma/ctr of portable here".into()));
        assert!(series(&order("planted/nothing", 300), || None).is_err());
    }
}
