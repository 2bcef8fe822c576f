//! MAYO with one thread for a whole operation, launch by launch: the baseline of the study `mayo-gpu`.
#![forbid(unsafe_code)]

use std::fmt::Display;

use lanework_mayo::{Engine, Error, Params, PublicKey, SecretKey, Signature};
use lanework_mayo_cuda::{GpuThreads, Release, ThreadLaunch, ThreadMemory, ThreadTimes};
use serde::Serialize;

use super::{Filler, Inputs, POOL, fastest};
use crate::Context;

/// Blocks, and threads of each.
pub type Shape = (u32, u32);

/// The launch of the published report.
pub const PUBLISHED: Shape = (ThreadLaunch::PUBLISHED.blocks, ThreadLaunch::PUBLISHED.threads);

/// A key generation, a signature and a verification for every thread of one launch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ran {
    /// How operations were spread.
    pub shape: Shape,
    /// Bytes of the heap that a thread works in.
    pub bytes: usize,
    /// The device's milliseconds for each of the three, copies and the CPU's verification not counted: medians.
    pub ms: [f64; 3],
    /// Mean cycles of an operation: the whole, expansion, products; for each of the three.
    pub cycles: [[f64; 3]; 3],
}

impl Ran {
    /// Operations in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.shape.0 as usize * self.shape.1 as usize
    }

    /// Milliseconds for all three: the report's latency.
    #[must_use]
    pub fn latency_ms(&self) -> f64 {
        self.ms.iter().sum()
    }

    /// Whole MAYO a second, where the device's clock moved: an emulated device's does not.
    #[must_use]
    pub fn per_second(&self) -> Option<f64> {
        let ms = self.latency_ms();
        (ms > 0.0).then(|| self.in_flight() as f64 / ms * 1e3)
    }
}

/// Why a launch has no times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lost {
    /// Whether results differed from the CPU's; otherwise the launch was impossible, for lack of memory or a device.
    pub wrong: bool,
    /// What happened.
    pub why: String,
}

impl Lost {
    fn unavailable(why: impl Display) -> Lost {
        Lost { wrong: false, why: why.to_string() }
    }

    fn wrong(why: impl Display) -> Lost {
        Lost { wrong: true, why: why.to_string() }
    }
}

/// One launch of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trial {
    /// How operations were spread.
    pub shape: Shape,
    /// Its times, or why it has none.
    pub ran: Result<Ran, Lost>,
}

/// Each launch on the first of the chosen devices, `turns` times. All results are held against the CPU's.
#[must_use]
pub fn sweep(context: &Context, params: &'static Params, shapes: &[Shape], turns: usize) -> Vec<Trial> {
    shapes.iter().map(|&shape| Trial { shape, ran: trial(context, params, shape, turns) }).collect()
}

/// The device with a heap of `heap` bytes. Nothing else may hold it: until its last user releases the device, a heap keeps the
/// size that it had when kernels were first loaded.
fn open(context: &Context, cpu: Engine, heap: usize) -> Result<GpuThreads, Lost> {
    let devices = context.device.open().map_err(|u| Lost::unavailable(u.why))?;
    let device = devices.first().ok_or_else(|| Lost::unavailable("no device"))?;
    GpuThreads::open(device, cpu, heap).map_err(Lost::unavailable)
}

fn trial(context: &Context, params: &'static Params, shape: Shape, turns: usize) -> Result<Ran, Lost> {
    let cpu = fastest(&context.cpu).map_err(|u| Lost::unavailable(u.why))?;
    let launch = ThreadLaunch { blocks: shape.0, threads: shape.1, memory: ThreadMemory::Heap };
    // Opened once to learn how many bytes a thread needs, then again with enough for all of them.
    let bytes = open(context, cpu, 0)?.bytes(params);
    let threads = open(context, cpu, GpuThreads::heap(bytes, launch.in_flight()))?;
    let batch = Batch::new(cpu, params, launch.in_flight());
    // A driver may load a kernel when it is first launched: not on the clock.
    batch.head().run(&threads, launch)?;
    let runs = (0..turns.max(1)).map(|_| batch.run(&threads, launch)).collect::<Result<Vec<_>, _>>()?;
    let median: [ThreadTimes; 3] = std::array::from_fn(|i| {
        let mut times: Vec<ThreadTimes> = runs.iter().map(|run| run[i]).collect();
        times.sort_by_key(|t| t.time);
        times[times.len() / 2]
    });
    Ok(Ran {
        shape,
        bytes,
        ms: median.map(|t| t.time.as_secs_f64() * 1e3),
        cycles: median.map(|t| [t.whole, t.expansion, t.products]),
    })
}

/// What a launch works on.
struct Batch {
    keys: Vec<SecretKey>,
    messages: Vec<[u8; 32]>,
    /// The CPU's public keys.
    right: Vec<PublicKey>,
}

impl Batch {
    fn new(cpu: Engine, params: &'static Params, count: usize) -> Batch {
        let inputs = Inputs::new(cpu, params);
        let public: Vec<PublicKey> = inputs.keys.iter().map(|key| key.public_key(cpu)).collect();
        Batch {
            keys: (0..count).map(|i| inputs.keys[i % POOL].clone()).collect(),
            messages: (0..count).map(|i| inputs.messages[i % POOL]).collect(),
            right: (0..count).map(|i| public[i % POOL].clone()).collect(),
        }
    }

    /// Its first operation alone.
    fn head(&self) -> Batch {
        let head = |n: usize| n.min(1);
        Batch {
            keys: self.keys[..head(self.keys.len())].to_vec(),
            messages: self.messages[..head(self.messages.len())].to_vec(),
            right: self.right[..head(self.right.len())].to_vec(),
        }
    }

    /// The three operations, and whether they are right.
    fn run(&self, threads: &GpuThreads, launch: ThreadLaunch) -> Result<[ThreadTimes; 3], Lost> {
        let (public, made) = threads.keygen(launch, &self.keys).map_err(Lost::unavailable)?;
        if public != self.right {
            return Err(Lost::wrong("a public key differs from the CPU's"));
        }
        let mut filler = Filler::new(5);
        // The CPU verifies each.
        let (signed, signing) = threads
            .sign(launch, &self.keys, &self.messages, Release::Verified, &mut filler)
            .map_err(Lost::unavailable)?;
        let signed: Vec<Signature> = signed.into_iter().collect::<Result<_, Error>>().map_err(Lost::wrong)?;
        let valid = |signed: &[Signature]| {
            threads.verify(launch, &public, &self.messages, signed).map_err(Lost::unavailable)
        };
        let (verdicts, verifying) = valid(&signed)?;
        if verdicts.iter().any(Result::is_err) {
            return Err(Lost::wrong("a valid signature was refused"));
        }
        // Each signature under its neighbour's message: a kernel that accepts everything does not pass.
        if self.keys.len() > 1 {
            let mut others = signed;
            others.rotate_left(1);
            let neighbours = self.keys.len() - 1; // the last may have a message of the pool's first again
            if valid(&others)?.0.iter().take(neighbours).any(Result::is_ok) {
                return Err(Lost::wrong("another message's signature was accepted"));
            }
        }
        Ok([made, signing, verifying])
    }
}

#[cfg(all(test, feature = "emulated"))]
mod tests {
    use lanework_cpu::Settings;
    use lanework_mayo::{Round, Set};

    use super::*;
    use crate::device::DeviceChoice;

    #[test]
    fn launches_are_run_checked_and_told_apart() {
        let mut context = Context::new(Settings::default());
        context.device = DeviceChoice::Emulated(1);
        let params = Params::of(Round::Three, Set::Mayo2);
        let all = sweep(&context, params, &[(1, 2), (1, 5000)], 1);
        let ran = all[0].ran.as_ref().expect("two operations");
        assert_eq!((ran.shape, ran.in_flight()), ((1, 2), 2));
        assert!(ran.bytes > params.p12_bytes(), "{}", ran.bytes);
        // An emulated device's clock stands still.
        assert_eq!((ran.latency_ms(), ran.per_second()), (0.0, None));
        let timed = Ran { ms: [1.0, 2.0, 1.0], ..ran.clone() };
        assert_eq!((timed.latency_ms(), timed.per_second()), (4.0, Some(500.0)));
        let lost = all[1].ran.as_ref().expect_err("no block has 5000 threads");
        assert!(!lost.wrong && lost.why.contains("5000"), "{lost:?}");
    }

    #[test]
    fn a_wrong_result_is_not_timed() {
        let (device, _) = lanework_cuda::Device::emulated(lanework_cuda::Emulation::default());
        let cpu = Engine::best();
        let threads = GpuThreads::open(&device, cpu, 0).expect("a device");
        let mut batch = Batch::new(cpu, Params::of(Round::Three, Set::Mayo2), 2);
        let launch = ThreadLaunch { blocks: 1, threads: 2, memory: ThreadMemory::Heap };
        batch.right.swap(0, 1);
        let lost = batch.run(&threads, launch).expect_err("keys changed places");
        assert!(lost.wrong && lost.why.contains("public key"), "{lost:?}");
    }

    #[test]
    fn without_a_device_there_is_no_launch() {
        let mut context = Context::new(Settings::default());
        context.device = DeviceChoice::None;
        let all = sweep(&context, Params::of(Round::Three, Set::Mayo2), &[PUBLISHED], 1);
        assert!(all[0].ran.as_ref().is_err_and(|l| !l.wrong && l.why.contains("--device none")), "{all:?}");
    }
}
