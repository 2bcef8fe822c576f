//! Leaks on purpose: what a check has to be seen finding. Each is a function of its own, so that a complaint can name it.
#![forbid(unsafe_code)]

use core::arch::x86_64::{
    _mm256_cmpeq_epi8, _mm256_movemask_epi8, _mm256_set_epi64x, _mm256_set1_epi8, _mm256_setzero_si256,
    _mm256_srli_epi64, _mm256_testz_si256,
};
use core::hint::black_box;

use crate::sys::memcheck::gather;

/// What memcheck says to a branch on a secret.
pub const BRANCH: &str = "Conditional jump or move depends on uninitialised value(s)";
/// What it says to an address that depends on a secret.
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
        black_box(());
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

/// A jump on what a vector comparison says.
///
/// # Safety
/// Called from code without AVX2, this takes a CPU that has it.
#[inline(never)]
#[target_feature(enable = "avx2")]
pub fn branch_on_lanes(secret: &[u8]) {
    let lanes = _mm256_set1_epi8(secret[0] as i8);
    if _mm256_movemask_epi8(_mm256_cmpeq_epi8(lanes, _mm256_setzero_si256())) != 0 {
        black_box(());
    }
}

/// Eight loads at once.
///
/// # Safety
/// Called from code without AVX2, this takes a CPU that has it.
#[inline(never)]
#[target_feature(enable = "avx2")]
pub fn load_by_lanes(secret: &[u8]) {
    black_box(gather(&WORDS, _mm256_set1_epi8(secret[0] as i8)));
}

/// As many turns as it takes to shift a secret out of every lane.
///
/// # Safety
/// Called from code without AVX2, this takes a CPU that has it.
#[inline(never)]
#[target_feature(enable = "avx2")]
pub fn loop_over_lanes(secret: &[u8]) {
    let mut lanes = _mm256_set1_epi8(secret[0] as i8);
    while _mm256_testz_si256(lanes, lanes) == 0 {
        lanes = black_box(_mm256_srli_epi64::<8>(lanes));
    }
}

/// A comparison of vectors, eight bytes at a time, that ends where two strings of one length begin to differ.
///
/// # Safety
/// Called from code without AVX2, this takes a CPU that has it.
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
