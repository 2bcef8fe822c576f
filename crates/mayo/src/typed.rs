//! Keys and signatures whose parameter set is a type, with the `signature` traits.
//!
//! A round is part of the type, so that the compiler keeps the rounds apart:
//!
//! ```compile_fail,E0308
//! use lanework_mayo::typed::{SigningKey, round2, round3};
//! fn wants_round_3(_: &SigningKey<round3::Mayo3>) {}
//! fn has_round_2(key: &SigningKey<round2::Mayo3>) {
//!     wants_round_3(key);
//! }
//! ```
//!
//! The same with one round throughout compiles:
//!
//! ```
//! use lanework_mayo::typed::{SigningKey, round3};
//! fn wants_round_3(_: &SigningKey<round3::Mayo3>) {}
//! fn has_round_3(key: &SigningKey<round3::Mayo3>) {
//!     wants_round_3(key);
//! }
//! ```
//!
//! Signing is hedged. Only [`crate::hazmat::Deterministic`] implements the `Signer` trait, which has no generator:
//!
//! ```compile_fail,E0277
//! use lanework_mayo::typed::{Signature, SigningKey, round3};
//! fn wants_signer(_: &impl signature::Signer<Signature<round3::Mayo1>>) {}
//! fn has_key(key: &SigningKey<round3::Mayo1>) {
//!     wants_signer(key);
//! }
//! ```
//!
//! ```
//! use lanework_mayo::{Engine, typed::{Signature, SigningKey, round3}};
//! use signature::{Keypair, Verifier};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let key = SigningKey::<round3::Mayo2>::generate_os(Engine::best())?;
//! let signature = key.sign(b"a message")?;
//! key.verifying_key().verify(b"a message", &signature)?;
//! assert!(key.verifying_key().verify(b"another", &signature).is_err());
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use rand_core::{CryptoRng, TryCryptoRng};
use signature::{Keypair, RandomizedSigner, SignatureEncoding, Verifier};

use crate::backend::Engine;
use crate::error::Error;
use crate::expanded;
use crate::hazmat::{self, Deterministic};
use crate::keys::{self, PublicKey, SecretKey, SignOptions, expect};
use crate::params::{Params, Round, Set};

mod sealed {
    pub trait Sealed {}
}

/// A parameter set as a type.
pub trait ParameterSet: sealed::Sealed + 'static {
    /// Its parameters.
    const PARAMS: &'static Params;
}

macro_rules! markers {
    ($(#[$doc:meta])* $module:ident, $round:expr, $($set:ident),*) => {
        $(#[$doc])*
        pub mod $module {
            use super::{ParameterSet, Params, Round, Set, sealed::Sealed};
            $(
                #[doc = concat!("The set of this name in ", stringify!($module), ".")]
                #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
                pub enum $set {}
                impl Sealed for $set {}
                impl ParameterSet for $set {
                    const PARAMS: &'static Params = Params::of($round, Set::$set);
                }
            )*
        }
    };
}

markers! {
    /// The specification of 31 Aug 2026.
    round3, Round::Three, Mayo1, Mayo2, Mayo3, Mayo5
}
markers! {
    /// The specification of 5 Feb 2025.
    round2, Round::Two, Mayo1, Mayo2, Mayo3, Mayo5
}

/// An expanded signing key of the set `P`.
pub struct SigningKey<P: ParameterSet> {
    key: expanded::SigningKey,
    set: PhantomData<P>,
}

impl<P: ParameterSet> SigningKey<P> {
    /// Expands a compact key whose set is known at run time.
    ///
    /// # Errors
    /// [`Error::WrongRound`]; [`Error::WrongSet`].
    pub fn new(engine: Engine, secret: &SecretKey) -> Result<SigningKey<P>, Error> {
        expect(P::PARAMS, secret.params())?;
        Ok(SigningKey { key: expanded::SigningKey::new(engine, secret), set: PhantomData })
    }

    /// A key from a seed that was never used in another round.
    ///
    /// # Errors
    /// [`Error::Length`].
    pub fn from_seed(engine: Engine, seed: &[u8]) -> Result<SigningKey<P>, Error> {
        SigningKey::new(engine, &SecretKey::from_seed(P::PARAMS, seed)?)
    }

    /// A fresh key from `rng`.
    #[must_use]
    pub fn generate<R: CryptoRng + ?Sized>(engine: Engine, rng: &mut R) -> SigningKey<P> {
        let secret = SecretKey::generate(P::PARAMS, rng);
        SigningKey { key: expanded::SigningKey::new(engine, &secret), set: PhantomData }
    }

    /// A fresh key from the operating system's randomness.
    ///
    /// # Errors
    /// [`Error::Random`].
    #[cfg(any(test, feature = "getrandom"))]
    pub fn generate_os(engine: Engine) -> Result<SigningKey<P>, Error> {
        SigningKey::new(engine, &SecretKey::generate_os(P::PARAMS)?)
    }

    /// The key whose set is known at run time.
    #[must_use]
    pub const fn erased(&self) -> &expanded::SigningKey {
        &self.key
    }

    /// Signs, hedged with the operating system's randomness.
    ///
    /// # Errors
    /// [`Error::Random`]; [`Error::Exhausted`].
    #[cfg(any(test, feature = "getrandom"))]
    pub fn sign(&self, message: &[u8]) -> Result<Signature<P>, Error> {
        self.key.sign(message).map(Signature::wrap)
    }
}

impl<P: ParameterSet> fmt::Debug for SigningKey<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.fmt(f)
    }
}

impl<P: ParameterSet> Keypair for SigningKey<P> {
    type VerifyingKey = VerifyingKey<P>;

    fn verifying_key(&self) -> VerifyingKey<P> {
        VerifyingKey { key: self.key.verifying_key().clone(), set: PhantomData }
    }
}

impl<P: ParameterSet> RandomizedSigner<Signature<P>> for SigningKey<P> {
    fn try_sign_with_rng<R: TryCryptoRng + ?Sized>(
        &self,
        rng: &mut R,
        message: &[u8],
    ) -> Result<Signature<P>, signature::Error> {
        let signed = self.key.sign_with(message, SignOptions::default(), rng);
        signed.map(Signature::wrap).map_err(signature::Error::from_source)
    }
}

impl<P: ParameterSet> signature::Signer<Signature<P>> for Deterministic<SigningKey<P>> {
    fn try_sign(&self, message: &[u8]) -> Result<Signature<P>, signature::Error> {
        let signed = hazmat::sign_deterministic(&self.0.key, message);
        signed.map(Signature::wrap).map_err(signature::Error::from_source)
    }
}

impl<P: ParameterSet> Keypair for Deterministic<SigningKey<P>> {
    type VerifyingKey = VerifyingKey<P>;

    fn verifying_key(&self) -> VerifyingKey<P> {
        self.0.verifying_key()
    }
}

/// An expanded verifying key of the set `P`. Clones share the expansion.
pub struct VerifyingKey<P: ParameterSet> {
    key: expanded::VerifyingKey,
    set: PhantomData<P>,
}

impl<P: ParameterSet> VerifyingKey<P> {
    /// Expands a compact key whose set is known at run time.
    ///
    /// # Errors
    /// [`Error::WrongRound`]; [`Error::WrongSet`].
    pub fn new(engine: Engine, public: &PublicKey) -> Result<VerifyingKey<P>, Error> {
        expect(P::PARAMS, public.params())?;
        Ok(VerifyingKey { key: expanded::VerifyingKey::new(engine, public), set: PhantomData })
    }

    /// A key from its compact bytes.
    ///
    /// # Errors
    /// [`Error::Length`].
    pub fn from_bytes(engine: Engine, bytes: &[u8]) -> Result<VerifyingKey<P>, Error> {
        VerifyingKey::new(engine, &PublicKey::from_bytes(P::PARAMS, bytes)?)
    }

    /// The key whose set is known at run time.
    #[must_use]
    pub const fn erased(&self) -> &expanded::VerifyingKey {
        &self.key
    }
}

impl<P: ParameterSet> Clone for VerifyingKey<P> {
    fn clone(&self) -> VerifyingKey<P> {
        VerifyingKey { key: self.key.clone(), set: PhantomData }
    }
}

impl<P: ParameterSet> PartialEq for VerifyingKey<P> {
    fn eq(&self, other: &VerifyingKey<P>) -> bool {
        self.key == other.key
    }
}

impl<P: ParameterSet> Eq for VerifyingKey<P> {}

impl<P: ParameterSet> fmt::Debug for VerifyingKey<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.fmt(f)
    }
}

impl<P: ParameterSet> Verifier<Signature<P>> for VerifyingKey<P> {
    fn verify(&self, message: &[u8], signature: &Signature<P>) -> Result<(), signature::Error> {
        self.key.verify(message, &signature.signature).map_err(|_| signature::Error::new())
    }
}

/// A signature of the set `P`.
pub struct Signature<P: ParameterSet> {
    signature: keys::Signature,
    set: PhantomData<P>,
}

impl<P: ParameterSet> Signature<P> {
    fn wrap(signature: keys::Signature) -> Signature<P> {
        Signature { signature, set: PhantomData }
    }

    /// The signature whose set is known at run time.
    #[must_use]
    pub const fn erased(&self) -> &keys::Signature {
        &self.signature
    }
}

impl<P: ParameterSet> Clone for Signature<P> {
    fn clone(&self) -> Signature<P> {
        Signature::wrap(self.signature.clone())
    }
}

impl<P: ParameterSet> PartialEq for Signature<P> {
    fn eq(&self, other: &Signature<P>) -> bool {
        self.signature == other.signature
    }
}

impl<P: ParameterSet> Eq for Signature<P> {}

impl<P: ParameterSet> fmt::Debug for Signature<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.signature.fmt(f)
    }
}

impl<P: ParameterSet> TryFrom<&[u8]> for Signature<P> {
    type Error = Error;

    fn try_from(bytes: &[u8]) -> Result<Signature<P>, Error> {
        keys::Signature::from_bytes(P::PARAMS, bytes).map(Signature::wrap)
    }
}

impl<P: ParameterSet> From<Signature<P>> for Vec<u8> {
    fn from(signature: Signature<P>) -> Vec<u8> {
        signature.signature.into_bytes()
    }
}

impl<P: ParameterSet> SignatureEncoding for Signature<P> {
    type Repr = Vec<u8>;
}
