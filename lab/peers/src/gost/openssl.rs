//! gost-engine as a peer: the system's provider, or a newer engine.
#![forbid(unsafe_code)]

use std::ffi::CStr;

use super::{CipherFlavour, CipherPlaces, built_card, foreign_card, loaded_file, packaged};
use crate::card::{Card, fingerprint};
use crate::cipher::{
    AeadContext, BLOCK_BYTES, CipherContext, CipherKey, CipherKind, CipherMode, CipherPeer, CipherSet,
    Direction, Gost89Mode, MacContext, Sbox, check_length, check_update,
};
use crate::signature::PeerError;
use crate::sys::openssl::{Cipher, Mac, OpenSsl, Source};

/// What the names mean in gost-engine, from its sources: `gost_crypt.c`, of 3.0.1 as of 2026.
///
/// The plain `gost89` names take the substitution from a setting, and RFC 7836's where there is none.
static NAMES: &[(CipherMode, &CStr, &str)] = &[
    (CipherMode::MagmaEcb, c"magma-ecb", "magma-ecb"),
    (CipherMode::MagmaCtr, c"magma-ctr", "magma-ctr"),
    (CipherMode::MagmaCtrAcpkm, c"magma-ctr-acpkm", "magma-ctr-acpkm"),
    (CipherMode::MagmaCbc, c"magma-cbc", "magma-cbc"),
    (CipherMode::MagmaMgm, c"magma-mgm", "magma-mgm"),
    (CipherMode::MagmaOmac, c"magma-mac", "magma-mac"),
    (CipherMode::MagmaOmacAcpkm, c"magma-ctr-acpkm-omac", "magma-ctr-acpkm-omac"),
    (CipherMode::gost89(Gost89Mode::Cfb, Sbox::Tc26Z, true), c"gost89", "gost89"),
    (CipherMode::gost89(Gost89Mode::Cnt, Sbox::CryptoProA, true), c"gost89-cnt", "gost89-cnt"),
    (CipherMode::gost89(Gost89Mode::Cnt, Sbox::Tc26Z, true), c"gost89-cnt-12", "gost89-cnt-12"),
    (CipherMode::gost89(Gost89Mode::Cbc, Sbox::Tc26Z, false), c"gost89-cbc", "gost89-cbc"),
    (CipherMode::gost89(Gost89Mode::Imit, Sbox::CryptoProA, true), c"gost-mac", "gost-mac"),
    (CipherMode::gost89(Gost89Mode::Imit, Sbox::Tc26Z, true), c"gost-mac-12", "gost-mac-12"),
];

/// The environment variable that changes the substitution of gost-engine's `gost89`.
const SETTING: &str = "CRYPT_PARAMS";

/// Bytes of MGM's tag.
const MGM_TAG: usize = 8;

/// gost-engine through libcrypto.
pub(super) struct Gost {
    card: Card,
    source: Source,
    sets: Vec<CipherSet>,
}

impl Gost {
    /// The provider that the system installs.
    pub(super) fn provider(flavour: &CipherFlavour) -> Result<Self, String> {
        let openssl = OpenSsl::get()?;
        let source = openssl.provider(c"gostprov")?;
        // Older providers report no version.
        let version = source.version().or_else(|| packaged("libengine-gost-openssl"));
        let version = version.unwrap_or_else(|| "of unknown version".to_owned());
        let file = loaded_file("gostprov");
        let mut card = foreign_card(flavour, "gost-engine", version, file.as_deref());
        card.options = vec![openssl.version(), "provider gostprov".to_owned()];
        Self::new(card, source)
    }

    /// A newer engine: the one named, or the one that was built here.
    pub(super) fn engine(places: &CipherPlaces, flavour: &CipherFlavour) -> Result<Self, String> {
        let (path, card) = match &places.gost_engine {
            Some(path) => {
                fingerprint(path).map_err(|e| format!("{}: {e}", path.display()))?;
                (path.clone(), foreign_card(flavour, "gost-engine", "as named".to_owned(), Some(path)))
            }
            None => (places.built.join(flavour.library()), built_card(&places.built, flavour)?),
        };
        let path = std::path::absolute(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let openssl = OpenSsl::get()?;
        let source = openssl.engine(&path)?;
        let mut card = card;
        card.options.extend([openssl.version(), "engine gost".to_owned()]);
        Self::new(card, source)
    }

    fn new(card: Card, source: Source) -> Result<Self, String> {
        if std::env::var_os(SETTING).is_some() {
            return Err(format!(
                "{SETTING} is set, which changes what gost-engine's gost89 means; unset it to compare"
            ));
        }
        let mut sets = Vec::new();
        for (mode, name, native) in NAMES {
            let set = match mode.kind() {
                CipherKind::Mac => source.mac(name).map(|mac| [0, mac.size(), 1]),
                CipherKind::Aead => source.sizes(name).map(|[_, iv, granule]| [iv, MGM_TAG, granule]),
                CipherKind::Cipher => source.sizes(name).map(|[_, iv, granule]| [iv, 0, granule]),
            };
            sets.extend(set.map(|[iv, tag, granule]| CipherSet { mode: *mode, native, iv, tag, granule }));
        }
        if sets.is_empty() {
            return Err("it offers none of the ciphers that gost-engine has".to_owned());
        }
        Ok(Self { card, source, sets })
    }

    fn named(&self, mode: CipherMode, kind: CipherKind) -> Result<(CipherSet, &'static CStr), PeerError> {
        let set = *self.set(mode).filter(|_| mode.kind() == kind).ok_or(PeerError::UnknownMode)?;
        let name = NAMES.iter().find(|(known, ..)| *known == mode).ok_or(PeerError::UnknownMode)?.1;
        Ok((set, name))
    }
}

impl CipherPeer for Gost {
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
        let (set, name) = self.named(mode, CipherKind::Cipher)?;
        check_length("vector", iv.len(), set.iv)?;
        let inner = self.source.cipher(name, direction).ok_or(PeerError::UnknownMode)?;
        let afterwards = match mode {
            CipherMode::MagmaCtr
            | CipherMode::MagmaCtrAcpkm
            | CipherMode::Gost89 { mode: Gost89Mode::Cfb, meshing: true, .. } => Afterwards::Spent,
            CipherMode::Gost89 { meshing: true, .. } => Afterwards::OtherKey,
            _ => Afterwards::Same,
        };
        let mut stream = Stream { inner, set, afterwards, partial: 0, key: *key };
        stream.init(Some(key), iv, true)?;
        Ok(Box::new(stream))
    }

    fn mac(&self, mode: CipherMode, key: &CipherKey) -> Result<Box<dyn MacContext>, PeerError> {
        let (set, name) = self.named(mode, CipherKind::Mac)?;
        let inner = self.source.mac(name).ok_or(PeerError::UnknownMode)?;
        Ok(Box::new(Code { inner, set, key: *key }))
    }

    fn aead(&self, mode: CipherMode, key: &CipherKey) -> Result<Box<dyn AeadContext>, PeerError> {
        let (set, name) = self.named(mode, CipherKind::Aead)?;
        let mut halves = [Direction::Encrypt, Direction::Decrypt].map(|way| self.source.cipher(name, way));
        let [Some(seal), Some(open)] = [halves[0].take(), halves[1].take()] else {
            return Err(PeerError::UnknownMode);
        };
        let mut pair = Pair { seal, open, set };
        pair.rekey(key)?;
        Ok(Box::new(pair))
    }
}

fn done(what: &'static str, status: i32) -> Result<(), PeerError> {
    if status == 1 { Ok(()) } else { Err(PeerError::Refused { what, status }) }
}

/// What a message leaves behind in gost-engine's context.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Afterwards {
    /// The key it had.
    Same,
    /// Another key, as the mode changes it on the way.
    OtherKey,
    /// A state that initialisation does not reset, so that only a new context is right. Magma's counter: a
    /// vector of four bytes replaces only its first half. In gost89: a count of bytes.
    Spent,
}

/// An encryption mode, started again in the cheapest way that is right.
struct Stream {
    inner: Cipher,
    set: CipherSet,
    afterwards: Afterwards,
    /// Bytes of the message so far, modulo a block. A message that ends inside a block leaves unused gamma
    /// behind, which gost-engine would use for the next message: only a new context helps.
    partial: usize,
    key: CipherKey,
}

impl Stream {
    fn init(&mut self, key: Option<&CipherKey>, iv: &[u8], anew: bool) -> Result<(), PeerError> {
        check_length("vector", iv.len(), self.set.iv)?;
        self.partial = 0;
        done("set key and vector", self.inner.init(key, iv, anew))
    }

    fn anew(&self) -> bool {
        self.partial != 0 || self.afterwards == Afterwards::Spent
    }
}

impl CipherContext for Stream {
    fn rekey(&mut self, key: &CipherKey, iv: &[u8]) -> Result<(), PeerError> {
        self.key = *key;
        self.init(Some(key), iv, self.anew())
    }

    fn restart(&mut self, iv: &[u8]) -> Result<(), PeerError> {
        let (key, anew) = (self.key, self.anew());
        let needed = anew || self.afterwards != Afterwards::Same;
        self.init(Some(&key).filter(|_| needed), iv, anew)
    }

    fn update(&mut self, input: &[u8], output: &mut [u8]) -> Result<(), PeerError> {
        check_update(self.set.granule, input, output)?;
        self.partial = (self.partial + input.len()) % BLOCK_BYTES;
        done("encrypt or decrypt", self.inner.update(input, output))
    }
}

/// An authentication code.
struct Code {
    inner: Mac,
    set: CipherSet,
    key: CipherKey,
}

impl MacContext for Code {
    fn rekey(&mut self, key: &CipherKey) -> Result<(), PeerError> {
        self.key = *key;
        Ok(())
    }

    fn mac(&mut self, message: &[u8], tag: &mut [u8]) -> Result<(), PeerError> {
        check_length("tag", tag.len(), self.set.tag)?;
        done("authenticate", self.inner.mac(&self.key, message, tag))
    }
}

/// MGM in both directions: a libcrypto context has only one.
struct Pair {
    seal: Cipher,
    open: Cipher,
    set: CipherSet,
}

impl Pair {
    fn check(&self, nonce: &[u8], input: &[u8], output: &[u8], tag: &[u8]) -> Result<(), PeerError> {
        check_length("nonce", nonce.len(), self.set.iv)?;
        check_length("tag", tag.len(), self.set.tag)?;
        check_length("output", output.len(), input.len())
    }
}

impl AeadContext for Pair {
    fn rekey(&mut self, key: &CipherKey) -> Result<(), PeerError> {
        for half in [&mut self.seal, &mut self.open] {
            done("set the key", half.init(Some(key), &[0; BLOCK_BYTES], true))?;
        }
        Ok(())
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
        done("set the nonce", self.seal.init(None, nonce, false))?;
        done("authenticate", self.seal.authenticate(aad))?;
        done("encrypt", self.seal.update(plain, sealed))?;
        done("finish", self.seal.finish())?;
        done("give the tag", self.seal.tag(tag))
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
        done("set the nonce", self.open.init(None, nonce, false))?;
        done("authenticate", self.open.authenticate(aad))?;
        done("decrypt", self.open.update(sealed, plain))?;
        done("take the tag", self.open.expect_tag(tag))?;
        Ok(self.open.finish() == 1)
    }
}
