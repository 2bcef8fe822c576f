//! Expanded keys: everything that depends only on the key, computed once, in one backend's layout.
//!
//! They live in memory only. Files hold the compact key; the layout is private to the backend.
#![forbid(unsafe_code)]

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use once_cell::race::OnceBox;
use rand_core::TryCryptoRng;

use crate::backend::Engine;
use crate::digest::Message;
use crate::error::Error;
use crate::keys::{PublicKey, SecretKey, SignOptions, Signature, draw_randomizer, emit, sign_raw};
use crate::params::Params;
use crate::scheme::{self, PublicSource, SecretSource};
use crate::sys::{Block, wipe, wipe_blocks};
use crate::verify::{self, Admitted};

/// A secret key with O and the backend's layout of P1 and L. Everything secret is wiped when it is dropped.
pub struct SigningKey {
    engine: Engine,
    secret: SecretKey,
    o: Box<[u8]>,
    layout: Vec<Block>,
    verifying: OnceBox<VerifyingKey>,
}

impl SigningKey {
    /// Expands `secret` for `engine`.
    #[must_use]
    pub fn new(engine: Engine, secret: &SecretKey) -> SigningKey {
        let params = secret.params();
        let mut o = vec![0; params.v() * params.o()].into_boxed_slice();
        let layout = scheme::expand_secret(engine.kernels().scheme(params), secret.expose_seed(), &mut o);
        SigningKey { engine, secret: secret.clone(), o, layout, verifying: OnceBox::new() }
    }

    /// The set and round.
    #[must_use]
    pub const fn params(&self) -> &'static Params {
        self.secret.params()
    }

    /// The backend that it was expanded for.
    #[must_use]
    pub const fn engine(&self) -> Engine {
        self.engine
    }

    /// The compact key.
    #[must_use]
    pub const fn secret_key(&self) -> &SecretKey {
        &self.secret
    }

    /// Heap bytes of the expanded form.
    #[must_use]
    pub fn expanded_bytes(&self) -> usize {
        self.o.len() + self.layout.len() * size_of::<Block>()
    }

    /// The public half, expanded. It is computed on first use, and kept.
    #[must_use]
    pub fn verifying_key(&self) -> &VerifyingKey {
        self.verifying
            .get_or_init(|| Box::new(VerifyingKey::new(self.engine, &self.secret.public_key(self.engine))))
    }

    /// Signs, hedged with the operating system's randomness.
    ///
    /// # Errors
    /// [`Error::Random`]; [`Error::Exhausted`].
    #[cfg(any(test, feature = "getrandom"))]
    pub fn sign(&self, message: &[u8]) -> Result<Signature, Error> {
        self.sign_with(message, SignOptions::default(), &mut getrandom::SysRng)
    }

    /// Signs, hedged with `rng`.
    ///
    /// # Errors
    /// [`Error::Random`]; [`Error::Exhausted`]; with [`SignOptions::verify`] also [`Error::Fault`].
    pub fn sign_with<R: TryCryptoRng + ?Sized>(
        &self,
        message: &[u8],
        options: SignOptions,
        rng: &mut R,
    ) -> Result<Signature, Error> {
        let randomizer = draw_randomizer(self.params(), rng)?;
        self.sign_randomized(message, &randomizer, options)
    }

    /// NIST's signed message: the signature, then the message.
    ///
    /// # Errors
    /// As [`SigningKey::sign`].
    #[cfg(any(test, feature = "getrandom"))]
    pub fn sign_message(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        Ok(self.sign(message)?.before(message))
    }

    pub(crate) fn source(&self) -> SecretSource<'_> {
        SecretSource::Expanded { o: &self.o, layout: &self.layout }
    }

    pub(crate) fn sign_randomized(
        &self,
        message: &[u8],
        randomizer: &[u8],
        options: SignOptions,
    ) -> Result<Signature, Error> {
        let message = Message::Whole(message);
        let signature = sign_raw(self.engine, &self.secret, self.source(), message, randomizer)?;
        if !options.verify {
            return Ok(signature);
        }
        let valid = self.verifying_key().judge(message, &signature).is_ok();
        emit(signature, valid)
    }
}

impl Drop for SigningKey {
    fn drop(&mut self) {
        wipe(&mut self.o);
        wipe_blocks(&mut self.layout);
    }
}

impl zeroize::ZeroizeOnDrop for SigningKey {}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({}, {}, ..)", self.params().name(), self.engine.name())
    }
}

/// A public key with the backend's layout of P1, P2 and P3. Clones share it.
#[derive(Clone)]
pub struct VerifyingKey(Arc<Expanded>);

struct Expanded {
    engine: Engine,
    public: PublicKey,
    layout: Vec<Block>,
}

impl VerifyingKey {
    /// Expands `public` for `engine`.
    #[must_use]
    pub fn new(engine: Engine, public: &PublicKey) -> VerifyingKey {
        let layout = scheme::expand_public(engine.kernels().scheme(public.params()), public.as_bytes());
        VerifyingKey(Arc::new(Expanded { engine, public: public.clone(), layout }))
    }

    /// The set and round.
    #[must_use]
    pub fn params(&self) -> &'static Params {
        self.0.public.params()
    }

    /// The backend that it was expanded for.
    #[must_use]
    pub fn engine(&self) -> Engine {
        self.0.engine
    }

    /// The compact key.
    #[must_use]
    pub fn public_key(&self) -> &PublicKey {
        &self.0.public
    }

    /// Heap bytes of the expanded form.
    #[must_use]
    pub fn expanded_bytes(&self) -> usize {
        self.0.layout.len() * size_of::<Block>()
    }

    /// Verifies.
    ///
    /// # Errors
    /// [`Error::WrongRound`] and [`Error::WrongSet`] if the signature belongs elsewhere; [`Error::Refused`] if it is
    /// not valid.
    pub fn verify(&self, message: &[u8], signature: &Signature) -> Result<(), Error> {
        self.judge(Message::Whole(message), signature)
    }

    /// The message in NIST's signed message, if its signature is valid.
    ///
    /// # Errors
    /// [`Error::Length`] if there is no room for a signature; [`Error::Refused`].
    pub fn open<'a>(&self, signed_message: &'a [u8]) -> Result<&'a [u8], Error> {
        let (signature, message) = Signature::split(self.params(), signed_message)?;
        self.verify(message, &signature).map(|()| message)
    }

    pub(crate) fn source(&self) -> PublicSource<'_> {
        PublicSource::Expanded(&self.0.layout)
    }

    fn judge(&self, message: Message<'_>, signature: &Signature) -> Result<(), Error> {
        let admission = Admitted::new(self.params(), message, signature);
        verify::one(self.engine().kernels().scheme(self.params()), self.source(), &admission)
    }
}

impl PartialEq for VerifyingKey {
    fn eq(&self, other: &VerifyingKey) -> bool {
        self.0.public == other.0.public
    }
}

impl Eq for VerifyingKey {}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerifyingKey({:?}, {})", self.0.public, self.0.engine.name())
    }
}
