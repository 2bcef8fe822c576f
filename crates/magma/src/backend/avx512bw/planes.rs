//! Byte j of 64 blocks in one register: eight registers hold both words of 64 blocks.
//!
//! **The round.** The key is added byte by byte, the carries in mask registers: out of byte 0 where the sum is below
//! the key, out of the others as the top bit of the majority of a, k and not the sum. Byte shuffles then look each byte
//! up in two tables. The rotation by 11 is a renaming of bytes and three bits. The low nibble's result, shifted by
//! three in its table, stays within the byte. The high nibble's table holds it rotated, its lowest bit in bit 7 and the
//! others in bits 0 to 2; `vpternlog` takes bit 7 from this byte and the rest from the byte below.
//!
//! **Floor.** For 64 blocks a round takes 12 operations for the addition, 20 for the look-ups and 8 for the sums: 40,
//! of which 12 are shuffles and shifts. Zen 4, four in two cycles: 20 cycles, 1.25 cycles a byte; Zen 5 half of it.
//! CPUs with two 512-bit pipes, one of them for shuffles: 20 cycles, 1.25 as well. Transposing 512 bytes in and out
//! takes 32 interleavings and shuffles each way: 0.1 on Zen 4.
//!
//! **Measured** on Zen 4: 1.9 cycles a byte. `vpcmpub` and `vpmovb2m` run one a cycle, and the masked subtraction begins
//! three to five cycles later, three times in a row. Three or four groups, whose state does not fit the registers, gave
//! 1.8 to 2.0.
//!
//! Two groups of 64 are in flight: 16 registers of state, eight tables, three constants.
//!
//! Leak class: constant time except for lengths, S-box set and byte order. The output is the only secret stored.

use core::arch::x86_64::*;

use lanework_cpu::memory::Block;

use crate::backend::avx512::words::{bw128, bw256};
use crate::backend::{LANES, LaneBlocks};
use crate::sbox::{ROWS, Rows, Sbox};
use crate::schedule::{ByteOrder, Counter, Schedule};

type Z = __m512i;

/// Blocks in a group.
pub(super) const GROUP: usize = 64;

/// Registers of a group's blocks.
const REGISTERS: usize = 8;

/// Up to this many blocks, eight at a time are faster than a group.
const FEW: usize = 24;

/// The tables of a set: for byte j the low nibble's, then the high nibble's.
#[repr(C, align(64))]
struct Tables([[[u8; 16]; 2]; 4]);

static TABLES: [Tables; ROWS.len()] = {
    const fn tables(rows: &Rows) -> Tables {
        let mut t = [[[0; 16]; 2]; 4];
        let mut i = 0;
        while i < 64 {
            let (j, x) = (i / 16, i % 16);
            t[j][0][x] = rows[2 * j][x] << 3;
            t[j][1][x] = rows[2 * j + 1][x].rotate_right(1);
            i += 1;
        }
        Tables(t)
    }
    let mut all = [const { tables(&ROWS[0]) }; ROWS.len()];
    let mut i = 1;
    while i < ROWS.len() {
        all[i] = tables(&ROWS[i]);
        i += 1;
    }
    all
};

/// Two blocks' bytes side by side, the numbers' lowest byte first; and back.
const fn shuffles(order: ByteOrder) -> [[u8; 16]; 2] {
    let (mut to, mut from) = ([0; 16], [0; 16]);
    let mut i = 0;
    while i < 16 {
        let (byte, block) = (i / 2, i % 2);
        let at = 8 * block
            + match order {
                ByteOrder::Big => 7 - byte,
                ByteOrder::Little => byte,
            };
        to[i] = at as u8;
        from[at] = i as u8;
        i += 1;
    }
    [to, from]
}

static SHUFFLES: [[[u8; 16]; 2]; 2] = [shuffles(ByteOrder::Big), shuffles(ByteOrder::Little)];

/// The byte, of a register of a group, that a block's bytes lie in.
const fn place(block: usize) -> usize {
    16 * (block % 8 / 2) + 2 * (block / 8) + block % 2
}

/// The constants of all rounds.
struct Constants {
    low: [Z; 4],
    high: [Z; 4],
    to: Z,
    from: Z,
    ones: Z,
}

impl Constants {
    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    fn new(sbox: Sbox, order: ByteOrder) -> Constants {
        // SAFETY: 16 bytes are readable.
        let load = |x: &[u8; 16]| unsafe { _mm512_broadcast_i32x4(_mm_loadu_si128(x.as_ptr().cast())) };
        let tables = &TABLES[sbox as usize].0;
        let [to, from] = &SHUFFLES[order as usize];
        let mut ones = _mm512_set1_epi8(-1);
        // SAFETY: the assembly is empty. The compiler would turn a masked subtraction of constants into a vector of the
        // mask and a subtraction.
        unsafe {
            core::arch::asm!("/* {0} */", inout(zmm_reg) ones, options(pure, nomem, nostack, preserves_flags));
        }
        Constants {
            low: core::array::from_fn(|j| load(&tables[j][0])),
            high: core::array::from_fn(|j| load(&tables[j][1])),
            to: load(to),
            from: load(from),
            ones,
        }
    }
}

/// One round of a group: adds the round function of `a` and the key's bytes to `b`.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn round(c: &Constants, b: &mut [Z; 4], a: &[Z; 4], k: [Z; 4]) {
    let nibbles = _mm512_set1_epi8(0x0f);
    let mut x = [_mm512_setzero_si512(); 4];
    x[0] = _mm512_add_epi8(a[0], k[0]);
    let mut carry = _mm512_cmplt_epu8_mask(x[0], k[0]);
    for j in 1..4 {
        let sum = _mm512_add_epi8(a[j], k[j]);
        x[j] = _mm512_mask_sub_epi8(sum, carry, sum, c.ones);
        if j < 3 {
            // (a and k) or ((a or k) and not x)
            carry = _mm512_movepi8_mask(_mm512_ternarylogic_epi32::<0xd4>(a[j], k[j], x[j]));
        }
    }
    let (mut low, mut high) = (x, x);
    for j in 0..4 {
        low[j] = _mm512_shuffle_epi8(c.low[j], _mm512_and_si512(x[j], nibbles));
        high[j] = _mm512_shuffle_epi8(c.high[j], _mm512_and_si512(_mm512_srli_epi16::<4>(x[j]), nibbles));
    }
    let top = _mm512_set1_epi8(i8::MIN);
    for j in 0..4 {
        let (below, far) = ((j + 3) % 4, (j + 2) % 4);
        // top ? high[below] : high[far]
        let nibble = _mm512_ternarylogic_epi32::<0xca>(top, high[below], high[far]);
        b[j] = _mm512_ternarylogic_epi32::<0x96>(b[j], low[below], nibble);
    }
}

/// Transposes the 8x8 matrices of byte pairs that the 128-bit lanes of eight registers are.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn transpose(z: [Z; 8]) -> [Z; 8] {
    let mut t = z;
    for i in 0..4 {
        t[2 * i] = _mm512_unpacklo_epi16(z[2 * i], z[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_epi16(z[2 * i], z[2 * i + 1]);
    }
    let mut u = t;
    for half in 0..2 {
        for i in 0..2 {
            let (x, y) = (t[4 * half + i], t[4 * half + 2 + i]);
            u[4 * half + 2 * i] = _mm512_unpacklo_epi32(x, y);
            u[4 * half + 2 * i + 1] = _mm512_unpackhi_epi32(x, y);
        }
    }
    let mut v = u;
    for i in 0..4 {
        v[2 * i] = _mm512_unpacklo_epi64(u[i], u[4 + i]);
        v[2 * i + 1] = _mm512_unpackhi_epi64(u[i], u[4 + i]);
    }
    v
}

/// All rounds on N groups: `get` gives register i of a group's blocks, already in [`Constants::to`]'s order; `put` takes
/// it.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn groups<const N: usize>(
    c: &Constants,
    key: impl Fn(usize, usize) -> [Z; 4],
    mut get: impl FnMut(usize, usize) -> Z,
    mut put: impl FnMut(usize, usize, Z),
) {
    let (mut a, mut b) = ([[_mm512_setzero_si512(); 4]; N], [[_mm512_setzero_si512(); 4]; N]);
    for g in 0..N {
        let mut z = [_mm512_setzero_si512(); REGISTERS];
        for i in 0..REGISTERS {
            z[i] = get(g, i);
        }
        let z = transpose(z);
        (a[g], b[g]) = ([z[0], z[1], z[2], z[3]], [z[4], z[5], z[6], z[7]]);
    }
    for r in 0..16 {
        for g in 0..N {
            round(c, &mut b[g], &a[g], key(2 * r, g));
        }
        for g in 0..N {
            round(c, &mut a[g], &b[g], key(2 * r + 1, g));
        }
    }
    for g in 0..N {
        // The last round does not exchange the words.
        let (a, b) = (a[g], b[g]);
        let z = transpose([b[0], b[1], b[2], b[3], a[0], a[1], a[2], a[3]]);
        for i in 0..REGISTERS {
            put(g, i, _mm512_shuffle_epi8(z[i], c.from));
        }
    }
}

/// The bytes of a round's key, each in all lanes.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn spread(rounds: &[u32; 32], r: usize) -> [Z; 4] {
    let bytes = rounds[r..][..1].as_ptr().cast::<i8>();
    // SAFETY: a word is four bytes. Each byte is read separately, since a broadcast from memory costs less than one from
    // a general register.
    core::array::from_fn(|j| unsafe { _mm512_set1_epi8(bytes.add(j).read()) })
}

/// A mask of the qwords below `n`.
fn qwords(n: usize) -> __mmask8 {
    if n < 8 { (1 << n) - 1 } else { u8::MAX }
}

/// A mask of the bytes below `n`.
fn bytes(n: usize) -> __mmask64 {
    if n < 64 { (1 << n) - 1 } else { u64::MAX }
}

/// # Safety
/// AVX-512 F, BW; as `Kernels::blocks`, `n` <= 64 N, and = 64 N unless `CUT`.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
unsafe fn blocks_in<const N: usize, const CUT: bool>(
    s: &Schedule,
    c: &Constants,
    input: *const u8,
    output: *mut u8,
    n: usize,
) {
    groups::<N>(
        c,
        |r, _| spread(&s.rounds, r),
        |g, i| {
            let at = input.wrapping_add(64 * (REGISTERS * g + i));
            // SAFETY: the whole register, or its qwords below block n, are readable.
            let x = unsafe {
                if CUT {
                    let mask = qwords(n.saturating_sub(8 * (REGISTERS * g + i)));
                    _mm512_maskz_loadu_epi64(mask, at.cast())
                } else {
                    _mm512_loadu_si512(at.cast())
                }
            };
            _mm512_shuffle_epi8(x, c.to)
        },
        |g, i, x| {
            let at = output.wrapping_add(64 * (REGISTERS * g + i));
            // SAFETY: as above, writable.
            unsafe {
                if CUT {
                    let mask = qwords(n.saturating_sub(8 * (REGISTERS * g + i)));
                    _mm512_mask_storeu_epi64(at.cast(), mask, x);
                } else {
                    _mm512_storeu_si512(at.cast(), x);
                }
            }
        },
    );
}

/// # Safety
/// AVX-512 F, BW, VL; see `Kernels::blocks`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) unsafe fn blocks(s: &Schedule, mut input: *const u8, mut output: *mut u8, mut n: usize) {
    // SAFETY: each step takes as many blocks as are left at least, or is cut to what is left.
    unsafe {
        if n > FEW {
            let c = Constants::new(s.sbox, s.order);
            while n >= 2 * GROUP {
                blocks_in::<2, false>(s, &c, input, output, 2 * GROUP);
                (input, output, n) = (input.add(16 * GROUP), output.add(16 * GROUP), n - 2 * GROUP);
            }
            if n > FEW {
                return match n.div_ceil(GROUP) {
                    1 => blocks_in::<1, true>(s, &c, input, output, n),
                    _ => blocks_in::<2, true>(s, &c, input, output, n),
                };
            }
        }
        while n > 0 {
            let some = n.min(bw256::BLOCKS);
            if some <= bw128::BLOCKS {
                bw128::blocks(s, input, output, some);
            } else {
                bw256::blocks(s, input, output, some);
            }
            (input, output, n) = (input.add(8 * some), output.add(8 * some), n - some);
        }
    }
}

/// The 8 counters from `counter` on as numbers, and the increment to the 8 after them.
#[target_feature(enable = "avx512f")]
#[inline]
fn counters(counter: Counter) -> (Z, Z) {
    let at = |i: u32| counter.at(i) as i64;
    let first = _mm512_setr_epi64(at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7));
    let more = Counter { high: 0, low: 0, ..counter }.at(8);
    (first, _mm512_set1_epi64(more as i64))
}

/// # Safety
/// AVX-512 F, BW; as `Kernels::counter`, `n` <= 512 N bytes, and = 512 N unless `CUT`; `input` is not read unless
/// `XOR`.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
unsafe fn stream_in<const N: usize, const CUT: bool, const XOR: bool>(
    s: &Schedule,
    c: &Constants,
    counter: Counter,
    input: *const u8,
    output: *mut u8,
    n: usize,
) {
    let (mut number, more) = counters(counter);
    // SAFETY: 16 bytes are readable.
    let little = unsafe {
        _mm512_broadcast_i32x4(_mm_loadu_si128(SHUFFLES[ByteOrder::Little as usize][0].as_ptr().cast()))
    };
    groups::<N>(
        c,
        |r, _| spread(&s.rounds, r),
        |_, _| {
            let x = _mm512_shuffle_epi8(number, little);
            number = _mm512_add_epi32(number, more);
            x
        },
        |g, i, x| {
            let from = input.wrapping_add(64 * (REGISTERS * g + i));
            let to = output.wrapping_add(64 * (REGISTERS * g + i));
            let mask = bytes(n.saturating_sub(64 * (REGISTERS * g + i)));
            // SAFETY: the whole register, or its bytes below n, are readable and writable.
            unsafe {
                match (CUT, XOR) {
                    (true, true) => {
                        let x = _mm512_xor_si512(x, _mm512_maskz_loadu_epi8(mask, from.cast()));
                        _mm512_mask_storeu_epi8(to.cast(), mask, x);
                    }
                    (true, false) => _mm512_mask_storeu_epi8(to.cast(), mask, x),
                    (false, true) => {
                        let x = _mm512_xor_si512(x, _mm512_loadu_si512(from.cast()));
                        _mm512_storeu_si512(to.cast(), x);
                    }
                    (false, false) => _mm512_storeu_si512(to.cast(), x),
                }
            }
        },
    );
}

/// # Safety
/// AVX-512 F, BW, VL; as `Kernels::counter`, or `Kernels::keystream` without `XOR`; `n` in bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
unsafe fn stream<const XOR: bool>(
    s: &Schedule,
    mut counter: Counter,
    mut input: *const u8,
    mut output: *mut u8,
    mut n: usize,
) {
    const WIDE: usize = 16 * GROUP;
    // SAFETY: each step takes as many bytes as are left at least, or is cut to what is left.
    unsafe {
        if n > 8 * FEW {
            let c = Constants::new(s.sbox, s.order);
            while n >= WIDE {
                stream_in::<2, false, XOR>(s, &c, counter, input, output, WIDE);
                counter = counter.from(2 * GROUP as u32);
                (input, output, n) = (input.wrapping_add(WIDE), output.add(WIDE), n - WIDE);
            }
            if n > 8 * FEW {
                return match n.div_ceil(8 * GROUP) {
                    1 => stream_in::<1, true, XOR>(s, &c, counter, input, output, n),
                    _ => stream_in::<2, true, XOR>(s, &c, counter, input, output, n),
                };
            }
        }
        while n > 0 {
            let some = n.min(8 * bw256::BLOCKS);
            if some <= 8 * bw128::BLOCKS {
                bw128::stream::<XOR>(s, counter, input, output, some);
            } else {
                bw256::stream::<XOR>(s, counter, input, output, some);
            }
            counter = counter.from(bw256::BLOCKS as u32);
            (input, output, n) = (input.wrapping_add(some), output.add(some), n - some);
        }
    }
}

/// # Safety
/// AVX-512 F, BW, VL; see `Kernels::counter`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) unsafe fn counter(s: &Schedule, counter: Counter, input: *const u8, output: *mut u8, n: usize) {
    // SAFETY: the caller's promise.
    unsafe { stream::<true>(s, counter, input, output, n) }
}

/// # Safety
/// AVX-512 F, BW, VL; see `Kernels::keystream`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) unsafe fn keystream(s: &Schedule, counter: Counter, output: *mut u8, n: usize) {
    // SAFETY: the caller's promise; without `XOR` the input is not read.
    unsafe { stream::<false>(s, counter, output, output, 8 * n) }
}

/// Groups of lanes.
const LANE_GROUPS: usize = LANES / GROUP;

/// Blocks of the lanes' keys: word by word, group by group, four bytes.
pub(super) const LANE_KEYS_BLOCKS: usize = 8 * LANE_GROUPS * 4;

/// # Safety
/// None beyond `Kernels::set_lane`: it checks its indices.
pub(super) unsafe fn set_lane(keys: &mut [Block], lane: usize, words: &[u32; 8]) {
    let (group, at) = (lane / GROUP, place(lane % GROUP));
    for (i, word) in words.iter().enumerate() {
        for (j, byte) in word.to_le_bytes().into_iter().enumerate() {
            keys[4 * (i * LANE_GROUPS + group) + j].0[at] = byte;
        }
    }
}

/// The rounds of the first 64 N lanes.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn lanes_in<const N: usize>(keys: &[Block], c: &Constants, data: &mut LaneBlocks) {
    let keys: &[Block; LANE_KEYS_BLOCKS] = keys[..LANE_KEYS_BLOCKS].try_into().expect("as long");
    let registers = data.as_mut_ptr().cast::<Z>();
    groups::<N>(
        c,
        |r, g| {
            let word = if r < 24 { r % 8 } else { 7 - r % 8 };
            core::array::from_fn(|j| {
                // SAFETY: the keys were taken as long as the largest index; each block is aligned.
                unsafe { _mm512_load_si512(keys.as_ptr().add(4 * (word * LANE_GROUPS + g) + j).cast()) }
            })
        },
        |g, i| {
            // SAFETY: g < N <= 2, and the blocks are 16 registers.
            let x = unsafe { _mm512_loadu_si512(registers.add(REGISTERS * g + i)) };
            _mm512_shuffle_epi8(x, c.to)
        },
        // SAFETY: as above.
        |g, i, x| unsafe { _mm512_storeu_si512(registers.add(REGISTERS * g + i), x) },
    );
}

/// # Safety
/// AVX-512 F, BW, VL; see `Kernels::lanes`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) unsafe fn lanes(keys: &[Block], sbox: Sbox, order: ByteOrder, data: &mut LaneBlocks, n: usize) {
    let c = Constants::new(sbox, order);
    match n.div_ceil(GROUP) {
        0 => {}
        1 => lanes_in::<1>(keys, &c, data),
        _ => lanes_in::<2>(keys, &c, data),
    }
}
