//! Which devices a run may use: an axis of its own besides backends and threads.
#![forbid(unsafe_code)]

use core::fmt;
use core::str::FromStr;

use lanework_cpu::Unavailable;
use lanework_cuda::Device;

/// CUDA's name in tables; it can be forced and required like a backend.
pub const CUDA: &str = "cuda";
/// The name of a device that executes the PTX which ships.
const PTX: &str = "ptx";

/// The devices for operations that can run on one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// Not given: checks take all devices, jobs take none.
    #[default]
    Unasked,
    /// No device, the CPU alone.
    None,
    /// The CUDA devices of these numbers; all devices if there is no number.
    Cuda(Vec<u32>),
    /// This many emulated devices, for development: their times mean nothing.
    Emulated(usize),
    /// A device that executes the PTX which ships, on this CPU: its times mean nothing.
    Ptx,
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<DeviceChoice, String> {
        let wrong = || {
            format!(
                "'{text}' is not a device: write none, ptx, cuda or all, or numbers as `lanework doctor` shows them (0 or 0,1)"
            )
        };
        match text {
            "none" => return Ok(DeviceChoice::None),
            CUDA | "all" => return Ok(DeviceChoice::Cuda(Vec::new())),
            "emulated" => return Ok(DeviceChoice::Emulated(1)),
            PTX => return Ok(DeviceChoice::Ptx),
            _ => {}
        }
        if let Some(count) = text.strip_prefix("emulated:") {
            return count
                .parse()
                .ok()
                .filter(|n| (1..=8).contains(n))
                .map(DeviceChoice::Emulated)
                .ok_or_else(wrong);
        }
        let numbers: Vec<u32> =
            text.split(',').map(|n| n.trim().parse().map_err(|_| wrong())).collect::<Result<_, _>>()?;
        let mut once = numbers.clone();
        once.sort_unstable();
        once.dedup();
        // Each device has one place in a list: naming one twice would share nothing out.
        if once.len() == numbers.len() { Ok(DeviceChoice::Cuda(numbers)) } else { Err(wrong()) }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceChoice::Unasked => f.write_str("those there are"),
            DeviceChoice::None => f.write_str("none"),
            DeviceChoice::Cuda(numbers) if numbers.is_empty() => f.write_str(CUDA),
            DeviceChoice::Cuda(numbers) => {
                let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
                f.write_str(&numbers.join(","))
            }
            DeviceChoice::Emulated(count) => write!(f, "emulated:{count}"),
            DeviceChoice::Ptx => f.write_str(PTX),
        }
    }
}

impl DeviceChoice {
    /// Whether a device was asked for, so that going on without one would be wrong.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        matches!(self, DeviceChoice::Cuda(_) | DeviceChoice::Emulated(_) | DeviceChoice::Ptx)
    }

    /// Whether this CPU computes for the devices, so that their times mean nothing.
    #[must_use]
    pub fn is_hosted(&self) -> bool {
        matches!(self, DeviceChoice::Emulated(_) | DeviceChoice::Ptx)
    }

    /// What to do where they cannot be opened.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            DeviceChoice::Emulated(_) => "build with the feature `emulated`, which takes a C++ compiler",
            DeviceChoice::Ptx => "build with the feature `ptx`",
            _ => "`lanework doctor` shows the devices",
        }
    }

    /// The name of variants on these devices.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            DeviceChoice::Emulated(_) => "emulated",
            DeviceChoice::Ptx => PTX,
            _ => CUDA,
        }
    }

    /// Opens them.
    ///
    /// # Errors
    /// The missing device and why; [`DeviceChoice::None`] always fails.
    pub fn open(&self) -> Result<Vec<Device>, Unavailable> {
        let missing = |why: String| Unavailable { what: self.name().to_owned(), why };
        let numbers = match self {
            DeviceChoice::None => return Err(missing("none is to be used (--device none)".to_owned())),
            DeviceChoice::Emulated(count) => return emulated(*count).map_err(missing),
            DeviceChoice::Ptx => return ptx().map_err(missing),
            DeviceChoice::Cuda(numbers) if !numbers.is_empty() => numbers.clone(),
            DeviceChoice::Cuda(_) | DeviceChoice::Unasked => {
                let cards = lanework_cuda::devices().map_err(|u| missing(u.why))?;
                cards.iter().map(|card| card.ordinal).collect()
            }
        };
        let open = |n| {
            Device::open(n).map_err(|e| match e {
                lanework_cuda::Error::Unavailable(u) => missing(u.why),
                e => missing(e.to_string()),
            })
        };
        numbers.into_iter().map(open).collect()
    }
}

#[cfg(feature = "emulated")]
fn emulated(count: usize) -> Result<Vec<Device>, String> {
    use lanework_cuda::Emulation;

    // Each has another size of memory, so that a profile can tell them apart. Freed memory keeps its content, as a driver gives it out.
    // Shared memory is sm_90's, so that every form of a kernel runs.
    let how = |i: usize| Emulation {
        memory: (1 << 30) - ((i as u64) << 20),
        recycles: true,
        shared_per_block: 227 << 10,
        ..Emulation::default()
    };
    Ok((0..count).map(|i| Device::emulated(how(i)).0).collect())
}

#[cfg(not(feature = "emulated"))]
fn emulated(_: usize) -> Result<Vec<Device>, String> {
    Err("this build has no emulated device".to_owned())
}

/// Shared memory is sm_90's here too.
#[cfg(feature = "ptx")]
fn ptx() -> Result<Vec<Device>, String> {
    let how = lanework_cuda::Emulation { shared_per_block: 227 << 10, ..Default::default() };
    Ok(vec![Device::ptx(how).0])
}

#[cfg(not(feature = "ptx"))]
fn ptx() -> Result<Vec<Device>, String> {
    Err("this build executes no PTX".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_read_and_written() {
        for (text, choice) in [
            ("none", DeviceChoice::None),
            ("cuda", DeviceChoice::Cuda(vec![])),
            ("1", DeviceChoice::Cuda(vec![1])),
            ("2,0", DeviceChoice::Cuda(vec![2, 0])),
            ("emulated:2", DeviceChoice::Emulated(2)),
            ("ptx", DeviceChoice::Ptx),
        ] {
            assert_eq!(text.parse(), Ok(choice.clone()), "{text}");
            assert_eq!(choice.to_string().parse(), Ok(choice), "{text}");
        }
        assert_eq!("all".parse(), Ok(DeviceChoice::Cuda(vec![])));
        for text in ["", "gpu", "0,", "0,0", "-1", "emulated:0", "emulated:99"] {
            let why = text.parse::<DeviceChoice>().unwrap_err();
            assert!(why.contains(text) && why.contains("doctor"), "{why}");
        }
    }

    #[test]
    fn what_is_not_to_be_used_is_not_opened() {
        assert!(DeviceChoice::None.open().is_err_and(|u| u.why.contains("--device none")));
        // No machine has that many.
        assert!(DeviceChoice::Cuda(vec![4_000_000]).open().is_err());
        assert_eq!(DeviceChoice::Emulated(2).open().is_ok(), cfg!(feature = "emulated"));
        assert_eq!(DeviceChoice::Ptx.open().is_ok(), cfg!(feature = "ptx"));
    }
}
