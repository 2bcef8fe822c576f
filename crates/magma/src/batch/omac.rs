//! OMAC (GOST R 34.13-2015, 5.6; CMAC with a block of 64 bits).
#![forbid(unsafe_code)]

use alloc::vec;

use lanework_cpu::PoolError;
use lanework_cpu::memory::wipe;

use super::{Batch, Job, LANES, Outcomes, Ready, Shape, key};
use crate::backend::chain::{Step, Strands};
use crate::error::Error;
use crate::key::{Core, Keyed, Magma};
use crate::limits::begun;
use crate::modes::omac::{Chain, double};

/// A message for [`Batch::omac`].
#[derive(Debug)]
pub struct OmacJob<'a, C = Magma> {
    /// The key; any number of jobs may share one.
    pub key: &'a C,
    /// Any number of bytes, including none.
    pub data: &'a [u8],
    /// The place for the MAC's first 4 to 8 bytes.
    pub mac: &'a mut [u8],
}

impl<C: Keyed + Sync> Job for OmacJob<'_, C> {
    fn core(&self) -> &Core {
        key(self.key)
    }

    fn check(&self) -> Result<(), Error> {
        if (4..=8).contains(&self.mac.len()) { Ok(()) } else { Err(Error::TagLength(self.mac.len())) }
    }

    fn charge(&self) -> u64 {
        begun(0, self.data.len() as u64)
    }

    fn shape(&self) -> Shape {
        Shape { lanes: 1, steps: self.data.len().div_ceil(8).max(1), sbox: self.key.sbox() }
    }
}

impl Batch<'_> {
    /// The MAC of every message.
    ///
    /// A job can fail with [`Error::TagLength`] and [`Error::KeyExhausted`].
    ///
    /// # Errors
    /// [`PoolError`] when threads cannot be started; no job has been touched then, though the keys count them.
    pub fn omac<C: Keyed + Sync>(&self, jobs: &mut [OmacJob<'_, C>]) -> Result<Outcomes, PoolError> {
        if let [job] = jobs {
            return Ok(vec![self.omac_alone(job)]);
        }
        self.drive(jobs, |lanes, group| {
            let n = group.len();
            let mut strands = Strands::reading(lanes.table());
            // The last blocks, padded if cut: their subkeys are added before the state.
            let mut last = [[0u8; 8]; LANES];
            lanes.states()[..n].fill([0; 8]);
            for (lane, Ready { job, shape, .. }) in group.iter().enumerate() {
                lanes.load(lane, key(job.key));
                let (head, tail) = job.data.split_at(8 * (shape.steps - 1));
                strands.read(head);
                last[lane][..tail.len()].copy_from_slice(tail);
                if tail.len() < 8 {
                    last[lane][tail.len()] = 0x80;
                }
            }
            lanes.encrypt(n);
            for (lane, Ready { job, .. }) in group.iter().enumerate() {
                let k1 = double(u64::from_be_bytes(lanes.states()[lane]));
                let whole = !job.data.is_empty() && job.data.len().is_multiple_of(8);
                let subkey = if whole { k1 } else { double(k1) };
                last[lane] = (u64::from_be_bytes(last[lane]) ^ subkey).to_be_bytes();
            }
            lanes.states()[..n].fill([0; 8]);
            lanes.chain(Step::Mac, strands);
            for (state, last) in lanes.states()[..n].iter_mut().zip(&last) {
                *state = (u64::from_ne_bytes(*state) ^ u64::from_ne_bytes(*last)).to_ne_bytes();
            }
            lanes.encrypt(n);
            for (Ready { job, .. }, state) in group.iter_mut().zip(lanes.states()) {
                job.mac.copy_from_slice(&state[..job.mac.len()]);
            }
            wipe(last.as_flattened_mut());
        })
    }

    /// The MAC of one message, without lanes: their memory costs as much as 50 blocks.
    fn omac_alone<C: Keyed + Sync>(&self, job: &mut OmacJob<'_, C>) -> Result<(), Error> {
        job.check()?;
        let core = key(job.key);
        core.budget.spend(job.charge())?;
        let encrypt = |block: &mut [u8; 8]| self.kernels().blocks(&core.encrypt, block.as_mut_slice().into());
        let mut chain = Chain::new();
        chain.update(job.data, encrypt);
        let mac = chain.finish(encrypt);
        job.mac.copy_from_slice(&mac[..job.mac.len()]);
        Ok(())
    }
}
