//! Key files: PKCS#8 and SPKI for round 2, this library's own form for round 3.
//!
//! Round 2 follows oqs-provider, which gives MAYO the identifiers 1.3.9999.8.s.3 (s the digit of the set):
//!
//! * private: PKCS#8 version 0, no algorithm parameters; the `privateKey` octets are themselves the DER of an OCTET
//!   STRING that holds the secret key and, after it, the public key. Files made with oqs-provider's build option
//!   `NOPUBKEY_IN_PRIVKEY` hold only the secret key, and can be read too;
//! * public: SPKI, no algorithm parameters, the compact public key in the BIT STRING.
//!
//! Round 3 has no published identifier yet. The documents are `SEQUENCE { version INTEGER (0), round INTEGER, set
//! INTEGER, key OCTET STRING }` in PEM under labels of their own, the key being what the round-2 forms hold innermost.
//! A reader of PKCS#8 refuses the label, so such a key is never taken for one of round 2.
#![forbid(unsafe_code)]

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use const_oid::ObjectIdentifier;
use der::asn1::{BitStringRef, OctetStringRef};
use der::{Decode, Encode, Reader, SliceReader};
use pem_rfc7468::LineEnding;
use pkcs8::PrivateKeyInfoRef;
use spki::{AlgorithmIdentifierRef, SubjectPublicKeyInfoRef};
use zeroize::Zeroizing;

use crate::backend::Engine;
use crate::error::Error;
use crate::keys::{PublicKey, SecretKey, expect};
use crate::params::{Params, Round, Set};
use crate::sys::wipe_stack_and_registers;

const PKCS8_LABEL: &str = "PRIVATE KEY";
const SPKI_LABEL: &str = "PUBLIC KEY";
const ROUND3_PRIVATE_LABEL: &str = "LANEWORK MAYO ROUND 3 PRIVATE KEY";
const ROUND3_PUBLIC_LABEL: &str = "LANEWORK MAYO ROUND 3 PUBLIC KEY";

const PRIVATE: &str = "private key file";
const PUBLIC: &str = "public key file";

/// The published identifier of a set, if it has one.
fn identifier(params: &Params) -> Option<ObjectIdentifier> {
    match (params.round, params.set) {
        (Round::Two, Set::Mayo1) => Some(ObjectIdentifier::new_unwrap("1.3.9999.8.1.3")),
        (Round::Two, Set::Mayo2) => Some(ObjectIdentifier::new_unwrap("1.3.9999.8.2.3")),
        (Round::Two, Set::Mayo3) => Some(ObjectIdentifier::new_unwrap("1.3.9999.8.3.3")),
        (Round::Two, Set::Mayo5) => Some(ObjectIdentifier::new_unwrap("1.3.9999.8.5.3")),
        _ => None,
    }
}

fn unreadable(what: &'static str, why: impl Into<String>) -> Error {
    Error::Unreadable { what, why: why.into() }
}

/// The set of an algorithm identifier.
fn identified(what: &'static str, algorithm: &AlgorithmIdentifierRef<'_>) -> Result<&'static Params, Error> {
    let oid = algorithm.oid;
    let params = Params::all().find(|p| identifier(p) == Some(oid));
    let params =
        params.ok_or_else(|| unreadable(what, format!("its algorithm, {oid}, is not a known MAYO set")))?;
    if algorithm.parameters.is_some() {
        return Err(unreadable(what, format!("algorithm {oid} has parameters, and MAYO takes none")));
    }
    Ok(params)
}

/// This library's own form: version, round, set, key.
fn write_own(params: &Params, key: &[u8]) -> der::Result<Zeroizing<Vec<u8>>> {
    let head: [u8; 3] = [0, params.round.number(), params.set.number()];
    let key = OctetStringRef::new(key)?;
    let mut length = key.encoded_len()?;
    for number in &head {
        length = (length + number.encoded_len()?)?;
    }
    let header = der::Header::new(der::Tag::Sequence, length);
    let mut out = Zeroizing::new(vec![0; u32::from((header.encoded_len()? + length)?) as usize]);
    let mut writer = der::SliceWriter::new(&mut out);
    header.encode(&mut writer)?;
    for number in &head {
        number.encode(&mut writer)?;
    }
    key.encode(&mut writer)?;
    writer.finish()?;
    Ok(out)
}

fn read_own<'a>(
    what: &'static str,
    der: &'a [u8],
    round: Round,
) -> Result<(&'static Params, &'a [u8]), Error> {
    let read = || -> der::Result<([u8; 3], &'a [u8])> {
        let mut reader = SliceReader::new(der)?;
        let found = reader.sequence(|r| -> der::Result<_> {
            Ok(([u8::decode(r)?, u8::decode(r)?, u8::decode(r)?], <&OctetStringRef>::decode(r)?.as_bytes()))
        })?;
        reader.finish()?;
        Ok(found)
    };
    let ([version, found_round, set], key) = read().map_err(|e| unreadable(what, e.to_string()))?;
    if version != 0 {
        return Err(unreadable(what, format!("it has version {version}, and only version 0 is known")));
    }
    if found_round != round.number() {
        return Err(unreadable(what, format!("its label says {round} and its content round {found_round}")));
    }
    let set = Set::ALL.into_iter().find(|s| s.number() == set);
    let set = set.ok_or_else(|| unreadable(what, "it names a set that does not exist"))?;
    Ok((Params::of(round, set), key))
}

/// Secret key and public key in one string, as both forms of private key hold them.
fn both(secret: &SecretKey, engine: Engine) -> Zeroizing<Vec<u8>> {
    let public = secret.public_key(engine);
    let (seed, public) = (secret.expose_seed(), public.as_bytes());
    // The capacity is what is needed: growing would leave a copy of the seed behind.
    let mut joined = Zeroizing::new(Vec::with_capacity(seed.len() + public.len()));
    joined.extend_from_slice(seed);
    joined.extend_from_slice(public);
    joined
}

/// Splits [`both`], and checks that the two belong together.
fn part(params: &'static Params, joined: &[u8], engine: Engine) -> Result<SecretKey, Error> {
    let (seed, public) = joined.split_at_checked(params.secret_key_bytes()).unwrap_or((joined, &[]));
    let secret = SecretKey::from_seed(params, seed)?;
    if !public.is_empty() {
        let public = PublicKey::from_bytes(params, public)?;
        if secret.public_key(engine) != public {
            return Err(Error::KeyMismatch);
        }
    }
    Ok(secret)
}

fn read_pkcs8(engine: Engine, der: &[u8]) -> Result<SecretKey, Error> {
    let info = PrivateKeyInfoRef::from_der(der).map_err(|e| unreadable(PRIVATE, e.to_string()))?;
    let params = identified(PRIVATE, &info.algorithm)?;
    let joined = <&OctetStringRef>::from_der(info.private_key.as_bytes())
        .map_err(|e| unreadable(PRIVATE, format!("inside its privateKey field: {e}")))?;
    let secret = part(params, joined.as_bytes(), engine)?;
    // Version 2 of PKCS#8 has a place of its own for the public key.
    match info.public_key.map(|bits| bits.as_bytes().map(<[u8]>::to_vec)) {
        None => Ok(secret),
        Some(Some(bytes)) if secret.public_key(engine).as_bytes() == bytes => Ok(secret),
        Some(_) => Err(Error::KeyMismatch),
    }
}

/// Runs `work` on a secret document, then wipes the stack and registers that copying and recoding used. `work` wipes
/// its buffers on the heap.
fn cleanly<R>(work: impl FnOnce() -> R) -> R {
    let result = work();
    wipe_stack_and_registers();
    result
}

/// The first PEM block of a text. RFC 7468 allows explanatory text around it, and some tools write such text.
fn first_block(text: &str) -> Option<&str> {
    let starts_line = |at: &usize| *at == 0 || text.as_bytes()[at - 1] == b'\n';
    let begin = text.match_indices("-----BEGIN ").map(|(at, _)| at).find(starts_line)?;
    let end = text[begin..].match_indices("-----END ").map(|(at, _)| begin + at).find(starts_line)?;
    let line = text[end..].find('\n').map_or(text.len(), |at| end + at + 1);
    Some(&text[begin..line])
}

/// A PEM document's label and content.
fn unwrap_pem<'a>(what: &'static str, text: &'a str) -> Result<(&'a str, Zeroizing<Vec<u8>>), Error> {
    let block = first_block(text).ok_or_else(|| {
        unreadable(what, "no '-----BEGIN …-----' with its '-----END …-----' in it".to_owned())
    })?;
    // Four characters hold three bytes. What was decoded before an error is wiped, too.
    let mut der = Zeroizing::new(vec![0; block.len()]);
    let (label, content) =
        pem_rfc7468::decode(block.as_bytes(), &mut der).map_err(|e| unreadable(what, format!("PEM: {e}")))?;
    let length = content.len();
    der.truncate(length);
    Ok((label, der))
}

fn wrap_pem(what: &'static str, label: &'static str, der: &[u8]) -> Result<String, Error> {
    pem_rfc7468::encode_string(label, LineEnding::LF, der).map_err(|e| unreadable(what, format!("PEM: {e}")))
}

fn wrong_label(what: &'static str, label: &str) -> Error {
    unreadable(what, format!("it is labelled '{label}'"))
}

impl SecretKey {
    /// The PKCS#8 document, as oqs-provider makes it.
    ///
    /// # Errors
    /// [`Error::NoIdentifier`] in a round without published identifiers.
    pub fn to_pkcs8_der(&self, engine: Engine) -> Result<Zeroizing<Vec<u8>>, Error> {
        let p = self.params();
        let oid = identifier(p).ok_or(Error::NoIdentifier { round: p.round, set: p.set })?;
        let write = || -> der::Result<Zeroizing<Vec<u8>>> {
            let joined = both(self, engine);
            let inner = Zeroizing::new(OctetStringRef::new(&joined)?.to_der()?);
            let algorithm = AlgorithmIdentifierRef { oid, parameters: None };
            PrivateKeyInfoRef::new(algorithm, OctetStringRef::new(&inner)?).to_der().map(Zeroizing::new)
        };
        cleanly(write).map_err(|e| unreadable(PRIVATE, e.to_string()))
    }

    /// Reads a PKCS#8 document; its algorithm identifier names set and round.
    ///
    /// # Errors
    /// [`Error::Unreadable`]; [`Error::Length`]; [`Error::KeyMismatch`].
    pub fn from_pkcs8_der(engine: Engine, der: &[u8]) -> Result<SecretKey, Error> {
        cleanly(|| read_pkcs8(engine, der))
    }

    /// The key file: PKCS#8 in PEM for round 2, this library's own form in PEM for round 3. The text is wiped when
    /// dropped.
    ///
    /// # Errors
    /// [`Error::NoIdentifier`] in a round that no key file belongs to.
    pub fn to_pem(&self, engine: Engine) -> Result<Zeroizing<String>, Error> {
        let write = || match self.params().round {
            Round::Three => {
                let der = write_own(self.params(), &both(self, engine));
                wrap_pem(PRIVATE, ROUND3_PRIVATE_LABEL, &der.map_err(|e| unreadable(PRIVATE, e.to_string()))?)
            }
            _ => wrap_pem(PRIVATE, PKCS8_LABEL, &self.to_pkcs8_der(engine)?),
        };
        cleanly(write).map(Zeroizing::new)
    }

    /// Reads a key file of any set and round. `engine` recomputes the public key to check it against the file's.
    ///
    /// # Errors
    /// [`Error::Unreadable`]; [`Error::Length`]; [`Error::KeyMismatch`].
    pub fn from_pem(engine: Engine, text: &str) -> Result<SecretKey, Error> {
        cleanly(|| {
            let (label, der) = unwrap_pem(PRIVATE, text)?;
            match label {
                PKCS8_LABEL => read_pkcs8(engine, &der),
                ROUND3_PRIVATE_LABEL => {
                    let (params, joined) = read_own(PRIVATE, &der, Round::Three)?;
                    part(params, joined, engine)
                }
                _ => Err(wrong_label(PRIVATE, label)),
            }
        })
    }

    /// Reads a key file and refuses every set but `params`.
    ///
    /// # Errors
    /// As [`SecretKey::from_pem`]; [`Error::WrongRound`]; [`Error::WrongSet`].
    pub fn from_pem_expecting(engine: Engine, text: &str, params: &Params) -> Result<SecretKey, Error> {
        let key = SecretKey::from_pem(engine, text)?;
        expect(params, key.params()).map(|()| key)
    }
}

impl PublicKey {
    /// The SPKI document, as oqs-provider makes it.
    ///
    /// # Errors
    /// [`Error::NoIdentifier`] in a round without published identifiers.
    pub fn to_spki_der(&self) -> Result<Vec<u8>, Error> {
        let p = self.params();
        let oid = identifier(p).ok_or(Error::NoIdentifier { round: p.round, set: p.set })?;
        let write = || -> der::Result<Vec<u8>> {
            let algorithm = AlgorithmIdentifierRef { oid, parameters: None };
            let subject_public_key = BitStringRef::from_bytes(self.as_bytes())?;
            SubjectPublicKeyInfoRef { algorithm, subject_public_key }.to_der()
        };
        write().map_err(|e| unreadable(PUBLIC, e.to_string()))
    }

    /// Reads an SPKI document; its algorithm identifier names set and round.
    ///
    /// # Errors
    /// [`Error::Unreadable`]; [`Error::Length`].
    pub fn from_spki_der(der: &[u8]) -> Result<PublicKey, Error> {
        let info = SubjectPublicKeyInfoRef::from_der(der).map_err(|e| unreadable(PUBLIC, e.to_string()))?;
        let params = identified(PUBLIC, &info.algorithm)?;
        let bytes = info.subject_public_key.as_bytes();
        let bytes = bytes.ok_or_else(|| unreadable(PUBLIC, "its key does not end at a byte boundary"))?;
        PublicKey::from_bytes(params, bytes)
    }

    /// The key file: SPKI in PEM for round 2, this library's own form in PEM for round 3.
    ///
    /// # Errors
    /// [`Error::NoIdentifier`] in a round that no key file belongs to.
    pub fn to_pem(&self) -> Result<String, Error> {
        match self.params().round {
            Round::Three => {
                let der = write_own(self.params(), self.as_bytes());
                wrap_pem(PUBLIC, ROUND3_PUBLIC_LABEL, &der.map_err(|e| unreadable(PUBLIC, e.to_string()))?)
            }
            _ => wrap_pem(PUBLIC, SPKI_LABEL, &self.to_spki_der()?),
        }
    }

    /// Reads a key file of any set and round.
    ///
    /// # Errors
    /// [`Error::Unreadable`]; [`Error::Length`].
    pub fn from_pem(text: &str) -> Result<PublicKey, Error> {
        let (label, der) = unwrap_pem(PUBLIC, text)?;
        match label {
            SPKI_LABEL => PublicKey::from_spki_der(&der),
            ROUND3_PUBLIC_LABEL => {
                let (params, key) = read_own(PUBLIC, &der, Round::Three)?;
                PublicKey::from_bytes(params, key)
            }
            _ => Err(wrong_label(PUBLIC, label)),
        }
    }

    /// Reads a key file and refuses every set but `params`.
    ///
    /// # Errors
    /// As [`PublicKey::from_pem`]; [`Error::WrongRound`]; [`Error::WrongSet`].
    pub fn from_pem_expecting(text: &str, params: &Params) -> Result<PublicKey, Error> {
        let key = PublicKey::from_pem(text)?;
        expect(params, key.params()).map(|()| key)
    }
}
