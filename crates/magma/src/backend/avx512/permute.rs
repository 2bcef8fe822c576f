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
//! **Layout.** Eight pairs are in flight: 16 registers of state, four constants and the key, so that each round has 11
//! left. Blocks are taken apart within 128 bits; which block lies in which lane does not matter to the rounds and is
//! undone by the interleaving (see [`BLOCK_OF_LANE`]).
//!
//! Leak class: constant time in everything but lengths, S-box set and byte order. Nothing secret is stored but the
//! output.

use core::arch::x86_64::*;

use super::tables::{BLOCK_OF_LANE, LANE_OF_BLOCK, TABLES, swap};
use super::words::vbmi256;
use crate::backend::{LANES, LaneBlocks};
use crate::sbox::Sbox;
use crate::schedule::{ByteOrder, Counter, Schedule};
use lanework_cpu::memory::Block;

type Z = __m512i;
type Y = __m256i;

/// Blocks in a pair of registers.
pub(super) const PAIR: usize = 16;

/// Up to this many pairs the time is that of the chain of operations, and shorter with registers of 256 bits.
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
fn whole([low, high]: [Y; 2]) -> Z {
    _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
}

/// All rounds on N pairs: `get` gives the words (a0, a1) of a pair, `put` takes them. The state never passes through
/// memory: a batch is this one function, with everything else inlined.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
#[inline]
fn pairs<const N: usize>(
    c: &Constants,
    key: impl Fn(usize, usize) -> Z,
    mut get: impl FnMut(usize) -> (Z, Z),
    mut put: impl FnMut(usize, Z, Z),
) {
    let (mut a, mut b) = ([_mm512_setzero_si512(); N], [_mm512_setzero_si512(); N]);
    for q in 0..N {
        let (x, y) = get(q);
        (a[q], b[q]) = (_mm512_ror_epi32::<11>(x), _mm512_ror_epi32::<11>(y));
    }
    if N <= FEW {
        let (mut a2, mut b2) = (a.map(|z| halves(z)), b.map(|z| halves(z)));
        for r in 0..16 {
            round_in_halves(c, &mut b2, &a2, |q| key(2 * r, q));
            round_in_halves(c, &mut a2, &b2, |q| key(2 * r + 1, q));
        }
        (a, b) = (a2.map(|z| whole(z)), b2.map(|z| whole(z)));
    } else {
        for r in 0..16 {
            round(c, &mut b, &a, |q| key(2 * r, q));
            round(c, &mut a, &b, |q| key(2 * r + 1, q));
        }
    }
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
        c,
        |r, _| _mm512_set1_epi32(s.rounds[r] as i32),
        |q| apart(c, load(2 * q), load(2 * q + 1)),
        |q, a, b| {
            let (x, y) = together(c, a, b);
            store(2 * q, x);
            store(2 * q + 1, y);
        },
    );
}

/// Calls with a constant number of pairs that is enough for `$n`, a number of pairs up to 8.
macro_rules! by_pairs {
    ($n:expr, $pairs:ident => $call:expr) => {
        match $n {
            0 => {}
            1 => by_pairs!(@ 1, $pairs, $call),
            2 => by_pairs!(@ 2, $pairs, $call),
            3 => by_pairs!(@ 3, $pairs, $call),
            4 => by_pairs!(@ 4, $pairs, $call),
            5 | 6 => by_pairs!(@ 6, $pairs, $call),
            _ => by_pairs!(@ 8, $pairs, $call),
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
pub(super) unsafe fn blocks(s: &Schedule, mut input: *const u8, mut output: *mut u8, mut n: usize) {
    const WIDE: usize = 8 * PAIR;
    if n <= vbmi256::BLOCKS {
        // SAFETY: `n` blocks fit the chosen number of pairs; the features are among this backend's.
        return unsafe { vbmi256::blocks(s, input, output, n) };
    }
    let c = Constants::new(s.sbox, s.order);
    // SAFETY: each step takes as many blocks as are left at least, and the last one is cut to what is left.
    unsafe {
        while n >= WIDE {
            blocks_in::<8, false>(s, &c, input, output, WIDE);
            (input, output, n) = (input.add(8 * WIDE), output.add(8 * WIDE), n - WIDE);
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
        c,
        |r, _| _mm512_set1_epi32(s.rounds[r] as i32),
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
    mut input: *const u8,
    mut output: *mut u8,
    mut n: usize,
) {
    const WIDE: usize = 8 * 8 * PAIR;
    if n <= 8 * vbmi256::BLOCKS {
        // SAFETY: `n` bytes fit the chosen number of pairs; the features are among this backend's.
        return unsafe { vbmi256::stream::<XOR>(s, counter, input, output, n) };
    }
    let c = Constants::new(s.sbox, s.order);
    let mut count = Count::new(counter);
    // SAFETY: each step takes as many bytes as are left at least, and the last one is cut to what is left.
    unsafe {
        while n >= WIDE {
            stream_in::<8, false, XOR>(s, &c, &mut count, input, output, WIDE);
            (input, output, n) = (input.wrapping_add(WIDE), output.add(WIDE), n - WIDE);
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
    // SAFETY: the caller's.
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
        c,
        key,
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
    by_pairs!(n.div_ceil(PAIR), N => lanes_in::<N>(keys, &c, data));
}
