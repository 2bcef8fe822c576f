//! MGM's products: four 64x64-bit carry-less multiplications in two instructions, summed before any reduction.
//!
//! Floor: eight products take two loads, two byte shuffles, two `vpclmulqdq` and one `vpternlog`. Zen 4 does one
//! 512-bit load, one shuffle and one multiplication a cycle: 2 cycles, 0.03 cycles a byte; Zen 5 half of it. Leak
//! class: constant time.

use core::arch::x86_64::*;

use super::tables::swap;
use crate::schedule::ByteOrder;

/// Blocks in a register.
const STEP: usize = 8;

/// # Safety
/// AVX-512 F, BW and VPCLMULQDQ; see `Kernels::products`.
#[target_feature(enable = "avx512f,avx512bw,vpclmulqdq")]
pub(crate) unsafe fn products(h: *const u8, x: *const u8, n: usize, sum: &mut [u64; 2]) {
    // SAFETY: the array is 16 bytes long.
    let order = _mm512_broadcast_i32x4(unsafe { _mm_loadu_si128(swap(ByteOrder::Big).as_ptr().cast()) });
    let multiply = |sum: __m512i, h: __m512i, x: __m512i| {
        let (h, x) = (_mm512_shuffle_epi8(h, order), _mm512_shuffle_epi8(x, order));
        let (even, odd) = (_mm512_clmulepi64_epi128(h, x, 0x00), _mm512_clmulepi64_epi128(h, x, 0x11));
        _mm512_ternarylogic_epi64(sum, even, odd, 0x96)
    };
    // Two sums, so that their multiplications overlap.
    let mut sums = [_mm512_setzero_si512(); 2];
    let mut i = 0;
    while i + 2 * STEP <= n {
        for (k, sum) in sums.iter_mut().enumerate() {
            let at = 8 * (i + k * STEP);
            // SAFETY: sixteen blocks from i on are readable.
            let (h, x) =
                unsafe { (_mm512_loadu_si512(h.add(at).cast()), _mm512_loadu_si512(x.add(at).cast())) };
            *sum = multiply(*sum, h, x);
        }
        i += 2 * STEP;
    }
    while i < n {
        let mask = if n - i < STEP { (1 << (n - i)) - 1 } else { u8::MAX };
        // SAFETY: only the blocks below n are read; masked blocks are zero and add nothing.
        let (h, x) = unsafe {
            (
                _mm512_maskz_loadu_epi64(mask, h.add(8 * i).cast()),
                _mm512_maskz_loadu_epi64(mask, x.add(8 * i).cast()),
            )
        };
        sums[i / STEP % 2] = multiply(sums[i / STEP % 2], h, x);
        i += STEP;
    }
    let wide = _mm512_xor_si512(sums[0], sums[1]);
    let half = _mm256_xor_si256(_mm512_castsi512_si256(wide), _mm512_extracti64x4_epi64(wide, 1));
    let lane = _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    sum[0] ^= _mm_cvtsi128_si64(lane) as u64;
    sum[1] ^= _mm_extract_epi64(lane, 1) as u64;
}
