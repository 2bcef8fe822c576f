//! The report's fourth measure: the same source under other flags of the compiler, as whole processes.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use crate::subjects::{CIPHER, KEY, PLAIN, REPORT};
use crate::variants::{Schedule, VARIANTS};
use lanework_race::clock::Monotonic;
use lanework_race::gate::{Gate, GateRow, Passed};
use lanework_race::pairing::Plan as Rules;
use lanework_race::process::{self, Program};
use lanework_race::record::Record;
use lanework_study::process::{answer, other_build};
use lanework_study::{Failure, Session};
use serde::{Deserialize, Serialize};

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
const GATE_COUNT: usize = 3;

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

/// Whether the block in every lane is the standard's, and whether the requested variant ran.
fn judge(build: &str, asked: &str, got: &Report) -> GateRow {
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
        what: format!("{asked}: the block of RFC 8891 in every lane"),
        backend: label(asked, build),
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
    /// Cargo's profile, or empty for this build.
    pub(super) build: String,
    /// Nanoseconds of an operation, start-up taken off.
    pub(super) ns: f64,
}

struct Runner<'a> {
    session: &'a Session,
    clock: &'a Monotonic,
    study: &'a str,
}

impl Runner<'_> {
    fn program(&self, configuration: &str, build: &str, executable: PathBuf, count: usize) -> Program {
        let mut arguments = self.session.inherited.clone();
        arguments.extend(["__workload", self.study, configuration, "constant", "--count"].map(str::to_owned));
        arguments.push(count.to_string());
        Program::new(label(configuration, build), executable, arguments)
    }

    fn seconds(&self, program: &Program, passed: &Passed) -> Result<f64, Failure> {
        process::repeat(program, passed, 3, self.clock).map(|u| u.wall_s).map_err(Failure::refused)
    }
}

/// Races this build against those beside it, and adds the results to the record.
pub(super) fn measure(
    session: &Session,
    study: &str,
    effort: &Effort,
    record: &mut Record,
    clock: &Monotonic,
) -> Result<Vec<Line>, Failure> {
    let here = std::env::current_exe().map_err(Failure::unavailable)?;
    let builds: Vec<(&str, PathBuf)> = std::iter::once(("", here))
        .chain(BUILDS.iter().filter_map(|(profile, ..)| Some((*profile, other_build(profile)?))))
        .collect();
    let runner = Runner { session, clock, study };
    let mut lines = Vec::new();
    for configuration in CONFIGURATIONS {
        if builds.len() < 2 || run(session, configuration, 0).is_err() {
            continue;
        }
        let mut rows = Vec::new();
        for (build, executable) in &builds {
            let program = runner.program(configuration, build, executable.clone(), GATE_COUNT);
            let report: Report = answer(&program).map_err(Failure::refused)?;
            rows.push(judge(build, configuration, &report));
        }
        let passed = Gate::new(move || Ok(rows.clone())).pass().map_err(Failure::refused)?;
        record.gate.extend(passed.rows().iter().cloned());
        let program = |build: usize, count| {
            runner.program(configuration, builds[build].0, builds[build].1.clone(), count)
        };
        let start = runner.seconds(&program(0, 0), &passed)?;
        let some = 100_000;
        let each = ((runner.seconds(&program(0, some), &passed)? - start) / some as f64).max(1e-9);
        let count = (effort.flags_ms / 1e3 / each).ceil().max(1.0) as usize;
        let others: Vec<Program> = (1..builds.len()).map(|i| program(i, count)).collect();
        let rules = Rules { min_pairs: effort.pairs, launches: 1, ..Rules::default() };
        let subject = subject(configuration);
        let mut raced =
            process::race(&subject, &passed, &program(0, count), &others, effort.pairs, &rules, clock)
                .map_err(Failure::refused)?;
        let usages = std::iter::once(&raced.baseline).chain(&raced.variants);
        for ((build, _), usage) in builds.iter().zip(usages) {
            let ns = (usage.wall_s - start).max(0.0) * 1e9 / count as f64;
            lines.push(Line { configuration: configuration.to_owned(), build: (*build).to_owned(), ns });
        }
        for row in &mut raced.outcome.results {
            row.extra.insert("operations".to_owned(), count.into());
            row.notes.push("a whole process with its start-up".to_owned());
        }
        raced.outcome.gate.clear();
        record.add(raced.outcome);
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_sees_a_wrong_lane_a_wrong_variant_and_a_wrong_count() {
        let right = Report { variant: REPORT.to_owned(), count: GATE_COUNT, blocks: vec![CIPHER; 8] };
        assert_eq!(judge("study-o0", REPORT, &right).passed, 1);
        assert_eq!(judge("study-o0", REPORT, &right).backend, "report-avx2 at study-o0");
        let mut lane = right.clone();
        lane.blocks[7][0] ^= 1;
        let other = Report { variant: "table-scalar (leaks)".to_owned(), ..right.clone() };
        let short = Report { count: 1, ..right.clone() };
        for (got, part) in [(lane, "1 of 8 blocks"), (other, "table-scalar"), (short, "1 operations")] {
            let row = judge("", REPORT, &got);
            assert!(row.failed == 1 && row.why.contains(part), "{}", row.why);
            let rows = vec![row];
            assert!(Gate::new(move || Ok(rows.clone())).pass().is_err());
        }
    }
}
