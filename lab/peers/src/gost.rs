//! Which peers of the GOST family exist, and finding them.
#![forbid(unsafe_code)]

mod libgcrypt;
mod openssl;
mod rustcrypto;

use std::path::{Path, PathBuf};

use crate::card::{Card, SCHEMA, fingerprint};
use crate::cipher::CipherPeer;
use crate::{Peers, REMEDY, Unavailable};

pub use rustcrypto::PACKAGES;

/// One peer of the GOST family, as data.
#[derive(Debug, PartialEq, Eq)]
pub struct CipherFlavour {
    /// The peer's name, unique among peers.
    pub name: &'static str,
    /// What it is, for a list.
    pub what: &'static str,
    /// How to get it.
    pub remedy: &'static str,
    /// Whether it needs sources that neither cargo nor a distribution carries, so that a test must not
    /// insist on it.
    pub optional: bool,
}

/// gost-engine as Debian packages it.
pub const GOST_ENGINE: &str = "gost-engine";
/// gost-engine's newest sources.
pub const GOST_ENGINE_HEAD: &str = "gost-engine-head";
/// RustCrypto's packages, for this CPU.
pub const RUSTCRYPTO_NATIVE: &str = "rustcrypto-native";
/// RustCrypto's packages, for the architecture's baseline.
pub const RUSTCRYPTO_GENERIC: &str = "rustcrypto-generic";
/// libgcrypt as the system has it.
pub const LIBGCRYPT: &str = "libgcrypt";

/// Every peer of the GOST family, in the order in which they are listed.
pub static CIPHER_FLAVOURS: &[CipherFlavour] = &[
    CipherFlavour {
        name: GOST_ENGINE,
        what: "gost-engine as the system's provider gostprov, through libcrypto.so.3",
        remedy: "apt-get install libengine-gost-openssl",
        optional: false,
    },
    CipherFlavour {
        name: GOST_ENGINE_HEAD,
        what: "gost-engine's newest sources as the engine gost, through libcrypto.so.3",
        remedy: "cargo xtask peers --gost-engine-source CLONE, or name a built gost.so in LANEWORK_GOST_ENGINE",
        optional: true,
    },
    CipherFlavour {
        name: RUSTCRYPTO_NATIVE,
        what: "RustCrypto's magma 0.10 and mgm 0.4, compiled for this CPU",
        remedy: REMEDY,
        optional: false,
    },
    CipherFlavour {
        name: RUSTCRYPTO_GENERIC,
        what: "RustCrypto's magma 0.10 and mgm 0.4, compiled for the architecture's baseline",
        remedy: REMEDY,
        optional: false,
    },
    CipherFlavour {
        name: LIBGCRYPT,
        what: "libgcrypt as the system has it",
        remedy: "apt-get install libgcrypt20",
        optional: false,
    },
];

impl CipherFlavour {
    /// The file name of its library where `cargo xtask peers` builds it.
    pub fn library(&self) -> String {
        format!("{}{}", self.name, std::env::consts::DLL_SUFFIX)
    }

    /// The file name of its card.
    pub fn card(&self) -> String {
        format!("{}.json", self.name)
    }

    /// The file name of the note that says why it could not be built.
    pub fn note(&self) -> String {
        format!("{}.unavailable", self.name)
    }
}

/// Where to look for peers that the system does not install.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CipherPlaces {
    /// The directory into which `cargo xtask peers` puts what it builds.
    pub built: PathBuf,
    /// A `gost.so` that was built otherwise; it takes precedence over the one in `built`. The variable
    /// `LANEWORK_GOST_ENGINE` usually names it.
    pub gost_engine: Option<PathBuf>,
}

impl Peers {
    /// Loads every peer of the GOST family, in the order of [`CIPHER_FLAVOURS`], one entry for each.
    ///
    /// This runs the initialisers of the libraries it loads: those of the system, and those in
    /// `places`, which must be trusted as a program's own directory is.
    pub fn discover_ciphers(places: &CipherPlaces) -> Vec<Result<Box<dyn CipherPeer>, Unavailable>> {
        CIPHER_FLAVOURS.iter().map(|flavour| load(places, flavour)).collect()
    }

    /// Loads the one peer of the GOST family called `name`.
    ///
    /// # Errors
    /// [`Unavailable`] when none has that name, or when it cannot be used here.
    pub fn find_cipher(places: &CipherPlaces, name: &str) -> Result<Box<dyn CipherPeer>, Unavailable> {
        match CIPHER_FLAVOURS.iter().find(|flavour| flavour.name == name) {
            Some(flavour) => load(places, flavour),
            None => {
                let known: Vec<_> = CIPHER_FLAVOURS.iter().map(|flavour| flavour.name).collect();
                Err(Unavailable {
                    name: name.to_owned(),
                    why: format!("no peer has that name; known are {}", known.join(", ")),
                    remedy: String::new(),
                })
            }
        }
    }
}

fn load(places: &CipherPlaces, flavour: &CipherFlavour) -> Result<Box<dyn CipherPeer>, Unavailable> {
    fn boxed<P: CipherPeer + 'static>(peer: P) -> Box<dyn CipherPeer> {
        Box::new(peer)
    }
    let found = match flavour.name {
        GOST_ENGINE => openssl::Gost::provider(flavour).map(boxed),
        GOST_ENGINE_HEAD => openssl::Gost::engine(places, flavour).map(boxed),
        LIBGCRYPT => libgcrypt::Libgcrypt::load(flavour).map(boxed),
        _ => rustcrypto::Packages::load(&places.built, flavour).map(boxed),
    };
    found.map_err(|why| Unavailable { name: flavour.name.to_owned(), why, remedy: flavour.remedy.to_owned() })
}

/// The card of a library that `cargo xtask peers` built, checked against the library beside it.
fn built_card(dir: &Path, flavour: &CipherFlavour) -> Result<Card, String> {
    crate::card::checked(dir, flavour.name, &flavour.library(), &flavour.note()).map(|(_, card)| card)
}

/// What the card says of a library that was built elsewhere.
const NOT_KNOWN: &str = "not known: built by others";

/// A card for a library that this project did not build: its own version text, and its file.
fn foreign_card(flavour: &CipherFlavour, project: &str, version: String, file: Option<&Path>) -> Card {
    let (library_bytes, library_sha256) = file.and_then(|file| fingerprint(file).ok()).unwrap_or_default();
    Card {
        schema: SCHEMA,
        name: flavour.name.to_owned(),
        family: "gost".to_owned(),
        project: project.to_owned(),
        version,
        round: "as installed".to_owned(),
        source: file.map_or_else(|| NOT_KNOWN.to_owned(), |file| file.display().to_string()),
        source_sha256: String::new(),
        compiler: NOT_KNOWN.to_owned(),
        compiler_version: NOT_KNOWN.to_owned(),
        flags: NOT_KNOWN.to_owned(),
        options: Vec::new(),
        target: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        cpu: None,
        recipe: String::new(),
        checked: Vec::new(),
        code: None,
        library_bytes,
        library_sha256,
    }
}

/// The version of a package that Debian's package manager, where there is one, has installed.
fn packaged(package: &str) -> Option<String> {
    let status = std::fs::read_to_string("/var/lib/dpkg/status").ok()?;
    let heading = format!("Package: {package}");
    let entry = status.split("\n\n").find(|entry| entry.lines().any(|line| line == heading))?;
    let version = entry.lines().find_map(|line| line.strip_prefix("Version: "))?;
    Some(format!("{version} (Debian's {package})"))
}

/// The file of a library that this process has loaded, where the system reports it.
fn loaded_file(part: &str) -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines()
        .filter_map(|line| line.find('/').map(|start| Path::new(&line[start..])))
        .find(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.contains(part)))
        .map(Path::to_path_buf)
}
