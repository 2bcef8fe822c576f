//! The example stops, resumes from its checkpoint, and verifies.
#![cfg(not(miri))]

use std::path::Path;
use std::process::{Command, Output};

/// Runs the example that `cargo test` has built beside this test.
fn prove_and_resume(checkpoint: &Path, stop: &[&str]) -> Output {
    let this = std::env::current_exe().expect("this test has a path");
    let built = this
        .parent()
        .and_then(|deps| deps.parent())
        .expect("it lies in deps")
        .join("examples/prove_and_resume");
    Command::new(&built)
        .args(["a challenge", "20000"])
        .arg(checkpoint)
        .args(stop)
        .output()
        .unwrap_or_else(|e| panic!("{}: {e}; cargo build --examples makes it", built.display()))
}

#[test]
fn an_interrupted_proof_goes_on_from_its_checkpoint() {
    let directory = tempfile::tempdir().expect("a directory");
    let checkpoint = directory.path().join("checkpoint");
    let out = prove_and_resume(&checkpoint, &["5000"]);
    let text = String::from_utf8_lossy(&out.stderr);
    assert!(!out.status.success() && text.contains("Cancelled"), "{text}");
    assert!(checkpoint.exists());

    let out = prove_and_resume(&checkpoint, &[]);
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let resumed = text.strip_prefix("resumed after ").and_then(|rest| rest.split(' ').next());
    let resumed: u64 = resumed.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{text}"));
    assert!((5000..20000).contains(&resumed), "{text}");
    assert!(text.contains("verified 20000 squarings by a proof of "), "{text}");
    assert!(!checkpoint.exists());
}
