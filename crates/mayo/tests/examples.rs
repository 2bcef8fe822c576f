//! The example accepts a release, and names the file that was changed.
#![cfg(not(miri))]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use lanework_mayo::{Engine, Params, Round, SecretKey, Set};

/// Runs the example that `cargo test` has built beside this test.
fn verify_release(directory: &Path) -> Output {
    let this = std::env::current_exe().expect("this test has a path");
    let built = this
        .parent()
        .and_then(|deps| deps.parent())
        .expect("it lies in deps")
        .join("examples/verify_release");
    Command::new(&built)
        .args(["key.pem", "one.tar", "two.tar"])
        .current_dir(directory)
        .output()
        .unwrap_or_else(|e| panic!("{}: {e}; cargo build --examples makes it", built.display()))
}

#[test]
fn a_release_is_verified_and_a_changed_file_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    let engine = Engine::best();
    let secret = SecretKey::generate_os(Params::of(Round::Three, Set::Mayo2)).expect("a key");
    let pem = secret.public_key(engine).to_pem().expect("a key file");
    fs::write(at("key.pem"), pem).expect("written");
    for (name, content) in [("one.tar", vec![1; 100_000]), ("two.tar", Vec::new())] {
        let signature = secret.sign(engine, &content).expect("a signature");
        fs::write(at(name), content).expect("written");
        fs::write(at(&format!("{name}.sig")), signature.as_bytes()).expect("written");
    }
    let out = verify_release(directory.path());
    assert_eq!(String::from_utf8_lossy(&out.stdout), "one.tar: good\ntwo.tar: good\n");
    assert!(out.status.success());

    fs::write(at("two.tar"), b"changed").expect("written");
    let out = verify_release(directory.path());
    let text = String::from_utf8_lossy(&out.stdout);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.len() == 2 && lines[0] == "one.tar: good", "{text}");
    assert!(lines[1].starts_with("two.tar: ") && lines[1] != "two.tar: good", "{text}");
    assert!(!out.status.success());

    fs::remove_file(at("one.tar.sig")).expect("removed");
    let out = verify_release(directory.path());
    let text = String::from_utf8_lossy(&out.stderr);
    assert!(!out.status.success() && text.contains("one.tar.sig"), "{text}");
}
