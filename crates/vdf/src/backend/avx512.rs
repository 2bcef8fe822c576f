//! The chain with long rows in AVX-512 IFMA lanes, one-word loops in assembly as in `adx`.

use lanework_integer::gcd::binary::{self, Inverse};
use lanework_integer::kernels::Adx;

pub use multiples::multiples;

use super::{Form512, Form1024, Form2048, Kernels, adx, candidates, chain_kernel};

mod batch;
mod forms;
mod inverse;
mod multiples;
mod partial;
#[cfg(test)]
mod tests;

pub(super) static KERNELS: Kernels = Kernels {
    square512,
    square1024,
    square2048,
    compose512: adx::compose512,
    compose1024: adx::compose1024,
    compose2048: adx::compose2048,
    multiply1024: batch::multiply,
    worthwhile: 4,
    candidates: &candidates::avx512::CANDIDATES,
};

/// # Safety
/// The CPU must have the features that the table of backends lists for this one.
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,avx512vbmi,avx512vbmi2,lzcnt,bmi1,bmi2,adx"
)]
unsafe fn square512(form: &mut Form512, stop: usize, n: u64) -> u64 {
    // SAFETY: the caller's promise.
    let lane = unsafe { Adx::assume() };
    chain_kernel!(lane, form, stop, n, 4 5 3 9)
}

/// # Safety
/// The CPU must have the features that the table of backends lists for this one.
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,avx512vbmi,avx512vbmi2,lzcnt,bmi1,bmi2,adx"
)]
unsafe fn square1024(form: &mut Form1024, stop: usize, n: u64) -> u64 {
    // SAFETY: the caller's promise.
    let lane = unsafe { Adx::assume() };
    let mut done = 0;
    while done < n {
        let Some(mut square) = square(lane, form, stop) else { break };
        square.negative ^= form.negative;
        *form = square;
        done += 1;
    }
    done
}

/// The inverse: by the code in lanes if that finds one, else by `binary::invert`.
///
/// # Safety
/// The CPU must have the features that are enabled here.
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,avx512vbmi,avx512vbmi2,lzcnt,bmi1,bmi2,adx"
)]
#[inline]
pub fn invert(lane: Adx, a: &[u64; 8], b: &[u64; 8]) -> Option<Inverse<13>> {
    match inverse::invert::<13>(a, b) {
        None => binary::invert::<_, 8, 13>(lane, a, b),
        some => some,
    }
}

/// The rows at the end of the partial GCD, and the determinant of their matrix.
///
/// # Safety
/// The CPU must have the features that are enabled here.
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,avx512vbmi,avx512vbmi2,lzcnt,bmi1,bmi2,adx"
)]
#[inline]
pub fn rows(lane: Adx, form: &Form1024, stop: usize) -> Option<(partial::Rows, i64)> {
    // SAFETY: this function is compiled for the features that they need.
    let (m, k) = unsafe { multiples(form, |a, b| invert(lane, a, b))? };
    // e is at most about c / 2^stop, or c / a if there is nothing to reduce, and has to fit in the lanes.
    let least = stop.min(lanework_integer::limbs::bits(&form.a));
    if lanework_integer::limbs::bits(&form.c) > least + partial::LONGEST - 2 {
        return None;
    }
    partial::reduce(&partial::Start { a: &form.a, k: &k, b: &form.b, m: &m }, stop)
}

/// The square without the sign that was set aside, as in `generic::nudupl`.
///
/// # Safety
/// The CPU must have the features that are enabled here.
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,avx512vbmi,avx512vbmi2,lzcnt,bmi1,bmi2,adx"
)]
#[inline]
pub fn square(lane: Adx, form: &Form1024, stop: usize) -> Option<Form1024> {
    let (rows, determinant) = rows(lane, form, stop)?;
    forms::compose(&rows, determinant, &form.b)
}

/// # Safety
/// The CPU must have the features that the table of backends lists for this one.
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,avx512vbmi,avx512vbmi2,lzcnt,bmi1,bmi2,adx"
)]
unsafe fn square2048(form: &mut Form2048, stop: usize, n: u64) -> u64 {
    // SAFETY: the caller's promise.
    let lane = unsafe { Adx::assume() };
    chain_kernel!(lane, form, stop, n, 16 17 9 21)
}
