//! The crate's only raw memory outside the kernels: wiping the stack.

pub(crate) use lanework_cpu::memory::{Block, bytes, bytes_mut, wipe, wipe_blocks, wipe_vector_registers};

/// Overwrites the stack below the caller, to which kernels may have spilled secrets, and the vector registers.
#[inline(always)]
pub(crate) fn wipe_stack_and_registers() {
    lanework_cpu::memory::wipe_stack_and_registers::<STACK_TO_WIPE>();
}

/// Bytes of stack to wipe below an operation's entry point. In optimised builds signing and key generation on the
/// vector backends use less than 9 KiB, a quarter below this; the portable backend uses more only in its bitsliced AES,
/// on public data. `tests/wiping` checks that no secret lies deeper, and that no vector backend reaches deeper.
const STACK_TO_WIPE: usize = 12 * 1024;
