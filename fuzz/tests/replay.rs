//! The runner as its users start it: its arguments and its output.
#![forbid(unsafe_code)]

use std::process::{Command, Output};

fn replay(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_replay")).args(args).output().expect("the runner starts")
}

#[test]
fn bad_input_is_named() {
    for (args, says) in [
        (&["no_such_target"][..], "no target 'no_such_target'"),
        (&["--runs"], "--runs takes a number"),
        (&["--runs", "many"], "--runs many: "),
        (&["--seconds", "-1"], "--seconds -1: "),
    ] {
        let output = replay(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.starts_with("replay: ") && told.contains(says), "{args:?}: {told}");
    }
}

#[test]
fn one_target_is_run_and_counted() {
    let name = lanework_fuzz::TARGETS[0].name;
    let output = replay(&["--runs", "3", "--seed", "7", name]);
    let told = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{told}");
    let line = told.lines().find(|line| line.starts_with(name)).expect("a line about the target");
    assert!(line.contains("3 mutated: ok"), "{line}");
    assert!(told.contains("--seed 7") && told.ends_with("1 passed, 0 failed, 0 skipped\n"), "{told}");
}
