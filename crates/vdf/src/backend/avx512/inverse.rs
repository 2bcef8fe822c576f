//! The inverse modulo b: the binary algorithm with its words in general registers and its rows in IFMA lanes.
//!
//! A row is a number in signed digits of radix 2^46: 64-bit lanes that hold the digit plus 2^51, since the multiplier
//! takes 52 unsigned bits. The bias F 2^51 of a product F (x + 2^51) is known beforehand and subtracted. A lane's sum
//! is never carried through: its upper part moves up one lane with every product, and division by the window's 2^s
//! moves a part of it down again, so digits stay below 2^49.
//!
//! The words run ahead of the rows. A window is two runs of a fixed number of steps. A word's upper bits come from its
//! number's top, its lower bits from the bottom. Top and bottom after a window come from the rows before it, one window
//! late, so that no step waits for a row. Tops only decide which number counts as the larger: a wrong top makes a
//! number negative and delays the end. Bottoms are exact.

use core::arch::x86_64::*;

use lanework_integer::gcd::binary::Inverse;

use rows::{
    BASE, BIAS, LANES, Stored, digits, division, factor_row, factor_rows, factors, load, row, rows,
    short_window, store,
};
use words::{EXACT, FIRST, Matrix, SECOND, careful, run, turn, turn_wide};

mod rows;
#[cfg(test)]
mod tests;
mod words;

/// Bits of a digit.
const DIGIT: u32 = 46;
/// Least shifts of a window; its matrix is scaled up if needed. After this many, the rest of a lane's sum is so small
/// that a number's digits end with the number, without endless sign digits.
const LEAST: u32 = DIGIT + 3;
/// Shifts of two runs that make a window; with fewer there is a third.
const ENOUGH: u32 = 34;
/// Bits of a cofactor, at most, so that it and its sign are in the lowest 11 limbs.
const ROOM: u32 = 700;

/// Bits of the longer number, at most, from which one register holds both: seven digits, and a bit to spare.
const SHORT: i64 = 7 * DIGIT as i64 - 4;

/// The inverse of a modulo an odd b, as `lanework_integer::gcd::binary::invert` gives it, of numbers of up to 8 limbs.
///
/// `None` if they have a common divisor, and in rare cases that the other function handles.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,avx512vbmi,bmi1,bmi2,adx")]
pub(super) fn invert<const M: usize>(a: &[u64; 8], b: &[u64; 8]) -> Option<Inverse<M>> {
    let zeros = a[0].trailing_zeros();
    if b[0] & 1 == 0 || zeros == 64 {
        return None;
    }
    // Both odd from here on.
    let mut odd = [0; 8];
    for i in 0..8 {
        let above = if i < 7 { a[i + 1] } else { 0 };
        odd[i] = a[i] >> zeros | above << 1 << (63 - zeros);
    }
    let a = &odd;
    let mut n = 8;
    while n > 1 && a[n - 1] | b[n - 1] == 0 {
        n -= 1;
    }
    let lead = (a[n - 1] | b[n - 1]).leading_zeros();
    let top = |x: &[u64; 8]| {
        let below = if n > 1 { x[n - 2] } else { 0 };
        x[n - 1] << lead | below >> 1 >> (63 - lead)
    };
    // The numbers' tops are their values by 2^exponent.
    let (mut high, mut low) = ((top(a), top(b)), (a[0], b[0]));
    let mut exponent = 64 * n as i64 - 64 - i64::from(lead);

    let bias = _mm512_set1_epi64(BIAS);
    let unbias = |x: [__m512i; 2]| [_mm512_sub_epi64(x[0], bias), _mm512_sub_epi64(x[1], bias)];
    let (mut x, mut y) = (digits(a), digits(b));
    let mut stored = [Stored([0; BASE + LANES]); 2];
    store(unbias(x), &mut stored[0]);
    store(unbias(y), &mut stored[1]);
    let (mut u, mut v) = ([bias; 2], [bias; 2]);
    u[0] = _mm512_mask_add_epi64(bias, 1, bias, _mm512_set1_epi64(1));

    let (mut shift, mut window, mut growth, mut wide) = (zeros, 0, 1, true);
    loop {
        let length_before = exponent + 64;
        // SAFETY: the features are there.
        let (mut m, mut l) = unsafe { run::<FIRST>(high, low, EXACT - 1) };
        // The middle: tops of 40 bits suffice, and a multiplication has room for no more.
        let (p, q) = ((high.0 >> 24) as i64, (high.1 >> 24) as i64);
        let mut t0 = m.f0.wrapping_mul(p).wrapping_add(m.g0.wrapping_mul(q));
        let mut t1 = m.f1.wrapping_mul(p).wrapping_add(m.g1.wrapping_mul(q));
        if (t0 | t1) < 0 {
            turn(t0 < 0, &mut m.f0, &mut m.g0, &mut l.0, &mut t0);
            turn(t1 < 0, &mut m.f1, &mut m.g1, &mut l.1, &mut t1);
        }
        let first = m;
        let lead = (t0 | t1).leading_zeros() & 63;
        let tops = ((t0 as u64) << lead, (t1 as u64) << lead);
        // SAFETY: the features are there.
        let (k, mut l) = unsafe { run::<SECOND>(tops, l, (63 - m.shift).min(EXACT - 1)) };
        m = k.after(&m);
        if m.shift < ENOUGH {
            if m.size() >> 32 != 0 {
                return None;
            }
            let (p, q) = ((tops.0 >> 24) as i64, (tops.1 >> 24) as i64);
            let mut t0 = k.f0.wrapping_mul(p).wrapping_add(k.g0.wrapping_mul(q));
            let mut t1 = k.f1.wrapping_mul(p).wrapping_add(k.g1.wrapping_mul(q));
            if (t0 | t1) < 0 {
                turn(t0 < 0, &mut m.f0, &mut m.g0, &mut l.0, &mut t0);
                turn(t1 < 0, &mut m.f1, &mut m.g1, &mut l.1, &mut t1);
            }
            let lead = (t0 | t1).leading_zeros() & 63;
            let tops = ((t0 as u64) << lead, (t1 as u64) << lead);
            m = careful(tops, l, 62 - m.shift).after(&m);
        }
        // In one window of some hundreds, entries would be too long: take half of it, or keep its few shifts.
        let length = m.length();
        let few = length >= DIGIT;
        if few && m.shift >= DIGIT - 1 {
            m = first;
        }
        // The window's end, from the rows before it.
        let at = exponent + 2;
        let (p, q) = (stored[0].top(at), stored[1].top(at));
        let sum = |f: i64, g: i64, p: i64, q: i64| {
            (i128::from(f) * i128::from(p)).wrapping_add(i128::from(g) * i128::from(q))
        };
        let (mut t0, mut t1) = (sum(m.f0, m.g0, p, q), sum(m.f1, m.g1, p, q));
        let ((p0, p1), (q0, q1)) = (stored[0].bottom(), stored[1].bottom());
        let bottom = |f: i64, g: i64| {
            let low = sum(f, g, p0, q0);
            let above = ((low >> 64) as u64)
                .wrapping_add((f as u64).wrapping_mul(p1 as u64))
                .wrapping_add((g as u64).wrapping_mul(q1 as u64));
            low as u64 >> m.shift | above << 1 << (63 - m.shift)
        };
        let mut l = (bottom(m.f0, m.g0), bottom(m.f1, m.g1));
        if (t0 | t1) < 0 {
            turn_wide(t0 < 0, &mut m.f0, &mut m.g0, &mut l.0, &mut t0);
            turn_wide(t1 < 0, &mut m.f1, &mut m.g1, &mut l.1, &mut t1);
        }
        let (h0, h1) = ((t0 >> 64) as u64, (t1 >> 64) as u64);
        let mut lead = (h0 | h1).leading_zeros();
        low = l;
        if lead < 64 {
            let top = |h: u64, t: i128| h << lead | t as u64 >> 1 >> (63 - lead);
            high = (top(h0, t0), top(h1, t1));
        } else {
            // Near the end numbers may shrink by more than a word at once.
            let more = (t0 as u64 | t1 as u64).leading_zeros();
            high = ((t0 as u64) << (more & 63), (t1 as u64) << (more & 63));
            lead += more;
        }
        exponent = (at - i64::from(m.shift) + 64 - i64::from(lead)).max(-64);

        // The lanes.
        let end = low.0 & low.1 & 1 == 0;
        let up = if end || few { 0 } else { LEAST.saturating_sub(m.shift) };
        let m =
            Matrix { f0: m.f0 << up, g0: m.g0 << up, f1: m.f1 << up, g1: m.g1 << up, shift: m.shift + up };
        growth += if few { DIGIT } else { length };
        if growth > ROOM || m.shift == 0 && !end {
            return None;
        }
        shift += m.shift;
        let by = m.shift;
        let matrix = m;
        let m = factors(&m);
        if !end {
            wide &= length_before > SHORT;
            if few {
                short_window(matrix, &mut stored);
                x = load(&stored[0]).map(|x| _mm512_add_epi64(x, bias));
                y = load(&stored[1]).map(|x| _mm512_add_epi64(x, bias));
            } else if wide {
                let by = division(by);
                let next = [rows(&m, 0, x, y, &by), rows(&m, 1, x, y, &by)];
                store(next[0], &mut stored[0]);
                store(next[1], &mut stored[1]);
                x = next[0].map(|x| _mm512_add_epi64(x, bias));
                y = next[1].map(|x| _mm512_add_epi64(x, bias));
            } else {
                let by = division(by);
                let next = [row(&m, 0, x[0], y[0], &by), row(&m, 1, x[0], y[0], &by)];
                store([next[0], _mm512_setzero_si512()], &mut stored[0]);
                store([next[1], _mm512_setzero_si512()], &mut stored[1]);
                x[0] = _mm512_add_epi64(next[0], bias);
                y[0] = _mm512_add_epi64(next[1], bias);
            }
        }
        if window < 7 {
            (u[0], v[0]) = (factor_row(&m, 0, u[0], v[0]), factor_row(&m, 1, u[0], v[0]));
        } else {
            (u, v) = (factor_rows(&m, 0, u, v), factor_rows(&m, 1, u, v));
        }
        window += 1;
        if end {
            // The numbers are so short that the bottoms hold them whole.
            if length_before > 62 {
                return None;
            }
            break;
        }
    }
    // One of the numbers is 0, the other the common divisor: 1 or -1, or there is no inverse.
    let (one, zero, factor) = if low.0 & 1 != 0 { (low.0, low.1, u) } else { (low.1, low.0, v) };
    let negative = one == u64::MAX;
    if zero != 0 || one != 1 && !negative {
        return None;
    }
    let mut digits = Stored([0; BASE + LANES]);
    store(unbias(factor), &mut digits);
    let (mut magnitude, mut carry) = ([0; M], 0i128);
    let (mut next, mut have) = (0, 0);
    for &digit in &digits.0[BASE..] {
        carry += i128::from(digit) << have;
        have += DIGIT;
        if have >= 64 {
            magnitude[next] = carry as u64;
            carry >>= 64;
            (next, have) = (next + 1, have - 64);
        }
    }
    let minus = magnitude[10] >> 63 != 0;
    if minus {
        let mut carry = true;
        for limb in &mut magnitude[..11] {
            (*limb, carry) = (!*limb).overflowing_add(u64::from(carry));
        }
    }
    // A multiple of 2^64, so that dividing by it takes no shift.
    let more = shift.wrapping_neg() & 63;
    for i in (0..12).rev() {
        let below = if i > 0 { magnitude[i - 1] } else { 0 };
        magnitude[i] = magnitude[i] << more | below >> 1 >> (63 - more);
    }
    shift += more;
    let limbs = if magnitude[10] | magnitude[11] == 0 { 10 } else { 12 };
    Some(Inverse { magnitude, limbs, negative: minus ^ negative, shift })
}
