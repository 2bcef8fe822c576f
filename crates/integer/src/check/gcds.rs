//! The checks of the GCDs.
#![forbid(unsafe_code)]

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use lanework_cpu::Cpu;

use super::{Depth, Numbers, Row};
use crate::backend::BACKENDS;
use crate::backend::gcd::Gcd;
use crate::gcd::euclid::Rare;
use crate::{Int, Uint};

/// Rows that make the reduced pair from the first one.
type Rows<const R: usize> = [[Int<R>; 2]; 2];

/// What is wrong with Lehmer's reduction of a >= b > 0 to `stop` bits; nothing also if it gave up, which `gave_up` counts. R
/// limbs are enough for twice N.
#[must_use]
pub fn partial_fault<const N: usize, const M: usize, const R: usize>(
    gcd: &Gcd<N, M>,
    a: &Uint<N>,
    b: &Uint<N>,
    stop: usize,
    gave_up: &mut usize,
) -> Option<String> {
    let (mut x0, mut x1) = (*a.limbs(), *b.limbs());
    let mut rows: Rows<R> = [[Int::ONE, Int::ZERO], [Int::ZERO, Int::ONE]];
    let mut odd = false;
    let outcome = gcd.reduce(&mut x0, &mut x1, stop, &mut |m| {
        odd ^= m.odd;
        let f = |k: u64, negative: bool| Int::<1>::new(negative != m.odd, Uint::from_u64(k));
        let row = |p: &Int<1>, q: &Int<1>, rows: &Rows<R>| {
            [0, 1].map(|i| rows[0][i].times::<1, R>(p).plus(&rows[1][i].times(q)))
        };
        rows = [row(&f(m.p, false), &f(m.q, true), &rows), row(&f(m.r, true), &f(m.t, false), &rows)];
    });
    if outcome == Err(Rare::Negative) {
        *gave_up += 1;
        return None;
    }
    *gave_up += usize::from(outcome.is_err());
    let wrong = |what: &str| Some(format!("{what}: {a:?} and {b:?} to {stop} bits"));
    let (wide_a, wide_b): (Int<R>, Int<R>) = (Int::new(false, a.resize()), Int::new(false, b.resize()));
    for (row, made) in rows.iter().zip([x0, x1]) {
        let sum = wide_a.times::<R, R>(&row[0]).plus(&wide_b.times(&row[1]));
        if sum != Int::new(false, Uint::from_limbs(made).resize()) {
            return wrong("the rows do not make the numbers");
        }
    }
    if outcome.is_ok() && Uint::from_limbs(x1).bits() > stop {
        return wrong("stopped early");
    }
    let determinant: Int<R> = rows[0][0].times::<R, R>(&rows[1][1]).minus(&rows[0][1].times(&rows[1][0]));
    if determinant != Int::new(odd, Uint::ONE) {
        return wrong("not unimodular");
    }
    None
}

/// Euclid's algorithm as in the books.
fn divisor<const N: usize>(mut a: Uint<N>, mut b: Uint<N>) -> Uint<N> {
    while !b.is_zero() {
        (a, b) = (b, a.div_rem(&b).1);
    }
    a
}

/// What is wrong with the inverse of a modulo an odd b, times its power of two. `gave_up` counts numbers that have an inverse but
/// none was given.
#[must_use]
pub fn inverse_fault<const N: usize, const M: usize, const R: usize>(
    gcd: &Gcd<N, M>,
    a: &Uint<N>,
    b: &Uint<N>,
    gave_up: &mut usize,
) -> Option<String> {
    let Some(inverse) = gcd.invert(a.limbs(), b.limbs()) else {
        *gave_up += usize::from(divisor(*a, *b) == Uint::ONE);
        return None;
    };
    let v = Int::new(inverse.negative, Uint::from_limbs(inverse.magnitude));
    let product: Int<R> = v.times(&Int::new(false, *a));
    let rest = product.minus(&Int::new(false, Uint::ONE << inverse.shift as usize));
    let wrong = !rest.div_floor(&Int::new(false, *b)).1.is_zero();
    wrong.then(|| format!("not the inverse: {a:?} modulo {b:?}"))
}

fn width<const N: usize, const M: usize, const R: usize>(row: &mut Row, gcd: &Gcd<N, M>, count: usize) {
    let mut numbers = Numbers::new(N as u64);
    let (mut gave_up, mut without) = (0, 0);
    for i in 0..count {
        let mut ignored = 0;
        let (mut a, mut b): (Uint<N>, Uint<N>) = (numbers.skewed(64 * N), numbers.skewed(64 * N));
        // Patterns may have quotients that do not fit a window; plain randomness has none.
        let plain = i % 4 < 2;
        if plain {
            a.limbs_mut().fill_with(|| numbers.word());
            b.limbs_mut().fill_with(|| numbers.word());
        }
        if a < b {
            core::mem::swap(&mut a, &mut b);
        }
        if b.is_zero() {
            continue;
        }
        let stop = if i % 2 == 0 { 32 * N + 1 } else { numbers.below(64 * N) };
        let fault =
            partial_fault::<N, M, R>(gcd, &a, &b, stop, if plain { &mut gave_up } else { &mut ignored });
        row.case(fault.is_none(), || fault.unwrap_or_default());
        b.limbs_mut()[0] |= 1;
        let fault = inverse_fault::<N, M, R>(gcd, &a, &b, &mut without);
        row.case(fault.is_none(), || fault.unwrap_or_default());
    }
    // To give up is allowed, but on numbers like these it is rare.
    row.case(gave_up <= count / 100 + 1, || {
        format!("gave up {gave_up} of {count} reductions, {} bits", 64 * N)
    });
    row.case(without == 0, || format!("found no inverse {without} times of {count}, {} bits", 64 * N));
}

/// Both GCDs of every backend that can run on `cpu`.
#[must_use]
pub fn gcds(cpu: &Cpu, depth: Depth) -> Vec<Row> {
    let count = if depth == Depth::Full { 20_000 } else { 500 };
    BACKENDS
        .iter()
        .filter_map(|backend| Some((backend.name(), backend.get(cpu).ok()?)))
        .map(|(name, kernels)| {
            let mut row = Row::new("greatest common divisors and inverses", name);
            width::<4, 9, 20>(&mut row, &kernels.gcds().w256, count);
            width::<8, 13, 32>(&mut row, &kernels.gcds().w512, count);
            width::<16, 21, 56>(&mut row, &kernels.gcds().w1024, count / 4);
            width::<33, 38, 110>(&mut row, &kernels.gcds().w2112, count / 16);
            row
        })
        .collect()
}
