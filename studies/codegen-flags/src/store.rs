//! Builds in a folder, and what each reports about itself.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lanework_race::machine::Build;
use serde::Deserialize;

use super::build::Why;
use super::question::Flags;

/// Where a folder keeps the executable of that build.
pub(super) fn place(folder: &Path, name: &str) -> PathBuf {
    folder.join("bin").join(name)
}

/// A path as records show it: relative to the current directory where possible, so that a published record does not identify the machine.
pub(super) fn shown(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    let below =
        here.and_then(|here| path.strip_prefix(here).ok()).filter(|rest| !rest.as_os_str().is_empty());
    below.unwrap_or(path).display().to_string()
}

/// Keeps an executable: whole or not at all, also where an older one is running.
pub(super) fn keep(folder: &Path, name: &str, made: &Path) -> Result<PathBuf, Why> {
    let kept = place(folder, name);
    let half = kept.with_extension("new");
    let copied = fs::create_dir_all(folder.join("bin"))
        .and_then(|()| fs::copy(made, &half))
        .and_then(|_| fs::rename(&half, &kept));
    copied.map(|()| kept.clone()).map_err(|e| format!("{}: {e}", lanework_study::text::shown(&kept)))
}

/// An executable that was kept.
pub(super) fn find(folder: &Path, name: &str) -> Result<PathBuf, Why> {
    let kept = place(folder, name);
    if kept.is_file() { Ok(kept) } else { Err(format!("{} is not there", shown(&kept))) }
}

/// How an executable reports that it was built.
pub(super) fn of_itself(program: &Path) -> Result<Build, Why> {
    #[derive(Deserialize)]
    struct Doctor {
        machine: Machine,
    }
    #[derive(Deserialize)]
    struct Machine {
        build: Build,
    }
    let out = Command::new(program)
        .args(["--json", "doctor"])
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("{} cannot be run: {e}", lanework_study::text::shown(program)))?;
    // The races refuse a forced backend that is not here; the object is printed all the same.
    let said: Doctor = serde_json::from_slice(&out.stdout).map_err(|e| {
        format!("{} does not say how it was built: {}: {e}", lanework_study::text::shown(program), out.status)
    })?;
    Ok(said.machine.build)
}

/// Whether an executable is the build that these flags ask for, as far as it shows: link-time optimisation and codegen units
/// leave no trace in it.
pub(super) fn is_of(flags: &Flags, build: &Build) -> Result<(), Why> {
    let wrong = |what: &str, found: &str, want: &str| {
        Err(format!("it is another build: its {what} is '{found}' and not '{want}'"))
    };
    let level = flags.opt_level.as_deref().unwrap_or("3");
    if build.opt_level != level {
        return wrong("opt-level", &build.opt_level, level);
    }
    let given = |key: &str| build.rustflags.split(' ').find_map(|flag| flag.strip_prefix(key));
    let [cpu, want] = [given("-Ctarget-cpu="), flags.target_cpu.as_deref()].map(|c| c.unwrap_or("x86-64"));
    if cpu != want {
        return wrong("target-cpu", cpu, want);
    }
    if given("-Cprofile-generate=").is_some() {
        return Err("it is another build: it is instrumented".to_owned());
    }
    let word = |guided: bool| if guided { "used" } else { "unused" };
    let [guided, want] = [given("-Cprofile-use=").is_some(), flags.pgo].map(word);
    if guided == want { Ok(()) } else { wrong("profile", guided, want) }
}

/// Whether a build differs from the baseline in more than its flags.
pub(super) fn same_sources(baseline: &Build, other: &Build) -> Result<(), Why> {
    for (what, ours, its) in [
        ("commit", &baseline.commit, &other.commit),
        ("tree", &baseline.tree, &other.tree),
        ("compiler", &baseline.rustc, &other.rustc),
        ("target", &baseline.target, &other.target),
    ] {
        if ours != its {
            return Err(format!("its {what} is '{its}' and the baseline's '{ours}': more than flags differ"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::tests::asked;

    fn build(opt_level: &str, rustflags: &str) -> Build {
        Build { opt_level: opt_level.into(), rustflags: rustflags.into(), ..Build::ours() }
    }

    #[test]
    fn what_lies_below_is_shown_from_here_on() {
        let here = std::env::current_dir().expect("a folder");
        let named = find(&here.join("none"), "o1").expect_err("nothing is there");
        assert_eq!(named, format!("{} is not there", Path::new("none").join("bin").join("o1").display()));
        assert_eq!(shown(Path::new("/kept")), "/kept");
        assert_eq!(shown(&here), here.display().to_string());
    }

    #[test]
    fn another_build_under_a_builds_name_is_seen() {
        let asked = asked();
        let is = |name: &str, b: &Build| is_of(asked.named(name).expect("a build"), b);
        let (plain, o1) = (build("3", "none"), build("1", "none"));
        let (native, guided) =
            (build("3", "-Ctarget-cpu=native"), build("3", "-Ctarget-cpu=native -Cprofile-use=/p"));
        for (name, right) in [("release", &plain), ("o1", &o1), ("native", &native), ("all", &guided)] {
            for b in [&plain, &o1, &native, &guided] {
                assert_eq!(is(name, b).is_ok(), std::ptr::eq(b, right), "{name}: {b:?}");
            }
        }
        let train = build("3", "-Cprofile-generate=/p");
        assert!(is("pgo", &train).is_err_and(|e| e.contains("instrumented")));
        assert!(is("os", &plain).is_err_and(|e| e.contains("opt-level is '3' and not 's'")));
    }

    #[test]
    fn builds_of_other_sources_or_compilers_are_refused() {
        let own = Build::ours();
        assert_eq!(same_sources(&own, &build("1", "-Ctarget-cpu=native")), Ok(()));
        for other in [
            Build { commit: "0".into(), ..own.clone() },
            Build { tree: "?".into(), ..own.clone() },
            Build { rustc: "rustc 1.0.0".into(), ..own.clone() },
        ] {
            assert!(same_sources(&own, &other).is_err_and(|e| e.contains("more than flags")));
        }
    }

    #[test]
    fn what_is_kept_is_found_and_must_speak() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(find(folder.path(), "o1").is_err_and(|e| e.contains("bin/o1 is not there")));
        keep(folder.path(), "o1", Path::new("/bin/true")).expect("kept");
        keep(folder.path(), "o1", Path::new("/bin/true")).expect("kept again");
        let kept = find(folder.path(), "o1").expect("found");
        assert!(of_itself(&kept).is_err_and(|e| e.contains("does not say how it was built")));
        assert!(of_itself(Path::new("/nowhere")).is_err_and(|e| e.contains("cannot be run")));
        assert!(keep(folder.path(), "o1", Path::new("/nowhere")).is_err());
    }
}
