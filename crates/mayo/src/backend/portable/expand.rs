//! AES-128 counter mode and SHAKE256 in plain Rust: constant time on any CPU, no table, no intrinsic.
//!
//! # AES: 256 blocks, fully bitsliced
//!
//! Bit `b` of byte `j` of 256 consecutive blocks is one *plane*, `[u64; 4]`; plane number `8 j + b`. ShiftRows is then
//! a choice of index, MixColumns and AddRoundKey are plain XORs, and SubBytes is the 113-gate circuit of Boyar,
//! Matthews and Peralta ("Logic minimization techniques with applications to cryptology", J. Cryptology 26, 2013),
//! whose four output inversions live in the round keys. Loops run over the words of a plane, so that a compiler makes
//! vector code of them (SSE2 on the x86-64 baseline, NEON on AArch64).
//!
//! Blocks of one batch differ in byte 15 only (a batch starts at a multiple of 256), so round 1 varies in one S-box and
//! round 2 in four; the rest of both rounds is done once per batch on a single block of 16-bit planes. That leaves 133
//! S-boxes of 160 (counter caching, as in Hajihassani et al., IEEE TPDS 2019).
//!
//! **Cost model** per batch of 4096 bytes, in 128-bit operations: 133 S-boxes x (113 gates + 8 for the key) x 2 vectors
//! = 32.2 k; MixColumns 7 rounds x 432 x 2 = 6.0 k; transposition 2 x 1 152 x 2 = 4.6 k. Together 43 k, 10.5 per byte;
//! Zen 4 and Zen 5 issue four a cycle: **floor 2.6 core cycles per byte**. SSE2's two-operand form and 16 registers add
//! about as many copies and spills as the S-box has gates, which makes it 21 instructions per byte, six a cycle: 3.5.
//!
//! **Measured** on Zen 4 (1.41 core cycles a tick), median, ticks per byte: 3.9 on 144 495 bytes, 4.1 on 16 384: 5.5
//! core cycles, 2.1 times the floor. A call costs at least one batch.
//!
//! # SHAKE256
//!
//! Keccak-f\[1600\] on 25 local words, rounds in pairs. **Cost model** per round: theta 55, rho 24, chi 50 and 5
//! inversions (six words are held complemented), iota 1: 135 operations; at four a cycle 810 core cycles a permutation.
//! **Measured** there: 742 ticks, 1 046 core cycles, 1.3 times the floor, the rest being copies and spills.
//!
//! Both from 300 calls between fenced `rdtsc` reads.
//!
//! Source: FIPS 197, SP 800-38A section 6.5, FIPS 202. Leak class: constant time in everything but lengths, for both.
//! The AES inputs here are public (`seed_pk`) and are not wiped; the sponge's inputs are secret, and its state and the
//! stack below the permutation are wiped before returning. General registers are not wiped.
#![forbid(unsafe_code)]

use crate::backend::sponge::{ROUND_CONSTANTS, SPILLS, absorb_blocks, keccak_round, sponge, wipe_stack};
use core::ops::{BitAnd, BitXor};

/// Words in a plane of a full batch.
const WORDS: usize = 4;
/// Blocks in a full batch: one per bit of a plane, and exactly the span of the counter's last byte.
const BATCH_BLOCKS: usize = 64 * WORDS;

/// One byte of every block of a batch.
type BytePlanes = [[u64; WORDS]; 8];
/// A batch of blocks.
type Planes = [BytePlanes; 16];

/// The AES S-box without its affine constant 0x63, on bit planes; `x[b]` and the result's `[b]` hold bit `b`.
///
/// The gates are those of Boyar, Matthews and Peralta, 2013, with the four inversions left to the caller.
#[inline(always)]
fn sub_planes<T: Copy + BitXor<Output = T> + BitAnd<Output = T>>(x: [T; 8]) -> [T; 8] {
    let [u7, u6, u5, u4, u3, u2, u1, u0] = x;
    // Top linear layer.
    let y14 = u3 ^ u5;
    let y13 = u0 ^ u6;
    let y9 = u0 ^ u3;
    let y8 = u0 ^ u5;
    let t0 = u1 ^ u2;
    let y1 = t0 ^ u7;
    let y4 = y1 ^ u3;
    let y12 = y13 ^ y14;
    let y2 = y1 ^ u0;
    let y5 = y1 ^ u6;
    let y3 = y5 ^ y8;
    let t1 = u4 ^ y12;
    let y15 = t1 ^ u5;
    let y20 = t1 ^ u1;
    let y6 = y15 ^ u7;
    let y10 = y15 ^ t0;
    let y11 = y20 ^ y9;
    let y7 = u7 ^ y11;
    let y17 = y10 ^ y11;
    let y19 = y10 ^ y8;
    let y16 = t0 ^ y11;
    let y21 = y13 ^ y16;
    let y18 = u0 ^ y16;
    // Products into GF(2^4).
    let t2 = y12 & y15;
    let t4 = (y3 & y6) ^ t2;
    let t6 = (y4 & u7) ^ t2;
    let t7 = y13 & y16;
    let t9 = (y5 & y1) ^ t7;
    let t11 = (y2 & y7) ^ t7;
    let t12 = y9 & y11;
    let t14 = (y14 & y17) ^ t12;
    let t16 = (y8 & y10) ^ t12;
    let t21 = t4 ^ t14 ^ y20;
    let t22 = t6 ^ t16 ^ y19;
    let t23 = t9 ^ t14 ^ y21;
    let t24 = t11 ^ t16 ^ y18;
    // Inversion in GF(2^4).
    let t25 = t21 ^ t22;
    let t26 = t21 & t23;
    let t27 = t24 ^ t26;
    let t29 = (t25 & t27) ^ t22;
    let t30 = t23 ^ t24;
    let t31 = t22 ^ t26;
    let t33 = (t31 & t30) ^ t24;
    let t34 = t23 ^ t33;
    let t35 = t27 ^ t33;
    let t36 = t24 & t35;
    let t37 = t36 ^ t34;
    let t38 = t27 ^ t36;
    let t40 = t25 ^ (t29 & t38);
    // Products back into GF(2^8).
    let t41 = t40 ^ t37;
    let t42 = t29 ^ t33;
    let t43 = t29 ^ t40;
    let t44 = t33 ^ t37;
    let t45 = t42 ^ t41;
    let z0 = t44 & y15;
    let z1 = t37 & y6;
    let z2 = t33 & u7;
    let z3 = t43 & y16;
    let z4 = t40 & y1;
    let z5 = t29 & y7;
    let z6 = t42 & y11;
    let z7 = t45 & y17;
    let z8 = t41 & y10;
    let z9 = t44 & y12;
    let z10 = t37 & y3;
    let z11 = t33 & y4;
    let z12 = t43 & y13;
    let z13 = t40 & y5;
    let z14 = t29 & y2;
    let z15 = t42 & y9;
    let z16 = t45 & y14;
    let z17 = t41 & y8;
    // Bottom linear layer.
    let t46 = z15 ^ z16;
    let t48 = z5 ^ z13;
    let t53 = z0 ^ z3;
    let t57 = z2 ^ z12 ^ t53;
    let t58 = z4 ^ t46;
    let t59 = z3 ^ z6 ^ z7;
    let t62 = z7 ^ z8 ^ t58;
    let t63 = z9 ^ z10 ^ t58;
    let t64 = z4 ^ t59;
    let t65 = z14 ^ t57 ^ t62;
    let t66 = z1 ^ t63;
    let s3 = t53 ^ t66;
    let s0 = t59 ^ t63;
    let s1 = t64 ^ s3;
    let s2 = z16 ^ z17 ^ t64 ^ t65;
    let s4 = z2 ^ z5 ^ t66;
    let s5 = z10 ^ z11 ^ t65;
    let s6 = z12 ^ t48 ^ t62;
    let s7 = t48 ^ t46 ^ t57;
    [s7, s6, s5, s4, s3, s2, s1, s0]
}

/// SubBytes (again without 0x63) on sixteen bytes at once, sliced into 16-bit planes.
fn sub_block(block: &[u8; 16]) -> [u8; 16] {
    let planes = core::array::from_fn(|bit| {
        block.iter().rev().fold(0u16, |plane, byte| plane << 1 | u16::from(byte >> bit & 1))
    });
    let planes = sub_planes(planes);
    core::array::from_fn(|j| (0..8).fold(0, |byte, bit| byte | ((planes[bit] >> j & 1) as u8) << bit))
}

/// Multiplies a byte by x in the AES field, without a branch.
fn xtime(a: u8) -> u8 {
    (a << 1) ^ (0x1b & (a >> 7).wrapping_neg())
}

/// ShiftRows and MixColumns of one block.
fn shift_and_mix(state: &[u8; 16]) -> [u8; 16] {
    core::array::from_fn(|i| {
        let (row, column) = (i % 4, i / 4);
        let a = |n: usize| state[source_byte((row + n) % 4, column)];
        xtime(a(0) ^ a(1)) ^ a(1) ^ a(2) ^ a(3)
    })
}

/// The source of the byte at `row`, `column` under ShiftRows.
#[inline(always)]
const fn source_byte(row: usize, column: usize) -> usize {
    4 * ((column + row) % 4) + row
}

fn xor_block(a: &[u8; 16], b: &[u8; 16]) -> [u8; 16] {
    core::array::from_fn(|i| a[i] ^ b[i])
}

/// The round keys of AES-128 (FIPS 197, section 5.2), with 0x63 added to every byte from round 1 on to make up for
/// [`sub_planes`]; the constant passes MixColumns unchanged because its coefficients add up to one.
fn round_keys(key: &[u8; 16]) -> [[u8; 16]; 11] {
    let mut keys = [*key; 11];
    let mut constant = 1;
    for round in 1..11 {
        let previous = keys[round - 1];
        let substituted = sub_block(&previous);
        let mut next = previous;
        for i in 0..4 {
            next[i] ^= substituted[12 + (i + 1) % 4] ^ 0x63;
        }
        next[0] ^= constant;
        constant = xtime(constant);
        for i in 4..16 {
            next[i] ^= next[i - 4];
        }
        keys[round] = next;
    }
    for key in &mut keys[1..] {
        *key = key.map(|byte| byte ^ 0x63);
    }
    keys
}

/// All ones where bit `bit` of `byte` is set.
#[inline(always)]
fn mask(byte: u8, bit: usize) -> u64 {
    u64::from(byte >> bit & 1).wrapping_neg()
}

/// The values that depend only on the key and the nonce.
struct Stream {
    /// Round key 1.
    first_key: [u8; 16],
    /// Round keys 2 to 10 as plane masks.
    masks: [[[u64; 8]; 16]; 9],
    /// Nonce plus round key 0.
    whitening: [u8; 16],
    /// The varying byte after round 1's SubBytes.
    last_byte: BytePlanes,
}

impl Stream {
    fn new(key: &[u8; 16], nonce: &[u8; 16]) -> Self {
        let keys = round_keys(key);
        let masks = core::array::from_fn(|n| {
            core::array::from_fn(|i| core::array::from_fn(|bit| mask(keys[n + 2][i], bit)))
        });
        let whitening = xor_block(&keys[0], nonce);
        let counting = counting_planes();
        let mut last_byte = [[0; WORDS]; 8];
        for w in 0..WORDS {
            let planes = sub_planes(core::array::from_fn(|bit| counting[bit][w] ^ mask(whitening[15], bit)));
            for bit in 0..8 {
                last_byte[bit][w] = planes[bit];
            }
        }
        Self { first_key: keys[1], masks, whitening, last_byte }
    }

    /// Blocks `256 batch` to `256 batch + 255` of the stream.
    fn batch(&self, batch: u64, out: &mut [u8; 16 * BATCH_BLOCKS]) {
        // Rounds 1 and 2 of the bytes that are equal in all blocks: varying bytes are left at zero after SubBytes, and
        // their share, which is linear up to the next SubBytes, is added plane by plane.
        let mut block = xor_block(&self.whitening, &(u128::from(batch) << 8).to_be_bytes());
        block = sub_block(&block);
        block[15] = 0;
        let block = xor_block(&shift_and_mix(&block), &self.first_key);
        let mut fixed = sub_block(&block);
        fixed[..4].fill(0);
        let fixed = shift_and_mix(&fixed);

        // Byte 15 moves to row 3 of column 0, whose byte r then moves to column -r.
        let first_column = spread(3, &self.last_byte, &block[..4]);
        let mut state = [[[0; WORDS]; 8]; 16];
        for row in 0..4 {
            let mut planes = [[0; WORDS]; 8];
            sub_byte(&first_column[row], &[0; 8], &mut planes);
            let at = 4 * ((4 - row) % 4);
            state[at..at + 4].copy_from_slice(&spread(row, &planes, &fixed[at..at + 4]));
        }
        let mut other = [[[0; WORDS]; 8]; 16];
        let [k2, k3, k4, k5, k6, k7, k8, last_two @ ..] = &self.masks;
        for [odd, even] in [[k2, k3], [k4, k5], [k6, k7]] {
            round(&state, odd, &mut other);
            round(&other, even, &mut state);
        }
        round(&state, k8, &mut other);
        last_round(&other, last_two, &mut state);

        let (low, high) = state.as_flattened_mut().split_at_mut(64);
        transpose(low);
        transpose(high);
        for (w, blocks) in out.as_chunks_mut::<1024>().0.iter_mut().enumerate() {
            for (i, block) in blocks.as_chunks_mut::<16>().0.iter_mut().enumerate() {
                block[..8].copy_from_slice(&low[i][w].to_le_bytes());
                block[8..].copy_from_slice(&high[i][w].to_le_bytes());
            }
        }
    }
}

/// Planes of a byte that counts 0, 1, 2, ... along the 256 lanes.
fn counting_planes() -> BytePlanes {
    core::array::from_fn(|bit| {
        core::array::from_fn(|w| (0..64).fold(0, |plane, i| plane | (((64 * w + i) >> bit & 1) as u64) << i))
    })
}

/// A MixColumns column of which only the byte in row `row` varies; `fixed` is the mix of the other three.
fn spread(row: usize, planes: &BytePlanes, fixed: &[u8]) -> [BytePlanes; 4] {
    let mut out = [[[0; WORDS]; 8]; 4];
    for w in 0..WORDS {
        let a: [u64; 8] = core::array::from_fn(|bit| planes[bit][w]);
        let double = xtime_planes(&a);
        for bit in 0..8 {
            // Row r enters output row q with the coefficient 2, 3, 1, 1 for r - q = 0, 1, 2, 3.
            for (back, term) in [double[bit], double[bit] ^ a[bit], a[bit], a[bit]].into_iter().enumerate() {
                let q = (row + 4 - back) % 4;
                out[q][bit][w] = term ^ mask(fixed[q], bit);
            }
        }
    }
    out
}

#[inline(always)]
fn xtime_planes(a: &[u64; 8]) -> [u64; 8] {
    [a[7], a[0] ^ a[7], a[1], a[2] ^ a[7], a[3] ^ a[7], a[4], a[5], a[6]]
}

/// AddRoundKey and SubBytes of one byte. A loop of its own over the words, so that the compiler sees one body to
/// vectorise.
#[inline(never)]
fn sub_byte(planes: &BytePlanes, key: &[u64; 8], out: &mut BytePlanes) {
    for w in 0..WORDS {
        let s = sub_planes(core::array::from_fn(|bit| planes[bit][w] ^ key[bit]));
        for bit in 0..8 {
            out[bit][w] = s[bit];
        }
    }
}

/// MixColumns of one column.
#[inline(never)]
fn mix_column(a: &[BytePlanes; 4], out: &mut [BytePlanes; 4]) {
    for w in 0..WORDS {
        let byte = |row: usize| -> [u64; 8] { core::array::from_fn(|bit| a[row][bit][w]) };
        let bytes: [[u64; 8]; 4] = core::array::from_fn(byte);
        // sums[r] = a[r] + a[r + 1]; the result is x sums[r] + a[r + 1] + sums[r + 2].
        let sums: [[u64; 8]; 4] = core::array::from_fn(|row| {
            core::array::from_fn(|bit| bytes[row][bit] ^ bytes[(row + 1) % 4][bit])
        });
        for row in 0..4 {
            let double = xtime_planes(&sums[row]);
            for bit in 0..8 {
                out[row][bit][w] = double[bit] ^ bytes[(row + 1) % 4][bit] ^ sums[(row + 2) % 4][bit];
            }
        }
    }
}

/// AddRoundKey, SubBytes, ShiftRows, MixColumns.
fn round(state: &Planes, key: &[[u64; 8]; 16], out: &mut Planes) {
    for (column, out) in out.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let mut a = [[[0; WORDS]; 8]; 4];
        for (row, byte) in a.iter_mut().enumerate() {
            let from = source_byte(row, column);
            sub_byte(&state[from], &key[from], byte);
        }
        mix_column(&a, out);
    }
}

/// AddRoundKey, SubBytes, ShiftRows, AddRoundKey.
fn last_round(state: &Planes, keys: &[[[u64; 8]; 16]; 2], out: &mut Planes) {
    for (i, out) in out.iter_mut().enumerate() {
        let from = source_byte(i % 4, i / 4);
        sub_byte(&state[from], &keys[0][from], out);
        for (plane, mask) in out.iter_mut().zip(&keys[1][i]) {
            plane.iter_mut().for_each(|word| *word ^= mask);
        }
    }
}

/// Transposes `WORDS` 64 x 64 bit matrices: afterwards bit `p` of row `i` is the former bit `i` of row `p`.
fn transpose(rows: &mut [[u64; WORDS]]) {
    exchange::<32>(rows, 0x0000_0000_ffff_ffff);
    exchange::<16>(rows, 0x0000_ffff_0000_ffff);
    exchange::<8>(rows, 0x00ff_00ff_00ff_00ff);
    exchange::<4>(rows, 0x0f0f_0f0f_0f0f_0f0f);
    exchange::<2>(rows, 0x3333_3333_3333_3333);
    exchange::<1>(rows, 0x5555_5555_5555_5555);
}

/// Swaps the off-diagonal blocks, `SPAN` wide, of every `2 SPAN` block on the diagonal.
#[inline(always)]
fn exchange<const SPAN: usize>(rows: &mut [[u64; WORDS]], mask: u64) {
    for block in rows.chunks_exact_mut(2 * SPAN) {
        let (upper, lower) = block.split_at_mut(SPAN);
        for (a, b) in upper.iter_mut().zip(lower) {
            for w in 0..WORDS {
                let t = ((a[w] >> SPAN) ^ b[w]) & mask;
                b[w] ^= t;
                a[w] ^= t << SPAN;
            }
        }
    }
}

/// AES-128 counter mode with a zero nonce: block `i` of the stream is `AES(key, BE128(i))`, from `i = first_block`, cut
/// to `out.len()` bytes. Public data.
pub(crate) fn aes128_ctr(key: &[u8; 16], first_block: u32, out: &mut [u8]) {
    stream(key, &[0; 16], first_block, out);
}

/// AES-128 over `nonce xor (0^96 || BE32(i))`, from `i = 0`, cut to `out.len()` bytes (fewer than 2^36). Public data.
pub(crate) fn aes128_ctr_xor(key: &[u8; 16], nonce: &[u8; 16], out: &mut [u8]) {
    stream(key, nonce, 0, out);
}

fn stream(key: &[u8; 16], nonce: &[u8; 16], first_block: u32, mut out: &mut [u8]) {
    if out.is_empty() {
        return;
    }
    let stream = Stream::new(key, nonce);
    let mut buffer = [0; 16 * BATCH_BLOCKS];
    let mut batch = u64::from(first_block) / BATCH_BLOCKS as u64;
    let mut skip = 16 * (first_block as usize % BATCH_BLOCKS);
    while !out.is_empty() {
        let end = buffer.len().min(skip + out.len());
        stream.batch(batch, &mut buffer);
        let (now, later) = out.split_at_mut(end - skip);
        now.copy_from_slice(&buffer[skip..end]);
        (out, skip, batch) = (later, 0, batch + 1);
    }
}

/// Chi on row `y` where the words [`COMPLEMENTED`] are held inverted, before and after.
#[inline(always)]
fn complemented_chi(y: usize, b: [u64; 5]) -> [u64; 5] {
    let [b0, b1, b2, b3, b4] = b;
    match y {
        0 => [b0 ^ (b1 | b2), b1 ^ (!b2 | b3), b2 ^ (b3 & b4), b3 ^ (b4 | b0), b4 ^ (b0 & b1)],
        1 => [b0 ^ (b1 | b2), b1 ^ (b2 & b3), b2 ^ (b3 | !b4), b3 ^ (b4 | b0), b4 ^ (b0 & b1)],
        2 => [b0 ^ (b1 | b2), b1 ^ (b2 & b3), b2 ^ (!b3 & b4), !b3 ^ (b4 | b0), b4 ^ (b0 & b1)],
        3 => [b0 ^ (b1 & b2), b1 ^ (b2 | b3), b2 ^ (!b3 | b4), !b3 ^ (b4 & b0), b4 ^ (b0 | b1)],
        _ => [b0 ^ (!b1 & b2), !b1 ^ (b2 | b3), b2 ^ (b3 & b4), b3 ^ (b4 | b0), b4 ^ (b0 & b1)],
    }
}

/// Keccak-f\[1600\]. Six words are held complemented, which chi's ANDs and ORs then absorb except for five inversions a
/// round (the lane complementing of "Keccak implementation overview", Bertoni et al., 2012, section 2.2).
#[inline(never)]
fn keccak_f1600(state: &mut [u64; 25]) {
    let mut a = *state;
    for i in COMPLEMENTED {
        a[i] = !a[i];
    }
    for constants in ROUND_CONSTANTS.as_chunks::<2>().0 {
        keccak_round(&mut a, constants[0], complemented_chi);
        keccak_round(&mut a, constants[1], complemented_chi);
    }
    for i in COMPLEMENTED {
        a[i] = !a[i];
    }
    *state = a;
}

/// The words that [`keccak_f1600`] holds complemented.
const COMPLEMENTED: [usize; 6] = [1, 2, 8, 12, 17, 20];

/// SHAKE256 of the concatenation of `parts`, as many bytes as `out` holds. Constant time for given lengths; leaves no
/// copy of its state in memory.
pub(crate) fn shake256(parts: &[&[u8]], out: &mut [u8]) {
    sponge(parts, out, keccak_f1600);
    wipe_stack::<SPILLS>();
}

/// Absorbs whole blocks into a state with which SHAKE256 continues. Constant time for a given length; wipes as
/// [`shake256`] does, except for the state.
pub(crate) fn shake256_absorb(state: &mut [u64; 25], blocks: &[u8]) {
    absorb_blocks(state, blocks, keccak_f1600);
    wipe_stack::<SPILLS>();
}

/// Messages hashed side by side by [`shake256_xn`].
pub(crate) const LANES: usize = 1;

/// SHAKE256 of each message into the output of the same index, one after the other. Constant time for given lengths.
pub(crate) fn shake256_xn(messages: &[&[u8]], outs: &mut [&mut [u8]]) {
    for (message, out) in messages.iter().zip(outs) {
        sponge(&[message], out, keccak_f1600);
    }
    wipe_stack::<SPILLS>();
}
