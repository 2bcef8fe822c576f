//! Batches: many keys, signatures or verifications at once, over the caller's choice of threads.
//!
//! Results come in the order of the inputs, one for each item. All randomness is drawn on the calling thread before
//! the work starts, so that a batch with a seeded generator gives the same signatures on any number of threads.
//!
//! A thread takes a group of neighbouring items, as many as its backend hashes side by side, and fewer where another
//! thread would otherwise have none. Results are those of the single calls. A group's secrets stay in the thread's workspace
//! until its last item is done.
#![forbid(unsafe_code)]

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use lanework_cpu::Threads;
use rand_core::TryCryptoRng;
use zeroize::Zeroizing;

use crate::backend::Engine;
use crate::digest::{Message, MessageDigest};
use crate::error::Error;
use crate::expanded::{SigningKey, VerifyingKey};
use crate::keys::{PublicKey, SecretKey, SignOptions, Signature, draw_randomizer, emit};
use crate::params::Params;
use crate::scheme::{self, KeygenItem, PublicSource, SecretSource, SignItem};
use crate::verify::{self, Admission};

#[cfg(test)]
mod tests;

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

    /// The backend, the compact key and the matrices for item `i`.
    fn key(&self, i: usize) -> (Engine, &SecretKey, SecretSource<'_>) {
        fn expanded(key: &SigningKey) -> (Engine, &SecretKey, SecretSource<'_>) {
            (key.engine(), key.secret_key(), key.source())
        }
        match *self {
            Signers::One(key) => expanded(key),
            Signers::Each(keys) => expanded(&keys[i]),
            Signers::OneCompact(engine, key) => (engine, key, SecretSource::Compact),
            Signers::EachCompact(engine, keys) => (engine, &keys[i], SecretSource::Compact),
        }
    }

    /// The public key under which item `i` is verified after signing, unless it is expanded already.
    fn verifying_key(&self, i: usize) -> Option<&VerifyingKey> {
        match *self {
            Signers::One(key) => Some(key.verifying_key()),
            Signers::Each(keys) => Some(keys[i].verifying_key()),
            Signers::OneCompact(..) | Signers::EachCompact(..) => None,
        }
    }

    /// Signs neighbouring items, all of one backend and one set, from item `start` on.
    fn sign(
        &self,
        start: usize,
        messages: &[Message<'_>],
        randomizers: &[Zeroizing<Vec<u8>>],
        options: SignOptions,
    ) -> Vec<Result<Signature, Error>> {
        let (engine, first, _) = self.key(start);
        let params = first.params();
        let mut signatures: Vec<Vec<u8>> =
            messages.iter().map(|_| vec![0; params.signature_bytes()]).collect();
        let inputs = messages.iter().zip(randomizers).zip(&mut signatures);
        let mut items: Vec<SignItem<'_>> = inputs
            .zip(start..)
            .map(|(((&message, randomizer), signature), i)| {
                let (_, key, source) = self.key(i);
                let seed_sk = key.expose_seed();
                SignItem { seed_sk, source, message, randomizer, signature, made: false }
            })
            .collect();
        scheme::sign_group(engine.kernels().scheme(params), &mut items);
        let made: Vec<bool> = items.iter().map(|item| item.made).collect();
        let signatures: Vec<Signature> =
            signatures.into_iter().map(|bytes| Signature::made(params, bytes)).collect();
        let valid = if options.verify {
            self.hold(engine, params, start, messages, &signatures)
        } else {
            vec![true; made.len()]
        };
        let outcomes = made.into_iter().zip(valid);
        let finish =
            |(signature, (made, valid))| if made { emit(signature, valid) } else { Err(Error::Exhausted) };
        signatures.into_iter().zip(outcomes).map(finish).collect()
    }

    /// Whether fresh signatures are valid, from item `start` on.
    fn hold(
        &self,
        engine: Engine,
        params: &'static Params,
        start: usize,
        messages: &[Message<'_>],
        signatures: &[Signature],
    ) -> Vec<bool> {
        let verifying: Vec<Option<&VerifyingKey>> =
            (start..start + messages.len()).map(|i| self.verifying_key(i)).collect();
        // A batch has only compact or only expanded keys: either all are needed, or none.
        let compact = match verifying.first() {
            Some(None) => public_keys(engine, params, (start..start + messages.len()).map(|i| self.key(i).1)),
            _ => Vec::new(),
        };
        let source = |at: usize| match verifying[at] {
            Some(key) => key.source(),
            None => PublicSource::Compact(compact[at].as_bytes()),
        };
        let admissions = verify::admit_each(|_| params, messages, signatures);
        verify::group(engine.kernels().scheme(params), source, &admissions)
            .iter()
            .map(Result::is_ok)
            .collect()
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

    /// The backend, the set and the matrices for item `i`.
    fn key(&self, i: usize) -> (Engine, &'static Params, PublicSource<'_>) {
        fn expanded(key: &VerifyingKey) -> (Engine, &'static Params, PublicSource<'_>) {
            (key.engine(), key.params(), key.source())
        }
        fn compact(engine: Engine, key: &PublicKey) -> (Engine, &'static Params, PublicSource<'_>) {
            (engine, key.params(), PublicSource::Compact(key.as_bytes()))
        }
        match *self {
            Verifiers::One(key) => expanded(key),
            Verifiers::Each(keys) => expanded(&keys[i]),
            Verifiers::OneCompact(engine, key) => compact(engine, key),
            Verifiers::EachCompact(engine, keys) => compact(engine, &keys[i]),
        }
    }

    /// Verifies neighbouring items, all of one backend and one set, from item `start` on.
    fn verify(&self, start: usize, admissions: &[Admission<'_>]) -> Vec<Result<(), Error>> {
        let (engine, params, _) = self.key(start);
        verify::group(engine.kernels().scheme(params), |at| self.key(start + at).2, admissions)
    }
}

pub(crate) fn expect_count(what: &'static str, expected: usize, got: usize) -> Result<(), Error> {
    if expected == got { Ok(()) } else { Err(Error::Count { what, expected, got }) }
}

/// The sizes of the groups of `count` items, in order: `lanes` each on one thread. On several threads, all get the same number of
/// groups, with sizes near `lanes` that differ by at most one.
fn group_sizes(count: usize, lanes: usize, threads: usize) -> impl Iterator<Item = usize> {
    let lanes = lanes.max(1);
    let groups = match threads {
        0 | 1 => count.div_ceil(lanes),
        _ => (threads * count.div_ceil(threads * lanes)).min(count),
    };
    (0..groups).map(move |g| {
        if threads <= 1 {
            lanes.min(count - g * lanes)
        } else {
            (g + 1) * count / groups - g * count / groups
        }
    })
}

/// Fills `count` results in groups of neighbouring items; `task` gets the first item's index and their number, and
/// returns a result for each. `lanes` is the number of items that an item's backend takes at a time; `alike` says
/// whether an item may join the group of the previous item.
fn collect<T: Send>(
    threads: Threads<'_>,
    count: usize,
    lanes: usize,
    alike: impl Fn(usize) -> bool + Sync,
    task: impl Fn(usize, usize) -> Vec<T> + Sync,
) -> Result<Vec<T>, Error> {
    let mut groups: Vec<(usize, usize, Vec<T>)> = group_sizes(count, lanes, threads.count())
        .scan(0, |start, size| {
            *start += size;
            Some((*start - size, size, Vec::with_capacity(size)))
        })
        .collect();
    threads
        .for_each(&mut groups, |_, (start, size, made)| {
            let end = *start + *size;
            let mut from = *start;
            while from < end {
                let next = (from + 1..end).find(|&i| !alike(i)).unwrap_or(end);
                made.extend(task(from, next - from));
                from = next;
            }
        })
        .map_err(|e| Error::Threads(e.to_string()))?;
    Ok(groups.into_iter().flat_map(|(_, _, made)| made).collect())
}

/// The public keys of neighbouring secret keys, all of one set.
fn public_keys<'a>(
    engine: Engine,
    params: &'static Params,
    keys: impl ExactSizeIterator<Item = &'a SecretKey>,
) -> Vec<PublicKey> {
    let mut made: Vec<Vec<u8>> = (0..keys.len()).map(|_| vec![0; params.public_key_bytes()]).collect();
    let item = |(key, public_key): (&'a SecretKey, _)| KeygenItem { seed_sk: key.expose_seed(), public_key };
    let mut items: Vec<KeygenItem<'_>> = keys.zip(made.iter_mut().map(Vec::as_mut_slice)).map(item).collect();
    scheme::keygen_group(engine.kernels().scheme(params), &mut items);
    made.into_iter().map(|bytes| PublicKey::made(params, bytes)).collect()
}

/// The public keys of `keys`.
///
/// # Errors
/// [`Error::Threads`] if [`Threads::Own`]'s pool cannot be started.
pub fn keygen(engine: Engine, keys: &[SecretKey], threads: Threads<'_>) -> Result<Vec<PublicKey>, Error> {
    let alike = |i: usize| keys[i].params().index() == keys[i - 1].params().index();
    collect(threads, keys.len(), engine.expand().lanes(), alike, |start, size| {
        public_keys(engine, keys[start].params(), keys[start..start + size].iter())
    })
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
/// [`Error::Count`] if a list of keys is given that is not as long as `messages`; [`Error::Random`]; [`Error::Threads`]. The
/// fault of one signature is that item's own result.
pub fn sign<M: AsRef<[u8]> + Sync, R: TryCryptoRng + ?Sized>(
    signers: Signers<'_>,
    messages: &[M],
    options: SignOptions,
    rng: &mut R,
    threads: Threads<'_>,
) -> Result<Vec<Result<Signature, Error>>, Error> {
    sign_each(signers, &Message::whole(messages), options, rng, threads)
}

/// [`sign`] for messages that were hashed piece by piece, so that the batch holds none of them in memory.
///
/// # Errors
/// As for [`sign`]; [`Error::WrongRound`] and [`Error::WrongSet`] if a digest does not belong to its key's set.
pub fn sign_digests<R: TryCryptoRng + ?Sized>(
    signers: Signers<'_>,
    digests: &[MessageDigest],
    options: SignOptions,
    rng: &mut R,
    threads: Threads<'_>,
) -> Result<Vec<Result<Signature, Error>>, Error> {
    sign_each(signers, &Message::hashed(digests), options, rng, threads)
}

fn sign_each<R: TryCryptoRng + ?Sized>(
    signers: Signers<'_>,
    messages: &[Message<'_>],
    options: SignOptions,
    rng: &mut R,
    threads: Threads<'_>,
) -> Result<Vec<Result<Signature, Error>>, Error> {
    signers.expect_count(messages.len())?;
    messages.iter().enumerate().try_for_each(|(i, message)| message.expect(signers.params(i)))?;
    let randomizers: Vec<Zeroizing<Vec<u8>>> =
        (0..messages.len()).map(|i| draw_randomizer(signers.params(i), rng)).collect::<Result<_, _>>()?;
    if messages.is_empty() {
        return Ok(Vec::new());
    }
    let alike = |i: usize| {
        let ((engine, key, _), (before, neighbour, _)) = (signers.key(i), signers.key(i - 1));
        engine == before && key.params().index() == neighbour.params().index()
    };
    let lanes = signers.key(0).0.expand().lanes();
    collect(threads, messages.len(), lanes, alike, |start, size| {
        let (randomizers, messages) = (&randomizers[start..start + size], &messages[start..start + size]);
        signers.sign(start, messages, randomizers, options)
    })
}

/// Verifies each signature against the message of the same index.
///
/// # Errors
/// [`Error::Count`] if the lists differ in length; [`Error::Threads`]. Each item's result is its own: that of a
/// signature or a digest of another set or round is [`Error::WrongSet`] or [`Error::WrongRound`].
pub fn verify<M: AsRef<[u8]> + Sync>(
    verifiers: Verifiers<'_>,
    messages: &[M],
    signatures: &[Signature],
    threads: Threads<'_>,
) -> Result<Vec<Result<(), Error>>, Error> {
    verify_each(verifiers, &Message::whole(messages), signatures, threads)
}

/// [`verify`] for messages that were hashed piece by piece.
///
/// # Errors
/// As for [`verify`].
pub fn verify_digests(
    verifiers: Verifiers<'_>,
    digests: &[MessageDigest],
    signatures: &[Signature],
    threads: Threads<'_>,
) -> Result<Vec<Result<(), Error>>, Error> {
    verify_each(verifiers, &Message::hashed(digests), signatures, threads)
}

fn verify_each(
    verifiers: Verifiers<'_>,
    messages: &[Message<'_>],
    signatures: &[Signature],
    threads: Threads<'_>,
) -> Result<Vec<Result<(), Error>>, Error> {
    verifiers.expect_count(messages.len())?;
    expect_count("signatures", messages.len(), signatures.len())?;
    if messages.is_empty() {
        return Ok(Vec::new());
    }
    let alike = |i: usize| {
        let ((engine, params, _), (before, neighbour, _)) = (verifiers.key(i), verifiers.key(i - 1));
        engine == before && params.index() == neighbour.index()
    };
    let admissions = verify::admit_each(|i| verifiers.key(i).1, messages, signatures);
    let lanes = verifiers.key(0).0.expand().lanes();
    collect(threads, messages.len(), lanes, alike, |start, size| {
        verifiers.verify(start, &admissions[start..start + size])
    })
}
