//! `cargo xtask peers`: obtains other people's sources and builds them in every flavour.
//!
//! Sources come through cargo itself, from whatever registry it is set up to use: a throw-away project
//! in the output directory depends on the package that carries them, and `cargo metadata` says where
//! cargo put it. Nothing is written to the repository. Peers that come with the system are only looked up and
//! tried out.
#![forbid(unsafe_code)]

mod build;
mod chiavdf;
mod ciphers;
mod inspect;
mod pragmas;
mod sources;
mod tools;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lanework_peers::{CIPHER_FLAVOURS, DELAY_FLAVOURS, FLAG_BUILDS, FLAVOURS, Flavour, Peers};

use crate::Complaint;
use ciphers::Outcome;
use tools::{Problem, Tools};

/// Options of `cargo xtask peers`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Build only this one; may be given several times. `--list` names them.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Where sources, builds and the finished libraries go. [default: target/peers in the workspace]
    #[arg(long, value_name = "DIR", env = "LANEWORK_PEERS")]
    out: Option<PathBuf>,
    /// Build even what an earlier run has built with the same compiler and options.
    #[arg(long)]
    rebuild: bool,
    /// A clone of gost-engine's repository, a folder or an address, from which to build its newest engine.
    #[arg(long, value_name = "CLONE", env = "LANEWORK_GOST_ENGINE_SOURCE")]
    gost_engine_source: Option<String>,
    /// List the flavours with a description of each, and build nothing.
    #[arg(long)]
    list: bool,
}

/// All built.
const BUILT: u8 = 0;
/// Something that should have built did not.
const FAILED: u8 = 1;
/// The command line is wrong.
const USAGE: u8 = 2;
/// A tool is missing here; everything that did not need it was built.
const UNAVAILABLE: u8 = 3;

/// Builds the chosen flavours one by one, reports the result of each, and sums up in the exit code.
pub(crate) fn run(options: &Options) -> ExitCode {
    if options.list {
        for flavour in FLAVOURS.iter().chain(FLAG_BUILDS) {
            let release = flavour.release;
            println!(
                "{:22} {} {} ({}), {:?} compiler, {:?}",
                flavour.name,
                release.project,
                release.version,
                release.round,
                flavour.compiler,
                flavour.tuning
            );
        }
        for flavour in CIPHER_FLAVOURS {
            println!("{:22} {}", flavour.name, flavour.what);
        }
        for flavour in DELAY_FLAVOURS {
            println!("{:22} {}", flavour.name, flavour.what);
        }
        return ExitCode::from(BUILT);
    }
    let known: Vec<_> = FLAVOURS
        .iter()
        .chain(FLAG_BUILDS)
        .map(|flavour| flavour.name)
        .chain(ciphers::names())
        .chain(chiavdf::names())
        .collect();
    if let Some(name) = options.only.iter().find(|name| !known.contains(&name.as_str())) {
        let complaint = Complaint::from(format!("no peer is called {name}"));
        complaint.help(format!("choose among {}", known.join(", "))).print();
        return ExitCode::from(USAGE);
    }
    let wanted = options.out.clone().unwrap_or_else(default_directory);
    let out = match prepare(&wanted) {
        Ok(out) => out,
        Err(why) => {
            Complaint::from(format!("{}: {why}", wanted.display())).print();
            return ExitCode::from(USAGE);
        }
    };

    let tools = Tools::default();
    let mut fetched = HashMap::new();
    let mut worst = BUILT;
    let mut report = |name: &str, result: Result<String, Problem>| match result {
        Ok(line) => println!("{name:22} {line}"),
        Err(problem) => {
            worst = match (&problem, worst) {
                (Problem::Failed(_), _) | (_, FAILED) => FAILED,
                (Problem::Missing(_), _) => UNAVAILABLE,
            };
            println!("{name:22} {problem}");
            leave_note(&out, name, &problem);
        }
    };
    let chosen = |name: &str| options.only.is_empty() || options.only.iter().any(|only| only == name);
    for flavour in FLAVOURS.iter().chain(FLAG_BUILDS).filter(|flavour| chosen(flavour.name)) {
        let release = flavour.release;
        let source =
            || fetched.entry(release.version).or_insert_with(|| sources::fetch(&out, release)).clone();
        let result = build::build(&out, source, flavour, &tools, options.rebuild)
            .and_then(|()| try_out(&out, flavour));
        report(flavour.name, result);
    }
    for flavour in CIPHER_FLAVOURS.iter().filter(|flavour| chosen(flavour.name)) {
        let source = options.gost_engine_source.as_deref();
        let result = ciphers::provide(&out, flavour, source, &tools, options.rebuild);
        report(
            flavour.name,
            result.map(|outcome| match outcome {
                Outcome::There(line) | Outcome::NotAsked(line) => line,
            }),
        );
    }
    for flavour in DELAY_FLAVOURS.iter().filter(|flavour| chosen(flavour.name)) {
        report(flavour.name, chiavdf::provide(&out, flavour, &tools, options.rebuild));
    }
    println!("peers are in {}", out.display());
    ExitCode::from(worst)
}

/// `target/peers` of the workspace, from wherever in it the chore is run: cargo tells a program it runs
/// where the program's package is. Run without cargo, the current directory counts as the workspace.
fn default_directory() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let workspace = package.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
    workspace.join("target").join("peers")
}

/// Makes the output directory, and makes its path absolute, since the tools run in other directories.
fn prepare(out: &Path) -> std::io::Result<PathBuf> {
    std::fs::create_dir_all(out)?;
    out.canonicalize()
}

/// Loads what was just built, the way its users will.
fn try_out(out: &Path, flavour: &Flavour) -> Result<String, Problem> {
    let _ = std::fs::remove_file(out.join(flavour.note()));
    let peer = Peers::find(out, flavour.name).map_err(|unavailable| {
        Problem::Failed(format!("built, but cannot be loaded: {}", unavailable.why))
    })?;
    let code = peer.sets().first().map_or("", |set| &set.code);
    let card = peer.card();
    Ok(format!(
        "there: {} {} ({}), {}; runs {code} code with {} AES",
        card.project,
        card.version,
        card.round,
        card.compiler_version,
        peer.aes()
    ))
}

/// Reports among the others why nothing was built. A library of an earlier build stays, with its own card.
fn leave_note(out: &Path, name: &str, problem: &Problem) {
    if out.join(format!("{name}{}", std::env::consts::DLL_SUFFIX)).exists() {
        println!("{:22} an earlier build is kept", "");
    }
    let note = out.join(format!("{name}.unavailable"));
    if let Err(why) = std::fs::write(&note, format!("{problem}\n")) {
        Complaint::from(format!("{}: {why}", note.display())).print();
    }
}
