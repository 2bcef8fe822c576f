//! Devices, and what is kept for each.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use lanework_cpu::Unavailable;

use crate::backend::plain::Plain;
use crate::backend::{Limit, Machine, driver};
use crate::card::{Card, Memory};
use crate::error::Error;
use crate::memory::{Buffer, Pinned};
use crate::module::{Image, Loaded, Module};
use crate::stream::Stream;

/// The CUDA devices of this machine, in the driver's order.
///
/// # Errors
/// [`Unavailable`] with the reason where there is no driver, it is too old, or it finds no device.
pub fn devices() -> Result<Vec<Card>, Unavailable> {
    driver::devices()
}

/// A device in use. Clones are the same device.
#[derive(Clone, Debug)]
pub struct Device {
    machine: Arc<dyn Machine>,
    modules: Arc<Mutex<HashMap<&'static str, Module>>>,
}

impl Device {
    /// The device of this number, of those that [`devices`] lists.
    ///
    /// # Errors
    /// [`Error::Unavailable`] as for [`devices`], or where the number is too large; what the driver says.
    pub fn open(ordinal: u32) -> Result<Device, Error> {
        Ok(Device::of(driver::open(ordinal)?))
    }

    /// An emulated device, and the control of what is to go wrong on it.
    #[cfg(feature = "emulated")]
    #[must_use]
    pub fn emulated(how: crate::Emulation) -> (Device, crate::Control) {
        let (machine, control) = crate::backend::emulated::open(how);
        (Device::of(machine), control)
    }

    fn of(machine: Arc<dyn Machine>) -> Device {
        Device { machine, modules: Arc::default() }
    }

    /// What it is.
    #[must_use]
    pub fn card(&self) -> &Card {
        self.machine.card()
    }

    /// Whether an error has lost it. Nothing brings it back in this process; what was being computed is to be done elsewhere.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.machine.grave().cause().is_some()
    }

    /// The error that lost it.
    #[must_use]
    pub fn cause_of_death(&self) -> Option<&str> {
        self.machine.grave().cause()
    }

    /// Takes it out of use, as an error of its own would: for one that computes wrongly.
    pub fn condemn(&self, why: &str) {
        self.machine.grave().bury(why.to_owned());
    }

    /// Its memory now.
    ///
    /// # Errors
    /// What the driver says.
    pub fn memory(&self) -> Result<Memory, Error> {
        self.machine.memory()
    }

    /// Sets what threads of kernels may have.
    ///
    /// # Errors
    /// What the driver says, [`Error::OutOfMemory`] among it.
    pub fn limit(&self, limit: Limit, bytes: usize) -> Result<(), Error> {
        self.machine.limit(limit, bytes)
    }

    /// A stream.
    ///
    /// # Errors
    /// What the driver says.
    pub fn stream(&self) -> Result<Stream, Error> {
        Stream::new(&self.machine)
    }

    /// Device memory for `len` values, with whatever is in it, for what is public.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; [`Error::Shape`] for more than there are addresses.
    pub fn buffer<T: Plain>(&self, len: usize) -> Result<Buffer<T>, Error> {
        Buffer::new(&self.machine, len, false)
    }

    /// The same, overwritten with zero before it is freed.
    ///
    /// # Errors
    /// As for [`buffer`](Device::buffer).
    pub fn secret<T: Plain>(&self, len: usize) -> Result<Buffer<T>, Error> {
        Buffer::new(&self.machine, len, true)
    }

    /// Host memory that the device copies from and to by itself: zero at first, overwritten before it is freed.
    ///
    /// # Errors
    /// As for [`buffer`](Device::buffer).
    pub fn pinned<T: Plain>(&self, len: usize) -> Result<Pinned<T>, Error> {
        Pinned::new(&self.machine, len)
    }

    /// The program on this device, loaded when it is asked for first.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the driver cannot run this code on this device, or in emulation where the program was not
    /// compiled for it; what the driver says.
    pub fn module(&self, image: &Image) -> Result<Module, Error> {
        self.machine.grave().check()?;
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = modules.get(image.name()) {
            return Ok(module.clone());
        }
        let number = self.machine.load(image)?;
        let module = Module(Arc::new(Loaded { machine: Arc::clone(&self.machine), image: *image, number }));
        modules.insert(image.name(), module.clone());
        Ok(module)
    }

    /// Waits for everything that was queued.
    ///
    /// # Errors
    /// What the work met.
    pub fn finish(&self) -> Result<(), Error> {
        self.machine.finish_all()
    }
}
