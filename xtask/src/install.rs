//! `cargo xtask install`: builds liblanework and puts it, its header and its pkg-config file below a prefix.
#![forbid(unsafe_code)]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Args;

use crate::Complaint;

/// `install`.
#[derive(Args)]
pub(crate) struct Options {
    /// The folder that gets `include/`, `lib/` and `lib/pkgconfig/`, such as /usr/local.
    #[arg(long, value_name = "FOLDER")]
    prefix: PathBuf,
}

/// The version of the package, which is the shared library's.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The SONAME's number, as in `bindings/c/build.rs`.
const ABI: &str = "0";

/// `lanework.pc`. It finds its prefix by itself, so an installed tree can be moved.
fn pkg_config() -> String {
    format!(
        "prefix=${{pcfiledir}}/../..\n\
         includedir=${{prefix}}/include\n\
         libdir=${{prefix}}/lib\n\
         \n\
         Name: lanework\n\
         Description: MAYO signatures, the block cipher Magma, and the delay function of Chia\n\
         Version: {VERSION}\n\
         Cflags: -I${{includedir}}\n\
         Libs: -L${{libdir}} -llanework\n\
         Libs.private: -lgcc_s -lpthread -lm -ldl\n"
    )
}

/// What a path becomes.
enum Content {
    Copy(PathBuf),
    Text(String),
    Link(String),
}

/// Everything that is installed, with its place below the prefix. What others link to comes first.
fn files(header: &Path, built: &Path) -> Vec<(String, Content)> {
    vec![
        ("include/lanework.h".to_owned(), Content::Copy(header.to_owned())),
        (format!("lib/liblanework.so.{VERSION}"), Content::Copy(built.join("liblanework.so"))),
        (format!("lib/liblanework.so.{ABI}"), Content::Link(format!("liblanework.so.{VERSION}"))),
        ("lib/liblanework.so".to_owned(), Content::Link(format!("liblanework.so.{ABI}"))),
        ("lib/liblanework.a".to_owned(), Content::Copy(built.join("liblanework.a"))),
        ("lib/pkgconfig/lanework.pc".to_owned(), Content::Text(pkg_config())),
    ]
}

pub(crate) fn run(options: &Options) -> ExitCode {
    match go(&options.prefix) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            why.print();
            ExitCode::from(2)
        }
    }
}

fn go(prefix: &Path) -> Result<(), Complaint> {
    let package = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| "xtask".into()));
    let root = package.parent().unwrap_or(Path::new(""));
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let files = files(&root.join("bindings/c/lanework.h"), &target.join("release"));
    // Before minutes of compiling.
    prepare(prefix, &files)?;
    let status = Command::new("cargo")
        .args(["build", "--release", "--locked", "--package", "lanework-c", "--manifest-path"])
        .arg(root.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        .status()
        .map_err(|e| format!("cargo: {e}"))?;
    if !status.success() {
        return Err("liblanework does not compile".to_owned().into());
    }
    put(prefix, &files)?;
    println!("installed liblanework {VERSION} in {}", prefix.display());
    println!("pkg-config finds it with PKG_CONFIG_PATH={}", prefix.join("lib/pkgconfig").display());
    Ok(())
}

/// Makes the folders, and refuses a prefix in which a file could not be placed.
fn prepare(prefix: &Path, files: &[(String, Content)]) -> Result<(), Complaint> {
    for (name, _) in files {
        let place = prefix.join(name);
        let folder = place.parent().unwrap_or(prefix);
        let writable = || fs::create_dir_all(folder).and_then(|()| tempfile::tempfile_in(folder)).map(drop);
        writable().map_err(|why| {
            let complaint = Complaint::from(format!("cannot write into {}: {why}", folder.display()));
            complaint.help("choose another --prefix, or run as a user who may")
        })?;
        if fs::symlink_metadata(&place).is_ok_and(|there| there.is_dir()) {
            let complaint = Complaint::from(format!("a folder is in the way: {}", place.display()));
            return Err(complaint.help("remove it, or choose another --prefix"));
        }
    }
    Ok(())
}

/// Writes every file beside its place, and then renames them all.
fn put(prefix: &Path, files: &[(String, Content)]) -> Result<(), Complaint> {
    let wrong = |place: &Path| {
        let place = place.display().to_string();
        move |why: io::Error| Complaint::from(format!("{place}: {why}"))
    };
    let mut ready = Vec::new();
    for (name, content) in files {
        let place = prefix.join(name);
        let folder = place.parent().unwrap_or(prefix);
        let beside = tempfile::Builder::new().prefix(".lanework-").make_in(folder, |path| match content {
            Content::Copy(from) => fs::copy(from, path).map(drop),
            Content::Text(text) => fs::write(path, text),
            Content::Link(to) => link(to, path),
        });
        ready.push((beside.map_err(wrong(&place))?.into_temp_path(), place));
    }
    for (beside, place) in ready {
        beside.persist(&place).map_err(|e| wrong(&place)(e.error))?;
        println!("{}", place.display());
    }
    Ok(())
}

#[cfg(unix)]
fn link(to: &str, path: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(to, path)
}

#[cfg(not(unix))]
fn link(_: &str, _: &Path) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no such links"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A scratch folder with a header and two libraries, and what is installed of them.
    fn scratch() -> (tempfile::TempDir, Vec<(String, Content)>) {
        let scratch = tempfile::tempdir().expect("a folder");
        for file in ["lanework.h", "liblanework.so", "liblanework.a"] {
            fs::write(scratch.path().join(file), file).expect("a file");
        }
        let files = files(&scratch.path().join("lanework.h"), scratch.path());
        (scratch, files)
    }

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn everything_is_there_twice_over() {
        let (scratch, files) = scratch();
        let prefix = scratch.path().join("a/prefix");
        for _ in 0..2 {
            assert!(prepare(&prefix, &files).is_ok() && put(&prefix, &files).is_ok());
            let versioned = format!("liblanework.so.{VERSION}");
            let expected =
                ["liblanework.a", "liblanework.so", "liblanework.so.0", versioned.as_str(), "pkgconfig"];
            assert_eq!(names(&prefix.join("lib")), expected);
            assert_eq!(names(&prefix.join("include")), ["lanework.h"]);
            assert_eq!(
                fs::read_to_string(prefix.join("lib/liblanework.so")).expect("a link"),
                "liblanework.so"
            );
        }
    }

    #[test]
    fn what_is_in_the_way_is_named() {
        let (scratch, files) = scratch();
        let prefix = scratch.path().join("prefix");
        fs::create_dir_all(prefix.join("lib/liblanework.so")).expect("a folder");
        let why = prepare(&prefix, &files).expect_err("a folder is in the way");
        assert!(
            why.what.contains("a folder is in the way") && why.what.contains("liblanework.so"),
            "{}",
            why.what
        );
        // A file where the prefix should be.
        let why = prepare(&scratch.path().join("lanework.h"), &files).expect_err("a file is in the way");
        assert!(why.what.contains("cannot write into") && why.help.is_some(), "{}", why.what);
    }

    #[test]
    fn a_library_that_is_missing_leaves_nothing() {
        let (scratch, files) = scratch();
        fs::remove_file(scratch.path().join("liblanework.a")).expect("a file");
        let prefix = scratch.path().join("prefix");
        assert!(prepare(&prefix, &files).is_ok() && put(&prefix, &files).is_err());
        assert_eq!(names(&prefix.join("lib")), ["pkgconfig"]);
    }

    #[test]
    fn the_soname_is_the_build_scripts() {
        let build = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../bindings/c/build.rs"));
        assert!(build.expect("a build script").contains(&format!("liblanework.so.{ABI}")));
    }
}
