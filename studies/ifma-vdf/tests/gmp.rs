//! The arithmetic against GMP: every operation of every backend on a million skewed cases.
#![cfg(feature = "peers")]

use lanework_cpu::Settings;
use lanework_integer::Int;
use lanework_integer::Uint;
use lanework_integer::internals::check::Numbers;
use lanework_peers::gmp::{Gmp, minus, plus, shifted, small, times};
use study_ifma_vdf::arithmetic::{Arithmetic, BACKENDS, Engine, Kernels, Number};

fn gmp<const R: usize>(x: &Int<R>) -> Gmp {
    Gmp::new(x.magnitude().limbs(), x.is_negative())
}

fn read<const V: usize, const D: usize>(ops: &Arithmetic<V, D>, x: &Number<V>) -> Gmp {
    let mut limbs = [0; 33];
    let n = ops.write(x, &mut limbs);
    Gmp::new(&limbs[..n], x.is_negative())
}

fn read_wide<const V: usize, const D: usize>(ops: &Arithmetic<V, D>, x: &Number<D>) -> Gmp {
    let mut limbs = [0; 66];
    let n = ops.write_wide(x, &mut limbs);
    Gmp::new(&limbs[..n], x.is_negative())
}

/// The operation on x and y that differs from GMP's on c and d, if one does.
fn difference<const V: usize, const D: usize, const R: usize>(
    ops: &Arithmetic<V, D>,
    (x, y): (&Int<R>, &Int<R>),
    (c, d): (&Gmp, &Gmp),
    word: u64,
) -> Option<&'static str> {
    let bits = ops.bits();
    let (Some(a), Some(b)) = (ops.number(x), ops.number(y)) else { return Some("reading") };
    let mut out = ops.zero();
    let fits = ops.add(&a, &b, &mut out);
    let sum = plus(c, d);
    if fits != (sum.bits() <= bits) || fits && read(ops, &out) != sum {
        return Some("the sum");
    }
    let fits = ops.sub(&a, &b, &mut out);
    let rest = minus(c, d);
    if fits != (rest.bits() <= bits) || fits && read(ops, &out) != rest {
        return Some("the difference");
    }
    if ops.compare(&a, &b) != c.cmp(d) {
        return Some("the order");
    }
    let (mut product, mut square) = (ops.wide_zero(), ops.wide_zero());
    ops.mul(&a, &b, &mut product);
    ops.square(&a, &mut square);
    let (cd, cc) = (times(c, d), times(c, c));
    if read_wide(ops, &product) != cd {
        return Some("the product");
    }
    if read_wide(ops, &square) != cc {
        return Some("the square");
    }
    // A square divided by another number is hardly ever exact; a product is.
    for number in [&product, &square] {
        let value = read_wide(ops, number);
        let expected = value.div_exact(d).filter(|q| q.bits() <= bits);
        let exact = ops.div_exact(number, &b, &mut out);
        if exact.then(|| read(ops, &out)) != expected {
            return Some("an exact quotient");
        }
    }
    if let (Some(modulus), Some((_, rest))) = (ops.modulus(&b), c.divided(d)) {
        let mut number = ops.zero();
        if !ops.read(&rest.limbs(), rest.is_negative(), &mut number) {
            return Some("reading a remainder");
        }
        ops.mul(&a, &number, &mut product);
        ops.reduce(&product, &modulus, &mut out);
        let out = read(ops, &out);
        let mut m = d.clone();
        if m.is_negative() {
            m = minus(&Gmp::default(), &m);
        }
        let back = minus(&shifted(&out, ops.montgomery() as usize), &read_wide(ops, &product));
        let whole = back.divided(&m).is_some_and(|(_, rest)| rest.is_zero());
        if out.is_negative() || out >= m || !whole {
            return Some("Montgomery's reduction");
        }
    }
    let count = word as usize % (bits + 70);
    ops.shift_left(&a, count, &mut out);
    if read(ops, &out) != shifted(c, count).low_bits(bits as u32) {
        return Some("the shift to the left");
    }
    ops.shift_right(&a, count, &mut out);
    if read(ops, &out) != c.halved(count as u32) {
        return Some("the shift to the right");
    }
    let entry = |i: u32| {
        let e = word.rotate_left(13 * i).wrapping_mul(0x2545_f491_4f6c_dd1d) >> 1 >> (word >> (6 * i) & 63);
        if word >> (30 + i) & 1 == 1 { -(e as i64) } else { e as i64 }
    };
    let m = [[entry(0), entry(1)], [entry(2), entry(3)]];
    let mut pair = [ops.zero(); 2];
    let fits = ops.apply(&[a, b], &m, &mut pair);
    let rows = m.map(|row| plus(&times(c, &small(row[0])), &times(d, &small(row[1]))));
    let expected = rows.iter().all(|row| row.bits() <= bits);
    if fits != expected || fits && (0..2).any(|i| read(ops, &pair[i]) != rows[i]) {
        return Some("a matrix's work");
    }
    let mut sum = ops.sum();
    ops.add_product(&mut sum, &a, &b);
    ops.sub_wide(&mut sum, &square);
    ops.sub_product(&mut sum, &b, &b);
    let plain = minus(&minus(&cd, &cc), &times(d, d));
    let fits = ops.settle(&sum, &mut square);
    if fits != (plain.bits() <= ops.wide_bits()) || fits && read_wide(ops, &square) != plain {
        return Some("a sum of products");
    }
    None
}

fn random<const V: usize, const D: usize, const R: usize>(name: &str, ops: &Arithmetic<V, D>, count: usize) {
    let mut numbers = Numbers::new(99 + ops.bits() as u64);
    for _ in 0..count {
        let x: Int<R> = numbers.signed(ops.bits());
        let y = if numbers.below(16) == 0 { -x } else { numbers.signed(ops.bits()) };
        let word = numbers.word();
        if let Some(what) = difference(ops, (&x, &y), (&gmp(&x), &gmp(&y)), word) {
            panic!("{name}, {} bits: {what} of {x:?} and {y:?} with {word:#x}", ops.bits());
        }
    }
}

fn backend(name: &str, run: impl Fn(&'static Kernels)) {
    let settings = Settings::from_env().expect("settings");
    let row = BACKENDS.iter().find(|b| b.name() == name);
    match row.map(|row| row.get(&settings.cpu())) {
        Some(Ok(engine)) => run(engine.kernels()),
        other => {
            assert!(!settings.requires(name), "{name} is required: {:?}", other.map(Result::err));
        }
    }
}

macro_rules! backends {
    ($($name:ident)*) => {
        $(mod $name {
            use super::*;

            #[test]
            fn short() {
                backend(stringify!($name), |k| {
                    random::<1, 2, 14>(stringify!($name), k.w256(), 300_000);
                    random::<2, 3, 22>(stringify!($name), k.w512(), 500_000);
                });
            }

            #[test]
            fn long() {
                backend(stringify!($name), |k| {
                    random::<3, 6, 38>(stringify!($name), k.w1024(), 150_000);
                    random::<6, 11, 72>(stringify!($name), k.w2112(), 50_000);
                });
            }
        })*
    };
}

backends!(portable adx avx512);

#[test]
fn a_wrong_bit_differs_whatever_the_operation() {
    let mut numbers = Numbers::new(5);
    let kernels = Engine::portable().kernels();
    let mut seen = std::collections::BTreeSet::new();
    for i in 0..200 {
        let (x, y): (Int<22>, Int<22>) = (numbers.signed(512), numbers.signed(512));
        let (c, d) = (gmp(&x), gmp(&y));
        assert_eq!(difference(kernels.w512(), (&x, &y), (&c, &d), numbers.word()), None);
        // One bit of either operand differs for GMP, as if ours had lost it.
        let bit = gmp(&Int::<22>::new(false, Uint::ONE << (7 * i % 512)));
        for (c, d) in [(plus(&c, &bit), d.clone()), (c.clone(), plus(&d, &bit))] {
            seen.insert(difference(kernels.w512(), (&x, &y), (&c, &d), numbers.word()));
        }
    }
    assert!(!seen.contains(&None) && seen.len() > 1, "{seen:?}");
}
