//! The results of races of one kind, and whether they hold.
#![forbid(unsafe_code)]

use lanework_race::record::ResultRow;
use lanework_race::stats::median;
use lanework_race::table::percent;
use lanework_race::verdict::Verdict;
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

/// The verdict on one kind of contestants: whether the tallies hold, and why in words.
pub(super) fn verdict(
    kind: &str,
    equals: &Tally,
    planted: &[Tally],
    allowed: usize,
    must_find: f64,
) -> (bool, Vec<String>) {
    let found = equals.false_winners();
    let honest = found <= allowed;
    let mut lines = vec![format!(
        "Of {} races between equal {kind} {found} gave a winner; {allowed} are allowed: {}.",
        equals.races,
        if honest { "it holds" } else { "IT DOES NOT HOLD" }
    )];
    let mut holds = honest;
    for tally in planted {
        let must = (tally.planted - must_find).abs() < 1e-9;
        let good = 2 * tally.slower > tally.races && tally.faster == 0;
        holds &= good || !must;
        let asked = match (must, good) {
            (true, true) => ": it holds".to_owned(),
            (true, false) if tally.noise > must_find => {
                format!(
                    ": IT DOES NOT HOLD here, where the noise floor of {} lies above it",
                    percent(tally.noise)
                )
            }
            (true, false) => {
                ": IT DOES NOT HOLD, more than half must find it and none may say faster".to_owned()
            }
            (false, _) => String::new(),
        };
        lines.push(format!(
            "A planted slowdown of {kind} by {} was found in {} of {} races, and called faster in {}{asked}.",
            percent(tally.planted),
            tally.slower,
            tally.races,
            tally.faster
        ));
    }
    (holds, lines)
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
        let holds = |equals: (usize, usize), found: (usize, usize)| {
            verdict(
                "work",
                &tally("twin", 0.0, 200, equals.0, equals.1),
                &[tally("slower", 0.003, 10, found.0, found.1)],
                6,
                0.003,
            )
            .0
        };
        assert!(holds((3, 3), (0, 6)));
        assert!(!holds((3, 4), (0, 6)));
        assert!(!holds((0, 0), (0, 5)));
        assert!(!holds((0, 0), (1, 9)));
        // Smaller ones may be missed.
        let (good, lines) =
            verdict("work", &tally("twin", 0.0, 200, 0, 0), &[tally("slower", 0.001, 10, 0, 0)], 6, 0.003);
        assert!(good && lines[1].contains("0 of 10"), "{lines:?}");
    }
}
