//! Records over time and side by side: what changed, and what only seems to have.
//!
//! Two records were not taken in pairs. A difference between their times is therefore a suspicion at best: medians of successive
//! sessions err by percents ([`UNPAIRED`]). A difference between their ratios, each against its own baseline, is better founded,
//! but rests on two noise floors and an unchanged baseline. Hence a regression counts as one only when a later paired run
//! confirms it. The records themselves are the store; there is no index until reading them all takes too long.
#![forbid(unsafe_code)]

mod load;

use std::fmt;

use serde::Serialize;

pub use load::{Entry, History, HistoryError, load, load_all, newest_of_each};

use crate::machine::{Fact, Machine};
use crate::record::{Record, ResultRow};
use crate::stats::{Interval, interval};
use crate::verdict::{Rules, Verdict, judge};

/// How far medians that were not taken in pairs may err, as a fraction. Successive blocks of one function differed by up
/// to 4.3 % on the machine where the method was chosen.
pub const UNPAIRED: f64 = 0.05;

/// The differences between two machine cards that make their times incomparable: the hardware, what the kernel shows of it, and
/// the power settings. The kernel's version, the compiler and the commit may differ: a history is about those.
#[must_use]
pub fn differences(a: &Machine, b: &Machine) -> Vec<String> {
    fn fact<T: fmt::Display + PartialEq>(what: &str, a: &Fact<T>, b: &Fact<T>, into: &mut Vec<String>) {
        // A fact that is missing in both is equal, whatever the reasons.
        if a.known() != b.known() {
            into.push(format!("{what}: {a}, {b}"));
        }
    }
    let mut found = Vec::new();
    fact("CPU", &a.cpu, &b.cpu, &mut found);
    fact("vendor", &a.vendor, &b.vendor, &mut found);
    fact("family", &a.family, &b.family, &mut found);
    fact("model", &a.model, &b.model, &mut found);
    fact("stepping", &a.stepping, &b.stepping, &mut found);
    fact("hypervisor", &a.hypervisor, &b.hypervisor, &mut found);
    fact("cores", &a.cores, &b.cores, &mut found);
    fact("governor", &a.governor, &b.governor, &mut found);
    fact("boost", &a.boost, &b.boost, &mut found);
    if a.features.known() != b.features.known() {
        found.push("CPU features".to_owned());
    }
    if a.caches.known() != b.caches.known() {
        found.push("caches".to_owned());
    }
    found
}

/// One figure in two records.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// The subject's path.
    pub subject: String,
    /// The variant.
    pub variant: String,
    /// The baseline.
    pub baseline: String,
    /// Median times: the older, the newer.
    pub medians: [f64; 2],
    /// Ratios against the baseline: the older, the newer.
    pub ratios: [f64; 2],
    /// The older time / the newer; above 1 is faster than before. The noise includes the error of not being paired.
    pub time: Step,
    /// The newer ratio / the older; above 1 is better than before.
    pub against_baseline: Step,
}

/// How far something moved.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Step {
    /// The factor.
    pub factor: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Effects below this fraction could not have been seen.
    pub noise: f64,
    /// The verdict.
    pub verdict: Verdict,
}

impl Step {
    /// The quotient of two figures with intervals, where larger is better.
    #[must_use]
    pub fn between(old: Interval, new: Interval, noise: f64, rules: &Rules) -> Self {
        // The intervals' far ends: wider than need be, since the two are independent.
        let quotient = Interval {
            estimate: new.estimate / old.estimate,
            low: new.low / old.high,
            high: new.high / old.low,
        };
        let judged = judge(quotient, noise, rules);
        Self {
            factor: quotient.estimate,
            low: quotient.low,
            high: quotient.high,
            noise,
            verdict: judged.verdict,
        }
    }
}

/// Two records compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// How the machines differ; empty on the same one.
    pub machines: Vec<String>,
    /// Every figure that both have.
    pub changes: Vec<Change>,
    /// `subject variant (against baseline)` of those that only the older has.
    pub gone: Vec<String>,
    /// `subject variant (against baseline)` of those that only the newer has.
    pub new: Vec<String>,
}

fn key(row: &ResultRow) -> (&str, &str, &str) {
    (&row.subject, &row.variant, &row.baseline)
}

fn name(row: &ResultRow) -> String {
    format!("{} {} (against {})", row.subject, row.variant, row.baseline)
}

/// The interval of the median time from the samples, launch by launch; `None` where they are too few.
pub(crate) fn median_interval(row: &ResultRow, rules: &Rules) -> Option<[f64; 2]> {
    sampled_speed(row, rules).map(|speed| [1.0 / speed.high, 1.0 / speed.low])
}

/// The median speed with its interval: from the samples, else as the record has it without them, else the range of the quartiles.
fn speed(row: &ResultRow, rules: &Rules) -> Interval {
    let [fast, slow] = row.median_interval.unwrap_or([row.q1, row.q3]);
    let without = Interval { estimate: 1.0 / row.median, low: 1.0 / slow, high: 1.0 / fast };
    sampled_speed(row, rules).unwrap_or(without)
}

fn sampled_speed(row: &ResultRow, rules: &Rules) -> Option<Interval> {
    let mut launches = Vec::new();
    let mut rest = row.samples.as_slice();
    for pairs in &row.launch_pairs {
        let (launch, after) = rest.split_at((2 * pairs).min(rest.len()));
        // As a speed, so that larger is better.
        launches.push(launch.iter().map(|t| -t.ln()).collect());
        rest = after;
    }
    interval(&launches, rules.alpha, 1000, 7).ok().map(Interval::exp)
}

fn ratio(row: &ResultRow) -> Interval {
    Interval { estimate: row.ratio, low: row.low, high: row.high }
}

fn change(old: &ResultRow, new: &ResultRow, rules: &Rules) -> Change {
    let noise = (1.0 + old.noise) * (1.0 + new.noise) - 1.0;
    Change {
        subject: new.subject.clone(),
        variant: new.variant.clone(),
        baseline: new.baseline.clone(),
        medians: [old.median, new.median],
        ratios: [old.ratio, new.ratio],
        time: Step::between(speed(old, rules), speed(new, rules), noise.max(UNPAIRED), rules),
        against_baseline: Step::between(ratio(old), ratio(new), noise, rules),
    }
}

/// What moved between two records. On different machines the verdicts say which machine is faster at what, and *cannot
/// tell* wherever noise could explain it.
#[must_use]
pub fn compare(old: &Record, new: &Record) -> Comparison {
    let rules = new.plan.as_ref().map_or_else(Rules::default, |p| p.rules);
    let mut found = Comparison {
        machines: differences(&old.machine, &new.machine),
        changes: Vec::new(),
        gone: Vec::new(),
        new: Vec::new(),
    };
    for row in &new.results {
        match old.results.iter().find(|o| key(o) == key(row) && o.unit == row.unit) {
            Some(before) => found.changes.push(change(before, row, &rules)),
            None => found.new.push(name(row)),
        }
    }
    let left = |o: &&ResultRow| !new.results.iter().any(|r| key(r) == key(o) && r.unit == o.unit);
    found.gone = old.results.iter().filter(left).map(name).collect();
    found
}

impl Change {
    /// Whether something about it looks worse than before, which a paired run must confirm: beyond its interval, or with a median time
    /// longer by twice the error of sessions. Times of few processes have intervals so wide that a loss of half would fit in, and
    /// a suspicion costs no more than a race.
    #[must_use]
    pub fn is_suspect(&self) -> bool {
        self.time.verdict == Verdict::Slower
            || self.against_baseline.verdict == Verdict::Slower
            || self.medians[1] > self.medians[0] * (1.0 + 2.0 * UNPAIRED)
    }

    /// A suspicion about the ratio against a new run of the same race: `slower` if the ratio has fallen there too, beyond both
    /// noise floors.
    #[must_use]
    pub fn borne_out_by(old: &ResultRow, again: &ResultRow, rules: &Rules) -> Step {
        let noise = (1.0 + old.noise) * (1.0 + again.noise) - 1.0;
        Step::between(ratio(old), ratio(again), noise, rules)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::clock::Monotonic;
    use crate::stats::Rng;

    pub(crate) fn row(variant: &str, ns: f64, ratio: f64, seed: u64) -> ResultRow {
        let mut rng = Rng::new(seed);
        let mut samples = || -> Vec<f64> { (0..80).map(|_| ns * (1.0 + 0.004 * rng.unit())).collect() };
        serde_json::from_value(serde_json::json!({
            "subject": "s/op", "variant": variant, "baseline": "portable", "ratio": ratio, "low": ratio * 0.999,
            "high": ratio * 1.001, "noise": 0.002, "verdict": if ratio > 1.01 { "faster" } else { "slower" }, "unit": "ns",
            "median": ns, "mean": ns, "min": ns, "q1": ns, "q3": ns, "ticks": null, "baseline_median": ns * ratio,
            "baseline_mean": ns * ratio, "baseline_min": ns * ratio, "margin": 0.005, "detectable": 0.003, "backend": variant,
            "baseline_backend": "portable", "cores": 1, "iterations": [1, 1], "launch_pairs": [8, 8, 8, 8, 8],
            "samples": samples(), "baseline_samples": samples(),
        }))
        .expect("a row")
    }

    pub(crate) fn record(rows: Vec<ResultRow>) -> Record {
        let mut record =
            Record::new("s", "lanework bench s", Machine::inspect(&Monotonic::new(), Vec::new()));
        record.results = rows;
        record.validate().expect("consistent");
        record
    }

    #[test]
    fn what_did_not_change_is_not_suspected() {
        let (old, mut new) =
            (record(vec![row("avx2", 100.0, 4.0, 1)]), record(vec![row("avx2", 103.0, 4.01, 2)]));
        new.machine = old.machine.clone();
        let found = compare(&old, &new);
        assert_eq!(found.machines, Vec::<String>::new());
        // Sessions differ by three percent anyway.
        assert!(!found.changes[0].is_suspect(), "{:?}", found.changes[0]);
        assert_eq!(found.changes[0].time.verdict, Verdict::CannotTell);
        assert_eq!(found.changes[0].against_baseline.verdict, Verdict::Same);
    }

    #[test]
    fn planted_regressions_are_suspected() {
        let old = record(vec![row("avx2", 100.0, 4.0, 1), row("avx512", 50.0, 8.0, 2)]);
        // The first lost 3 % against its baseline, the second a tenth together with its baseline.
        let mut new = record(vec![row("avx2", 103.0, 3.88, 3), row("avx512", 55.0, 8.0, 4)]);
        new.machine = old.machine.clone();
        let found = compare(&old, &new);
        let [a, b] = &found.changes[..] else { panic!("two changes") };
        assert!(a.is_suspect() && a.against_baseline.verdict == Verdict::Slower, "{a:?}");
        assert!(a.time.verdict != Verdict::Slower, "{a:?}");
        assert!(b.is_suspect() && b.time.verdict == Verdict::Slower, "{b:?}");
        assert!(b.against_baseline.verdict == Verdict::Same, "{b:?}");
        // Everything takes half as long again, in processes that differ as much among themselves: the medians show it, no interval does.
        let mut wide = [row("avx2", 100.0, 4.0, 6), row("avx2", 150.0, 4.0, 7)];
        for row in &mut wide {
            for (launch, samples) in row.samples.chunks_mut(16).enumerate() {
                samples.iter_mut().for_each(|t| *t *= [1.0, 1.3, 0.7, 1.2, 0.8][launch]);
            }
        }
        let [before, after] = wide.map(|row| record(vec![row]));
        let found = compare(&before, &after);
        assert!(found.changes[0].time.verdict == Verdict::CannotTell && found.changes[0].is_suspect());
        // Better is not worse.
        assert!(!compare(&new, &old).changes.iter().any(Change::is_suspect));
        // The race again: once it confirms the first, once it does not.
        let rules = Rules::default();
        let of = |ratio| Change::borne_out_by(&old.results[0], &row("avx2", 103.0, ratio, 5), &rules).verdict;
        assert_eq!(of(3.87), Verdict::Slower);
        assert_eq!(of(4.0), Verdict::Same);
    }

    #[test]
    fn two_machines_win_by_more_than_noise_only() {
        let old = record(vec![row("avx2", 100.0, 4.0, 1), row("avx512", 50.0, 8.0, 2)]);
        let mut new =
            record(vec![row("avx2", 96.0, 4.0, 3), row("avx512", 40.0, 8.0, 4), row("gpu", 1.0, 400.0, 5)]);
        new.machine.cpu = Fact::Known("another".into());
        let found = compare(&old, &new);
        assert_eq!(found.machines.len(), 1);
        assert_eq!(found.changes[0].time.verdict, Verdict::CannotTell);
        assert_eq!(found.changes[1].time.verdict, Verdict::Faster);
        assert_eq!((found.new.len(), found.gone.len()), (1, 0));
    }
}
