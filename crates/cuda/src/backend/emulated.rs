//! A device made of fibers: the same host code runs kernels that were compiled as C++.
//!
//! Work happens only when it is waited for, stream by stream: a host that reads without waiting, or does not order
//! dependent streams, finds old bytes. Guard bytes around every buffer are checked after every launch.

mod depot;
mod machine;
mod queue;

use core::ffi::{c_char, c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::backend::Machine;
use crate::card::Card;
use crate::error::Grave;

use depot::Depot;
use machine::Emulated;
use queue::State;

/// A program compiled as C++: what the dialect's `LW_KERNELS(name, ...)` defines, to be declared as
/// `unsafe extern "C" { static name: Kernels; }`.
#[derive(Debug)]
#[repr(C)]
pub struct Kernels {
    kernels: *const Entry,
    count: u32,
}

// SAFETY: it is a constant of the program, and so are the objects it points to.
unsafe impl Sync for Kernels {}

/// `lw_kernel`.
#[repr(C)]
struct Entry {
    name: *const c_char,
    call: extern "C" fn(*const *const c_void),
    parameters: *const Parameter,
    count: u32,
}

// SAFETY: it only ever is such a constant.
unsafe impl Sync for Entry {}

/// `lw_parameter`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Parameter {
    bytes: u16,
    pointer: u16,
}

/// `dim3`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Dimensions {
    x: u32,
    y: u32,
    z: u32,
}

/// `lw_launch`.
#[repr(C)]
struct Launch {
    blocks: Dimensions,
    threads: Dimensions,
    shared: u64,
    stack: u64,
    order: u32,
    seed: u32,
    left: u64,
    collectives: u64,
}

unsafe extern "C" {
    fn lw_run(
        kernel: *const Entry,
        arguments: *const *const c_void,
        launch: *mut Launch,
        why: *mut c_char,
        length: usize,
    ) -> c_int;
    fn lw_forget();
    fn lw_undefined(memory: *mut c_void, bytes: u64);
}

/// The order in which the threads of a block, and the blocks of a grid, take turns. Kernels without races give the same
/// results in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Order {
    /// By rising number.
    #[default]
    Forward,
    /// By falling number.
    Reverse,
    /// Threads are shuffled anew in every turn, from this seed.
    Shuffled(u32),
}

/// The properties of an emulated device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emulation {
    /// Bytes of memory: more cannot be allocated.
    pub memory: u64,
    /// Bytes of shared memory that a block may ask for.
    pub shared_per_block: u32,
    /// Multiprocessors, for hosts that size their grids by them.
    pub multiprocessors: u32,
    /// Compute capability.
    pub capability: (u32, u32),
    /// The order of turns.
    pub order: Order,
    /// Whether freed memory is reused with its old content, in a fresh context too, as a driver does. Otherwise every
    /// buffer starts filled with one byte value, which exposes kernels that rely on its content.
    pub recycles: bool,
}

impl Default for Emulation {
    /// 1 GiB, 99 KiB of shared memory for a block as on sm_89, four multiprocessors, forward.
    fn default() -> Emulation {
        Emulation {
            memory: 1 << 30,
            shared_per_block: 99 * 1024,
            multiprocessors: 4,
            capability: (8, 9),
            order: Order::Forward,
            recycles: false,
        }
    }
}

/// A launch that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launched {
    /// The kernel.
    pub kernel: String,
    /// Blocks, and threads of each.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of dynamic shared memory of a block.
    pub shared: u32,
    /// Bytes of it that a block left other than zero, the most of all blocks. A kernel that clears its secrets leaves 0.
    pub left: u64,
    /// Warp collectives and barriers that happened.
    pub collectives: u64,
}

/// Device memory that was freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freed {
    /// Its bytes.
    pub bytes: usize,
    /// Whether overwriting was requested.
    pub secret: bool,
    /// Whether all of it was zero when it was freed.
    pub zero: bool,
}

/// Planned faults of an emulated device, and a log of its work.
#[derive(Clone, Debug)]
pub struct Control {
    machine: Arc<Emulated>,
}

impl Control {
    fn state(&self) -> MutexGuard<'_, State> {
        self.machine.state()
    }

    /// Makes the launch after `launches` more lose the device, with the driver's code 700 (an illegal address).
    pub fn lose_device_after(&self, launches: u64) {
        self.state().plan.lose_after = Some(launches);
    }

    /// Flips the bits of `mask` in byte `at` of the download after `downloads` more, as a faulty device would. `at`
    /// counts modulo the length.
    pub fn corrupt_download(&self, downloads: u64, at: usize, mask: u8) {
        self.state().plan.corrupt = Some((downloads, at, mask));
    }

    /// Makes allocations fail once this many bytes of device memory are in use; a limit below the current use fails all.
    pub fn limit_memory(&self, bytes: u64) {
        self.state().plan.memory = Some(bytes);
    }

    /// The order of turns from now on.
    pub fn set_order(&self, order: Order) {
        self.state().order = order;
    }

    /// The launches so far, oldest first.
    #[must_use]
    pub fn launched(&self) -> Vec<Launched> {
        self.state().launched.clone()
    }

    /// Memory freed so far, oldest first.
    #[must_use]
    pub fn freed(&self) -> Vec<Freed> {
        self.state().freed.clone()
    }

    /// Bytes of device memory in use.
    #[must_use]
    pub fn in_use(&self) -> u64 {
        self.state().used
    }
}

/// A device of this kind and its control.
pub(crate) fn open(how: Emulation) -> (Arc<dyn Machine>, Control) {
    let card = Card {
        ordinal: 0,
        name: "emulated device".to_owned(),
        capability: how.capability,
        multiprocessors: how.multiprocessors,
        memory: how.memory,
        shared_per_block: how.shared_per_block,
        l2: 32 << 20,
        clock_khz: 0,
        place: (0, 0, 0),
        driver: (13, 0),
        emulated: true,
    };
    let depots = how.recycles.then(|| {
        // Places between buffers, and zones around them, take something too.
        let room = usize::try_from(how.memory).unwrap_or(usize::MAX / 4);
        Arc::new(Depots { device: Depot::new(room + room / 4), pinned: Depot::new(PINNED) })
    });
    let machine = context(card, how.order, depots);
    let control = Control { machine: Arc::clone(&machine) };
    (machine, control)
}

/// Pinned memory that a recycling device has.
const PINNED: usize = 1 << 30;

/// The common state of a recycling device's contexts.
#[derive(Debug)]
struct Depots {
    device: Depot,
    pinned: Depot,
}

/// A context.
fn context(card: Card, order: Order, depots: Option<Arc<Depots>>) -> Arc<Emulated> {
    let mut state = State::default();
    (state.order, state.stack, state.depots) = (order, 1024, depots);
    Arc::new(Emulated { card, grave: Grave::default(), state: Mutex::new(state) })
}

impl Emulated {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
