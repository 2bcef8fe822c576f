//! The steps of many messages, with the lanes' states kept in the rounds' layout.
//!
//! With `lanes` alone, each step would join, store, load and split the states between the last round of one step and
//! the first of the next. Here only the messages' blocks are split and joined, beside the rounds, and counters are
//! incremented as words.
//!
//! Floor, per step of 128 lanes: the rounds' 512 cycles on Zen 5 and 1024 on Zen 4, plus fetching (see
//! `backend::chain`), plus 32 byte shuffles and 32 interleavings for input, and as many for output.
//!
//! Leak class: constant time except for lengths, S-box set and byte order. The states are left in the scratch, which its
//! owner wipes.

use core::arch::x86_64::*;

use lanework_cpu::memory::Block;

use super::permute::{LANE_KEYS_BLOCKS, PAIR};
use super::tables::{TABLES, swap};
use crate::backend::LANES;
use crate::backend::chain::{Chain, Half, LaneBlocks, ROWS, Scratch, Step, avx512 as rows};

type Z = __m512i;

/// A word of 16 lanes' keys follows that of the previous 16 lanes.
const GROUPS: usize = LANES / PAIR;

struct Constants {
    low: Z,
    high: Z,
    nibbles: Z,
    places: Z,
    swap: Z,
}

/// Words (a0, a1) of 16 lanes for each q.
type Words<const N: usize> = [[Z; N]; 2];

/// The blocks of 16 lanes as words.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn apart(c: &Constants, [x, y]: [Z; 2]) -> [Z; 2] {
    let (x, y) = (_mm512_shuffle_epi8(x, c.swap), _mm512_shuffle_epi8(y, c.swap));
    let (x, y) = (_mm512_castsi512_ps(x), _mm512_castsi512_ps(y));
    [
        _mm512_castps_si512(_mm512_shuffle_ps::<0x88>(x, y)),
        _mm512_castps_si512(_mm512_shuffle_ps::<0xdd>(x, y)),
    ]
}

/// Words of 16 lanes as numbers, which are blocks in the CPU's own byte order.
#[target_feature(enable = "avx512f")]
#[inline]
fn numbers([a, b]: [Z; 2]) -> [Z; 2] {
    [_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b)]
}

/// The blocks of 16 lanes.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn blocks(c: &Constants, words: [Z; 2]) -> [Z; 2] {
    let [x, y] = numbers(words);
    [_mm512_shuffle_epi8(x, c.swap), _mm512_shuffle_epi8(y, c.swap)]
}

/// Registers 2q and 2q + 1 of a row of the tile, or of the states.
#[target_feature(enable = "avx512f")]
#[inline]
fn load(row: &LaneBlocks, q: usize) -> [Z; 2] {
    let at = row[PAIR * q..PAIR * (q + 1)].as_ptr().cast::<Z>();
    // SAFETY: sixteen blocks are two registers.
    unsafe { [_mm512_loadu_si512(at), _mm512_loadu_si512(at.add(1))] }
}

#[target_feature(enable = "avx512f")]
#[inline]
fn store(row: &mut LaneBlocks, q: usize, [x, y]: [Z; 2]) {
    let at = row[PAIR * q..PAIR * (q + 1)].as_mut_ptr().cast::<Z>();
    // SAFETY: as above.
    unsafe {
        _mm512_storeu_si512(at, x);
        _mm512_storeu_si512(at.add(1), y);
    }
}

/// One round of `permute`, under keys from memory.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
#[inline]
fn round<const N: usize>(c: &Constants, b: &mut [Z; N], a: &[Z; N], keys: &[Block]) {
    for q in 0..N {
        // SAFETY: 64 aligned bytes of a block.
        let key = unsafe { _mm512_load_si512(keys[q].0.as_ptr().cast()) };
        let x = _mm512_add_epi32(_mm512_rol_epi32::<11>(a[q]), key);
        let y = _mm512_srli_epi32::<4>(x);
        let x = _mm512_ternarylogic_epi32::<0xea>(x, c.nibbles, c.places);
        let y = _mm512_ternarylogic_epi32::<0xea>(y, c.nibbles, c.places);
        let (x, y) = (_mm512_permutexvar_epi8(x, c.low), _mm512_permutexvar_epi8(y, c.high));
        b[q] = _mm512_ternarylogic_epi32::<0x96>(b[q], x, y);
    }
}

/// All rounds of the first 16 N lanes.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
#[inline]
fn encrypt<const N: usize>(keys: &[Block; LANE_KEYS_BLOCKS], c: &Constants, words: &Words<N>) -> Words<N> {
    let [mut a, mut b] = words.map(|w| w.map(|w| _mm512_ror_epi32::<11>(w)));
    for i in 0..16 {
        let [first, second] =
            if i < 12 { [2 * i % 8, 2 * i % 8 + 1] } else { [7 - 2 * i % 8, 6 - 2 * i % 8] };
        round(c, &mut b, &a, &keys[first * GROUPS..][..N]);
        round(c, &mut a, &b, &keys[second * GROUPS..][..N]);
    }
    [b, a].map(|w| w.map(|w| _mm512_rol_epi32::<11>(w)))
}

#[target_feature(enable = "avx512f")]
#[inline]
fn xor([a, b]: [Z; 2], [x, y]: [Z; 2]) -> [Z; 2] {
    [_mm512_xor_si512(a, x), _mm512_xor_si512(b, y)]
}

/// Lanes' sums, even lanes apart from odd ones, as the carry-less product gives them.
struct Sums<const N: usize>([[[Z; 2]; 2]; N]);

impl<const N: usize> Sums<N> {
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn load(sums: &[[u64; 2]; LANES]) -> Sums<N> {
        let four = |lane: usize| {
            // SAFETY: four sums are a register.
            unsafe { _mm512_loadu_si512(sums[lane..lane + 4].as_ptr().cast()) }
        };
        Sums(core::array::from_fn(|q| {
            core::array::from_fn(|i| {
                let (x, y) = (four(16 * q + 8 * i), four(16 * q + 8 * i + 4));
                [_mm512_shuffle_i64x2::<0x88>(x, y), _mm512_shuffle_i64x2::<0xdd>(x, y)]
            })
        }))
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn store(&self, sums: &mut [[u64; 2]; LANES]) {
        let first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
        let second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
        for (q, pair) in self.0.iter().enumerate() {
            for (i, &[even, odd]) in pair.iter().enumerate() {
                for (j, index) in [first, second].into_iter().enumerate() {
                    let lane = 16 * q + 8 * i + 4 * j;
                    let four = _mm512_permutex2var_epi64(even, index, odd);
                    // SAFETY: four sums are a register.
                    unsafe { _mm512_storeu_si512(sums[lane..lane + 4].as_mut_ptr().cast(), four) };
                }
            }
        }
    }

    /// Adds the products of 16 lanes' numbers.
    #[target_feature(enable = "avx512f,vpclmulqdq")]
    #[inline]
    fn add(&mut self, q: usize, h: [Z; 2], x: [Z; 2]) {
        for i in 0..2 {
            let [even, odd] = &mut self.0[q][i];
            *even = _mm512_xor_si512(*even, _mm512_clmulepi64_epi128::<0x00>(h[i], x[i]));
            *odd = _mm512_xor_si512(*odd, _mm512_clmulepi64_epi128::<0x11>(h[i], x[i]));
        }
    }
}

/// The first 16 N lanes.
///
/// # Safety
/// AVX-512 F, BW, VBMI and VPCLMULQDQ; as `Kernels::chain`'s field, with at most 16 N lanes.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,vpclmulqdq")]
#[inline]
unsafe fn steps_in<const N: usize, const MULTIPLY: bool>(
    keys: &[Block; LANE_KEYS_BLOCKS],
    c: &Constants,
    chain: &Chain<'_>,
    scratch: &mut Scratch,
) {
    let Chain { step, places, lanes: n, ref steps, .. } = *chain;
    let Scratch { states, sums, tile, .. } = scratch;
    let mut s: Words<N> = [[_mm512_setzero_si512(); N]; 2];
    for q in 0..N {
        [s[0][q], s[1][q]] = apart(c, load(states, q));
    }
    let one = _mm512_set1_epi32(1);
    let mut products = if MULTIPLY { Sums::<N>::load(sums) } else { Sums([[[one; 2]; 2]; N]) };
    if MULTIPLY {
        // Lanes behind the last one add nothing to their sums.
        tile.iter_mut().for_each(|p| p[n..PAIR * N].fill([0; 8]));
    }
    for first in steps.clone().step_by(ROWS) {
        let rows = ROWS.min(steps.end - first);
        // SAFETY: first + rows <= steps.end blocks of n lanes are readable.
        unsafe { rows::gather(tile, places, n, first, rows) };
        for p in &mut tile[..rows] {
            // The rounds' input: s, s xor p, or p.
            let mut words = s;
            match step {
                Step::Mac | Step::Cbc => {
                    for q in 0..N {
                        [words[0][q], words[1][q]] = xor([s[0][q], s[1][q]], apart(c, load(p, q)));
                    }
                }
                Step::Ecb => {
                    for q in 0..N {
                        [words[0][q], words[1][q]] = apart(c, load(p, q));
                    }
                }
                Step::Cfb | Step::Counter(_) | Step::Multiply(_) => {}
            }
            let words = encrypt(keys, c, &words);
            match step {
                Step::Mac => s = words,
                Step::Cbc => {
                    s = words;
                    for q in 0..N {
                        store(p, q, blocks(c, [s[0][q], s[1][q]]));
                    }
                }
                Step::Ecb => {
                    for q in 0..N {
                        store(p, q, blocks(c, [words[0][q], words[1][q]]));
                    }
                }
                Step::Cfb => {
                    for q in 0..N {
                        [s[0][q], s[1][q]] = xor([words[0][q], words[1][q]], apart(c, load(p, q)));
                        store(p, q, blocks(c, [s[0][q], s[1][q]]));
                    }
                }
                Step::Counter(_) => {
                    for q in 0..N {
                        let gamma = blocks(c, [words[0][q], words[1][q]]);
                        store(p, q, xor(gamma, load(p, q)));
                    }
                }
                Step::Multiply(_) if !MULTIPLY => {}
                Step::Multiply(_) => {
                    for q in 0..N {
                        let x = load(p, q).map(|x| _mm512_shuffle_epi8(x, c.swap));
                        products.add(q, numbers([words[0][q], words[1][q]]), x);
                    }
                }
            }
            if let Step::Counter(half) | Step::Multiply(half) = step {
                let word = &mut s[usize::from(half == Half::High)];
                *word = word.map(|w| _mm512_add_epi32(w, one));
            }
        }
        if step.writes() {
            // SAFETY: first + rows <= steps.end blocks of n lanes are writable.
            unsafe { rows::scatter(tile, places, n, first, rows) };
        }
    }
    for q in 0..N {
        store(states, q, blocks(c, [s[0][q], s[1][q]]));
    }
    if MULTIPLY {
        products.store(sums);
    }
}

/// # Safety
/// AVX-512 F, BW, VBMI and VPCLMULQDQ; see `Kernels::chain`'s field.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,vpclmulqdq")]
pub(super) unsafe fn chain(chain: &Chain<'_>, scratch: &mut Scratch) {
    let Chain { keys, sbox, order, step, lanes: n, .. } = *chain;
    let tables = &TABLES[sbox as usize];
    // SAFETY: 64 and 16 bytes are readable.
    let c = unsafe {
        Constants {
            low: _mm512_load_si512(tables.low.as_ptr().cast()),
            high: _mm512_load_si512(tables.high.as_ptr().cast()),
            nibbles: _mm512_set1_epi8(0x0f),
            places: _mm512_set1_epi32(0x3020_1000),
            swap: _mm512_broadcast_i32x4(_mm_loadu_si128(swap(order).as_ptr().cast())),
        }
    };
    let keys = keys[..LANE_KEYS_BLOCKS].try_into().expect("as long");
    // SAFETY: the caller's promises are the callee's.
    unsafe {
        match (n.div_ceil(PAIR), step) {
            (0..=2, Step::Multiply(_)) => steps_in::<2, true>(keys, &c, chain, scratch),
            (0..=2, _) => steps_in::<2, false>(keys, &c, chain, scratch),
            (3..=4, Step::Multiply(_)) => steps_in::<4, true>(keys, &c, chain, scratch),
            (3..=4, _) => steps_in::<4, false>(keys, &c, chain, scratch),
            (5..=6, Step::Multiply(_)) => steps_in::<6, true>(keys, &c, chain, scratch),
            (5..=6, _) => steps_in::<6, false>(keys, &c, chain, scratch),
            (_, Step::Multiply(_)) => steps_in::<8, true>(keys, &c, chain, scratch),
            _ => steps_in::<8, false>(keys, &c, chain, scratch),
        }
    }
}
