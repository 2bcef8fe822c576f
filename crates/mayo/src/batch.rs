//! Batches: many keys, signatures or verifications at once, over the caller's choice of threads.
//!
//! Results come in the order of the inputs, one for each item. All randomness is drawn on the calling thread before
//! the work starts, so that a batch with a seeded generator gives the same signatures on any number of threads.
#![forbid(unsafe_code)]

use lanework_cpu::Threads;
use rand_core::TryCryptoRng;
use zeroize::Zeroizing;

use crate::error::Error;
use crate::expanded::{SigningKey, VerifyingKey};
use crate::keys::{PublicKey, SecretKey, SignOptions, Signature, draw_randomizer};
use crate::params::Params;
use crate::scheme::Engine;

/// Whose signatures a batch makes.
#[derive(Clone, Copy, Debug)]
pub enum Signers<'a> {
    /// One expanded key for all messages.
    One(&'a SigningKey),
    /// An expanded key for each message.
    Each(&'a [SigningKey]),
    /// One compact key for all messages, expanded anew for each.
    OneCompact(Engine, &'a SecretKey),
    /// A compact key for each message.
    EachCompact(Engine, &'a [SecretKey]),
}

impl Signers<'_> {
    fn params(&self, i: usize) -> &'static Params {
        match *self {
            Signers::One(key) => key.params(),
            Signers::Each(keys) => keys[i].params(),
            Signers::OneCompact(_, key) => key.params(),
            Signers::EachCompact(_, keys) => keys[i].params(),
        }
    }

    fn expect_count(&self, expected: usize) -> Result<(), Error> {
        match *self {
            Signers::Each(keys) => expect_count("keys", expected, keys.len()),
            Signers::EachCompact(_, keys) => expect_count("keys", expected, keys.len()),
            Signers::One(_) | Signers::OneCompact(..) => Ok(()),
        }
    }

    fn sign(
        &self,
        i: usize,
        message: &[u8],
        randomizer: &[u8],
        options: SignOptions,
    ) -> Result<Signature, Error> {
        match *self {
            Signers::One(key) => key.sign_randomized(message, randomizer, options),
            Signers::Each(keys) => keys[i].sign_randomized(message, randomizer, options),
            Signers::OneCompact(engine, key) => key.sign_randomized(engine, message, randomizer, options),
            Signers::EachCompact(engine, keys) => {
                keys[i].sign_randomized(engine, message, randomizer, options)
            }
        }
    }
}

/// Whose signatures a batch verifies.
#[derive(Clone, Copy, Debug)]
pub enum Verifiers<'a> {
    /// One expanded key for all messages.
    One(&'a VerifyingKey),
    /// An expanded key for each message.
    Each(&'a [VerifyingKey]),
    /// One compact key for all messages, expanded anew for each.
    OneCompact(Engine, &'a PublicKey),
    /// A compact key for each message.
    EachCompact(Engine, &'a [PublicKey]),
}

impl Verifiers<'_> {
    fn expect_count(&self, expected: usize) -> Result<(), Error> {
        match *self {
            Verifiers::Each(keys) => expect_count("keys", expected, keys.len()),
            Verifiers::EachCompact(_, keys) => expect_count("keys", expected, keys.len()),
            Verifiers::One(_) | Verifiers::OneCompact(..) => Ok(()),
        }
    }

    fn verify(&self, i: usize, message: &[u8], signature: &Signature) -> Result<(), Error> {
        match *self {
            Verifiers::One(key) => key.verify(message, signature),
            Verifiers::Each(keys) => keys[i].verify(message, signature),
            Verifiers::OneCompact(engine, key) => key.verify(engine, message, signature),
            Verifiers::EachCompact(engine, keys) => keys[i].verify(engine, message, signature),
        }
    }
}

fn expect_count(what: &'static str, expected: usize, got: usize) -> Result<(), Error> {
    if expected == got { Ok(()) } else { Err(Error::Count { what, expected, got }) }
}

/// Fills `count` results by index. A slot that no task filled cannot be: `for_each` runs every item.
fn collect<T: Send>(
    threads: Threads<'_>,
    count: usize,
    task: impl Fn(usize) -> T + Sync,
) -> Result<Vec<T>, Error> {
    let mut slots: Vec<Option<T>> = Vec::with_capacity(count);
    slots.resize_with(count, || None);
    threads
        .for_each(&mut slots, |i, slot| *slot = Some(task(i)))
        .map_err(|e| Error::Threads(e.to_string()))?;
    Ok(slots.into_iter().flatten().collect())
}

/// The public keys of `keys`.
///
/// # Errors
/// [`Error::Threads`] if an own pool cannot be started.
pub fn keygen(engine: Engine, keys: &[SecretKey], threads: Threads<'_>) -> Result<Vec<PublicKey>, Error> {
    collect(threads, keys.len(), |i| keys[i].public_key(engine))
}

/// `count` fresh key pairs of one set.
///
/// # Errors
/// [`Error::Random`]; [`Error::Threads`].
pub fn generate<R: TryCryptoRng + ?Sized>(
    engine: Engine,
    params: &Params,
    count: usize,
    rng: &mut R,
    threads: Threads<'_>,
) -> Result<Vec<(SecretKey, PublicKey)>, Error> {
    let secret: Vec<SecretKey> =
        (0..count).map(|_| SecretKey::try_generate(params, rng)).collect::<Result<_, _>>()?;
    let public = keygen(engine, &secret, threads)?;
    Ok(secret.into_iter().zip(public).collect())
}

/// Signs each message, hedged with `rng`.
///
/// # Errors
/// [`Error::Count`] if there are keys for each message and not as many; [`Error::Random`]; [`Error::Threads`]. What goes
/// wrong with one signature is that item's own result.
pub fn sign<M: AsRef<[u8]> + Sync, R: TryCryptoRng + ?Sized>(
    signers: Signers<'_>,
    messages: &[M],
    options: SignOptions,
    rng: &mut R,
    threads: Threads<'_>,
) -> Result<Vec<Result<Signature, Error>>, Error> {
    signers.expect_count(messages.len())?;
    let randomizers: Vec<Zeroizing<Vec<u8>>> =
        (0..messages.len()).map(|i| draw_randomizer(signers.params(i), rng)).collect::<Result<_, _>>()?;
    collect(threads, messages.len(), |i| signers.sign(i, messages[i].as_ref(), &randomizers[i], options))
}

/// Verifies each signature against the message of the same index.
///
/// # Errors
/// [`Error::Count`] if the lists differ in length; [`Error::Threads`]. Whether one signature is valid is that item's own
/// result.
pub fn verify<M: AsRef<[u8]> + Sync>(
    verifiers: Verifiers<'_>,
    messages: &[M],
    signatures: &[Signature],
    threads: Threads<'_>,
) -> Result<Vec<Result<(), Error>>, Error> {
    verifiers.expect_count(messages.len())?;
    expect_count("signatures", messages.len(), signatures.len())?;
    collect(threads, messages.len(), |i| verifiers.verify(i, messages[i].as_ref(), &signatures[i]))
}
