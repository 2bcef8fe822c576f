//! What valgrind's memcheck is told: which bytes are secret, and which have been released.
//!
//! Memcheck knows of every bit whether it is defined, carries that through every computation, and complains of a
//! conditional jump and of an address that depend on an undefined bit. Secrets that are marked undefined therefore make it
//! complain of just those two leaks (A. Langley, "Checking that functions are constant time with Valgrind", 2010).
//! Without valgrind every request is a few rotations that change nothing, and answers 0.
//!
//! Mark bytes that the compiler cannot have seen the values of: on the heap, or behind `black_box`. It may otherwise compute
//! with what it knows, and never read the memory that was marked. [`secret_bytes`] of what comes out shows that it did.
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

/// From now on these bytes are secret. Their values stay.
pub fn make_secret(bytes: &[u8]) {
    request(MAKE_MEM_UNDEFINED, bytes.as_ptr() as u64, bytes.len() as u64, 0);
}

/// From now on these bytes are public.
pub fn release(bytes: &[u8]) {
    request(MAKE_MEM_DEFINED, bytes.as_ptr() as u64, bytes.len() as u64, 0);
}

/// How many of these bytes have a secret bit.
///
/// # Panics
/// Outside of valgrind, which alone knows.
#[must_use]
pub fn secret_bytes(bytes: &[u8]) -> usize {
    let mut shadow = vec![0u8; bytes.len()];
    let done = request(GET_VBITS, bytes.as_ptr() as u64, shadow.as_mut_ptr() as u64, bytes.len() as u64);
    assert_eq!(done, 1, "memcheck does not know these bytes");
    shadow.iter().filter(|&&undefined| undefined != 0).count()
}
