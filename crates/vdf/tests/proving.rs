//! Proofs over the fast chain are those over plain squarings, byte by byte, on every backend.

use lanework_cpu::{Cpu, Settings};
use lanework_vdf::Engine;
use lanework_vdf::chain::ChainError;
use lanework_vdf::proof::{Fast, Plain, Squarer, prove_segments, prove_with};
use lanework_vdf::{Discriminant, Form};

#[test]
fn every_backend_makes_the_same_proof() {
    let settings = Settings::from_env().expect("the environment can be read");
    for (bits, iterations, lengths) in [(1024, 3000, &[][..]), (512, 2049, &[700, 41]), (2048, 333, &[100])] {
        let d = Discriminant::from_seed(b"a proof by every backend", bits).expect("a discriminant");
        let x = Form::generator(&d).expect("a generator");
        let expected = prove_segments(&d, &x, iterations, lengths).expect("a proof");
        for engine in Engine::all(&Cpu::detect()) {
            let engine = match engine {
                Ok(engine) => engine,
                Err(why) => {
                    assert!(!settings.requires(&why.what), "{why}");
                    println!("skipped: {why}");
                    continue;
                }
            };
            let mut chain = Fast::new(engine, &d, &x).expect("a form of d");
            let proof = prove_with(&d, &mut chain, iterations, lengths, &mut |_| true).expect("a proof");
            assert!(proof == expected, "{} with {bits} bits", engine.name());
            println!("ran: {}", engine.name());
        }
    }
}

#[test]
fn a_form_of_another_discriminant_is_refused() {
    let d = |seed: &[u8]| Discriminant::from_seed(seed, 512).expect("a discriminant");
    let (right, wrong) = (d(b"right"), d(b"wrong"));
    let x = Form::generator(&wrong).expect("a generator");
    let engine = Engine::portable();
    assert_eq!(Fast::new(engine, &right, &x).map(|_| ()).unwrap_err(), ChainError::Form);
}

/// Near the generator a is short and c long; between the sizes that a kernel is made for there is room for such a c.
#[test]
fn the_first_forms_are_right_at_every_size() {
    for bits in (64..=1024).step_by(64).chain([1088, 1152, 1280]) {
        for seed in 0..if bits > 1024 { 1 } else { 5 } {
            let d = Discriminant::from_seed(&[seed, 3], bits).expect("a discriminant");
            let x = Form::generator(&d).expect("a generator");
            let mut plain = Plain::new(&d, &x);
            let mut chains: Vec<_> = Engine::available(&Cpu::detect())
                .map(|engine| (engine.name(), Fast::new(engine, &d, &x).expect("a form of d")))
                .collect();
            for i in 0..14 {
                plain.advance(1).expect("no fault");
                for (name, chain) in &mut chains {
                    let outcome = chain.advance(1);
                    assert!(outcome.is_ok() && chain.form() == plain.form(), "{name}, {bits} bits, {i}");
                }
            }
        }
    }
}
