//! Whole processes, with real commands and planted time.

mod common;

use common::{open_gate, plan};
use lanework_race::clock::Clock;
use lanework_race::process::{ProcessError, Program, race, repeat, run};
use lanework_race::verdict::Verdict;
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
    // The first run only warms up.
    let clock = Script::new(&[99_000_000_000, 3_000_000_000, 1_000_000_000, 2_000_000_000]);
    let usage = repeat(&sh("true", "exit 0"), &passed(), 3, &clock).expect("runs");
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
    assert!(matches!(repeat(&sh("true", "exit 0"), &passed(), 0, &clock), Err(ProcessError::NoRuns)));
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
    // The fake programs' times depend on which of them runs, so the clock goes by the order of the log.
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let note = |name: &str| sh(name, &format!("echo {name} >> {}", log.display()));
    let clock = ByLog { log: log.clone(), reads: Cell::new(0), now: Cell::new(0) };
    let pairs = 10;
    let found = race("job", &passed(), &note("one"), &[note("two"), note("half")], pairs, &plan(), &clock)
        .expect("races");
    let rows = &found.outcome.results;
    assert_eq!((rows[0].ratio, rows[0].verdict), (0.5, Verdict::Slower));
    // The only uncertainty is one step of the clock.
    assert!((rows[0].noise - 1e-6).abs() < 1e-9, "{}", rows[0].noise);
    assert_eq!((rows[1].ratio, rows[1].verdict), (2.0, Verdict::Faster));
    assert_eq!(found.baseline.wall_s, 0.001);
    assert_eq!((found.variants[0].wall_s, found.variants[1].wall_s), (0.002, 0.0005));
    assert_eq!((found.baseline.runs.len(), found.variants[0].runs.len()), (80, 20));
    let text = std::fs::read_to_string(&log).expect("the commands ran");
    let order: Vec<&str> = text.lines().skip(3).collect();
    assert_eq!(order.len(), 3 * 4 * pairs);
    let count = |four: [&str; 4]| order.chunks(4).filter(|c| *c == four).count();
    assert_eq!(count(["one"; 4]), pairs);
    for name in ["two", "half"] {
        assert_eq!(count(["one", name, name, "one"]), pairs / 2, "{order:?}");
        assert_eq!(count([name, "one", "one", name]), pairs / 2, "{order:?}");
    }
}

/// Equal programs whose times depend only on their place among the four runs: the place must not look like a difference. With
/// A B B A alone the second run of four made B slower than itself by 4.9 %.
#[test]
fn the_place_among_four_runs_favours_neither() {
    let passed = passed();
    let race_of = |place: usize, pairs: usize| {
        // Two runs that do not count go first.
        let mut durations = [1_000_000; 4];
        durations[(place + 2) % 4] = 1_100_000;
        let clock = Script::new(&durations);
        let equal = sh("equal", "exit 0");
        race("place", &passed, &equal, std::slice::from_ref(&equal), pairs, &plan(), &clock).expect("races")
    };
    for place in 0..4 {
        // An odd number of rounds would have one order more often than the other.
        for pairs in [8, 9] {
            let found = race_of(place, pairs);
            let row = &found.outcome.results[0];
            let control = found.outcome.control.expect("a control");
            for (ratio, low, high) in
                [(row.ratio, row.low, row.high), (control.ratio, control.low, control.high)]
            {
                assert!(
                    (ratio - 1.0).abs() < 1e-6 && low < 1.0 && 1.0 < high,
                    "{place}: {low} {ratio} {high}"
                );
            }
            assert!(!matches!(row.verdict, Verdict::Faster | Verdict::Slower), "{place}: {}", row.verdict);
        }
    }
}

/// Advances by the planted time of the program that last wrote to the log.
struct ByLog {
    log: std::path::PathBuf,
    reads: Cell<usize>,
    now: Cell<u64>,
}

impl Clock for ByLog {
    fn now_ns(&self) -> u64 {
        let n = self.reads.replace(self.reads.get() + 1);
        if n % 2 == 1 {
            let text = std::fs::read_to_string(&self.log).expect("a program has written");
            let took = match text.lines().last() {
                Some("two") => 2_000_000,
                Some("half") => 500_000,
                _ => 1_000_000,
            };
            self.now.set(self.now.get() + took);
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
        "by log"
    }
}

fn passed() -> lanework_race::gate::Passed {
    open_gate().pass().expect("the gate is open")
}

/// Memory and processor time are compared in the same pairs: the kernel's figures, whatever the clock says.
#[test]
fn a_command_that_needs_more_memory_is_told_by_it() {
    let clock = Script::new(&[1_000_000]);
    let needs = |name: &str, bytes: u64| {
        sh(name, &format!("head -c {bytes} /dev/zero | tail -c {bytes} > /dev/null"))
    };
    let (medium, large, small) =
        (needs("medium", 80_000_000), needs("large", 320_000_000), sh("small", "exit 0"));
    let plan = plan();
    let others = |baseline: &Program, variants: &[Program]| {
        let found = race("two", &passed(), baseline, variants, 8, &plan, &clock).expect("races");
        assert_eq!(found.outcome.results[0].verdict, Verdict::Same);
        for outcome in &found.others {
            // A remark names what is not compared.
            let told = outcome.results.len() + outcome.remarks.len();
            assert!(told >= 1, "{outcome:?}");
            assert!(outcome.results.iter().all(|r| r.samples.len() == 16));
        }
        let [_, _, _, memory] = &found.others[..] else { panic!("four figures: {:?}", found.others) };
        memory.clone()
    };
    // What needs no more than this process has this process's peak, and nothing is compared with that.
    let memory = others(&medium, &[large.clone(), small.clone()]);
    let [peak] = &memory.results[..] else { panic!("one comparison: {memory:?}") };
    assert_eq!((peak.subject.as_str(), peak.variant.as_str()), ("two/peak", "large"));
    assert_eq!((peak.verdict, peak.unit.as_str()), (Verdict::Slower, "KiB"));
    assert!(peak.ratio < 0.5 && peak.median > 320_000_000.0 / 1024.0, "{} {}", peak.ratio, peak.median);
    let told = |remarks: &[String]| matches!(remarks, [one] if one.starts_with("small: ") && one.contains("do not exceed this command's own"));
    assert!(told(&memory.remarks), "{:?}", memory.remarks);
    let memory = others(&small, &[large]);
    assert!(memory.results.is_empty() && told(&memory.remarks), "{memory:?}");
}
