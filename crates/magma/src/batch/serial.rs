//! CBC and CFB encryption (GOST R 34.13-2015, 5.4 and 5.5): serial within a message.
#![forbid(unsafe_code)]

use lanework_cpu::PoolError;

use super::{Batch, Job, Lanes, Outcomes, Ready, Shape, add, block, key, ways};
use crate::backend::chain::{Step, Strands};
use crate::error::Error;
use crate::key::{Core, Keyed, Magma};
use crate::limits::begun;
use crate::sbox::Sbox;

/// A message for [`Batch::cbc_encrypt`].
#[derive(Debug)]
pub struct CbcJob<'a, C = Magma> {
    /// The key; any number of jobs may share one.
    pub key: &'a C,
    /// z blocks of 8 bytes, 1 <= z <= 128: the register, whose blocks start z interleaved chains.
    pub iv: &'a [u8],
    /// Whole blocks, encrypted in place.
    pub data: &'a mut [u8],
}

/// A message for [`Batch::cfb_encrypt`].
#[derive(Debug)]
pub struct CfbJob<'a, C = Magma> {
    /// The key; any number of jobs may share one.
    pub key: &'a C,
    /// z blocks of 8 bytes, 1 <= z <= 128: the register, whose blocks start z interleaved chains.
    pub iv: &'a [u8],
    /// Any number of bytes, encrypted in place.
    pub data: &'a mut [u8],
}

fn shape(iv: &[u8], data: &[u8], sbox: Sbox) -> Shape {
    let blocks = data.len().div_ceil(8);
    let lanes = blocks.min(iv.len() / 8);
    Shape { lanes, steps: blocks.div_ceil(lanes.max(1)), sbox }
}

impl<C: Keyed + Sync> Job for CbcJob<'_, C> {
    fn core(&self) -> &Core {
        key(self.key)
    }

    fn check(&self) -> Result<(), Error> {
        ways(self.iv)?;
        if self.data.len().is_multiple_of(8) { Ok(()) } else { Err(Error::Unaligned(self.data.len())) }
    }

    fn charge(&self) -> u64 {
        self.data.len() as u64
    }

    fn shape(&self) -> Shape {
        shape(self.iv, self.data, self.key.sbox())
    }
}

impl<C: Keyed + Sync> Job for CfbJob<'_, C> {
    fn core(&self) -> &Core {
        key(self.key)
    }

    fn check(&self) -> Result<(), Error> {
        ways(self.iv).map(|_| ())
    }

    fn charge(&self) -> u64 {
        begun(0, self.data.len() as u64)
    }

    fn shape(&self) -> Shape {
        shape(self.iv, self.data, self.key.sbox())
    }
}

/// Starts a message's chains in the lanes from `first` on.
fn start(lanes: &mut Lanes, first: usize, shape: Shape, core: &Core, iv: &[u8]) {
    for way in 0..shape.lanes {
        lanes.load(first + way, core);
        lanes.states()[first + way] = block(&iv[8 * way..]);
    }
}

impl Batch<'_> {
    /// CBC encryption of every message.
    ///
    /// A job can fail with [`Error::NonceLength`], [`Error::Unaligned`] and [`Error::KeyExhausted`].
    ///
    /// # Errors
    /// [`PoolError`] when threads cannot be started; no job has been touched then, though the keys count them.
    pub fn cbc_encrypt<C: Keyed + Sync>(&self, jobs: &mut [CbcJob<'_, C>]) -> Result<Outcomes, PoolError> {
        self.drive(jobs, |lanes, group| {
            let mut strands = Strands::writing(lanes.table());
            let mut first = 0;
            for Ready { job, shape, .. } in group {
                start(lanes, first, *shape, key(job.key), job.iv);
                strands.write(job.data, shape.lanes);
                first += shape.lanes;
            }
            lanes.chain(Step::Cbc, strands);
        })
    }

    /// CFB encryption of every message, by whole blocks; the last block may be cut.
    ///
    /// A job can fail with [`Error::NonceLength`] and [`Error::KeyExhausted`].
    ///
    /// # Errors
    /// [`PoolError`] when threads cannot be started; no job has been touched then, though the keys count them.
    pub fn cfb_encrypt<C: Keyed + Sync>(&self, jobs: &mut [CfbJob<'_, C>]) -> Result<Outcomes, PoolError> {
        self.drive(jobs, |lanes, group| {
            let mut strands = Strands::writing(lanes.table());
            let mut first = 0;
            let mut cut = false;
            for Ready { job, shape, .. } in &mut *group {
                start(lanes, first, *shape, key(job.key), job.iv);
                let full = job.data.len() / 8 * 8;
                cut |= full < job.data.len();
                strands.write(&mut job.data[..full], shape.lanes);
                first += shape.lanes;
            }
            lanes.chain(Step::Cfb, strands);
            if cut {
                lanes.encrypt(first);
                let mut first = 0;
                for Ready { job, shape, .. } in group {
                    let full = job.data.len() / 8;
                    add(&mut job.data[8 * full..], &lanes.states()[first + full % shape.lanes]);
                    first += shape.lanes;
                }
            }
        })
    }
}
