//! The chores as users start them: an unknown chore is refused, and a check that changes nothing can be run from anywhere.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::{Command, Output};

fn xtask(args: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(args)
        .current_dir(folder)
        .env("CARGO_MANIFEST_DIR", env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("the command starts")
}

#[test]
fn what_is_no_chore_is_refused() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    for args in [
        &[][..],
        &["fuzzy"],
        &["fuzz", "--runs", "many"],
        &["cuda", "--check", "--hashes"],
        &["cuda", "--floors", "--hashes"],
    ] {
        let output = xtask(args, here);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(!output.stderr.is_empty() && output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn what_ships_for_devices_is_of_its_sources_from_wherever_it_is_asked() {
    let elsewhere = tempfile::tempdir().expect("a folder");
    let output = xtask(&["cuda", "--hashes"], elsewhere.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
