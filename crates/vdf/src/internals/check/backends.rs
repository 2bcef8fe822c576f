//! Operations in which all backends must agree: finding primes, multiplying and squaring forms.
#![forbid(unsafe_code)]

use lanework_cpu::{Cpu, check::Depth, check::Row};

use crate::backend::Engine;
use crate::discriminant::Discriminant;
use crate::form::Form;
use crate::form::layout::Layout;
use crate::group::multiply;
use crate::{prime, spec};

/// The backends that the CPU can run, plainest first; the others get a row with the reason.
#[must_use]
pub fn targets(cpu: &Cpu) -> (Vec<Engine>, Vec<Row>) {
    let (mut here, mut rows) = (Vec::new(), Vec::new());
    for engine in Engine::all(cpu) {
        match engine {
            Ok(engine) => here.push(engine),
            Err(why) => rows.push(Row::unavailable("primes and forms", &why)),
        }
    }
    (here, rows)
}

/// The first primes of streams, against a search that tests number by number with plain code.
#[must_use]
pub fn primes(engine: Engine, depth: Depth) -> Row {
    let mut row = Row::new("the first prime of a stream", engine.name());
    let plain = Engine::portable();
    // Around the lengths at which the number of digits changes, and some in between.
    let lengths: &[usize] = &[8, 16, 24, 32, 64, 128, 256, 264, 304, 312, 512, 616, 624, 1024, 1032];
    let long: &[usize] = if depth == Depth::Full { &[1040, 1536, 1656, 1664, 2048] } else { &[] };
    for &bits in lengths.iter().chain(long) {
        let seeds = match bits {
            ..=312 => 20,
            313..=624 => 5,
            _ => 2,
        };
        for seed in 0..seeds {
            // One bit set and three: with one, half of the numbers are 1 modulo 4.
            for set in [&[bits - 1][..], &[0, 1, 2, bits - 1]] {
                let seed = [seed, bits as u8, set.len() as u8];
                let expected = prime::first_prime(plain, &seed, bits, set);
                row.case(prime::hash_prime(engine, &seed, bits, set) == expected, || {
                    format!("{bits} bits, seed {seed:?}, bits set {set:?}")
                });
            }
        }
    }
    // Numbers that pass only one of the tests, or neither.
    for (limbs, expected) in NUMBERS {
        row.case(prime::is_prime_on(engine, limbs) == *expected, || format!("whether {limbs:x?} is prime"));
    }
    row
}

/// Numbers and whether they are prime: strong pseudoprimes to base 2, numbers that pass the Lucas-V test
/// (from Baillie, Fiori and Wagstaff), other Lucas pseudoprimes, Carmichael numbers, squares, and Mersenne and
/// Fermat numbers.
const NUMBERS: &[(&[u64], bool)] = &[
    (&[2047], false),
    (&[3_215_031_751], false),
    (&[3_825_123_056_546_413_051], false),
    (&[430_558_874_533], false),
    (&[14_760_229_232_131], false),
    (&[936_916_995_253_453], false),
    (&[5459], false),
    (&[10877], false),
    (&[561], false),
    (&[1_194_649], false),
    (&[12_327_121], false),
    (&[65_537], true),
    (&[4_294_967_297], false),
    (&[0xffff_ffff_ffff_ffc5], true),
    (&[1, 0, 1], false),
    (&[u64::MAX, u64::MAX >> 1], true),
    (&[u64::MAX, u64::MAX >> 2], false),
    (&[u64::MAX; 17], false),
    (&[u64::MAX, u64::MAX, u64::MAX, u64::MAX, u64::MAX, u64::MAX, u64::MAX, u64::MAX, 0x1ff], true),
];

/// Products, squares and powers against the textbook composition, on all sizes of discriminant.
#[must_use]
pub fn group_law(engine: Engine, depth: Depth) -> Row {
    let mut row = Row::new("the group against the books", engine.name());
    let count = if depth == Depth::Full { 200 } else { 10 };
    for bits in [64usize, 200, 256, 512, 520, 1024, 1032, 1536, 2048] {
        let d = Discriminant::from_seed(&bits.to_be_bytes(), bits);
        let Some((d, mut x)) = d.ok().and_then(|d| Form::generator(&d).map(|x| (d, x))) else {
            row.case(false, || format!("no group of {bits} bits"));
            continue;
        };
        let group = d.on(engine);
        let mut y = x.power(0x1234_5678_9abc_def1, group);
        let (mut pairs, mut products) = (Vec::new(), Vec::new());
        for i in 0..count {
            let z = x.compose(&y, group);
            pairs.push((Layout::of(x.clone(), bits), Layout::of(y.clone(), bits)));
            products.push(z.clone());
            row.case(spec::compose(&x, &y, &d).as_ref() == Ok(&z), || format!("{bits} bits, product {i}"));
            let w = z.square(group);
            row.case(spec::square(&z, &d).as_ref() == Ok(&w), || format!("{bits} bits, square {i}"));
            (x, y) = (y, w.inverse());
        }
        // The same products side by side.
        row.case(multiply(&mut pairs, |_| group).is_some(), || format!("{bits} bits, a product"));
        for (i, ((product, _), z)) in pairs.iter().zip(&products).enumerate() {
            row.case(product.form(group).as_ref() == Some(z), || format!("{bits} bits, product {i} of many"));
        }
        let power = x.power(1021, group);
        let stepwise = (1..1021).fold(x.clone(), |product, _| product.compose(&x, group));
        row.case(power == stepwise, || format!("{bits} bits, a power"));
    }
    row
}

#[cfg(test)]
mod faults {
    use super::*;
    use crate::backend::candidates::{Batch, Candidates, Round};
    use crate::backend::{Form1024, Kernels, altered};
    use crate::internals::check::{discriminants, proving, published_proofs};

    fn plain() -> Engine {
        Engine::portable()
    }

    /// The plain backend with faulty kernels for candidates.
    fn with(candidates: Candidates) -> Engine {
        altered("faulty", Kernels { candidates: Box::leak(Box::new(candidates)), ..*plain() })
    }

    /// Reports about every hundredth number as a multiple of a small prime.
    #[test]
    fn an_overlooked_prime_is_noticed() {
        fn coprime(batch: Batch<'_>, round: Round) -> u8 {
            let unlucky = batch.numbers().any(|n| n[0] >> 8 & 3 == 3);
            if unlucky { 0 } else { plain().candidates.coprime(batch, round) }
        }
        let faulty = with(Candidates { coprime, ..*plain().candidates });
        assert!(primes(faulty, Depth::Quick).failed > 10);
        assert!(discriminants(faulty).failed > 0);
    }

    #[test]
    fn a_composite_that_passes_is_noticed() {
        fn lucas(_: &crate::form::num::Num) -> bool {
            true
        }
        let faulty = with(Candidates { lucas, ..*plain().candidates });
        assert!(primes(faulty, Depth::Quick).failed > 0, "strong pseudoprimes pass");
        fn strong(_: &crate::form::num::Num) -> bool {
            true
        }
        let faulty = with(Candidates { strong, ..*plain().candidates });
        assert!(primes(faulty, Depth::Quick).failed > 0, "Lucas pseudoprimes pass");
    }

    #[test]
    fn a_wrong_product_is_noticed() {
        // Sometimes the class of another form.
        fn compose1024(x: &Form1024, y: &Form1024, stop: usize) -> Option<Form1024> {
            let mut product = plain().compose1024(x, y, stop)?;
            product.negative ^= product.a[0] & 7 == 7;
            Some(product)
        }
        let faulty = altered("faulty", Kernels { compose1024, ..*plain() });
        assert!(group_law(faulty, Depth::Quick).failed > 0);
        assert!(published_proofs(faulty, Depth::Quick).failed > 0);
        // The last of several is another class.
        fn multiply1024(pairs: &mut [(Form1024, Form1024)], stop: usize) -> u64 {
            let done = plain().multiply1024(pairs, stop);
            if let [_, .., (last, _)] = pairs {
                last.negative ^= true;
            }
            done
        }
        let faulty = altered("faulty", Kernels { multiply1024, ..*plain() });
        assert!(group_law(faulty, Depth::Quick).failed > 0);
        assert!(proving(faulty, Depth::Quick).failed > 0);
    }
}
