//! Errors of operations that the CPU does not take over.
#![forbid(unsafe_code)]

use lanework_cuda::Error as DeviceError;
use lanework_mayo::Error;

/// Why keys were not expanded on a device, or a batch was not computed on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GpuError {
    /// The lists do not fit together, or the random generator failed.
    Batch(Error),
    /// The device's error: among others lack of memory, stack or heap, and [`lanework_cuda::Error::NoKernel`] for a set
    /// whose matrices are too large for a stack.
    Device(DeviceError),
    /// Why the device cannot do it, or is no longer used for this set.
    Unusable(String),
}

impl From<Error> for GpuError {
    fn from(error: Error) -> GpuError {
        GpuError::Batch(error)
    }
}

impl From<DeviceError> for GpuError {
    fn from(error: DeviceError) -> GpuError {
        GpuError::Device(error)
    }
}

impl core::fmt::Display for GpuError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            GpuError::Batch(error) => error.fmt(f),
            GpuError::Device(error) => error.fmt(f),
            GpuError::Unusable(why) => write!(f, "the device cannot do it: {why}"),
        }
    }
}

impl core::error::Error for GpuError {}
