//! MGM's products with `pclmulqdq` on 128 bits, summed before any reduction.
//!
//! Floor: two products take two loads, two byte shuffles, two multiplications and one `vpternlog`; CPUs with one
//! multiplication a cycle: 0.13 cycles a byte. Leak class: constant time.

use core::arch::x86_64::*;

/// # Safety
/// AVX-512 F, VL and PCLMULQDQ; see `Kernels::products`.
#[target_feature(enable = "avx512f,avx512vl,pclmulqdq")]
pub(super) unsafe fn products(h: *const u8, x: *const u8, n: usize, sum: &mut [u64; 2]) {
    let order = _mm_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8);
    let multiply = |sum: __m128i, h: __m128i, x: __m128i| {
        let (h, x) = (_mm_shuffle_epi8(h, order), _mm_shuffle_epi8(x, order));
        let (even, odd) = (_mm_clmulepi64_si128::<0x00>(h, x), _mm_clmulepi64_si128::<0x11>(h, x));
        _mm_ternarylogic_epi64::<0x96>(sum, even, odd)
    };
    // Several sums, so that their multiplications overlap.
    let mut sums = [_mm_setzero_si128(); 4];
    let mut i = 0;
    while i + 8 <= n {
        for (k, sum) in sums.iter_mut().enumerate() {
            let at = 8 * (i + 2 * k);
            // SAFETY: eight blocks from i on are readable.
            let (h, x) = unsafe { (_mm_loadu_si128(h.add(at).cast()), _mm_loadu_si128(x.add(at).cast())) };
            *sum = multiply(*sum, h, x);
        }
        i += 8;
    }
    while i < n {
        // SAFETY: block i is readable; the zeros in the upper half add nothing.
        let (h, x) = unsafe { (_mm_loadl_epi64(h.add(8 * i).cast()), _mm_loadl_epi64(x.add(8 * i).cast())) };
        sums[i % 4] = multiply(sums[i % 4], h, x);
        i += 1;
    }
    let total = _mm_ternarylogic_epi64::<0x96>(sums[0], sums[1], _mm_xor_si128(sums[2], sums[3]));
    sum[0] ^= _mm_cvtsi128_si64(total) as u64;
    sum[1] ^= _mm_extract_epi64::<1>(total) as u64;
}
