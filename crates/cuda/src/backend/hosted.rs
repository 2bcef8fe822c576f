//! Devices that this CPU computes: their queue of work, planned faults and logs, whatever executes the kernels.
//!
//! Work happens only when it is waited for, stream by stream: a host that reads without waiting, or does not order
//! dependent streams, finds old bytes.

mod machine;
mod queue;

use core::fmt::Debug;
use core::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::backend::{Argument, Machine};
use crate::card::Card;
use crate::error::{Error, Grave};
use crate::module::{Facts, Image};
use crate::stream::Grid;

use queue::{Common, State};

/// The order in which the threads of a block, and the blocks of a grid, take turns. Kernels without races give the same
/// results in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Order {
    /// By rising number.
    #[default]
    Forward,
    /// By falling number.
    Reverse,
    /// Threads, or warps where PTX is executed, are shuffled anew in every turn, from this seed.
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
    /// buffer starts filled with one byte value, which exposes kernels that rely on its content. Where PTX is executed no
    /// memory is reused.
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
    /// What it asked of memories, if that is counted ([`Control::count`]).
    pub traffic: Traffic,
    /// Its instructions that access memories, in the order of the text, if traffic is counted.
    pub accesses: Vec<Accesses>,
}

/// The accesses of one instruction, where PTX is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accesses {
    /// The instruction of machine code that does the same: `LDS`, `STS` or `ATOMS` in shared memory, `LDG` or `STG` in device memory.
    pub name: &'static str,
    /// How many warps executed it, each as often as it did.
    pub times: u64,
    /// What all of them asked for.
    pub traffic: Traffic,
}

/// Accesses of warps to memories, counted where PTX is executed. An access is one instruction of one warp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Accesses to shared memory.
    pub shared: u64,
    /// Their wavefronts: in each, every one of 32 banks gives a word of four bytes.
    pub wavefronts: u64,
    /// The wavefronts if their words were spread over all banks.
    pub least_wavefronts: u64,
    /// Accesses to device memory.
    pub global: u64,
    /// The sectors of 32 bytes that they touch.
    pub sectors: u64,
    /// The sectors if their bytes lay side by side.
    pub least_sectors: u64,
}

impl core::ops::AddAssign for Traffic {
    fn add_assign(&mut self, more: Traffic) {
        self.shared += more.shared;
        self.wavefronts += more.wavefronts;
        self.least_wavefronts += more.least_wavefronts;
        self.global += more.global;
        self.sectors += more.sectors;
        self.least_sectors += more.least_sectors;
    }
}

/// What a launch did.
#[derive(Clone, Debug, Default)]
pub(super) struct Ran {
    /// As in [`Launched`].
    pub(super) left: u64,
    pub(super) collectives: u64,
    pub(super) traffic: Traffic,
    pub(super) accesses: Vec<Accesses>,
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
    machine: Arc<dyn Controlled>,
}

/// A device under a control.
trait Controlled: Send + Sync + Debug {
    fn with(&self, action: &mut dyn FnMut(&mut Common));
}

impl<B: Body> Controlled for Hosted<B> {
    fn with(&self, action: &mut dyn FnMut(&mut Common)) {
        action(&mut self.state().common);
    }
}

impl Control {
    fn ask<T: Default>(&self, mut action: impl FnMut(&mut Common) -> T) -> T {
        let mut answer = T::default();
        self.machine.with(&mut |common| answer = action(common));
        answer
    }

    /// Makes the launch after `launches` more lose the device, with the driver's code 700 (an illegal address).
    pub fn lose_device_after(&self, launches: u64) {
        self.ask(|common| common.plan.lose_after = Some(launches));
    }

    /// Flips the bits of `mask` in byte `at` of the download after `downloads` more, as a faulty device would. `at`
    /// counts modulo the length.
    pub fn corrupt_download(&self, downloads: u64, at: usize, mask: u8) {
        self.ask(|common| common.plan.corrupt = Some((downloads, at, mask)));
    }

    /// Makes allocations fail once this many bytes of device memory are in use; a limit below the current use fails all.
    pub fn limit_memory(&self, bytes: u64) {
        self.ask(|common| common.plan.memory = Some(bytes));
    }

    /// The order of turns from now on.
    pub fn set_order(&self, order: Order) {
        self.ask(|common| common.order = order);
    }

    /// The launches so far, oldest first.
    #[must_use]
    pub fn launched(&self) -> Vec<Launched> {
        self.ask(|common| common.launched.clone())
    }

    /// Memory freed so far, oldest first.
    #[must_use]
    pub fn freed(&self) -> Vec<Freed> {
        self.ask(|common| common.freed.clone())
    }

    /// Puts these lines of PTX before each end of the kernel, in programs that are loaded from now on and executed as PTX.
    pub fn plant(&self, kernel: &str, lines: &str) {
        self.ask(|common| common.plan.lines.push((kernel.to_owned(), lines.to_owned())));
    }

    /// From now on, launches of executed PTX say what they asked of memories ([`Launched::traffic`], [`Launched::accesses`]).
    pub fn count(&self) {
        self.ask(|common| common.counting = true);
    }

    /// From now on, every launch leaves a hash of each buffer, for [`Control::watched`].
    pub fn watch(&self) {
        self.ask(|common| common.watched = Some(Vec::new()));
    }

    /// For each launch since [`Control::watch`] the kernel, and the bytes and a hash of each buffer, oldest first. Two devices
    /// that did the same work say the same, if their kernels computed the same.
    #[must_use]
    pub fn watched(&self) -> Vec<(String, Vec<(usize, u64)>)> {
        self.ask(|common| common.watched.clone().unwrap_or_default())
    }

    /// Bytes of device memory in use.
    #[must_use]
    pub fn in_use(&self) -> u64 {
        self.ask(|common| common.used)
    }
}

/// What executes kernels, and the memory they work in.
pub(super) trait Body: Send + Debug + 'static {
    type Kernel: Clone + Send + 'static;

    /// Memory of unspecified content.
    fn allocate(&mut self, bytes: usize) -> Option<u64>;
    /// Frees it, and says whether it held secrets and is all zero now. Other memory is not read: perhaps nothing has written it.
    fn free(&mut self, address: u64, bytes: usize, secret: bool) -> bool;
    /// Whether the address is inside of what `allocate` gave, or just after it, or nothing.
    fn knows(&self, address: u64) -> bool;
    /// Host memory, as `Machine::pin` says, if it is not simply allocated.
    fn pin(&mut self, _: usize) -> Option<Option<NonNull<u8>>> {
        None
    }
    /// Takes back what `pin` gave; false if that was not it.
    fn unpin(&mut self, _: NonNull<u8>, _: usize) -> bool {
        false
    }
    /// The program's number. Executed PTX has these lines before each end of the kernels of these names.
    fn load(&mut self, image: &Image, planted: &[(String, String)]) -> Result<usize, Error>;
    fn unload(&mut self, module: usize);
    /// `None` if there is no such kernel.
    fn function(&mut self, module: usize, name: &str) -> Result<Option<(Self::Kernel, Facts)>, Error>;
    fn name(kernel: &Self::Kernel) -> String;
    /// Why these cannot be its arguments; `None` if they can.
    fn refuses(kernel: &Self::Kernel, arguments: &[Argument]) -> Option<String>;
    fn limit_heap(&mut self, _: u64) {}

    /// # Safety
    /// As for `Machine::upload`, now.
    unsafe fn upload(&mut self, from: *const u8, to: u64, bytes: usize) -> Result<(), String>;
    /// # Safety
    /// As for `Machine::download`, now.
    unsafe fn download(&mut self, from: u64, to: *mut u8, bytes: usize) -> Result<(), String>;
    /// # Safety
    /// As for `Machine::copy`, now.
    unsafe fn copy(&mut self, from: u64, to: u64, bytes: usize) -> Result<(), String>;
    /// # Safety
    /// As for `Machine::zero`, now.
    unsafe fn zero(&mut self, at: u64, bytes: usize) -> Result<(), String>;
    /// # Safety
    /// As for `Machine::launch`, now. Its arguments are not refused.
    unsafe fn launch(&mut self, work: &Work<Self::Kernel>) -> Result<Ran, String>;
    /// The same in a fresh context.
    fn renewed(&self) -> Self;
}

/// A launch of a kernel.
#[derive(Clone)]
pub(super) struct Work<K> {
    pub(super) kernel: K,
    pub(super) grid: Grid,
    pub(super) values: Vec<u64>,
    pub(super) order: Order,
    /// Whether its traffic is counted, where PTX is executed.
    #[cfg_attr(not(feature = "ptx"), expect(dead_code))]
    pub(super) counting: bool,
    /// Bytes of a thread's stack, which only fibers need to know.
    #[cfg_attr(not(feature = "emulated"), expect(dead_code))]
    pub(super) stack: u64,
}

/// A device that this CPU computes.
#[derive(Debug)]
pub(super) struct Hosted<B: Body> {
    card: Card,
    grave: Grave,
    state: Mutex<State<B>>,
}

impl<B: Body> Hosted<B> {
    fn state(&self) -> MutexGuard<'_, State<B>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The description of such a device.
pub(super) fn card(how: &Emulation, name: &str) -> Card {
    Card {
        ordinal: 0,
        name: name.to_owned(),
        capability: how.capability,
        multiprocessors: how.multiprocessors,
        memory: how.memory,
        shared_per_block: how.shared_per_block,
        l2: 32 << 20,
        clock_khz: 0,
        place: (0, 0, 0),
        driver: (13, 0),
        emulated: true,
    }
}

/// A device and its control.
pub(super) fn open<B: Body>(card: Card, order: Order, body: B) -> (Arc<dyn Machine>, Control) {
    let machine = context(card, order, body);
    let control = Control { machine: machine.clone() };
    (machine, control)
}

/// A context.
fn context<B: Body>(card: Card, order: Order, body: B) -> Arc<Hosted<B>> {
    let state = Mutex::new(State::new(order, body));
    Arc::new(Hosted { card, grave: Grave::default(), state })
}
