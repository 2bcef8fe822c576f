//! Lanework's own kernels as programs: the modules of their crates, compiled on the spot behind functions that a C caller can reach.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::programs::{Assembly, NotHere};
use super::rows::Subject;

/// A file of a small crate: its path in the crate, and its text.
type File = (&'static str, &'static str);

macro_rules! file {
    ($to:literal, $from:literal) => {
        ($to, include_str!(concat!("../../../", $from)))
    };
}

const GCD: &[File] = &[
    file!("root.rs", "studies/spill-homes/sources/kernels/gcd.rs"),
    file!("library.rs", "studies/spill-homes/sources/kernels/library.rs"),
    file!("gcd.rs", "crates/integer/src/gcd.rs"),
    file!("gcd/binary.rs", "crates/integer/src/gcd/binary.rs"),
    file!("gcd/euclid.rs", "crates/integer/src/gcd/euclid.rs"),
    file!("kernels.rs", "crates/integer/src/kernels.rs"),
    file!("kernels/adx.rs", "crates/integer/src/kernels/adx.rs"),
    file!("limbs.rs", "crates/integer/src/limbs.rs"),
];

const MAGMA: &[File] = &[
    file!("root.rs", "studies/spill-homes/sources/kernels/magma.rs"),
    file!("library.rs", "studies/spill-homes/sources/kernels/library.rs"),
    file!("sbox.rs", "crates/magma/src/sbox.rs"),
    file!("schedule.rs", "crates/magma/src/schedule.rs"),
    file!("backend/portable/circuits.rs", "crates/magma/src/backend/portable/circuits.rs"),
    file!("backend/portable/plane.rs", "crates/magma/src/backend/portable/plane.rs"),
    file!("backend/portable/rounds.rs", "crates/magma/src/backend/portable/rounds.rs"),
    file!("backend/portable/words.rs", "crates/magma/src/backend/portable/words.rs"),
];

const MAYO: &[File] = &[
    file!("root.rs", "studies/spill-homes/sources/kernels/mayo.rs"),
    file!("library.rs", "studies/spill-homes/sources/kernels/library.rs"),
    file!("field.rs", "crates/mayo/src/field.rs"),
    file!("params.rs", "crates/mayo/src/params.rs"),
    file!("params/tables.rs", "crates/mayo/src/params/tables.rs"),
    file!("backend/sponge.rs", "crates/mayo/src/backend/sponge.rs"),
    file!("backend/portable/eliminate.rs", "crates/mayo/src/backend/portable/eliminate.rs"),
    file!("backend/portable/expand.rs", "crates/mayo/src/backend/portable/expand.rs"),
    file!("backend/portable/products.rs", "crates/mayo/src/backend/portable/products.rs"),
    file!("backend/portable/whip.rs", "crates/mayo/src/backend/portable/whip.rs"),
    file!("backend/portable/words.rs", "crates/mayo/src/backend/portable/words.rs"),
];

/// The files of a small crate.
///
/// # Errors
/// There is none of this name.
fn files(source: &str) -> Result<&'static [File], NotHere> {
    match source {
        "gcd" => Ok(GCD),
        "magma" => Ok(MAGMA),
        "mayo" => Ok(MAYO),
        _ => Err(NotHere(format!("there is no source of kernels {source}"))),
    }
}

/// A kernel of ours.
#[derive(Clone, Debug, Deserialize)]
pub struct Kernel {
    /// Its name here.
    pub name: String,
    /// Which sources: gcd, magma or mayo.
    pub source: String,
    /// The function.
    pub function: String,
    /// Instructions that the processor must have, as Rust names them: `bmi2`, `adx`.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Whether slots may move that are used on paths which no input takes (those to a panic).
    #[serde(default)]
    pub unreached: bool,
    /// The call and its arguments.
    pub case: String,
}

/// The compiler that built this command, or one like it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rustc {
    command: String,
    version: String,
}

impl Rustc {
    /// `rustc`, or what the environment's `RUSTC` names.
    ///
    /// # Errors
    /// None is here.
    pub fn find() -> Result<Rustc, NotHere> {
        Rustc::named(&std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned()))
    }

    fn named(command: &str) -> Result<Rustc, NotHere> {
        let missing = || NotHere(format!("{command} is not on this machine"));
        let output =
            Command::new(command).arg("--version").stdin(Stdio::null()).output().map_err(|_| missing())?;
        let said = String::from_utf8_lossy(&output.stdout);
        match said.lines().next() {
            Some(version) if output.status.success() && version.starts_with("rustc ") => {
                Ok(Rustc { command: command.to_owned(), version: version.to_owned() })
            }
            _ => Err(missing()),
        }
    }

    /// Compiles a small crate, whose root is `root.rs`, to assembly.
    fn assembly(&self, name: &str, files: &[File], flags: &str) -> Result<Assembly, NotHere> {
        let failed = |e: std::io::Error| NotHere(format!("{name}: {}: {e}", self.command));
        let folder = tempfile::tempdir().map_err(failed)?;
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).map_err(failed)?;
            fs::write(path, text).map_err(failed)?;
        }
        let out = folder.path().join("out.s");
        let mut emit = std::ffi::OsString::from("--emit=asm=");
        emit.push(&out);
        let output = Command::new(&self.command)
            .args(flags.split_whitespace())
            .arg(emit)
            // Its temporary files would be in the current directory. That is not changed: rustup chooses a compiler by it.
            .arg("--out-dir")
            .arg(folder.path())
            .arg(folder.path().join("root.rs"))
            .stdin(Stdio::null())
            .output()
            .map_err(failed)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let why =
                said.lines().find(|line| line.starts_with("error")).unwrap_or("it failed without a word");
            return Err(NotHere(format!("{name}: {}: {why}", self.command)));
        }
        let text = fs::read_to_string(&out).map_err(failed)?;
        let text = whole(&text);
        Ok(Assembly {
            name: format!("Lanework's {name} by rustc"),
            text,
            made_by: Some(format!("{} {flags}", self.version)),
        })
    }
}

/// The text made whole. Calls through the table of addresses become direct calls, as a linker makes them. Every named function of
/// Rust's own libraries gets a body that ends the process: those that panic and format, none of which a kernel on good input reaches.
fn whole(text: &str) -> String {
    let mut out: String = text.lines().map(|line| direct(line) + "\n").collect();
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.');
    let defined: BTreeSet<&str> = text.lines().filter_map(|line| line.strip_suffix(':')).collect();
    // Sections are named after their functions, behind a dot, so those words begin with the dot. A dollar before a name is an immediate's.
    let words = text.split(|c| !inside(c)).map(|word| word.trim_start_matches('$'));
    let named: BTreeSet<&str> =
        words.filter(|word| word.starts_with("_ZN") || word.starts_with("_R")).collect();
    for (n, name) in named.difference(&defined).enumerate() {
        if n == 0 {
            out.push_str("\t.section\t.text.absent,\"ax\",@progbits\n");
        }
        out.push_str(name);
        out.push_str(":\n\tud2\n");
    }
    out
}

/// `callq *f@GOTPCREL(%rip)` as `callq f`.
fn direct(line: &str) -> String {
    let call = line.split_once("callq\t*").filter(|(before, _)| before.trim().is_empty());
    match call.and_then(|(_, to)| to.strip_suffix("@GOTPCREL(%rip)")) {
        Some(name) => format!("\tcallq\t{name}"),
        None => line.to_owned(),
    }
}

/// Whether this processor has all of these.
fn has(needs: &[String]) -> Result<(), NotHere> {
    #[cfg(target_arch = "x86_64")]
    let has = |name: &str| match name {
        "bmi1" => std::arch::is_x86_feature_detected!("bmi1"),
        "bmi2" => std::arch::is_x86_feature_detected!("bmi2"),
        "adx" => std::arch::is_x86_feature_detected!("adx"),
        _ => false,
    };
    #[cfg(not(target_arch = "x86_64"))]
    let has = |_: &str| false;
    match needs.iter().find(|name| !has(name)) {
        Some(name) => Err(NotHere(format!("this processor has no {name}"))),
        None => Ok(()),
    }
}

impl Kernel {
    /// The kernel's program.
    ///
    /// # Errors
    /// It is not here, and why.
    pub fn subject(&self, flags: &str, rustc: &Rustc) -> Result<Subject, NotHere> {
        has(&self.needs)?;
        let assembly = rustc.assembly(&self.source, files(&self.source)?, flags)?;
        Ok(Subject {
            name: self.name.clone(),
            function: self.function.clone(),
            assembly,
            case: self.case.clone(),
            also: Vec::new(),
            original: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_text_names_and_has_not_gets_an_end() {
        let text = "\t.section .text._ZN1a,\"ax\"\n_ZN1a:\n\tcallq\t*_ZN1b17h0E@GOTPCREL(%rip)\n\tmovq\t$_RNv1c, %rax\n\tcallq\t*%rbx\n";
        let out = whole(text);
        assert_eq!(
            out,
            "\t.section .text._ZN1a,\"ax\"\n_ZN1a:\n\tcallq\t_ZN1b17h0E\n\tmovq\t$_RNv1c, %rax\n\tcallq\t*%rbx\n\
             \t.section\t.text.absent,\"ax\",@progbits\n_RNv1c:\n\tud2\n_ZN1b17h0E:\n\tud2\n"
        );
        assert_eq!(whole("f:\n\tret\n"), "f:\n\tret\n");
    }

    #[test]
    fn what_is_not_here_says_so() {
        assert!(Rustc::named("no-such-compiler").is_err());
        assert!(Rustc::named("true").is_err());
        let why = has(&["adx512".to_owned()]).expect_err("no such thing").0;
        assert!(why.contains("adx512"), "{why}");
        assert!(files("sha3").is_err());
        let Ok(rustc) = Rustc::find() else {
            println!("skipped: no rustc");
            return;
        };
        let why = rustc
            .assembly("x", &[("root.rs", "fn f() -> u8 { y }")], "--crate-type lib")
            .expect_err("no y")
            .0;
        assert!(why.starts_with("x: ") && why.contains("cannot find value"), "{why}");
    }

    #[test]
    fn nothing_is_left_in_the_current_directory() {
        let Ok(rustc) = Rustc::find() else {
            println!("skipped: no rustc");
            return;
        };
        let names = || {
            let entries = fs::read_dir(".").expect("the current directory");
            entries.map(|e| e.expect("an entry").file_name()).collect::<BTreeSet<_>>()
        };
        let before = names();
        // As if it had been interrupted.
        let flags = "--crate-type lib -C save-temps";
        let made = rustc.assembly("x", &[("root.rs", "pub fn f(x: u8) -> u8 { x.wrapping_mul(3) }")], flags);
        assert!(made.expect("it compiles").text.contains("ret"));
        assert_eq!(names(), before);
    }
}
