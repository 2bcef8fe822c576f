//! RustCrypto's packages as a peer.
#![forbid(unsafe_code)]

use std::path::Path;
use std::sync::Arc;

use super::{CipherFlavour, built_card};
use crate::card::Card;
use crate::cipher::{
    AeadContext, BLOCK_BYTES, CipherContext, CipherKey, CipherKind, CipherMode, CipherPeer, CipherSet,
    Direction, MacContext, check_length, check_update,
};
use crate::signature::PeerError;
use crate::sys::rustcrypto::{Context, Facts, RustCrypto};

/// The packages that the library is made of, with their exact versions; `as` gives the second of two
/// versions of one package a name. `mgm` is of an older generation and brings a Magma of its own.
pub static PACKAGES: &[(&str, &str, &str)] = &[
    ("magma", "magma", "0.10.0"),
    ("ctr", "ctr", "0.10.1"),
    ("cbc", "cbc", "0.2.1"),
    ("cfb-mode", "cfb-mode", "0.9.1"),
    ("ofb", "ofb", "0.7.1"),
    ("cmac", "cmac", "0.8.0"),
    ("mgm", "mgm", "0.4.6"),
    ("magma07", "magma", "0.7.0"),
];

const fn set(mode: CipherMode, native: &'static str, iv: usize, tag: usize, granule: usize) -> CipherSet {
    CipherSet { mode, native, iv, tag, granule }
}

/// In the order of their numbers in the library.
static SETS: &[CipherSet] = &[
    set(CipherMode::MagmaEcb, "magma 0.10 encrypt_blocks", 0, 0, BLOCK_BYTES),
    set(CipherMode::MagmaCtr, "ctr Ctr64BE", 4, 0, 1),
    set(CipherMode::MagmaCbc, "cbc", BLOCK_BYTES, 0, BLOCK_BYTES),
    set(CipherMode::MagmaCfb, "cfb-mode", BLOCK_BYTES, 0, 1),
    set(CipherMode::MagmaOfb, "ofb", BLOCK_BYTES, 0, 1),
    set(CipherMode::MagmaOmac, "cmac", 0, BLOCK_BYTES, 1),
    set(CipherMode::MagmaMgm, "mgm 0.4 over magma 0.7", BLOCK_BYTES, BLOCK_BYTES, 1),
];

/// RustCrypto's packages in one library.
pub(super) struct Packages {
    card: Card,
    library: Arc<RustCrypto>,
}

impl Packages {
    /// Loads `flavour` from `dir`, or says what is wrong with it.
    pub(super) fn load(dir: &Path, flavour: &CipherFlavour) -> Result<Self, String> {
        let card = built_card(dir, flavour)?;
        let path = dir.join(flavour.library());
        // A relative path without a slash would send the loader searching the system's directories.
        let path = std::path::absolute(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Self { card, library: Arc::new(RustCrypto::open(&path)?) })
    }

    fn open(
        &self,
        mode: CipherMode,
        kind: CipherKind,
        direction: Direction,
        key: &CipherKey,
        iv: Option<&[u8]>,
    ) -> Result<Mode, PeerError> {
        let index = SETS.iter().position(|set| set.mode == mode && mode.kind() == kind);
        let index = index.ok_or(PeerError::UnknownMode)?;
        let set = SETS[index];
        // The nonce of an authenticated mode comes with each message; its context is made without.
        let none = &[0; BLOCK_BYTES][..set.iv];
        let iv = iv.unwrap_or(none);
        check_length("vector", iv.len(), set.iv)?;
        let facts = Facts { number: index as u32, iv: set.iv, tag: set.tag, granule: set.granule };
        let context = Context::new(Arc::clone(&self.library), facts, direction, key, iv);
        Ok(Mode { context: context.ok_or(PeerError::UnknownMode)?, set })
    }
}

impl CipherPeer for Packages {
    fn name(&self) -> &str {
        &self.card.name
    }

    fn card(&self) -> &Card {
        &self.card
    }

    fn sets(&self) -> &[CipherSet] {
        SETS
    }

    fn cipher(
        &self,
        mode: CipherMode,
        direction: Direction,
        key: &CipherKey,
        iv: &[u8],
    ) -> Result<Box<dyn CipherContext>, PeerError> {
        Ok(Box::new(self.open(mode, CipherKind::Cipher, direction, key, Some(iv))?))
    }

    fn mac(&self, mode: CipherMode, key: &CipherKey) -> Result<Box<dyn MacContext>, PeerError> {
        Ok(Box::new(self.open(mode, CipherKind::Mac, Direction::Encrypt, key, None)?))
    }

    fn aead(&self, mode: CipherMode, key: &CipherKey) -> Result<Box<dyn AeadContext>, PeerError> {
        Ok(Box::new(self.open(mode, CipherKind::Aead, Direction::Encrypt, key, None)?))
    }
}

fn done(what: &'static str, status: i32) -> Result<(), PeerError> {
    if status == 0 { Ok(()) } else { Err(PeerError::Refused { what, status }) }
}

/// An open mode of any kind.
struct Mode {
    context: Context,
    set: CipherSet,
}

impl Mode {
    fn check(&self, nonce: &[u8], input: &[u8], output: &[u8], tag: &[u8]) -> Result<(), PeerError> {
        check_length("nonce", nonce.len(), self.set.iv)?;
        check_length("tag", tag.len(), self.set.tag)?;
        check_length("output", output.len(), input.len())
    }
}

impl CipherContext for Mode {
    fn rekey(&mut self, key: &CipherKey, iv: &[u8]) -> Result<(), PeerError> {
        check_length("vector", iv.len(), self.set.iv)?;
        done("set key and vector", self.context.rekey(key, iv))
    }

    fn restart(&mut self, iv: &[u8]) -> Result<(), PeerError> {
        check_length("vector", iv.len(), self.set.iv)?;
        done("set the vector", self.context.restart(iv))
    }

    fn update(&mut self, input: &[u8], output: &mut [u8]) -> Result<(), PeerError> {
        check_update(self.set.granule, input, output)?;
        done("encrypt or decrypt", self.context.update(input, output))
    }
}

impl MacContext for Mode {
    fn rekey(&mut self, key: &CipherKey) -> Result<(), PeerError> {
        done("set the key", self.context.rekey(key, &[]))
    }

    fn mac(&mut self, message: &[u8], tag: &mut [u8]) -> Result<(), PeerError> {
        check_length("tag", tag.len(), self.set.tag)?;
        done("authenticate", self.context.mac(message, tag))
    }
}

impl AeadContext for Mode {
    fn rekey(&mut self, key: &CipherKey) -> Result<(), PeerError> {
        done("set the key", self.context.rekey(key, &[0; BLOCK_BYTES]))
    }

    fn seal(
        &mut self,
        nonce: &[u8],
        aad: &[u8],
        plain: &[u8],
        sealed: &mut [u8],
        tag: &mut [u8],
    ) -> Result<(), PeerError> {
        self.check(nonce, plain, sealed, tag)?;
        done("seal", self.context.seal(nonce, aad, plain, sealed, tag))
    }

    fn open(
        &mut self,
        nonce: &[u8],
        aad: &[u8],
        sealed: &[u8],
        plain: &mut [u8],
        tag: &[u8],
    ) -> Result<bool, PeerError> {
        self.check(nonce, sealed, plain, tag)?;
        Ok(self.context.open(nonce, aad, sealed, plain, tag) == 0)
    }
}
