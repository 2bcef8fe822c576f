//! The chain with long rows in AVX-512 IFMA lanes, one-word loops in assembly as in `adx`.

use lanework_integer::kernels::Adx;

use super::{Broad, Kernels, Middle, Narrow, adx, candidates, chain_kernel};

pub(super) static KERNELS: Kernels =
    Kernels { narrow, middle, broad, compose: adx::COMPOSE, candidates: &candidates::avx512::CANDIDATES };

/// # Safety
/// The CPU must have what the table of backends asks of this one.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,avx512vbmi,bmi1,bmi2,adx")]
unsafe fn narrow(form: &mut Narrow, stop: usize, n: u64) -> u64 {
    // SAFETY: the caller's promise.
    let lane = unsafe { Adx::assume() };
    chain_kernel!(lane, form, stop, n, 4 5 3 9)
}

/// # Safety
/// The CPU must have what the table of backends asks of this one.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,avx512vbmi,bmi1,bmi2,adx")]
unsafe fn middle(form: &mut Middle, stop: usize, n: u64) -> u64 {
    // SAFETY: the caller's promise.
    let lane = unsafe { Adx::assume() };
    chain_kernel!(lane, form, stop, n, 8 9 5 13)
}

/// # Safety
/// The CPU must have what the table of backends asks of this one.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,avx512vbmi,bmi1,bmi2,adx")]
unsafe fn broad(form: &mut Broad, stop: usize, n: u64) -> u64 {
    // SAFETY: the caller's promise.
    let lane = unsafe { Adx::assume() };
    chain_kernel!(lane, form, stop, n, 16 17 9 21)
}
