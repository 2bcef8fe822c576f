//! What valgrind's memcheck is told by the tests of `leaks`: which bytes are secret, and which have been released.
//!
//! Memcheck knows of every bit whether it is defined, carries that through every computation, and complains of a
//! conditional jump and of an address that depend on an undefined bit. Secrets that are marked undefined therefore make it
//! complain of just those two leaks (A. Langley, "Checking that functions are constant time with Valgrind", 2010).
//! Without valgrind every request is a few rotations that change nothing, and answers 0.

use core::arch::asm;
use core::arch::x86_64::{__m256i, _mm256_and_si256, _mm256_i32gather_epi32, _mm256_set1_epi32};

// Numbers of requests: valgrind.h and memcheck.h.
const RUNNING_ON_VALGRIND: u64 = 0x1001;
const COUNT_ERRORS: u64 = 0x1201;
const MAKE_MEM_UNDEFINED: u64 = 0x4d43_0001;
const MAKE_MEM_DEFINED: u64 = 0x4d43_0002;
const GET_VBITS: u64 = 0x4d43_0008;

fn request(number: u64, a: u64, b: u64, c: u64) -> u64 {
    let arguments = [number, a, b, c, 0, 0];
    let mut answer = 0;
    // SAFETY: the rotations of rdi add up to 128 bits and the exchange is of a register with itself, so that all
    // registers but rdx keep their values, and rdx is declared. Valgrind, if it is there, reads the six words at rax and
    // writes what the callers below hand it for writing; memory and flags count as changed.
    unsafe {
        asm!(
            "rol rdi, 3", "rol rdi, 13", "rol rdi, 61", "rol rdi, 51", "xchg rbx, rbx",
            in("rax") arguments.as_ptr(), inout("rdx") answer, options(nostack)
        );
    }
    answer
}

/// Whether this process runs under valgrind.
pub(crate) fn running() -> bool {
    request(RUNNING_ON_VALGRIND, 0, 0, 0) != 0
}

/// Complaints so far, repeated ones included.
pub(crate) fn complaints() -> u64 {
    request(COUNT_ERRORS, 0, 0, 0)
}

/// From now on these bytes are secret. Their values stay.
pub(crate) fn make_secret(bytes: &[u8]) {
    request(MAKE_MEM_UNDEFINED, bytes.as_ptr() as u64, bytes.len() as u64, 0);
}

/// From now on these bytes are public.
pub(crate) fn release(bytes: &[u8]) {
    request(MAKE_MEM_DEFINED, bytes.as_ptr() as u64, bytes.len() as u64, 0);
}

/// How many of these bytes have a secret bit.
pub(crate) fn secret_bytes(bytes: &[u8]) -> usize {
    let mut shadow = vec![0u8; bytes.len()];
    let done = request(GET_VBITS, bytes.as_ptr() as u64, shadow.as_mut_ptr() as u64, bytes.len() as u64);
    assert_eq!(done, 1, "memcheck does not know these bytes");
    shadow.iter().filter(|&&undefined| undefined != 0).count()
}

/// Eight loads from a table, as a kernel that leaks might do them.
#[target_feature(enable = "avx2")]
pub(crate) fn gather(table: &[i32; 256], indices: __m256i) -> __m256i {
    let indices = _mm256_and_si256(indices, _mm256_set1_epi32(255));
    // SAFETY: every index is below 256, the length of the table; the scale is that of its elements.
    unsafe { _mm256_i32gather_epi32::<4>(table.as_ptr(), indices) }
}
