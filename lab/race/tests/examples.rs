//! The example runs, and prints a race behind a gate that passed.

use std::process::Command;

#[test]
fn two_functions_are_raced() {
    let this = std::env::current_exe().expect("this test has a path");
    let built =
        this.parent().and_then(|deps| deps.parent()).expect("it lies in deps").join("examples/two_functions");
    let run = |seconds: &str| {
        let out = Command::new(&built).arg(seconds).output();
        out.unwrap_or_else(|e| panic!("{}: {e}; cargo build --examples makes it", built.display()))
    };
    let out = run("0.05");
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success() && text.contains("bits/1000"), "{text}");
    assert!(["one-by-one", "built-in"].iter().all(|name| text.contains(name)), "{text}");
    assert!(!run("soon").status.success());
}
