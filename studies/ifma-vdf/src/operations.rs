//! The study's first half: operations alone, in the form of the report's synthetic benchmark.
#![forbid(unsafe_code)]

use std::path::Path;

use lanework_cpu::Cpu;
use lanework_study::Failure;
use serde::Serialize;

/// The parts that the page and the findings show.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Half {
    /// Samples of a line.
    pub(super) rounds: usize,
    /// Ticks of the time-stamp counter in a cycle of the core.
    pub(super) ticks_per_cycle: f64,
    /// Every line.
    pub(super) lines: Vec<Line>,
    /// The findings from them.
    pub(super) findings: Vec<String>,
    /// Cycles of a squaring by phases, each backend's.
    pub(super) phases: Vec<Phases>,
    /// Why lines are missing.
    pub(super) missing: Vec<String>,
    /// The report's lines beside its own figures, a table.
    #[serde(skip)]
    pub(super) report: String,
    /// Ours beside chiavdf's and GMP's, a table.
    #[serde(skip)]
    pub(super) rivals: String,
    /// All other lines, a table.
    #[serde(skip)]
    pub(super) probes: String,
    /// The phases, a table.
    #[serde(skip)]
    pub(super) account: String,
    /// What the phases say about IFMA, if it is here.
    pub(super) saved: Option<String>,
}

/// One backend's cycles: its name, and each phase's name and cycles.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Phases {
    backend: String,
    cycles: Vec<(&'static str, f64)>,
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
/// A failed check: wrong code is not timed.
#[cfg(target_arch = "x86_64")]
pub(super) fn measure(
    cpu: &Cpu,
    peers: Option<&Path>,
    rounds: usize,
) -> Result<Result<Half, String>, Failure> {
    use crate::phases::{self, Phase};
    use crate::synthetic::{self, Fault};

    use super::races::{OFF, ON};
    use lanework_study::markdown::{strings, table};
    let found = match synthetic::measure(cpu, peers, rounds) {
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
    let spent = match phases::measure(cpu, rounds) {
        Ok(spent) => spent,
        Err(Fault::Unavailable(why)) => return Ok(Err(why)),
        Err(wrong @ Fault::Wrong(_)) => return Err(Failure::refused(wrong)),
    };
    let of = |name: &str| spent.iter().find(|s| s.backend == name);
    let mut account: Vec<Vec<String>> = Phase::ALL
        .into_iter()
        .enumerate()
        .map(|(i, phase)| {
            let cells = spent.iter().map(|s| format!("{:.0}", s.cycles[i]));
            std::iter::once(phases::title(phase).to_owned()).chain(cells).collect()
        })
        .collect();
    let sums = spent.iter().map(|s| format!("{:.0}", s.together()));
    account.push(std::iter::once("a squaring, waited for".to_owned()).chain(sums).collect());
    let mut header = strings(&["cycles"]);
    header.extend(spent.iter().map(|s| s.backend.clone()));
    Ok(Ok(Half {
        account: table(&header, &account),
        saved: of(OFF).zip(of(ON)).map(|(off, on)| phases::told(off, on)),
        phases: spent
            .iter()
            .map(|s| Phases {
                backend: s.backend.clone(),
                cycles: Phase::ALL.into_iter().map(phases::title).zip(s.cycles).collect(),
            })
            .collect(),
        rounds,
        ticks_per_cycle: found.ticks_per_cycle,
        lines: found.lines.iter().map(line).collect(),
        findings: found.findings(),
        report: found.report(),
        rivals: found.rivals(),
        probes: found.probes(),
        missing: found.missing,
    }))
}

/// There is no such benchmark for other machines.
///
/// # Errors
/// None.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn measure(_: &Cpu, _: Option<&Path>, _: usize) -> Result<Result<Half, String>, Failure> {
    Ok(Err("its instructions are x86-64's".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_instructions_it_is_not_here() {
        let half = measure(&Cpu::baseline(), None, 1).expect("nothing is wrong");
        assert!(half.is_err_and(|why| !why.is_empty()));
    }

    #[test]
    fn where_it_runs_every_part_has_something() {
        let Ok(half) = measure(&Cpu::detect(), None, 1).expect("nothing is wrong") else { return };
        assert!(half.report.contains("benchmark_512_mul_avx512") && half.probes.lines().count() > 10);
        assert!(!half.findings.is_empty());
        assert!(half.account.contains("partial GCD") && half.phases.len() > 1 && half.saved.is_some());
        assert!(half.lines.iter().all(|l| l.cycles.is_some_and(|c| c > 0.0) && l.clusters.len() == 1));
    }
}
