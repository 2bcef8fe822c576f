//! The crate's one file that touches raw memory outside the kernels: for wiping the stack.

pub(crate) use lanework_cpu::memory::{Block, bytes, bytes_mut, wipe, wipe_blocks, wipe_vector_registers};

/// Overwrites the part of the stack below the caller that the kernels may have spilled secrets to, and the vector
/// registers.
#[inline(always)]
pub(crate) fn wipe_stack_and_registers() {
    lanework_cpu::memory::wipe_stack_and_registers::<STACK_TO_WIPE>();
}

/// Bytes of stack to wipe below an operation's entry point. In optimised builds signing and key generation on the
/// vector backends go less than 9 KiB deep, so that a quarter is to spare; the portable backend goes deeper only in its
/// bitsliced AES, on public data. `tests/wiping` sees to it that no secret lies deeper, and that no vector backend
/// reaches deeper than this.
const STACK_TO_WIPE: usize = 12 * 1024;
