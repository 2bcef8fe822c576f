//! One candidate at a time, in plain Rust.
#![forbid(unsafe_code)]

use super::{Candidates, Round};
use crate::form::num::Num;
use crate::prime::bpsw;
use crate::prime::montgomery::Plain;
use crate::prime::sieve::{Sieve, coprime};

pub(in crate::backend) static CANDIDATES: Candidates =
    Candidates { lanes: 1, coprime: small, likely, strong, lucas };

/// Every prime in the first round: it ends at the first that divides.
pub(super) fn small(numbers: &[Num], round: Round) -> u8 {
    match (numbers, round) {
        ([n], Round::First) => u8::from(coprime(Sieve::words(n.bits()), n.magnitude())),
        _ => 1,
    }
}

fn likely(numbers: &[Num]) -> u8 {
    u8::from(numbers.first().is_some_and(strong))
}

fn strong(n: &Num) -> bool {
    bpsw::strong(Plain, n)
}

fn lucas(n: &Num) -> bool {
    bpsw::lucas(Plain, n)
}
