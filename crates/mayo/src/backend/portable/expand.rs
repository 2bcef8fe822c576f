//! AES-128 counter mode and SHAKE256 in plain Rust: constant time on any CPU, no table, no intrinsic.
//!
//! # AES: 256 blocks, fully bitsliced
//!
//! Bit `b` of byte `j` of 256 consecutive blocks is one *plane*, `[u64; 4]`; plane number `8 j + b`. ShiftRows is then a
//! choice of index, MixColumns and AddRoundKey are plain XORs, and SubBytes is the 113-gate circuit of Boyar, Matthews
//! and Peralta ("Logic minimization techniques with applications to cryptology", J. Cryptology 26, 2013), whose four
//! output inversions live in the round keys. Loops run over the words of a plane, so that a compiler turns them into
//! whatever vectors the target has (SSE2 on the x86-64 baseline, NEON on AArch64).
//!
//! Blocks of one batch differ in byte 15 only (a batch starts at a multiple of 256), so round 1 varies in one S-box and
//! round 2 in four; the rest of both rounds is done once per batch on a single block of 16-bit planes. That leaves 133
//! S-boxes of 160 (counter caching, as in Hajihassani et al., IEEE TPDS 2019).
//!
//! **Cost model** per batch of 4096 bytes, in 128-bit operations: 117 + 16 S-boxes x 113 gates x 2 vectors = 30 058;
//! MixColumns 7 rounds x 432 x 2 = 6 048; AddRoundKey 2 304; transposition 2 x 1 152 x 2 = 4 608. Together 43.0 k, 10.5 per
//! byte; Zen 4 and Zen 5 issue four 128-bit logic operations a cycle: **floor 2.6 core cycles per byte**, before the
//! register copies that SSE2's two-operand form and 16 registers ask for.
//!
//! # SHAKE256
//!
//! Keccak-f[1600] on 25 local words, one round per step of an unrolled pair. **Cost model** per round: theta 20 + 5 + 5 + 25,
//! rho 24, chi 75, iota 1 = 155 operations, 3 720 per permutation; at four a cycle the floor is 930 core cycles. (`!a & b`
//! is two of them on the baseline, one where the compiler may use `andn`.)
//!
//! Source: FIPS 197, SP 800-38A section 6.5, FIPS 202. Leak class: constant time in everything but lengths, for both. The
//! AES inputs here are public (`seed_pk`) and are not wiped; the sponge's inputs are secret, and its state, its block
//! buffer and the stack below the permutation are wiped before returning.
#![forbid(unsafe_code)]

use core::ops::{BitAnd, BitXor};
use zeroize::Zeroize;

/// Words in a plane of a full batch.
const WORDS: usize = 4;
/// Blocks in a full batch: one per bit of a plane, and exactly the span of the counter's last byte.
const BATCH_BLOCKS: usize = 64 * WORDS;

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

/// Where ShiftRows takes the byte at `row`, `column` from.
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

/// What depends on the key and the nonce alone.
struct Stream {
    keys: [[u8; 16]; 11],
    /// Rounds 3 to 10 as plane masks.
    masks: [[u64; 128]; 8],
    /// Nonce plus round key 0.
    whitening: [u8; 16],
    /// The varying byte after round 1's SubBytes.
    last_byte: [[u64; WORDS]; 8],
}

impl Stream {
    fn new(key: &[u8; 16], nonce: &[u8; 16]) -> Self {
        let keys = round_keys(key);
        let masks = core::array::from_fn(|n| core::array::from_fn(|p| mask(keys[n + 3][p / 8], p % 8)));
        let whitening = xor_block(&keys[0], nonce);
        let counting = counting_planes();
        let mut last_byte = [[0; WORDS]; 8];
        for w in 0..WORDS {
            let planes = sub_planes(core::array::from_fn(|bit| counting[bit][w] ^ mask(whitening[15], bit)));
            for bit in 0..8 {
                last_byte[bit][w] = planes[bit];
            }
        }
        Self { keys, masks, whitening, last_byte }
    }

    /// Blocks `256 batch` to `256 batch + 64 W - 1` of the stream.
    fn batch<const W: usize>(&self, batch: u64, out: &mut [u8; 16 * BATCH_BLOCKS]) {
        // Rounds 1 and 2 of the part that is the same in all blocks: the varying bytes are left at zero, and their
        // share, which is linear from SubBytes to SubBytes, is added plane by plane.
        let mut block = xor_block(&self.whitening, &(u128::from(batch) << 8).to_be_bytes());
        block = sub_block(&block);
        block[15] = 0;
        let block = xor_block(&shift_and_mix(&block), &self.keys[1]);
        let mut fixed = sub_block(&block);
        fixed[..4].fill(0);
        let fixed = xor_block(&shift_and_mix(&fixed), &self.keys[2]);

        let last_byte: [[u64; W]; 8] =
            core::array::from_fn(|bit| core::array::from_fn(|w| self.last_byte[bit][w]));
        let mut first_column = [[0; W]; 32];
        spread(3, &last_byte, &block[..4], &mut first_column);

        let mut state = [[0u64; W]; 128];
        for row in 0..4 {
            let mut planes = [[0; W]; 8];
            sub_byte_planes(&first_column, row, &mut planes);
            // Byte `row` of column 0 moves to column -row.
            let column = (4 - row) % 4;
            let into = state[32 * column..].first_chunk_mut().expect("a column is 32 of 128 planes");
            spread(row, &planes, &fixed[4 * column..4 * column + 4], into);
        }
        let mut other = [[0u64; W]; 128];
        for masks in &self.masks[..6] {
            round(&state, masks, &mut other);
            core::mem::swap(&mut state, &mut other);
        }
        round(&state, &self.masks[6], &mut other);
        last_round(&other, &self.masks[7], &mut state);

        let mut halves = state.chunks_exact_mut(64);
        if let (Some(low), Some(high)) = (halves.next(), halves.next()) {
            transpose(low);
            transpose(high);
            for w in 0..W {
                for i in 0..64 {
                    let at = 16 * (64 * w + i);
                    out[at..at + 8].copy_from_slice(&low[i][w].to_le_bytes());
                    out[at + 8..at + 16].copy_from_slice(&high[i][w].to_le_bytes());
                }
            }
        }
    }
}

/// Planes of a byte that counts 0, 1, 2, ... along the 256 lanes.
fn counting_planes() -> [[u64; WORDS]; 8] {
    core::array::from_fn(|bit| {
        core::array::from_fn(|w| (0..64).fold(0, |plane, i| plane | (((64 * w + i) >> bit & 1) as u64) << i))
    })
}

/// One byte's part in a MixColumns column, plus the part of the other three, which is the same in every lane.
///
/// `planes` is the byte in row `row`; `fixed` the rest of the column, mixed.
#[inline(always)]
fn spread<const W: usize>(row: usize, planes: &[[u64; W]; 8], fixed: &[u8], out: &mut [[u64; W]; 32]) {
    for w in 0..W {
        let a: [u64; 8] = core::array::from_fn(|bit| planes[bit][w]);
        let double = xtime_planes(&a);
        for bit in 0..8 {
            // The coefficient of row r in output row q is 2, 3, 1, 1 at r - q = 0, 1, 2, 3.
            out[8 * row + bit][w] = double[bit] ^ mask(fixed[row], bit);
            let q = (row + 3) % 4;
            out[8 * q + bit][w] = double[bit] ^ a[bit] ^ mask(fixed[q], bit);
            let q = (row + 2) % 4;
            out[8 * q + bit][w] = a[bit] ^ mask(fixed[q], bit);
            let q = (row + 1) % 4;
            out[8 * q + bit][w] = a[bit] ^ mask(fixed[q], bit);
        }
    }
}

#[inline(always)]
fn xtime_planes(a: &[u64; 8]) -> [u64; 8] {
    [a[7], a[0] ^ a[7], a[1], a[2] ^ a[7], a[3] ^ a[7], a[4], a[5], a[6]]
}

/// SubBytes of byte `byte` of `state`.
#[inline(always)]
fn sub_byte_planes<const W: usize>(state: &[[u64; W]], byte: usize, out: &mut [[u64; W]; 8]) {
    let Some(planes) = state[8 * byte..].first_chunk::<8>() else { return };
    for w in 0..W {
        let s = sub_planes(core::array::from_fn(|bit| planes[bit][w]));
        for bit in 0..8 {
            out[bit][w] = s[bit];
        }
    }
}

/// SubBytes, ShiftRows, MixColumns, AddRoundKey.
#[inline(never)]
fn round<const W: usize>(state: &[[u64; W]; 128], masks: &[u64; 128], out: &mut [[u64; W]; 128]) {
    for column in 0..4 {
        let mut a = [[[0; W]; 8]; 4];
        for row in 0..4 {
            sub_byte_planes(state, source_byte(row, column), &mut a[row]);
        }
        for row in 0..4 {
            let (a0, a1, a2, a3) = (&a[row], &a[(row + 1) % 4], &a[(row + 2) % 4], &a[(row + 3) % 4]);
            let first = 32 * column + 8 * row;
            for bit in 0..8 {
                for w in 0..W {
                    let mut sum = a1[bit][w] ^ (a2[bit][w] ^ a3[bit][w]) ^ masks[first + bit];
                    if bit > 0 {
                        sum ^= a0[bit - 1][w] ^ a1[bit - 1][w];
                    }
                    if matches!(bit, 0 | 1 | 3 | 4) {
                        sum ^= a0[7][w] ^ a1[7][w];
                    }
                    out[first + bit][w] = sum;
                }
            }
        }
    }
}

/// SubBytes, ShiftRows, AddRoundKey.
#[inline(never)]
fn last_round<const W: usize>(state: &[[u64; W]; 128], masks: &[u64; 128], out: &mut [[u64; W]; 128]) {
    for byte in 0..16 {
        let mut s = [[0; W]; 8];
        sub_byte_planes(state, source_byte(byte % 4, byte / 4), &mut s);
        for bit in 0..8 {
            for w in 0..W {
                out[8 * byte + bit][w] = s[bit][w] ^ masks[8 * byte + bit];
            }
        }
    }
}

/// Transposes `W` 64 x 64 bit matrices: afterwards bit `p` of row `i` is what bit `i` of row `p` was.
#[inline(always)]
fn transpose<const W: usize>(rows: &mut [[u64; W]]) {
    exchange::<32, W>(rows, 0x0000_0000_ffff_ffff);
    exchange::<16, W>(rows, 0x0000_ffff_0000_ffff);
    exchange::<8, W>(rows, 0x00ff_00ff_00ff_00ff);
    exchange::<4, W>(rows, 0x0f0f_0f0f_0f0f_0f0f);
    exchange::<2, W>(rows, 0x3333_3333_3333_3333);
    exchange::<1, W>(rows, 0x5555_5555_5555_5555);
}

/// Swaps the off-diagonal blocks, `SPAN` wide, of every `2 SPAN` block on the diagonal.
#[inline(always)]
fn exchange<const SPAN: usize, const W: usize>(rows: &mut [[u64; W]], mask: u64) {
    for block in rows.chunks_exact_mut(2 * SPAN) {
        let (upper, lower) = block.split_at_mut(SPAN);
        for (a, b) in upper.iter_mut().zip(lower) {
            for w in 0..W {
                let t = ((a[w] >> SPAN) ^ b[w]) & mask;
                b[w] ^= t;
                a[w] ^= t << SPAN;
            }
        }
    }
}

/// AES-128 counter mode with a zero nonce: block `i` of the stream is `AES(key, BE128(i))`, from `i = first_block`, cut to
/// `out.len()` bytes. Public data.
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
        match end {
            0..=1024 => stream.batch::<1>(batch, &mut buffer),
            1025..=2048 => stream.batch::<2>(batch, &mut buffer),
            _ => stream.batch::<WORDS>(batch, &mut buffer),
        }
        let (now, later) = out.split_at_mut(end - skip);
        now.copy_from_slice(&buffer[skip..end]);
        (out, skip, batch) = (later, 0, batch + 1);
    }
}

/// Bytes of a SHAKE256 block.
pub(crate) const RATE: usize = 136;

/// The constants of iota (FIPS 202, section 3.2.5).
pub(crate) const ROUND_CONSTANTS: [u64; 24] = round_constants();

const fn round_constants() -> [u64; 24] {
    let mut constants = [0; 24];
    let mut register: u16 = 1;
    let mut round = 0;
    while round < 24 {
        let mut j = 0;
        while j < 7 {
            constants[round] |= ((register & 1) as u64) << ((1u32 << j) - 1);
            register <<= 1;
            if register & 0x100 != 0 {
                register ^= 0x171;
            }
            j += 1;
        }
        round += 1;
    }
    constants
}

/// One round on 25 words, in place. Inlined into whatever instruction set the caller was compiled for.
#[inline(always)]
pub(crate) fn keccak_round(a: &mut [u64; 25], constant: u64) {
    let c0 = a[0] ^ a[5] ^ a[10] ^ a[15] ^ a[20];
    let c1 = a[1] ^ a[6] ^ a[11] ^ a[16] ^ a[21];
    let c2 = a[2] ^ a[7] ^ a[12] ^ a[17] ^ a[22];
    let c3 = a[3] ^ a[8] ^ a[13] ^ a[18] ^ a[23];
    let c4 = a[4] ^ a[9] ^ a[14] ^ a[19] ^ a[24];
    let d0 = c4 ^ c1.rotate_left(1);
    let d1 = c0 ^ c2.rotate_left(1);
    let d2 = c1 ^ c3.rotate_left(1);
    let d3 = c2 ^ c4.rotate_left(1);
    let d4 = c3 ^ c0.rotate_left(1);
    let row =
        |b: [u64; 5]| -> [u64; 5] { core::array::from_fn(|x| b[x] ^ (!b[(x + 1) % 5] & b[(x + 2) % 5])) };
    let r0 = row([
        a[0] ^ d0,
        (a[6] ^ d1).rotate_left(44),
        (a[12] ^ d2).rotate_left(43),
        (a[18] ^ d3).rotate_left(21),
        (a[24] ^ d4).rotate_left(14),
    ]);
    let r1 = row([
        (a[3] ^ d3).rotate_left(28),
        (a[9] ^ d4).rotate_left(20),
        (a[10] ^ d0).rotate_left(3),
        (a[16] ^ d1).rotate_left(45),
        (a[22] ^ d2).rotate_left(61),
    ]);
    let r2 = row([
        (a[1] ^ d1).rotate_left(1),
        (a[7] ^ d2).rotate_left(6),
        (a[13] ^ d3).rotate_left(25),
        (a[19] ^ d4).rotate_left(8),
        (a[20] ^ d0).rotate_left(18),
    ]);
    let r3 = row([
        (a[4] ^ d4).rotate_left(27),
        (a[5] ^ d0).rotate_left(36),
        (a[11] ^ d1).rotate_left(10),
        (a[17] ^ d2).rotate_left(15),
        (a[23] ^ d3).rotate_left(56),
    ]);
    let r4 = row([
        (a[2] ^ d2).rotate_left(62),
        (a[8] ^ d3).rotate_left(55),
        (a[14] ^ d4).rotate_left(39),
        (a[15] ^ d0).rotate_left(41),
        (a[21] ^ d1).rotate_left(2),
    ]);
    a[..5].copy_from_slice(&r0);
    a[0] ^= constant;
    a[5..10].copy_from_slice(&r1);
    a[10..15].copy_from_slice(&r2);
    a[15..20].copy_from_slice(&r3);
    a[20..].copy_from_slice(&r4);
}

/// Keccak-f[1600].
#[inline(never)]
fn keccak_f1600(state: &mut [u64; 25]) {
    let mut a = *state;
    for pair in ROUND_CONSTANTS.as_chunks::<2>().0 {
        keccak_round(&mut a, pair[0]);
        keccak_round(&mut a, pair[1]);
    }
    *state = a;
}

/// SHAKE256 of the concatenation of `parts`, as many bytes as `out` holds. Constant time but for the lengths; leaves no
/// copy of its state behind in memory.
pub(crate) fn shake256(parts: &[&[u8]], out: &mut [u8]) {
    sponge(parts, out, keccak_f1600);
    wipe_stack();
}

/// SHAKE256 of each message into the output of the same index, one after the other. Constant time but for the lengths.
pub(crate) fn shake256_xn(messages: &[&[u8]], outs: &mut [&mut [u8]]) {
    for (message, out) in messages.iter().zip(outs) {
        sponge(&[message], out, keccak_f1600);
    }
    wipe_stack();
}

/// The SHAKE256 sponge around any permutation. Wipes its state and block buffer; what the permutation leaves on the
/// stack or in registers is the caller's to wipe.
#[inline(always)]
pub(crate) fn sponge(parts: &[&[u8]], out: &mut [u8], mut permute: impl FnMut(&mut [u64; 25])) {
    let mut state = [0u64; 25];
    let mut block = [0u8; RATE];
    let mut filled = 0;
    for part in parts {
        let mut rest = *part;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(RATE - filled));
            block[filled..filled + now.len()].copy_from_slice(now);
            filled += now.len();
            rest = later;
            if filled == RATE {
                absorb(&mut state, &block);
                permute(&mut state);
                filled = 0;
            }
        }
    }
    block[filled..].fill(0);
    block[filled] = 0x1f;
    block[RATE - 1] |= 0x80;
    absorb(&mut state, &block);
    for chunk in out.chunks_mut(RATE) {
        permute(&mut state);
        let (words, tail) = chunk.as_chunks_mut::<8>();
        for (bytes, word) in words.iter_mut().zip(&state) {
            *bytes = word.to_le_bytes();
        }
        if !tail.is_empty() {
            let mut last = state[words.len()].to_le_bytes();
            tail.copy_from_slice(&last[..tail.len()]);
            last.zeroize();
        }
    }
    state.zeroize();
    block.zeroize();
}

#[inline(always)]
fn absorb(state: &mut [u64; 25], block: &[u8; RATE]) {
    for (word, bytes) in state.iter_mut().zip(block.as_chunks::<8>().0) {
        *word ^= u64::from_le_bytes(*bytes);
    }
}

/// Overwrites the stack below the caller, where a permutation that has just returned kept its spills.
#[inline(never)]
pub(crate) fn wipe_stack() {
    let mut below = [0u64; 128];
    below.zeroize();
}
