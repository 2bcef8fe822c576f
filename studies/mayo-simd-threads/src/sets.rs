//! The sets of the workload: those that ship, and round 1's.
#![forbid(unsafe_code)]

use lanework_mayo::Params;

use crate::round1;

/// A set that keys may have, or one of round 1 by its place in [`round1::SETS`].
#[derive(Clone, Copy, Debug)]
pub enum Set {
    /// One that ships.
    Shipped(&'static Params),
    /// One of round 1.
    Round1(usize),
}

impl Set {
    /// Every set: round 3, round 2, round 1.
    pub fn all() -> impl Iterator<Item = Set> {
        Params::all().map(Set::Shipped).chain((0..round1::SETS.len()).map(Set::Round1))
    }

    /// The path in subjects: `round2/mayo1`.
    #[must_use]
    pub fn path(self) -> String {
        match self {
            Set::Shipped(params) => params.path(),
            Set::Round1(at) => format!("round1/{}", round1::SETS[at].0),
        }
    }
}
