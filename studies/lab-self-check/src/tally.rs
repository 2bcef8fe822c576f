//! The results of races of one kind, and whether they hold.
#![forbid(unsafe_code)]

use lanework_race::record::ResultRow;
use lanework_race::stats::median;
use lanework_race::table::percent;
use lanework_race::verdict::Verdict;
use lanework_study::Outcome;
use lanework_study::markdown::{NONE, strings};
use serde::Serialize;

/// The most winners among `races` between equals that can be luck: more come with a probability of `luck` at most if each race has
/// one with probability `alpha`.
pub(super) fn allowed(races: usize, alpha: f64, luck: f64) -> usize {
    let n = races as f64;
    let mut term = (1.0 - alpha).powf(n);
    let mut below = term;
    let mut k = 0;
    while 1.0 - below > luck && k < races {
        term *= (n - k as f64) / (k as f64 + 1.0) * alpha / (1.0 - alpha);
        below += term;
        k += 1;
    }
    k
}

/// The results of the races of one kind.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub(super) struct Tally {
    pub(super) variant: String,
    /// The planted slowdown: more work, as a fraction.
    pub(super) planted: f64,
    /// Baseline's time / variant's time as it must be; `None` where starting a process takes an unknown part.
    pub(super) truth: Option<f64>,
    pub(super) races: usize,
    faster: usize,
    slower: usize,
    same: usize,
    cannot_tell: usize,
    void: usize,
    /// Intervals that the truth lies in.
    covered: Option<usize>,
    ratio: f64,
    noise: f64,
    detectable: f64,
}

impl Tally {
    /// Of a variant's races; `None` where there are none.
    pub(super) fn of(rows: &[ResultRow], variant: &str, planted: f64, truth: Option<f64>) -> Option<Tally> {
        let rows: Vec<&ResultRow> = rows.iter().filter(|r| r.variant == variant).collect();
        let count = |verdict| rows.iter().filter(|r| r.verdict == verdict).count();
        let mid = |of: fn(&ResultRow) -> f64| median(&rows.iter().map(|r| of(r)).collect::<Vec<_>>());
        Some(Tally {
            variant: variant.to_owned(),
            planted,
            truth,
            races: rows.len(),
            faster: count(Verdict::Faster),
            slower: count(Verdict::Slower),
            same: count(Verdict::Same),
            cannot_tell: count(Verdict::CannotTell),
            void: count(Verdict::Void),
            covered: truth.map(|truth| rows.iter().filter(|r| r.low <= truth && truth <= r.high).count()),
            ratio: mid(|r| r.ratio)?,
            noise: mid(|r| r.noise)?,
            detectable: mid(|r| r.detectable)?,
        })
    }

    fn false_winners(&self) -> usize {
        self.faster + self.slower
    }

    pub(super) fn cells(&self) -> Vec<String> {
        let mut cells = vec![self.variant.clone()];
        cells.extend(
            [self.races, self.faster, self.slower, self.same, self.cannot_tell, self.void]
                .map(|n| n.to_string()),
        );
        let known = |text: Option<String>| text.unwrap_or_else(|| NONE.to_owned());
        cells.push(known(self.covered.map(|n| n.to_string())));
        cells.extend([known(self.truth.map(|x| format!("{x:.5}"))), format!("{:.5}", self.ratio)]);
        cells.extend([percent(self.noise), percent(self.detectable)]);
        cells
    }
}

pub(super) fn header() -> Vec<String> {
    strings(&[
        "variant",
        "races",
        "faster",
        "slower",
        "same",
        "cannot tell",
        "void",
        "truth in interval",
        "truth",
        "median ratio",
        "noise floor",
        "seen above",
    ])
}

/// Whether what is asked of the laboratory holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Held {
    /// It does.
    Yes,
    /// What was planted is too small for this machine at this hour.
    Untold,
    /// It does not.
    No,
}

impl Held {
    /// How the study ends.
    pub(super) fn outcome(self) -> Outcome {
        match self {
            Held::Yes => Outcome::Yes,
            Held::Untold => Outcome::Unavailable,
            Held::No => Outcome::No,
        }
    }
}

/// Whether a planted slowdown was found where it must be, and a sentence.
pub(super) fn found(kind: &str, tally: &Tally, must_find: f64) -> (Held, String) {
    let must = (tally.planted - must_find).abs() < 1e-9;
    let good = 2 * tally.slower > tally.races && tally.faster == 0;
    let (held, asked) = match (must, good) {
        (true, true) => (Held::Yes, ": it holds".to_owned()),
        (true, false) if tally.faster == 0 && tally.detectable > must_find => (
            Held::Untold,
            format!(": CANNOT TELL here, where races see only effects above {}", percent(tally.detectable)),
        ),
        (true, false) => {
            (Held::No, ": IT DOES NOT HOLD, more than half must find it and none may say faster".to_owned())
        }
        (false, _) => (Held::Yes, String::new()),
    };
    let line = format!(
        "A planted slowdown of {kind} by {} was found in {} of {} races, and called faster in {}{asked}.",
        percent(tally.planted),
        tally.slower,
        tally.races,
        tally.faster
    );
    (held, line)
}

/// The verdict on one kind of contestants: whether the tallies hold, and why in words.
pub(super) fn verdict(
    kind: &str,
    equals: &Tally,
    planted: &[Tally],
    allowed: usize,
    must_find: f64,
) -> (Held, Vec<String>) {
    let winners = equals.false_winners();
    let honest = winners <= allowed;
    let mut lines = vec![format!(
        "Of {} races between equal {kind} {winners} gave a winner; {allowed} are allowed: {}.",
        equals.races,
        if honest { "it holds" } else { "IT DOES NOT HOLD" }
    )];
    let mut held = if honest { Held::Yes } else { Held::No };
    for tally in planted {
        let (this, line) = found(kind, tally, must_find);
        held = held.max(this);
        lines.push(line);
    }
    (held, lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn luck_is_counted_as_the_binomial_has_it() {
        assert_eq!(allowed(200, 0.01, 0.005), 6);
        assert_eq!(allowed(100, 0.01, 0.005), 4);
        assert_eq!(allowed(1, 0.01, 0.005), 1);
    }

    fn tally(variant: &str, planted: f64, races: usize, faster: usize, slower: usize) -> Tally {
        let same = races - faster - slower;
        Tally {
            variant: variant.into(),
            planted,
            truth: Some(1.0 / (1.0 + planted)),
            races,
            faster,
            slower,
            same,
            cannot_tell: 0,
            void: 0,
            covered: Some(races),
            ratio: 1.0 / (1.0 + planted),
            noise: 0.001,
            detectable: 0.001,
        }
    }

    #[test]
    fn a_laboratory_that_cries_wolf_or_sleeps_does_not_hold() {
        let held = |equals: (usize, usize), found: (usize, usize)| {
            verdict(
                "work",
                &tally("twin", 0.0, 200, equals.0, equals.1),
                &[tally("slower", 0.003, 10, found.0, found.1)],
                6,
                0.003,
            )
            .0
        };
        assert_eq!(held((3, 3), (0, 6)), Held::Yes);
        assert_eq!(held((3, 4), (0, 6)), Held::No);
        assert_eq!(held((0, 0), (0, 5)), Held::No);
        assert_eq!(held((0, 0), (1, 9)), Held::No);
        // Smaller ones may be missed.
        let (small, lines) =
            verdict("work", &tally("twin", 0.0, 200, 0, 0), &[tally("slower", 0.001, 10, 0, 0)], 6, 0.003);
        assert!(small == Held::Yes && lines[1].contains("0 of 10"), "{lines:?}");
        // Where nothing so small can be seen, a miss says nothing; a slowdown that is called faster does.
        let noisy = |faster, slower| Tally { detectable: 0.02, ..tally("slower", 0.003, 10, faster, slower) };
        assert_eq!(found("work", &noisy(0, 0), 0.003).0, Held::Untold);
        assert_eq!(found("work", &noisy(1, 0), 0.003).0, Held::No);
        assert_eq!(Held::Untold.max(Held::No).outcome(), Outcome::No);
        assert_eq!((Held::Yes.outcome(), Held::Untold.outcome()), (Outcome::Yes, Outcome::Unavailable));
    }
}
