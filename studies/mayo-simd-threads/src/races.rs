//! Running the study: the gate, the races, the single figures.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::path::PathBuf;

use lanework_race::clock::Monotonic;
use lanework_race::gate::{Gate, GateRow, Passed};
use lanework_race::machine::Machine;
use lanework_race::pairing::{NotHere, Plan as Rules};
use lanework_race::process::{self, Program};
use lanework_race::record::Record;
use lanework_study::process::{answer, other_build};
use lanework_study::{Failure, Session};

use super::builds::{self, Build};
use super::question::{Plan, Race, SETS};
use super::workload::{Configuration, Report};

/// Operations in a run of the gate.
const GATE_COUNT: usize = 3;
/// Runs behind a median that is not raced.
const QUICK_RUNS: usize = 5;
/// Runs behind a guess of how long an operation takes.
const GUESSES: usize = 2;

/// All that was found.
pub(super) struct Measured {
    pub(super) record: Record,
    /// Seconds for the workload's full count, by (set's path, configuration), from the longest runs taken.
    pub(super) seconds: BTreeMap<(String, String), Figure>,
    /// What each configuration reported that it ran.
    pub(super) ran: Vec<(String, Report)>,
    /// The published sources as the report's flags build them.
    pub(super) builds: Vec<Build>,
    pub(super) cores: usize,
    /// Runs of each configuration in a race.
    pub(super) runs: usize,
    /// The smallest and the largest number of operations of a timed run.
    pub(super) counts: (usize, usize),
}

/// A time, scaled to the full count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Figure {
    /// Operations of the runs behind it.
    count: usize,
    pub(super) seconds: f64,
}

impl Measured {
    /// Keeps the figure unless one of longer runs is there.
    fn keep(&mut self, set: &str, configuration: &str, figure: Figure) {
        let kept = self.seconds.entry((set.to_owned(), configuration.to_owned())).or_insert(figure);
        if kept.count < figure.count {
            *kept = figure;
        }
        self.counts = (self.counts.0.min(figure.count), self.counts.1.max(figure.count));
    }
}

/// A build of this command without optimisation, where there is one beside this one.
pub(super) fn unoptimised(level: u8) -> Option<PathBuf> {
    other_build(&format!("study-o{level}"))
}

/// The thread counts that `*` stands for.
pub(super) fn thread_counts(cores: usize) -> Vec<usize> {
    let powers = (1..).map(|i| 1 << i).take_while(|&n| n <= cores);
    let mut all: Vec<usize> = powers.chain([2, 4, cores]).filter(|&n| n > 1).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// A race's variants with `*` replaced.
pub(super) fn variants(race: &Race, cores: usize) -> Vec<String> {
    race.variants
        .iter()
        .flat_map(|name| match name.strip_suffix('*') {
            Some(stem) => thread_counts(cores).iter().map(|n| format!("{stem}{n}")).collect(),
            None => vec![name.clone()],
        })
        .collect()
}

/// A race of builds with their whole names.
fn build_race(race: &Race) -> Race {
    let variants = race.variants.iter().map(|name| builds::whole(name)).collect();
    Race { baseline: builds::whole(&race.baseline), variants }
}

/// The set of round 1 that builds run, and no other.
fn runs(name: &str, set: &str) -> bool {
    !builds::is_build(name) || set.starts_with("round1/")
}

/// What stays the same during a run.
pub(super) struct Runner<'a> {
    pub(super) session: &'a Session,
    pub(super) plan: &'a Plan,
    pub(super) study: &'a str,
    pub(super) full: bool,
    pub(super) cores: usize,
    executable: PathBuf,
    clock: Monotonic,
}

impl<'a> Runner<'a> {
    pub(super) fn new(
        session: &'a Session,
        plan: &'a Plan,
        study: &'a str,
        full: bool,
    ) -> Result<Self, Failure> {
        Ok(Runner {
            session,
            plan,
            study,
            full,
            cores: lanework_cpu::Threads::Own(0).count(),
            executable: std::env::current_exe().map_err(Failure::unavailable)?,
            clock: Monotonic::new(),
        })
    }

    fn program(&self, configuration: &str, set: &str, count: usize) -> Result<Program, Failure> {
        // "NAME at -O0" is the same configuration in another build of this command.
        let (name, executable, mut arguments) = match configuration.rsplit_once(" at -O") {
            Some((name, level)) => (
                name,
                level
                    .parse()
                    .ok()
                    .and_then(unoptimised)
                    .ok_or_else(|| Failure::unavailable("no such build"))?,
                self.session.arguments_without_peers(),
            ),
            None => (configuration, self.executable.clone(), self.session.arguments()),
        };
        arguments.extend(["__workload", self.study, name, set, "--count"].map(str::to_owned));
        arguments.push(count.to_string());
        let mut program = Program::new(configuration, executable, arguments);
        let configuration = Configuration::parse(name)?;
        program.cores = configuration.busy();
        let openmp = configuration.openmp.map(|n| ("OMP_NUM_THREADS".into(), n.to_string().into()));
        program.env.extend(openmp);
        Ok(program)
    }

    /// One run with its report.
    fn report(&self, configuration: &str, set: &str) -> Result<Report, String> {
        let program = self.program(configuration, set, GATE_COUNT).map_err(|e| e.message().to_owned())?;
        answer(&program).map_err(|why| format!("{set}: {why}"))
    }

    /// Everything that must hold before anything is timed: each configuration makes portable's keys and signatures,
    /// they verify, and the engine that ran is the requested one.
    fn gate(
        &self,
        sets: &[String],
        configurations: &[String],
    ) -> Result<(Passed, Vec<(String, Report)>), Failure> {
        let mut rows = Vec::new();
        let mut ran: Vec<(String, Report)> = Vec::new();
        for set in sets {
            // Round 1's are the published answers, as the tests of `backends` check.
            let expected = self.report("portable", set).map_err(Failure::refused)?;
            for name in configurations.iter().filter(|name| runs(name, set)) {
                let report = self.report(name, set).map_err(Failure::refused)?;
                rows.push(compare(name, set, &expected, &report));
                if !ran.iter().any(|(n, _)| n == name) {
                    ran.push((name.clone(), report));
                }
            }
        }
        let passed = Gate::new(move || Ok(rows.clone())).pass().map_err(Failure::refused)?;
        Ok((passed, ran))
    }

    /// How many operations take about as long as the form needs, and the time of a process without any.
    fn calibrate(&self, baseline: &str, set: &str, passed: &Passed) -> Result<(usize, f64), Failure> {
        let full = self.plan.workload.count;
        let wanted_ms = self.plan.workload.ms(self.full);
        let time = |count| -> Result<f64, Failure> {
            let usage = process::repeat(&self.program(baseline, set, count)?, passed, GUESSES, &self.clock);
            Ok(usage.map_err(Failure::refused)?.wall_s)
        };
        let (start, some) = (time(0)?, time(8)?);
        let each = ((some - start) / 8.0).max(2e-5);
        let count = (wanted_ms as f64 / 1e3 / each) as usize;
        // As many as keep the threads of a race busy; on fewer cores the others would wait anyway.
        Ok((count.clamp(self.cores.clamp(2, 4).min(full), full), start))
    }

    /// Runs everything.
    pub(super) fn measure(&self, rounds: &[&str]) -> Result<Measured, Failure> {
        let session = self.session;
        let plan = self.plan;
        let mut record = Record::new(self.study, &session.command, Machine::inspect(&self.clock, Vec::new()));
        record.plan = Some(self.rules());
        let sets_of = |round: &str| SETS.map(|s| format!("{round}/{s}"));
        let sets: Vec<String> = rounds.iter().flat_map(|r| sets_of(r)).collect();
        let (mut here, mut missing) = self.configurations();
        let (found_builds, absent): (Vec<_>, Vec<_>) =
            builds::all(&session.context).into_iter().partition(Result::is_ok);
        let found_builds: Vec<Build> = found_builds.into_iter().flatten().collect();
        missing.extend(absent.into_iter().filter_map(Result::err));
        let build_races: Vec<Race> = plan.build_race.iter().map(build_race).collect();
        let named = build_races.iter().flat_map(|r| std::iter::once(&r.baseline).chain(&r.variants));
        for name in named {
            let build = name.split("+omp=").next().unwrap_or(name);
            if found_builds.iter().any(|b| b.name == build) && !here.contains(name) {
                here.push(name.clone());
            }
        }
        record.machine.peers = found_builds.iter().map(|b| b.machine.clone()).collect();
        for (variant, why) in missing {
            record.not_here.push(NotHere { subject: self.study.to_owned(), variant, why });
        }
        let (passed, ran) = self.gate(&sets, &here)?;
        record.gate = passed.rows().to_vec();
        let mut found = Measured {
            record,
            seconds: BTreeMap::new(),
            ran,
            builds: found_builds,
            cores: self.cores,
            runs: 2 * plan.workload.pairs,
            counts: (usize::MAX, 0),
        };
        let bar = session.progress((sets.len() * plan.race.len()) as u64, "racing");
        for set in &sets {
            // The quick form races some sets of the current report's round and takes plain medians elsewhere.
            let quick = |(round, name): (&str, &str)| {
                round == rounds[0] && plan.workload.quick_sets.iter().any(|s| s == name)
            };
            let raced = self.full || set.split_once('/').is_some_and(quick);
            for (index, race) in plan.race.iter().enumerate() {
                bar.set_message(format!("{set} against {}", race.baseline));
                if raced {
                    self.race(race, index == 0, set, &here, &passed, &mut found)?;
                } else if index == 0 {
                    self.medians(set, &here, &passed, &mut found)?;
                }
                bar.inc(1);
            }
            let shorter = plan.workload.quick_sets.iter().any(|s| set.ends_with(s.as_str()));
            for race in build_races.iter().filter(|r| runs(&r.baseline, set) && (self.full || shorter)) {
                bar.set_message(format!("{set} against {}", race.baseline));
                self.race(race, false, set, &here, &passed, &mut found)?;
            }
        }
        bar.finish_and_clear();
        found.record.gate.dedup();
        found.record.machine.finish(&self.clock);
        Ok(found)
    }

    /// The configurations that can run here, the baselines among them, and why the others cannot.
    fn configurations(&self) -> (Vec<String>, Vec<(String, String)>) {
        let (mut here, mut missing) = (Vec::new(), Vec::new());
        let all = self
            .plan
            .race
            .iter()
            .flat_map(|r| std::iter::once(r.baseline.clone()).chain(variants(r, self.cores)));
        for name in all {
            let engine = Configuration::parse(&name).and_then(|c| c.engine(&self.session.context.cpu));
            match engine {
                _ if here.contains(&name) => {}
                Ok(_) => here.push(name),
                Err(why) if missing.iter().all(|(n, _)| *n != name) => {
                    missing.push((name, why.message().to_owned()))
                }
                Err(_) => {}
            }
        }
        here.extend(
            [0, 1].iter().filter(|&&l| unoptimised(l).is_some()).map(|l| format!("portable at -O{l}")),
        );
        (here, missing)
    }

    fn rules(&self) -> Rules {
        Rules { min_pairs: self.plan.workload.pairs, launches: 1, ..Rules::default() }
    }

    fn race(
        &self,
        race: &Race,
        with_builds: bool,
        set: &str,
        here: &[String],
        passed: &Passed,
        found: &mut Measured,
    ) -> Result<(), Failure> {
        if !here.contains(&race.baseline) {
            return Ok(());
        }
        let mut names: Vec<String> =
            variants(race, self.cores).into_iter().filter(|name| here.contains(name)).collect();
        if with_builds {
            names.extend(here.iter().filter(|name| name.contains(" at -O")).cloned());
        }
        let (count, start) = self.calibrate(&race.baseline, set, passed)?;
        let subject = format!("mayo/{set}/keygen+sign+verify");
        let baseline = self.program(&race.baseline, set, count)?;
        let programs = names.iter().map(|n| self.program(n, set, count)).collect::<Result<Vec<_>, _>>()?;
        let pairs = self.plan.workload.pairs;
        let mut out =
            process::race(&subject, passed, &baseline, &programs, pairs, &self.rules(), &self.clock)
                .map_err(Failure::refused)?;
        for row in &mut out.outcome.results {
            row.extra.insert("operations".to_owned(), count.into());
            if row.cores > self.cores {
                row.notes.push(format!("{} threads on {} cores: oversubscription", row.cores, self.cores));
            }
        }
        // The rows are in every race; once is enough.
        out.outcome.gate.clear();
        let scale = self.plan.workload.count as f64 / count as f64;
        let usages = std::iter::once((&race.baseline, &out.baseline)).chain(names.iter().zip(&out.variants));
        for (name, usage) in usages {
            found.keep(set, name, Figure { count, seconds: (usage.wall_s - start).max(1e-9) * scale });
        }
        found.record.add(out.outcome);
        Ok(())
    }

    /// Medians of a few runs of everything that the report's tables show.
    fn medians(
        &self,
        set: &str,
        here: &[String],
        passed: &Passed,
        found: &mut Measured,
    ) -> Result<(), Failure> {
        for name in shown(self.plan, self.cores).iter().filter(|name| here.contains(name)) {
            let (count, start) = self.calibrate(name, set, passed)?;
            let scale = self.plan.workload.count as f64 / count as f64;
            let program = self.program(name, set, count)?;
            let usage =
                process::repeat(&program, passed, QUICK_RUNS, &self.clock).map_err(Failure::refused)?;
            found.keep(set, name, Figure { count, seconds: (usage.wall_s - start).max(1e-9) * scale });
        }
        Ok(())
    }
}

/// The configurations of the summary: the report's, and those that this machine adds.
pub(super) fn shown(plan: &Plan, cores: usize) -> Vec<String> {
    let report = plan.columns.in_order().map(String::clone);
    let added = ["avx512".to_owned(), "avx512+inside=4".to_owned()];
    let batch = ["portable", "avx2", "avx512"].map(|tier| format!("{tier}+threads={cores}"));
    report.into_iter().chain(added).chain(batch).collect()
}

/// Whether a report is of the requested run and agrees with portable's.
fn compare(name: &str, set: &str, expected: &Report, got: &Report) -> GateRow {
    let asked = name.split("+threads=").next().unwrap_or(name).split(" at -O").next().unwrap_or(name);
    let why = if got.backend != asked {
        format!("{} ran", got.backend)
    } else if got.valid != got.count || got.count != expected.count {
        format!("{} of {} signatures verified", got.valid, expected.count)
    } else if got.sum != expected.sum {
        "keys or signatures differ from portable's".to_owned()
    } else {
        String::new()
    };
    let good = if why.is_empty() { got.count as u64 } else { 0 };
    GateRow {
        what: format!("{set}: keys and signatures are portable's and verify"),
        backend: name.to_owned(),
        passed: good,
        failed: expected.count as u64 - good.min(expected.count as u64),
        skipped: 0,
        why,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Nothing measured.
    pub(crate) fn measured() -> Measured {
        let machine = Machine::inspect(&Monotonic::new(), Vec::new());
        Measured {
            record: Record::new("mayo-simd-threads", "a test", machine),
            seconds: BTreeMap::new(),
            ran: Vec::new(),
            builds: Vec::new(),
            cores: 2,
            runs: 0,
            counts: (0, 0),
        }
    }

    #[test]
    fn builds_run_round_1_alone() {
        assert!(runs("portable", "round2/mayo1") && runs("liboqs12-flags-omp", "round1/mayo1"));
        assert!(!runs("liboqs12-flags-omp", "round2/mayo1"));
    }

    fn report(sum: u64, valid: usize, backend: &str) -> Report {
        Report {
            backend: backend.to_owned(),
            summary: String::new(),
            elimination: String::new(),
            own_products: true,
            aes: String::new(),
            threads: 1,
            count: 3,
            valid,
            sum,
        }
    }

    #[test]
    fn the_gate_finds_what_is_wrong() {
        let expected = report(9, 3, "portable");
        let row = |name: &str, got: Report| compare(name, "round2/mayo1", &expected, &got);
        assert_eq!(row("avx2+threads=2", report(9, 3, "avx2")).failed, 0);
        assert_eq!(row("portable at -O0", report(9, 3, "portable")).passed, 3);
        for (got, part) in [
            (report(8, 3, "avx2"), "differ"),
            (report(9, 2, "avx2"), "2 of 3"),
            (report(9, 3, "portable"), "portable ran"),
        ] {
            let row = row("avx2", got);
            assert!(row.failed > 0 && row.why.contains(part), "{}", row.why);
        }
    }

    #[test]
    fn stars_become_thread_counts() {
        assert_eq!(thread_counts(1), [2, 4]);
        assert_eq!(thread_counts(2), [2, 4]);
        assert_eq!(thread_counts(12), [2, 4, 8, 12]);
        let race = Race { baseline: "a".into(), variants: vec!["b".into(), "a+threads=*".into()] };
        assert_eq!(variants(&race, 2), ["b", "a+threads=2", "a+threads=4"]);
    }
}
