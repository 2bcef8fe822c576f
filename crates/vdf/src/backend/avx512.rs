//! The chain with long rows in AVX-512 IFMA lanes, one-word loops in assembly as in `adx`.

use lanework_integer::kernels::Adx;

use super::{Broad, Kernels, Middle, Narrow, adx, candidates, chain_kernel, eight};

mod forms;
mod inverse;
mod partial;
#[cfg(test)]
mod tests;

pub(super) static KERNELS: Kernels =
    Kernels { narrow, middle, broad, compose: adx::COMPOSE, candidates: &candidates::avx512::CANDIDATES };

/// # Safety
/// The CPU must have what the table of backends asks of this one.
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,avx512vbmi,avx512vbmi2,lzcnt,bmi1,bmi2,adx"
)]
unsafe fn narrow(form: &mut Narrow, stop: usize, n: u64) -> u64 {
    // SAFETY: the caller's promise.
    let lane = unsafe { Adx::assume() };
    chain_kernel!(lane, form, stop, n, 4 5 3 9)
}

/// # Safety
/// The CPU must have what the table of backends asks of this one.
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,avx512vbmi,avx512vbmi2,lzcnt,bmi1,bmi2,adx"
)]
unsafe fn middle(form: &mut Middle, stop: usize, n: u64) -> u64 {
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

/// The square but for the sign that was set aside, as in `generic::nudupl`.
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,avx512vbmi,avx512vbmi2,lzcnt,bmi1,bmi2,adx"
)]
#[inline]
fn square(lane: Adx, form: &Middle, stop: usize) -> Option<Middle> {
    let invert = |a: &_, b: &_| match inverse::invert(a, b) {
        None => lanework_integer::gcd::binary::invert::<_, 8, 13>(lane, a, b),
        some => some,
    };
    // SAFETY: this function is compiled for what they need.
    let (m, k) = unsafe { eight::multiples(form, invert)? };
    // e is at most about c / 2^stop, or c / a if there is nothing to reduce, and has to fit in the lanes.
    let least = stop.min(lanework_integer::limbs::bits(&form.a));
    if lanework_integer::limbs::bits(&form.c) > least + partial::LONGEST - 2 {
        return None;
    }
    let start = partial::Start { a: &form.a, k: &k, b: &form.b, m: &m };
    let (rows, determinant) = partial::reduce(&start, stop)?;
    forms::compose(&rows, determinant, &form.b)
}

/// # Safety
/// The CPU must have what the table of backends asks of this one.
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,avx512vbmi,avx512vbmi2,lzcnt,bmi1,bmi2,adx"
)]
unsafe fn broad(form: &mut Broad, stop: usize, n: u64) -> u64 {
    // SAFETY: the caller's promise.
    let lane = unsafe { Adx::assume() };
    chain_kernel!(lane, form, stop, n, 16 17 9 21)
}
