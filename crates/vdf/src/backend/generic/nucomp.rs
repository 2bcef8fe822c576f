//! Shanks's NUCOMP without long division: the product of two forms that are nearly reduced.
//!
//! `form::compose` has the algebra. What differs here:
//!
//! 1. The inverse and the exact divisions are modulo v1 from the bottom, so v1 has to be odd: of a, c and a - |b| + c
//!    exactly one is (if D is 1 modulo 8), and each begins a form that is equivalent to (a, b, c). In the same way the
//!    other form is replaced by one that has no prime up to 47 in common with v1, since the general code handles common
//!    divisors.
//! 2. M = (v2 r - m y) / v1 and N = (s r + c2 y) / v1 are columns beside the rows (r, y) of Euclid's algorithm from
//!    (v1, 0) and (k, 1) on. They are short at the end, so only their lower half is computed.
#![forbid(unsafe_code)]

use lanework_integer::gcd::binary;
use lanework_integer::gcd::euclid;
use lanework_integer::kernels::Lane;
use lanework_integer::limbs;

use super::columns::{Along, Columns};
use super::compose::{product as signed_product, reduce};
use super::nudupl::{divide, inverse64, quotient};
use crate::backend::FormLimbs;

/// The odd primes up to 47.
const PRIMES: [u64; 14] = [3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47];
/// Their product, of 59 bits.
const PRODUCT: u64 = product();
/// 1 / product modulo 2^64.
const PRODUCT_INVERSE: u64 = inverse(PRODUCT);
/// 1 / p modulo 2^64.
const INVERSES: [u64; 14] = inverses();
/// 2^(64 i) modulo the product.
const WEIGHTS: [u64; 18] = weights();

const fn product() -> u64 {
    let (mut out, mut i) = (1, 0);
    while i < PRIMES.len() {
        out *= PRIMES[i];
        i += 1;
    }
    out
}

/// 1 / x modulo 2^64.
const fn inverse(x: u64) -> u64 {
    let (mut out, mut round) = (x, 0);
    while round < 5 {
        out = out.wrapping_mul(2u64.wrapping_sub(x.wrapping_mul(out)));
        round += 1;
    }
    out
}

const fn inverses() -> [u64; 14] {
    let (mut out, mut i) = ([0; 14], 0);
    while i < PRIMES.len() {
        out[i] = inverse(PRIMES[i]);
        i += 1;
    }
    out
}

const fn weights() -> [u64; 18] {
    let (mut out, mut i) = ([1; 18], 1);
    while i < out.len() {
        out[i] = (((out[i - 1] as u128) << 64) % PRODUCT as u128) as u64;
        i += 1;
    }
    out
}

/// x / 2^64 modulo the product, which the same primes divide. Sums of up to 18 limbs times weights stay below 2^128.
#[inline(always)]
fn residue(x: &[u64]) -> u64 {
    let sum: u128 = x.iter().zip(&WEIGHTS).map(|(&x, &w)| u128::from(x) * u128::from(w)).sum();
    // Montgomery's reduction.
    let q = (sum as u64).wrapping_mul(PRODUCT_INVERSE);
    let less = ((u128::from(q) * u128::from(PRODUCT)) >> 64) as u64;
    (sum >> 64) as u64 % PRODUCT + PRODUCT - less
}

/// Which of the primes divide a number with this residue.
#[inline(always)]
fn divisors(x: u64) -> u32 {
    let mut out = 0;
    for i in 0..PRIMES.len() {
        out |= u32::from(x.wrapping_mul(INVERSES[i]) <= u64::MAX / PRIMES[i]) << i;
    }
    out
}

/// Residues of a, |b| and c.
struct Residues {
    a: u64,
    b: u64,
    c: u64,
}

impl Residues {
    /// The residue of the first coefficient of [`equivalent`].
    #[inline(always)]
    fn of(&self, which: usize) -> u64 {
        match which {
            0 => self.a,
            1 => self.c,
            // Residues are below twice the product, which has 59 bits.
            2 => self.a + self.c + 2 * PRODUCT - self.b,
            _ => self.a + self.c + self.b,
        }
    }
}

/// A form (a, b, c) with b in two's complement.
struct Signed<const C: usize> {
    a: [u64; C],
    b: [u64; C],
    c: [u64; C],
}

#[inline(always)]
fn negated<const C: usize>(mut x: [u64; C], negate: bool) -> [u64; C] {
    let mask = 0u64.wrapping_sub(u64::from(negate));
    let mut carry = negate;
    for limb in &mut x {
        (*limb, carry) = (*limb ^ mask).carrying_add(0, carry);
    }
    x
}

/// x + y and x - y modulo 2^(64 C).
#[inline(always)]
fn add<const C: usize>(mut x: [u64; C], y: &[u64; C]) -> [u64; C] {
    limbs::add(&mut x, y);
    x
}

#[inline(always)]
fn sub<const C: usize>(mut x: [u64; C], y: &[u64; C]) -> [u64; C] {
    limbs::sub(&mut x, y);
    x
}

/// An equivalent form that begins with a, c, a - |b| + c or a + |b| + c; c must be short of its limbs' size by 3 bits.
#[inline(always)]
fn equivalent<const N: usize, const C: usize>(form: &FormLimbs<N, C>, which: usize) -> Signed<C> {
    let widen = |x: &[u64; N]| {
        let mut out = [0; C];
        out[..N].copy_from_slice(x);
        out
    };
    let (a, b, c) = (widen(&form.a), widen(&form.b), form.c);
    match which {
        0 => Signed { a, b: negated(b, form.negative), c },
        1 => Signed { a: c, b: negated(b, !form.negative), c: a },
        // The values at (1, -1) and (1, 0) if b > 0, at (1, 1) and (-1, 0) if not.
        2 => Signed { a: sub(add(a, &c), &b), b: negated(sub(add(a, &a), &b), form.negative), c: a },
        _ => Signed { a: add(add(a, &c), &b), b: negated(add(add(a, &a), &b), !form.negative), c: a },
    }
}

/// Half of a number in two's complement.
#[inline(always)]
fn half<const C: usize>(mut x: [u64; C]) -> [u64; C] {
    let mut above = 0u64.wrapping_sub(x[C - 1] >> 63);
    for i in (0..C).rev() {
        let limb = x[i];
        x[i] = limb >> 1 | above << 63;
        above = limb;
    }
    x
}

/// The lowest limbs.
#[inline(always)]
fn low<const C: usize, const H: usize>(x: &[u64; C]) -> [u64; H] {
    core::array::from_fn(|i| x[i])
}

/// The operands of NUCOMP, in two's complement. v1 is odd, and has no prime up to 47 in common with v2.
pub(crate) struct Operands<const C: usize> {
    pub(crate) v1: [u64; C],
    pub(crate) v2: [u64; C],
    /// (b1 + b2) / 2.
    pub(crate) s: [u64; C],
    /// (b1 - b2) / 2.
    pub(crate) m: [u64; C],
    pub(crate) c2: [u64; C],
}

/// The coefficient of [`equivalent`] that is odd, if D is 1 modulo 8.
#[inline(always)]
fn odd<const N: usize, const C: usize>(form: &FormLimbs<N, C>) -> usize {
    match (form.a[0] & 1, form.c[0] & 1) {
        (1, _) => 0,
        (_, 1) => 1,
        _ => 2,
    }
}

impl<const C: usize> Operands<C> {
    /// Of a form and itself, or of its inverse and itself, so that s is not negative; and whether it is the inverse. m is 0.
    #[inline(always)]
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn of_square<const N: usize>(form: &FormLimbs<N, C>) -> Option<(Operands<C>, bool)> {
        if form.c[C - 1] >> 61 != 0 {
            return None;
        }
        let Signed { a, b, c } = equivalent(form, odd(form));
        let inverse = b[C - 1] >> 63 != 0;
        Some((Operands { v1: a, v2: a, s: negated(b, inverse), m: [0; C], c2: c }, inverse))
    }

    /// Of two forms of one discriminant, or of forms equivalent to them. `None` where a number is too long, or where all
    /// that were tried have a small divisor in common.
    #[inline(always)]
    pub(crate) fn of<const N: usize>(
        first: &FormLimbs<N, C>,
        second: &FormLimbs<N, C>,
    ) -> Option<Operands<C>> {
        if (first.c[C - 1] | second.c[C - 1]) >> 61 != 0 {
            return None;
        }
        // A first coefficient is shorter than its replacement.
        let (f1, f2) = if odd(first) != 0 && odd(second) == 0 { (second, first) } else { (first, second) };
        let f1 = equivalent(f1, odd(f1));
        let taken = divisors(residue(&f1.a));
        let mut residues = Residues { a: residue(&f2.a), b: 0, c: 0 };
        let mut which = 0;
        if divisors(residues.a) & taken != 0 {
            (residues.b, residues.c) = (residue(&f2.b), residue(&f2.c));
            which = [2, 1, 3].into_iter().find(|&which| divisors(residues.of(which)) & taken == 0)?;
        }
        let f2 = equivalent(f2, which);
        let (s, m) = (half(add(f1.b, &f2.b)), half(sub(f1.b, &f2.b)));
        Some(Operands { v1: f1.a, v2: f2.a, s, m, c2: f2.c })
    }
}

/// The product of two forms of one discriminant, reduced to |b| <= a <= c. `stop` is a quarter of the discriminant's
/// length, and a little. `None` where the general code must do it: the forms have a common divisor, or a number is
/// longer than this code can hold. C = N + 1, H = N / 2 + 1, E = C + 1, M = C + 5.
#[inline(always)]
pub(crate) fn compose<
    L: Lane,
    const N: usize,
    const C: usize,
    const H: usize,
    const E: usize,
    const M: usize,
>(
    lane: L,
    first: &FormLimbs<N, C>,
    second: &FormLimbs<N, C>,
    stop: usize,
) -> Option<FormLimbs<N, C>> {
    let Operands { v1, v2, s, m, c2 } = &Operands::of(first, second)?;
    let m = *m;

    // k = m / v2 modulo v1.
    let v1_inverse = inverse64(v1[0]);
    let inverse = binary::invert::<L, C, M>(lane, v2, v1)?;
    let negative = m[C - 1] >> 63 != 0;
    let mut size = [0; E];
    size[..C].copy_from_slice(&negated(m, negative));
    let mut k: [u64; C] = divide::<C, E, M>(&size, &inverse, v1, v1_inverse)?;
    if inverse.negative != negative {
        let mut rest = *v1;
        if limbs::sub(&mut rest, &k) {
            return None;
        }
        k = rest;
    }
    if k == [0; C] || limbs::compare(&k, v1).is_ge() {
        return None;
    }

    let short = low::<C, H>;
    let (k_low, v1_low) = (short(&k), short(v1));
    let mut along = Along::<H, 2>::new([
        [short(v2), quotient::<H, H>(&short(v2), &k_low, &short(&m), &v1_low, v1_inverse)],
        [short(s), quotient::<H, H>(&short(s), &k_low, &negated(short(c2), true), &v1_low, v1_inverse)],
    ]);
    let (mut r0, mut r1) = (*v1, k);
    euclid::reduce(lane, &mut r0, &mut r1, stop, |m| along.step(lane, m)).ok()?;
    let Columns { cofactor: y, others: [big_m, big_n] } = along.done()?;
    // Room for signs.
    if r0[H - 1] >> 61 != 0 || r0[H..].iter().any(|&x| x != 0) {
        return None;
    }
    // |M| <= (v2 r + |m| y) / v1 and |N| <= (|s| r + c2 y) / v1, in bits; they must fit, and so must the sums of four
    // products.
    let room = 64 * C - 4;
    let (r_bits, v1_bits) = (limbs::bits(&r0), limbs::bits(v1));
    let y_bits = limbs::bits(&negated(y[1], y[1][H - 1] >> 63 != 0));
    let signed = |x: &[u64; C]| limbs::bits(&negated(*x, x[C - 1] >> 63 != 0));
    let m_bits = (limbs::bits(v2) + r_bits).max(signed(&m) + y_bits) + 2;
    let n_bits = (signed(s) + r_bits).max(limbs::bits(c2) + y_bits) + 2;
    if m_bits.max(n_bits) > 64 * H - 1 + v1_bits || (r_bits + m_bits).max(y_bits + n_bits) > room + v1_bits {
        return None;
    }
    let (r0, r1) = (short(&r0), short(&r1));
    let product = signed_product::<H, C>;
    let a = add(product(&big_m[0], &r0), &product(&big_n[0], &y[0]));
    let c = add(product(&big_m[1], &r1), &product(&big_n[1], &y[1]));
    let b = add(product(&big_m[1], &r0), &product(&big_m[0], &r1));
    let b = add(b, &add(product(&big_n[0], &y[1]), &product(&big_n[1], &y[0])));
    reduce(a, b, c, along.odd)
}
