//! What an operation leaves behind: whether a secret can still be found on its stack, in thread-local memory, on the heap,
//! freed or kept, or in the vector and mask registers. And what a whole program leaves in its memory when it ends: [`at_exit`].
//!
//! A test names its secrets as [`Needles`], sets [`Watching`] as its allocator, and [`probe`]s each operation. Such a test
//! must also find copies that it has planted itself.
#![forbid(unsafe_code)]

pub use crate::sys::exit::{Region, at_exit};
pub use crate::sys::heap::Watching;
pub use crate::sys::probe::probe;

const FILTER_BITS: usize = 1 << 20;

/// Windows of secret bytes that must not be found, and a search for them that allocates nothing.
#[derive(Debug)]
pub struct Needles {
    kinds: Vec<&'static str>,
    /// First eight bytes, all bytes, kind; sorted.
    windows: Vec<(u64, Vec<u8>, usize)>,
    filter: Vec<u64>,
}

fn head(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).rev().fold(0, |head, &byte| head << 8 | u64::from(byte))
}

fn slot(key: u64) -> usize {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44) as usize % FILTER_BITS
}

impl Needles {
    /// Secrets, each with its kind, its bytes and the length of the windows to look for: every run of that many of
    /// its bytes is a needle. Short windows are found by chance; 8 random bytes are not.
    ///
    /// # Panics
    /// If a window is shorter than 8 bytes, or a secret shorter than its window.
    #[must_use]
    pub fn new<'a>(secrets: impl IntoIterator<Item = (&'static str, &'a [u8], usize)>) -> Needles {
        let mut needles =
            Needles { kinds: Vec::new(), windows: Vec::new(), filter: vec![0; FILTER_BITS / 64] };
        for (kind, bytes, width) in secrets {
            assert!(width >= 8, "windows of 8 bytes at least");
            assert!(bytes.len() >= width, "{kind}: {} bytes have no window of {width}", bytes.len());
            let known = needles.kinds.iter().position(|&other| other == kind);
            let index = known.unwrap_or_else(|| {
                needles.kinds.push(kind);
                needles.kinds.len() - 1
            });
            for window in bytes.windows(width) {
                let key = head(window);
                needles.filter[slot(key) / 64] |= 1 << (slot(key) % 64);
                needles.windows.push((key, window.to_vec(), index));
            }
        }
        needles.windows.sort_unstable();
        needles
    }

    /// The name of a kind that [`Needles::find`] returned.
    pub(crate) fn kind(&self, index: usize) -> &'static str {
        self.kinds[index]
    }

    /// The kind and place of the first secret in `bytes`.
    #[must_use]
    pub fn find(&self, bytes: &[u8]) -> Option<(usize, usize)> {
        (0..bytes.len().saturating_sub(7)).find_map(|at| {
            let key = head(&bytes[at..]);
            if self.filter[slot(key) / 64] >> (slot(key) % 64) & 1 == 0 {
                return None;
            }
            let first = self.windows.partition_point(|w| w.0 < key);
            let candidates = self.windows[first..].iter().take_while(|w| w.0 == key);
            candidates.clone().find(|w| bytes[at..].starts_with(&w.1)).map(|w| (w.2, at))
        })
    }
}

/// What an operation left behind, by the kind of the first secret found in each place, and how deep its stack went.
#[derive(Debug)]
pub struct Found {
    /// On the stack or in thread-local memory.
    pub stack: Option<&'static str>,
    /// In a block when it was freed.
    pub freed_heap: Option<&'static str>,
    /// In a block that was allocated and never freed.
    pub live_heap: Option<&'static str>,
    /// In a vector register or, of AVX-512BW, a mask register.
    pub registers: Option<&'static str>,
    /// Bytes of stack that the operation used.
    pub peak_stack: usize,
}

impl Found {
    /// Whether no secret was found anywhere.
    #[must_use]
    pub fn nothing(&self) -> bool {
        self.stack.or(self.freed_heap).or(self.live_heap).or(self.registers).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A search for nothing would find nothing, and pass.
    #[test]
    #[should_panic(expected = "key: 15 bytes have no window of 16")]
    fn a_secret_shorter_than_its_window_is_refused() {
        let _ = Needles::new([("key", &[7; 15][..], 16)]);
    }

    #[test]
    #[should_panic(expected = "windows of 8 bytes at least")]
    fn windows_that_chance_would_find_are_refused() {
        let _ = Needles::new([("key", &[7; 16][..], 7)]);
    }

    #[test]
    fn a_secret_as_long_as_its_window_is_found() {
        let secret: [u8; 16] = core::array::from_fn(|i| i as u8 * 3);
        let needles = Needles::new([("key", &secret[..], 16)]);
        let around = [&[9; 5][..], &secret, &[9; 5]].concat();
        assert_eq!(needles.find(&around), Some((0, 5)));
        assert_eq!(needles.find(&around[..20]), None, "all but its last byte");
    }
}
