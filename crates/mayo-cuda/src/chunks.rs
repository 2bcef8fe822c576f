//! Chunks of a batch over streams, with the rest on the CPU.
#![forbid(unsafe_code)]

use core::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

/// What lanes were made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    set: usize,
    job: Job,
    plan: Plan,
    /// As planned, before memory was found to be short.
    capacity: usize,
    slots: usize,
    streams: usize,
}

/// The lanes of a device's last batch of each job, cleared of secrets: making them takes as long as thousands of operations.
#[derive(Debug, Default)]
pub(super) struct Kept(Mutex<Vec<(Wanted, Vec<Lane>)>>);

impl Kept {
    pub(super) fn all(&self) -> MutexGuard<'_, Vec<(Wanted, Vec<Lane>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes those of a job if they were made for the same, and else frees them.
    fn take(&self, wanted: &Wanted) -> Option<Vec<Lane>> {
        let mut all = self.all();
        let at = all.iter().position(|(made_for, _)| made_for.job == wanted.job)?;
        let (made_for, lanes) = all.swap_remove(at);
        (made_for == *wanted).then_some(lanes)
    }

    /// Keeps them for the next batch. Lanes that cannot be cleared are freed, which overwrites them or condemns the device.
    fn keep(&self, wanted: Wanted, mut lanes: Vec<Lane>) {
        if lanes.iter_mut().all(|lane| lane.clear().is_ok()) {
            let mut all = self.all();
            all.retain(|(made_for, _)| made_for.job != wanted.job);
            all.push((wanted, lanes));
        }
    }

    /// Frees them all, so that their memory is free for something else; returns whether there were any.
    pub(super) fn release(&self) -> bool {
        let all = std::mem::take(&mut *self.all());
        !all.is_empty()
    }

    /// What `make` makes. If it lacks memory, everything kept is freed and `make` is tried again.
    pub(super) fn or_release<T>(&self, make: impl Fn() -> Result<T, DeviceError>) -> Result<T, DeviceError> {
        make().or_else(|e| if e.is_memory() && self.release() { make() } else { Err(e) })
    }
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

    /// What lanes for a job of `count` operations are made for.
    fn wanted(&self, kernels: &Kernels, job: Job, count: usize) -> Wanted {
        let (set, card) = (kernels.params, self.device.card());
        let capacity = self.options.chunk.clamp(1, count.max(1));
        let streams = self.options.streams.clamp(1, count.div_ceil(capacity).max(1));
        let plan = Plan::new(card, kernels, job, self.options.expand);
        let blocks = shape::words(set) / shape::slice_words(set);
        let slots = self.options.ring.slots(card, streams, matrices(set, job, plan), blocks);
        Wanted { set: set.index(), job, plan, capacity, slots, streams }
    }

    /// As many lanes as fit, of chunks as large as fit.
    pub(super) fn lanes(
        &self,
        kernels: &Arc<Kernels>,
        job: Job,
        count: usize,
        tally: &mut Tally,
    ) -> Result<Vec<Lane>, DeviceError> {
        self.new_lanes(kernels, &self.wanted(kernels, job, count), tally)
    }

    fn new_lanes(
        &self,
        kernels: &Arc<Kernels>,
        wanted: &Wanted,
        tally: &mut Tally,
    ) -> Result<Vec<Lane>, DeviceError> {
        let &Wanted { job, plan, mut capacity, slots, streams, .. } = wanted;
        // Sizes that certainly do not fit are not tried; memory that other programs take meanwhile is detected below.
        let room = || self.device.memory().map(|memory| memory.free as usize / streams);
        let (bytes, matrices) = (bytes_each(kernels.params, job), matrices(kernels.params, job, plan));
        let takes = |capacity: usize| capacity * bytes + capacity.min(slots) * matrices;
        let mut free = room()?;
        if takes(capacity) > free && self.kept.release() {
            free = room()?;
        }
        while capacity > 1 && takes(capacity) > free {
            capacity = capacity.div_ceil(2);
            tally.halvings += 1;
        }
        let mut lanes = Vec::new();
        while lanes.len() < streams {
            let lane = || Lane::new(&self.device, kernels, job, capacity, slots, plan);
            match self.kept.or_release(lane) {
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
        let wanted = self.wanted(kernels, work.job(), results.len());
        let lanes = match self.kept.take(&wanted) {
            Some(lanes) => lanes,
            None => self.new_lanes(kernels, &wanted, tally)?,
        };
        let Some(capacity) = lanes.first().map(|lane| lane.capacity) else { return Ok(()) };
        let chunks = Mutex::new((0..).step_by(capacity).zip(results.chunks_mut(capacity)));
        let stop = AtomicBool::new(false);
        // A lane's chunks, until there are no more; its thread packs and unpacks while other lanes compute.
        let all_of = |mut lane: Lane| -> Result<(Lane, Tally), DeviceError> {
            let mut tally = Tally::default();
            // After a wrong result, this device is no longer used.
            while !stop.load(Ordering::Relaxed) && !self.device.is_dead() {
                let next = chunks.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some((start, to)) = next else { break };
                let chunk = start..start + to.len();
                let made = work
                    .start(&mut lane, chunk.clone())
                    .and_then(|()| work.finish(&mut lane, chunk, &mut tally))
                    .inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
                to.iter_mut().zip(made).for_each(|(to, from)| *to = from);
            }
            Ok((lane, tally))
        };
        let done: Vec<Result<(Lane, Tally), DeviceError>> = if lanes.len() == 1 {
            lanes.into_iter().map(all_of).collect()
        } else {
            std::thread::scope(|scope| {
                let running: Vec<_> = lanes.into_iter().map(|lane| scope.spawn(|| all_of(lane))).collect();
                let joined = running.into_iter().map(std::thread::ScopedJoinHandle::join);
                joined.map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
            })
        };
        let mut lanes = Vec::new();
        for done in done {
            let (lane, part) = done?;
            tally.restarts += part.restarts;
            lanes.push(lane);
        }
        if !self.device.is_dead() {
            self.kept.keep(wanted, lanes);
        }
        Ok(())
    }
}

/// Bytes of the matrices that an operation of a job has in device memory.
fn matrices(params: &Params, job: Job, plan: Plan) -> usize {
    if plan.covers(job) { 0 } else { matrix_bytes(params, job) }
}
