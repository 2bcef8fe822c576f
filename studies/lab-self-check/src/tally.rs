//! The results of races of one kind, and whether they hold.
#![forbid(unsafe_code)]

use lanework_race::record::ResultRow;
use lanework_race::stats::median;
use lanework_race::table::percent;
use lanework_race::verdict::Verdict;
use lanework_study::Outcome;
use lanework_study::markdown::{NONE, strings, table};
use serde::Serialize;

/// How often chance errs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Luck {
    /// The error rate of a race.
    pub(super) alpha: f64,
    /// The probability of more errors than are allowed.
    pub(super) luck: f64,
}

impl Luck {
    /// The most errors of `races` that can be luck: more come with a probability of `luck` at most if each race errs with
    /// probability `alpha`.
    pub(super) fn allowed(self, races: usize) -> usize {
        let Luck { alpha, luck } = self;
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
    /// The medians of the intervals' ends.
    interval: [f64; 2],
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
            interval: [mid(|r| r.low)?, mid(|r| r.high)?],
            noise: mid(|r| r.noise)?,
            detectable: mid(|r| r.detectable)?,
        })
    }

    /// The slowdown as it must appear. Where starting takes a part, that is what the ratio shows, but at least a [`LEAST`] of what was
    /// planted: a laboratory that shows none is not excused.
    fn effect(&self) -> f64 {
        match self.truth {
            Some(_) => self.planted,
            None => (1.0 / self.ratio - 1.0).clamp(LEAST * self.planted, self.planted),
        }
    }

    fn false_winners(&self) -> usize {
        self.faster + self.slower
    }

    fn cells(&self) -> Vec<String> {
        let mut cells = vec![self.variant.clone()];
        cells.extend(
            [self.races, self.faster, self.slower, self.same, self.cannot_tell, self.void]
                .map(|n| n.to_string()),
        );
        let known = |text: Option<String>| text.unwrap_or_else(|| NONE.to_owned());
        cells.push(known(self.covered.map(|n| n.to_string())));
        let [low, high] = self.interval;
        cells.extend([known(self.truth.map(|x| format!("{x:.5}"))), format!("{:.5}", self.ratio)]);
        cells.push(format!("{low:.5} … {high:.5}"));
        cells.extend([percent(self.noise), percent(self.detectable)]);
        cells
    }
}

/// The least part of a planted slowdown that a process shows: its start takes two thirds of its time at most.
const LEAST: f64 = 1.0 / 3.0;

fn header() -> Vec<String> {
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
        "median interval",
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

/// Races of one kind of work: between equals, and with planted slowdowns.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Kind {
    pub(super) name: String,
    pub(super) equals: Tally,
    pub(super) planted: Vec<Tally>,
}

impl Kind {
    /// Whether this planted slowdown was found where it must be, and a sentence.
    fn found(&self, tally: &Tally, luck: &Luck, must_find: f64) -> (Held, String) {
        let must = tally.planted > must_find - 1e-9;
        let allowed = luck.allowed(tally.races);
        let outside = tally.covered.map(|covered| tally.races - covered);
        let needed = tally.races.saturating_sub(allowed).max(1);
        // Half of the races find an effect that is as large as what they can see. Nearly all find one twice as large.
        let surely = 2.0 * tally.detectable;
        let effect = tally.effect();
        let sees = surely <= effect;
        let enough = tally.slower >= needed || (!sees && 2 * tally.slower > tally.races);
        let no = |why: String| (Held::No, format!(": IT DOES NOT HOLD, {why}"));
        let (held, ends) = if !must {
            (Held::Yes, String::new())
        } else if tally.faster > 0 {
            no("none may say faster".to_owned())
        } else if outside.is_some_and(|outside| outside > allowed) {
            no(format!("at most {allowed} may miss its size"))
        } else if enough {
            (Held::Yes, ": it holds".to_owned())
        } else if sees {
            no(format!("at least {needed} must find it"))
        } else {
            let left = match tally.truth {
                Some(_) => String::new(),
                None => format!(" and its start leaves {} of it", percent(effect)),
            };
            let surely = percent(surely);
            (
                Held::Untold,
                format!(": CANNOT TELL here, where races surely find only effects above {surely}{left}"),
            )
        };
        let missed = outside.map_or(String::new(), |n| format!(", and its size lay outside {n} intervals"));
        let line = format!(
            "A slowdown of {} by {} was found in {} of {} races and called faster in {}{missed}{ends}.",
            self.name,
            percent(tally.planted),
            tally.slower,
            tally.races,
            tally.faster
        );
        (held, line)
    }

    /// Whether the laboratory passes on this kind of work, and why in words.
    pub(super) fn verdict(&self, luck: &Luck, must_find: f64) -> (Held, Vec<String>) {
        let winners = self.equals.false_winners();
        let allowed = luck.allowed(self.equals.races);
        let honest = winners <= allowed;
        let mut lines = vec![format!(
            "Of {} races between equals of {} {winners} gave a winner; {allowed} are allowed: {}.",
            self.equals.races,
            self.name,
            if honest { "it holds" } else { "IT DOES NOT HOLD" }
        )];
        let mut held = if honest { Held::Yes } else { Held::No };
        for tally in &self.planted {
            let (this, line) = self.found(tally, luck, must_find);
            held = held.max(this);
            lines.push(line);
        }
        (held, lines)
    }

    /// The table of its races.
    pub(super) fn table(&self) -> String {
        let rows: Vec<_> = std::iter::once(&self.equals).chain(&self.planted).map(Tally::cells).collect();
        table(&header(), &rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LUCK: Luck = Luck { alpha: 0.01, luck: 0.005 };

    #[test]
    fn luck_is_counted_as_the_binomial_has_it() {
        assert_eq!([1, 5, 100, 200].map(|races| LUCK.allowed(races)), [1, 1, 4, 6]);
    }

    fn tally(variant: &str, planted: f64, races: usize, faster: usize, slower: usize) -> Tally {
        let same = races - faster - slower;
        let truth = 1.0 / (1.0 + planted);
        Tally {
            variant: variant.into(),
            planted,
            truth: Some(truth),
            races,
            faster,
            slower,
            same,
            cannot_tell: 0,
            void: 0,
            covered: Some(races),
            ratio: truth,
            interval: [truth - 0.001, truth + 0.001],
            noise: 0.001,
            detectable: 0.001,
        }
    }

    fn verdict(equals: (usize, usize), planted: Tally) -> (Held, Vec<String>) {
        let equals = tally("twin", 0.0, 200, equals.0, equals.1);
        Kind { name: "the work".into(), equals, planted: vec![planted] }.verdict(&LUCK, 0.003)
    }

    #[test]
    fn a_laboratory_that_cries_wolf_or_sleeps_does_not_hold() {
        let slower = |faster, slower| tally("slower", 0.003, 10, faster, slower);
        let held = |equals, found: (usize, usize)| verdict(equals, slower(found.0, found.1)).0;
        assert_eq!(held((3, 3), (0, 9)), Held::Yes);
        assert_eq!(held((3, 4), (0, 9)), Held::No);
        assert_eq!(held((0, 0), (0, 8)), Held::No);
        assert_eq!(held((0, 0), (1, 9)), Held::No);
        // Larger ones must be found too, and smaller ones may be missed.
        assert_eq!(verdict((0, 0), tally("slower", 0.01, 10, 0, 8)).0, Held::No);
        let (small, lines) = verdict((0, 0), tally("slower", 0.001, 10, 0, 0));
        assert!(small == Held::Yes && lines[1].contains("0 of 10"), "{lines:?}");
        // A slowdown that is found at another size is not the one that was planted.
        let elsewhere = |covered| Tally { covered: Some(covered), ..slower(0, 10) };
        assert_eq!(verdict((0, 0), elsewhere(9)).0, Held::Yes);
        assert_eq!(verdict((0, 0), elsewhere(8)).0, Held::No);
        assert_eq!(verdict((0, 0), Tally { covered: None, ..slower(0, 10) }).0, Held::Yes);
        // Where nothing so small can be seen, a miss says nothing; a slowdown that is called faster does.
        let noisy = |faster, slow| Tally { detectable: 0.02, ..slower(faster, slow) };
        assert_eq!(verdict((0, 0), noisy(0, 5)).0, Held::Untold);
        assert_eq!(verdict((0, 0), noisy(0, 6)).0, Held::Yes);
        assert_eq!(verdict((0, 0), noisy(1, 0)).0, Held::No);
        let (_, lines) = verdict((0, 0), noisy(0, 5));
        assert!(
            lines[1].ends_with("CANNOT TELL here, where races surely find only effects above 4.00 %."),
            "{lines:?}"
        );
        assert_eq!(Held::Untold.max(Held::No).outcome(), Outcome::No);
        assert_eq!((Held::Yes.outcome(), Held::Untold.outcome()), (Outcome::Yes, Outcome::Unavailable));
    }

    /// Of a tenth that was planted, a process shows less, and a busy machine may hide that; but not where it would be seen.
    #[test]
    fn a_busy_machine_hides_slowdowns_of_processes_and_a_laboratory_does_not() {
        let process = |detectable, ratio, slow| Tally {
            covered: None,
            truth: None,
            detectable,
            ratio,
            ..tally("chain", 0.1, 10, 0, slow)
        };
        let of = |found: Tally| {
            let equals = tally("true again", 0.0, 200, 0, 0);
            Kind { name: "processes".into(), equals, planted: vec![found] }.verdict(&LUCK, 0.1)
        };
        let (busy, lines) = of(process(0.0334, 0.959, 4));
        assert_eq!(busy, Held::Untold, "{lines:?}");
        assert!(lines[1].contains("above 6.68 % and its start leaves 4.28 % of it"), "{lines:?}");
        assert_eq!(of(process(0.0334, 0.959, 9)).0, Held::Yes);
        // A quiet machine must find it, whether the ratio shows it or not.
        assert_eq!(of(process(0.014, 0.959, 8)).0, Held::No);
        assert_eq!(of(process(0.014, 0.959, 9)).0, Held::Yes);
        assert_eq!(of(process(0.014, 1.0, 0)).0, Held::No);
    }
}
