//! The same instructions and the same memory for different secrets, on the processor itself, for every backend. Each
//! operation runs for several seeds and randomizers, and the runs are compared instruction by instruction.
#![forbid(unsafe_code)]

use lanework_cpu::Settings;
use lanework_leakage::evidence::Job as _;
use lanework_leakage::plants::BRANCH;
use lanework_leakage::traced::{Kind, Report, Tally, compared, to_be_judged};
use lanework_leakage::valgrind::say;

use super::plants::{self, Plant};
use super::subjects::{OPERATIONS, Work, cases};
use super::tests::showing;
use super::valgrind_knows;
use crate::backend::BACKENDS;
use crate::backend::Engine;
use crate::params::{Params, Round, Set};

/// Secrets that each operation is compared for.
const SECRETS: usize = 6;

fn compare(engine: Engine, params: &'static Params, what: &'static str, cases: &[usize]) -> Option<Report> {
    let report = compared(
        &format!("{}, {}, {what}", engine.name(), params.name()),
        cases.len(),
        |case| Work::new(engine, params, cases[case], what),
        Work::run,
        |work| work.made.clone(),
    )?;
    // The trace is of the right operation: its output is right.
    for (case, answer) in &report.answers {
        let mut work = Work::new(engine, params, cases[*case], what);
        work.run();
        assert!(*answer == work.made, "{what} gives a different result when it is traced");
    }
    Some(report)
}

/// The tiers of this process.
fn engines() -> Vec<Engine> {
    let settings = Settings::from_env().unwrap();
    let cpu = settings.cpu();
    let engines = Engine::all(&cpu).filter_map(|engine| match engine {
        Ok(engine) => Some(engine),
        Err(why) => {
            assert!(!settings.requires(&why.what), "LANEWORK_REQUIRE names {why}");
            say(&format!("skipped {} under single steps: {why}", why.what));
            None
        }
    });
    engines.collect()
}

#[test]
fn every_secret_takes_the_same_way() {
    if !to_be_judged("every_secret_takes_the_same_way") {
        return;
    }
    let params = Params::of(Round::Three, Set::Mayo1);
    let cases = cases(Engine::portable(), params, SECRETS);
    assert_eq!(cases.len(), SECRETS);
    let (tally, mut leaking, mut covered) = (Tally::default(), Vec::new(), Vec::new());
    for engine in engines() {
        for what in OPERATIONS {
            let Some(report) = compare(engine, params, what, &cases) else { return };
            tally.count(&report);
            println!(
                "{}: {what}: {} instructions, {} with memory",
                engine.name(),
                report.steps,
                report.touched
            );
            assert!(report.steps > 10_000 && report.cases == SECRETS - 1, "too little was compared");
            leaking.extend(report.differences.iter().map(|d| format!("{}, {what}: {d}", engine.name())));
        }
        covered.push(engine.name());
    }
    assert!(leaking.is_empty(), "secrets decide on paths or memory:\n{}", leaking.join("\n"));
    assert_eq!(covered.is_empty(), BACKENDS.is_empty());
    say(&format!(
        "under single steps: {tally} of lanework-mayo without a difference, on {}",
        covered.join(", ")
    ));
}

/// Whether a difference is the planted one.
fn is_named(report: &Report, plant: &Plant) -> bool {
    report.differences.iter().any(|d| {
        let kind = if plant.complaint == BRANCH {
            matches!(d.kind, Kind::Way(_))
        } else {
            matches!(d.kind, Kind::Memory(_))
        };
        kind && d.place.is_in(plant.function)
    })
}

#[test]
fn planted_leaks_are_found_on_the_processor() {
    if !to_be_judged("planted_leaks_are_found_on_the_processor") {
        return;
    }
    let params = plants::params();
    let cases = cases(Engine::portable(), params, SECRETS);
    let mut found = 0;
    // Tiers that valgrind can run have their plants there.
    for engine in engines().into_iter().filter(|engine| !valgrind_knows(engine.name())) {
        for plant in plants::of(engine.name()) {
            let planted = plant.engine();
            for what in showing(&plant) {
                let Some(report) = compare(planted, params, what, &cases) else { return };
                let says: Vec<String> = report.differences.iter().map(ToString::to_string).collect();
                assert!(is_named(&report, &plant), "{} in {}: {says:#?}", plant.function, plant.kernel);
                found += 1;
            }
        }
    }
    say(&format!("under single steps: {found} planted leaks of lanework-mayo found, and named"));
}
