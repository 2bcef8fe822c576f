//! Runs an operation on a thread of its own and searches everything it leaves: stack and thread-local memory, freed and
//! live heap, vector and mask registers. Meanwhile the thread stands still in a loop without calls.

use std::arch::asm;
use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use super::heap;
use crate::residue::{Found, Needles};

unsafe extern "C" {
    safe fn pthread_self() -> usize;
    fn pthread_getattr_np(thread: usize, attributes: *mut [u64; 16]) -> i32;
    fn pthread_attr_getstack(attributes: *const [u64; 16], low: *mut usize, size: *mut usize) -> i32;
    fn pthread_attr_destroy(attributes: *mut [u64; 16]) -> i32;
}

const STACK: usize = 4 << 20;
const PAINT: u8 = 0x5a;

/// 32 registers of 64 bytes, and eight masks of 8.
#[repr(align(64))]
struct Registers(UnsafeCell<[u8; 2112]>);

// SAFETY: written by the probed thread before it announces `DONE`, read by the prober afterwards.
unsafe impl Sync for Registers {}

static REGISTERS: Registers = Registers(UnsafeCell::new([0; 2112]));
/// Bytes of a vector register: 64, 32 or 16.
static WIDTH: AtomicUsize = AtomicUsize::new(0);
/// Whether masks have 64 bits. Those of AVX-512F alone have 16, too few for a needle.
static MASKS: AtomicBool = AtomicBool::new(false);
static STAGE: AtomicUsize = AtomicUsize::new(IDLE);
static STACK_POINTER: AtomicUsize = AtomicUsize::new(0);
static STACK_LOW: AtomicUsize = AtomicUsize::new(0);
static STACK_HIGH: AtomicUsize = AtomicUsize::new(0);
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

const IDLE: usize = 0;
const READY: usize = 1;
const GO: usize = 2;
const DONE: usize = 3;
const LEAVE: usize = 4;

macro_rules! store_all {
    ($mnemonic:literal, $name:literal, $first:literal, $width:literal, $to:ident, $($n:literal)*) => {
        asm!(
            $(concat!($mnemonic, " [{to} + ", $first, " + ", $width, "*", $n, "], ", $name, $n),)*
            to = in(reg) $to,
            options(nostack, preserves_flags)
        )
    };
}

#[inline(always)]
fn capture_registers(width: usize, masks: bool) {
    let to = REGISTERS.0.get();
    // SAFETY: the buffer has room for all registers, and `width` and `masks` say which ones this CPU has.
    unsafe {
        if masks {
            store_all!("kmovq", "k", "2048", "8", to, 0 1 2 3 4 5 6 7);
        }
        match width {
            64 => store_all!("vmovdqu64", "zmm", "0", "64", to, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15
                16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31),
            32 => store_all!("vmovdqu", "ymm", "0", "32", to, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15),
            _ => store_all!("movdqu", "xmm", "0", "16", to, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15),
        }
    }
}

fn stack_range() -> (usize, usize) {
    let (mut attributes, mut low, mut size) = ([0u64; 16], 0, 0);
    // SAFETY: the buffers are larger than the C types; results are checked.
    unsafe {
        assert_eq!(pthread_getattr_np(pthread_self(), &mut attributes), 0);
        assert_eq!(pthread_attr_getstack(&attributes, &mut low, &mut size), 0);
        pthread_attr_destroy(&mut attributes);
    }
    // The range may count the guard page, which cannot be read; the memory map does not.
    let here = &raw const size as usize;
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mapped = maps.lines().find_map(|line| {
        let (from, to) = line.split_whitespace().next()?.split_once('-')?;
        let (from, to) = (usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?);
        (from <= here && here < to).then_some((from, to))
    });
    let (from, to) = mapped.unwrap();
    (from.max(low), to.min(low + size))
}

/// The probed thread. `operation` must not return anything: the result would pass through this frame.
#[inline(never)]
fn probed(needles: usize, operation: &mut dyn FnMut()) {
    let (width, masks) = (WIDTH.load(SeqCst), MASKS.load(SeqCst));
    let here: usize;
    // SAFETY: reads the stack pointer.
    unsafe { asm!("mov {}, rsp", out(reg) here, options(nomem, nostack, preserves_flags)) };
    STACK_POINTER.store(here, SeqCst);
    STAGE.store(READY, SeqCst);
    while STAGE.load(SeqCst) != GO {
        spin_loop();
    }
    heap::watch(needles as *const Needles);
    operation();
    capture_registers(width, masks);
    heap::stop();
    STAGE.store(DONE, SeqCst);
    while STAGE.load(SeqCst) != LEAVE {
        spin_loop();
    }
}

fn wait_for(stage: usize) {
    while STAGE.load(SeqCst) != stage {
        assert!(STAGE.load(SeqCst) != LEAVE, "the operation panicked");
        std::thread::yield_now();
    }
}

/// Ends the loops of the prober if the operation panics.
struct Panicked;

impl Drop for Panicked {
    fn drop(&mut self) {
        heap::stop();
        STAGE.store(LEAVE, SeqCst);
    }
}

/// Runs `operation` on a thread of its own and looks for `needles` in what it leaves. One at a time: others wait.
///
/// # Panics
/// If the operation does, or no thread can be started.
pub fn probe(needles: &Needles, mut operation: impl FnMut() + Send) -> Found {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    WIDTH.store(
        match (std::is_x86_feature_detected!("avx512f"), std::is_x86_feature_detected!("avx")) {
            (true, _) => 64,
            (_, true) => 32,
            _ => 16,
        },
        SeqCst,
    );
    MASKS.store(std::is_x86_feature_detected!("avx512bw"), SeqCst);
    STAGE.store(IDLE, SeqCst);
    let at = &raw const *needles as usize;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK);
        let handle = thread
            .spawn_scoped(scope, || {
                let _panicked = Panicked;
                let (low, high) = stack_range();
                STACK_LOW.store(low, SeqCst);
                STACK_HIGH.store(high, SeqCst);
                probed(at, &mut operation);
            })
            .unwrap();
        wait_for(READY);
        let (low, high, pointer) =
            (STACK_LOW.load(SeqCst), STACK_HIGH.load(SeqCst), STACK_POINTER.load(SeqCst));
        assert!(low < pointer && pointer < high);
        // The red zone and a margin stay as they are.
        let painted = pointer - 1024 - low;
        // SAFETY: mapped stack below everything that the other thread, which stands still, has in use.
        unsafe { std::ptr::write_bytes(low as *mut u8, PAINT, painted) };
        STAGE.store(GO, SeqCst);
        wait_for(DONE);
        // SAFETY: the whole range is mapped, and its thread stands still.
        let stack = unsafe { std::slice::from_raw_parts(low as *const u8, high - low) };
        let untouched = stack.iter().take_while(|&&b| b == PAINT).count();
        // SAFETY: the thread has written its registers and stands still.
        let registers = unsafe { &*REGISTERS.0.get() };
        let name = |kind: usize| needles.kind(kind);
        let found = Found {
            stack: needles.find(stack).map(|(kind, _)| name(kind)),
            freed_heap: heap::in_freed().map(name),
            live_heap: heap::in_live(needles).map(name),
            registers: needles.find(registers).map(|(kind, _)| name(kind)),
            peak_stack: pointer - low - untouched,
        };
        STAGE.store(LEAVE, SeqCst);
        handle.join().unwrap();
        found
    })
}
