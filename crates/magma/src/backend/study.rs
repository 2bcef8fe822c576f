//! Kernels that only a study may run: designs to measure ours against. Reached through [`crate::study`] alone.

pub(crate) mod table;
#[cfg(target_arch = "x86_64")]
pub(crate) mod vector;

use crate::schedule::Schedule;

/// One variant: what it is, and its kernels, which assume what its row in [`crate::study::VARIANTS`] names.
#[derive(Debug)]
pub struct Variant {
    pub(crate) leaks: bool,
    pub(crate) at_once: usize,
    pub(crate) calls: bool,
    pub(crate) aligned: bool,
    /// (schedule of an encryption under set Z, in, out, n): n a multiple of `at_once`, pointers at multiples of 32
    /// if `aligned`; otherwise as `Kernels::blocks`.
    pub(crate) blocks: unsafe fn(&Schedule, *const u8, *mut u8, usize),
    pub(crate) f: unsafe fn(&[u32; 8]) -> [u32; 8],
}

impl Variant {
    pub(crate) fn run_f(&self, words: &[u32; 8]) -> [u32; 8] {
        // SAFETY: this value is reachable only through a row whose features were checked.
        unsafe { (self.f)(words) }
    }

    /// # Panics
    /// If the lengths differ or are not whole operations, or a buffer is not aligned as it has to be.
    pub(crate) fn run(&self, s: &Schedule, input: &[u8], output: &mut [u8]) {
        assert!(
            input.len() == output.len() && input.len().is_multiple_of(8 * self.at_once),
            "whole operations"
        );
        let aligned = input.as_ptr().addr().is_multiple_of(32) && output.as_ptr().addr().is_multiple_of(32);
        assert!(aligned || !self.aligned, "aligned buffers");
        // SAFETY: features as above; lengths and alignment were just checked.
        unsafe { (self.blocks)(s, input.as_ptr(), output.as_mut_ptr(), input.len() / 8) }
    }
}
