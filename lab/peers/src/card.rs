//! The card beside each shared library: where it came from and how it was built.
#![forbid(unsafe_code)]

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::elf;

/// The version of the card's layout; a card of another version needs a rebuild.
pub const SCHEMA: u32 = 1;

/// What is known about one built peer; stored as JSON, and meant to be copied into measuring records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// The layout's version, [`SCHEMA`].
    pub schema: u32,
    /// The peer's name.
    pub name: String,
    /// The family of schemes, the first part of a subject's path: `mayo`.
    pub family: String,
    /// The project whose sources these are.
    pub project: String,
    /// That project's version.
    pub version: String,
    /// Which submission round, or which document, of the scheme it implements.
    pub round: String,
    /// The package and version that carried the sources.
    pub source: String,
    /// SHA-256 of that package's archive, or of the lock file where they are many, in lower-case hexadecimal.
    pub source_sha256: String,
    /// The compiler's command.
    pub compiler: String,
    /// The first line of what the compiler says about its version.
    pub compiler_version: String,
    /// The flags with which the scheme's hottest source file was compiled, less include paths.
    pub flags: String,
    /// The options given to the build system.
    pub options: Vec<String>,
    /// Architecture and system it was built on.
    pub target: String,
    /// The only CPU it may run on, as [`crate::machine::this_cpu`] names it; `None` if it runs on any of
    /// the target.
    pub cpu: Option<String>,
    /// SHA-256 over everything that decides a build's result; equal recipes need no second build.
    pub recipe: String,
    /// What the build checked in the finished library, one sentence each.
    pub checked: Vec<String>,
    /// What the scheme's own code consists of, for a build by flags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// The library's length in bytes.
    pub library_bytes: u64,
    /// SHA-256 of the library, in lower-case hexadecimal.
    pub library_sha256: String,
}

/// What was found in the files that run: those of the scheme that liboqs calls, in all parameter sets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Code {
    /// Instructions that name a 256- or 512-bit register.
    pub wide: usize,
    /// Calls that start or wake threads.
    pub forks: usize,
    /// SHA-256 of their instructions and of those of AES, in lower-case hexadecimal. Equal digests are equal code.
    pub digest: String,
}

impl Card {
    /// Reads a card.
    ///
    /// # Errors
    /// A sentence naming the file and what is wrong with it.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let card: Self = serde_json::from_str(&text)
            .map_err(|e| format!("{}: not a card this version can read: {e}", path.display()))?;
        if card.schema != SCHEMA {
            return Err(format!(
                "{}: the card has layout {}, this version reads {SCHEMA}",
                path.display(),
                card.schema
            ));
        }
        Ok(card)
    }

    /// Writes the card, whole or not at all.
    ///
    /// # Errors
    /// The file system's error.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        let partial = path.with_extension("json.partial");
        std::fs::write(&partial, text)?;
        std::fs::rename(&partial, path)
    }

    /// Checks that `library` is the file this card describes, and whole.
    ///
    /// A shared library cut short can kill the process that maps it, so this comes before loading.
    ///
    /// # Errors
    /// A sentence naming the file and how it differs.
    pub fn matches(&self, library: &Path) -> Result<(), String> {
        let content = std::fs::read(library).map_err(|e| format!("{}: {e}", library.display()))?;
        let (bytes, sha256) = (content.len() as u64, hex_sha256(&content));
        if bytes != self.library_bytes {
            return Err(format!(
                "{} has {bytes} bytes where its card says {}: damaged, or replaced since it was built",
                library.display(),
                self.library_bytes
            ));
        }
        if sha256 != self.library_sha256 {
            return Err(format!(
                "{} does not have the SHA-256 its card says: damaged, or replaced since it was built",
                library.display()
            ));
        }
        elf::complete(&content).map_err(|why| format!("{}: {why}", library.display()))
    }
}

/// The file in `dir` that `cargo xtask peers` built for the peer `name`, with its card, if the card is that peer's, allows this CPU
/// and describes the file.
///
/// # Errors
/// A sentence naming the file and what is wrong; the builder's note, if the file was never built.
pub(crate) fn checked(dir: &Path, name: &str, file: &str, note: &str) -> Result<(PathBuf, Card), String> {
    let path = dir.join(file);
    if !path.exists() {
        let missing = format!("{} does not exist", path.display());
        return Err(match std::fs::read_to_string(dir.join(note)) {
            Ok(note) => format!("{missing}; it could not be built: {}", note.trim()),
            Err(_) => missing,
        });
    }
    let card_path = dir.join(format!("{name}.json"));
    let card = Card::read(&card_path)?;
    if card.name != name {
        return Err(format!("{}: the card is that of {}", card_path.display(), card.name));
    }
    let here = crate::machine::this_cpu();
    if let Some(cpu) = card.cpu.as_ref().filter(|cpu| **cpu != here) {
        return Err(format!("{} was compiled for another CPU ({cpu}), this one is {here}", path.display()));
    }
    card.matches(&path)?;
    Ok((path, card))
}

/// A file's length in bytes and its SHA-256 in lower-case hexadecimal.
///
/// # Errors
/// The file system's error.
pub fn fingerprint(path: &Path) -> io::Result<(u64, String)> {
    let content = std::fs::read(path)?;
    Ok((content.len() as u64, hex_sha256(&content)))
}

/// SHA-256 in lower-case hexadecimal.
pub fn hex_sha256(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}
