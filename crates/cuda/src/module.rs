//! Programs and their kernels.
#![forbid(unsafe_code)]

use std::sync::{Arc, Mutex, PoisonError};

use crate::backend::Machine;
use crate::error::Error;

/// A program: machine code for the devices, and the same compiled for the emulation.
#[derive(Clone, Copy, Debug)]
pub struct Image {
    name: &'static str,
    code: &'static [u8],
    #[cfg(feature = "emulated")]
    emulated: Option<&'static crate::Kernels>,
}

impl Image {
    /// A program of this name from a fat binary, a cubin or PTX that ends in a zero byte. Devices keep programs by their
    /// names, which are therefore unique.
    #[must_use]
    pub const fn new(name: &'static str, code: &'static [u8]) -> Image {
        Image {
            name,
            code,
            #[cfg(feature = "emulated")]
            emulated: None,
        }
    }

    /// The same with the kernels compiled as C++.
    #[cfg(feature = "emulated")]
    #[must_use]
    pub const fn with_emulated(mut self, kernels: &'static crate::Kernels) -> Image {
        self.emulated = Some(kernels);
        self
    }

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) const fn code(&self) -> &'static [u8] {
        self.code
    }

    #[cfg(feature = "emulated")]
    pub(crate) const fn emulated(&self) -> Option<&'static crate::Kernels> {
        self.emulated
    }
}

/// The compiler's figures for a kernel, from the driver. In emulation only `max_threads` is meaningful.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of local memory of a thread: stack and spilled registers.
    pub local: u32,
    /// Bytes of static shared memory of a block.
    pub shared: u32,
    /// The most threads a block may have.
    pub max_threads: u32,
    /// The capability it was compiled for, as major * 10 + minor.
    pub binary: u32,
}

#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) machine: Arc<dyn Machine>,
    pub(crate) image: Image,
    pub(crate) number: usize,
}

impl Drop for Loaded {
    fn drop(&mut self) {
        self.machine.unload(self.number);
    }
}

/// A program on a device.
#[derive(Clone, Debug)]
pub struct Module(pub(crate) Arc<Loaded>);

impl Module {
    /// The kernel of this name.
    ///
    /// # Errors
    /// [`Error::NoKernel`], or the driver's error.
    pub fn kernel(&self, name: &str) -> Result<Kernel, Error> {
        let loaded = &self.0;
        let (number, facts) = loaded.machine.function(loaded.number, &loaded.image, name)?;
        Ok(Kernel {
            module: self.clone(),
            name: name.to_owned(),
            number,
            facts,
            allowed: Arc::new(Mutex::new(DEFAULT_SHARED)),
        })
    }
}

/// Bytes of dynamic shared memory that every kernel may have without a raised limit.
const DEFAULT_SHARED: u32 = 48 * 1024;

/// An entry point of a program.
#[derive(Clone, Debug)]
pub struct Kernel {
    module: Module,
    name: String,
    number: usize,
    facts: Facts,
    allowed: Arc<Mutex<u32>>,
}

impl Kernel {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The compiler's figures for it.
    #[must_use]
    pub fn facts(&self) -> Facts {
        self.facts
    }

    /// Blocks of this many threads and bytes of dynamic shared memory that a multiprocessor holds at once; 0 if none
    /// fits.
    ///
    /// # Errors
    /// The driver's error; [`Error::Driver`] for too much shared memory.
    pub fn blocks_per_multiprocessor(&self, threads: u32, shared: u32) -> Result<u32, Error> {
        self.allow_shared(shared)?;
        self.machine().occupancy(self.number, threads, shared)
    }

    pub(crate) fn number(&self) -> usize {
        self.number
    }

    pub(crate) fn machine(&self) -> &Arc<dyn Machine> {
        &self.module.0.machine
    }

    /// Raises the function's limit of shared memory if `bytes` need it.
    pub(crate) fn allow_shared(&self, bytes: u32) -> Result<(), Error> {
        let mut allowed = self.allowed.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes > *allowed {
            self.machine().allow_shared(self.number, bytes)?;
            *allowed = bytes;
        }
        Ok(())
    }
}
