//! liboqs as a signature peer.
#![forbid(unsafe_code)]

use std::path::Path;

use crate::card::Card;
use crate::flavour::Flavour;
use crate::machine::this_cpu;
use crate::signature::{ExpandedKey, PeerError, SetId, SignaturePeer, SignatureSet};
use crate::sys::liboqs::Library;

/// One build of liboqs.
pub(crate) struct Liboqs {
    card: Card,
    library: Library,
    /// MAYO's, then those of other schemes.
    sets: Vec<SignatureSet>,
    /// How many are MAYO's.
    own: usize,
}

impl Liboqs {
    /// Loads `flavour` from `dir`, or says what is wrong with it.
    pub(crate) fn load(dir: &Path, flavour: &Flavour) -> Result<Self, String> {
        let path = dir.join(flavour.library());
        let card_path = dir.join(flavour.card());
        if !path.exists() {
            let missing = format!("{} does not exist", path.display());
            return Err(match std::fs::read_to_string(dir.join(flavour.note())) {
                Ok(note) => format!("{missing}; it could not be built: {}", note.trim()),
                Err(_) => missing,
            });
        }
        let card = Card::read(&card_path)?;
        let release = flavour.release;
        let claims = [
            ("name", &*card.name, flavour.name),
            ("version", &*card.version, release.version),
            ("round", &*card.round, release.round),
            ("source", &*card.source_sha256, release.checksum),
        ];
        for (what, found, expected) in claims {
            if found != expected {
                return Err(format!(
                    "{}: the card's {what} is {found}, not {expected}: built for another version",
                    card_path.display()
                ));
            }
        }
        if let Some(cpu) = &card.cpu
            && *cpu != this_cpu()
        {
            return Err(format!(
                "{} was compiled for another CPU ({cpu}), this one is {}",
                path.display(),
                this_cpu()
            ));
        }
        card.matches(&path)?;
        // A relative path without a slash would send the loader searching the system's directories.
        let absolute = std::path::absolute(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let library = Library::open(&absolute, release.version, release.sets, release.others)?;
        let mut sets = Vec::with_capacity(release.sets.len() + release.others.len());
        for (index, facts) in release.sets.iter().chain(release.others).enumerate() {
            let sizes = library.sizes(index);
            let found = (sizes.public_key, sizes.secret_key, sizes.signature);
            let expected = (facts.public_key, facts.secret_key, facts.signature);
            if found != expected {
                return Err(format!(
                    "{} has {} sizes {found:?} (public key, secret key, signature) where {} has {expected:?}",
                    path.display(),
                    facts.method,
                    release.round
                ));
            }
            sets.push(SignatureSet {
                id: SetId(index),
                name: facts.name,
                public_key: sizes.public_key,
                secret_key: sizes.secret_key,
                signature: sizes.signature,
                expanded_key: sizes.expanded_key,
                code: library.code(index).to_owned(),
            });
        }
        Ok(Self { card, library, sets, own: release.sets.len() })
    }

    fn facts(&self, set: SetId) -> Result<&SignatureSet, PeerError> {
        self.sets.get(set.0).ok_or(PeerError::UnknownSet)
    }
}

fn expect(what: &'static str, actual: usize, expected: usize) -> Result<(), PeerError> {
    if actual == expected { Ok(()) } else { Err(PeerError::Length { what, expected, actual }) }
}

fn done(what: &'static str, status: i32) -> Result<(), PeerError> {
    if status == 0 { Ok(()) } else { Err(PeerError::Refused { what, status }) }
}

impl SignaturePeer for Liboqs {
    fn name(&self) -> &str {
        &self.card.name
    }

    fn card(&self) -> &Card {
        &self.card
    }

    fn sets(&self) -> &[SignatureSet] {
        &self.sets[..self.own]
    }

    fn others(&self) -> &[SignatureSet] {
        &self.sets[self.own..]
    }

    fn aes(&self) -> &str {
        self.library.aes()
    }

    fn keypair(&self, set: SetId, public_key: &mut [u8], secret_key: &mut [u8]) -> Result<(), PeerError> {
        let facts = self.facts(set)?;
        expect("public key", public_key.len(), facts.public_key)?;
        expect("secret key", secret_key.len(), facts.secret_key)?;
        done("make a key pair", self.library.keypair(set.0, public_key, secret_key))
    }

    fn sign(
        &self,
        set: SetId,
        signature: &mut [u8],
        message: &[u8],
        secret_key: &[u8],
    ) -> Result<usize, PeerError> {
        let facts = self.facts(set)?;
        expect("signature", signature.len(), facts.signature)?;
        expect("secret key", secret_key.len(), facts.secret_key)?;
        let (status, written) = self.library.sign(set.0, signature, message, secret_key);
        done("sign", status).map(|()| written)
    }

    fn verify(
        &self,
        set: SetId,
        message: &[u8],
        signature: &[u8],
        public_key: &[u8],
    ) -> Result<bool, PeerError> {
        let facts = self.facts(set)?;
        expect("public key", public_key.len(), facts.public_key)?;
        if signature.len() != facts.signature {
            return Ok(false);
        }
        Ok(self.library.verify(set.0, message, signature, public_key) == 0)
    }

    fn expand_pk(&self, set: SetId, public_key: &[u8], out: &mut ExpandedKey) -> Result<(), PeerError> {
        let facts = self.facts(set)?;
        let Some(bytes) = facts.expanded_key else { return Err(PeerError::Hidden) };
        expect("public key", public_key.len(), facts.public_key)?;
        expect("expanded key", out.len(), bytes)?;
        match self.library.expand(set.0, public_key, out) {
            Some(status) => done("expand a public key", status),
            None => Err(PeerError::Hidden),
        }
    }
}
