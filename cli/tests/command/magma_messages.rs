//! `lanework magma seal|open|mac|wrap|unwrap` as its users run it.

use crate::common::{Place, code, json, stderr};
use lanework_magma::mgm::Mgm;
use lanework_magma::{Engine, Kexp15};

const KEY: &str = "ffeeddccbbaa99887766554433221100f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";
const NONCE: &str = "12def06b3c130a59";

fn key() -> [u8; 32] {
    crate::common::bytes(KEY).try_into().expect("32 bytes")
}

fn message(length: usize) -> Vec<u8> {
    (0..length).map(|i| ((i * 13) >> 2) as u8).collect()
}

fn place(text: &[u8]) -> Place {
    let place = Place::new();
    place.put("key", KEY.as_bytes());
    place.put("text", text);
    place
}

fn sealing<'a>(job: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["magma", job, "--key-file", "key", "--nonce", NONCE], more].concat()
}

#[test]
fn sealing_is_rfc_9058_and_opens_again() {
    for (length, aad, tag) in
        [(0, "616161", 8), (67, "", 8), (67, "01", 4), (600_000, "00ff", 5), (1_048_576, "", 8)]
    {
        let text = message(length);
        let place = place(&text);
        place.put("aad", &crate::common::bytes(aad));
        let tag_length = tag.to_string();
        let options = ["--aad", aad, "--tag-length", &tag_length];
        let made = place.run(&sealing("seal", &[&options[..], &["text"]].concat()));
        assert_eq!(code(&made), 0, "{length}: {}", stderr(&made));
        let mut expected = text.clone();
        let mgm = Mgm::with(&key(), tag, Engine::best()).expect("a tag length");
        let sum = mgm
            .seal(&crate::common::bytes(NONCE), &crate::common::bytes(aad), &mut expected)
            .expect("a message");
        expected.extend(sum.as_slice());
        assert!(made.stdout == expected, "{length}");
        let from_file = ["--aad-file", "aad", "--tag-length", &tag_length];
        let back = place.fed(&sealing("open", &from_file), &made.stdout);
        assert!(code(&back) == 0 && back.stdout == text, "{length}: {}", stderr(&back));
    }
}

#[test]
fn a_message_that_is_not_authentic_gives_nothing_out() {
    let place = place(&message(200_000));
    let sealed = place.run(&sealing("seal", &["--aad", "00", "text"])).stdout;
    let open = |more: &[&str], input: &[u8]| place.fed(&sealing("open", more), input);
    assert_eq!(code(&open(&["--aad", "00"], &sealed)), 0);
    for at in [0, 100_000, 199_999, 200_000, 200_007] {
        let mut bad = sealed.clone();
        bad[at] ^= 1;
        let refused = open(&["--aad", "00"], &bad);
        assert_eq!((code(&refused), refused.stdout.len()), (1, 0), "byte {at}: {}", stderr(&refused));
        assert!(stderr(&refused).contains("standard input: refused"), "{}", stderr(&refused));
    }
    for refused in [
        open(&["--aad", "01"], &sealed),
        open(&[], &sealed),
        open(&["--aad", "00", "--tag-length", "4"], &sealed),
        open(&["--aad", "00"], &sealed[..sealed.len() - 1]),
        open(&["--aad", "00", "-o", "out"], &sealed[1..]),
    ] {
        assert_eq!((code(&refused), refused.stdout.len()), (1, 0), "{}", stderr(&refused));
    }
    assert_eq!(place.names(), ["key", "text"], "nothing appears and nothing is left behind");
}

/// Input that is too short is refused like damaged input, with the same exit code.
#[test]
fn what_is_cut_short_is_refused() {
    let place = place(b"");
    place.put("mac", &[1; 32]);
    place.put("encrypt", &(0..32).collect::<Vec<u8>>());
    for (length, says) in
        [(0, "refused: cut short: 0 bytes"), (7, "refused: cut short: 7 bytes"), (8, "refused")]
    {
        place.put("text", &vec![0; length]);
        crate::common::no(&place, &sealing("open", &["--aad", "00", "text"]), 1, says);
    }
    for (length, says) in [
        (0, "refused: 0 bytes"),
        (39, "refused: 39 bytes, a wrapped key has 40"),
        (40, "refused"),
        (41, "refused: 41"),
    ] {
        place.put("text", &vec![0; length]);
        let keys = ["--mac-key-file", "mac", "--enc-key-file", "encrypt", "--iv", "67bed654"];
        let args = [&["magma", "unwrap", "text"], &keys[..]].concat();
        let refused = place.run(&args);
        assert_eq!((code(&refused), refused.stdout.len()), (1, 0), "{}", stderr(&refused));
        assert!(stderr(&refused).contains(says), "{}", stderr(&refused));
    }
}

#[test]
fn bad_arguments_of_a_message_say_which() {
    let place = place(b"");
    let run = |job: &str, nonce: &str, more: &[&str]| {
        place.run(&[&["magma", job, "--key-file", "key", "--nonce", nonce, "text"], more].concat())
    };
    for (output, says) in [
        (run("seal", "92def06b3c130a59", &["--aad", "00"]), "--nonce: the nonce's top bit is set"),
        (run("seal", "12def0", &["--aad", "00"]), "--nonce: the IV or nonce has 3 bytes"),
        (run("seal", NONCE, &[]), "neither data nor associated data"),
        (run("seal", NONCE, &["--aad", "00", "--tag-length", "3"]), "--tag-length"),
        (run("open", NONCE, &["--aad", "00", "--tag-length", "9"]), "--tag-length"),
        (run("open", NONCE, &["--aad", "00", "--aad-file", "key"]), "cannot be used with"),
    ] {
        assert_eq!(code(&output), 2, "{says}");
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
        assert!(output.stdout.is_empty());
    }
    let large = std::fs::File::create(place.path("large")).expect("a file");
    large.set_len(1 << 29).expect("a sparse file");
    for job in ["seal", "open"] {
        large.set_len((1 << 29) + if job == "open" { 8 } else { 0 }).expect("a sparse file");
        let refused = place.run(&sealing(job, &["large", "-o", "out"]));
        assert_eq!(code(&refused), 2);
        assert!(stderr(&refused).contains("536870911"), "{}", stderr(&refused));
    }
    assert_eq!(place.names(), ["key", "large", "text"]);
    // More than a key may process, unless its owner allows it.
    large.set_len((1 << 28) + 1).expect("a sparse file");
    let refused = place.run(&sealing("seal", &["large", "-o", "out"]));
    assert_eq!(code(&refused), 2);
    assert!(stderr(&refused).contains("raise --key-limit"), "{}", stderr(&refused));
    place.put("text", b"some text");
    // Nine bytes begin two blocks, and every message has four more. Nothing comes out before the refusal.
    let short = place.run(&sealing("seal", &["text", "-o", "out", "--key-limit", "47"]));
    assert_eq!((code(&short), place.path("out").exists()), (2, false), "{}", stderr(&short));
    assert_eq!(code(&place.run(&sealing("seal", &["text", "-o", "out", "--key-limit", "48"]))), 0);
    assert_eq!(code(&place.run(&sealing("open", &["out", "--key-limit", "47"]))), 2);
    large.set_len(1 << 20).expect("a sparse file");
    crate::common::no(&place, &sealing("seal", &["large", "--key-limit", "1048607"]), 2, "raise --key-limit");
    let sealed = crate::common::yes(&place, &sealing("seal", &["large", "--key-limit", "1048608"]));
    assert_eq!(sealed.len(), (1 << 20) + 8);
    assert_eq!(place.run(&sealing("open", &["out", "--key-limit", "none"])).stdout, b"some text");
    let folder = place.run(&sealing("seal", &["text", "-o", "."]));
    assert!(stderr(&folder).contains("is a directory\nhelp: name a file"), "{}", stderr(&folder));
}

#[test]
fn macs_of_files() {
    // GOST R 34.13-2015, A.2.6.
    let place =
        place(&crate::common::bytes("92def06b3c130a59db54c704f8189d204a98fb2e67a8024c8912409b17b57e41"));
    let mac = |more: &[&str]| place.run(&[&["magma", "mac", "--key-file", "key"], more].concat());
    let out = |more: &[&str]| String::from_utf8(mac(more).stdout).expect("text");
    assert_eq!(out(&["text"]), "154e72102030c5bb  text\n");
    assert_eq!(out(&["--tag-length", "4", "text"]), "154e7210  text\n");
    place.put("empty", b"");
    let two = mac(&["text", "empty", "--json", "--threads", "2"]);
    let two = json(&two.stdout);
    assert_eq!(two["results"][0]["mac"], "154e72102030c5bb");
    assert_eq!(two["results"][1]["file"], "empty");
    let from_pipe = place.fed(&["magma", "mac", "--key-file", "key", "-"], &place.get("text"));
    assert_eq!(String::from_utf8(from_pipe.stdout).expect("text"), "154e72102030c5bb  -\n");
    assert_eq!(code(&mac(&["--verify", "154e72102030c5bb", "text"])), 0);
    let refused = mac(&["--verify", "154e72102030c5ba", "text"]);
    assert_eq!(code(&refused), 1);
    assert!(String::from_utf8_lossy(&refused.stdout).contains("text: MAC REFUSED"));
    assert_eq!(json(&mac(&["--json", "--verify", "154e72102030c5ba", "text"]).stdout)["valid"], false);
    // Two files that fit alone, and not together: no tag comes out.
    place.put("odd", b"nine byte");
    crate::common::no(
        &place,
        &["magma", "mac", "--key-file", "key", "--key-limit", "47", "text", "odd"],
        2,
        "2 files: the key's limit of 47 bytes",
    );
    assert_eq!(out(&["--key-limit", "48", "text", "odd"]).lines().count(), 2);
    for (more, says) in [
        (&["--verify", "154e7210", "text"][..], "--tag-length"),
        (&["--verify", "154e72102030c5bb", "text", "empty"], "name only one"),
        (&["--tag-length", "3", "text"], "--tag-length"),
        (&["--algorithm", "omac-acpkm", "text"], "--section and --frequency"),
        (&["--algorithm", "imit", "text"], "--sbox"),
        (&["--algorithm", "imit", "--sbox", "z", "--tag-length", "8", "text"], "IMIT has 4 bytes"),
        (&["--section", "16", "text"], "omac-acpkm"),
        (
            &["--algorithm", "omac-acpkm", "--section", "18446744073709551608", "--frequency", "80", "text"],
            "--section: a section of 18446744073709551608 bytes is not a positive multiple of 8 up to 268435456",
        ),
        (
            &["--algorithm", "omac-acpkm", "--section", "16", "--frequency", "18446744073709551600", "text"],
            "--frequency: out of range: T*, which must be a positive multiple of 40 bytes, below 2^28",
        ),
        (&["--key-limit", "31", "text"], "text: the key's limit of 31 bytes"),
        (&["absent"], "absent: No such file"),
        (&["text", "."], "is a directory"),
    ] {
        let refused = mac(more);
        assert_eq!(code(&refused), 2, "{more:?}");
        assert!(stderr(&refused).contains(says), "{more:?}: {}", stderr(&refused));
    }
}

#[test]
fn the_other_macs() {
    let place = Place::new();
    place.put("key", b"8899aabbccddeeff0011223344556677fedcba98765432100123456789abcdef");
    // R 1323565.1.017-2018, A.3.1: N = 128 bits, T* = 640 bits.
    place.put("short", &crate::common::bytes("1122334455667700ffeeddcc"));
    let args = [
        "magma",
        "mac",
        "--key-file",
        "key",
        "--algorithm",
        "omac-acpkm",
        "--section",
        "16",
        "--frequency",
        "80",
    ];
    let mac = place.run(&[&args[..], &["short"]].concat());
    assert_eq!(String::from_utf8_lossy(&mac.stdout), "a0540e3730acbcf3  short\n", "{}", stderr(&mac));
    let args = ["magma", "mac", "--key-file", "key", "--algorithm", "imit", "--sbox", "cryptopro-a", "short"];
    let mac = String::from_utf8(place.run(&args).stdout).expect("text");
    assert_eq!(mac.find("  short"), Some(8), "{mac}");
    let verify = [&args[..], &["--verify", &mac[..8]]].concat();
    assert_eq!(code(&place.run(&verify)), 0);
    assert_eq!(code(&place.run(&[&args[..], &["--verify", "00000000"]].concat())), 1);
    // The MAC of nothing is zeros under every key: the command does not call it valid.
    place.put("short", b"");
    for more in [&["--verify", "00000000"][..], &[]] {
        let empty = place.run(&[&args[..], more].concat());
        assert_eq!(code(&empty), 2);
        assert!(stderr(&empty).contains("under every key"), "{}", stderr(&empty));
    }
}

#[test]
fn keys_are_wrapped_and_unwrapped() {
    let place = place(b"");
    let (mac, encrypt, secret) = ([1; 32], [2; 32], [3; 32]);
    place.put("mac", &mac);
    place.put("encrypt", &encrypt);
    place.put("secret", &secret);
    let run = |job: &str, more: &[&str]| {
        let keys = ["magma", job, "--mac-key-file", "mac", "--enc-key-file", "encrypt", "--iv", "67bed654"];
        place.run(&[&keys[..], more].concat())
    };
    let wrapped = run("wrap", &["secret", "-o", "wrapped", "--json"]);
    assert_eq!(code(&wrapped), 0, "{}", stderr(&wrapped));
    assert_eq!(json(&wrapped.stdout)["bytes_written"], 40);
    let keys = Kexp15::new(&mac, &encrypt, Engine::best()).expect("two keys");
    assert_eq!(place.get("wrapped"), keys.wrap(&crate::common::bytes("67bed654"), &secret).expect("wrapped"));
    assert_eq!(run("unwrap", &["wrapped"]).stdout, secret);
    let mut bad = place.get("wrapped");
    bad[39] ^= 1;
    place.put("bad", &bad);
    let refused = run("unwrap", &["bad", "-o", "out"]);
    assert_eq!(code(&refused), 1);
    assert!(stderr(&refused).contains("bad: refused"), "{}", stderr(&refused));
    place.put("short", &bad[..39]);
    assert!(stderr(&run("unwrap", &["short"])).contains("short: refused: 39 bytes, a wrapped key has 40"));
    let same = place.run(&[
        "magma",
        "wrap",
        "--mac-key-file",
        "mac",
        "--enc-key-file",
        "mac",
        "--iv",
        "67bed654",
        "secret",
    ]);
    assert_eq!(code(&same), 2);
    assert!(stderr(&same).contains("independent"), "{}", stderr(&same));
    let iv = place.run(&[
        "magma",
        "wrap",
        "--mac-key-file",
        "mac",
        "--enc-key-file",
        "encrypt",
        "--iv",
        "67bed6",
        "secret",
    ]);
    assert_eq!(code(&iv), 2);
    assert!(stderr(&iv).contains("--iv: "), "{}", stderr(&iv));
    assert!(place.names().iter().all(|n| n != "out"));
}
