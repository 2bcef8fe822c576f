//! CTR (GOST R 34.13-2015, 5.2) over many messages: the mode is parallel within a message too, but a short one leaves most of
//! a batch of blocks empty, and a lane for each fills it.
#![forbid(unsafe_code)]

use lanework_cpu::PoolError;

use super::{Batch, Job, LANES, Lanes, Outcomes, Ready, Shape, add, key};
use crate::backend::chain::{Half, Step, Strands};
use crate::error::Error;
use crate::key::{Core, Magma};
use crate::schedule::Counter;

/// A message for [`Batch::ctr`].
#[derive(Debug)]
pub struct CtrJob<'a> {
    /// The key; any number of jobs may share one, each with another IV.
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
            return Err(Error::NonceLength { got: self.iv.len(), want: "4 bytes" });
        }
        if self.data.len() as u64 > 8 << 32 { Err(Error::CounterExhausted) } else { Ok(()) }
    }

    fn shape(&self) -> Shape {
        let steps = self.data.len().div_ceil(8);
        Shape { lanes: steps.min(1), steps }
    }
}

/// Of messages with these many blocks, the longest first, how many shall be done one by one, with all lanes on one message.
///
/// A kernel's time is taken as proportional to its blocks, but that of a third of a full batch at least, which is where the
/// latency of 32 rounds shows. Putting a key into each lane is worth about two steps.
pub(super) fn alone(parallel: usize, blocks: impl Iterator<Item = usize> + Clone) -> usize {
    let cost = |blocks: usize| blocks.max(parallel / 3);
    let long = blocks.clone().take_while(|&b| b >= parallel).count();
    let rest = blocks.clone().skip(long);
    let one_by_one: usize = rest.clone().map(cost).sum();
    let steps = rest.clone().next().unwrap_or(0);
    let together = (steps + 2) * cost(rest.count());
    if one_by_one <= together { blocks.count() } else { long }
}

fn start(iv: &[u8]) -> u64 {
    iv.iter().fold(0, |n, &byte| n << 8 | u64::from(byte)) << 32
}

fn run(lanes: &mut Lanes, group: &mut [Ready<'_, CtrJob<'_>>]) {
    let (alone, together) = {
        let n = alone(lanes.kernels.parallel(), group.iter().map(|r| r.shape.steps));
        group.split_at_mut(n)
    };
    for Ready { job, .. } in alone {
        let counter = Counter::low(start(job.iv));
        lanes.kernels.counter(&key(job.key).encrypt, counter, (&mut *job.data).into());
    }
    let mut strands = Strands::writing();
    let mut cut: [(usize, &mut [u8]); LANES] = core::array::from_fn(|_| (0, &mut [][..]));
    let mut cuts = 0;
    let n = together.len();
    for (lane, Ready { job, .. }) in together.iter_mut().enumerate() {
        lanes.load(lane, key(job.key));
        lanes.states()[lane] = start(job.iv).to_be_bytes();
        let full = job.data.len() / 8 * 8;
        let (head, tail) = job.data.split_at_mut(full);
        strands.write(head, 1);
        if !tail.is_empty() {
            cut[cuts] = (lane, tail);
            cuts += 1;
        }
    }
    lanes.chain(Step::Counter(Half::Low), strands);
    if cuts > 0 {
        lanes.encrypt(n);
        for (lane, tail) in &mut cut[..cuts] {
            add(tail, &lanes.states()[*lane]);
        }
    }
}

impl Batch<'_> {
    /// CTR over every message, which encrypts and decrypts.
    ///
    /// Of a job's errors there are [`Error::NonceLength`] and [`Error::CounterExhausted`].
    ///
    /// # Errors
    /// [`PoolError`] when threads cannot be started; no job has been touched then.
    pub fn ctr(&self, jobs: &mut [CtrJob<'_>]) -> Result<Outcomes, PoolError> {
        self.drive(jobs, run)
    }
}
