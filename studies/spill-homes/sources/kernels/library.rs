//! What a compiler calls without being asked, in plain instructions: code that a rewriter cannot see into would keep every value that
//! lives across it where it is.

use core::arch::asm;

/// Stores eight bytes where nothing is said of alignment, in a way that no compiler makes a call of.
///
/// # Safety
/// Eight bytes there must be writable.
#[inline(always)]
unsafe fn store(to: *mut u8, word: u64) {
    // SAFETY: by contract.
    unsafe {
        asm!("mov qword ptr [{to}], {word}", to = in(reg) to, word = in(reg) word, options(nostack, preserves_flags))
    };
}

/// # Safety
/// As C's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, n: usize) -> *mut u8 {
    // SAFETY: all offsets are below n.
    unsafe {
        let whole = n / 8 * 8;
        for i in (0..whole).step_by(8) {
            store(to.add(i), from.add(i).cast::<u64>().read_unaligned());
        }
        for i in whole..n {
            to.add(i).write_volatile(from.add(i).read());
        }
    }
    to
}

/// # Safety
/// As C's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memset(to: *mut u8, byte: i32, n: usize) -> *mut u8 {
    // SAFETY: all offsets are below n.
    unsafe {
        let whole = n / 8 * 8;
        for i in (0..whole).step_by(8) {
            store(to.add(i), u64::from(byte as u8) * 0x0101_0101_0101_0101);
        }
        for i in whole..n {
            to.add(i).write_volatile(byte as u8);
        }
    }
    to
}

/// Division of 128 bits, bit by bit.
#[unsafe(no_mangle)]
pub extern "C" fn __udivti3(a: u128, b: u128) -> u128 {
    let (mut quotient, mut rest) = (0u128, 0u128);
    for i in (0..128).rev() {
        rest = rest << 1 | (a >> i & 1);
        quotient <<= 1;
        if rest >= b {
            rest -= b;
            quotient |= 1;
        }
    }
    quotient
}
