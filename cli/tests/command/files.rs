//! What the command reads and writes, in every primitive: no input is overwritten, files have the permissions that their
//! owner wants, pairs belong together, and no result is lost.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Output, Stdio};

use crate::common::{Place, code, no, stderr, yes};
use lanework_mayo::{Engine, PublicKey, SecretKey};

const KEYGEN: [&str; 4] = ["mayo", "keygen", "--set", "mayo1"];
const PAIR: [&str; 4] = ["--secret-key", "sk", "--public-key", "pk"];
const NONCE: [&str; 2] = ["--nonce", "12def06b3c130a59"];
const IV: [&str; 2] = ["--iv", "67bed654"];

/// A key pair, a Magma key and two messages.
fn place() -> Place {
    let place = Place::new();
    yes(&place, &[&KEYGEN[..], &PAIR].concat());
    place.put("key", &[7; 32]);
    place.put("key2", &[8; 32]);
    place.put("m", b"attack at dawn");
    place.put("m2", b"attack at noon");
    place
}

/// The command, started by a shell that first changes its streams or its umask.
fn through_shell(place: &Place, script: &str, args: &[&str]) -> Output {
    let command = place.command(args);
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(script).arg(command.get_program()).args(command.get_args());
    shell.current_dir(place.path("")).env("LANEWORK_PROFILE", place.path("no-profile.json"));
    shell.output().expect("a shell")
}

fn pair_belongs_together(place: &Place) -> bool {
    let text = |name| String::from_utf8(place.get(name)).expect("text");
    let engine = Engine::best();
    let secret = SecretKey::from_pem(engine, &text("sk")).expect("a whole key");
    secret.public_key(engine) == PublicKey::from_pem(&text("pk")).expect("a whole key")
}

#[test]
fn nothing_is_written_over_what_is_read() {
    let place = place();
    let sign = ["mayo", "sign", "--force", "--key", "sk"];
    yes(&place, &[&sign[..], &["-o", "s", "m"]].concat());
    yes(&place, &["magma", "encrypt", "--key-file", "key", "-o", "box", "m"]);
    fs::create_dir(place.path("dir")).expect("a directory");
    symlink("sk", place.path("to-sk")).expect("a link");
    symlink(".", place.path("here")).expect("a link");
    fs::hard_link(place.path("m"), place.path("m-too")).expect("a link");
    place.put("f.s", b".globl f\n.type f, @function\nf:\n ret\n");
    let keygen =
        |secret, public| [&KEYGEN[..], &["--force", "--secret-key", secret, "--public-key", public]].concat();
    let magma = |job: &[&'static str], rest: &[&'static str]| {
        [&["magma"], job, &["--force", "--key-file", "key"], rest].concat()
    };
    let wrap = |mac, rest: &[&'static str]| {
        [&["magma", "wrap", "--force", "--mac-key-file", mac, "--enc-key-file", "key2"], &IV[..], rest]
            .concat()
    };
    let chain = ["--challenge", "0a", "--bits", "512", "--iterations", "1000", "--force"];
    let cases: Vec<Vec<&str>> = vec![
        // Two outputs that are the same file, even before it exists.
        keygen("k", "k"),
        keygen("k", "./k"),
        keygen("k", "dir/../k"),
        keygen("k", "here/k"),
        keygen("sk", "to-sk"),
        [&sign[..], &["m", "m"]].concat(),
        // An output that is an input.
        [&sign[..], &["-o", "sk", "m"]].concat(),
        [&sign[..], &["-o", "to-sk", "m"]].concat(),
        [&sign[..], &["-o", "m", "m"]].concat(),
        [&sign[..], &["-o", "m-too", "m"]].concat(),
        [&sign[..], &["m", "m.sig"]].concat(),
        magma(&["encrypt"], &["-o", "key", "m"]),
        magma(&["encrypt"], &["-o", "here/m", "m"]),
        magma(&["encrypt", "--mode", "ctr", "--iv", "01020304"], &["-o", "m", "m"]),
        magma(&["decrypt"], &["-o", "box", "box"]),
        magma(&["decrypt"], &["-o", "key", "box"]),
        magma(&["seal", NONCE[0], NONCE[1]], &["-o", "m", "m"]),
        magma(&["seal", NONCE[0], NONCE[1], "--aad-file", "m2"], &["-o", "m2", "m"]),
        magma(&["open", NONCE[0], NONCE[1]], &["-o", "key", "box"]),
        wrap("key", &["-o", "key", "m"]),
        wrap("key", &["-o", "key2", "m"]),
        wrap("key", &["-o", "m", "m"]),
        [&["vdf", "prove"], &chain[..], &["--checkpoint", "kept", "-o", "here/kept"]].concat(),
        [&["vdf", "evaluate"], &chain[..], &["--checkpoint", "m", "-o", "m"]].concat(),
        vec!["respill", "rewrite", "f.s", "--force", "--home", "xmm", "-o", "here/f.s"],
        vec!["report", "m", "--force", "-o", "m"],
    ];
    place.put("m.sig", b"signed earlier");
    let before: Vec<(String, Vec<u8>)> = snapshot(&place);
    for args in &cases {
        let output = place.run(args);
        assert_eq!(code(&output), 2, "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("are the same file"), "{args:?}: {}", stderr(&output));
        assert!(snapshot(&place) == before, "{args:?}: something was written");
    }
    // The same by descriptors, for files that a shell has opened.
    for script in ["exec \"$0\" \"$@\" < m >> m", "exec \"$0\" \"$@\" 3<> m < m >&3"] {
        for args in
            [&magma(&["encrypt"], &[])[..], &[&sign[..], &["-"]].concat(), &[&sign[..], &["m"]].concat()]
        {
            let output = through_shell(&place, script, args);
            assert_eq!(code(&output), 2, "{args:?}: {}", stderr(&output));
            assert!(stderr(&output).contains("standard output and"), "{args:?}: {}", stderr(&output));
            assert!(snapshot(&place) == before, "{script} {args:?}: something was written");
        }
    }
}

/// A pipe that is input and output would be read and written at once, without an end.
#[test]
fn a_pipe_is_not_read_and_written_at_once() {
    let place = place();
    assert!(Command::new("mkfifo").arg(place.path("pipe")).status().expect("mkfifo runs").success());
    fs::hard_link(place.path("pipe"), place.path("same")).expect("a link");
    // One reader and one writer, so that nobody waits; the message is short, so that it fits the pipe.
    let open = || fs::OpenOptions::new().read(true).write(true).open(place.path("pipe")).expect("the pipe");
    let mut ends = open();
    let magma = |job: &[&'static str], rest: &[&'static str]| {
        [&["magma"], job, &["--force", "--key-file", "key"], rest].concat()
    };
    for args in [
        magma(&["encrypt"], &["-o", "pipe", "pipe"]),
        magma(&["encrypt"], &["-o", "same", "pipe"]),
        magma(&["encrypt", "--mode", "ctr", "--iv", "01020304"], &["-o", "pipe", "pipe"]),
        magma(&["decrypt"], &["-o", "pipe", "pipe"]),
        magma(&["seal", NONCE[0], NONCE[1]], &["-o", "pipe", "pipe"]),
        magma(&["open", NONCE[0], NONCE[1]], &["-o", "pipe", "pipe"]),
        vec!["mayo", "sign", "--key", "sk", "-o", "pipe", "pipe"],
    ] {
        no(&place, &args, 2, "are one pipe or device");
    }
    let (input, output) = (open(), open());
    let output = place
        .command(&magma(&["encrypt"], &[]))
        .stdin(input)
        .stdout(output)
        .stderr(Stdio::piped())
        .output()
        .expect("it runs");
    assert_eq!(code(&output), 2, "{}", stderr(&output));
    assert!(stderr(&output).contains("standard output and standard input"), "{}", stderr(&output));
    // Nothing was written: the next bytes of the pipe are ours.
    std::io::Write::write_all(&mut ends, b"ours").expect("room in the pipe");
    let mut next = [0; 4];
    std::io::Read::read_exact(&mut ends, &mut next).expect("four bytes");
    assert_eq!(&next, b"ours");
}

fn snapshot(place: &Place) -> Vec<(String, Vec<u8>)> {
    let files = place.names().into_iter().filter(|name| place.path(name).is_file());
    files.map(|name| (name.clone(), place.get(&name))).collect()
}

#[test]
fn one_stream_is_not_read_twice() {
    let place = place();
    let secret = place.get("sk");
    // The key would be read to its end, and then the empty message would be signed.
    for (key, message) in [("/dev/stdin", "-"), ("-", "/dev/stdin"), ("/dev/fd/0", "/dev/stdin"), ("-", "-")]
    {
        let output = place.fed(&["mayo", "sign", "--key", key, "-o", "s", message], &secret);
        assert_eq!(code(&output), 2, "{key} {message}: {}", stderr(&output));
        assert!(stderr(&output).contains("can serve only one") || stderr(&output).contains("read only once"));
        assert!(!place.path("s").exists(), "{key} {message}: something was signed");
    }
    for args in [
        &["magma", "encrypt", "--key-file", "/dev/stdin", "-o", "s"][..],
        &["magma", "mac", "--key-file", "key", "-", "/dev/stdin"],
        &["magma", "mac", "--key-file", "/dev/stdin", "-"],
        &["mayo", "verify", "--key", "pk", "--signature", "/dev/stdin", "-"],
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        &["respill", "validate", "/dev/stdin", "-"],
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        &["respill", "lint", "--case", "-", "-"],
    ] {
        no(&place, args, 2, "standard input");
    }
    // A file can be read twice, and /dev/null can be shared.
    assert_eq!(
        code(&place.run(&["magma", "mac", "--key-file", "key", "m", "m", "/dev/null", "/dev/null"])),
        0
    );
    let out = through_shell(
        &place,
        "exec \"$0\" \"$@\" </dev/null >/dev/null",
        &["mayo", "sign", "--key", "sk", "-"],
    );
    assert_eq!(code(&out), 0, "{}", stderr(&out));
    yes(&place, &[&KEYGEN[..], &["--secret-key", "/dev/null", "--public-key", "/dev/null"]].concat());
}

#[test]
fn outputs_have_the_rights_that_their_owner_wants() {
    let place = place();
    let mode = |name: &str| fs::metadata(place.path(name)).expect("a file").permissions().mode() & 0o777;
    for (mask, public) in [("077", 0o600), ("022", 0o644), ("002", 0o664), ("000", 0o666), ("027", 0o640)] {
        for name in ["new-sk", "new-pk", "sig", "box", "plain"] {
            let _ = fs::remove_file(place.path(name));
        }
        let run = |args: &[&str]| {
            let output = through_shell(&place, &format!("umask {mask}; exec \"$0\" \"$@\""), args);
            assert_eq!(code(&output), 0, "{args:?}: {}", stderr(&output));
        };
        run(&[&KEYGEN[..], &["--secret-key", "new-sk", "--public-key", "new-pk"]].concat());
        run(&["mayo", "sign", "--key", "sk", "-o", "sig", "m"]);
        run(&["magma", "encrypt", "--key-file", "key", "-o", "box", "m"]);
        run(&["magma", "decrypt", "--key-file", "key", "-o", "plain", "box"]);
        let modes = ["new-sk", "new-pk", "sig", "box", "plain"].map(mode);
        assert_eq!(modes, [0o600, public, public, public, 0o600], "under {mask}");
        // A replaced file keeps its permissions where they are stricter, and loses them where they are not.
        let set = |name: &str, mode| {
            fs::set_permissions(place.path(name), fs::Permissions::from_mode(mode)).expect("ours")
        };
        set("sig", 0o600);
        set("plain", 0o666);
        run(&["mayo", "sign", "--force", "--key", "sk", "-o", "sig", "m"]);
        run(&["magma", "decrypt", "--force", "--key-file", "key", "-o", "plain", "box"]);
        assert_eq!([mode("sig"), mode("plain")], [0o600, 0o600], "under {mask}");
    }
}

#[test]
fn pairs_of_runs_at_once_leave_pairs_that_belong_together() {
    let place = place();
    for round in 0..12 {
        let start = || {
            let mut command = place.command(&[&KEYGEN[..], &PAIR, &["--force"]].concat());
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command.spawn().expect("the command starts")
        };
        let mut runs: Vec<_> = (0..6).map(|_| start()).collect();
        for run in &mut runs {
            assert!(run.wait().expect("it ends").success());
        }
        assert!(pair_belongs_together(&place), "in round {round}");
    }
    assert_eq!(place.names(), ["key", "key2", "m", "m2", "pk", "sk"]);
}

#[cfg(target_os = "linux")]
#[test]
fn half_a_pair_is_never_left() {
    let place = Place::new();
    for (secret, public) in [("sk", "/dev/full"), ("/dev/full", "pk")] {
        let args = [&KEYGEN[..], &["--secret-key", secret, "--public-key", public]].concat();
        no(&place, &args, 2, "No space left");
        assert!(place.names().is_empty(), "{:?}", place.names());
    }
    // An old pair stays as it is.
    yes(&place, &[&KEYGEN[..], &PAIR].concat());
    let before = snapshot(&place);
    no(
        &place,
        &[&KEYGEN[..], &["--force", "--secret-key", "sk", "--public-key", "/dev/full"]].concat(),
        2,
        "No space",
    );
    assert!(snapshot(&place) == before);
}

#[test]
fn a_result_is_not_lost_where_a_stream_is_closed() {
    let place = place();
    yes(&place, &["mayo", "sign", "--key", "sk", "-o", "m.sig", "m"]);
    let chain = ["--challenge", "0a", "--bits", "512", "--iterations", "20000", "--checkpoint", "kept"];
    let prove = [&["vdf", "prove"], &chain[..]].concat();
    for args in [
        &["mayo", "sign", "--key", "sk", "m"][..],
        &["mayo", "verify", "--key", "pk", "m"],
        &["--json", "mayo", "sign", "--key", "sk", "-o", "s", "m"],
        &[&KEYGEN[..], &["--secret-key", "-", "--public-key", "new"]].concat(),
        &["magma", "encrypt", "--key-file", "key", "m"],
        &["magma", "mac", "--key-file", "key", "m"],
        &prove,
        &[&prove[..], &["--format", "hex"]].concat(),
        &["vdf", "discriminant", "--challenge", "0a"],
        &["doctor"],
        &["completions", "bash"],
        &["man"],
    ] {
        let output = through_shell(&place, "exec \"$0\" \"$@\" >&-", args);
        assert_eq!(code(&output), 2, "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("standard output: closed"), "{args:?}: {}", stderr(&output));
    }
    assert_eq!(place.names(), ["key", "key2", "m", "m.sig", "m2", "pk", "sk"], "refused before any work");
    // Thrown away on purpose, in both usual ways, or not needed at all.
    for (script, args) in [
        ("exec \"$0\" \"$@\" >/dev/null", &["mayo", "sign", "--key", "sk", "m"][..]),
        ("exec \"$0\" \"$@\" 1<>/dev/null", &["mayo", "sign", "--key", "sk", "m"]),
        ("exec \"$0\" \"$@\" >&-", &["mayo", "sign", "--force", "--key", "sk", "-o", "m.sig", "m"]),
        ("exec \"$0\" \"$@\" >&- 2>&-", &["magma", "encrypt", "--key-file", "key", "-o", "box", "m"]),
    ] {
        let output = through_shell(&place, script, args);
        assert_eq!(code(&output), 0, "{script} {args:?}: {}", stderr(&output));
    }
    // A closed stream is not read as the empty message.
    for args in [&["mayo", "sign", "--key", "sk", "-"][..], &["magma", "encrypt", "--key-file", "key"]] {
        let output = through_shell(&place, "exec \"$0\" \"$@\" <&-", args);
        assert_eq!((code(&output), output.stdout.len()), (2, 0), "{args:?}");
        assert!(stderr(&output).contains("standard input: closed"), "{}", stderr(&output));
    }
}

#[test]
fn an_output_that_cannot_be_is_refused_before_the_work() {
    let place = place();
    fs::create_dir(place.path("sealed")).expect("a directory");
    fs::set_permissions(place.path("sealed"), fs::Permissions::from_mode(0o555)).expect("ours");
    // A user whom permissions do not stop can write there.
    let locked = fs::write(place.path("sealed/try"), "").is_err();
    if !locked {
        eprintln!("skipped: a directory without the right to write, which does not stop this user");
    }
    let chain = ["--challenge", "0a", "--bits", "512", "--iterations", "20000", "--checkpoint", "kept"];
    for output in
        ["absent/x", "m/x", "m/", "sealed/x"].iter().filter(|name| locked || !name.starts_with("sealed"))
    {
        for job in ["prove", "evaluate"] {
            let refused = place.run(&[&["vdf", job], &chain[..], &["-o", output]].concat());
            assert_eq!(code(&refused), 2, "{output}: {}", stderr(&refused));
            assert!(!place.path("kept").exists(), "{job} {output}: the work was begun");
        }
        no(&place, &[&KEYGEN[..], &["--secret-key", "new", "--public-key", output]].concat(), 2, output);
        no(&place, &["mayo", "sign", "--key", "sk", "-o", output, "m"], 2, output);
        no(&place, &["magma", "encrypt", "--key-file", "key", "-o", output, "m"], 2, output);
    }
}
