//! The examples and the known answers, compiled by gcc and clang against both libraries, under the sanitizers and under memcheck.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// If set to 1, a missing compiler is a failure.
const REQUIRE: &str = "LANEWORK_REQUIRE_CXX";
/// If set to 1, a missing valgrind is a failure.
const REQUIRE_VALGRIND: &str = "LANEWORK_REQUIRE_VALGRIND";

/// The programs; all but the last are C.
const PROGRAMS: [&str; 6] = [
    "tests/c/known.c",
    "examples/sign.c",
    "examples/encrypt.c",
    "examples/batch.c",
    "examples/chia.c",
    "examples/sign.cpp",
];

const WARNINGS: [&str; 5] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g"];
const SANITIZERS: [&str; 3] =
    ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"];
/// What the static library needs beside itself: `Libs.private` of `lanework.pc`.
const PRIVATE: [&str; 4] = ["-lgcc_s", "-lpthread", "-lm", "-ldl"];

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn runs(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|out| out.status.success())
}

/// Whether a tool is there. A missing one is said, or a failure where `require` is 1.
fn have(program: &str, require: &str) -> bool {
    let there = runs(program);
    if !there {
        assert!(std::env::var_os(require).is_none_or(|v| v != "1"), "{require}=1 and no {program}");
        let _ = std::io::stderr()
            .write_all(format!("SKIPPED: the C programs by {program}, which is not here\n").as_bytes());
    }
    there
}

/// The folders of an installation, with the libraries that cargo built for this test.
fn prefix() -> tempfile::TempDir {
    let deps = std::env::current_exe().expect("a test").parent().expect("a folder").to_owned();
    let prefix = tempfile::tempdir().expect("a folder");
    for folder in ["shared", "static", "bin"] {
        fs::create_dir(prefix.path().join(folder)).expect("a folder");
    }
    for (from, to) in [
        ("liblanework.so", "shared/liblanework.so.0"),
        ("liblanework.so", "shared/liblanework.so"),
        ("liblanework.a", "static/liblanework.a"),
    ] {
        fs::hard_link(deps.join(from), prefix.path().join(to))
            .or_else(|_| fs::copy(deps.join(from), prefix.path().join(to)).map(drop))
            .expect("a library");
    }
    prefix
}

/// Compiles a program.
fn compile(compiler: (&str, &str), program: &str, prefix: &Path, library: &str, more: &[&str]) -> PathBuf {
    let cpp = program.ends_with(".cpp");
    let out = prefix.join("bin").join(Path::new(program).file_name().expect("a file"));
    let made = Command::new(if cpp { compiler.1 } else { compiler.0 })
        .arg(if cpp { "-std=c++17" } else { "-std=c11" })
        .args(WARNINGS)
        .args(more)
        .arg("-I")
        .arg(here())
        .arg(here().join(program))
        .arg("-o")
        .arg(&out)
        .arg("-L")
        .arg(prefix.join(library))
        .arg("-llanework")
        .args(if library == "static" { &PRIVATE[..] } else { &[] })
        .output()
        .expect("a compiler");
    assert!(made.status.success(), "{program}: {}", String::from_utf8_lossy(&made.stderr));
    out
}

/// Runs a program, which must exit with 0.
fn run(program: &Path, prefix: &Path, under: &[&str]) {
    let mut line: Vec<OsString> = under.iter().map(OsString::from).collect();
    line.push(program.into());
    let out = Command::new(&line[0])
        .args(&line[1..])
        .env("LD_LIBRARY_PATH", prefix.join("shared"))
        .output()
        .expect("a program");
    let said = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{line:?}: {}\n{said}", out.status);
}

fn all(compiler: (&str, &str)) {
    if !have(compiler.0, REQUIRE) || !have(compiler.1, REQUIRE) {
        return;
    }
    let prefix = prefix();
    for program in PROGRAMS {
        let runs: [(&str, &[&str]); 3] =
            [("shared", &["-O2"]), ("static", &["-O2"]), ("shared", &SANITIZERS)];
        for (library, more) in runs {
            run(&compile(compiler, program, prefix.path(), library, more), prefix.path(), &[]);
        }
    }
    println!("ran: {} C programs by {}, shared, static and sanitized", PROGRAMS.len(), compiler.0);
}

#[test]
fn programs_by_gcc() {
    all(("gcc", "g++"));
}

#[test]
fn programs_by_clang() {
    let named = if runs("clang-19") { ("clang-19", "clang++-19") } else { ("clang", "clang++") };
    all(named);
}

#[test]
fn programs_under_memcheck() {
    if !have("gcc", REQUIRE) || !have("g++", REQUIRE) || !have("valgrind", REQUIRE_VALGRIND) {
        return;
    }
    let prefix = prefix();
    let memcheck = [
        "valgrind",
        "--quiet",
        "--error-exitcode=9",
        "--leak-check=full",
        "--errors-for-leak-kinds=definite",
    ];
    for program in PROGRAMS {
        run(&compile(("gcc", "g++"), program, prefix.path(), "shared", &["-O1"]), prefix.path(), &memcheck);
    }
    println!("ran: {} C programs under valgrind", PROGRAMS.len());
}

/// The sanitizers and memcheck look at all: a program that reads past a buffer of the library's caller is found.
#[test]
fn a_planted_fault_is_found() {
    if !have("gcc", REQUIRE) || !have("valgrind", REQUIRE_VALGRIND) {
        return;
    }
    let prefix = prefix();
    let source = prefix.path().join("planted.c");
    let text = "#include <lanework.h>\n#include <stdlib.h>\nint main(void) { uint8_t *p = malloc(31); const lw_magma_key *key;\n\
                for (int i = 0; i < 31; i++) p[i] = 1;\nlw_magma_key_new(p, p[0] == 1 ? 32 : 31, &key);\n\
                return lw_magma_key_used(key) != 0 || p[31] == 77; }\n";
    fs::write(&source, text).expect("a file");
    let source = source.to_str().expect("a path");
    let failed = |more: &[&str], under: &[&str]| {
        let built = compile(("gcc", "g++"), source, prefix.path(), "shared", more);
        let found = std::panic::catch_unwind(|| run(&built, prefix.path(), under));
        let said = found.expect_err("the fault is found");
        let said = said.downcast_ref::<String>().expect("a message");
        assert!(said.contains("heap-buffer-overflow") || said.contains("Invalid read of size"), "{said}");
    };
    failed(&SANITIZERS, &[]);
    failed(&[], &["valgrind", "--quiet", "--error-exitcode=9"]);
}
