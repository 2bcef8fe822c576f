//! Quadwords: up to 4 blocks, one to a quadword, for serial modes and the shortest messages.
//!
//! **Layout.** A half is held one bit to the left: bits 1 to 32 of its quadword. The rotation by 11 then moves nibbles by
//! 12 bits, so that each substituted nibble is half a byte of its destination, and a shuffle whose index lies in that
//! byte needs no rotation afterwards. Bit 0 and the bits above 32 are arbitrary: a sum carries only upwards, and the
//! masks of the indices omit them.
//!
//! ```text
//! x = a + 2k
//! nibbles 0, 2, 4    bytes 1, 2, 3 of x << 7
//! nibble 6           byte 0 of x >> 25
//! nibbles 1, 3       bytes 2, 3 of x << 11
//! nibble 7           byte 1 of x >> 21
//! nibble 5           byte 4 of x << 11 and byte 0 of x >> 21: it falls into bits 31, 0, 1 and 2 of the half
//! b ^= the eight shuffles ^ the constant that the tables omit
//! ```
//!
//! **Floor.** On Zen 3 each of these operations takes one cycle. Addition, shift and mask lead to the first shuffles; two
//! shuffles start in each cycle; the last pair is added to itself and to b: 3 + 4 + 2 = 9 cycles a round. The 34
//! operations take 8.5 cycles on four ports. Measured: 11.8 in this order of instructions, found by a search of 3,000
//! orders; 13 to 16 in most orders, including the compiler's. Hence the assembly.

use core::arch::asm;
use core::arch::x86_64::*;

use super::planes::Y;
use super::tables::Quadwords;
use super::words::numbers;
use crate::schedule::{ByteOrder, Counter, Schedule, word};

/// Blocks in a register.
pub(super) const BLOCKS: usize = 4;

/// K1 to K8 of `BLOCKS` lanes.
pub(super) type LaneWords = [[u32; BLOCKS]; 8];

/// Blocks 0 to 3 of a counter as numbers.
///
/// # Safety
/// AVX2.
#[inline(always)]
pub(super) unsafe fn count(counter: &Counter) -> Y {
    let both = |high: u32, low: u32| (u64::from(high) << 32 | u64::from(low)) as i64;
    // SAFETY: AVX2, the caller's promise.
    unsafe {
        let index = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
        let step = _mm256_set1_epi64x(both(counter.step_high, counter.step_low));
        let start = _mm256_set1_epi64x(both(counter.high, counter.low));
        _mm256_add_epi32(start, _mm256_mullo_epi32(index, step))
    }
}

/// Blocks as numbers, and numbers as blocks.
///
/// # Safety
/// AVX2.
#[inline(always)]
pub(super) unsafe fn swap(blocks: Y, order: ByteOrder) -> Y {
    // SAFETY: AVX2, the caller's promise.
    unsafe { _mm256_shuffle_epi8(blocks, numbers(order)) }
}

/// $b ^= g\[key\]($a), where $load puts the key's words at `{x}` from the address `$key`.
macro_rules! round {
    ($load:literal, $key:expr, $t:ident, $rows:ident, $a:ident, $b:ident) => {
        asm!(
            $load,
            "vpaddq {x}, {x}, {x}",
            "vpaddq {x}, {x}, {a}",
            "vpsllq {t1}, {x}, 7",
            "vpand {t2}, {t1}, [{t} + 64]",
            "vpsllq {t3}, {x}, 11",
            "vpand {t4}, {t1}, [{t} + 32]",
            "vpshufb {t5}, {r0}, {t4}",
            "vpsrlq {t4}, {x}, 21",
            "vpshufb {t2}, {r2}, {t2}",
            "vpxor {t2}, {t5}, {t2}",
            "vpand {t5}, {t3}, [{t} + 64]",
            "vpand {t1}, {t1}, [{t} + 96]",
            "vpshufb {t1}, {r4}, {t1}",
            "vpsrlq {x}, {x}, 25",
            "vpand {x}, {x}, [{t}]",
            "vpshufb {x}, {r6}, {x}",
            "vpshufb {t5}, {r1}, {t5}",
            "vpxor {t5}, {t1}, {t5}",
            "vpand {t1}, {t3}, [{t} + 96]",
            "vpshufb {t1}, {r3}, {t1}",
            "vpblendd {t3}, {t4}, {t3}, 0xaa",
            "vpand {t3}, {t3}, [{t} + 128]",
            "vpand {t4}, {t4}, [{t} + 32]",
            "vpxor {b}, {b}, [{t} + 160]",
            "vpxor {b}, {b}, {t2}",
            "vpxor {b}, {b}, {t5}",
            "vpxor {t2}, {t1}, {x}",
            "vpshufb {t5}, {r7}, {t4}",
            "vpshufb {t1}, {r5}, {t3}",
            "vpxor {x}, {t5}, {t1}",
            "vpxor {b}, {b}, {t2}",
            "vpxor {b}, {b}, {x}",
            key = in(reg) $key,
            t = in(reg) $t.fixed.as_ptr(),
            a = in(ymm_reg) $a,
            b = inout(ymm_reg) $b,
            r0 = in(ymm_reg) $rows[0],
            r1 = in(ymm_reg) $rows[1],
            r2 = in(ymm_reg) $rows[2],
            r3 = in(ymm_reg) $rows[3],
            r4 = in(ymm_reg) $rows[4],
            r5 = in(ymm_reg) $rows[5],
            r6 = in(ymm_reg) $rows[6],
            r7 = in(ymm_reg) $rows[7],
            x = out(ymm_reg) _,
            t1 = out(ymm_reg) _,
            t2 = out(ymm_reg) _,
            t3 = out(ymm_reg) _,
            t4 = out(ymm_reg) _,
            t5 = out(ymm_reg) _,
            options(pure, readonly, nostack, preserves_flags),
        )
    };
}

/// All rounds of 4 numbers, with the keys that $load finds at the address $key(round).
macro_rules! rounds {
    ($load:literal, $key:expr, $t:ident, $numbers:ident) => {{
        let rows: [Y; 8] =
            core::array::from_fn(|i| _mm256_broadcastsi128_si256(_mm_load_si128($t.rows[i].as_ptr().cast())));
        let mut a = _mm256_slli_epi64::<1>($numbers);
        let mut b = _mm256_srli_epi64::<31>($numbers);
        for r in (0..32).step_by(2) {
            round!($load, $key(r), $t, rows, a, b);
            round!($load, $key(r + 1), $t, rows, b, a);
        }
        _mm256_blend_epi32::<0b1010_1010>(_mm256_srli_epi64::<1>(b), _mm256_slli_epi64::<31>(a))
    }};
}

/// 4 numbers under one key.
///
/// # Safety
/// AVX2.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn rounds(t: &Quadwords, s: &Schedule, numbers: Y) -> Y {
    let key = |r: usize| s.rounds[r..].as_ptr();
    // SAFETY: AVX2, the caller's promise; a round reads one word at `key` and the 192 bytes of `fixed`.
    unsafe { rounds!("vpbroadcastd {x}, dword ptr [{key}]", key, t, numbers) }
}

/// 4 numbers, each encrypted under its lane's key.
///
/// # Safety
/// AVX2.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn lane_rounds(t: &Quadwords, words: &LaneWords, numbers: Y) -> Y {
    let key = |r: usize| words[word(r, 24)].as_ptr();
    // SAFETY: AVX2, the caller's promise; a round reads four words at `key` and the 192 bytes of `fixed`.
    unsafe { rounds!("vpmovzxdq {x}, xmmword ptr [{key}]", key, t, numbers) }
}
