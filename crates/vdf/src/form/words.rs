//! The group's operation in machine words, for discriminants of at most [`MAX_BITS`] bits: Gauss's composition, and
//! then reduction. (Cohen, A Course in Computational Algebraic Number Theory, algorithms 5.4.7 and 5.4.2.)
//!
//! Chia's own tests run in such groups, whose numbers are too short for kernels. The names are those of
//! `form::compose`. In a reduced form a² <= a c <= |D| / 3, and k is taken between -v1 / 2 and v1 / 2: then every
//! number below is under |D| / 2 in magnitude, and fits 128 bits and a sign.
#![forbid(unsafe_code)]

use crate::backend::Form512;
use crate::discriminant::Discriminant;

/// The longest discriminant, in bits.
pub(crate) const MAX_BITS: usize = 128;

/// A form with |b| <= a <= c.
#[derive(Clone, Copy)]
struct Words {
    a: i128,
    b: i128,
    c: i128,
}

/// Squares the form n times in place, and returns how often: n or, if it is not a form of this discriminant with |b| <=
/// a <= c, or that is too long, 0.
pub(crate) fn square(form: &mut Form512, d: &Discriminant, n: u64) -> u64 {
    let Some(x) = Words::of(form, d) else { return 0 };
    *form = (0..n).fold(x, |x, _| x.square()).limbs();
    n
}

/// The product; `None` where [`square`] returns 0.
pub(crate) fn compose(x: &Form512, y: &Form512, d: &Discriminant) -> Option<Form512> {
    Some(Words::of(x, d)?.compose(Words::of(y, d)?).limbs())
}

/// The number, if it is below 2^127.
fn number(limbs: &[u64]) -> Option<i128> {
    let [low, high, rest @ ..] = limbs else { return None };
    let out = i128::try_from(u128::from(*high) << 64 | u128::from(*low)).ok()?;
    rest.iter().all(|limb| *limb == 0).then_some(out)
}

impl Words {
    /// The form, if it has the discriminant. No other form is safe to compute with.
    fn of(form: &Form512, d: &Discriminant) -> Option<Words> {
        let d = match d.number().magnitude() {
            [low] => u128::from(*low),
            [low, high] => u128::from(*high) << 64 | u128::from(*low),
            _ => return None,
        };
        let (a, b, c) = (number(&form.a)?, number(&form.b)?, number(&form.c)?);
        let ac = a.unsigned_abs().checked_mul(c.unsigned_abs())?;
        // |D| = 4 a c - b², which is below 2^128 + |D| where a c <= |D| / 3.
        let right = 0 < a && b <= a && a <= c && ac <= d / 3;
        let b = if form.negative { -b } else { b };
        (right && ac.wrapping_mul(4).wrapping_sub((b * b).unsigned_abs()) == d).then_some(Words { a, b, c })
    }

    fn limbs(self) -> Form512 {
        let limbs = |x: i128| [x.unsigned_abs() as u64, (x.unsigned_abs() >> 64) as u64];
        let ([a0, a1], [b0, b1], [c0, c1]) = (limbs(self.a), limbs(self.b), limbs(self.c));
        Form512 { a: [a0, a1, 0, 0], b: [b0, b1, 0, 0], negative: self.b < 0, c: [c0, c1, 0, 0, 0] }
    }

    /// The square. m is 0, s is b, and both forms are one.
    fn square(self) -> Words {
        let Words { a, b, c } = self;
        let (g, u) = gcd_inverse(modulo(b, a), a);
        let v = divide(a, g);
        let k = centred(-(modulo(u, v) * modulo(c, v)), v);
        let n = divide(b * k + g * c, v);
        Words { a: v * v, b: b + 2 * v * k, c: k * k + n }.reduced()
    }

    fn compose(self, other: Words) -> Words {
        // a2 must be the longer one: then g c2 is at most a2 c2.
        let (x, y) = if self.a <= other.a { (self, other) } else { (other, self) };
        let (s, m) = ((x.b + y.b) / 2, (x.b - y.b) / 2);
        let (g1, u) = gcd_inverse(modulo(y.a, x.a), x.a);
        let (g, k) = if g1 == 1 {
            (1, u * modulo(m, x.a))
        } else {
            let (g, x2) = gcd_inverse(modulo(s, g1), g1);
            // x2 s + y2 g1 = g.
            let (y2, v1) = ((g - x2 * s) / g1, divide(x.a, g));
            let first = modulo(modulo(y2, v1) * modulo(u, v1), v1) * modulo(m, v1);
            (g, first - modulo(x2, v1) * modulo(y.c, v1))
        };
        let (v1, v2) = (divide(x.a, g), divide(y.a, g));
        let k = centred(k, v1);
        let (m, n) = (divide(v2 * k - m, v1), divide(s * k + g * y.c, v1));
        Words { a: v1 * v2, b: y.b + 2 * v2 * k, c: k * m + n }.reduced()
    }

    /// The form of its class with |b| <= a <= c.
    fn reduced(self) -> Words {
        let Words { mut a, mut b, mut c } = self;
        loop {
            let size = b.abs();
            if size > a {
                // The even multiple of a that is nearest.
                let quotient = divide(size, a);
                let rest = size - quotient * a;
                let (half, rest) = ((quotient + 1) / 2, if quotient & 1 == 1 { rest - a } else { rest });
                let (half, next) = if b < 0 { (-half, -rest) } else { (half, rest) };
                // (b + next) / 2: both are odd, and the sum alone may not fit.
                c -= half * ((b >> 1) + (next >> 1) + 1);
                b = next;
            }
            if a <= c {
                return Words { a, b, c };
            }
            (a, b, c) = (c, -b, a);
        }
    }
}

/// x / y rounded towards 0, y > 0. Most operands are short, and a division of 64 bits is faster.
#[inline(always)]
fn divide(x: i128, y: i128) -> i128 {
    match (i64::try_from(x), i64::try_from(y)) {
        _ if y == 1 => x,
        (Ok(x), Ok(y)) => i128::from(x / y),
        _ => x / y,
    }
}

/// The remainder from 0 to y, y > 0.
#[inline(always)]
fn modulo(x: i128, y: i128) -> i128 {
    let rest = x - divide(x, y) * y;
    if rest < 0 { rest + y } else { rest }
}

/// The number between -y / 2 and y / 2 that is x modulo y.
#[inline(always)]
fn centred(x: i128, y: i128) -> i128 {
    let rest = modulo(x, y);
    if rest > y / 2 { rest - y } else { rest }
}

/// The greatest common divisor g of y and m, and a number u from 0 to m with u y = g modulo m; 0 <= y < m < 2^64, or y =
/// 0 and m = 1.
#[inline(always)]
fn gcd_inverse(y: i128, m: i128) -> (i128, i128) {
    // Remainders, and the magnitudes of their cofactors, whose signs alternate.
    let (mut r0, mut r1, mut t0, mut t1, mut odd) = (m as u64, y as u64, 0u64, 1u64, false);
    while r1 != 0 {
        let quotient = r0 / r1;
        (r0, r1) = (r1, r0 - quotient * r1);
        (t0, t1) = (t1, t0 + quotient * t1);
        odd = !odd;
    }
    (r0.into(), if odd { t0.into() } else { m - i128::from(t0) })
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::form::Form;
    use crate::form::num::Num;
    use lanework_integer::Int;

    /// Products and squares by both codes; they must be equal.
    fn agree(forms: &[Form], others: &[Form], d: &Discriminant) {
        let limbs = |form: &Form| Form512::of(form).expect("a short form");
        for x in forms {
            let mut square = limbs(x);
            assert_eq!(super::square(&mut square, d, 1), 1, "{x:?} of {d:?}");
            assert_eq!(square.form(), x.square_generally(d), "the square of {x:?} of {d:?}");
            for y in others {
                let product = compose(&limbs(x), &limbs(y), d).expect("two forms of d");
                assert_eq!(product.form(), x.compose_generally(y, d), "{x:?} {y:?} of {d:?}");
            }
        }
    }

    /// The reduced primitive forms that begin with `first` and any b.
    fn forms(d: &Discriminant, first: impl Iterator<Item = i64>) -> Vec<Form> {
        let pairs = first.flat_map(|a| (-a..=a).map(move |b| (a, b)));
        let form = |(a, b)| Form::new(d, &Int::from_i64(a), &Int::from_i64(b)).ok();
        let gcd = |x: &Num, a: &Num| super::super::euclid::gcd_inverse(&x.abs().modulo(a), a).0;
        let primitive = |f: &Form| gcd(&f.c, &gcd(&f.b, &f.a)).is_one();
        pairs.filter_map(form).filter(primitive).collect()
    }

    #[test]
    fn every_product_of_small_groups_is_the_general_codes() {
        let mut products = 0;
        let step = if cfg!(miri) { 400 } else { 4 };
        for n in (3..1600).step_by(step).chain([4027, 10_403, 27_027 * 5 * 4 + 3]) {
            let d = Discriminant::new(&Int::from_i64(-n)).expect("1 modulo 4");
            let all = forms(&d, 1..=if cfg!(miri) { 8 } else { 1 + n.isqrt() });
            products += all.len().pow(2);
            agree(&all, &all, &d);
        }
        assert!(products > if cfg!(miri) { 50 } else { 10_000 }, "{products} products");
    }

    /// Discriminants of every length, prime, with many small factors (and so with common divisors), and the longest of a
    /// length, whose forms reach the bounds.
    #[test]
    fn long_chains_are_the_general_codes() {
        let rounds = if cfg!(miri) { 2 } else { 60 };
        let factors = [3u64, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53];
        for bits in (4..=MAX_BITS).step_by(if cfg!(miri) { 31 } else { 1 }) {
            let most = Num::from_u64(1).shift_left(bits).sub(&Num::from_u64(1));
            let mut smooth = Num::from_u64(1);
            for factor in factors.iter().cycle() {
                let next = smooth.mul(&Num::from_u64(*factor));
                if next.bits() > bits {
                    break;
                }
                smooth = next;
            }
            for mut number in [most, smooth] {
                while number.magnitude()[0] & 3 != 3 {
                    number = number.sub(&Num::from_u64(2));
                }
                let d = Discriminant::new(&number.neg().to_int()).expect("1 modulo 4");
                let mut x = forms(&d, 1..60);
                for _ in 0..rounds {
                    agree(&x, &x[x.len() / 2..], &d);
                    let y: Vec<Form> = x.iter().rev().take(3).cloned().collect();
                    x = x
                        .iter()
                        .take(3)
                        .zip(&y)
                        .map(|(x, y)| x.compose_generally(y, &d).square_generally(&d))
                        .collect();
                }
            }
        }
    }

    /// Where the discriminant is lost, nothing is computed: sums that a wrong form leads to may not fit, and its
    /// reduction may not end.
    #[test]
    fn forms_of_another_discriminant_are_refused() {
        for bits in [16, 64, 120, 128] {
            let d = Discriminant::from_seed(b"words", bits).expect("a discriminant");
            let right = Form::generator(&d).expect("1 modulo 8").square(&d).square(&d);
            let right = Form512::of(&right).expect("a short form");
            for bit in 0..64 * 13 {
                let mut wrong = right;
                let limbs = wrong.a.iter_mut().chain(&mut wrong.b).chain(&mut wrong.c);
                *limbs.into_iter().nth(bit / 64).expect("13 limbs") ^= 1 << (bit % 64);
                let before = wrong;
                assert_eq!((square(&mut wrong, &d, 3), wrong), (0, before), "bit {bit} of {bits}");
                assert!(compose(&wrong, &right, &d).is_none() && compose(&right, &wrong, &d).is_none());
            }
        }
        let d = Discriminant::from_seed(b"words", 136).expect("a discriminant");
        let mut long = Form512::of(&Form::generator(&d).expect("1 modulo 8")).expect("it fits");
        assert_eq!(square(&mut long, &d, 1), 0);
    }
}
