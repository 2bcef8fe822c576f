//! `lanework bench --process 'A' 'B'`: whole commands in pairs, by time and by memory.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{BufReader, Read as _, Seek as _, SeekFrom};
use std::process::{Command, Stdio};
use std::time::Instant;

use lanework_race::clock::Monotonic;
use lanework_race::gate::{Gate, GateRow};
use lanework_race::machine::Machine;
use lanework_race::pairing::Plan;
use lanework_race::process::{self, ProcessError, Program, Usage};
use lanework_race::record::Record;
use lanework_race::stats::least_pairs;
use lanework_race::table::{self, time};
use lanework_race::verdict::Rules;
use lanework_study::{Failure, Outcome};

use crate::args::BenchArgs;
use crate::ui::{Session, counted};

/// A command line, without a shell; `sh -c '...'` asks for one.
fn program(line: &str) -> Result<Program, Failure> {
    let words = shlex::split(line).ok_or_else(|| {
        Failure::input(format!("--process: '{line}' ends inside quotes or after a backslash"))
            .help("close the quotes")
    })?;
    let (first, rest) = words.split_first().ok_or_else(|| {
        Failure::input("--process: a command is empty").help("give two commands: --process 'A' 'B'")
    })?;
    Ok(Program::new(line, first, rest.to_vec()))
}

/// The most bytes of a failed command's standard error that the message repeats.
const SAID: u64 = 2048;

/// One run of a command.
struct Printed {
    /// Its output, if wanted. In a file: Linux starts a child's peak memory at its parent's, so output held in this process would
    /// count as the child's.
    output: Option<File>,
    seconds: f64,
}

/// Runs a command once. Its own failure is the inner result.
///
/// # Errors
/// If it cannot be started, or its output cannot be kept.
fn printed(program: &Program, keep: bool) -> Result<Result<Printed, String>, Failure> {
    let kept = |e: std::io::Error| {
        Failure::unavailable(format!("cannot store a command's output: {e}"))
            .help("make room where temporary files are, or name another place with TMPDIR")
    };
    let output = keep.then(tempfile::tempfile).transpose().map_err(kept)?;
    let stdout = match &output {
        Some(file) => Stdio::from(file.try_clone().map_err(kept)?),
        None => Stdio::null(),
    };
    let start = Instant::now();
    let mut child = Command::new(&program.program)
        .args(&program.args)
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| {
            Failure::file(&program.program, format!("cannot be run: {e}"))
                .help("name programs; for words of a shell, write `sh -c '...'`")
        })?;
    let mut said = Vec::new();
    if let Some(mut pipe) = child.stderr.take() {
        // If the rest cannot be read, only a message lacks it.
        let _ = pipe.by_ref().take(SAID).read_to_end(&mut said);
        let _ = std::io::copy(&mut pipe, &mut std::io::sink());
    }
    let status = child.wait().map_err(|e| Failure::file(&program.program, e))?;
    let seconds = start.elapsed().as_secs_f64();
    if status.success() {
        return Ok(Ok(Printed { output, seconds }));
    }
    let said = String::from_utf8_lossy(&said);
    let said = said.trim();
    let colon = if said.is_empty() { "" } else { ": " };
    Ok(Err(format!("{}: {status}{colon}{said}", program.name)))
}

/// How the second output differs from the first.
fn difference(a: &mut File, b: &mut File) -> std::io::Result<Option<String>> {
    let lengths = [a.seek(SeekFrom::End(0))?, b.seek(SeekFrom::End(0))?];
    a.rewind()?;
    b.rewind()?;
    let (a, b) = (BufReader::new(a).bytes(), BufReader::new(b).bytes());
    for (at, (x, y)) in a.zip(b).enumerate() {
        if x? != y? {
            return Ok(Some(format!("its output differs from the other's at byte {at}")));
        }
    }
    let [of_a, of_b] = lengths;
    Ok((of_a != of_b).then(|| format!("it prints {of_b} bytes and the other {of_a}")))
}

/// The check before the race: both commands succeed and, if asked for, print the same. Also how long each took, in seconds.
fn gate(programs: &[Program; 2], same_output: bool) -> Result<(Gate, [f64; 2]), Failure> {
    let [a, b] = programs;
    let mut found = [printed(a, same_output)?, printed(b, same_output)?];
    let seconds = found.each_ref().map(|f| f.as_ref().map_or(0.0, |printed| printed.seconds));
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
    if let [Ok(Printed { output: Some(a), .. }), Ok(Printed { output: Some(b), .. })] = &mut found {
        let why = difference(a, b).unwrap_or_else(|e| Some(format!("the output cannot be read back: {e}")));
        rows.push(row("the same output", &programs[1].name, why));
    }
    Ok((Gate::new(move || Ok(rows.clone())), seconds))
}

pub(super) fn run(session: &Session, args: &BenchArgs) -> Result<Outcome, Failure> {
    let [a, b] = args.process.as_slice() else {
        return Err(Failure::input(format!("--process: {} commands, two are raced", args.process.len()))
            .help("--process 'A' 'B'"));
    };
    let programs = [program(a)?, program(b)?];
    let (gate, [once_a, once_b]) = gate(&programs, args.same_output)?;
    let passed = gate.pass().map_err(|e| {
        Failure::refused(format!("nothing was timed: {e}"))
            .help("only commands that succeed are timed, with --same-output only those that print the same")
    })?;
    let rules = Rules::default();
    // A round is four runs of A and B, and four of A for the control.
    let round = (6.0 * once_a + 2.0 * once_b).max(1e-4);
    let (wished, least) = ((args.effort.seconds / round) as usize, least_pairs(rules.alpha));
    let rounds = wished.clamp(least, 1000).next_multiple_of(2);
    let clock = Monotonic::new();
    let name = process::study([a, b]);
    let mut record = Record::new(&name, &session.command, Machine::inspect(&clock, Vec::new()));
    if wished < least {
        let takes = round * least as f64;
        let remark =
            format!("{least} rounds are the fewest that give an interval, and take about {takes:.1} s");
        if !session.json {
            eprintln!("{remark}, more than --seconds {}", args.effort.seconds);
        }
        record.remarks.push(remark);
    }
    let plan = Plan { launches: 1, min_pairs: rounds, max_pairs: rounds, rules, ..Plan::default() };
    record.plan = Some(plan.clone());
    let [baseline, variant] = &programs;
    let found =
        process::race("process", &passed, baseline, std::slice::from_ref(variant), rounds, &plan, &clock)
            .map_err(|e| match e {
                ProcessError::Failed { .. } => Failure::refused(e)
                    .help("each run must end with exit code 0; run the command by hand to see its error"),
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

/// Medians of both, then the verdicts.
fn shown(usages: &[&Usage], record: &Record, session: &Session) -> String {
    let mut out = String::new();
    for u in usages {
        let memory = if u.own_peak_kib.is_some_and(|own| u.peak_kib <= own as f64) {
            // Linux starts a child's peak at its parent's.
            "no more than our own".to_owned()
        } else {
            format!("{:.0} KiB", u.peak_kib)
        };
        let [wall, user, system] = [u.wall_s, u.user_s, u.system_s].map(|s| time(s * 1e9));
        out += &format!(
            "{}\n  wall {wall}, user {user}, system {system}, peak memory {memory}; {}\n",
            u.name,
            counted(u.runs.len() as u64, "run", "runs")
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
        let opens = |a: &str, b: &str, same| gate(&[sh(a), sh(b)], same).expect("both run").0.pass().is_ok();
        assert!(opens("echo 1", "echo 2", false));
        assert!(opens("echo 1", "echo 1", true));
        assert!(!opens("echo 1", "echo 2", true));
        assert!(!opens("echo 1", "echo 1; echo 2", true));
        assert!(!opens("exit 3", "exit 0", false));
        assert!(!opens("exit 0", "exit 3", false));
        let absent = Program::new("absent", "/no/such/program", Vec::<String>::new());
        assert_eq!(gate(&[sh("exit 0"), absent], false).err().map(|e| e.code()), Some(2));
        let told =
            printed(&sh("echo no >&2; yes | head -c 300000 >&2; exit 3"), false).expect("it runs").err();
        assert!(told.is_some_and(|t| t.contains("exit status: 3: no\ny") && t.len() < 3000));
        assert!(printed(&sh("exit 3"), false).expect("it runs").err().is_some_and(|t| t.ends_with(": 3")));
    }
}
