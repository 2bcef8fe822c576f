//! Finding and running the programs that building needs.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

use lanework_peers::flavour::Compiler;

/// Why a flavour was not built.
#[derive(Debug, Clone)]
pub(crate) enum Problem {
    /// This machine lacks something; the sentence says what.
    Missing(String),
    /// Something that ran and went wrong; the sentence says what and where to read more.
    Failed(String),
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing(why) => write!(f, "unavailable here: {why}"),
            Self::Failed(why) => write!(f, "failed: {why}"),
        }
    }
}

impl std::error::Error for Problem {}

/// The programs of the search path.
pub(crate) struct Tools {
    directories: Vec<PathBuf>,
}

impl Default for Tools {
    fn default() -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        Self { directories: std::env::split_paths(&path).collect() }
    }
}

impl Tools {
    /// The program called `name`, if it is on the search path.
    pub(crate) fn find(&self, name: &str) -> Option<PathBuf> {
        self.directories.iter().map(|directory| directory.join(name)).find(|path| path.is_file())
    }

    /// The program called `name`, or the problem that it is missing, with what it is for.
    pub(crate) fn need(&self, name: &str, purpose: &str) -> Result<PathBuf, Problem> {
        self.find(name).ok_or_else(|| {
            Problem::Missing(format!("{name} is not on the search path; it is needed {purpose}"))
        })
    }

    /// The compiler of that kind.
    pub(crate) fn compiler(&self, kind: Compiler) -> Result<PathBuf, Problem> {
        match kind {
            Compiler::Gcc => self.need("gcc", "to build this flavour"),
            Compiler::Clang => self.newest_clang().ok_or_else(|| {
                Problem::Missing(
                    "neither clang nor clang-N is on the search path; it is needed to build this flavour"
                        .to_owned(),
                )
            }),
            Compiler::Default => match std::env::var("CC") {
                Ok(name) if name.contains(std::path::MAIN_SEPARATOR) && Path::new(&name).is_file() => {
                    Ok(name.into())
                }
                Ok(name) if !name.is_empty() => self.need(&name, "as CC names it"),
                _ => self.need("cc", "to build this flavour"),
            },
        }
    }

    /// The `clang-N` with the greatest N, or plain `clang` where it is the newer or the only one.
    fn newest_clang(&self) -> Option<PathBuf> {
        let numbered = self
            .directories
            .iter()
            .filter_map(|directory| std::fs::read_dir(directory).ok())
            .flatten()
            .flatten()
            .filter_map(|entry| Some((clang_number(entry.file_name().to_str()?)?, entry.path())))
            .filter(|(_, path)| path.is_file());
        let plain = self.find("clang").map(|path| (major_version(&path).unwrap_or(0), path));
        numbered.chain(plain).max_by_key(|(number, _)| *number).map(|(_, path)| path)
    }
}

/// N of a file name `clang-N`, and of no other.
fn clang_number(file_name: &str) -> Option<u32> {
    let digits = file_name.strip_prefix("clang-")?;
    let digits = digits.strip_suffix(std::env::consts::EXE_SUFFIX)?;
    (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().ok())?
}

/// The major version that a compiler reports.
fn major_version(compiler: &Path) -> Option<u32> {
    let output = Command::new(compiler).arg("-dumpversion").output().ok()?;
    String::from_utf8_lossy(&output.stdout).trim().split('.').next()?.parse().ok()
}

/// The first line of what `compiler --version` prints.
pub(crate) fn version_line(compiler: &Path) -> Result<String, Problem> {
    let text = capture(Command::new(compiler).arg("--version"))?;
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

/// Runs a command to its end and returns what it printed, or says how it failed.
pub(crate) fn capture(command: &mut Command) -> Result<String, Problem> {
    let shown = show(command);
    let output = command.output().map_err(|e| Problem::Failed(format!("`{shown}` did not start: {e}")))?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        let last: Vec<_> = error.lines().rev().take(4).collect::<Vec<_>>().into_iter().rev().collect();
        return Err(Problem::Failed(format!("`{shown}` ended with {}: {}", output.status, last.join(" / "))));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a command to its end, keeping all it prints in `log`.
pub(crate) fn logged(command: &mut Command, log: &Path) -> Result<(), Problem> {
    let shown = show(command);
    let failed = |e: std::io::Error| Problem::Failed(format!("{}: {e}", log.display()));
    let file = std::fs::File::create(log).map_err(failed)?;
    let copy = file.try_clone().map_err(failed)?;
    let status = command
        .stdin(std::process::Stdio::null())
        .stdout(file)
        .stderr(copy)
        .status()
        .map_err(|e| Problem::Failed(format!("`{shown}` did not start: {e}")))?;
    if status.success() {
        Ok(())
    } else {
        Err(Problem::Failed(format!("`{shown}` ended with {status}; see {}", log.display())))
    }
}

/// The program and its first few arguments, for messages.
fn show(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy();
    let arguments: Vec<_> = command.get_args().take(2).map(|a| a.to_string_lossy()).collect();
    format!("{program} {}", arguments.join(" ")).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbered_clangs_count() {
        assert_eq!(clang_number("clang-19"), Some(19));
        for other in ["clang", "clang-", "clang-tidy", "clang-cpp-19", "clang++-19", "clang-19.1"] {
            assert_eq!(clang_number(other), None, "{other}");
        }
    }

    #[test]
    fn the_newest_clang_is_taken_by_number_not_by_name() {
        let directory = std::env::temp_dir().join(format!("lanework-xtask-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        for name in ["clang-9", "clang-19", "clang-18", "clang-format-20"] {
            std::fs::write(directory.join(name), "").expect("a file");
        }
        let tools = Tools { directories: vec![directory.clone()] };
        let found = tools.compiler(Compiler::Clang).expect("there are some");
        assert_eq!(found.file_name().and_then(|n| n.to_str()), Some("clang-19"));
        std::fs::remove_dir_all(&directory).expect("removed");
        assert!(matches!(tools.compiler(Compiler::Clang), Err(Problem::Missing(_))));
    }

    #[test]
    fn a_failing_command_is_a_failure_with_its_status() {
        let Err(Problem::Failed(why)) = capture(Command::new("cargo").arg("no-such-verb-at-all")) else {
            panic!("it must fail");
        };
        assert!(why.contains("no-such-verb-at-all"), "{why}");
    }
}
