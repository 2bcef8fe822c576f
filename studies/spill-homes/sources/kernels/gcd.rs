//! The GCDs of the delay function as functions that a C caller can reach: the crate's own modules beside this file, stamped for one lane.
#![no_std]
#![allow(dead_code, missing_docs)]

mod gcd;
mod kernels;
mod library;
mod limbs;

/// Limbs of a number of 1,024 bits, and of a cofactor.
const N: usize = 16;
const M: usize = 21;

/// The greatest common divisor of two numbers, and a sum of all matrices on the way.
#[inline(always)]
fn euclid(lane: impl kernels::Lane, out: &mut [u64; N + 4], a: &[u64; N], b: &[u64; N]) {
    let (mut x0, mut x1) = if limbs::compare(a, b).is_lt() { (*b, *a) } else { (*a, *b) };
    x1[0] |= 1;
    let mut sums = [0u64; 4];
    let done = gcd::euclid::reduce(lane, &mut x0, &mut x1, 0, |m| {
        for (sum, &term) in sums.iter_mut().zip(m.f.iter().chain(&m.g)) {
            *sum = sum.rotate_left(1).wrapping_add(term as u64);
        }
    });
    out[..N].copy_from_slice(&x0);
    out[N..].copy_from_slice(&sums);
    out[N] ^= u64::from(done.is_err());
}

/// The inverse of a modulo the odd b.
#[inline(always)]
fn binary(lane: impl kernels::Lane, out: &mut [u64; M + 1], a: &[u64; N], b: &[u64; N]) {
    let mut odd = *b;
    odd[0] |= 1;
    if let Some(inverse) = gcd::binary::invert::<_, N, M>(lane, a, &odd) {
        out[..M].copy_from_slice(&inverse.magnitude);
        out[M] = inverse.limbs as u64 | u64::from(inverse.negative) << 32;
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn spill_euclid_portable(out: &mut [u64; N + 4], a: &[u64; N], b: &[u64; N]) {
    euclid(kernels::Portable, out, a, b);
}

#[unsafe(no_mangle)]
pub extern "C" fn spill_binary_portable(out: &mut [u64; M + 1], a: &[u64; N], b: &[u64; N]) {
    binary(kernels::Portable, out, a, b);
}

/// # Safety
/// The processor must have BMI1, BMI2, LZCNT and ADX.
#[unsafe(no_mangle)]
#[target_feature(enable = "bmi1,bmi2,lzcnt,adx")]
pub unsafe extern "C" fn spill_euclid_adx(out: &mut [u64; N + 4], a: &[u64; N], b: &[u64; N]) {
    // SAFETY: by this function's own contract.
    euclid(unsafe { kernels::Adx::assume() }, out, a, b);
}

/// # Safety
/// As above.
#[unsafe(no_mangle)]
#[target_feature(enable = "bmi1,bmi2,lzcnt,adx")]
pub unsafe extern "C" fn spill_binary_adx(out: &mut [u64; M + 1], a: &[u64; N], b: &[u64; N]) {
    // SAFETY: by this function's own contract.
    binary(unsafe { kernels::Adx::assume() }, out, a, b);
}
