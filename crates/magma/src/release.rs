//! The three answers that become public besides ciphertexts and tags. Every other value that a branch or an address
//! depends on is public from the start; `leaks` shows that.
//!
//! The answers tell whether a tag or a commitment is right, whether KExp15's two keys are the same, and whether padding
//! is valid.
#![forbid(unsafe_code)]

use core::hint::black_box;

use ctutils::CtEq;

/// Whether two strings are equal, in constant time for their length. Lengths are public.
pub(crate) fn equal(x: &[u8], y: &[u8]) -> bool {
    bit(x.ct_eq(y).to_u8())
}

/// A released secret bit, as a truth value for branches.
pub(crate) fn bit(bit: u8) -> bool {
    let bit = black_box([bit & 1]);
    #[cfg(all(any(test, feature = "leaks"), target_os = "linux", target_arch = "x86_64"))]
    lanework_leakage::memcheck::release(&bit);
    // Read from memory again: a copy in a register would still be a secret to memcheck.
    black_box(&bit)[0] != 0
}
