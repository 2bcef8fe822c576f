//! The kernels under compute-sanitizer, where it is installed: memory, initialisation and barriers. Its search for races takes more than
//! two minutes for a set.
#![forbid(unsafe_code)]

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lanework_mayo::Params;
use lanework_race::gate::GateRow;
use lanework_study::{Failure, Session};

/// Its tools, by name.
pub(super) const TOOLS: [&str; 3] = ["memcheck", "initcheck", "synccheck"];

/// Names the program, instead of looking for it.
pub(super) const PROGRAM: &str = "LANEWORK_COMPUTE_SANITIZER";

/// Its exit code if a tool complains; the command itself never exits with it.
const COMPLAINT: i32 = 86;

/// Bytes of its output that a row keeps.
const WORDS: usize = 2000;

/// The program: as the environment names it, else on the search path, else in CUDA's toolkit.
fn find() -> Option<PathBuf> {
    let named = |name| env::var_os(name).filter(|v| !v.is_empty());
    if let Some(program) = named(PROGRAM) {
        return Some(program.into());
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let homes = ["CUDA_HOME", "CUDA_PATH"]
        .into_iter()
        .filter_map(named)
        .chain([OsStr::new("/usr/local/cuda").into()]);
    let toolkit = homes.map(|home| Path::new(&home).join("bin"));
    env::split_paths(&path).chain(toolkit).map(|d| d.join("compute-sanitizer")).find(|p| p.is_file())
}

/// Each tool over the quick checks of each set on the session's devices. Without the program one row says so. An emulated device
/// does not need it, but runs under it where the program is named.
pub(super) fn check(session: &Session, sets: &[&Params], emulated: bool) -> Result<Vec<GateRow>, Failure> {
    if sets.is_empty() || (emulated && env::var_os(PROGRAM).is_none()) {
        return Ok(Vec::new());
    }
    let backend = session.context.device.name().to_owned();
    let Some(program) = find() else {
        return Ok(vec![GateRow {
            what: "compute-sanitizer".to_owned(),
            backend,
            passed: 0,
            failed: 0,
            skipped: TOOLS.len() as u64,
            why: format!("it is not installed; {PROGRAM} may name it"),
        }]);
    };
    let here = env::current_exe().map_err(Failure::unavailable)?;
    let mut rows = Vec::new();
    for params in sets {
        for tool in TOOLS {
            let output = Command::new(&program)
                .args(["--tool", tool, "--error-exitcode", &COMPLAINT.to_string()])
                .arg(&here)
                .args(session.arguments())
                .args(["check", &format!("mayo/{}", params.path()), "--quick"])
                .stdin(Stdio::null())
                .output();
            let why = match output {
                Ok(output) if output.status.success() => String::new(),
                Ok(output) => {
                    let words = [output.stdout, output.stderr].concat();
                    let words = String::from_utf8_lossy(&words);
                    let kept: String = words.chars().take(WORDS).collect();
                    format!("it ended with {}: {}", output.status, kept.trim())
                }
                Err(e) => format!("{}: {e}", lanework_study::text::shown(&program)),
            };
            let clean = why.is_empty();
            rows.push(GateRow {
                what: format!("{tool}, {}", params.name()),
                backend: backend.clone(),
                passed: clean.into(),
                failed: (!clean).into(),
                skipped: 0,
                why,
            });
        }
    }
    Ok(rows)
}
