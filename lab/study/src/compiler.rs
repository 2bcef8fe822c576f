//! The C compilers of this machine.
#![forbid(unsafe_code)]

use std::ffi::OsStr;
use std::process::{Command, Stdio};

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
    pub fn gcc() -> Result<Compiler, String> {
        Compiler::first("gcc", &["gcc".to_owned(), "cc".to_owned()])
    }

    /// clang, by this name or with its number.
    ///
    /// # Errors
    /// None is here.
    pub fn clang() -> Result<Compiler, String> {
        let numbered = (14..=24).rev().map(|n| format!("clang-{n}"));
        Compiler::first("clang", &std::iter::once("clang".to_owned()).chain(numbered).collect::<Vec<_>>())
    }

    fn first(family: &'static str, commands: &[String]) -> Result<Compiler, String> {
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
        Err(format!("{family} is not on this machine (its package is called {family})"))
    }

    /// Runs it with these arguments, in English.
    ///
    /// # Errors
    /// Its first error, without the place.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Result<(), String> {
        let mut command = Command::new(&self.command);
        let output = command.args(arguments).env("LC_ALL", "C").stdin(Stdio::null()).output();
        let output = output.map_err(|e| format!("{}: {e}", self.command))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let why = said.lines().find(|line| line.contains("error")).unwrap_or("it failed without a word");
        let why = why.rsplit_once("error: ").map_or(why, |(_, why)| why);
        Err(format!("{}: {why}", self.command))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_compiler_is_a_reason() {
        let why = Compiler::first("gcc", &["no-such-compiler".to_owned()]).expect_err("there is none");
        assert!(why.contains("gcc is not on this machine"), "{why}");
        let gone = Compiler { family: "gcc", command: "no-such-compiler".into(), version: String::new() };
        assert!(gone.run(["-c"]).is_err_and(|why| why.starts_with("no-such-compiler: ")));
    }
}
