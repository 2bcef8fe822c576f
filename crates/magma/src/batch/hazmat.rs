//! The bare block cipher over many messages. Equal blocks encrypt to equal blocks, which reveals repetitions.
#![forbid(unsafe_code)]

use lanework_cpu::PoolError;

use super::parallel::{alone, cost};
use super::{Batch, Job, Lanes, Outcomes, Ready, Shape, key};
use crate::backend::chain::{Step, Strands};
use crate::error::Error;
use crate::key::{Core, Keyed, Magma};

/// Blocks for [`ecb_encrypt`].
#[derive(Debug)]
pub struct EcbJob<'a, C = Magma> {
    /// The key; any number of jobs may share one.
    pub key: &'a C,
    /// Whole blocks, encrypted in place.
    pub data: &'a mut [u8],
}

impl<C: Keyed + Sync> Job for EcbJob<'_, C> {
    fn core(&self) -> &Core {
        key(self.key)
    }

    fn check(&self) -> Result<(), Error> {
        if self.data.len().is_multiple_of(8) { Ok(()) } else { Err(Error::Unaligned(self.data.len())) }
    }

    fn charge(&self) -> u64 {
        self.data.len() as u64
    }

    fn shape(&self) -> Shape {
        let steps = self.data.len() / 8;
        Shape { lanes: steps.min(1), steps, sbox: self.key.sbox() }
    }
}

fn run<C: Keyed + Sync>(lanes: &mut Lanes, group: &mut [Ready<'_, EcbJob<'_, C>>]) {
    let (alone, together) = {
        let parallel = lanes.parallel();
        let n = alone(parallel, group.iter().map(|r| cost(parallel, r.shape.steps)));
        group.split_at_mut(n)
    };
    for Ready { job, .. } in alone {
        lanes.kernels.blocks(&key(job.key).encrypt, (&mut *job.data).into());
    }
    let mut strands = Strands::writing(lanes.table());
    for (lane, Ready { job, .. }) in together.iter_mut().enumerate() {
        lanes.load(lane, key(job.key));
        strands.write(job.data, 1);
    }
    lanes.chain(Step::Ecb, strands);
}

/// Encrypts every block of every job by itself (ECB: GOST R 34.13-2015, 5.1).
///
/// A job can fail with [`Error::Unaligned`] and [`Error::KeyExhausted`].
///
/// # Errors
/// [`PoolError`] when threads cannot be started; no job has been touched then, though the keys count them.
pub fn ecb_encrypt<C: Keyed + Sync>(
    batch: &Batch<'_>,
    jobs: &mut [EcbJob<'_, C>],
) -> Result<Outcomes, PoolError> {
    batch.drive(jobs, run)
}
