//! The chain with MULX, shifts without flags, and the inverse's loop in assembly.

use lanework_integer::gcd::binary::{self, Inverse};
use lanework_integer::kernels::Adx;

use super::generic::nucomp;
use super::generic::nudupl::square_with;
use super::{
    Broad, Compose, Kernels, Middle, Narrow, Phase, Tally, candidates, chain_kernel, eight, phases_kernel,
};

pub(super) static KERNELS: Kernels =
    Kernels { narrow, middle, broad, compose: COMPOSE, phases, candidates: &candidates::adx::CANDIDATES };

pub(super) const COMPOSE: Compose =
    Compose { narrow: compose_narrow, middle: compose_middle, broad: compose_broad };

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
    let mut done = 0;
    while done < n {
        let invert = |a: &_, b: &_| lanework_integer::gcd::binary::invert(lane, a, b);
        // SAFETY: the caller's promise.
        let multiples = |form: &_| unsafe { eight::multiples(form, invert) };
        if !square_with::<_, 8, 9, 5>(lane, form, stop, multiples) {
            break;
        }
        done += 1;
    }
    done
}

/// # Safety
/// The CPU must have BMI1, BMI2 and ADX.
#[target_feature(enable = "bmi1,bmi2,adx")]
unsafe fn broad(form: &mut Broad, stop: usize, n: u64) -> u64 {
    // SAFETY: the caller's promise.
    let lane = unsafe { Adx::assume() };
    chain_kernel!(lane, form, stop, n, 16 17 9 21)
}

/// # Safety
/// The CPU must have BMI1, BMI2 and ADX.
#[target_feature(enable = "bmi1,bmi2,adx")]
unsafe fn phases(forms: &[Middle], stop: usize, upto: Phase) -> Tally {
    // SAFETY: the caller's promise.
    let lane = unsafe { Adx::assume() };
    let invert = |a: &_, b: &_| binary::invert(lane, a, b);
    // SAFETY: the caller's promise.
    let multiples = |form: &_| unsafe { eight::multiples(form, invert) };
    phases_kernel!(lane, forms, stop, upto, invert, multiples)
}

/// # Safety
/// The CPU must have BMI1, BMI2 and ADX.
#[target_feature(enable = "bmi1,bmi2,adx")]
unsafe fn compose_narrow(x: &Narrow, y: &Narrow, stop: usize) -> Option<Narrow> {
    // SAFETY: the caller's promise.
    let lane = unsafe { Adx::assume() };
    nucomp::compose::<_, 4, 5, 3, 6, 10>(lane, x, y, stop)
}

/// # Safety
/// The CPU must have BMI1, BMI2 and ADX.
#[target_feature(enable = "bmi1,bmi2,adx")]
unsafe fn compose_middle(x: &Middle, y: &Middle, stop: usize) -> Option<Middle> {
    // SAFETY: the caller's promise.
    let lane = unsafe { Adx::assume() };
    nucomp::compose::<_, 8, 9, 5, 10, 14>(lane, x, y, stop)
}

/// # Safety
/// The CPU must have BMI1, BMI2 and ADX.
#[target_feature(enable = "bmi1,bmi2,adx")]
unsafe fn compose_broad(x: &Broad, y: &Broad, stop: usize) -> Option<Broad> {
    // SAFETY: the caller's promise.
    let lane = unsafe { Adx::assume() };
    nucomp::compose::<_, 16, 17, 9, 18, 22>(lane, x, y, stop)
}
