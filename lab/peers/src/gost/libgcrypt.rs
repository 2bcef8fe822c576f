//! libgcrypt as a peer.
#![forbid(unsafe_code)]

use std::ffi::CStr;

use super::{CipherFlavour, foreign_card, loaded_file, packaged};
use crate::card::Card;
use crate::cipher::{
    AeadContext, BLOCK_BYTES, CipherContext, CipherKey, CipherKind, CipherMode, CipherPeer, CipherSet,
    Direction, Gost89Mode, MacContext, Sbox, check_length, check_update,
};
use crate::signature::PeerError;
use crate::sys::gcrypt::{Cipher, Gcrypt, Mac, Start};

const GOST28147: i32 = 315;
const GOST28147_MESH: i32 = 317;
const MODE_ECB: i32 = 1;
const MODE_CFB: i32 = 2;
const MODE_CBC: i32 = 3;
const MODE_OFB: i32 = 5;
const MODE_CTR: i32 = 6;
const MAC_IMIT: i32 = 1;
const MAC_CMAC: i32 = 211;

/// libgcrypt's numbers for one mode or code. It has only the little-endian cipher;
/// [`crate::cipher::reorder_key`] and [`crate::cipher::reorder_blocks`] turn that into Magma.
struct Entry {
    set: CipherSet,
    algorithm: i32,
    mode: i32,
    start: Start,
}

const fn entry(
    mode: (Gost89Mode, Sbox, bool),
    native: &'static str,
    numbers: (i32, i32),
    start: Start,
    tag: usize,
    granule: usize,
) -> Entry {
    let iv = if matches!(start, Start::Nothing) { 0 } else { BLOCK_BYTES };
    let set = CipherSet { mode: CipherMode::gost89(mode.0, mode.1, mode.2), native, iv, tag, granule };
    Entry { set, algorithm: numbers.0, mode: numbers.1, start }
}

const fn cipher(mode: Gost89Mode, native: &'static str, number: i32, start: Start, granule: usize) -> Entry {
    entry((mode, Sbox::Tc26Z, false), native, (GOST28147, number), start, 0, granule)
}

static ENTRIES: &[Entry] = &[
    cipher(Gost89Mode::Ecb, "GOST28147 ECB", MODE_ECB, Start::Nothing, BLOCK_BYTES),
    entry(
        (Gost89Mode::Ecb, Sbox::Gost94Test, false),
        "GOST28147 ECB",
        (GOST28147, MODE_ECB),
        Start::Nothing,
        0,
        BLOCK_BYTES,
    ),
    cipher(Gost89Mode::Ctr, "GOST28147 CTR", MODE_CTR, Start::Counter, 1),
    cipher(Gost89Mode::Cbc, "GOST28147 CBC", MODE_CBC, Start::Vector, BLOCK_BYTES),
    cipher(Gost89Mode::Cfb, "GOST28147 CFB", MODE_CFB, Start::Vector, 1),
    cipher(Gost89Mode::Ofb, "GOST28147 OFB", MODE_OFB, Start::Vector, 1),
    entry(
        (Gost89Mode::Cfb, Sbox::Tc26Z, true),
        "GOST28147_MESH CFB",
        (GOST28147_MESH, MODE_CFB),
        Start::Vector,
        0,
        1,
    ),
    entry((Gost89Mode::Imit, Sbox::Tc26Z, false), "GOST28147_IMIT", (MAC_IMIT, 0), Start::Nothing, 4, 1),
    entry(
        (Gost89Mode::Cmac, Sbox::Gost94Test, false),
        "CMAC_GOST28147",
        (MAC_CMAC, 0),
        Start::Nothing,
        BLOCK_BYTES,
        1,
    ),
];

/// The object identifiers of the substitutions.
fn oid(sbox: Sbox) -> &'static CStr {
    match sbox {
        Sbox::Tc26Z => c"1.2.643.7.1.2.5.1.1",
        Sbox::CryptoProA => c"1.2.643.2.2.31.1",
        Sbox::Gost94Test => c"1.2.643.2.2.30.0",
    }
}

/// libgcrypt, as the system has it.
pub(super) struct Libgcrypt {
    card: Card,
    library: &'static Gcrypt,
    sets: Vec<CipherSet>,
}

impl Libgcrypt {
    /// Opens the library; modes that an older or restricted library lacks are left out.
    pub(super) fn load(flavour: &CipherFlavour) -> Result<Self, String> {
        let library = Gcrypt::get()?;
        let file = loaded_file("libgcrypt");
        let version = packaged("libgcrypt20").unwrap_or_else(|| library.version().to_owned());
        let card = foreign_card(flavour, "libgcrypt", version, file.as_deref());
        let mut peer = Self { card, library, sets: Vec::new() };
        let has = |entry: &&Entry| match entry.set.mode.kind() {
            CipherKind::Mac => peer.new_mac(entry).is_ok(),
            _ => peer.new_cipher(entry, Direction::Encrypt).is_ok(),
        };
        peer.sets = ENTRIES.iter().filter(has).map(|entry| entry.set).collect();
        if peer.sets.is_empty() {
            return Err(format!("libgcrypt {} has no GOST 28147-89", peer.library.version()));
        }
        Ok(peer)
    }

    fn entry(&self, mode: CipherMode, kind: CipherKind) -> Result<&'static Entry, PeerError> {
        self.set(mode).filter(|_| mode.kind() == kind).ok_or(PeerError::UnknownMode)?;
        ENTRIES.iter().find(|entry| entry.set.mode == mode).ok_or(PeerError::UnknownMode)
    }

    fn new_cipher(&self, entry: &Entry, direction: Direction) -> Result<Cipher, PeerError> {
        let sbox = entry.sbox();
        let opened = self.library.cipher(entry.algorithm, entry.mode, oid(sbox), entry.start, direction);
        opened.map_err(|status| PeerError::Refused { what: "open the mode", status: status as i32 })
    }

    fn new_mac(&self, entry: &Entry) -> Result<Mac, PeerError> {
        // CMAC's substitution cannot be set: it is the one in the entry.
        let told = Some(oid(entry.sbox())).filter(|_| entry.algorithm == MAC_IMIT);
        let opened = self.library.mac(entry.algorithm, told);
        opened.map_err(|status| PeerError::Refused { what: "open the mode", status: status as i32 })
    }
}

impl Entry {
    fn sbox(&self) -> Sbox {
        match self.set.mode {
            CipherMode::Gost89 { sbox, .. } => sbox,
            _ => Sbox::Tc26Z,
        }
    }
}

impl CipherPeer for Libgcrypt {
    fn name(&self) -> &str {
        &self.card.name
    }

    fn card(&self) -> &Card {
        &self.card
    }

    fn sets(&self) -> &[CipherSet] {
        &self.sets
    }

    fn cipher(
        &self,
        mode: CipherMode,
        direction: Direction,
        key: &CipherKey,
        iv: &[u8],
    ) -> Result<Box<dyn CipherContext>, PeerError> {
        let entry = self.entry(mode, CipherKind::Cipher)?;
        // Meshing changes the key, and only setting it again restores the first key.
        let changes = matches!(mode, CipherMode::Gost89 { meshing: true, .. });
        let inner = self.new_cipher(entry, direction)?;
        let mut stream = Stream { inner, set: entry.set, changes, key: *key };
        stream.rekey(key, iv)?;
        Ok(Box::new(stream))
    }

    fn mac(&self, mode: CipherMode, key: &CipherKey) -> Result<Box<dyn MacContext>, PeerError> {
        let entry = self.entry(mode, CipherKind::Mac)?;
        let mut code = Code { inner: self.new_mac(entry)?, set: entry.set };
        code.rekey(key)?;
        Ok(Box::new(code))
    }

    fn aead(&self, _: CipherMode, _: &CipherKey) -> Result<Box<dyn AeadContext>, PeerError> {
        Err(PeerError::UnknownMode)
    }
}

fn done(what: &'static str, status: u32) -> Result<(), PeerError> {
    if status == 0 { Ok(()) } else { Err(PeerError::Refused { what, status: status as i32 }) }
}

/// An encryption mode.
struct Stream {
    inner: Cipher,
    set: CipherSet,
    changes: bool,
    key: CipherKey,
}

impl CipherContext for Stream {
    fn rekey(&mut self, key: &CipherKey, iv: &[u8]) -> Result<(), PeerError> {
        check_length("vector", iv.len(), self.set.iv)?;
        self.key = *key;
        done("set key and vector", self.inner.init(Some(key), iv))
    }

    fn restart(&mut self, iv: &[u8]) -> Result<(), PeerError> {
        check_length("vector", iv.len(), self.set.iv)?;
        let key = self.key;
        done("set the vector", self.inner.init(Some(&key).filter(|_| self.changes), iv))
    }

    fn update(&mut self, input: &[u8], output: &mut [u8]) -> Result<(), PeerError> {
        check_update(self.set.granule, input, output)?;
        done("encrypt or decrypt", self.inner.update(input, output))
    }
}

/// An authentication code.
struct Code {
    inner: Mac,
    set: CipherSet,
}

impl MacContext for Code {
    fn rekey(&mut self, key: &CipherKey) -> Result<(), PeerError> {
        done("set the key", self.inner.rekey(key))
    }

    fn mac(&mut self, message: &[u8], tag: &mut [u8]) -> Result<(), PeerError> {
        check_length("tag", tag.len(), self.set.tag)?;
        done("authenticate", self.inner.mac(message, tag))
    }
}
