//! The checks that every backend must pass, as functions: the tests, the command and the laboratory call the same ones. Each
//! gives a [`Row`].
//!
//! The oracle is the plain arithmetic of [`Int`] and [`lanework_integer::limbs`], which shares no code with a vector kernel; the tests
//! check it against other people's libraries.
#![forbid(unsafe_code)]

use core::cmp::Ordering;

use lanework_cpu::Cpu;

use super::{Arithmetic, BACKENDS, Kernels, Number};
use lanework_integer::{Int, Uint};

use lanework_cpu::check::{Depth, Row};
use lanework_integer::internals::check::Numbers;

#[cfg(test)]
mod tests;

/// Kinds of limb that carry or pass a carry on.
const KINDS: usize = 5;

/// A limb of some width: 0, 1, the highest bit, all ones, or one less.
const fn limb(kind: usize, width: usize) -> u64 {
    let ones = u64::MAX >> (64 - width);
    [0, 1, 1 << (width - 1), ones, ones - 1][kind % KINDS]
}

/// The same kind of limb in every place but one, which has another; limbs of `unit` bits, `bits` in all.
fn edge<const R: usize>(kind: usize, unit: usize, bits: usize, place: usize, other: usize) -> Uint<R> {
    let mut x = Uint::ZERO;
    for i in 0..bits.div_ceil(unit) {
        let kind = if i == place { other } else { kind };
        x = x.plus(&(Uint::from_u64(limb(kind, unit.min(bits - unit * i))) << (unit * i)));
    }
    x
}

/// 2^e modulo m, which undoes the factor that Montgomery's reduction leaves.
fn power<const N: usize>(e: u32, m: &Uint<N>) -> Uint<N> {
    let mut x = Uint::<N>::ONE.div_rem(m).1;
    for _ in 0..e {
        x = x << 1;
        if let Some(less) = x.checked_sub(m) {
            x = less;
        }
    }
    x
}

/// All operations of one width on a pair of operands, against plain arithmetic. Returns the first fault. N limbs are an
/// operand, W a double-width number, and R enough for all.
///
/// The third operand is a multiplier of matrices and counts.
#[must_use]
pub fn fault<const V: usize, const D: usize, const R: usize>(
    ops: &Arithmetic<V, D>,
    x: &Int<R>,
    y: &Int<R>,
    word: u64,
) -> Option<String> {
    let wrong = |what: &str| Some(format!("{what} of {x:?} and {y:?} with {word:#x}, {} bits", ops.bits()));
    let (Some(a), Some(b)) = (ops.number(x), ops.number(y)) else { return wrong("reading") };
    if ops.int(&a) != Some(*x) || ops.int(&b) != Some(*y) {
        return wrong("reading and writing");
    }
    let mut limbs = [0; 66];
    if ops.write(&a, &mut limbs) != x.magnitude().significant() {
        return wrong("the count of limbs");
    }
    let fitting = |z: &Int<R>| (z.bits() <= ops.bits()).then_some(*z);
    let mut out = ops.zero();
    for (minus, name) in [(false, "the sum"), (true, "the difference")] {
        let plain = if minus { x.minus(y) } else { x.plus(y) };
        let fits = if minus { ops.sub(&a, &b, &mut out) } else { ops.add(&a, &b, &mut out) };
        if fits.then(|| ops.int(&out)) != fitting(&plain).map(Some) {
            return wrong(name);
        }
    }
    if ops.compare(&a, &b) != x.cmp(y) || ops.compare(&a, &a) != Ordering::Equal {
        return wrong("the order");
    }
    let mut wide = ops.wide_zero();
    let product: Int<R> = x.times(y);
    ops.mul(&a, &b, &mut wide);
    if ops.wide_int(&wide) != Some(product) {
        return wrong("the product");
    }
    if let Some(fault) = division(ops, x, y, &a, &b, &wide) {
        return wrong(fault);
    }
    ops.square(&a, &mut wide);
    let square: Int<R> = x.times(x);
    if ops.wide_int(&wide) != Some(square) {
        return wrong("the square");
    }
    // x y - x^2 + (x y) - y x, in one sum.
    let mut sum = ops.sum();
    ops.sub_wide(&mut sum, &wide);
    ops.add_product(&mut sum, &a, &b);
    ops.mul(&a, &b, &mut wide);
    ops.add_wide(&mut sum, &wide);
    ops.sub_product(&mut sum, &b, &a);
    let plain = product.minus(&square);
    let fits = ops.settle(&sum, &mut wide);
    let expected = (plain.bits() <= ops.wide_bits()).then_some(Some(plain));
    if fits.then(|| ops.wide_int(&wide)) != expected {
        return wrong("a sum of products");
    }
    let count = (word % (ops.bits() as u64 + 60)) as usize;
    ops.shift_left(&a, count, &mut out);
    let shifted = if count < ops.bits() { cut(*x.magnitude() << count, ops.bits()) } else { Uint::ZERO };
    if ops.int(&out) != Some(Int::new(x.is_negative(), shifted)) {
        return wrong("the shift to the left");
    }
    ops.shift_right(&a, count, &mut out);
    if ops.int(&out) != Some(Int::new(x.is_negative(), *x.magnitude() >> count)) {
        return wrong("the shift to the right");
    }
    // Entries of all lengths up to 63 bits, of either sign.
    let entry = |i: u32| {
        let e = word.rotate_left(16 * i).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 1 >> (word >> (5 * i) & 63);
        if word >> (40 + i) & 1 == 1 { -(e as i64) } else { e as i64 }
    };
    let m = [[entry(0), entry(1)], [entry(2), entry(3)]];
    let mut pair = [ops.zero(); 2];
    let fits = ops.apply(&[a, b], &m, &mut pair);
    let term = |e: i64, x: &Int<R>| -> Int<R> { x.times(&Int::<1>::from_i64(e)) };
    let plain = m.map(|row| term(row[0], x).plus(&term(row[1], y)));
    let expected = plain.iter().all(|z| fitting(z).is_some());
    if fits != expected || fits && [0, 1].iter().any(|&i| ops.int(&pair[i]) != Some(plain[i])) {
        return wrong("a matrix's work");
    }
    None
}

/// Keeps the lowest bits.
fn cut<const R: usize>(x: Uint<R>, bits: usize) -> Uint<R> {
    if bits >= 64 * R { x } else { x.checked_sub(&(x >> bits << bits)).unwrap_or(Uint::ZERO) }
}

/// Exact quotients and Montgomery's reduction of x y.
fn division<const V: usize, const D: usize, const R: usize>(
    ops: &Arithmetic<V, D>,
    x: &Int<R>,
    y: &Int<R>,
    a: &Number<V>,
    b: &Number<V>,
    product: &Number<D>,
) -> Option<&'static str> {
    let mut out = ops.zero();
    for (divisor, number, quotient) in [(y, b, x), (x, a, y)] {
        let exact = ops.div_exact(product, number, &mut out);
        if exact == divisor.is_zero() || exact && ops.int(&out) != Some(*quotient) {
            return Some("an exact quotient");
        }
    }
    // The product plus one: a multiple of no divisor but 1.
    let Some(more) = ops.wide_int::<R>(product).map(|p| p.plus(&Int::ONE)) else {
        return Some("writing a product");
    };
    if let Some(more) = ops.wide_number(&more) {
        let exact = ops.div_exact(&more, b, &mut out);
        let plain = (!y.is_zero()).then(|| x.times::<R, R>(y).plus(&Int::ONE).div_exact(y)).flatten();
        if exact.then(|| ops.int(&out)) != plain.filter(|q| q.bits() <= ops.bits()).map(Some) {
            return Some("a quotient that is not exact");
        }
    }
    for (number, value) in [(b, y), (a, x)] {
        let Some(modulus) = ops.modulus(number) else {
            if value.is_odd() {
                return Some("a modulus");
            }
            continue;
        };
        ops.reduce(product, &modulus, &mut out);
        // The product of x and y is a multiple of either.
        if !out.is_zero() {
            return Some("the reduction of a multiple");
        }
    }
    None
}

/// Montgomery's reduction of x y modulo an odd m. Returns the fault.
#[must_use]
pub fn reduction_fault<const V: usize, const D: usize, const R: usize>(
    ops: &Arithmetic<V, D>,
    x: &Int<R>,
    y: &Int<R>,
    m: &Uint<R>,
) -> Option<String> {
    let wrong = || Some(format!("{x:?} times {y:?} modulo {m:?}, {} bits", ops.bits()));
    let y = Int::new(y.is_negative(), y.magnitude().div_rem(m).1);
    let numbers = (ops.number(x), ops.number(&y), ops.number(&Int::new(false, *m)));
    let (Some(a), Some(b), Some(modulus)) = numbers else { return wrong() };
    let Some(modulus) = ops.modulus(&modulus) else { return wrong() };
    let (mut wide, mut out) = (ops.wide_zero(), ops.zero());
    ops.mul(&a, &b, &mut wide);
    ops.reduce(&wide, &modulus, &mut out);
    let Some(out) = ops.int::<R>(&out) else { return wrong() };
    // Times the power of two it is the product again.
    let back: Uint<R> = out.magnitude().times(&power(ops.montgomery(), m));
    let product: Int<R> = x.times(&y);
    let rest = product.div_floor(&Int::new(false, *m)).1;
    let good = !out.is_negative() && out.magnitude() < m && back.div_rem(m).1 == *rest.magnitude();
    if good { None } else { wrong() }
}

/// Random cases of one width.
fn random<const V: usize, const D: usize, const R: usize>(
    row: &mut Row,
    ops: &Arithmetic<V, D>,
    count: usize,
) {
    let mut numbers = Numbers::new(ops.bits() as u64);
    for i in 0..count {
        let (x, y): (Int<R>, Int<R>) = (numbers.signed(ops.bits()), numbers.signed(ops.bits()));
        // Now and then the same number, or its neighbour.
        let y = match numbers.below(32) {
            0 => x,
            1 => -x,
            2 if x.bits() < ops.bits() => x.plus(&Int::ONE),
            _ => y,
        };
        let fault = fault(ops, &x, &y, numbers.word());
        row.case(fault.is_none(), || fault.unwrap_or_default());
        if i % 16 == 0 {
            let mut m = *y.magnitude();
            m.limbs_mut()[0] |= 1;
            let fault = reduction_fault(ops, &x, &numbers.signed(ops.bits()), &m);
            row.case(fault.is_none(), || fault.unwrap_or_default());
        }
    }
}

/// Carry edges of one width: every pair of numbers that have one kind of limb everywhere but in one place.
fn edges<const V: usize, const D: usize, const R: usize>(
    row: &mut Row,
    ops: &Arithmetic<V, D>,
    depth: Depth,
) {
    let step = if depth == Depth::Full { 1 } else { 11 };
    for unit in [52, 64] {
        let limbs = ops.bits().div_ceil(unit);
        let mut places = vec![0, 1, 7, 8, limbs - 2, limbs - 1];
        places.retain(|&place| place < limbs);
        places.sort_unstable();
        places.dedup();
        let mut operands: Vec<Uint<R>> = Vec::new();
        for kind in 0..KINDS {
            operands.push(edge(kind, unit, ops.bits(), 0, kind));
            for &place in &places {
                let others = (0..KINDS).filter(|&other| other != kind);
                operands.extend(others.map(|other| edge::<R>(kind, unit, ops.bits(), place, other)));
            }
        }
        let pairs = operands.iter().flat_map(|x| operands.iter().map(move |y| (x, y)));
        for (i, (x, y)) in pairs.enumerate().filter(|(i, _)| i % step == 0) {
            for signs in 0..4 {
                let (x, y) = (Int::new(signs & 1 == 1, *x), Int::new(signs & 2 == 2, *y));
                let fault = fault(ops, &x, &y, (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
                row.case(fault.is_none(), || fault.unwrap_or_default());
            }
        }
    }
}

/// Every operation of every width on skewed random operands.
#[must_use]
pub fn operations(name: &str, kernels: &Kernels, depth: Depth) -> Row {
    let mut row = Row::new("operations on random numbers", name);
    let count = if depth == Depth::Full { 20_000 } else { 800 };
    random::<1, 2, 14>(&mut row, kernels.w256(), 2 * count);
    random::<2, 3, 22>(&mut row, kernels.w512(), 2 * count);
    random::<3, 6, 38>(&mut row, kernels.w1024(), count);
    random::<6, 11, 72>(&mut row, kernels.w2112(), count / 4);
    row
}

/// Every operation where carries run: limbs that are 0, 1, a highest bit, all ones and one less, in units of 52 and 64 bits.
#[must_use]
pub fn carries(name: &str, kernels: &Kernels, depth: Depth) -> Row {
    let mut row = Row::new("operations where carries run", name);
    edges::<1, 2, 14>(&mut row, kernels.w256(), depth);
    edges::<2, 3, 22>(&mut row, kernels.w512(), depth);
    edges::<3, 6, 38>(&mut row, kernels.w1024(), depth);
    if depth == Depth::Full {
        edges::<6, 11, 72>(&mut row, kernels.w2112(), Depth::Quick);
    }
    row
}

/// Inputs that must be refused: numbers that are too long, entries that have no opposite, divisors and moduli of 0.
#[must_use]
pub fn refusals(name: &str, kernels: &Kernels) -> Row {
    fn width<const V: usize, const D: usize>(row: &mut Row, ops: &Arithmetic<V, D>) {
        let bits = ops.bits();
        let mut case = |good: bool, what: &str| row.case(good, || format!("{what}, {bits} bits"));
        let long: Int<72> = Int::new(false, Uint::ONE << bits);
        case(ops.number(&long).is_none(), "a number that is a bit too long");
        let wide: Int<72> = Int::new(false, Uint::ONE << ops.wide_bits());
        case(ops.wide_number(&wide).is_none(), "a double-width number that is a bit too long");
        let last = ops.number(&long.minus(&Int::ONE));
        let (one, zero) = (ops.number(&Int::<1>::ONE), ops.zero());
        let (Some(last), Some(one)) = (last, one) else { return case(false, "no operands") };
        let (mut out, mut pair) = (ops.zero(), [ops.zero(); 2]);
        case(!ops.add(&last, &one, &mut out), "a sum that is too long");
        case(!ops.sub(&last.negated(), &one, &mut out), "a difference that is too long");
        case(!ops.apply(&[one; 2], &[[i64::MIN, 0], [0, 1]], &mut pair), "an entry without an opposite");
        case(!ops.apply(&[last; 2], &[[1, 1], [0, 1]], &mut pair), "a row that is too long");
        case(!ops.div_exact(&ops.wide_zero(), &zero, &mut out), "a division by 0");
        let square = {
            let mut wide = ops.wide_zero();
            ops.square(&last, &mut wide);
            wide
        };
        case(!ops.div_exact(&square, &one, &mut out), "a quotient that is too long");
        case(ops.modulus(&zero).is_none(), "0 as a modulus");
        let mut limbs = [0; 34];
        limbs[bits / 64] = 1;
        case(!ops.read(&limbs, false, &mut out), "limbs that are too many");
        case(zero.negated() == zero, "the negative of 0");
    }
    let mut row = Row::new("what must be refused", name);
    width(&mut row, kernels.w256());
    width(&mut row, kernels.w512());
    width(&mut row, kernels.w1024());
    width(&mut row, kernels.w2112());
    row
}

/// All checks of every backend that can run on `cpu`, and a row with the reason for each that cannot.
#[must_use]
pub fn all(cpu: &Cpu, depth: Depth) -> Vec<Row> {
    let mut rows = Vec::new();
    for backend in BACKENDS {
        match backend.get(cpu) {
            Ok(kernels) => rows.extend(of(backend.name(), &kernels, depth)),
            Err(u) => rows.push(Row::unavailable("operations", &u)),
        }
    }
    rows
}

/// All checks of one backend.
#[must_use]
pub fn of(name: &str, kernels: &Kernels, depth: Depth) -> Vec<Row> {
    vec![operations(name, kernels, depth), carries(name, kernels, depth), refusals(name, kernels)]
}
