//! Greatest common divisors with cofactors, on fixed runs of limbs, without division of long numbers.
//!
//! * [`euclid`]: Lehmer's method. Windows of 128 bits at the top, worked on by two runs of hardware divisions, give
//!   2x2 matrices; it stops at any size, so it gives short vectors of the lattice of (x, y) with x = k y mod a.
//! * [`binary`]: the algorithm that shifts from the bottom, on words of 33 high and 31 low bits. It gives inverses modulo
//!   an odd number. It cannot stop before the divisor, but a step costs a third of a division.
#![forbid(unsafe_code)]

pub mod binary;
pub mod euclid;

/// f x\[0\] + g x\[1\] = p x\[i\] - q x\[1 - i\] for factors of opposite signs: (i, p, q).
#[inline(always)]
fn difference(f: i64, g: i64) -> (usize, u64, u64) {
    // By masks: the signs are random.
    let turned = (f | g.wrapping_neg()) >> 63;
    let both = (f ^ g) & turned;
    ((turned & 1) as usize, (f ^ both) as u64, (g ^ both).wrapping_neg() as u64)
}

/// Limbs of numbers without the ones at the top that both have as 0; at least 1.
#[inline(always)]
fn significant<const N: usize>(x: &[[u64; N]; 2], mut n: usize) -> usize {
    let zero = |n: usize| x[0][n - 1] | x[1][n - 1] == 0;
    // Mostly one fewer than before or as many, at random: without a branch.
    n -= usize::from(n > 1 && zero(n));
    while n > 1 && zero(n) {
        n -= 1;
    }
    n
}

/// Calls `$f` with arguments `$args` for a constant number of limbs, at least `$n` and at most `$most`.
macro_rules! with_limbs {
    ($n:expr, $most:ident, $f:ident $args:tt) => {
        with_limbs!(@ $n, $most, $f, $args, 2 4 6 8 10 12 16 20 24 28 32 36)
    };
    (@ $n:expr, $most:ident, $f:ident, $args:tt, $($limbs:literal)*) => {
        $(if $limbs < $most && $n <= $limbs { $f::<L, $most, $limbs> $args } else)* { $f::<L, $most, $most> $args }
    };
}
use with_limbs;
