//! Sixteen blocks to a pair of registers, and the eight operations of a round.
//!
//! **The round.** A word of the state is kept rotated, b = w >>> 11. The substituted word is added to it without a
//! rotation, and the rotation happens once, before the key is added. x = (b <<< 11) + k; y = x >> 4; both become
//! indices: the nibble, and above it the byte's number, a constant. Two `vpermb` look them up in 64-byte tables that
//! hold the four substitutions of the low nibbles and the four of the high ones; one `vpternlog` adds both results to
//! the other word: rotate, add, shift, two index merges, two permutations, one sum.
//!
//! **Floor.** For 16 blocks, 128 bytes. Zen 5: eight operations at four a cycle, four of them (rotation, shift, two
//! permutations) on the two pipes that have them: 2 cycles a round, 0.5 cycles a byte. Zen 4 splits 512 bits in two: 4
//! cycles a round on either account, 1.0 cycles a byte; and 8 byte shuffles, interleavings and rotations a batch on the
//! two pipes, 0.06.
//!
//! **Measured** on Zen 4: 1.23 cycles a byte. Eleven pairs in flight, with the state barely in the registers, gave
//! 1.30; `vpmulhuw` for the shift, which runs on the other two pipes, 1.37 to 1.43 with eight to twelve.
//!
//! **Layout.** On Zen 4 eight pairs are in flight: 16 registers of state, four constants and the key, which leaves 11 for
//! each round. Zen 5's operations take 2 cycles, so it has twelve pairs, two at a time, in all 32 registers. Blocks are
//! taken apart within 128 bits. The rounds do not depend on which block lies in which lane, and the interleaving restores
//! the order (see [`BLOCK_OF_LANE`]).
//!
//! Leak class: constant time except for lengths, S-box set and byte order. The output is the only secret stored.

use core::arch::asm;
use core::arch::x86_64::*;

use super::tables::{BLOCK_OF_LANE, LANE_OF_BLOCK, TABLES, swap};
use super::words::vbmi256;
use crate::backend::{LANES, LaneBlocks};
use crate::sbox::Sbox;
use crate::schedule::{ByteOrder, Counter, Schedule};
use lanework_cpu::memory::Block;
use lanework_cpu::whole_512;

type Z = __m512i;
type Y = __m256i;

/// Blocks in a pair of registers.
pub(super) const PAIR: usize = 16;

/// Pairs in flight in bulk, where a CPU runs 512 bits as two halves.
const EIGHT: usize = 8;

/// The same where 512 bits are one operation, of twice the latency: eight pairs do not fill its pipes.
const TWELVE: usize = 12;

/// Up to this many pairs the chain of operations decides the time, which is shorter with 256-bit registers.
const FEW: usize = 4;

/// The constants of all rounds.
#[derive(Clone, Copy)]
struct Constants {
    low: Z,
    high: Z,
    nibbles: Z,
    places: Z,
    swap: Z,
}

impl Constants {
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn new(sbox: Sbox, order: ByteOrder) -> Constants {
        let tables = &TABLES[sbox as usize];
        // SAFETY: 64 and 16 bytes are readable.
        unsafe {
            Constants {
                low: _mm512_load_si512(tables.low.as_ptr().cast()),
                high: _mm512_load_si512(tables.high.as_ptr().cast()),
                nibbles: _mm512_set1_epi8(0x0f),
                places: _mm512_set1_epi32(0x3020_1000),
                swap: _mm512_broadcast_i32x4(_mm_loadu_si128(swap(order).as_ptr().cast())),
            }
        }
    }
}

/// One round: adds the round function of `a` to `b`. Both are rotated right by 11.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
#[inline]
fn round<const N: usize>(c: &Constants, b: &mut [Z; N], a: &[Z; N], key: impl Fn(usize) -> Z) {
    for q in 0..N {
        let x = _mm512_add_epi32(_mm512_rol_epi32::<11>(a[q]), key(q));
        let y = _mm512_srli_epi32::<4>(x);
        // (x and nibbles) or places
        let x = _mm512_ternarylogic_epi32::<0xea>(x, c.nibbles, c.places);
        let y = _mm512_ternarylogic_epi32::<0xea>(y, c.nibbles, c.places);
        let (x, y) = (_mm512_permutexvar_epi8(x, c.low), _mm512_permutexvar_epi8(y, c.high));
        b[q] = _mm512_ternarylogic_epi32::<0x96>(b[q], x, y);
    }
}

/// The same on halves of registers. A look-up of 256 bits in two registers takes less time than one of 512 bits in one.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
#[inline]
fn round_in_halves<const N: usize>(
    c: &Constants,
    b: &mut [[Y; 2]; N],
    a: &[[Y; 2]; N],
    key: impl Fn(usize) -> Z,
) {
    let [nibbles, places] = [c.nibbles, c.places].map(|z| _mm512_castsi512_si256(z));
    let [low, high] = [c.low, c.high].map(|z| halves(z));
    for q in 0..N {
        let key = halves(key(q));
        for h in 0..2 {
            let x = _mm256_add_epi32(_mm256_rol_epi32::<11>(a[q][h]), key[h]);
            let y = _mm256_srli_epi32::<4>(x);
            let x = _mm256_ternarylogic_epi32::<0xea>(x, nibbles, places);
            let y = _mm256_ternarylogic_epi32::<0xea>(y, nibbles, places);
            let x = _mm256_permutex2var_epi8(low[0], x, low[1]);
            let y = _mm256_permutex2var_epi8(high[0], y, high[1]);
            b[q][h] = _mm256_ternarylogic_epi32::<0x96>(b[q][h], x, y);
        }
    }
}

#[target_feature(enable = "avx512f")]
#[inline]
fn halves(z: Z) -> [Y; 2] {
    [_mm512_castsi512_si256(z), _mm512_extracti64x4_epi64::<1>(z)]
}

#[target_feature(enable = "avx512f")]
#[inline]
fn joined([low, high]: [Y; 2]) -> Z {
    _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
}

/// All rounds on N pairs, the key of each round and pair by `key`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
#[inline]
fn rounds<const N: usize>(c: &Constants, a: &mut [Z; N], b: &mut [Z; N], key: impl Fn(usize, usize) -> Z) {
    if N <= FEW {
        let (mut a2, mut b2) = (a.map(|z| halves(z)), b.map(|z| halves(z)));
        for r in 0..16 {
            round_in_halves(c, &mut b2, &a2, |q| key(2 * r, q));
            round_in_halves(c, &mut a2, &b2, |q| key(2 * r + 1, q));
        }
        (*a, *b) = (a2.map(|z| joined(z)), b2.map(|z| joined(z)));
    } else {
        for r in 0..16 {
            round(c, b, a, |q| key(2 * r, q));
            round(c, a, b, |q| key(2 * r + 1, q));
        }
    }
}

/// Adds the round function of two registers to two others: `add!("b0", "a0", "b1", "a1", "offset of the key")`.
macro_rules! add {
    ($b0:literal, $a0:literal, $b1:literal, $a1:literal, $key:literal) => {
        concat!(
            "vprold {x}, {",
            $a0,
            "}, 11\n",
            "vprold {u}, {",
            $a1,
            "}, 11\n",
            "vpaddd {x}, {x}, dword ptr [{key} + ",
            $key,
            "]{{1to16}}\n",
            "vpaddd {u}, {u}, dword ptr [{key} + ",
            $key,
            "]{{1to16}}\n",
            "vpsrld {y}, {x}, 4\n",
            "vpsrld {v}, {u}, 4\n",
            "vpternlogd {x}, {nibbles}, {places}, 0xea\n",
            "vpternlogd {u}, {nibbles}, {places}, 0xea\n",
            "vpternlogd {y}, {nibbles}, {places}, 0xea\n",
            "vpternlogd {v}, {nibbles}, {places}, 0xea\n",
            "vpermb {x}, {x}, {low}\n",
            "vpermb {u}, {u}, {low}\n",
            "vpermb {y}, {y}, {high}\n",
            "vpermb {v}, {v}, {high}\n",
            "vpternlogd {",
            $b0,
            "}, {x}, {y}, 0x96\n",
            "vpternlogd {",
            $b1,
            "}, {u}, {v}, 0x96\n",
        )
    };
}

/// All rounds on twelve pairs, two at a time. 24 registers of state, four of constants and four more use all 32, and a compiler
/// does not find this order.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
#[inline]
fn twelve(c: &Constants, keys: &[u32; 32], a: &mut [Z; TWELVE], b: &mut [Z; TWELVE]) {
    let [a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11] = a;
    let [b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11] = b;
    let keys = keys.as_ptr_range();
    // Only with typed variables does the compiler write the registers' full names.
    let (_x, _y, _u, _v): (Z, Z, Z, Z);
    // SAFETY: the features are enabled; 16 times two keys are read from the front of 32; all registers written are declared.
    unsafe {
        asm!(
            "2:",
            add!("b0", "a0", "b1", "a1", "0"),
            add!("b2", "a2", "b3", "a3", "0"),
            add!("b4", "a4", "b5", "a5", "0"),
            add!("b6", "a6", "b7", "a7", "0"),
            add!("b8", "a8", "b9", "a9", "0"),
            add!("b10", "a10", "b11", "a11", "0"),
            add!("a0", "b0", "a1", "b1", "4"),
            add!("a2", "b2", "a3", "b3", "4"),
            add!("a4", "b4", "a5", "b5", "4"),
            add!("a6", "b6", "a7", "b7", "4"),
            add!("a8", "b8", "a9", "b9", "4"),
            add!("a10", "b10", "a11", "b11", "4"),
            "add {key}, 8",
            "cmp {key}, {end}",
            "jne 2b",
            key = inout(reg) keys.start => _,
            end = in(reg) keys.end,
            low = in(zmm_reg) c.low,
            high = in(zmm_reg) c.high,
            nibbles = in(zmm_reg) c.nibbles,
            places = in(zmm_reg) c.places,
            x = out(zmm_reg) _x, y = out(zmm_reg) _y, u = out(zmm_reg) _u, v = out(zmm_reg) _v,
            a0 = inout(zmm_reg) *a0, a1 = inout(zmm_reg) *a1, a2 = inout(zmm_reg) *a2, a3 = inout(zmm_reg) *a3,
            a4 = inout(zmm_reg) *a4, a5 = inout(zmm_reg) *a5, a6 = inout(zmm_reg) *a6, a7 = inout(zmm_reg) *a7,
            a8 = inout(zmm_reg) *a8, a9 = inout(zmm_reg) *a9, a10 = inout(zmm_reg) *a10, a11 = inout(zmm_reg) *a11,
            b0 = inout(zmm_reg) *b0, b1 = inout(zmm_reg) *b1, b2 = inout(zmm_reg) *b2, b3 = inout(zmm_reg) *b3,
            b4 = inout(zmm_reg) *b4, b5 = inout(zmm_reg) *b5, b6 = inout(zmm_reg) *b6, b7 = inout(zmm_reg) *b7,
            b8 = inout(zmm_reg) *b8, b9 = inout(zmm_reg) *b9, b10 = inout(zmm_reg) *b10, b11 = inout(zmm_reg) *b11,
            options(nostack, readonly)
        );
    }
}

/// All rounds on N pairs under one key.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
#[inline]
fn under_one_key<const N: usize>(s: &Schedule, c: &Constants, a: &mut [Z; N], b: &mut [Z; N]) {
    match (a.as_mut_slice().try_into(), b.as_mut_slice().try_into()) {
        (Ok(a), Ok(b)) => twelve(c, &s.rounds, a, b),
        _ => rounds(c, a, b, |r, _| _mm512_set1_epi32(s.rounds[r] as i32)),
    }
}

/// N pairs through all `rounds`: `get` gives the words (a0, a1) of a pair, `put` takes them. A batch is this one function,
/// with everything inlined, so the state never passes through memory.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
#[inline]
fn pairs<const N: usize>(
    rounds: impl Fn(&mut [Z; N], &mut [Z; N]),
    mut get: impl FnMut(usize) -> (Z, Z),
    mut put: impl FnMut(usize, Z, Z),
) {
    let (mut a, mut b) = ([_mm512_setzero_si512(); N], [_mm512_setzero_si512(); N]);
    for q in 0..N {
        let (x, y) = get(q);
        (a[q], b[q]) = (_mm512_ror_epi32::<11>(x), _mm512_ror_epi32::<11>(y));
    }
    rounds(&mut a, &mut b);
    for q in 0..N {
        // The last round does not exchange the words.
        put(q, _mm512_rol_epi32::<11>(b[q]), _mm512_rol_epi32::<11>(a[q]));
    }
}

/// Eight and eight blocks to words (a0, a1).
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn apart(c: &Constants, x: Z, y: Z) -> (Z, Z) {
    let (x, y) = (_mm512_shuffle_epi8(x, c.swap), _mm512_shuffle_epi8(y, c.swap));
    let (x, y) = (_mm512_castsi512_ps(x), _mm512_castsi512_ps(y));
    (
        _mm512_castps_si512(_mm512_shuffle_ps::<0x88>(x, y)),
        _mm512_castps_si512(_mm512_shuffle_ps::<0xdd>(x, y)),
    )
}

/// Words (a0, a1) to eight and eight blocks.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn together(c: &Constants, a: Z, b: Z) -> (Z, Z) {
    let (x, y) = (_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    (_mm512_shuffle_epi8(x, c.swap), _mm512_shuffle_epi8(y, c.swap))
}

/// A mask of the qwords below `n`.
fn qwords(n: usize) -> __mmask8 {
    if n < 8 { (1 << n) - 1 } else { u8::MAX }
}

/// A mask of the bytes below `n`.
fn bytes(n: usize) -> __mmask64 {
    if n < 64 { (1 << n) - 1 } else { u64::MAX }
}

/// Blocks in N pairs: all 16 N of them, or the first `n`.
///
/// # Safety
/// AVX-512 F, BW, VL, VBMI; as `Kernels::blocks`, `n` <= 16 N, and = 16 N unless `CUT`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
#[inline]
unsafe fn blocks_in<const N: usize, const CUT: bool>(
    s: &Schedule,
    c: &Constants,
    input: *const u8,
    output: *mut u8,
    n: usize,
) {
    let mask = |i: usize| qwords(n.saturating_sub(8 * i));
    let load = |i: usize| {
        let at = input.wrapping_add(64 * i);
        // SAFETY: the whole register, or its qwords below block n, are readable.
        unsafe {
            if CUT { _mm512_maskz_loadu_epi64(mask(i), at.cast()) } else { _mm512_loadu_si512(at.cast()) }
        }
    };
    let store = |i: usize, x: Z| {
        let at = output.wrapping_add(64 * i);
        // SAFETY: as above, writable.
        unsafe {
            if CUT {
                _mm512_mask_storeu_epi64(at.cast(), mask(i), x);
            } else {
                _mm512_storeu_si512(at.cast(), x);
            }
        }
    };
    pairs::<N>(
        |a, b| under_one_key(s, c, a, b),
        |q| apart(c, load(2 * q), load(2 * q + 1)),
        |q, a, b| {
            let (x, y) = together(c, a, b);
            store(2 * q, x);
            store(2 * q + 1, y);
        },
    );
}

/// Calls with a constant number of pairs that suffices for `$n` pairs, up to twelve.
macro_rules! by_pairs {
    ($n:expr, $pairs:ident => $call:expr) => {
        match $n {
            0 => {}
            1 => by_pairs!(@ 1, $pairs, $call),
            2 => by_pairs!(@ 2, $pairs, $call),
            3 => by_pairs!(@ 3, $pairs, $call),
            4 => by_pairs!(@ 4, $pairs, $call),
            5 | 6 => by_pairs!(@ 6, $pairs, $call),
            7 | 8 => by_pairs!(@ 8, $pairs, $call),
            _ => by_pairs!(@ 12, $pairs, $call),
        }
    };
    (@ $n:literal, $pairs:ident, $call:expr) => {{
        const $pairs: usize = $n;
        $call
    }};
}

/// # Safety
/// AVX-512 F, BW, VL, VBMI; see `Kernels::blocks`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
pub(super) unsafe fn blocks(s: &Schedule, input: *const u8, output: *mut u8, n: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if whole_512() {
            blocks_by::<TWELVE>(s, input, output, n)
        } else {
            blocks_by::<EIGHT>(s, input, output, n)
        }
    }
}

/// # Safety
/// As [`blocks`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
#[inline]
unsafe fn blocks_by<const WIDE: usize>(
    s: &Schedule,
    mut input: *const u8,
    mut output: *mut u8,
    mut n: usize,
) {
    let wide = WIDE * PAIR;
    if n <= vbmi256::BLOCKS {
        // SAFETY: `n` blocks fit the chosen number of pairs; the features are among this backend's.
        return unsafe { vbmi256::blocks(s, input, output, n) };
    }
    let c = Constants::new(s.sbox, s.order);
    // SAFETY: each step takes as many blocks as are left at least, and the last one is cut to what is left.
    unsafe {
        while n >= wide {
            blocks_in::<WIDE, false>(s, &c, input, output, wide);
            (input, output, n) = (input.add(8 * wide), output.add(8 * wide), n - wide);
        }
        if n / PAIR == EIGHT {
            blocks_in::<EIGHT, false>(s, &c, input, output, EIGHT * PAIR);
            (input, output, n) =
                (input.add(8 * EIGHT * PAIR), output.add(8 * EIGHT * PAIR), n - EIGHT * PAIR);
        }
        by_pairs!(n.div_ceil(PAIR), N => blocks_in::<N, true>(s, &c, input, output, n));
    }
}

/// Position of counters: the words of the next 16 blocks, and the increment to the 16 after them.
#[derive(Clone, Copy)]
struct Count {
    low: Z,
    high: Z,
    step_low: Z,
    step_high: Z,
}

impl Count {
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn new(counter: Counter) -> Count {
        // SAFETY: 64 bytes are readable.
        let block = unsafe { _mm512_loadu_si512(BLOCK_OF_LANE.as_ptr().cast()) };
        let words = |start: u32, step: u32| {
            let many = _mm512_mullo_epi32(block, _mm512_set1_epi32(step as i32));
            _mm512_add_epi32(_mm512_set1_epi32(start as i32), many)
        };
        let sixteen = |step: u32| _mm512_set1_epi32(step.wrapping_mul(PAIR as u32) as i32);
        Count {
            low: words(counter.low, counter.step_low),
            high: words(counter.high, counter.step_high),
            step_low: sixteen(counter.step_low),
            step_high: sixteen(counter.step_high),
        }
    }

    /// The words of the next pair.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn next(&mut self) -> (Z, Z) {
        let words = (self.low, self.high);
        self.low = _mm512_add_epi32(self.low, self.step_low);
        self.high = _mm512_add_epi32(self.high, self.step_high);
        words
    }
}

/// Keystream for N pairs, all 128 N bytes of it or the first `n`; added to the input if `XOR`.
///
/// # Safety
/// AVX-512 F, BW, VL, VBMI; as `Kernels::counter`, `n` <= 128 N, and = 128 N unless `CUT`; `input` is not read unless
/// `XOR`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
#[inline]
unsafe fn stream_in<const N: usize, const CUT: bool, const XOR: bool>(
    s: &Schedule,
    c: &Constants,
    count: &mut Count,
    input: *const u8,
    output: *mut u8,
    n: usize,
) {
    let store = |i: usize, x: Z| {
        let (input, output) = (input.wrapping_add(64 * i), output.wrapping_add(64 * i));
        let mask = bytes(n.saturating_sub(64 * i));
        // SAFETY: the whole register, or its bytes below n, are readable and writable.
        unsafe {
            match (CUT, XOR) {
                (true, true) => {
                    let x = _mm512_xor_si512(x, _mm512_maskz_loadu_epi8(mask, input.cast()));
                    _mm512_mask_storeu_epi8(output.cast(), mask, x);
                }
                (true, false) => _mm512_mask_storeu_epi8(output.cast(), mask, x),
                (false, true) => {
                    let x = _mm512_xor_si512(x, _mm512_loadu_si512(input.cast()));
                    _mm512_storeu_si512(output.cast(), x);
                }
                (false, false) => _mm512_storeu_si512(output.cast(), x),
            }
        }
    };
    pairs::<N>(
        |a, b| under_one_key(s, c, a, b),
        |_| count.next(),
        |q, a, b| {
            let (x, y) = together(c, a, b);
            store(2 * q, x);
            store(2 * q + 1, y);
        },
    );
}

/// # Safety
/// AVX-512 F, BW, VL, VBMI; as `Kernels::counter`, or `Kernels::keystream` without `XOR`; `n` in bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
#[inline]
unsafe fn stream<const XOR: bool>(
    s: &Schedule,
    counter: Counter,
    input: *const u8,
    output: *mut u8,
    n: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if whole_512() {
            stream_by::<TWELVE, XOR>(s, counter, input, output, n)
        } else {
            stream_by::<EIGHT, XOR>(s, counter, input, output, n)
        }
    }
}

/// # Safety
/// As [`stream`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
#[inline]
unsafe fn stream_by<const WIDE: usize, const XOR: bool>(
    s: &Schedule,
    counter: Counter,
    mut input: *const u8,
    mut output: *mut u8,
    mut n: usize,
) {
    let wide = 8 * WIDE * PAIR;
    if n <= 8 * vbmi256::BLOCKS {
        // SAFETY: `n` bytes fit the chosen number of pairs; the features are among this backend's.
        return unsafe { vbmi256::stream::<XOR>(s, counter, input, output, n) };
    }
    let c = Constants::new(s.sbox, s.order);
    let mut count = Count::new(counter);
    // SAFETY: each step takes as many bytes as are left at least, and the last one is cut to what is left.
    unsafe {
        while n >= wide {
            stream_in::<WIDE, false, XOR>(s, &c, &mut count, input, output, wide);
            (input, output, n) = (input.wrapping_add(wide), output.add(wide), n - wide);
        }
        const BYTES_OF_EIGHT: usize = 8 * EIGHT * PAIR;
        if n / (8 * PAIR) == EIGHT {
            stream_in::<EIGHT, false, XOR>(s, &c, &mut count, input, output, BYTES_OF_EIGHT);
            (input, output, n) =
                (input.wrapping_add(BYTES_OF_EIGHT), output.add(BYTES_OF_EIGHT), n - BYTES_OF_EIGHT);
        }
        by_pairs!(n.div_ceil(8 * PAIR), N => {
            stream_in::<N, true, XOR>(s, &c, &mut count, input, output, n)
        });
    }
}

/// # Safety
/// AVX-512 F, BW, VL, VBMI; see `Kernels::counter`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
pub(super) unsafe fn counter(s: &Schedule, counter: Counter, input: *const u8, output: *mut u8, n: usize) {
    // SAFETY: the caller's promise.
    unsafe { stream::<true>(s, counter, input, output, n) }
}

/// # Safety
/// AVX-512 F, BW, VL, VBMI; see `Kernels::keystream`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
pub(super) unsafe fn keystream(s: &Schedule, counter: Counter, output: *mut u8, n: usize) {
    // SAFETY: the caller's promise; without `XOR` the input is not read.
    unsafe { stream::<false>(s, counter, output, output, 8 * n) }
}

/// Registers that hold one word of every lane's key.
const GROUPS: usize = LANES / PAIR;

/// Blocks of the lanes' keys: word by word, sixteen lanes to a block, in the order that [`apart`] gives them.
pub(crate) const LANE_KEYS_BLOCKS: usize = 8 * GROUPS;

/// # Safety
/// None beyond `Kernels::set_lane`: it checks its indices.
pub(crate) unsafe fn set_lane(keys: &mut [Block], lane: usize, words: &[u32; 8]) {
    let (group, at) = (lane / PAIR, LANE_OF_BLOCK[lane % PAIR]);
    for (i, word) in words.iter().enumerate() {
        keys[i * GROUPS + group].0[4 * at..][..4].copy_from_slice(&word.to_le_bytes());
    }
}

/// The rounds of the first 16 N lanes.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
#[inline]
fn lanes_in<const N: usize>(keys: &[Block], c: &Constants, data: &mut LaneBlocks) {
    let keys: &[Block; LANE_KEYS_BLOCKS] = keys[..LANE_KEYS_BLOCKS].try_into().expect("as long");
    let registers = data.as_mut_ptr().cast::<Z>();
    let key = |r: usize, q: usize| {
        let word = if r < 24 { r % 8 } else { 7 - r % 8 };
        // SAFETY: q < N <= GROUPS, and the keys are as long as all groups' words; each block is aligned.
        unsafe { _mm512_load_si512(keys.as_ptr().add(word * GROUPS + q).cast()) }
    };
    // SAFETY: i < 2 N <= 16, and the blocks are 16 registers.
    let load = |i: usize| unsafe { _mm512_loadu_si512(registers.add(i)) };
    // SAFETY: as above.
    let store = |i: usize, x: Z| unsafe { _mm512_storeu_si512(registers.add(i), x) };
    pairs::<N>(
        |a, b| rounds(c, a, b, key),
        |q| apart(c, load(2 * q), load(2 * q + 1)),
        |q, a, b| {
            let (x, y) = together(c, a, b);
            store(2 * q, x);
            store(2 * q + 1, y);
        },
    );
}

/// # Safety
/// AVX-512 F, BW, VL, VBMI; see `Kernels::lanes`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
pub(super) unsafe fn lanes(keys: &[Block], sbox: Sbox, order: ByteOrder, data: &mut LaneBlocks, n: usize) {
    let c = Constants::new(sbox, order);
    match n.div_ceil(PAIR) {
        0 => {}
        1 => lanes_in::<1>(keys, &c, data),
        2 => lanes_in::<2>(keys, &c, data),
        3 => lanes_in::<3>(keys, &c, data),
        4 => lanes_in::<4>(keys, &c, data),
        5 | 6 => lanes_in::<6>(keys, &c, data),
        _ => lanes_in::<8>(keys, &c, data),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both numbers of pairs in flight; a machine uses only one of them.
    #[test]
    fn eight_and_twelve_pairs_give_the_same() {
        let cpu = lanework_cpu::Cpu::detect();
        if crate::backend::BACKENDS.iter().all(|row| row.name() != "avx512" || row.get(&cpu).is_err()) {
            println!("SKIPPED: no avx512 here");
            return;
        }
        let s =
            Schedule::encrypt(&[1, 0x8000_0000, 3, u32::MAX, 5, 6, 7, 0x1234_5678], Sbox::Z, ByteOrder::Big);
        let most = 3 * TWELVE * PAIR + 1;
        let input: Vec<u8> = (0..8 * most).map(|i| (i * i / 7) as u8).collect();
        let counter = Counter::low(0x1234_5678_ffff_ff00);
        for n in (0..=most).filter(|n| n % 61 == 0 || [0, 1, PAIR - 1].contains(&(n % (4 * PAIR)))) {
            let mut out = [(); 6].map(|()| vec![0xa5; 8 * n + 8]);
            let [a, b, c, d, e, f] = out.each_mut().map(|out| out.as_mut_ptr());
            // SAFETY: avx512 is available; n blocks, or 8 n bytes, are readable and writable.
            unsafe {
                blocks_by::<EIGHT>(&s, input.as_ptr(), a, n);
                blocks_by::<TWELVE>(&s, input.as_ptr(), b, n);
                stream_by::<EIGHT, true>(&s, counter, input.as_ptr(), c, 8 * n);
                stream_by::<TWELVE, true>(&s, counter, input.as_ptr(), d, 8 * n);
                stream_by::<EIGHT, false>(&s, counter, input.as_ptr(), e, 8 * n);
                stream_by::<TWELVE, false>(&s, counter, input.as_ptr(), f, 8 * n);
            }
            assert!(out[0] == out[1] && out[2] == out[3] && out[4] == out[5], "{n} blocks");
            assert!(out.iter().all(|out| out[8 * n..] == [0xa5; 8]), "written behind {n} blocks");
        }
    }
}
