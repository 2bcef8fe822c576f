//! Raw memory outside kernels, for all primitives: aligned blocks, and wiping. The gate of a pool of threads.

#[cfg(not(any(miri, target_family = "wasm")))]
use core::arch::asm;
use core::mem::MaybeUninit;

#[cfg(feature = "std")]
mod cores;
#[cfg(feature = "std")]
pub(crate) mod gate;

/// 64 aligned bytes, one cache line: the unit of kernels' buffers.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct Block(pub [u8; 64]);

impl Block {
    /// All zeros.
    pub const ZERO: Block = Block([0; 64]);
}

/// The bytes of a run of blocks.
#[must_use]
pub fn bytes(blocks: &[Block]) -> &[u8] {
    // SAFETY: Block is 64 bytes, has no padding, and u8 has no alignment; the length covers the same memory.
    unsafe { core::slice::from_raw_parts(blocks.as_ptr().cast(), blocks.len() * 64) }
}

/// The bytes of a run of blocks, for writing.
pub fn bytes_mut(blocks: &mut [Block]) -> &mut [u8] {
    // SAFETY: as in `bytes`, and every byte value is valid in a Block.
    unsafe { core::slice::from_raw_parts_mut(blocks.as_mut_ptr().cast(), blocks.len() * 64) }
}

/// Zeroes `memory` by writes that the compiler must keep, at the speed of a plain fill.
///
/// An empty slice returns at once. `memset` of no bytes is a masked store in glibc, and the address of an empty slice has
/// no page: on Zen 4 that store takes 60 ns.
pub fn wipe(memory: &mut [u8]) {
    if memory.is_empty() {
        return;
    }
    memory.fill(0);
    read_by_nobody(memory.as_ptr());
}

/// Makes the compiler complete earlier writes to this memory, although no code reads it.
#[inline(always)]
fn read_by_nobody(memory: *const u8) {
    #[cfg(not(any(miri, target_family = "wasm")))]
    // SAFETY: the assembly is empty; it is declared to read memory.
    unsafe {
        asm!("/* {0} */", in(reg) memory, options(nostack, preserves_flags, readonly));
    }
    // Miri and stable Rust for WebAssembly have no inline assembly. The compiler turns `black_box` into the same empty block for
    // WebAssembly, although its documentation does not promise that; Miri removes no writes.
    #[cfg(any(miri, target_family = "wasm"))]
    core::hint::black_box(memory);
}

/// [`wipe`] for blocks.
pub fn wipe_blocks(blocks: &mut [Block]) {
    wipe(bytes_mut(blocks));
}

/// Overwrites `BYTES` of the stack below the caller, where kernels may have spilled secrets, and, where the CPU has
/// them, the vector registers.
#[inline(never)]
pub fn wipe_stack_and_registers<const BYTES: usize>() {
    // An area that starts as zeros would be filled twice, the first time at the speed of the baseline's registers.
    let mut area = MaybeUninit::<[u8; BYTES]>::uninit();
    // SAFETY: the whole area is written; all zeros is a valid value of it.
    unsafe { area.as_mut_ptr().write_bytes(0, 1) };
    read_by_nobody(area.as_ptr().cast());
    wipe_vector_registers();
}

/// Whether the CPU has a feature; without the feature `std`, whether the program was compiled for it.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
macro_rules! has {
    ($name:tt) => {{
        #[cfg(any(test, feature = "std"))]
        let has = std::arch::is_x86_feature_detected!($name);
        #[cfg(not(any(test, feature = "std")))]
        let has = cfg!(target_feature = $name);
        has
    }};
}

/// Zeroes every vector register that exists here, and every mask register.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
pub fn wipe_vector_registers() {
    /// Zeroes registers 16 to 31 by instructions of this width, then mask registers and the others.
    macro_rules! zero_all {
        ($width:literal: $($n:literal)*; $($k:literal)*) => {
            asm!(
                $(concat!("vpxord ", $width, $n, ", ", $width, $n, ", ", $width, $n),)*
                $(concat!("kxorw k", $k, ", k", $k, ", k", $k),)*
                "vzeroall",
                // All vector and mask registers, k0 among them, which has no name of its own here.
                clobber_abi("sysv64"),
                options(nomem, nostack, preserves_flags)
            )
        };
    }
    let (avx512vl, avx512f, avx) = (has!("avx512vl"), has!("avx512f"), has!("avx"));
    if avx512vl {
        // SAFETY: AVX-512VL is present, and with it AVX-512F; all registers written are declared.
        unsafe { zero_all!("xmm": 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31; 0 1 2 3 4 5 6 7) }
    } else if avx512f {
        // SAFETY: AVX-512F is present; all registers written are declared.
        unsafe { zero_all!("zmm": 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31; 0 1 2 3 4 5 6 7) }
    } else if avx {
        // SAFETY: AVX is present; all registers written are declared.
        unsafe {
            asm!(
                "vzeroall",
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _,
                out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
                options(nomem, nostack, preserves_flags)
            );
        }
    } else {
        // SAFETY: SSE2 is the baseline of x86-64; all registers written are declared.
        unsafe {
            asm!(
                "pxor xmm0, xmm0", "pxor xmm1, xmm1", "pxor xmm2, xmm2", "pxor xmm3, xmm3", "pxor xmm4, xmm4",
                "pxor xmm5, xmm5", "pxor xmm6, xmm6", "pxor xmm7, xmm7", "pxor xmm8, xmm8", "pxor xmm9, xmm9",
                "pxor xmm10, xmm10", "pxor xmm11, xmm11", "pxor xmm12, xmm12", "pxor xmm13, xmm13",
                "pxor xmm14, xmm14", "pxor xmm15, xmm15",
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _,
                out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
                options(nomem, nostack, preserves_flags)
            );
        }
    }
}

/// Other architectures have only the portable backend; any secret in a vector register was put there by the compiler. A
/// program compiled without SSE2 may not touch vector registers.
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2", not(miri))))]
pub fn wipe_vector_registers() {}

#[cfg(all(test, target_arch = "x86_64", target_feature = "sse2", not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn mask_registers_are_wiped() {
        if !has!("avx512bw") {
            let settings = crate::Settings::from_env().unwrap();
            assert!(
                !settings.requires("avx512"),
                "LANEWORK_REQUIRE names avx512, whose masks this CPU lacks"
            );
            return println!("skipped: this CPU has no masks of 64 bits");
        }
        let read = || {
            let mut masks = MaybeUninit::<[u64; 8]>::uninit();
            // SAFETY: AVX-512BW is present; the assembly writes eight words, which are all of them.
            unsafe {
                asm!(
                    "kmovq [{0}], k0", "kmovq [{0} + 8], k1", "kmovq [{0} + 16], k2", "kmovq [{0} + 24], k3",
                    "kmovq [{0} + 32], k4", "kmovq [{0} + 40], k5", "kmovq [{0} + 48], k6", "kmovq [{0} + 56], k7",
                    in(reg) masks.as_mut_ptr(),
                    options(nostack, preserves_flags)
                );
                masks.assume_init()
            }
        };
        let fill = || {
            // SAFETY: AVX-512BW is present; the mask registers, which no code between here and `read` uses, are declared.
            unsafe {
                asm!(
                    "kmovq k0, {0}", "kmovq k1, {0}", "kmovq k2, {0}", "kmovq k3, {0}", "kmovq k4, {0}",
                    "kmovq k5, {0}", "kmovq k6, {0}", "kmovq k7, {0}",
                    in(reg) u64::MAX,
                    clobber_abi("sysv64"),
                    options(nomem, nostack, preserves_flags)
                );
            }
        };
        fill();
        assert_eq!(read(), [u64::MAX; 8], "they are filled");
        // Comparing may have used some.
        fill();
        wipe_vector_registers();
        assert_eq!(read(), [0; 8]);
    }
}
