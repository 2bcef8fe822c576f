//! The example finds the comparison that leaks, and no fault in the other.
#![cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]

use std::process::Command;

#[test]
fn the_early_comparison_is_found() {
    // `cargo test` has built it beside this test.
    let this = std::env::current_exe().expect("this test has a path");
    let built = this
        .parent()
        .and_then(|deps| deps.parent())
        .expect("it lies in deps")
        .join("examples/compare_secrets");
    let out = Command::new(&built)
        .output()
        .unwrap_or_else(|e| panic!("{}: {e}; cargo build --examples makes it", built.display()));
    let (text, error) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    if error.contains("Unavailable") {
        assert!(std::env::var_os("LANEWORK_REQUIRE_TRACE").is_none_or(|v| v != "1"), "{error}");
        eprintln!("SKIPPED: {error}");
        return;
    }
    assert!(out.status.success(), "{error}");
    assert!(text.contains("the path differs") && text.contains("early"), "{text}");
    assert!(!text.contains("early: 0 ") && text.contains("steady: 0 differences\n"), "{text}");
}
