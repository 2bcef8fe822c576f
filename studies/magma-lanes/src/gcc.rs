//! The report's loop in C, by this machine's gcc under the flags that the report chose among.
//!
//! The source is ours (`sources/loop.c`). With `--kuznyechik FILE`, that file is raced as well: `magma.c` of kuznyechik-kernel, from which
//! the report's scalar code comes. It is read where it lies and is not part of this repository.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SOURCE: &str = include_str!("../sources/loop.c");

/// Headers that kuznyechik-kernel's file includes; `loop.c` declares what it uses of them.
const HEADERS: [&str; 5] = ["init.h", "module.h", "mm.h", "crypto.h", "types.h"];

/// The flags that race, the report's own first.
pub(super) const FLAGS: [&str; 8] = [
    "-O3 -march=native",
    "-O3",
    "-O2 -march=native",
    "-O2",
    "-O1 -march=native",
    "-O1",
    "-O0 -march=native",
    "-O0",
];

/// What the program can loop over: its argument, and the configuration's name in tables.
pub(super) const LOOPS: [(&str, &str); 3] =
    [("scalar", "C-scalar (leaks)"), ("eight", "C-avx2"), ("kuznyechik", "kuznyechik-kernel (leaks)")];

/// gcc of this machine.
pub(super) struct Gcc {
    command: &'static str,
    /// The first line of its version text.
    pub(super) version: String,
}

impl Gcc {
    /// It, or why not.
    pub(super) fn find() -> Result<Gcc, String> {
        Gcc::first(&["gcc", "cc"])
    }

    fn first(commands: &[&'static str]) -> Result<Gcc, String> {
        for command in commands {
            let Ok(output) = Command::new(command).arg("--version").stdin(Stdio::null()).output() else {
                continue;
            };
            let said = String::from_utf8_lossy(&output.stdout);
            if output.status.success() && !said.contains("clang") {
                return Ok(Gcc { command, version: said.lines().next().unwrap_or_default().to_owned() });
            }
        }
        Err("gcc is not on this machine (its package is called gcc)".to_owned())
    }

    /// The loop under these flags, as a program in `folder`.
    pub(super) fn build(
        &self,
        folder: &Path,
        flags: &str,
        kuznyechik: Option<&Path>,
    ) -> Result<PathBuf, String> {
        self.compile(folder, SOURCE, flags, kuznyechik)
    }

    fn compile(
        &self,
        folder: &Path,
        text: &str,
        flags: &str,
        kuznyechik: Option<&Path>,
    ) -> Result<PathBuf, String> {
        let failed = |e: std::io::Error| format!("{}: {e}", self.command);
        let (source, program) =
            (folder.join("loop.c"), folder.join(format!("loop{}", flags.replace(' ', ""))));
        fs::write(&source, text).map_err(failed)?;
        let mut command = Command::new(self.command);
        command.args(flags.split(' ')).arg("-w").env("LC_ALL", "C").stdin(Stdio::null());
        if cfg!(target_arch = "x86_64") {
            command.arg("-mavx2");
        }
        if let Some(file) = kuznyechik {
            let file = std::path::absolute(file).map_err(failed)?;
            fs::create_dir_all(folder.join("linux")).map_err(failed)?;
            for header in HEADERS {
                fs::write(folder.join("linux").join(header), "").map_err(failed)?;
            }
            command.arg(format!("-DKUZNYECHIK=\"{}\"", file.display())).arg("-I").arg(folder);
        }
        let output = command.arg("-o").arg(&program).arg(&source).output().map_err(failed)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let why = said.lines().find(|line| line.contains("error")).unwrap_or("it failed without a word");
            return Err(format!("{} {flags}: {why}", self.command));
        }
        Ok(program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::{GATE_COUNT, Report, judge};
    use crate::subjects::REPORT;
    use crate::variants::VARIANTS;
    use lanework_race::process::Program;
    use lanework_study::process::answer;

    fn blocks(gcc: &Gcc, folder: &Path, text: &str, flags: &str, which: &str) -> Report {
        let program = gcc.compile(folder, text, flags, None).expect("it compiles");
        answer(&Program::new(which, program, [which.to_owned(), GATE_COUNT.to_string()])).expect("it answers")
    }

    #[test]
    fn every_build_has_the_standard_s_block_and_a_wrong_table_is_refused() {
        let Ok(gcc) = Gcc::find() else {
            println!("skipped: no gcc");
            return;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let row = VARIANTS.iter().find(|row| row.name() == REPORT);
        let avx2 = row.is_some_and(|row| row.get(&lanework_cpu::Cpu::detect()).is_ok());
        for flags in ["-O0", "-O3 -march=native"] {
            for (which, name) in &LOOPS[..1 + usize::from(avx2)] {
                let right = blocks(&gcc, folder.path(), SOURCE, flags, which);
                assert_eq!(judge(flags, name, which, &right).passed, 1);
                // One entry of one row of the substitution.
                let text = SOURCE.replace("{5, 13, 15, 6,", "{5, 13, 6, 15,");
                assert_ne!(text, SOURCE);
                let wrong = judge(flags, name, which, &blocks(&gcc, folder.path(), &text, flags, which));
                assert!(wrong.failed == 1 && wrong.why.contains("are not the standard's"), "{}", wrong.why);
            }
        }
        let why = gcc.compile(folder.path(), "int main(void) { return y; }", "-O1", None).expect_err("no y");
        assert!(why.contains("'y' undeclared"), "{why}");
    }

    #[test]
    fn no_compiler_is_a_reason() {
        assert!(
            Gcc::first(&["no-such-compiler"]).is_err_and(|why| why.contains("gcc is not on this machine"))
        );
    }
}
