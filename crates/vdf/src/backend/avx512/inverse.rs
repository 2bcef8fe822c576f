//! The inverse modulo b: the binary algorithm with its words in general registers and its rows in IFMA lanes.
//!
//! A row is a number in signed digits of radix 2^46: 64-bit lanes that hold the digit plus 2^51, since the multiplier
//! takes 52 unsigned bits. The bias F 2^51 of a product F (x + 2^51) is known beforehand and subtracted. A lane's sum
//! is never carried through: its upper part moves up one lane with every product, and division by the window's 2^s
//! moves a part of it down again, so digits stay below 2^49.
//!
//! One number is positive and one negative, and so the difference of their sizes is a sum: matrices and cofactors have
//! no signs, and a step of the words is four instructions shorter.
//!
//! The words run ahead of the rows. A window is two runs of a fixed number of steps. A word's upper bits come from its
//! number's top, its lower bits from the bottom. Top and bottom after a window come from the rows before it, one window
//! late, so that no step waits for a row. Bottoms are exact. Tops only decide which number counts as the larger. After
//! a wrong top both numbers have the same sign; then one is negated, and the end comes later.

use core::arch::x86_64::*;

use lanework_integer::gcd::binary::Inverse;

use rows::{
    BASE, BIAS, LANES, Stored, digits, division, factor_row, factor_rows, factors, load, row, rows,
    short_window, store,
};
use words::{EXACT, FIRST, SECOND, run, sign, signed};

mod rows;
#[cfg(test)]
mod tests;
mod words;

/// Bits of a digit.
const DIGIT: u32 = 46;
/// Least shifts of a window; its matrix is scaled up if needed. After this many, the rest of a lane's sum is so small
/// that a number's digits end with the number, without endless sign digits.
const LEAST: u32 = DIGIT + 3;
/// Entries of a matrix have at most `DIGIT` bits. For the sums of tops they are moved up by this many.
const SPARE: u32 = 63 - DIGIT;
/// Bits of a cofactor, at most, so that it and its sign are in the lowest 11 limbs.
const ROOM: u32 = 700;

/// Bits of the longer number, at most, from which one register holds both: seven digits, and a bit to spare.
const SHORT: i64 = 7 * DIGIT as i64 - 4;

/// The inverse of a modulo an odd b, as `lanework_integer::gcd::binary::invert` gives it, of numbers of up to 8 limbs.
///
/// `None` if they have a common divisor, and in rare cases that the other function handles.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,avx512vbmi,lzcnt,bmi1,bmi2,adx")]
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
    let biased = |x: [__m512i; 2]| [_mm512_add_epi64(x[0], bias), _mm512_add_epi64(x[1], bias)];
    let unbias = |x: [__m512i; 2]| [_mm512_sub_epi64(x[0], bias), _mm512_sub_epi64(x[1], bias)];
    let minus = |x: [__m512i; 2]| x.map(|x| _mm512_sub_epi64(_mm512_setzero_si512(), x));
    let start = [unbias(digits(a)), minus(unbias(digits(b)))];
    let [mut x, mut y] = start.map(biased);
    let mut stored = [Stored([0; BASE + LANES]); 2];
    store(start[0], &mut stored[0]);
    store(start[1], &mut stored[1]);
    let (mut u, mut v) = ([bias; 2], [bias; 2]);
    u[0] = _mm512_mask_add_epi64(bias, 1, bias, _mm512_set1_epi64(1));

    let (mut shift, mut window, mut growth, mut wide) = (zeros, 0, 1, true);
    let last = loop {
        let length_before = exponent + 64;
        // SAFETY: the features are there.
        let (first, l) = unsafe { run::<FIRST>(high, low, EXACT - 1) };
        let mut m = first;
        // The middle: tops of 40 bits suffice, and a multiplication has room for no more.
        let (t0, t1) = first.values(high.0 >> 24, high.1 >> 24);
        // Two equal signs mean that a word was too far from its number: the window ends here.
        if ((t0 ^ t1) as i64) < 0 {
            let signs = (sign(t0), sign(t1));
            let size = (signed(t0, signs.0), signed(t1, signs.1));
            let lead = (size.0 | size.1).leading_zeros() & 63;
            let tops = (size.0 << lead, size.1 << lead);
            let l = (signed(l.0, signs.0), signed(l.1, signs.1));
            // SAFETY: the features are there.
            let (second, _) = unsafe { run::<SECOND>(tops, l, (63 - m.shift).min(EXACT - 1)) };
            m = second.after(&m);
        }
        // In one window of some hundreds, entries would be too long: take half of it, or keep its few shifts.
        let length = m.length();
        let few = length >= DIGIT;
        if few && m.shift >= DIGIT - 1 {
            m = first;
        }
        // Where words are equal and their numbers are not, a row grows without a shift.
        if few && m.size() >> DIGIT != 0 {
            return None;
        }
        // The window's end, from the rows before it.
        let at = exponent + 2;
        let (p, q) = (stored[0].top(at), stored[1].top(at));
        // The upper word of a sum has bits enough for the next run.
        let sum = |f: u64, g: u64| {
            let wide = |f: u64, p: i64| i128::from((f << SPARE) as i64) * i128::from(p);
            let t = wide(f, p).wrapping_add(wide(g, q));
            ((t >> 64) as u64, t as u64)
        };
        let ((h0, l0), (h1, l1)) = (sum(m.f0, m.g0), sum(m.f1, m.g1));
        let (p, q) = (stored[0].bottom(), stored[1].bottom());
        let bottom = |f: u64, g: u64| {
            let wide = |f: u64, (low, high): (u64, u64)| {
                let p = u128::from(f) * u128::from(low);
                p.wrapping_add(u128::from(f.wrapping_mul(high)) << 64)
            };
            let sum = wide(f, p).wrapping_add(wide(g, q));
            // A sum, since SHRD is slow on AMD's processors.
            (sum as u64 >> m.shift).wrapping_add(((sum >> 64) as u64) << 1 << (63 - m.shift))
        };
        let mut ends = (bottom(m.f0, m.g0), bottom(m.f1, m.g1));
        let signs = (sign(h0), sign(h1));
        low = (signed(ends.0, signs.0), signed(ends.1, signs.1));
        let (h0, h1) = (signed(h0, signs.0), signed(h1, signs.1));
        let mut lead = (h0 | h1).leading_zeros();
        high = (h0 << (lead & 63), h1 << (lead & 63));
        if lead == 64 {
            // Near the end numbers may shrink by more than a word at once.
            let more = (l0 | l1).leading_zeros();
            high = (l0 << (more & 63), l1 << (more & 63));
            lead += more;
        }
        exponent = (at - i64::from(m.shift + SPARE) + 64 - i64::from(lead)).max(-64);

        // The lanes.
        let end = ends.0 & ends.1 & 1 == 0;
        let up = if end || few { 0 } else { LEAST.saturating_sub(m.shift) };
        growth += if few { DIGIT } else { length };
        if growth > ROOM || m.shift == 0 && !end {
            return None;
        }
        let by = m.shift + up;
        shift += by;
        let m = factors(&m, up);
        if !end {
            wide &= length_before > SHORT;
            if few {
                short_window(&m, by, &mut stored);
                (x, y) = (biased(load(&stored[0])), biased(load(&stored[1])));
            } else if wide {
                let by = division(by);
                let next = [rows(&m, 0, x, y, &by), rows(&m, 1, x, y, &by)];
                store(next[0], &mut stored[0]);
                store(next[1], &mut stored[1]);
                [x, y] = next.map(biased);
            } else {
                let by = division(by);
                let next = [row(&m, 0, x[0], y[0], &by), row(&m, 1, x[0], y[0], &by)];
                store([next[0], _mm512_setzero_si512()], &mut stored[0]);
                store([next[1], _mm512_setzero_si512()], &mut stored[1]);
                [x[0], y[0]] = next.map(|x| _mm512_add_epi64(x, bias));
            }
        }
        if window < 7 {
            (u[0], v[0]) = (factor_row(&m, 0, u[0], v[0]), factor_row(&m, 1, u[0], v[0]));
        } else {
            (u, v) = (factor_rows(&m, 0, u, v), factor_rows(&m, 1, u, v));
        }
        window += 1;
        if signs.0 == signs.1 {
            // A wrong top: the second number and its cofactor are negated.
            let other = minus(load(&stored[1]));
            store(other, &mut stored[1]);
            y = biased(other);
            v = biased(minus(unbias(v)));
            ends.1 = ends.1.wrapping_neg();
        }
        if end {
            // The numbers are so short that the bottoms hold them whole.
            if length_before > 62 {
                return None;
            }
            break ends;
        }
    };
    // One of the numbers is 0, the other the common divisor: 1 or -1, or there is no inverse.
    let (one, zero, factor) = if last.0 & 1 != 0 { (last.0, last.1, u) } else { (last.1, last.0, v) };
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
