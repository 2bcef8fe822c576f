//! MGM's products, two blocks of each operand to a register.
//!
//! **Floor.** A carry-less multiplication for each product: on Zen 4 and Zen 5 one in two cycles for 128-bit registers.
//! In addition, half a shuffle for each operand and one XOR.

use core::arch::x86_64::*;

/// # Safety
/// See `Kernels::products`; AVX2 and PCLMULQDQ.
#[target_feature(enable = "avx2,pclmulqdq")]
pub(super) unsafe fn products(h: *const u8, x: *const u8, n: usize, sum: &mut [u64; 2]) {
    let reverse = _mm_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8);
    // SAFETY: block i, and i + 1 where two are taken, is one of n; `sum` is 16 bytes.
    unsafe {
        // As many sums as multiplications in flight.
        let mut sums = [_mm_setzero_si128(); 8];
        let pair = |i: usize| {
            let h = _mm_shuffle_epi8(_mm_loadu_si128(h.add(8 * i).cast()), reverse);
            let x = _mm_shuffle_epi8(_mm_loadu_si128(x.add(8 * i).cast()), reverse);
            [_mm_clmulepi64_si128::<0x00>(h, x), _mm_clmulepi64_si128::<0x11>(h, x)]
        };
        let mut i = 0;
        while i + 8 <= n {
            for k in 0..4 {
                let [a, b] = pair(i + 2 * k);
                sums[2 * k] = _mm_xor_si128(sums[2 * k], a);
                sums[2 * k + 1] = _mm_xor_si128(sums[2 * k + 1], b);
            }
            i += 8;
        }
        while i + 2 <= n {
            let [a, b] = pair(i);
            sums[0] = _mm_xor_si128(sums[0], a);
            sums[1] = _mm_xor_si128(sums[1], b);
            i += 2;
        }
        if i < n {
            let h = _mm_shuffle_epi8(_mm_loadl_epi64(h.add(8 * i).cast()), reverse);
            let x = _mm_shuffle_epi8(_mm_loadl_epi64(x.add(8 * i).cast()), reverse);
            sums[2] = _mm_xor_si128(sums[2], _mm_clmulepi64_si128::<0x00>(h, x));
        }
        let mut total = _mm_loadu_si128(sum.as_ptr().cast());
        for s in sums {
            total = _mm_xor_si128(total, s);
        }
        _mm_storeu_si128(sum.as_mut_ptr().cast(), total);
    }
}
