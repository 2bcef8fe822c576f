//! C sources to assembly, by the compilers of this machine.
#![forbid(unsafe_code)]

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::Path;

use lanework_study::compiler::Compiler;

use super::programs::{Assembly, NotHere};

/// Our own sources, checked against known answers.
const SOURCES: [(&str, &str); 3] = [
    ("chacha20.c", include_str!("../sources/chacha20.c")),
    ("keccak.c", include_str!("../sources/keccak.c")),
    ("sha512.c", include_str!("../sources/sha512.c")),
];

/// One of our own sources.
///
/// # Errors
/// There is none of this name.
pub fn source(name: &str) -> Result<&'static str, NotHere> {
    SOURCES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
        .ok_or_else(|| NotHere(format!("there is no source {name}")))
}

/// Compiles `text` to assembly. `flags` are words; `include` is a folder of headers. Flags that only gcc has are left out for clang.
///
/// # Errors
/// The compiler's error.
pub fn assembly(
    compiler: &Compiler,
    name: &str,
    text: &str,
    flags: &str,
    include: Option<&Path>,
) -> Result<Assembly, NotHere> {
    let failed = |e: io::Error| NotHere(format!("{name}: {}: {e}", compiler.command));
    let folder = tempfile::tempdir().map_err(failed)?;
    let (source, out) = (folder.path().join("source.c"), folder.path().join("source.s"));
    fs::write(&source, text).map_err(failed)?;
    // Only gcc can withhold registers.
    let words: Vec<&str> = flags
        .split_whitespace()
        .filter(|word| {
            compiler.family == "gcc"
                || !word.starts_with("-ffixed-") && *word != "-fno-tree-loop-distribute-patterns"
        })
        .collect();
    // A table for linkers that clang writes and GNU as does not read.
    let words: Vec<&str> =
        words.into_iter().chain((compiler.family == "clang").then_some("-fno-addrsig")).collect();
    let mut arguments: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
    arguments.extend(["-S", "-o"].map(OsStr::new));
    arguments.push(out.as_os_str());
    if let Some(include) = include {
        arguments.extend([OsStr::new("-I"), include.as_os_str()]);
    }
    arguments.push(source.as_os_str());
    compiler.run(arguments).map_err(|why| NotHere(format!("{name}: {why}")))?;
    let text = fs::read_to_string(&out).map_err(failed)?;
    let made_by = Some(format!("{} {}", compiler.version, words.join(" ")));
    Ok(Assembly { name: format!("{name} by {}", compiler.family), text, made_by })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_compile_says_so() {
        let Ok(gcc) = Compiler::gcc() else {
            println!("SKIPPED: no gcc on this machine");
            return;
        };
        let why = assembly(&gcc, "x.c", "int f(void) { return y; }", "-O1", None).expect_err("no such y").0;
        assert!(why.starts_with("x.c: ") && why.contains("'y' undeclared"), "{why}");
    }
}
