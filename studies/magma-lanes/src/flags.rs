//! The report's fourth measure: the same source under other flags of the compiler, as whole processes. Ours in Rust are builds of this
//! command that lie beside it; the loop in C is compiled here ([`gcc`]).
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use crate::subjects::{CIPHER, KEY, PLAIN, REPORT};
use crate::variants::{Schedule, VARIANTS};
use lanework_race::clock::Monotonic;
use lanework_race::gate::{Gate, GateRow, Passed};
use lanework_race::pairing::Plan as Rules;
use lanework_race::process::{self, Program};
use lanework_race::record::Record;
use lanework_study::compiler::Compiler;
use lanework_study::process::{answer, other_build};
use lanework_study::{Failure, Session};
use serde::{Deserialize, Serialize};

use super::gcc;
use super::question::Effort;

/// The configurations that race: the report's two loops.
const CONFIGURATIONS: [&str; 2] = ["table-scalar (leaks)", REPORT];
/// Other builds: cargo's profile, what it is, and how it is made.
pub(super) const BUILDS: [(&str, &str, &str); 3] = [
    ("study-o0", "opt-level 0", "cargo build --profile study-o0"),
    ("study-o1", "opt-level 1", "cargo build --profile study-o1"),
    (
        "study-native",
        "opt-level 3, this CPU",
        "RUSTFLAGS='-C target-cpu=native' cargo build --profile study-native",
    ),
];
/// Operations of a run of the gate.
pub(super) const GATE_COUNT: usize = 3;

/// What a run of the loop reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Report {
    variant: String,
    count: usize,
    /// Every block of the last operation.
    blocks: Vec<[u8; 8]>,
}

/// Runs the loop in this process.
pub(super) fn run(session: &Session, configuration: &str, count: usize) -> Result<Report, Failure> {
    let row = VARIANTS
        .iter()
        .find(|row| row.name() == configuration)
        .ok_or_else(|| Failure::input(format!("no variant '{configuration}'")))?;
    let variant = row.get(&session.context.cpu).map_err(Failure::unavailable)?;
    let out = variant.constant_block(&Schedule::new(&KEY), &PLAIN, count);
    let blocks = out.as_chunks().0[..variant.blocks_at_once()].to_vec();
    Ok(Report { variant: row.name().to_owned(), count, blocks })
}

/// Whether the block in every lane is the standard's, and whether the requested variant ran. `asked` is the loop's name on
/// its command line.
pub(super) fn judge(build: &str, configuration: &str, asked: &str, got: &Report) -> GateRow {
    let wrong = got.blocks.iter().filter(|b| **b != CIPHER).count();
    let why = if got.variant != asked {
        format!("{} ran", got.variant)
    } else if got.count != GATE_COUNT || got.blocks.is_empty() {
        format!("{} operations and {} blocks", got.count, got.blocks.len())
    } else if wrong > 0 {
        format!("{wrong} of {} blocks are not the standard's", got.blocks.len())
    } else {
        String::new()
    };
    GateRow {
        what: format!("{configuration}: the block of RFC 8891 in every lane"),
        backend: label(configuration, build),
        passed: u64::from(why.is_empty()),
        failed: u64::from(!why.is_empty()),
        skipped: 0,
        why,
    }
}

/// The name of a configuration of another build.
pub(super) fn label(configuration: &str, build: &str) -> String {
    if build.is_empty() { configuration.to_owned() } else { format!("{configuration} at {build}") }
}

/// The subject in the record.
pub(super) fn subject(configuration: &str) -> String {
    format!("magma/lanes/flags/{}", configuration.split(' ').next().unwrap_or(configuration))
}

/// One line of the table of flags.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Line {
    pub(super) configuration: String,
    /// Cargo's profile or gcc's flags, or empty for this build.
    pub(super) build: String,
    /// Nanoseconds of an operation, start-up taken off.
    pub(super) ns: f64,
}

/// One build of a loop: its name, and how its program runs so many operations.
struct Build<'a> {
    name: String,
    program: Box<dyn Fn(usize) -> Program + 'a>,
}

struct Runner<'a> {
    session: &'a Session,
    clock: &'a Monotonic,
    effort: &'a Effort,
}

impl Runner<'_> {
    fn seconds(&self, program: &Program, passed: &Passed) -> Result<f64, Failure> {
        process::repeat(program, passed, 3, self.clock).map(|u| u.wall_s).map_err(Failure::refused)
    }

    /// Checks all builds, races the first against the others, and adds the results to the record. `asked` is the loop's name to the
    /// program.
    fn race(
        &self,
        configuration: &str,
        asked: &str,
        builds: &[Build<'_>],
        record: &mut Record,
    ) -> Result<Vec<Line>, Failure> {
        let mut rows = Vec::new();
        for build in builds {
            let report: Report = answer(&(build.program)(GATE_COUNT)).map_err(Failure::refused)?;
            rows.push(judge(&build.name, configuration, asked, &report));
        }
        let passed = Gate::new(move || Ok(rows.clone())).pass().map_err(Failure::refused)?;
        record.gate.extend(passed.rows().iter().cloned());
        let baseline = &builds[0].program;
        let start = self.seconds(&baseline(0), &passed)?;
        let some = 100_000;
        let each = ((self.seconds(&baseline(some), &passed)? - start) / some as f64).max(1e-9);
        let count = (self.effort.flags_ms / 1e3 / each).ceil().max(1.0) as usize;
        let others: Vec<Program> = builds[1..].iter().map(|build| (build.program)(count)).collect();
        let pairs = self.effort.pairs;
        let rules = Rules { min_pairs: pairs, launches: 1, ..Rules::default() };
        let subject = subject(configuration);
        let mut raced =
            process::race(&subject, &passed, &baseline(count), &others, pairs, &rules, self.clock)
                .map_err(Failure::refused)?;
        let usages = std::iter::once(&raced.baseline).chain(&raced.variants);
        let lines = builds.iter().zip(usages).map(|(build, usage)| {
            let ns = (usage.wall_s - start).max(0.0) * 1e9 / count as f64;
            Line { configuration: configuration.to_owned(), build: build.name.clone(), ns }
        });
        let lines = lines.collect();
        for row in &mut raced.outcome.results {
            row.extra.insert("operations".to_owned(), count.into());
            row.notes.push("a whole process with its start-up".to_owned());
        }
        raced.outcome.gate.clear();
        record.add(raced.outcome);
        Ok(lines)
    }
}

/// What was measured, and why something was not.
#[derive(Default)]
pub(super) struct Flags {
    /// This command's builds.
    pub(super) lines: Vec<Line>,
    /// gcc's, and its version.
    pub(super) gcc: Vec<Line>,
    pub(super) gcc_version: Option<String>,
    pub(super) missing: Vec<String>,
}

/// Races this build against those beside it and gcc's builds of the loop against each other, and adds the results to the record.
pub(super) fn measure(
    session: &Session,
    study: &str,
    effort: &Effort,
    kuznyechik: Option<&Path>,
    record: &mut Record,
    clock: &Monotonic,
) -> Result<Flags, Failure> {
    let here = std::env::current_exe().map_err(Failure::unavailable)?;
    let builds: Vec<(&str, PathBuf)> = std::iter::once(("", here))
        .chain(BUILDS.iter().filter_map(|(profile, ..)| Some((*profile, other_build(profile)?))))
        .collect();
    let runner = Runner { session, clock, effort };
    let mut found = Flags::default();
    for configuration in CONFIGURATIONS {
        if builds.len() < 2 || run(session, configuration, 0).is_err() {
            continue;
        }
        let builds: Vec<Build<'_>> = builds
            .iter()
            .map(|(name, executable)| Build {
                name: (*name).to_owned(),
                program: Box::new(move |count| {
                    let mut arguments = session.arguments_without_peers();
                    arguments.extend(
                        ["__workload", study, configuration, "constant", "--count"].map(str::to_owned),
                    );
                    arguments.push(count.to_string());
                    Program::new(label(configuration, name), executable.clone(), arguments)
                }),
            })
            .collect();
        found.lines.extend(runner.race(configuration, configuration, &builds, record)?);
    }
    if kuznyechik.is_none() {
        found.missing.push(
            "kuznyechik-kernel's scalar code: not given; `--kuznyechik FILE` names its magma.c in a clone of kuzcrypt/kuznyechik-kernel"
                .to_owned(),
        );
    }
    match Compiler::gcc() {
        Ok(gcc) => by_gcc(&runner, &gcc, kuznyechik, record, &mut found)?,
        Err(why) => found.missing.push(format!("the loop in C: {why}")),
    }
    Ok(found)
}

/// The loop in C, by gcc.
fn by_gcc(
    runner: &Runner<'_>,
    gcc: &Compiler,
    kuznyechik: Option<&Path>,
    record: &mut Record,
    found: &mut Flags,
) -> Result<(), Failure> {
    let folder = tempfile::tempdir().map_err(Failure::unavailable)?;
    let mut programs = Vec::new();
    for flags in gcc::FLAGS {
        // A file that was asked for by name and does not compile is an error; a compiler that lacks a flag is a reason.
        match gcc::build(gcc, folder.path(), flags, kuznyechik) {
            Ok(program) => programs.push((flags, program)),
            Err(why) if kuznyechik.is_some() => return Err(Failure::input(why)),
            Err(why) => found.missing.push(format!("the loop in C: {why}")),
        }
    }
    if programs.len() < 2 {
        return Ok(());
    }
    found.gcc_version = Some(gcc.version.clone());
    for (asked, configuration) in gcc::LOOPS {
        match asked {
            "eight" => {
                let row = VARIANTS.iter().find(|row| row.name() == REPORT);
                match row.map(|row| row.get(&runner.session.context.cpu)) {
                    Some(Ok(_)) => {}
                    Some(Err(why)) => {
                        found.missing.push(format!("{configuration}: {why}"));
                        continue;
                    }
                    None => continue,
                }
            }
            "kuznyechik" if kuznyechik.is_none() => continue,
            _ => {}
        }
        let builds: Vec<Build<'_>> = programs
            .iter()
            .map(|(flags, program)| Build {
                name: format!("gcc {flags}"),
                program: Box::new(move |count| {
                    let arguments = [asked.to_owned(), count.to_string()];
                    Program::new(label(configuration, &format!("gcc {flags}")), program.clone(), arguments)
                }),
            })
            .collect();
        found.gcc.extend(runner.race(configuration, asked, &builds, record)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_sees_a_wrong_lane_a_wrong_variant_and_a_wrong_count() {
        let right = Report { variant: REPORT.to_owned(), count: GATE_COUNT, blocks: vec![CIPHER; 8] };
        assert_eq!(judge("study-o0", REPORT, REPORT, &right).passed, 1);
        assert_eq!(judge("study-o0", REPORT, REPORT, &right).backend, "report-avx2 at study-o0");
        let mut lane = right.clone();
        lane.blocks[7][0] ^= 1;
        let other = Report { variant: "table-scalar (leaks)".to_owned(), ..right.clone() };
        let short = Report { count: 1, ..right.clone() };
        for (got, part) in [(lane, "1 of 8 blocks"), (other, "table-scalar"), (short, "1 operations")] {
            let row = judge("", REPORT, REPORT, &got);
            assert!(row.failed == 1 && row.why.contains(part), "{}", row.why);
            let rows = vec![row];
            assert!(Gate::new(move || Ok(rows.clone())).pass().is_err());
        }
    }
}
