//! A few blocks at once, with the least latency: for the serial modes and short messages.
//!
//! **The round.** A word of each block in each lane, kept rotated as in [`super::permute`]; here latency decides. With
//! VBMI `vpermi2b` looks up 64 entries in two registers of 256 bits; that takes four cycles on Zen 4, and `vpermb` on
//! 512 bits five. Without it each of the eight substitutions takes a byte shuffle of two cycles over all bytes. A
//! zeroing mask keeps the right byte, and the words are summed in the order in which the look-ups end.
//!
//! **Floor.** The chain of a round on Zen 4. VBMI: rotation 2, addition 1, shift 1, merge 1, look-up 4, sum 1: 10
//! cycles, 320 a block (measured: 10.3 in a loop of rounds alone). Byte shuffles: rotation 2, addition 1, mask 1, eight
//! look-ups on two pipes 4 and the last one's 2, sum 1: 11 cycles, 350 a block (measured: 12).
//!
//! Leak class: constant time except for lengths, S-box set and byte order.

/// Stamps the kernels for one width of register.
macro_rules! stamp {
    (
        $(#[$doc:meta])* $name:ident, $features:literal, $v:ty, $half_blocks:tt, $bits:ty,
        places: $places:expr, tables: $tables:expr, substitute: $substitute:expr,
        load: $load:ident, load128: $load128:expr, words: $words:ident,
        add: $add:ident, multiply: $multiply:ident, rol: $rol:ident, ror: $ror:ident, shift: $shift:ident,
        shuffle: $shuffle:ident, xor: $xor:ident,
        unpack_low: $unpack_low:ident, unpack_high: $unpack_high:ident,
        apart: $apart:expr,
        load_blocks: $load_blocks:ident, store_blocks: $store_blocks:ident,
        load_bytes: $load_bytes:ident, store_bytes: $store_bytes:ident $(,)?
    ) => {
        $(#[$doc])*
        pub(crate) mod $name {
            use core::arch::x86_64::*;

            use crate::backend::avx512::tables::{TABLES, Tables, swap};
            use crate::schedule::{Counter, Schedule};

            /// Blocks that fit.
            pub(crate) const BLOCKS: usize = 2 * HALF;
            /// Blocks in a register.
            const HALF: usize = $half_blocks;

            /// All rounds on the words (a0, a1), in and out.
            #[target_feature(enable = $features)]
            #[inline]
            fn rounds(s: &Schedule, a: $v, b: $v) -> ($v, $v) {
                let tables = $tables(&TABLES[s.sbox as usize]);
                let round = |b: $v, a: $v, key: u32| {
                    let x = $add($rol::<11>(a), $words(key as i32));
                    $substitute(&tables, b, x, $shift::<4>(x))
                };
                let (mut a, mut b) = ($ror::<11>(a), $ror::<11>(b));
                for k in s.rounds.chunks_exact(2) {
                    b = round(b, a, k[0]);
                    a = round(a, b, k[1]);
                }
                ($rol::<11>(b), $rol::<11>(a))
            }

            /// The masks of `n` elements in two registers that hold `half` each.
            fn masks(n: usize, half: usize) -> [u64; 2] {
                let below = |n: usize| !(u64::MAX << n);
                [below(n.min(half)), below(n.saturating_sub(half).min(half))]
            }

            /// # Safety
            #[doc = concat!($features, "; as `Kernels::blocks`, `n` at most [`BLOCKS`].")]
            #[target_feature(enable = $features)]
            pub(crate) unsafe fn blocks(s: &Schedule, input: *const u8, output: *mut u8, n: usize) {
                // SAFETY: 16 bytes are readable; of input and output no more than n blocks are touched.
                unsafe {
                    let order = $load128(swap(s.order).as_ptr().cast());
                    if n == 1 {
                        // Without masks, since masked stores and loads are not forwarded.
                        let x = _mm_shuffle_epi8(_mm_loadl_epi64(input.cast()), _mm_loadu_si128(swap(s.order).as_ptr().cast()));
                        let (a, b) = rounds(s, $apart(x), $apart(_mm_srli_epi64::<32>(x)));
                        let (a, b) = (stamp!(@narrow a, $half_blocks), stamp!(@narrow b, $half_blocks));
                        let x = _mm_unpacklo_epi32(a, b);
                        let x = _mm_shuffle_epi8(x, stamp!(@narrow order, $half_blocks));
                        _mm_storel_epi64(output.cast(), x);
                        return;
                    }
                    let [mask_x, mask_y] = masks(n, HALF);
                    let x = $shuffle($load_blocks(mask_x as __mmask8, input.cast()), order);
                    let at = input.wrapping_add(8 * HALF).cast();
                    let y = $shuffle($load_blocks(mask_y as __mmask8, at), order);
                    let (a, b) = stamp!(@words x, y, $half_blocks);
                    let (a, b) = rounds(s, a, b);
                    let (x, y) = ($unpack_low(a, b), $unpack_high(a, b));
                    $store_blocks(output.cast(), mask_x as __mmask8, $shuffle(x, order));
                    let at = output.wrapping_add(8 * HALF).cast();
                    $store_blocks(at, mask_y as __mmask8, $shuffle(y, order));
                }
            }

            /// # Safety
            #[doc = concat!($features, "; as `Kernels::counter`, `n` bytes at most 8 times [`BLOCKS`]; `input` is not read unless `XOR`.")]
            #[target_feature(enable = $features)]
            pub(crate) unsafe fn stream<const XOR: bool>(s: &Schedule, c: Counter, input: *const u8, output: *mut u8, n: usize) {
                const BLOCK_OF_LANE: [u32; BLOCKS] = $places;
                // SAFETY: 16 bytes and one register are readable; of input and output no more than n bytes are touched.
                unsafe {
                    let order = $load128(swap(s.order).as_ptr().cast());
                    let block = $load(BLOCK_OF_LANE.as_ptr().cast());
                    let word = |start: u32, step: u32| $add($words(start as i32), $multiply(block, $words(step as i32)));
                    let (a, b) = rounds(s, word(c.low, c.step_low), word(c.high, c.step_high));
                    let words = [$shuffle($unpack_low(a, b), order), $shuffle($unpack_high(a, b), order)];
                    let masks = masks(n, 8 * HALF);
                    for i in 0..2 {
                        let (from, to) = (input.wrapping_add(8 * HALF * i).cast(), output.wrapping_add(8 * HALF * i).cast());
                        let mut x = words[i];
                        if XOR {
                            x = $xor(x, $load_bytes(masks[i] as $bits, from));
                        }
                        $store_bytes(to, masks[i] as $bits, x);
                    }
                }
            }
        }
    };
    (@narrow $x:expr, 2) => { $x };
    (@narrow $x:expr, 4) => { _mm256_castsi256_si128($x) };
    (@words $x:expr, $y:expr, 2) => {{
        let (x, y) = (_mm_castsi128_ps($x), _mm_castsi128_ps($y));
        (_mm_castps_si128(_mm_shuffle_ps::<0x88>(x, y)), _mm_castps_si128(_mm_shuffle_ps::<0xdd>(x, y)))
    }};
    (@words $x:expr, $y:expr, 4) => {{
        let (x, y) = (_mm256_castsi256_ps($x), _mm256_castsi256_ps($y));
        (_mm256_castps_si256(_mm256_shuffle_ps::<0x88>(x, y)), _mm256_castps_si256(_mm256_shuffle_ps::<0xdd>(x, y)))
    }};
    // A mask in a mask register. The compiler would turn a constant mask into a vector, and each look-up into two
    // operations.
    (@kept $bits:ty, $mask:expr) => {{
        let mut kept: $bits = $mask;
        // SAFETY: the assembly is empty.
        unsafe {
            core::arch::asm!("/* {0} */", inout(kreg) kept, options(pure, nomem, nostack, preserves_flags));
        }
        kept
    }};
    (@128 $(#[$doc:meta])* $name:ident, $features:literal, tables: $tables:expr, substitute: $substitute:expr) => {
        stamp! {
            $(#[$doc])* $name, $features, __m128i, 2, __mmask16,
            places: [0, 1, 2, 3], tables: $tables, substitute: $substitute,
            load: _mm_loadu_si128, load128: _mm_loadu_si128, words: _mm_set1_epi32,
            add: _mm_add_epi32, multiply: _mm_mullo_epi32, rol: _mm_rol_epi32, ror: _mm_ror_epi32, shift: _mm_srli_epi32,
            shuffle: _mm_shuffle_epi8, xor: _mm_xor_si128,
            unpack_low: _mm_unpacklo_epi32, unpack_high: _mm_unpackhi_epi32,
            apart: (|x| x),
            load_blocks: _mm_maskz_loadu_epi64, store_blocks: _mm_mask_storeu_epi64,
            load_bytes: _mm_maskz_loadu_epi8, store_bytes: _mm_mask_storeu_epi8,
        }
    };
    (@256 $(#[$doc:meta])* $name:ident, $features:literal, tables: $tables:expr, substitute: $substitute:expr) => {
        stamp! {
            $(#[$doc])* $name, $features, __m256i, 4, __mmask32,
            places: [0, 1, 4, 5, 2, 3, 6, 7], tables: $tables, substitute: $substitute,
            load: _mm256_loadu_si256, load128: (|p| _mm256_broadcastsi128_si256(_mm_loadu_si128(p))),
            words: _mm256_set1_epi32,
            add: _mm256_add_epi32, multiply: _mm256_mullo_epi32, rol: _mm256_rol_epi32, ror: _mm256_ror_epi32,
            shift: _mm256_srli_epi32,
            shuffle: _mm256_shuffle_epi8, xor: _mm256_xor_si256,
            unpack_low: _mm256_unpacklo_epi32, unpack_high: _mm256_unpackhi_epi32,
            apart: (|x| _mm256_castsi128_si256(x)),
            load_blocks: _mm256_maskz_loadu_epi64, store_blocks: _mm256_mask_storeu_epi64,
            load_bytes: _mm256_maskz_loadu_epi8, store_bytes: _mm256_mask_storeu_epi8,
        }
    };
    // One table for each of the eight substitutions and a mask for each byte.
    (@eight $v:ty, $bits:ty, $load:expr) => {
        |tables: &Tables| {
            let table = |half: &[u8; 64], i: usize| {
                // SAFETY: 16 bytes are readable from each multiple of 16 below 64.
                unsafe { $load(half.as_ptr().add(16 * i).cast()) }
            };
            let low: [$v; 4] = core::array::from_fn(|i| table(&tables.low, i));
            let high: [$v; 4] = core::array::from_fn(|i| table(&tables.high, i));
            let kept: [$bits; 4] = core::array::from_fn(|i| stamp!(@kept $bits, (0x1111_1111u32 << i) as $bits));
            (low, high, kept)
        }
    };
}

stamp! { @256
    /// Up to eight blocks, with look-ups in 64 entries.
    vbmi256, "avx512f,avx512bw,avx512vl,avx512vbmi",
    tables: |tables: &Tables| {
        // SAFETY: 32 bytes are readable from each multiple of 32 below 64.
        let table = |half: &[u8; 64], i: usize| unsafe { _mm256_load_si256(half.as_ptr().add(32 * i).cast()) };
        [table(&tables.low, 0), table(&tables.low, 1), table(&tables.high, 0), table(&tables.high, 1)]
    },
    substitute: |tables: &[__m256i; 4], b, x, y| {
        let (nibbles, places) = (_mm256_set1_epi8(0x0f), _mm256_set1_epi32(0x3020_1000));
        let x = _mm256_ternarylogic_epi32::<0xea>(x, nibbles, places);
        let y = _mm256_ternarylogic_epi32::<0xea>(y, nibbles, places);
        let x = _mm256_permutex2var_epi8(tables[0], x, tables[1]);
        let y = _mm256_permutex2var_epi8(tables[2], y, tables[3]);
        _mm256_ternarylogic_epi32::<0x96>(b, x, y)
    }
}

stamp! { @128
    /// Up to four blocks with byte shuffles.
    bw128, "avx512f,avx512bw,avx512vl",
    tables: stamp!(@eight __m128i, __mmask16, _mm_load_si128),
    substitute: |(low, high, kept): &([__m128i; 4], [__m128i; 4], [__mmask16; 4]), b, x, y| {
        let (x, y) = (_mm_and_si128(x, _mm_set1_epi8(0x0f)), _mm_and_si128(y, _mm_set1_epi8(0x0f)));
        let low = |i: usize| _mm_maskz_shuffle_epi8(kept[i], low[i], x);
        let high = |i: usize| _mm_maskz_shuffle_epi8(kept[i], high[i], y);
        let sum = _mm_ternarylogic_epi32::<0x96>(b, low(0), low(1));
        let sum = _mm_ternarylogic_epi32::<0x96>(sum, low(2), low(3));
        let sum = _mm_ternarylogic_epi32::<0x96>(sum, high(0), high(1));
        _mm_ternarylogic_epi32::<0x96>(sum, high(2), high(3))
    }
}

stamp! { @256
    /// Up to eight blocks with byte shuffles.
    bw256, "avx512f,avx512bw,avx512vl",
    tables: stamp!(@eight __m256i, __mmask32, |p| _mm256_broadcastsi128_si256(_mm_load_si128(p))),
    substitute: |(low, high, kept): &([__m256i; 4], [__m256i; 4], [__mmask32; 4]), b, x, y| {
        let (x, y) = (_mm256_and_si256(x, _mm256_set1_epi8(0x0f)), _mm256_and_si256(y, _mm256_set1_epi8(0x0f)));
        let low = |i: usize| _mm256_maskz_shuffle_epi8(kept[i], low[i], x);
        let high = |i: usize| _mm256_maskz_shuffle_epi8(kept[i], high[i], y);
        let sum = _mm256_ternarylogic_epi32::<0x96>(b, low(0), low(1));
        let sum = _mm256_ternarylogic_epi32::<0x96>(sum, low(2), low(3));
        let sum = _mm256_ternarylogic_epi32::<0x96>(sum, high(0), high(1));
        _mm256_ternarylogic_epi32::<0x96>(sum, high(2), high(3))
    }
}
