//! The study's tables, as the template needs them.
#![forbid(unsafe_code)]

use lanework_race::table::{count_rate, percent, times};
use lanework_study::markdown::{NONE, strings, table};
use serde::Serialize;

use super::operations::Half;
use super::question::Plan;
use super::races::{CONTESTANTS, Measured, Runs};

/// Runs that are shown line by line, as many as the report shows.
const SHOWN: usize = 5;

/// Everything that the template names.
#[derive(Serialize)]
pub(super) struct Page {
    question: String,
    title: String,
    their_machine: String,
    their_command: String,
    machine: String,
    command: String,
    pairs: usize,
    own_pairs: usize,
    synthetic: Option<Alone>,
    blocks: Vec<Block>,
    medians: String,
    races: String,
    told: Vec<String>,
    not_here: Vec<String>,
    remarks: Vec<String>,
}

/// Operations alone.
#[derive(Serialize)]
struct Alone {
    rounds: usize,
    ticks_per_cycle: String,
    report: String,
    rivals: String,
    probes: String,
    account: String,
    saved: Option<String>,
    findings: Vec<String>,
}

/// Some lines in the report's form.
#[derive(Serialize)]
struct Block {
    name: String,
    lines: String,
}

/// One line as `vdf_bench` prints it.
fn line(ms: f64, slow: Option<u64>, iterations: u64) -> String {
    let slow = slow.map_or_else(String::new, |n| format!("n_slow: {n}; "));
    // Cut off, not rounded, as there.
    let speed = (iterations as f64 * 10.0 / ms).floor() / 10.0;
    format!("Time: {ms:.0} ms; {slow}speed: {speed:.1}K ips\n")
}

fn lines(runs: &Runs) -> String {
    runs.ns.iter().take(SHOWN).map(|&ns| line(ns as f64 / 1e6, runs.slow, runs.iterations)).collect()
}

/// The first half for the page, and what of it is not here.
fn alone(half: &Result<Half, String>) -> (Option<Alone>, Vec<String>) {
    match half {
        Ok(half) => {
            let alone = Alone {
                rounds: half.rounds,
                ticks_per_cycle: format!("{:.3}", half.ticks_per_cycle),
                report: half.report.clone(),
                rivals: half.rivals.clone(),
                probes: half.probes.clone(),
                account: half.account.clone(),
                saved: half.saved.clone(),
                findings: half.findings.clone(),
            };
            (Some(alone), half.missing.iter().map(|why| format!("of the operations alone, {why}")).collect())
        }
        Err(why) => (None, vec![format!("operations alone: {why}")]),
    }
}

pub(super) fn page(question: &str, plan: &Plan, measured: &Measured, told: &[String], full: bool) -> Page {
    let original = &plan.original;
    let theirs = |ms: &[f64]| -> String {
        ms.iter().map(|&ms| line(ms, Some(original.slow), original.iterations)).collect()
    };
    let mut blocks = vec![
        Block { name: "There, AVX-512 disabled".to_owned(), lines: theirs(&original.off_ms) },
        Block { name: "There, AVX-512 enabled".to_owned(), lines: theirs(&original.on_ms) },
    ];
    let mut medians = Vec::new();
    for (name, _, cores) in CONTESTANTS {
        let Some(runs) = measured.runs.get(name).filter(|r| !r.ns.is_empty()) else { continue };
        blocks.push(Block {
            name: format!(
                "Here, {name}, {} squarings a run, the first {SHOWN} of {}",
                runs.iterations,
                runs.ns.len()
            ),
            lines: lines(runs),
        });
        let each = runs.each().unwrap_or(f64::NAN);
        medians.push(vec![
            name.to_owned(),
            cores.to_string(),
            format!("{:.3} µs", each / 1e3),
            count_rate(1e9 / each, "squarings"),
            runs.slow.map_or_else(|| NONE.to_owned(), |n| n.to_string()),
        ]);
    }
    let races: Vec<Vec<String>> = measured
        .record
        .results
        .iter()
        .map(|r| {
            vec![
                r.variant.clone(),
                r.baseline.clone(),
                times(r.ratio),
                format!("{} … {}", times(r.low), times(r.high)),
                r.verdict.word().to_owned(),
                percent(r.noise),
            ]
        })
        .collect();
    let mut remarks = measured.record.remarks.clone();
    if !full {
        remarks.push("the quick form: runs of a fraction of a second; `--full` for publishing".to_owned());
    }
    let (synthetic, absent) = alone(&measured.synthetic);
    let races_absent = measured.record.not_here.iter().map(|n| format!("{}: {}", n.variant, n.why));
    let not_here = absent.into_iter().chain(races_absent).collect();
    Page {
        question: question.to_owned(),
        title: original.title.clone(),
        their_machine: original.machine.clone(),
        their_command: original.command.clone(),
        machine: measured.record.machine.summary(),
        command: measured.record.command.clone(),
        pairs: measured.effort.pairs,
        own_pairs: measured.effort.own_pairs,
        synthetic,
        blocks,
        medians: table(&strings(&["chain", "threads", "a squaring", "rate", "n_slow"]), &medians),
        races: table(&strings(&["", "against", "speed", "interval", "verdict", "noise floor"]), &races),
        told: told.to_vec(),
        not_here,
        remarks,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_in_the_report_s_form() {
        assert_eq!(line(15_208.0, Some(213), 1_000_000), "Time: 15208 ms; n_slow: 213; speed: 65.7K ips\n");
        assert_eq!(line(200.0, None, 50_000), "Time: 200 ms; speed: 250.0K ips\n");
    }

    #[test]
    fn the_first_half_is_shown_or_missed() {
        let half = Half { rounds: 3, missing: vec!["no counter".to_owned()], ..Half::default() };
        let (shown, absent) = alone(&Ok(half));
        assert_eq!(shown.map(|s| s.rounds), Some(3));
        assert_eq!(absent, ["of the operations alone, no counter"]);
        let (shown, absent) = alone(&Err("no multiply-add".to_owned()));
        assert!(shown.is_none());
        assert_eq!(absent, ["operations alone: no multiply-add"]);
    }
}
