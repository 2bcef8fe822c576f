//! Every backend that this machine can run passes every check. A backend that cannot run is printed with the reason, and
//! is a failure if `LANEWORK_REQUIRE` names it.

use lanework_cpu::Settings;
use lanework_mayo::internals::check::{self, Depth};
use lanework_mayo::{Engine, Params, Round};

/// The engines to test, less those that cannot run here. Other names belong to other primitives; the command refuses
/// names that no primitive has.
fn engines() -> Vec<Engine> {
    let settings = Settings::from_env().unwrap();
    Engine::all(&settings.cpu())
        .filter_map(|engine| {
            engine
                .inspect_err(|reason| {
                    println!("skipped: {reason}");
                    assert!(
                        !settings.requires(&reason.what),
                        "LANEWORK_REQUIRE names a backend that did not run: {reason}"
                    );
                })
                .ok()
        })
        .collect()
}

/// Every check of a round's sets, on every engine.
fn all_pass(round: Round) {
    let mut failures = Vec::new();
    for engine in engines() {
        for params in Params::all().filter(|params| params.round() == round) {
            check::run(engine, params, Depth::Full, &mut |row| {
                println!(
                    "{:<10} {:<55} {:>6} passed {:>4} failed {}",
                    row.backend, row.what, row.passed, row.failed, row.why
                );
                if !row.ok() {
                    failures.push(row);
                }
            });
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn every_check_of_round_2() {
    all_pass(Round::Two);
}

#[test]
fn every_check_of_round_3() {
    all_pass(Round::Three);
}

/// The specification itself, on record 0 of every set.
#[test]
fn the_specification_has_the_first_known_answer() {
    use lanework_mayo::internals::known::{Specification, digests, records, response, sha256_hex};
    let engine = engines().remove(0);
    for params in Params::all() {
        let (symmetric, sizes) = (engine.kernels().expand(), params.sizes());
        let records = records(&Specification { symmetric, sizes }, 1).unwrap();
        let digest = sha256_hex(response(&records).as_bytes());
        assert!(digest.starts_with(digests(params).first), "{}: {digest}", params.name());
    }
}
