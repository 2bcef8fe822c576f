//! The chain with MULX, shifts without flags, and the inverse's loop in assembly.

use lanework_integer::kernels::Adx;

use super::{Broad, Kernels, Middle, Narrow, chain_kernel};

pub(super) static KERNELS: Kernels = Kernels { narrow, middle, broad };

/// # Safety
/// The CPU must have BMI1, BMI2 and ADX.
#[target_feature(enable = "bmi1,bmi2,adx")]
unsafe fn narrow(form: &mut Narrow, stop: usize, n: u64) -> u64 {
    // SAFETY: the caller's promise.
    let lane = unsafe { Adx::assume() };
    chain_kernel!(lane, form, stop, n, 4 5 3 9)
}

/// # Safety
/// The CPU must have BMI1, BMI2 and ADX.
#[target_feature(enable = "bmi1,bmi2,adx")]
unsafe fn middle(form: &mut Middle, stop: usize, n: u64) -> u64 {
    // SAFETY: the caller's promise.
    let lane = unsafe { Adx::assume() };
    chain_kernel!(lane, form, stop, n, 8 9 5 13)
}

/// # Safety
/// The CPU must have BMI1, BMI2 and ADX.
#[target_feature(enable = "bmi1,bmi2,adx")]
unsafe fn broad(form: &mut Broad, stop: usize, n: u64) -> u64 {
    // SAFETY: the caller's promise.
    let lane = unsafe { Adx::assume() };
    chain_kernel!(lane, form, stop, n, 16 17 9 21)
}
