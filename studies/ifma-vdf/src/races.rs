//! Running the study: operations alone, then processes that time their own squarings, in turns.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use lanework_race::clock::{Clock, Monotonic};
use lanework_race::gate::Passed;
use lanework_race::machine::Machine;
use lanework_race::pairing::{LaunchSamples, NotHere, Pair, Plan as Rules, Series, resolution};
use lanework_race::process::Program;
use lanework_race::race::analyse;
use lanework_race::record::{Record, ResultRow};
use lanework_race::schedule::{Schedule, Side};
use lanework_race::stats::median;
use lanework_race::study::Study;
use lanework_race::subject::Facts;
use lanework_study::{Failure, Session, process};
use serde::{Deserialize, Serialize};

use super::operations::{self, Half};
use super::question::{Effort, LEAST, Plan};

/// The path of the study's races.
pub(super) const SUBJECT: &str = "vdf/1024/chain";

/// What a run reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Said {
    /// Time of the squarings alone.
    pub(super) ns: u64,
    /// Squarings that only the general code could do, where it reports them.
    pub(super) slow: Option<u64>,
    /// What ran.
    pub(super) backend: String,
}

/// What races.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A backend of ours.
    Ours,
    /// chiavdf's benchmark with this first argument, and IFMA or not.
    Chiavdf(&'static str, bool),
}

/// A contestant's name, what it is, and its cores.
pub(super) const CONTESTANTS: [(&str, Kind, usize); 6] = [
    ("portable", Kind::Ours, 1),
    (OFF, Kind::Ours, 1),
    (ON, Kind::Ours, 1),
    (THEIRS_OFF, Kind::Chiavdf("square_asm", false), 2),
    (THEIRS_ON, Kind::Chiavdf("square_asm", true), 2),
    (THEIRS_ONE, Kind::Chiavdf("square", false), 1),
];
pub(super) const OFF: &str = "adx";
pub(super) const ON: &str = "avx512";
pub(super) const THEIRS_OFF: &str = "chiavdf, off";
pub(super) const THEIRS_ON: &str = "chiavdf, on";
pub(super) const THEIRS_ONE: &str = "chiavdf, one thread";

/// Comparisons: a baseline and what is raced against it.
const RACES: [(&str, &[&str]); 3] =
    [(OFF, &[ON, "portable"]), (THEIRS_OFF, &[THEIRS_ON, OFF, ON]), (THEIRS_ONE, &[OFF, ON])];

/// The least milliseconds of a run of chiavdf's. Runs of 60 made its two threads look more than twice as slow as they are.
const THEIRS_LEAST: u64 = 400;

/// The most short runs of a contestant before it counts as unable to run.
const TRIES: usize = 5;

/// All runs of a contestant.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Runs {
    /// Squarings of a run.
    pub(super) iterations: u64,
    /// Nanoseconds of each.
    pub(super) ns: Vec<u64>,
    /// Of the last run.
    pub(super) slow: Option<u64>,
}

impl Runs {
    /// Nanoseconds of a squaring, the median.
    pub(super) fn each(&self) -> Option<f64> {
        let each: Vec<f64> = self.ns.iter().map(|&ns| ns as f64 / self.iterations as f64).collect();
        median(&each)
    }
}

/// All that was found.
pub(super) struct Measured {
    pub(super) record: Record,
    pub(super) runs: BTreeMap<String, Runs>,
    pub(super) effort: Effort,
    /// Operations alone, or why not here.
    pub(super) synthetic: Result<Half, String>,
}

impl Measured {
    pub(super) fn row(&self, variant: &str, baseline: &str) -> Option<&ResultRow> {
        self.record.results.iter().find(|r| r.variant == variant && r.baseline == baseline)
    }
}

struct Runner<'a> {
    session: &'a Session,
    study: &'a str,
    effort: Effort,
}

impl Runner<'_> {
    /// One process.
    fn once(&self, name: &str, kind: Kind, iterations: u64) -> Result<Said, String> {
        match kind {
            Kind::Ours => {
                let mut arguments = self.session.arguments();
                arguments.extend(["__workload", self.study, name, "chain", "--count"].map(str::to_owned));
                arguments.push(iterations.to_string());
                let executable = std::env::current_exe().map_err(|e| e.to_string())?;
                let said: Said = process::answer(&Program::new(name, executable, arguments))?;
                if said.backend == name { Ok(said) } else { Err(format!("{} ran for {name}", said.backend)) }
            }
            Kind::Chiavdf(verb, ifma) => self.theirs(name, verb, ifma, iterations),
        }
    }

    #[cfg(feature = "peers")]
    fn theirs(&self, name: &str, verb: &str, ifma: bool, iterations: u64) -> Result<Said, String> {
        use lanework_peers::delay::{BenchLine, vdf_bench};
        let dir = self.session.context.peers.as_ref().ok_or("peers were not asked for (--peers)")?;
        let (mut command, _) = vdf_bench(dir, ifma).map_err(|u| u.to_string())?;
        let out = command.args([verb, &iterations.to_string()]).output().map_err(|e| e.to_string())?;
        let text = String::from_utf8_lossy(&out.stdout);
        // A run that is too short for its clock prints that first.
        let line = text.lines().find_map(|l| BenchLine::parse(&l[l.find("Time: ")?..]));
        match line {
            Some(line) if out.status.success() => Ok(Said {
                ns: line.milliseconds.max(1) * 1_000_000,
                slow: line.slow,
                backend: name.to_owned(),
            }),
            _ => Err(format!("{name}: {}: {:.200}", out.status, text.trim())),
        }
    }

    #[cfg(not(feature = "peers"))]
    fn theirs(&self, _: &str, _: &str, _: bool, _: u64) -> Result<Said, String> {
        Err("this build races no peers; build with `--features peers`".to_owned())
    }

    /// How many squarings last as long as a run should, or why it cannot run.
    fn calibrate(&self, name: &str, kind: Kind, slowest: f64) -> Result<u64, String> {
        // The shortest of a few: a run of milliseconds that was interrupted once says nothing about the next.
        let mut short = self.once(name, kind, LEAST)?.ns;
        for _ in 1..TRIES {
            if 1e9 * LEAST as f64 / short as f64 >= slowest {
                break;
            }
            short = short.min(self.once(name, kind, LEAST)?.ns);
        }
        let each = short.max(1) as f64 / LEAST as f64;
        if 1e9 / each < slowest {
            return Err(format!(
                "{LEAST} squarings took {:.1} s, the best of {TRIES} runs: it waits for cores that something else uses",
                short as f64 / 1e9
            ));
        }
        let fitting =
            |each: f64| ((self.effort.lasts(kind) * 1e9 / each) as u64).clamp(LEAST, self.effort.most);
        // A run of milliseconds is mostly start: by its rate, chiavdf's two threads ran for a third of the time asked for.
        let first = fitting(each);
        let ns = self.once(name, kind, first)?.ns;
        Ok(fitting(ns as f64 / first as f64))
    }
}

/// Everything.
pub(super) fn measure(
    session: &Session,
    study: &Study,
    plan: &Plan,
    full: bool,
) -> Result<Measured, Failure> {
    let clock = Monotonic::new();
    let effort = if full { plan.full } else { plan.quick };
    let mut record = Record::new(
        &study.name,
        &session.command,
        Machine::inspect(&clock, lanework_study::races::peer_builds(session)),
    );
    let rules = Rules { launches: 1, min_pairs: effort.pairs.min(effort.own_pairs), ..Rules::default() };
    record.plan = Some(rules.clone());
    let passed = lanework_suite::find(&session.context, "vdf/1024/square")
        .ok_or_else(|| Failure::unavailable("there is no squaring to check"))?
        .gate()
        .pass()
        .map_err(Failure::refused)?;
    record.gate = passed.rows().to_vec();
    let runner = Runner { session, study: &study.name, effort };
    let mut runs = BTreeMap::new();
    for (name, kind, _) in CONTESTANTS {
        match runner.calibrate(name, kind, plan.busy.slowest) {
            Ok(iterations) => {
                runs.insert(name.to_owned(), Runs { iterations, ..Runs::default() });
            }
            Err(why) => {
                record.not_here.push(NotHere { subject: SUBJECT.to_owned(), variant: name.to_owned(), why });
            }
        }
    }
    session.note(format!(
        "operations alone: {} samples of each, about {:.0} s; then {} runs: {:.0} min in all",
        effort.rounds,
        alone(effort.rounds),
        processes(&runs, &effort),
        (whole(&runs, &effort) / 60.0).ceil()
    ));
    // Before the races: nothing else runs then.
    let synthetic =
        operations::measure(&session.context.cpu, session.context.peers.as_deref(), effort.rounds)?;
    let mut measured = Measured { record, runs, effort, synthetic };
    let rounds: usize = RACES.iter().map(|(baseline, _)| effort.of(baseline)).sum();
    let bar = session.progress(rounds as u64, "racing");
    for (baseline, variants) in RACES {
        let here: Vec<&str> = variants.iter().copied().filter(|v| measured.runs.contains_key(*v)).collect();
        if measured.runs.contains_key(baseline) && !here.is_empty() {
            let samples =
                race(&runner, baseline, &here, &passed, &rules, &clock, &mut measured.runs, || bar.inc(1))?;
            let mut outcome = analyse(&[samples], &rules).map_err(Failure::refused)?;
            // The rows are in every race; once is enough.
            outcome.gate.clear();
            measured.record.add(outcome);
        }
    }
    bar.finish_and_clear();
    measured.record.machine.finish(&clock);
    Ok(measured)
}

impl Effort {
    /// Seconds of a run. chiavdf's are longer: its two threads take a while to find each other, and it reports whole milliseconds.
    fn lasts(&self, kind: Kind) -> f64 {
        let milliseconds = match kind {
            Kind::Ours => self.milliseconds,
            Kind::Chiavdf(..) => self.milliseconds.max(THEIRS_LEAST),
        };
        milliseconds as f64 / 1e3
    }

    /// Pairs of a comparison against that baseline.
    fn of(&self, baseline: &str) -> usize {
        if baseline == OFF { self.own_pairs } else { self.pairs }
    }
}

/// Seconds that the operations alone took on the machines they were written on.
fn alone(rounds: usize) -> f64 {
    1.0 + ALONE * rounds as f64
}

/// Seconds of a sample of every operation.
const ALONE: f64 = 0.03;

/// Seconds that a process takes besides its squarings.
const START: f64 = 0.02;

/// How many processes race, of those contestants that are here.
fn processes(here: &BTreeMap<String, Runs>, effort: &Effort) -> usize {
    let of = |(baseline, variants): &(&str, &[&str])| {
        let raced = variants.iter().filter(|v| here.contains_key(**v)).count();
        // The control races too.
        if raced > 0 && here.contains_key(*baseline) { 4 * (raced + 1) * effort.of(baseline) } else { 0 }
    };
    RACES.iter().map(of).sum()
}

/// Seconds that everything takes, from here on.
fn whole(here: &BTreeMap<String, Runs>, effort: &Effort) -> f64 {
    let once = |name: &str| effort.lasts(contestant(name).1) + START;
    let of = |(baseline, variants): &(&str, &[&str])| {
        let raced: Vec<&str> = variants.iter().copied().filter(|v| here.contains_key(*v)).collect();
        if raced.is_empty() || !here.contains_key(*baseline) {
            return 0.0;
        }
        // The control races too.
        let pairs = raced.iter().chain([baseline]).map(|v| 2.0 * (once(baseline) + once(v)));
        effort.of(baseline) as f64 * pairs.sum::<f64>()
    };
    alone(effort.rounds) + RACES.iter().map(of).sum::<f64>()
}

fn contestant(name: &str) -> (&'static str, Kind, usize) {
    // Called with names of the table only.
    CONTESTANTS.into_iter().find(|(n, ..)| *n == name).unwrap_or(CONTESTANTS[0])
}

/// A turn for every variant and for the baseline against itself in each round; the processes report their own times.
#[allow(clippy::too_many_arguments)]
fn race(
    runner: &Runner<'_>,
    baseline: &str,
    variants: &[&str],
    passed: &Passed,
    rules: &Rules,
    clock: &dyn Clock,
    runs: &mut BTreeMap<String, Runs>,
    mut tick: impl FnMut(),
) -> Result<LaunchSamples, Failure> {
    let mut run = |name: &str| -> Result<f64, Failure> {
        let (_, kind, _) = contestant(name);
        let of = runs.entry(name.to_owned()).or_default();
        let said = runner.once(name, kind, of.iterations).map_err(Failure::refused)?;
        of.ns.push(said.ns);
        of.slow = said.slow;
        Ok(said.ns as f64 / of.iterations as f64)
    };
    // Contestant 0 is the control.
    let names: Vec<&str> = std::iter::once(baseline).chain(variants.iter().copied()).collect();
    let mut taken: Vec<Vec<Pair>> = vec![Vec::new(); names.len()];
    let mut schedule = Schedule::new(rules.seed, names.len(), 0);
    for _ in 0..runner.effort.of(baseline) {
        for turn in schedule.round() {
            let four = turn.take(|side| match side {
                Side::Baseline => run(baseline),
                Side::Variant => run(names[turn.contestant]),
            })?;
            taken[turn.contestant].push(four.into());
        }
        tick();
    }
    let base = runs.get(baseline).map_or(1, |r| r.iterations);
    let of = |name: &str| runs.get(name).map(|r| r.ns.as_slice()).unwrap_or_default();
    let step = clock.step_ns() as f64;
    let mut all = names.iter().zip(taken).map(|(name, pairs)| Series {
        variant: (*name).to_owned(),
        facts: Facts { backend: (*name).to_owned(), notes: Vec::new() },
        cores: contestant(name).2,
        iterations: [base, runs.get(*name).map_or(1, |r| r.iterations)],
        ticks: None,
        pairs,
        resolution: resolution(step, of(baseline).iter().chain(of(name)).map(|ns| *ns as f64)),
    });
    let control = all.next().ok_or_else(|| Failure::refused("there is nothing to race"))?;
    Ok(LaunchSamples {
        launch: 0,
        subject: SUBJECT.to_owned(),
        baseline: baseline.to_owned(),
        baseline_facts: Facts { backend: baseline.to_owned(), notes: Vec::new() },
        bytes: None,
        counted: Some("squarings".to_owned()),
        gate: passed.rows().to_vec(),
        control,
        series: all.collect(),
        not_here: Vec::new(),
        clock: clock.name().into(),
        clock_step_ns: clock.step_ns(),
        overrun: None,
        remarks: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_race_is_between_contestants() {
        for (baseline, variants) in RACES {
            for name in std::iter::once(&baseline).chain(variants) {
                assert_eq!(contestant(name).0, *name);
            }
        }
    }

    #[test]
    fn how_long_it_takes_is_known_before() {
        let here = |names: &[&str]| -> BTreeMap<String, Runs> {
            names.iter().map(|name| ((*name).to_owned(), Runs::default())).collect()
        };
        // A race of two variants and the control, four runs a pair.
        let effort = &Effort { rounds: 1000, milliseconds: 3000, pairs: 10, own_pairs: 20, most: 1_000_000 };
        assert_eq!(processes(&here(&[OFF, ON, "portable"]), effort), 240);
        assert_eq!(processes(&here(&[OFF, "portable"]), effort), 160);
        assert_eq!(processes(&here(&CONTESTANTS.map(|c| c.0)), effort), 240 + 160 + 120);
        assert_eq!(processes(&here(&[ON]), effort), 0, "nothing to race it against");
        let seconds = whole(&here(&[OFF, ON]), effort);
        assert!((seconds - (alone(1000) + 160.0 * (3.0 + START))).abs() < 1e-9, "{seconds}");
    }

    #[test]
    fn the_median_is_of_a_squaring() {
        let runs = Runs { iterations: 1000, ns: vec![4_000_000, 3_000_000, 50_000_000], slow: None };
        assert_eq!(runs.each(), Some(4000.0));
        assert_eq!(Runs::default().each(), None);
    }
}
