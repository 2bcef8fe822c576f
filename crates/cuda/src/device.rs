//! Devices, and the state of each.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use lanework_cpu::Unavailable;

use crate::backend::plain::Plain;
use crate::backend::{Limit, Machine, Reopen, driver};
use crate::card::{Card, Memory};
use crate::error::Error;
use crate::memory::{Buffer, Pinned};
use crate::module::{Image, Loaded, Module};
use crate::search::Found;
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
    /// Whether memory is freed without clearing, even secrets.
    leaves: bool,
}

/// Opens a device again, once nothing holds its context.
pub struct Reopener {
    again: Reopen,
    leaves: bool,
}

impl core::fmt::Debug for Reopener {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Reopener")
    }
}

impl Reopener {
    /// The device, in a fresh context if the last one was released.
    ///
    /// # Errors
    /// As for [`Device::open`].
    pub fn open(&self) -> Result<Device, Error> {
        Ok(Device { leaves: self.leaves, ..Device::of((self.again)()?) })
    }
}

impl Device {
    /// The device of this number, of those that [`devices`] lists.
    ///
    /// # Errors
    /// [`Error::Unavailable`] as for [`devices`], or where the number is too large; the driver's error.
    pub fn open(ordinal: u32) -> Result<Device, Error> {
        Ok(Device::of(driver::open(ordinal)?))
    }

    /// An emulated device, and the control of its faults.
    #[cfg(feature = "emulated")]
    #[must_use]
    pub fn emulated(how: crate::Emulation) -> (Device, crate::Control) {
        let (machine, control) = crate::backend::emulated::open(how);
        (Device::of(machine), control)
    }

    /// A device that executes the PTX of programs as they ship, on this CPU, and the control of its faults.
    #[cfg(feature = "ptx")]
    #[must_use]
    pub fn ptx(how: crate::Emulation) -> (Device, crate::Control) {
        let (machine, control) = crate::backend::ptx::open(how);
        (Device::of(machine), control)
    }

    fn of(machine: Arc<dyn Machine>) -> Device {
        Device { machine, modules: Arc::default(), leaves: false }
    }

    /// How to open it again. It keeps nothing of this context; for a fresh context nothing else may keep it either.
    #[must_use]
    pub fn reopener(&self) -> Reopener {
        Reopener { again: self.machine.reopen(), leaves: self.leaves }
    }

    /// The same device, which frees buffers and pinned memory, even secrets, without clearing. Only for the control of
    /// checks that search for secrets.
    #[doc(hidden)]
    #[must_use]
    pub fn leaving_secrets(&self) -> Device {
        Device { leaves: true, ..self.clone() }
    }

    /// Looks for these bytes, 16 or more each, in nearly all memory of the device that is free, up to 16 GiB, and in
    /// 256 MiB of pinned memory, as it is allocated. Other programs find no free memory meanwhile.
    ///
    /// # Errors
    /// [`Error::Shape`] for fewer bytes; the driver's error.
    pub fn search(&self, needles: &[Vec<u8>]) -> Result<Found, Error> {
        crate::search::search(self, needles)
    }

    /// Its description.
    #[must_use]
    pub fn card(&self) -> &Card {
        self.machine.card()
    }

    /// Whether an error has lost it. It stays lost in this process; repeat its work elsewhere.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.machine.grave().cause().is_some()
    }

    /// The error that lost it.
    #[must_use]
    pub fn cause_of_death(&self) -> Option<&str> {
        self.machine.grave().cause()
    }

    /// Takes it out of use, as a fatal error does. For a device that computes wrongly.
    pub fn condemn(&self, why: &str) {
        self.machine.grave().bury(why.to_owned());
    }

    /// Its memory now.
    ///
    /// # Errors
    /// The driver's error.
    pub fn memory(&self) -> Result<Memory, Error> {
        self.machine.memory()
    }

    /// Sets a limit for threads of kernels.
    ///
    /// # Errors
    /// The driver's error, such as [`Error::OutOfMemory`].
    pub fn limit(&self, limit: Limit, bytes: usize) -> Result<(), Error> {
        self.machine.limit(limit, bytes)
    }

    /// A stream.
    ///
    /// # Errors
    /// The driver's error.
    pub fn stream(&self) -> Result<Stream, Error> {
        Stream::new(&self.machine)
    }

    /// Device memory for `len` public values, of unspecified content.
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
        Buffer::new(&self.machine, len, !self.leaves)
    }

    /// Host memory that the device copies from and to by itself: zero at first, overwritten before it is freed.
    ///
    /// # Errors
    /// As for [`buffer`](Device::buffer).
    pub fn pinned<T: Plain>(&self, len: usize) -> Result<Pinned<T>, Error> {
        Ok(Pinned::new(&self.machine, len)?.cleared().left(self.leaves))
    }

    /// The same with unspecified content, and freed without clearing.
    pub(crate) fn pinned_as_it_is<T: Plain>(&self, len: usize) -> Result<Pinned<T>, Error> {
        Ok(Pinned::new(&self.machine, len)?.left(true))
    }

    /// The program on this device, loaded at the first call.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the driver cannot run this code on this device, or in emulation where the program
    /// was not compiled for it; the driver's error.
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
    /// The work's fault.
    pub fn finish(&self) -> Result<(), Error> {
        self.machine.grave().check()?;
        self.machine.finish_all()
    }
}
