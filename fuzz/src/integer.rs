//! Fixed-width integers against num-bigint, and the GCDs of all backends against the plain types.
#![forbid(unsafe_code)]

use lanework_cpu::Cpu;
use lanework_integer::backend::{BACKENDS, Gcd, Gcds};
use lanework_integer::internals::check::{inverse_fault, partial_fault};
use lanework_integer::{Int, Uint};
use num_bigint::{BigInt, BigUint, Sign};

use crate::bytes::Bytes;

/// A width, signs, a word for shifts; then two operands.
pub(crate) fn arithmetic(data: &[u8]) {
    let mut input = Bytes(data);
    match input.byte() % 4 {
        0 => width::<14>(&mut input, 32),
        1 => width::<22>(&mut input, 64),
        2 => width::<38>(&mut input, 128),
        _ => width::<72>(&mut input, 264),
    }
}

fn kernels() -> impl Iterator<Item = (&'static str, &'static Gcds)> {
    BACKENDS.iter().filter_map(|row| Some((row.name(), row.get(&Cpu::detect()).ok()?.kernels())))
}

fn number<const R: usize>(input: &mut Bytes<'_>, bytes: usize) -> Uint<R> {
    Uint::from_le_bytes(&input.exactly(bytes)).expect("a product of two has room")
}

fn width<const R: usize>(input: &mut Bytes<'_>, bytes: usize) {
    let (signs, word) = (input.byte(), u64::from_le_bytes(input.array()));
    let x = Int::new(signs & 1 == 1, number::<R>(input, bytes));
    let y = Int::new(signs & 2 == 2, number::<R>(input, bytes));
    plain(&x, &y, (word % (64 * R as u64)) as usize);
}

fn big<const N: usize>(x: &Int<N>) -> BigInt {
    let mut bytes = vec![0; 8 * N];
    x.magnitude().write_le_bytes(&mut bytes);
    BigInt::from_biguint(
        if x.is_negative() { Sign::Minus } else { Sign::Plus },
        BigUint::from_bytes_le(&bytes),
    )
}

/// Every operation on x and y.
fn plain<const R: usize>(x: &Int<R>, y: &Int<R>, shift: usize) {
    let (a, b) = (big(x), big(y));
    assert!(big(&x.plus(y)) == &a + &b, "a sum of {x:?} and {y:?}");
    assert!(big(&x.minus(y)) == &a - &b, "a difference of {x:?} and {y:?}");
    assert!(big(&x.times::<R, R>(y)) == &a * &b, "a product of {x:?} and {y:?}");
    assert!(x.cmp(y) == a.cmp(&b), "the order of {x:?} and {y:?}");
    assert!(x.bits() as u64 == a.bits(), "the length of {x:?}");
    let right = Int::new(false, *x.magnitude() >> shift);
    assert!(big(&right) == BigInt::from(a.magnitude() >> shift), "{x:?} shifted right by {shift}");
    let left = Int::new(false, *x.magnitude() << shift);
    let width = (BigUint::from(1u8) << (64 * R)) - 1u8;
    assert!(big(&left) == BigInt::from((a.magnitude() << shift) & width), "{x:?} shifted left by {shift}");
    if !y.is_zero() {
        let (quotient, rest) = x.div_floor(y);
        let (quotient, rest) = (big(&quotient), big(&rest));
        assert!(&quotient * &b + &rest == a, "{x:?} by {y:?}: quotient and remainder do not give the number");
        assert!(rest.magnitude() < b.magnitude(), "{x:?} by {y:?}: the remainder is too large");
        assert!(rest.sign() == Sign::NoSign || rest.sign() == b.sign(), "{x:?} by {y:?}: not rounded down");
        let exact = x.div_exact(y).map(|q| big(&q));
        assert!(
            exact == (rest.sign() == Sign::NoSign).then_some(quotient),
            "an exact quotient of {x:?} by {y:?}"
        );
    }
}

/// A width, where to stop, two numbers: reductions and inverses of all backends.
pub(crate) fn gcds(data: &[u8]) {
    let mut input = Bytes(data);
    match input.byte() % 4 {
        0 => gcd::<4, 9, 20>(&mut input, |k| &k.w256),
        1 => gcd::<8, 13, 32>(&mut input, |k| &k.w512),
        2 => gcd::<16, 21, 56>(&mut input, |k| &k.w1024),
        _ => gcd::<33, 38, 110>(&mut input, |k| &k.w2112),
    }
}

fn gcd<const N: usize, const M: usize, const R: usize>(input: &mut Bytes<'_>, of: fn(&Gcds) -> &Gcd<N, M>) {
    let stop = usize::from(u16::from_le_bytes(input.array())) % (64 * N);
    let (mut a, mut b): (Uint<N>, Uint<N>) = (number(input, 8 * N), number(input, 8 * N));
    if a < b {
        core::mem::swap(&mut a, &mut b);
    }
    if b.is_zero() {
        return;
    }
    // Giving up is allowed: callers have a slower way.
    let mut gave_up = 0;
    for (name, kernels) in kernels() {
        let gcd = of(kernels);
        let wrong = partial_fault::<N, M, R>(gcd, &a, &b, stop, &mut gave_up);
        assert!(wrong.is_none(), "{name}: {}", wrong.unwrap_or_default());
        let mut odd = b;
        odd.limbs_mut()[0] |= 1;
        let wrong = inverse_fault::<N, M, R>(gcd, &a, &odd, &mut gave_up);
        assert!(wrong.is_none(), "{name}: {}", wrong.unwrap_or_default());
    }
}

/// For each width: runs of ones and zeros that end at limbs of 52 and of 64 bits, and a number that looks random.
fn patterns(head: usize) -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (width, bytes) in [32usize, 64, 128, 264].into_iter().enumerate() {
        let ones = vec![0xff; bytes];
        let mut one = vec![0; bytes];
        one[0] = 1;
        let mut top = vec![0; bytes];
        top[bytes - 1] = 0x80;
        let stripes: Vec<u8> = (0..bytes).map(|i| if i / 13 % 2 == 0 { 0xff } else { 0 }).collect();
        let noise: Vec<u8> =
            (0..bytes).map(|i| (i as u8).wrapping_mul(167).rotate_left(i as u32 % 8) ^ 0x5a).collect();
        for (n, (x, y)) in
            [(&ones, &ones), (&noise, &stripes), (&top, &one), (&stripes, &noise)].into_iter().enumerate()
        {
            let mut seed = vec![width as u8];
            seed.extend((1..head).map(|i| (n * 0x35 + i * 0x1b) as u8));
            seeds.push([&seed[..], x, y, &noise].concat());
        }
    }
    seeds
}

pub(crate) fn arithmetic_seeds() -> Vec<Vec<u8>> {
    patterns(10)
}

pub(crate) fn gcd_seeds() -> Vec<Vec<u8>> {
    let mut seeds = patterns(3);
    // Neighbours in Fibonacci's sequence: every quotient is 1; and a number with its double.
    for (width, bytes) in [32usize, 64, 128, 264].into_iter().enumerate() {
        let (mut a, mut b) = (BigUint::from(1u8), BigUint::from(1u8));
        while b.bits() < 8 * bytes as u64 {
            (a, b) = (b.clone(), a + b);
        }
        let bytes_of = |x: &BigUint| {
            let mut out = x.to_bytes_le();
            out.resize(bytes, 0);
            out
        };
        seeds.push([&[width as u8, 0, 0][..], &bytes_of(&b), &bytes_of(&a)].concat());
        seeds.push([&[width as u8, 40, 0][..], &bytes_of(&(&a << 1)), &bytes_of(&a)].concat());
    }
    seeds
}
