//! The tests that run themselves under valgrind.
#![forbid(unsafe_code)]

use lanework_cpu::Settings;
use lanework_leakage::memcheck::running;
use lanework_leakage::plants as leaking;
use lanework_leakage::valgrind::{Section, judged};

use super::plants::{self, Plant};
use super::*;

/// The tiers that this process can run; under valgrind, those that valgrind lets it.
fn engines() -> Vec<Engine> {
    let settings = Settings::from_env().unwrap();
    let mut engines = Vec::new();
    for engine in Engine::all(&settings.cpu()) {
        match engine {
            Ok(engine) if valgrind_knows(engine.name()) => engines.push(engine),
            Ok(_) => {}
            Err(reason) => assert!(
                !valgrind_knows(&reason.what) || !settings.requires(&reason.what),
                "LANEWORK_REQUIRE names {reason}"
            ),
        }
    }
    engines
}

#[test]
fn no_branch_and_no_address_depends_on_a_secret() {
    const THIS: &str = "internals::leaks::tests::no_branch_and_no_address_depends_on_a_secret";
    if running() {
        for plain in engines() {
            for params in Params::all() {
                let engine = instrument(plain.name(), plain.kernels(), params);
                operate(plain, engine, params, operations(params));
            }
        }
        return;
    }
    let Some(said) = judged(THIS) else { return };
    let (mut silent, mut leaking) = (0, Vec::new());
    for engine in engines() {
        for params in Params::all() {
            for operation in operations(params) {
                let headline = headline(engine.name(), params, operation);
                let section = Section::of(&said, &headline);
                if section.is_silent() {
                    silent += 1;
                } else {
                    // The rest is the schedule.
                    leaking.push(format!("{headline}\n{}", section.shortened("::backend::")));
                }
            }
        }
    }
    println!("{silent} operations on secrets, no complaint");
    assert!(leaking.is_empty(), "secrets decide on branches or addresses:\n{}", leaking.join("\n"));
    assert!(!said.contains("=="), "memcheck complains outside of the operations:\n{said}");
}

/// An operation that shows a leak in a kernel.
pub(super) fn showing(plant: &Plant) -> &'static [&'static str] {
    match plant.kernel {
        "shake256" | "seed_and_stream" | "keygen" => &["keygen"],
        "shake256_xn" => &["batch keygen"],
        "expand_secret" => &["expand"],
        "sign_expanded" => &["sign expanded"],
        _ => &["sign"],
    }
}

fn planted(plant: &Plant) -> String {
    format!("{} with {} in {}", plant.tier, plant.function, plant.kernel)
}

#[test]
fn every_tier_of_plants_is_a_backend() {
    for tier in plants::TIERS {
        assert!(
            BACKENDS.iter().any(|row| row.name() == tier),
            "leaks are planted in {tier}, which has no row"
        );
        assert!(!plants::of(tier).is_empty(), "no leak is planted in {tier}");
    }
}

#[test]
fn planted_leaks_are_found_and_named() {
    const THIS: &str = "internals::leaks::tests::planted_leaks_are_found_and_named";
    let plants = || engines().into_iter().flat_map(|engine| plants::of(engine.name()));
    let params = plants::params();
    if running() {
        for plant in plants() {
            let plain = plant.engine();
            let engine = instrument(Box::leak(planted(&plant).into_boxed_str()), plant.kernels, params);
            operate(plain, engine, params, showing(&plant));
        }
        return;
    }
    let Some(said) = judged(THIS) else { return };
    for plant in plants() {
        for operation in showing(&plant) {
            let headline = headline(&planted(&plant), params, operation);
            let section = Section::of(&said, &headline);
            assert!(!section.is_silent(), "memcheck reports nothing under {headline}");
            assert!(
                section.names(plant.complaint, plant.function, leaking::FILE),
                "{headline}\nis reported differently:\n{}",
                section.words
            );
        }
    }
}
