//! The CUDA driver, loaded at run time.
//!
//! cudarc finds and opens the library. Its own bindings panic at the first call of a function that the library lacks, and
//! keep result codes in an enumeration, which a code unknown to them must not enter; so the functions are
//! looked up here, all of them at once, and codes stay numbers.

mod functions;

use core::ffi::{CStr, c_int, c_uint, c_void};
use core::ptr::{NonNull, null_mut};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lanework_cpu::Unavailable;

use crate::backend::{Argument, Limit, Machine, Reopen};
use crate::card::{Card, Memory};
use crate::error::{Error, Failure, Grave, OUT_OF_MEMORY};
use crate::module::{Facts, Image};
use crate::stream::Grid;

use functions::{Functions, Handle};

/// The oldest driver that takes programs of this tree's compiler, as the CUDA version that it offers.
const OLDEST: (u32, u32) = (13, 0);
/// The oldest compute capability that the shipped intermediate code can be compiled for.
const OLDEST_CAPABILITY: (u32, u32) = (8, 0);

/// The initialised driver.
struct Driver {
    call: Functions,
    version: (u32, u32),
}

fn driver() -> Result<&'static Driver, Unavailable> {
    static DRIVER: OnceLock<Result<Driver, String>> = OnceLock::new();
    // A panic while loading comes from cudarc; it becomes a reason like others.
    let found = DRIVER.get_or_init(|| match std::panic::catch_unwind(start) {
        Ok(result) => result,
        Err(_) => Err("the driver's library could not be loaded".to_owned()),
    });
    found.as_ref().map_err(|why| Unavailable { what: "CUDA".to_owned(), why: why.clone() })
}

fn start() -> Result<Driver, String> {
    // SAFETY: it opens the driver's library, if there is one, and closes it.
    if !unsafe { cudarc::driver::sys::is_culib_present() } {
        return Err("there is no driver (libcuda could not be opened)".to_owned());
    }
    // SAFETY: the library is there, and stays open to the end of the process.
    let library = unsafe { cudarc::driver::sys::culib() };
    let call = Functions::load(|name| {
        // SAFETY: the address is only kept; `Functions::load` gives it the type of the function documented by this name.
        unsafe { library.get::<*const c_void>(name) }.ok().map(|symbol| *symbol)
    })?;
    // SAFETY: as documented; no flags.
    let code = unsafe { (call.init)(0) };
    if code != 0 {
        let failure = call.failure("cuInit", code);
        return Err(match code {
            100 => format!("the driver finds no device: {failure}"),
            _ => format!("the driver does not start: {failure}"),
        });
    }
    let mut version: c_int = 0;
    // SAFETY: it writes one number.
    let code = unsafe { (call.driver_version)(&raw mut version) };
    if code != 0 {
        return Err(call.failure("cuDriverGetVersion", code).to_string());
    }
    let version = u32::try_from(version).unwrap_or(0);
    let version = (version / 1000, version % 1000 / 10);
    if version < OLDEST {
        return Err(format!(
            "the driver is for CUDA {}.{}, and programs need one for {}.{} or newer",
            version.0, version.1, OLDEST.0, OLDEST.1
        ));
    }
    Ok(Driver { call, version })
}

fn count(driver: &Driver) -> Result<u32, Unavailable> {
    let mut count: c_int = 0;
    // SAFETY: it writes one number.
    let code = unsafe { (driver.call.device_count)(&raw mut count) };
    let why = match (code, u32::try_from(count).unwrap_or(0)) {
        (0, 0) => "the driver finds no device".to_owned(),
        (0, count) => return Ok(count),
        (code, _) => driver.call.failure("cuDeviceGetCount", code).to_string(),
    };
    Err(Unavailable { what: "CUDA".to_owned(), why })
}

pub(crate) fn devices() -> Result<Vec<Card>, Unavailable> {
    let driver = driver()?;
    (0..count(driver)?)
        .map(|ordinal| {
            card(driver, ordinal).map(|(card, _)| card).map_err(|failure| Unavailable {
                what: format!("CUDA device {ordinal}"),
                why: failure.to_string(),
            })
        })
        .collect()
}

/// The device's card, and its handle.
fn card(driver: &Driver, ordinal: u32) -> Result<(Card, c_int), Failure> {
    let call = &driver.call;
    let mut device: c_int = 0;
    let number = c_int::try_from(ordinal).unwrap_or(c_int::MAX);
    // SAFETY: it writes one number.
    call.checked("cuDeviceGet", unsafe { (call.device)(&raw mut device, number) })?;
    let mut name = [0u8; 128];
    // SAFETY: it writes at most that many bytes, the last of them zero.
    let code = unsafe { (call.device_name)(name.as_mut_ptr().cast(), name.len() as c_int - 1, device) };
    call.checked("cuDeviceGetName", code)?;
    let name = CStr::from_bytes_until_nul(&name).map(|name| name.to_string_lossy().into_owned());
    let mut memory = 0usize;
    // SAFETY: it writes one number.
    call.checked("cuDeviceTotalMem_v2", unsafe { (call.device_memory)(&raw mut memory, device) })?;
    let attribute = |attribute: c_int| -> Result<u32, Failure> {
        let mut value: c_int = 0;
        // SAFETY: it writes one number.
        let code = unsafe { (call.device_attribute)(&raw mut value, attribute, device) };
        call.checked("cuDeviceGetAttribute", code)?;
        Ok(u32::try_from(value).unwrap_or(0))
    };
    // The numbers are those of CUdevice_attribute.
    let card = Card {
        ordinal,
        name: name.unwrap_or_default(),
        capability: (attribute(75)?, attribute(76)?),
        multiprocessors: attribute(16)?,
        memory: memory as u64,
        shared_per_block: attribute(97)?,
        l2: attribute(38)?,
        clock_khz: attribute(13).unwrap_or(0),
        place: (attribute(50).unwrap_or(0), attribute(33).unwrap_or(0), attribute(34).unwrap_or(0)),
        driver: driver.version,
        emulated: false,
    };
    Ok((card, device))
}

pub(crate) fn open(ordinal: u32) -> Result<Arc<dyn Machine>, Error> {
    let driver = driver()?;
    let count = count(driver)?;
    let what = || format!("CUDA device {ordinal}");
    if ordinal >= count {
        return Err(Error::unavailable(what(), format!("the driver finds {count}, numbered from 0")));
    }
    let (card, device) =
        card(driver, ordinal).map_err(|failure| Error::unavailable(what(), failure.to_string()))?;
    if card.capability < OLDEST_CAPABILITY {
        let ((major, minor), (m, n)) = (card.capability, OLDEST_CAPABILITY);
        return Err(Error::unavailable(
            what(),
            format!("{} is sm_{major}{minor}, and programs need sm_{m}{n} or newer", card.name),
        ));
    }
    let mut context: Handle = null_mut();
    // SAFETY: it writes one handle, given back by the drop below.
    let code = unsafe { (driver.call.context_retain)(&raw mut context, device) };
    driver
        .call
        .checked("cuDevicePrimaryCtxRetain", code)
        .map_err(|failure| Error::unavailable(what(), failure.to_string()))?;
    Ok(Arc::new(Cuda { driver, device, context: context as usize, card, grave: Grave::default() }))
}

/// A device's primary context. Handles are kept as numbers, since the driver lets any thread use them.
struct Cuda {
    driver: &'static Driver,
    device: c_int,
    context: usize,
    card: Card,
    grave: Grave,
}

impl core::fmt::Debug for Cuda {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Cuda").field("card", &self.card).field("grave", &self.grave).finish_non_exhaustive()
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        // SAFETY: it was retained once by `open`, and everything in it kept this machine alive.
        let _ = unsafe { (self.driver.call.context_release)(self.device) };
    }
}

/// A number as the driver's handle.
fn handle(number: usize) -> Handle {
    number as Handle
}

impl Cuda {
    fn check(&self, call: &'static str, code: u32) -> Result<(), Error> {
        self.driver.call.checked(call, code).map_err(|failure| self.grave.judge(failure))
    }

    /// Makes the context this thread's, and returns the functions. Refuses if the device is lost or condemned.
    fn call(&self) -> Result<&Functions, Error> {
        self.grave.check()?;
        self.reach()
    }

    /// The same for releases, which a condemned device still allows.
    fn reach(&self) -> Result<&Functions, Error> {
        if self.grave.is_lost() {
            self.grave.check()?;
        }
        // SAFETY: the context is retained.
        self.check("cuCtxSetCurrent", unsafe { (self.driver.call.context_set)(handle(self.context)) })?;
        Ok(&self.driver.call)
    }

    fn attribute(&self, call: &Functions, function: usize, attribute: c_int) -> Result<u32, Error> {
        let mut value: c_int = 0;
        // SAFETY: it writes one number; the function is this machine's.
        let code = unsafe { (call.function_attribute)(&raw mut value, attribute, handle(function)) };
        self.check("cuFuncGetAttribute", code)?;
        Ok(u32::try_from(value).unwrap_or(0))
    }
}

// In all methods below the driver writes through pointers to locals of the documented types, and handles are of this
// context, by the contract of `Machine`.
impl Machine for Cuda {
    fn card(&self) -> &Card {
        &self.card
    }

    fn grave(&self) -> &Grave {
        &self.grave
    }

    fn reopen(&self) -> Reopen {
        let ordinal = self.card.ordinal;
        Box::new(move || open(ordinal))
    }

    fn memory(&self) -> Result<Memory, Error> {
        let (mut free, mut total) = (0usize, 0usize);
        // SAFETY: it writes two numbers.
        let code = unsafe { (self.call()?.memory_info)(&raw mut free, &raw mut total) };
        self.check("cuMemGetInfo_v2", code)?;
        Ok(Memory { free: free as u64, total: total as u64 })
    }

    fn limit(&self, limit: Limit, bytes: usize) -> Result<(), Error> {
        let which = match limit {
            Limit::Stack => 0,
            Limit::Heap => 2,
        };
        // SAFETY: numbers only.
        match unsafe { (self.call()?.context_limit)(which, bytes) } {
            OUT_OF_MEMORY => Err(Error::OutOfMemory { what: "memory for threads", bytes }),
            code => self.check("cuCtxSetLimit", code),
        }
    }

    fn allocate(&self, bytes: usize) -> Result<u64, Error> {
        let mut address = 0u64;
        // SAFETY: it writes one address. The driver refuses 0 bytes.
        match unsafe { (self.call()?.allocate)(&raw mut address, bytes.max(1)) } {
            OUT_OF_MEMORY => Err(Error::OutOfMemory { what: "device memory", bytes }),
            code => self.check("cuMemAlloc_v2", code).map(|()| address),
        }
    }

    fn free(&self, address: u64, bytes: usize, wipe: bool) {
        // A lost context neither frees nor clears; the driver does both when the process ends.
        let Ok(call) = self.reach() else { return };
        // SAFETY: `allocate` returned the address with that many bytes. Nothing uses it after all work is done, and the
        // second wait is for the overwriting.
        unsafe {
            if self.check("cuCtxSynchronize", (call.context_finish)()).is_err() {
                return;
            }
            if wipe && bytes > 0 {
                let wiped = self.check("cuMemsetD8_v2", (call.memory_set)(address, 0, bytes));
                let done = self.check("cuCtxSynchronize", (call.context_finish)());
                if let Err(why) = wiped.and(done) {
                    // Memory that cannot be cleared must not be reused: it stays allocated to the end.
                    self.grave.bury(format!("a secret could not be cleared: {why}"));
                    return;
                }
            }
            let _ = self.check("cuMemFree_v2", (call.free)(address));
        }
    }

    fn pin(&self, bytes: usize) -> Result<NonNull<u8>, Error> {
        const PORTABLE: c_uint = 1;
        let mut memory: *mut c_void = null_mut();
        // SAFETY: it writes one address.
        match unsafe { (self.call()?.pin)(&raw mut memory, bytes.max(1), PORTABLE) } {
            OUT_OF_MEMORY => return Err(Error::OutOfMemory { what: "pinned memory", bytes }),
            code => self.check("cuMemHostAlloc", code)?,
        }
        let memory = NonNull::new(memory.cast::<u8>())
            .filter(|memory| memory.as_ptr().addr() % 64 == 0)
            .ok_or_else(|| Error::Shape("the driver returned misaligned pinned memory".to_owned()))?;
        Ok(memory)
    }

    fn unpin(&self, memory: NonNull<u8>, _: usize) {
        // A lost context frees it with the process.
        if let Ok(call) = self.reach() {
            // SAFETY: no arguments. On a condemned device the copies may still run.
            let _ = self.check("cuCtxSynchronize", unsafe { (call.context_finish)() });
            // SAFETY: `pin` returned it, and nothing uses it any longer.
            let _ = self.check("cuMemFreeHost", unsafe { (call.unpin)(memory.as_ptr().cast()) });
        }
    }

    fn load(&self, image: &Image) -> Result<usize, Error> {
        // The driver gets no length.
        if image.code().len() < 16 {
            return Err(Error::unavailable(
                format!("the program '{}'", image.name()),
                "it was built without machine code",
            ));
        }
        let mut module: Handle = null_mut();
        // SAFETY: the code is a whole fat binary, cubin or PTX, by the contract of `Image::new`.
        let code = unsafe { (self.call()?.module_load)(&raw mut module, image.code().as_ptr().cast()) };
        match code {
            // No code for this device, PTX that is too new, or a compiler too old or missing.
            200 | 209 | 218 | 221 | 222 | 223 => Err(Error::unavailable(
                format!("the program '{}'", image.name()),
                format!("on {}: {}", self.card, self.driver.call.failure("cuModuleLoadData", code)),
            )),
            OUT_OF_MEMORY => {
                Err(Error::OutOfMemory { what: "device memory for a program", bytes: image.code().len() })
            }
            code => self.check("cuModuleLoadData", code).map(|()| module as usize),
        }
    }

    fn unload(&self, module: usize) {
        if let Ok(call) = self.reach() {
            // SAFETY: nothing of it is queued: streams are waited for when they end, and so is all work here.
            let _ = self.check("cuCtxSynchronize", unsafe { (call.context_finish)() });
            // SAFETY: as above.
            let _ = self.check("cuModuleUnload", unsafe { (call.module_unload)(handle(module)) });
        }
    }

    fn function(&self, module: usize, image: &Image, name: &str) -> Result<(usize, Facts), Error> {
        let missing = || Error::NoKernel { image: image.name(), kernel: name.to_owned() };
        let text = std::ffi::CString::new(name).map_err(|_| missing())?;
        let call = self.call()?;
        let mut function: Handle = null_mut();
        // SAFETY: the name ends in a zero byte.
        match unsafe { (call.module_function)(&raw mut function, handle(module), text.as_ptr()) } {
            500 => return Err(missing()),
            code => self.check("cuModuleGetFunction", code)?,
        }
        let function = function as usize;
        let facts = Facts {
            max_threads: self.attribute(call, function, 0)?,
            shared: self.attribute(call, function, 1)?,
            local: self.attribute(call, function, 3)?,
            registers: self.attribute(call, function, 4)?,
            binary: self.attribute(call, function, 6)?,
        };
        Ok((function, facts))
    }

    fn allow_shared(&self, function: usize, bytes: u32) -> Result<(), Error> {
        const MAX_DYNAMIC_SHARED: c_int = 8;
        let call = self.call()?;
        let most = self.card.shared_per_block.saturating_sub(self.attribute(call, function, 1)?);
        if bytes > most {
            return Err(Error::Shape(format!(
                "a block cannot have {bytes} bytes of shared memory: the device allows {most}"
            )));
        }
        // All of it, so that no other user of the function can lower what this one has raised.
        let most = c_int::try_from(most).unwrap_or(c_int::MAX);
        // SAFETY: numbers, and a function of this machine.
        let code = unsafe { (call.function_set)(handle(function), MAX_DYNAMIC_SHARED, most) };
        self.check("cuFuncSetAttribute", code)
    }

    fn occupancy(&self, function: usize, threads: u32, shared: u32) -> Result<u32, Error> {
        let mut blocks: c_int = 0;
        let threads = c_int::try_from(threads).unwrap_or(c_int::MAX);
        let call = self.call()?;
        // SAFETY: it writes one number.
        let code = unsafe { (call.occupancy)(&raw mut blocks, handle(function), threads, shared as usize) };
        self.check("cuOccupancyMaxActiveBlocksPerMultiprocessor", code)?;
        Ok(u32::try_from(blocks).unwrap_or(0))
    }

    fn open_stream(&self) -> Result<usize, Error> {
        const NON_BLOCKING: c_uint = 1;
        let mut stream: Handle = null_mut();
        // SAFETY: it writes one handle.
        let code = unsafe { (self.call()?.stream_open)(&raw mut stream, NON_BLOCKING) };
        self.check("cuStreamCreate", code).map(|()| stream as usize)
    }

    fn close_stream(&self, stream: usize) {
        if let Ok(call) = self.reach() {
            // SAFETY: the stream is this machine's.
            let _ = self.check("cuStreamSynchronize", unsafe { (call.stream_finish)(handle(stream)) });
            // SAFETY: as above.
            let _ = self.check("cuStreamDestroy_v2", unsafe { (call.stream_close)(handle(stream)) });
        }
    }

    fn finish(&self, stream: usize) -> Result<(), Error> {
        // SAFETY: the stream is this machine's.
        let code = unsafe { (self.call()?.stream_finish)(handle(stream)) };
        self.check("cuStreamSynchronize", code)
    }

    fn finish_all(&self) -> Result<(), Error> {
        // Copies of a device that is only condemned still run.
        // SAFETY: no arguments.
        let code = unsafe { (self.reach()?.context_finish)() };
        self.check("cuCtxSynchronize", code)
    }

    fn open_event(&self, timed: bool) -> Result<usize, Error> {
        const DISABLE_TIMING: c_uint = 2;
        let mut event: Handle = null_mut();
        let flags = if timed { 0 } else { DISABLE_TIMING };
        // SAFETY: it writes one handle.
        let code = unsafe { (self.call()?.event_open)(&raw mut event, flags) };
        self.check("cuEventCreate", code).map(|()| event as usize)
    }

    fn close_event(&self, event: usize) {
        if let Ok(call) = self.reach() {
            // SAFETY: the event is this machine's; the driver lets one end that is still to come.
            let _ = self.check("cuEventDestroy_v2", unsafe { (call.event_close)(handle(event)) });
        }
    }

    fn record(&self, stream: usize, event: usize) -> Result<(), Error> {
        // SAFETY: both are this machine's.
        let code = unsafe { (self.call()?.event_record)(handle(event), handle(stream)) };
        self.check("cuEventRecord", code)
    }

    fn wait_in(&self, stream: usize, event: usize) -> Result<(), Error> {
        // SAFETY: both are this machine's.
        let code = unsafe { (self.call()?.stream_wait)(handle(stream), handle(event), 0) };
        self.check("cuStreamWaitEvent", code)
    }

    fn wait(&self, event: usize) -> Result<(), Error> {
        // SAFETY: the event is this machine's.
        let code = unsafe { (self.call()?.event_wait)(handle(event)) };
        self.check("cuEventSynchronize", code)
    }

    fn is_done(&self, event: usize) -> Result<bool, Error> {
        const NOT_READY: u32 = 600;
        // SAFETY: the event is this machine's.
        match unsafe { (self.call()?.event_query)(handle(event)) } {
            NOT_READY => Ok(false),
            code => self.check("cuEventQuery", code).map(|()| true),
        }
    }

    fn between(&self, start: usize, end: usize) -> Result<Duration, Error> {
        let mut milliseconds = 0f32;
        // SAFETY: it writes one number; both are this machine's.
        let code = unsafe { (self.call()?.event_elapsed)(&raw mut milliseconds, handle(start), handle(end)) };
        self.check("cuEventElapsedTime", code)?;
        Ok(Duration::try_from_secs_f64(f64::from(milliseconds) / 1e3).unwrap_or_default())
    }

    unsafe fn upload(&self, stream: usize, from: *const u8, to: u64, bytes: usize) -> Result<(), Error> {
        // SAFETY: the caller's promise is what the driver asks for.
        let code = unsafe { (self.call()?.upload)(to, from.cast(), bytes, handle(stream)) };
        self.check("cuMemcpyHtoDAsync_v2", code)
    }

    unsafe fn download(&self, stream: usize, from: u64, to: *mut u8, bytes: usize) -> Result<(), Error> {
        // SAFETY: the caller's promise is what the driver asks for.
        let code = unsafe { (self.call()?.download)(to.cast(), from, bytes, handle(stream)) };
        self.check("cuMemcpyDtoHAsync_v2", code)
    }

    unsafe fn copy(&self, stream: usize, from: u64, to: u64, bytes: usize) -> Result<(), Error> {
        // SAFETY: the caller's promise is what the driver asks for.
        let code = unsafe { (self.call()?.copy)(to, from, bytes, handle(stream)) };
        self.check("cuMemcpyDtoDAsync_v2", code)
    }

    unsafe fn zero(&self, stream: usize, at: u64, bytes: usize) -> Result<(), Error> {
        // SAFETY: the caller's promise is what the driver asks for.
        let code = unsafe { (self.call()?.memory_set_in)(at, 0, bytes, handle(stream)) };
        self.check("cuMemsetD8Async", code)
    }

    unsafe fn launch(
        &self,
        stream: usize,
        function: usize,
        grid: Grid,
        arguments: &[Argument],
    ) -> Result<(), Error> {
        // The driver copies each argument from where its pointer points, by the width that the kernel declares. On the
        // little-endian machines that CUDA has, a number's low bytes are its narrower self.
        let mut values: Vec<u64> = arguments.iter().map(|argument| argument.0.value).collect();
        let mut pointers: Vec<*mut c_void> =
            values.iter_mut().map(|value| (&raw mut *value).cast()).collect();
        // SAFETY: the caller promises that these are the function's arguments; the driver copies them before it returns.
        let code = unsafe {
            (self.call()?.launch)(
                handle(function),
                grid.blocks,
                1,
                1,
                grid.threads,
                1,
                1,
                grid.shared,
                handle(stream),
                pointers.as_mut_ptr(),
                null_mut(),
            )
        };
        self.check("cuLaunchKernel", code)
    }
}
