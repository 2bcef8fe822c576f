//! Tells valgrind's memcheck which bytes are secret, and which have been released.
//!
//! Memcheck tracks whether each bit is defined, through every computation, and complains about a
//! conditional jump or an address that depends on an undefined bit. Secrets that are marked undefined therefore make it
//! complain about just those two leaks (A. Langley, "Checking that functions are constant time with Valgrind", 2010).
//! Without valgrind every request is a few rotations that change nothing, and returns 0.
//!
//! Mark bytes whose values the compiler cannot have seen: on the heap, or behind `black_box`. It may otherwise compute
//! with known values and never read the marked memory. [`secret_bytes`] of the result shows that it did read it.
#![forbid(unsafe_code)]

use crate::sys::memcheck::{
    COUNT_ERRORS, GET_VBITS, MAKE_MEM_DEFINED, MAKE_MEM_UNDEFINED, RUNNING_ON_VALGRIND, request,
};

/// Whether this process runs under valgrind.
#[must_use]
pub fn running() -> bool {
    request(RUNNING_ON_VALGRIND, 0, 0, 0) != 0
}

/// Complaints so far, repeated ones included.
#[must_use]
pub fn complaints() -> u64 {
    request(COUNT_ERRORS, 0, 0, 0)
}

/// Marks these bytes as secret. Their values stay.
pub fn make_secret(bytes: &[u8]) {
    request(MAKE_MEM_UNDEFINED, bytes.as_ptr() as u64, bytes.len() as u64, 0);
}

/// Marks these bytes as public.
pub fn release(bytes: &[u8]) {
    request(MAKE_MEM_DEFINED, bytes.as_ptr() as u64, bytes.len() as u64, 0);
}

/// How many of these bytes have a secret bit.
///
/// # Panics
/// Outside valgrind.
#[must_use]
pub fn secret_bytes(bytes: &[u8]) -> usize {
    let mut shadow = vec![0u8; bytes.len()];
    let done = request(GET_VBITS, bytes.as_ptr() as u64, shadow.as_mut_ptr() as u64, bytes.len() as u64);
    assert_eq!(done, 1, "memcheck does not know these bytes");
    shadow.iter().filter(|&&undefined| undefined != 0).count()
}
