//! `lanework bench --process 'A' 'B'`: whole commands in pairs, by time and by memory.
#![forbid(unsafe_code)]

use std::process::{Command, Stdio};
use std::time::Instant;

use lanework_lab::clock::Monotonic;
use lanework_lab::gate::{Gate, GateRow};
use lanework_lab::machine::Machine;
use lanework_lab::pairing::Plan;
use lanework_lab::process::{self, ProcessError, Program, Usage};
use lanework_lab::record::Record;
use lanework_lab::stats::least_pairs;
use lanework_lab::table::{self, time};
use lanework_lab::verdict::Rules;

use crate::args::BenchArgs;
use crate::outcome::{Failure, Outcome};
use crate::ui::Session;

/// A command line, without a shell: whoever wants one writes `sh -c '...'`.
fn program(line: &str) -> Result<Program, Failure> {
    let words = shlex::split(line)
        .ok_or_else(|| Failure::input(format!("'{line}' ends within a quotation or after a backslash")))?;
    let (first, rest) = words.split_first().ok_or_else(|| Failure::input("a command is empty"))?;
    Ok(Program::new(line, first, rest.to_vec()))
}

/// What a command prints, and how long it took, in seconds.
fn printed(program: &Program) -> Result<(Vec<u8>, f64), String> {
    let start = Instant::now();
    let out = Command::new(&program.program)
        .args(&program.args)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("{}: {e}", program.program.display()))?;
    if !out.status.success() {
        let said = String::from_utf8_lossy(&out.stderr);
        return Err(format!("{}: {}: {}", program.name, out.status, said.trim()));
    }
    Ok((out.stdout, start.elapsed().as_secs_f64()))
}

/// The check that stands before the race: both end well, and where it was asked for, say the same.
fn gate(programs: &[Program; 2], same_output: bool) -> (Gate, f64) {
    let found: Vec<Result<(Vec<u8>, f64), String>> = programs.iter().map(printed).collect();
    let seconds = found.iter().flatten().map(|f| f.1).sum();
    let row = |what: &str, backend: &str, why: Option<String>| GateRow {
        what: what.to_owned(),
        backend: backend.to_owned(),
        passed: u64::from(why.is_none()),
        failed: u64::from(why.is_some()),
        skipped: 0,
        why: why.unwrap_or_default(),
    };
    let mut rows: Vec<GateRow> = programs
        .iter()
        .zip(&found)
        .map(|(p, f)| row("exit code 0", &p.name, f.as_ref().err().cloned()))
        .collect();
    if let ([Ok((a, _)), Ok((b, _))], true) = (&found[..], same_output) {
        let at = a.iter().zip(b).position(|(x, y)| x != y);
        let why = match at {
            Some(at) => Some(format!("its output differs from the other's at byte {at}")),
            None if a.len() != b.len() => {
                Some(format!("it prints {} bytes and the other {}", b.len(), a.len()))
            }
            None => None,
        };
        rows.push(row("the same output", &programs[1].name, why));
    }
    (Gate::new(move || Ok(rows.clone())), seconds)
}

pub(super) fn run(session: &Session, args: &BenchArgs) -> Result<Outcome, Failure> {
    let [a, b] = args.process.as_slice() else {
        return Err(Failure::input("--process takes two commands"));
    };
    let programs = [program(a)?, program(b)?];
    let (gate, once) = gate(&programs, args.same_output);
    let passed = gate.pass().map_err(|e| Failure::refused(format!("nothing was timed: {e}")))?;
    let rules = Rules::default();
    // A round is a pair of the two and a pair of the control: eight runs, four rounds' worth of both together.
    let rounds = (args.effort.seconds / (once * 3.0).max(1e-4)) as usize;
    let rounds = rounds.clamp(least_pairs(rules.alpha), 1000);
    let clock = Monotonic::new();
    let mut record = Record::new("process", &session.command, Machine::inspect(&clock, Vec::new()));
    let plan = Plan { launches: 1, min_pairs: rounds, max_pairs: rounds, rules, ..Plan::default() };
    record.plan = Some(plan.clone());
    let [baseline, variant] = &programs;
    let found =
        process::race("process", &passed, baseline, std::slice::from_ref(variant), rounds, &plan, &clock)
            .map_err(|e| match e {
                ProcessError::Failed { .. } => Failure::refused(e),
                _ => Failure::unavailable(e),
            })?;
    record.add(found.outcome);
    for outcome in found.others {
        record.add(outcome);
    }
    record.machine.finish(&clock);
    let usages: Vec<&Usage> = std::iter::once(&found.baseline).chain(&found.variants).collect();
    super::save_and_show(session, &mut record, &args.output, |record| {
        if session.json {
            let text = record.to_json().map_err(Failure::input)?;
            let mut value: serde_json::Value = serde_json::from_str(&text).map_err(Failure::input)?;
            value["processes"] = serde_json::to_value(&usages).map_err(Failure::input)?;
            println!("{value}");
        } else if args.output.csv {
            print!("{}", table::csv(&record.results));
        } else {
            print!("{}", shown(&usages, record, session));
        }
        Ok(())
    })
}

/// Medians of both, as such tables are, and then the verdicts.
fn shown(usages: &[&Usage], record: &Record, session: &Session) -> String {
    let mut out = String::new();
    for u in usages {
        let memory = if u.own_peak_kib.is_some_and(|own| u.peak_kib <= own as f64) {
            // Linux starts a child's peak at its parent's.
            "at most ours".to_owned()
        } else {
            format!("{:.0} KiB", u.peak_kib)
        };
        let [wall, user, system] = [u.wall_s, u.user_s, u.system_s].map(|s| time(s * 1e9));
        out += &format!(
            "{}\n  wall {wall}, user {user}, system {system}, peak memory {memory}; {} runs\n",
            u.name,
            u.runs.len()
        );
    }
    out + "\n" + &table::render(record, session.style)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Program {
        Program::new(script, "/bin/sh", ["-c", script])
    }

    #[test]
    fn command_lines_are_split_as_a_shell_would() {
        let p = program("sh -c 'echo \"a b\"' x\\ y").expect("a command");
        assert_eq!(p.program.as_os_str(), "sh");
        assert_eq!(p.args, ["-c", "echo \"a b\"", "x y"]);
        assert!(program("echo 'open").is_err() && program("  ").is_err());
    }

    #[test]
    fn a_command_that_fails_or_says_something_else_is_not_timed() {
        let opens = |a: &str, b: &str, same| gate(&[sh(a), sh(b)], same).0.pass().is_ok();
        assert!(opens("echo 1", "echo 2", false));
        assert!(opens("echo 1", "echo 1", true));
        assert!(!opens("echo 1", "echo 2", true));
        assert!(!opens("echo 1", "echo 1; echo 2", true));
        assert!(!opens("exit 3", "exit 0", false));
        assert!(!opens("exit 0", "exit 3", false));
        let absent = Program::new("absent", "/no/such/program", Vec::<String>::new());
        assert!(gate(&[sh("exit 0"), absent], false).0.pass().is_err());
    }
}
