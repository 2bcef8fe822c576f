//! Plain arithmetic on runs of 64-bit limbs, lowest first: the base of the types, and the oracle of every faster kernel.
#![forbid(unsafe_code)]

use core::cmp::Ordering;

/// Limbs up to the highest that is not 0.
#[must_use]
pub fn significant(x: &[u64]) -> usize {
    x.iter().rposition(|&limb| limb != 0).map_or(0, |i| i + 1)
}

/// Bits up to the highest that is set.
#[must_use]
pub fn bits(x: &[u64]) -> usize {
    match significant(x) {
        0 => 0,
        n => 64 * n - x[n - 1].leading_zeros() as usize,
    }
}

/// Compares numbers, whatever their lengths.
#[must_use]
pub fn compare(x: &[u64], y: &[u64]) -> Ordering {
    let (n, m) = (significant(x), significant(y));
    n.cmp(&m).then_with(|| x[..n].iter().rev().cmp(y[..m].iter().rev()))
}

/// x += y, over the length of x; returns the carry. y must not be longer than x.
#[inline]
pub fn add(x: &mut [u64], y: &[u64]) -> bool {
    let mut carry = false;
    let (low, high) = x.split_at_mut(y.len());
    for (x, &y) in low.iter_mut().zip(y) {
        (*x, carry) = x.carrying_add(y, carry);
    }
    for x in high {
        if !carry {
            return false;
        }
        (*x, carry) = x.overflowing_add(1);
    }
    carry
}

/// x -= y, over the length of x; returns the borrow. y must not be longer than x.
#[inline]
pub fn sub(x: &mut [u64], y: &[u64]) -> bool {
    let mut borrow = false;
    let (low, high) = x.split_at_mut(y.len());
    for (x, &y) in low.iter_mut().zip(y) {
        (*x, borrow) = x.borrowing_sub(y, borrow);
    }
    for x in high {
        if !borrow {
            return false;
        }
        (*x, borrow) = x.overflowing_sub(1);
    }
    borrow
}

/// x = -x in two's complement.
pub(crate) fn negate(x: &mut [u64]) {
    let mut carry = true;
    for limb in x {
        (*limb, carry) = (!*limb).overflowing_add(u64::from(carry));
    }
}

/// x += y * factor over the length of y; returns the limb carried out.
#[inline]
pub fn add_mul(x: &mut [u64], y: &[u64], factor: u64) -> u64 {
    let mut carry = 0;
    for (x, &y) in x.iter_mut().zip(y) {
        (*x, carry) = y.carrying_mul_add(factor, *x, carry);
    }
    carry
}

/// x -= y * factor over the length of y; returns the limb borrowed.
#[inline]
pub fn sub_mul(x: &mut [u64], y: &[u64], factor: u64) -> u64 {
    let mut carry = 0;
    for (x, &y) in x.iter_mut().zip(y) {
        let (low, high) = y.carrying_mul(factor, carry);
        let (difference, borrow) = x.overflowing_sub(low);
        *x = difference;
        carry = high + u64::from(borrow);
    }
    carry
}

/// out = x * y; `out` has the limbs of both together.
///
/// # Panics
/// If `out` is shorter.
pub fn mul(x: &[u64], y: &[u64], out: &mut [u64]) {
    out[..x.len() + y.len()].fill(0);
    for (i, &factor) in y.iter().enumerate() {
        out[i + x.len()] = add_mul(&mut out[i..i + x.len()], x, factor);
    }
}

/// x <<= shift, over the length of x; bits shifted out are lost.
pub fn shift_left(x: &mut [u64], shift: usize) {
    let (limbs, bits) = (shift / 64, shift % 64);
    for i in (0..x.len()).rev() {
        let at = |j: usize, x: &[u64]| i.checked_sub(limbs + j).map_or(0, |k| x[k]);
        x[i] = if bits == 0 { at(0, x) } else { at(0, x) << bits | at(1, x) >> (64 - bits) };
    }
}

/// x >>= shift, over the length of x.
pub fn shift_right(x: &mut [u64], shift: usize) {
    let (limbs, bits) = (shift / 64, shift % 64);
    for i in 0..x.len() {
        let at = |j: usize, x: &[u64]| x.get(i + limbs + j).copied().unwrap_or(0);
        x[i] = if bits == 0 { at(0, x) } else { at(0, x) >> bits | at(1, x) << (64 - bits) };
    }
}

/// Divides x by y: the quotient goes to `quotient`, the remainder stays in x. (Knuth, The Art of Computer Programming
/// 2, 4.3.1, algorithm D.)
///
/// # Panics
/// If y is 0, or `quotient` is too short for the quotient.
pub fn div_rem(x: &mut [u64], y: &[u64], quotient: &mut [u64]) {
    quotient.fill(0);
    let m = significant(y);
    assert!(m > 0, "division by zero");
    let n = significant(x);
    if n < m {
        return;
    }
    if m == 1 {
        let mut rest = 0u64;
        for i in (0..n).rev() {
            let part = u128::from(rest) << 64 | u128::from(x[i]);
            let q = (part / u128::from(y[0])) as u64;
            rest = (part % u128::from(y[0])) as u64;
            x[i] = 0;
            if q != 0 {
                quotient[i] = q;
            }
        }
        x[0] = rest;
        return;
    }
    let shift = y[m - 1].leading_zeros() as usize;
    let top = |i: usize| {
        let low = if shift == 0 || i == 0 { 0 } else { y[i - 1] >> (64 - shift) };
        y[i] << shift | low
    };
    let (d1, d0) = (top(m - 1), top(m - 2));
    for j in (0..=n - m).rev() {
        // The three limbs of x that the quotient's limb depends on, normalised as y is.
        let at = |i: usize| x.get(i).copied().unwrap_or(0);
        let limb = |i: usize| {
            let low = if shift == 0 { 0 } else { at(i - 1) >> (64 - shift) };
            at(i) << shift | low
        };
        let bottom =
            at(j + m - 2) << shift | if shift == 0 || j + m < 3 { 0 } else { at(j + m - 3) >> (64 - shift) };
        let (n2, n1) =
            (if j + m < x.len() { limb(j + m) } else { carry_out(x, j + m, shift) }, limb(j + m - 1));
        let mut q = estimate(n2, n1, bottom, d1, d0);
        if q == 0 {
            continue;
        }
        let borrowed = sub_mul(&mut x[j..j + m], &y[..m], q);
        let negative = if j + m < x.len() {
            let (rest, negative) = x[j + m].overflowing_sub(borrowed);
            x[j + m] = rest;
            negative
        } else {
            borrowed != 0
        };
        if negative {
            q -= 1;
            let carry = add(&mut x[j..j + m], &y[..m]);
            if j + m < x.len() {
                x[j + m] = x[j + m].wrapping_add(u64::from(carry));
            }
        }
        if q != 0 {
            quotient[j] = q;
        }
    }
}

/// The bits that normalising would shift out of the highest limb of x.
fn carry_out(x: &[u64], above: usize, shift: usize) -> u64 {
    if shift == 0 { 0 } else { x[above - 1] >> (64 - shift) }
}

/// A quotient limb that is right or too large by 1.
fn estimate(n2: u64, n1: u64, n0: u64, d1: u64, d0: u64) -> u64 {
    let top = u128::from(n2) << 64 | u128::from(n1);
    let (mut q, mut rest) = if n2 >= d1 {
        (u128::from(u64::MAX), top - u128::from(u64::MAX) * u128::from(d1))
    } else {
        (top / u128::from(d1), top % u128::from(d1))
    };
    while rest <= u128::from(u64::MAX) && q * u128::from(d0) > (rest << 64 | u128::from(n0)) {
        q -= 1;
        rest += u128::from(d1);
    }
    q as u64
}
