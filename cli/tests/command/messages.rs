//! Every refusal is two lines on standard error: what is wrong, and what to do about it.
#![forbid(unsafe_code)]

use crate::common::{Place, code, json, stderr};

/// A place with something of each kind.
fn place() -> Place {
    let place = Place::new();
    place.put("text", b"text");
    place.put("short", &[1; 31]);
    place.put("key", &(1..=32).collect::<Vec<u8>>());
    place.put("noise.pem", b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n");
    place.put("f.s", b"\t.globl f\nf:\tmovq %rdi, -8(%rsp)\n\tmovq -8(%rsp), %rax\n\tret\n");
    place.put("none.s", b"f:\tmovq %rdi, -8(%rsp)\n\tret\n");
    place.put("proof.json", b"{");
    place
}

/// Typical bad input: the arguments, the exit code, and a part of each line.
const CASES: [(&[&str], i32, &str, &str); 35] = [
    (&["mayo", "sign", "--key", "noise.pem", "text"], 2, "noise.pem: ", "lanework mayo keygen"),
    (&["mayo", "verify", "--key", "noise.pem", "text"], 2, "noise.pem: ", "lanework mayo keygen"),
    (&["mayo", "sign", "--key", "key", "-o", "x", "text", "short"], 2, "--output: ", "FILE.sig"),
    (&["mayo", "keygen", "--set", "mayo4"], 2, "'mayo4'", "mayo5"),
    (&["magma", "encrypt", "--key-file", "short", "text"], 2, "short: not a key: 31 bytes", "32 raw bytes"),
    (
        &["magma", "encrypt", "--key-file", "key", "text", "-o", "text"],
        2,
        "are the same file",
        "name another",
    ),
    (
        &["magma", "encrypt", "--key-file", "key", "text", "-o", "short"],
        2,
        "short: already exists",
        "--force",
    ),
    (&["magma", "encrypt", "--key-file", "key", "text", "-o", "absent/x"], 2, "no directory absent", "mkdir"),
    (&["magma", "encrypt", "--key-file", "key", "--mode", "ecb", "text"], 2, "--mode ecb: ", "--hazmat"),
    (&["magma", "decrypt", "--key-file", "key", "text"], 2, "text: ", "--mode"),
    (&["magma", "mac", "--key-file", "key", "--tag-length", "9", "text"], 2, "--tag-length: ", "4 to 8"),
    (&["vdf", "prove", "--iterations", "9"], 2, "no group to work in", "--challenge"),
    (
        &["vdf", "prove", "--challenge", "00", "--iterations", "0"],
        2,
        "--iterations: 0 squarings",
        "ask for 1",
    ),
    (&["vdf", "verify", "proof.json"], 2, "proof.json: not a proof in JSON", "lanework vdf prove"),
    (&["vdf", "verify", "--challenge", "00"], 2, "nothing to verify", "--proof"),
    (&["respill", "analyse", "none.s"], 2, "none.s: no function in it", ".globl"),
    (&["respill", "analyse", "f.s", "--function", "g"], 2, "f.s: no function 'g' in it", "choose among f"),
    (
        &["respill", "measure", "f.s"],
        2,
        "required arguments were not provided: <--case",
        "write lanework respill measure",
    ),
    (&["study", "nothing"], 2, "no study 'nothing'", "lanework study list"),
    (&["bench", "mayo/round9"], 2, "no subject matches 'mayo/round9'", "--list"),
    (&["bench", "magma/ctr/16", "--only", "sse9"], 2, "variant 'sse9'", "choose among avx2"),
    (&["bench", "--backend", "sse9", "--list"], 2, "no backend 'sse9'", "choose one of portable"),
    (&["check", "magma7"], 2, "nothing to check under 'magma7'", "choose mayo"),
    (&["history", "check", "--records", "nowhere"], 2, "nowhere: no such directory", "--records"),
    (&["report"], 2, "records: no such directory", "lanework bench --save"),
    (&["--verbose", "doctor"], 2, "--verbose: ", "leave it out"),
    (&["bench", "--seconds", "-5"], 2, "from 0.1 to 86400 seconds", "--help"),
    (&["check", "--leaks", "--seconds", "-0.5"], 2, "from 0.1 to 86400 seconds", "--help"),
    // A variable that a script forgot to set is not a choice of everything.
    (&["bench", ""], 2, "WHAT", "--help"),
    (&["check", ""], 2, "WHAT", "--help"),
    (&["tune", ""], 2, "WHAT", "--help"),
    (&["compare", "portable", "avx2", "--on", ""], 2, "--on", "--help"),
    (&["bench", "--process", "/no/such/program", "true"], 2, "cannot be run", "sh -c"),
    (&["history", "compare", "absent.json", "absent.json"], 2, "absent.json: ", "history list"),
    (&["bench", "--old", "/no/such/program"], 2, "cannot be run", "older `lanework`"),
];

#[test]
fn a_refusal_says_what_is_wrong_and_what_to_do() {
    let place = place();
    for (args, exit, what, remedy) in CASES {
        let output = place.run(args);
        let told = stderr(&output);
        assert_eq!(code(&output), exit, "{args:?}: {told}");
        assert!(output.stdout.is_empty(), "{args:?}: something came out");
        let (error, help) =
            told.split_once("\nhelp: ").unwrap_or_else(|| panic!("{args:?}: no help: {told}"));
        let error = error.strip_prefix("error: ").unwrap_or_else(|| panic!("{args:?}: {told}"));
        let help = help.strip_suffix('\n').expect("a line");
        assert!(error.contains(what) && help.contains(remedy), "{args:?}: {told}");
        for said in [error, help] {
            assert!(!said.ends_with(['.', '!', ';']), "{args:?}: a full stop: {said}");
            assert!(!said.contains('\n'), "{args:?}: {said}");
            let first = said.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            let name = first.chars().all(|c| c.is_uppercase() || c.is_numeric());
            assert!(name || !first.starts_with(char::is_uppercase), "{args:?}: upper case: {said}");
        }
        // The same two fields under --json.
        let output = place.run(&[&["--json"], args].concat());
        // On standard error if standard output is for the result.
        let object = json(if output.stdout.is_empty() {
            output.stderr.split(|byte| *byte == b'\n').next().expect("a line")
        } else {
            &output.stdout
        });
        assert_eq!((object["exit"].as_i64(), object["error"].as_str()), (Some(exit.into()), Some(error)));
        assert_eq!(object["help"], help, "{args:?}");
    }
}

/// A full disk loses what was printed, whatever it was.
#[cfg(target_os = "linux")]
#[test]
fn what_could_not_be_printed_is_an_error() {
    let place = place();
    for args in [&["--help"][..], &["--version"], &["bench", "--help"], &["bench", "--list"], &["man"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a full disk");
        let output = place.command(args).stdout(full).output().expect("the command starts");
        assert_eq!(code(&output), 2, "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).starts_with("error: standard output: "), "{args:?}: {}", stderr(&output));
    }
}
