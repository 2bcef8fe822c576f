//! A missing or damaged peer is named with a reason and never loaded.
#![forbid(unsafe_code)]

mod common;

use std::fs;
use std::path::Path;

use lanework_peers::card::{Card, SCHEMA, fingerprint};
use lanework_peers::{FLAVOURS, Peers, Unavailable};

const NAME: &str = "liboqs-gcc-native";

fn refused(dir: &Path) -> Unavailable {
    Peers::find(dir, NAME).err().expect("it must be unavailable")
}

fn library(dir: &Path, name: &str) -> std::path::PathBuf {
    dir.join(FLAVOURS.iter().find(|flavour| flavour.name == name).expect("known").library())
}

/// A card that is true of `library`, and otherwise says what a build would say.
fn write_card(dir: &Path, library: &Path) {
    let flavour = FLAVOURS.iter().find(|flavour| flavour.name == NAME).expect("known");
    let (library_bytes, library_sha256) = fingerprint(library).expect("readable");
    let card = Card {
        schema: SCHEMA,
        name: NAME.to_owned(),
        family: "mayo".to_owned(),
        project: flavour.release.project.to_owned(),
        version: flavour.release.version.to_owned(),
        round: flavour.release.round.to_owned(),
        source: flavour.release.package.to_owned(),
        source_sha256: flavour.release.checksum.to_owned(),
        compiler: "none".to_owned(),
        compiler_version: "none".to_owned(),
        flags: String::new(),
        options: Vec::new(),
        target: String::new(),
        cpu: None,
        recipe: String::new(),
        checked: Vec::new(),
        code: None,
        library_bytes,
        library_sha256,
    };
    card.write(&dir.join(flavour.card())).expect("written");
}

#[test]
fn an_empty_directory_lists_every_flavour_with_the_remedy() {
    let dir = tempfile::tempdir().expect("a directory");
    let found = Peers::discover(dir.path());
    assert_eq!(found.len(), FLAVOURS.len());
    for (result, flavour) in found.into_iter().zip(FLAVOURS) {
        let unavailable = result.err().expect("nothing is there");
        assert_eq!(unavailable.name, flavour.name);
        assert!(unavailable.why.contains("does not exist"), "{}", unavailable.why);
        assert!(unavailable.remedy.starts_with("cargo xtask peers --only"), "{}", unavailable.remedy);
        assert!(unavailable.to_string().contains(flavour.name));
    }
}

#[test]
fn the_builders_note_is_passed_on() {
    let dir = tempfile::tempdir().expect("a directory");
    let flavour = &FLAVOURS[0];
    fs::write(dir.path().join(flavour.note()), "no such compiler\n").expect("written");
    let unavailable = Peers::find(dir.path(), flavour.name).err().expect("nothing is there");
    assert!(unavailable.why.ends_with("it could not be built: no such compiler"), "{}", unavailable.why);
}

#[test]
fn an_unknown_name_lists_the_known_ones() {
    let unavailable = Peers::find(Path::new("."), "libnothing").err().expect("unknown");
    assert!(unavailable.why.contains("liboqs12-generic"), "{}", unavailable.why);
}

#[test]
fn a_library_without_a_readable_card_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(library(dir.path(), NAME), b"anything").expect("written");
    assert!(refused(dir.path()).why.contains(".json"), "{}", refused(dir.path()).why);
    fs::write(dir.path().join("liboqs-gcc-native.json"), "{").expect("written");
    assert!(refused(dir.path()).why.contains("not a card"), "{}", refused(dir.path()).why);

    write_card(dir.path(), &library(dir.path(), NAME));
    let path = dir.path().join("liboqs-gcc-native.json");
    let mut card = Card::read(&path).expect("just written");
    card.schema += 1;
    card.write(&path).expect("written");
    assert!(refused(dir.path()).why.contains("layout"), "{}", refused(dir.path()).why);
    card.schema -= 1;
    card.round = "round9".to_owned();
    card.write(&path).expect("written");
    assert!(refused(dir.path()).why.contains("round9"), "{}", refused(dir.path()).why);
    card.round = FLAVOURS[0].release.round.to_owned();
    card.cpu = Some("a CPU that does not exist".to_owned());
    card.write(&path).expect("written");
    assert!(
        refused(dir.path()).why.contains("another CPU (a CPU that does not exist"),
        "{}",
        refused(dir.path()).why
    );
}

#[test]
fn garbage_is_refused_even_with_a_card_that_fits() {
    let dir = tempfile::tempdir().expect("a directory");
    let library = library(dir.path(), NAME);
    for garbage in [&b"not a library at all"[..], b"\x7fELF", &[0x7f; 70_000], b""] {
        fs::write(&library, garbage).expect("written");
        write_card(dir.path(), &library);
        let why = refused(dir.path()).why;
        assert!(why.contains("the loader refuses") || why.contains("cut short"), "{why}");
    }
}

#[test]
fn a_damaged_library_is_not_loaded() {
    let dir = tempfile::tempdir().expect("a directory");
    let library = library(dir.path(), NAME);
    fs::write(&library, [1; 5000]).expect("written");
    write_card(dir.path(), &library);
    fs::write(&library, [1; 4000]).expect("written");
    let why = refused(dir.path()).why;
    assert!(why.contains("4000 bytes where its card says 5000"), "{why}");
    fs::write(&library, [2; 5000]).expect("written");
    let why = refused(dir.path()).why;
    assert!(why.contains("SHA-256"), "{why}");
}

/// Some library that the test process itself has loaded, and that is certainly not a peer.
#[cfg(target_os = "linux")]
#[test]
fn a_library_without_the_symbols_is_refused_by_symbol() {
    let maps = fs::read_to_string("/proc/self/maps").expect("readable");
    let libc = maps
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5))
        .find(|path| path.contains("libc.so") || path.contains("libc-") || path.contains("libgcc_s"))
        .expect("the test is dynamically linked");
    let dir = tempfile::tempdir().expect("a directory");
    fs::copy(libc, library(dir.path(), NAME)).expect("copied");
    write_card(dir.path(), &library(dir.path(), NAME));
    let why = refused(dir.path()).why;
    assert!(why.contains("no symbol OQS_"), "{why}");
}

/// Faults planted in real libraries: one cut short, one of the other round.
#[test]
fn a_cut_or_exchanged_peer_is_refused() {
    let built = common::directory();
    // Of an older release.
    let (ours, other) = (library(&built, NAME), library(&built, "liboqs12-gcc-native"));
    if !(ours.exists() && other.exists()) {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let target = library(dir.path(), NAME);
    let whole = fs::read(&ours).expect("readable");
    write_card(dir.path(), &ours);
    for length in [10, 64, 4096, whole.len() / 2, whole.len() - 1] {
        fs::write(&target, &whole[..length]).expect("written");
        let why = refused(dir.path()).why;
        assert!(why.contains("damaged"), "{length}: {why}");
    }
    // And with a card made from the cut file: mapping such a library would kill the process.
    for length in [10, 64, 100, 4096, whole.len() / 2] {
        fs::write(&target, &whole[..length]).expect("written");
        write_card(dir.path(), &target);
        let why = refused(dir.path()).why;
        let named = ["the loader refuses", "cut short", "beyond its end"];
        assert!(named.iter().any(|name| why.contains(name)), "{length}: {why}");
    }
    write_card(dir.path(), &ours);
    fs::write(&target, &whole).expect("written");
    Peers::find(dir.path(), NAME).map(|_| ()).expect("whole again");

    fs::copy(&other, &target).expect("copied");
    write_card(dir.path(), &target);
    let why = refused(dir.path()).why;
    assert!(why.contains("says it is version 0.12.0"), "{why}");
}
