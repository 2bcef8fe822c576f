//! Parameter sets as data: sizes, the tail of f(z), and the whipping schedule.
//!
//! Round 2: the specification submitted to the second round (5 Feb 2025). Round 3: the specification of 31 Aug 2026.
//! Another change is likely (ePrint 2026/2247), so nothing outside this file knows a set by name.
#![forbid(unsafe_code)]

use alloc::format;
use alloc::string::String;
use core::fmt;

/// The edition of the MAYO specification that a key or a signature belongs to. Rounds never share a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Round {
    /// NIST round 1's parameters, with the nibble-packed m-vectors of liboqs 0.12 (the submission of 2023 itself sliced
    /// them by bits). Study only: never offered for keys.
    #[cfg(feature = "study")]
    One = 1,
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

/// Everything that tells one parameter set from another. Sizes are in field elements (nibbles) unless they say bytes.
///
/// The values are those of the specification's tables, and there are no others: [`Params::of`] finds a set, nothing outside
/// this file makes one. So a length that was checked against any `Params` is the length that the kernels work with.
///
/// ```compile_fail,E0451
/// # use lanework_mayo::{Params, Round, Set};
/// let set = Params::of(Round::Three, Set::Mayo1);
/// let shorter = Params { o: 0, ..*set };
/// ```
///
/// Nor can one be changed:
///
/// ```compile_fail,E0616
/// # use lanework_mayo::{Params, Round, Set};
/// # fn change(set: &mut Params) {
/// set.o = 0;
/// # }
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct Params {
    pub(crate) round: Round,
    pub(crate) set: Set,
    pub(crate) n: usize,
    pub(crate) m: usize,
    pub(crate) o: usize,
    pub(crate) k: usize,
    pub(crate) tail: [u8; TAIL],
    pub(crate) schedule: Schedule,
    pub(crate) linear_term: bool,
    pub(crate) salt_bytes: usize,
    pub(crate) digest_bytes: usize,
}

/// Low coefficients of f(z) that may differ from zero.
pub const TAIL: usize = 5;

/// Bytes of the seed that the public matrices are expanded from.
pub const SEED_PK_BYTES: usize = 16;

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
        self.n
    }
    /// Equations.
    #[must_use]
    #[inline]
    pub const fn m(&self) -> usize {
        self.m
    }
    /// Dimension of the oil space.
    #[must_use]
    #[inline]
    pub const fn o(&self) -> usize {
        self.o
    }
    /// Copies of the oil-vinegar map that are whipped together.
    #[must_use]
    #[inline]
    pub const fn k(&self) -> usize {
        self.k
    }
    /// The low coefficients of f(z), the constant one first: f(z) = z^m + … + t1 z + t0.
    /// Only round 1's MAYO-5 reaches z^4.
    #[must_use]
    #[inline]
    pub const fn tail(&self) -> [u8; TAIL] {
        self.tail
    }
    /// E_ij = z^l for the l-th pair.
    #[must_use]
    #[inline]
    pub const fn schedule(&self) -> Schedule {
        self.schedule
    }
    /// Whether the equations carry the hash-derived linear term of round 3.
    #[must_use]
    #[inline]
    pub const fn linear_term(&self) -> bool {
        self.linear_term
    }
    /// Bytes of the salt; also of the secret key's seed and of the signer's randomizer.
    #[must_use]
    #[inline]
    pub const fn salt_bytes(&self) -> usize {
        self.salt_bytes
    }
    /// Bytes of the message digest.
    #[must_use]
    #[inline]
    pub const fn digest_bytes(&self) -> usize {
        self.digest_bytes
    }
    /// Vinegar variables: n - o.
    #[must_use]
    pub const fn v(&self) -> usize {
        self.n - self.o
    }
    /// Bytes of one m-vector: m coefficients, two to a byte, low nibble first.
    #[must_use]
    pub const fn m_bytes(&self) -> usize {
        self.m / 2
    }
    /// Bytes of one vinegar vector.
    #[must_use]
    pub const fn v_bytes(&self) -> usize {
        self.v().div_ceil(2)
    }
    /// Bytes of the oil space O as sampled: v x o elements, row by row.
    #[must_use]
    pub const fn o_bytes(&self) -> usize {
        (self.v() * self.o).div_ceil(2)
    }
    /// Bytes of the k*o elements of r.
    #[must_use]
    pub const fn r_bytes(&self) -> usize {
        (self.k * self.o).div_ceil(2)
    }
    /// m-vectors in P1: the upper triangle of v x v, row by row.
    #[must_use]
    pub const fn p1_vecs(&self) -> usize {
        self.v() * (self.v() + 1) / 2
    }
    /// m-vectors in P2: v x o, row by row.
    #[must_use]
    pub const fn p2_vecs(&self) -> usize {
        self.v() * self.o
    }
    /// m-vectors in P3: the upper triangle of o x o, row by row.
    #[must_use]
    pub const fn p3_vecs(&self) -> usize {
        self.o * (self.o + 1) / 2
    }
    /// Bytes of P1 and P2 together, as expanded from the public seed.
    #[must_use]
    pub const fn p12_bytes(&self) -> usize {
        (self.p1_vecs() + self.p2_vecs()) * self.m_bytes()
    }
    /// Pairs of vinegar vectors: k (k + 1) / 2.
    #[must_use]
    pub const fn pairs(&self) -> usize {
        self.k * (self.k + 1) / 2
    }
    /// Bytes of a compact secret key, its seed.
    #[must_use]
    pub const fn secret_key_bytes(&self) -> usize {
        self.salt_bytes
    }
    /// Bytes of a compact public key: the public seed and P3.
    #[must_use]
    pub const fn public_key_bytes(&self) -> usize {
        SEED_PK_BYTES + self.p3_vecs() * self.m_bytes()
    }
    /// Bytes of a signature: k vectors of n elements, and the salt.
    #[must_use]
    pub const fn signature_bytes(&self) -> usize {
        (self.n * self.k).div_ceil(2) + self.salt_bytes
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
    /// The position in the backends' tables of kernels.
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
            #[cfg(feature = "study")]
            Round::One => 8 + set,
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
            #[cfg(feature = "study")]
            Round::One => &ROUND1[s],
        }
    }
    /// The parameters at a position in the backends' tables.
    pub(crate) const fn by_index(index: usize) -> &'static Params {
        match index / 4 {
            0 => &ROUND3[index % 4],
            1 => &ROUND2[index % 4],
            #[cfg(feature = "study")]
            2 => &ROUND1[index % 4],
            _ => panic!("no such parameter set"),
        }
    }
    /// Round 1's sets, for a study: no key may belong to them.
    #[cfg(feature = "study")]
    pub fn study_only() -> impl Iterator<Item = &'static Params> {
        ROUND1.iter()
    }
    /// Every set that a key may belong to: round 3, then round 2.
    pub fn all() -> impl Iterator<Item = &'static Params> {
        ROUND3.iter().chain(ROUND2.iter())
    }
}

/// A running counter: i counts up, j counts down from k - 1 to i (rounds 1 and 2).
const fn running<const K: usize, const L: usize>() -> [(u8, u8); L] {
    let mut pairs = [(0, 0); L];
    let (mut l, mut i) = (0, 0);
    while i < K {
        let mut j = K;
        while j > i {
            j -= 1;
            pairs[l] = (i as u8, j as u8);
            l += 1;
        }
        i += 1;
    }
    pairs
}

/// Round 3: E_ij follows a fixed symmetric table for each k, chosen by the authors so that the resulting block matrix is MDS.
#[rustfmt::skip]
const SCHEDULE_3_K10: Schedule = &[
    (5, 1), (6, 4), (8, 5), (8, 8), (9, 2), (8, 0), (1, 1), (2, 0), (7, 2), (9, 7), (0, 0),
    (6, 1), (6, 0), (5, 5), (7, 1), (3, 3), (3, 2), (7, 5), (9, 4), (4, 1), (7, 6), (8, 2),
    (4, 4), (8, 3), (5, 0), (1, 0), (5, 3), (9, 0), (9, 9), (8, 7), (5, 2), (9, 8), (7, 0),
    (5, 4), (9, 3), (7, 4), (6, 6), (8, 1), (7, 7), (4, 3), (4, 0), (8, 4), (4, 2), (9, 6),
    (3, 0), (2, 1), (6, 5), (9, 5), (6, 3), (8, 6), (3, 1), (2, 2), (9, 1), (6, 2), (7, 3),
];
#[rustfmt::skip]
const SCHEDULE_3_K5: Schedule = &[
    (1, 1), (3, 2), (4, 1), (2, 0), (3, 0), (4, 2), (4, 0), (4, 4), (2, 2), (4, 3), (3, 1),
    (0, 0), (3, 3), (1, 0), (2, 1),
];
#[rustfmt::skip]
const SCHEDULE_3_K11: Schedule = &[
    (5, 4), (9, 6), (10, 8), (8, 5), (4, 0), (4, 3), (2, 2), (5, 0), (10, 5), (9, 8), (7, 3),
    (3, 1), (9, 1), (1, 0), (7, 0), (3, 2), (6, 2), (10, 6), (3, 3), (5, 1), (10, 1), (5, 3),
    (5, 5), (10, 4), (9, 3), (8, 8), (7, 7), (6, 5), (6, 3), (7, 4), (8, 6), (10, 3), (3, 0),
    (10, 10), (7, 2), (0, 0), (8, 1), (6, 6), (4, 4), (2, 0), (6, 0), (10, 7), (2, 1), (8, 0),
    (8, 2), (7, 6), (9, 2), (5, 2), (9, 5), (7, 1), (10, 2), (8, 3), (8, 7), (9, 9), (8, 4),
    (1, 1), (6, 4), (4, 2), (6, 1), (9, 7), (9, 4), (7, 5), (9, 0), (4, 1), (10, 0), (10, 9),
];
#[rustfmt::skip]
const SCHEDULE_3_K12: Schedule = &[
    (5, 0), (9, 5), (7, 4), (11, 9), (8, 4), (6, 3), (6, 4), (1, 1), (10, 3), (9, 1), (7, 2),
    (10, 2), (7, 0), (11, 10), (6, 6), (11, 1), (4, 3), (9, 3), (7, 3), (11, 2), (9, 0), (10, 5),
    (6, 5), (8, 5), (4, 0), (6, 0), (3, 2), (5, 4), (9, 9), (7, 6), (1, 0), (6, 1), (11, 0),
    (8, 8), (9, 2), (8, 1), (10, 8), (2, 1), (11, 4), (10, 7), (8, 2), (4, 4), (8, 3), (4, 1),
    (8, 6), (5, 2), (10, 9), (7, 1), (11, 5), (7, 5), (10, 10), (9, 4), (2, 0), (3, 0), (6, 2),
    (3, 1), (11, 7), (10, 0), (7, 7), (9, 7), (5, 3), (3, 3), (0, 0), (5, 5), (2, 2), (9, 6),
    (11, 11), (8, 7), (10, 4), (10, 1), (5, 1), (8, 0), (11, 6), (9, 8), (11, 8), (11, 3), (4, 2),
    (10, 6),
];

#[rustfmt::skip]
static ROUND3: [Params; 4] = [
    Params { round: Round::Three, set: Set::Mayo1, n: 88, m: 80, o: 8, k: 10, tail: [2, 0, 4, 2, 0],
        schedule: SCHEDULE_3_K10, linear_term: true, salt_bytes: 24, digest_bytes: 32 },
    Params { round: Round::Three, set: Set::Mayo2, n: 86, m: 64, o: 13, k: 5, tail: [8, 0, 2, 8, 0],
        schedule: SCHEDULE_3_K5, linear_term: true, salt_bytes: 24, digest_bytes: 32 },
    Params { round: Round::Three, set: Set::Mayo3, n: 118, m: 108, o: 10, k: 11, tail: [8, 0, 1, 7, 0],
        schedule: SCHEDULE_3_K11, linear_term: true, salt_bytes: 32, digest_bytes: 48 },
    Params { round: Round::Three, set: Set::Mayo5, n: 154, m: 142, o: 12, k: 12, tail: [4, 0, 8, 1, 0],
        schedule: SCHEDULE_3_K12, linear_term: true, salt_bytes: 40, digest_bytes: 64 },
];

#[rustfmt::skip]
static ROUND2: [Params; 4] = [
    Params { round: Round::Two, set: Set::Mayo1, n: 86, m: 78, o: 8, k: 10, tail: [8, 1, 1, 0, 0],
        schedule: &running::<10, 55>(), linear_term: false, salt_bytes: 24, digest_bytes: 32 },
    Params { round: Round::Two, set: Set::Mayo2, n: 81, m: 64, o: 17, k: 4, tail: [8, 0, 2, 8, 0],
        schedule: &running::<4, 10>(), linear_term: false, salt_bytes: 24, digest_bytes: 32 },
    Params { round: Round::Two, set: Set::Mayo3, n: 118, m: 108, o: 10, k: 11, tail: [8, 0, 1, 7, 0],
        schedule: &running::<11, 66>(), linear_term: false, salt_bytes: 32, digest_bytes: 48 },
    Params { round: Round::Two, set: Set::Mayo5, n: 154, m: 142, o: 12, k: 12, tail: [4, 0, 8, 1, 0],
        schedule: &running::<12, 78>(), linear_term: false, salt_bytes: 40, digest_bytes: 64 },
];

#[cfg(feature = "study")]
#[rustfmt::skip]
static ROUND1: [Params; 4] = [
    Params { round: Round::One, set: Set::Mayo1, n: 66, m: 64, o: 8, k: 9, tail: [8, 0, 2, 8, 0],
        schedule: &running::<9, 45>(), linear_term: false, salt_bytes: 24, digest_bytes: 32 },
    Params { round: Round::One, set: Set::Mayo2, n: 78, m: 64, o: 18, k: 4, tail: [8, 0, 2, 8, 0],
        schedule: &running::<4, 10>(), linear_term: false, salt_bytes: 24, digest_bytes: 32 },
    Params { round: Round::One, set: Set::Mayo3, n: 99, m: 96, o: 10, k: 11, tail: [2, 2, 0, 2, 0],
        schedule: &running::<11, 66>(), linear_term: false, salt_bytes: 32, digest_bytes: 48 },
    Params { round: Round::One, set: Set::Mayo5, n: 133, m: 128, o: 12, k: 12, tail: [4, 8, 0, 4, 2],
        schedule: &running::<12, 78>(), linear_term: false, salt_bytes: 40, digest_bytes: 64 },
];

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

    #[cfg(feature = "study")]
    #[test]
    fn sizes_are_round_1s() {
        // As liboqs 0.12 has them: expanded matrices, public key, signature, secret key.
        let sizes = [
            (54_752 + 14_848, 1168, 321, 24),
            (58_560 + 34_560, 5488, 180, 24),
            (192_240 + 42_720, 2656, 577, 32),
            (472_384 + 92_928, 5008, 838, 40),
        ];
        for (p, expect) in Params::study_only().zip(sizes) {
            let got = (p.p12_bytes(), p.public_key_bytes(), p.signature_bytes(), p.secret_key_bytes());
            assert_eq!(got, expect, "{}", p.name());
        }
    }

    #[test]
    fn every_pair_has_one_power_of_z() {
        for p in Params::all() {
            assert_eq!(p.schedule.len(), p.pairs());
            let mut seen = vec![false; p.k * p.k];
            for &(i, j) in p.schedule {
                let (i, j) = (usize::from(i.min(j)), usize::from(i.max(j)));
                assert!(!core::mem::replace(&mut seen[i * p.k + j], true), "{}: ({i},{j}) twice", p.name());
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
