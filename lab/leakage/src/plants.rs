//! Deliberate leaks, which a check must find. Each is a function of its own, so that a complaint can name it.
#![forbid(unsafe_code)]

use core::arch::x86_64::{
    _mm256_blendv_epi8, _mm256_cmpeq_epi8, _mm256_movemask_epi8, _mm256_set_epi64x, _mm256_set1_epi8,
    _mm256_set1_epi64x, _mm256_slli_epi16, _mm256_srli_epi64, _mm256_testz_si256,
};
use core::hint::black_box;

use crate::sys::lanes;
use crate::sys::memcheck::gather;

/// Memcheck's complaint about a branch on a secret.
pub const BRANCH: &str = "Conditional jump or move depends on uninitialised value(s)";
/// Its complaint about an address that depends on a secret.
pub const ADDRESS: &str = "Use of uninitialised value of size 8";
/// The file that frames of these functions name.
pub const FILE: &str = "plants.rs:";

static BYTES: [u8; 256] = {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        table[i] = (i * i / 3) as u8;
        i += 1;
    }
    table
};

static WORDS: [i32; 256] = {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        table[i] = (i * i) as i32;
        i += 1;
    }
    table
};

/// A jump.
#[inline(never)]
pub fn branch_on_byte(secret: &[u8]) {
    if secret[0] & 1 == 0 {
        black_box(secret);
    }
}

/// A load.
#[inline(never)]
pub fn load_by_byte(secret: &[u8]) {
    black_box(BYTES[usize::from(secret[0])]);
}

/// As many turns as the secret's first byte has bits up to its highest.
#[inline(never)]
pub fn loop_over_bits(secret: &[u8]) {
    let mut bits = secret[0];
    while bits != 0 {
        bits = black_box(bits >> 1);
    }
}

/// A comparison that ends where two strings of one length begin to differ.
#[inline(never)]
#[must_use]
pub fn compare_until_different(x: &[u8], y: &[u8]) -> bool {
    for (x, y) in x.iter().zip(y) {
        if black_box(*x) != *y {
            return false;
        }
    }
    true
}

/// A jump on what the lanes' lowest bits say: in a comparison of few secrets, half of them differ.
///
/// # Safety
/// Called from code without AVX2, this needs a CPU that has it.
#[inline(never)]
#[target_feature(enable = "avx2")]
pub fn branch_on_lanes(secret: &[u8]) {
    let lanes = _mm256_set1_epi8(secret[0] as i8);
    if _mm256_movemask_epi8(_mm256_slli_epi16::<7>(lanes)) != 0 {
        black_box(secret);
    }
}

/// Eight loads at once.
///
/// # Safety
/// Called from code without AVX2, this needs a CPU that has it.
#[inline(never)]
#[target_feature(enable = "avx2")]
pub fn load_by_lanes(secret: &[u8]) {
    black_box(gather(&WORDS, _mm256_set1_epi8(secret[0] as i8)));
}

/// As many turns as it takes to shift a secret out of every lane.
///
/// # Safety
/// Called from code without AVX2, this needs a CPU that has it.
#[inline(never)]
#[target_feature(enable = "avx2")]
pub fn loop_over_lanes(secret: &[u8]) {
    let mut lanes = _mm256_set1_epi64x(i64::from(secret[0]));
    while _mm256_testz_si256(lanes, lanes) == 0 {
        lanes = black_box(_mm256_srli_epi64::<1>(lanes));
    }
}

/// A comparison of vectors, eight bytes at a time, that ends where two strings of one length begin to differ.
///
/// # Safety
/// Called from code without AVX2, this needs a CPU that has it.
#[inline(never)]
#[target_feature(enable = "avx2")]
#[must_use]
pub fn compare_lanes_until_different(x: &[u8], y: &[u8]) -> bool {
    let lanes = |bytes: &[u8]| {
        _mm256_set_epi64x(0, 0, 0, bytes.iter().fold(0, |lanes, &byte| lanes << 8 | i64::from(byte)))
    };
    for (x, y) in x.chunks(8).zip(y.chunks(8)) {
        if _mm256_movemask_epi8(_mm256_cmpeq_epi8(lanes(x), lanes(y))) != -1 {
            return false;
        }
    }
    true
}

/// A store at an address that depends on the secret.
#[inline(never)]
pub fn store_by_byte(secret: &[u8]) {
    let mut bytes = [0u8; 256];
    bytes[usize::from(secret[0])] = 1;
    black_box(&bytes);
}

/// A division of the secret by itself, nearly.
#[inline(never)]
pub fn divide_byte(secret: &[u8]) {
    black_box(black_box(u32::from(secret[0]) << 20) / black_box(u32::from(secret[1]) + 3));
}

/// As many turns as the secret's first byte has bits set, times `turns`.
#[inline(never)]
pub fn popcount_turns(secret: &[u8], turns: u32) {
    for turn in 0..secret[0].count_ones() * turns {
        black_box(turn);
    }
}

/// Not a leak: a choice without a branch.
#[inline(never)]
pub fn select_by_byte(secret: &[u8]) {
    let mask = black_box(0u8.wrapping_sub(secret[0] & 1));
    black_box(secret[1] & mask | secret[2] & !mask);
}

/// Not a leak: a choice lane by lane.
///
/// # Safety
/// Called from code without AVX2, this needs a CPU that has it.
#[inline(never)]
#[target_feature(enable = "avx2")]
pub fn select_by_lanes(secret: &[u8]) {
    let lanes = _mm256_set1_epi8(secret[0] as i8);
    black_box(_mm256_blendv_epi8(lanes, _mm256_srli_epi64::<3>(lanes), lanes));
}

/// What a plant gives away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gives {
    /// Which way the program goes.
    Way,
    /// Which memory it touches.
    Memory,
    /// How long a division takes, perhaps.
    Division,
    /// Nothing: a twin that computes with the secret and is sound.
    Nothing,
}

/// A plant that any code can call. On a CPU without its instructions it does nothing.
#[derive(Clone, Copy, Debug)]
pub struct Plant {
    /// The tier whose instructions it uses.
    pub tier: &'static str,
    /// A part of the name of the function that leaks.
    pub function: &'static str,
    /// What it gives away.
    pub gives: Gives,
    /// Runs it on at least three secret bytes.
    pub run: fn(&[u8]),
}

/// Every plant, and the sound twins.
pub const ALL: [Plant; 17] = {
    const fn plant(tier: &'static str, function: &'static str, gives: Gives, run: fn(&[u8])) -> Plant {
        Plant { tier, function, gives, run }
    }
    [
        plant("portable", "branch_on_byte", Gives::Way, branch_on_byte),
        plant("portable", "load_by_byte", Gives::Memory, load_by_byte),
        plant("portable", "store_by_byte", Gives::Memory, store_by_byte),
        plant("portable", "loop_over_bits", Gives::Way, loop_over_bits),
        plant("portable", "divide_byte", Gives::Division, divide_byte),
        plant("portable", "select_by_byte", Gives::Nothing, select_by_byte),
        plant("portable", "compare_until_different", Gives::Way, |secret| {
            black_box(compare_until_different(secret, &[0; 16]));
        }),
        plant("avx2", "branch_on_lanes", Gives::Way, lanes::branch_on_lanes),
        plant("avx2", "load_by_lanes", Gives::Memory, lanes::load_by_lanes),
        plant("avx2", "loop_over_lanes", Gives::Way, lanes::loop_over_lanes),
        plant("avx2", "select_by_lanes", Gives::Nothing, lanes::select_by_lanes),
        plant("avx512", "branch_on_mask", Gives::Way, lanes::run_branch_on_mask),
        plant("avx512", "gather_wide", Gives::Memory, lanes::run_gather_wide),
        plant("avx512", "scatter_wide", Gives::Memory, lanes::run_scatter_wide),
        plant("avx512", "store_packed", Gives::Memory, lanes::run_store_packed),
        plant("avx512", "loop_over_wide_lanes", Gives::Way, lanes::run_loop_over_wide_lanes),
        plant("avx512", "select_by_mask", Gives::Nothing, lanes::run_select_by_mask),
    ]
};

/// Whether this CPU can run the plants of a tier.
#[must_use]
pub fn runs(tier: &str) -> bool {
    match tier {
        "avx2" => std::is_x86_feature_detected!("avx2"),
        "avx512" => lanes::has_avx512(),
        _ => true,
    }
}

/// As many turns as it takes to shift a secret out of every lane of 32. Nothing on a CPU without AVX2.
pub fn loop_lanes(secret: &[u8]) {
    lanes::loop_over_lanes(secret);
}

/// A jump on what a comparison of 64 lanes says. Nothing on a CPU without AVX-512.
pub fn branch_wide(secret: &[u8]) {
    lanes::run_branch_on_mask(secret);
}

/// Sixteen loads at once. Nothing on a CPU without AVX-512.
pub fn load_wide(secret: &[u8]) {
    lanes::run_gather_wide(secret);
}

/// As many turns as it takes to shift a secret out of every lane of 64. Nothing on a CPU without AVX-512.
pub fn loop_wide(secret: &[u8]) {
    lanes::run_loop_over_wide_lanes(secret);
}
