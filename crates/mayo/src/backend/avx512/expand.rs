//! The expanders for AVX-512 machines: AES-128 counter mode on VAES-512, SHAKE256 on general registers for one message
//! and on eight states side by side for many.
//!
//! **Layout.** AES: four blocks to a register, eight registers in flight (see [`crate::backend::aesni`], which holds
//! the loop and its figures). Eight states: word `i` of all eight in one 512-bit register.
//!
//! **Cost model.** Eight states, per round: theta 10 ternary, 5 rotations, 30 XOR; rho 24 rotations; chi 25 ternary;
//! iota 1: 95 operations, and about 13 register copies, since `vpternlogq` overwrites its first operand. Zen 5 issues
//! four a cycle (rotations two): 24 cycles a round, 570 a permutation, 71 per lane. Zen 4 splits each in two: 48 a
//! round without the copies, 1 140 a permutation, 143 per lane.
//!
//! **Measured** on Zen 4 (1.41 core cycles a tick), median, ticks per permutation: eight states 1 200, or 1 690 core
//! cycles, 1.5 times the floor (512-bit copies are not free there, and 35 values do not fit 32 registers), 150 per
//! lane. One state runs on general registers, 670 ticks: holding its five rows in 512-bit registers (two permutes for
//! theta, five for pi, nine shuffles back to rows, all of five cycles' latency) took 898. (300 calls of 40 permutations
//! between fenced `rdtsc` reads.)
//!
//! Source: FIPS 197, SP 800-38A, FIPS 202. Leak class: AES inputs are public; SHAKE256's are secret; both are constant
//! time in everything but lengths. State, the stack below the permutation, all 32 vector registers and the general
//! registers that a function need not preserve are wiped before `shake256`, `shake256_absorb` and `shake256_xn` return;
//! `shake256_absorb` keeps its state, which is the caller's.

use crate::backend::aesni::counter_mode;
use crate::backend::avx2::expand::{keccak_f1600, keccak_lanes, wipe_general_registers};
use crate::backend::sponge::{absorb_blocks, sponge, sponges, wipe_stack};
use core::arch::asm;
use core::arch::x86_64::*;

/// Messages hashed side by side by [`shake256_xn`].
pub(crate) const LANES: usize = 8;

#[target_feature(enable = "avx512f,avx512bw,vaes,aes")]
#[inline]
fn counters(block: u64) -> __m512i {
    let counted =
        _mm512_add_epi64(_mm512_set1_epi64(block as i64), _mm512_setr_epi64(0, 0, 0, 1, 0, 2, 0, 3));
    _mm512_shuffle_epi8(counted, _mm512_broadcast_i32x4(_mm_set_epi64x(0x0809_0a0b_0c0d_0e0f, -1)))
}

counter_mode! {
    features: "avx512f,avx512bw,vaes,aes", register: __m512i, blocks: 4, step: 8,
    store: _mm512_storeu_si512, xor: _mm512_xor_si512,
    round: _mm512_aesenc_epi128, last_round: _mm512_aesenclast_epi128,
    broadcast: _mm512_broadcast_i32x4, counters: counters,
}

/// SHAKE256 of the concatenation of `parts`, as many bytes as `out` holds. Constant time for given lengths; wipes its
/// state, the stack below and the vector registers.
#[target_feature(enable = "avx512f,avx512vl,bmi1,bmi2")]
pub(crate) fn shake256(parts: &[&[u8]], out: &mut [u8]) {
    sponge(parts, out, |state| keccak_f1600(state));
    wipe();
}

/// Absorbs whole blocks into a state with which SHAKE256 continues. Constant time for a given length; wipes as
/// [`shake256`] does, except for the state.
#[target_feature(enable = "avx512f,avx512vl,bmi1,bmi2")]
pub(crate) fn shake256_absorb(state: &mut [u64; 25], blocks: &[u8]) {
    absorb_blocks(state, blocks, |state| keccak_f1600(state));
    wipe();
}

/// SHAKE256 of each message into the output of the same index, [`LANES`] at a time where all messages have one length,
/// and all outputs. Constant time for given lengths; wipes as [`shake256`] does.
#[target_feature(enable = "avx512f,avx512vl,bmi1,bmi2")]
pub(crate) fn shake256_xn(messages: &[&[u8]], outs: &mut [&mut [u8]]) {
    sponges::<LANES>(
        messages,
        outs,
        |states| keccak_f1600_x8(states),
        |message, out| sponge(&[message], out, |state| keccak_f1600(state)),
    );
    wipe();
}

/// Overwrites the permutations' remains in vector registers and on the stack.
#[target_feature(enable = "avx512f")]
fn wipe() {
    wipe_stack::<128>();
    // SAFETY: changes only vector registers, all declared.
    unsafe {
        asm!(
            "vzeroall",
            "vpxord zmm16, zmm16, zmm16", "vpxord zmm17, zmm17, zmm17", "vpxord zmm18, zmm18, zmm18",
            "vpxord zmm19, zmm19, zmm19", "vpxord zmm20, zmm20, zmm20", "vpxord zmm21, zmm21, zmm21",
            "vpxord zmm22, zmm22, zmm22", "vpxord zmm23, zmm23, zmm23", "vpxord zmm24, zmm24, zmm24",
            "vpxord zmm25, zmm25, zmm25", "vpxord zmm26, zmm26, zmm26", "vpxord zmm27, zmm27, zmm27",
            "vpxord zmm28, zmm28, zmm28", "vpxord zmm29, zmm29, zmm29", "vpxord zmm30, zmm30, zmm30",
            "vpxord zmm31, zmm31, zmm31",
            out("zmm0") _, out("zmm1") _, out("zmm2") _, out("zmm3") _, out("zmm4") _, out("zmm5") _,
            out("zmm6") _, out("zmm7") _, out("zmm8") _, out("zmm9") _, out("zmm10") _, out("zmm11") _,
            out("zmm12") _, out("zmm13") _, out("zmm14") _, out("zmm15") _, out("zmm16") _, out("zmm17") _,
            out("zmm18") _, out("zmm19") _, out("zmm20") _, out("zmm21") _, out("zmm22") _, out("zmm23") _,
            out("zmm24") _, out("zmm25") _, out("zmm26") _, out("zmm27") _, out("zmm28") _, out("zmm29") _,
            out("zmm30") _, out("zmm31") _,
            options(nomem, nostack, preserves_flags),
        );
    }
    wipe_general_registers();
}

#[target_feature(enable = "avx512f")]
#[inline]
fn xor3(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
    _mm512_ternarylogic_epi64::<0x96>(a, b, c)
}

#[target_feature(enable = "avx512f")]
#[inline]
fn chi(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
    _mm512_ternarylogic_epi64::<0xd2>(a, b, c)
}

#[target_feature(enable = "avx512f")]
#[inline]
fn turn<const N: i32>(a: __m512i) -> __m512i {
    _mm512_rol_epi64::<N>(a)
}

keccak_lanes! {
    name: keccak_f1600_x8, features: "avx512f", register: __m512i, lanes: 8,
    load: _mm512_loadu_si512, store: _mm512_storeu_si512, set: _mm512_set1_epi64,
    xor: _mm512_xor_si512, xor3: xor3, chi: chi, turn: turn,
}
