//! The example runs, and refuses what it should.
#![cfg(not(miri))]

use std::process::{Command, Output};

/// Runs an example that `cargo test` has built beside this test.
fn example(name: &str, arguments: &[&str]) -> Output {
    let this = std::env::current_exe().expect("this test has a path");
    let built =
        this.parent().and_then(|deps| deps.parent()).expect("it lies in deps").join("examples").join(name);
    Command::new(&built)
        .args(arguments)
        .output()
        .unwrap_or_else(|e| panic!("{}: {e}; cargo build --examples makes it", built.display()))
}

#[test]
fn the_asked_backend_runs_and_an_unknown_one_is_refused() {
    let out = example("backends", &["portable"]);
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success() && text.ends_with("sum on portable: 500500\n"), "{text}");

    let best = example("backends", &[]);
    let text = String::from_utf8_lossy(&best.stdout);
    assert!(best.status.success() && text.ends_with(": 500500\n"), "{text}");

    let out = example("backends", &["sse9"]);
    let text = String::from_utf8_lossy(&out.stderr);
    assert!(!out.status.success() && text.contains("sse9"), "{text}");
}
