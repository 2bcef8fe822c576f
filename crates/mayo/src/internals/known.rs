//! Known answers: NIST's generator and response files, regenerated and compared by digest.
//!
//! The round-2 digests are published with liboqs 0.13 (tests/KATs, MIT). Of round 3, the authors publish
//! only record 0, by its digest in MAYO-C's META files (Apache-2.0). The round-3 digests of all 100 records were computed with
//! MAYO-C's round-2 code, patched to round 3; that code gives the published digest of record 0 for every set. So records 1 to
//! 99 of round 3 rest on the patched code and on [`crate::internals::spec`], which was written from the specification and agrees with it.
//! Digests are facts; nothing else was taken.
#![forbid(unsafe_code)]

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Write as _;

use aes::Aes256;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use sha2::{Digest, Sha256};

use crate::backend::{Engine, Expand};
use crate::digest::Message;
use crate::keys::{PublicKey, SecretKey, SignOptions, Signature};
use crate::params::{Params, Round, Set, Sizes};
use crate::scheme::{self, PublicSource, Scheme, SecretSource};
use crate::verify::Admitted;

/// NIST's AES-256-CTR-DRBG as the response files use it: no derivation function, no reseeding.
#[derive(Debug)]
pub struct NistDrbg {
    key: [u8; 32],
    v: u128,
}

impl NistDrbg {
    /// Starts from 48 bytes of entropy, without a personalisation string.
    #[must_use]
    pub fn new(entropy: &[u8; 48]) -> NistDrbg {
        let mut drbg = NistDrbg { key: [0; 32], v: 0 };
        drbg.update(Some(entropy));
        drbg
    }

    /// The next `out.len()` bytes, as one request.
    pub fn fill(&mut self, out: &mut [u8]) {
        let cipher = Aes256::new(&self.key.into());
        for chunk in out.chunks_mut(16) {
            chunk.copy_from_slice(&self.block(&cipher)[..chunk.len()]);
        }
        self.update(None);
    }

    fn block(&mut self, cipher: &Aes256) -> [u8; 16] {
        self.v = self.v.wrapping_add(1);
        let mut block = self.v.to_be_bytes().into();
        cipher.encrypt_block(&mut block);
        block.into()
    }

    fn update(&mut self, provided: Option<&[u8; 48]>) {
        let cipher = Aes256::new(&self.key.into());
        let mut temp = [0u8; 48];
        for chunk in temp.chunks_exact_mut(16) {
            chunk.copy_from_slice(&self.block(&cipher));
        }
        if let Some(provided) = provided {
            temp.iter_mut().zip(provided).for_each(|(t, p)| *t ^= p);
        }
        self.key.copy_from_slice(&temp[..32]);
        let mut v = [0; 16];
        v.copy_from_slice(&temp[32..]);
        self.v = u128::from_be_bytes(v);
    }
}

/// SHA-256 digests of a set's response file.
#[derive(Clone, Copy, Debug)]
pub struct Digests {
    /// All 100 records after the header line and its blank line, ending in one newline. Not published for round 3: see the
    /// module's first paragraph.
    pub all: &'static str,
    /// Record 0 alone, ending in one newline.
    pub first: &'static str,
    /// Records 0 to 2, ending in one newline: the beginning of what `all` is the digest of.
    pub three: &'static str,
}

/// The digests of a set.
#[must_use]
pub const fn digests(params: &Params) -> Digests {
    let (all, first, three) = match (params.round, params.set) {
        (Round::Two, Set::Mayo1) => (
            "c76a60a0a32ec71a078a831a4c2afd4b12460015b0a9685c2e8d42e809689865",
            "178adb997203ae0512b1bd6fa4a5cfae25805d88aeb0ce5226981423153418ee",
            "b14170cf6fc4730766b1aa4dc026980416298a137581512be1370aec54cf0afc",
        ),
        (Round::Two, Set::Mayo2) => (
            "765644834840300b36d070878156225370b5bcc8e4ce64e7b2e74fefd2597aea",
            "777df9b41af1a58536ef76d483775b5c8389ff991e70652fa3af803770a5fce3",
            "4c2a38bffe370c0c588899bf15f5cc1c5dd734db49310b5b1fea6b3a2e7e2f97",
        ),
        (Round::Two, Set::Mayo3) => (
            "65e7af190b552b70b2ccf7276a560122742aa5773a42dd760944d93dc5a63ce8",
            "af940f5cd678bde08f452d3ee7e831ec1a2269715579c604ae699069b6fd9c15",
            "8b7702e608a90616da76acdb745a0e3658013936d3fea4a4cfcc9da3453c8b7c",
        ),
        (Round::Two, Set::Mayo5) => (
            "63068306163c9b65a2227cf808ca0cd60e5bf0f536f9c7119da325a2d3707bc7",
            "9a2ede41913131ab479c2581a1a8e86b97222d800aeb16bf67f6163481f2d587",
            "00204be996c2938ad837f43f60f3d24eecfe1c2e8d49b139343f7b8c777874a0",
        ),
        (Round::Three, Set::Mayo1) => (
            "62bbc4308f1f36666a50b73427ae6cb496eb71260be64d75ba74db21e0c8d847",
            "860cb113d7f5d7c8cb34d8f2a4845eea3480d6a0add3c8aada3186061c9e1288",
            "74e9a1e5b3f7b4443533a7b8ca13efbcd1155677f66f3c485c773291caffd1bf",
        ),
        (Round::Three, Set::Mayo2) => (
            "f0b3f40e6e5e7af1e7b752fedaabf83db0076eba2c96e91e04761ce8528663b1",
            "fd06cbf912ccf0d146760cb539149d536ac52c73192ad2fcd7957a3bc844cb69",
            "70eef2b83962507bf3e2a1582d0c78deab02fee5f5bea3caf0b1693c83abc5ec",
        ),
        (Round::Three, Set::Mayo3) => (
            "ad4ba863714fe888f2be3e13a7df1b3c1b207de35926d7b8dde0fa6e9f4473a6",
            "c53b5f752f39b23b10d0e173f5853549e2e80716e0257633407871c9950b990f",
            "6dfc54b58ab37af33231a31e5226c58af1dd6df25783380b006fbfd282454a8f",
        ),
        (Round::Three, Set::Mayo5) => (
            "865c2064fdf589eb5f8923c7d3597d7ecce8f31f6032c42acc4ad996c8aeb13a",
            "4bfe37eca0e02b69c3c41da84023f414c9a5b54df104da0792cea54facbc6d94",
            "bba2fe020b2ee8d74937387d50d9987141bef7dd3216e3622bf66ef75f3fb451",
        ),
    };
    Digests { all, first, three }
}

/// One record of a response file, as data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The generator's seed.
    pub seed: [u8; 48],
    /// The message.
    pub message: Vec<u8>,
    /// The compact public key.
    pub public_key: Vec<u8>,
    /// The compact secret key: its seed.
    pub secret_key: Vec<u8>,
    /// The signer's randomizer.
    pub randomizer: Vec<u8>,
    /// Signature and message, as NIST's form has them.
    pub signed: Vec<u8>,
}

/// A maker of keys and signatures of one set: a backend, the specification, or another library.
pub trait Maker {
    /// The set's sizes.
    fn sizes(&self) -> &Sizes;
    /// The compact public key of a secret seed; empty for a seed of a wrong length.
    fn public_key(&self, seed: &[u8]) -> Vec<u8>;
    /// The signature of a message under a secret seed and a randomizer; `None` if there is none, as for a wrong length.
    fn sign(&self, seed: &[u8], message: &[u8], randomizer: &[u8]) -> Option<Vec<u8>>;
    /// Whether a signature is valid. One of a wrong length is not, nor is any under a public key of a wrong length.
    fn verify(&self, public_key: &[u8], message: &[u8], signature: &[u8]) -> bool;
}

/// This crate's keys and signatures as a [`Maker`].
#[derive(Clone, Copy, Debug)]
pub struct Library<'a> {
    /// The backend.
    pub engine: Engine,
    /// The set.
    pub params: &'a Params,
}

impl Maker for Library<'_> {
    fn sizes(&self) -> &Sizes {
        self.params.sizes()
    }
    fn public_key(&self, seed: &[u8]) -> Vec<u8> {
        let key = SecretKey::from_seed(self.params, seed);
        key.map_or_else(|_| Vec::new(), |key| key.public_key(self.engine).as_bytes().to_vec())
    }
    fn sign(&self, seed: &[u8], message: &[u8], randomizer: &[u8]) -> Option<Vec<u8>> {
        let key = SecretKey::from_seed(self.params, seed).ok()?;
        let signed = key.sign_randomized(self.engine, message, randomizer, SignOptions::default());
        signed.ok().map(Signature::into_bytes)
    }
    fn verify(&self, public_key: &[u8], message: &[u8], signature: &[u8]) -> bool {
        let Ok(key) = PublicKey::from_bytes(self.params, public_key) else { return false };
        let signature = Signature::from_bytes(self.params, signature);
        signature.is_ok_and(|s| key.verify(self.engine, message, &s).is_ok())
    }
}

/// Only kernels, also of a set that no key can have.
impl Maker for Scheme {
    fn sizes(&self) -> &Sizes {
        self.kernels.sizes
    }
    fn public_key(&self, seed: &[u8]) -> Vec<u8> {
        if seed.len() != self.sizes().secret_key_bytes() {
            return Vec::new();
        }
        let mut key = vec![0; self.sizes().public_key_bytes()];
        scheme::keygen(*self, seed, &mut key);
        key
    }
    fn sign(&self, seed: &[u8], message: &[u8], randomizer: &[u8]) -> Option<Vec<u8>> {
        let sizes = self.sizes();
        if (seed.len(), randomizer.len()) != (sizes.secret_key_bytes(), sizes.salt_bytes) {
            return None;
        }
        let mut signature = vec![0; sizes.signature_bytes()];
        let (source, message) = (SecretSource::Compact, Message::Whole(message));
        scheme::sign(*self, seed, source, message, randomizer, &mut signature).ok()?;
        Some(signature)
    }
    fn verify(&self, public_key: &[u8], message: &[u8], signature: &[u8]) -> bool {
        let source = PublicSource::Compact(public_key);
        public_key.len() == self.sizes().public_key_bytes()
            && Admitted::of_bytes(self.sizes(), message, signature)
                .is_some_and(|admitted| scheme::verify(*self, source, admitted))
    }
}

/// The specification as a [`Maker`], over a backend's symmetric kernels.
#[derive(Clone, Copy, Debug)]
pub struct Specification<'a> {
    /// AES and SHAKE.
    pub symmetric: &'a Expand,
    /// The set.
    pub sizes: &'a Sizes,
}

impl Maker for Specification<'_> {
    fn sizes(&self) -> &Sizes {
        self.sizes
    }
    fn public_key(&self, seed: &[u8]) -> Vec<u8> {
        crate::internals::spec::public_key(self.sizes, self.symmetric, seed)
    }
    fn sign(&self, seed: &[u8], message: &[u8], randomizer: &[u8]) -> Option<Vec<u8>> {
        crate::internals::spec::sign(self.sizes, self.symmetric, seed, message, randomizer)
    }
    fn verify(&self, public_key: &[u8], message: &[u8], signature: &[u8]) -> bool {
        crate::internals::spec::verify(self.sizes, self.symmetric, public_key, message, signature)
    }
}

/// The beginning of a record: what the submissions' generator draws before there is a key.
pub struct Drawn {
    /// The generator's seed.
    pub seed: [u8; 48],
    /// The message.
    pub message: Vec<u8>,
    /// The secret key's seed.
    pub secret_key: Vec<u8>,
    /// The signer's randomizer.
    pub randomizer: Vec<u8>,
}

/// The beginnings of the first `count` records (at most 100) of a set's response file.
pub fn drawn(sizes: &Sizes, count: usize) -> impl Iterator<Item = Drawn> {
    let mut entropy = [0; 48];
    entropy.iter_mut().zip(0u8..).for_each(|(e, i)| *e = i);
    let mut outer = NistDrbg::new(&entropy);
    let (secret_key, randomizer) = (sizes.secret_key_bytes(), sizes.salt_bytes);
    (0..count).map(move |i| {
        let mut drawn = Drawn {
            seed: [0; 48],
            message: vec![0; 33 * (i + 1)],
            secret_key: vec![0; secret_key],
            randomizer: vec![0; randomizer],
        };
        outer.fill(&mut drawn.seed);
        outer.fill(&mut drawn.message);
        let mut inner = NistDrbg::new(&drawn.seed);
        inner.fill(&mut drawn.secret_key);
        inner.fill(&mut drawn.randomizer);
        drawn
    })
}

/// Regenerates the first `count` records (at most 100) of a set's response file. `None` if signing fails.
pub fn records(maker: &dyn Maker, count: usize) -> Option<Vec<Record>> {
    let mut all = Vec::with_capacity(count);
    for Drawn { seed, message, secret_key, randomizer } in drawn(maker.sizes(), count) {
        let public_key = maker.public_key(&secret_key);
        let mut signed = maker.sign(&secret_key, &message, &randomizer)?;
        if !maker.verify(&public_key, &message, &signed) {
            return None;
        }
        signed.extend_from_slice(&message);
        all.push(Record { seed, message, public_key, secret_key, randomizer, signed });
    }
    Some(all)
}

/// The response file of some records after its header, ending in one newline.
#[must_use]
pub fn response(records: &[Record]) -> String {
    let hex = |bytes: &[u8]| {
        bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut s, b| {
            // Writing to a String cannot fail.
            let _ = write!(s, "{b:02X}");
            s
        })
    };
    let body: Vec<String> = records
        .iter()
        .enumerate()
        .map(|(i, r)| {
            format!(
                "count = {i}\nseed = {}\nmlen = {}\nmsg = {}\npk = {}\nsk = {}\nsmlen = {}\nsm = {}\n",
                hex(&r.seed),
                r.message.len(),
                hex(&r.message),
                hex(&r.public_key),
                hex(&r.secret_key),
                r.signed.len(),
                hex(&r.signed)
            )
        })
        .collect();
    body.join("\n")
}

/// SHA-256 in lower-case hexadecimal.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut s, b| {
        let _ = write!(s, "{b:02x}");
        s
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_nists() {
        let mut entropy = [0; 48];
        entropy.iter_mut().zip(0u8..).for_each(|(e, i)| *e = i);
        let mut first = [0; 4];
        NistDrbg::new(&entropy).fill(&mut first);
        // The seed of record 0 of every NIST response file begins so.
        assert_eq!(first, [0x06, 0x15, 0x50, 0x23]);
    }
}
