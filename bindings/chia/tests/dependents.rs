//! Programs of both crates, with their own paths.

use lanework_chia as chiavdf;
use lanework_chia as chia_vdf_verify;

use chia_vdf_verify::discriminant;
use chia_vdf_verify::verifier::check_proof_of_time_n_wesolowski;
use chiavdf::{create_discriminant, prove, verify_n_wesolowski};
use lanework_vdf::internals::known;

const GENERATOR: [u8; 100] = {
    let mut x = [0; 100];
    x[0] = 8;
    x
};

/// chiavdf's tests of its Rust crate have these: its Python function gave them (Chia Network, Apache-2.0).
#[test]
fn discriminants_are_chiavdfs() {
    let known = [
        (
            "6c3b9aa767f785b537c0",
            "9a8eaf9c52d9a5f1db648cdf7bcd04b35cb1ac4f421c978fa61fe1344b97d4199dbff700d24e7cfc0b785e4b8b8023dc49f0e90227f74f54234032ac3381879f",
        ),
        (
            "b10da48cea4c09676b8e",
            "b193cdb02f1c2615a257b98933ee0d24157ac5f8c46774d5d635022e6e6bd3f7372898066c2a40fa211d1df8c45cb95c02e36ef878bc67325473d9c0bb34b047",
        ),
    ];
    for (seed, due) in known {
        let (seed, due) = (known::bytes(seed).expect("digits"), known::bytes(due).expect("digits"));
        let mut found = [0; 64];
        assert!(create_discriminant(&seed, &mut found));
        assert_eq!(found[..], due[..]);
        let mut other = [0; 64];
        discriminant::create_discriminant(&seed, 512).magnitude().write_be_bytes(&mut other);
        assert_eq!(found, other);
    }
}

#[test]
fn published_proofs_verify_and_changed_ones_do_not() {
    let mut seen = 0;
    for record in known::records().filter(|record| record.bits == 1024).step_by(10) {
        let (x, proof, iterations, depth) = (&record.x, &record.proof, record.iterations, record.depth);
        let mut d = [0; 128];
        assert!(create_discriminant(&record.challenge, &mut d));
        assert!(verify_n_wesolowski(&d, x, proof, iterations, depth));
        assert!(!verify_n_wesolowski(&d, x, proof, iterations + 1, depth));
        assert!(!verify_n_wesolowski(&d[..127], x, proof, iterations, depth));
        assert!(!verify_n_wesolowski(&d, &x[..99], proof, iterations, depth));
        assert!(!verify_n_wesolowski(&d, x, &proof[1..], iterations, depth));
        assert!(!verify_n_wesolowski(&d, x, proof, iterations, depth + 1));
        assert!(!verify_n_wesolowski(&d, x, proof, iterations, u64::MAX));
        let d = discriminant::create_discriminant(&record.challenge, 1024);
        assert!(check_proof_of_time_n_wesolowski(&d, x, proof, iterations, depth));
        assert!(!check_proof_of_time_n_wesolowski(&d, x, proof, iterations - 1, depth));
        seen += 1;
    }
    assert!(seen > 5, "{seen} records");
}

#[test]
fn a_proof_verifies_and_wrong_input_has_none() {
    let mut d = [0; 64];
    assert!(create_discriminant(&[7; 32], &mut d));
    let proof = prove(&[7; 32], &GENERATOR, 512, 1000).expect("a proof");
    assert_eq!(proof.len(), 200);
    assert!(verify_n_wesolowski(&d, &GENERATOR, &proof, 1000, 0));

    assert_eq!(prove(&[7; 32], &GENERATOR[..99], 512, 10), None);
    for bits in [0, 1023, 1032, usize::MAX] {
        assert_eq!(prove(&[7; 32], &GENERATOR, bits, 10), None);
    }
    assert!(!create_discriminant(&[], &mut d) && !create_discriminant(&[7; 32], &mut []));
    assert!(!create_discriminant(&[7; 32], &mut [0; 129]));
    assert!(!verify_n_wesolowski(&[], &GENERATOR, &proof, 1000, 0));
    assert!(!verify_n_wesolowski(&[0xff; 4096], &GENERATOR, &proof, 1000, 0));
}

/// chiavdf answers these calls as well.
#[test]
fn no_squarings_long_discriminants_and_short_ones_are_as_in_chiavdf() {
    let mut identity = [0; 100];
    identity[0] = 4;
    let proof = prove(&[7; 32], &GENERATOR, 512, 0).expect("a proof");
    assert_eq!(proof, [GENERATOR, identity].concat());
    // The discriminant behind zeros: 128 bytes may be given, and no more.
    for (length, taken) in [(64, true), (128, true), (129, false), (256, false)] {
        let mut d = vec![0; length];
        assert!(create_discriminant(&[7; 32], &mut d[length - 64..]));
        assert_eq!(verify_n_wesolowski(&d, &GENERATOR, &proof, 0, 0), taken, "{length} bytes");
        assert!(!verify_n_wesolowski(&d, &GENERATOR, &proof, 1, 0));
    }
    // Of 8 bits, chiavdf has one discriminant; chia-vdf-verify and Lanework have others, too.
    let (mut seen, d239) = ([0], lanework_integer::Uint::from_u64(239));
    let others = (0..50).filter(|&seed| {
        assert!(create_discriminant(&[7, 7, seed], &mut seen) && seen == [239]);
        *discriminant::create_discriminant(&[7, 7, seed], 8).magnitude() != d239
    });
    assert!(others.count() > 10);
    let proof = prove(&[7; 32], &GENERATOR, 8, 20).expect("a proof");
    assert!(verify_n_wesolowski(&[239], &GENERATOR, &proof, 20, 0));
}

#[test]
#[should_panic(expected = "no discriminant of 12 bits from a challenge of 32 bytes")]
fn an_odd_length_panics_as_it_does_there() {
    let _ = discriminant::create_discriminant(&[7; 32], 12);
}
