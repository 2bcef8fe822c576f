//! The study `spill-homes` as its users run it: bad input, a user's own file, one of our own kernels.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use crate::common::{Place, code, json, no, stderr, yes};

/// A stand-in for libjade's function: the pointer that it spills is read back by an index, the length is not.
const OWN: &str = "\
\t.text
\t.globl\tjade_hash_sha512_amd64_ref
jade_hash_sha512_amd64_ref:
\tsubq\t$24, %rsp
\tmovq\t%rdx, (%rsp)
\tmovq\t%rdi, 8(%rsp)
\tmovq\t%rdx, %rcx
\torq\t$16384, %rcx
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
    place.put("own.s", OWN.as_bytes());
    place.put("again.s", OWN.as_bytes());
    place.put("third.s", OWN.as_bytes());
    // The name is in it, but not as a function.
    place.put("names.s", b"# jade_hash_sha512_amd64_ref\n\t.globl g\ng:\n\tret\n");
    place.put("source.c", b"int jade_hash_sha512_amd64_ref(void) { return 0; }\n");
    place.put("words.s", b"frobnicate %rax\nunfrobnicate %rbx\n");
    place.put("empty.s", b"");
    std::os::unix::fs::symlink("own.s", place.path("link.s")).expect("a link");
    for (said, error, help) in [
        ("sha512", "--asm: no row named in 'sha512'", "write ROW=BASELINE[,MMX[,REBUILT]]"),
        ("sha3=own.s", "--asm: no row 'sha3'", "choose among kyber768-enc_derand"),
        ("sha3*=own.s", "--asm: no row 'sha3*'", "choose among kyber768-enc_derand"),
        ("sha512=absent.s", "absent.s: No such file", "name a file that exists"),
        ("sha512=own.s,absent.s", "absent.s: No such file", "name a file that exists"),
        ("sha512=own.s,", "--asm: an empty file name in 'sha512=own.s,'", "write ROW=BASELINE"),
        ("sha512=.", ".: Is a directory", "name a file of text"),
        ("sha512=/dev/zero", "/dev/zero: longer than 268435456 bytes", "name a file of text"),
        (
            "sha512=other.s",
            "other.s: no function jade_hash_sha512_amd64_ref in it",
            "no function in it is .globl",
        ),
        ("sha512=own.s,names.s", "names.s: no function jade_hash_sha512_amd64_ref in it", "this file has g"),
        ("sha512=own.s,own.s", "own.s: the same file twice for one row", "files of their own"),
        ("sha512=own.s,link.s", "link.s: the same file twice for one row", "files of their own"),
        ("sha512=own.s,again.s,third.s,other.s", "--asm: 4 files for 'sha512', three at most", "[,REBUILT]"),
        ("sha512=bytes.s", "bytes.s: not text", "name a .s file, not an object"),
        ("sha512=source.c", "source.c", "name assembly as GNU as reads it"),
        ("sha512=own.s,words.s", "words.s", "name assembly as GNU as reads it"),
        ("sha512=empty.s", "empty.s: there is no instruction in it", "name assembly as GNU as reads it"),
    ] {
        let out = place.run(&["study", "spill-homes", "--asm", said]);
        let text = stderr(&out);
        assert_eq!(code(&out), 2, "{said}: {text}");
        let (what, todo) = text.split_once("\nhelp: ").unwrap_or_else(|| panic!("{said}: {text}"));
        assert!(what.starts_with("error: ") && what.contains(error) && todo.contains(help), "{said}: {text}");
    }
    let twice = ["--asm", "sha512=own.s", "--asm", "sha512*=again.s"];
    study(&twice, "--asm: row 'sha512' is there twice\nhelp: give each row its files once");
    study(&["--quick", "--full"], "cannot be used with");
    for option in [&["--rows", "sha256"][..], &["--validate-only"], &["--asm", "sha256=other.s"]] {
        let ask = [&["study", "lab-self-check"], option].concat();
        no(&place, &ask, 2, "an option of the study spill-homes, not of lab-self-check");
    }
    std::fs::create_dir_all(place.path("studies/spill-homes")).expect("a folder");
    let toml = include_str!("../../../studies/spill-homes/study.toml");
    let template = include_str!("../../../studies/spill-homes/study.md");
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

/// Whether runs could be followed and the row made. A machine that must follow runs fails the test if it cannot.
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
    // The report's policy for this row moves only pointers, and the pointer cannot move.
    assert!(row["homes"]["own"]["why"].as_str().is_some_and(|why| why.contains("no slot is left")), "{row}");
    let checks = &row["homes"]["mm"]["checks"];
    let moved = checks["by_text"].as_u64().zip(checks["by_runs"].as_u64()).map(|(a, b)| a + b);
    assert_eq!((moved, checks["inputs"].as_u64()), (Some(1), Some(150)), "{row}");
    assert_eq!(checks["taken_back"].as_u64(), Some(1), "{row}");
    assert!(row["stack_ns"].is_null() && row["homes"]["mm"]["finding"].is_null(), "{row}");
}

/// The same function with its length in an MMX register. It leaves without `emms`.
fn in_mmx() -> String {
    let moved = OWN
        .replace("movq\t%rdx, (%rsp)\n\tmovq\t%rdi", "movq\t%rdx, %mm0\n\tmovq\t%rdx, (%rsp)\n\tmovq\t%rdi");
    moved.replace("movq\t(%rsp), %rax", "movq\t%mm0, %rax")
}

#[test]
fn other_builds_are_looked_at_compared_and_raced() {
    let place = Place::new();
    place.put("own.s", OWN.as_bytes());
    place.put("same.s", OWN.as_bytes());
    place.put("mmx.s", in_mmx().as_bytes());
    let study = |files: &str, more: &[&str]| {
        let asm = format!("sha512={files}");
        let ask = ["study", "spill-homes", "--rows", "sha512", "--asm", &asm, "--json"];
        json(&yes(&place, &[&ask[..], more].concat()))["findings"].clone()
    };
    let findings = study("own.s,mmx.s,same.s", &["--validate-only"]);
    let row = &findings["rows"][0];
    let (mmx, same) = (&row["builds"]["mmx-build"], &row["builds"]["rebuilt"]);
    assert_eq!((row["code"]["mmx"].as_u64(), mmx["code"]["mmx"].as_u64()), (Some(0), Some(2)), "{row}");
    assert_eq!((mmx["code"]["stack"].as_u64(), mmx["code"]["emms"].as_u64()), (Some(6), Some(0)), "{row}");
    assert_eq!((mmx["identical"].as_bool(), same["identical"].as_bool()), (Some(false), Some(true)), "{row}");
    assert_eq!((mmx["same_results"].as_u64(), same["same_results"].as_u64()), (Some(50), Some(50)), "{row}");
    assert_eq!(
        (mmx["float_after"].as_str(), same["float_after"].as_str()),
        (Some("NaN"), Some("4.5")),
        "{row}"
    );
    assert_eq!((mmx["faults"].as_u64(), same["faults"].as_u64()), (Some(1), Some(0)), "{row}");
    assert!(mmx["first_fault"].as_str().is_some_and(|why| why.contains("left without emms")), "{row}");
    assert!(mmx["beside_stack"].is_null() && mmx["beside_rebuilt"].is_null(), "{row}");
    let told = |findings: &serde_json::Value| findings["told"].to_string();
    assert!(told(&findings).contains("Nothing was timed"), "{findings}");
    // Timed: MMX left in use does not stop the race, and the flags' part is separate.
    let row = &study("own.s,mmx.s,same.s", &[])["rows"][0];
    for part in ["beside_stack", "beside_rebuilt"] {
        assert!(row["builds"]["mmx-build"][part]["more"].is_f64(), "{row}");
    }
    assert!(row["builds"]["rebuilt"]["beside_stack"]["more"].is_f64(), "{row}");
}

#[test]
fn a_build_with_other_results_is_not_raced() {
    let place = Place::new();
    place.put("own.s", OWN.as_bytes());
    place.put("wrong.s", in_mmx().replace("movq\t%rax, (%rdi)", "movq\t%rcx, (%rdi)").as_bytes());
    place.put("kept.s", in_mmx().replace("ret\n", "movl\t$1, %ebx\n\tret\n").as_bytes());
    for (file, why) in [("wrong.s", "differs"), ("kept.s", "what a callee must keep differs")] {
        let asm = format!("sha512=own.s,{file}");
        let ask = ["study", "spill-homes", "--rows", "sha512", "--asm", &asm];
        no(&place, &ask, 3, "no row of the study can be run here: sha512: mmx-build: input 0: ");
        no(&place, &ask, 3, why);
    }
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
    // An array of the kernel has an unbounded index, so runs show most of it.
    let moved = checks["by_text"].as_u64().zip(checks["by_runs"].as_u64()).map(|(a, b)| a + b);
    assert!(moved > Some(8) && checks["compared"].as_u64() > Some(10_000), "{row}");
    assert_eq!(checks["inputs"].as_u64(), Some(50), "{row}");
    let page = String::from_utf8(yes(&place, &ask[..ask.len() - 1])).expect("text");
    assert!(page.contains("## What was checked") && page.contains("inputs: no difference"), "{page}");
    assert!(page.contains("Nothing was timed") && !page.contains("home alone"), "{page}");
}
