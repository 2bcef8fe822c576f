//! An allocator that looks at what one thread frees and remembers what it still holds.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::SeqCst};

use crate::residue::Needles;

unsafe extern "C" {
    safe fn pthread_self() -> usize;
}

const BLOCKS: usize = 4096;
const NONE: usize = usize::MAX;
/// The content of memory that the watched thread has not written.
const FRESH: u8 = 0xa5;

/// The thread that is watched, or 0.
static WATCHED: AtomicUsize = AtomicUsize::new(0);
static NEEDLES: AtomicPtr<Needles> = AtomicPtr::new(std::ptr::null_mut());
/// The kind of the first secret found in a freed block.
static FOUND: AtomicUsize = AtomicUsize::new(NONE);
static LOST_COUNT: AtomicUsize = AtomicUsize::new(0);
static ADDRESS: [AtomicUsize; BLOCKS] = [const { AtomicUsize::new(0) }; BLOCKS];
static LENGTH: [AtomicUsize; BLOCKS] = [const { AtomicUsize::new(0) }; BLOCKS];

/// The system's allocator, which notes what a watched thread frees and keeps.
#[derive(Debug)]
pub struct Watching;

fn watched() -> bool {
    WATCHED.load(SeqCst) == pthread_self()
}

fn remember(block: *mut u8, length: usize) {
    for (address, size) in ADDRESS.iter().zip(&LENGTH) {
        if address.compare_exchange(0, block as usize, SeqCst, SeqCst).is_ok() {
            size.store(length, SeqCst);
            return;
        }
    }
    LOST_COUNT.fetch_add(1, SeqCst);
}

// SAFETY: memory comes from and goes to the system's allocator; all else touches live blocks only and does not
// allocate.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let block = unsafe { System.alloc(layout) };
        if watched() && !block.is_null() {
            // What other threads left here (a test's own copies of secrets, never wiped) is not this thread's.
            // SAFETY: the block is as long as its layout says.
            unsafe { block.write_bytes(FRESH, layout.size()) };
            remember(block, layout.size());
        }
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let block = unsafe { System.alloc_zeroed(layout) };
        if watched() && !block.is_null() {
            remember(block, layout.size());
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if watched() {
            // SAFETY: the block is live until it is freed below. It may be uninitialised in part, which a byte's
            // worth of machine memory never is; the optimiser does not see across the allocator.
            let bytes = unsafe { std::slice::from_raw_parts(block, layout.size()) };
            // SAFETY: `watch` keeps the needles alive until `stop`.
            if let Some((kind, _)) = unsafe { &*NEEDLES.load(SeqCst) }.find(bytes) {
                let _ = FOUND.compare_exchange(NONE, kind, SeqCst, SeqCst);
            }
            if let Some(slot) = ADDRESS.iter().find(|a| a.load(SeqCst) == block as usize) {
                slot.store(0, SeqCst);
            }
        }
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Watches the calling thread. The caller keeps `needles` until [`stop`] has been called.
pub(crate) fn watch(needles: *const Needles) {
    ADDRESS.iter().for_each(|a| a.store(0, SeqCst));
    LOST_COUNT.store(0, SeqCst);
    FOUND.store(NONE, SeqCst);
    NEEDLES.store(needles.cast_mut(), SeqCst);
    WATCHED.store(pthread_self(), SeqCst);
}

pub(crate) fn stop() {
    WATCHED.store(0, SeqCst);
}

/// The kind of secret that a freed block held.
pub(crate) fn in_freed() -> Option<usize> {
    Some(FOUND.load(SeqCst)).filter(|&kind| kind != NONE)
}

/// The kind of secret in a block that the watched thread has allocated and not freed. The thread must stand still
/// meanwhile.
pub(crate) fn in_live(needles: &Needles) -> Option<usize> {
    assert_eq!(LOST_COUNT.load(SeqCst), 0, "more blocks than the table has room for");
    ADDRESS.iter().zip(&LENGTH).find_map(|(address, length)| {
        let (address, length) = (address.load(SeqCst), length.load(SeqCst));
        if address == 0 {
            return None;
        }
        // SAFETY: the block has not been freed, and its thread stands still.
        let bytes = unsafe { std::slice::from_raw_parts(address as *const u8, length) };
        needles.find(bytes).map(|(kind, _)| kind)
    })
}
