//! The memory and the queued work of an emulated device.

use core::ffi::{CStr, c_char, c_void};
use core::ptr::{NonNull, null};
use std::alloc::{Layout, alloc, dealloc};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use super::{
    Depots, Dimensions, Entry, Freed, Kernels, Launch, Launched, Order, Parameter, lw_forget, lw_run,
    lw_undefined,
};
use crate::backend::Argument;
use crate::stream::Grid;

/// Guard bytes on either side of a buffer.
const ZONE: usize = 256;
const UNTOUCHED: u8 = 0x5a;

/// A piece of work. Addresses are host addresses as numbers.
pub(super) enum Work {
    /// Bytes from one place to another.
    Copy { from: usize, to: usize, bytes: usize, down: bool },
    /// Zeros.
    Zero { at: usize, bytes: usize },
    /// A kernel.
    Kernel { kernel: &'static Entry, grid: Grid, values: Vec<u64> },
    /// The event has come to this many of its records.
    Record { event: usize, turn: u64 },
    /// Nothing goes on before it has.
    Wait { event: usize, turn: u64 },
}

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

#[derive(Default)]
pub(super) struct Event {
    /// Records queued, and records reached.
    pub(super) asked: u64,
    reached: u64,
    /// Where the last was put.
    stream: usize,
}

/// Planned faults.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) lose_after: Option<u64>,
    pub(super) corrupt: Option<(u64, usize, u8)>,
    pub(super) memory: Option<u64>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) order: Order,
    pub(super) stack: u64,
    pub(super) used: u64,
    /// Buffers: bytes by address.
    buffers: BTreeMap<u64, usize>,
    pub(super) streams: HashMap<usize, VecDeque<Work>>,
    pub(super) events: HashMap<usize, Event>,
    pub(super) programs: HashMap<usize, &'static Kernels>,
    pub(super) functions: HashMap<usize, &'static Entry>,
    pub(super) next: usize,
    pub(super) plan: Plan,
    pub(super) launched: Vec<Launched>,
    pub(super) freed: Vec<Freed>,
    /// The source of memory, if it is reused.
    pub(super) depots: Option<Arc<Depots>>,
}

impl core::fmt::Debug for State {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("State").field("used", &self.used).finish_non_exhaustive()
    }
}

/// With its zones; a whole buffer is a multiple of their alignment.
fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.checked_add(2 * ZONE)?, ZONE).ok()
}

impl State {
    /// A new number.
    pub(super) fn number(&mut self) -> usize {
        self.next += 1;
        self.next
    }

    /// A buffer of this many bytes of unspecified content.
    pub(super) fn allocate(&mut self, bytes: usize) -> Option<u64> {
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
        self.used += bytes as u64;
        Some(buffer)
    }

    /// Frees a buffer, and logs its state.
    pub(super) fn free(&mut self, address: u64, secret: bool) {
        let Some(bytes) = self.buffers.remove(&address) else { return };
        let Some(layout) = layout(bytes) else { return };
        let start: *mut u8 = core::ptr::with_exposed_provenance_mut(address as usize - ZONE);
        // SAFETY: `allocate` made it with this layout, and nothing queued uses it any longer.
        let zero = unsafe {
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
        };
        self.used -= bytes as u64;
        self.freed.push(Freed { bytes, secret, zero });
    }

    /// Whether the address is inside a buffer, or just after it, or nothing.
    pub(super) fn knows(&self, address: u64) -> bool {
        address == 0
            || self
                .buffers
                .range(..=address)
                .next_back()
                .is_some_and(|(start, bytes)| address - start <= *bytes as u64)
    }

    /// A record of the event after the stream's queued work.
    pub(super) fn record(&mut self, stream: usize, event: usize) {
        let Some(state) = self.events.get_mut(&event) else { return };
        state.asked += 1;
        state.stream = stream;
        let turn = state.asked;
        self.push(stream, Work::Record { event, turn });
    }

    pub(super) fn push(&mut self, stream: usize, work: Work) {
        self.streams.entry(stream).or_default().push_back(work);
    }

    /// Whether the event has reached its last record.
    pub(super) fn is_reached(&self, event: usize) -> bool {
        self.events.get(&event).is_none_or(|e| e.reached >= e.asked)
    }

    /// The place of the event's last record.
    pub(super) fn stream_of(&self, event: usize) -> Option<usize> {
        self.events.get(&event).map(|e| e.stream)
    }

    /// Does one piece of the stream's work, and its dependencies before. False if there was none.
    pub(super) fn step(&mut self, stream: usize) -> Result<bool, String> {
        let Some(work) = self.streams.get_mut(&stream).and_then(VecDeque::pop_front) else {
            return Ok(false);
        };
        match work {
            Work::Copy { from, to, bytes, down } => self.copy(from, to, bytes, down),
            Work::Zero { at, bytes } => {
                let at: *mut u8 = core::ptr::with_exposed_provenance_mut(at);
                // SAFETY: it lies in a buffer, by the contract of the method that queued it; buffers are freed only when
                // nothing is queued.
                unsafe { at.write_bytes(0, bytes) };
            }
            Work::Kernel { kernel, grid, values } => self.launch(kernel, grid, &values)?,
            Work::Record { event, turn } => {
                if let Some(event) = self.events.get_mut(&event) {
                    event.reached = turn;
                }
            }
            Work::Wait { event, turn } => {
                while let Some(e) = self.events.get(&event).filter(|e| e.reached < turn) {
                    let other = e.stream;
                    if !self.step(other)? {
                        break;
                    }
                }
            }
        }
        Ok(true)
    }

    /// Does all work of the stream.
    pub(super) fn drain(&mut self, stream: usize) -> Result<(), String> {
        while self.step(stream)? {}
        Ok(())
    }

    /// Does all queued work.
    pub(super) fn drain_all(&mut self) -> Result<(), String> {
        let mut streams: Vec<usize> = self.streams.keys().copied().collect();
        streams.sort_unstable();
        streams.into_iter().try_for_each(|stream| self.drain(stream))
    }

    fn copy(&mut self, from: usize, to: usize, bytes: usize, down: bool) {
        let from: *const u8 = core::ptr::with_exposed_provenance(from);
        let to: *mut u8 = core::ptr::with_exposed_provenance_mut(to);
        // SAFETY: both have that many bytes, by the contract of the method that queued it; pinned memory waits for its copies
        // before it goes, and buffers for all work.
        unsafe { to.copy_from(from, bytes) };
        if !down {
            return;
        }
        if let Some((left, at, mask)) = self.plan.corrupt.take() {
            match left.checked_sub(1) {
                Some(left) => self.plan.corrupt = Some((left, at, mask)),
                // SAFETY: inside the bytes just written.
                None => unsafe { *to.add(at % bytes) ^= mask },
            }
        }
    }

    fn launch(&mut self, kernel: &'static Entry, grid: Grid, values: &[u64]) -> Result<(), String> {
        if let Some(left) = self.plan.lose_after.take() {
            match left.checked_sub(1) {
                Some(left) => self.plan.lose_after = Some(left),
                None => return Err(format!("{}: an illegal address, as planned", kernel.name())),
            }
        }
        let pointers: Vec<*const c_void> =
            values.iter().map(|value| core::ptr::from_ref(value).cast()).chain([null()]).collect();
        let (order, seed) = match self.order {
            Order::Forward => (0, 0),
            Order::Reverse => (1, 0),
            Order::Shuffled(seed) => (2, seed),
        };
        let line = |x| Dimensions { x, y: 1, z: 1 };
        let mut launch = Launch {
            blocks: line(grid.blocks),
            threads: line(grid.threads),
            shared: u64::from(grid.shared),
            // Unoptimised C++ keeps in memory what a device has in registers.
            stack: self.stack + (64 << 10),
            order,
            seed,
            left: 0,
            collectives: 0,
        };
        let mut why = [0u8; 512];
        // SAFETY: the values are the arguments that the kernel declares, by the launch's promise; buffers that they
        // point to are alive, since all work is done before one is freed.
        let failed = FORGET.with(|_| unsafe {
            lw_run(kernel, pointers.as_ptr(), &raw mut launch, why.as_mut_ptr().cast::<c_char>(), why.len())
        });
        if failed != 0 {
            let text = CStr::from_bytes_until_nul(&why).unwrap_or_default();
            return Err(text.to_string_lossy().into_owned());
        }
        self.launched.push(Launched {
            kernel: kernel.name(),
            blocks: grid.blocks,
            threads: grid.threads,
            shared: grid.shared,
            left: launch.left,
            collectives: launch.collectives,
        });
        self.untouched(&kernel.name())
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

impl Drop for State {
    fn drop(&mut self) {
        let left: Vec<u64> = self.buffers.keys().copied().collect();
        for address in left {
            self.free(address, false);
        }
    }
}
