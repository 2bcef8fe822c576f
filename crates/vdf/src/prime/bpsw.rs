//! The two tests that a number must pass.
#![forbid(unsafe_code)]

use super::montgomery::{Montgomery, fixed};
use crate::form::num::Num;

/// Calls a function with the arithmetic for the modulus's length.
macro_rules! by_length {
    ($n:expr, $test:ident) => {
        match $n.len() {
            0..=2 => $test(&Montgomery::<2>::new($n), $n),
            3..=5 => $test(&Montgomery::<5>::new($n), $n),
            6..=8 => $test(&Montgomery::<8>::new($n), $n),
            9..=16 => $test(&Montgomery::<16>::new($n), $n),
            17..=24 => $test(&Montgomery::<24>::new($n), $n),
            25..=32 => $test(&Montgomery::<32>::new($n), $n),
            _ => $test(&Montgomery::<36>::new($n), $n),
        }
    };
}

/// The strong probable-prime test to base 2, of an odd n > 2.
#[inline(always)]
pub(crate) fn strong(n: &Num) -> bool {
    by_length!(n, strong_in)
}

/// The Lucas-V test of an odd n that no prime below 2^10 divides: V(n+1) = 2 Q for the first d of 5, -7, 9, -11 ...
/// with (d / n) = -1, where P = Q = 5 for 5, and P = 1, Q = (1 - d) / 4 otherwise. Without such a d below 1,000 the
/// number is refused.
#[inline(always)]
pub(crate) fn lucas(n: &Num) -> bool {
    by_length!(n, lucas_in)
}

#[inline(always)]
fn strong_in<const N: usize>(field: &Montgomery<N>, n: &Num) -> bool {
    let less = n.sub(&Num::from_u64(1));
    let twos = (0..).find(|&i| less.bit(i)).unwrap_or(0);
    // 2^d for the odd part d of n - 1: the bits of n above its lowest ones, from the highest down. Eight are free.
    let from = twos.max(n.bits().saturating_sub(8));
    let first = (from..n.bits()).rev().fold(0, |word, i| word << 1 | usize::from(n.bit(i)));
    let mut x = fixed(&Num::from_u64(1).shift_left(64 * N + first).modulo(n));
    for i in (twos..from).rev() {
        x = field.square(&x);
        if n.bit(i) {
            x = field.double(&x);
        }
    }
    let minus_one = field.sub(&[0; N], &field.one);
    if x == field.one || x == minus_one {
        return true;
    }
    (1..twos).any(|_| {
        x = field.square(&x);
        x == minus_one
    })
}

/// The Jacobi symbol (d / n) of an odd n.
fn jacobi(d: i64, n: &Num) -> i32 {
    let low = n.magnitude()[0];
    let mut sign = if d < 0 && low & 3 == 3 { -1 } else { 1 };
    // d is odd: (|d| / n) by reciprocity, and then in machine words.
    let mut y = d.unsigned_abs();
    let mut x = remainder(n, y);
    if y & 3 == 3 && low & 3 == 3 {
        sign = -sign;
    }
    // (x / y) with y odd.
    while x != 0 {
        while x & 1 == 0 {
            x >>= 1;
            if matches!(y & 7, 3 | 5) {
                sign = -sign;
            }
        }
        core::mem::swap(&mut x, &mut y);
        if x & 3 == 3 && y & 3 == 3 {
            sign = -sign;
        }
        x %= y;
    }
    if y == 1 { sign } else { 0 }
}

fn remainder(n: &Num, by: u64) -> u64 {
    n.magnitude()
        .iter()
        .rev()
        .fold(0u64, |rest, &limb| ((u128::from(rest) << 64 | u128::from(limb)) % u128::from(by)) as u64)
}

/// With k = (n + 1) / 2, V(2k) for P and Q is Q^k times V(k) for P^2 / Q - 2 and 1. That sequence needs no powers of Q,
/// and Q^k takes one square a bit, and a multiple by the small Q where the bit is set.
#[inline(always)]
fn lucas_in<const N: usize>(field: &Montgomery<N>, n: &Num) -> bool {
    let found =
        (5..1000i64).step_by(2).map(|d| if d % 4 == 1 { d } else { -d }).find(|&d| jacobi(d, n) == -1);
    let Some(d) = found else { return false };
    let q = if d == 5 { 5 } else { (1 - d) / 4 };
    let two = field.double(&field.one);
    let p = if d == 5 {
        field.times(&field.one, 3)
    } else {
        let Some(inverse) = divide_by_small(&Num::from_limbs(false, &field.one), q, n) else { return false };
        field.sub(&fixed(&inverse), &two)
    };
    let k = n.add(&Num::from_u64(1)).half();
    // V(j), V(j+1) and Q^j from j = 1 along the bits of k.
    let (mut v, mut next) = (p, field.sub(&field.square(&p), &two));
    let mut power = field.times(&field.one, q);
    for i in (0..k.bits() - 1).rev() {
        let middle = field.sub(&field.mul(&v, &next), &p);
        power = field.square(&power);
        if k.bit(i) {
            next = field.sub(&field.square(&next), &two);
            v = middle;
            power = field.times(&power, q);
        } else {
            v = field.sub(&field.square(&v), &two);
            next = middle;
        }
    }
    field.mul(&power, &v) == field.times(&two, q)
}

/// x / q modulo n > |q|, for 0 <= x < n; `None` if q and n have a common divisor.
fn divide_by_small(x: &Num, q: i64, n: &Num) -> Option<Num> {
    let size = q.unsigned_abs();
    let (rest, step) = (remainder(x, size), remainder(n, size));
    // x + u n is a multiple of |q|.
    let u = (0..size).find(|u| (rest + u * step).is_multiple_of(size))?;
    let quotient = x.add(&n.mul(&Num::from_u64(u))).div_exact(&Num::from_u64(size));
    Some(if q < 0 { n.sub(&quotient) } else { quotient })
}
