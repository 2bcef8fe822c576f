//! Greatest common divisors against a general-purpose library, on skewed bit patterns.

use lanework_integer::gcd::{binary, euclid};
#[cfg(target_arch = "x86_64")]
use lanework_integer::kernels::Adx;
use lanework_integer::kernels::{Lane, PRECISE, Portable};
use num_bigint::{BigInt, BigUint, Sign};

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

    /// Runs of ones and zeros, or uniform bits, of a length that is often short.
    fn limbs<const N: usize>(&mut self) -> [u64; N] {
        let mut x = [0; N];
        let bits = if self.next() & 3 == 0 { self.next() as usize % (64 * N + 1) } else { 64 * N };
        if self.next() & 1 == 0 {
            x.fill_with(|| self.next());
        } else {
            let (mut at, mut one) = (0, self.next() & 1 != 0);
            while at < 64 * N {
                let run = 1 + self.next() as usize % 90;
                if one {
                    (at..(at + run).min(64 * N)).for_each(|i| x[i / 64] |= 1 << (i % 64));
                }
                (at, one) = (at + run, !one);
            }
        }
        (bits..64 * N).for_each(|i| x[i / 64] &= !(1 << (i % 64)));
        x
    }
}

fn big(x: &[u64]) -> BigInt {
    let bytes: Vec<u8> = x.iter().flat_map(|x| x.to_le_bytes()).collect();
    BigInt::from_biguint(Sign::Plus, BigUint::from_bytes_le(&bytes))
}

fn gcd(a: &BigInt, b: &BigInt) -> BigInt {
    let (mut a, mut b) = (a.clone(), b.clone());
    while b != BigInt::ZERO {
        (a, b) = (b.clone(), a % b);
    }
    a
}

/// The fault of Lehmer's reduction to `stop` bits, if any, and whether it gave up.
fn partial_fault<L: Lane, const N: usize>(
    lane: L,
    a: &[u64; N],
    b: &[u64; N],
    stop: usize,
) -> (Option<String>, bool) {
    let (mut x0, mut x1) = (*a, *b);
    // Rows of factors of a and b, signed.
    let mut rows = [[BigInt::from(1), BigInt::ZERO], [BigInt::ZERO, BigInt::from(1)]];
    let mut entries = 0;
    let outcome = euclid::reduce(lane, &mut x0, &mut x1, stop, |m| {
        entries |= m.f.iter().chain(&m.g).fold(0, |all, x| all | x.unsigned_abs());
        let [p, q, r, t] = [m.f[0], m.g[0], m.f[1], m.g[1]].map(BigInt::from);
        let [y, z] = rows.clone();
        rows = [
            [&p * &y[0] + &q * &z[0], &p * &y[1] + &q * &z[1]],
            [&r * &y[0] + &t * &z[0], &r * &y[1] + &t * &z[1]],
        ];
    });
    let (a, b) = (big(a), big(b));
    let (y0, y1) = (big(&x0), big(&x1));
    let fault = if entries >> 63 != 0 {
        Some("an entry that lanes need not take".to_owned())
    } else if &rows[0][0] * &a + &rows[0][1] * &b != y0 || &rows[1][0] * &a + &rows[1][1] * &b != y1 {
        Some("the rows do not make the numbers".to_owned())
    } else if outcome.is_ok() && y1.bits() > stop as u64 {
        Some(format!("stopped at {} bits", y1.bits()))
    } else if &rows[0][0] * &rows[1][1] - &rows[0][1] * &rows[1][0]
        != BigInt::from(if negative_determinant(&rows) { -1 } else { 1 })
    {
        Some("not unimodular".to_owned())
    } else {
        None
    };
    (fault, outcome.is_err())
}

fn negative_determinant(rows: &[[BigInt; 2]; 2]) -> bool {
    &rows[0][0] * &rows[1][1] < &rows[0][1] * &rows[1][0]
}

fn inverse_fault<L: Lane, const N: usize, const M: usize>(
    lane: L,
    a: &[u64; N],
    b: &[u64; N],
) -> (Option<&'static str>, bool) {
    let (x, y) = (big(a), big(b));
    let Some(inverse) = binary::invert::<L, N, M>(lane, a, b) else {
        return (None, gcd(&x, &y) == BigInt::from(1));
    };
    let v = big(&inverse.magnitude) * if inverse.negative { -1 } else { 1 };
    let rest = v * &x - (BigInt::from(1) << inverse.shift as usize);
    ((rest % y != BigInt::ZERO).then_some("not the inverse"), false)
}

#[cfg(target_arch = "x86_64")]
fn adx() -> Option<Adx> {
    let there = is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("adx")
        && is_x86_feature_detected!("bmi1");
    // SAFETY: just checked.
    there.then(|| unsafe { Adx::assume() })
}

/// Other processors have portable lanes alone.
#[cfg(not(target_arch = "x86_64"))]
fn adx() -> Option<Portable> {
    None
}

fn run<L: Lane>(lane: L, seed: u64, count: usize) {
    // An interpreter is some thousand times slower.
    let count = if cfg!(miri) { 50 } else { count };
    let mut random = Random(seed);
    let (mut gave_up, mut gave_up_inverse) = (0, 0);
    for i in 0..count {
        let (mut a, mut b) = (random.limbs::<8>(), random.limbs::<8>());
        if big(&a) < big(&b) {
            core::mem::swap(&mut a, &mut b);
        }
        if b == [0; 8] {
            continue;
        }
        // Halfway, all the way, or anywhere.
        let stop = [257, 0, 257, random.next() as usize % 512][i % 4];
        let (fault, up) = partial_fault(lane, &a, &b, stop);
        assert!(fault.is_none(), "{} of {:x?} and {:x?} to {stop} bits", fault.unwrap(), a, b);
        gave_up += usize::from(up && a[7] != 0 && b[7] != 0);
        b[0] |= 1;
        let (fault, up) = inverse_fault::<L, 8, 13>(lane, &a, &b);
        assert!(fault.is_none(), "{} of {:x?} modulo {:x?}", fault.unwrap(), a, b);
        gave_up_inverse += usize::from(up && a[7] != 0 && b[7] != 0);
    }
    // Giving up is allowed, but on full-length numbers it is rare even with these patterns.
    assert!(
        gave_up < count / 50 && gave_up_inverse < count / 50,
        "{gave_up} and {gave_up_inverse} of {count}"
    );
}

/// Numbers with long runs of equal bits have an inverse, although their windows are many and short; numbers with a common divisor
/// of several limbs have none, and that is noticed in the end.
fn inverses_of_runs<L: Lane, const N: usize, const M: usize>(lane: L) {
    let ends = [0, 1, u64::MAX, 1 << 63, u64::MAX >> 4, 0xffff << 20];
    let mut random = Random(5);
    for i in 0..if cfg!(miri) { 50 } else { 4_000 } {
        let (mut a, mut b) = ([0; N], [0; N]);
        let from = i % N;
        for x in &mut a[from..] {
            *x = ends[random.next() as usize % ends.len()];
        }
        b.fill_with(|| if i & 64 == 0 { random.next() } else { ends[random.next() as usize % ends.len()] });
        b[0] |= 1;
        let (fault, up) = inverse_fault::<L, N, M>(lane, &a, &b);
        assert!(fault.is_none() && !up, "{fault:?} for {a:x?} modulo {b:x?}");
        b[N - 1] &= u64::MAX >> 1;
        let mut twice = b.map(|x| x << 1);
        (1..N).for_each(|i| twice[i] |= b[i - 1] >> 63);
        for multiple in [[0; N], b, twice] {
            let one = core::array::from_fn::<u64, N, _>(|i| u64::from(i == 0));
            assert_eq!(binary::invert::<L, N, M>(lane, &multiple, &b).is_some(), b == one, "{b:x?}");
        }
    }
}

#[test]
fn inverses_of_runs_of_equal_bits_are_found() {
    inverses_of_runs::<_, 4, 9>(Portable);
    inverses_of_runs::<_, 8, 13>(Portable);
    inverses_of_runs::<_, 33, 38>(Portable);
    if let Some(lane) = adx() {
        inverses_of_runs::<_, 4, 9>(lane);
        inverses_of_runs::<_, 8, 13>(lane);
        inverses_of_runs::<_, 16, 21>(lane);
        inverses_of_runs::<_, 33, 38>(lane);
    }
}

#[test]
fn portable_lanes_agree_with_a_library() {
    run(Portable, 1, 100_000);
}

#[test]
fn adx_lanes_agree_with_a_library() {
    if let Some(lane) = adx() {
        run(lane, 2, 100_000);
    }
}

#[test]
fn lanes_agree_on_every_operation() {
    let Some(lane) = adx() else { return };
    let mut random = Random(3);
    for _ in 0..200_000 {
        let [a, b] = random.limbs::<2>();
        assert_eq!(lane.halve31(a, b | 1), Portable.halve31(a, b | 1), "{a:x} {b:x}");
        if b != 0 {
            assert_eq!(lane.div(a, b), Portable.div(a, b), "{a:x} {b:x}");
        }
        let (p, q) = (a >> 1, b >> 1);
        let (x, y) = (random.limbs::<9>(), random.limbs::<9>());
        let shift = 1 + (a >> 32) as u32 % 63;
        rows::<_, 1>(lane, &x, &y, p, q, shift);
        rows::<_, 4>(lane, &x, &y, p, q, shift);
        rows::<_, 9>(lane, &x, &y, p, q, shift);
        let (high, low) = (a.max(b).max(PRECISE), a.min(b).max(PRECISE));
        let limit = PRECISE << ((a >> 16) % 30);
        assert_eq!(
            lane.nearest(high, low, limit),
            Portable.nearest(high, low, limit),
            "{high:x} {low:x} {limit:x}"
        );
    }
}

/// Rows of K limbs are the plain ones.
fn rows<L: Lane, const K: usize>(lane: L, x: &[u64; 9], y: &[u64; 9], p: u64, q: u64, shift: u32) {
    let (x, y): (&[u64; K], &[u64; K]) = (x.first_chunk().unwrap(), y.first_chunk().unwrap());
    let (mut plain, mut fast) = ([0; K], [0; K]);
    let high = Portable.minus(x, y, p, q, &mut plain);
    assert_eq!(lane.minus(x, y, p, q, &mut fast), high, "{p:x} {x:x?} - {q:x} {y:x?}");
    assert_eq!(plain, fast, "{p:x} {x:x?} - {q:x} {y:x?}");
    let high = Portable.plus(x, y, p, q, &mut plain);
    assert_eq!(lane.plus(x, y, p, q, &mut fast), high, "{p:x} {x:x?} + {q:x} {y:x?}");
    assert_eq!(plain, fast, "{p:x} {x:x?} + {q:x} {y:x?}");
    let high = Portable.divided(x, y, p, q, shift, &mut plain);
    assert_eq!(lane.divided(x, y, p, q, shift, &mut fast), high, "({p:x} {x:x?} - {q:x} {y:x?}) / 2^{shift}");
    assert_eq!(plain, fast, "({p:x} {x:x?} - {q:x} {y:x?}) / 2^{shift}");
}

#[test]
fn the_checks_notice_a_wrong_lane() {
    #[derive(Clone, Copy)]
    struct Wrong;
    impl Lane for Wrong {
        fn nearest(self, a: u64, b: u64, limit: u64) -> (u64, u64) {
            // A factor that is 1 too large for a quarter of all words.
            let (m0, m1) = Portable.nearest(a, b, limit);
            (m0, if a & 3 == 1 { m1.wrapping_add(1) } else { m1 })
        }
        fn halve31(self, a: u64, b: u64) -> (u64, u64) {
            let (m0, m1) = Portable.halve31(a, b);
            (m0, if a & 255 == 7 { m1.wrapping_add(1) } else { m1 })
        }
    }
    let mut random = Random(4);
    let (mut partial, mut inverse) = (0, 0);
    for _ in 0..200 {
        let (mut a, mut b) = (random.limbs::<8>(), random.limbs::<8>());
        (a[7], b[7], b[0]) = (a[7] | 1 << 63, b[7] >> 1, b[0] | 1);
        let (fault, up) = partial_fault(Wrong, &a, &b, 257);
        partial += u32::from(fault.is_some() || up);
        let (fault, up) = inverse_fault::<_, 8, 13>(Wrong, &a, &b);
        inverse += u32::from(fault.is_some() || up);
    }
    assert!(partial > 100 && inverse > 10, "{partial} and {inverse} of 200");
}

/// A lane with quotients that do not belong to their remainders makes steps that lead nowhere: the reduction gives up.
#[test]
fn a_wrong_quotient_does_not_go_on_forever() {
    #[derive(Clone, Copy)]
    struct Wrong;
    impl Lane for Wrong {
        fn div(self, a: u64, b: u64) -> (u64, u64) {
            let (q, r) = (a / b, a % b);
            if r & 63 == 5 && q > 1 { (q - 1, r) } else { (q, r) }
        }
    }
    let mut random = Random(4);
    let mut gave_up = 0;
    for _ in 0..200 {
        let (mut a, mut b) = (random.limbs::<8>(), random.limbs::<8>());
        (a[7], b[7], b[0]) = (a[7] | 1 << 63, b[7] >> 1, b[0] | 1);
        gave_up += u32::from(euclid::reduce(Wrong, &mut a, &mut b, 257, |_| {}).is_err());
    }
    assert!(gave_up > 0);
}

/// Pairs that early versions got wrong: consecutive Fibonacci numbers (most steps), quotients that fill a window, numbers
/// that differ in one bit, and pairs whose windows come out in the wrong order.
#[test]
fn hard_pairs_are_reduced() {
    fn hard<L: Lane>(lane: L) {
        let (mut f, mut g) = ([0u64; 8], [0u64; 8]);
        (f[0], g[0]) = (1, 1);
        loop {
            let mut next = f;
            if lanework_integer::limbs::add(&mut next, &g) {
                break;
            }
            (f, g) = (next, f);
            for stop in [0, 1, 63, 64, 65, 128, 256, 257] {
                let (fault, _) = partial_fault(lane, &f, &g, stop);
                assert!(fault.is_none(), "{} of {f:x?} to {stop}", fault.unwrap());
            }
        }
        for bit in 0..512 {
            let mut a = [u64::MAX; 8];
            let b = a;
            a[bit / 64] ^= 1 << (bit % 64);
            let mut single = [0; 8];
            single[bit / 64] = 1 << (bit % 64);
            for (x, y) in [(b, a), (b, single), (a, single)] {
                for stop in [0, 33, 257, 300] {
                    let (fault, _) = partial_fault(lane, &x, &y, stop);
                    assert!(fault.is_none(), "{} of {x:x?} and {y:x?} to {stop}", fault.unwrap());
                }
                let mut odd = y;
                odd[0] |= 1;
                let (fault, _) = inverse_fault::<L, 8, 13>(lane, &x, &odd);
                assert!(fault.is_none(), "{} of {x:x?} modulo {odd:x?}", fault.unwrap());
            }
        }
    }
    hard(Portable);
    if let Some(lane) = adx() {
        hard(lane);
    }
}

/// Reduction ends when the second number is short enough, however far it lies below the first. With one bit more it continues
/// or gives up.
#[test]
fn what_is_short_enough_is_left_alone() {
    fn left<L: Lane>(lane: L) {
        let a = [u64::MAX; 8];
        for bits in (1..512).step_by(if cfg!(miri) { 29 } else { 1 }) {
            let mut b = [0u64; 8];
            (0..bits).for_each(|i| b[i / 64] |= 1 << (i % 64));
            for stop in [bits, bits + 1] {
                let (mut x0, mut x1, mut steps) = (a, b, 0);
                let outcome = euclid::reduce(lane, &mut x0, &mut x1, stop, |_| steps += 1);
                assert!(
                    outcome.is_ok() && steps == 0,
                    "{outcome:?} after {steps} steps, {bits} bits to {stop}"
                );
                assert!(x0 == a && x1 == b, "{bits} bits to {stop}");
            }
            let (mut x0, mut x1, mut steps) = (a, b, 0);
            let outcome = euclid::reduce(lane, &mut x0, &mut x1, bits - 1, |_| steps += 1);
            assert!(outcome.is_err() || steps > 0, "{bits} bits to one fewer");
        }
    }
    left(Portable);
    if let Some(lane) = adx() {
        left(lane);
    }
}

/// Numbers of one limb whose quotients are short and then long: the product so far must not overflow with the long one.
#[test]
fn long_quotients_follow_short_ones() {
    fn follow<L: Lane>(lane: L) {
        let long = [1u64 << 20, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, 1 << 40, 1 << 50, (1 << 61) - 1];
        let (long, step) = if cfg!(miri) { (&long[6..], 3) } else { (&long[..], 1) };
        for first in (0..6u64).step_by(step) {
            for second in (2..6u64).chain([0, 1]).step_by(step) {
                for &q in long {
                    // Built from the end: 1, q, then the short quotients applied to them.
                    let (mut a, mut b) = (u128::from(q), 1);
                    for short in [second, first] {
                        if short > 0 {
                            (a, b) = (u128::from(short) * a + b, a);
                        }
                    }
                    let (Ok(a), Ok(b)) = (u64::try_from(a), u64::try_from(b)) else { continue };
                    let (mut x, mut y) = ([0; 8], [0; 8]);
                    (x[0], y[0]) = (a, b);
                    for stop in [0, 1, 20, 31, 32, 40] {
                        let (fault, up) = partial_fault(lane, &x, &y, stop);
                        assert!(fault.is_none() && !up, "{fault:?} of {a:x} and {b:x} to {stop}");
                    }
                }
            }
        }
    }
    follow(Portable);
    if let Some(lane) = adx() {
        follow(lane);
    }
}
