//! The bodies of the operations on 64-bit limbs. N limbs are an operand, W a double-width number; words above are 0.
#![forbid(unsafe_code)]

use super::*;

/// The words of a number or sum as one run.
macro_rules! words {
    ($x:expr) => {
        $x.words.as_flattened()
    };
    (mut $x:expr) => {
        $x.words.as_flattened_mut()
    };
}

#[inline(always)]
pub(crate) fn read<const V: usize>(from: &[u64], negative: bool, out: &mut Number<V>) {
    let (low, high) = words!(mut out).split_at_mut(from.len());
    low.copy_from_slice(from);
    high.fill(0);
    out.radix = 64;
    out.negative = negative && !out.is_zero();
}

#[inline(always)]
pub(crate) fn write<const V: usize>(x: &Number<V>, out: &mut [u64]) -> usize {
    out.copy_from_slice(&words!(x)[..out.len()]);
    limbs::significant(out)
}

/// Sets sign and format, and clears the words from `from` on.
#[inline(always)]
fn finish<const V: usize>(out: &mut Number<V>, from: usize, negative: bool) {
    words!(mut out)[from..].fill(0);
    out.radix = 64;
    out.negative = negative && !out.is_zero();
}

/// x += y + carry over both, which have the same length.
#[inline(always)]
fn add_rows(x: &mut [u64], y: &[u64]) -> bool {
    let mut carry = false;
    for (x, &y) in x.iter_mut().zip(y) {
        (*x, carry) = x.carrying_add(y, carry);
    }
    carry
}

#[inline(always)]
fn sub_rows(x: &mut [u64], y: &[u64]) -> bool {
    let mut borrow = false;
    for (x, &y) in x.iter_mut().zip(y) {
        (*x, borrow) = x.borrowing_sub(y, borrow);
    }
    borrow
}

/// x = -x modulo its length, if `really`.
#[inline(always)]
fn negate_if(x: &mut [u64], really: bool) {
    let mask = 0u64.wrapping_sub(u64::from(really));
    let mut carry = really;
    for x in x {
        (*x, carry) = (*x ^ mask).overflowing_add(u64::from(carry));
    }
}

#[inline(always)]
pub(crate) fn add<const V: usize, const N: usize>(
    x: &Number<V>,
    y: &Number<V>,
    minus: bool,
    out: &mut Number<V>,
) -> bool {
    let (p, q) = (x.negative, y.negative != minus);
    words!(mut out)[..N].copy_from_slice(&words!(x)[..N]);
    let (sum, y) = (&mut words!(mut out)[..N], &words!(y)[..N]);
    let (fits, negative) = if p == q {
        (!add_rows(sum, y), p)
    } else {
        let below = sub_rows(sum, y);
        negate_if(sum, below);
        (true, p != below)
    };
    finish(out, N, negative);
    fits
}

#[inline(always)]
fn product<L: Rows>(lane: L, x: &[u64], y: &[u64], out: &mut [u64]) {
    let n = x.len();
    out[..n].fill(0);
    for (i, &factor) in y.iter().enumerate() {
        out[i + n] = lane.add_mul(&mut out[i..i + n], x, factor);
    }
}

#[inline(always)]
pub(crate) fn mul<L: Rows, const V: usize, const D: usize, const N: usize>(
    lane: L,
    x: &Number<V>,
    y: &Number<V>,
    out: &mut Number<D>,
) {
    product(lane, &words!(x)[..N], &words!(y)[..N], &mut words!(mut out)[..2 * N]);
    finish(out, 2 * N, x.negative != y.negative);
}

#[inline(always)]
pub(crate) fn square<L: Rows, const V: usize, const D: usize, const N: usize>(
    lane: L,
    x: &Number<V>,
    out: &mut Number<D>,
) {
    let x = &words!(x)[..N];
    let square = &mut words!(mut out)[..2 * N];
    // The products of different limbs, then all of them twice, then the squares of limbs.
    square[..N].fill(0);
    for i in 0..N {
        square[i + N] = lane.add_mul(&mut square[2 * i + 1..i + N], &x[i + 1..], x[i]);
    }
    let (mut last, mut carry) = (0, false);
    for (pair, &x) in square.chunks_exact_mut(2).zip(x) {
        let (low, high) = x.carrying_mul(x, 0);
        let (twice_low, twice_high) = (pair[0] << 1 | last >> 63, pair[1] << 1 | pair[0] >> 63);
        last = pair[1];
        (pair[0], carry) = twice_low.carrying_add(low, carry);
        (pair[1], carry) = twice_high.carrying_add(high, carry);
    }
    finish(out, 2 * N, false);
}

/// x += 1 or x -= 1 at its lowest limb, if `carry`; returns the carry out.
#[inline(always)]
fn ripple(x: &mut [u64], mut carry: u64, minus: bool) -> bool {
    let mut over = carry != 0;
    for x in x {
        if carry == 0 {
            return false;
        }
        (*x, over) = if minus { x.overflowing_sub(carry) } else { x.overflowing_add(carry) };
        carry = u64::from(over);
    }
    over
}

#[inline(always)]
pub(crate) fn div_exact<L: Rows, const V: usize, const D: usize, const N: usize, const W: usize>(
    lane: L,
    x: &Number<D>,
    d: &Number<V>,
    out: &mut Number<V>,
) -> bool {
    let (mut rest, mut divisor) = (*x, *d);
    let (r, m) = (&mut words!(mut rest)[..W], &mut words!(mut divisor)[..N]);
    let zeros = |x: &[u64]| x.iter().position(|&x| x != 0).map(|i| 64 * i + x[i].trailing_zeros() as usize);
    let shift = zeros(m).unwrap_or(0);
    if zeros(r).is_some_and(|z| z < shift) {
        return false;
    }
    if shift != 0 {
        limbs::shift_right(r, shift);
        limbs::shift_right(m, shift);
    }
    // From the bottom, and with -1/m, so that rows are added: the digits are those of the quotient's negative.
    let factor = word_inverse(m[0]).wrapping_neg();
    let mut quotient = [[0u64; 8]; V];
    let quotient = &mut quotient.as_flattened_mut()[..N];
    let mut over = false;
    for i in 0..N {
        let q = r[i].wrapping_mul(factor);
        quotient[i] = q;
        let carry = lane.add_mul(&mut r[i..i + N], m, q);
        over |= ripple(&mut r[i + N..], carry, false);
    }
    // x + m q' is a multiple of 2^(64 N), and x = m (2^(64 N) - q') if the multiple is m, and 0 if both are 0.
    let zero = quotient.iter().all(|&q| q == 0);
    let high = &r[N..];
    let same = if zero {
        high.iter().all(|&x| x == 0)
    } else {
        high[..N] == *m && high[N..].iter().all(|&x| x == 0)
    };
    negate_if(quotient, true);
    words!(mut out)[..N].copy_from_slice(quotient);
    finish(out, N, x.negative != d.negative);
    same && !over
}

#[inline(always)]
pub(crate) fn reduce<L: Rows, const V: usize, const D: usize, const N: usize>(
    lane: L,
    x: &Number<D>,
    m: &Modulus<V>,
    out: &mut Number<V>,
) {
    let mut rest = *x;
    // A number in the range has no more limbs; a carry out of them is kept separately.
    let (r, modulus) = (&mut words!(mut rest)[..2 * N], &words!(m.value)[..N]);
    let mut over = false;
    for i in 0..N {
        let q = r[i].wrapping_mul(m.factor);
        let carry = lane.add_mul(&mut r[i..i + N], modulus, q);
        over |= ripple(&mut r[i + N..], carry, false);
    }
    // The high half is below 2 m; less m once, if that is not below 0.
    let high = &r[N..2 * N];
    let less = words!(mut out);
    less[..N].copy_from_slice(high);
    let borrow = sub_rows(&mut less[..N], modulus);
    if borrow && !over {
        less[..N].copy_from_slice(high);
    }
    finish(out, N, false);
    if x.negative && !out.is_zero() {
        let rest = &mut words!(mut out)[..N];
        sub_rows(rest, modulus);
        negate_if(rest, true);
    }
}

#[inline(always)]
pub(crate) fn shift_left<const V: usize, const N: usize>(x: &Number<V>, k: usize, out: &mut Number<V>) {
    *out = *x;
    limbs::shift_left(&mut words!(mut out)[..N], k);
    finish(out, N, x.negative);
}

#[inline(always)]
pub(crate) fn shift_right<const V: usize, const N: usize>(x: &Number<V>, k: usize, out: &mut Number<V>) {
    *out = *x;
    limbs::shift_right(&mut words!(mut out)[..N], k);
    finish(out, N, x.negative);
}

#[inline(always)]
pub(crate) fn compare<const V: usize>(x: &Number<V>, y: &Number<V>) -> Ordering {
    let magnitudes = || words!(x).iter().rev().cmp(words!(y).iter().rev());
    match (x.negative, y.negative) {
        (false, false) => magnitudes(),
        (true, true) => magnitudes().reverse(),
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
    }
}

#[inline(always)]
pub(crate) fn apply<L: Rows, const V: usize, const N: usize>(
    lane: L,
    x: &[Number<V>; 2],
    m: &Matrix,
    out: &mut [Number<V>; 2],
) -> bool {
    let mut fits = true;
    let (a, b) = (
        words!(x[0]).first_chunk::<N>().expect("N words"),
        words!(x[1]).first_chunk::<N>().expect("N words"),
    );
    for (row, out) in m.iter().zip(out) {
        let (p, q) = (row[0].unsigned_abs(), row[1].unsigned_abs());
        let (s, t) = (x[0].negative != (row[0] < 0), x[1].negative != (row[1] < 0));
        let rest: &mut [u64; N] = words!(mut out).first_chunk_mut().expect("N words");
        let (high, negative) = if s == t {
            (lane.plus(a, b, p, q, rest), s)
        } else {
            let high = lane.minus(a, b, p, q, rest);
            let below = high >> 63 != 0;
            negate_if(rest, below);
            // Of -1 and rows that were not 0 nothing is left above.
            let carried = below && rest.iter().all(|&x| x == 0);
            (if below { (!high).wrapping_add(u64::from(carried)) } else { high }, s != below)
        };
        fits &= high == 0;
        finish(out, N, negative);
    }
    fits
}

/// sum += x or sum -= x, where x has at most W limbs.
#[inline(always)]
fn accumulate<const W: usize>(sum: &mut [u64], x: &[u64], minus: bool) {
    let (low, high) = sum[..=W].split_at_mut(x.len());
    let carry = if minus { sub_rows(low, x) } else { add_rows(low, x) };
    ripple(high, u64::from(carry), minus);
}

#[inline(always)]
pub(crate) fn add_product<L: Rows, const V: usize, const D: usize, const N: usize, const W: usize>(
    lane: L,
    sum: &mut Sum<D>,
    x: &Number<V>,
    y: &Number<V>,
    minus: bool,
) {
    let mut out = [[0u64; 8]; D];
    let out = &mut out.as_flattened_mut()[..2 * N];
    product(lane, &words!(x)[..N], &words!(y)[..N], out);
    accumulate::<W>(words!(mut sum), out, (x.negative != y.negative) != minus);
}

#[inline(always)]
pub(crate) fn add_wide<const D: usize, const W: usize>(sum: &mut Sum<D>, x: &Number<D>, minus: bool) {
    accumulate::<W>(words!(mut sum), &words!(x)[..W], x.negative != minus);
}

#[inline(always)]
pub(crate) fn settle<const D: usize, const W: usize>(sum: &Sum<D>, out: &mut Number<D>) -> bool {
    out.words = sum.words;
    let rest = &mut words!(mut out)[..=W];
    let negative = rest[W] >> 63 != 0;
    negate_if(rest, negative);
    let fits = rest[W] == 0;
    finish(out, W, negative);
    fits
}
