//! Chunks of a batch over streams, with the rest on the CPU.
#![forbid(unsafe_code)]

use core::ops::Range;
use std::sync::Arc;

use lanework_cpu::Threads;
use lanework_cuda::Error as DeviceError;
use lanework_mayo::{Error, Params};

use super::{Gpu, Tally};
use crate::launch::fuse::Plan;
use crate::launch::job::{Job, bytes_each, matrix_bytes};
use crate::launch::kernels::Kernels;
use crate::launch::lane::Lane;
use crate::launch::shape;

/// A batch's work, chunk by chunk.
pub(super) trait Work: Sync {
    /// The result of one operation.
    type Output: Send;
    /// The memory of a lane.
    fn job(&self) -> Job;
    /// Queues a chunk.
    fn start(&self, lane: &mut Lane, chunk: Range<usize>) -> Result<(), DeviceError>;
    /// Waits for it. The CPU computes missing results.
    fn finish(
        &self,
        lane: &mut Lane,
        chunk: Range<usize>,
        tally: &mut Tally,
    ) -> Result<Vec<Option<Self::Output>>, DeviceError>;
    /// Computes one operation on the CPU.
    fn on_cpu(&self, i: usize) -> Self::Output;
}

impl Gpu {
    /// Computes `count` operations of a set, in the order of their numbers.
    pub(super) fn run<W: Work>(
        &self,
        params: &Params,
        count: usize,
        work: &W,
    ) -> Result<(Vec<W::Output>, Tally), Error> {
        let share = self.options.cpu_share.clamp(0.0, 1.0);
        let worth = count >= self.options.break_even.max(1);
        let cpu = if worth { (count as f64 * share).round() as usize } else { count };
        self.run_part(params, count, cpu, work)
    }

    /// The same, the last `cpu` of them on the CPU.
    pub(super) fn run_part<W: Work>(
        &self,
        params: &Params,
        count: usize,
        cpu: usize,
        work: &W,
    ) -> Result<(Vec<W::Output>, Tally), Error> {
        let mut tally = Tally::default();
        let mut results: Vec<Option<W::Output>> = (0..count).map(|_| None).collect();
        if cpu < count {
            match self.kernels(params) {
                Ok(kernels) => {
                    let (device_part, cpu_part) = results.split_at_mut(count - cpu);
                    let offset = device_part.len();
                    std::thread::scope(|scope| {
                        let beside = (!cpu_part.is_empty())
                            .then(|| scope.spawn(move || self.fill(cpu_part, offset, work)));
                        self.on_device(&kernels, work, device_part, &mut tally);
                        match beside.map(std::thread::ScopedJoinHandle::join) {
                            Some(Ok(done)) => done,
                            Some(Err(panic)) => std::panic::resume_unwind(panic),
                            None => Ok(()),
                        }
                    })?;
                }
                Err(why) => tally.trouble = Some(why),
            }
        }
        self.fill(&mut results, 0, work)?;
        tally.cpu = count - tally.device;
        Ok((results.into_iter().flatten().collect(), tally))
    }

    /// Computes missing results on the CPU.
    fn fill<W: Work>(&self, results: &mut [Option<W::Output>], offset: usize, work: &W) -> Result<(), Error> {
        let mut missing: Vec<(usize, &mut Option<W::Output>)> =
            results.iter_mut().enumerate().filter(|(_, r)| r.is_none()).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let threads = match self.options.cpu_threads {
            1 => Threads::One,
            n => Threads::Own(n),
        };
        threads
            .for_each(&mut missing, |_, (i, result)| **result = Some(work.on_cpu(offset + *i)))
            .map_err(|e| Error::Threads(e.to_string()))
    }

    /// As many lanes as fit, of chunks as large as fit.
    pub(super) fn lanes(
        &self,
        kernels: &Arc<Kernels>,
        job: Job,
        count: usize,
        tally: &mut Tally,
    ) -> Result<Vec<Lane>, DeviceError> {
        let mut capacity = self.options.chunk.clamp(1, count.max(1));
        let streams = self.options.streams.clamp(1, count.div_ceil(capacity).max(1));
        // Sizes that certainly do not fit are not tried; memory that other programs take meanwhile is found out below.
        let room = self.device.memory()?.free as usize / streams;
        let set = kernels.params;
        let plan = Plan::new(self.device.card(), kernels, job, self.options.expand);
        let (bytes, matrices) =
            (bytes_each(set, job), if plan.covers(job) { 0 } else { matrix_bytes(set, job) });
        let blocks = shape::words(set) / shape::slice_words(set);
        let slots = self.options.ring.slots(self.device.card(), streams, matrices, blocks);
        while capacity > 1 && capacity * bytes + capacity.min(slots) * matrices > room {
            capacity = capacity.div_ceil(2);
            tally.halvings += 1;
        }
        let mut lanes = Vec::new();
        while lanes.len() < streams {
            match Lane::new(&self.device, kernels, job, capacity, slots, plan) {
                Ok(lane) => lanes.push(lane),
                Err(e) if e.is_memory() && !lanes.is_empty() => break,
                Err(e) if e.is_memory() && capacity > 1 => {
                    capacity = capacity.div_ceil(2);
                    tally.halvings += 1;
                }
                Err(e) => return Err(e),
            }
        }
        Ok(lanes)
    }

    fn on_device<W: Work>(
        &self,
        kernels: &Arc<Kernels>,
        work: &W,
        results: &mut [Option<W::Output>],
        tally: &mut Tally,
    ) {
        if let Err(e) = self.stream_chunks(kernels, work, results, tally) {
            tally.trouble = Some(e.to_string());
        } else if let Some(cause) = self.device.cause_of_death() {
            tally.trouble = Some(cause.to_owned());
        }
        tally.device = results.iter().filter(|r| r.is_some()).count();
    }

    fn stream_chunks<W: Work>(
        &self,
        kernels: &Arc<Kernels>,
        work: &W,
        results: &mut [Option<W::Output>],
        tally: &mut Tally,
    ) -> Result<(), DeviceError> {
        let count = results.len();
        let mut lanes: Vec<(Lane, Option<Range<usize>>)> =
            self.lanes(kernels, work.job(), count, tally)?.into_iter().map(|lane| (lane, None)).collect();
        let (mut next, mut turn, many) = (0, 0, lanes.len());
        // In turn: collect a lane's last chunk, and give it the next one.
        while next < count || lanes.iter().any(|(_, busy)| busy.is_some()) {
            let (lane, busy) = &mut lanes[turn];
            if let Some(chunk) = busy.take() {
                let made = work.finish(lane, chunk.clone(), tally)?;
                results[chunk].iter_mut().zip(made).for_each(|(to, from)| *to = from);
            }
            // A result was wrong: this device is not used any more.
            if self.device.is_dead() {
                return Ok(());
            }
            if next < count {
                let chunk = next..count.min(next + lane.capacity);
                work.start(lane, chunk.clone())?;
                next = chunk.end;
                *busy = Some(chunk);
            }
            turn = (turn + 1) % many;
        }
        Ok(())
    }
}
