//! Every backend that this machine can run passes every check. A backend that cannot run is printed with the reason, and
//! is a failure if `LANEWORK_REQUIRE` names it.

use lanework_cpu::Settings;
use lanework_mayo::check::{self, Depth, Row};
use lanework_mayo::{Engine, Params};

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

fn all_pass(check: impl Fn(Engine, &Params) -> Row) {
    let mut failures = Vec::new();
    for engine in engines() {
        for params in Params::all() {
            let row = check(engine, params);
            println!(
                "{:<10} {:<55} {:>6} passed {:>4} failed {}",
                row.backend, row.what, row.passed, row.failed, row.why
            );
            if !row.ok() {
                failures.push(row);
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn first_known_answer() {
    all_pass(|e, p| check::known_answers(e, p, Depth::Quick));
}

#[test]
fn all_known_answers() {
    all_pass(|e, p| check::known_answers(e, p, Depth::Full));
}

#[test]
fn all_known_answers_from_messages_in_pieces() {
    all_pass(|e, p| check::known_answers_in_pieces(e, p, Depth::Full));
}

#[test]
fn agreement_with_the_specification() {
    all_pass(|e, p| check::agreement(e, p, Depth::Quick));
}

#[test]
fn expanded_keys() {
    all_pass(|e, p| check::expanded(e, p, Depth::Full));
}

#[test]
fn every_flipped_bit_of_a_signature() {
    all_pass(|e, p| check::signature_flips(e, p, Depth::Full));
}

#[test]
fn flipped_bits_of_keys_and_messages() {
    all_pass(|e, p| check::other_flips(e, p, Depth::Full));
}

#[test]
fn every_wrong_length() {
    all_pass(|e, p| check::lengths(e, p, Depth::Full));
}

#[test]
fn other_sets_and_rounds() {
    all_pass(check::strangers);
}

/// The specification itself, on record 0 of every set.
#[test]
fn the_specification_has_the_first_known_answer() {
    use lanework_mayo::known::{Specification, digests, records, response, sha256_hex};
    let engine = engines().remove(0);
    for params in Params::all() {
        let records = records(&Specification(engine), params, 1).unwrap();
        let digest = sha256_hex(response(&records).as_bytes());
        assert!(digest.starts_with(digests(params).unwrap().first), "{}: {digest}", params.name());
    }
}
