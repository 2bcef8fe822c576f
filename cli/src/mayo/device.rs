//! The jobs on the devices that `--device` asks for; the CPU does what a device fails at.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use getrandom::SysRng;
use lanework_mayo::{Engine, Error, MessageDigest, Params, PublicKey, SecretKey, Signature};
use lanework_mayo_cuda::{
    Expand, Fleet, FleetSigners, FleetSigningKeys, FleetVerifiers, FleetVerifyingKeys, GpuError, Multiply,
    Options, Release, Tally, check,
};
use lanework_study::{Failure, Message};
use lanework_suite::Job;
use lanework_suite::mayo::Operation;

use crate::tune::{DeviceChoices, DevicePrint, DeviceUse};
use crate::ui::Session;

/// Files that go to the devices together, as digests.
pub(super) const GROUP: usize = 4096;
/// One public key in this many is also computed on the CPU.
const SPOT_CHECK: usize = 256;

/// Devices in use, and what they have done.
pub(super) struct Devices {
    fleet: Fleet,
    done: Vec<Tally>,
    /// What `tune` found for these devices.
    tuned: BTreeMap<Job, DeviceUse>,
}

/// A named device is used for every batch size until its pace is known.
const UNTUNED: Options =
    Options { spot_check: SPOT_CHECK, expand: Expand::Fused, multiply: Multiply::Bits, ..check::ALONE };

impl Devices {
    /// The devices asked for, if any.
    pub(super) fn asked(session: &Session, cpu: Engine) -> Result<Option<Devices>, Failure> {
        if !session.context.device.is_asked() {
            return Ok(None);
        }
        let fleet = lanework_suite::mayo::cuda::fleet(&session.context, cpu).map_err(Failure::unavailable)?;
        let here = DevicePrint::of(fleet.gpus().iter().map(|gpu| gpu.device().card()));
        let profile = session.profile.as_ref().ok().and_then(Option::as_ref);
        let used =
            |(job, choices): (&Job, &DeviceChoices)| choices.used(&here, UNTUNED).map(|used| (*job, used));
        let tuned = profile.into_iter().flat_map(|p| &p.devices).filter_map(used).collect();
        Ok(Some(Devices { done: vec![Tally::default(); fleet.gpus().len()], fleet, tuned }))
    }

    /// Sets the devices up as was found best for an operation.
    fn set(&mut self, params: Option<&'static Params>, operation: Operation) {
        let choice = params.and_then(|params| self.tuned.get(&Job::Mayo(params, operation)));
        self.fleet.set_options(choice.map_or(UNTUNED, |choice| choice.options));
        // There is one weight per device, since they were found for these devices.
        let weights = choice.and_then(|choice| choice.weights.as_deref());
        if weights.is_none_or(|weights| self.fleet.set_weights(weights).is_err()) {
            self.fleet.reset_weights();
        }
    }

    fn keep<T>(&mut self, made: Result<(Vec<T>, Vec<Tally>), Error>) -> Result<Vec<T>, Error> {
        let (made, tallies) = made?;
        for (sum, tally) in self.done.iter_mut().zip(tallies) {
            sum.device += tally.device;
            sum.cpu += tally.cpu;
            sum.restarts += tally.restarts;
            sum.halvings += tally.halvings;
            sum.trouble = sum.trouble.take().or(tally.trouble);
        }
        Ok(made)
    }

    pub(super) fn keygen(&mut self, keys: &[SecretKey]) -> Result<Vec<PublicKey>, Error> {
        self.set(keys.first().map(SecretKey::params), Operation::Keygen);
        let made = self.fleet.keygen(keys);
        self.keep(made)
    }

    pub(super) fn expand_secret(&self, key: &SecretKey) -> Result<FleetSigningKeys, GpuError> {
        self.fleet.expand_secret(std::slice::from_ref(key))
    }

    pub(super) fn expand_public(&mut self, key: &PublicKey) -> Result<FleetVerifyingKeys, GpuError> {
        // The layout of keys on a device is chosen with how it multiplies.
        self.set(Some(key.params()), Operation::VerifyExpanded);
        self.fleet.expand_public(std::slice::from_ref(key))
    }

    /// Every signature is verified before it comes back.
    pub(super) fn sign(
        &mut self,
        signers: FleetSigners<'_>,
        digests: &[MessageDigest],
    ) -> Result<Vec<Result<Signature, Error>>, Error> {
        match signers {
            FleetSigners::Each(keys) => self.set(keys.first().map(SecretKey::params), Operation::Sign),
            FleetSigners::One(held) | FleetSigners::Of(held, _) => {
                self.set(held.public_keys().first().map(PublicKey::params), Operation::SignExpanded);
            }
        }
        let made = self.fleet.sign_digests(signers, digests, Release::Verified, &mut SysRng);
        self.keep(made)
    }

    pub(super) fn verify(
        &mut self,
        verifiers: FleetVerifiers<'_>,
        digests: &[MessageDigest],
        signatures: &[Signature],
    ) -> Result<Vec<Result<(), Error>>, Error> {
        let operation = match verifiers {
            FleetVerifiers::Each(_) => Operation::Verify,
            FleetVerifiers::One(_) | FleetVerifiers::Of(..) => Operation::VerifyExpanded,
        };
        self.set(signatures.first().map(Signature::params), operation);
        let made = self.fleet.verify_digests(verifiers, digests, signatures);
        self.keep(made)
    }

    /// What was done where. Also warns of devices whose work was left to the CPU.
    pub(super) fn report(&self) -> serde_json::Value {
        let rows = self.fleet.gpus().iter().zip(&self.done).map(|(gpu, tally)| {
            let card = gpu.device().card();
            if let Some(why) = &tally.trouble {
                Message::new(format!("device {}: left to the CPU: {why}", card.ordinal)).print("warning");
            }
            serde_json::json!({
                "ordinal": card.ordinal, "name": card.name, "emulated": card.emulated, "on_device": tally.device,
                "on_cpu": tally.cpu, "restarts": tally.restarts, "trouble": tally.trouble,
            })
        });
        rows.collect()
    }
}
