//! The checks that every backend must pass, as functions: the tests, the command and the laboratory call the same ones. Each
//! gives a [`Row`].
//!
//! The oracle is the plain arithmetic of [`Int`], which shares no code with a lane. The tests compare it with another library.
#![forbid(unsafe_code)]

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use lanework_cpu::Cpu;
pub use lanework_cpu::check::{Depth, Row};

use crate::backend::{BACKENDS, Gcd, Gcds};
use crate::{Int, Uint};

/// Numbers that look random and are the same every time.
#[derive(Clone, Debug)]
pub struct Numbers(u64);

impl Numbers {
    /// Each seed gives its own sequence.
    #[must_use]
    pub const fn new(seed: u64) -> Numbers {
        Numbers(seed)
    }

    /// Any word.
    pub fn word(&mut self) -> u64 {
        // SplitMix64 (Steele, Lea and Flood, 2014).
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Below n.
    pub fn below(&mut self, n: usize) -> usize {
        (self.word() % n as u64) as usize
    }

    /// A magnitude of `bits` bits at most: long runs of equal bits, or plain randomness, often of full length.
    pub fn skewed<const N: usize>(&mut self, bits: usize) -> Uint<N> {
        let mut x = [0u64; N];
        let choice = self.word();
        if choice & 3 == 0 {
            x.fill_with(|| self.word());
        } else {
            // Runs end at limbs of 52 bits, of 64 bits, or anywhere.
            let unit = [52, 64, 1, 1][(choice >> 2 & 3) as usize];
            let (mut at, mut ones) = (0, choice >> 4 & 1 == 1);
            while at < 64 * N {
                let run = if unit == 1 { 1 + self.below(90) } else { unit * (1 + self.below(4)) };
                let end = (at + run).min(64 * N);
                if ones {
                    while at < end {
                        let some = (64 - at % 64).min(end - at);
                        x[at / 64] |= (u64::MAX >> (64 - some)) << (at % 64);
                        at += some;
                    }
                }
                (at, ones) = (end, !ones);
            }
            // And sometimes one flipped bit.
            if choice >> 5 & 1 == 1 {
                let at = self.below(64 * N);
                x[at / 64] ^= 1 << (at % 64);
            }
        }
        let bits = if choice >> 6 & 3 == 0 { self.below(bits + 1) } else { bits };
        let cut = |i: usize| match bits.saturating_sub(64 * i) {
            0 => 0,
            n if n < 64 => (1 << n) - 1,
            _ => u64::MAX,
        };
        (0..N).for_each(|i| x[i] &= cut(i));
        Uint::from_limbs(x)
    }

    /// [`Numbers::skewed`] of either sign.
    pub fn signed<const N: usize>(&mut self, bits: usize) -> Int<N> {
        let negative = self.word() >> 63 != 0;
        Int::new(negative, self.skewed(bits))
    }
}

/// Rows that make the reduced pair from the first one.
type Rows<const R: usize> = [[Int<R>; 2]; 2];

/// The fault of Lehmer's reduction of a >= b > 0 to `stop` bits, if any. `None` also if it gave up, which `gave_up` counts. R
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
    let mut negative = false;
    let outcome = gcd.reduce(&mut x0, &mut x1, stop, &mut |m| {
        negative ^= m.determinant() < 0;
        let row = |i: usize, rows: &Rows<R>| {
            let (f, g) = (Int::<1>::from_i64(m.f[i]), Int::<1>::from_i64(m.g[i]));
            [0, 1].map(|j| rows[0][j].times::<1, R>(&f).plus(&rows[1][j].times(&g)))
        };
        rows = [row(0, &rows), row(1, &rows)];
    });
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
    if determinant != Int::new(negative, Uint::ONE) {
        return wrong("not unimodular");
    }
    None
}

/// Euclid's algorithm as in textbooks.
fn divisor<const N: usize>(mut a: Uint<N>, mut b: Uint<N>) -> Uint<N> {
    while !b.is_zero() {
        (a, b) = (b, a.div_rem(&b).1);
    }
    a
}

/// The fault of the inverse of a modulo an odd b, times its power of two, if any. `gave_up` counts numbers whose inverse was not
/// found.
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
        // Patterns may have quotients that do not fit a window; random numbers do not.
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
    // Giving up is allowed, but it is rare on numbers like these.
    row.case(gave_up <= count / 100 + 1, || {
        format!("gave up {gave_up} of {count} reductions, {} bits", 64 * N)
    });
    row.case(without == 0, || format!("found no inverse {without} times of {count}, {} bits", 64 * N));
}

/// Both GCDs of one backend.
#[must_use]
pub fn gcds(name: &str, gcds: &Gcds, depth: Depth) -> Row {
    let count = if depth == Depth::Full { 20_000 } else { 500 };
    let mut row = Row::new("greatest common divisors and inverses", name);
    width::<4, 9, 20>(&mut row, &gcds.w256, count);
    width::<8, 13, 32>(&mut row, &gcds.w512, count);
    width::<16, 21, 56>(&mut row, &gcds.w1024, count / 4);
    width::<33, 38, 110>(&mut row, &gcds.w2112, count / 16);
    row
}

/// All checks of every backend that can run on `cpu`, and a row with the reason for each that cannot.
#[must_use]
pub fn all(cpu: &Cpu, depth: Depth) -> Vec<Row> {
    let rows = BACKENDS.iter().map(|backend| match backend.get(cpu) {
        Ok(kernels) => gcds(backend.name(), &kernels, depth),
        Err(u) => Row::unavailable("greatest common divisors and inverses", &u),
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use lanework_cpu::Settings;

    use super::*;

    #[test]
    fn every_backend_passes() {
        let settings = Settings::from_env().expect("settings");
        for row in all(&settings.cpu(), Depth::Quick) {
            if row.skipped > 0 {
                assert!(!settings.requires(&row.backend), "{} is required: {}", row.backend, row.why);
            } else {
                assert!(row.ok(), "{} on {}: {} failed: {:.600}", row.what, row.backend, row.failed, row.why);
            }
        }
    }

    #[test]
    fn a_faulty_gcd_is_noticed() {
        use crate::kernels::{Lane, Portable};
        #[derive(Clone, Copy, Default)]
        struct Wrong;
        impl Lane for Wrong {
            fn minus<const K: usize>(
                self,
                a: &[u64; K],
                b: &[u64; K],
                p: u64,
                q: u64,
                out: &mut [u64; K],
            ) -> u64 {
                let high = Portable.minus(a, b, p, q, out);
                // A bit that is wrong for one factor in 256.
                out[0] ^= u64::from(p & 0xff == 0x5a);
                high
            }
        }
        let gcd = crate::backend::of_lane::<Wrong, 8, 13>();
        let mut numbers = Numbers::new(1);
        let (mut partial, mut inverse, mut up) = (0, 0, 0);
        for _ in 0..200 {
            let (mut a, mut b): (Uint<8>, Uint<8>) = (numbers.skewed(512), numbers.skewed(511));
            a.limbs_mut()[7] |= 1 << 63;
            b.limbs_mut()[0] |= 1;
            partial += usize::from(partial_fault::<8, 13, 32>(&gcd, &a, &b, 257, &mut up).is_some());
            inverse += usize::from(inverse_fault::<8, 13, 32>(&gcd, &a, &b, &mut up).is_some());
        }
        assert!(partial > 0 && inverse + up > 0, "{partial} and {inverse} with {up} given up");
    }
}
