//! Our GCDs against GMP: every backend.
#![cfg(feature = "gmp")]

use lanework_cpu::Settings;
use lanework_integer::Uint;
use lanework_integer::backend::{BACKENDS, Gcd, Gcds};
use lanework_integer::internals::check::Numbers;
use lanework_peers::gmp::{Gmp, minus, plus, shifted, small, times};

fn gcds<const N: usize, const M: usize>(name: &str, gcd: &Gcd<N, M>, count: usize) {
    let mut numbers = Numbers::new(7 + N as u64);
    let mut done = 0;
    for i in 0..count {
        let (mut a, mut b): (Uint<N>, Uint<N>) = (numbers.skewed(64 * N), numbers.skewed(64 * N));
        if a < b {
            std::mem::swap(&mut a, &mut b);
        }
        if b.is_zero() {
            continue;
        }
        let (c, d) = (Gmp::new(a.limbs(), false), Gmp::new(b.limbs(), false));
        let stop = [0, 32 * N + 1, numbers.below(64 * N)][i % 3];
        let (mut x0, mut x1) = (*a.limbs(), *b.limbs());
        let mut rows = [[small(1), small(0)], [small(0), small(1)]];
        let outcome = gcd.reduce(&mut x0, &mut x1, stop, &mut |m| {
            let f = |k: u64, negative: bool| Gmp::new(&[k], negative != m.odd);
            let row = |p: Gmp, q: Gmp, rows: &[[Gmp; 2]; 2]| {
                [0, 1].map(|i: usize| plus(&times(&rows[0][i], &p), &times(&rows[1][i], &q)))
            };
            rows = [row(f(m.p, false), f(m.q, true), &rows), row(f(m.r, true), f(m.t, false), &rows)];
        });
        if outcome.is_ok() {
            done += 1;
            for (row, made) in rows.iter().zip([x0, x1]) {
                let sum = plus(&times(&row[0], &c), &times(&row[1], &d));
                assert_eq!(sum, Gmp::new(&made, false), "{name}: {a:?} and {b:?} to {stop}");
            }
            if stop == 0 {
                assert_eq!(Gmp::new(&x0, false), c.gcd(&d), "{name}: {a:?} and {b:?}");
            }
            assert!(Uint::from_limbs(x1).bits() <= stop, "{name}: {a:?} and {b:?} to {stop}");
        }
        b.limbs_mut()[0] |= 1;
        let d = Gmp::new(b.limbs(), false);
        if let Some(inverse) = gcd.invert(a.limbs(), b.limbs()) {
            let v = Gmp::new(&inverse.magnitude, inverse.negative);
            // v / 2^shift is the inverse: v = inverse 2^shift modulo b.
            let plain = c.inverse(&d).map(|x| shifted(&x, inverse.shift as usize));
            let rest = plain.map(|x| minus(&x, &v)).and_then(|x| x.divided(&d));
            let one = b == Uint::ONE;
            assert!(one || rest.is_some_and(|(_, rest)| rest.is_zero()), "{name}: {a:?} modulo {b:?}");
        } else if N <= 8 && a.limbs()[N - 1] >> 60 != 0 && b.limbs()[N - 1] >> 60 != 0 {
            // Giving up is for numbers with a divisor in common, and rare otherwise; `lanework_integer::internals::check::gcds` counts how rare.
            done -= usize::from(c.gcd(&d) == small(1));
        }
    }
    assert!(done > count / 2, "{name}: only {done} of {count} reductions went through");
}

fn backend(name: &str, run: impl Fn(&'static Gcds)) {
    let settings = Settings::from_env().expect("settings");
    let row = BACKENDS.iter().find(|b| b.name() == name);
    match row.map(|row| row.get(&settings.cpu())) {
        Some(Ok(engine)) => run(engine.kernels()),
        other => assert!(!settings.requires(name), "{name} is required: {:?}", other.map(Result::err)),
    }
}

macro_rules! backends {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            backend(stringify!($name), |k| {
                gcds(stringify!($name), &k.w256, 40_000);
                gcds(stringify!($name), &k.w512, 40_000);
                gcds(stringify!($name), &k.w1024, 10_000);
            });
        })*
    };
}

backends!(portable adx);
