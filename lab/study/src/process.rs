//! Processes that report what ran, and other builds of this command.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::{Command, Stdio};

use lanework_race::process::Program;
use serde::de::DeserializeOwned;

/// A build of this command under another profile of cargo, where there is one beside this one.
pub fn other_build(profile: &str) -> Option<PathBuf> {
    let here = std::env::current_exe().ok()?;
    let name = here.file_name()?;
    let there = here.parent()?.parent()?.join(profile).join(name);
    there.is_file().then_some(there)
}

/// Runs a program once, and parses the JSON that it prints.
///
/// # Errors
/// A sentence naming the program, where it cannot be run, fails or prints anything else.
pub fn answer<T: DeserializeOwned>(program: &Program) -> Result<T, String> {
    let out = Command::new(&program.program)
        .args(&program.args)
        .envs(program.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("{}: {e}", crate::text::shown(&program.program)))?;
    if !out.status.success() {
        let why = String::from_utf8_lossy(&out.stderr);
        return Err(format!("{}: {}: {}", program.name, out.status, why.trim()));
    }
    serde_json::from_slice(&out.stdout).map_err(|e| format!("{}: {e}", program.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_fails_or_babbles_gives_no_answer() {
        let sh = |text: &str| Program::new("sh", "/bin/sh", ["-c", text]);
        assert_eq!(answer::<u32>(&sh("echo 7")), Ok(7));
        let mut told = sh("echo $NUMBER");
        told.env.push(("NUMBER".into(), "9".into()));
        assert_eq!(answer::<u32>(&told), Ok(9));
        assert!(answer::<u32>(&sh("echo seven")).is_err_and(|e| e.starts_with("sh: ")));
        assert!(answer::<u32>(&sh("echo 7; echo no >&2; exit 3")).is_err_and(|e| e.ends_with("no")));
    }
}
