//! The same instructions and the same memory for different secrets, on the processor itself, for every backend. Each
//! operation runs under several keys, each with its own message, and the runs are compared instruction by instruction.
//! IVs and lengths are public and the same.
#![forbid(unsafe_code)]

use lanework_leakage::plants::BRANCH;
use lanework_leakage::traced::{Kind, Report, Tally, compared, to_be_judged};
use lanework_leakage::valgrind::say;

use super::subjects::{OPERATIONS, Operation, answer, prepare, run};
use super::tests::engines;
use crate::backend::BACKENDS;
use crate::backend::Engine;
use crate::backend::leaky::{self, Plant};

/// The number of keys that each operation is compared for.
const SECRETS: usize = 6;

fn compare(engine: Engine, operation: Operation, secrets: usize) -> Option<Report> {
    let what = operation.0;
    let name = format!("{}: {what}", engine.name());
    let report = compared(&name, secrets, prepare, |work| run(engine, operation, work), answer)?;
    for (case, traced) in &report.answers {
        let mut work = prepare(*case);
        run(engine, operation, &mut work);
        assert!(*traced == answer(&work), "{what} gives something else when it is traced");
    }
    Some(report)
}

#[test]
fn every_secret_takes_the_same_way() {
    if !to_be_judged("every_secret_takes_the_same_way") {
        return;
    }
    let (tally, mut leaking, mut covered) = (Tally::default(), Vec::new(), Vec::new());
    for (row, engine) in BACKENDS.iter().zip(engines()) {
        let engine = match engine {
            Ok(engine) => engine,
            Err(why) => {
                say(&format!("skipped {} under single steps: {why}", row.name()));
                continue;
            }
        };
        for operation in OPERATIONS {
            let Some(report) = compare(engine, operation, SECRETS) else { return };
            tally.count(&report);
            println!(
                "{}: {}: {} instructions, {} with memory",
                row.name(),
                operation.0,
                report.steps,
                report.touched
            );
            assert!(report.steps > 300 && report.cases == SECRETS - 1, "too little was compared");
            leaking
                .extend(report.differences.iter().map(|d| format!("{}, {}: {d}", row.name(), operation.0)));
        }
        covered.push(row.name());
    }
    assert!(leaking.is_empty(), "secrets decide on ways or memory:\n{}", leaking.join("\n"));
    say(&format!(
        "under single steps: {tally} of lanework-magma without a difference, on {}",
        covered.join(", ")
    ));
}

/// An operation that shows a leak in a kernel.
fn showing(plant: &Plant) -> &'static str {
    match plant.kernel {
        "blocks" => "blocks",
        "counter" => "CTR",
        "chain" => "OMAC batch",
        "products" | "keystream" => "MGM",
        _ => "CTR batch",
    }
}

#[test]
fn planted_leaks_are_found_on_the_processor() {
    if !to_be_judged("planted_leaks_are_found_on_the_processor") {
        return;
    }
    let mut found = 0;
    for engine in
        engines().into_iter().flatten().filter(|engine| leaky::UNDER_SINGLE_STEPS.contains(&engine.name()))
    {
        for plant in leaky::of(engine.name()) {
            let operation =
                OPERATIONS.iter().find(|(what, _)| *what == showing(&plant)).expect("an operation");
            let Some(report) =
                compare(crate::backend::altered(plant.tier, plant.kernels), *operation, SECRETS)
            else {
                return;
            };
            let named = report.differences.iter().any(|d| {
                let kind = match d.kind {
                    Kind::Way(_) => plant.complaint == BRANCH,
                    _ => plant.complaint != BRANCH,
                };
                kind && d.place.is_in(plant.function)
            });
            let says: Vec<String> = report.differences.iter().map(ToString::to_string).collect();
            assert!(named, "{} in {}: {says:#?}", plant.function, plant.kernel);
            found += 1;
        }
    }
    say(&format!("under single steps: {found} planted leaks of lanework-magma found, and named"));
}
