//! The instructions with which a device verifies with expanded public keys.
#![forbid(unsafe_code)]

use std::sync::Arc;

use lanework_cuda::Card;
use lanework_mayo::hazmat::sign_with_randomizer;
use lanework_mayo::internals::batch::{Message, admit_each};
use lanework_mayo::{Error, PublicKey, SecretKey, SignOptions, Signature};
use zeroize::Zeroizing;

use super::operations::Verifying;
use super::{Expand, Gpu, GpuVerifiers, GpuVerifyingKeys};
use crate::launch::kernels::Kernels;

/// How a device computes the products of a verification whose key it holds expanded. It is chosen when keys are
/// expanded, since each has its own layout; keys on a device keep theirs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Multiply {
    /// Logical instructions under masks: every device has them.
    Masks,
    /// Products of bits on tensor cores. Devices of compute capability 8.0 to 9.x have the instruction; on others keys
    /// are expanded for masks.
    #[default]
    Bits,
}

impl Multiply {
    /// What keys are expanded for on a card if this is requested.
    pub(super) fn used_on(self, card: &Card) -> Multiply {
        if self.on(card).is_ok() { self } else { Multiply::Masks }
    }

    /// Whether a card supports it.
    ///
    /// # Errors
    /// The reason if not.
    pub fn on(self, card: &Card) -> Result<(), String> {
        let (major, minor) = card.capability;
        match self {
            Multiply::Bits if !(8..10).contains(&major) => Err(format!(
                "products of bits need tensor cores that have them (compute capability 8.0 to 9.x), but {} has {major}.{minor}",
                card.name
            )),
            _ => Ok(()),
        }
    }
}

impl Gpu {
    /// The self-test of products of bits, once for a set, at the first expansion of keys.
    pub(super) fn bits_are_right(&self, kernels: &Arc<Kernels>) -> Result<(), String> {
        Multiply::Bits.on(self.device.card())?;
        let slot = self.bits.get(kernels.params.index()).ok_or("there are no kernels for this set")?;
        slot.get_or_init(|| self.test_bits(kernels).inspect_err(|why| self.device.condemn(why))).clone()
    }

    /// Verdicts under two keys and under one of them alone, each on a good and on a corrupted signature, made by the
    /// CPU.
    fn test_bits(&self, kernels: &Arc<Kernels>) -> Result<(), String> {
        let (params, cpu) = (kernels.params, self.cpu);
        let seed = |fill: u8| vec![fill; params.salt_bytes()];
        let key = |fill| SecretKey::from_seed(params, &seed(fill)).map_err(|e| e.to_string());
        let keys = [key(0x96)?, key(0x3c)?];
        let public: Vec<PublicKey> = keys.iter().map(|key| key.public_key(cpu)).collect();
        let messages = [&b"self-test"[..], b"of products of bits"];
        let expanded =
            self.expand_public_keys(kernels, &public, Multiply::Bits).map_err(|e| e.to_string())?;
        let held = GpuVerifyingKeys { params, keys: public, expanded };
        for which in [[0, 1], [1, 1]] {
            let mut signatures: Vec<Signature> = Vec::new();
            for (i, &key) in which.iter().enumerate() {
                let randomizer = Zeroizing::new(seed(7));
                let options = SignOptions::default();
                let made = sign_with_randomizer(&(cpu, &keys[key]), messages[i], &randomizer, options);
                signatures.push(made.map_err(|e| e.to_string())?);
            }
            for spoilt in 0..2 {
                let mut bytes = signatures[spoilt].clone().into_bytes();
                bytes[spoilt] ^= 16;
                let mut given = signatures.clone();
                given[spoilt] = Signature::from_bytes(params, &bytes).map_err(|e| e.to_string())?;
                let verifiers = GpuVerifiers::Of(&held, &which);
                let admissions = &admit_each(|_| params, &Message::whole(&messages), &given);
                let work = Verifying { cpu, params, verifiers, admissions };
                let expected = [0, 1].map(|i| Some(if i == spoilt { Err(Error::Refused) } else { Ok(()) }));
                if self.alone(kernels, Expand::Alone, &work)? != expected {
                    return Err(format!(
                        "the self-test's verdicts of {} by products of bits differ from the CPU's",
                        params.name()
                    ));
                }
            }
        }
        Ok(())
    }
}
