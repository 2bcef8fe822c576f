//! C sources to assembly, by the compilers of this machine.
#![forbid(unsafe_code)]

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

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

/// A compiler of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiler {
    /// `gcc` or `clang`.
    pub family: &'static str,
    /// The command.
    pub command: String,
    /// The first line of its version text.
    pub version: String,
}

impl Compiler {
    /// gcc, by this name or as `cc`.
    ///
    /// # Errors
    /// None is here.
    pub fn gcc() -> Result<Compiler, NotHere> {
        Compiler::first("gcc", &["gcc".to_owned(), "cc".to_owned()])
    }

    /// clang, by this name or with its number.
    ///
    /// # Errors
    /// None is here.
    pub fn clang() -> Result<Compiler, NotHere> {
        let numbered = (14..=24).rev().map(|n| format!("clang-{n}"));
        Compiler::first("clang", &std::iter::once("clang".to_owned()).chain(numbered).collect::<Vec<_>>())
    }

    fn first(family: &'static str, commands: &[String]) -> Result<Compiler, NotHere> {
        for command in commands {
            let Ok(output) = Command::new(command).arg("--version").stdin(Stdio::null()).output() else {
                continue;
            };
            let said = String::from_utf8_lossy(&output.stdout);
            let clang = said.contains("clang");
            if output.status.success() && clang == (family == "clang") {
                let version = said.lines().next().unwrap_or_default().to_owned();
                return Ok(Compiler { family, command: command.clone(), version });
            }
        }
        Err(NotHere(format!("{family} is not on this machine (its package is called {family})")))
    }

    /// Compiles `text` to assembly. `flags` are words; `include` is a folder of headers. Flags that only gcc has are left out for clang.
    ///
    /// # Errors
    /// The compiler's error.
    pub fn assembly(
        &self,
        name: &str,
        text: &str,
        flags: &str,
        include: Option<&Path>,
    ) -> Result<Assembly, NotHere> {
        let failed = |e: io::Error| NotHere(format!("{name}: {}: {e}", self.command));
        let folder = tempfile::tempdir().map_err(failed)?;
        let (source, out) = (folder.path().join("source.c"), folder.path().join("source.s"));
        fs::write(&source, text).map_err(failed)?;
        // Only gcc can withhold registers.
        let words: Vec<&str> = flags
            .split_whitespace()
            .filter(|word| {
                self.family == "gcc"
                    || !word.starts_with("-ffixed-") && *word != "-fno-tree-loop-distribute-patterns"
            })
            .collect();
        // A table for linkers that clang writes and GNU as does not read.
        let words: Vec<&str> =
            words.into_iter().chain((self.family == "clang").then_some("-fno-addrsig")).collect();
        let mut command = Command::new(&self.command);
        command.args(&words).arg("-S").arg("-o").arg(&out).env("LC_ALL", "C").stdin(Stdio::null());
        if let Some(include) = include {
            command.arg("-I").arg(include);
        }
        let output = command.arg(&source).output().map_err(failed)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let why = said.lines().find(|line| line.contains("error")).unwrap_or("it failed without a word");
            let why = why.rsplit_once("error: ").map_or(why, |(_, why)| why);
            return Err(NotHere(format!("{name}: {}: {why}", self.command)));
        }
        let text = fs::read_to_string(&out).map_err(failed)?;
        let made_by = Some(format!("{} {}", self.version, words.join(" ")));
        Ok(Assembly { name: format!("{name} by {}", self.family), text, made_by })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_compile_says_so() {
        let Ok(gcc) = Compiler::gcc() else {
            println!("skipped: no gcc");
            return;
        };
        let why = gcc.assembly("x.c", "int f(void) { return y; }", "-O1", None).expect_err("no such y").0;
        assert!(why.starts_with("x.c: ") && why.contains("'y' undeclared"), "{why}");
        assert!(Compiler::first("gcc", &["no-such-compiler".to_owned()]).is_err());
    }
}
