//! From short rows to a form, and its reduction.
#![forbid(unsafe_code)]

use crate::backend::FormLimbs;

/// Rows (x, v, e) of `nudupl`, in two's complement; x is not negative.
pub struct Rows<const H: usize> {
    /// x.
    pub x: [[u64; H]; 2],
    /// v.
    pub v: [[u64; H]; 2],
    /// e.
    pub e: [[u64; H]; 2],
    /// Whether the determinant is -1.
    pub odd: bool,
}

/// The low R limbs of x y.
#[inline(always)]
pub(crate) fn mul_low<const A: usize, const B: usize, const R: usize>(
    x: &[u64; A],
    y: &[u64; B],
) -> [u64; R] {
    let mut out = [0; R];
    for i in 0..B {
        let mut carry = 0;
        for j in 0..A {
            if i + j < R {
                (out[i + j], carry) = x[j].carrying_mul_add(y[i], out[i + j], carry);
            }
        }
        if i + A < R {
            out[i + A] = carry;
        }
    }
    out
}

/// The low R limbs of x^2: products of two different limbs once, doubled.
#[inline(always)]
fn square_low<const A: usize, const R: usize>(x: &[u64; A]) -> [u64; R] {
    let mut out = [0; R];
    for i in 0..A {
        let mut carry = 0;
        for j in i + 1..A {
            if i + j < R {
                (out[i + j], carry) = x[j].carrying_mul_add(x[i], out[i + j], carry);
            }
        }
        if i + A < R {
            out[i + A] = carry;
        }
    }
    let (mut below, mut carry) = (0, false);
    for i in 0..R {
        let (low, high) = if i / 2 < A { x[i / 2].carrying_mul(x[i / 2], 0) } else { (0, 0) };
        let twice = out[i] << 1 | below >> 63;
        below = out[i];
        (out[i], carry) = twice.carrying_add(if i % 2 == 0 { low } else { high }, carry);
    }
    out
}

/// x + y modulo 2^(64 R).
#[inline(always)]
pub(super) fn add<const R: usize>(x: &[u64; R], y: &[u64; R]) -> [u64; R] {
    let (mut out, mut carry) = ([0; R], false);
    for i in 0..R {
        (out[i], carry) = x[i].carrying_add(y[i], carry);
    }
    out
}

/// x - y modulo 2^(64 R), and whether it was below 0.
#[inline(always)]
fn sub<const R: usize>(x: &[u64; R], y: &[u64; R]) -> ([u64; R], bool) {
    let (mut out, mut borrow) = ([0; R], false);
    for i in 0..R {
        (out[i], borrow) = x[i].borrowing_sub(y[i], borrow);
    }
    (out, borrow)
}

/// x k modulo 2^(64 R).
#[inline(always)]
fn scale<const R: usize>(x: &[u64; R], k: u64) -> [u64; R] {
    let (mut out, mut carry) = ([0; R], 0);
    for i in 0..R {
        (out[i], carry) = x[i].carrying_mul(k, carry);
    }
    out
}

/// The magnitude of a number in two's complement, and its sign.
#[inline(always)]
fn magnitude<const R: usize>(x: &[u64; R]) -> ([u64; R], bool) {
    let mask = 0u64.wrapping_sub(x[R - 1] >> 63);
    let (mut out, mut carry) = ([0; R], mask & 1 != 0);
    for i in 0..R {
        (out[i], carry) = (x[i] ^ mask).carrying_add(0, carry);
    }
    (out, mask != 0)
}

/// x y of numbers in two's complement. C < 2 H.
#[inline(always)]
pub(super) fn product<const H: usize, const C: usize>(x: &[u64; H], y: &[u64; H]) -> [u64; C] {
    let mut out: [u64; C] = mul_low(x, y);
    let negative = |x: &[u64; H]| 0u64.wrapping_sub(x[H - 1] >> 63);
    let (minus_x, minus_y) = (negative(x), negative(y));
    let (mut first, mut second) = (false, false);
    for i in H..C {
        (out[i], first) = out[i].borrowing_sub(y[i - H] & minus_x, first);
        (out[i], second) = out[i].borrowing_sub(x[i - H] & minus_y, second);
    }
    out
}

/// The form of the rows' lattice, reduced to |b| <= a, or `None` if it does not fit. `b` is the squared form's. C = 2 H - 1 limbs,
/// N = C - 1.
#[inline(always)]
pub fn compose<const N: usize, const C: usize, const H: usize>(
    rows: &Rows<H>,
    b: &[u64; N],
) -> Option<FormLimbs<N, C>> {
    let ([x0, x1], [v0, v1], [e0, e1]) = (&rows.x, &rows.v, &rows.e);
    let a = add(&square_low(x0), &product(e0, v0));
    let c = add(&square_low(x1), &product(e1, v1));
    // e1 v0 = e0 v1 - det b, since det a = x0 v1 - x1 v0 and e0 v1 - e1 v0 = b (x0 v1 - x1 v0) / a.
    let half: [u64; C] = add(&mul_low(x0, x1), &product(e0, v1));
    // - det b in complement.
    let flip = if rows.odd { 0 } else { u64::MAX };
    let (mut middle, mut below, mut carry) = ([0; C], 0, !rows.odd);
    for i in 0..C {
        let limb = if i < N { b[i] } else { 0 };
        (middle[i], carry) = (half[i] << 1 | below >> 63).carrying_add(limb ^ flip, carry);
        below = half[i];
    }
    reduce(a, middle, c, rows.odd)
}

/// Steps of reduction before the general code takes over.
const STEPS: usize = 12;

/// Bits at the position of |b|'s highest 64: of b and of a.
#[inline(always)]
fn tops<const C: usize>(b: &[u64; C], a: &[u64; C]) -> (u64, u64) {
    let mut n = C;
    while n > 2 && b[n - 1] == 0 {
        n -= 1;
    }
    let shift = b[n - 1].leading_zeros();
    let top = |x: &[u64; C]| x[n - 1] << (shift & 63) | x[n - 2] >> 1 >> (63 - (shift & 63));
    (top(b), top(a))
}

/// The form (a, b, c), b in two's complement and to be negated if `flip`, reduced to |b| <= a <= c; `None` if it does
/// not fit.
#[inline(always)]
pub(crate) fn reduce<const N: usize, const C: usize>(
    mut a: [u64; C],
    b: [u64; C],
    mut c: [u64; C],
    flip: bool,
) -> Option<FormLimbs<N, C>> {
    let (mut b, mut negative) = magnitude(&b);
    negative ^= flip;
    // A form of negative discriminant is definite: both are positive unless a number did not fit.
    if (a[C - 1] | c[C - 1]) >> 63 != 0 {
        return None;
    }
    for _ in 0..STEPS {
        let (_, larger) = sub(&c, &a);
        // By conditional moves: a branch would be mispredicted half of the time.
        let mask = 0u64.wrapping_sub(u64::from(larger));
        for i in 0..C {
            let both = (a[i] ^ c[i]) & mask;
            a[i] ^= both;
            c[i] ^= both;
        }
        negative ^= larger;
        if !sub(&a, &b).1 {
            if a[N] != 0 {
                return None;
            }
            return Some(FormLimbs { a: *a.first_chunk()?, b: *b.first_chunk()?, negative, c });
        }
        // The nearest multiple of 2 a to b, or almost.
        let (high, unit) = tops(&b, &a);
        if unit >> 33 == 0 {
            return None;
        }
        let q = (high / 2 + unit / 2) / unit;
        let q = q.max(1);
        let part = scale(&a, q);
        let (rest, below) = sub(&b, &part);
        if below {
            return None;
        }
        let (after, below) = sub(&c, &scale(&rest, q));
        if below {
            return None;
        }
        c = after;
        let (after, below) = sub(&rest, &part);
        let (after, _) = if below { magnitude(&after) } else { (after, false) };
        b = after;
        negative ^= below;
    }
    None
}

/// The discriminant b^2 - 4 a c modulo 2^64 - 1, to tell whether a computation kept it.
#[inline(always)]
pub(crate) fn residue(a: &[u64], b: &[u64], c: &[u64]) -> u64 {
    let [a, b, c] = [modulo(a), modulo(b), modulo(c)];
    modulo(&[times(b, b), minus(times(times(a, c), 4))])
}

/// A number modulo 2^64 - 1.
#[inline(always)]
pub(crate) fn modulo(x: &[u64]) -> u64 {
    let (mut sum, mut carry) = (0u64, false);
    for &limb in x {
        (sum, carry) = sum.carrying_add(limb, carry);
    }
    (sum, carry) = sum.overflowing_add(u64::from(carry));
    sum += u64::from(carry);
    if sum == u64::MAX { 0 } else { sum }
}

/// -x modulo 2^64 - 1, where it may be 2^64 - 1 itself.
#[inline(always)]
pub(crate) fn minus(x: u64) -> u64 {
    !x
}

#[inline(always)]
fn times(x: u64, y: u64) -> u64 {
    let (low, high) = x.carrying_mul(y, 0);
    modulo(&[low, high])
}
