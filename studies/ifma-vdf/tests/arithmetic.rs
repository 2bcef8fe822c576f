//! Every operation of every backend against an independent bignum library: a hundred thousand random cases each of skewed bit
//! patterns, and operands at the edges of carries. Split by backend and width, so that they run side by side.

use lanework_cpu::Settings;
use lanework_integer::internals::check::Numbers;
use lanework_integer::{Int, Uint};
use num_bigint::{BigInt, BigUint, Sign};
use study_ifma_vdf::arithmetic::{Arithmetic, BACKENDS, Kernels, Number};

/// What the tests need to know about a width beyond its operations.
struct Width<const V: usize, const D: usize> {
    ops: &'static Arithmetic<V, D>,
    name: &'static str,
}

fn kernels(name: &str) -> Option<&'static Kernels> {
    let settings = Settings::from_env().expect("settings");
    let row = BACKENDS.iter().find(|b| b.name() == name);
    match row.map(|row| row.get(&settings.cpu())) {
        Some(Ok(engine)) => Some(engine.kernels()),
        other => {
            assert!(!settings.requires(name), "{name} is required: {:?}", other.map(Result::err));
            None
        }
    }
}

fn big<const R: usize>(x: &Int<R>) -> BigInt {
    from_limbs(x.magnitude().limbs(), x.is_negative())
}

fn from_limbs(limbs: &[u64], negative: bool) -> BigInt {
    let halves = limbs.iter().flat_map(|&x| [x as u32, (x >> 32) as u32]).collect();
    BigInt::from_biguint(if negative { Sign::Minus } else { Sign::Plus }, BigUint::new(halves))
}

impl<const V: usize, const D: usize> Width<V, D> {
    fn big(&self, x: &Number<V>) -> BigInt {
        let mut limbs = [0; 33];
        let n = self.ops.write(x, &mut limbs);
        assert!(n == 0 || limbs[n - 1] != 0);
        assert!(limbs[n..].iter().all(|&x| x == 0));
        from_limbs(&limbs[..n], x.is_negative())
    }

    fn wide(&self, x: &Number<D>) -> BigInt {
        let mut limbs = [0; 66];
        let n = self.ops.write_wide(x, &mut limbs);
        assert!(n == 0 || limbs[n - 1] != 0);
        from_limbs(&limbs[..n], x.is_negative())
    }

    /// All operations on x and y; the entries of a matrix and the length of a shift come from `word`.
    fn case<const R: usize>(&self, x: &Int<R>, y: &Int<R>, word: u64) {
        let Width { ops, name } = self;
        let bits = ops.bits() as u64;
        let at = || format!("{name}, {bits} bits: {x:?} and {y:?}, {word:#x}");
        let (c, d) = (big(x), big(y));
        let (a, b) = (ops.number(x).expect("fits"), ops.number(y).expect("fits"));
        assert!(self.big(&a) == c && self.big(&b) == d, "read {}", at());
        let mut out = ops.zero();
        for (minus, sum) in [(false, &c + &d), (true, &c - &d)] {
            let fits = if minus { ops.sub(&a, &b, &mut out) } else { ops.add(&a, &b, &mut out) };
            assert_eq!(fits, sum.bits() <= bits, "sum {}", at());
            assert!(!fits || self.big(&out) == sum, "sum {}", at());
        }
        assert_eq!(ops.compare(&a, &b), c.cmp(&d), "order {}", at());
        let (mut product, mut square) = (ops.wide_zero(), ops.wide_zero());
        let cd = &c * &d;
        ops.mul(&a, &b, &mut product);
        assert!(self.wide(&product) == cd, "product {}", at());
        ops.square(&a, &mut square);
        let cc = &c * &c;
        assert!(self.wide(&square) == cc, "square {}", at());

        for (divisor, by) in [(&b, &d), (&a, &c)] {
            let zero = *by == BigInt::ZERO;
            assert_eq!(ops.div_exact(&product, divisor, &mut out), !zero, "exact quotient {}", at());
            assert!(zero || self.big(&out) * by == cd, "exact quotient {}", at());
            assert!(zero || self.big(&out).bits() <= bits, "exact quotient {}", at());
        }
        if d.magnitude() > &BigUint::from(1u8) {
            let more: BigInt = &cd + 1;
            let limbs: Vec<u64> = more.magnitude().iter_u64_digits().collect();
            let mut wide = ops.wide_zero();
            assert!(ops.read_wide(&limbs, more.sign() == Sign::Minus, &mut wide), "reading {}", at());
            assert!(!ops.div_exact(&wide, &b, &mut out), "quotient of a product and one more {}", at());
        }
        if let Some(modulus) = ops.modulus(&b) {
            // A number below m times any is in the range of the reduction.
            let m = BigInt::from(d.magnitude().clone());
            let mut wide = square;
            if c.magnitude() >= d.magnitude() {
                let rest = &c % &d;
                let limbs: Vec<u64> = rest.magnitude().iter_u64_digits().collect();
                let mut number = ops.zero();
                assert!(ops.read(&limbs, rest.sign() == Sign::Minus, &mut number));
                ops.mul(&a, &number, &mut wide);
            }
            ops.reduce(&wide, &modulus, &mut out);
            let out = self.big(&out);
            assert!(out < m && out.sign() != Sign::Minus, "reduction {}", at());
            let back = (out << ops.montgomery()) - self.wide(&wide);
            assert!(back % m == BigInt::ZERO, "reduction {}", at());
        }
        let count = word as usize % (ops.bits() + 70);
        ops.shift_left(&a, count, &mut out);
        let left = (c.magnitude() << count) % (BigUint::from(1u8) << bits);
        assert!(self.big(&out).magnitude() == &left, "shift to the left {}", at());
        ops.shift_right(&a, count, &mut out);
        assert!(self.big(&out).magnitude() == &(c.magnitude() >> count), "shift to the right {}", at());

        let entry = |i: u32| {
            let e =
                word.rotate_left(11 * i).wrapping_mul(0x2545_f491_4f6c_dd1d) >> 1 >> (word >> (6 * i) & 63);
            if word >> (32 + i) & 1 == 1 { -(e as i64) } else { e as i64 }
        };
        let m = [[entry(0), entry(1)], [entry(2), entry(3)]];
        let mut pair = [ops.zero(); 2];
        let fits = ops.apply(&[a, b], &m, &mut pair);
        let rows = m.map(|row| &c * row[0] + &d * row[1]);
        assert_eq!(fits, rows.iter().all(|row| row.bits() <= bits), "matrix {}", at());
        assert!(!fits || (0..2).all(|i| self.big(&pair[i]) == rows[i]), "matrix {}", at());

        let mut sum = ops.sum();
        let mut plain = BigInt::ZERO;
        for i in 0..1 + word % 9 {
            // Enough terms that a sum has to carry in between.
            match word >> (8 + 4 * i) & 3 {
                0 => {
                    ops.add_product(&mut sum, &a, &b);
                    plain += &cd;
                }
                1 => {
                    ops.sub_product(&mut sum, &a, &b);
                    plain -= &cd;
                }
                2 => {
                    ops.add_wide(&mut sum, &square);
                    plain += &cc;
                }
                _ => {
                    ops.sub_wide(&mut sum, &square);
                    plain -= &cc;
                }
            }
        }
        let mut wide = ops.wide_zero();
        let fits = ops.settle(&sum, &mut wide);
        assert_eq!(fits, plain.bits() <= ops.wide_bits() as u64, "sum of products {}", at());
        assert!(!fits || self.wide(&wide) == plain, "sum of products {}", at());
    }

    fn random<const R: usize>(&self, count: usize) {
        // An interpreter is some thousand times slower.
        let count = if cfg!(miri) { 1 + count / 20_000 } else { count };
        let mut numbers = Numbers::new(77 + self.ops.bits() as u64);
        for _ in 0..count {
            let x: Int<R> = numbers.signed(self.ops.bits());
            let y = match numbers.below(32) {
                0 => x,
                1 => -x,
                2 if x.bits() < self.ops.bits() => x.minus(&Int::ONE),
                _ => numbers.signed(self.ops.bits()),
            };
            self.case(&x, &y, numbers.word());
        }
    }

    /// Every pair of numbers of `limbs` limbs (of 52 or 64 bits, or the last few of all) each of which is 0, 1, a highest bit,
    /// all ones or one less: exhaustively for up to three limbs, at every height in the number.
    fn edges<const R: usize>(&self, heights: &[usize]) {
        for unit in [52usize, 64] {
            for &height in heights {
                let number = |mut i: usize| {
                    let mut x = Uint::<R>::ZERO;
                    for place in 0..3 {
                        let at = unit * (height + place);
                        let width = unit.min(self.ops.bits().saturating_sub(at));
                        if width > 0 {
                            let ones = u64::MAX >> (64 - width);
                            let limb = [0, 1, 1 << (width - 1), ones, ones - 1][i % 5];
                            x = x.plus(&(Uint::from_u64(limb) << at));
                        }
                        i /= 5;
                    }
                    x
                };
                for i in 0..125 {
                    for j in 0..125 {
                        let signs = i * 125 + j;
                        let (x, y) =
                            (Int::new(signs & 1 == 1, number(i)), Int::new(signs & 2 == 2, number(j)));
                        self.case(&x, &y, (signs as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
                    }
                }
            }
        }
    }
}

macro_rules! backends {
    ($($backend:ident)*) => {
        $(mod $backend {
            use super::*;

            fn run(f: impl Fn(&'static Kernels)) {
                if let Some(kernels) = kernels(stringify!($backend)) {
                    f(kernels);
                }
            }

            #[test]
            fn bits_256() {
                run(|k| Width { ops: k.w256(), name: stringify!($backend) }.random::<14>(30_000));
            }

            #[test]
            fn bits_512() {
                run(|k| Width { ops: k.w512(), name: stringify!($backend) }.random::<22>(50_000));
            }

            #[test]
            fn bits_1024() {
                run(|k| Width { ops: k.w1024(), name: stringify!($backend) }.random::<38>(15_000));
            }

            #[test]
            fn bits_2112() {
                run(|k| Width { ops: k.w2112(), name: stringify!($backend) }.random::<72>(5_000));
            }

            #[test]
            fn carry_edges() {
                run(|k| {
                    Width { ops: k.w256(), name: stringify!($backend) }.edges::<14>(&[0, 2]);
                    // The limbs where one vector ends and another begins, and the highest.
                    Width { ops: k.w512(), name: stringify!($backend) }.edges::<22>(&[0, 6, 7]);
                });
            }
        })*
    };
}

backends!(portable adx avx512);
