//! What studies share: tables, other builds of this command, and processes that say what ran.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::{Command, Stdio};

use lanework_race::process::Program;
use serde::de::DeserializeOwned;

/// A table in Markdown that is a table on a terminal too.
pub(super) fn table(header: &[String], rows: &[Vec<String>]) -> String {
    let width = |i: usize| {
        rows.iter()
            .chain([&header.to_vec()])
            .filter_map(|r| r.get(i))
            .map(|c| c.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |cells: &[String]| {
        let cells: Vec<String> = widths
            .iter()
            .enumerate()
            .map(|(i, &w)| {
                let cell = cells.get(i).map_or("", String::as_str);
                let gap = " ".repeat(w - cell.chars().count());
                if i == 0 { format!("{cell}{gap}") } else { format!("{gap}{cell}") }
            })
            .collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let rule: Vec<String> = widths
        .iter()
        .enumerate()
        .map(|(i, &w)| if i == 0 { "-".repeat(w + 2) } else { format!("{}:", "-".repeat(w + 1)) })
        .collect();
    let body: String = rows.iter().map(|r| line(r)).collect();
    format!("{}|{}|\n{body}", line(header), rule.join("|"))
}

/// Cells from literals.
pub(super) fn strings(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|c| (*c).to_owned()).collect()
}

/// A cell with nothing in it.
pub(super) const NONE: &str = "-";

/// A build of this command under another profile of cargo, where there is one beside this one.
pub(super) fn other_build(profile: &str) -> Option<PathBuf> {
    let here = std::env::current_exe().ok()?;
    let name = here.file_name()?;
    let there = here.parent()?.parent()?.join(profile).join(name);
    there.is_file().then_some(there)
}

/// Runs a program once, and reads what it says of itself.
pub(super) fn answer<T: DeserializeOwned>(program: &Program) -> Result<T, String> {
    let out = Command::new(&program.program)
        .args(&program.args)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("{}: {e}", crate::ui::shown(&program.program)))?;
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
    fn tables_line_up() {
        let t = table(&strings(&["a", "bb"]), &[strings(&["×1.00", "2"]), strings(&["x", "333"])]);
        let lines: Vec<usize> = t.lines().map(|l| l.chars().count()).collect();
        assert_eq!(lines.len(), 4);
        assert!(lines.iter().all(|&l| l == lines[0]), "{t}");
        assert!(t.contains("| ×1.00 |   2 |"), "{t}");
    }

    #[test]
    fn a_program_that_fails_or_babbles_gives_no_answer() {
        let sh = |text: &str| Program::new("sh", "/bin/sh", ["-c", text]);
        assert_eq!(answer::<u32>(&sh("echo 7")), Ok(7));
        assert!(answer::<u32>(&sh("echo seven")).is_err_and(|e| e.starts_with("sh: ")));
        assert!(answer::<u32>(&sh("echo 7; echo no >&2; exit 3")).is_err_and(|e| e.ends_with("no")));
    }
}
