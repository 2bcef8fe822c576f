//! `lanework.h` is what cbindgen makes of the sources, and the library exports what the header declares and nothing else.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The header, made anew. The files' order is the header's.
fn header() -> String {
    let files = ["version.rs", "status.rs", "mayo.rs", "magma.rs", "magma/mgm.rs", "vdf.rs"];
    let config = cbindgen::Config::from_file(here().join("cbindgen.toml")).expect("a configuration");
    let sources = files.iter().fold(cbindgen::Builder::new().with_config(config), |builder, file| {
        builder.with_src(here().join("src").join(file))
    });
    let mut out = Vec::new();
    sources.generate().expect("sources that cbindgen understands").write(&mut out);
    String::from_utf8(out).expect("text")
}

/// The names that the header declares as functions.
fn declared(header: &str) -> BTreeSet<String> {
    let calls = header.lines().filter(|line| !line.starts_with("//") && !line.starts_with(' '));
    let name = |line: &str| {
        let (before, _) = line.split_once('(')?;
        let name = before.rsplit([' ', '*']).next()?;
        (name.starts_with("lw_") && !line.starts_with("typedef")).then(|| name.to_owned())
    };
    calls.filter_map(name).collect()
}

/// Compares a file with what it should be; `LANEWORK_BLESS=1` rewrites it.
fn agree(file: &str, made: &str) {
    let path = here().join(file);
    if std::env::var_os("LANEWORK_BLESS").is_some_and(|v| v == "1") {
        fs::write(&path, made).expect("a file");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == made,
        "{file} is not of these sources: LANEWORK_BLESS=1 cargo test -p lanework-c --test header"
    );
}

/// Where cargo put the library: beside the tests, or one folder up.
fn library() -> PathBuf {
    let deps = std::env::current_exe().expect("a test").parent().expect("a folder").to_owned();
    deps.join("liblanework.so")
}

#[test]
fn the_header_is_of_these_sources() {
    agree("lanework.h", &header());
}

#[test]
fn the_library_exports_what_the_header_declares() {
    let declared = declared(&header());
    assert!(declared.len() > 80 && declared.contains("lw_mayo_sign"), "{declared:?}");
    agree("symbols.txt", &declared.iter().map(|name| format!("{name}\n")).collect::<String>());
    let nm =
        Command::new("nm").args(["-D", "--defined-only", "--format=just-symbols"]).arg(library()).output();
    let Ok(nm) = nm else {
        eprintln!("SKIPPED: exported symbols, since there is no nm");
        return;
    };
    assert!(nm.status.success(), "{}", String::from_utf8_lossy(&nm.stderr));
    let exported: BTreeSet<String> =
        String::from_utf8_lossy(&nm.stdout).split_whitespace().map(str::to_owned).collect();
    assert_eq!(exported, declared);
}
