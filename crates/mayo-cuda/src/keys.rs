//! Expanded keys that stay on the device, and the self-test before any other use.
#![forbid(unsafe_code)]

use std::sync::Arc;

use lanework_cuda::{Buffer, Error as DeviceError};
use lanework_mayo::hazmat::sign_with_randomizer;
use lanework_mayo::internals::batch::{Message, admit_each};
use lanework_mayo::{Error, Params, PublicKey, SecretKey, SignOptions, Signature};
use zeroize::Zeroizing;

use super::chunks::Work;
use super::operations::{Signing, Verifying};
use super::{Expand, Gpu, GpuError, GpuSigners, GpuVerifiers, Multiply, Release, Tally, one_set};
use crate::launch::fuse::Plan;
use crate::launch::job::Job;
use crate::launch::kernels::Kernels;
use crate::launch::lane::{Expanded, Lane};
use crate::launch::shape;

/// Secret keys with P1, P2, P3 and L on a device, overwritten before they are freed.
#[derive(Debug)]
pub struct GpuSigningKeys {
    params: &'static Params,
    keys: Vec<SecretKey>,
    public: Vec<PublicKey>,
    expanded: Expanded,
}

/// Public keys with P1, P2 and P3 on a device.
#[derive(Debug)]
pub struct GpuVerifyingKeys {
    pub(super) params: &'static Params,
    pub(super) keys: Vec<PublicKey>,
    pub(super) expanded: Expanded,
}

impl GpuSigningKeys {
    /// The set and round.
    #[must_use]
    pub const fn params(&self) -> &'static Params {
        self.params
    }
    /// The number of keys.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.keys.len()
    }
    /// Whether there are no keys, which does not happen.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
    /// The public halves, one of them checked by the CPU.
    #[must_use]
    pub fn public_keys(&self) -> &[PublicKey] {
        &self.public
    }
    /// Bytes of device memory.
    #[must_use]
    pub fn device_bytes(&self) -> usize {
        self.expanded.p.len() * 4 + self.expanded.hashes.len() + self.expanded.seeds.len()
    }
    pub(super) fn key(&self, i: usize) -> &SecretKey {
        &self.keys[i]
    }
    pub(super) const fn expanded(&self) -> &Expanded {
        &self.expanded
    }
}

impl GpuVerifyingKeys {
    /// The set and round.
    #[must_use]
    pub const fn params(&self) -> &'static Params {
        self.params
    }
    /// The number of keys.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.keys.len()
    }
    /// Whether there are no keys, which does not happen.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
    /// Bytes of device memory.
    #[must_use]
    pub fn device_bytes(&self) -> usize {
        self.expanded.bits.as_ref().map_or(self.expanded.p.len(), Buffer::len) * 4
    }
    /// How the device computes with them.
    #[must_use]
    pub const fn multiply(&self) -> Multiply {
        if self.expanded.bits.is_some() { Multiply::Bits } else { Multiply::Masks }
    }
    pub(super) fn key(&self, i: usize) -> &PublicKey {
        &self.keys[i]
    }
    pub(super) const fn expanded(&self) -> &Expanded {
        &self.expanded
    }
}

fn lost(why: impl core::fmt::Display) -> GpuError {
    GpuError::Unusable(why.to_string())
}

impl Gpu {
    /// Expands secret keys of one set on the device. The CPU does not replace the device here: use
    /// [`lanework_mayo::SigningKey`] without one.
    ///
    /// # Errors
    /// [`GpuError::Batch`] with [`Error::Count`] for no keys, and with [`Error::WrongRound`] or [`Error::WrongSet`] for
    /// several sets; [`GpuError::Unusable`].
    pub fn expand_secret(&self, keys: &[SecretKey]) -> Result<GpuSigningKeys, GpuError> {
        let params = one_set(keys.iter().map(SecretKey::params))?.ok_or(NO_KEYS)?;
        let kernels = self.kernels(params).map_err(lost)?;
        let (expanded, public) = self.expand_seeds(&kernels, keys).map_err(lost)?;
        if self.options.spot_check > 0 && keys[0].public_key(self.cpu) != public[0] {
            self.device.condemn("a public key differs from the CPU's");
            return Err(lost("an expanded key differs from the CPU's"));
        }
        Ok(GpuSigningKeys { params, keys: keys.to_vec(), public, expanded })
    }

    /// Expands public keys of one set on the device, and lays them out by
    /// [`Options::multiply`](super::Options::multiply), as far as the device supports it.
    ///
    /// # Errors
    /// As for [`Gpu::expand_secret`].
    pub fn expand_public(&self, keys: &[PublicKey]) -> Result<GpuVerifyingKeys, GpuError> {
        let params = one_set(keys.iter().map(PublicKey::params))?.ok_or(NO_KEYS)?;
        let kernels = self.kernels(params).map_err(lost)?;
        let multiply = self.options.multiply.used_on(self.device.card());
        if multiply == Multiply::Bits {
            self.bits_are_right(&kernels).map_err(lost)?;
        }
        let expanded = self.expand_public_keys(&kernels, keys, multiply).map_err(lost)?;
        Ok(GpuVerifyingKeys { params, keys: keys.to_vec(), expanded })
    }

    fn room(&self, params: &Params, count: usize, secret: bool) -> Result<Expanded, DeviceError> {
        let device = &self.device;
        let total = if secret { shape::secret_vecs(params) } else { shape::public_vecs(params) };
        let words = count * total * shape::words(params);
        let own = |each: usize| if secret { count * each } else { 1 };
        self.kept.or_release(|| {
            Ok(Expanded {
                total,
                p: if secret { device.secret(words)? } else { device.buffer(words)? },
                hashes: device.secret(own(shape::seed(params)))?,
                seeds: device.secret(own(params.salt_bytes()))?,
                bits: None,
            })
        })
    }

    fn expand_seeds(
        &self,
        kernels: &Arc<Kernels>,
        keys: &[SecretKey],
    ) -> Result<(Expanded, Vec<PublicKey>), DeviceError> {
        let params = kernels.params;
        let expanded = self.room(params, keys.len(), true)?;
        let mut lane = self.one_lane(kernels, Job::Expand, keys.len())?;
        let mut public = Vec::with_capacity(keys.len());
        let chunks = keys.chunks(lane.capacity);
        for (chunk, at) in chunks.zip((0..).step_by(lane.capacity)) {
            let seeds = lane.host_seeds.write()?.chunks_exact_mut(params.salt_bytes());
            seeds.zip(chunk).for_each(|(to, key)| to.copy_from_slice(key.expose_seed()));
            lane.expand_secret(chunk.len(), &expanded, at)?;
            let bytes = lane.host_public_keys.read()?.chunks_exact(params.public_key_bytes());
            for bytes in bytes.take(chunk.len()) {
                let key = PublicKey::from_bytes(params, bytes);
                public.push(key.map_err(|e| DeviceError::Shape(e.to_string()))?);
            }
        }
        Ok((expanded, public))
    }

    pub(super) fn expand_public_keys(
        &self,
        kernels: &Arc<Kernels>,
        keys: &[PublicKey],
        multiply: Multiply,
    ) -> Result<Expanded, DeviceError> {
        let params = kernels.params;
        // Keys for products of bits are first expanded, a few at a time, to a separate place.
        let room = if multiply == Multiply::Bits { keys.len().min(STAGED) } else { keys.len() };
        let mut expanded = self.room(params, room, false)?;
        let bits = match multiply {
            Multiply::Masks => None,
            Multiply::Bits => {
                let words = keys.len() * shape::Bits::of(params).key;
                Some(self.kept.or_release(|| self.device.buffer(words))?)
            }
        };
        let mut lane = self.one_lane(kernels, Job::Expand, room)?;
        let chunks = keys.chunks(lane.capacity);
        for (chunk, at) in chunks.zip((0..).step_by(lane.capacity)) {
            let bytes = lane.host_public_keys.write()?.chunks_exact_mut(params.public_key_bytes());
            bytes.zip(chunk).for_each(|(to, key)| to.copy_from_slice(key.as_bytes()));
            match &bits {
                None => lane.expand_public(chunk.len(), &expanded, at)?,
                Some(bits) => {
                    lane.expand_public(chunk.len(), &expanded, 0)?;
                    lane.lay(&expanded, 0..chunk.len(), bits, at)?;
                }
            }
        }
        lane.finish()?;
        if bits.is_some() {
            expanded.p = self.device.buffer(1)?;
            expanded.bits = bits;
        }
        Ok(expanded)
    }

    fn one_lane(&self, kernels: &Arc<Kernels>, job: Job, count: usize) -> Result<Lane, DeviceError> {
        let mut lanes = self.lanes(kernels, job, count.min(self.options.chunk), &mut Tally::default())?;
        lanes.pop().ok_or_else(|| DeviceError::Shape("no lane".to_owned()))
    }

    /// Two keys, signatures with compact and expanded keys, and verdicts on these and on a corrupted one, all against
    /// the CPU.
    pub(super) fn self_test(&self, kernels: &Arc<Kernels>, expand: Expand) -> Result<(), String> {
        let params = kernels.params;
        let (device, cpu) = (&self.device, self.cpu);
        let seed = |fill: u8| vec![fill; params.salt_bytes()];
        let key = |fill| SecretKey::from_seed(params, &seed(fill)).map_err(|e| e.to_string());
        let keys = [key(0x5a)?, key(0xc3)?];
        let messages = [&b"self-test"[..], b"of a device"];
        let randomizers = [Zeroizing::new(seed(1)), Zeroizing::new(seed(2))];
        let (expanded, public) = self.expand_seeds(kernels, &keys).map_err(|e| e.to_string())?;
        let held = GpuSigningKeys { params, keys: keys.to_vec(), public: public.clone(), expanded };
        if public.iter().zip(&keys).any(|(public, key)| *public != key.public_key(cpu)) {
            return Err(format!("the self-test's public keys of {} differ from the CPU's", params.name()));
        }
        for signers in [GpuSigners::Each(&keys), GpuSigners::Of(&held, &[0, 1])] {
            let (messages, randomizers, release) =
                (&Message::whole(&messages), &randomizers, Release::Verified);
            let work = Signing { device, cpu, params, signers, messages, randomizers, release };
            let made = self.alone(kernels, expand, &work)?;
            for (i, made) in made.into_iter().enumerate() {
                let options = SignOptions::default();
                let expected = keys[i].randomized(cpu, messages[i], &randomizers[i], options);
                if made != Some(expected) {
                    return Err(format!(
                        "the self-test's signatures of {} differ from the CPU's",
                        params.name()
                    ));
                }
            }
        }
        let mut signatures = Vec::new();
        for (key, (message, randomizer)) in keys.iter().zip(messages.iter().zip(&randomizers)) {
            let made = sign_with_randomizer(&(cpu, key), message, randomizer, SignOptions::default());
            signatures.push(made.map_err(|e| e.to_string())?);
        }
        let mut spoilt = signatures[1].clone().into_bytes();
        spoilt[0] ^= 1;
        signatures[1] = Signature::from_bytes(params, &spoilt).map_err(|e| e.to_string())?;
        let admissions = &admit_each(|_| params, &Message::whole(&messages), &signatures);
        let work = Verifying { cpu, params, verifiers: GpuVerifiers::Each(&public), admissions };
        if self.alone(kernels, expand, &work)? != [Some(Ok(())), Some(Err(Error::Refused))] {
            return Err(format!("the self-test's verdicts of {} differ from the CPU's", params.name()));
        }
        Ok(())
    }

    /// Two operations on their own lane.
    pub(super) fn alone<W: Work>(
        &self,
        kernels: &Arc<Kernels>,
        expand: Expand,
        work: &W,
    ) -> Result<Vec<Option<W::Output>>, String> {
        let plan = Plan::new(self.device.card(), kernels, work.job(), expand);
        let once = || -> Result<_, DeviceError> {
            let mut lane = Lane::new(&self.device, kernels, work.job(), 2, 2, plan)?;
            work.start(&mut lane, 0..2)?;
            work.finish(&mut lane, 0..2, &mut Tally::default())
        };
        once().map_err(|e| e.to_string())
    }
}

/// Keys that are expanded together before they are laid as bits.
const STAGED: usize = 64;

const NO_KEYS: Error = Error::Count { what: "keys", expected: 1, got: 0 };
