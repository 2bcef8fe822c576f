//! The example moves a spilled value, and refuses a file without a case.
#![cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]

use std::process::{Command, Output};

/// Runs the example that `cargo test` has built beside this test.
fn rehome(arguments: &[&str]) -> Output {
    let this = std::env::current_exe().expect("this test has a path");
    let built =
        this.parent().and_then(|deps| deps.parent()).expect("it lies in deps").join("examples/rehome");
    Command::new(&built)
        .args(arguments)
        .output()
        .unwrap_or_else(|e| panic!("{}: {e}; cargo build --examples makes it", built.display()))
}

#[test]
fn a_spilled_value_moves_to_a_vector_register() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("f.s");
    let spill = "\tmovq %rdi, -8(%rsp)\n";
    let text = format!(
        "\t.globl f\nf:\n{spill}\tleaq (%rsi,%rsi), %rdi\n\tmovq -8(%rsp), %rax\n\taddq %rdi, %rax\n\tret\n"
    );
    std::fs::write(&file, &text).expect("written");
    let file = file.to_str().expect("text");

    let out = rehome(&[file, "measure f(5, 7)"]);
    let (made, error) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    if error.contains("Unavailable") {
        assert!(std::env::var_os("LANEWORK_REQUIRE_TRACE").is_none_or(|v| v != "1"), "{error}");
        eprintln!("SKIPPED: {error}");
        return;
    }
    assert!(out.status.success(), "{error}");
    assert!(made.contains("%xmm") && !made.contains("(%rsp)"), "{made}");

    let out = rehome(&[file]);
    assert!(!out.status.success() && out.stdout.is_empty());
}
