//! The tests that run themselves under valgrind.
#![forbid(unsafe_code)]

use lanework_cpu::Settings;
use lanework_leakage::memcheck::running;
use lanework_leakage::plants::{self, BRANCH};
use lanework_leakage::valgrind::{judged, say};

use super::secrets::{both, done, secret};
use super::*;
use crate::backend::leaky::{self, Plant};
use crate::internals::check::Numbers;
use crate::key::Magma;
use crate::modes::Omac;

/// All backends that this process has. A required one must be among them, except under valgrind.
pub(super) fn engines() -> Vec<Result<Engine, lanework_cpu::Unavailable>> {
    let settings = Settings::from_env().expect("the environment can be read");
    let cpu: Cpu = settings.cpu();
    let choose = |row: &Backend<Kernels>| {
        let engine = row.get(&cpu);
        if let Err(why) = &engine {
            let needed = !running() || valgrind_knows(row);
            assert!(!needed || !settings.requires(row.name()), "LANEWORK_REQUIRE names {why}");
        }
        engine
    };
    BACKENDS.iter().map(choose).collect()
}

#[test]
fn no_branch_and_no_address_depends_on_a_secret() {
    if running() {
        for engine in engines().into_iter().flatten() {
            eprintln!("{}", ran(engine.name()));
            operate(engine);
        }
        observe(&headline("any", DERIVATIONS), derivations::derivations);
        return;
    }
    let Some(said) = judged("internals::leaks::tests::no_branch_and_no_address_depends_on_a_secret") else {
        return;
    };
    let (mut silent, mut leaking) = (Vec::new(), Vec::new());
    let mut judge = |tier: &str, operation: &str, streebog: bool| {
        let headline = headline(tier, operation);
        let section = Section::of(&said, &headline);
        if section.is_silent() && !streebog {
            silent.push(headline);
        } else if !(streebog && only_streebog(&section)) {
            leaking.push(format!("{headline}\n{}", section.shortened("lanework_magma::")));
        } else {
            assert!(!section.is_silent(), "{headline}: Streebog leaks no longer; judge it like the others");
        }
    };
    let mut covered = Vec::new();
    for (row, engine) in BACKENDS.iter().zip(engines()) {
        let tier = row.name();
        match engine {
            Err(why) => say(&format!("skipped {tier} under valgrind: {why}")),
            Ok(_) if !valgrind_knows(row) && !said.contains(&ran(tier)) => say(&format!(
                "skipped {tier} under valgrind, which does not know all of its instructions: {:?}",
                row.needs()
            )),
            Ok(_) => {
                covered.push(tier);
                let kernels = kernels::OPERATIONS.iter().map(|(what, _)| what);
                for what in kernels.chain(OPERATIONS.iter().map(|(what, _)| what)) {
                    judge(tier, what, false);
                }
                judge(tier, CONTAINER_KEYS, true);
                judge(tier, CONTAINER_CHUNKS, false);
            }
        }
    }
    judge("any", DERIVATIONS, true);
    assert!(leaking.is_empty(), "secrets decide on branches or addresses:\n{}", leaking.join("\n"));
    say(&format!(
        "under valgrind: {} groups of operations of lanework-magma without a complaint, on {}; derived keys and keys of \
         containers with complaints of the crate streebog, which looks up tables, and no other",
        silent.len(),
        covered.join(" and ")
    ));
}

fn planted(plant: &Plant) -> String {
    format!("{} with {} in {}", plant.tier, plant.function, plant.kernel)
}

type Compare = fn(&[u8], &[u8]) -> bool;

/// A comparison of tags that ends early, as a tier would make it: its name, memcheck's complaint, and the operation
/// that runs it.
fn comparisons(tier: &str) -> (&'static str, Compare) {
    match tier {
        "portable" => ("plants::compare_until_different", plants::compare_until_different),
        _ => ("plants::compare_lanes_until_different", leaky::compare_lanes),
    }
}

/// Such a comparison reads a MAC before its release.
fn compared_early(engine: Engine) {
    let (hidden, open) = both(&mut Numbers(81));
    let mac = |key| {
        let mut mac = done("OMAC", Omac::with_key(Magma::with(key, engine), 8));
        done("OMAC", mac.update(b"a message"));
        mac.finish()
    };
    let right = mac(&open);
    let (_, equal) = comparisons(engine.name());
    assert!(equal(mac(&hidden).as_ref(), right.as_ref()));
    // The same with a received tag.
    assert!(!equal(&secret(&[1; 8]), right.as_ref()));
}

#[test]
fn planted_leaks_are_found_and_named() {
    let tiers: Vec<(&'static str, Engine)> = engines()
        .into_iter()
        .flatten()
        .map(|c| (c.name(), c))
        .filter(|(t, _)| leaky::UNDER_VALGRIND.contains(t))
        .collect();
    let early = |tier: &str| headline(tier, "tags compared until they differ");
    if running() {
        for (tier, engine) in tiers {
            for plant in leaky::of(tier) {
                let operation = kernels::OPERATIONS.iter().find(|(what, _)| *what == plant.kernel);
                let (what, operation) = operation.expect("an operation for every kernel");
                observe(&headline(&planted(&plant), what), || operation(plant.kernels));
            }
            let plant = leaky::by_tables(tier);
            observe(&headline(&planted(&plant), plant.kernel), || kernels::magma_blocks(plant.kernels));
            observe(&early(tier), || compared_early(engine));
        }
        return;
    }
    let Some(said) = judged("internals::leaks::tests::planted_leaks_are_found_and_named") else { return };
    let mut found = 0;
    let mut named = |headline: &str, complaint: &str, function: &str, file: &str| {
        let section = Section::of(&said, headline);
        assert!(!section.is_silent(), "nothing is said to {headline}");
        assert!(
            section.names(complaint, function, file),
            "{headline}\nis called otherwise:\n{}",
            section.words
        );
        found += 1;
    };
    for (tier, _) in &tiers {
        for plant in leaky::of(tier).iter().chain([&leaky::by_tables(tier)]) {
            let headline = headline(&planted(plant), plant.kernel);
            named(&headline, plant.complaint, plant.function, plant.file);
        }
        named(&early(tier), BRANCH, comparisons(tier).0, plants::FILE);
    }
    say(&format!("under valgrind: {found} planted leaks of lanework-magma found, and named"));
}
