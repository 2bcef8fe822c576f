//! Whole processes, with real commands and planted time.

mod common;

use common::plan;
use lanework_lab::clock::Clock;
use lanework_lab::process::{ProcessError, Program, race, repeat, run};
use lanework_lab::verdict::Verdict;
use std::cell::Cell;

/// Gives each start and end of a run from a script of durations, over and over.
struct Script {
    durations: Vec<u64>,
    reads: Cell<usize>,
    now: Cell<u64>,
}

impl Script {
    fn new(durations: &[u64]) -> Self {
        Self { durations: durations.to_vec(), reads: Cell::new(0), now: Cell::new(0) }
    }
}

impl Clock for Script {
    fn now_ns(&self) -> u64 {
        let n = self.reads.replace(self.reads.get() + 1);
        if n % 2 == 1 {
            self.now.set(self.now.get() + self.durations[n / 2 % self.durations.len()]);
        }
        self.now.get()
    }
    fn ticks(&self) -> Option<u64> {
        None
    }
    fn step_ns(&self) -> u64 {
        1
    }
    fn name(&self) -> &'static str {
        "script"
    }
}

fn sh(name: &str, script: &str) -> Program {
    Program::new(name, "/bin/sh", ["-c", script])
}

#[test]
fn medians_of_runs() {
    // The first run only warms.
    let clock = Script::new(&[99_000_000_000, 3_000_000_000, 1_000_000_000, 2_000_000_000]);
    let usage = repeat(&sh("true", "exit 0"), 3, &clock).expect("runs");
    assert_eq!(usage.wall_s, 2.0);
    assert_eq!(usage.runs.len(), 3);
    assert!(usage.peak_kib > 100.0, "even a shell needs memory: {}", usage.peak_kib);
}

#[test]
fn a_failing_command_has_no_time() {
    let clock = Script::new(&[1]);
    match run(&sh("bad", "exit 3"), &clock) {
        Err(ProcessError::Failed { name, how }) => assert!(name == "bad" && how.contains('3'), "{how}"),
        other => panic!("{other:?}"),
    }
    match run(&sh("killed", "kill -9 $$"), &clock) {
        Err(ProcessError::Failed { how, .. }) => assert!(how.contains('9'), "{how}"),
        other => panic!("{other:?}"),
    }
    let missing = Program::new("gone", "/nonexistent/program", Vec::<String>::new());
    assert!(matches!(run(&missing, &clock), Err(ProcessError::Io { path, .. }) if path.ends_with("program")));
    assert!(matches!(repeat(&sh("true", "exit 0"), 0, &clock), Err(ProcessError::NoRuns)));
}

#[test]
fn commands_see_their_environment_and_input() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("in");
    std::fs::write(&input, "hello").expect("written");
    let mut program = sh("cat", "test \"$(cat)$X\" = hello2");
    program.stdin = Some(input);
    program.env.push(("X".into(), "2".into()));
    run(&program, &Script::new(&[5])).expect("the command found what it was given");
}

#[test]
fn commands_race_in_pairs() {
    // Two runs to warm; then rounds of control and comparison by turns, in the order that `race` documents.
    let (a, b) = (2_000_000_u64, 1_000_000_u64);
    let mut script = vec![a, b];
    script.extend([a, a, a, a, a, b, b, a]);
    script.extend([a, b, b, a, a, a, a, a]);
    let pairs = 10;
    let durations: Vec<u64> =
        script[..2].iter().copied().chain((0..pairs / 2).flat_map(|_| script[2..].to_vec())).collect();
    let clock = Script::new(&durations);
    let (outcome, base, variant) =
        race("job", &sh("one", "exit 0"), &sh("two", "exit 0"), pairs, &plan(), &clock).expect("races");
    let r = &outcome.results[0];
    assert_eq!((r.ratio, r.verdict, r.noise), (2.0, Verdict::Faster, 0.0));
    assert_eq!((base.wall_s, variant.wall_s), (0.002, 0.001));
    assert_eq!((base.runs.len(), variant.runs.len()), (60, 20));
}
