//! Shanks's NUDUPL on a form whose third coefficient is carried along, without any long division.
//!
//! For (a, b, c) with b > 0 (the sign is set aside: the inverse's square is the square's inverse):
//!
//! 1. m = c / a modulo b by the binary algorithm and one Montgomery reduction: b is always odd, a need not be.
//! 2. k = (a m - c) / b, exact, from the bottom. Then b k + c = a m.
//! 3. The rows (x, v, e) = (a, 0, b) and (k, 1, m) keep e = (b x + c v) / a under every unimodular matrix. Lehmer's
//!    method shrinks x to half of a's length and takes v and e along; e is small at the end, so only its lower half is
//!    computed.
//! 4. A = x0^2 + e0 v0, C = x1^2 + e1 v1, B = +-(2 x0 x1 + e0 v1 + e1 v0), and a step or two of reduction.
#![forbid(unsafe_code)]

use lanework_integer::gcd::binary::Inverse;
use lanework_integer::gcd::euclid;
use lanework_integer::kernels::Lane;
use lanework_integer::limbs;

use super::columns::Along;
use super::compose::{self, Rows};
use crate::backend::FormLimbs;

/// 1 / x modulo 2^64, x odd.
#[inline(always)]
pub(crate) fn inverse64(x: u64) -> u64 {
    // 5 bits, then twice as many with every step.
    let mut y = x.wrapping_mul(3) ^ 2;
    for _ in 0..4 {
        y = y.wrapping_mul(2u64.wrapping_sub(x.wrapping_mul(y)));
    }
    y
}

/// c v / 2^shift modulo b, where v / 2^shift is the inverse; below b or, very rarely, a little above. M > C.
#[inline(always)]
pub(super) fn divide<const N: usize, const C: usize, const M: usize>(
    c: &[u64; C],
    inverse: &Inverse<M>,
    b: &[u64; N],
    b_inverse: u64,
) -> Option<[u64; N]> {
    let words = inverse.shift.div_ceil(64) as usize;
    let shift = 64 * words as u32 - inverse.shift;
    if inverse.limbs > words || c[C - 1] >> 1 >> (63 - shift) != 0 {
        return None;
    }
    let mut scaled = [0; C];
    for i in 0..C {
        let below = if i > 0 { c[i - 1] } else { 0 };
        scaled[i] = c[i] << shift | below >> 1 >> (63 - shift);
    }
    let minus = b_inverse.wrapping_neg();
    // C + 1 limbs in use: (2^64 - 1) (c + b) and what is already there.
    let mut t = [0u64; M];
    for i in 0..words {
        let mut carry = 0;
        if i < inverse.limbs {
            let factor = inverse.magnitude[i];
            for j in 0..C {
                (t[j], carry) = scaled[j].carrying_mul_add(factor, t[j], carry);
            }
        }
        let top;
        (t[C], top) = t[C].overflowing_add(carry);
        let factor = t[0].wrapping_mul(minus);
        let (_, mut carry) = b[0].carrying_mul_add(factor, t[0], 0);
        for j in 1..N {
            (t[j - 1], carry) = b[j].carrying_mul_add(factor, t[j], carry);
        }
        let mut more;
        (t[N - 1], more) = t[N].overflowing_add(carry);
        for j in N + 1..=C {
            (t[j - 1], more) = t[j].overflowing_add(u64::from(more));
        }
        t[C] = u64::from(top) + u64::from(more);
    }
    if t[N..=C].iter().any(|&x| x != 0) {
        return None;
    }
    t.first_chunk().copied()
}

/// (a m - c) / b modulo 2^(64 N).
#[inline(always)]
pub(crate) fn quotient<const N: usize, const C: usize>(
    a: &[u64; N],
    m: &[u64; N],
    c: &[u64; C],
    b: &[u64; N],
    b_inverse: u64,
) -> [u64; N] {
    let mut t: [u64; N] = compose::mul_low::<N, N, N>(a, m);
    limbs::sub(&mut t, &c[..N]);
    let mut k = [0; N];
    for i in 0..N {
        let factor = t[i].wrapping_mul(b_inverse);
        k[i] = factor;
        let mut carry = 0;
        for j in i..N {
            let low;
            (low, carry) = b[j - i].carrying_mul(factor, carry);
            let borrow;
            (t[j], borrow) = t[j].overflowing_sub(low);
            carry += u64::from(borrow);
        }
    }
    k
}

/// Squares the form. `stop` is a quarter of the discriminant's length; `invert` is
/// `lanework_integer::gcd::binary::invert` or equivalent. Returns false and leaves the form unchanged if a number is
/// longer or shorter than this code can handle. H = N / 2 + 1, M = N + 5.
#[inline(always)]
pub(crate) fn square<L: Lane, const N: usize, const C: usize, const H: usize, const M: usize>(
    lane: L,
    form: &mut FormLimbs<N, C>,
    stop: usize,
    invert: impl FnOnce(&[u64; N], &[u64; N]) -> Option<Inverse<M>>,
) -> bool {
    match rows::<_, N, C, H>(lane, form, stop, |form| multiples(form, invert))
        .and_then(|rows| compose::compose(&rows, &form.b))
    {
        Some(mut square) => {
            square.negative ^= form.negative;
            *form = square;
            true
        }
        None => false,
    }
}

/// m = c / a modulo b and k = (a m - c) / b, or `None` if a number has an unusual length.
#[inline(always)]
pub fn multiples<const N: usize, const C: usize, const M: usize>(
    form: &FormLimbs<N, C>,
    invert: impl FnOnce(&[u64; N], &[u64; N]) -> Option<Inverse<M>>,
) -> Option<([u64; N], [u64; N])> {
    let FormLimbs { a, b, c, .. } = form;
    let b_inverse = inverse64(b[0]);
    let inverse = invert(a, b)?;
    let mut m = divide(c, &inverse, b, b_inverse)?;
    if inverse.negative {
        let mut rest = *b;
        if limbs::sub(&mut rest, &m) {
            return None;
        }
        m = rest;
    }
    let k = quotient(a, &m, c, b, b_inverse);
    // A k that is negative, or not the quotient, is not below a.
    if limbs::compare(&k, a).is_ge() || k == [0; N] {
        return None;
    }
    Some((m, k))
}

/// The rows at the end of the partial GCD, or `None` if a number has an unusual length.
#[inline(always)]
pub fn rows<L: Lane, const N: usize, const C: usize, const H: usize>(
    lane: L,
    form: &FormLimbs<N, C>,
    stop: usize,
    multiples: impl FnOnce(&FormLimbs<N, C>) -> Option<([u64; N], [u64; N])>,
) -> Option<Rows<H>> {
    let FormLimbs { a, b, c, .. } = form;
    // |e| <= x + c v / a, where v is at most 4/3 a / 2^stop, or 1 if there is nothing to reduce: it must fit H limbs. In
    // groups of 512, 1,024 and 2,048 bits every c that fits its limbs is short enough. In groups a little above half
    // of these sizes it may be too long.
    if limbs::bits(c) + 3 > stop.min(limbs::bits(a)) + 64 * H {
        return None;
    }
    let (m, mut x1) = multiples(form)?;
    let mut x0 = *a;
    let (mut e0, mut e1) = ([0; H], [0; H]);
    e0.copy_from_slice(&b[..H]);
    e1.copy_from_slice(&m[..H]);
    let mut along = Along::<H, 1>::new([[e0, e1]]);
    euclid::reduce(lane, &mut x0, &mut x1, stop, |m| along.step(lane, m)).ok()?;
    let columns = along.done()?;
    // Room for signs.
    if x0[H - 1] >> 61 != 0 || x0[H..].iter().any(|&x| x != 0) {
        return None;
    }
    Some(Rows {
        x: [*x0.first_chunk()?, *x1.first_chunk()?],
        v: columns.cofactor,
        e: columns.others[0],
        odd: along.odd,
    })
}
