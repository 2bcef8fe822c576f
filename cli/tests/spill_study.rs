//! The study `spill-homes` as its users run it: bad input, a user's own file, one of our own kernels.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::{Place, json, no, yes};

/// A stand-in for libjade's function: the pointer that it spills is read back by an index, the length is not.
const OWN: &str = "\
\t.text
\t.globl\tjade_hash_sha512_amd64_ref
jade_hash_sha512_amd64_ref:
\tsubq\t$24, %rsp
\tmovq\t%rdx, (%rsp)
\tmovq\t%rdi, 8(%rsp)
\tmovq\t%rdx, %rcx
\tshrq\t$14, %rcx
\tmovq\t(%rsp,%rcx,8), %rcx
\txorl\t%edi, %edi
\txorl\t%edx, %edx
\tmovq\t8(%rsp), %rdi
\tmovq\t(%rsp), %rax
\tmovq\t%rax, (%rdi)
\tmovq\t%rax, 8(%rcx)
\tmovl\t$0, %eax
\taddq\t$24, %rsp
\tret
";

#[test]
fn bad_input_is_named() {
    let place = Place::new();
    place.put("other.s", b"f:\n\tret\n");
    place.put("bytes.s", b"\xff\xfe");
    let study = |more: &[&str], says: &str| no(&place, &[&["study", "spill-homes"], more].concat(), 2, says);
    study(&["--rows", "sha3"], "--rows: no row 'sha3'\nhelp: choose among kyber768-enc_derand");
    study(&["--rows", "p384-mul-icc"], "p384-mul-gcc");
    study(&["--asm", "sha512"], "ROW=FILE");
    study(&["--asm", "sha3=other.s"], "--asm: no row 'sha3'");
    study(&["--asm", "sha512=absent.s"], "absent.s");
    study(&["--asm", "sha512=other.s"], "other.s: no function jade_hash_sha512_amd64_ref in it");
    study(&["--asm", "sha512=bytes.s"], "bytes.s: not text");
    study(&["--quick", "--full"], "cannot be used with");
    for option in [&["--rows", "sha256"][..], &["--validate-only"], &["--asm", "sha256=other.s"]] {
        let ask = [&["study", "lab-self-check"], option].concat();
        no(&place, &ask, 2, "an option of the study spill-homes, not of lab-self-check");
    }
    std::fs::create_dir_all(place.path("studies/spill-homes")).expect("a folder");
    let toml = include_str!("../../studies/spill-homes/study.toml");
    let template = include_str!("../../studies/spill-homes/study.md");
    place.put("studies/spill-homes/study.md", template.as_bytes());
    for (good, bad, says) in [
        ("inputs = 50\n", "inputs = 0\n", "must be positive"),
        ("\"chacha20\",\n", "\"salsa20\",\n", "there is no row salsa20"),
    ] {
        assert!(toml.contains(good), "{good}");
        place.put("studies/spill-homes/study.toml", toml.replacen(good, bad, 1).as_bytes());
        study(&[], says);
    }
}

/// Whether runs could be followed, and the row made: a machine that must says so.
fn here(findings: &serde_json::Value) -> bool {
    let column = &findings["rows"][0]["homes"]["mm"];
    let why = if column["checks"].is_object() { "" } else { column["why"].as_str().unwrap_or("no row") };
    if why.contains("trace") {
        assert!(std::env::var("LANEWORK_REQUIRE_TRACE").as_deref() != Ok("1"), "{why}");
        println!("SKIPPED: {why}");
        return false;
    }
    true
}

#[test]
fn a_users_own_file_is_judged_and_what_is_read_under_another_name_stays() {
    let place = Place::new();
    place.put("own.s", OWN.as_bytes());
    let ask =
        ["study", "spill-homes", "--validate-only", "--rows", "sha512", "--asm", "sha512=own.s", "--json"];
    let findings = &json(&yes(&place, &ask))["findings"];
    if !here(findings) {
        return;
    }
    let row = &findings["rows"][0];
    assert_eq!((row["name"].as_str(), row["original"].as_bool()), (Some("sha512"), Some(true)), "{row}");
    // The report's policy for this row moves pointers alone, and the pointer cannot move.
    assert!(row["homes"]["own"]["why"].as_str().is_some_and(|why| why.contains("no slot is left")), "{row}");
    let checks = &row["homes"]["mm"]["checks"];
    let moved = checks["by_text"].as_u64().zip(checks["by_runs"].as_u64()).map(|(a, b)| a + b);
    assert_eq!((moved, checks["inputs"].as_u64()), (Some(1), Some(50)), "{row}");
    assert_eq!(checks["taken_back"].as_u64(), Some(1), "{row}");
    assert!(row["stack_ns"].is_null() && row["homes"]["mm"]["finding"].is_null(), "{row}");
}

#[test]
fn a_kernel_of_our_own_is_checked() {
    let place = Place::new();
    if std::process::Command::new("rustc").arg("--version").output().is_err() {
        println!("SKIPPED: no rustc on this machine");
        return;
    }
    let ask = ["study", "spill-homes", "--validate-only", "--rows", "magma-words", "--json"];
    let said = json(&yes(&place, &ask));
    if !here(&said["findings"]) {
        return;
    }
    let row = &said["findings"]["rows"][0];
    let checks = &row["homes"]["mm"]["checks"];
    // An array of the kernel has an unbounded index, so that runs show most of it.
    let moved = checks["by_text"].as_u64().zip(checks["by_runs"].as_u64()).map(|(a, b)| a + b);
    assert!(moved > Some(8) && checks["compared"].as_u64() > Some(10_000), "{row}");
    assert_eq!(checks["inputs"].as_u64(), Some(50), "{row}");
    let page = String::from_utf8(yes(&place, &ask[..ask.len() - 1])).expect("text");
    assert!(page.contains("## What was checked") && page.contains("inputs: no difference"), "{page}");
    assert!(page.contains("Nothing was timed") && !page.contains("home alone"), "{page}");
}
