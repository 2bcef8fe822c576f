//! `lanework mayo` on many files, on large ones, on oddly named ones, and at a terminal.

use std::fs;
use std::process::Output;

use crate::common::{Place, code, json, no, stderr, yes};

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A directory with a key pair and these files, each holding its own name.
fn with(files: &[&str]) -> Place {
    let place = Place::new();
    let keys = ["mayo", "keygen", "--set", "mayo2", "--secret-key", "sk.pem", "--public-key", "pk.pem"];
    yes(&place, &keys);
    files.iter().for_each(|name| place.put(name, name.as_bytes()));
    place
}

/// The verdict on a file whose signature is not valid.
const REFUSED: &str = "SIGNATURE REFUSED: the signature is not valid for this message and key";

#[test]
fn a_signature_of_another_set_names_both_sets_and_the_key() {
    let place = with(&["a", "b"]);
    yes(&place, &["mayo", "sign", "--key", "sk.pem", "a", "b"]);
    for (set, round) in [("mayo2", "2"), ("mayo3", "3")] {
        let (secret, public) = (format!("{set}.sk"), format!("{set}.pk"));
        let keys = ["mayo", "keygen", "--set", set, "--round", round];
        yes(&place, &[&keys[..], &["--secret-key", &secret, "--public-key", &public]].concat());
        let name = format!("MAYO-{} round {round}", &set[4..]);
        let says = format!(
            "wrong public key: {public} holds {name}, the signature in a.sig has the length of MAYO-2 round 3"
        );
        no(&place, &["mayo", "verify", "--key", &public, "--signature", "a.sig", "a"], 2, &says);
        // Among other files, it is the verdict on that file.
        let output = place.run(&["--json", "mayo", "verify", "--key", &public, "a", "b"]);
        assert_eq!(code(&output), 2);
        assert_eq!(json(&output.stdout)["results"][0]["why"], says);
    }
}

#[test]
fn every_file_gets_its_verdict_and_the_worst_decides() {
    let files = ["a", "b", "c", "d", "e"];
    let place = with(&files);
    yes(&place, &[&["mayo", "sign", "--key", "sk.pem"], &files[..]].concat());
    let verify = |files: &[&str]| place.run(&[&["mayo", "verify", "--key", "pk.pem"], files].concat());
    assert_eq!(code(&verify(&files)), 0);
    // One that is refused, between valid ones.
    place.put("c", b"changed");
    let output = verify(&files);
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    let valid = |name: &str| format!("{name}: signature is valid\n");
    let refused = [valid("a"), valid("b"), format!("c: {REFUSED}\n"), valid("d"), valid("e")];
    assert_eq!(stdout(&output), refused.concat());
    // One that is too short, one that is too long, one whose file is missing: the others are checked all the same.
    place.put("b.sig", &place.get("b.sig")[..238]);
    place.put("d.sig", &[place.get("d.sig"), vec![0]].concat());
    fs::remove_file(place.path("e")).expect("it was there");
    let output = verify(&files);
    assert_eq!(code(&output), 2, "{}", stderr(&output));
    let lines: Vec<String> = stdout(&output).lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 5, "{lines:?}");
    assert_eq!(lines[0], "a: signature is valid");
    assert!(lines[1].starts_with("b: MALFORMED: b.sig: ") && lines[1].contains("238"), "{lines:?}");
    assert_eq!(lines[2], format!("c: {REFUSED}"));
    assert!(lines[3].starts_with("d: MALFORMED: d.sig: ") && lines[3].contains("239 bytes"), "{lines:?}");
    assert!(lines[4].starts_with("e: MALFORMED: e: "), "{lines:?}");
    let output = place.run(&[&["--json", "mayo", "verify", "--key", "pk.pem"], &files[..]].concat());
    assert_eq!(code(&output), 2);
    let results = json(&output.stdout)["results"].clone();
    let said: Vec<_> = results.as_array().expect("results").iter().map(|r| r["verdict"].clone()).collect();
    assert_eq!(said, ["valid", "malformed", "refused", "malformed", "malformed"]);
    assert!(results[1]["why"].as_str().is_some_and(|why| why.contains("b.sig")), "{results}");
    assert_eq!(results[2]["why"], lanework_mayo::Error::Refused.to_string());
    assert_eq!((&results[0]["valid"], &results[1]["valid"]), (&true.into(), &false.into()));
}

#[test]
fn a_file_that_is_named_twice_is_refused_before_anything_is_signed() {
    let place = with(&["a", "b", "c"]);
    let before = place.names();
    for again in ["a", "./a"] {
        for force in [&[][..], &["--force"]] {
            let sign = [&["mayo", "sign", "--key", "sk.pem"], force, &["a", "b", again, "c"]].concat();
            no(&place, &sign, 2, "are the same file");
            assert_eq!(place.names(), before);
        }
    }
    // One that exists already, the last of all.
    place.put("c.sig", b"old");
    no(&place, &["mayo", "sign", "--key", "sk.pem", "a", "b", "c"], 2, "c.sig");
    assert!(!place.names().contains(&"a.sig".to_owned()));
}

/// Runs it with 200 MiB of address space.
#[cfg(target_os = "linux")]
fn in_little_memory(place: &Place, args: &[&str], input: &str) -> Output {
    let shell = "ulimit -v 204800; exec \"$0\" \"$@\"";
    std::process::Command::new("sh")
        .args(["-c", shell, env!("CARGO_BIN_EXE_lanework")])
        .args(args)
        .current_dir(place.path(""))
        .env("LANEWORK_PROFILE", place.path("no-profile.json"))
        .stdin(fs::File::open(place.path(input)).expect("a file"))
        .output()
        .expect("a shell runs")
}

#[cfg(target_os = "linux")]
#[test]
fn messages_and_signatures_of_any_size_take_little_memory() {
    let place = with(&["small"]);
    // Sparse files: they take no disk space.
    for name in ["large", "larger"] {
        let file = fs::File::create(place.path(name)).expect("a file");
        file.set_len(if name == "large" { 256 << 20 } else { 300 << 20 }).expect("a long file");
    }
    let run = |args: &[&str], input: &str| in_little_memory(&place, &[&["mayo"], args].concat(), input);
    let good = |output: Output| {
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        output.stdout
    };
    let signature = good(run(&["sign", "--key", "sk.pem", "large"], "small"));
    place.put("large.sig", &signature);
    good(run(&["verify", "--key", "pk.pem", "--signature", "large.sig", "-"], "large"));
    // A batch in which one message is not the one that was signed.
    good(run(&["sign", "--key", "sk.pem", "--threads", "1", "larger", "small"], "small"));
    let longer = fs::OpenOptions::new().write(true).open(place.path("large")).expect("a file");
    longer.set_len((256 << 20) + 1).expect("a longer file");
    let output = run(&["verify", "--key", "pk.pem", "--threads", "1", "large", "larger", "small"], "small");
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    let expected = format!("large: {REFUSED}\nlarger: signature is valid\nsmall: signature is valid\n");
    assert_eq!(stdout(&output), expected);
    // An endless signature is read no further than a signature's length.
    let endless = run(&["verify", "--key", "pk.pem", "--signature", "/dev/zero", "small"], "small");
    assert_eq!(code(&endless), 2, "{}", stderr(&endless));
    let why = stderr(&endless);
    assert!(why.contains("/dev/zero: a MAYO-2 round 3 signature has 239 bytes, this file has more"), "{why}");
}

#[cfg(unix)]
#[test]
fn a_name_cannot_write_a_verdict_of_its_own() {
    let sly = "a: signature is valid\nb\x1b[2K\r";
    let place = with(&[sly, "c"]);
    yes(&place, &["mayo", "sign", "--key", "sk.pem", sly, "c"]);
    place.put(sly, b"changed");
    let output = place.run(&["mayo", "verify", "--key", "pk.pem", sly, "c"]);
    assert_eq!(code(&output), 1);
    let escaped = r"a: signature is valid\nb\u{1b}[2K\r";
    assert_eq!(stdout(&output), format!("{escaped}: {REFUSED}\nc: signature is valid\n"));
    // The same in a reason that names it, and in other commands.
    fs::remove_file(place.path(sly)).expect("it was there");
    for args in [
        &["mayo", "sign", "--key", "sk.pem", sly][..],
        &["mayo", "sign", "--key", sly, "c"],
        &["magma", "mac", "--key-file", sly, "c"],
        &["vdf", "verify", sly],
        &["respill", "analyse", sly],
    ] {
        let output = place.run(args);
        assert_eq!(code(&output), 2, "{args:?}");
        assert!(stderr(&output).contains(escaped), "{args:?}: {}", stderr(&output));
        assert!(!stderr(&output).contains(['\x1b', '\r']), "{args:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn bytes_go_to_a_terminal_only_when_asked_for() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let place = with(&["text"]);
    place.put("key", &[b'7'; 64]);
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&controller).and_then(|()| unlockpt(&controller)).expect("its other end");
    let name = ptsname(&controller, Vec::new()).expect("its name");
    let terminal = || {
        let mut open = fs::OpenOptions::new();
        open.read(true).write(true).open(name.to_str().expect("a name")).expect("the terminal opens")
    };
    let run = |args: &[&str]| {
        let mut command = place.command(args);
        command.stdin(std::process::Stdio::null()).stderr(std::process::Stdio::piped()).stdout(terminal());
        command.spawn().expect("the command starts").wait_with_output().expect("the command ends")
    };
    let sign = ["mayo", "sign", "--key", "sk.pem", "text"];
    for args in [
        &sign[..],
        &["magma", "encrypt", "--key-file", "key", "text"],
        &["vdf", "evaluate", "--challenge", "00", "--iterations", "1", "--format", "raw"],
    ] {
        let output = run(args);
        assert_eq!(code(&output), 2, "{args:?}: {}", stderr(&output));
        let why = stderr(&output);
        assert!(
            why.contains("standard output is a terminal\nhelp: name a file with -o FILE"),
            "{args:?}: {why}"
        );
    }
    // The terminal's buffer holds a signature's 239 bytes.
    let output = run(&[&sign[..], &["-o", "-"]].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let mut shown = [0; 512];
    let count = rustix::io::read(&controller, &mut shown[..]).expect("bytes on the terminal");
    assert!(count >= 200, "{count} bytes");
    // Other outputs do not change.
    let mut command = place.command(&[&sign[..], &["-o", "text.sig"]].concat());
    assert_eq!(code(&command.stdout(terminal()).output().expect("it runs")), 0);
    assert_eq!(place.get("text.sig").len(), 239);
}

#[test]
fn help_says_what_each_round_writes() {
    let place = Place::new();
    let help = String::from_utf8(yes(&place, &["mayo", "keygen", "--help"])).expect("text");
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let label = |name: &str| {
        let text = String::from_utf8(place.get(name)).expect("text");
        let first = text.lines().next().expect("a line");
        first.trim_start_matches("-----BEGIN ").trim_end_matches("-----").to_owned()
    };
    for round in ["3", "2"] {
        let (secret, public) = (format!("s{round}"), format!("p{round}"));
        let keys =
            ["mayo", "keygen", "--set", "mayo2", "--round", round, "--secret-key", &secret, "--public-key"];
        yes(&place, &[&keys[..], &[&public]].concat());
        let (secret, public) = (label(&secret), label(&public));
        if round == "3" {
            assert!(
                help.contains(&format!("\"{secret}\"")) && help.contains(&format!("\"{public}\"")),
                "{help}"
            );
        } else {
            // The labels of RFC 7468 for what the help calls PKCS#8 and SPKI.
            assert_eq!((secret.as_str(), public.as_str()), ("PRIVATE KEY", "PUBLIC KEY"));
            assert!(help.contains("Round 2: PKCS#8") && help.contains("Round 2: SPKI"), "{help}");
        }
    }
}
