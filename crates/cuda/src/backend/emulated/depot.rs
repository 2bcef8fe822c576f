//! Memory that is reused with its old content, as a driver does, for checks that search for remains.

use core::ptr::NonNull;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

const PAGE: usize = 4096;

/// A piece of memory, given out in whole pages from its lowest free place. Contexts share one.
#[derive(Debug)]
pub(super) struct Depot {
    total: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    /// Its beginning, after the first request.
    start: Option<Start>,
    /// Free places: bytes by offset, never two side by side.
    free: BTreeMap<usize, usize>,
}

#[derive(Clone, Copy, Debug)]
struct Start(NonNull<u8>);

// SAFETY: it is only an address; the users of a part access the memory behind it.
unsafe impl Send for Start {}

fn pages(bytes: usize) -> Option<usize> {
    bytes.max(1).checked_next_multiple_of(PAGE)
}

impl Depot {
    /// A depot of this many bytes, which the system provides only as they are used.
    pub(super) fn new(bytes: usize) -> Depot {
        Depot { total: pages(bytes).unwrap_or(PAGE), held: Mutex::default() }
    }

    fn layout(&self) -> Option<Layout> {
        Layout::from_size_align(self.total, PAGE).ok()
    }

    /// A part, with its old content: zeros where it is unused so far.
    pub(super) fn take(&self, bytes: usize) -> Option<NonNull<u8>> {
        let bytes = pages(bytes)?;
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let start = match held.start {
            Some(start) => start,
            None => {
                // SAFETY: the layout is not empty.
                let start = Start(NonNull::new(unsafe { alloc_zeroed(self.layout()?) })?);
                let _ = start.0.as_ptr().expose_provenance();
                held.start = Some(start);
                held.free.insert(0, self.total);
                start
            }
        };
        let (offset, room) =
            held.free.iter().find(|(_, room)| **room >= bytes).map(|(at, room)| (*at, *room))?;
        held.free.remove(&offset);
        if room > bytes {
            held.free.insert(offset + bytes, room - bytes);
        }
        // SAFETY: a free place lies inside.
        NonNull::new(unsafe { start.0.as_ptr().add(offset) })
    }

    /// Takes back a part of that many bytes from `take`, without clearing it.
    pub(super) fn give(&self, part: NonNull<u8>, bytes: usize) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let (Some(start), Some(mut bytes)) = (held.start, pages(bytes)) else { return };
        let mut offset = part.as_ptr().addr() - start.0.as_ptr().addr();
        if let Some(room) = held.free.remove(&(offset + bytes)) {
            bytes += room;
        }
        let before = held.free.range(..offset).next_back().map(|(at, room)| (*at, *room));
        if let Some((at, room)) = before.filter(|(at, room)| at + room == offset) {
            held.free.remove(&at);
            (offset, bytes) = (at, bytes + room);
        }
        held.free.insert(offset, bytes);
    }
}

impl Drop for Depot {
    fn drop(&mut self) {
        let held = self.held.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let (Some(start), Some(layout)) = (held.start, self.layout()) {
            // SAFETY: `take` made it with this layout; contexts hold the depot for as long as they have a part.
            unsafe { dealloc(start.0.as_ptr(), layout) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_is_found_again_and_places_grow_together() {
        let depot = Depot::new(4 * PAGE);
        let parts: Vec<_> = (0..4).map(|_| depot.take(PAGE).unwrap()).collect();
        assert!(depot.take(1).is_none());
        // SAFETY: a part of a page without other users.
        unsafe { parts[2].as_ptr().write_bytes(7, PAGE) };
        for i in [1, 3, 2] {
            depot.give(parts[i], PAGE);
        }
        assert!(depot.take(3 * PAGE + 1).is_none());
        let large = depot.take(3 * PAGE).unwrap();
        assert_eq!(large, parts[1]);
        // SAFETY: a part of three pages without other users.
        let bytes = unsafe { core::slice::from_raw_parts(large.as_ptr(), 3 * PAGE) };
        assert!(bytes[PAGE..2 * PAGE].iter().all(|b| *b == 7) && bytes[2 * PAGE] == 0);
        depot.give(large, 3 * PAGE);
        depot.give(parts[0], 1);
        assert_eq!(depot.take(4 * PAGE), Some(parts[0]));
    }
}
