//! One candidate at a time, in plain Rust.
#![forbid(unsafe_code)]

use super::{Batch, Candidates, Round};
use crate::form::num::Num;
use crate::prime::bpsw;
use crate::prime::sieve::{self, Sieve};

pub(in crate::backend) static CANDIDATES: Candidates =
    Candidates { lanes: 1, coprime, likely, strong, lucas };

/// Every prime in the first round: the division of a number ends at the first prime that divides it.
pub(super) fn coprime(batch: Batch<'_>, round: Round) -> u8 {
    let sieve = Sieve::words(batch.bits);
    mask(batch, |n| round == Round::Rest || sieve::coprime(sieve, n))
}

fn likely(batch: Batch<'_>) -> u8 {
    mask(batch, |n| strong(&Num::from_limbs(false, n)))
}

/// The numbers that satisfy a predicate.
fn mask(batch: Batch<'_>, holds: impl Fn(&[u64]) -> bool) -> u8 {
    batch.numbers().enumerate().fold(0, |mask, (i, n)| mask | u8::from(holds(n)) << i)
}

pub(super) fn strong(n: &Num) -> bool {
    bpsw::strong(n)
}

pub(super) fn lucas(n: &Num) -> bool {
    bpsw::lucas(n)
}
