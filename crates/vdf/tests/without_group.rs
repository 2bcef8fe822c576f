//! Refusals before a group is known: every fault that needs no group, and no valid input.
#![forbid(unsafe_code)]

use lanework_vdf::discriminant::MAX_BITS;
use lanework_vdf::internals::known::{self, Record};
use lanework_vdf::proof::{B_BYTES, Part};
use lanework_vdf::serial::{LONG_VERSION, check_without_group as check_form, generator_bytes};
use lanework_vdf::verify::check_without_group;
use lanework_vdf::{
    Challenge, DecodeError, Discriminant, DiscriminantError, Form, Lenient, Limits, Malformed, ProofError,
    Question, Refused, Strict, VerifyError, verify_challenge,
};

fn question(record: &Record) -> Question<'_> {
    let Record { x, proof, iterations, depth, .. } = record;
    Question { x, proof, iterations: *iterations, depth: *depth }
}

#[test]
fn published_proofs_pass() {
    let limits = Limits::default();
    let b = Challenge::from_bytes(&[0xff; B_BYTES]);
    let mut seen = 0;
    for record in known::records() {
        let question = question(&record);
        assert_eq!(check_without_group(Strict, record.bits, &question, None, &limits), Ok(()));
        assert_eq!(check_without_group(Lenient, record.bits, &question, None, &limits), Ok(()));
        let compact = Question { proof: &record.proof[100..], ..question };
        assert_eq!(check_without_group(Strict, record.bits, &compact, Some(&b), &limits), Ok(()));
        seen += 1;
    }
    assert_eq!(seen, 110);
}

/// A search of this challenge would end in another error: it has no prime.
#[test]
fn a_bad_question_costs_no_search() {
    const HOPELESS: &[u8] = &[0];
    let form = generator_bytes(1024);
    let segment = |iterations: u64, b: u8| {
        [&iterations.to_be_bytes()[..], &[0x80], &[0; B_BYTES - 2], &[b], &form].concat()
    };
    let good = Record {
        challenge: HOPELESS.to_vec(),
        bits: 1024,
        x: form.clone(),
        proof: [&form[..], &form, &segment(5, 1)].concat(),
        iterations: 9,
        depth: 1,
    };
    let ask = |record: &Record| {
        verify_challenge(Strict, &record.challenge, record.bits, &question(record), &Limits::default())
    };
    assert_eq!(ask(&good), Err(DiscriminantError::NoPrime.into()), "a good question needs the search");
    let proof = |e: ProofError| VerifyError::from(e);
    let no_a = ProofError::Form { what: Part::Segment(0), why: DecodeError::NoA };
    type Spoil = fn(&mut Record);
    let cases: [(&str, Spoil, VerifyError); 12] = [
        ("an empty challenge", |r| r.challenge.clear(), DiscriminantError::EmptySeed.into()),
        ("1,023 bits", |r| r.bits = 1023, DiscriminantError::OddLength { bits: 1023 }.into()),
        ("2,056 bits", |r| r.bits = 2056, DiscriminantError::TooLong { bits: 2056, most: 2048 }.into()),
        ("no squarings", |r| r.iterations = 0, Malformed::NoIterations.into()),
        (
            "a short input",
            |r| r.x.truncate(9),
            Malformed::Input(DecodeError::Length { expected: 100, got: 9 }).into(),
        ),
        (
            "a short proof",
            |r| r.proof.truncate(340),
            proof(ProofError::Length { expected: Some(341), got: 340 }),
        ),
        ("many segments", |r| r.depth = 64, proof(ProofError::Depth { most: 63, got: 64 })),
        ("no a", |r| r.proof[241] = 0, proof(no_a)),
        (
            "a large g",
            |r| r.proof[..2].copy_from_slice(&[0, 32]),
            proof(ProofError::Form { what: Part::Y, why: DecodeError::SizeOfG { got: 32 } }),
        ),
        ("a long segment", |r| r.proof[207] = 10, Refused::SegmentIterations { segment: 0 }.into()),
        ("an even B", |r| r.proof[240] = 2, Refused::NotAPrime { part: Part::Segment(0) }.into()),
        ("a short B", |r| r.proof[208] = 1, Refused::NotAPrime { part: Part::Segment(0) }.into()),
    ];
    for (what, spoil, error) in cases {
        let mut bad = good.clone();
        spoil(&mut bad);
        assert_eq!(ask(&bad), Err(error), "{what}");
    }
}

#[test]
fn a_generator_needs_no_group() {
    for bits in [8, 16, 256, 504, 1024, 1032, 2048] {
        let d = Discriminant::from_seed(b"a generator", bits).expect("a discriminant");
        let bytes = generator_bytes(bits);
        assert_eq!(Form::generator(&d).expect("1 modulo 8").to_bytes(&d), bytes, "{bits} bits");
        assert_eq!(check_form(bits, &bytes), Ok(()));
    }
}

/// Bytes as long as the plain encoding of a discriminant that is too long, with coefficients beyond every number.
#[test]
fn a_discriminant_that_is_too_long_is_refused_first() {
    for bits in [MAX_BITS + 1, 5121, 6000, 524_000, usize::MAX] {
        let width = bits.min(524_000).div_ceil(16);
        let mut form = vec![0xff; 4 + 2 * width];
        form[0] = LONG_VERSION;
        form[1..3].copy_from_slice(&((1 + 2 * width) as u16).to_be_bytes());
        form[3] = 0;
        for bytes in [&form[..], &[]] {
            assert_eq!(check_form(bits, bytes), Err(DecodeError::Bits { got: bits }), "{bits} bits");
            let limits = Limits { bits: usize::MAX, ..Limits::default() };
            let question = Question { x: bytes, proof: &[bytes, bytes].concat(), iterations: 9, depth: 0 };
            let refused = check_without_group(Strict, bits, &question, None, &limits);
            assert_eq!(refused, Err(Malformed::Bits { most: MAX_BITS, got: bits }.into()), "{bits} bits");
        }
    }
    let said = DecodeError::Bits { got: 6000 }.to_string();
    assert_eq!(said, "a discriminant of 6000 bits; at most 2048 are allowed");
}

#[test]
#[should_panic(expected = "a discriminant has at most 2048 bits")]
fn a_discriminant_that_is_too_long_has_no_generator() {
    let _ = generator_bytes(usize::MAX);
}
