//! Captures how this build was made, for the machine card. Never fails: a missing fact is "unknown".

use std::env;
use std::process::Command;

fn output(program: &str, args: &[&str]) -> Option<String> {
    let out = Command::new(program).args(args).output().ok()?;
    if !out.status.success() {
        return None;
    }
    let text = String::from_utf8(out.stdout).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let set = |name: &str, value: Option<String>| {
        let value = value.unwrap_or_else(|| "unknown".into());
        println!("cargo::rustc-env=LANEWORK_LAB_{name}={}", value.replace('\n', " "));
    };
    set("RUSTC", output(&rustc, &["--version"]));
    set("PROFILE", env::var("PROFILE").ok());
    set("OPT_LEVEL", env::var("OPT_LEVEL").ok());
    set("TARGET", env::var("TARGET").ok());
    set("FEATURES", env::var("CARGO_CFG_TARGET_FEATURE").ok());
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default().replace('\u{1f}', " ");
    set("RUSTFLAGS", Some(if flags.is_empty() { "none".into() } else { flags }));

    // Outside a checkout, or without git, both stay "unknown".
    set("COMMIT", output("git", &["rev-parse", "--verify", "HEAD"]));
    // This compares contents, so a file whose time alone differs does not count as changed.
    let tree = Command::new("git").args(["--no-optional-locks", "diff", "--quiet", "HEAD"]).output().ok();
    set(
        "TREE",
        tree.and_then(|out| match out.status.code() {
            Some(0) => Some("clean".into()),
            Some(1) => Some("changed".into()),
            _ => None,
        }),
    );
    let branch = output("git", &["symbolic-ref", "-q", "HEAD"]);
    // Not the index: every other git command renews it, and all dependents of this crate would be recompiled.
    for name in std::iter::once("HEAD").chain(branch.as_deref()) {
        if let Some(path) = output("git", &["rev-parse", "--git-path", name])
            && std::path::Path::new(&path).exists()
        {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}
