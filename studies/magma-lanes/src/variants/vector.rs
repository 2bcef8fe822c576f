//! Eight blocks at a time in AVX2, each word in a lane of its own: the design of the report `magma-lanes` and of
//! SmokeRand, with the standard's S-boxes. A round looks up eight times with `vpshufb`, once for each S-box, and
//! masks the one byte of every word that the S-box is for. In constant time, but with one dependent chain of eight
//! blocks, most of whose latency nothing fills.

use core::arch::x86_64::*;

use lanework_magma::Sbox;

use super::Schedule;

/// Two S-boxes for byte i of every word, the second shifted to the upper nibble; twice, for the two halves of a
/// register.
#[repr(align(32))]
struct Tables([[[u8; 32]; 2]; 4]);

static TABLES: Tables = {
    let rows = Sbox::Z.rows();
    let mut tables = [[[0; 32]; 2]; 4];
    let mut i = 0;
    while i < 4 {
        let mut x = 0;
        while x < 32 {
            tables[i][0][x] = rows[2 * i][x % 16];
            tables[i][1][x] = rows[2 * i + 1][x % 16] << 4;
            x += 1;
        }
        i += 1;
    }
    Tables(tables)
};

#[inline]
#[target_feature(enable = "avx2")]
fn table(i: usize, j: usize) -> __m256i {
    // SAFETY: 32 aligned bytes of the table.
    unsafe { _mm256_load_si256((&raw const TABLES.0[i][j]).cast()) }
}

macro_rules! f_body {
    ($x:expr) => {{
        let nibble = _mm256_set1_epi8(15);
        let low = _mm256_and_si256($x, nibble);
        let high = _mm256_and_si256(_mm256_srli_epi32::<4>($x), nibble);
        let mut y = _mm256_setzero_si256();
        for i in 0..4 {
            let mask = _mm256_set1_epi32((255u32 << (8 * i)) as i32);
            for (j, index) in [low, high].into_iter().enumerate() {
                let found = _mm256_shuffle_epi8(table(i, j), index);
                y = _mm256_or_si256(y, _mm256_and_si256(found, mask));
            }
        }
        _mm256_or_si256(_mm256_slli_epi32::<11>(y), _mm256_srli_epi32::<21>(y))
    }};
}

/// As a C compiler that does not inline would call it: the operand in a register, where Rust's own convention takes
/// memory.
#[allow(improper_ctypes_definitions)]
#[inline(never)]
#[target_feature(enable = "avx2")]
extern "C" fn f_called(x: __m256i) -> __m256i {
    f_body!(x)
}

#[allow(improper_ctypes_definitions)]
#[inline(never)]
#[target_feature(enable = "avx2")]
extern "C" fn round_called(left: __m256i, right: __m256i, key: u32) -> __m256i {
    let sum = _mm256_add_epi32(right, _mm256_set1_epi32(key as i32));
    _mm256_xor_si256(left, f_called(sum))
}

/// f on eight words. CALLS: functions are called, not inlined.
///
/// # Safety
/// AVX2.
#[target_feature(enable = "avx2")]
pub(crate) unsafe fn f<const CALLS: bool>(words: &[u32; 8]) -> [u32; 8] {
    let mut out = [0; 8];
    // SAFETY: 32 bytes each, of any alignment.
    unsafe {
        let x = _mm256_loadu_si256(words.as_ptr().cast());
        let y = if CALLS { f_called(x) } else { f_body!(x) };
        _mm256_storeu_si256(out.as_mut_ptr().cast(), y);
    }
    out
}

/// Encrypts `n` Magma blocks, n a multiple of 8. CALLS: functions are called, not inlined. ALIGNED: the load and
/// store instructions are those that need addresses at multiples of 32.
///
/// # Safety
/// AVX2. `input`: 8n readable bytes; `output`: 8n writable bytes; the same address or disjoint; if ALIGNED, both at multiples of 32.
#[target_feature(enable = "avx2")]
pub(crate) unsafe fn blocks<const CALLS: bool, const ALIGNED: bool>(
    s: &Schedule,
    input: *const u8,
    output: *mut u8,
    n: usize,
) {
    // Reverses the bytes of every word.
    let reverse =
        _mm256_broadcastsi128_si256(_mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3));
    for first in (0..n).step_by(8) {
        // SAFETY: eight blocks from `first` on are within n, and as aligned as the buffers.
        let [x, y] = unsafe {
            let at = input.add(8 * first).cast::<__m256i>();
            if ALIGNED {
                [_mm256_load_si256(at), _mm256_load_si256(at.add(1))]
            } else {
                [_mm256_loadu_si256(at), _mm256_loadu_si256(at.add(1))]
            }
        };
        let (x, y) = (_mm256_shuffle_epi8(x, reverse), _mm256_shuffle_epi8(y, reverse));
        // The first word of a block is a1. The order of blocks within the registers does not matter as long as it
        // is undone.
        let (x, y) = (_mm256_castsi256_ps(x), _mm256_castsi256_ps(y));
        let mut a1 = _mm256_castps_si256(_mm256_shuffle_ps::<0b10_00_10_00>(x, y));
        let mut a0 = _mm256_castps_si256(_mm256_shuffle_ps::<0b11_01_11_01>(x, y));
        for key in s.0.chunks_exact(2) {
            if CALLS {
                a1 = round_called(a1, a0, key[0]);
                a0 = round_called(a0, a1, key[1]);
            } else {
                let sum = _mm256_add_epi32(a0, _mm256_set1_epi32(key[0] as i32));
                a1 = _mm256_xor_si256(a1, f_body!(sum));
                let sum = _mm256_add_epi32(a1, _mm256_set1_epi32(key[1] as i32));
                a0 = _mm256_xor_si256(a0, f_body!(sum));
            }
        }
        let x = _mm256_shuffle_epi8(_mm256_unpacklo_epi32(a0, a1), reverse);
        let y = _mm256_shuffle_epi8(_mm256_unpackhi_epi32(a0, a1), reverse);
        // SAFETY: as for the loads.
        unsafe {
            let at = output.add(8 * first).cast::<__m256i>();
            if ALIGNED {
                _mm256_store_si256(at, x);
                _mm256_store_si256(at.add(1), y);
            } else {
                _mm256_storeu_si256(at, x);
                _mm256_storeu_si256(at.add(1), y);
            }
        }
    }
}
