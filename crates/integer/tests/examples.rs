//! The example runs, and refuses bad input.
#![cfg(not(miri))]

use std::process::Command;

/// The example's answer for A and B, if it has one. `cargo test` has built it beside this test.
fn inverse(a: &str, b: &str) -> Option<String> {
    let this = std::env::current_exe().expect("this test has a path");
    let built =
        this.parent().and_then(|deps| deps.parent()).expect("it lies in deps").join("examples/inverse");
    let out = Command::new(&built)
        .args([a, b])
        .output()
        .unwrap_or_else(|e| panic!("{}: {e}; cargo build --examples makes it", built.display()));
    out.status.success().then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

#[test]
fn inverses_are_right() {
    let p = format!("7{}ed", "f".repeat(61)); // 2^255 - 19
    let of_p = "4c1bb3e44c1bb3e44c1bb3e44c1bb3e44c1bb3e44c1bb3e44c1bb3e44c1bb3d9";
    assert_eq!(inverse("10001", &p).as_deref(), Some(of_p));
    // A is longer than B.
    let long = "2f6435ae25bba050df7f7b17a590fed817aa94eeef9a200322760eb18964e02d";
    assert_eq!(inverse(&format!("8{}3039", "0".repeat(123)), &p).as_deref(), Some(long));
    assert_eq!(inverse("3", "7").as_deref(), Some("5"));
    assert_eq!(inverse("2", &"f".repeat(128)), Some(format!("8{}", "0".repeat(127))));
}

#[test]
fn what_has_no_inverse_is_refused() {
    for (a, b) in [("6", "9"), ("3", "8"), ("", "7"), ("3", "0x7"), ("0", "7")] {
        assert_eq!(inverse(a, b), None, "{a} {b}");
    }
    assert_eq!(inverse("3", &format!("1{}1", "0".repeat(127))), None, "longer than 512 bits");
}
