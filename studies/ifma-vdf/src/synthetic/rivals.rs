//! Our 52-bit limbs beside chiavdf's own assembly and GMP: the same operands, the same rounds, warm and each from the last.
//!
//! Nobody's line is timed before their results were compared with plain integers.
#![forbid(unsafe_code)]

use std::hint::black_box;

use super::{Aligned, Fault, Ifma, Lines, Synthetic, operand, shorter};
use crate::arithmetic::{Arithmetic, Kernels, Number};
use crate::probes::Probes;
use lanework_integer::internals::check::Numbers;
use lanework_integer::{Int, Uint};
#[cfg(feature = "peers")]
use lanework_peers::gmp::Gmp;
#[cfg(feature = "peers")]
use lanework_peers::ifma::{Limbs, Radix52};

const CHAINED: &str = ", each from the last";

/// One row of the table: cycles.
pub(super) struct Row {
    pub(super) what: String,
    pub(super) ours: Option<f64>,
    pub(super) theirs: Option<f64>,
    pub(super) gmp: Option<f64>,
}

/// The rows in words, and the names of the lines behind them: ours, chiavdf's, GMP's. A `+` stands for [`CHAINED`].
const ROWS: [(&str, [&str; 3]); 11] = [
    ("to 52-bit limbs", ["to_avx512", "to_chiavdf", ""]),
    ("a sum from 52-bit limbs", ["add_to_gmp", "add_to_gmp chiavdf", ""]),
    ("a product from 52-bit limbs", ["mul_to_gmp", "mul_to_gmp chiavdf", ""]),
    ("to 52-bit limbs and back+", ["to_avx512 and back+", "to_chiavdf and back+", ""]),
    ("sum", ["add_avx512", "add_chiavdf", "add_gmp"]),
    ("sum+", ["add_avx512+", "add_chiavdf+", "add_gmp+"]),
    ("product", ["mul_avx512", "mul_chiavdf", "mul_gmp"]),
    ("product, first factor+", ["mul_avx512, first factor+", "mul_chiavdf, first factor+", "mul_gmp+"]),
    ("product, second factor+", ["mul_avx512, second factor+", "mul_chiavdf, second factor+", "mul_gmp+"]),
    ("product with all conversions", ["mul_avx512_gmp", "mul_chiavdf_gmp", "mul_gmp"]),
    ("product with all conversions+", ["mul_avx512_gmp+", "mul_chiavdf_gmp+", "mul_gmp+"]),
];

fn full(bits: usize, name: &str) -> String {
    format!("{bits}_{}", name.replace('+', CHAINED))
}

/// A chain of products, by the factor that is the last result.
fn factor(name: &str, second: bool) -> String {
    format!("{name}, {} factor+", if second { "second" } else { "first" })
}

/// Whether a line is in this table.
pub(super) fn is_one(name: &str) -> bool {
    let mut all = ROWS.iter().flat_map(|(_, names)| names);
    all.any(|line| !line.is_empty() && [512, 1024].iter().any(|&bits| full(bits, line) == name))
}

/// The table's rows.
pub(super) fn rows(of: &Synthetic) -> Vec<Row> {
    let mut out = Vec::new();
    for bits in [512, 1024] {
        for (what, [ours, theirs, gmp]) in ROWS {
            let cycles = |name: &str| of.cycles(&full(bits, name));
            out.push(Row {
                what: format!("{bits} bits, {}", what.replace('+', CHAINED)),
                ours: cycles(ours),
                theirs: cycles(theirs),
                gmp: cycles(gmp),
            });
        }
    }
    out
}

/// What they say together, if chiavdf's were there: where ours take longer by more than a cycle.
pub(super) fn finding(of: &Synthetic) -> Option<String> {
    let both: Vec<(String, f64, f64)> =
        rows(of).into_iter().filter_map(|row| Some((row.what, row.ours?, row.theirs?))).collect();
    let slower: Vec<String> = both
        .iter()
        .filter(|(_, ours, theirs)| *ours > theirs + 1.0)
        .map(|(what, ours, theirs)| format!("{what} ({ours:.0} against {theirs:.0})"))
        .collect();
    let list = if slower.is_empty() { "none".to_owned() } else { slower.join("; ") };
    (!both.is_empty()).then(|| {
        format!(
            "Of {} operations, ours take over a cycle more than chiavdf's own in {}: {list}.",
            both.len(),
            slower.len()
        )
    })
}

/// Limbs of 52 or of 64 bits as the check sees them.
trait Operations {
    /// To the format and back.
    fn there_and_back(&mut self, x: &Int<33>) -> Int<33>;
    fn sum(&mut self, x: &Int<33>, y: &Int<33>) -> Int<33>;
    fn product(&mut self, x: &Int<33>, y: &Int<33>) -> Int<33>;
    /// The low half of a product of positive numbers, as the chain takes it.
    fn low_product(&mut self, x: &Int<33>, y: &Int<33>) -> Int<33>;
}

/// The lowest bits of a positive number.
fn low_bits(bits: usize, x: &Int<33>) -> Int<33> {
    let mut limbs = *x.magnitude().limbs();
    limbs[bits / 64..].fill(0);
    Int::new(false, Uint::from_limbs(limbs))
}

/// The first operation that differs from plain integers, if one does.
fn fault(bits: usize, of: &mut dyn Operations) -> Option<String> {
    let mut numbers = Numbers::new(17 + bits as u64);
    let most = Int::<33>::new(false, Uint::ONE << bits).minus(&Int::from_i64(1));
    let half = Int::<33>::new(false, Uint::ONE << (bits - 1)).minus(&Int::from_i64(1));
    for i in 0..3000 {
        let (mut x, mut y): (Int<33>, Int<33>) = (numbers.signed(bits), numbers.signed(bits));
        match i {
            0 => (x, y) = (most, most),
            1 => (x, y) = (-most, most),
            2 => (x, y) = (Int::from_i64(0), -most),
            3 => (x, y) = (Int::from_i64(0), Int::from_i64(0)),
            _ => {}
        }
        let differs = |what: &str| Some(format!("{what} of {bits} bits: {x:x?} and {y:x?}"));
        if of.there_and_back(&x) != x {
            return differs("conversion");
        }
        // Sums that fit, some of them 0.
        let short = |x: &Int<33>| Int::new(x.is_negative(), *low_bits(bits, x).magnitude() >> 1);
        let (p, q) = (short(&x), if i % 8 == 0 { -short(&x) } else { short(&y) });
        if of.sum(&p, &q) != p.plus(&q) || of.sum(&half, &p) != half.plus(&p) {
            return differs("sum");
        }
        if of.product(&x, &y) != x.times(&y) {
            return differs("product");
        }
        let positive = |x: &Int<33>| Int::new(false, *x.magnitude());
        let (p, q) = (positive(&x), positive(&y));
        if of.low_product(&p, &q) != low_bits(bits, &p.times(&q)) {
            return differs("the low half of a product");
        }
    }
    None
}

/// Limb i of a number of `bits` bits has these bits, 52 at most.
fn mask<const V: usize>(bits: usize) -> [[u64; 8]; V] {
    std::array::from_fn(|t| {
        std::array::from_fn(|i| (1u64 << bits.saturating_sub(52 * (8 * t + i)).min(52)) - 1)
    })
}

/// Ours.
struct Ours<'a, const V: usize, const D: usize> {
    ops: &'a Arithmetic<V, D>,
    probes: &'a Probes,
}

impl<const V: usize, const D: usize> Ours<'_, V, D> {
    fn number(&self, x: &Int<33>) -> Number<V> {
        // One that does not fit would be 0, and differ.
        self.ops.number(x).unwrap_or(self.ops.zero())
    }

    fn back(&self, x: &Number<V>) -> Int<33> {
        self.ops.int(x).unwrap_or(Int::from_i64(0))
    }
}

/// The low half of a product as an operand.
#[inline]
fn take_low<const V: usize>(probes: &Probes, from: &[[u64; 8]], mask: &[[u64; 8]; V], out: &mut [[u64; 8]]) {
    if let (Some(from), Some(out)) = (from.first_chunk::<V>(), out.first_chunk_mut::<V>()) {
        probes.mask(from, mask, out);
    }
}

impl<const V: usize, const D: usize> Operations for Ours<'_, V, D> {
    fn there_and_back(&mut self, x: &Int<33>) -> Int<33> {
        self.back(&self.number(x))
    }

    fn sum(&mut self, x: &Int<33>, y: &Int<33>) -> Int<33> {
        let mut out = self.ops.zero();
        self.ops.add(&self.number(x), &self.number(y), &mut out);
        self.back(&out)
    }

    fn product(&mut self, x: &Int<33>, y: &Int<33>) -> Int<33> {
        let mut out = self.ops.wide_zero();
        self.ops.mul(&self.number(x), &self.number(y), &mut out);
        self.ops.wide_int(&out).unwrap_or(Int::from_i64(0))
    }

    fn low_product(&mut self, x: &Int<33>, y: &Int<33>) -> Int<33> {
        let (mut wide, mut out) = (self.ops.wide_zero(), self.ops.zero());
        self.ops.mul(&self.number(x), &self.number(y), &mut wide);
        take_low(self.probes, &wide.words, &mask::<V>(self.ops.bits()), &mut out.words);
        self.back(&out)
    }
}

#[cfg(feature = "peers")]
mod peers {
    use super::*;

    /// chiavdf's.
    pub(super) struct Theirs<'a, const V: usize> {
        pub(super) bits: usize,
        pub(super) ifma: &'a Ifma,
        pub(super) probes: &'a Probes,
    }

    fn limbs(x: &Int<33>) -> Limbs {
        Limbs::new(x.magnitude().limbs(), x.is_negative()).unwrap_or(Limbs::ZERO)
    }

    fn int(x: &[u64], negative: bool) -> Int<33> {
        let mut out = [0; 33];
        out.iter_mut().zip(x).for_each(|(out, &x)| *out = x);
        Int::new(negative, Uint::from_limbs(out))
    }

    impl<const V: usize> Theirs<'_, V> {
        fn number(&self, x: &Int<33>) -> Radix52 {
            let mut out = Radix52::ZERO;
            self.ifma.to(&limbs(x), &mut out);
            out
        }

        fn back(&self, x: &Radix52, wide: bool) -> Int<33> {
            let mut out = Limbs::ZERO;
            if wide {
                self.ifma.from_wide(x, &mut out)
            } else {
                self.ifma.from(x, &mut out)
            }
            int(out.limbs(), out.is_negative())
        }
    }

    impl<const V: usize> Operations for Theirs<'_, V> {
        fn there_and_back(&mut self, x: &Int<33>) -> Int<33> {
            self.back(&self.number(x), false)
        }

        fn sum(&mut self, x: &Int<33>, y: &Int<33>) -> Int<33> {
            let mut out = Radix52::ZERO;
            self.ifma.add(&self.number(x), &self.number(y), &mut out);
            self.back(&out, false)
        }

        fn product(&mut self, x: &Int<33>, y: &Int<33>) -> Int<33> {
            let mut out = Radix52::ZERO;
            self.ifma.mul(&self.number(x), &self.number(y), &mut out);
            self.back(&out, true)
        }

        fn low_product(&mut self, x: &Int<33>, y: &Int<33>) -> Int<33> {
            let (mut wide, mut out) = (Radix52::ZERO, self.number(x));
            self.ifma.mul(&out, &self.number(y), &mut wide);
            take_low(self.probes, wide.vectors(), &mask::<V>(self.bits), out.vectors_mut());
            self.back(&out, false)
        }
    }

    /// GMP.
    pub(super) struct Plain(pub(super) usize);

    fn gmp(x: &Int<33>) -> Gmp {
        Gmp::new(x.magnitude().limbs(), x.is_negative())
    }

    impl Operations for Plain {
        fn there_and_back(&mut self, x: &Int<33>) -> Int<33> {
            int(&gmp(x).limbs(), gmp(x).is_negative())
        }

        fn sum(&mut self, x: &Int<33>, y: &Int<33>) -> Int<33> {
            let mut out = Gmp::default();
            out.set_sum(&gmp(x), &gmp(y));
            int(&out.limbs(), out.is_negative())
        }

        fn product(&mut self, x: &Int<33>, y: &Int<33>) -> Int<33> {
            let mut out = Gmp::default();
            out.set_product(&gmp(x), &gmp(y));
            int(&out.limbs(), out.is_negative())
        }

        fn low_product(&mut self, x: &Int<33>, y: &Int<33>) -> Int<33> {
            let mut out = Gmp::default();
            out.set_product(&gmp(x), &gmp(y));
            out.keep_low(self.0 as u32);
            int(&out.limbs(), out.is_negative())
        }
    }
}

/// Compares everybody's results with plain integers.
pub(super) fn gate(kernels: &Kernels, probes: &Probes, theirs: Option<&[Ifma; 2]>) -> Result<(), Fault> {
    let refuse = |who: &str, fault: Option<String>| match fault {
        Some(what) => Err(Fault::Wrong(format!("{who}: {what}"))),
        None => Ok(()),
    };
    refuse("avx512", fault(512, &mut Ours { ops: kernels.w512(), probes }))?;
    refuse("avx512", fault(1024, &mut Ours { ops: kernels.w1024(), probes }))?;
    #[cfg(feature = "peers")]
    {
        if let Some([small, large]) = theirs {
            refuse("chiavdf", fault(512, &mut peers::Theirs::<2> { bits: 512, ifma: small, probes }))?;
            refuse("chiavdf", fault(1024, &mut peers::Theirs::<3> { bits: 1024, ifma: large, probes }))?;
        }
        refuse("GMP", fault(512, &mut peers::Plain(512)))?;
        refuse("GMP", fault(1024, &mut peers::Plain(1024)))?;
    }
    #[cfg(not(feature = "peers"))]
    let _ = theirs;
    Ok(())
}

/// Two numbers, one made from the other in turns.
struct Turns<T> {
    pair: [T; 2],
    second: bool,
}

impl<T> Turns<T> {
    fn new(first: T, second: T) -> Turns<T> {
        Turns { pair: [first, second], second: false }
    }

    /// The last result, and where the next goes.
    #[inline]
    fn next(&mut self) -> (&T, &mut T) {
        let [a, b] = &mut self.pair;
        self.second = !self.second;
        if self.second { (a, b) } else { (b, a) }
    }
}

/// The lines that the report has not: chiavdf's, and everybody's chains.
pub(super) fn lines<const V: usize, const D: usize, const N: usize>(
    lines: &mut Lines,
    ops: &'static Arithmetic<V, D>,
    probes: &'static Probes,
    theirs: Option<Ifma>,
) {
    let bits = 64 * N;
    let name = |what: &str| full(bits, what);
    let mut numbers = Numbers::new(bits as u64);
    let (x, y): (Uint<N>, Uint<N>) = (operand(&mut numbers), shorter(&mut numbers));
    // A sum that grows by a number of half its length stays within the width for longer than any run.
    let (start, step) = (x >> 2, y >> (bits / 2));
    let low = mask::<V>(bits);
    let number = |x: &Uint<N>| ops.number(&Int::new(false, *x)).unwrap_or(ops.zero());

    let (mut limbs, mut out) = (Aligned(*x.limbs()), ops.zero());
    lines.push(name("to_avx512 and back+"), None, move || {
        ops.read(&limbs.0, false, &mut out);
        black_box(ops.write(&out, &mut limbs.0));
        black_box(&mut limbs);
    });
    let (mut turns, by) = (Turns::new(number(&start), ops.zero()), number(&step));
    lines.push(name("add_avx512+"), None, move || {
        let (from, to) = turns.next();
        black_box(ops.add(from, &by, to));
        black_box(to);
    });
    for second in [false, true] {
        let (mut a, b, mut wide) = (number(&x), number(&y), ops.wide_zero());
        lines.push(name(&factor("mul_avx512", second)), None, move || {
            if second {
                ops.mul(&b, &a, &mut wide);
            } else {
                ops.mul(&a, &b, &mut wide);
            }
            take_low(probes, &wide.words, &low, &mut a.words);
            black_box(&mut a);
        });
    }
    #[cfg(feature = "peers")]
    {
        let gmp = |x: &Uint<N>| Gmp::new(x.limbs(), false);
        let (mut turns, by) = (Turns::new(gmp(&start), Gmp::with_room(2 * bits)), gmp(&step));
        lines.push(name("add_gmp+"), None, move || {
            let (from, to) = turns.next();
            to.set_sum(from, &by);
            black_box(to);
        });
        let (mut turns, by) = (Turns::new(Gmp::with_room(2 * bits), Gmp::with_room(2 * bits)), gmp(&y));
        turns.pair[0].set_sum(&gmp(&x), &Gmp::default());
        lines.push(name("mul_gmp+"), None, move || {
            let (from, to) = turns.next();
            to.set_product(from, &by);
            to.keep_low(bits as u32);
            black_box(to);
        });
        if let Some(ifma) = theirs {
            chiavdf::<V, N>(lines, &ifma, probes, [x, y, start, step], low);
        }
    }
    #[cfg(not(feature = "peers"))]
    let _ = theirs;
}

/// chiavdf's lines, each as ours is.
#[cfg(feature = "peers")]
fn chiavdf<const V: usize, const N: usize>(
    lines: &mut Lines,
    ifma: &Ifma,
    probes: &'static Probes,
    [x, y, start, step]: [Uint<N>; 4],
    low: [[u64; 8]; V],
) {
    let name = |what: &str| full(64 * N, what);
    let limbs = |x: &Uint<N>| Limbs::new(x.limbs(), false).unwrap_or(Limbs::ZERO);
    let number = |x: &Uint<N>| {
        let mut out = Radix52::ZERO;
        ifma.to(&limbs(x), &mut out);
        out
    };
    let (xl, yl) = (limbs(&x), limbs(&y));
    let (a, b, half) = (number(&x), number(&y), number(&(x >> 1)));

    let (ops, from, mut out) = (ifma.clone(), xl.clone(), Radix52::ZERO);
    lines.push(name("to_chiavdf"), None, move || {
        ops.to(black_box(&from), &mut out);
        black_box(&mut out);
    });
    let (ops, p, q, mut out) = (ifma.clone(), half.clone(), b.clone(), Radix52::ZERO);
    lines.push(name("add_chiavdf"), None, move || {
        ops.add(black_box(&p), black_box(&q), &mut out);
        black_box(&mut out);
    });
    let (ops, mut out) = (ifma.clone(), Limbs::ZERO);
    lines.push(name("add_to_gmp chiavdf"), None, move || {
        ops.from(black_box(&half), &mut out);
        black_box(&mut out);
    });
    let (ops, p, q, mut out) = (ifma.clone(), a.clone(), b.clone(), Radix52::ZERO);
    lines.push(name("mul_chiavdf"), None, move || {
        ops.mul(black_box(&p), black_box(&q), &mut out);
        black_box(&mut out);
    });
    let (ops, mut product, mut out) = (ifma.clone(), Radix52::ZERO, Limbs::ZERO);
    ops.mul(&a, &b, &mut product);
    lines.push(name("mul_to_gmp chiavdf"), None, move || {
        ops.from_wide(black_box(&product), &mut out);
        black_box(&mut out);
    });
    let (ops, p, q) = (ifma.clone(), xl.clone(), yl.clone());
    let (mut c, mut d, mut product, mut out) = (Radix52::ZERO, Radix52::ZERO, Radix52::ZERO, Limbs::ZERO);
    lines.push(name("mul_chiavdf_gmp"), None, move || {
        ops.to(black_box(&p), &mut c);
        ops.to(black_box(&q), &mut d);
        ops.mul(&c, &d, &mut product);
        ops.from_wide(&product, &mut out);
        black_box(&mut out);
    });

    let (ops, mut all, mut out) = (ifma.clone(), xl.clone(), Radix52::ZERO);
    lines.push(name("to_chiavdf and back+"), None, move || {
        ops.to(&all, &mut out);
        ops.from(&out, &mut all);
        black_box(&mut all);
    });
    let (ops, by) = (ifma.clone(), number(&step));
    let mut turns = Turns::new(number(&start), Radix52::ZERO);
    lines.push(name("add_chiavdf+"), None, move || {
        let (from, to) = turns.next();
        ops.add(from, &by, to);
        black_box(to);
    });
    for second in [false, true] {
        let (ops, mut p, q, mut product) = (ifma.clone(), a.clone(), b.clone(), Radix52::ZERO);
        lines.push(name(&factor("mul_chiavdf", second)), None, move || {
            if second {
                ops.mul(&q, &p, &mut product);
            } else {
                ops.mul(&p, &q, &mut product);
            }
            take_low(probes, product.vectors(), &low, p.vectors_mut());
            black_box(&mut p);
        });
    }
    let (ops, mut out) = (ifma.clone(), xl);
    let (mut c, mut d, mut product) = (Radix52::ZERO, Radix52::ZERO, Radix52::ZERO);
    lines.push(name("mul_chiavdf_gmp+"), None, move || {
        ops.to(&out, &mut c);
        ops.to(black_box(&yl), &mut d);
        ops.mul(&c, &d, &mut product);
        ops.from_wide(&product, &mut out);
        out.keep(N as i64);
        black_box(&mut out);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plain integers that one operation gets wrong now and then.
    struct Faulty(&'static str, usize);

    impl Faulty {
        fn spoil(&self, what: &str, x: Int<33>, rare: bool, by: i64) -> Int<33> {
            if self.0 == what && rare { x.plus(&Int::from_i64(by)) } else { x }
        }
    }

    impl Operations for Faulty {
        fn there_and_back(&mut self, x: &Int<33>) -> Int<33> {
            let lost = self.0 == "sign" && x.magnitude().limbs()[0] == u64::MAX;
            Int::new(x.is_negative() && !lost, *self.spoil("conversion", *x, x.is_zero(), 1).magnitude())
        }

        fn sum(&mut self, x: &Int<33>, y: &Int<33>) -> Int<33> {
            let sum = x.plus(y);
            self.spoil("sum", sum, sum.is_zero() && !x.is_zero(), 1)
        }

        fn product(&mut self, x: &Int<33>, y: &Int<33>) -> Int<33> {
            let product = x.times(y);
            self.spoil("product", product, x.magnitude().limbs()[1] == u64::MAX && y.is_negative(), -1)
        }

        fn low_product(&mut self, x: &Int<33>, y: &Int<33>) -> Int<33> {
            let bits = self.1 + 64 * usize::from(self.0 == "the low half of a product");
            low_bits(bits, &x.times(y))
        }
    }

    #[test]
    fn a_wrong_result_is_refused_and_named() {
        for bits in [512, 1024] {
            assert_eq!(fault(bits, &mut Faulty("", bits)), None);
            for what in ["conversion", "sum", "product", "the low half of a product"] {
                let why = fault(bits, &mut Faulty(what, bits)).expect(what);
                assert!(why.starts_with(what) && why.contains(&format!("{bits} bits")), "{why}");
            }
            let why = fault(bits, &mut Faulty("sign", bits)).expect("a lost sign");
            assert!(why.starts_with("conversion"), "{why}");
        }
    }

    #[test]
    fn a_wrong_kernel_ends_the_study() {
        use crate::arithmetic::{BACKENDS, avx512::KERNELS};
        use crate::probes::PROBES;
        let settings = lanework_cpu::Settings::from_env().expect("settings");
        let row = BACKENDS.iter().find(|b| b.name() == "avx512").expect("a row");
        let Ok(probes) = PROBES.get(&settings.cpu()) else { return };
        row.get(&settings.cpu()).expect("as the probes");
        let mut kernels = KERNELS;
        gate(&kernels, probes.kernels(), None).expect("right");
        kernels.w512.mul = crate::arithmetic::faulty::squares;
        let why = gate(&kernels, probes.kernels(), None).expect_err("wrong");
        assert!(matches!(&why, Fault::Wrong(why) if why.starts_with("avx512: product of 512 bits")), "{why}");
    }

    #[test]
    fn operands_of_a_chain_have_the_width() {
        let all: u32 = mask::<2>(512).as_flattened().iter().map(|x| x.count_ones()).sum();
        assert_eq!((all, mask::<2>(512)[1][1]), (512, (1 << 44) - 1));
        let all: u32 = mask::<3>(1024).as_flattened().iter().map(|x| x.count_ones()).sum();
        assert_eq!(all, 1024);
    }
}
