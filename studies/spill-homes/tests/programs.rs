//! The programs whose spills are studied: our own sources give the known answers, other people's are found and run.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::fmt::Write as _;

use lanework_respill::case::{Case, poison};
use lanework_respill::load::{Externals, Loaded};
use lanework_respill::{Analysis, Program};
use lanework_study::compiler::Compiler;
use sha2::Digest;
use study_spill_homes::compile;
use study_spill_homes::kernels::Rustc;
use study_spill_homes::packages::Packages;
use study_spill_homes::programs::Assembly;
use study_spill_homes::rows::{Rows, Subject};

fn rows() -> Rows {
    toml::from_str(include_str!("../study.toml")).expect("rows")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// The content of the case's written buffers after its measured call.
fn answer(loaded: &Loaded, case: &str) -> Vec<u8> {
    let case = Case::parse(case).expect("a case");
    let mut arena = case.arena();
    let ready = case.prepare(loaded, &mut arena, 1).expect("its functions are there");
    let _ = ready.call(&poison(3));
    let contents = arena.contents();
    case.written().flat_map(|(_, range)| contents[range].to_vec()).collect()
}

fn messages() -> Vec<Vec<u8>> {
    [0usize, 1, 3, 111, 112, 127, 128, 135, 136, 167, 168, 169, 500]
        .iter()
        .map(|&n| (0..n).map(|i| (i * 7 + n) as u8).collect())
        .collect()
}

/// An argument of a case: these bytes, which must be at least one.
fn bytes(message: &[u8]) -> String {
    if message.is_empty() { "bytes 0x00".to_owned() } else { format!("bytes 0x{}", hex(message)) }
}

/// SHA-512 of each function's output for the messages, 200 bytes of each, as OpenSSL computes it.
const SHAKE128: &str = "8192d6774a52be6b9e1f2acb5549fb1f9b81f32cfd62957bfabf9fd3ac160e67180bbe2acb4b2457d92b43b5e304eb4dbcf4f2f8f4092cba2f88d62fad5ae94a";
const SHAKE256: &str = "83dad5390a0b7d963b64a334c55e4f77c536b8ed473b446887d017e3cd1ee43bc76550ef5d8d61d2c482c6cffe5072c3927cc376bde5e9be2bdcc6f4deedbda9";

#[test]
fn our_own_sources_give_the_known_answers() {
    let Ok(gcc) = Compiler::gcc() else {
        println!("SKIPPED: no gcc on this machine");
        return;
    };
    let rows = rows();
    let mut seen = 0;
    for flags in ["", "-DLANES", "-DLANES -mbmi"] {
        if flags.contains("bmi") && !std::arch::is_x86_feature_detected!("bmi1") {
            println!("SKIPPED: {flags}: this processor has no BMI1");
            continue;
        }
        for file in ["sha512.c", "chacha20.c", "keccak.c"] {
            let flags = format!("{} {flags}", rows.compilers.starved);
            let made = compile::assembly(&gcc, file, compile::source(file).expect("a source"), &flags, None)
                .expect("compiled");
            let program = Program::new(&made.name, made.text).unwrap_or_else(|e| panic!("{e}"));
            let loaded = Loaded::new(&program, &Externals::default()).unwrap_or_else(|e| panic!("{e}"));
            let (mut one, mut two) = (Vec::new(), Vec::new());
            for message in messages() {
                let (n, said) = (message.len(), bytes(&message));
                let ask = |function: &str, more: &str| {
                    answer(&loaded, &format!("measure {function}(out: out 64, {more} input: {said}, {n})"))
                };
                match file {
                    "sha512.c" => {
                        assert_eq!(ask("spill_sha512", ""), sha2::Sha512::digest(&message).to_vec(), "{n}");
                    }
                    "keccak.c" => {
                        let ask = |function: &str| {
                            answer(
                                &loaded,
                                &format!("measure {function}(out: out 200, 200, input: {said}, {n})"),
                            )
                        };
                        one.extend(ask("spill_shake128"));
                        two.extend(ask("spill_shake256"));
                    }
                    _ => {
                        // Enciphering is adding the keystream.
                        let nonce = "nonce: bytes 0x0001020304050607, key: bytes 0x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
                        let size = n.max(1);
                        let stream = format!("measure spill_chacha20(out: out {size}, {n}, {nonce})");
                        let xor =
                            format!("measure spill_chacha20_xor(out: out {size}, in: {said}, {n}, {nonce})");
                        let (stream, xored) = (answer(&loaded, &stream), answer(&loaded, &xor));
                        for i in 0..n {
                            assert_eq!(stream[i] ^ message[i], xored[i], "byte {i} of {n}");
                        }
                    }
                }
                seen += 1;
            }
            if file == "keccak.c" {
                for (all, expected) in [(one, SHAKE128), (two, SHAKE256)] {
                    assert_eq!(hex(&sha2::Sha512::digest(&all)), expected, "{flags}");
                }
            }
            if file == "chacha20.c" {
                // Bernstein's function of zeros (the first vector of RFC 8439, appendix A.1, whose nonce of 12 bytes is zero too), and
                // the vector of draft-agl-tls-chacha20poly1305-04 with a nonce of eight bytes.
                for (nonce, key, expected) in [
                    (
                        "00".repeat(8),
                        "00".repeat(32),
                        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586",
                    ),
                    (
                        "00".repeat(8),
                        format!("{}01", "00".repeat(31)),
                        "4540f05a9f1fb296d7736e7b208e3c96eb4fe1834688d2604f450952ed432d41bbe2a0b6ea7566d2a5d1e7e20d42af2c53d792b1c43fea817e9ad275ae546963",
                    ),
                ] {
                    let case = format!(
                        "measure spill_chacha20(out: out 64, 64, nonce: bytes 0x{nonce}, key: bytes 0x{key})"
                    );
                    assert_eq!(hex(&answer(&loaded, &case)), expected);
                }
            }
        }
    }
    assert!(seen >= 2 * 3 * messages().len());
}

/// Programs that have been looked at: several rows can have one.
#[derive(Default)]
struct Seen(HashMap<String, (Analysis, Loaded)>);

impl Seen {
    /// A row's program is analysed, has the function, and runs. Returns the slots of the function and of what it calls.
    fn slots(&mut self, subject: &Subject) -> usize {
        let name = &subject.name;
        let Assembly { name: file, text, made_by } = &subject.assembly;
        let key = format!("{file} {}", made_by.as_deref().unwrap_or_default());
        let (analysis, loaded) = self.0.entry(key).or_insert_with(|| {
            let program = Program::new(file, &**text).unwrap_or_else(|e| panic!("{e}"));
            let loaded =
                Loaded::new(&program, &Externals::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
            (Analysis::new(program), loaded)
        });
        let one = answer(loaded, &subject.case);
        assert_eq!(one, answer(loaded, &subject.case), "{name}: the same case, another answer");
        let entry = analysis.units.iter().position(|u| u.function.names.contains(&subject.function));
        let entry = entry.unwrap_or_else(|| panic!("{name}: no function {}", subject.function));
        let reached: Vec<usize> = analysis.below(entry).into_iter().chain([entry]).collect();
        for &n in &reached {
            assert!(analysis.units[n].opaque.is_none(), "{name}: {:?}", analysis.units[n].opaque);
        }
        reached.iter().map(|&n| analysis.units[n].slots.len()).sum()
    }
}

#[test]
fn every_row_is_found_and_runs() {
    let rows = rows();
    assert_eq!(rows.row.iter().filter(|row| row.original.is_some()).count(), 17, "the report has 17 rows");
    let packages = Packages::find();
    let bmi = std::arch::is_x86_feature_detected!("bmi1");
    let mulx = std::arch::is_x86_feature_detected!("bmi2") && std::arch::is_x86_feature_detected!("adx");
    let (mut found, mut own, mut seen) = (0, 0, Seen::default());
    for row in &rows.row {
        if row.flags.contains("bmi") && !bmi || row.name.contains("mulx") && !mulx {
            println!("SKIPPED: {}: this processor has not its instructions", row.name);
            continue;
        }
        match row.subject(&rows.compilers, &packages, None) {
            Ok(subject) => {
                assert!(seen.slots(&subject) > 0, "{}: no slots", row.name);
                if subject.original { found += 1 } else { own += 1 }
            }
            Err(why) => println!("SKIPPED: {}: {why}", row.name),
        }
    }
    println!("ran: {found} rows of libjade's, {own} of ours");
    for compiler in [Compiler::gcc(), Compiler::clang()] {
        match compiler {
            Ok(compiler) => {
                for fiat in &rows.fiat {
                    match fiat.subject(&rows.compilers, &packages, &compiler) {
                        Ok(subject) => assert!(seen.slots(&subject) > 0, "{}: no slots", subject.name),
                        Err(why) => println!("SKIPPED: {}: {why}", fiat.name),
                    }
                }
            }
            Err(why) => println!("SKIPPED: {why}"),
        }
    }
    if packages.is_ok() && mulx {
        assert_eq!(found, 9, "eight of the report's rows, and poly1305");
    }
}

/// The same row from a user's own file is the report's function.
#[test]
fn a_users_own_file_is_the_original() {
    let rows = rows();
    let row = rows.row.iter().find(|row| row.name == "sha512").expect("the row");
    let own = Assembly { name: "own.s".into(), text: "nop\n".into(), made_by: None };
    let subject = row.subject(&rows.compilers, &Packages::find(), Some(own)).expect("given");
    assert!(
        subject.original && subject.case.contains("measure jade_hash_sha512_amd64_ref("),
        "{}",
        subject.case
    );
}

/// Lanework's own kernels, compiled on the spot, still give the answers that their crates are checked against.
#[test]
fn our_own_kernels_give_the_known_answers() {
    let Ok(rustc) = Rustc::find() else {
        println!("SKIPPED: no rustc on this machine");
        return;
    };
    let rows = rows();
    let mut programs: HashMap<&str, Loaded> = HashMap::new();
    let mut answers: HashMap<&str, Vec<u8>> = HashMap::new();
    for kernel in &rows.kernel {
        let subject = match kernel.subject(&rows.compilers.rust, &rustc) {
            Ok(subject) => subject,
            Err(why) => {
                println!("SKIPPED: {}: {why}", kernel.name);
                continue;
            }
        };
        let loaded = programs.entry(&kernel.source).or_insert_with(|| {
            let program = Program::new(&subject.assembly.name, &*subject.assembly.text)
                .unwrap_or_else(|e| panic!("{}: {e}", kernel.name));
            Loaded::new(&program, &Externals::default()).unwrap_or_else(|e| panic!("{}: {e}", kernel.name))
        });
        let function = &kernel.function;
        let (case, expected) = match kernel.name.as_str() {
            // RFC 8891, appendix A.4, in every place.
            "magma-words" | "magma-planes" => {
                let blocks = if kernel.name == "magma-words" { 32 } else { 128 };
                let input = "fedcba9876543210".repeat(blocks);
                let key = "ffeeddccbbaa99887766554433221100f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";
                let case = format!(
                    "measure {function}(out: out {}, in: bytes 0x{input}, key: bytes 0x{key})",
                    8 * blocks
                );
                (case, "4ee901e5c2d8ca3d".repeat(blocks))
            }
            // Two polynomials' values as bytes; their divisor as Python's math.gcd computes it: 133,317.
            "gcd-euclid-portable" | "gcd-euclid-adx" => {
                let number = |s: u32, t: u32| -> String {
                    let byte = |i: u32| (i * i * i * s + 3 * i * i + i * t + 1) as u8;
                    hex(&(0..128).map(byte).collect::<Vec<u8>>())
                };
                let (a, b) = (number(7, 78), number(9, 84));
                let case = format!("measure {function}(out: out 160, a: bytes 0x{a}, b: bytes 0x{b})");
                (case, format!("c50802{}", "00".repeat(125)))
            }
            // The digest of a thousand zeros by FIPS 202, as Python's hashlib computes it.
            "mayo-shake256" => {
                let case = format!("measure {function}(out: out 1000, in: bytes 0x{})", "00".repeat(1000));
                (case, "8cf4d9b084d3c0b38f3b716c74d3d1d39a84fb66dcf76d59265dbaf4316cf4ad".to_owned())
            }
            _ => (subject.case.clone(), String::new()),
        };
        let answer = answer(loaded, &case);
        assert!(hex(&answer).starts_with(&expected), "{}: {}", kernel.name, &hex(&answer)[..64]);
        assert!(answer.iter().any(|&byte| byte != 0), "{}", kernel.name);
        answers.insert(&kernel.name, answer);
    }
    for (one, other) in [("gcd-euclid-portable", "gcd-euclid-adx"), ("gcd-binary-portable", "gcd-binary-adx")]
    {
        if let Some(adx) = answers.get(other) {
            assert!(answers[one] == *adx, "{one} and {other} differ");
        }
    }
    println!("ran: {} kernels of our own", answers.len());
}
