//! The study's first half: operations alone, in the form of the report's synthetic benchmark.
#![forbid(unsafe_code)]

use lanework_cpu::Cpu;
use serde::Serialize;

use crate::outcome::Failure;

/// What the page and the findings show of it.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Half {
    /// Samples of a line.
    pub(super) rounds: usize,
    /// Ticks of the time-stamp counter in a cycle of the core.
    pub(super) ticks_per_cycle: f64,
    /// Every line.
    pub(super) lines: Vec<Line>,
    /// What they say.
    pub(super) findings: Vec<String>,
    /// Why lines are missing.
    pub(super) missing: Vec<String>,
    /// The report's lines beside its own figures, a table.
    #[serde(skip)]
    pub(super) report: String,
    /// All other lines, a table.
    #[serde(skip)]
    pub(super) probes: String,
}

/// A line in figures.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Line {
    name: String,
    /// Cycles of the core for an iteration.
    cycles: Option<f64>,
    code_bytes: Option<usize>,
    /// Counts of samples, and the middle of each cluster in ticks for a thousand iterations.
    clusters: Vec<(usize, u64)>,
}

/// Measures it, or says why it cannot run here.
///
/// # Errors
/// A failed check: nothing that is wrong is timed.
#[cfg(target_arch = "x86_64")]
pub(super) fn measure(cpu: &Cpu, rounds: usize) -> Result<Result<Half, String>, Failure> {
    use lanework_subjects::study::ifma_vdf::synthetic::{self, Fault};
    let found = match synthetic::measure(cpu, rounds) {
        Ok(found) => found,
        Err(Fault::Unavailable(why)) => return Ok(Err(why)),
        Err(wrong @ Fault::Wrong(_)) => return Err(Failure::refused(wrong)),
    };
    let line = |line: &synthetic::Line| Line {
        name: line.name.clone(),
        cycles: found.cycles(&line.name),
        code_bytes: line.code_bytes,
        clusters: line.histogram.clusters().iter().map(|c| (c.count, c.middle)).collect(),
    };
    Ok(Ok(Half {
        rounds,
        ticks_per_cycle: found.ticks_per_cycle,
        lines: found.lines.iter().map(line).collect(),
        findings: found.findings(),
        report: found.report(),
        probes: found.probes(),
        missing: found.missing,
    }))
}

/// There is no such benchmark of other machines.
///
/// # Errors
/// None.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn measure(_: &Cpu, _: usize) -> Result<Result<Half, String>, Failure> {
    Ok(Err("its instructions are x86-64's".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_instructions_it_is_not_here() {
        let half = measure(&Cpu::baseline(), 1).expect("nothing is wrong");
        assert!(half.is_err_and(|why| !why.is_empty()));
    }

    #[test]
    fn where_it_runs_every_part_has_something() {
        let Ok(half) = measure(&Cpu::detect(), 1).expect("nothing is wrong") else { return };
        assert!(half.report.contains("benchmark_512_mul_avx512") && half.probes.lines().count() > 10);
        assert!(!half.findings.is_empty());
        assert!(half.lines.iter().all(|l| l.cycles.is_some_and(|c| c > 0.0) && l.clusters.len() == 1));
    }
}
