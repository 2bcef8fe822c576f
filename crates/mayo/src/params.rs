//! Parameter sets as data: [`Params`] is a set of a specification by its name, [`Sizes`] is what kernels know about one.
//!
//! The values are in `tables`. Another change is likely (ePrint 2026/2247), so nothing outside these two files identifies a set
//! by its values.
#![forbid(unsafe_code)]

use alloc::format;
use alloc::string::String;
use core::fmt;

pub(crate) mod tables;

use tables::{ROUND2, ROUND3};

/// The edition of the MAYO specification that a key or a signature belongs to. Rounds never share a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Round {
    /// NIST round 2 (5 Feb 2025), as in liboqs 0.13.
    Two = 2,
    /// NIST round 3 (31 Aug 2026), the default.
    Three = 3,
}

impl Round {
    /// The round of the current specification.
    pub const DEFAULT: Round = Round::Three;

    /// The number: 2 or 3.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "round {}", self.number())
    }
}

/// The security level's name within a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Set {
    /// MAYO-1: security level 1, small public key.
    Mayo1 = 1,
    /// MAYO-2: security level 1, small signature.
    Mayo2 = 2,
    /// MAYO-3: security level 3.
    Mayo3 = 3,
    /// MAYO-5: security level 5.
    Mayo5 = 5,
}

impl Set {
    /// All four, in the order of the specification.
    pub const ALL: [Set; 4] = [Set::Mayo1, Set::Mayo2, Set::Mayo3, Set::Mayo5];

    /// The digit in the name: 1, 2, 3 or 5.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }
}

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MAYO-{}", self.number())
    }
}

/// Which pair of vinegar vectors belongs to which power of z: entry l is the pair (i, j), i >= j or i <= j alike.
pub type Schedule = &'static [(u8, u8)];

/// Sizes in field elements (nibbles) unless they say bytes, the tail of f(z) and the whipping schedule: all that kernels and
/// the scheme know about a parameter set.
#[derive(Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Variables.
    pub n: usize,
    /// Equations.
    pub m: usize,
    /// Dimension of the oil space.
    pub o: usize,
    /// Copies of the oil-vinegar map that are whipped together.
    pub k: usize,
    /// The low coefficients of f(z), the constant one first: f(z) = z^m + … + t1 z + t0.
    pub tail: [u8; TAIL],
    /// E_ij = z^l for the l-th pair.
    pub schedule: Schedule,
    /// Whether the equations carry the hash-derived linear term of round 3.
    pub linear_term: bool,
    /// Bytes of the salt; also of the secret key's seed and of the signer's randomizer.
    pub salt_bytes: usize,
    /// Bytes of the message digest.
    pub digest_bytes: usize,
}

/// A parameter set of a round, by its name.
///
/// The values are those of the specification's tables, and there are no others: [`Params::of`] finds a set, and nothing outside
/// this module makes one. So a length that was checked against any `Params` is the length that the kernels work with.
///
/// ```compile_fail,E0451
/// # use lanework_mayo::{Params, Round, Set};
/// # fn make(set: Params) -> Params {
/// Params { round: Round::Two, ..set }
/// # }
/// ```
///
/// Nor can one be changed:
///
/// ```compile_fail,E0616
/// # use lanework_mayo::{Params, Round, Set};
/// # fn change(set: &mut Params) {
/// set.round = Round::Two;
/// # }
/// ```
///
/// ```compile_fail,E0594
/// # use lanework_mayo::{Params, Round, Set};
/// # fn change(set: &mut Params) {
/// set.sizes().o = 0;
/// # }
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct Params {
    pub(crate) round: Round,
    pub(crate) set: Set,
    pub(crate) sizes: Sizes,
}

/// Low coefficients of f(z) that may differ from zero.
pub const TAIL: usize = 5;

/// Bytes of the seed that the public matrices are expanded from.
pub const SEED_PK_BYTES: usize = 16;

/// Methods of [`Sizes`], and the same of [`Params`].
macro_rules! methods {
    ($($(#[$doc:meta])* fn $name:ident($sizes:ident) -> $type:ty { $value:expr })*) => {
        impl Sizes {$(
            $(#[$doc])*
            #[must_use]
            #[inline]
            pub const fn $name(&self) -> $type {
                let $sizes = self;
                $value
            }
        )*}
        impl Params {$(
            $(#[$doc])*
            #[must_use]
            #[inline]
            pub const fn $name(&self) -> $type {
                self.sizes.$name()
            }
        )*}
    };
}

methods! {
    /// Vinegar variables: n - o.
    fn v(sizes) -> usize {
        sizes.n - sizes.o
    }
    /// Bytes of one m-vector: m coefficients, two to a byte, low nibble first.
    fn m_bytes(sizes) -> usize {
        sizes.m / 2
    }
    /// Bytes of one vinegar vector.
    fn v_bytes(sizes) -> usize {
        sizes.v().div_ceil(2)
    }
    /// Bytes of the oil space O as sampled: v x o elements, row by row.
    fn o_bytes(sizes) -> usize {
        (sizes.v() * sizes.o).div_ceil(2)
    }
    /// Bytes of the k*o elements of r.
    fn r_bytes(sizes) -> usize {
        (sizes.k * sizes.o).div_ceil(2)
    }
    /// m-vectors in P1: the upper triangle of v x v, row by row.
    fn p1_vecs(sizes) -> usize {
        sizes.v() * (sizes.v() + 1) / 2
    }
    /// m-vectors in P2: v x o, row by row.
    fn p2_vecs(sizes) -> usize {
        sizes.v() * sizes.o
    }
    /// m-vectors in P3: the upper triangle of o x o, row by row.
    fn p3_vecs(sizes) -> usize {
        sizes.o * (sizes.o + 1) / 2
    }
    /// Bytes of P1 and P2 together, as expanded from the public seed.
    fn p12_bytes(sizes) -> usize {
        (sizes.p1_vecs() + sizes.p2_vecs()) * sizes.m_bytes()
    }
    /// Pairs of vinegar vectors: k (k + 1) / 2.
    fn pairs(sizes) -> usize {
        sizes.k * (sizes.k + 1) / 2
    }
    /// Bytes of a compact secret key, its seed.
    fn secret_key_bytes(sizes) -> usize {
        sizes.salt_bytes
    }
    /// Bytes of a compact public key: the public seed and P3.
    fn public_key_bytes(sizes) -> usize {
        SEED_PK_BYTES + sizes.p3_vecs() * sizes.m_bytes()
    }
    /// Bytes of a signature: k vectors of n elements, and the salt.
    fn signature_bytes(sizes) -> usize {
        (sizes.n * sizes.k).div_ceil(2) + sizes.salt_bytes
    }
}

impl Params {
    /// The edition.
    #[must_use]
    #[inline]
    pub const fn round(&self) -> Round {
        self.round
    }
    /// The set.
    #[must_use]
    #[inline]
    pub const fn set(&self) -> Set {
        self.set
    }
    /// Variables.
    #[must_use]
    #[inline]
    pub const fn n(&self) -> usize {
        self.sizes.n
    }
    /// Equations.
    #[must_use]
    #[inline]
    pub const fn m(&self) -> usize {
        self.sizes.m
    }
    /// Dimension of the oil space.
    #[must_use]
    #[inline]
    pub const fn o(&self) -> usize {
        self.sizes.o
    }
    /// Copies of the oil-vinegar map that are whipped together.
    #[must_use]
    #[inline]
    pub const fn k(&self) -> usize {
        self.sizes.k
    }
    /// The low coefficients of f(z), the constant one first: f(z) = z^m + … + t1 z + t0.
    #[must_use]
    #[inline]
    pub const fn tail(&self) -> [u8; TAIL] {
        self.sizes.tail
    }
    /// E_ij = z^l for the l-th pair.
    #[must_use]
    #[inline]
    pub const fn schedule(&self) -> Schedule {
        self.sizes.schedule
    }
    /// Whether the equations carry the hash-derived linear term of round 3.
    #[must_use]
    #[inline]
    pub const fn linear_term(&self) -> bool {
        self.sizes.linear_term
    }
    /// Bytes of the salt; also of the secret key's seed and of the signer's randomizer.
    #[must_use]
    #[inline]
    pub const fn salt_bytes(&self) -> usize {
        self.sizes.salt_bytes
    }
    /// Bytes of the message digest.
    #[must_use]
    #[inline]
    pub const fn digest_bytes(&self) -> usize {
        self.sizes.digest_bytes
    }
    /// What kernels know about it.
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub const fn sizes(&self) -> &Sizes {
        &self.sizes
    }
    /// The name with its round: `MAYO-1 round 3`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} {}", self.set, self.round)
    }
    /// The path component pair in subjects: `round3/mayo1`.
    #[must_use]
    pub fn path(&self) -> String {
        format!("round{}/mayo{}", self.round.number(), self.set.number())
    }
    /// The position in [`Params::all`], and so in every table of kernels.
    #[doc(hidden)]
    #[must_use]
    pub const fn index(&self) -> usize {
        let set = match self.set {
            Set::Mayo1 => 0,
            Set::Mayo2 => 1,
            Set::Mayo3 => 2,
            Set::Mayo5 => 3,
        };
        match self.round {
            Round::Three => set,
            Round::Two => 4 + set,
        }
    }
    /// The parameters of a set in a round.
    #[must_use]
    pub const fn of(round: Round, set: Set) -> &'static Params {
        let s = match set {
            Set::Mayo1 => 0,
            Set::Mayo2 => 1,
            Set::Mayo3 => 2,
            Set::Mayo5 => 3,
        };
        match round {
            Round::Three => &ROUND3[s],
            Round::Two => &ROUND2[s],
        }
    }
    /// Every set that a key may belong to: round 3, then round 2.
    pub fn all() -> impl Iterator<Item = &'static Params> {
        ROUND3.iter().chain(ROUND2.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_the_specifications() {
        let expect = [
            (Round::Three, [(1456, 464, 24), (2928, 239, 24), (2986, 681, 32), (5554, 964, 40)]),
            (Round::Two, [(1420, 454, 24), (4912, 186, 24), (2986, 681, 32), (5554, 964, 40)]),
        ];
        for (round, sizes) in expect {
            for (set, (pk, sig, sk)) in Set::ALL.into_iter().zip(sizes) {
                let p = Params::of(round, set);
                let got = (p.public_key_bytes(), p.signature_bytes(), p.secret_key_bytes());
                assert_eq!(got, (pk, sig, sk), "{}", p.name());
            }
        }
    }

    #[test]
    fn every_pair_has_one_power_of_z() {
        for p in Params::all() {
            assert_eq!(p.schedule().len(), p.pairs());
            let mut seen = vec![false; p.k() * p.k()];
            for &(i, j) in p.schedule() {
                let (i, j) = (usize::from(i.min(j)), usize::from(i.max(j)));
                assert!(!core::mem::replace(&mut seen[i * p.k() + j], true), "{}: ({i},{j}) twice", p.name());
            }
        }
    }

    #[test]
    fn indices_are_distinct_and_dense() {
        let mut seen: Vec<usize> = Params::all().map(Params::index).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..8).collect::<Vec<_>>());
    }
}
