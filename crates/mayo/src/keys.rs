//! Compact keys and signatures whose parameter set is chosen at run time.
//!
//! A key has its set and its round. Keys of MAYO-3 and MAYO-5 have the same bytes in rounds 2 and 3, and a key used in
//! both is revealed (`tests/rounds.rs` recovers it from two signatures). So every function of two operands checks that
//! they belong to one round.
#![forbid(unsafe_code)]

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use ctutils::{Choice, CtEq};
use rand_core::{CryptoRng, TryCryptoRng};
use zeroize::Zeroizing;

use crate::backend::Engine;
use crate::digest::{Message, MessageDigest};
use crate::error::Error;
use crate::params::Params;
use crate::scheme::{self, PublicSource, SecretSource};
use crate::sys::{wipe, wipe_vector_registers};
use crate::verify::{self, Admission, Admitted};

/// A compact secret key: the seed, with its set and round.
///
/// The seed is wiped when the key is dropped, is never printed, and is compared in constant time.
pub struct SecretKey {
    params: &'static Params,
    // Boxed, so that moving the key leaves no copy behind.
    seed: Box<[u8]>,
}

/// A compact public key: 16 bytes of seed and P3, with its set and round.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey {
    params: &'static Params,
    bytes: Vec<u8>,
}

/// A signature: k vectors of n elements and the salt, with its set and round.
#[derive(Clone, PartialEq, Eq)]
pub struct Signature {
    params: &'static Params,
    bytes: Vec<u8>,
}

/// How to sign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignOptions {
    /// Verify the fresh signature and destroy it if that fails ([`Error::Fault`]).
    ///
    /// A defence against faults: an error while signing, provoked or not, can make a signature that reveals the key,
    /// and such a signature does not verify. It costs one verification; with a compact key also one key generation.
    pub verify: bool,
}

/// `params` for as long as a key lives: every `Params` is in the tables.
pub(crate) const fn canonical(params: &Params) -> &'static Params {
    Params::of(params.round, params.set)
}

/// Refuses `got` unless it is `expected`. The round is compared first, since mixing rounds endangers keys.
///
/// # Errors
/// [`Error::WrongRound`]; [`Error::WrongSet`].
pub fn expect(expected: &Params, got: &Params) -> Result<(), Error> {
    if expected.round != got.round {
        return Err(Error::WrongRound { expected: expected.round, got: got.round });
    }
    if expected.set != got.set {
        return Err(Error::WrongSet { expected: expected.set, got: got.set });
    }
    Ok(())
}

fn expect_length(what: &'static str, params: &Params, expected: usize, got: usize) -> Result<(), Error> {
    if expected == got { Ok(()) } else { Err(Error::Length { what, set: params.set, expected, got }) }
}

/// A randomizer of the right length from `rng`.
///
/// # Errors
/// [`Error::Random`].
pub fn draw_randomizer<R: TryCryptoRng + ?Sized>(
    params: &Params,
    rng: &mut R,
) -> Result<Zeroizing<Vec<u8>>, Error> {
    let mut randomizer = Zeroizing::new(vec![0; params.salt_bytes()]);
    rng.try_fill_bytes(&mut randomizer).map_err(|e| Error::Random(e.to_string()))?;
    Ok(randomizer)
}

/// Signs from compact or expanded matrices with a given randomizer.
pub(crate) fn sign_raw(
    engine: Engine,
    key: &SecretKey,
    source: SecretSource<'_>,
    message: Message<'_>,
    randomizer: &[u8],
) -> Result<Signature, Error> {
    let params = key.params;
    expect_length("randomizer", params, params.salt_bytes(), randomizer.len())?;
    let mut bytes = vec![0; params.signature_bytes()];
    scheme::sign(engine.kernels().scheme(params), &key.seed, source, message, randomizer, &mut bytes)?;
    Ok(Signature { params, bytes })
}

/// Returns the signature if `valid`, and destroys it otherwise.
///
/// # Errors
/// [`Error::Fault`].
pub fn emit(mut signature: Signature, valid: bool) -> Result<Signature, Error> {
    if valid {
        return Ok(signature);
    }
    // A faulty signature may reveal the key, so it counts as a secret.
    wipe(&mut signature.bytes);
    Err(Error::Fault)
}

impl SecretKey {
    /// A key from a seed of [`Params::secret_key_bytes`]. The caller names the round through `params`, since the bytes
    /// do not carry it. Never use a seed in two rounds.
    ///
    /// # Errors
    /// [`Error::Length`].
    pub fn from_seed(params: &Params, seed: &[u8]) -> Result<SecretKey, Error> {
        expect_length("secret key", params, params.secret_key_bytes(), seed.len())?;
        Ok(SecretKey::copied(canonical(params), seed))
    }

    /// Copying uses vector registers, where the seed would stay until their next use.
    fn copied(params: &'static Params, seed: &[u8]) -> SecretKey {
        let key = SecretKey { params, seed: seed.into() };
        wipe_vector_registers();
        key
    }

    /// A key from a seed of `rng`.
    #[must_use]
    pub fn generate<R: CryptoRng + ?Sized>(params: &Params, rng: &mut R) -> SecretKey {
        let params = canonical(params);
        // A key from the start, so that it is wiped even if the generator panics.
        let mut key = SecretKey { params, seed: vec![0; params.secret_key_bytes()].into() };
        rng.fill_bytes(&mut key.seed);
        key
    }

    /// [`SecretKey::generate`] with a generator that may fail.
    ///
    /// # Errors
    /// [`Error::Random`].
    pub fn try_generate<R: TryCryptoRng + ?Sized>(params: &Params, rng: &mut R) -> Result<SecretKey, Error> {
        let params = canonical(params);
        let mut key = SecretKey { params, seed: vec![0; params.secret_key_bytes()].into() };
        rng.try_fill_bytes(&mut key.seed).map_err(|e| Error::Random(e.to_string()))?;
        Ok(key)
    }

    /// A key from the operating system's randomness.
    ///
    /// # Errors
    /// [`Error::Random`].
    #[cfg(any(test, feature = "getrandom"))]
    pub fn generate_os(params: &Params) -> Result<SecretKey, Error> {
        SecretKey::try_generate(params, &mut getrandom::SysRng)
    }

    /// The set and round.
    #[must_use]
    pub const fn params(&self) -> &'static Params {
        self.params
    }

    /// The seed, which is the whole secret.
    #[must_use]
    pub fn expose_seed(&self) -> &[u8] {
        &self.seed
    }

    /// The public key: key generation proper.
    #[must_use]
    pub fn public_key(&self, engine: Engine) -> PublicKey {
        let mut bytes = vec![0; self.params.public_key_bytes()];
        scheme::keygen(engine.kernels().scheme(self.params), &self.seed, &mut bytes);
        PublicKey { params: self.params, bytes }
    }

    /// Signs, hedged with the operating system's randomness. To sign often with one key, keep a [`crate::SigningKey`].
    ///
    /// # Errors
    /// [`Error::Random`]; [`Error::Exhausted`].
    #[cfg(any(test, feature = "getrandom"))]
    pub fn sign(&self, engine: Engine, message: &[u8]) -> Result<Signature, Error> {
        self.sign_with(engine, message, SignOptions::default(), &mut getrandom::SysRng)
    }

    /// Signs, hedged with `rng`.
    ///
    /// # Errors
    /// [`Error::Random`]; [`Error::Exhausted`]; with [`SignOptions::verify`] also [`Error::Fault`].
    pub fn sign_with<R: TryCryptoRng + ?Sized>(
        &self,
        engine: Engine,
        message: &[u8],
        options: SignOptions,
        rng: &mut R,
    ) -> Result<Signature, Error> {
        let randomizer = draw_randomizer(self.params, rng)?;
        self.sign_randomized(engine, message, &randomizer, options)
    }

    /// [`SecretKey::sign_with`] for a message that was hashed piece by piece.
    ///
    /// # Errors
    /// As [`SecretKey::sign_with`]; [`Error::WrongRound`] and [`Error::WrongSet`] if the digest belongs elsewhere.
    pub fn sign_digest_with<R: TryCryptoRng + ?Sized>(
        &self,
        engine: Engine,
        digest: &MessageDigest,
        options: SignOptions,
        rng: &mut R,
    ) -> Result<Signature, Error> {
        expect(self.params, digest.params())?;
        let randomizer = draw_randomizer(self.params, rng)?;
        self.randomized(engine, Message::Hashed(digest), &randomizer, options)
    }

    /// NIST's signed message: the signature, then the message. Hedged as [`SecretKey::sign`] is.
    ///
    /// # Errors
    /// As [`SecretKey::sign`].
    #[cfg(any(test, feature = "getrandom"))]
    pub fn sign_message(&self, engine: Engine, message: &[u8]) -> Result<Vec<u8>, Error> {
        Ok(self.sign(engine, message)?.before(message))
    }

    pub(crate) fn sign_randomized(
        &self,
        engine: Engine,
        message: &[u8],
        randomizer: &[u8],
        options: SignOptions,
    ) -> Result<Signature, Error> {
        self.randomized(engine, Message::Whole(message), randomizer, options)
    }

    /// Signs with a given randomizer.
    ///
    /// # Errors
    /// [`Error::Length`]; [`Error::Exhausted`]; with [`SignOptions::verify`] also [`Error::Fault`].
    #[doc(hidden)]
    pub fn randomized(
        &self,
        engine: Engine,
        message: Message<'_>,
        randomizer: &[u8],
        options: SignOptions,
    ) -> Result<Signature, Error> {
        let signature = sign_raw(engine, self, SecretSource::Compact, message, randomizer)?;
        if !options.verify {
            return Ok(signature);
        }
        let valid = self.public_key(engine).judge(engine, message, &signature).is_ok();
        emit(signature, valid)
    }
}

impl Clone for SecretKey {
    fn clone(&self) -> SecretKey {
        SecretKey::copied(self.params, &self.seed)
    }
}

impl Drop for SecretKey {
    fn drop(&mut self) {
        wipe(&mut self.seed);
    }
}

impl zeroize::ZeroizeOnDrop for SecretKey {}

impl CtEq for SecretKey {
    fn ct_eq(&self, other: &SecretKey) -> Choice {
        self.params.index().ct_eq(&other.params.index()) & self.seed.ct_eq(&other.seed)
    }
}

impl PartialEq for SecretKey {
    fn eq(&self, other: &SecretKey) -> bool {
        self.ct_eq(other).into()
    }
}

impl Eq for SecretKey {}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey({}, ..)", self.params.name())
    }
}

impl PublicKey {
    /// A key that the library itself made, with the right number of bytes.
    pub(crate) const fn made(params: &'static Params, bytes: Vec<u8>) -> PublicKey {
        PublicKey { params, bytes }
    }

    /// A key from its bytes, [`Params::public_key_bytes`] of them. The bytes carry neither set nor round; `params`
    /// names both.
    ///
    /// # Errors
    /// [`Error::Length`].
    pub fn from_bytes(params: &Params, bytes: &[u8]) -> Result<PublicKey, Error> {
        expect_length("public key", params, params.public_key_bytes(), bytes.len())?;
        Ok(PublicKey { params: canonical(params), bytes: bytes.to_vec() })
    }

    /// The set and round.
    #[must_use]
    pub const fn params(&self) -> &'static Params {
        self.params
    }

    /// The compact form.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Verifies. To verify often with one key, keep a [`crate::VerifyingKey`].
    ///
    /// # Errors
    /// [`Error::WrongRound`] and [`Error::WrongSet`] if the signature belongs elsewhere; [`Error::Refused`] if it is
    /// not valid.
    pub fn verify(&self, engine: Engine, message: &[u8], signature: &Signature) -> Result<(), Error> {
        self.judge(engine, Message::Whole(message), signature)
    }

    /// [`PublicKey::verify`] for a message that was hashed piece by piece.
    ///
    /// # Errors
    /// [`Error::WrongRound`] and [`Error::WrongSet`] if the signature or the digest belongs elsewhere;
    /// [`Error::Refused`] if the signature is not valid.
    pub fn verify_digest(
        &self,
        engine: Engine,
        digest: &MessageDigest,
        signature: &Signature,
    ) -> Result<(), Error> {
        self.judge(engine, Message::Hashed(digest), signature)
    }

    pub(crate) fn judge(
        &self,
        engine: Engine,
        message: Message<'_>,
        signature: &Signature,
    ) -> Result<(), Error> {
        self.judge_admission(engine, &Admitted::new(self.params, message, signature))
    }

    /// The verdict on a signature that was admitted for this key's set, or refused.
    ///
    /// # Errors
    /// The reason for which it was refused; [`Error::Refused`] if it is not valid.
    #[doc(hidden)]
    pub fn judge_admission(&self, engine: Engine, admission: &Admission<'_>) -> Result<(), Error> {
        verify::one(engine.kernels().scheme(self.params), PublicSource::Compact(&self.bytes), admission)
    }

    /// The message in NIST's signed message, if its signature is valid.
    ///
    /// # Errors
    /// [`Error::Length`] if there is no room for a signature; [`Error::Refused`].
    pub fn open<'a>(&self, engine: Engine, signed_message: &'a [u8]) -> Result<&'a [u8], Error> {
        let (signature, message) = Signature::split(self.params, signed_message)?;
        self.verify(engine, message, &signature).map(|()| message)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({}, {:02x?}..)", self.params.name(), &self.bytes[..8])
    }
}

impl Signature {
    /// A signature that the library itself made, with the right number of bytes.
    pub(crate) const fn made(params: &'static Params, bytes: Vec<u8>) -> Signature {
        Signature { params, bytes }
    }

    /// A signature from its bytes, [`Params::signature_bytes`] of them. Every string of that length can be read: the
    /// encoding has no unused bit.
    ///
    /// # Errors
    /// [`Error::Length`].
    pub fn from_bytes(params: &Params, bytes: &[u8]) -> Result<Signature, Error> {
        expect_length("signature", params, params.signature_bytes(), bytes.len())?;
        Ok(Signature { params: canonical(params), bytes: bytes.to_vec() })
    }

    /// The set and round.
    #[must_use]
    pub const fn params(&self) -> &'static Params {
        self.params
    }

    /// The encoding.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The encoding, without a copy.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Signature and message in one string.
    #[cfg(any(test, feature = "getrandom"))]
    pub(crate) fn before(mut self, message: &[u8]) -> Vec<u8> {
        self.bytes.extend_from_slice(message);
        self.bytes
    }

    /// NIST's signed message in its two parts.
    pub(crate) fn split<'a>(
        params: &Params,
        signed_message: &'a [u8],
    ) -> Result<(Signature, &'a [u8]), Error> {
        let expected = params.signature_bytes();
        let Some((signature, message)) = signed_message.split_at_checked(expected) else {
            let got = signed_message.len();
            return Err(Error::Length { what: "signed message's signature", set: params.set, expected, got });
        };
        Ok((Signature::from_bytes(params, signature)?, message))
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signature({}, {:02x?}..)", self.params.name(), &self.bytes[..8])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{Round, Set};

    #[test]
    fn a_secret_key_prints_no_secret() {
        let params = Params::of(Round::Three, Set::Mayo1);
        let key = SecretKey::from_seed(params, &[0xa5; 24]).unwrap();
        let shown = format!("{key:?}").to_lowercase();
        assert_eq!(shown, "secretkey(mayo-1 round 3, ..)");
    }

    #[test]
    fn equal_seeds_of_two_rounds_are_two_keys() {
        let key = |round, fill| SecretKey::from_seed(Params::of(round, Set::Mayo3), &[fill; 32]).unwrap();
        assert_eq!(key(Round::Two, 1), key(Round::Two, 1));
        assert_ne!(key(Round::Two, 1), key(Round::Two, 2));
        assert_ne!(key(Round::Two, 1), key(Round::Three, 1));
    }

    #[test]
    fn a_failing_generator_is_an_error() {
        #[derive(Debug)]
        struct Dry;
        impl fmt::Display for Dry {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("dry")
            }
        }
        impl core::error::Error for Dry {}
        struct Well;
        impl rand_core::TryRng for Well {
            type Error = Dry;
            fn try_next_u32(&mut self) -> Result<u32, Dry> {
                Err(Dry)
            }
            fn try_next_u64(&mut self) -> Result<u64, Dry> {
                Err(Dry)
            }
            fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), Dry> {
                Err(Dry)
            }
        }
        impl TryCryptoRng for Well {}
        let params = Params::of(Round::Three, Set::Mayo1);
        assert_eq!(SecretKey::try_generate(params, &mut Well), Err(Error::Random("dry".to_owned())));
        let key = SecretKey::from_seed(params, &[1; 24]).unwrap();
        let signed = key.sign_with(Engine::best(), b"m", SignOptions::default(), &mut Well);
        assert_eq!(signed, Err(Error::Random("dry".to_owned())));
    }
}
