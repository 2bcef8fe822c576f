//! The expanders for AVX2 machines: AES-NI counter mode from [`aesni`], SHAKE256 on general registers for one message
//! and on four states side by side for many.
//!
//! **Layout.** One state: 25 words in general registers and on the stack, rounds in pairs. Four states: word `i` of all
//! four in one 256-bit register.
//!
//! **Cost model.** One state, per round: theta 55, rho 24, chi 50 (`andn` and `xor`), iota 1: 130 operations, four a
//! cycle, so 780 core cycles a permutation; with the copies and spills of 25 words in 15 registers about 210
//! instructions, six a cycle, 840. Four states, per round: 76 XOR, 25 ANDN, 27 rotations of three operations and two of
//! one: 184 at four a cycle, 1 104 core cycles, 276 per lane (Zen 4 and Zen 5 shift on two of the four ports: 54 of the
//! 184, not a bound).
//!
//! **Measured** on Zen 4 (1.41 core cycles a tick), median, ticks per permutation: one state 670, or 945 core cycles,
//! 1.2 times the floor; four states 1 002, or 1 413 core cycles, 1.3 times the floor (sixteen registers for 25 words),
//! 251 per lane (300 calls of 40 permutations between fenced `rdtsc` reads). For AES see [`aesni`].
//!
//! **Both at once.** A secret seed's hash gives the key of P with its first block. The permutations after that run
//! between AES's rounds, 16 registers of it to a round of Keccak: AES waits for two vector pipes, Keccak for the front
//! end. On Zen 3 MAYO-2's seed takes 9.5 us with AES-NI, its hash alone 1.5 and AES alone 8.7 (least of 20,000 calls).
//!
//! Source: FIPS 202. Leak class: SHAKE256's inputs and outputs are secret; constant time in everything but lengths.
//! State, the stack below the permutation, the vector registers and the general registers that a function need not
//! preserve are wiped before returning; the others are restored to the caller's values. Copies that the compiler may
//! place in the frame of `shake256` itself cannot be wiped.

use crate::backend::aesni;
use crate::backend::sponge::{
    ROUND_CONSTANTS, absorb_blocks, absorbed, iota, keccak_round, row, sponge, sponges, squeeze, theta,
    wipe_stack,
};
use core::arch::asm;
use core::arch::x86_64::*;

/// Messages hashed side by side by [`shake256_xn`].
pub(crate) const LANES: usize = 4;

/// AES-128 counter mode with a zero nonce: block `i` of the stream is `AES(key, BE128(i))`, from `i = first_block`, cut
/// to `out.len()` bytes. Public data.
#[target_feature(enable = "aes,avx2,bmi1,bmi2")]
pub(crate) fn aes128_ctr(key: &[u8; 16], first_block: u32, out: &mut [u8]) {
    aesni::aes128_ctr(key, first_block, out);
}

/// AES-128 over `nonce xor (0^96 || BE32(i))`, from `i = 0`, cut to `out.len()` bytes (fewer than 2^36). Public data.
#[target_feature(enable = "aes,avx2,bmi1,bmi2")]
pub(crate) fn aes128_ctr_xor(key: &[u8; 16], nonce: &[u8; 16], out: &mut [u8]) {
    aesni::aes128_ctr_xor(key, nonce, out);
}

/// SHAKE256 of the concatenation of `parts`, as many bytes as `out` holds. Constant time for given lengths; wipes its
/// state, the stack below and the vector registers.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(crate) fn shake256(parts: &[&[u8]], out: &mut [u8]) {
    sponge(parts, out, |state| keccak_f1600(state));
    wipe();
}

/// Absorbs whole blocks into a state with which SHAKE256 continues. Constant time for a given length; wipes as
/// [`shake256`] does, except for the state.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(crate) fn shake256_absorb(state: &mut [u64; 25], blocks: &[u8]) {
    absorb_blocks(state, blocks, |state| keccak_f1600(state));
    wipe();
}

/// SHAKE256 of each message into the output of the same index, [`LANES`] at a time where all messages have one length,
/// and all outputs. Constant time for given lengths; wipes as [`shake256`] does.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(crate) fn shake256_xn(messages: &[&[u8]], outs: &mut [&mut [u8]]) {
    sponges::<LANES>(
        messages,
        outs,
        |states| keccak_f1600_x4(states),
        |message, out| sponge(&[message], out, |state| keccak_f1600(state)),
    );
    wipe();
}

/// Overwrites the permutations' remains in vector registers and on the stack.
#[target_feature(enable = "avx2")]
pub(crate) fn wipe() {
    wipe_stack::<128>();
    _mm256_zeroall();
    wipe_general_registers();
}

/// Zeroes the general registers that a function need not preserve.
#[inline(always)]
pub(crate) fn wipe_general_registers() {
    // SAFETY: changes only the declared registers and the flags.
    unsafe {
        asm!(
            "xor eax, eax", "xor ecx, ecx", "xor edx, edx", "xor esi, esi", "xor edi, edi",
            "xor r8d, r8d", "xor r9d, r9d", "xor r10d, r10d", "xor r11d, r11d",
            out("rax") _, out("rcx") _, out("rdx") _, out("rsi") _, out("rdi") _,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
            options(nomem, nostack),
        );
    }
}

/// Chi on any row.
#[inline(always)]
fn plain_chi(_: usize, b: [u64; 5]) -> [u64; 5] {
    let [b0, b1, b2, b3, b4] = b;
    [b0 ^ (!b1 & b2), b1 ^ (!b2 & b3), b2 ^ (!b3 & b4), b3 ^ (!b4 & b0), b4 ^ (!b0 & b1)]
}

/// Keccak-f\[1600\] on general registers, with `andn` and `rorx`.
#[target_feature(enable = "bmi1,bmi2")]
#[inline(never)]
pub(crate) fn keccak_f1600(state: &mut [u64; 25]) {
    let mut a = *state;
    for constants in ROUND_CONSTANTS.as_chunks::<2>().0 {
        keccak_round(&mut a, constants[0], plain_chi);
        keccak_round(&mut a, constants[1], plain_chi);
    }
    *state = a;
}

/// Stamps SHAKE256 beside AES for one width of AES.
macro_rules! seed_and_stream {
    (features: $features:literal, aes: $aes:path, register: $register:ty, class: $class:ident) => {
        use $aes as aes;

        use super::{ROUND_CONSTANTS, absorbed, iota, keccak_f1600, plain_chi, row, squeeze, theta, wipe};
        use core::arch::{asm, x86_64::*};

        /// Steps of AES beside a permutation: two for each round.
        const STEPS: usize = 2 * ROUND_CONSTANTS.len();

        /// SHAKE256 of `seed` into `hash`, and AES-128 counter mode with a zero nonce under the first
        /// 16 bytes of `hash`, which are public, into `stream`. Constant time for given lengths; wipes as `shake256` does.
        #[target_feature(enable = $features)]
        pub(crate) fn seed_and_stream(seed: &[u8], hash: &mut [u8], stream: &mut [u8]) {
            let mut state = absorbed(&[seed], |state| keccak_f1600(state));
            let mut key = [0; 16];
            for (bytes, word) in key.as_chunks_mut::<8>().0.iter_mut().zip(&state) {
                *bytes = word.to_le_bytes();
            }
            let (keys, whitening) = aes::schedule(&key, &[0; 16]);
            let mut cached = aes::Cached::new(keys, whitening, 0);
            let mut turns = stream.as_chunks_mut().0.as_chunks_mut::<STEPS>().0.iter_mut();
            squeeze(&mut state, hash, |state| match turns.next() {
                Some(steps) => keccak_f1600_beside(state, &mut cached, steps),
                None => keccak_f1600(state),
            });
            wipe();
            let done = 16 * cached.block as usize;
            cached.rest(&mut stream[done..]);
        }

        /// The permutation, and the next steps of a stream.
        #[target_feature(enable = $features)]
        #[inline(never)]
        fn keccak_f1600_beside(
            state: &mut [u64; 25],
            cached: &mut aes::Cached,
            steps: &mut [[u8; aes::STEP_BYTES]; STEPS],
        ) {
            let mut a = *state;
            for (constant, steps) in ROUND_CONSTANTS.into_iter().zip(steps.as_chunks_mut::<2>().0) {
                let [first, second] = steps;
                let mut step = cached.open();
                let mut d = theta(&a);
                let [d0, d1, ..] = &mut d;
                rounds::<3, 6>(cached, &mut step, [d1, d0]);
                let mut row0 = plain_chi(0, row::<0>(&a, &d));
                rounds::<6, 8>(cached, &mut step, [&mut row0[0], &mut d[0]]);
                let mut row1 = plain_chi(1, row::<1>(&a, &d));
                rounds::<8, 10>(cached, &mut step, [&mut row1[0], &mut d[0]]);
                cached.close(step, first);
                let mut row2 = plain_chi(2, row::<2>(&a, &d));
                step = cached.open();
                rounds::<3, 6>(cached, &mut step, [&mut row2[0], &mut d[0]]);
                let mut row3 = plain_chi(3, row::<3>(&a, &d));
                rounds::<6, 8>(cached, &mut step, [&mut row3[0], &mut d[0]]);
                let mut row4 = plain_chi(4, row::<4>(&a, &d));
                rounds::<8, 10>(cached, &mut step, [&mut row4[0], &mut d[0]]);
                cached.close(step, second);
                iota(&mut a, [row0, row1, row2, row3, row4], constant);
            }
            *state = a;
        }

        /// Rounds of a step between two parts of a round of Keccak. Without the tie to its words the compiler gathers the AES
        /// of several parts in one place.
        #[target_feature(enable = $features)]
        #[inline]
        fn rounds<const FROM: usize, const TO: usize>(
            cached: &aes::Cached,
            step: &mut [$register; 8],
            [made, used]: [&mut u64; 2],
        ) {
            for n in FROM..TO {
                cached.round(n, step);
            }
            let [s0, s1, s2, s3, s4, s5, s6, s7] = step;
            // SAFETY: the text is a comment.
            unsafe {
                asm!(
                    "/* {} {} {} {} {} {} {} {} {} {} */",
                    inout($class) * s0,
                    inout($class) * s1,
                    inout($class) * s2,
                    inout($class) * s3,
                    inout($class) * s4,
                    inout($class) * s5,
                    inout($class) * s6,
                    inout($class) * s7,
                    inout(reg) * made,
                    inout(reg) * used,
                    options(nomem, nostack, preserves_flags),
                );
            }
        }
    };
}

/// SHAKE256 beside AES-NI.
pub(crate) mod beside_aesni {
    seed_and_stream! { features: "aes,avx2,bmi1,bmi2", aes: crate::backend::aesni, register: __m128i, class: xmm_reg }
}

/// SHAKE256 beside VAES on 256 bits.
pub(crate) mod beside_vaes {
    seed_and_stream! {
        features: "aes,vaes,avx2,bmi1,bmi2", aes: crate::backend::aesni::vaes256, register: __m256i, class: ymm_reg
    }
}

/// Stamps Keccak-f\[1600\] on one state per vector lane.
///
/// `xor3(a, b, c)` is `a ^ b ^ c`, `chi(a, b, c)` is `a ^ (!b & c)`, `turn::<N>(a)` rotates every lane left by `N`.
macro_rules! keccak_lanes {
    (
        name: $name:ident, features: $features:literal, register: $register:ty, lanes: $lanes:literal,
        load: $load:path, store: $store:path, set: $set:path,
        xor: $xor:path, xor3: $xor3:path, chi: $chi:path, turn: $turn:ident $(,)?
    ) => {
        /// Keccak-f\[1600\] on independent states, one per lane.
        #[target_feature(enable = $features)]
        #[inline(never)]
        fn $name(states: &mut $crate::backend::sponge::Lanes<$lanes>) {
            let mut a = [$set(0); 25];
            for (register, words) in a.iter_mut().zip(&states.0) {
                // SAFETY: the array is as long as the register, and the load needs no alignment.
                *register = unsafe { $load(words.as_ptr().cast()) };
            }
            for constant in $crate::backend::sponge::ROUND_CONSTANTS {
                let parity = |x: usize| $xor3($xor3(a[x], a[x + 5], a[x + 10]), a[x + 15], a[x + 20]);
                let c = [parity(0), parity(1), parity(2), parity(3), parity(4)];
                let d = |x: usize| $xor(c[(x + 4) % 5], $turn::<1>(c[(x + 1) % 5]));
                let d = [d(0), d(1), d(2), d(3), d(4)];
                let t = |i: usize| $xor(a[i], d[i % 5]);
                let b0 =
                    [t(0), $turn::<44>(t(6)), $turn::<43>(t(12)), $turn::<21>(t(18)), $turn::<14>(t(24))];
                let b1 = [
                    $turn::<28>(t(3)),
                    $turn::<20>(t(9)),
                    $turn::<3>(t(10)),
                    $turn::<45>(t(16)),
                    $turn::<61>(t(22)),
                ];
                let b2 = [
                    $turn::<1>(t(1)),
                    $turn::<6>(t(7)),
                    $turn::<25>(t(13)),
                    $turn::<8>(t(19)),
                    $turn::<18>(t(20)),
                ];
                let b3 = [
                    $turn::<27>(t(4)),
                    $turn::<36>(t(5)),
                    $turn::<10>(t(11)),
                    $turn::<15>(t(17)),
                    $turn::<56>(t(23)),
                ];
                let b4 = [
                    $turn::<62>(t(2)),
                    $turn::<55>(t(8)),
                    $turn::<39>(t(14)),
                    $turn::<41>(t(15)),
                    $turn::<2>(t(21)),
                ];
                for (y, b) in [b0, b1, b2, b3, b4].into_iter().enumerate() {
                    for x in 0..5 {
                        a[5 * y + x] = $chi(b[x], b[(x + 1) % 5], b[(x + 2) % 5]);
                    }
                }
                a[0] = $xor(a[0], $set(constant as i64));
            }
            for (register, words) in a.iter().zip(&mut states.0) {
                // SAFETY: the array is as long as the register, and the store needs no alignment.
                unsafe { $store(words.as_mut_ptr().cast(), *register) };
            }
        }
    };
}
pub(crate) use keccak_lanes;

#[target_feature(enable = "avx2")]
#[inline]
fn xor3(a: __m256i, b: __m256i, c: __m256i) -> __m256i {
    _mm256_xor_si256(_mm256_xor_si256(a, b), c)
}

#[target_feature(enable = "avx2")]
#[inline]
fn chi(a: __m256i, b: __m256i, c: __m256i) -> __m256i {
    _mm256_xor_si256(a, _mm256_andnot_si256(b, c))
}

/// Rotation by shifts, or by a byte shuffle where the distance is a byte.
#[target_feature(enable = "avx2")]
#[inline]
fn turn<const N: i32>(a: __m256i) -> __m256i {
    let bytes = |low: i64, high: i64| _mm256_shuffle_epi8(a, _mm256_setr_epi64x(low, high, low, high));
    match N {
        8 => bytes(0x0605_0403_0201_0007, 0x0e0d_0c0b_0a09_080f),
        56 => bytes(0x0007_0605_0403_0201, 0x080f_0e0d_0c0b_0a09),
        _ => {
            let (left, right) = (_mm_cvtsi32_si128(N), _mm_cvtsi32_si128(64 - N));
            _mm256_or_si256(_mm256_sll_epi64(a, left), _mm256_srl_epi64(a, right))
        }
    }
}

keccak_lanes! {
    name: keccak_f1600_x4, features: "avx2", register: __m256i, lanes: 4,
    load: _mm256_loadu_si256, store: _mm256_storeu_si256, set: _mm256_set1_epi64x,
    xor: _mm256_xor_si256, xor3: xor3, chi: chi, turn: turn,
}
