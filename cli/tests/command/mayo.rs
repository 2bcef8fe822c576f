//! `lanework mayo` as its users run it: files, pipes, bad input, exit codes.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn lanework(dir: &Path, args: &[&str]) -> Output {
    lanework_fed(dir, args, b"")
}

fn lanework_fed(dir: &Path, args: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_lanework"))
        .args(args)
        .current_dir(dir)
        .env("LANEWORK_PROFILE", dir.join("no-profile.json"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    // A child that refuses its arguments may close the pipe before it has read.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    child.wait_with_output().expect("the command ends")
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("an exit code, not a signal")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A directory with a key pair of the set and round, and a file to sign.
fn with_keys(set: &str, round: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let made = lanework(
        dir.path(),
        &[
            "mayo",
            "keygen",
            "--set",
            set,
            "--round",
            round,
            "--secret-key",
            "sk.pem",
            "--public-key",
            "pk.pem",
        ],
    );
    assert_eq!(code(&made), 0, "{}", stderr(&made));
    fs::write(dir.path().join("text"), b"attack at dawn\n").expect("a file");
    dir
}

#[test]
fn sign_and_verify_in_every_set_and_round() {
    for round in ["2", "3"] {
        for set in ["mayo1", "mayo2", "mayo3", "mayo5"] {
            let dir = with_keys(set, round);
            let signed = lanework(dir.path(), &["mayo", "sign", "--key", "sk.pem", "text"]);
            assert_eq!(code(&signed), 0, "{}", stderr(&signed));
            fs::write(dir.path().join("text.sig"), &signed.stdout).expect("a file");
            let verify = ["mayo", "verify", "--key", "pk.pem", "--signature", "text.sig", "text"];
            assert_eq!(code(&lanework(dir.path(), &verify)), 0);
            fs::write(dir.path().join("text"), b"attack at noon\n").expect("a file");
            let refused = lanework(dir.path(), &verify);
            assert_eq!(code(&refused), 1);
            assert!(String::from_utf8_lossy(&refused.stdout).contains("REFUSED"));
        }
    }
}

#[test]
fn pipes_on_both_ends() {
    let dir = with_keys("mayo2", "3");
    let signed = lanework_fed(dir.path(), &["mayo", "sign", "--key", "sk.pem", "-"], b"from a pipe");
    assert_eq!(signed.stdout.len(), 239);
    fs::write(dir.path().join("sig"), &signed.stdout).expect("a file");
    let args = ["mayo", "verify", "--key", "pk.pem", "--signature", "sig", "-"];
    assert_eq!(code(&lanework_fed(dir.path(), &args, b"from a pipe")), 0);
    assert_eq!(code(&lanework_fed(dir.path(), &args, b"from a pipe!")), 1);
}

#[test]
fn many_files_at_once() {
    let dir = with_keys("mayo1", "3");
    let names: Vec<String> = (0..70).map(|i| format!("file{i}")).collect();
    for name in &names {
        fs::write(dir.path().join(name), name).expect("a file");
    }
    let files: Vec<&str> = names.iter().map(String::as_str).collect();
    let sign =
        [&["mayo", "sign", "--key", "sk.pem", "--threads", "2", "--verify"], files.as_slice()].concat();
    let signed = lanework(dir.path(), &sign);
    assert_eq!(code(&signed), 0, "{}", stderr(&signed));
    assert_eq!(code(&lanework(dir.path(), &sign)), 2, "existing signatures are not replaced unasked");
    let verify = [&["mayo", "verify", "--key", "pk.pem"], files.as_slice()].concat();
    assert_eq!(code(&lanework(dir.path(), &verify)), 0);
    fs::write(dir.path().join("file42"), "changed").expect("a file");
    let refused = lanework(dir.path(), &[&["--json"], verify.as_slice()].concat());
    assert_eq!(code(&refused), 1);
    let answer: serde_json::Value = serde_json::from_slice(&refused.stdout).expect("JSON");
    let bad: Vec<&str> = answer["results"]
        .as_array()
        .expect("an array")
        .iter()
        .filter(|r| r["valid"] == false)
        .filter_map(|r| r["file"].as_str())
        .collect();
    assert_eq!(bad, ["file42"]);
}

#[test]
fn bad_input_names_the_file_and_exits_2() {
    let dir = with_keys("mayo1", "3");
    let other = with_keys("mayo1", "2");
    fs::copy(other.path().join("pk.pem"), dir.path().join("round2.pem")).expect("a copy");
    fs::write(dir.path().join("short.sig"), [0; 463]).expect("a file");
    fs::write(dir.path().join("noise.pem"), "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n")
        .expect("a file");
    fs::write(dir.path().join("empty.pem"), "").expect("a file");
    fs::write(dir.path().join("binary.pem"), [0xff; 100]).expect("a file");
    fs::write(dir.path().join("huge.pem"), vec![b'A'; 1 << 20]).expect("a file");
    let cases: &[(&[&str], &str)] = &[
        (&["mayo", "sign", "--key", "absent.pem", "text"], "absent.pem"),
        (&["mayo", "sign", "--key", "sk.pem", "absent"], "absent"),
        (&["mayo", "sign", "--key", "pk.pem", "text"], "pk.pem"),
        (&["mayo", "sign", "--key", "empty.pem", "text"], "empty.pem"),
        (&["mayo", "verify", "--key", "sk.pem", "--signature", "short.sig", "text"], "sk.pem"),
        (&["mayo", "verify", "--key", "noise.pem", "--signature", "short.sig", "text"], "noise.pem"),
        (&["mayo", "verify", "--key", "binary.pem", "--signature", "short.sig", "text"], "binary.pem"),
        (&["mayo", "verify", "--key", "huge.pem", "--signature", "short.sig", "text"], "huge.pem"),
        (&["mayo", "verify", "--key", "pk.pem", "--signature", "short.sig", "text"], "short.sig"),
        // The length of a round-3 signature does not fit a round-2 key.
        (&["mayo", "verify", "--key", "round2.pem", "--signature", "short.sig", "text"], "short.sig"),
        (&["mayo", "verify", "--key", "-", "--signature", "-", "text"], "standard input"),
        (&["mayo", "keygen", "--set", "mayo4", "--secret-key", "a", "--public-key", "b"], "mayo4"),
        (
            &["mayo", "keygen", "--set", "mayo1", "--round", "1", "--secret-key", "a", "--public-key", "b"],
            "1",
        ),
        (&["mayo", "keygen", "--set", "mayo1", "--secret-key", "sk.pem", "--public-key", "b"], "sk.pem"),
        (&["mayo", "keygen", "--set", "mayo1", "--secret-key", "a", "--public-key", "a"], "a"),
        (&["--backend", "mayo=", "mayo", "sign", "--key", "sk.pem", "text"], "--backend"),
    ];
    for (args, named) in cases {
        let output = lanework(dir.path(), args);
        assert_eq!(code(&output), 2, "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(named), "{args:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{args:?} wrote to standard output");
    }
    assert!(!dir.path().join("b").exists(), "a refused key generation leaves no half pair behind");
}

#[test]
fn a_backend_that_is_not_here_exits_3() {
    let dir = with_keys("mayo1", "3");
    let output = Command::new(env!("CARGO_BIN_EXE_lanework"))
        .args(["--backend", "avx512", "mayo", "sign", "--key", "sk.pem", "text"])
        .current_dir(dir.path())
        .env("LANEWORK_MASK", "avx512f")
        .output()
        .expect("the command runs");
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    assert!(stderr(&output).contains("avx512"), "{}", stderr(&output));
}

#[test]
fn the_backend_that_ran_is_named() {
    let dir = with_keys("mayo1", "3");
    let args =
        ["--json", "--backend", "portable", "mayo", "sign", "--key", "sk.pem", "-o", "out.sig", "text"];
    let signed = lanework(dir.path(), &args);
    let answer: serde_json::Value = serde_json::from_slice(&signed.stdout).expect("JSON");
    assert_eq!(answer["backend"], "portable");
    assert_eq!(answer["round"], 3);
}

#[cfg(unix)]
#[test]
fn secret_keys_are_private_files() {
    use std::os::unix::fs::PermissionsExt;
    let dir = with_keys("mayo1", "3");
    // Public keys are as the user's mask has them: see `files.rs`.
    let mode = |name| fs::metadata(dir.path().join(name)).expect("a file").permissions().mode() & 0o777;
    assert_eq!(mode("sk.pem"), 0o600);
}

#[cfg(unix)]
#[test]
fn pipes_and_links_are_written_through_and_never_replaced() {
    use std::os::unix::fs::{FileTypeExt, symlink};
    let dir = with_keys("mayo2", "3");
    let at = |name: &str| dir.path().join(name);
    // A stand-in for a device that needs no privileges to make.
    assert!(Command::new("mkfifo").arg(at("pipe")).status().expect("mkfifo runs").success());
    // Open at both ends, so neither side waits for the other, whatever the command does.
    let mut ends = fs::OpenOptions::new().read(true).write(true).open(at("pipe")).expect("the pipe opens");
    let args = ["mayo", "sign", "--key", "sk.pem", "text", "--force", "-o"];
    let signed = lanework(dir.path(), &[args.as_slice(), &["pipe"]].concat());
    let still_a_pipe = fs::metadata(at("pipe")).expect("it is there").file_type().is_fifo();
    assert!(still_a_pipe, "an output that is not a file was replaced by one");
    assert_eq!(code(&signed), 0, "{}", stderr(&signed));
    std::io::Read::read_exact(&mut ends, &mut [0; 239]).expect("a signature is in the pipe");

    fs::write(at("file"), "old").expect("a file");
    symlink("file", at("link")).expect("a link");
    assert_eq!(code(&lanework(dir.path(), &[args.as_slice(), &["link"]].concat())), 0);
    assert!(fs::symlink_metadata(at("link")).expect("it is there").is_symlink());
    assert_eq!(fs::read(at("file")).expect("a file").len(), 239);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_that_says_so() {
    let dir = with_keys("mayo2", "3");
    let signed = lanework(dir.path(), &["mayo", "sign", "--key", "sk.pem", "text", "-o", "text.sig"]);
    assert_eq!(code(&signed), 0, "{}", stderr(&signed));
    for args in [
        &["mayo", "sign", "--key", "sk.pem", "text"][..],
        &["mayo", "verify", "--key", "pk.pem", "text"],
        &["doctor"],
        &["completions", "bash"],
        &["man"],
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("the full device");
        let output = Command::new(env!("CARGO_BIN_EXE_lanework"))
            .args(args)
            .current_dir(dir.path())
            .env("LANEWORK_PROFILE", dir.path().join("no-profile.json"))
            .stdout(full)
            .stderr(Stdio::piped())
            .output()
            .expect("the command runs");
        assert_eq!(code(&output), 2, "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("standard output: No space left"), "{args:?}: {}", stderr(&output));
        assert!(!stderr(&output).contains("panicked"), "{args:?}: {}", stderr(&output));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn file_names_need_not_be_unicode() {
    use std::os::unix::ffi::OsStrExt;
    let dir = with_keys("mayo2", "3");
    let odd = std::ffi::OsStr::from_bytes(b"odd\xffname");
    fs::write(dir.path().join(odd), "oddly named").expect("a file");
    for args in
        [&["--json", "mayo", "sign", "--key", "sk.pem"][..], &["--json", "mayo", "verify", "--key", "pk.pem"]]
    {
        let output = Command::new(env!("CARGO_BIN_EXE_lanework"))
            .args(args)
            .arg(odd)
            .arg("text")
            .current_dir(dir.path())
            .env("LANEWORK_PROFILE", dir.path().join("no-profile.json"))
            .output()
            .expect("the command runs");
        assert_eq!(code(&output), 0, "{args:?}: {}", stderr(&output));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).expect("one JSON object");
    }
}

#[test]
fn a_pair_of_keys_is_written_whole_or_not_at_all() {
    let dir = tempfile::tempdir().expect("a directory");
    let args =
        ["mayo", "keygen", "--set", "mayo1", "--secret-key", "sk.pem", "--public-key", "absent/pk.pem"];
    let output = lanework(dir.path(), &args);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("no directory absent"), "{}", stderr(&output));
    assert!(!stderr(&output).contains(".tmp"), "{}", stderr(&output));
    assert_eq!(fs::read_dir(dir.path()).expect("a directory").count(), 0, "something was left behind");
}

#[test]
fn a_damaged_profile_stops_what_reads_it_and_nothing_else() {
    let dir = with_keys("mayo2", "3");
    // `lanework` runs everything with this profile.
    fs::write(dir.path().join("no-profile.json"), "{").expect("a file");
    let signed = lanework(dir.path(), &["mayo", "sign", "--key", "sk.pem", "text"]);
    assert_eq!(code(&signed), 2);
    assert!(stderr(&signed).contains("no-profile.json") && stderr(&signed).contains("lanework tune"));
    for args in [&["man"][..], &["bench", "--list"], &["doctor"]] {
        assert_eq!(code(&lanework(dir.path(), args)), 0, "{args:?}");
    }
    let doctor = lanework(dir.path(), &["doctor"]);
    assert!(String::from_utf8_lossy(&doctor.stdout).contains("damaged"), "the doctor does not say so");
}

/// `keygen` makes the secret key readable only by its owner; a copy that others may read is used, with a warning.
#[cfg(unix)]
#[test]
fn a_shared_secret_key_is_warned_of() {
    use std::os::unix::fs::PermissionsExt;
    let dir = with_keys("mayo1", "3");
    let sign =
        |more: &[&str]| lanework(dir.path(), &[&["mayo", "sign", "--key", "sk.pem", "text"], more].concat());
    let quiet = sign(&[]);
    assert_eq!((code(&quiet), stderr(&quiet).as_str()), (0, ""));
    fs::set_permissions(dir.path().join("sk.pem"), fs::Permissions::from_mode(0o640)).expect("a mode");
    let shared = sign(&[]);
    assert_eq!(
        (code(&shared), stderr(&shared).as_str()),
        (0, "warning: sk.pem: others may read this secret (mode 640)\nhelp: chmod 600 sk.pem\n")
    );
    let report = sign(&["--json", "-o", "text.sig"]);
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).expect("one JSON object");
    assert_eq!(report["warnings"].as_array().map(Vec::len), Some(1), "{report}");
}
