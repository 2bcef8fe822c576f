//! Batches of MAYO signatures on CUDA devices; experimental, since the kernels have run on only one card, an H100.
//!
#![doc = include_str!("../README.md")]

pub mod check;
mod chunks;
mod error;
mod fleet;
mod keys;
mod launch;
mod multiply;
mod operations;
mod pace;
mod residue;
mod ring;
#[cfg(all(test, feature = "ptx"))]
mod shipped;
#[cfg(all(test, feature = "emulated"))]
mod tests;
mod threads;

use std::sync::{Arc, OnceLock};

use lanework_cuda::Device;
use lanework_mayo::internals::batch::expect;
use lanework_mayo::{Engine, Error, Params};

use crate::chunks::Kept;
use crate::launch::fuse::Plan;
use crate::launch::job::{Job, bytes_each, matrix_bytes};
use crate::launch::kernels::Kernels;
use crate::launch::{CODE, IMAGE};

pub use error::GpuError;
pub use fleet::{Fleet, FleetResult, FleetSigners, FleetSigningKeys, FleetVerifiers, FleetVerifyingKeys};
pub use keys::{GpuSigningKeys, GpuVerifyingKeys};
pub use launch::fuse::Expand;
pub use multiply::Multiply;
pub use operations::{GpuSigners, GpuVerifiers};
pub use pace::Pace;
pub use residue::secrets_left;
pub use ring::Ring;
pub use threads::{GpuThreads, ThreadLaunch, ThreadMemory, ThreadTimes};

/// Whether signatures are verified before they are returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Release {
    /// All are. The default, since a wrong signature may reveal the key.
    #[default]
    Verified,
    /// None are. For measuring the cost of verification.
    Unverified,
}

/// How a device is used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Operations to a chunk, the unit that a stream works on; halved while memory does not suffice.
    pub chunk: usize,
    /// Streams: while one computes, others copy.
    pub streams: usize,
    /// Operations of a chunk that have their matrices on the device at the same time, where every operation has its
    /// own.
    pub ring: Ring,
    /// How those matrices are expanded.
    pub expand: Expand,
    /// The instructions for verification with public keys that it expands from now on.
    pub multiply: Multiply,
    /// Batches of fewer operations than this go to the CPU.
    pub break_even: usize,
    /// The share of every batch for the CPU, 0 to 1.
    pub cpu_share: f64,
    /// Threads of the CPU; 0 for all.
    pub cpu_threads: usize,
    /// One public key in this many, and at least one of each batch, is computed on the CPU too. 0 for none.
    pub spot_check: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            chunk: 1024,
            streams: 4,
            ring: Ring::Cache,
            expand: Expand::Fused,
            multiply: Multiply::Bits,
            break_even: 256,
            cpu_share: 0.0,
            cpu_threads: 0,
            spot_check: 256,
        }
    }
}

/// Where a batch was computed, and what went wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Operations whose result is the device's.
    pub device: usize,
    /// Operations whose result is the CPU's.
    pub cpu: usize,
    /// Attempts at signatures after their first.
    pub restarts: usize,
    /// Times that a chunk was halved for lack of memory.
    pub halvings: usize,
    /// Why the device was abandoned, if it was.
    pub trouble: Option<String>,
}

/// A device with kernels for every set, and the CPU beside it.
///
/// It keeps the memory of its last batch of each operation for the next one, cleared of secrets, until it is dropped or the
/// device has too little for something else.
#[derive(Debug)]
pub struct Gpu {
    device: Device,
    cpu: Engine,
    options: Options,
    /// The kernels of a set after their self-test, or why they are not used.
    sets: [OnceLock<Result<Arc<Kernels>, String>>; 8],
    /// The same for the kernels that make their matrices themselves, which are tested before they are first used.
    fused: [OnceLock<Result<(), String>>; 8],
    /// Whether a set's products of bits have passed theirs, or why they are not used.
    bits: [OnceLock<Result<(), String>>; 8],
    kept: Arc<Kept>,
}

impl Gpu {
    /// The device of this number, beside `cpu`.
    ///
    /// # Errors
    /// The error of `lanework_cuda` for an unavailable device.
    pub fn open(ordinal: u32, cpu: Engine, options: Options) -> Result<Gpu, lanework_cuda::Error> {
        Gpu::of(Device::open(ordinal)?, cpu, options)
    }

    /// A device that is open already.
    ///
    /// # Errors
    /// If it cannot run the kernels.
    pub fn of(device: Device, cpu: Engine, options: Options) -> Result<Gpu, lanework_cuda::Error> {
        device.module(&IMAGE)?;
        Ok(Gpu {
            device,
            cpu,
            options,
            sets: [const { OnceLock::new() }; 8],
            fused: [const { OnceLock::new() }; 8],
            bits: [const { OnceLock::new() }; 8],
            kept: Arc::default(),
        })
    }

    /// The device.
    #[must_use]
    pub const fn device(&self) -> &Device {
        &self.device
    }

    /// How it is used.
    #[must_use]
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// Changes how it is used from here on.
    pub fn set_options(&mut self, options: Options) {
        self.options = options;
    }

    /// The same device with the kernels that have passed their self-tests, with other options.
    #[must_use]
    pub fn with(&self, options: Options) -> Gpu {
        Gpu {
            device: self.device.clone(),
            cpu: self.cpu,
            options,
            sets: self.sets.clone(),
            fused: self.fused.clone(),
            bits: self.bits.clone(),
            kept: Arc::clone(&self.kept),
        }
    }

    /// Runs the self-test of a set unless it has run. Every first use does this.
    ///
    /// # Errors
    /// Why the device is not used for this set.
    pub fn test(&self, params: &Params) -> Result<(), String> {
        self.kernels(params).map(|_| ())
    }

    /// The kernels of a set's operations, by name, with the compiler's figures for each. Local memory shows whether a
    /// thread works outside its registers.
    ///
    /// # Errors
    /// Why the device is not used for this set.
    pub fn facts(&self, params: &Params) -> Result<Vec<(String, lanework_cuda::Facts)>, String> {
        Ok(self
            .kernels(params)?
            .each()
            .iter()
            .map(|kernel| (kernel.name().to_owned(), kernel.facts()))
            .collect())
    }

    /// Whether key generation, signing and verification of a set with compact keys are fused with the expansion of
    /// matrices, by [`Options::expand`] and the device's shared memory.
    ///
    /// # Errors
    /// Why the device is not used for this set.
    pub fn fused(&self, params: &Params) -> Result<[bool; 3], String> {
        let kernels = self.kernels(params)?;
        Ok(Plan::new(self.device.card(), &kernels, Job::Keygen, self.options.expand).fused())
    }

    /// The kernels of a set after their self-test.
    fn kernels(&self, params: &Params) -> Result<Arc<Kernels>, String> {
        let params = Params::of(params.round(), params.set());
        if let Some(cause) = self.device.cause_of_death() {
            return Err(cause.to_owned());
        }
        let slot = self.sets.get(params.index()).ok_or("there are no kernels for this set")?;
        let kernels = slot.get_or_init(|| {
            let load = || -> Result<Arc<Kernels>, lanework_cuda::Error> {
                Ok(Arc::new(Kernels::new(&self.device.module(&IMAGE)?, params)?))
            };
            let kernels = load().map_err(|e| e.to_string())?;
            self.self_test(&kernels, Expand::Alone).inspect_err(|why| self.device.condemn(why))?;
            Ok(kernels)
        });
        if let (Ok(kernels), Expand::Fused) = (kernels, self.options.expand) {
            let test = || self.self_test(kernels, Expand::Fused).inspect_err(|why| self.device.condemn(why));
            self.fused[params.index()].get_or_init(test).clone()?;
        }
        kernels.clone()
    }
}

/// Refuses batches of several sets.
fn one_set<'a>(all: impl IntoIterator<Item = &'a Params>) -> Result<Option<&'static Params>, Error> {
    let mut all = all.into_iter();
    let Some(first) = all.next() else { return Ok(None) };
    all.try_for_each(|other| expect(first, other))?;
    Ok(Some(Params::of(first.round(), first.set())))
}

fn expect_count(what: &'static str, expected: usize, got: usize) -> Result<(), Error> {
    if expected == got { Ok(()) } else { Err(Error::Count { what, expected, got }) }
}

/// SHA-256 of the program that devices run, in hexadecimal. Times of another program do not apply to this one.
#[must_use]
pub fn program() -> String {
    lanework_mayo::internals::known::sha256_hex(CODE)
}

/// Bytes of device memory that one operation in flight takes, its matrices among them: key generation, then signing and
/// verification with compact keys, then both with expanded keys, plus their matrices once for each key.
#[must_use]
pub fn bytes_in_flight(params: &Params) -> [usize; 5] {
    [Job::Keygen, Job::Sign, Job::Verify, Job::SignExpanded, Job::VerifyExpanded]
        .map(|job| bytes_each(params, job) + matrix_bytes(params, job))
}
