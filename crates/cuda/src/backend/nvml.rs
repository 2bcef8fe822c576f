//! A device's energy counter, by the management library (NVML), which is loaded at run time.

use core::ffi::{CStr, c_char, c_uint, c_ulonglong, c_void};
use core::ptr::null_mut;

use lanework_cpu::Unavailable;
use libloading::Library;

use crate::card::Card;

/// The library's names, newest first.
const NAMES: [&str; 2] = ["libnvidia-ml.so.1", "libnvidia-ml.so"];

type Init = unsafe extern "C" fn() -> c_uint;
type ByPlace = unsafe extern "C" fn(*const c_char, *mut *mut c_void) -> c_uint;
type Total = unsafe extern "C" fn(*mut c_void, *mut c_ulonglong) -> c_uint;
type Words = unsafe extern "C" fn(c_uint) -> *const c_char;

/// A device's energy since its driver was loaded, in millijoules: the whole board, with all programs.
#[derive(Debug)]
pub struct Energy {
    // Handles and functions are the library's, which stays loaded as long as this value lives.
    library: Library,
    device: usize,
}

fn missing(why: impl Into<String>) -> Unavailable {
    Unavailable { what: "NVML".to_owned(), why: why.into() }
}

impl Energy {
    /// The counter of this device.
    ///
    /// # Errors
    /// Without the library, for an emulated device, and where the device has no counter.
    pub fn of(card: &Card) -> Result<Energy, Unavailable> {
        if card.emulated {
            return Err(missing("an emulated device uses no energy of its own"));
        }
        let found = NAMES.iter().find_map(|name| {
            // SAFETY: loading it runs its constructors, which the vendor made for any process.
            unsafe { Library::new(*name) }.ok()
        });
        Energy::in_library(found.ok_or_else(|| missing("libnvidia-ml could not be opened"))?, card)
    }

    fn in_library(library: Library, card: &Card) -> Result<Energy, Unavailable> {
        let mut energy = Energy { library, device: 0 };
        // SAFETY: the type is that of the documented function.
        let init: Init = unsafe { energy.function(c"nvmlInit_v2")? };
        // SAFETY: it takes nothing, and may be called more than once.
        energy.check("nvmlInit_v2", unsafe { init() })?;
        // SAFETY: the type is that of the documented function.
        let by_place: ByPlace = unsafe { energy.function(c"nvmlDeviceGetHandleByPciBusId_v2")? };
        let (domain, bus, device) = card.place;
        let place = format!("{domain:08x}:{bus:02x}:{device:02x}.0\0");
        let mut handle: *mut c_void = null_mut();
        // SAFETY: the place ends in zero, and one handle is written.
        let code = unsafe { by_place(place.as_ptr().cast(), &raw mut handle) };
        energy.check("nvmlDeviceGetHandleByPciBusId_v2", code)?;
        energy.device = handle as usize;
        energy.millijoules()?;
        Ok(energy)
    }

    /// # Safety
    /// `F` is the type of the function that NVML documents under this name.
    unsafe fn function<F: Copy>(&self, name: &CStr) -> Result<F, Unavailable> {
        let name = name.to_bytes_with_nul();
        // SAFETY: the caller's promise.
        let symbol = unsafe { self.library.get::<F>(name) };
        symbol
            .map(|f| *f)
            .map_err(|_| missing(format!("it has no {}", String::from_utf8_lossy(&name[..name.len() - 1]))))
    }

    fn check(&self, call: &str, code: c_uint) -> Result<(), Unavailable> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the type is that of the documented function.
        let words = unsafe { self.function::<Words>(c"nvmlErrorString") }.ok().and_then(|words| {
            // SAFETY: it takes any number, and returns null or a constant text.
            let text = unsafe { words(code) };
            // SAFETY: as above.
            (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        });
        Err(missing(format!("{call}: {} ({code})", words.as_deref().unwrap_or("no description"))))
    }

    /// The counter now.
    ///
    /// # Errors
    /// Where the device does not keep one, as some do not.
    pub fn millijoules(&self) -> Result<u64, Unavailable> {
        // SAFETY: the type is that of the documented function.
        let total: Total = unsafe { self.function(c"nvmlDeviceGetTotalEnergyConsumption")? };
        let mut value: c_ulonglong = 0;
        // SAFETY: the handle is the library's own, and one number is written.
        let code = unsafe { total(self.device as *mut c_void, &raw mut value) };
        self.check("nvmlDeviceGetTotalEnergyConsumption", code)?;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(emulated: bool) -> Card {
        Card {
            ordinal: 0,
            name: "a card".to_owned(),
            capability: (9, 0),
            multiprocessors: 1,
            memory: 1,
            shared_per_block: 1,
            l2: 1,
            clock_khz: 0,
            place: (0, 0x3b, 2),
            driver: (13, 0),
            emulated,
        }
    }

    #[test]
    fn an_emulated_device_has_no_counter() {
        assert!(Energy::of(&card(true)).is_err_and(|u| u.why.contains("emulated")));
    }

    /// A library of the documented functions, made by the C compiler; the counter grows by 1500 at every read.
    const MADE_UP: &str = r#"
        #include <string.h>
        unsigned nvmlInit_v2(void) { return 0; }
        unsigned nvmlDeviceGetHandleByPciBusId_v2(const char *place, void **out) {
            static int device;
            *out = &device;
            return strcmp(place, "00000000:3b:02.0") ? 6 : 0;
        }
        unsigned nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *out) {
            static unsigned long long now;
            *out = now += 1500;
            return device ? 0 : 3;
        }
        const char *nvmlErrorString(unsigned code) { return code == 6 ? "Not Found" : "something else"; }
    "#;

    #[test]
    fn the_counter_is_read_and_refusals_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let (source, made) = (folder.path().join("nvml.c"), folder.path().join("libnvml.so"));
        std::fs::write(&source, MADE_UP).unwrap();
        let built = std::process::Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .args([&made, &source])
            .status()
            .is_ok_and(|s| s.success());
        if !built {
            assert!(std::env::var_os("LANEWORK_REQUIRE_CXX").is_none(), "there is no C compiler");
            return eprintln!("skipped: there is no C compiler");
        }
        // SAFETY: it was made above and has no constructors.
        let open = || unsafe { Library::new(&made) }.unwrap();
        let energy = Energy::in_library(open(), &card(false)).unwrap();
        let before = energy.millijoules().unwrap();
        assert_eq!(energy.millijoules().unwrap() - before, 1500);
        let elsewhere = Card { place: (0, 1, 2), ..card(false) };
        let why = Energy::in_library(open(), &elsewhere).unwrap_err().why;
        assert!(why.contains("Not Found (6)"), "{why}");
    }
}
