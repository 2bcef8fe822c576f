//! What leaves the realm of secrets, besides ciphertexts and tags: the answers to three questions. Everything else that
//! a branch or an address depends on is public from the start; `leaks` shows it, and learns here what it may let pass.
//!
//! The questions are whether a tag or a commitment is the right one, whether KExp15's two keys are the same, and
//! whether padding is in order.
#![forbid(unsafe_code)]

use core::hint::black_box;

use ctutils::CtEq;

/// Whether two strings are the same, found in constant time for their length; which strings differ in length is no
/// secret.
pub(crate) fn equal(x: &[u8], y: &[u8]) -> bool {
    bit(x.ct_eq(y).to_u8())
}

/// A secret bit that the caller may know, as the truth value that branches are made of.
pub(crate) fn bit(bit: u8) -> bool {
    let bit = black_box([bit & 1]);
    #[cfg(all(any(test, feature = "leaks"), target_os = "linux", target_arch = "x86_64"))]
    lanework_leakage::memcheck::release(&bit);
    // Read from memory again: a copy in a register would still be a secret to memcheck.
    black_box(&bit)[0] != 0
}
