//! `lab-self-check`: equals raced against each other, and slowdowns planted for the laboratory to find.
#![forbid(unsafe_code)]

use lanework_lab::pairing::Plan as RacePlan;
use lanework_lab::record::{Record, ResultRow};
use lanework_lab::stats::median;
use lanework_lab::study::Study;
use lanework_lab::table::percent;
use lanework_lab::verdict::Verdict;
use lanework_subjects::study::self_check::{EQUALS, PATH, ROUNDS, SIZES, slower};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::common::{strings, table};
use super::{Entry, Found, document};
use crate::args::{Effort, StudyArgs, WorkloadArgs};
use crate::bench::{Race, race_all};
use crate::outcome::{Failure, Outcome};
use crate::ui::Session;

pub(super) const ENTRY: Entry = Entry {
    name: "lab-self-check",
    toml: include_str!("../../../../studies/lab-self-check/study.toml"),
    template: include_str!("../../../../studies/lab-self-check/study.md"),
    run,
    workload,
};

/// A mode of the study.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mode {
    equals: usize,
    equals_seconds: f64,
    sizes: Vec<f64>,
    planted: usize,
    planted_seconds: f64,
    launches: u32,
}

/// The study as data.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    must_find: f64,
    alpha: f64,
    luck: f64,
    quick: Mode,
    full: Mode,
}

impl Asked {
    fn of(study: &Study) -> Result<Asked, Failure> {
        let wrong = |why: String| Failure::input(format!("{}: {why}", study.name));
        let asked: Asked =
            study.table.clone().try_into().map_err(|e: toml::de::Error| wrong(e.to_string()))?;
        for mode in [&asked.quick, &asked.full] {
            if mode.equals == 0 || mode.planted == 0 {
                return Err(wrong("no races are asked for".into()));
            }
            if !mode.sizes.contains(&asked.must_find) {
                return Err(wrong("the size that must be found is not among those planted".into()));
            }
            if let Some(size) = mode.sizes.iter().find(|s| thousandths(**s).is_none()) {
                return Err(wrong(format!("a slowdown of {} cannot be planted", percent(*size))));
            }
        }
        if !(asked.alpha > 0.0 && asked.alpha < 0.5 && asked.luck > 0.0 && asked.luck < 0.5) {
            return Err(wrong("error rates lie between 0 and 0.5".into()));
        }
        Ok(asked)
    }
}

/// A size that there is a variant for.
fn thousandths(size: f64) -> Option<u64> {
    SIZES.into_iter().find(|t| (*t as f64 / 1000.0 - size).abs() < 1e-9)
}

/// The most winners among `races` between equals that are luck: more come with a probability of `luck` at most if each race has
/// one with probability `alpha`.
fn allowed(races: usize, alpha: f64, luck: f64) -> usize {
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

/// What the races of one kind gave.
#[derive(Clone, Debug, Serialize, PartialEq)]
struct Tally {
    variant: String,
    /// Baseline's work / variant's work.
    truth: f64,
    races: usize,
    faster: usize,
    slower: usize,
    same: usize,
    cannot_tell: usize,
    /// Intervals that the truth lies in.
    covered: usize,
    ratio: f64,
    noise: f64,
    detectable: f64,
}

impl Tally {
    fn of(rows: &[ResultRow], variant: &str, truth: f64) -> Option<Tally> {
        let rows: Vec<&ResultRow> =
            rows.iter().filter(|r| r.subject == PATH && r.variant == variant).collect();
        let count = |verdict| rows.iter().filter(|r| r.verdict == verdict).count();
        let mid = |of: fn(&ResultRow) -> f64| median(&rows.iter().map(|r| of(r)).collect::<Vec<_>>());
        Some(Tally {
            variant: variant.to_owned(),
            truth,
            races: rows.len(),
            faster: count(Verdict::Faster),
            slower: count(Verdict::Slower),
            same: count(Verdict::Same),
            cannot_tell: count(Verdict::CannotTell),
            covered: rows.iter().filter(|r| r.low <= truth && truth <= r.high).count(),
            ratio: mid(|r| r.ratio)?,
            noise: mid(|r| r.noise)?,
            detectable: mid(|r| r.detectable)?,
        })
    }

    fn false_winners(&self) -> usize {
        self.faster + self.slower
    }

    fn cells(&self) -> Vec<String> {
        let mut cells = vec![self.variant.clone()];
        cells.extend(
            [self.races, self.faster, self.slower, self.same, self.cannot_tell, self.covered]
                .map(|n| n.to_string()),
        );
        cells.extend([format!("{:.5}", self.truth), format!("{:.5}", self.ratio)]);
        cells.extend([percent(self.noise), percent(self.detectable)]);
        cells
    }
}

fn header() -> Vec<String> {
    strings(&[
        "variant",
        "races",
        "faster",
        "slower",
        "same",
        "cannot tell",
        "truth in interval",
        "truth",
        "median ratio",
        "noise floor",
        "seen above",
    ])
}

/// What the tallies say: whether it holds, and in words.
fn verdict(equals: &Tally, planted: &[Tally], allowed: usize, must_find: f64) -> (bool, Vec<String>) {
    let found = equals.false_winners();
    let honest = found <= allowed;
    let mut lines = vec![format!(
        "Of {} races between equals {found} gave a winner; {allowed} are allowed: {}.",
        equals.races,
        if honest { "it holds" } else { "IT DOES NOT HOLD" }
    )];
    let mut holds = honest;
    for tally in planted {
        let size = 1.0 / tally.truth - 1.0;
        let must = (size - must_find).abs() < 1e-9;
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
            "A planted slowdown of {} was found in {} of {} races, and called faster in {}{asked}.",
            percent(size),
            tally.slower,
            tally.races,
            tally.faster
        ));
    }
    (holds, lines)
}

/// Races of one challenger against the plain work, over and over.
fn races(
    session: &Session,
    name: &str,
    count: usize,
    seconds: f64,
    launches: u32,
) -> Result<Record, Failure> {
    let races: Vec<Race> = (0..count)
        .map(|_| Race {
            subject: PATH.to_owned(),
            baseline: EQUALS[0].to_owned(),
            challengers: vec![name.to_owned()],
        })
        .collect();
    race_all(session, ENTRY.name, &races, &Effort { seconds: seconds * count as f64, launches, core: None })
}

fn run(session: &Session, study: &Study, args: &StudyArgs) -> Result<Found, Failure> {
    let full = args.full;
    let asked = Asked::of(study)?;
    let mode = if full { &asked.full } else { &asked.quick };
    let mut record = races(session, EQUALS[1], mode.equals, mode.equals_seconds, mode.launches)?;
    let no_races = || Failure::unavailable("the races gave no result");
    let equals = Tally::of(&record.results, EQUALS[1], 1.0).ok_or_else(no_races)?;
    let mut planted = Vec::new();
    for size in mode.sizes.iter().filter_map(|s| thousandths(*s)) {
        let more = races(session, &slower(size), mode.planted, mode.planted_seconds, mode.launches)?;
        let truth = ROUNDS as f64 / (ROUNDS + ROUNDS * size / 1000) as f64;
        planted.push(Tally::of(&more.results, &slower(size), truth).ok_or_else(no_races)?);
        record.results.extend(more.results);
        record.controls.extend(more.controls);
        for remark in more.remarks {
            if !record.remarks.contains(&remark) {
                record.remarks.push(remark);
            }
        }
        record.machine.calibration_after = more.machine.calibration_after;
    }
    // Each kind of race had a plan of its own: the first one's would mislead.
    let rules = record.plan.take().map_or_else(|| RacePlan::default().rules, |p| p.rules);
    let allowed = allowed(equals.races, asked.alpha, asked.luck);
    let (holds, lines) = verdict(&equals, &planted, allowed, asked.must_find);
    let cells: Vec<Vec<String>> = planted.iter().map(Tally::cells).collect();
    let page = json!({
        "question": study.question, "rounds": ROUNDS, "machine": record.machine.summary(), "command": record.command,
        "equals": table(&header(), &[equals.cells()]), "alpha": percent(rules.alpha), "allowed": allowed,
        "races": equals.races, "planted": table(&header(), &cells), "verdict": lines, "remarks": record.remarks,
    });
    let findings =
        json!({ "holds": holds, "equals": equals, "planted": planted, "allowed": allowed, "told": lines });
    Ok(Found { page: document(page)?, findings, record })
}

fn workload(_: &Session, args: &WorkloadArgs) -> Result<Outcome, Failure> {
    Err(Failure::input(format!("no workload '{}': this study races subjects alone", args.configuration)))
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

    #[test]
    fn the_study_reads_and_nonsense_is_refused() {
        let study = |text: &str| Study::from_toml(ENTRY.name, text).expect("a study");
        assert!(Asked::of(&study(ENTRY.toml)).is_ok());
        for (from, to) in [
            ("equals = 100", "equals = 0"),
            ("sizes = [0.003]", "sizes = [0.002, 0.003]"),
            ("sizes = [0.003]", "sizes = [0.01]"),
            ("alpha = 0.01", "alpha = 2"),
            ("luck", "look"),
        ] {
            assert!(ENTRY.toml.contains(from), "{from}");
            assert!(Asked::of(&study(&ENTRY.toml.replacen(from, to, 1))).is_err(), "{to}");
        }
    }

    fn tally(variant: &str, truth: f64, races: usize, faster: usize, slower: usize) -> Tally {
        let same = races - faster - slower;
        Tally {
            variant: variant.into(),
            truth,
            races,
            faster,
            slower,
            same,
            cannot_tell: 0,
            covered: races,
            ratio: truth,
            noise: 0.001,
            detectable: 0.001,
        }
    }

    #[test]
    fn a_laboratory_that_cries_wolf_or_sleeps_does_not_hold() {
        let truth = 1.0 / 1.003;
        let holds = |equals: (usize, usize), found: (usize, usize)| {
            verdict(
                &tally("twin", 1.0, 200, equals.0, equals.1),
                &[tally("slower", truth, 10, found.0, found.1)],
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
            verdict(&tally("twin", 1.0, 200, 0, 0), &[tally("slower", 1.0 / 1.001, 10, 0, 0)], 6, 0.003);
        assert!(good && lines[1].contains("0 of 10"), "{lines:?}");
    }
}
