//! Kernels compiled as C++, and buffers in the host's memory with guard bytes around each.

use core::ffi::{CStr, c_char, c_void};
use core::ptr::{NonNull, null};
use std::alloc::{Layout, alloc, dealloc};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::{Depots, Dimensions, Entry, Kernels, Launch, Parameter, lw_forget, lw_run, lw_undefined};
use crate::backend::Argument;
use crate::backend::hosted::{Body, Order, Ran, Work};
use crate::error::Error;
use crate::module::{Facts, Image};

/// Guard bytes on either side of a buffer.
const ZONE: usize = 256;
const UNTOUCHED: u8 = 0x5a;

impl Entry {
    /// The kernel of this name.
    pub(super) fn find(kernels: &'static Kernels, name: &str) -> Option<&'static Entry> {
        // SAFETY: the program's own constant table and its length.
        let table = unsafe { core::slice::from_raw_parts(kernels.kernels, kernels.count as usize) };
        // SAFETY: names are constant texts that end in a zero byte.
        table.iter().find(|entry| unsafe { CStr::from_ptr(entry.name) }.to_bytes() == name.as_bytes())
    }

    pub(super) fn name(&self) -> String {
        // SAFETY: as above.
        unsafe { CStr::from_ptr(self.name) }.to_string_lossy().into_owned()
    }

    /// Why these cannot be its arguments; `None` if they can.
    pub(super) fn refuses(&self, arguments: &[Argument]) -> Option<String> {
        // SAFETY: the program's own constant table and its length.
        let declared: &[Parameter] =
            unsafe { core::slice::from_raw_parts(self.parameters, self.count as usize) };
        if declared.len() != arguments.len() {
            return Some(format!("takes {} arguments but gets {}", declared.len(), arguments.len()));
        }
        declared.iter().zip(arguments).enumerate().find_map(|(i, (declared, argument))| {
            let (bytes, pointer) = (argument.0.bytes, argument.0.pointer);
            let fits = declared.bytes == u16::from(bytes) && (declared.pointer != 0) == pointer;
            let kind = |pointer: bool| if pointer { "an address" } else { "a number" };
            (!fits).then(|| {
                format!(
                    "takes {} of {} bytes as argument {i} but gets {} of {bytes}",
                    kind(declared.pointer != 0),
                    declared.bytes,
                    kind(pointer)
                )
            })
        })
    }
}

/// With its zones; a whole buffer is a multiple of their alignment.
fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.checked_add(2 * ZONE)?, ZONE).ok()
}

/// An emulated device's memory and programs.
#[derive(Debug, Default)]
pub(super) struct Fibers {
    /// Buffers: bytes by address.
    buffers: BTreeMap<u64, usize>,
    programs: HashMap<usize, &'static Kernels>,
    next: usize,
    /// The source of memory, if it is reused.
    depots: Option<Arc<Depots>>,
}

/// A place in host memory by its number.
fn at(address: u64) -> *mut u8 {
    core::ptr::with_exposed_provenance_mut(address as usize)
}

impl Body for Fibers {
    type Kernel = &'static Entry;

    fn allocate(&mut self, bytes: usize) -> Option<u64> {
        let layout = layout(bytes)?;
        let start = match &self.depots {
            Some(depots) => depots.device.take(layout.size())?,
            // SAFETY: the layout has zones, so it is not empty.
            None => NonNull::new(unsafe { alloc(layout) })?,
        }
        .as_ptr();
        // SAFETY: all inside the allocation.
        let buffer = unsafe {
            let buffer = start.add(ZONE);
            start.write_bytes(UNTOUCHED, ZONE);
            buffer.add(bytes).write_bytes(UNTOUCHED, ZONE);
            if self.depots.is_none() {
                buffer.write_bytes(0xa5, bytes);
            }
            lw_undefined(buffer.cast::<c_void>(), bytes as u64);
            buffer.expose_provenance() as u64
        };
        self.buffers.insert(buffer, bytes);
        Some(buffer)
    }

    fn free(&mut self, address: u64, bytes: usize, secret: bool) -> bool {
        self.buffers.remove(&address);
        let Some(layout) = layout(bytes) else { return false };
        let start: *mut u8 = core::ptr::with_exposed_provenance_mut(address as usize - ZONE);
        // SAFETY: `allocate` made it with this layout, and nothing queued uses it any longer.
        unsafe {
            let zero = secret && core::slice::from_raw_parts(start.add(ZONE), bytes).iter().all(|b| *b == 0);
            match (&self.depots, NonNull::new(start)) {
                (Some(depots), Some(start)) => depots.device.give(start, layout.size()),
                _ => {
                    // Unlike a real device, this memory is not kept for reuse.
                    start.write_bytes(0, layout.size());
                    dealloc(start, layout);
                }
            }
            zero
        }
    }

    fn knows(&self, address: u64) -> bool {
        address == 0
            || self
                .buffers
                .range(..=address)
                .next_back()
                .is_some_and(|(start, bytes)| address - start <= *bytes as u64)
    }

    fn pin(&mut self, bytes: usize) -> Option<Option<NonNull<u8>>> {
        Some(self.depots.as_ref()?.pinned.take(bytes))
    }

    fn unpin(&mut self, memory: NonNull<u8>, bytes: usize) -> bool {
        self.depots.as_ref().map(|depots| depots.pinned.give(memory, bytes)).is_some()
    }

    fn load(&mut self, image: &Image, _: &[(String, String)]) -> Result<usize, Error> {
        let Some(kernels) = image.emulated() else {
            return Err(Error::unavailable(
                format!("the program '{}'", image.name()),
                "it was not compiled for the emulated device",
            ));
        };
        self.next += 1;
        self.programs.insert(self.next, kernels);
        Ok(self.next)
    }

    fn unload(&mut self, module: usize) {
        self.programs.remove(&module);
    }

    fn function(&mut self, module: usize, name: &str) -> Result<Option<(&'static Entry, Facts)>, Error> {
        let found = self.programs.get(&module).and_then(|kernels| Entry::find(kernels, name));
        Ok(found.map(|kernel| (kernel, Facts { max_threads: 1024, ..Facts::default() })))
    }

    fn name(kernel: &&'static Entry) -> String {
        Entry::name(kernel)
    }

    fn refuses(kernel: &&'static Entry, arguments: &[Argument]) -> Option<String> {
        Entry::refuses(kernel, arguments)
    }

    unsafe fn upload(&mut self, from: *const u8, to: u64, bytes: usize) -> Result<(), String> {
        // SAFETY: both have that many bytes, by this method's contract.
        unsafe { at(to).copy_from(from, bytes) };
        Ok(())
    }

    unsafe fn download(&mut self, from: u64, to: *mut u8, bytes: usize) -> Result<(), String> {
        // SAFETY: both have that many bytes, by this method's contract.
        unsafe { to.copy_from(at(from), bytes) };
        Ok(())
    }

    unsafe fn copy(&mut self, from: u64, to: u64, bytes: usize) -> Result<(), String> {
        // SAFETY: both have that many bytes, by this method's contract.
        unsafe { at(to).copy_from(at(from), bytes) };
        Ok(())
    }

    unsafe fn zero(&mut self, to: u64, bytes: usize) -> Result<(), String> {
        // SAFETY: it lies in a buffer, by this method's contract.
        unsafe { at(to).write_bytes(0, bytes) };
        Ok(())
    }

    unsafe fn launch(&mut self, work: &Work<&'static Entry>) -> Result<Ran, String> {
        let pointers: Vec<*const c_void> =
            work.values.iter().map(|value| core::ptr::from_ref(value).cast()).chain([null()]).collect();
        let (order, seed) = match work.order {
            Order::Forward => (0, 0),
            Order::Reverse => (1, 0),
            Order::Shuffled(seed) => (2, seed),
        };
        let line = |x| Dimensions { x, y: 1, z: 1 };
        let mut launch = Launch {
            blocks: line(work.grid.blocks),
            threads: line(work.grid.threads),
            shared: u64::from(work.grid.shared),
            // Unoptimised C++ keeps in memory what a device has in registers.
            stack: work.stack + (64 << 10),
            order,
            seed,
            left: 0,
            collectives: 0,
        };
        let mut why = [0u8; 512];
        // SAFETY: the values are the arguments that the kernel declares, by the launch's promise; buffers that they
        // point to are alive, since all work is done before one is freed.
        let failed = FORGET.with(|_| unsafe {
            lw_run(
                work.kernel,
                pointers.as_ptr(),
                &raw mut launch,
                why.as_mut_ptr().cast::<c_char>(),
                why.len(),
            )
        });
        if failed != 0 {
            let text = CStr::from_bytes_until_nul(&why).unwrap_or_default();
            return Err(text.to_string_lossy().into_owned());
        }
        self.untouched(&work.kernel.name())?;
        Ok(Ran { left: launch.left, collectives: launch.collectives, ..Ran::default() })
    }

    fn renewed(&self) -> Fibers {
        Fibers::new(self.depots.clone())
    }
}

impl Fibers {
    pub(super) fn new(depots: Option<Arc<Depots>>) -> Fibers {
        Fibers { depots, ..Fibers::default() }
    }

    /// Whether the guard bytes around all buffers are unchanged.
    fn untouched(&self, kernel: &str) -> Result<(), String> {
        for (address, bytes) in &self.buffers {
            let start: *const u8 = core::ptr::with_exposed_provenance(*address as usize - ZONE);
            // SAFETY: `allocate` made it with zones.
            let (below, above) = unsafe {
                (
                    core::slice::from_raw_parts(start, ZONE),
                    core::slice::from_raw_parts(start.add(ZONE + bytes), ZONE),
                )
            };
            for (zone, side) in [(below, "below"), (above, "beyond")] {
                if zone.iter().any(|byte| *byte != UNTOUCHED) {
                    return Err(format!("{kernel} wrote {side} a buffer of {bytes} bytes"));
                }
            }
        }
        Ok(())
    }
}

/// Releases the fibers of a host thread when it ends.
struct Forget;

impl Drop for Forget {
    fn drop(&mut self) {
        // SAFETY: no launch is running on a thread that ends.
        unsafe { lw_forget() };
    }
}

thread_local! {
    static FORGET: Forget = const { Forget };
}
