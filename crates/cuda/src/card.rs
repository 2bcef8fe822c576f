//! The description of a device.
#![forbid(unsafe_code)]

use core::fmt;

/// A device as its driver describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// Its number among the devices of this machine, from 0.
    pub ordinal: u32,
    /// The maker's name.
    pub name: String,
    /// Compute capability: major and minor.
    pub capability: (u32, u32),
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of device memory.
    pub memory: u64,
    /// The most bytes of shared memory that a block may ask for.
    pub shared_per_block: u32,
    /// Bytes of second-level cache.
    pub l2: u32,
    /// The multiprocessors' highest clock in kHz, 0 if unknown.
    pub clock_khz: u32,
    /// Its place on the bus: domain, bus and device. Numbers of devices differ between libraries, places do not.
    pub place: (u32, u32, u32),
    /// The CUDA version that the driver offers, as major and minor.
    pub driver: (u32, u32),
    /// Whether this CPU computes for it, so that its times mean nothing.
    pub emulated: bool,
}

impl Card {
    /// What executes its kernels: `cuda`, `emulated` or `ptx`.
    #[must_use]
    pub fn backend(&self) -> &'static str {
        match (self.emulated, self.name == PTX) {
            (false, _) => "cuda",
            (true, false) => "emulated",
            (true, true) => "ptx",
        }
    }
}

/// The name of a device that executes PTX on this CPU.
pub(crate) const PTX: &str = "PTX executed on this CPU";

impl fmt::Display for Card {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.capability;
        write!(
            f,
            "{}, sm_{major}{minor}, {} multiprocessors, {:.1} GiB, driver for CUDA {}.{}",
            self.name,
            self.multiprocessors,
            self.memory as f64 / f64::from(1u32 << 30),
            self.driver.0,
            self.driver.1,
        )
    }
}

/// Device memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Free now.
    pub free: u64,
    /// In all.
    pub total: u64,
}
