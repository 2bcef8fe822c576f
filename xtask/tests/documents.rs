//! Every file that a document names exists: relative links with their anchors, and paths of the repository between backticks. No design
//! is longer than can be read.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};

/// The documents: those at the root, `docs`, and those of each crate.
fn documents(root: &Path) -> Vec<PathBuf> {
    let markdown = |folder: PathBuf| {
        let files = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
        files.filter(|path| path.extension().is_some_and(|e| e == "md")).collect::<Vec<_>>()
    };
    let mut all = markdown(root.to_owned());
    all.extend(markdown(root.join("docs")));
    for wing in ["crates", "lab"] {
        for folder in fs::read_dir(root.join(wing)).expect(wing) {
            all.extend(markdown(folder.expect("an entry").path()));
        }
    }
    all.sort();
    all
}

/// The text outside of fenced code, line by line with its number; inside a fence lines are empty.
fn prose(text: &str) -> Vec<&str> {
    let mut fenced = false;
    text.lines()
        .map(|line| {
            let fence = line.trim_start().starts_with("```");
            fenced ^= fence;
            if fenced || fence { "" } else { line }
        })
        .collect()
}

/// Every text between `open` and `close` in a line.
fn between<'a>(line: &'a str, open: &str, close: char) -> Vec<&'a str> {
    let pieces = line.split(open).skip(1);
    pieces.filter_map(|piece| piece.split_once(close).map(|(inside, _)| inside)).collect()
}

/// A heading's anchor as forges make it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn has_anchor(file: &Path, wanted: &str) -> bool {
    let text = fs::read_to_string(file).unwrap_or_default();
    prose(&text).iter().any(|line| line.starts_with('#') && anchor(line.trim_start_matches('#')) == wanted)
}

/// Whether a path exists below `folder`; `*` and `<name>` stand for any one component.
fn exists(folder: &Path, path: &str) -> bool {
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    if first.is_empty() {
        return folder.exists();
    }
    if first == "*" || first.starts_with('<') && first.ends_with('>') {
        let inside = fs::read_dir(folder).into_iter().flatten().flatten();
        return inside.map(|entry| entry.path()).any(|inner| inner.is_dir() && exists(&inner, rest));
    }
    exists(&folder.join(first), rest)
}

/// Whether text between backticks looks like a path of the repository: its first component is a folder at the root.
fn is_path(root: &Path, text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/*<>".contains(c);
    match text.split_once('/') {
        Some((first, _)) => text.chars().all(plain) && first != "target" && root.join(first).is_dir(),
        None => false,
    }
}

/// Whether a document of that name is beside `file`, at the root, in `docs` or in some crate, study or part of the laboratory.
fn is_document(root: &Path, file: &Path, name: &str) -> bool {
    let beside = file.with_file_name(name).exists() || exists(root, name);
    beside
        || ["docs", "crates/*", "lab/*", "studies/*"]
            .iter()
            .any(|folder| exists(root, &format!("{folder}/{name}")))
}

/// What a document names that does not exist, with the line.
fn missing(root: &Path, file: &Path, text: &str) -> Vec<String> {
    let folder = file.parent().expect("a folder");
    let mut found = Vec::new();
    for (number, line) in prose(text).into_iter().enumerate() {
        let mut wrong = |what: &str| found.push(format!("{}:{}: {what}", file.display(), number + 1));
        for link in between(line, "](", ')') {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (path, fragment) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { file.to_owned() } else { folder.join(path) };
            if !target.exists() || !fragment.is_empty() && !has_anchor(&target, fragment) {
                wrong(link);
            }
        }
        for (_, quoted) in line.split('`').enumerate().filter(|(i, _)| i % 2 == 1) {
            let lost = is_path(root, quoted) && !exists(root, quoted.trim_end_matches('/'));
            let name = quoted.ends_with(".md") && !quoted.contains(['/', ' ']);
            if lost || name && !is_document(root, file, quoted) {
                wrong(quoted);
            }
        }
    }
    found
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository")
}

#[test]
fn every_file_that_a_document_names_exists() {
    let all = documents(root());
    assert!(all.iter().any(|file| file.ends_with("docs/architecture.md")), "{all:?}");
    let wrong: Vec<String> =
        all.iter().flat_map(|file| missing(root(), file, &fs::read_to_string(file).expect("text"))).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// The lines of a design that is too long to read. Part of it then needs a page of its own.
fn longer(text: &str) -> Option<usize> {
    Some(text.lines().count()).filter(|&lines| lines > 200)
}

#[test]
fn no_design_has_more_than_200_lines() {
    let designs: Vec<PathBuf> =
        documents(root()).into_iter().filter(|file| file.ends_with("DESIGN.md")).collect();
    assert!(designs.len() > 5, "{designs:?}");
    for file in designs {
        assert_eq!(longer(&fs::read_to_string(&file).expect("text")), None, "{}", file.display());
    }
    assert_eq!(longer(&"a line\n".repeat(201)), Some(201), "a planted one is found");
}

#[test]
fn a_planted_name_is_found() {
    let file = root().join("docs/planted.md");
    let right = "[a](../README.md) [b](../README.md#licence) [c](https://x.org/y) `xtask/src/main.rs` `studies/<name>/study.md`\n\
                 `crates/*/Cargo.toml` `target/peers` `mayo/round3/mayo1` `a/b` `DESIGN.md` `RECORDS.md`\n```sh\ncat docs/never.md `docs/never.md`\n```\n";
    assert_eq!(missing(root(), &file, right), Vec::<String>::new());
    for wrong in [
        "[a](README.md)",
        "[a](../README.md#no-such-heading)",
        "[a](#nowhere)",
        "`xtask/src/mains.rs`",
        "`studies/<name>/stud.md`",
        "`crates/*/Cargo.tom`",
        "`NOWHERE.md`",
    ] {
        let found = missing(root(), &file, &format!("text\n\nsee {wrong}\n"));
        assert!(matches!(&found[..], [one] if one.contains("planted.md:3: ")), "{wrong}: {found:?}");
    }
}

/// The commands that a text's first shell block shows, without their comments.
fn commands(text: &str) -> Vec<&str> {
    let block = text.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap_or_default();
    block.lines().map(|line| line.split(" #").next().unwrap_or_default().trim()).collect()
}

/// The commands that a script of steps does not run, word for word.
fn not_run<'a>(commands: &[&'a str], script: &str) -> Vec<&'a str> {
    let steps: Vec<&str> =
        script.lines().filter_map(|l| l.strip_prefix("step '")?.split_once("' ")).map(|s| s.1).collect();
    commands.iter().copied().filter(|command| !steps.contains(command)).collect()
}

#[test]
fn ci_runs_the_two_commands_of_readme_as_they_stand_there() {
    let read = |file: &str| fs::read_to_string(root().join(file)).expect("text");
    let (readme, script) = (read("README.md"), read(".ci/run"));
    let shown = commands(&readme);
    assert_eq!(shown.len(), 2, "{shown:?}");
    assert_eq!(not_run(&shown, &script), Vec::<&str>::new());
    assert_eq!(
        not_run(&["cargo test --workspace"], &script),
        ["cargo test --workspace"],
        "a planted command is found"
    );
}
