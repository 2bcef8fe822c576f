//! The jobs on devices that `--device` asks for, with the CPU for what a device fails at.
#![forbid(unsafe_code)]

use getrandom::SysRng;
use lanework_mayo::cuda::{
    Fleet, FleetSigners, FleetSigningKeys, FleetVerifiers, FleetVerifyingKeys, Options, Release, Tally, check,
};
use lanework_mayo::{Engine, Error, PublicKey, SecretKey, Signature};

use crate::outcome::Failure;
use crate::ui::Session;

/// Files that are held in memory together.
pub(super) const GROUP: usize = 4096;
/// One public key in so many is computed on the CPU as well.
const SPOT_CHECK: usize = 256;

/// Devices in use, and what they have done.
pub(super) struct Devices {
    fleet: Fleet,
    done: Vec<Tally>,
}

impl Devices {
    /// Those that were asked for, if any were: whoever names a device gets it, however small the batch.
    pub(super) fn asked(session: &Session, cpu: Engine) -> Result<Option<Devices>, Failure> {
        if !session.context.device.is_asked() {
            return Ok(None);
        }
        let mut fleet =
            lanework_subjects::mayo::cuda::fleet(&session.context, cpu).map_err(Failure::unavailable)?;
        fleet.set_options(Options { spot_check: SPOT_CHECK, ..check::ALONE });
        Ok(Some(Devices { done: vec![Tally::default(); fleet.gpus().len()], fleet }))
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
        let made = self.fleet.keygen(keys);
        self.keep(made)
    }

    pub(super) fn expand_secret(&self, key: &SecretKey) -> Result<FleetSigningKeys, Error> {
        self.fleet.expand_secret(std::slice::from_ref(key))
    }

    pub(super) fn expand_public(&self, key: &PublicKey) -> Result<FleetVerifyingKeys, Error> {
        self.fleet.expand_public(std::slice::from_ref(key))
    }

    /// Every signature is verified before it comes back.
    pub(super) fn sign(
        &mut self,
        signers: FleetSigners<'_>,
        messages: &[Vec<u8>],
    ) -> Result<Vec<Result<Signature, Error>>, Error> {
        let made = self.fleet.sign(signers, messages, Release::Verified, &mut SysRng);
        self.keep(made)
    }

    pub(super) fn verify(
        &mut self,
        verifiers: FleetVerifiers<'_>,
        messages: &[Vec<u8>],
        signatures: &[Signature],
    ) -> Result<Vec<Result<(), Error>>, Error> {
        let made = self.fleet.verify(verifiers, messages, signatures);
        self.keep(made)
    }

    /// What was done where; on standard error too where a device was left.
    pub(super) fn report(&self) -> serde_json::Value {
        let rows = self.fleet.gpus().iter().zip(&self.done).map(|(gpu, tally)| {
            let card = gpu.device().card();
            if let Some(why) = &tally.trouble {
                eprintln!("lanework: device {} was left to the CPU: {why}", card.ordinal);
            }
            serde_json::json!({
                "ordinal": card.ordinal, "name": card.name, "emulated": card.emulated, "on_device": tally.device,
                "on_cpu": tally.cpu, "restarts": tally.restarts, "trouble": tally.trouble,
            })
        });
        rows.collect()
    }
}
