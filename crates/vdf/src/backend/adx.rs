//! The chain with MULX, shifts without flags, and the inverse's loop in assembly.

use lanework_integer::kernels::Adx;

use super::generic::nucomp;
use super::{Form512, Form1024, Form2048, Kernels, candidates, chain_kernel, one_by_one};

pub(super) static KERNELS: Kernels = Kernels {
    square512,
    square1024,
    square2048,
    compose512,
    compose1024,
    compose2048,
    multiply1024,
    worthwhile: usize::MAX,
    candidates: &candidates::adx::CANDIDATES,
};

/// Where squarings stop: three bits above a quarter of the discriminant's length, for words are better than the five for lanes.
#[must_use]
pub const fn lower(stop: usize) -> usize {
    stop.saturating_sub(2)
}

/// # Safety
/// The CPU must have BMI1, BMI2, LZCNT and ADX.
#[target_feature(enable = "bmi1,bmi2,lzcnt,adx")]
unsafe fn square512(form: &mut Form512, stop: usize, n: u64) -> u64 {
    // SAFETY: the caller's promise.
    let lane = unsafe { Adx::assume() };
    chain_kernel!(lane, form, lower(stop), n, 4 5 3 9)
}

/// # Safety
/// The CPU must have BMI1, BMI2, LZCNT and ADX.
#[target_feature(enable = "bmi1,bmi2,lzcnt,adx")]
unsafe fn square1024(form: &mut Form1024, stop: usize, n: u64) -> u64 {
    // SAFETY: the caller's promise.
    let lane = unsafe { Adx::assume() };
    chain_kernel!(lane, form, lower(stop), n, 8 9 5 13)
}

/// # Safety
/// The CPU must have BMI1, BMI2, LZCNT and ADX.
#[target_feature(enable = "bmi1,bmi2,lzcnt,adx")]
unsafe fn square2048(form: &mut Form2048, stop: usize, n: u64) -> u64 {
    // SAFETY: the caller's promise.
    let lane = unsafe { Adx::assume() };
    chain_kernel!(lane, form, lower(stop), n, 16 17 9 21)
}

/// # Safety
/// The CPU must have BMI1, BMI2, LZCNT and ADX.
#[target_feature(enable = "bmi1,bmi2,lzcnt,adx")]
pub(super) unsafe fn compose512(x: &Form512, y: &Form512, stop: usize) -> Option<Form512> {
    // SAFETY: the caller's promise.
    let lane = unsafe { Adx::assume() };
    nucomp::compose::<_, 4, 5, 3, 6, 10>(lane, x, y, stop)
}

/// # Safety
/// The CPU must have BMI1, BMI2, LZCNT and ADX.
#[target_feature(enable = "bmi1,bmi2,lzcnt,adx")]
pub(super) unsafe fn compose1024(x: &Form1024, y: &Form1024, stop: usize) -> Option<Form1024> {
    // SAFETY: the caller's promise.
    let lane = unsafe { Adx::assume() };
    nucomp::compose::<_, 8, 9, 5, 10, 14>(lane, x, y, stop)
}

/// # Safety
/// The CPU must have BMI1, BMI2, LZCNT and ADX.
#[target_feature(enable = "bmi1,bmi2,lzcnt,adx")]
pub(super) unsafe fn compose2048(x: &Form2048, y: &Form2048, stop: usize) -> Option<Form2048> {
    // SAFETY: the caller's promise.
    let lane = unsafe { Adx::assume() };
    nucomp::compose::<_, 16, 17, 9, 18, 22>(lane, x, y, stop)
}

/// # Safety
/// The CPU must have BMI1, BMI2, LZCNT and ADX.
#[target_feature(enable = "bmi1,bmi2,lzcnt,adx")]
unsafe fn multiply1024(pairs: &mut [(Form1024, Form1024)], stop: usize) -> u64 {
    // SAFETY: the caller's promise.
    one_by_one!(pairs, |x, y| unsafe { compose1024(x, y, stop) })
}
