//! Many messages at once, each under its own key or all under one: for modes that are serial within a message, and for
//! short messages.
//!
//! Every job is checked before the first byte of any job is written. A bad job is reported and left unchanged, and the
//! others are done. Results are in the order of the jobs.
//!
//! Each message (each chain of it, where the IV is longer than a block) takes one of [`LANES`] lanes, which hold
//! different keys, and all lanes step from block to block together. Jobs are sorted by length, the longest first, and
//! processed in groups. The messages of a group then have about the same length, and the lanes still running are always
//! the first ones. Refilling a free lane would save little (a group's cost is the envelope of its sorted lengths) and
//! would interrupt the other lanes at every change.
//!
//! Every job counts against its key's [limits](crate::limits), in the order of the jobs, and is refused with
//! [`Error::KeyExhausted`] beyond them. Opening counts authentic messages there, and forged ones as refused messages.
//!
//! Lengths, S-boxes and the number of jobs are public; keys and data are not, and nothing here depends on them.
#![forbid(unsafe_code)]

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use lanework_cpu::memory::{Block, wipe_blocks};
use lanework_cpu::{PoolError, Threads};

use crate::backend::Engine;
use crate::backend::chain::{Scratch, Step, Strands, Table};
use crate::backend::{Kernels, LANES, LaneBlocks};
use crate::error::Error;
use crate::key::{Core, Keyed};
use crate::sbox::Sbox;
use crate::schedule::{ByteOrder, Schedule};

pub mod hazmat;
#[cfg(test)]
mod limit_tests;
mod mgm;
mod omac;
mod parallel;
mod serial;
#[cfg(test)]
mod tests;

pub use mgm::{OpenJob, SealJob};
pub use omac::OmacJob;
pub use parallel::CtrJob;
pub use serial::{CbcJob, CfbJob};

/// One result for each job, in the jobs' order.
pub type Outcomes = Vec<Result<(), Error>>;

/// Runs batches on a backend and on threads.
///
/// The batch's backend runs, not that of a job's key.
#[derive(Clone, Copy, Debug, Default)]
pub struct Batch<'t> {
    engine: Engine,
    threads: Threads<'t>,
}

impl<'t> Batch<'t> {
    /// On a chosen backend and the calling thread.
    #[must_use]
    pub fn new(engine: Engine) -> Batch<'t> {
        Batch { engine, threads: Threads::One }
    }

    /// On these threads.
    #[must_use]
    pub fn threads(self, threads: Threads<'t>) -> Batch<'t> {
        Batch { threads, ..self }
    }

    /// The backend in use.
    #[must_use]
    pub const fn backend(&self) -> &'static str {
        self.engine.name()
    }

    fn kernels(&self) -> &'static Kernels {
        self.engine.kernels()
    }

    /// Checks all jobs, then runs `task` on groups of good ones that fit into the lanes together and share an S-box
    /// set.
    fn drive<J: Job>(
        &self,
        jobs: &mut [J],
        task: impl for<'j> Fn(&mut Lanes, &mut [Ready<'j, J>]) + Sync,
    ) -> Result<Outcomes, PoolError> {
        // The good jobs count against their keys' limits in order. One that exceeds the limit is refused; a shorter one
        // after it may still fit.
        let admit = |job: &J| job.check().and_then(|()| job.core().budget.spend(job.charge()));
        let mut outcomes: Outcomes = jobs.iter().map(admit).collect();
        let mut ready: Vec<Ready<'_, J>> = Vec::with_capacity(jobs.len());
        let mut lanes = 0;
        for (job, outcome) in jobs.iter_mut().zip(&mut outcomes).filter(|(_, outcome)| outcome.is_ok()) {
            let shape = job.shape();
            if shape.lanes > 0 {
                lanes += shape.lanes;
                ready.push(Ready { job, outcome, shape });
            }
        }
        // By S-box first, so that groups are not mixed. Jobs already in order are not sorted again.
        ready.sort_unstable_by_key(|r| (r.shape.sbox as u8, Reverse(r.shape.steps)));
        let most = share(lanes, self.threads.count());
        let mut groups = Vec::with_capacity(lanes.div_ceil(most) + Sbox::ALL.len());
        let mut rest = &mut ready[..];
        while !rest.is_empty() {
            let group;
            (group, rest) = rest.split_at_mut(fitting(rest, most));
            groups.push(group);
        }
        if self.threads.count() == 1 {
            let mut lanes = Lanes::new(self.kernels());
            groups.into_iter().for_each(|group| lanes.run(group, &task));
        } else {
            self.threads.for_each(&mut groups, |_, group| Lanes::new(self.kernels()).run(group, &task))?;
        }
        Ok(outcomes)
    }
}

/// The most lanes of a group: all, or fewer so that every thread has work.
fn share(lanes: usize, threads: usize) -> usize {
    let groups = lanes.div_ceil(LANES).max(1);
    let groups = if groups < 4 * threads { groups.next_multiple_of(threads.max(1)) } else { groups };
    // Kernels work on at least 16 lanes.
    lanes.div_ceil(groups).next_multiple_of(16).clamp(16, LANES)
}

/// The number of first jobs that make a group of at most `most` lanes; at least one.
fn fitting<J: Job>(ready: &[Ready<'_, J>], most: usize) -> usize {
    let sbox = ready[0].shape.sbox;
    let mut lanes = 0;
    let fits = |r: &&Ready<'_, J>| {
        lanes += r.shape.lanes;
        lanes <= most && r.shape.sbox == sbox
    };
    ready.iter().take_while(fits).count().max(1)
}

/// A job's demand on the lanes.
#[derive(Clone, Copy)]
struct Shape {
    /// Lanes taken, at most [`LANES`]; none if there is nothing to do.
    lanes: usize,
    /// Steps of its longest strand; jobs are sorted by it.
    steps: usize,
    /// The S-box set of its key.
    sbox: Sbox,
}

/// A message with its parameters.
trait Job: Send + Sync {
    /// Its key.
    fn core(&self) -> &Core;

    /// Its fault, if any.
    fn check(&self) -> Result<(), Error>;

    /// Bytes that the key's limits are charged for before the job is begun; none where only its success counts.
    fn charge(&self) -> u64;

    /// The demand of a job without faults.
    fn shape(&self) -> Shape;
}

/// A job without faults.
struct Ready<'j, J> {
    job: &'j mut J,
    outcome: &'j mut Result<(), Error>,
    shape: Shape,
}

/// Keys and states of all lanes. Wiped when dropped.
struct Lanes {
    kernels: &'static Kernels,
    keys: Vec<Block>,
    /// The address of the key in each lane. Keys are borrowed as long as these lanes live, so an address identifies a key.
    holds: [usize; LANES],
    sbox: Sbox,
    order: ByteOrder,
    scratch: Box<Scratch>,
    table: Option<Box<Table>>,
}

impl Lanes {
    fn new(kernels: &'static Kernels) -> Lanes {
        Lanes {
            kernels,
            keys: vec![Block::ZERO; kernels.lane_keys_blocks],
            holds: [0; LANES],
            sbox: Sbox::Z,
            order: ByteOrder::Big,
            scratch: Scratch::new(),
            table: None,
        }
    }

    /// Processes a group.
    fn run<'j, J: Job>(
        &mut self,
        group: &mut [Ready<'j, J>],
        task: impl Fn(&mut Lanes, &mut [Ready<'j, J>]),
    ) {
        if let Some(first) = group.first() {
            let Schedule { sbox, order, .. } = first.job.core().encrypt;
            (self.sbox, self.order) = (sbox, order);
            task(self, group);
        }
    }

    /// Puts a key into a lane, unless it is there already.
    fn load(&mut self, lane: usize, key: &Core) {
        let address = core::ptr::from_ref(key).addr();
        if self.holds[lane] != address {
            self.kernels.set_lane(&mut self.keys, lane, &key.words);
            self.holds[lane] = address;
        }
    }

    /// Blocks of one key that are worked on at once. At most the number of lanes, since a kernel whose best speed needs
    /// more is nearly as fast with fewer.
    fn parallel(&self) -> usize {
        self.kernels.parallel().min(LANES)
    }

    /// Memory for strands.
    fn table(&mut self) -> Box<Table> {
        self.table.take().unwrap_or_else(Table::new)
    }

    fn states(&mut self) -> &mut LaneBlocks {
        &mut self.scratch.states
    }

    /// Encrypts the states of the first `n` lanes.
    fn encrypt(&mut self, n: usize) {
        self.kernels.lanes(&self.keys, self.sbox, self.order, &mut self.scratch.states, n);
    }

    /// Takes all strands to their ends.
    fn chain(&mut self, step: Step, strands: Strands<'_>) {
        let scratch = &mut self.scratch;
        self.table = Some(self.kernels.chain(&self.keys, self.sbox, self.order, step, strands, scratch));
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        wipe_blocks(&mut self.keys);
        lanework_cpu::memory::wipe_vector_registers();
    }
}

/// The block at the start of `bytes`.
///
/// # Panics
/// If there are fewer than 8.
fn block(bytes: &[u8]) -> [u8; 8] {
    bytes[..8].try_into().expect("8 bytes")
}

/// Adds the first bytes of `gamma` to all of `data`, at most 8.
fn add(data: &mut [u8], gamma: &[u8; 8]) {
    data.iter_mut().zip(gamma).for_each(|(d, g)| *d ^= g);
}

/// The number of chains of an IV; each is a lane.
///
/// # Errors
/// [`Error::NonceLength`] if it is not 1 to [`LANES`] whole blocks.
fn ways(iv: &[u8]) -> Result<usize, Error> {
    match iv.len() {
        got if got.is_multiple_of(8) && (8..=8 * LANES).contains(&got) => Ok(got / 8),
        got => Err(Error::NonceLength { got, want: "1 to 128 blocks of 8 bytes" }),
    }
}

fn key<C: Keyed>(key: &C) -> &Core {
    key.core()
}
