//! SHAKE256 for every instruction set: a Keccak round on words, and the sponge around any permutation of one state or
//! of several side by side. Each backend's `expand.rs` has its permutation.
//!
//! Absorbing adds to the state directly, so that no second copy of the message exists. Source: FIPS 202. Leak class:
//! secret data, constant time in everything but lengths; the state is wiped before returning.
#![forbid(unsafe_code)]

use zeroize::Zeroize;

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

/// Words of stack that a permutation on general registers uses, registers saved for the caller included, with room to
/// spare; the compiler's choice is about 40.
pub(crate) const SPILLS: usize = 64;

/// What theta adds to the columns (FIPS 202, section 3.2.1).
#[inline(always)]
pub(crate) fn theta(a: &[u64; 25]) -> [u64; 5] {
    let c0 = a[0] ^ a[5] ^ a[10] ^ a[15] ^ a[20];
    let c1 = a[1] ^ a[6] ^ a[11] ^ a[16] ^ a[21];
    let c2 = a[2] ^ a[7] ^ a[12] ^ a[17] ^ a[22];
    let c3 = a[3] ^ a[8] ^ a[13] ^ a[18] ^ a[23];
    let c4 = a[4] ^ a[9] ^ a[14] ^ a[19] ^ a[24];
    [
        c4 ^ c1.rotate_left(1),
        c0 ^ c2.rotate_left(1),
        c1 ^ c3.rotate_left(1),
        c2 ^ c4.rotate_left(1),
        c3 ^ c0.rotate_left(1),
    ]
}

/// Row `Y` after theta, rho and pi (sections 3.2.1 to 3.2.3).
#[inline(always)]
pub(crate) fn row<const Y: usize>(a: &[u64; 25], d: &[u64; 5]) -> [u64; 5] {
    // Where each word of the row comes from, and how far it turns.
    let (from, turns) = const {
        [
            ([0, 6, 12, 18, 24], [0, 44, 43, 21, 14]),
            ([3, 9, 10, 16, 22], [28, 20, 3, 45, 61]),
            ([1, 7, 13, 19, 20], [1, 6, 25, 8, 18]),
            ([4, 5, 11, 17, 23], [27, 36, 10, 15, 56]),
            ([2, 8, 14, 15, 21], [62, 55, 39, 41, 2]),
        ][Y]
    };
    core::array::from_fn(|x| (a[from[x]] ^ d[from[x] % 5]).rotate_left(turns[x]))
}

/// The state of these rows after iota (section 3.2.5).
#[inline(always)]
pub(crate) fn iota(a: &mut [u64; 25], rows: [[u64; 5]; 5], constant: u64) {
    for (words, row) in a.as_chunks_mut::<5>().0.iter_mut().zip(rows) {
        *words = row;
    }
    a[0] ^= constant;
}

/// One round, in place, on rows that `chi(y, row)` finishes. Inlined with the caller's instruction set.
#[inline(always)]
pub(crate) fn keccak_round(a: &mut [u64; 25], constant: u64, chi: impl Fn(usize, [u64; 5]) -> [u64; 5]) {
    let d = &theta(a);
    let rows = [
        chi(0, row::<0>(a, d)),
        chi(1, row::<1>(a, d)),
        chi(2, row::<2>(a, d)),
        chi(3, row::<3>(a, d)),
        chi(4, row::<4>(a, d)),
    ];
    iota(a, rows, constant);
}

/// The SHAKE256 sponge around any permutation. Wipes its state; the caller wipes the permutation's remains on the stack
/// and in registers.
#[inline(always)]
pub(crate) fn sponge(parts: &[&[u8]], out: &mut [u8], mut permute: impl FnMut(&mut [u64; 25])) {
    let mut state = absorbed(parts, &mut permute);
    squeeze(&mut state, out, permute);
}

/// The state that has absorbed a message and gives the first block of output.
#[inline(always)]
pub(crate) fn absorbed(parts: &[&[u8]], mut permute: impl FnMut(&mut [u64; 25])) -> [u64; 25] {
    let mut state = [0u64; 25];
    let mut position = 0;
    for part in parts {
        let mut rest = *part;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(RATE - position));
            absorb(now, position, |i, word| state[i] ^= word);
            position += now.len();
            rest = later;
            if position == RATE {
                permute(&mut state);
                position = 0;
            }
        }
    }
    absorb(&[0x1f], position, |i, word| state[i] ^= word);
    state[RATE / 8 - 1] ^= 1 << 63;
    permute(&mut state);
    state
}

/// The output of a state, which is wiped.
#[inline(always)]
pub(crate) fn squeeze(state: &mut [u64; 25], out: &mut [u8], mut permute: impl FnMut(&mut [u64; 25])) {
    for (n, chunk) in out.chunks_mut(RATE).enumerate() {
        if n > 0 {
            permute(state);
        }
        let (words, tail) = chunk.as_chunks_mut::<8>();
        for (bytes, word) in words.iter_mut().zip(&*state) {
            *bytes = word.to_le_bytes();
        }
        if !tail.is_empty() {
            let mut last = state[words.len()].to_le_bytes();
            tail.copy_from_slice(&last[..tail.len()]);
            last.zeroize();
        }
    }
    state.zeroize();
}

/// Absorbs whole blocks into a state, with the permutation after each. Wipes nothing: the state is the caller's.
///
/// # Panics
/// If `blocks` is not whole blocks.
#[inline(always)]
pub(crate) fn absorb_blocks(state: &mut [u64; 25], blocks: &[u8], mut permute: impl FnMut(&mut [u64; 25])) {
    let (blocks, rest) = blocks.as_chunks::<RATE>();
    assert!(rest.is_empty(), "not whole blocks");
    for block in blocks {
        absorb(block, 0, |i, word| state[i] ^= word);
        permute(state);
    }
}

/// Calls `add(i, word)` for the words that `bytes`, laid down from byte `position` of the state on, add to its word
/// `i`.
#[inline(always)]
fn absorb(bytes: &[u8], mut position: usize, mut add: impl FnMut(usize, u64)) {
    let (head, aligned) = bytes.split_at(bytes.len().min(position.wrapping_neg() % 8));
    let (words, tail) = aligned.as_chunks::<8>();
    for byte in head {
        add(position / 8, u64::from(*byte) << (8 * (position % 8)));
        position += 1;
    }
    for word in words {
        add(position / 8, u64::from_le_bytes(*word));
        position += 8;
    }
    for byte in tail {
        add(position / 8, u64::from(*byte) << (8 * (position % 8)));
        position += 1;
    }
}

/// The states of `L` sponges, word by word: `.0[i][lane]`.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
#[repr(C, align(64))]
pub(crate) struct Lanes<const L: usize>(pub(crate) [[u64; L]; 25]);

/// SHAKE256 of many messages in groups of `L`, around any `L`-lane permutation; `single` hashes messages that do not
/// fill two lanes, and all of them where the messages or the outputs differ in length. Wipes as [`sponge`] does.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
#[inline(always)]
pub(crate) fn sponges<const L: usize>(
    messages: &[&[u8]],
    outs: &mut [&mut [u8]],
    mut permute: impl FnMut(&mut Lanes<L>),
    mut single: impl FnMut(&[u8], &mut [u8]),
) {
    let even = messages.windows(2).all(|pair| pair[0].len() == pair[1].len())
        && outs.windows(2).all(|pair| pair[0].len() == pair[1].len());
    let group = if even { L } else { 1 };
    for (messages, outs) in messages.chunks(group).zip(outs.chunks_mut(group)) {
        match (messages, outs) {
            ([message], [out, ..]) | ([message, ..], [out]) => single(message, out),
            (messages, outs) => sponge_group(messages, outs, &mut permute),
        }
    }
}

/// At most `L` messages of one length into outputs of one length; lanes without a message hash the padding
/// alone, and are not read.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
#[inline(always)]
fn sponge_group<const L: usize>(
    messages: &[&[u8]],
    outs: &mut [&mut [u8]],
    mut permute: impl FnMut(&mut Lanes<L>),
) {
    let (Some(len), Some(out_len)) = (messages.first().map(|m| m.len()), outs.first().map(|o| o.len()))
    else {
        return;
    };
    let mut state = Lanes([[0; L]; 25]);
    for start in (0..=len).step_by(RATE) {
        let end = len.min(start + RATE);
        for (lane, message) in messages.iter().enumerate().take(L) {
            absorb_lane(&mut state, lane, &message[start..end], 0);
        }
        if end - start == RATE {
            permute(&mut state);
        } else {
            for lane in 0..L {
                absorb_lane(&mut state, lane, &[0x1f], end - start);
                state.0[RATE / 8 - 1][lane] ^= 1 << 63;
            }
        }
    }
    for start in (0..out_len).step_by(RATE) {
        permute(&mut state);
        for (lane, out) in outs.iter_mut().enumerate().take(L) {
            squeeze_lane(&state, lane, &mut out[start..out_len.min(start + RATE)]);
        }
    }
    state.0.as_flattened_mut().zeroize();
}

/// Adds bytes to one lane, laid down as [`absorb`] does. A call: inlined with AVX-512, the compiler makes gathers and
/// scatters of the loop, and no vendor promises their time.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
#[inline(never)]
fn absorb_lane<const L: usize>(state: &mut Lanes<L>, lane: usize, bytes: &[u8], position: usize) {
    absorb(bytes, position, |i, word| state.0[i][lane] ^= word);
}

/// The first bytes of one lane, at most a block. A call, as [`absorb_lane`] is.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
#[inline(never)]
fn squeeze_lane<const L: usize>(state: &Lanes<L>, lane: usize, out: &mut [u8]) {
    let (words, tail) = out.as_chunks_mut::<8>();
    for (bytes, word) in words.iter_mut().zip(&state.0) {
        *bytes = word[lane].to_le_bytes();
    }
    if !tail.is_empty() {
        let mut word = state.0[words.len()][lane].to_le_bytes();
        tail.copy_from_slice(&word[..tail.len()]);
        word.zeroize();
    }
}

/// Overwrites `WORDS` words of the stack below the caller, where a permutation that has just returned kept its spills.
#[inline(never)]
pub(crate) fn wipe_stack<const WORDS: usize>() {
    let mut below = [0u64; WORDS];
    below.zeroize();
}
