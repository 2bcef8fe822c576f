//! Every backend that this machine can run passes every check, with some of its cases. A backend that cannot run is printed with the reason, and
//! is a failure if `LANEWORK_REQUIRE` names it.

use std::sync::Mutex;

use lanework_cpu::Settings;
use lanework_mayo::internals::check::{self, Depth, Row};
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

/// Runs `checks` on every engine with every set, a thread for each set; none may fail.
fn all_pass(checks: impl Fn(Engine, &Params, &mut dyn FnMut(Row)) + Sync) {
    let failures = Mutex::new(Vec::new());
    let engines = engines();
    std::thread::scope(|scope| {
        for params in Params::all() {
            let (failures, engines, checks) = (&failures, &engines, &checks);
            scope.spawn(move || {
                for &engine in engines {
                    checks(engine, params, &mut |row| {
                        println!(
                            "{:<10} {:<55} {:>6} passed {:>4} failed {}",
                            row.backend, row.what, row.passed, row.failed, row.why
                        );
                        if !row.ok() {
                            failures.lock().unwrap().push(row);
                        }
                    });
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{failures:#?}");
}

/// `lanework check mayo` does the same in full: every bit of a signature flipped, for one.
#[test]
fn every_check() {
    all_pass(|engine, params, each| check::run(engine, params, Depth::Quick, each));
}

#[test]
fn all_known_answers() {
    all_pass(|engine, params, each| each(check::known_answers(engine, params, Depth::Full)));
}

#[test]
fn every_wrong_length() {
    all_pass(|engine, params, each| each(check::lengths(engine, params, Depth::Full)));
}

/// The engines whose 100 records have the file's digest begin it with these three.
#[test]
fn the_first_three_known_answers_begin_the_file() {
    use lanework_mayo::internals::known::{Digests, Library, digests, records, response, sha256_hex};
    let mut wrong = Vec::new();
    for params in Params::all() {
        let Digests { first, three, .. } = digests(params);
        for engine in engines() {
            let records = records(&Library { engine, params }, 3).unwrap();
            let found = [1, 3].map(|count| sha256_hex(response(&records[..count]).as_bytes()));
            if found != [first, three] {
                wrong.push(format!("{}, {}: {found:?}", engine.name(), params.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
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
