//! The example runs on a device, or says why there is none.

use std::process::{Command, Output};

/// Runs the example that `cargo test` has built beside this test.
fn device(arguments: &[&str]) -> Output {
    let this = std::env::current_exe().expect("this test has a path");
    let built =
        this.parent().and_then(|deps| deps.parent()).expect("it lies in deps").join("examples/device");
    Command::new(&built)
        .args(arguments)
        .output()
        .unwrap_or_else(|e| panic!("{}: {e}; cargo build --examples makes it", built.display()))
}

#[test]
fn the_example_says_what_the_library_says() {
    let out = device(&[]);
    let (text, error) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    match lanework_cuda::devices() {
        Err(why) => assert!(!out.status.success() && error.contains(&format!("{why:?}")), "{error}"),
        Ok(cards) => {
            assert!(out.status.success(), "{error}");
            assert!(text.starts_with(&cards[0].to_string()), "{text}");
            assert!(text.ends_with("1024 bytes there and back\n"), "{text}");
        }
    }
}

#[test]
fn the_emulated_device_is_there_if_it_was_built() {
    let out = device(&["emulated"]);
    let text = String::from_utf8_lossy(&out.stdout);
    assert_eq!(out.status.success(), cfg!(feature = "emulated"), "{}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(text.ends_with("1024 bytes there and back\n"), cfg!(feature = "emulated"), "{text}");
}
