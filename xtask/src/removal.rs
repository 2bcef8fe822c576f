//! `cargo xtask removal`: a study is one folder. Without the folder, and without the lines of `studies/Cargo.toml` and
//! `studies/table.rs` that name it, nothing names it, and the command compiles.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Args;

use crate::Complaint;

/// `removal`.
#[derive(Args)]
pub(crate) struct Options {
    /// One study, a different one after each commit; without this and without names, all.
    #[arg(long, conflicts_with = "studies")]
    rotate: bool,
    /// Only these studies.
    studies: Vec<String>,
}

/// The files that may name a study's crate.
const TABLE: [&str; 2] = ["studies/Cargo.toml", "studies/table.rs"];

pub(crate) fn run(options: &Options) -> ExitCode {
    match go(options) {
        Ok(failed) => ExitCode::from(u8::from(failed > 0)),
        Err(why) => {
            why.print();
            ExitCode::from(2)
        }
    }
}

fn go(options: &Options) -> Result<usize, Complaint> {
    let files = tracked()?;
    let all = crates(&files);
    if let Some(unknown) = options.studies.iter().find(|name| !all.contains(name)) {
        let complaint = Complaint::from(format!("no study with code is called {unknown}"));
        return Err(complaint.help(format!("choose among {}", all.join(", "))));
    }
    let chosen: Vec<&String> = if options.rotate {
        let commits = output(&["rev-list", "--count", "HEAD"])?;
        let count: usize = commits.trim().parse().map_err(|e| format!("{commits}: {e}"))?;
        all.iter().skip(count % all.len()).take(1).collect()
    } else {
        all.iter().filter(|name| options.studies.is_empty() || options.studies.contains(name)).collect()
    };
    let mut failed = 0;
    for study in &chosen {
        match without(&files, study) {
            Ok(()) => println!("{study}: the command compiles without it, and nothing names it"),
            Err(why) => {
                failed += 1;
                println!("{study}: {why}");
            }
        }
    }
    println!("{} passed, {failed} failed, 0 skipped", chosen.len() - failed);
    Ok(failed)
}

/// What git prints.
fn output(arguments: &[&str]) -> Result<String, String> {
    let out = Command::new("git").args(arguments).output().map_err(|e| format!("git: {e}"))?;
    if !out.status.success() {
        return Err(format!("git: {}", String::from_utf8_lossy(&out.stderr).trim()));
    }
    String::from_utf8(out.stdout).map_err(|e| format!("git: {e}"))
}

/// Existing files under version control.
fn tracked() -> Result<Vec<String>, String> {
    let listed = output(&["ls-files", "-z", "--cached", "--others", "--exclude-standard"])?;
    Ok(listed.split('\0').filter(|file| Path::new(file).is_file()).map(str::to_owned).collect())
}

/// Studies that are crates.
fn crates(files: &[String]) -> Vec<String> {
    let name = |file: &String| Some(file.strip_prefix("studies/")?.strip_suffix("/Cargo.toml")?.to_owned());
    files.iter().filter_map(name).filter(|name| !name.contains('/')).collect()
}

/// Whether a text of this file names the study's crate: as Rust does, or as a manifest does.
fn names(file: &str, text: &str, study: &str) -> bool {
    let wanted = match file {
        _ if file.ends_with(".rs") => format!("study_{}", study.replace('-', "_")),
        _ if file.ends_with("Cargo.toml") => format!("study-{study}"),
        _ => return false,
    };
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '-' || c == '_');
    text.match_indices(&wanted).any(|(at, _)| ends(&text[at + wanted.len()..]))
}

/// The text without the lines that name the study.
fn cut(file: &str, text: &str, study: &str) -> String {
    text.split_inclusive('\n').filter(|line| !names(file, line, study)).collect()
}

/// Files of the tree that name the study's crate, outside its folder and the table.
fn strangers(files: &[(&str, String)], study: &str) -> Vec<String> {
    let named = |(file, text): &&(&str, String)| !TABLE.contains(file) && names(file, text, study);
    files.iter().filter(named).map(|(file, _)| (*file).to_owned()).collect()
}

/// Copies the tree without the study, and compiles the command.
fn without(files: &[String], study: &str) -> Result<(), String> {
    let folder = format!("studies/{study}/");
    let scratch = PathBuf::from("target/removal/tree");
    let _ = fs::remove_dir_all(&scratch);
    let mut texts = Vec::new();
    for file in files.iter().filter(|file| !file.starts_with(&folder)) {
        let to = scratch.join(file);
        let wrong = |e: std::io::Error| format!("{}: {e}", to.display());
        fs::create_dir_all(to.parent().unwrap_or(&scratch)).map_err(wrong)?;
        let bytes = fs::read(file).map_err(|e| format!("{file}: {e}"))?;
        match String::from_utf8(bytes) {
            Ok(text) if TABLE.contains(&file.as_str()) => {
                fs::write(&to, cut(file, &text, study)).map_err(wrong)?
            }
            Ok(text) => {
                fs::write(&to, &text).map_err(wrong)?;
                texts.push((file.as_str(), text));
            }
            Err(other) => fs::write(&to, other.as_bytes()).map_err(wrong)?,
        }
    }
    let left = strangers(&texts, study);
    if !left.is_empty() {
        return Err(format!("named in {}", left.join(", ")));
    }
    // Its own lock file may lose the study's line, so it is not locked; other crates' dependencies stay the same.
    let target = std::path::absolute("target").map_err(|e| e.to_string())?;
    let status = Command::new("cargo")
        .args(["check", "--quiet", "--package", "lanework"])
        .current_dir(&scratch)
        .env("CARGO_TARGET_DIR", target)
        .status()
        .map_err(|e| format!("cargo: {e}"))?;
    if status.success() { Ok(()) } else { Err("the command does not compile without it".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_lines_are_those_that_name_its_crate() {
        let table = "    study_a_lane::ENTRY,\n    study_a::ENTRY,\n    study_b_a::ENTRY,\n";
        assert_eq!(cut("t.rs", table, "a"), "    study_a_lane::ENTRY,\n    study_b_a::ENTRY,\n");
        assert_eq!(cut("Cargo.toml", "study-a-lane = 1\nstudy-a = 2\n", "a"), "study-a-lane = 1\n");
    }

    #[test]
    fn a_crate_that_names_it_is_found() {
        let files = [
            ("studies/table.rs", "study_a_lane::ENTRY"),
            ("cli/src/study.rs", "use study_a_lane::ENTRY;"),
            ("cli/README.md", "study-a-lane"),
            ("cli/Cargo.toml", "study-a-lane-two = 1"),
            ("lab/Cargo.toml", "study-a-lane = 1"),
        ];
        let files = files.map(|(file, text)| (file, text.to_owned()));
        assert_eq!(strangers(&files, "a-lane"), ["cli/src/study.rs", "lab/Cargo.toml"]);
    }

    #[test]
    fn crates_are_folders_of_studies_with_a_manifest() {
        let files =
            ["studies/Cargo.toml", "studies/a/Cargo.toml", "studies/b/study.toml", "studies/a/c/Cargo.toml"];
        assert_eq!(crates(&files.map(str::to_owned)), ["a"]);
    }
}
