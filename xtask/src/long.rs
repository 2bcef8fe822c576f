//! `cargo xtask long`: checks that take too long for every change, with a log that every change checks.
//!
//! Each step's last run is in `.ci/long.toml`: its command, commit, date, duration and exit status. `--check` fails where a
//! step's last run failed or is more than [`OLDEST`] commits back. A step that has never run is skipped until it is as overdue. A study in full may also be shown by its
//! record in `records/`, if that is newer than the step's last run.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Instant, SystemTime};

use clap::Args;
use lanework_race::history::{self, Entry};
use lanework_race::record::utc;
use serde::{Deserialize, Serialize};

use crate::Complaint;

const LOG: &str = ".ci/long.toml";
const HEADER: &str =
    "# The last run of each step of `.ci/long`, which writes this file. `.ci/run` checks it.\n\n";
/// A run older than this many commits says nothing about the code.
const OLDEST: u64 = 300;

/// `long`.
#[derive(Args)]
pub(crate) struct Options {
    /// Run nothing: fail if a step has no run, failed, or ran too many commits ago.
    #[arg(long)]
    check: bool,
    /// List the steps and their commands.
    #[arg(long)]
    list: bool,
    /// Only these steps.
    steps: Vec<String>,
}

/// The commit that brought `.ci/long`. Steps that have never run are due [`OLDEST`] commits after it.
const SINCE: &str = "c7dc9be65b9291ac810ea5c6bb1a2289bb206a41";
/// Studies that say nothing without a CUDA device: one that has never run in full is reported as a skipped step.
const NEED_A_DEVICE: [&str; 1] = ["mayo-gpu"];

/// A shell command to run.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    name: String,
    command: String,
}

/// A step's last run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Run {
    command: String,
    commit: String,
    date: String,
    seconds: u64,
    exit: i32,
}

type Log = BTreeMap<String, Run>;

/// All steps: the tools of `cargo xtask sound`, ten minutes of fuzzing, generated functions and other people's code that are
/// rewritten, the kernels for devices, peers, the removal of every study, the libraries' features one by one, their public interfaces,
/// and every study in full.
fn steps(root: &Path) -> Result<Vec<Step>, String> {
    let step = |name: &str, command: &str| Step { name: name.to_owned(), command: command.to_owned() };
    let mut all: Vec<Step> = ["miri", "address", "thread"]
        .iter()
        .map(|tool| step(tool, &format!("cargo xtask sound {tool}")))
        .collect();
    // In the tests' build, which has assertions and overflow checks.
    all.push(step(
        "fuzz",
        "cargo run --package lanework-fuzz --bin replay -- --seconds 25 --runs 1000000000",
    ));
    // A hundred times as many random functions as in the tests, each with five homes.
    all.push(step(
        "respill",
        "LANEWORK_GENERATED=100000 LANEWORK_SEED=1000001 cargo test --release -p lanework-respill --test generated -- --nocapture",
    ));
    // The second judge, on more functions and all of libjade.
    all.push(step(
        "judge",
        "LANEWORK_REQUIRE_Z3=1 LANEWORK_REQUIRE_CORPUS=1 LANEWORK_GENERATED=10000 LANEWORK_SEED=2000001 cargo test --release -p lanework-respill --test judge -- --nocapture",
    ));
    // Every accepted rewrite prints what the original prints, and is raced against it.
    all.push(step("real-code", "cargo run --quiet --release -p xtask -- real-code --race 8 --save"));
    // The programs that ship for devices are compiled again, and the command's options and the study run on an emulated device.
    all.push(step("kernels", "cargo xtask cuda --check"));
    all.push(step(
        "device",
        "LANEWORK_REQUIRE_CXX=1 cargo test --workspace --features lanework/emulated --test gpu",
    ));
    // Every size of a batch around those where warps, chunks and streams are full.
    all.push(step(
        "batches",
        "LANEWORK_BATCHES=all cargo test --release -p lanework-mayo-cuda --features emulated --lib odd_batch_sizes",
    ));
    // All published answers by the PTX which ships, executed on the CPU.
    all.push(step(
        "ptx",
        "LANEWORK_PTX=all cargo test --release -p lanework-mayo-cuda --features emulated,ptx --lib shipped",
    ));
    // Ours against other people's libraries, which `.ci/long` builds.
    all.push(step("peers", ".ci/peers"));
    // A wheel for other machines, installed by each Python that is here.
    all.push(step("wheel", ".ci/wheel"));
    // Chia's own tests with our module in place of chiavdf.
    all.push(step("chia", ".ci/chia"));
    all.push(step("removal", "cargo xtask removal"));
    all.push(step(
        "features",
        "cargo hack check --workspace --lib --each-feature --exclude lanework --exclude lanework-fuzz --exclude xtask",
    ));
    all.push(step("semver", ".ci/semver"));
    let folder = root.join("studies");
    let listed = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut studies: Vec<String> = listed
        .filter_map(Result::ok)
        .filter(|entry| entry.path().join("study.toml").is_file())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    studies.sort();
    all.extend(studies.iter().map(|study| {
        step(
            &format!("study-{study}"),
            &format!("cargo run --release --features peers -- study {study} --full --peers --save"),
        )
    }));
    Ok(all)
}

pub(crate) fn run(options: &Options) -> ExitCode {
    match go(Path::new("."), options) {
        Ok(code) => code,
        Err(why) => {
            why.print();
            ExitCode::from(2)
        }
    }
}

fn go(root: &Path, options: &Options) -> Result<ExitCode, Complaint> {
    let all = steps(root)?;
    if let Some(unknown) = options.steps.iter().find(|name| all.iter().all(|s| s.name != **name)) {
        return Err(Complaint::from(format!("no step is called {unknown}"))
            .help("`cargo xtask long --list` names them"));
    }
    let wanted = |step: &&Step| options.steps.is_empty() || options.steps.contains(&step.name);
    let chosen: Vec<&Step> = all.iter().filter(wanted).collect();
    if options.list {
        chosen.iter().for_each(|step| println!("{}: {}", step.name, step.command));
        return Ok(ExitCode::SUCCESS);
    }
    let mut log = read(root)?;
    if options.check {
        let records = in_full(history::load_all(&root.join("records")).map_err(|e| e.to_string())?.entries);
        let states: Vec<State> = chosen.iter().map(|step| state(step, &log, &records, &age)).collect();
        return Ok(report(&chosen, &states));
    }
    clean()?;
    let commit = git(&["rev-parse", "HEAD"])?;
    let mut failed = false;
    for step in chosen {
        println!("== {}: {}", step.name, step.command);
        let begin = Instant::now();
        let status = Command::new("bash").args(["-c", &step.command]).status();
        let exit = status.map_err(|e| format!("bash: {e}"))?.code().unwrap_or(-1);
        println!("-- {}: exit {exit} after {} s", step.name, begin.elapsed().as_secs());
        failed |= exit != 0;
        let run = Run {
            command: step.command.clone(),
            commit: commit.clone(),
            date: utc(SystemTime::now()),
            seconds: begin.elapsed().as_secs(),
            exit,
        };
        log.insert(step.name.clone(), run);
        // After each step, so its result is kept whatever happens to the next.
        let text = toml::to_string(&log).map_err(|e| e.to_string())?;
        fs::write(root.join(LOG), format!("{HEADER}{text}")).map_err(|e| format!("{LOG}: {e}"))?;
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn read(root: &Path) -> Result<Log, String> {
    match fs::read_to_string(root.join(LOG)) {
        Ok(text) => toml::from_str(&text).map_err(|e| format!("{LOG}: {e}")),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Log::new()),
        Err(e) => Err(format!("{LOG}: {e}")),
    }
}

/// Refuses a changed tree: the log would name a commit that did not run. Files that steps write themselves may differ.
fn clean() -> Result<(), String> {
    let changed =
        git(&["status", "--porcelain", "--", ".", ":!records", ":!studies/*/results.md", ":!.ci/long.toml"])?;
    if changed.is_empty() { Ok(()) } else { Err(format!("commit first, the log names commits:\n{changed}")) }
}

fn git(arguments: &[&str]) -> Result<String, String> {
    let out = Command::new("git").args(arguments).output().map_err(|e| format!("git: {e}"))?;
    if out.status.success() {
        Ok(String::from_utf8_lossy(&out.stdout).trim_end().to_owned())
    } else {
        Err(format!("git {}: {}", arguments.join(" "), String::from_utf8_lossy(&out.stderr).trim_end()))
    }
}

/// The number of commits between a run and the present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Age {
    Commits(u64),
    /// The commit is not in the history.
    Foreign,
    /// The checkout has no history to count in.
    NoHistory,
}

fn age(commit: &str) -> Age {
    if git(&["rev-parse", "--is-shallow-repository"]).as_deref() != Ok("false") {
        return Age::NoHistory;
    }
    if git(&["merge-base", "--is-ancestor", commit, "HEAD"]).is_err() {
        return Age::Foreign;
    }
    let count = git(&["rev-list", "--count", &format!("{commit}..HEAD")]);
    count.ok().and_then(|n| n.parse().ok()).map_or(Age::Foreign, Age::Commits)
}

/// What the log and the records say about a step.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Green(String),
    /// Not known to fail, and not known to pass either.
    Skipped(String),
    Red(String),
}

/// The study that a step runs, if it runs one.
fn study(step: &Step) -> Option<&str> {
    step.name.strip_prefix("study-")
}

/// A study's run in full, as its record has it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Full {
    study: String,
    commit: String,
    date: String,
}

/// The records of runs in full.
fn in_full(records: Vec<Entry>) -> Vec<Full> {
    let records = records.into_iter().map(|entry| entry.record);
    let full = records.filter(|record| is_full(&record.command, &record.machine.build.tree));
    full.map(|r| Full { study: r.study, commit: r.machine.build.commit, date: r.date }).collect()
}

/// Whether a record made by this command describes a run in full, of exactly the commit that it names.
fn is_full(command: &str, tree: &str) -> bool {
    let has = |option: &str| command.split(' ').any(|word| word == option);
    has("--full") && !has("--rows") && tree == "clean"
}

fn state(step: &Step, log: &Log, records: &[Full], age: &dyn Fn(&str) -> Age) -> State {
    let run = log.get(&step.name);
    let of_step = records.iter().filter(|record| study(step) == Some(&record.study));
    let record = of_step.max_by(|a, b| a.date.cmp(&b.date)).map(|r| (r.commit.as_str(), r.date.as_str()));
    let (commit, date) = match (run, record) {
        (None, None) if study(step).is_some_and(|study| NEED_A_DEVICE.contains(&study)) => {
            return State::Skipped("it needs a CUDA device, and has never run on one".to_owned());
        }
        (None, None) => return never(age(SINCE)),
        (Some(run), Some((commit, date))) if run.date.as_str() < date => (commit, date),
        (None, Some(newest)) => newest,
        (Some(run), _) if run.exit != 0 => {
            return State::Red(format!("exit {} on {}", run.exit, run.date));
        }
        (Some(run), _) if run.command != step.command => {
            return State::Red(format!("its last run was another command: {}", run.command));
        }
        (Some(run), _) => (run.commit.as_str(), run.date.as_str()),
    };
    match age(commit) {
        Age::Commits(n) if n <= OLDEST => State::Green(format!("passed {n} commits ago, {date}")),
        Age::Commits(n) => State::Red(format!("passed {n} commits ago, {date}; the limit is {OLDEST}")),
        Age::Foreign => State::Red(format!("passed at {commit}, which is not in this history")),
        Age::NoHistory => {
            State::Skipped(format!("passed {date}; this checkout has no history to count commits in"))
        }
    }
}

/// A step that has never run: `.ci/long` itself is young, or the step is overdue.
fn never(since: Age) -> State {
    match since {
        Age::Commits(n) if n <= OLDEST => {
            State::Skipped(format!("it has never run; due within {} commits", OLDEST - n))
        }
        Age::NoHistory => State::Skipped("it has never run".to_owned()),
        _ => State::Red("it has never run".to_owned()),
    }
}

fn report(steps: &[&Step], states: &[State]) -> ExitCode {
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for (step, state) in steps.iter().zip(states) {
        match state {
            State::Green(said) => {
                passed += 1;
                println!("long {}: {said}", step.name);
            }
            State::Skipped(why) => {
                skipped += 1;
                println!("SKIPPED long {}: {why}", step.name);
            }
            State::Red(why) => {
                failed += 1;
                println!("FAILED long {}: {why}; run `.ci/long {}`", step.name, step.name);
            }
        }
    }
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THERE: &dyn Fn(&str) -> Age = &|_| Age::Commits(12);

    fn step() -> Step {
        Step { name: "miri".to_owned(), command: "cargo xtask sound miri".to_owned() }
    }

    fn log(exit: i32) -> Log {
        let run = Run {
            command: step().command,
            commit: "c0ffee".to_owned(),
            date: "2026-11-23T10:00:00Z".to_owned(),
            seconds: 7,
            exit,
        };
        Log::from([("miri".to_owned(), run)])
    }

    fn is_red(state: &State, why: &str) -> bool {
        matches!(state, State::Red(said) if said.contains(why))
    }

    #[test]
    fn a_run_that_passed_lately_is_green_and_nothing_else_is() {
        let at = |log: &Log, age: &dyn Fn(&str) -> Age| state(&step(), log, &[], age);
        assert!(matches!(at(&log(0), THERE), State::Green(said) if said.contains("12 commits")));
        assert!(matches!(at(&log(0), &|_| Age::Commits(OLDEST)), State::Green(_)));
        assert!(is_red(&at(&log(0), &|_| Age::Commits(OLDEST + 1)), "301 commits"));
        assert!(is_red(&at(&log(0), &|_| Age::Foreign), "c0ffee"));
        assert!(matches!(at(&log(0), &|_| Age::NoHistory), State::Skipped(_)));
        assert!(is_red(&at(&log(1), THERE), "exit 1"));
        assert!(is_red(&at(&log(1), &|_| Age::NoHistory), "exit 1"));
        assert!(is_red(&at(&Log::new(), &|_| Age::Commits(OLDEST + 1)), "never"));
        assert!(is_red(&at(&Log::new(), &|_| Age::Foreign), "never"));
        assert!(matches!(at(&Log::new(), THERE), State::Skipped(why) if why.contains("within 288 commits")));
        let other = Step { command: "cargo xtask sound miri --all".to_owned(), ..step() };
        assert!(is_red(&state(&other, &log(0), &[], THERE), "another command"));
    }

    #[test]
    fn a_record_stands_for_a_run_that_is_older() {
        let step = Step { name: "study-spill-homes".to_owned(), command: step().command };
        let record = |study: &str, hour: u8| Full {
            study: study.to_owned(),
            commit: "facade".to_owned(),
            date: format!("2026-11-23T{hour:02}:00:00Z"),
        };
        let red = Log::from([(step.name.clone(), log(1)["miri"].clone())]);
        let with = |log: &Log, records: &[Full]| state(&step, log, records, THERE);
        assert!(matches!(with(&Log::new(), &[record("spill-homes", 9)]), State::Green(_)));
        assert!(matches!(
            with(&red, &[record("spill-homes", 9), record("spill-homes", 11)]),
            State::Green(_)
        ));
        assert!(is_red(&with(&red, &[record("spill-homes", 9), record("magma-lanes", 11)]), "exit 1"));
        let is_skipped = |state| matches!(state, State::Skipped(why) if why.contains("never"));
        assert!(is_skipped(with(&Log::new(), &[record("magma-lanes", 11)])));
        assert!(is_skipped(state(&super::tests::step(), &red, &[record("miri", 11)], THERE)));
    }

    #[test]
    fn what_needs_a_device_is_skipped_until_it_has_met_one() {
        let step = Step { name: "study-mayo-gpu".to_owned(), command: step().command };
        assert!(
            matches!(state(&step, &Log::new(), &[], THERE), State::Skipped(why) if why.contains("device"))
        );
        let red = Log::from([(step.name.clone(), log(1)["miri"].clone())]);
        assert!(is_red(&state(&step, &red, &[], THERE), "exit 1"));
    }

    #[test]
    fn a_record_in_full_is_of_the_commit_that_it_names() {
        assert!(is_full("lanework study spill-homes --full --save", "clean"));
        assert!(!is_full("lanework study spill-homes --save", "clean"));
        assert!(!is_full("lanework study spill-homes --full-text --save", "clean"));
        assert!(!is_full("lanework study spill-homes --full --save --rows sha256", "clean"));
        assert!(!is_full("lanework study spill-homes --full --save", "changed"));
    }

    #[test]
    fn every_study_is_a_step() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let names: Vec<String> = steps(&root).unwrap_or_default().into_iter().map(|s| s.name).collect();
        for name in ["miri", "fuzz", "study-leak-evidence", "study-magma-lanes"] {
            assert!(names.iter().any(|n| n == name), "{name} is not among {names:?}");
        }
    }
}
