//! The values of the specifications' tables.
//!
//! Round 2: the specification submitted to the second round (5 Feb 2025). Round 3: the specification of 31 Aug 2026.
#![forbid(unsafe_code)]

use super::{Params, Round, Schedule, Set, Sizes};

/// A running counter: i counts up, j counts down from k - 1 to i (before round 3).
#[must_use]
pub const fn running<const K: usize, const L: usize>() -> [(u8, u8); L] {
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
pub(super) static ROUND3: [Params; 4] = [
    Params { round: Round::Three, set: Set::Mayo1, sizes: Sizes { n: 88, m: 80, o: 8, k: 10, tail: [2, 0, 4, 2, 0],
        schedule: SCHEDULE_3_K10, linear_term: true, salt_bytes: 24, digest_bytes: 32 } },
    Params { round: Round::Three, set: Set::Mayo2, sizes: Sizes { n: 86, m: 64, o: 13, k: 5, tail: [8, 0, 2, 8, 0],
        schedule: SCHEDULE_3_K5, linear_term: true, salt_bytes: 24, digest_bytes: 32 } },
    Params { round: Round::Three, set: Set::Mayo3, sizes: Sizes { n: 118, m: 108, o: 10, k: 11, tail: [8, 0, 1, 7, 0],
        schedule: SCHEDULE_3_K11, linear_term: true, salt_bytes: 32, digest_bytes: 48 } },
    Params { round: Round::Three, set: Set::Mayo5, sizes: Sizes { n: 154, m: 142, o: 12, k: 12, tail: [4, 0, 8, 1, 0],
        schedule: SCHEDULE_3_K12, linear_term: true, salt_bytes: 40, digest_bytes: 64 } },
];

#[rustfmt::skip]
pub(super) static ROUND2: [Params; 4] = [
    Params { round: Round::Two, set: Set::Mayo1, sizes: Sizes { n: 86, m: 78, o: 8, k: 10, tail: [8, 1, 1, 0, 0],
        schedule: &running::<10, 55>(), linear_term: false, salt_bytes: 24, digest_bytes: 32 } },
    Params { round: Round::Two, set: Set::Mayo2, sizes: Sizes { n: 81, m: 64, o: 17, k: 4, tail: [8, 0, 2, 8, 0],
        schedule: &running::<4, 10>(), linear_term: false, salt_bytes: 24, digest_bytes: 32 } },
    Params { round: Round::Two, set: Set::Mayo3, sizes: Sizes { n: 118, m: 108, o: 10, k: 11, tail: [8, 0, 1, 7, 0],
        schedule: &running::<11, 66>(), linear_term: false, salt_bytes: 32, digest_bytes: 48 } },
    Params { round: Round::Two, set: Set::Mayo5, sizes: Sizes { n: 154, m: 142, o: 12, k: 12, tail: [4, 0, 8, 1, 0],
        schedule: &running::<12, 78>(), linear_term: false, salt_bytes: 40, digest_bytes: 64 } },
];
