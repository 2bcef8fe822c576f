//! Signing with a given randomizer, or with none. For known answers and special protocols.
//!
//! A signature is hedged: its salt hashes the message, the secret seed and a fresh randomizer R. Without R (all zeros)
//! signing is deterministic. That is sound by itself, but helps fault attacks, which compare two computations of the
//! same signature. So [`sign_deterministic`] verifies a signature before it returns it. One message signed with one
//! seed and one R in two rounds of MAYO reveals the secret key.
#![forbid(unsafe_code)]

use crate::backend::Engine;
use crate::error::Error;
use crate::expanded::SigningKey;
use crate::keys::{SecretKey, SignOptions, Signature};

mod sealed {
    pub trait Sealed {}
}

/// A signer: an expanded key, or a compact key with its backend.
pub trait Signer: sealed::Sealed {
    /// Signs with a given randomizer of [`crate::Params::salt_bytes`].
    ///
    /// # Errors
    /// [`Error::Length`]; [`Error::Exhausted`]; with [`SignOptions::verify`] also [`Error::Fault`].
    fn sign_with_randomizer(
        &self,
        message: &[u8],
        randomizer: &[u8],
        options: SignOptions,
    ) -> Result<Signature, Error>;

    /// Bytes of a randomizer.
    fn randomizer_bytes(&self) -> usize;
}

impl sealed::Sealed for SigningKey {}
impl Signer for SigningKey {
    fn sign_with_randomizer(
        &self,
        message: &[u8],
        randomizer: &[u8],
        options: SignOptions,
    ) -> Result<Signature, Error> {
        self.sign_randomized(message, randomizer, options)
    }

    fn randomizer_bytes(&self) -> usize {
        self.params().salt_bytes()
    }
}

impl sealed::Sealed for (Engine, &SecretKey) {}
impl Signer for (Engine, &SecretKey) {
    fn sign_with_randomizer(
        &self,
        message: &[u8],
        randomizer: &[u8],
        options: SignOptions,
    ) -> Result<Signature, Error> {
        self.1.sign_randomized(self.0, message, randomizer, options)
    }

    fn randomizer_bytes(&self) -> usize {
        self.1.params().salt_bytes()
    }
}

/// Signs with a given randomizer of [`crate::Params::salt_bytes`].
///
/// # Errors
/// [`Error::Length`]; [`Error::Exhausted`]; with [`SignOptions::verify`] also [`Error::Fault`].
pub fn sign_with_randomizer(
    signer: &impl Signer,
    message: &[u8],
    randomizer: &[u8],
    options: SignOptions,
) -> Result<Signature, Error> {
    signer.sign_with_randomizer(message, randomizer, options)
}

/// Signs with R = 0 and verifies the signature before returning it.
///
/// # Errors
/// [`Error::Exhausted`]; [`Error::Fault`].
pub fn sign_deterministic(signer: &impl Signer, message: &[u8]) -> Result<Signature, Error> {
    sign_deterministic_with(signer, message, SignOptions { verify: true })
}

/// [`sign_deterministic`] with the caller's decision on verifying.
///
/// # Errors
/// [`Error::Exhausted`]; with [`SignOptions::verify`] also [`Error::Fault`].
pub fn sign_deterministic_with(
    signer: &impl Signer,
    message: &[u8],
    options: SignOptions,
) -> Result<Signature, Error> {
    signer.sign_with_randomizer(message, &[0; 64][..signer.randomizer_bytes()], options)
}

/// A signing key whose [`signature::Signer`] signs with R = 0 and verifies before returning.
///
/// The plain key does not implement that trait, since its signatures must be hedged and the trait has no generator.
#[derive(Debug)]
pub struct Deterministic<K>(pub K);
