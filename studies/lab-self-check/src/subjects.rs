//! What the study `lab-self-check` races: the same work twice, and the same work with a little more of it.
#![forbid(unsafe_code)]

use std::hint::black_box;

use lanework_race::gate::{Gate, GateRow};
use lanework_race::subject::{Facts, Subject, Variant, work};

/// The subject's path.
pub(crate) const PATH: &str = "self-check/chain";
/// The baseline, and the same work under another name.
pub(crate) const EQUALS: [&str; 2] = ["plain", "twin"];
/// Multiplications in a unit of work: a thousandth of them is a whole number of 32 (`UNROLLED`).
pub(crate) const ROUNDS: u64 = 32_000;
/// Compilers unroll this many steps of a loop, or a divisor of that number, and add another loop for the rest. With a rest
/// (20,000 multiplications and 20 more), work that was 0.1 % more by count was 0.24 % more by time.
#[cfg(test)]
const UNROLLED: u64 = 32;
/// Slowdowns that can be asked for, in thousandths.
pub(crate) const SIZES: [u64; 3] = [1, 3, 10];

/// The name of the variant that does this many thousandths more.
#[must_use]
pub(crate) fn slower(thousandths: u64) -> String {
    format!("slower-{thousandths}/1000")
}

/// Knuth's constants of a linear congruential generator: any odd multiplier would do.
const FACTOR: u64 = 6_364_136_223_846_793_005;
const TERM: u64 = 1_442_695_040_888_963_407;

/// A chain in which each step needs the one before. One function for all variants, so that they share its place in memory.
#[inline(never)]
fn chain(mut x: u64, rounds: u64) -> u64 {
    for _ in 0..rounds {
        x = x.wrapping_mul(FACTOR).wrapping_add(TERM);
    }
    x
}

/// Where `units` units of work end, step by step.
#[must_use]
pub(crate) fn walked(units: u64) -> u64 {
    chain(black_box(1), black_box(ROUNDS * units))
}

/// The same, found in another way.
#[must_use]
pub(crate) fn jumped(units: u64) -> u64 {
    jump(1, ROUNDS * units)
}

/// Where the chain ends, by squaring the step instead of walking: the gate's other way.
fn jump(x: u64, mut rounds: u64) -> u64 {
    let (mut factor, mut term) = (FACTOR, TERM);
    let (mut all_factor, mut all_term) = (1_u64, 0_u64);
    while rounds > 0 {
        if rounds & 1 == 1 {
            all_factor = all_factor.wrapping_mul(factor);
            all_term = all_term.wrapping_mul(factor).wrapping_add(term);
        }
        term = term.wrapping_mul(factor.wrapping_add(1));
        factor = factor.wrapping_mul(factor);
        rounds >>= 1;
    }
    x.wrapping_mul(all_factor).wrapping_add(all_term)
}

/// All variants, with the steps or calls that each must do where a unit of work has `unit` of them.
pub(crate) fn variants(unit: u64) -> impl Iterator<Item = (String, u64)> {
    let equals = EQUALS.iter().map(move |name| ((*name).to_owned(), unit));
    equals.chain(SIZES.iter().map(move |&size| (slower(size), unit + unit * size / 1000)))
}

/// A subject of these variants, the first of which is the baseline.
pub(crate) fn joined(path: String, gate: Gate, mut all: impl Iterator<Item = Variant>) -> Subject {
    // There are always the two equals.
    let first = all.next().unwrap_or_else(|| {
        Variant::new("none", || Err(lanework_race::subject::Unavailable::because("no variant")))
    });
    all.fold(Subject::new(path, gate, first), Subject::with)
}

fn gate() -> Gate {
    Gate::new(|| {
        let starts = (0..64_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let rows = variants(ROUNDS).map(|(backend, rounds)| {
            let right =
                starts.clone().filter(|&x| chain(black_box(x), rounds) == jump(x, rounds)).count() as u64;
            let failed = 64 - right;
            GateRow {
                what: format!("{rounds} steps end where they must"),
                backend,
                passed: right,
                failed,
                skipped: 0,
                why: if failed > 0 { "the chain ends elsewhere".into() } else { String::new() },
            }
        });
        Ok(rows.collect())
    })
}

/// The subject.
#[must_use]
pub(crate) fn subject() -> Subject {
    let all = variants(ROUNDS).map(|(name, rounds)| {
        let told = name.clone();
        Variant::new(name, move || {
            let backend = told.clone();
            let mut x = 1_u64;
            let body = move || x = black_box(chain(black_box(x), black_box(rounds)));
            Ok(work(body, move || Facts { backend: backend.clone(), notes: Vec::new() }))
        })
    });
    joined(PATH.to_owned(), gate(), all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_jump_is_the_walk() {
        for rounds in [0, 1, 2, 3, 7, 64, 1000, ROUNDS] {
            assert_eq!(chain(42, rounds), jump(42, rounds), "{rounds}");
        }
        assert_ne!(jump(42, ROUNDS), jump(42, ROUNDS + 1));
        assert_eq!(walked(3), jumped(3));
    }

    #[test]
    fn what_is_planted_is_exactly_that_much_more_work() {
        let all: Vec<_> = variants(ROUNDS).collect();
        assert_eq!(all.len(), 5);
        assert_eq!(all[0].1, all[1].1);
        for (size, (name, rounds)) in SIZES.iter().zip(&all[2..]) {
            assert_eq!(*name, slower(*size));
            assert_eq!((rounds - ROUNDS) * 1000, ROUNDS * size);
            assert!(
                rounds.is_multiple_of(UNROLLED),
                "{rounds} leave a rest, which costs more than its steps"
            );
        }
        assert!(gate().pass().is_ok());
    }
}
