//! Proofs equal the textbook's, on every backend.

use lanework_cpu::{Cpu, Settings};
use lanework_vdf::{Discriminant, Engine, Form, Options, Task, prove, spec};

#[test]
fn every_backend_makes_the_same_proof() {
    let settings = Settings::from_env().expect("the environment can be read");
    for (bits, iterations, lengths) in [(1024, 3000, &[][..]), (512, 2049, &[700, 41]), (2048, 333, &[100])] {
        let d = Discriminant::from_seed(b"a proof by every backend", bits).expect("a discriminant");
        let x = Form::generator(&d).expect("a generator");
        let task = Task { segments: lengths.to_vec(), ..Task::new(d, x, iterations) };
        let expected = spec::prove(&task).expect("a proof");
        for engine in Engine::all(&Cpu::detect()) {
            let engine = match engine {
                Ok(engine) => engine,
                Err(why) => {
                    assert!(!settings.requires(&why.what), "{why}");
                    println!("skipped: {why}");
                    continue;
                }
            };
            let proved = prove(&task, &Options::new(engine), &mut |_| true).expect("a proof");
            assert!(proved.proof == expected, "{} with {bits} bits", engine.name());
            println!("ran: {}", engine.name());
        }
    }
}
