//! The inverse against a general-purpose library, and the cases that it refuses.

use lanework_cpu::{Cpu, Feature};
use num_bigint::{BigInt, BigUint, Sign};

use super::*;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn uniform(&mut self, bits: usize) -> [u64; 8] {
        let mut x = [0; 8];
        x.fill_with(|| self.next());
        (bits..512).for_each(|i| x[i / 64] &= !(1 << (i % 64)));
        x
    }

    /// Runs of ones and zeros.
    fn runs(&mut self, bits: usize) -> [u64; 8] {
        let (mut x, mut at, mut one) = ([0; 8], 0, self.next() & 1 != 0);
        while at < bits {
            let run = 1 + self.next() as usize % 90;
            if one {
                (at..(at + run).min(bits)).for_each(|i| x[i / 64] |= 1 << (i % 64));
            }
            (at, one) = (at + run, !one);
        }
        x
    }
}

fn big(x: &[u64]) -> BigInt {
    let bytes: Vec<u8> = x.iter().flat_map(|x| x.to_le_bytes()).collect();
    BigInt::from_biguint(Sign::Plus, BigUint::from_bytes_le(&bytes))
}

fn present() -> bool {
    use Feature::*;
    let needs = [Avx512f, Avx512bw, Avx512dq, Avx512vl, Avx512ifma, Avx512vbmi, Lzcnt, Bmi1, Bmi2, Adx];
    needs.iter().all(|&f| Cpu::detect().features().contains(f))
}

fn right(a: &[u64; 8], b: &[u64; 8], inverse: &Inverse<13>) -> bool {
    let v = big(&inverse.magnitude[..inverse.limbs]) * if inverse.negative { -1 } else { 1 };
    let rest = v * big(a) - (BigInt::from(1) << inverse.shift as usize);
    rest % big(b) == BigInt::ZERO
}

/// Whether there was an answer, which must be right.
fn check(a: &[u64; 8], b: &[u64; 8]) -> bool {
    // SAFETY: `present` found the features.
    let Some(inverse) = (unsafe { invert(a, b) }) else { return false };
    assert!(right(a, b, &inverse), "{a:x?} modulo {b:x?}");
    true
}

#[test]
fn inverses_are_inverses() {
    if !present() {
        return;
    }
    let mut random = Random(1);
    let mut answers = [0u32; 4];
    const COUNT: u32 = 40_000;
    for i in 0..COUNT {
        let bits = match i % 3 {
            0 => 512,
            1 => 505 + random.next() as usize % 8,
            _ => 256 - random.next() as usize % 8,
        };
        let (a, mut b) = (random.uniform(bits), random.uniform(bits));
        b[0] |= 1;
        answers[0] += u32::from(check(&a, &b));
        let (a, mut b) = (random.runs(bits), random.runs(bits));
        b[0] |= 1;
        answers[1] += u32::from(check(&a, &b));
        let (short, long) = (1 + random.next() as usize % 512, 1 + random.next() as usize % 512);
        let (a, mut b) = (random.runs(short), random.uniform(long));
        b[0] |= 1;
        answers[2] += u32::from(check(&a, &b));
    }
    // Two uniform numbers, one odd, have no common divisor with probability 8 / pi^2. At most a hundredth goes to the
    // other function.
    let rate = f64::from(answers[0]) / f64::from(COUNT);
    assert!((0.795..0.82).contains(&rate), "{rate}");
    assert!(answers[1] > COUNT / 4 && answers[2] > COUNT / 4, "{answers:?}");
}

#[test]
fn ends_and_refusals() {
    if !present() {
        return;
    }
    let number = |low: u64, high: u64| [low, 0, 0, 0, 0, 0, 0, high];
    // SAFETY: `present` found the features.
    let invert = |a, b| unsafe { invert::<13>(&a, &b) };
    for (a, b) in [(1, 1), (1, 3), (2, 3), (3, 1), (1 << 63, 5), (u64::MAX >> 2, (u64::MAX >> 2) - 2)] {
        assert!(check(&number(a, 0), &number(b, 0)), "{a} modulo {b}");
    }
    // An even modulus, zero, and common divisors.
    assert_eq!(invert(number(3, 0), number(4, 0)), None);
    assert_eq!(invert(number(0, 0), number(5, 0)), None);
    assert_eq!(invert(number(15, 0), number(9, 0)), None);
    assert_eq!(invert(number(3, 3 << 40), number(3, 0)), None);
}

/// A fault planted in one digit does not pass the test above.
#[test]
fn a_wrong_inverse_is_noticed() {
    if !present() {
        return;
    }
    let mut random = Random(2);
    let (a, mut b) = (random.uniform(512), random.uniform(512));
    b[0] |= 1;
    // SAFETY: `present` found the features.
    let mut inverse = unsafe { invert::<13>(&a, &b) };
    while inverse.is_none() {
        b[0] = b[0].wrapping_add(2);
        // SAFETY: as above.
        inverse = unsafe { invert::<13>(&a, &b) };
    }
    let inverse = inverse.expect("an inverse");
    assert!(right(&a, &b, &inverse));
    for bit in [0, 45, 46, 64, 300] {
        let mut wrong = inverse;
        wrong.magnitude[bit / 64] ^= 1 << (bit % 64);
        assert!(!right(&a, &b, &wrong), "bit {bit}");
    }
    assert!(!right(&a, &b, &Inverse { negative: !inverse.negative, ..inverse }));
    assert!(!right(&a, &b, &Inverse { shift: inverse.shift + 1, ..inverse }));
}

/// Numbers for which steps shift by up to `most` bits each, so that packed rows often overflow.
fn unusual(random: &mut Random, most: u64) -> (u64, u64) {
    let (mut a, mut b) = (random.next() & 0xff | 1, random.next() & 0xff | 1);
    loop {
        // A step backwards.
        let before = b + (a << (1 + random.next() % most));
        (a, b) = if random.next() & 1 != 0 { (before, b) } else { (b, before) };
        if a.max(b) >> 52 != 0 {
            return (a, b);
        }
    }
}

#[test]
fn runs_keep_the_lattice() {
    if !present() {
        return;
    }
    let mut random = Random(3);
    let (mut long, mut most_shifts) = (0, 0);
    for i in 0..100_000 {
        let low = unusual(&mut random, 2 + i % 9);
        let lead = (low.0 | low.1).leading_zeros();
        // SAFETY: `present` found the features.
        let (m, ends) = unsafe { words::run::<FIRST>((low.0 << lead, low.1 << lead), low, EXACT - 1) };
        let [f0, g0, f1, g1, a, b] = [m.f0, m.g0, m.f1, m.g1, low.0, low.1].map(i128::from);
        assert!((f0 | g0 | f1 | g1) >> 31 == 0 && m.shift < EXACT, "{low:x?}");
        assert_eq!((f0 * g1 - f1 * g0).abs(), 1 << m.shift, "{low:x?}");
        for (value, end) in [(f0 * a - g0 * b, ends.0), (f1 * a - g1 * b, ends.1)] {
            assert_eq!(value % (1 << m.shift), 0, "{low:x?}");
            assert_eq!((value as u64 >> m.shift), end, "{low:x?}");
        }
        long += u32::from(m.shift > 31);
        most_shifts = most_shifts.max(m.shift);
    }
    // Some runs go beyond a half's bits and are still right.
    assert!(long > 100 && most_shifts == EXACT - 1, "{long} {most_shifts}");
}
