//! Proofs over the fast chain are those over plain squarings, byte by byte, on every backend.

use lanework_cpu::{Cpu, Settings};
use lanework_vdf::backend::BACKENDS;
use lanework_vdf::chain::ChainError;
use lanework_vdf::proof::{Fast, prove_segments, prove_with};
use lanework_vdf::{Discriminant, Form};

#[test]
fn every_backend_makes_the_same_proof() {
    let settings = Settings::from_env().expect("the environment can be read");
    for (bits, iterations, lengths) in [(1024, 3000, &[][..]), (512, 2049, &[700, 41]), (2048, 333, &[100])] {
        let d = Discriminant::from_seed(b"a proof by every backend", bits).expect("a discriminant");
        let x = Form::generator(&d).expect("a generator");
        let expected = prove_segments(&d, &x, iterations, lengths).expect("a proof");
        for row in BACKENDS {
            let kernels = match row.get(&Cpu::detect()) {
                Ok(kernels) => kernels,
                Err(why) => {
                    assert!(!settings.requires(row.name()), "{why}");
                    println!("skipped {}: {why}", row.name());
                    continue;
                }
            };
            let mut chain = Fast::new(kernels, &d, &x).expect("a form of d");
            let proof = prove_with(&d, &mut chain, iterations, lengths, &mut |_| true).expect("a proof");
            assert!(proof == expected, "{} with {bits} bits", row.name());
            println!("ran: {}", row.name());
        }
    }
}

#[test]
fn a_form_of_another_discriminant_is_refused() {
    let d = |seed: &[u8]| Discriminant::from_seed(seed, 512).expect("a discriminant");
    let (right, wrong) = (d(b"right"), d(b"wrong"));
    let x = Form::generator(&wrong).expect("a generator");
    let kernels = BACKENDS[0].get(&Cpu::baseline()).expect("portable");
    assert_eq!(Fast::new(kernels, &right, &x).map(|_| ()).unwrap_err(), ChainError::Form);
}
