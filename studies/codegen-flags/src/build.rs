//! Other builds of this command: from its sources, by cargo, into a folder of their own.
#![forbid(unsafe_code)]

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::UNIX_EPOCH;

use super::question::Flags;
use super::store;

/// The sources and the tools that build them.
pub(super) struct Tree {
    root: PathBuf,
    /// Where cargo builds, and where builds are kept.
    target: PathBuf,
    /// The compiler's host, which every build is for.
    host: String,
    /// The major version of the compiler's LLVM, whose profiles a tool must understand.
    llvm: Option<u32>,
    sysroot: PathBuf,
}

/// Why there is no such build.
pub(super) type Why = String;

/// What a tool prints, if it succeeds.
fn said(tool: &str, arguments: &[&str], folder: &Path) -> Result<String, Why> {
    let out = Command::new(tool)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("{tool} cannot be run: {e}"))?;
    if !out.status.success() {
        return Err(format!("{tool} {}: {}", arguments.join(" "), out.status));
    }
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

/// The first number after `LLVM version`, as compilers and LLVM's own tools print it.
fn llvm_version(text: &str) -> Option<u32> {
    let rest = text.split("LLVM version").nth(1)?;
    rest.trim_start_matches([':', ' ']).split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The folder at or above `from` that holds this command's workspace.
fn workspace(from: &Path) -> Option<PathBuf> {
    let is_ours = |folder: &&Path| {
        fs::read_to_string(folder.join("Cargo.toml")).is_ok_and(|t| t.contains("[workspace]"))
            && fs::read_to_string(folder.join("cli/Cargo.toml"))
                .is_ok_and(|t| t.contains("name = \"lanework\""))
    };
    from.ancestors().find(is_ours).map(Path::to_path_buf)
}

/// The folder of these sources' workspace.
fn sources() -> Result<PathBuf, Why> {
    let here = env::current_dir().ok();
    let command = env::current_exe().ok();
    here.iter().chain(&command).find_map(|from| workspace(from)).ok_or_else(|| {
        "this study rebuilds the command, and found its sources neither in this directory nor beside the executable: run it in a checkout"
            .to_owned()
    })
}

/// Where builds are kept: the given folder, else below cargo's own target folder, which repositories ignore.
pub(super) fn folder(asked: Option<&Path>) -> Result<PathBuf, Why> {
    if let Some(folder) = asked {
        return std::path::absolute(folder)
            .map_err(|e| format!("{}: {e}", lanework_study::text::shown(folder)));
    }
    let root = sources()?;
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir));
    Ok(target.join("codegen-flags"))
}

/// Whether a build is instrumented, or guided by a profile.
enum Profile<'a> {
    None,
    Made(&'a Path),
    Used(&'a Path),
}

/// The compiler's flags that no profile of cargo's can hold.
fn rustflags(flags: &Flags, profile: &Profile<'_>) -> Vec<String> {
    let cpu = flags.target_cpu.iter().map(|cpu| format!("-Ctarget-cpu={cpu}"));
    let guided = match profile {
        Profile::None => None,
        Profile::Made(into) => Some(format!("-Cprofile-generate={}", into.display())),
        Profile::Used(file) => Some(format!("-Cprofile-use={}", file.display())),
    };
    cpu.chain(guided).collect()
}

/// The name of cargo's profile for a build. Builds that differ only in cargo's own settings share one, and with it all that these settings
/// do not affect, such as macros and build scripts. The compiler's own flags get a folder of their own.
fn profile(flags: &Flags) -> String {
    let plain = flags.target_cpu.is_none() && !flags.pgo;
    if plain { "flags".to_owned() } else { format!("flags-{}", flags.name) }
}

/// Cargo's arguments for a build under the name `profile`.
fn arguments(flags: &Flags, profile: &str, host: &str, target: &Path) -> Vec<String> {
    let mut all: Vec<String> =
        ["build", "--locked", "--package", "lanework", "--no-default-features", "--target"]
            .map(str::to_owned)
            .to_vec();
    all.extend([host.to_owned(), "--target-dir".to_owned(), target.display().to_string()]);
    all.extend(["--profile".to_owned(), profile.to_owned()]);
    let mut set = |key: &str, value: String| {
        all.extend(["--config".to_owned(), format!("profile.{profile}.{key}={value}")]);
    };
    set("inherits", "\"release\"".to_owned());
    set("debug", "false".to_owned());
    if let Some(level) = &flags.opt_level {
        let number = level.chars().all(|c| c.is_ascii_digit());
        set("opt-level", if number { level.clone() } else { format!("\"{level}\"") });
    }
    if let Some(lto) = &flags.lto {
        set("lto", format!("\"{lto}\""));
    }
    if let Some(units) = flags.codegen_units {
        set("codegen-units", units.to_string());
    }
    all
}

/// How a build is made, so that it can be repeated.
pub(super) fn made_by(flags: &Flags) -> String {
    let mut parts = Vec::new();
    let into = PathBuf::from("FILE");
    let guided = if flags.pgo { Profile::Used(&into) } else { Profile::None };
    let own = rustflags(flags, &guided);
    if !own.is_empty() {
        parts.push(format!("RUSTFLAGS='{}'", own.join(" ")));
    }
    parts.push("cargo build --release --no-default-features".to_owned());
    for (key, value) in [
        ("opt-level", flags.opt_level.as_ref().map(|o| format!("'{o}'"))),
        ("lto", flags.lto.as_ref().map(|l| format!("'{l}'"))),
        ("codegen-units", flags.codegen_units.map(|u| u.to_string())),
    ] {
        if let Some(value) = value {
            parts.push(format!("--config \"profile.release.{key}={value}\""));
        }
    }
    parts.join(" ")
}

impl Tree {
    /// The sources around the current folder, or around this command, to be built below `target`.
    pub(super) fn find(target: PathBuf) -> Result<Tree, Why> {
        let root = sources()?;
        said("cargo", &["--version"], &root)?;
        let version = said("rustc", &["-vV"], &root)?;
        let host = version
            .lines()
            .find_map(|l| l.strip_prefix("host: "))
            .ok_or("rustc -vV names no host")?
            .to_owned();
        let sysroot = said("rustc", &["--print", "sysroot"], &root)?.trim().into();
        Ok(Tree { target, host, llvm: llvm_version(&version), sysroot, root })
    }

    /// Runs cargo: an executable, or the end of cargo's output.
    fn cargo(&self, flags: &Flags, profile: &str, guided: &Profile<'_>) -> Result<PathBuf, Why> {
        let out = Command::new("cargo")
            .args(arguments(flags, profile, &self.host, &self.target))
            .current_dir(&self.root)
            .env_remove("RUSTFLAGS")
            .env("CARGO_ENCODED_RUSTFLAGS", rustflags(flags, guided).join("\u{1f}"))
            .stdin(Stdio::null())
            .output()
            .map_err(|e| format!("cargo cannot be run: {e}"))?;
        if !out.status.success() {
            let text = String::from_utf8_lossy(&out.stderr);
            let errors: Vec<&str> = text.lines().filter(|l| l.starts_with("error")).take(3).collect();
            return Err(format!("cargo: {}: {}", out.status, errors.join("; ")));
        }
        Ok(self.target.join(&self.host).join(profile).join("lanework"))
    }

    /// The build, made now if its sources have changed, and kept. `training`: arguments of each process of an instrumented build.
    pub(super) fn build(&self, flags: &Flags, training: &[Vec<String>]) -> Result<PathBuf, Why> {
        let profile = profile(flags);
        let keep = |made: PathBuf| store::keep(&self.target, &flags.name, &made);
        if !flags.pgo {
            return keep(self.cargo(flags, &profile, &Profile::None)?);
        }
        let tool = self.profdata()?;
        let folder = self.target.join("profiles").join(&flags.name);
        fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", lanework_study::text::shown(&folder)))?;
        let instrumented = self.cargo(flags, &format!("{profile}-train"), &Profile::Made(&folder))?;
        // Cargo compares flags and not the files that they name: another profile needs another name.
        let stamp = fs::metadata(&instrumented)
            .and_then(|m| m.modified())
            .ok()
            .and_then(|t| t.duration_since(UNIX_EPOCH).ok())
            .map_or(0, |t| t.as_secs());
        let merged = folder.join(format!("{stamp}.profdata"));
        if !merged.is_file() {
            train(&instrumented, training, &folder, &tool, &merged)?;
        }
        keep(self.cargo(flags, &profile, &Profile::Used(&merged))?)
    }

    /// A `llvm-profdata` that understands this compiler's profiles: the compiler's own component, else the system's.
    fn profdata(&self) -> Result<PathBuf, Why> {
        let own = self.sysroot.join("lib/rustlib").join(&self.host).join("bin/llvm-profdata");
        let need = self.llvm.ok_or("rustc does not say which LLVM it has")?;
        let mut found = None;
        for tool in [own, "llvm-profdata".into(), format!("llvm-profdata-{need}").into()] {
            let Ok(text) = said(&tool.to_string_lossy(), &["--version"], &self.root) else { continue };
            match llvm_version(&text) {
                Some(have) if have >= need => return Ok(tool),
                have => found = have.or(found),
            }
        }
        Err(match found {
            Some(have) => format!(
                "llvm-profdata is of LLVM {have} and rustc of {need}, whose profiles it cannot read; \
                 `rustup component add llvm-tools` brings one that can"
            ),
            None => "there is no llvm-profdata; `rustup component add llvm-tools` brings it".to_owned(),
        })
    }
}

/// Runs an instrumented build and merges its counts.
fn train(
    instrumented: &Path,
    training: &[Vec<String>],
    folder: &Path,
    tool: &Path,
    merged: &Path,
) -> Result<(), Why> {
    let io = |e: std::io::Error| format!("{}: {e}", lanework_study::text::shown(folder));
    let counted = || -> Result<Vec<PathBuf>, Why> {
        let files = fs::read_dir(folder).map_err(io)?.filter_map(|f| Some(f.ok()?.path()));
        Ok(files.filter(|p| p.extension().is_some_and(|e| e == "profraw")).collect())
    };
    for old in counted()? {
        fs::remove_file(&old).map_err(io)?;
    }
    for arguments in training {
        let out = Command::new(instrumented)
            .args(arguments)
            .env("LLVM_PROFILE_FILE", folder.join("%p-%m.profraw"))
            .env_remove("LANEWORK_REQUIRE")
            .stdin(Stdio::null())
            .output()
            .map_err(|e| format!("the instrumented build cannot be run: {e}"))?;
        // Exit code 3: nothing here races but the baseline. The other jobs train.
        if !out.status.success() && out.status.code() != Some(3) {
            return Err(format!("the instrumented build at {}: {}", arguments.join(" "), out.status));
        }
    }
    let files = counted()?;
    if files.is_empty() {
        return Err("the instrumented build counted nothing".to_owned());
    }
    let out = Command::new(tool)
        .arg("merge")
        .arg("-o")
        .arg(merged)
        .args(&files)
        .output()
        .map_err(|e| format!("{}: {e}", lanework_study::text::shown(tool)))?;
    if out.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&out.stderr);
    Err(format!("llvm-profdata merge: {}: {}", out.status, text.lines().next().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::tests::asked;

    #[test]
    fn a_builds_flags_reach_cargo_and_the_compiler() {
        let asked = asked();
        let of = |name: &str| {
            let flags = asked.named(name).expect("a build");
            arguments(flags, "flags-x", "host", Path::new("/t")).join(" ")
        };
        let plain = of("release");
        assert!(
            plain.contains("--profile flags-x") && plain.contains("profile.flags-x.inherits=\"release\"")
        );
        assert!(plain.contains("--target host --target-dir /t") && !plain.contains("opt-level"), "{plain}");
        assert!(of("o1").contains("profile.flags-x.opt-level=1"));
        assert!(of("os").contains("profile.flags-x.opt-level=\"s\""));
        assert!(of("lto-fat").contains("profile.flags-x.lto=\"fat\""));
        assert!(
            of("units-16-thin").contains("codegen-units=16") && of("units-16-thin").contains("lto=\"thin\"")
        );
        let all = asked.named("all").expect("a build");
        assert_eq!(
            rustflags(all, &Profile::Used(Path::new("/p"))),
            ["-Ctarget-cpu=native", "-Cprofile-use=/p"]
        );
        assert_eq!(rustflags(all, &Profile::Made(Path::new("/p")))[1], "-Cprofile-generate=/p");
        assert_eq!(
            [asked.named("o1"), asked.named("os")].map(|f| profile(f.expect("a build"))),
            ["flags"; 2]
        );
        assert_eq!(
            ["native", "pgo"].map(|n| profile(asked.named(n).expect("a build"))),
            ["flags-native", "flags-pgo"]
        );
        // No two builds of the study are one and the same.
        let all: Vec<String> =
            asked.build.iter().map(|b| of(&b.name) + &rustflags(b, &Profile::None).join(" ")).collect();
        let pgo = asked.build.iter().filter(|b| b.pgo).count();
        let mut distinct = all.clone();
        distinct.sort();
        distinct.dedup();
        assert!(distinct.len() >= all.len() - pgo);
    }

    #[test]
    fn versions_are_read_as_tools_print_them() {
        assert_eq!(llvm_version("release: 1.95.0\nLLVM version: 22.1.2\n"), Some(22));
        assert_eq!(llvm_version("Debian LLVM version 19.1.7\n  Optimized build."), Some(19));
        assert_eq!(llvm_version("LLVM version: next"), None);
        assert_eq!(llvm_version("gcc 12"), None);
    }

    #[test]
    fn sources_are_found_from_within_and_nowhere_else() {
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = workspace(&own.join("src/study")).expect("these sources");
        assert!(root.join("studies/codegen-flags/study.toml").is_file());
        let stranger = tempfile::tempdir().expect("a folder");
        fs::write(stranger.path().join("Cargo.toml"), "[workspace]\n").expect("written");
        assert_eq!(workspace(stranger.path()), None);
    }

    #[test]
    fn training_that_fails_or_counts_nothing_gives_no_profile() {
        let folder = tempfile::tempdir().expect("a folder");
        let merged = folder.path().join("m.profdata");
        let run = |script: &str, tool: &str| {
            let training = [vec!["-c".to_owned(), script.to_owned()]];
            train(Path::new("/bin/sh"), &training, folder.path(), Path::new(tool), &merged)
        };
        assert!(run("exit 1", "/bin/true").is_err_and(|e| e.contains("exit status: 1")));
        assert!(run("exit 3", "/bin/true").is_err_and(|e| e.contains("counted nothing")));
        assert!(run("exit 0", "/bin/true").is_err_and(|e| e.contains("counted nothing")));
        let counts = "echo x > \"$(dirname \"$LLVM_PROFILE_FILE\")/1.profraw\"";
        assert!(run(counts, "/bin/false").is_err_and(|e| e.contains("merge")));
        assert_eq!(run(counts, "/bin/true"), Ok(()));
        // Where some race had no contestant but the baseline.
        assert_eq!(run(&format!("{counts}; exit 3"), "/bin/true"), Ok(()));
    }
}
