//! Key generation, signing and verification as chunks for a device.
#![forbid(unsafe_code)]

use core::ops::Range;

use lanework_cuda::{Device, Error as DeviceError};
use lanework_mayo::internals::batch::{Admission, Message, admit_each, draw_randomizer, hash_each, verdict};
use lanework_mayo::{Engine, Error, Params, PublicKey, SecretKey, SignOptions, Signature};
use rand_core::TryCryptoRng;
use zeroize::Zeroizing;

use super::chunks::Work;
use super::keys::{GpuSigningKeys, GpuVerifyingKeys};
use super::{Gpu, Release, Tally, expect_count, one_set};
use crate::launch::job::Job;
use crate::launch::lane::{Expanded, Lane};

/// Whose signatures a device makes.
#[derive(Clone, Copy, Debug)]
pub enum GpuSigners<'a> {
    /// A compact key for each message.
    Each(&'a [SecretKey]),
    /// One expanded key for all messages: the first of these.
    One(&'a GpuSigningKeys),
    /// For each message the number of one of these expanded keys.
    Of(&'a GpuSigningKeys, &'a [usize]),
}

/// Whose signatures a device verifies.
#[derive(Clone, Copy, Debug)]
pub enum GpuVerifiers<'a> {
    /// A compact key for each message.
    Each(&'a [PublicKey]),
    /// One expanded key for all messages: the first of these.
    One(&'a GpuVerifyingKeys),
    /// For each message the number of one of these expanded keys.
    Of(&'a GpuVerifyingKeys, &'a [usize]),
}

/// Copies equal pieces one after another.
fn pack<'a>(to: &mut [u8], each: usize, from: impl Iterator<Item = &'a [u8]>) {
    to.chunks_exact_mut(each).zip(from).for_each(|(to, from)| to.copy_from_slice(from));
}

/// Hashes the messages that are not hashed yet, on the CPU.
pub(super) fn digests<'a>(
    cpu: Engine,
    params: &Params,
    messages: impl Iterator<Item = Message<'a>>,
    to: &mut [u8],
) {
    let to = to.chunks_exact_mut(params.digest_bytes());
    hash_each(cpu.expand(), messages.zip(to).filter_map(|(message, to)| message.to_hash(to)));
}

pub(super) struct Keygen<'a> {
    pub(super) device: &'a Device,
    pub(super) cpu: Engine,
    pub(super) params: &'static Params,
    pub(super) keys: &'a [SecretKey],
    pub(super) spot_check: usize,
}

impl Work for Keygen<'_> {
    type Output = PublicKey;

    fn job(&self) -> Job {
        Job::Keygen
    }

    fn start(&self, lane: &mut Lane, chunk: Range<usize>) -> Result<(), DeviceError> {
        let seeds = self.keys[chunk.clone()].iter().map(SecretKey::expose_seed);
        pack(lane.host_seeds.write()?, self.params.salt_bytes(), seeds);
        lane.keygen(chunk.len())
    }

    fn finish(
        &self,
        lane: &mut Lane,
        chunk: Range<usize>,
        _: &mut Tally,
    ) -> Result<Vec<Option<PublicKey>>, DeviceError> {
        let bytes = lane.host_public_keys.read()?.chunks_exact(self.params.public_key_bytes());
        let made: Vec<Option<PublicKey>> =
            bytes.take(chunk.len()).map(|b| PublicKey::from_bytes(self.params, b).ok()).collect();
        for (i, key) in chunk.clone().zip(&made) {
            if self.spot_check > 0 && i % self.spot_check == 0 && Some(self.on_cpu(i)) != *key {
                self.device.condemn("a public key differs from the CPU's");
                return Ok(made.iter().map(|_| None).collect());
            }
        }
        Ok(made)
    }

    fn on_cpu(&self, i: usize) -> PublicKey {
        self.keys[i].public_key(self.cpu)
    }
}

pub(super) struct Signing<'a> {
    pub(super) device: &'a Device,
    pub(super) cpu: Engine,
    pub(super) params: &'static Params,
    pub(super) signers: GpuSigners<'a>,
    pub(super) messages: &'a [Message<'a>],
    pub(super) randomizers: &'a [Zeroizing<Vec<u8>>],
    pub(super) release: Release,
}

impl Signing<'_> {
    fn key(&self, i: usize) -> &SecretKey {
        match self.signers {
            GpuSigners::Each(keys) => &keys[i],
            GpuSigners::One(keys) => keys.key(0),
            GpuSigners::Of(keys, which) => keys.key(which[i]),
        }
    }

    fn expanded(&self) -> Option<&Expanded> {
        match self.signers {
            GpuSigners::Each(_) => None,
            GpuSigners::One(keys) | GpuSigners::Of(keys, _) => Some(keys.expanded()),
        }
    }
}

impl Work for Signing<'_> {
    type Output = Result<Signature, Error>;

    fn job(&self) -> Job {
        if self.expanded().is_some() { Job::SignExpanded } else { Job::Sign }
    }

    fn start(&self, lane: &mut Lane, chunk: Range<usize>) -> Result<(), DeviceError> {
        let set = self.params;
        let messages = self.messages[chunk.clone()].iter().copied();
        digests(self.cpu, set, messages, lane.host_digests.write()?);
        let randomizers = self.randomizers[chunk.clone()].iter().map(|r| r.as_slice());
        pack(lane.host_randomizers.write()?, set.salt_bytes(), randomizers);
        match self.signers {
            GpuSigners::Each(keys) => {
                let seeds = keys[chunk.clone()].iter().map(SecretKey::expose_seed);
                pack(lane.host_seeds.write()?, set.salt_bytes(), seeds);
            }
            GpuSigners::One(_) => lane.host_keys.write()?.fill(0),
            GpuSigners::Of(_, which) => number(lane.host_keys.write()?, &which[chunk.clone()]),
        }
        lane.sign(chunk.len(), self.expanded())
    }

    fn finish(
        &self,
        lane: &mut Lane,
        chunk: Range<usize>,
        tally: &mut Tally,
    ) -> Result<Vec<Option<Result<Signature, Error>>>, DeviceError> {
        let verify = self.release == Release::Verified;
        let signed = lane.finish_signing(chunk.len(), self.expanded(), verify)?;
        tally.restarts += signed.restarts;
        let bytes = lane.host_signatures.read()?.chunks_exact(self.params.signature_bytes());
        // The CPU tries signatures that failed all attempts, and returns the error.
        let made = |(bytes, valid): (&[u8], bool)| valid.then(|| Signature::from_bytes(self.params, bytes));
        let wrong = signed.made != signed.valid;
        let results = bytes.zip(signed.valid).map(made).collect();
        if wrong {
            self.device.condemn("a signature that it made does not verify");
        }
        Ok(results)
    }

    fn on_cpu(&self, i: usize) -> Result<Signature, Error> {
        let options = SignOptions { verify: self.release == Release::Verified };
        self.key(i).randomized(self.cpu, self.messages[i], &self.randomizers[i], options)
    }
}

fn number(to: &mut [u32], which: &[usize]) {
    // Numbers were compared with the count of keys, which a device's memory keeps far below 2^32.
    to.iter_mut().zip(which).for_each(|(to, &from)| *to = from as u32);
}

/// The messages and the signatures of a batch that goes to a device whole: for a refused item an empty message and
/// zeros, whose verdict is ignored.
pub(super) fn placed<'a>(
    admissions: &'a [Admission<'a>],
    zeros: &'a [u8],
) -> (impl Iterator<Item = Message<'a>>, impl Iterator<Item = &'a [u8]>) {
    (
        admissions.iter().map(|a| a.as_ref().map_or(Message::Whole(&[]), |a| a.message())),
        admissions.iter().map(move |a| a.as_ref().map_or(zeros, |a| a.signature())),
    )
}

pub(super) struct Verifying<'a> {
    pub(super) cpu: Engine,
    pub(super) params: &'static Params,
    pub(super) verifiers: GpuVerifiers<'a>,
    pub(super) admissions: &'a [Admission<'a>],
}

impl Verifying<'_> {
    fn key(&self, i: usize) -> &PublicKey {
        match self.verifiers {
            GpuVerifiers::Each(keys) => &keys[i],
            GpuVerifiers::One(keys) => keys.key(0),
            GpuVerifiers::Of(keys, which) => keys.key(which[i]),
        }
    }

    fn expanded(&self) -> Option<&Expanded> {
        match self.verifiers {
            GpuVerifiers::Each(_) => None,
            GpuVerifiers::One(keys) | GpuVerifiers::Of(keys, _) => Some(keys.expanded()),
        }
    }
}

impl Work for Verifying<'_> {
    type Output = Result<(), Error>;

    fn job(&self) -> Job {
        if self.expanded().is_some() { Job::VerifyExpanded } else { Job::Verify }
    }

    fn start(&self, lane: &mut Lane, chunk: Range<usize>) -> Result<(), DeviceError> {
        let set = self.params;
        let zeros = vec![0; set.signature_bytes()];
        let (messages, signatures) = placed(&self.admissions[chunk.clone()], &zeros);
        digests(self.cpu, set, messages, lane.host_digests.write()?);
        pack(lane.host_signatures.write()?, set.signature_bytes(), signatures);
        match self.verifiers {
            GpuVerifiers::Each(keys) => {
                let bytes = keys[chunk.clone()].iter().map(PublicKey::as_bytes);
                pack(lane.host_public_keys.write()?, set.public_key_bytes(), bytes);
            }
            GpuVerifiers::One(_) => lane.host_keys.write()?.fill(0),
            GpuVerifiers::Of(_, which) => number(lane.host_keys.write()?, &which[chunk.clone()]),
        }
        lane.verify(chunk.len(), self.expanded())
    }

    fn finish(
        &self,
        lane: &mut Lane,
        chunk: Range<usize>,
        _: &mut Tally,
    ) -> Result<Vec<Option<Result<(), Error>>>, DeviceError> {
        let both = self.admissions[chunk].iter().zip(lane.host_flags.read()?);
        Ok(both.map(|(admission, &flag)| Some(verdict(admission, flag == 1))).collect())
    }

    fn on_cpu(&self, i: usize) -> Result<(), Error> {
        self.key(i).judge_admission(self.cpu, &self.admissions[i])
    }
}

impl Gpu {
    /// The public keys of `keys`, all of one set.
    ///
    /// # Errors
    /// [`Error::WrongRound`] and [`Error::WrongSet`] for several sets; [`Error::Threads`].
    pub fn keygen(&self, keys: &[SecretKey]) -> Result<(Vec<PublicKey>, Tally), Error> {
        let Some(params) = one_set(keys.iter().map(SecretKey::params))? else {
            return Ok((Vec::new(), Tally::default()));
        };
        let work =
            Keygen { device: &self.device, cpu: self.cpu, params, keys, spot_check: self.options.spot_check };
        self.run(params, keys.len(), &work)
    }

    /// Signs each message, hedged with `rng`.
    ///
    /// # Errors
    /// [`Error::Count`] where lists differ in length or a number is out of range; [`Error::WrongRound`] and
    /// [`Error::WrongSet`] for keys of several sets; [`Error::Random`]; [`Error::Threads`]. The fault of one signature
    /// is that item's own result.
    pub fn sign<M: AsRef<[u8]> + Sync, R: TryCryptoRng + ?Sized>(
        &self,
        signers: GpuSigners<'_>,
        messages: &[M],
        release: Release,
        rng: &mut R,
    ) -> Result<(Vec<Result<Signature, Error>>, Tally), Error> {
        let params = match signers {
            GpuSigners::Each(keys) => {
                expect_count("keys", messages.len(), keys.len())?;
                one_set(keys.iter().map(SecretKey::params))?
            }
            GpuSigners::One(keys) => Some(keys.params()),
            GpuSigners::Of(keys, which) => {
                expect_numbers(messages.len(), keys.len(), which)?;
                Some(keys.params())
            }
        };
        let Some(params) = params.filter(|_| !messages.is_empty()) else {
            return Ok((Vec::new(), Tally::default()));
        };
        let randomizers: Vec<Zeroizing<Vec<u8>>> =
            (0..messages.len()).map(|_| draw_randomizer(params, rng)).collect::<Result<_, _>>()?;
        self.sign_randomized(params, signers, messages, &randomizers, release)
    }

    pub(crate) fn sign_randomized<M: AsRef<[u8]> + Sync>(
        &self,
        params: &'static Params,
        signers: GpuSigners<'_>,
        messages: &[M],
        randomizers: &[Zeroizing<Vec<u8>>],
        release: Release,
    ) -> Result<(Vec<Result<Signature, Error>>, Tally), Error> {
        let messages = &Message::whole(messages);
        let work =
            Signing { device: &self.device, cpu: self.cpu, params, signers, messages, randomizers, release };
        self.run(params, messages.len(), &work)
    }

    /// Verifies each signature against the message of the same index.
    ///
    /// # Errors
    /// [`Error::Count`] where lists differ in length or a number is out of range; [`Error::WrongRound`] and
    /// [`Error::WrongSet`] for keys of several sets; [`Error::Threads`]. Each item's result is its own: that of a
    /// signature of another set or round is [`Error::WrongSet`] or [`Error::WrongRound`].
    pub fn verify<M: AsRef<[u8]> + Sync>(
        &self,
        verifiers: GpuVerifiers<'_>,
        messages: &[M],
        signatures: &[Signature],
    ) -> Result<(Vec<Result<(), Error>>, Tally), Error> {
        expect_count("signatures", messages.len(), signatures.len())?;
        let params = match verifiers {
            GpuVerifiers::Each(keys) => {
                expect_count("keys", messages.len(), keys.len())?;
                one_set(keys.iter().map(PublicKey::params))?
            }
            GpuVerifiers::One(keys) => Some(keys.params()),
            GpuVerifiers::Of(keys, which) => {
                expect_numbers(messages.len(), keys.len(), which)?;
                Some(keys.params())
            }
        };
        let Some(params) = params.filter(|_| !messages.is_empty()) else {
            return Ok((Vec::new(), Tally::default()));
        };
        let messages = Message::whole(messages);
        let admissions = &admit_each(|_| params, &messages, signatures);
        let work = Verifying { cpu: self.cpu, params, verifiers, admissions };
        self.run(params, messages.len(), &work)
    }
}

/// As many numbers as messages, and each that of a key.
pub(super) fn expect_numbers(messages: usize, keys: usize, which: &[usize]) -> Result<(), Error> {
    expect_count("key numbers", messages, which.len())?;
    match which.iter().find(|&&i| i >= keys) {
        Some(&i) => Err(Error::Count { what: "expanded keys", expected: i + 1, got: keys }),
        None => Ok(()),
    }
}
