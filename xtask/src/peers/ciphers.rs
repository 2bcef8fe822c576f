//! Building the peers of the GOST family: RustCrypto's packages, and gost-engine's newest sources.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

use lanework_peers::card::{Card, SCHEMA, fingerprint, hex_sha256};
use lanework_peers::flavour::Compiler;
use lanework_peers::gost::{
    CIPHER_FLAVOURS, CipherFlavour, CipherPlaces, GOST_ENGINE_HEAD, PACKAGES, RUSTCRYPTO_GENERIC,
    RUSTCRYPTO_NATIVE,
};
use lanework_peers::machine::this_cpu;
use lanework_peers::{CipherKind, Peers};

use super::sources::cargo;
use super::tools::{Problem, Tools, capture, logged, version_line};

/// The source of the library around RustCrypto's packages.
const WRAPPER: &str = include_str!("rustcrypto.rs.in");

/// How it is optimised; the flags for the CPU come on top.
const PROFILE: &str = "opt-level = 3\ncodegen-units = 1\nlto = \"fat\"\npanic = \"abort\"\n";

/// The commit of gost-engine that is built.
const COMMIT: &str = "a34a05e29a1b402335a8faaafba75dbdd192aadd";

/// The OpenSSL that its build asks for, and the one that the engine needs: only the provider needs the newer one.
const ASKED: &str = "find_package(OpenSSL 3.4 REQUIRED)";
const NEEDED: &str = "find_package(OpenSSL 3.0 REQUIRED)";

/// The outcome for one peer.
pub(crate) enum Outcome {
    /// It is available; the sentence says what it is.
    There(String),
    /// It was not requested, and nothing here can be built; the sentence says what to do.
    NotAsked(String),
}

/// Builds or looks up the peer, and tries it out.
pub(crate) fn provide(
    out: &Path,
    flavour: &CipherFlavour,
    engine_source: Option<&str>,
    tools: &Tools,
    again: bool,
) -> Result<Outcome, Problem> {
    match flavour.name {
        RUSTCRYPTO_NATIVE => rustcrypto(out, flavour, true, again)?,
        RUSTCRYPTO_GENERIC => rustcrypto(out, flavour, false, again)?,
        GOST_ENGINE_HEAD => match engine_source {
            Some(source) => engine(out, flavour, source, tools, again)?,
            None if out.join(flavour.library()).exists() => {}
            None => return Ok(Outcome::NotAsked(format!("not built: {}", flavour.remedy))),
        },
        _ => {}
    }
    let _ = std::fs::remove_file(out.join(flavour.note()));
    let places = CipherPlaces { built: out.to_owned(), gost_engine: None };
    let peer = Peers::find_cipher(&places, flavour.name).map_err(|unavailable| {
        let why = format!("{} ({})", unavailable.why, unavailable.remedy);
        if builds(flavour) { Problem::Failed(why) } else { Problem::Missing(why) }
    })?;
    let count = |kind| peer.sets().iter().filter(|set| set.mode.kind() == kind).count();
    let card = peer.card();
    Ok(Outcome::There(format!(
        "there: {} {}, {}; {} encryption modes, {} codes, {} authenticated",
        card.project,
        card.version,
        card.compiler_version,
        count(CipherKind::Cipher),
        count(CipherKind::Mac),
        count(CipherKind::Aead)
    )))
}

/// Whether this chore builds it; the others come with the system.
fn builds(flavour: &CipherFlavour) -> bool {
    [RUSTCRYPTO_NATIVE, RUSTCRYPTO_GENERIC, GOST_ENGINE_HEAD].contains(&flavour.name)
}

/// The names of all, for `--only`.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    CIPHER_FLAVOURS.iter().map(|flavour| flavour.name)
}

fn problem(path: &Path, error: std::io::Error) -> Problem {
    Problem::Failed(format!("{}: {error}", path.display()))
}

fn is_built(out: &Path, flavour: &CipherFlavour, recipe: &str) -> bool {
    Card::read(&out.join(flavour.card()))
        .is_ok_and(|card| card.recipe == recipe && card.matches(&out.join(flavour.library())).is_ok())
}

/// Copies the library to its place and writes its card, whose lengths and sums are filled in here.
fn install(out: &Path, built: &Path, flavour: &CipherFlavour, mut card: Card) -> Result<(), Problem> {
    let library = out.join(flavour.library());
    let partial = out.join(format!("{}.partial", flavour.library()));
    // Renamed into place: a program that has the old library open keeps the old one.
    std::fs::copy(built, &partial).map_err(|e| problem(built, e))?;
    std::fs::rename(&partial, &library).map_err(|e| problem(&library, e))?;
    (card.library_bytes, card.library_sha256) = fingerprint(&library).map_err(|e| problem(&library, e))?;
    let path = out.join(flavour.card());
    card.write(&path).map_err(|e| problem(&path, e))
}

/// A card with what all peers of the family have in common.
fn card(flavour: &CipherFlavour, project: &str, version: String, recipe: String) -> Card {
    Card {
        schema: SCHEMA,
        name: flavour.name.to_owned(),
        family: "gost".to_owned(),
        project: project.to_owned(),
        version,
        round: "GOST R 34.12-2015".to_owned(),
        source: String::new(),
        source_sha256: String::new(),
        compiler: String::new(),
        compiler_version: String::new(),
        flags: String::new(),
        options: Vec::new(),
        target: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        cpu: None,
        recipe,
        checked: Vec::new(),
        code: None,
        library_bytes: 0,
        library_sha256: String::new(),
    }
}

fn manifest() -> String {
    let mut manifest = "[package]\nname = \"lanework-peer-magma\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
                        publish = false\n\n[workspace]\n\n[lib]\ncrate-type = [\"cdylib\"]\n\n[dependencies]\n"
        .to_owned();
    for (name, package, version) in PACKAGES {
        manifest.push_str(&format!("{name} = {{ package = \"{package}\", version = \"={version}\" }}\n"));
    }
    manifest + "\n[profile.release]\n" + PROFILE
}

fn packages() -> String {
    let named: Vec<_> = PACKAGES.iter().map(|(_, package, version)| format!("{package} {version}")).collect();
    named.join(", ")
}

/// Builds the library around RustCrypto's packages, in its own project with its own lock file: `mgm`
/// holds packages back that the workspace has newer.
fn rustcrypto(out: &Path, flavour: &CipherFlavour, native: bool, again: bool) -> Result<(), Problem> {
    let rustc = PathBuf::from(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let compiler_version = version_line(&rustc)?;
    let flags = if native { "-C target-cpu=native" } else { "" };
    let cpu = native.then(this_cpu);
    let decides =
        [WRAPPER, &manifest(), &compiler_version, flags, cpu.as_deref().unwrap_or_default()].join("\n");
    let recipe = hex_sha256(decides.as_bytes());
    if !again && is_built(out, flavour, &recipe) {
        return Ok(());
    }
    let project = out.join("sources").join("rustcrypto-magma");
    let write = |file: &Path, text: &str| std::fs::write(file, text).map_err(|e| problem(file, e));
    std::fs::create_dir_all(project.join("src")).map_err(|e| problem(&project, e))?;
    std::fs::create_dir_all(out.join("build")).map_err(|e| problem(out, e))?;
    write(&project.join("Cargo.toml"), &manifest())?;
    write(&project.join("src/lib.rs"), WRAPPER)?;

    let target = out.join("build").join(flavour.name);
    let mut build = cargo();
    build.args(["build", "--release", "--manifest-path"]).arg(project.join("Cargo.toml"));
    // Flags of the caller's environment would affect the build without being on the card.
    build.env_remove("CARGO_ENCODED_RUSTFLAGS").env_remove("CARGO_BUILD_TARGET");
    build.env("RUSTFLAGS", flags).env("CARGO_TARGET_DIR", &target);
    logged(&mut build, &out.join("build").join(format!("{}.build.log", flavour.name)))?;

    let lock = project.join("Cargo.lock");
    let (_, lock_sha256) = fingerprint(&lock).map_err(|e| problem(&lock, e))?;
    let file = format!("{}lanework_peer_magma{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let mut card = card(flavour, "RustCrypto", "magma 0.10.0, mgm 0.4.6".to_owned(), recipe);
    card.source = packages();
    card.source_sha256 = lock_sha256;
    card.compiler = rustc.display().to_string();
    card.compiler_version = compiler_version;
    card.flags = format!("{} {flags}", PROFILE.trim().replace('\n', ", ")).trim().to_owned();
    card.options = vec!["source_sha256 is that of the lock file".to_owned()];
    card.cpu = cpu;
    install(out, &target.join("release").join(file), flavour, card)
}

/// Builds gost-engine as an engine from a clone of its repository, which may be a folder or an address.
fn engine(
    out: &Path,
    flavour: &CipherFlavour,
    source: &str,
    tools: &Tools,
    again: bool,
) -> Result<(), Problem> {
    let git = tools.need("git", "to read gost-engine's sources")?;
    let cmake = tools.need("cmake", "to build gost-engine")?;
    let compiler = tools.compiler(Compiler::Default)?;
    let compiler_version = version_line(&compiler)?;
    let options = ["-DCMAKE_BUILD_TYPE=Release", "-DGOST_BUILD_PROVIDER=OFF", "-DGOST_BUILD_ENGINE=ON"];
    let recipe = hex_sha256([COMMIT, &compiler_version, &options.join(" ")].join("\n").as_bytes());
    if !again && is_built(out, flavour, &recipe) {
        return Ok(());
    }
    let clone = out.join("sources").join("gost-engine");
    let directory = out.join("build").join(flavour.name);
    // From scratch each time: remains of another clone would be built instead.
    for stale in [&clone, &directory] {
        if stale.exists() {
            std::fs::remove_dir_all(stale).map_err(|e| problem(stale, e))?;
        }
        std::fs::create_dir_all(stale).map_err(|e| problem(stale, e))?;
    }
    capture(Command::new(&git).args(["clone", "--quiet", "--no-checkout", source]).arg(&clone))?;
    capture(Command::new(&git).arg("-C").arg(&clone).args(["checkout", "--quiet", "--detach", COMMIT]))?;
    let lists = clone.join("CMakeLists.txt");
    let text = std::fs::read_to_string(&lists).map_err(|e| problem(&lists, e))?;
    if !text.contains(ASKED) {
        return Err(Problem::Failed(format!("{} does not contain {ASKED}", lists.display())));
    }
    std::fs::write(&lists, text.replace(ASKED, NEEDED)).map_err(|e| problem(&lists, e))?;

    let mut configure = Command::new(&cmake);
    configure.arg("-S").arg(&clone).arg("-B").arg(&directory).args(options);
    configure.arg(format!("-DCMAKE_C_COMPILER={}", compiler.display()));
    configure.arg("-DCMAKE_EXPORT_COMPILE_COMMANDS=ON");
    for variable in ["CFLAGS", "LDFLAGS", "CPPFLAGS"] {
        configure.env_remove(variable);
    }
    logged(&mut configure, &out.join("build").join(format!("{}.configure.log", flavour.name)))?;
    let mut make = Command::new(&cmake);
    make.arg("--build").arg(&directory).args(["--target", "gost_engine", "--parallel"]);
    logged(&mut make, &out.join("build").join(format!("{}.build.log", flavour.name)))?;

    let mut card = card(flavour, "gost-engine", format!("commit {}", &COMMIT[..12]), recipe);
    card.source = format!("commit {COMMIT}, asked to build with OpenSSL 3.0");
    card.compiler = compiler.display().to_string();
    card.compiler_version = compiler_version;
    card.flags = super::build::flags_in(&directory.join("compile_commands.json"), "/gost89.c")?;
    card.options = options.map(str::to_owned).to_vec();
    install(out, &directory.join("bin").join(format!("gost{}", std::env::consts::DLL_SUFFIX)), flavour, card)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_pins_every_package() {
        let manifest = manifest();
        assert!(manifest.contains("magma = { package = \"magma\", version = \"=0.10.0\" }"), "{manifest}");
        assert!(manifest.contains("magma07 = { package = \"magma\", version = \"=0.7.0\" }"), "{manifest}");
        assert_eq!(manifest.matches("version = \"=").count(), PACKAGES.len());
        assert!(manifest.contains("[workspace]"), "{manifest}");
    }

    #[test]
    fn a_card_of_another_recipe_asks_for_a_build() {
        let flavour = CIPHER_FLAVOURS.iter().find(|f| f.name == RUSTCRYPTO_GENERIC).expect("known");
        let out = std::env::temp_dir().join(format!("lanework-xtask-ciphers-{}", std::process::id()));
        std::fs::create_dir_all(&out).expect("a directory");
        let built = out.join("built");
        std::fs::write(&built, "a library").expect("a file");
        let card = card(flavour, "a project", "1".to_owned(), "one".to_owned());
        install(&out, &built, flavour, card).expect("installed");
        assert!(is_built(&out, flavour, "one"));
        assert!(!is_built(&out, flavour, "another"));
        std::fs::write(out.join(flavour.library()), "something else").expect("a file");
        assert!(!is_built(&out, flavour, "one"));
        std::fs::remove_dir_all(&out).expect("removed");
    }
}
