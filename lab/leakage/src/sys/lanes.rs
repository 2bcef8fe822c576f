//! Planted leaks that need raw pointers or a processor with wide lanes, behind a check that it has them.

use core::arch::x86_64::{
    __m512i, _mm512_and_si512, _mm512_i32gather_epi32, _mm512_i32scatter_epi32, _mm512_mask_blend_epi8,
    _mm512_mask_compressstoreu_epi8, _mm512_set1_epi8, _mm512_set1_epi32, _mm512_set1_epi64,
    _mm512_srli_epi64, _mm512_test_epi8_mask,
};
use core::hint::black_box;

use crate::plants;

static WORDS: [i32; 256] = [7; 256];

/// Runs a plant for AVX2 if this processor has that.
macro_rules! on_avx2 {
    ($($name:ident)*) => {$(
        pub(crate) fn $name(secret: &[u8]) {
            if std::is_x86_feature_detected!("avx2") {
                // SAFETY: just checked.
                unsafe { plants::$name(secret) }
            }
        }
    )*};
}
on_avx2!(branch_on_lanes load_by_lanes loop_over_lanes select_by_lanes);

/// Whether this processor has what the plants for AVX-512 need.
pub(crate) fn has_avx512() -> bool {
    std::is_x86_feature_detected!("avx512f")
        && std::is_x86_feature_detected!("avx512bw")
        && std::is_x86_feature_detected!("avx512vbmi2")
}

/// Runs a plant for AVX-512 if this processor has that.
macro_rules! on_avx512 {
    ($($run:ident: $(#[$doc:meta])* $name:ident($secret:ident) $body:block)*) => {$(
        $(#[$doc])*
        #[inline(never)]
        #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2")]
        fn $name($secret: &[u8]) $body

        pub(crate) fn $run(secret: &[u8]) {
            if has_avx512() {
                // SAFETY: just checked.
                unsafe { $name(secret) }
            }
        }
    )*};
}

on_avx512! {
    run_branch_on_mask:
    branch_on_mask(secret) {
        if _mm512_test_epi8_mask(_mm512_set1_epi8(secret[0] as i8), _mm512_set1_epi8(1)) != 0 {
            black_box(secret);
        }
    }
    run_gather_wide:
    gather_wide(secret) {
        let at = index(secret);
        // SAFETY: every index is below 256, the length of the table; the scale is that of its elements.
        black_box(unsafe { _mm512_i32gather_epi32::<4>(at, WORDS.as_ptr()) });
    }
    run_scatter_wide:
    scatter_wide(secret) {
        let mut table = [0i32; 256];
        let at = index(secret);
        // SAFETY: as above, and the table is this function's own.
        unsafe { _mm512_i32scatter_epi32::<4>(table.as_mut_ptr(), at, at) };
        black_box(&table);
    }
    run_store_packed:
    store_packed(secret) {
        let mut bytes = [0u8; 64];
        let lanes = _mm512_set1_epi8(secret[0] as i8);
        let mask = u64::MAX >> (secret[0] & 63);
        // SAFETY: at most 64 bytes are stored, to this function's own.
        unsafe { _mm512_mask_compressstoreu_epi8(bytes.as_mut_ptr().cast(), mask, lanes) };
        black_box(&bytes);
    }
    run_loop_over_wide_lanes:
    loop_over_wide_lanes(secret) {
        let mut lanes = _mm512_set1_epi64(i64::from(secret[0]));
        while _mm512_test_epi8_mask(lanes, lanes) != 0 {
            lanes = black_box(_mm512_srli_epi64::<1>(lanes));
        }
    }
    run_select_by_mask:
    /// Not a leak: what a mask is for.
    select_by_mask(secret) {
        let lanes = _mm512_set1_epi8(secret[0] as i8);
        let mask = _mm512_test_epi8_mask(lanes, _mm512_set1_epi8(1));
        black_box(_mm512_mask_blend_epi8(mask, lanes, _mm512_srli_epi64::<3>(lanes)));
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn index(secret: &[u8]) -> __m512i {
    _mm512_and_si512(_mm512_set1_epi32(i32::from(secret[0])), _mm512_set1_epi32(255))
}
