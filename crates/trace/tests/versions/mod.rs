//! A small function that spills, as assembly, and versions of it. The only raw code of these tests.

use core::arch::global_asm;

/// Which instruction of `clobbers` is an edit.
pub(crate) const EDIT: usize = 4;
/// Which instruction of `rehomed` is an addition.
pub(crate) const EMMS: usize = 10;

// Sums words under a counter that is spilled in every iteration.
macro_rules! version {
    ($name:literal, $store:literal, $edit:literal, $reload:literal, $step:literal, $end:literal) => {
        global_asm!(
            concat!(".globl ", $name),
            concat!(".type ", $name, ", @function"),
            concat!($name, ":"),
            "xor eax, eax",
            "2:",
            $store,
            "mov rsi, [rdi]",
            "cmp rsi, rax",
            $edit,
            "adc rax, rsi",
            "mov [rdi + 8], rax",
            $reload,
            $step,
            "jnz 2b",
            $end,
            "ret",
            concat!(".size ", $name, ", . - ", $name),
        );
    };
}

// The second argument is the counter; it lives in rsi only between its reload and its spill.
version!(
    "lanework_trace_spills",
    "mov [rsp - 8], rsi",
    "lea rax, [rax + 3]",
    "mov rsi, [rsp - 8]",
    "dec rsi",
    ""
);
version!(
    "lanework_trace_again",
    "mov [rsp - 8], rsi",
    "lea rax, [rax + 3]",
    "mov rsi, [rsp - 8]",
    "dec rsi",
    ""
);
version!("lanework_trace_rehomed", "movq mm3, rsi", "lea rax, [rax + 3]", "movq rsi, mm3", "dec rsi", "emms");
version!("lanework_trace_clobbers", "mov [rsp - 8], rsi", "add rax, 3", "mov rsi, [rsp - 8]", "dec rsi", "");
version!(
    "lanework_trace_forgets",
    "mov [rsp - 16], rsi",
    "lea rax, [rax + 3]",
    "mov rsi, [rsp - 8]",
    "dec rsi",
    ""
);
version!(
    "lanework_trace_miscounts",
    "mov [rsp - 8], rsi",
    "lea rax, [rax + 4]",
    "mov rsi, [rsp - 8]",
    "dec rsi",
    ""
);

/// A version: the words, and how many turns.
pub(crate) type Version = extern "C" fn(&mut [u64; 8], u64) -> u64;

// SAFETY: two words are read and written; eight bytes below the stack pointer are the function's by the ABI, sixteen too; all
// other registers are those that a call may change.
unsafe extern "C" {
    #[link_name = "lanework_trace_spills"]
    pub(crate) safe fn spills(words: &mut [u64; 8], turns: u64) -> u64;
    #[link_name = "lanework_trace_again"]
    pub(crate) safe fn again(words: &mut [u64; 8], turns: u64) -> u64;
    #[link_name = "lanework_trace_rehomed"]
    pub(crate) safe fn rehomed(words: &mut [u64; 8], turns: u64) -> u64;
    #[link_name = "lanework_trace_clobbers"]
    pub(crate) safe fn clobbers(words: &mut [u64; 8], turns: u64) -> u64;
    #[link_name = "lanework_trace_forgets"]
    pub(crate) safe fn forgets(words: &mut [u64; 8], turns: u64) -> u64;
    #[link_name = "lanework_trace_miscounts"]
    pub(crate) safe fn miscounts(words: &mut [u64; 8], turns: u64) -> u64;
}

/// The code from a version's begin on.
pub(crate) fn bytes(version: Version) -> &'static [u8] {
    // SAFETY: with the linker's padding a version is longer than 40 bytes, and code is never written to.
    unsafe { core::slice::from_raw_parts(version as *const u8, 40) }
}
