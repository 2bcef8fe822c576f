//! What commands leave of their keys in memory when they end: nothing on the heap, the stacks or anywhere else.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::process::{Command, Stdio};

use crate::common::{Place, yes};
use lanework_leakage::residue::{Needles, Region, at_exit};

/// The memory of a command that succeeds.
///
/// None if the system forbids looking.
fn memory(mut command: Command) -> Option<Vec<Region>> {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    match at_exit(&mut command) {
        Ok((memory, status)) => {
            assert!(status.success(), "{command:?}: {status}");
            Some(memory)
        }
        Err(e) if std::env::var_os("LANEWORK_REQUIRE_TRACE").is_none() => {
            eprintln!("skipped: the memory of a command cannot be read: {e}");
            None
        }
        Err(e) => panic!("{e}"),
    }
}

/// What was found, and where.
fn found(needles: &Needles, memory: &[Region]) -> Vec<String> {
    let places = memory.iter().filter_map(|region| {
        let (_, at) = needles.find(&region.bytes)?;
        let near = String::from_utf8_lossy(&region.bytes[at.saturating_sub(8)..][..40]).into_owned();
        Some(format!("{} at {at:#x}: {near:?}", region.name))
    });
    places.collect()
}

/// The command leaves nothing of the secrets; a shell that has read the same file does.
fn clean(place: &Place, needles: &Needles, args: &[&str], input: Option<&str>) {
    let stdin = || match input {
        Some(name) => Stdio::from(std::fs::File::open(place.path(name)).expect("a file")),
        None => Stdio::null(),
    };
    let mut command = place.command(args);
    command.stdin(stdin());
    let Some(memory) = memory(command) else { return };
    assert!(memory.iter().any(|region| region.name.contains("[heap]")), "the heap was looked at");
    assert_eq!(found(needles, &memory), Vec::<String>::new(), "{args:?}");
}

/// A check that has never failed shows nothing: a shell that reads the file keeps what it has read.
fn planted(place: &Place, needles: &Needles, file: &str) {
    let mut shell = Command::new("sh");
    shell.args(["-c", "read -r a <\"$0\"; read -r b <\"$0\"; key=$(cat \"$0\"); exit 0"]);
    shell.arg(place.path(file)).stdin(Stdio::null());
    if let Some(memory) = memory(shell) {
        assert!(!found(needles, &memory).is_empty(), "what a shell has read of {file} was not found");
    }
}

/// The part of the document's first line that spells the seed, and the seed.
fn of_pem(pem: &[u8]) -> Needles {
    let text = std::str::from_utf8(pem).expect("text");
    let line = text.lines().nth(1).expect("a line of the key");
    let engine = lanework_mayo::Engine::best();
    let key = lanework_mayo::SecretKey::from_pem(engine, text).expect("a key");
    let seed = key.expose_seed().to_vec();
    Needles::new([("PEM", &line.as_bytes()[24..54], 12), ("seed", &seed[..], 8)])
}

#[test]
fn mayo_leaves_nothing_of_its_key() {
    for (set, round) in [("mayo1", "3"), ("mayo2", "2"), ("mayo5", "3")] {
        let place = Place::new();
        place.put("text", b"attack at dawn");
        let keygen =
            ["mayo", "keygen", "--set", set, "--round", round, "--secret-key", "sk", "--public-key", "pk"];
        // The key is known only once it is made; the memory is searched then.
        let Some(made) = memory(place.command(&keygen)) else { return };
        let pem = place.get("sk");
        let needles = of_pem(&pem);
        assert_eq!(found(&needles, &made), Vec::<String>::new(), "{keygen:?}");
        planted(&place, &needles, "sk");
        clean(&place, &needles, &["mayo", "sign", "--key", "sk", "-o", "sig", "text"], None);
        clean(&place, &needles, &["mayo", "sign", "--key", "-", "-o", "sig2", "text"], Some("sk"));
        place.put("text2", b"attack at noon");
        clean(&place, &needles, &["mayo", "sign", "--key", "sk", "text", "text2"], None);
        // To a stream, which has a different buffer.
        let to_stream = [
            "mayo",
            "keygen",
            "--set",
            set,
            "--round",
            round,
            "--secret-key",
            "/dev/stdout",
            "--public-key",
            "pk2",
        ];
        let mut command = place.command(&to_stream);
        let out = std::fs::File::create(place.path("out")).expect("a file");
        let mut pipe = Command::new("cat").stdin(Stdio::piped()).stdout(out).spawn().expect("cat runs");
        command.stdout(pipe.stdin.take().expect("a pipe")).stderr(Stdio::null());
        let (made, status) = at_exit(&mut command).expect("as before");
        drop(command);
        assert!(status.success() && pipe.wait().expect("it ends").success());
        assert_eq!(found(&of_pem(&place.get("out")), &made), Vec::<String>::new(), "{to_stream:?}");
    }
}

#[test]
fn magma_leaves_nothing_of_its_keys() {
    let place = Place::new();
    let secret: [u8; 32] = std::array::from_fn(|i| (i * 151 + 77) as u8);
    let hexadecimal = crate::common::hex(&secret);
    let passphrase = b"a horse, a battery, a staple: correct";
    place.put("raw", &secret);
    place.put("hex", format!("{hexadecimal}\n").as_bytes());
    place.put("other", &[9; 32]);
    place.put("words", &[&passphrase[..], b"\n"].concat());
    place.put("text", &vec![b'x'; 2_000_000]);
    place.put("short", b"a short text");
    let needles = Needles::new([
        ("key", &secret[..], 8),
        ("digits", hexadecimal.as_bytes(), 12),
        ("passphrase", &passphrase[..], 12),
    ]);
    planted(&place, &needles, "hex");
    planted(&place, &needles, "words");
    for key in ["raw", "hex"] {
        let at = ["--force", "--key-file", key];
        let with = |job: &[&'static str], more: &[&'static str]| [&["magma"], job, &at[..], more].concat();
        for (args, input) in [
            (with(&["encrypt"], &["-o", "box", "text"]), None),
            (with(&["decrypt"], &["-o", "out", "box"]), None),
            (with(&["encrypt", "--mode", "ctr", "--iv", "01020304"], &["-o", "ctr", "text"]), None),
            (
                with(
                    &["encrypt", "--mode", "cbc", "--iv", "0102030405060708", "--padding", "2"],
                    &["-o", "cbc", "text"],
                ),
                None,
            ),
            (with(&["seal", "--nonce", "12def06b3c130a59"], &["-o", "sealed", "short"]), None),
            (with(&["open", "--nonce", "12def06b3c130a59"], &["-o", "opened", "sealed"]), None),
            (vec!["magma", "mac", "--key-file", key, "text", "short"], None),
            (vec!["magma", "mac", "--key-file", "-", "short"], Some(key)),
        ] {
            clean(&place, &needles, &args, input);
        }
    }
    let wrapping = ["--force", "--mac-key-file", "other", "--enc-key-file", "raw", "--iv", "67bed654"];
    clean(&place, &needles, &[&["magma", "wrap"], &wrapping[..], &["-o", "wrapped", "hex"]].concat(), None);
    clean(
        &place,
        &needles,
        &[&["magma", "unwrap"], &wrapping[..], &["-o", "unwrapped", "wrapped"]].concat(),
        None,
    );
    assert_eq!(place.get("unwrapped"), secret);
    let by_words = ["--force", "--passphrase-file", "words", "-o"];
    clean(
        &place,
        &needles,
        &[&["magma", "encrypt", "--iterations", "1000"], &by_words[..], &["box", "short"]].concat(),
        None,
    );
    clean(&place, &needles, &[&["magma", "decrypt"], &by_words[..], &["out", "box"]].concat(), None);
    assert_eq!(place.get("out"), b"a short text");
    // The commands still work.
    yes(&place, &["magma", "mac", "--key-file", "raw", "text"]);
}
