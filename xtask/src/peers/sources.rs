//! Obtaining a release's sources through cargo.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

use lanework_peers::Release;
use lanework_peers::delay::Sources;
use serde_json::Value;

use super::tools::{Problem, capture};

/// Has cargo fetch the package that carries `release`, and returns the directory of the C sources.
///
/// The version and the archive's checksum are pinned. Cargo verifies the checksum against the registry's
/// index, and this function against the release's known one.
pub(crate) fn fetch(out: &Path, release: &Release) -> Result<PathBuf, Problem> {
    let source =
        package(out, release.package, release.package_version, release.checksum)?.join(release.project);
    if source.join("CMakeLists.txt").is_file() {
        Ok(source)
    } else {
        Err(Problem::Failed(format!("{} has no CMakeLists.txt", source.display())))
    }
}

/// The same for one folder of a package.
pub(crate) fn fetch_folder(out: &Path, sources: &Sources) -> Result<PathBuf, Problem> {
    let folder = package(out, sources.package, sources.version, sources.checksum)?.join(sources.folder);
    if folder.is_dir() {
        Ok(folder)
    } else {
        Err(Problem::Failed(format!("{} is not in the package", folder.display())))
    }
}

/// Has cargo fetch a package, and returns where it keeps it.
fn package(out: &Path, name: &str, version: &str, checksum: &str) -> Result<PathBuf, Problem> {
    let project = out.join("sources").join(format!("{name}-{version}"));
    let failed = |path: &Path, e: std::io::Error| Problem::Failed(format!("{}: {e}", path.display()));
    std::fs::create_dir_all(project.join("src")).map_err(|e| failed(&project, e))?;
    let manifest = project.join("Cargo.toml");
    std::fs::write(&manifest, manifest_for(name, version)).map_err(|e| failed(&manifest, e))?;
    let library = project.join("src/lib.rs");
    std::fs::write(&library, "//! Depends on a package so that cargo fetches it; never compiled.\n")
        .map_err(|e| failed(&library, e))?;

    capture(cargo().arg("fetch").arg("--quiet").arg("--manifest-path").arg(&manifest))?;
    let lock = project.join("Cargo.lock");
    let lock = std::fs::read_to_string(&lock).map_err(|e| failed(&lock, e))?;
    check_lock(&lock, name, version, checksum)?;
    let metadata = capture(
        cargo()
            .args(["metadata", "--format-version", "1", "--locked", "--offline"])
            .arg("--manifest-path")
            .arg(&manifest),
    )?;
    locate(&metadata, name)
}

/// The cargo that runs this chore.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // The outer cargo sets these for the outer package, not for the throw-away project.
    command.env_remove("CARGO_MANIFEST_DIR").env_remove("CARGO_MANIFEST_PATH");
    command
}

fn manifest_for(name: &str, version: &str) -> String {
    format!(
        "[package]\nname = \"peer-sources\"\nversion = \"0.0.0\"\nedition = \"2021\"\npublish = false\n\n\
         [workspace]\n\n[dependencies]\n{name} = {{ version = \"={version}\", default-features = false }}\n"
    )
}

/// Compares the checksum that cargo locked with the package's known one.
fn check_lock(lock: &str, name: &str, version: &str, known: &str) -> Result<(), Problem> {
    let wanted = format!("name = \"{name}\"");
    let package = lock.split("[[package]]").find(|part| part.lines().any(|line| line == wanted));
    let locked = package
        .and_then(|part| part.lines().find_map(|line| line.strip_prefix("checksum = ")))
        .map(|quoted| quoted.trim_matches('"'));
    match locked {
        Some(checksum) if checksum == known => Ok(()),
        other => Err(Problem::Failed(format!(
            "cargo locked {name} {version} with checksum {}, not {known}",
            other.unwrap_or("none")
        ))),
    }
}

/// The directory in which cargo keeps the package, from `cargo metadata`.
fn locate(metadata: &str, name: &str) -> Result<PathBuf, Problem> {
    let problem = |why: &str| Problem::Failed(format!("cargo metadata: {why}"));
    let metadata: Value = serde_json::from_str(metadata).map_err(|e| problem(&e.to_string()))?;
    let packages = metadata["packages"].as_array().ok_or_else(|| problem("no packages"))?;
    packages
        .iter()
        .find(|package| package["name"] == name)
        .and_then(|package| Path::new(package["manifest_path"].as_str()?).parent())
        .map(Path::to_path_buf)
        .ok_or_else(|| problem(&format!("{name} is not among the packages")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanework_peers::flavour::LIBOQS_13;

    fn lock(checksum: &str) -> String {
        format!(
            "version = 4\n\n[[package]]\nname = \"cc\"\nchecksum = \"00\"\n\n[[package]]\nname = \"oqs-sys\"\n\
             version = \"0.11.0+liboqs-0.13.0\"\nchecksum = \"{checksum}\"\ndependencies = [\n \"cc\",\n]\n"
        )
    }

    fn locked(lock: &str) -> Result<(), Problem> {
        check_lock(lock, LIBOQS_13.package, LIBOQS_13.package_version, LIBOQS_13.checksum)
    }

    #[test]
    fn another_checksum_is_refused() {
        locked(&lock(LIBOQS_13.checksum)).expect("the pinned one");
        let planted = LIBOQS_13.checksum.replace('a', "b");
        let Err(Problem::Failed(why)) = locked(&lock(&planted)) else {
            panic!("another archive must be refused");
        };
        assert!(why.contains(&planted), "{why}");
        assert!(locked("version = 4\n").is_err());
    }

    #[test]
    fn metadata_leads_to_the_package() {
        let metadata = r#"{"packages":[{"name":"cc","manifest_path":"/r/cc/Cargo.toml"},
            {"name":"oqs-sys","manifest_path":"/r/oqs-sys-0.11.0/Cargo.toml"}]}"#;
        let found = locate(metadata, LIBOQS_13.package).expect("it is there");
        assert_eq!(found, Path::new("/r/oqs-sys-0.11.0"));
        assert!(locate(r#"{"packages":[]}"#, LIBOQS_13.package).is_err());
        assert!(locate("not json", LIBOQS_13.package).is_err());
    }
}
