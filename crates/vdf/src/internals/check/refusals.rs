//! Bad input: each kind is refused, by its own error.
#![forbid(unsafe_code)]

use lanework_integer::Int;

use super::{BACKEND, Row, question};
use crate::discriminant::{Discriminant, DiscriminantError};
use crate::form::{Form, FormError};
use crate::internals::known::{self, Record};
use crate::proof::{Part, ProofError};
use crate::serial::{DecodeError, Lenient, Strict};
use crate::verify::{self, Limits, Malformed, Refused, VerifyError};

/// The form of Chia's main chain with several encodings: the lenient decoder accepts three, the strict one only one.
#[must_use]
pub fn malleability() -> Row {
    let mut row = Row::new("one encoding or several", BACKEND);
    let d = Discriminant::new(&known::number(known::MALLEABLE_D));
    let (Ok(d), Some(bytes)) = (d, known::bytes(known::MALLEABLE)) else {
        row.case(false, || "the form cannot be read".to_owned());
        return row;
    };
    let Ok(form) = Form::from_bytes(Strict, &d, &bytes) else {
        row.case(false, || "the strict decoder refuses the right encoding".to_owned());
        return row;
    };
    row.case(form.to_bytes(&d) == bytes, || "it is written in another way".to_owned());
    for change in [4, 8] {
        let mut other = bytes.clone();
        other[99] ^= change;
        let strict = Form::from_bytes(Strict, &d, &other);
        row.case(strict == Err(FormError::NotReduced.into()), || {
            format!("b0 ^ {change}, strict: {strict:?}")
        });
        let lenient = Form::from_bytes(Lenient, &d, &other);
        row.case(lenient.as_ref() == Ok(&form), || format!("b0 ^ {change}, lenient: {lenient:?}"));
    }
    let generator = Form::generator(&d);
    for flags in [8u8, 0x0f] {
        let mut special = vec![0xa5; 100];
        special[0] = flags;
        let strict = Form::from_bytes(Strict, &d, &special);
        row.case(strict == Err(DecodeError::NotCanonical), || format!("tail of {flags}, strict: {strict:?}"));
        let lenient = Form::from_bytes(Lenient, &d, &special);
        row.case(lenient.ok() == generator, || format!("tail of {flags}, lenient"));
    }
    row
}

/// A published proof corrupted in one way.
struct Spoilt {
    what: &'static str,
    change: fn(&mut Record),
    is_right: fn(&VerifyError) -> bool,
}

fn input(e: &VerifyError) -> Option<DecodeError> {
    match e {
        VerifyError::Malformed(Malformed::Input(e)) => Some(*e),
        _ => None,
    }
}

fn proof(e: &VerifyError) -> Option<ProofError> {
    match e {
        VerifyError::Malformed(Malformed::Proof(e)) => Some(*e),
        _ => None,
    }
}

const SPOILT: &[Spoilt] = &[
    Spoilt {
        what: "an input of 99 bytes",
        change: |r| r.x.truncate(99),
        is_right: |e| input(e) == Some(DecodeError::Length { expected: 100, got: 99 }),
    },
    Spoilt {
        what: "an empty input",
        change: |r| r.x.clear(),
        is_right: |e| input(e) == Some(DecodeError::Length { expected: 100, got: 0 }),
    },
    Spoilt {
        what: "unused flag bits",
        change: |r| r.x[0] |= 0x40,
        is_right: |e| input(e) == Some(DecodeError::NotCanonical),
    },
    Spoilt {
        what: "bytes after the generator's flag",
        change: |r| {
            r.x.fill(0);
            (r.x[0], r.x[50]) = (8, 1);
        },
        is_right: |e| input(e) == Some(DecodeError::NotCanonical),
    },
    Spoilt {
        what: "g too long",
        change: |r| (r.x[0], r.x[1]) = (0, 32),
        is_right: |e| input(e) == Some(DecodeError::SizeOfG { got: 32 }),
    },
    Spoilt { what: "a = 0", change: |r| r.x.fill(0), is_right: |e| input(e) == Some(DecodeError::NoA) },
    Spoilt {
        what: "a and t with a common divisor",
        change: |r| {
            r.x.fill(0);
            (r.x[2], r.x[66]) = (6, 3);
        },
        is_right: |e| input(e) == Some(DecodeError::CommonDivisor),
    },
    Spoilt {
        what: "a form of no or another discriminant",
        change: |r| {
            // t = 0 means b = a.
            r.x.fill(0);
            r.x[2..66].fill(0xff);
        },
        is_right: |e| input(e) == Some(FormError::WrongDiscriminant.into()),
    },
    Spoilt {
        what: "a cut proof",
        change: |r| r.proof.truncate(r.proof.len() - 1),
        is_right: |e| matches!(proof(e), Some(ProofError::Length { expected: Some(_), .. })),
    },
    Spoilt {
        what: "a proof with a byte too many",
        change: |r| r.proof.push(0),
        is_right: |e| matches!(proof(e), Some(ProofError::Length { expected: Some(_), .. })),
    },
    Spoilt {
        what: "another depth",
        change: |r| r.depth += 1,
        is_right: |e| matches!(proof(e), Some(ProofError::Length { expected: Some(_), .. })),
    },
    Spoilt {
        what: "an absurd depth",
        change: |r| r.depth = u64::MAX / 141 + 1,
        is_right: |e| matches!(proof(e), Some(ProofError::Depth { most: 63, .. })),
    },
    Spoilt {
        what: "no iterations",
        change: |r| r.iterations = 0,
        is_right: |e| *e == Malformed::NoIterations.into(),
    },
    Spoilt {
        what: "too many iterations",
        change: |r| r.iterations = u64::MAX,
        is_right: |e| *e == Malformed::Iterations { most: 1 << 48, got: u64::MAX }.into(),
    },
    Spoilt {
        what: "a segment longer than the chain",
        change: |r| r.proof[200] = 0xff,
        is_right: |e| matches!(e, VerifyError::Refused(Refused::SegmentIterations { .. })),
    },
    Spoilt {
        what: "B = 0",
        change: |r| r.proof[208..241].fill(0),
        is_right: |e| matches!(e, VerifyError::Refused(Refused::NotAPrime { part: Part::Segment(_) })),
    },
    Spoilt {
        what: "an even B",
        change: |r| r.proof[240] ^= 1,
        is_right: |e| matches!(e, VerifyError::Refused(Refused::NotAPrime { part: Part::Segment(_) })),
    },
    Spoilt {
        what: "B = 2^264 - 1",
        change: |r| r.proof[208..241].fill(0xff),
        is_right: |e| matches!(e, VerifyError::Refused(Refused::WrongChallenge { part: Part::Segment(_) })),
    },
    Spoilt {
        what: "segments in another order",
        change: |r| r.proof[200..482].rotate_left(141),
        is_right: |e| matches!(e, VerifyError::Refused(_)),
    },
    Spoilt {
        what: "the identity as result and proof",
        change: |r| {
            for at in [0, 100] {
                r.proof[at..at + 100].fill(0);
                r.proof[at] = 4;
            }
        },
        is_right: |e| *e == Refused::WrongResult.into(),
    },
    Spoilt {
        what: "the result's inverse",
        change: |r| r.proof[0] ^= 3,
        is_right: |e| matches!(e, VerifyError::Refused(_)) || proof(e).is_some(),
    },
];

/// Every kind of bad input.
#[must_use]
pub fn refusals() -> Row {
    let mut row = Row::new("bad input", BACKEND);
    let Some(record) = known::records().find(|record| record.depth == 2) else {
        row.case(false, || "there is no record of depth 2".to_owned());
        return row;
    };
    let Ok(d) = Discriminant::from_seed(&record.challenge, record.bits) else {
        row.case(false, || "the record has no discriminant".to_owned());
        return row;
    };
    for spoilt in SPOILT {
        let mut bad = record.clone();
        (spoilt.change)(&mut bad);
        let verdict = verify::verify(Strict, &d, &question(&bad), &Limits::default());
        let right = verdict.as_ref().is_err_and(|e| (spoilt.is_right)(e));
        row.case(right, || format!("{}: {verdict:?}", spoilt.what));
    }
    let small = Limits { depth: 1, iterations: 1000, bits: 512 };
    let verdict = verify::verify(Strict, &d, &question(&record), &small);
    row.case(verdict == Err(Malformed::Bits { most: 512, got: 1024 }.into()), || {
        format!("limits: {verdict:?}")
    });
    discriminants(&mut row);
    forms(&mut row, &d);
    row
}

fn discriminants(row: &mut Row) {
    use DiscriminantError as E;
    for (number, error) in [
        (0, E::NotNegative),
        (23, E::NotNegative),
        (-4, E::NotOneModuloFour),
        (-22, E::NotOneModuloFour),
        (-5, E::NotOneModuloFour),
    ] {
        let d = Discriminant::new(&Int::from_i64(number));
        row.case(d == Err(error), || format!("discriminant {number}: {d:?}"));
    }
    let d = Discriminant::new(&-(Int::ONE << 2048));
    row.case(d == Err(E::TooLong { bits: 2049, most: 2048 }), || format!("2,049 bits: {d:?}"));
    for (bits, error) in [
        (0, E::OddLength { bits: 0 }),
        (1023, E::OddLength { bits: 1023 }),
        (2056, E::TooLong { bits: 2056, most: 2048 }),
    ] {
        let d = Discriminant::from_seed(b"seed", bits);
        row.case(d == Err(error), || format!("{bits} bits: {d:?}"));
    }
    let d = Discriminant::from_seed(b"", 1024);
    row.case(d == Err(E::EmptySeed), || format!("no seed: {d:?}"));
}

fn forms(row: &mut Row, d: &Discriminant) {
    let int = Int::from_i64;
    for (what, a, b, error) in [
        ("a = 0", int(0), int(1), FormError::NotPositive),
        ("a < 0", int(-2), int(1), FormError::NotPositive),
        ("even b", int(2), int(0), FormError::WrongDiscriminant),
        ("|b| > a", int(2), int(3), FormError::NotReduced),
        ("b = -a", int(1), int(-1), FormError::NotReduced),
        ("a huge", Int::ONE << 1000, int(1), FormError::TooLarge),
        ("b huge", int(1), Int::ONE << 2000, FormError::TooLarge),
    ] {
        let form = Form::new(d, &a, &b);
        row.case(form == Err(error), || format!("{what}: {form:?}"));
    }
    // (c, -b, a) is in the same class, but not reduced.
    if let Some(form) = Form::generator(d).map(|x| x.power(1 << 20, d)) {
        let swapped = Form::new(d, &form.c(), &-form.b());
        row.case(swapped.is_err(), || format!("a > c: {swapped:?}"));
    }
}
