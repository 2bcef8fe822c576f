//! One candidate at a time, in plain Rust.
#![forbid(unsafe_code)]

use super::{Batch, Candidates, Round};
use crate::form::num::Num;
use crate::prime::bpsw;
use crate::prime::montgomery::Plain;
use crate::prime::sieve::{Sieve, coprime};

pub(in crate::backend) static CANDIDATES: Candidates =
    Candidates { lanes: 1, coprime: small, likely, strong, lucas };

/// Every prime in the first round: it ends at the first that divides.
pub(super) fn small(batch: Batch<'_>, round: Round) -> u8 {
    let sieve = Sieve::words(batch.bits);
    u8::from(round == Round::Rest || batch.numbers().all(|n| coprime(sieve, n)))
}

fn likely(batch: Batch<'_>) -> u8 {
    u8::from(batch.numbers().all(|n| strong(&Num::from_limbs(false, n))))
}

fn strong(n: &Num) -> bool {
    bpsw::strong(Plain, n)
}

fn lucas(n: &Num) -> bool {
    bpsw::lucas(Plain, n)
}
