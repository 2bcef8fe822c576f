//! What to compile, and what was compiled: `kernels.toml` and `kernels.lock` beside the sources.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// `kernels.toml`: written by hand.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    pub(super) program: Vec<Program>,
}

/// One program: a source file and its fat binary. Paths are relative to the manifest.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Program {
    /// The file that nvcc compiles.
    pub(super) source: String,
    /// The fat binary that ships.
    pub(super) code: String,
    /// Folders of headers.
    #[serde(default)]
    pub(super) include: Vec<String>,
    /// Options in addition to those of every program.
    #[serde(default)]
    pub(super) options: Vec<String>,
    /// Kernels that handle secrets, by name, with `*` for any part: the lint checks them.
    #[serde(default)]
    pub(super) secret: Vec<String>,
    /// Kernels that handle none, or are exempt, each with the reason.
    #[serde(default)]
    pub(super) exempt: BTreeMap<String, String>,
    /// Arguments of secret kernels that point to memory that is public while the kernel runs, by kernel.
    #[serde(default)]
    pub(super) public: BTreeMap<String, Vec<String>>,
    /// Instructions that make a value public, in kernels that have any.
    #[serde(default)]
    pub(super) declassified: BTreeMap<String, Declassified>,
}

/// What a kernel makes public.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Declassified {
    /// Exactly this many instructions do.
    pub(super) count: usize,
    /// What becomes public, and why it may.
    pub(super) why: String,
}

/// `kernels.lock`: written by `cargo xtask cuda`.
#[derive(Debug, Deserialize, Serialize, PartialEq, Eq)]
pub(super) struct Lock {
    /// The compiler's version.
    pub(super) nvcc: String,
    pub(super) program: Vec<Locked>,
}

#[derive(Debug, Deserialize, Serialize, PartialEq, Eq)]
pub(super) struct Locked {
    pub(super) code: String,
    /// SHA-256 of the fat binary.
    pub(super) sha256: String,
    /// The options that it was compiled with.
    pub(super) options: Vec<String>,
    /// SHA-256 of every file that it was made from.
    pub(super) sources: BTreeMap<String, String>,
    /// The resources of each kernel, by architecture and name.
    pub(super) kernels: BTreeMap<String, String>,
}

/// All manifests below `root`, in order.
pub(super) fn find(root: &Path) -> Vec<PathBuf> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.file_name().is_some_and(|name| name == "kernels.toml") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&root.join("crates"), &mut found);
    found.sort();
    found
}

pub(super) fn read(path: &Path) -> Result<Manifest, String> {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    toml::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))
}

pub(super) fn read_lock(path: &Path) -> Result<Lock, String> {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    toml::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))
}

pub(super) fn lock_path(manifest: &Path) -> PathBuf {
    manifest.with_file_name("kernels.lock")
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A path with inner `..` resolved.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir if out.file_name().is_some() => {
                out.pop();
            }
            Component::CurDir => {}
            part => out.push(part),
        }
    }
    out
}

/// The program's source and all that it includes by `#include "..."`, by their paths from `root`.
pub(super) fn sources(
    root: &Path,
    folder: &Path,
    program: &Program,
) -> Result<BTreeMap<String, String>, String> {
    let mut found = BTreeMap::new();
    let mut work = vec![plain(&folder.join(&program.source))];
    while let Some(path) = work.pop() {
        let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        if found.contains_key(&name) {
            continue;
        }
        let bytes = fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let text = String::from_utf8_lossy(&bytes);
        let mut emulation = false;
        for line in text.lines() {
            // Files for the emulation alone are not part of what ships.
            if std::mem::replace(&mut emulation, line.trim() == "#ifdef LANEWORK_EMULATED") {
                continue;
            }
            let Some(include) =
                line.trim().strip_prefix("#include").and_then(|rest| rest.trim().strip_prefix('"'))
            else {
                continue;
            };
            let include = include.split('"').next().unwrap_or_default();
            let own = path.parent().unwrap_or(folder).join(include);
            let others = program.include.iter().map(|dir| folder.join(dir).join(include));
            let there =
                std::iter::once(own).chain(others).map(|path| plain(&path)).find(|path| path.is_file());
            work.push(there.ok_or_else(|| format!("{name} includes {include}, which is not found"))?);
        }
        found.insert(name, sha256(&bytes));
    }
    Ok(found)
}

/// Whether the pattern, with `*` for any part, matches the name.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|name| {
            (0..=name.len()).any(|n| name.is_char_boundary(n) && matches(rest, &name[n..]))
        }),
    }
}

/// How shipped programs differ from these sources, as far as that shows without the compiler.
pub(super) fn stale(root: &Path, path: &Path) -> Result<Vec<String>, String> {
    let folder = path.parent().unwrap_or(root);
    let manifest = read(path)?;
    let lock = read_lock(&lock_path(path))?;
    let mut why = super::floors::stale(folder)?;
    for program in &manifest.program {
        let Some(locked) = lock.program.iter().find(|locked| locked.code == program.code) else {
            why.push(format!("{} is not in kernels.lock", program.code));
            continue;
        };
        let now = sources(root, folder, program)?;
        for (name, hash) in &now {
            if locked.sources.get(name) != Some(hash) {
                why.push(format!("{name} has changed since {} was compiled", program.code));
            }
        }
        why.extend(
            locked.sources.keys().filter(|name| !now.contains_key(*name)).map(|name| {
                format!("{} was compiled with {name}, which it no longer includes", program.code)
            }),
        );
        if locked.options != super::compile::options(program) {
            why.push(format!("{} was compiled with other options", program.code));
        }
        let code = folder.join(&program.code);
        let bytes = fs::read(&code).map_err(|e| format!("{}: {e}", code.display()))?;
        if sha256(&bytes) != locked.sha256 {
            why.push(format!("{} is not the file that was compiled", program.code));
        }
    }
    Ok(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
    }

    #[test]
    fn what_ships_is_of_its_sources() {
        let manifests = find(&root());
        assert!(!manifests.is_empty());
        for manifest in manifests {
            let why = stale(&root(), &manifest).unwrap();
            assert!(why.is_empty(), "run `cargo xtask cuda`: {why:#?}");
        }
    }

    #[test]
    fn a_changed_header_and_a_changed_binary_are_seen() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        put("kernels.toml", "[[program]]\nsource = \"a.cu\"\ncode = \"a.fatbin\"\n");
        put("a.cu", "#include \"a.cuh\"\n#include <stdint.h>\n");
        put("a.cuh", "// one\n");
        put("a.fatbin", "code");
        let path = dir.path().join("kernels.toml");
        let program = &read(&path).unwrap().program[0];
        let lock = Lock {
            nvcc: String::new(),
            program: vec![Locked {
                code: "a.fatbin".to_owned(),
                sha256: sha256(b"code"),
                options: super::super::compile::options(program),
                sources: sources(dir.path(), dir.path(), program).unwrap(),
                kernels: BTreeMap::new(),
            }],
        };
        assert_eq!(lock.program[0].sources.len(), 2);
        put("kernels.lock", &toml::to_string(&lock).unwrap());
        assert_eq!(stale(dir.path(), &path).unwrap(), Vec::<String>::new());
        put("a.cuh", "// two\n");
        assert_eq!(stale(dir.path(), &path).unwrap().len(), 1);
        put("a.fatbin", "other");
        assert_eq!(stale(dir.path(), &path).unwrap().len(), 2);
        fs::remove_file(dir.path().join("a.cuh")).unwrap();
        assert!(stale(dir.path(), &path).unwrap_err().contains("a.cuh"));
    }

    #[test]
    fn patterns() {
        assert!(matches("mayo_*_3", "mayo_sign_expanded_3") && matches("*", "") && matches("a", "a"));
        assert!(!matches("mayo_*_3", "mayo_sign_31") && !matches("a", "ab"));
    }
}
