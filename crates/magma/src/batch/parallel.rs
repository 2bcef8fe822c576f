//! CTR (GOST R 34.13-2015, 5.2) over many messages: the mode is parallel within a message too, but a short one leaves
//! most of a batch of blocks empty. A lane for each message fills it.
#![forbid(unsafe_code)]

use lanework_cpu::PoolError;

use super::{Batch, Job, Lanes, Outcomes, Ready, Shape, add, key};
use crate::backend::chain::{Half, Step, Strands};
use crate::error::Error;
use crate::key::{Core, Magma};
use crate::limits::begun;
use crate::sbox::Sbox;
use crate::schedule::Counter;

/// A message for [`Batch::ctr`].
#[derive(Debug)]
pub struct CtrJob<'a> {
    /// The key; any number of jobs may share one, each with its own IV.
    pub key: &'a Magma,
    /// 4 bytes, the upper half of the counter; never twice under one key.
    pub iv: &'a [u8],
    /// Any number of bytes up to 2^35, encrypted or decrypted in place.
    pub data: &'a mut [u8],
}

impl Job for CtrJob<'_> {
    fn core(&self) -> &Core {
        key(self.key)
    }

    fn check(&self) -> Result<(), Error> {
        if self.iv.len() != 4 {
            return Err(Error::NonceLength { got: self.iv.len(), want: "4" });
        }
        if self.data.len() as u64 > 8 << 32 { Err(Error::CounterExhausted) } else { Ok(()) }
    }

    fn charge(&self) -> u64 {
        begun(0, self.data.len() as u64)
    }

    fn shape(&self) -> Shape {
        let steps = self.data.len().div_ceil(8);
        Shape { lanes: steps.min(1), steps, sbox: Sbox::Z }
    }
}

/// A message's cost alone (with all lanes on it) and in one lane.
#[derive(Clone, Copy)]
pub(super) struct Cost {
    /// In blocks of a kernel at full speed.
    pub(super) alone: usize,
    /// In steps of a lane.
    pub(super) steps: usize,
}

/// A kernel's time for blocks of one key, or for a step of that many lanes: proportional to them, but at least that of
/// a third of a full batch, the latency of 32 rounds.
pub(super) fn time(parallel: usize, blocks: usize) -> usize {
    blocks.max(parallel / 3)
}

/// The number of messages, sorted with the longest first, to process one by one. Putting a key into each lane costs
/// about two steps.
pub(super) fn alone(parallel: usize, costs: impl Iterator<Item = Cost> + Clone) -> usize {
    let long = costs.clone().take_while(|c| c.steps >= parallel && c.alone <= c.steps + c.steps / 8).count();
    let rest = costs.clone().skip(long);
    let one_by_one: usize = rest.clone().map(|c| c.alone).sum();
    let steps = rest.clone().next().map_or(0, |c| c.steps);
    let together = (steps + 2) * time(parallel, rest.count());
    if one_by_one <= together { costs.count() } else { long }
}

/// The cost of encrypting `blocks` blocks.
pub(super) fn cost(parallel: usize, blocks: usize) -> Cost {
    Cost { alone: time(parallel, blocks), steps: blocks }
}

fn start(iv: &[u8]) -> u64 {
    iv.iter().fold(0, |n, &byte| n << 8 | u64::from(byte)) << 32
}

fn run(lanes: &mut Lanes, group: &mut [Ready<'_, CtrJob<'_>>]) {
    let (alone, together) = {
        let parallel = lanes.parallel();
        let n = alone(parallel, group.iter().map(|r| cost(parallel, r.shape.steps)));
        group.split_at_mut(n)
    };
    for Ready { job, .. } in alone {
        let counter = Counter::low(start(job.iv));
        lanes.kernels.counter(&key(job.key).encrypt, counter, (&mut *job.data).into());
    }
    let mut strands = Strands::writing(lanes.table());
    let mut cut = false;
    for (lane, Ready { job, .. }) in together.iter_mut().enumerate() {
        lanes.load(lane, key(job.key));
        lanes.states()[lane] = start(job.iv).to_be_bytes();
        let full = job.data.len() / 8 * 8;
        cut |= full < job.data.len();
        strands.write(&mut job.data[..full], 1);
    }
    lanes.chain(Step::Counter(Half::Low), strands);
    if cut {
        lanes.encrypt(together.len());
        for (Ready { job, .. }, gamma) in together.iter_mut().zip(lanes.states()) {
            let full = job.data.len() / 8 * 8;
            add(&mut job.data[full..], gamma);
        }
    }
}

impl Batch<'_> {
    /// CTR over every message, which encrypts and decrypts.
    ///
    /// A job can fail with [`Error::NonceLength`], [`Error::CounterExhausted`] and [`Error::KeyExhausted`].
    ///
    /// # Errors
    /// [`PoolError`] when threads cannot be started; no job has been touched then, though the keys count them.
    pub fn ctr(&self, jobs: &mut [CtrJob<'_>]) -> Result<Outcomes, PoolError> {
        self.drive(jobs, run)
    }
}
