//! Backends with planted leaks, for the tests of `leaks`: every kernel leaks by a branch, by an address and by the
//! iterations of a loop, in a tier without vectors and in one of each width. In addition, the cipher by tables, as in
//! other implementations.

use lanework_cpu::memory::Block;
use lanework_leakage::plants::{
    ADDRESS, BRANCH, FILE, branch_on_byte, branch_on_lanes, branch_wide, load_by_byte, load_by_lanes,
    load_wide, loop_over_bits, loop_over_lanes, loop_wide,
};

use super::chain::{Chain, Scratch};
use super::{Kernels, LaneBlocks, avx2, avx512, portable};
use crate::sbox::Sbox;
use crate::schedule::{ByteOrder, Counter, Schedule};

mod table;

/// The tiers whose plants memcheck finds.
pub(crate) const UNDER_VALGRIND: [&str; 2] = ["portable", "avx2"];

/// The tiers whose plants single steps find: valgrind cannot run them.
pub(crate) const UNDER_SINGLE_STEPS: [&str; 2] = ["avx2-gfni", "avx512"];

/// All kernels, by the names of the operations that use them.
pub(crate) const KERNELS: [&str; 7] =
    ["blocks", "counter", "keystream", "set_lane", "lanes", "chain", "products"];

/// A backend with one leak.
pub(crate) struct Plant {
    pub(crate) tier: &'static str,
    pub(crate) kernel: &'static str,
    /// The function that leaks, and the beginning of its place.
    pub(crate) function: &'static str,
    pub(crate) file: &'static str,
    /// Memcheck's complaint about it.
    pub(crate) complaint: &'static str,
    pub(crate) kernels: &'static Kernels,
}

/// Stamps the planted kernels of one tier and one leak: each does the real kernel's work, then leaks its output; the
/// one that takes a key leaks the key.
macro_rules! planted {
    ($name:ident, $sound:path, $leak:path, #[$feature:meta]) => {
        mod $name {
            use super::*;

            /// # Safety
            /// As for the kernel, here and below; and the tier's features.
            #[$feature]
            unsafe fn blocks(s: &Schedule, input: *const u8, output: *mut u8, n: usize) {
                // SAFETY: the caller's promise, here and below.
                unsafe { ($sound.blocks)(s, input, output, n) };
                if n > 0 {
                    // SAFETY: 8n bytes were just written.
                    $leak(unsafe { core::slice::from_raw_parts(output, 8 * n) });
                }
            }

            #[$feature]
            unsafe fn counter(s: &Schedule, counter: Counter, input: *const u8, output: *mut u8, n: usize) {
                // SAFETY: as above.
                unsafe { ($sound.counter)(s, counter, input, output, n) };
                if n > 0 {
                    // SAFETY: n bytes were just written.
                    $leak(unsafe { core::slice::from_raw_parts(output, n) });
                }
            }

            #[$feature]
            unsafe fn keystream(s: &Schedule, counter: Counter, output: *mut u8, n: usize) {
                // SAFETY: as above.
                unsafe { ($sound.keystream)(s, counter, output, n) };
                if n > 0 {
                    // SAFETY: 8n bytes were just written.
                    $leak(unsafe { core::slice::from_raw_parts(output, 8 * n) });
                }
            }

            #[$feature]
            unsafe fn set_lane(keys: &mut [Block], lane: usize, words: &[u32; 8]) {
                // SAFETY: as above.
                unsafe { ($sound.set_lane)(keys, lane, words) };
                $leak(&words[0].to_le_bytes());
            }

            #[$feature]
            unsafe fn lanes(keys: &[Block], sbox: Sbox, order: ByteOrder, data: &mut LaneBlocks, n: usize) {
                // SAFETY: as above.
                unsafe { ($sound.lanes)(keys, sbox, order, data, n) };
                $leak(&data[0]);
            }

            #[$feature]
            unsafe fn chain(chain: &Chain<'_>, scratch: &mut Scratch) {
                // SAFETY: as above.
                unsafe { ($sound.chain)(chain, scratch) };
                $leak(&scratch.states[0]);
            }

            #[$feature]
            unsafe fn products(h: *const u8, x: *const u8, n: usize, sum: &mut [u64; 2]) {
                // SAFETY: as above.
                unsafe { ($sound.products)(h, x, n, sum) };
                $leak(&sum[0].to_le_bytes());
            }

            pub(super) fn plant(kernel: &str) -> &'static Kernels {
                let mut kernels = Kernels { ..$sound };
                match kernel {
                    "blocks" => kernels.blocks = blocks,
                    "counter" => kernels.counter = counter,
                    "keystream" => kernels.keystream = keystream,
                    "set_lane" => kernels.set_lane = set_lane,
                    "lanes" => kernels.lanes = lanes,
                    "chain" => kernels.chain = chain,
                    "products" => kernels.products = products,
                    other => panic!("no leak is planted in {other}"),
                }
                Box::leak(Box::new(kernels))
            }
        }
    };
}

planted!(portable_branch, portable::KERNELS, branch_on_byte, #[target_feature(enable = "sse2")]);
planted!(portable_load, portable::KERNELS, load_by_byte, #[target_feature(enable = "sse2")]);
planted!(portable_loop, portable::KERNELS, loop_over_bits, #[target_feature(enable = "sse2")]);
planted!(avx2_branch, avx2::KERNELS, branch_on_lanes, #[target_feature(enable = "avx2")]);
planted!(avx2_load, avx2::KERNELS, load_by_lanes, #[target_feature(enable = "avx2")]);
planted!(avx2_loop, avx2::KERNELS, loop_over_lanes, #[target_feature(enable = "avx2")]);
planted!(gfni_branch, avx2::KERNELS_GFNI, branch_on_lanes, #[target_feature(enable = "avx2")]);
planted!(gfni_load, avx2::KERNELS_GFNI, load_by_lanes, #[target_feature(enable = "avx2")]);
planted!(gfni_loop, avx2::KERNELS_GFNI, loop_over_lanes, #[target_feature(enable = "avx2")]);
planted!(avx512_branch, avx512::KERNELS, branch_wide, #[target_feature(enable = "avx2")]);
planted!(avx512_load, avx512::KERNELS, load_wide, #[target_feature(enable = "avx2")]);
planted!(avx512_loop, avx512::KERNELS, loop_wide, #[target_feature(enable = "avx2")]);

/// The cipher by tables as the portable tier's kernel. Memcheck reports a place only once, so each tier has its own function.
///
/// # Safety
/// As for the kernel.
#[inline(never)]
unsafe fn portable_tables(s: &Schedule, input: *const u8, output: *mut u8, n: usize) {
    // SAFETY: the caller's promise.
    unsafe { table::blocks(s, input, output, n) }
}

/// The same for AVX2.
///
/// # Safety
/// As for the kernel; AVX2.
#[inline(never)]
#[target_feature(enable = "avx2")]
unsafe fn avx2_tables(s: &Schedule, input: *const u8, output: *mut u8, n: usize) {
    // SAFETY: the caller's promise.
    unsafe { table::blocks(s, input, output, n) }
}

/// Every plant of a tier but the tables.
pub(crate) fn of(tier: &'static str) -> Vec<Plant> {
    type Planting = fn(&str) -> &'static Kernels;
    let kinds: [(&str, &str, Planting); 3] = match tier {
        "portable" => [
            ("branch_on_byte", BRANCH, portable_branch::plant),
            ("load_by_byte", ADDRESS, portable_load::plant),
            ("loop_over_bits", BRANCH, portable_loop::plant),
        ],
        "avx2" => [
            ("branch_on_lanes", BRANCH, avx2_branch::plant),
            ("load_by_lanes", ADDRESS, avx2_load::plant),
            ("loop_over_lanes", BRANCH, avx2_loop::plant),
        ],
        "avx2-gfni" => [
            ("branch_on_lanes", BRANCH, gfni_branch::plant),
            ("load_by_lanes", ADDRESS, gfni_load::plant),
            ("loop_over_lanes", BRANCH, gfni_loop::plant),
        ],
        "avx512" => [
            ("branch_on_mask", BRANCH, avx512_branch::plant),
            ("gather_wide", ADDRESS, avx512_load::plant),
            ("loop_over_wide_lanes", BRANCH, avx512_loop::plant),
        ],
        other => panic!("no leak is planted in {other}"),
    };
    let plant = |(function, complaint, plant): (_, _, Planting)| {
        KERNELS.map(|kernel| Plant { tier, kernel, function, file: FILE, complaint, kernels: plant(kernel) })
    };
    kinds.into_iter().flat_map(plant).collect()
}

/// A tier that encrypts by tables.
pub(crate) fn by_tables(tier: &'static str) -> Plant {
    let kernels = match tier {
        "portable" => Kernels { blocks: portable_tables, ..portable::KERNELS },
        "avx2" => Kernels { blocks: avx2_tables, ..avx2::KERNELS },
        other => panic!("no tables in {other}"),
    };
    let kernels = Box::leak(Box::new(kernels));
    let (kernel, function, file) = ("blocks", "blocks", "table.rs:");
    Plant { tier, kernel, function, file, complaint: ADDRESS, kernels }
}

/// Compares by vectors, and leaks.
pub(crate) fn compare_lanes(x: &[u8], y: &[u8]) -> bool {
    #[target_feature(enable = "avx2")]
    fn compare(x: &[u8], y: &[u8]) -> bool {
        lanework_leakage::plants::compare_lanes_until_different(x, y)
    }
    assert!(std::arch::is_x86_feature_detected!("avx2"), "a tier with AVX2");
    // SAFETY: AVX2 is there.
    unsafe { compare(x, y) }
}
