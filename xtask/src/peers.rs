//! `cargo xtask peers`: obtains other people's sources and builds them in every flavour.
//!
//! Sources come through cargo itself, from whatever registry it is set up to use: a throw-away project
//! in the output directory depends on the package that carries them, and `cargo metadata` says where
//! cargo put it. Nothing is written to the repository.
#![forbid(unsafe_code)]

mod build;
mod inspect;
mod sources;
mod tools;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lanework_peers::{FLAVOURS, Flavour, Peers};

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
    /// Name the flavours and what each is, and build nothing.
    #[arg(long)]
    list: bool,
}

/// All built.
const BUILT: u8 = 0;
/// Something that should have built did not.
const FAILED: u8 = 1;
/// The command line is wrong.
const USAGE: u8 = 2;
/// A tool is missing here; what did not need it was built.
const UNAVAILABLE: u8 = 3;

/// Builds the chosen flavours one by one, says what became of each, and sums up in the exit code.
pub(crate) fn run(options: &Options) -> ExitCode {
    if options.list {
        for flavour in FLAVOURS {
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
        return ExitCode::from(BUILT);
    }
    let unknown: Vec<_> =
        options.only.iter().filter(|name| FLAVOURS.iter().all(|flavour| flavour.name != **name)).collect();
    if let Some(name) = unknown.first() {
        let known: Vec<_> = FLAVOURS.iter().map(|flavour| flavour.name).collect();
        eprintln!("no peer is called {name}; known are {}", known.join(", "));
        return ExitCode::from(USAGE);
    }
    let wanted = options.out.clone().unwrap_or_else(default_directory);
    let out = match prepare(&wanted) {
        Ok(out) => out,
        Err(why) => {
            eprintln!("{}: {why}", wanted.display());
            return ExitCode::from(USAGE);
        }
    };

    let tools = Tools::default();
    let mut fetched = HashMap::new();
    let mut worst = BUILT;
    for flavour in FLAVOURS {
        if !options.only.is_empty() && options.only.iter().all(|name| name != flavour.name) {
            continue;
        }
        let release = flavour.release;
        let source =
            || fetched.entry(release.version).or_insert_with(|| sources::fetch(&out, release)).clone();
        let result = build::build(&out, source, flavour, &tools, options.rebuild)
            .and_then(|()| try_out(&out, flavour));
        match result {
            Ok(line) => println!("{:22} {line}", flavour.name),
            Err(problem) => {
                worst = match (&problem, worst) {
                    (Problem::Failed(_), _) | (_, FAILED) => FAILED,
                    (Problem::Missing(_), _) => UNAVAILABLE,
                };
                println!("{:22} {problem}", flavour.name);
                leave_note(&out, flavour, &problem);
            }
        }
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

/// Makes the output directory, and makes its path absolute as the tools run in other directories.
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

/// Says beside the others why there is nothing. A library of an earlier build stays, with its own card.
fn leave_note(out: &Path, flavour: &Flavour, problem: &Problem) {
    if out.join(flavour.library()).exists() {
        println!("{:22} an earlier build stays as it was", "");
    }
    if let Err(why) = std::fs::write(out.join(flavour.note()), format!("{problem}\n")) {
        eprintln!("{}: {why}", out.join(flavour.note()).display());
    }
}
