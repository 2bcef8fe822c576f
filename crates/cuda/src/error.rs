//! Errors of devices.
#![forbid(unsafe_code)]

use core::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

pub use lanework_cpu::Unavailable;

/// Why a call to a device failed. After [`Error::Fault`] and [`Error::Dead`] the device computes nothing more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// There is no such device here, or no driver for it.
    Unavailable(Unavailable),
    /// The requested memory is not free; a smaller piece of work may fit.
    OutOfMemory {
        /// What kind of memory.
        what: &'static str,
        /// Bytes requested.
        bytes: usize,
    },
    /// This call caused an error that lost the device's context, with the content of its memory.
    Fault(Failure),
    /// The device was lost by an earlier call.
    Dead {
        /// The error that lost it.
        cause: String,
    },
    /// The driver refused this call; the device lives.
    Driver(Failure),
    /// The program has no kernel of this name.
    NoKernel {
        /// The program.
        image: &'static str,
        /// The requested kernel.
        kernel: String,
    },
    /// The caller's ranges, sizes or arguments do not fit; nothing was done.
    Shape(String),
}

/// A driver call's failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The call, as the driver's documentation names it.
    pub call: &'static str,
    /// Its code.
    pub code: u32,
    /// The code's name.
    pub name: String,
    /// The driver's description.
    pub text: String,
}

impl Error {
    /// Whether memory is lacking, so that half the work may fit.
    #[must_use]
    pub const fn is_memory(&self) -> bool {
        matches!(self, Error::OutOfMemory { .. })
    }

    /// Whether the device is lost.
    #[must_use]
    pub const fn is_fatal(&self) -> bool {
        matches!(self, Error::Fault(_) | Error::Dead { .. })
    }

    pub(crate) fn unavailable(what: impl Into<String>, why: impl Into<String>) -> Error {
        Error::Unavailable(Unavailable { what: what.into(), why: why.into() })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed with {} ({}): {}", self.call, self.code, self.name, self.text)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unavailable(u) => u.fmt(f),
            Error::OutOfMemory { what, bytes } => write!(f, "out of {what}: {bytes} bytes were requested"),
            Error::Fault(failure) => write!(f, "the device is lost: {failure}"),
            Error::Dead { cause } => write!(f, "the device was lost earlier: {cause}"),
            Error::Driver(failure) => failure.fmt(f),
            Error::NoKernel { image, kernel } => write!(f, "the program '{image}' has no kernel '{kernel}'"),
            Error::Shape(why) => f.write_str(why),
        }
    }
}

impl core::error::Error for Error {}

impl From<Unavailable> for Error {
    fn from(u: Unavailable) -> Error {
        Error::Unavailable(u)
    }
}

/// The codes that the driver documents as leaving the context unusable, or that say that it already is.
const STICKY: [u32; 19] = [
    4,   // deinitialised: the process is about to end
    201, // the context is not valid any more
    214, // an ECC error that cannot be corrected
    220, // an NVLink error that cannot be corrected
    226, // an error contained to this process
    700, // an illegal address
    702, // a kernel ran past the system's limit
    709, // the context is destroyed
    710, // a device-side assertion
    711, 712, // peer and host registrations lost with their context
    714, // a hardware stack error
    715, // an illegal instruction
    716, // a misaligned address
    717, // an address outside its space
    718, // an invalid program counter
    719, // a launch that failed otherwise
    721, // tensor memory not given back
    999, // unknown to the driver itself
];

/// Out of device memory, as a code of the driver.
pub(crate) const OUT_OF_MEMORY: u32 = 2;

/// The place of a device's first fatal error.
#[derive(Debug, Default)]
pub(crate) struct Grave {
    cause: OnceLock<String>,
    /// Whether the context is lost as well: a device that is only condemned can still be cleared.
    lost: AtomicBool,
}

impl Grave {
    /// The error that lost the device, if one did.
    pub(crate) fn cause(&self) -> Option<&str> {
        self.cause.get().map(String::as_str)
    }

    /// Refuses where the device is lost.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.cause.get() {
            None => Ok(()),
            Some(cause) => Err(Error::Dead { cause: cause.clone() }),
        }
    }

    /// Stops all computation here. The first cause stays.
    pub(crate) fn bury(&self, cause: String) {
        let _ = self.cause.set(cause);
    }

    /// Whether the driver refuses everything from now on.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Classifies a failure, and marks the device lost if it is fatal.
    pub(crate) fn judge(&self, failure: Failure) -> Error {
        if STICKY.contains(&failure.code) {
            self.bury(failure.to_string());
            self.lost.store(true, Ordering::Release);
            return Error::Fault(failure);
        }
        Error::Driver(failure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(code: u32) -> Failure {
        Failure { call: "cuTest", code, name: "NAME".into(), text: "text".into() }
    }

    #[test]
    fn a_sticky_code_buries_the_device_and_the_first_cause_stays() {
        let grave = Grave::default();
        assert!(matches!(grave.judge(failure(1)), Error::Driver(_)));
        assert_eq!(grave.check(), Ok(()));
        assert!(matches!(grave.judge(failure(700)), Error::Fault(_)));
        grave.judge(failure(719));
        let Err(Error::Dead { cause }) = grave.check() else { panic!("it is dead") };
        assert!(cause.contains("700"), "{cause}");
    }
}
