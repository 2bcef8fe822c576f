//! The example runs, and refuses what it should.
#![cfg(not(miri))]

use std::process::Command;

/// What the example says of these digits, if it has an answer. `cargo test` has built it beside this test.
fn fermat(digits: &str) -> Option<String> {
    let this = std::env::current_exe().expect("this test has a path");
    let built =
        this.parent().and_then(|deps| deps.parent()).expect("it lies in deps").join("examples/fermat");
    let out = Command::new(&built)
        .arg(digits)
        .output()
        .unwrap_or_else(|e| panic!("{}: {e}; cargo build --examples makes it", built.display()));
    out.status.success().then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

#[test]
fn primes_pass_and_composites_do_not() {
    for prime in
        [format!("7{}ed", "f".repeat(61)), "7fffffff".into(), "5".into(), format!("1{}", "f".repeat(130))]
    {
        let expected = (prime.len() < 129).then(|| "may be a prime".to_owned());
        assert_eq!(fermat(&prime), expected, "{prime}");
    }
    for composite in [format!("7{}eb", "f".repeat(61)), "f".repeat(128), "f".into()] {
        assert_eq!(fermat(&composite).as_deref(), Some("not a prime"), "{composite}");
    }
}

#[test]
fn what_is_not_an_odd_number_is_refused() {
    for digits in ["", "8", "1", "0x11", "twelve"] {
        assert_eq!(fermat(digits), None, "{digits}");
    }
}
