//! Requests to valgrind. Without it each is a few rotations that change nothing, and returns 0.

#[cfg(not(miri))]
use core::arch::asm;
use core::arch::x86_64::{__m256i, _mm256_and_si256, _mm256_i32gather_epi32, _mm256_set1_epi32};

// Numbers of requests: valgrind.h and memcheck.h.
pub(crate) const RUNNING_ON_VALGRIND: u64 = 0x1001;
pub(crate) const COUNT_ERRORS: u64 = 0x1201;
pub(crate) const MAKE_MEM_UNDEFINED: u64 = 0x4d43_0001;
pub(crate) const MAKE_MEM_DEFINED: u64 = 0x4d43_0002;
pub(crate) const GET_VBITS: u64 = 0x4d43_0008;

/// Under Miri there is no valgrind to ask, and no assembler.
#[cfg(miri)]
pub(crate) fn request(_: u64, _: u64, _: u64, _: u64) -> u64 {
    0
}

/// Sends valgrind a request, whose number says what the arguments are: lengths and addresses of live bytes.
#[cfg(not(miri))]
pub(crate) fn request(number: u64, a: u64, b: u64, c: u64) -> u64 {
    let arguments = [number, a, b, c, 0, 0];
    let mut answer = 0;
    // SAFETY: the rotations of rdi add up to 128 bits and the exchange is of a register with itself, so that all
    // registers but rdx keep their values, and rdx is declared. Valgrind, if it is there, reads the six words at rax and
    // writes what the callers pass for writing; memory and flags count as changed.
    unsafe {
        asm!(
            "rol rdi, 3", "rol rdi, 13", "rol rdi, 61", "rol rdi, 51", "xchg rbx, rbx",
            in("rax") arguments.as_ptr(), inout("rdx") answer, options(nostack)
        );
    }
    answer
}

/// Eight loads from a table, as a kernel that leaks might do them.
#[target_feature(enable = "avx2")]
pub(crate) fn gather(table: &[i32; 256], indices: __m256i) -> __m256i {
    let indices = _mm256_and_si256(indices, _mm256_set1_epi32(255));
    // SAFETY: every index is below 256, the length of the table; the scale is that of its elements.
    unsafe { _mm256_i32gather_epi32::<4>(table.as_ptr(), indices) }
}
