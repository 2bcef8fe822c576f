//! The example seals and opens, and refuses a damaged file.
#![cfg(not(miri))]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Runs the example that `cargo test` has built beside this test.
fn file_chunks(directory: &Path, arguments: [&str; 4]) -> Output {
    let this = std::env::current_exe().expect("this test has a path");
    let built =
        this.parent().and_then(|deps| deps.parent()).expect("it lies in deps").join("examples/file_chunks");
    Command::new(&built)
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap_or_else(|e| panic!("{}: {e}; cargo build --examples makes it", built.display()))
}

#[test]
fn a_file_comes_back_whole_or_not_at_all() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    let plain: Vec<u8> = (0..200_000u32).map(|i| (i.wrapping_mul(i) >> 8) as u8).collect();
    fs::write(at("key"), [7; 32]).expect("written");
    fs::write(at("plain"), &plain).expect("written");

    let out = file_chunks(directory.path(), ["seal", "key", "plain", "sealed"]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let out = file_chunks(directory.path(), ["open", "key", "sealed", "opened"]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(fs::read(at("opened")).expect("is there") == plain);

    // A bit in the third chunk.
    let mut sealed = fs::read(at("sealed")).expect("is there");
    assert!(sealed.len() > plain.len());
    sealed[150_000] ^= 1;
    fs::write(at("damaged"), &sealed).expect("written");
    let out = file_chunks(directory.path(), ["open", "key", "damaged", "other"]);
    let text = String::from_utf8_lossy(&out.stderr);
    assert!(!out.status.success() && text.contains("chunk 2"), "{text}");
    assert!(!at("other").exists() && !at("other.partial").exists());
}
