//! Every operation against another bignum library, on operands at the edges of carries and on skewed bit patterns.

use core::cmp::Ordering;

use lanework_integer::{Int, Uint, limbs};
use num_bigint::{BigInt, BigUint, Sign};

/// Numbers that look random and are the same every time.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    /// Long runs of equal bits, and sometimes plain randomness; of any length up to the width.
    fn skewed<const N: usize>(&mut self) -> Uint<N> {
        let mut limbs = [0; N];
        let bits = self.next() as usize % (64 * N + 1);
        let plain = self.next().is_multiple_of(4);
        let mut bit = self.next() & 1;
        let mut run = 0;
        for i in 0..bits {
            if run == 0 {
                bit = if plain { self.next() & 1 } else { 1 - bit };
                run = if plain { 1 } else { 1 + self.next() % 90 };
            }
            limbs[i / 64] |= bit << (i % 64);
            run -= 1;
        }
        Uint::from_limbs(limbs)
    }
}

fn big<const N: usize>(x: &Uint<N>) -> BigUint {
    let mut bytes = vec![0; 8 * N];
    x.write_le_bytes(&mut bytes);
    BigUint::from_bytes_le(&bytes)
}

fn signed<const N: usize>(x: &Int<N>) -> BigInt {
    BigInt::from_biguint(if x.is_negative() { Sign::Minus } else { Sign::Plus }, big(x.magnitude()))
}

/// Every operation on these operands, against the other library.
fn check<const N: usize, const M: usize, const R: usize>(x: Uint<N>, y: Uint<M>) {
    let (a, b) = (big(&x), big(&y));
    assert_eq!(big(&x.times::<M, R>(&y)), &a * &b, "{x:?} * {y:?}");
    if !y.is_zero() {
        let (quotient, rest) = x.div_rem(&y);
        assert_eq!((big(&quotient), big(&rest)), (&a / &b, &a % &b), "{x:?} / {y:?}");
    }
    let wide: Uint<R> = y.resize();
    let z: Uint<R> = x.resize();
    assert_eq!(z.cmp(&wide), a.cmp(&b));
    assert_eq!(
        z.checked_add(&wide).map(|s| big(&s)),
        Some(&a + &b).filter(|s| s.bits() <= Uint::<R>::BITS as u64)
    );
    assert_eq!(z.checked_sub(&wide).map(|s| big(&s)), (a >= b).then(|| a.clone() - b.clone()));
    assert_eq!(x.bits() as u64, a.bits());
    assert_eq!(x.trailing_zeros() as u64, a.trailing_zeros().unwrap_or(64 * N as u64));
    for i in 0..64 * N + 70 {
        assert_eq!(x.bit(i), a.bit(i as u64), "bit {i} of {x:?}");
    }
    let shift = (y.limbs()[0] % (64 * N as u64 + 70)) as usize;
    assert_eq!(big(&(x >> shift)), &a >> shift);
    let shifted = (&a << shift) % (BigUint::from(1u8) << (64 * N));
    assert_eq!(signed(&(Int::new(y.is_odd(), x) << shift)).magnitude(), &shifted);
    assert_eq!((Int::new(true, x) << shift).is_negative(), shifted != BigUint::ZERO);
    assert_eq!(big(&(x << shift)), shifted);
    for (p, q) in [(false, false), (false, true), (true, false), (true, true)] {
        let (s, t) = (Int::new(p, z), Int::new(q, wide));
        let (c, d) = (signed(&s), signed(&t));
        assert_eq!(s.cmp(&t), c.cmp(&d));
        if (&c + &d).bits() <= Uint::<R>::BITS as u64 {
            assert_eq!(signed(&s.plus(&t)), &c + &d);
        }
        if (&c - &d).bits() <= Uint::<R>::BITS as u64 {
            assert_eq!(signed(&s.minus(&t)), &c - &d);
        }
        if !t.is_zero() {
            let (quotient, rest) = s.div_floor(&t);
            assert_eq!(&signed(&quotient) * &d + signed(&rest), c);
            assert!(
                rest.is_zero() || (rest.is_negative() == t.is_negative() && rest.magnitude() < t.magnitude())
            );
            let exact = s.div_exact(&t).map(|quotient| signed(&quotient));
            assert_eq!(exact, rest.is_zero().then(|| signed(&quotient)));
        }
    }
}

#[test]
fn skewed_operands() {
    let mut numbers = Numbers(1);
    for _ in 0..if cfg!(miri) { 1 } else { 20_000 } {
        check::<8, 8, 16>(numbers.skewed(), numbers.skewed());
        check::<16, 8, 24>(numbers.skewed(), numbers.skewed());
        check::<4, 4, 8>(numbers.skewed(), numbers.skewed());
        check::<8, 1, 9>(numbers.skewed(), numbers.skewed());
        check::<3, 2, 5>(numbers.skewed(), numbers.skewed());
    }
}

/// Every combination of limbs that are 0, 1, the top bit, all ones and one less.
#[test]
fn carry_edges() {
    const EDGES: [u64; 5] = [0, 1, 1 << 63, u64::MAX, u64::MAX - 1];
    let number = |mut i: usize| {
        let mut limbs = [0; 3];
        for limb in &mut limbs {
            *limb = EDGES[i % 5];
            i /= 5;
        }
        Uint::from_limbs(limbs)
    };
    // An interpreter, some thousand times slower, takes nine of the pairs.
    let step = if cfg!(miri) { 48 } else { 1 };
    for i in (0..125).step_by(step) {
        for j in (0..125).step_by(step) {
            check::<3, 3, 6>(number(i), number(j));
        }
    }
}

#[test]
fn bytes_lead_back_and_too_many_are_refused() {
    let mut numbers = Numbers(2);
    for _ in 0..if cfg!(miri) { 20 } else { 1000 } {
        let x: Uint<5> = numbers.skewed();
        let (mut be, mut le) = ([0; 44], [0; 44]);
        x.write_be_bytes(&mut be);
        x.write_le_bytes(&mut le);
        assert_eq!(Uint::from_be_bytes(&be), Some(x));
        assert_eq!(Uint::from_le_bytes(&le), Some(x));
    }
    assert_eq!(Uint::<1>::from_be_bytes(&[1, 0, 0, 0, 0, 0, 0, 0, 0]), None);
    assert_eq!(Uint::<1>::from_le_bytes(&[0, 0, 0, 0, 0, 0, 0, 0, 1]), None);
    assert_eq!(Uint::<2>::from_u64(5).try_resize::<1>(), Some(Uint::from_u64(5)));
    assert_eq!(Uint::<2>::from_limbs([0, 1]).try_resize::<1>(), None);
    assert_eq!((Uint::<2>::ZERO.significant(), Uint::<2>::ZERO.bits()), (0, 0));
    assert_eq!(
        (Uint::<2>::from_limbs([0, 1]).significant(), Uint::<2>::from_limbs([3, 0]).significant()),
        (2, 1)
    );
    assert_eq!(Int::<1>::from_i64(-5).cmp(&Int::from_i64(-6)), Ordering::Greater);
}

/// Carries continue beyond a shorter operand, to the end and out of it.
#[test]
fn shorter_operands_carry_on() {
    let mut numbers = Numbers(3);
    for i in 0..if cfg!(miri) { 40 } else { 4000 } {
        let (mut x, y): (Uint<5>, Uint<2>) = (numbers.skewed(), numbers.skewed());
        // A limb or more that passes a carry on.
        match i % 4 {
            0 => x.limbs_mut()[2] = u64::MAX,
            1 => x.limbs_mut()[2..].fill(u64::MAX),
            2 => x.limbs_mut()[2..4].fill(0),
            _ => (),
        }
        let whole: BigUint = BigUint::from(1u8) << 320;
        let mut sum = x;
        let carry = limbs::add(sum.limbs_mut(), y.limbs());
        assert_eq!(big(&sum) + if carry { whole.clone() } else { BigUint::ZERO }, big(&x) + big(&y));
        let mut difference = x;
        let borrow = limbs::sub(difference.limbs_mut(), y.limbs());
        assert_eq!(big(&difference) + big(&y), big(&x) + if borrow { whole } else { BigUint::ZERO });
    }
}

/// Products of any width, as long as theirs or a limb longer than the limbs of both factors would be.
#[test]
fn products_fill_any_width() {
    let power = |i: usize| Uint::<100>::ONE << i;
    for (i, j) in [(64 * 50, 64 * 49), (64 * 50 + 31, 64 * 49 + 32), (64 * 99 + 63, 0), (64 * 99, 63)] {
        assert_eq!(power(i).times::<100, 100>(&power(j)), power(i + j), "2^{i} * 2^{j}");
    }
    let mut numbers = Numbers(7);
    for _ in 0..200 {
        check::<100, 40, 140>(numbers.skewed(), numbers.skewed());
        check::<79, 79, 158>(numbers.skewed(), numbers.skewed());
    }
}

#[test]
fn a_product_that_does_not_fit_is_refused() {
    let power = |i: usize| Uint::<100>::ONE << i;
    for (i, j) in [(64 * 50, 64 * 50), (64 * 50 + 32, 64 * 49 + 32), (64 * 99 + 63, 1)] {
        let product = std::panic::catch_unwind(|| power(i).times::<100, 100>(&power(j)));
        assert!(product.is_err(), "2^{i} * 2^{j}");
    }
}
