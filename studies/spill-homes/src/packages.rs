//! Packages of the corpus, where cargo keeps them.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::programs::{Assembly, NotHere};

/// The manifest, the lock file and the empty library, for machines without the study's folder.
const FILES: [(&str, &str); 3] = [
    ("Cargo.toml", include_str!("../corpus/Cargo.toml")),
    ("Cargo.lock", include_str!("../corpus/Cargo.lock")),
    ("nothing.rs", include_str!("../corpus/nothing.rs")),
];

/// The packages of the corpus: name, version and folder of each.
#[derive(Clone, Debug)]
pub struct Packages(BTreeMap<String, (String, PathBuf)>);

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    manifest_path: PathBuf,
}

impl Packages {
    /// Asks cargo, first offline, then with the network.
    ///
    /// # Errors
    /// No cargo, or packages that cannot be fetched.
    pub fn find() -> Result<Packages, NotHere> {
        let cargo =
            std::env::var_os("CARGO").filter(|name| !name.is_empty()).unwrap_or_else(|| "cargo".into());
        Packages::by(&cargo)
    }

    fn by(cargo: &OsString) -> Result<Packages, NotHere> {
        // Cargo may write beside a manifest, and the folder of the study may not be writable.
        let failed = |e: std::io::Error| NotHere(format!("the corpus: a temporary folder: {e}"));
        let folder = tempfile::tempdir().map_err(failed)?;
        for (name, text) in FILES {
            fs::write(folder.path().join(name), text).map_err(failed)?;
        }
        let ask = |offline: bool| {
            let mut command = Command::new(cargo);
            command.args(["metadata", "--format-version", "1", "--locked", "--quiet"]);
            command
                .args(offline.then_some("--offline"))
                .arg("--manifest-path")
                .arg(folder.path().join("Cargo.toml"));
            command.stdin(Stdio::null()).output()
        };
        let start =
            |e: std::io::Error| NotHere(format!("the corpus: {} does not start: {e}", cargo.display()));
        let mut output = ask(true).map_err(start)?;
        if !output.status.success() {
            output = ask(false).map_err(start)?;
        }
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let why = said.lines().next().unwrap_or("it said nothing").trim_start_matches("error: ");
            return Err(NotHere(format!("the corpus: cargo cannot have its packages: {why}")));
        }
        let metadata: Metadata = serde_json::from_slice(&output.stdout)
            .map_err(|e| NotHere(format!("the corpus: cargo metadata is not understood: {e}")))?;
        let folder = |package: Package| {
            let folder = package.manifest_path.parent().map_or_else(PathBuf::new, Path::to_owned);
            (package.name, (package.version, folder))
        };
        Ok(Packages(metadata.packages.into_iter().map(folder).collect()))
    }

    /// A package's version and folder.
    ///
    /// # Errors
    /// It is not in the corpus.
    pub fn folder(&self, package: &str) -> Result<(&str, &Path), NotHere> {
        self.0
            .get(package)
            .map(|(version, folder)| (version.as_str(), folder.as_path()))
            .ok_or_else(|| NotHere(format!("the corpus has no package {package}")))
    }

    /// A text file of a package.
    ///
    /// # Errors
    /// The package or the file is not there.
    pub fn assembly(&self, package: &str, path: &str) -> Result<Assembly, NotHere> {
        let (version, folder) = self.folder(package)?;
        let file = folder.join(path);
        let text = fs::read_to_string(&file).map_err(|e| NotHere(format!("{}: {e}", file.display())))?;
        Ok(Assembly { name: format!("{package} {version}, {path}"), text, made_by: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_cargo_the_corpus_is_not_here() {
        let why = Packages::by(&"no-such-cargo".into()).expect_err("no cargo").0;
        assert!(why.contains("no-such-cargo does not start"), "{why}");
        let why = Packages::by(&"false".into()).expect_err("it fails").0;
        assert!(why.contains("cannot have its packages"), "{why}");
        let why = Packages::by(&"true".into()).expect_err("it says nothing").0;
        assert!(why.contains("is not understood"), "{why}");
    }

    #[test]
    fn the_manifest_pins_each_package() {
        let lock = FILES[1].1;
        for package in ["aws-lc-sys", "libjade-sys", "oqs-sys"] {
            assert!(lock.contains(&format!("name = \"{package}\"\n")), "{package}");
            assert!(
                FILES[0].1.lines().any(|line| line.starts_with(package) && line.contains("\"=")),
                "{package}"
            );
        }
    }
}
