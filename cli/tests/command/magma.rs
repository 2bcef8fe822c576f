//! `lanework magma encrypt|decrypt` as its users run it: the container and the bare modes, on files and pipes.

use std::fs;
use std::io::Read;
use std::process::Stdio;

use crate::common::{Place, code, json, stderr};
use lanework_magma::Engine;
use lanework_magma::container::{self, HEADER, Options, Secret};
use zeroize::Zeroizing;

/// The key of GOST R 34.13-2015, A.2.
const KEY: &str = "ffeeddccbbaa99887766554433221100f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";
/// The message there.
const TEXT: &str = "92def06b3c130a59db54c704f8189d204a98fb2e67a8024c8912409b17b57e41";
/// A chunk of the default size with its tag.
const RECORD: usize = 65_536 + 8;

fn message(length: usize) -> Vec<u8> {
    (0..length).map(|i| ((i * i) >> 5) as u8 ^ (i >> 15) as u8).collect()
}

fn library_key() -> Secret {
    let bytes = crate::common::bytes(KEY);
    Secret::Key(Zeroizing::new(bytes.try_into().expect("32 bytes")))
}

/// A place with the key in `key` and the message in `text`.
fn place(text: &[u8]) -> Place {
    let place = Place::new();
    place.put("key", KEY.as_bytes());
    place.put("text", text);
    place
}

#[test]
fn containers_of_every_size_on_files_and_pipes() {
    for (i, length) in [0, 1, 65_535, 65_536, 65_537, 524_288, 524_289, 2_500_000].into_iter().enumerate() {
        let text = message(length);
        let place = place(&text);
        let threads = (i % 5).to_string();
        let made =
            place.run(&["magma", "encrypt", "--key-file", "key", "--threads", &threads, "-o", "c", "text"]);
        assert_eq!(code(&made), 0, "{}", stderr(&made));
        let made = place.get("c");
        assert_eq!(made.len(), HEADER + length + 8 * length.div_ceil(65_536).max(1));
        // The library's serial code reads what the command's threads wrote.
        let mut back = Vec::new();
        container::decrypt(&library_key(), Engine::best(), made.as_slice(), &mut back).expect("a container");
        assert!(back == text, "{length}");
        let args = ["magma", "decrypt", "--key-file", "key", "--threads", &threads, "-o", "back", "c"];
        let opened = place.run(&args);
        assert_eq!(code(&opened), 0, "{}", stderr(&opened));
        assert!(place.get("back") == text, "{length}");
        // Pipes on both ends, twice.
        let piped = place.fed(&["magma", "encrypt", "--key-file", "key"], &text);
        assert_eq!(code(&piped), 0, "{}", stderr(&piped));
        assert!(piped.stdout != made, "no two containers have one salt");
        let back = place.fed(&["magma", "decrypt", "--key-file", "key", "-"], &piped.stdout);
        assert!(code(&back) == 0 && back.stdout == text, "{length}: {}", stderr(&back));
    }
}

#[test]
fn small_chunks_and_what_the_library_makes() {
    let text = message(700_001);
    let place = place(&text);
    let args = ["magma", "encrypt", "--key-file", "key", "--chunk-size", "4096", "-o", "c", "text", "--json"];
    let made = place.run(&args);
    assert_eq!(code(&made), 0, "{}", stderr(&made));
    let report = json(&made.stdout);
    assert_eq!(report["chunk"], 4096);
    assert_eq!(report["bytes_read"], 700_001);
    assert_eq!(report["bytes_written"], place.get("c").len() as u64);
    let back = place.run(&["magma", "decrypt", "--key-file", "key", "c"]);
    assert!(code(&back) == 0 && back.stdout == text);
    let mut made = Vec::new();
    let options = Options { chunk: 8192, ..Options::default() };
    container::encrypt(&library_key(), options, [3; 32], Engine::best(), text.as_slice(), &mut made)
        .expect("a container");
    let back = place.fed(&["magma", "decrypt", "--key-file", "key"], &made);
    assert!(code(&back) == 0 && back.stdout == text);
    for bad in ["4095", "2048", "131072", "0"] {
        let refused =
            place.run(&["magma", "encrypt", "--key-file", "key", "--chunk-size", bad, "text", "-o", "x"]);
        assert_eq!(code(&refused), 2);
        assert!(stderr(&refused).contains("power of two"), "{}", stderr(&refused));
    }
}

/// Every fault: the pipe gets only the verified beginning, the file does not appear, and the message says what is wrong.
#[test]
fn damage_is_refused_and_only_the_verified_beginning_given_out() {
    let text = message(5 * 65_536 + 100);
    let place = place(&text);
    let sealed = place.fed(&["magma", "encrypt", "--key-file", "key"], &text).stdout;
    let (header, records) = sealed.split_at(HEADER);
    let records: Vec<&[u8]> = records.chunks(RECORD).collect();
    let order = |order: &[usize]| {
        let parts: Vec<&[u8]> = order.iter().map(|&i| records[i]).collect();
        [header, &parts.concat()].concat()
    };
    let flipped = |at: usize| {
        let mut bad = sealed.clone();
        bad[at] ^= 0x10;
        bad
    };
    let cases = [
        ("a flipped bit in chunk 3", flipped(HEADER + 3 * RECORD + 77), 3, "chunk 3 is damaged"),
        ("a flipped bit in the first tag", flipped(HEADER + RECORD - 1), 0, "chunk 0 is damaged"),
        ("a flipped bit in the last tag", flipped(sealed.len() - 1), 5, "chunk 5 is cut short or damaged"),
        ("a cut within a chunk", sealed[..HEADER + 2 * RECORD + 999].to_vec(), 2, "chunk 2 is cut short"),
        ("a cut between chunks", order(&[0, 1, 2]), 2, "ends before chunk 3"),
        ("a header alone", header.to_vec(), 0, "ends before chunk 0"),
        ("swapped chunks", order(&[0, 2, 1, 3, 4, 5]), 1, "chunk 1 is damaged or not where it belongs"),
        ("a doubled chunk", order(&[0, 1, 1, 2, 3, 4, 5]), 2, "chunk 2 is damaged or not where"),
        ("a missing chunk", order(&[0, 1, 2, 4, 5]), 3, "chunk 3 is damaged or not where"),
        ("bytes after the end", [sealed.as_slice(), b"x"].concat(), 5, "chunk 5 is cut short or damaged"),
    ];
    for (what, bad, verified, says) in cases {
        let piped = place.fed(&["magma", "decrypt", "--key-file", "key"], &bad);
        assert_eq!(code(&piped), 1, "{what}: {}", stderr(&piped));
        assert!(stderr(&piped).contains(says), "{what}: {}", stderr(&piped));
        assert!(stderr(&piped).contains("standard input"), "the message names its source");
        assert!(piped.stdout == text[..verified * 65_536], "{what}: {} bytes", piped.stdout.len());
        place.put("bad", &bad);
        let filed = place.run(&["magma", "decrypt", "--key-file", "key", "-o", "out", "bad"]);
        assert_eq!(code(&filed), 1, "{what}");
        assert!(stderr(&filed).starts_with("error: bad: "), "{}", stderr(&filed));
        assert_eq!(place.names(), ["bad", "key", "text"], "{what}: nothing appears, nothing is left behind");
    }
    // A whole last chunk, and bytes after it.
    let whole = place.fed(&["magma", "encrypt", "--key-file", "key"], &text[..2 * 65_536]).stdout;
    let longer = place.fed(&["magma", "decrypt", "--key-file", "key"], &[whole.as_slice(), b"x"].concat());
    assert_eq!(code(&longer), 1);
    assert!(stderr(&longer).contains("bytes follow the last chunk"), "{}", stderr(&longer));
    assert!(longer.stdout == text[..65_536]);
}

#[test]
fn headers_are_looked_at_first() {
    let place = place(b"text");
    let sealed = place.fed(&["magma", "encrypt", "--key-file", "key"], b"text").stdout;
    let with = |at: usize, byte: u8| {
        let mut bad = sealed.clone();
        bad[at] = byte;
        place.fed(&["magma", "decrypt", "--key-file", "key"], &bad)
    };
    for (at, byte, exit, says) in [
        (0, b'x', 2, "no container of Magma"),
        (8, 9, 2, "version 9"),
        (9, 7, 2, "suite 7"),
        (11, 30, 2, "power of two"),
        (12, 1, 2, "iterations"),
        (20, 0, 1, "not this container's, or its header was changed"),
        (79, 0, 1, "not this container's, or its header was changed"),
    ] {
        let output = with(at, byte);
        // A random byte may have had that value; then the container is right.
        if sealed[at] == byte {
            continue;
        }
        assert_eq!(code(&output), exit, "byte {at}: {}", stderr(&output));
        assert!(stderr(&output).contains(says), "byte {at}: {}", stderr(&output));
        assert!(output.stdout.is_empty());
    }
    // A cut container, wherever it is cut, is refused as a damaged one is.
    for length in [0, 7, 8, 47, 48, 79] {
        let output = place.fed(&["magma", "decrypt", "--key-file", "key"], &sealed[..length]);
        assert_eq!(code(&output), 1, "{length}: {}", stderr(&output));
        assert!(stderr(&output).contains("cut short"), "{}", stderr(&output));
        assert!(output.stdout.is_empty());
    }
    // Three bytes of something else are not a container.
    let output = place.fed(&["magma", "decrypt", "--key-file", "key"], b"abc");
    assert_eq!(code(&output), 2, "{}", stderr(&output));
    place.put("other", &[7; 32]);
    let output = place.fed(&["magma", "decrypt", "--key-file", "other"], &sealed);
    assert_eq!((code(&output), output.stdout.len()), (1, 0));
    assert!(stderr(&output).contains("key or passphrase is not this container's"), "{}", stderr(&output));
}

#[test]
fn passphrases() {
    let text = message(100_000);
    let place = place(&text);
    place.put("word", "пароль\r\n".as_bytes());
    place.put("same", "пароль".as_bytes());
    place.put("wrong", b"password");
    place.put("empty", b"\n");
    place.put("two", b"a\nb\n");
    let encrypt =
        ["magma", "encrypt", "--iterations", "1000", "-o", "c", "text", "--force", "--passphrase-file"];
    let made = place.run(&[&encrypt[..], &["word"]].concat());
    assert_eq!(code(&made), 0, "{}", stderr(&made));
    let decrypt = |word: &str| place.run(&["magma", "decrypt", "c", "--passphrase-file", word]);
    let back = decrypt("same");
    assert!(code(&back) == 0 && back.stdout == text, "{}", stderr(&back));
    assert_eq!(code(&decrypt("wrong")), 1);
    for (word, says) in
        [("empty", "empty: the passphrase is empty"), ("two", "more than one line"), ("absent", "absent")]
    {
        let refused = decrypt(word);
        assert_eq!(code(&refused), 2);
        assert!(stderr(&refused).contains(says), "{}", stderr(&refused));
    }
    let with_key = place.run(&["magma", "decrypt", "--key-file", "key", "c"]);
    assert_eq!(code(&with_key), 2);
    assert!(stderr(&with_key).contains("--passphrase"), "{}", stderr(&with_key));
    assert_eq!(code(&place.run(&["magma", "encrypt", "--key-file", "key", "-o", "d", "text"])), 0);
    let with_word = place.run(&["magma", "decrypt", "--passphrase-file", "word", "d"]);
    assert_eq!(code(&with_word), 2);
    assert!(stderr(&with_word).contains("--key-file"), "{}", stderr(&with_word));
    for bad in ["999", "10000001"] {
        let refused = place.run(&[
            "magma",
            "encrypt",
            "--iterations",
            bad,
            "--passphrase-file",
            "word",
            "text",
            "-o",
            "x",
        ]);
        assert_eq!(code(&refused), 2);
        assert!(stderr(&refused).contains("iterations"), "{}", stderr(&refused));
    }
}

#[test]
fn key_files_of_both_kinds_and_no_other() {
    let place = place(b"text");
    let raw = crate::common::bytes(KEY);
    place.put("raw", &raw);
    place.put("unix", format!("{KEY}\n").as_bytes());
    place.put("dos", format!("{}\r\n", KEY.to_uppercase()).as_bytes());
    let sealed = place.fed(&["magma", "encrypt", "--key-file", "key"], b"text").stdout;
    for name in ["key", "raw", "unix", "dos"] {
        let back = place.fed(&["magma", "decrypt", "--key-file", name], &sealed);
        assert!(code(&back) == 0 && back.stdout == b"text", "{name}: {}", stderr(&back));
    }
    place.put("short", &raw[..31]);
    place.put("long", &[1; 1000]);
    place.put("half", &KEY.as_bytes()[..32]);
    place.put("HALF", KEY[..32].to_uppercase().as_bytes());
    place.put("halfline", format!("{}\n", &KEY[..32]).as_bytes());
    place.put("lines", format!("{KEY}\n\n").as_bytes());
    place.put("return", format!("{KEY}\r").as_bytes());
    place.put("odd", format!("{}g{}", &KEY[..20], &KEY[21..]).as_bytes());
    for (name, says) in [
        ("short", "short: not a key: 31 bytes\nhelp: a key file holds 32 raw bytes or 64 hexadecimal digits"),
        ("long", "long: longer than the 256 bytes"),
        ("odd", "odd: character 21 is not a hexadecimal digit"),
        ("half", "half: 32 hexadecimal digits: 128 bits"),
        ("HALF", "HALF: 32 hexadecimal digits: 128 bits"),
        ("halfline", "halfline: not a key: 33 bytes"),
        ("lines", "lines: not a key: 66 bytes"),
        ("return", "return: not a key: 65 bytes"),
        ("absent", "absent: No such file"),
        (".", ".: is a directory"),
    ] {
        let refused = place.run(&["magma", "encrypt", "--key-file", name, "text", "-o", "out"]);
        assert_eq!(code(&refused), 2, "{name}");
        assert!(stderr(&refused).contains(says), "{}", stderr(&refused));
        assert!(!stderr(&refused).contains(&KEY[..8]), "a message shows key material");
    }
    // Standard input can be the key or the data, not both.
    let from_pipe = place.fed(&["magma", "encrypt", "--key-file", "-", "text"], KEY.as_bytes());
    assert_eq!(code(&from_pipe), 0, "{}", stderr(&from_pipe));
    assert_eq!(code(&place.fed(&["magma", "encrypt", "--key-file", "-"], KEY.as_bytes())), 2);
    assert_eq!(code(&place.run(&["magma", "encrypt", "text"])), 2, "a secret must be named");
}

/// A warning is given once, on standard error or in the report; a proper key causes none.
#[test]
fn weak_and_shared_secrets_are_warned_of() {
    let place = place(b"text");
    place.put("zeros", &[0; 32]);
    place.put("same", "a5".repeat(32).as_bytes());
    place.put("word", b"correct horse");
    let encrypt = |secret: [&str; 2], more: &[&str]| {
        let args = ["magma", "encrypt", "--iterations", "1000", "text"];
        let args = if secret[0] == "--key-file" { &["magma", "encrypt", "text"][..] } else { &args };
        place.run(&[args, &secret[..], more].concat())
    };
    let warnings = |output: &std::process::Output| {
        assert_eq!(code(output), 0, "{}", stderr(output));
        stderr(output).lines().filter(|line| line.starts_with("warning: ")).count()
    };
    for secret in [["--key-file", "key"], ["--passphrase-file", "word"]] {
        let quiet = encrypt(secret, &[]);
        assert_eq!((code(&quiet), stderr(&quiet).as_str()), (0, ""), "{secret:?}");
        for mode in [0o644, 0o640, 0o604] {
            place.share(secret[1], mode);
            let shared = encrypt(secret, &[]);
            let says =
                format!("{}: others may read this secret (mode {mode:03o})\nhelp: chmod 600", secret[1]);
            assert_eq!(warnings(&shared), 1, "{}", stderr(&shared));
            assert!(stderr(&shared).contains(&says), "{}", stderr(&shared));
        }
    }
    for weak in ["zeros", "same"] {
        let output = encrypt(["--key-file", weak], &[]);
        assert_eq!(warnings(&output), 1, "{}", stderr(&output));
        assert!(stderr(&output).contains("all bytes of this key are the same"), "{}", stderr(&output));
    }
    place.share("zeros", 0o644);
    let report = json(&encrypt(["--key-file", "zeros"], &["-o", "out", "--json"]).stdout);
    assert_eq!(report["warnings"].as_array().map(Vec::len), Some(2), "{report}");
    place.share("key", 0o600);
    let report = json(&encrypt(["--key-file", "key"], &["-o", "out", "--force", "--json"]).stdout);
    assert!(report.get("warnings").is_none(), "{report}");
    // A file that is named twice gets one warning; each of the other jobs checks too.
    for (args, count) in [
        (&["mac", "--key-file", "zeros", "text"][..], 2),
        (&["seal", "--key-file", "zeros", "--nonce", "0000000000000001", "text"], 2),
        (&["encrypt", "--key-file", "zeros", "--mode", "ctr", "--iv", "00000001", "text"], 2),
        (&["wrap", "--mac-key-file", "zeros", "--enc-key-file", "key", "--iv", "00000001", "zeros"], 2),
    ] {
        let output = place.run(&[&["magma"], args].concat());
        assert_eq!(warnings(&output), count, "{args:?}: {}", stderr(&output));
    }
    // A pipe has no mode to warn about.
    let piped = place.fed(&["magma", "encrypt", "--key-file", "-", "text"], KEY.as_bytes());
    assert_eq!((code(&piped), stderr(&piped).as_str()), (0, ""));
}

/// Every job refuses a number of threads that no machine has, before it looks at anything else.
#[test]
fn threads_are_bounded() {
    let place = place(b"text");
    let jobs: [&[&str]; 8] = [
        &["magma", "encrypt", "--key-file", "key", "text"],
        &["magma", "encrypt", "--key-file", "key", "text", "--mode", "ctr", "--iv", "00000001"],
        &["magma", "seal", "--key-file", "key", "--nonce", "0000000000000001", "text"],
        &["magma", "mac", "--key-file", "key", "text"],
        &["mayo", "sign", "--key", "key", "text"],
        &["mayo", "verify", "--key", "key", "text"],
        &["vdf", "prove", "--challenge", "00", "--iterations", "1"],
        &["vdf", "client", "localhost", "1"],
    ];
    for job in jobs {
        for many in ["1025", "2305843009213693952", "18446744073709551615", "99999999999999999999"] {
            let refused = place.run(&[job, &["--threads", many]].concat());
            assert_eq!(code(&refused), 2, "{job:?} {many}: {}", stderr(&refused));
            assert!(stderr(&refused).contains("--threads"), "{job:?} {many}: {}", stderr(&refused));
            assert!(!stderr(&refused).contains("panicked") && refused.stdout.is_empty(), "{job:?} {many}");
        }
        let refused = place.run(&[job, &["--threads", "2305843009213693952"]].concat());
        assert!(stderr(&refused).contains("0..=1024"), "{}", stderr(&refused));
    }
    // So is one in the profile.
    let choices =
        serde_json::json!({ "magma/ctr/16": { "backend": "portable", "ratio": 1.0, "threads": 1025 } });
    let machine = serde_json::json!({ "cpu": "", "features": "", "cores": 1 });
    let profile = serde_json::json!({ "schema": 2, "machine": machine, "date": "", "choices": choices });
    place.put("no-profile.json", profile.to_string().as_bytes());
    let refused = place.run(&["magma", "mac", "--key-file", "key", "text"]);
    assert_eq!(code(&refused), 2, "{}", stderr(&refused));
    assert!(stderr(&refused).contains("1025 threads for magma/ctr/16, at most 1024"), "{}", stderr(&refused));
    fs::remove_file(place.path("no-profile.json")).expect("a file");
    let most = place.run(&["magma", "mac", "--key-file", "key", "text", "text", "--threads", "1024"]);
    assert_eq!(code(&most), 0, "{}", stderr(&most));
}

#[test]
fn bare_modes_write_the_standards_bytes() {
    let place = place(&crate::common::bytes(TEXT));
    // GOST R 34.13-2015, A.2.1 to A.2.5.
    let cases: [(&[&str], &str); 5] = [
        (&["ecb", "--hazmat"], "2b073f0494f372a0de70e715d3556e4811d8d9e9eacfbc1e7c68260996c67efb"),
        (&["ctr", "--iv", "12345678"], "4e98110c97b7b93c3e250d93d6e85d69136d868807b2dbef568eb680ab52a12d"),
        (
            &["ofb", "--iv", "1234567890abcdef234567890abcdef1"],
            "db37e0e266903c830d46644c1f9a089ca0f83062430e327ec824efb8bd4fdb05",
        ),
        (
            &["cbc", "--iv", "1234567890abcdef234567890abcdef134567890abcdef12"],
            "96d1b05eea683919aff76129abb937b95058b4a1c4bc001920b78b1a7cd7e667",
        ),
        (
            &["cfb", "--iv", "1234567890abcdef234567890abcdef1"],
            "db37e0e266903c830d46644c1f9a089c24bdd2035315d38bbcc0321421075505",
        ),
    ];
    for (mode, answer) in cases {
        let encrypt = [&["magma", "encrypt", "--key-file", "key", "text", "--mode"], mode].concat();
        let made = place.run(&encrypt);
        assert_eq!(crate::common::hex(&made.stdout), answer, "{mode:?}: {}", stderr(&made));
        let decrypt = [&["magma", "decrypt", "--key-file", "key", "-", "--mode"], mode].concat();
        let back = place.fed(&decrypt, &made.stdout);
        assert_eq!(crate::common::hex(&back.stdout), TEXT, "{mode:?}: {}", stderr(&back));
    }
}

#[test]
fn bare_modes_go_back_and_forth_at_any_length() {
    let legacy = ["--cipher", "gost28147", "--sbox", "cryptopro-a"];
    let modes: [(&[&str], usize); 10] = [
        (&["ctr", "--iv", "00000001"], 1),
        (&["ctr-acpkm", "--iv", "00000001"], 1),
        (&["ctr-acpkm", "--iv", "00000001", "--section", "4096"], 1),
        (&["cbc", "--iv", "0000000000000001"], 8),
        (&["cbc", "--iv", "0000000000000001", "--padding", "2"], 1),
        (&["cfb", "--iv", "00000000000000010000000000000002"], 1),
        (&["ofb", "--iv", "0000000000000001"], 1),
        (&["ecb", "--hazmat", "--padding", "2"], 1),
        (&["cnt", "--iv", "0000000000000001", "--meshing"], 1),
        (&["cfb", "--iv", "0000000000000001", "--meshing"], 1),
    ];
    for length in [0, 8, 524_288, 524_296, 1_200_003] {
        let text = message(length);
        let place = place(&text);
        for (mode, unit) in modes {
            let old: &[&str] = if mode.contains(&"--meshing") { &legacy } else { &[] };
            let args = [&["--key-file", "key", "--mode"], mode, old].concat();
            let made = place.run(&[&["magma", "encrypt", "text"], args.as_slice()].concat());
            if length % unit != 0 {
                assert_eq!(code(&made), 2, "{mode:?} {length}");
                assert!(stderr(&made).contains("text: ") && stderr(&made).contains("--padding 2"));
                continue;
            }
            assert_eq!(code(&made), 0, "{mode:?} {length}: {}", stderr(&made));
            let padded = mode.contains(&"--padding");
            assert_eq!(made.stdout.len(), if padded { length / 8 * 8 + 8 } else { length }, "{mode:?}");
            assert!(made.stdout != text || text.is_empty());
            let back = place.fed(&[&["magma", "decrypt"], args.as_slice()].concat(), &made.stdout);
            assert!(code(&back) == 0 && back.stdout == text, "{mode:?} {length}: {}", stderr(&back));
        }
    }
}

#[test]
fn what_does_not_go_together_is_refused_with_a_remedy() {
    let place = place(b"12345678");
    let cases: [(&[&str], &str); 16] = [
        (&["ecb"], "--hazmat"),
        (&["ecb", "--hazmat", "--iv", "00"], "--iv: ECB has no initialisation vector\nhelp: leave it out"),
        (&["ctr"], "--iv HEX"),
        (&["ctr", "--iv", "0011"], "--iv: the IV or nonce has 2 bytes"),
        (&["ctr", "--iv", "0"], "1 digits, expected two per byte"),
        (&["ctr", "--iv", "0x000001"], "character 2 is not a hexadecimal digit"),
        (&["cbc", "--iv", "00112233"], "multiple of 8"),
        (
            &["ctr", "--iv", "00000001", "--padding", "2"],
            "--padding: this mode takes data of any length\nhelp: leave it out",
        ),
        (
            &["ctr", "--iv", "00000001", "--section", "64"],
            "--section: only CTR-ACPKM has sections\nhelp: leave it out",
        ),
        (&["ctr-acpkm", "--iv", "00000001", "--section", "63"], "--section: "),
        (&["ctr-acpkm", "--iv", "00000001", "--section", "268435464"], "multiple of 8 up to 268435456"),
        (&["ctr-acpkm", "--iv", "00000001", "--section", "18446744073709551608"], "up to 268435456"),
        (&["cnt", "--iv", "0000000000000001"], "--cipher gost28147"),
        (&["cfb", "--iv", "0000000000000001", "--cipher", "gost28147"], "--sbox"),
        (&["cfb", "--iv", "0000000000000001", "--sbox", "z"], "for --cipher gost28147"),
        (&["cfb", "--iv", "0000000000000001", "--cipher", "gost28147", "--sbox", "q"], "no S-box set 'q'"),
    ];
    for (mode, says) in cases {
        let args = [&["magma", "encrypt", "--key-file", "key", "text", "-o", "out", "--mode"], mode].concat();
        let refused = place.run(&args);
        assert_eq!(code(&refused), 2, "{mode:?}");
        assert!(stderr(&refused).contains(says), "{mode:?}: {}", stderr(&refused));
        assert_eq!(place.names(), ["key", "text"]);
    }
    let word =
        place.run(&["magma", "encrypt", "--passphrase-file", "text", "--mode", "ctr", "--iv", "00000001"]);
    assert_eq!(code(&word), 2, "a bare mode takes a key");
    // A mode's options without the mode are refused rather than ignored.
    assert_eq!(code(&place.run(&["magma", "encrypt", "--key-file", "key", "--iv", "00000001", "text"])), 2);
    for job in ["encrypt", "decrypt"] {
        for option in [&["--sbox", "z"][..], &["--meshing"], &["--key-limit", "100"]] {
            let refused = place.run(&[&["magma", job, "--key-file", "key", "text"], option].concat());
            assert_eq!(code(&refused), 2, "{job} {option:?}");
            assert!(stderr(&refused).contains("--mode"), "{option:?}: {}", stderr(&refused));
            assert!(refused.stdout.is_empty());
        }
    }
    for (option, value) in [("--chunk-size", "5000"), ("--iterations", "10")] {
        let secret = if option == "--iterations" { "--passphrase-file" } else { "--key-file" };
        let refused = place.run(&["magma", "encrypt", secret, "key", "text", option, value]);
        assert_eq!(code(&refused), 2);
        assert!(stderr(&refused).contains(&format!("{option}: ")), "{}", stderr(&refused));
    }
}

#[test]
fn nothing_but_the_content_comes_out_where_it_comes_out() {
    let place = place(&message(200_000));
    let key = ["--key-file", "key"];
    let mut made = place.run(&[&["magma", "encrypt", "text"], &key[..]].concat()).stdout;
    made[150_000] ^= 1;
    let args = [&["--json", "magma", "decrypt"], &key[..]].concat();
    let refused = place.fed(&args, &made);
    assert_eq!(code(&refused), 1);
    assert!(refused.stdout == message(200_000)[..131_072], "two verified chunks and no byte more");
    let object = stderr(&refused);
    assert_eq!(json(object.lines().next().expect("a line").as_bytes())["exit"], 1);
    // A file leaves standard output to the report.
    place.put("made", &made);
    let refused = place.run(&[&args[..], &["-o", "out", "made"]].concat());
    assert_eq!(json(&refused.stdout)["exit"], 1);
}

#[test]
fn padding_that_is_none_is_refused() {
    let place = place(&message(64));
    let mode = ["--key-file", "key", "--mode", "cbc", "--iv", "0000000000000001", "--padding", "2"];
    let made = place.run(&[&["magma", "encrypt", "text"], &mode[..]].concat()).stdout;
    let refused = place.fed(&[&["magma", "decrypt"], &mode[..]].concat(), &made[..56]);
    assert_eq!(code(&refused), 1, "{}", stderr(&refused));
    assert!(stderr(&refused).contains("padding of procedure 2"), "{}", stderr(&refused));
    assert!(refused.stdout.is_empty());
    let cut = place.fed(&[&["magma", "decrypt"], &mode[..]].concat(), &made[..57]);
    assert_eq!(code(&cut), 2, "{}", stderr(&cut));
}

#[test]
fn a_key_has_a_limit_unless_told_otherwise() {
    let place = place(&message(2_000_000));
    let ctr =
        ["magma", "encrypt", "--key-file", "key", "--mode", "ctr", "--iv", "00000001", "text", "-o", "out"];
    let refused = place.run(&[&ctr[..], &["--key-limit", "1999999"]].concat());
    assert_eq!(code(&refused), 2);
    assert!(
        stderr(&refused).contains("--key-limit") && stderr(&refused).contains("1999999"),
        "{}",
        stderr(&refused)
    );
    assert_eq!(place.names(), ["key", "text"]);
    for enough in ["2000000", "none"] {
        let made = place.run(&[&ctr[..], &["--force", "--key-limit", enough]].concat());
        assert_eq!(code(&made), 0, "{}", stderr(&made));
    }
    // The default limit: a file of 2^28 + 1 bytes, which takes no room.
    let file = fs::File::create(place.path("large")).expect("a file");
    file.set_len((1 << 28) + 1).expect("a sparse file");
    let args =
        ["magma", "encrypt", "--key-file", "key", "--mode", "ctr", "--iv", "00000001", "large", "-o", "x"];
    let refused = place.run(&args);
    assert_eq!(code(&refused), 2);
    assert!(stderr(&refused).contains("268435456"), "{}", stderr(&refused));
}

/// The length of a file is known: what a bare mode would refuse on the way is refused before a pipe has got a byte.
#[test]
fn known_lengths_are_judged_before_anything_is_written() {
    let place = place(&message(2_000_000));
    let sparse = |name: &str, length: u64| {
        fs::File::create(place.path(name)).and_then(|file| file.set_len(length)).expect("a sparse file");
    };
    sparse("long", (1 << 28) + 8);
    sparse("odd", 1_000_001);
    sparse("beyond", (1 << 35) + 1);
    let limit = ["--key-limit", "1999999"];
    let iv = ["--iv", "0000000000000001"];
    let legacy = ["--cipher", "gost28147", "--sbox", "z"];
    type Case<'a> = (&'a [&'a str], &'a [&'a [&'a str]], &'a str);
    let cases: [Case<'_>; 11] = [
        (&["ctr", "--iv", "00000001", "long"], &[], "268435456 bytes is used up"),
        (&["ctr", "--iv", "00000001", "beyond", "--key-limit", "none"], &[], "the counter would repeat"),
        (&["ctr-acpkm", "--iv", "00000001", "beyond"], &[], "longer than 17179869184 bytes"),
        (&["cbc", "text"], &[&iv, &limit], "1999999 bytes is used up"),
        (&["cbc", "text", "--padding", "2"], &[&iv, &["--key-limit", "2000007"]], "2000007 bytes is used up"),
        (&["cbc", "odd"], &[&iv], "not whole blocks"),
        (&["cfb", "text"], &[&iv, &limit], "1999999 bytes is used up"),
        (&["ofb", "text"], &[&iv, &limit], "1999999 bytes is used up"),
        (&["ecb", "odd", "--hazmat"], &[], "not whole blocks"),
        (&["cnt", "text"], &[&iv, &limit, &legacy], "1999999 bytes is used up"),
        (&["cfb", "text", "--meshing"], &[&iv, &legacy, &["--key-limit", "1023"]], "1023 bytes is used up"),
    ];
    for (mode, more, says) in cases {
        for job in ["encrypt", "decrypt"] {
            // Only encryption appends padding; a ciphertext of this length fits.
            if job == "decrypt" && mode.contains(&"--padding") {
                continue;
            }
            let args = [&["magma", job, "--key-file", "key", "--mode"], mode, &more.concat()].concat();
            crate::common::no(&place, &args, 2, says);
        }
    }
    // A pipe shows its length at its end: output written by then stays, as the help says.
    let text = place.get("text");
    let ctr = ["magma", "encrypt", "--key-file", "key", "--mode", "ctr", "--iv", "00000001"];
    let late = place.fed(&[&ctr[..], &limit].concat(), &text);
    assert_eq!(code(&late), 2, "{}", stderr(&late));
    assert!(!late.stdout.is_empty() && late.stdout.len() < text.len());
    // The length of partly read standard input is what is left of it.
    let mut rest = fs::File::open(place.path("text")).expect("a file");
    rest.read_exact(&mut [0; 1_500_000]).expect("a beginning");
    let args = [&ctr[..], &["--key-limit", "500000"]].concat();
    let output = place.command(&args).stdin(rest).output().expect("it runs");
    assert_eq!((code(&output), output.stdout.len()), (0, 500_000), "{}", stderr(&output));
}

#[test]
fn outputs_appear_whole_or_not_at_all() {
    let place = place(&message(1000));
    place.put("there", b"old");
    let encrypt = |output: &str, more: &[&str]| {
        place.run(&[&["magma", "encrypt", "--key-file", "key", "text", "-o", output], more].concat())
    };
    let refused = encrypt("there", &[]);
    assert_eq!(code(&refused), 2);
    assert!(
        stderr(&refused).contains("there: already exists\nhelp: --force replaces it"),
        "{}",
        stderr(&refused)
    );
    assert_eq!(place.get("there"), b"old");
    assert_eq!(code(&encrypt("there", &["--force", "--sync"])), 0);
    assert_eq!(place.get("there").len(), HEADER + 1008);
    for (output, says) in [("absent/out", "no directory absent"), (".", "is a directory\nhelp: name a file")]
    {
        let refused = encrypt(output, &[]);
        assert_eq!(code(&refused), 2);
        assert!(stderr(&refused).contains(says), "{}", stderr(&refused));
    }
    assert!(stderr(&encrypt(".", &["--force"])).contains("is a directory"));
    let missing = place.run(&["magma", "encrypt", "--key-file", "key", "absent", "-o", "out"]);
    assert_eq!(code(&missing), 2);
    assert!(stderr(&missing).contains("absent: No such file"), "{}", stderr(&missing));
    assert_eq!(place.names(), ["key", "text", "there"]);
    // A file does not replace itself: the only copy of a plaintext would be under a key that may be lost.
    let itself = encrypt("text", &["--force"]);
    assert_eq!(code(&itself), 2);
    assert!(stderr(&itself).contains("text and text are the same file"), "{}", stderr(&itself));
    assert!(place.get("text") == message(1000));
}

#[cfg(target_os = "linux")]
#[test]
fn full_disks_and_closed_pipes() {
    let place = place(&message(3_000_000));
    for args in [
        &["magma", "encrypt", "--key-file", "key", "text"][..],
        &["magma", "encrypt", "--key-file", "key", "text", "-o", "/dev/full"],
        &["magma", "encrypt", "--key-file", "key", "text", "--mode", "ctr", "--iv", "00000001"],
        &["magma", "seal", "--key-file", "key", "text", "--nonce", "0000000000000001"],
        &["magma", "mac", "--key-file", "key", "text"],
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("the full device");
        let output = place.command(args).stdout(full).stderr(Stdio::piped()).output().expect("it runs");
        assert_eq!(code(&output), 2, "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("No space left"), "{args:?}: {}", stderr(&output));
        assert!(!stderr(&output).contains("panicked"), "{args:?}: {}", stderr(&output));
        // A reader that stops early.
        if args.contains(&"/dev/full") || args.contains(&"mac") {
            continue;
        }
        let mut child =
            place.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
        let mut out = child.stdout.take().expect("a pipe");
        out.read_exact(&mut [0; 10]).expect("the beginning");
        drop(out);
        let output = child.wait_with_output().expect("it ends");
        assert_eq!((code(&output), stderr(&output).as_str()), (141, ""), "{args:?}");
    }
}

/// More than the command may hold, through a pipe that is not read: the memory used then is its maximum.
#[cfg(target_os = "linux")]
#[test]
fn memory_does_not_grow_with_the_stream() {
    const LENGTH: u64 = 160 << 20;
    let place = place(b"");
    fs::File::create(place.path("large")).and_then(|f| f.set_len(LENGTH)).expect("a sparse file");
    let args = ["magma", "encrypt", "--key-file", "key", "--threads", "16", "large"];
    let mut child = place.command(&args).stdout(Stdio::piped()).spawn().expect("it runs");
    let mut out = child.stdout.take().expect("a pipe");
    // All but more than a pipe holds, so the command cannot have ended.
    let total = LENGTH + LENGTH / 65_536 * 8 + HEADER as u64;
    let read =
        std::io::copy(&mut out.by_ref().take(total - 4_000_000), &mut std::io::sink()).expect("reading");
    assert_eq!(read, total - 4_000_000);
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).expect("it runs still");
    let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).expect("a peak").trim();
    let kib: u64 = peak.trim_end_matches(" kB").parse().expect("a number");
    assert!(kib <= 64 * 1024, "{kib} KiB");
    std::io::copy(&mut out, &mut std::io::sink()).expect("reading");
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn the_backend_is_chosen_and_named() {
    let place = place(&message(100_000));
    let run = |backend: &str| {
        let args = [
            "--json",
            "--backend",
            backend,
            "magma",
            "encrypt",
            "--key-file",
            "key",
            "text",
            "-o",
            "c",
            "--force",
        ];
        place.run(&args)
    };
    for backend in ["portable", "magma=portable"] {
        let made = run(backend);
        assert_eq!(code(&made), 0, "{}", stderr(&made));
        assert_eq!(json(&made.stdout)["backend"], "portable");
        let back = place.run(&["magma", "decrypt", "--key-file", "key", "c"]);
        assert!(back.stdout == message(100_000), "one backend writes, the best one reads");
    }
    assert_eq!(code(&run("magma=sse9")), 2);
    let masked = place
        .command(&["magma", "encrypt", "--key-file", "key", "text", "--backend", "magma=avx2"])
        .env("LANEWORK_MASK", "avx2")
        .output()
        .expect("it runs");
    assert_eq!(code(&masked), 3, "{}", stderr(&masked));
    let environment = place
        .command(&["--json", "magma", "encrypt", "--key-file", "key", "text", "-o", "e"])
        .env("LANEWORK_BACKEND", "magma=portable")
        .output()
        .expect("it runs");
    assert_eq!(json(&environment.stdout)["backend"], "portable");
}
